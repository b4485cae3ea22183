//! The grammar of `/crew:loop`: the raw text after the command, which no shell has seen, becomes
//! options and a task. The task comes through byte for byte. Whatever looks like an option outside
//! quotes is one or is an error; it never becomes text of the task, because a limit that is lost
//! that way is a loop without end. Nothing here knows what a value is good for.

use std::time::Duration;

use crate::engine::outcome::Proof;

use self::flags::{Flag, Place, Role};
pub use self::run::RunOptions;
use self::tokens::Opening;
pub use self::usage::UsageError;
use self::values::Value;

mod flags;
#[cfg(test)]
mod properties;
mod run;
#[cfg(test)]
mod tests;
mod tokens;
mod usage;
mod values;
pub mod words;

/// The name of the command these arguments follow.
const COMMAND: &str = "/crew:loop";

/// What was typed after `/crew:loop` or `crew run`, and nothing else: `None` means not typed.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch a person types")]
pub struct LoopArguments {
    /// The task, byte for byte; `None` when there is none or only blanks in quotes.
    pub task: Option<String>,
    /// `--prompt-file`: the file that holds the task instead.
    pub prompt_file: Option<String>,
    /// `--max-iterations`, `-n`: 0 is no limit.
    pub max_iterations: Option<u32>,
    /// `--completion-promise`: the text as typed, not yet looked at as a promise.
    pub completion_promise: Option<String>,
    /// `--no-promise`: no claim completes this loop.
    pub no_promise: bool,
    /// `--require`: the weakest proof that completes the loop.
    pub require: Option<Proof>,
    /// `--verify`, in the order typed: commands that must pass before a claim is believed.
    pub verify: Vec<String>,
    /// `--until`, in the order typed: commands that end the loop when they pass.
    pub until: Vec<String>,
    /// `--gate`, in the order typed: commands that must pass after every iteration.
    pub gate: Vec<String>,
    /// `--failure-threshold`: failed iterations in a row; 0 is no limit.
    pub failure_threshold: Option<u32>,
    /// `--stall`: iterations in a row without progress; 0 is no limit.
    pub stall: Option<u32>,
    /// `--max-duration`: a second to ten years; zero is no limit.
    pub max_duration: Option<Duration>,
    /// `--max-cost`: US dollars, more than 0 and finite.
    pub max_cost: Option<f64>,
    /// `--max-tokens`: 0 is no limit.
    pub max_tokens: Option<u64>,
    /// `--replace`: end the loop of this working tree first.
    pub replace: bool,
    /// `--no-project`: leave the project's own settings aside.
    pub no_project: bool,
    /// `--help`, `-h`.
    pub help: bool,
    /// What only `crew run` has.
    pub run: RunOptions,
}

/// Reads the raw text after `/crew:loop`. White space around all of it is no part of the task.
///
/// # Errors
/// When a part of the text is neither an option with its value nor the one task.
pub fn parse(raw: &str) -> Result<LoopArguments, UsageError> {
    let mut reader = Reader { rest: raw.trim(), ..Reader::default() };
    while !reader.rest.is_empty() {
        if tokens::token(reader.rest) == "--" {
            return Err(UsageError::WordsForAgent);
        }
        if tokens::is_option(reader.rest) {
            reader.take_option()?;
        } else {
            reader.take_words()?;
        }
        reader.rest = reader.rest.trim_start();
    }
    sound(reader.arguments)
}

/// Refuses what excludes each other.
fn sound(arguments: LoopArguments) -> Result<LoopArguments, UsageError> {
    if arguments.no_promise && arguments.completion_promise.is_some() {
        return Err(UsageError::TwoPromises);
    }
    if arguments.task.is_some() && arguments.prompt_file.is_some() {
        return Err(UsageError::TwoTasks);
    }
    if arguments.run.agent.is_some() && arguments.run.agent_cmd.is_some() {
        return Err(UsageError::TwoAgents);
    }
    Ok(arguments)
}

#[derive(Default)]
struct Reader<'raw> {
    /// What is not read yet. It begins at the start of a token.
    rest: &'raw str,
    arguments: LoopArguments,
    has_task: bool,
    given: Vec<&'static str>,
}

impl<'raw> Reader<'raw> {
    fn take_task(&mut self, task: String, rest: &'raw str) {
        self.has_task = true;
        self.arguments.task = Some(task).filter(|task| !task.trim().is_empty());
        self.rest = rest;
    }

    fn take_words(&mut self) -> Result<(), UsageError> {
        if self.has_task {
            return Err(UsageError::text_after_task(self.rest));
        }
        match tokens::opening(self.rest) {
            Opening::Quoted { text, rest } => self.take_task(text, rest),
            Opening::Unclosed => return Err(UsageError::UnclosedTask),
            Opening::Swallows(flag) => return Err(UsageError::SwallowedOption { flag }),
            Opening::Words { text, rest } => {
                if text.split_whitespace().next() == Some(COMMAND) {
                    return Err(UsageError::CommandInTask);
                }
                self.take_task(text.to_owned(), rest);
            }
        }
        Ok(())
    }

    fn take_option(&mut self) -> Result<(), UsageError> {
        let token = tokens::token(self.rest);
        if let Some(meant) = flags::behind_typographic_dash(token) {
            return Err(UsageError::typographic_dash(token, meant));
        }
        let (flag, attached) = flags::find(token, Place::Session)?;
        if self.given.contains(&flag.name) && !matches!(flag.role, Role::Repeated(_)) {
            return Err(UsageError::GivenTwice { flag: flag.name });
        }
        self.given.push(flag.name);
        match flag.role {
            Role::Switch(_) | Role::SwitchOr(..) if attached.is_some() => {
                return Err(UsageError::UnexpectedValue { flag: flag.name });
            }
            Role::Switch(set) => {
                set(&mut self.arguments);
                self.rest = &self.rest[token.len()..];
            }
            Role::SwitchOr(_, set) => {
                set(&mut self.arguments, false);
                self.rest = &self.rest[token.len()..];
            }
            Role::Once(set) => {
                let value = self.take_value(flag, attached)?;
                set(&mut self.arguments, value)?;
            }
            Role::Repeated(values) => {
                let value = self.take_value(flag, attached)?;
                values(&mut self.arguments).push(value.text);
            }
        }
        Ok(())
    }

    fn take_value(
        &mut self,
        flag: &'static Flag,
        attached: Option<usize>,
    ) -> Result<Value, UsageError> {
        let start = match attached {
            Some(start) => &self.rest[start..],
            None => self.rest[tokens::token(self.rest).len()..].trim_start(),
        };
        let (text, rest) = tokens::value(flag, start)?;
        self.rest = rest;
        Ok(Value { flag, text })
    }
}
