//! What is read from an agent's output, whichever agent it is. Words before an error, a cut or more
//! work are never taken for a claim.

use crate::engine::boundary::facts::{AgentClosing, AgentOutcome, ApiError, ProcessEnd};
use crate::engine::claim::promise::Promise;
use crate::engine::claim::{self, Claim};
use crate::engine::evidence::said::said;
use crate::engine::usage::Usage;

/// The result of reading an iteration's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The agent's last words, if no work followed them. At most the last 256 KiB.
    pub final_message: Option<String>,
    /// The last words, whatever followed: for people and for the next prompt, never judged.
    pub last_words: Option<String>,
    /// Whether the final message is the end of plain output, which may echo the prompt.
    pub may_echo: bool,
    /// `None` where the agent does not report it.
    pub usage: Option<Usage>,
    /// How it ended, as its events say; text is never taken for an error.
    pub agent: AgentOutcome,
    /// The model that worked, where the agent reports it.
    pub model: Option<String>,
    /// How many turns it took, where the agent reports it.
    pub turns: Option<u32>,
}

impl Report {
    /// What the agent claims. `Claim::None` if its answer was cut, the service failed, or the
    /// closing event is missing or reports an error: its last words are not its final message then.
    /// Also `Claim::None` if they echo the prompt or the task.
    pub fn claim(&self, prompt: &str, task: &str, promise: Option<&Promise>) -> Claim {
        let AgentOutcome { cut, error, closing, .. } = &self.agent;
        match &self.final_message {
            Some(_) if *cut || error.is_some() || *closing != AgentClosing::Plain => Claim::None,
            Some(message) if self.may_echo => claim::read_output(message, prompt, task, promise),
            Some(message) => claim::read_message(message, task, promise),
            None => Claim::None,
        }
    }

    /// Whether the agent ended before it printed any event of its work.
    pub fn is_without_events(&self) -> bool {
        self.agent.closing == AgentClosing::Missing
            && self.last_words.is_none()
            && self.model.is_none()
            && self.turns.is_none()
    }

    /// The same for an agent that crew ended because the service failed so: what it printed in its
    /// grace takes that back only with a closing event.
    pub fn ended_for(mut self, failure: Option<ApiError>) -> Self {
        if self.agent.closing == AgentClosing::Missing {
            self.agent.error = self.agent.error.or(failure);
        }
        self
    }

    /// What the iteration used, given how its process ended. An agent that ended well without
    /// reporting anything never reports: `None`. If it ended otherwise, the use is only lost.
    pub fn used(&self, process: &ProcessEnd) -> Option<Usage> {
        let is_well = *process == ProcessEnd::Exit(0);
        let is_silent = |usage: &Usage| usage.lost && usage.tokens.total() == 0;
        self.usage.clone().filter(|usage| !(is_well && is_silent(usage)))
    }

    /// How the iteration ended, given how its process did. An exit only because the turns were used
    /// up is not a failure.
    pub fn outcome(&self, process: ProcessEnd) -> AgentOutcome {
        let process = match process {
            ProcessEnd::Exit(_) if self.agent.out_of_turns => ProcessEnd::Exit(0),
            other => other,
        };
        let said = self.last_words.as_deref().and_then(said);
        AgentOutcome { process: Some(process), said, ..self.agent.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::usage::Tokens;

    #[test]
    fn what_is_printed_in_the_grace_takes_the_failure_back_only_with_a_closing_event() {
        let failure = |message: &str| ApiError::Request { message: message.to_owned() };
        let (then, later) = (Some(failure("then")), Some(failure("later")));
        let table = [
            (AgentClosing::Missing, None, then.clone()),
            (AgentClosing::Missing, later.clone(), later),
            (AgentClosing::Plain, None, None),
            (AgentClosing::Failed(String::new()), None, None),
        ];
        for (closing, error, expected) in table {
            let agent = AgentOutcome { error, closing, ..AgentOutcome::default() };
            let report = Report { agent, ..Report::default() };
            assert_eq!(report.clone().ended_for(None), report);
            assert_eq!(report.ended_for(then.clone()).agent.error, expected);
        }
    }

    #[test]
    fn an_exit_that_only_tells_of_used_up_turns_is_no_failure() {
        let of = |agent| Report { agent, ..Report::default() };
        let cut = of(AgentOutcome { cut: true, ..AgentOutcome::default() });
        let out_of_turns = of(AgentOutcome { out_of_turns: true, ..AgentOutcome::default() });
        let denied = vec!["Bash".to_owned()];
        let denied = of(AgentOutcome { denied, ..AgentOutcome::default() });
        let table = [
            (&out_of_turns, ProcessEnd::Exit(1), ProcessEnd::Exit(0)),
            (&out_of_turns, ProcessEnd::TimedOut(60), ProcessEnd::TimedOut(60)),
            (&cut, ProcessEnd::Exit(1), ProcessEnd::Exit(1)),
            (&denied, ProcessEnd::Exit(1), ProcessEnd::Exit(1)),
        ];
        for (report, process, expected) in table {
            let end = report.outcome(process);
            assert_eq!((end.process, end.cut), (Some(expected), report.agent.cut));
            assert_eq!(end.denied, report.agent.denied);
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
