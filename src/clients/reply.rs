//! What crew answers to an event, before a client puts it into its own format.

use serde_json::Value;

/// What crew answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// No answer: the event takes its course. To any event.
    Nothing,
    /// The agent continues with `prompt`, which quotes `task` as it was typed; `line` is for the
    /// person. To `Stopped`, to a `Command` that starts or resumes a loop, and to `SessionBegan`
    /// after a compaction.
    GoOn { task: String, prompt: String, line: String },
    /// Shown instead of the prompt or command; costs no model turn. Only to `Command`.
    Instead(String),
    /// The same for an order typed as a message while the agent works. Only to `Order`.
    Obeyed(String),
    /// Text for the person; the event takes its course. To `Stopped`, `Prompted` and
    /// `SessionBegan`.
    Say(String),
    /// The agent's question is not put to the user; the agent reads this instead. Only to `Asked`.
    Decide(String),
    /// Starts a turn with this prompt. Only from an asynchronous process: one called with
    /// `--companion` at `Stopped`, and the one that answers `ServiceFailed` or `Idle`.
    Wake(String),
}

impl Reply {
    /// Adds a line for the person.
    #[must_use]
    pub fn also(mut self, line: &str) -> Self {
        match &mut self {
            Self::Nothing => return Self::Say(line.to_owned()),
            Self::GoOn { line: text, .. } | Self::Say(text) => {
                *text = format!("{}\n{line}", text.trim_end());
            }
            _ => {}
        }
        self
    }

    /// The text the person reads, so that the caller can reword it.
    pub fn words(&mut self) -> Option<&mut String> {
        match self {
            Self::GoOn { line: text, .. } | Self::Say(text) | Self::Instead(text) => Some(text),
            _ => None,
        }
    }
}

/// What a hook prints and how it exits.
#[derive(Debug, Default, PartialEq)]
pub struct Output {
    /// Printed to standard output as JSON.
    pub out: Option<Value>,
    /// Printed to standard error.
    pub err: Option<String>,
    /// The exit status.
    pub status: u8,
}
