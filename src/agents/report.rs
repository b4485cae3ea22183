//! What is read from an agent's output, whichever agent it is.

use chrono::{DateTime, FixedOffset};

use crate::engine::claim::{self, Claim};
use crate::engine::facts::ApiError;
use crate::engine::promise::Promise;
use crate::engine::usage::Usage;

/// What an iteration's output came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The agent's last words, where nothing of its work came after them; at most 256 KiB, the end of them.
    pub final_message: Option<String>,
    /// The last it said, whatever came after: for people and for the next prompt, and never judged.
    pub last_words: Option<String>,
    /// Whether the final message is the end of plain output, where an echo of the prompt is possible.
    pub may_echo: bool,
    /// `None` where the agent does not tell.
    pub usage: Option<Usage>,
    /// Only what a structured event says; text is never taken for an error.
    pub error: Option<ApiError>,
    /// Tools that were denied, each once.
    pub denied: Vec<String>,
    /// The answer was cut by the token limit: neither a claim nor a failure, whatever the exit status.
    pub cut: bool,
    /// The agent was ended by its own limit on turns: no failure of its work, though it exits with 1.
    pub out_of_turns: bool,
    /// The model that worked, where the agent tells.
    pub model: Option<String>,
    /// How many turns it took, where the agent tells.
    pub turns: Option<u32>,
}

impl Report {
    /// What the agent claims: nothing where its answer was cut or the service failed, because then its last
    /// words are not its final message; nothing where they are an echo of the prompt.
    pub fn claim(&self, prompt: &str, promise: Option<&Promise>) -> Claim {
        match &self.final_message {
            Some(message) if !self.cut && self.error.is_none() => {
                if self.may_echo {
                    claim::read_output(message, prompt, promise)
                } else {
                    claim::read(message, promise)
                }
            }
            _ => Claim::None,
        }
    }
}

/// Reads one process's output as it comes. What it keeps is bounded whatever the output is.
pub trait Reader: std::fmt::Debug {
    /// Takes one line of standard output, without its line break; gives what a person may see of it.
    fn line(&mut self, line: &str) -> Option<String>;

    /// Whether a tool call or a background task of the agent's is open: then silence is work.
    fn tool_is_open(&self) -> bool;

    /// What it all came to, once the process is over; `now` is on the user's clock, by which a service's
    /// message names a reset.
    fn report(&mut self, now: DateTime<FixedOffset>) -> Report;
}
