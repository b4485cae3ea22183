//! Looks up a typed token among the options that clap knows of each command. A token that is not an
//! option of its command is an error here, with the nearest option, or the command that has it.

use std::sync::LazyLock;

use clap::{Arg, Args, Command};

use super::options::{LoopArgs, ResumeArgs, ResumeHereArgs, RunArgs, SetArgs};
use super::usage::UsageError;
use crate::parse::spelling::{nearest, shown};

pub(super) static LOOP: LazyLock<Command> = LazyLock::new(|| built::<LoopArgs>("/crew:loop"));
pub(super) static RUN: LazyLock<Command> = LazyLock::new(|| typed::<RunArgs>("crew run"));
pub(super) static RESUME: LazyLock<Command> = LazyLock::new(|| typed::<ResumeArgs>("crew resume"));
pub(super) static RESUME_HERE: LazyLock<Command> =
    LazyLock::new(|| built::<ResumeHereArgs>("/crew:resume"));
pub(super) static SET: LazyLock<Command> = LazyLock::new(|| typed::<SetArgs>("crew set"));

fn built<A: Args>(name: &'static str) -> Command {
    let mut command = A::augment_args(Command::new(name)).no_binary_name(true);
    command.build();
    command
}

/// The same for a verb that is typed in a terminal: it also takes what every verb takes.
fn typed<A: Args>(name: &'static str) -> Command {
    built::<A>(name).arg(Arg::new("color").long("color").value_name("WHEN").hide(true))
}

fn all() -> impl Iterator<Item = &'static Command> {
    [&LOOP, &RUN, &RESUME, &SET].into_iter().map(|command| &**command)
}

/// The text up to the first white space.
pub(super) fn first_word(text: &str) -> &str {
    &text[..text.find(char::is_whitespace).unwrap_or(text.len())]
}

/// An option that a token names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) long: &'static str,
    /// What its value is called in the help.
    value_name: &'static str,
    /// Whether it needs a value when none is attached.
    pub(super) takes_value: bool,
    /// The offset of the attached value in the token, if there is one.
    pub(super) value_at: Option<usize>,
}

impl Named {
    fn of(arg: &'static Arg, token: &str) -> Option<Self> {
        let long = arg.get_long()?;
        let takes_value = arg.get_action().takes_values() && !arg.is_require_equals_set();
        let name = token.split('=').next().unwrap_or(token);
        let equals = (name.len() < token.len()).then_some(name.len() + 1);
        let value_name = arg.get_value_names().and_then(<[_]>::first).map_or("VALUE", |name| name);
        let named = |value_at| Some(Self { long, value_name, takes_value, value_at });
        if name.strip_prefix("--") == Some(long) {
            return named(equals);
        }
        let short = arg.get_short().filter(|short| name[1..].starts_with(*short))?;
        let rest = name[1..].strip_prefix(short)?;
        let is_value = takes_value && !rest.starts_with(|c: char| c.is_ascii_alphabetic());
        match rest {
            "" => named(equals),
            _ if is_value => named(Some(1 + short.len_utf8())),
            _ => None,
        }
    }

    /// The option in the form passed to clap.
    pub(super) fn with(self, value: Option<&str>) -> Result<String, UsageError> {
        let long = self.long;
        match value {
            Some(value) if !value.trim().is_empty() => Ok(format!("--{long}={value}")),
            None if !self.takes_value => Ok(format!("--{long}")),
            _ => Err(UsageError::new(
                format!("--{long} needs a value"),
                format!("--{long} {}", self.value_name),
            )),
        }
    }

    /// The error for an option that is followed by another option instead of its value.
    pub(super) fn lacks_value(self, follows: &str) -> UsageError {
        let (long, follows) = (self.long, shown(follows));
        UsageError::new(
            format!("--{long} needs a value, but `{follows}` follows it"),
            format!("write a value that begins with a hyphen as --{long}=\"{follows}\""),
        )
    }
}

fn find(command: &'static Command, token: &str) -> Option<Named> {
    token.starts_with('-').then(|| command.get_arguments().find_map(|arg| Named::of(arg, token)))?
}

/// The option of any command that a token names.
pub(super) fn anywhere(token: &str) -> Option<Named> {
    all().find_map(|command| find(command, token))
}

/// The option that a token names.
pub(super) fn option(command: &'static Command, token: &str) -> Result<Named, UsageError> {
    let name = shown(token.split('=').next().unwrap_or(token));
    if let Some(meant) = behind_typographic_dash(first_word(token)) {
        let cure = if meant.starts_with("--") { "two hyphens" } else { "a hyphen" };
        return Err(UsageError::new(
            format!("`{name}` begins with a typographic dash"),
            format!("type {cure} instead, `{meant}`"),
        ));
    }
    if let Some(named) = find(command, token) {
        return Ok(named);
    }
    let way_out = match command.get_name() {
        "crew run" => {
            "if it is the agent's, put it after `--`; if it belongs to the task, put the whole task in double quotes"
        }
        "/crew:loop" => "if it belongs to the task, put the whole task in double quotes",
        "crew resume" => "crew resume --help names what can be changed",
        "/crew:resume" => "/crew:resume takes limits, such as -n +10, and --tell \"TEXT\"",
        _ => "crew set --help names the limits",
    };
    let others: Vec<&str> =
        all().filter(|other| find(other, token).is_some()).map(Command::get_name).collect();
    let fault = if others.is_empty() {
        let meant = suggestion(command, &name).map(|it| format!(": did you mean `{it}`?"));
        format!("unknown option `{name}`{}", meant.unwrap_or_default())
    } else {
        format!("`{name}` is an option of {}", others.join(" and "))
    };
    Err(UsageError::new(fault, way_out))
}

/// The most similar option.
fn suggestion(command: &'static Command, typed: &str) -> Option<String> {
    let short = command.get_arguments().filter_map(Arg::get_short).map(|short| format!("-{short}"));
    let longs: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
    let long = || nearest(typed, &longs).map(|long| format!("--{long}"));
    short.into_iter().find(|short| short.eq_ignore_ascii_case(typed)).or_else(long)
}

/// Whether this is a dash that editors and chat clients substitute for hyphens.
pub(super) fn is_typographic_dash(character: char) -> bool {
    matches!(character, '\u{2010}'..='\u{2015}' | '\u{2212}')
}

/// The option a token would name if its typographic dash were the hyphens it was typed as.
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
    all().any(|command| command.get_arguments().any(is_long)).then(|| format!("--{name}"))
}
