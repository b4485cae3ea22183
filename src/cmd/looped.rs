//! `crew loop`: no verb of a terminal, but what is typed first by who knows the command of the session. Starts
//! nothing; says where it can be typed.

use anyhow::{Result, bail};

use crate::cli::Words;
use crate::exit::Exit;

/// Names the command that starts this loop.
pub fn looped(arguments: &Words) -> Result<Exit> {
    let quoted = |word: &String| {
        let plain = !word.contains(char::is_whitespace);
        if plain { word.clone() } else { format!("\"{word}\"") }
    };
    let words = arguments.words.iter().map(quoted);
    let typed = words.collect::<Vec<_>>().join(" ");
    let typed = if typed.is_empty() { "\"task\"".to_owned() } else { typed };
    bail!(
        "a terminal has no session to loop in\n\
         hint: here crew run {typed}, in fresh processes; in Claude Code /crew:loop {typed}"
    )
}
