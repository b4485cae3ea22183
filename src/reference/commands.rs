//! The commands and their options, as clap knows them.

use clap::{Arg, Command, CommandFactory as _};

use super::page::{Block, Part, entry};
use super::source::sentences;
use crate::cli::{Cli, with_those_below};

/// The messages in a session: the files of `commands/`.
const MESSAGES: [(&str, &str); 7] = [
    ("loop", include_str!("../../commands/loop.md")),
    ("status", include_str!("../../commands/status.md")),
    ("pause", include_str!("../../commands/pause.md")),
    ("resume", include_str!("../../commands/resume.md")),
    ("cancel-loop", include_str!("../../commands/cancel-loop.md")),
    ("handoff", include_str!("../../commands/handoff.md")),
    ("help", include_str!("../../commands/help.md")),
];

/// A block for the messages in a session, and one for each command.
pub fn blocks() -> Vec<Block> {
    let messages = MESSAGES.iter().map(|(name, file)| {
        let field = |key: &str| {
            let line = file.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_default().trim().trim_matches('"').replace("\\\"", "\"")
        };
        let words = match *name {
            "loop" => "TASK [options]".to_owned(),
            _ => field("argument-hint:"),
        };
        let typed = format!("/crew:{name} {words}");
        entry(typed.trim(), "", &sentences(&field("description:")))
    });
    let mut blocks = vec![Block::new("messages", messages.collect())];
    let mut all = Cli::command();
    all.build();
    blocks.extend(with_those_below(&all).iter().skip(1).map(block));
    blocks
}

fn block(verb: &Command) -> Block {
    let name = verb.get_bin_name().unwrap_or_default().to_owned();
    let about = verb.get_long_about().or(verb.get_about()).map(ToString::to_string);
    let usage = verb.clone().render_usage().to_string().replace("Usage: ", "");
    let usage: Vec<&str> = usage.lines().map(str::trim).collect();
    let about = sentences(&about.unwrap_or_default());
    let mut parts =
        vec![Part::Text(about), Part::Text(format!("```text\n{}\n```", usage.join("\n")))];
    let mut args: Vec<&Arg> = verb.get_arguments().filter(|arg| is_shown(arg)).collect();
    // A heading comes once, as in a page of help.
    let headings: Vec<_> = args.iter().map(|arg| arg.get_help_heading()).collect();
    args.sort_by_key(|arg| headings.iter().position(|of| *of == arg.get_help_heading()));
    let mut heading = None;
    for arg in &args {
        let of_arg = arg.get_help_heading();
        if of_arg != heading && args.iter().any(|other| other.get_help_heading() != of_arg) {
            if let Some(title) = of_arg {
                parts.push(Part::Text(format!("**{title}**")));
            }
            heading = of_arg;
        }
        parts.push(option(arg));
    }
    if let Some((_, examples)) = verb
        .get_after_help()
        .map(ToString::to_string)
        .as_deref()
        .and_then(|after| after.split_once("Examples:\n"))
    {
        let lines: Vec<&str> =
            examples.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        parts.push(Part::Text(format!("```text\n{}\n```", lines.join("\n"))));
    }
    Block::new(name, parts)
}

fn is_shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help"
}

/// An option or a word, with the text of its page of help.
fn option(arg: &Arg) -> Part {
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    let takes = arg.get_num_args().is_some_and(|number| number.takes_values());
    let values = if takes { values.join(" ") } else { String::new() };
    let name = match (arg.get_long(), arg.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long} {values}"),
        (Some(long), None) => format!("--{long} {values}"),
        (None, _) => values,
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
    entry(name.trim(), "", &sentences(&help.unwrap_or_default()))
}
