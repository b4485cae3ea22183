//! `crew loop`: not a terminal command, but what people who know the session's command type first.
//! It starts nothing; it names the commands that do.

use anyhow::{Result, bail};

use crate::engine::doctor::shell_word;
use crate::exit::Exit;

/// Names the two commands that start this loop: one for here, one for a session.
pub fn show_hint(words: &[String]) -> Result<Exit> {
    let quoted = |word: &String| {
        let plain = !word.contains(char::is_whitespace);
        if plain { word.clone() } else { format!("\"{word}\"") }
    };
    let join = |words: Vec<String>| {
        if words.is_empty() { "\"task\"".to_owned() } else { words.join(" ") }
    };
    let here = join(words.iter().map(|word| shell_word(word)).collect());
    let there = join(words.iter().map(quoted).collect());
    bail!(
        "a terminal has no session to loop in\nhint: crew run {here}; or, in Claude Code: /crew:loop {there}"
    )
}
