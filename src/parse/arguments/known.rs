//! The commands whose words are prepared for clap, and which of their options a token names.

use std::sync::LazyLock;

use clap::{Arg, Args, Command};

use super::options::{LoopArgs, ResumeArgs, ResumeHereArgs, RunArgs};

pub(super) static LOOP: LazyLock<Command> = LazyLock::new(|| built::<LoopArgs>("/crew:loop"));
pub(super) static RUN: LazyLock<Command> = LazyLock::new(|| built::<RunArgs>("crew run"));
pub(super) static RESUME: LazyLock<Command> = LazyLock::new(|| built::<ResumeArgs>("crew resume"));
pub(super) static RESUME_HERE: LazyLock<Command> =
    LazyLock::new(|| built::<ResumeHereArgs>("/crew:resume"));

fn built<A: Args>(name: &'static str) -> Command {
    let mut command = A::augment_args(Command::new(name)).no_binary_name(true);
    command.build();
    command
}

/// The text up to the first white space.
pub(super) fn first_word(text: &str) -> &str {
    &text[..text.find(char::is_whitespace).unwrap_or(text.len())]
}

/// The option of a command that a token names, and the offset of a value that is attached to it.
pub(super) fn find(
    command: &'static Command,
    token: &str,
) -> Option<(&'static Arg, Option<usize>)> {
    let name = token.split('=').next().unwrap_or(token);
    let equals = (name.len() < token.len()).then_some(name.len() + 1);
    command.get_arguments().find_map(|arg| {
        if arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long)) {
            return Some((arg, equals));
        }
        let rest = name.strip_prefix('-')?.strip_prefix(arg.get_short()?)?;
        match rest {
            "" => Some((arg, equals)),
            _ if takes_value(arg) && !rest.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                Some((arg, Some(name.len() - rest.len())))
            }
            _ => None,
        }
    })
}

/// Whether an option needs a value.
pub fn takes_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|values| values.takes_values())
}

/// Whether this is a dash that editors and chat clients substitute for hyphens.
pub(super) fn is_typographic_dash(character: char) -> bool {
    matches!(character, '\u{2010}'..='\u{2015}' | '\u{2212}')
}

/// The option that a token would name if its typographic dash were the hyphens it was typed as.
pub(super) fn behind_typographic_dash(token: &str) -> Option<String> {
    let name = token.trim_start_matches(|c| c == '-' || is_typographic_dash(c));
    if name.is_empty() || !token[..token.len() - name.len()].contains(is_typographic_dash) {
        return None;
    }
    let name = name.split('=').next()?;
    let short = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if name == "h" || short == "n" {
        return Some(format!("-{short}"));
    }
    let is_long = |arg: &Arg| arg.get_long() == Some(name);
    let all = [&RUN, &RESUME].into_iter();
    all.flat_map(|it| it.get_arguments()).any(is_long).then(|| format!("--{name}"))
}
