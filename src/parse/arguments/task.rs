//! The options of `crew run` as a task's file names them, and the arguments that such a file comes
//! to. What a task may set and what its values look like in a file is decided by the reader of
//! fleets.

use clap::{Arg, ArgAction, FromArgMatches};

use super::known::{RUN, takes_value};
use super::options::RunArgs;
use super::usage::UsageError;
use super::values::MARK;

/// An option of `crew run`.
#[derive(Debug, Clone, Copy)]
pub struct NamedOption(&'static Arg);

impl NamedOption {
    /// Every option that has a long name.
    pub fn all() -> impl Iterator<Item = Self> {
        let is_help = |arg: &Arg| matches!(arg.get_action(), ArgAction::Help);
        let named = move |arg: &&Arg| arg.get_long().is_some() && !is_help(arg);
        RUN.get_arguments().filter(named).map(Self)
    }

    /// The name after the two hyphens.
    pub fn long(self) -> &'static str {
        self.0.get_long().unwrap_or_default()
    }

    /// Whether it takes no value.
    pub fn is_switch(self) -> bool {
        !takes_value(self.0)
    }

    /// Whether it may be given more than once.
    pub fn repeats(self) -> bool {
        matches!(self.0.get_action(), ArgAction::Append)
    }

    /// Whether giving it again adds to what was given. A list between commas is one value, which
    /// another list replaces.
    pub fn adds_up(self) -> bool {
        self.repeats() && self.0.get_value_delimiter().is_none()
    }

    /// Whether the two cannot be given together.
    pub fn excludes(self, other: Self) -> bool {
        let declares = |one: &Arg, other: &Arg| {
            RUN.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
        };
        declares(self.0, other.0) || declares(other.0, self.0)
    }
}

/// The arguments of a run of this task, which stays as it is, whatever it looks like. The words are
/// read as those of `crew run`.
///
/// # Errors
/// When a word is not an option, or its value cannot be used.
pub fn of_task(words: &[String], task: &str) -> Result<RunArgs, UsageError> {
    let task = format!("{MARK}{task}");
    let matches = RUN.clone().try_get_matches_from(std::iter::once(&task).chain(words));
    matches
        .and_then(|matches| RunArgs::from_arg_matches(&matches))
        .map_err(|error| UsageError::of(&error, "crew run --help"))
}
