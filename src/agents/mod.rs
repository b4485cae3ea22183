//! The agents: how each one's command line is put together, and what its output says. Pure: options in,
//! arguments out; lines in, a report out. Starting and reading the process is `world`'s.

use crate::engine::agent::{Agent, Permissions};
use crate::engine::facts::ApiError;
use crate::engine::usage::Usage;

/// What one iteration asks of an agent.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub prompt: &'a str,
    pub permissions: Permissions,
    /// 0 is no limit.
    pub max_turns: u32,
}

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub program: String,
    pub arguments: Vec<String>,
    /// Written to its standard input, which is then closed.
    pub input: String,
}

/// What an iteration's output came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The agent's last words; `None` where it said none.
    pub final_message: Option<String>,
    /// Whether those are the end of plain output, where an echo of the prompt is possible.
    pub may_echo: bool,
    /// `None` where the agent does not tell.
    pub usage: Option<Usage>,
    /// Only what a structured event says; text is never taken for an error.
    pub error: Option<ApiError>,
    /// Tools that were denied, each once.
    pub denied: Vec<String>,
    /// The answer was cut by the token limit: neither a claim nor a failure.
    pub cut: bool,
}

/// Reads one process's output as it comes.
pub trait Reader: std::fmt::Debug {
    /// Takes one line of standard output, without its line break; gives what a person may see of it.
    fn line(&mut self, line: &str) -> Option<String>;

    /// Whether a tool call of the agent's is open: then silence is work.
    fn tool_is_open(&self) -> bool;

    /// What it all came to, once the process is over.
    fn report(&mut self) -> Report;
}

/// Puts the command line of one iteration together. The error says which option the agent does not have.
pub fn launch(_agent: &Agent, _ask: &Ask<'_>) -> Result<Launch, String> {
    Err("no agent can be started yet".to_owned())
}
