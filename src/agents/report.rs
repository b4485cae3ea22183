//! What is read from an agent's output, whichever agent it is.

use chrono::{DateTime, FixedOffset};

use crate::engine::boundary::facts::{AgentClosing, AgentOutcome, ApiError, ProcessEnd};
use crate::engine::claim::promise::Promise;
use crate::engine::claim::{self, Claim};
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
    /// What the agent's closing event says, where the service did not fail.
    pub closing: AgentClosing,
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
    /// What the agent claims: nothing where its answer was cut, the service failed or its closing event is missing
    /// or says error, because then its last words are not its final message; nothing where they are an echo of
    /// the prompt or of the task.
    pub fn claim(&self, prompt: &str, task: &str, promise: Option<&Promise>) -> Claim {
        let is_whole = !self.cut && self.error.is_none() && self.closing == AgentClosing::Plain;
        match &self.final_message {
            Some(message) if is_whole => {
                if self.may_echo {
                    claim::read_output(message, prompt, task, promise)
                } else {
                    claim::read_message(message, task, promise)
                }
            }
            _ => Claim::None,
        }
    }

    /// What it used, from how its process ended. One that ended well and told nothing never tells; of one
    /// that did not get so far it is only lost.
    pub fn used(&self, process: &ProcessEnd) -> Option<Usage> {
        let is_well = *process == ProcessEnd::Exit(0);
        let is_silent = |usage: &Usage| usage.lost && usage.tokens.total() == 0;
        self.usage.clone().filter(|usage| !(is_well && is_silent(usage)))
    }

    /// How the iteration ended, from how its process did. An exit that says no more than that the turns were
    /// used up is no failure.
    pub fn agent_end(&self, process: ProcessEnd) -> AgentOutcome {
        let process = match process {
            ProcessEnd::Exit(_) if self.out_of_turns => ProcessEnd::Exit(0),
            other => other,
        };
        AgentOutcome {
            process: Some(process),
            error: self.error.clone(),
            closing: self.closing.clone(),
            denied: self.denied.clone(),
            cut: self.cut,
            ..AgentOutcome::default()
        }
    }
}

/// Reads one process's output as it comes. What it keeps is bounded whatever the output is.
pub trait OutputReader: std::fmt::Debug {
    /// Takes one line of standard output, without its line break; gives what a person may see of it.
    fn line(&mut self, line: &str) -> Option<String>;

    /// Whether a tool call or a background task of the agent's is open: then silence is work. After its closing
    /// event only a call is.
    fn tool_is_open(&self) -> bool;

    /// Whether its closing event came and it told of no work that it will come back for: then it has no reason to
    /// be there any longer.
    fn is_closed(&self) -> bool {
        false
    }

    /// What it all came to, once the process is over; `now` is on the user's clock, by which a service's
    /// message names a reset.
    fn report(&mut self, now: DateTime<FixedOffset>) -> Report;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::usage::Tokens;

    #[test]
    fn an_exit_that_only_tells_of_used_up_turns_is_no_failure() {
        let cut = Report { cut: true, ..Report::default() };
        let out_of_turns = Report { out_of_turns: true, ..Report::default() };
        let denied = Report { denied: vec!["Bash".to_owned()], ..Report::default() };
        let table = [
            (&out_of_turns, ProcessEnd::Exit(1), ProcessEnd::Exit(0)),
            (&out_of_turns, ProcessEnd::TimedOut(60), ProcessEnd::TimedOut(60)),
            (&cut, ProcessEnd::Exit(1), ProcessEnd::Exit(1)),
            (&denied, ProcessEnd::Exit(1), ProcessEnd::Exit(1)),
        ];
        for (report, process, expected) in table {
            let end = report.agent_end(process);
            assert_eq!((end.process, end.cut), (Some(expected), report.cut));
            assert_eq!(end.denied, report.denied);
        }
    }

    #[test]
    fn an_agent_that_ends_well_without_a_word_of_its_use_never_tells() {
        let of = |lost, input| {
            let tokens = Tokens { input, ..Tokens::default() };
            Some(Usage { tokens, lost, ..Usage::default() })
        };
        let table = [
            (of(true, 0), ProcessEnd::Exit(0), None),
            (of(true, 0), ProcessEnd::Exit(1), of(true, 0)),
            (of(true, 0), ProcessEnd::TimedOut(60), of(true, 0)),
            (of(true, 9), ProcessEnd::Exit(0), of(true, 9)),
            (of(false, 0), ProcessEnd::Exit(0), of(false, 0)),
            (None, ProcessEnd::Exit(1), None),
        ];
        for (usage, process, expected) in table {
            let report = Report { usage, ..Report::default() };
            assert_eq!(report.used(&process), expected, "{report:?} {process:?}");
        }
    }
}
