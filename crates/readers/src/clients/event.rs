//! What a client's hook reports, in crew's words, and what crew answers before a client puts it
//! into its own format.

use derive_getters::Getters;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fields::{FieldsByPointer, is_session_id, parse_object};
use super::{ALL, Client, EnvLookup, Transcript};
use crate::parse::process_table::ProcessRow;
use crate::parse::requests::TypedRequest;

/// One event of a client.
#[derive(Getters)]
pub struct Hook<'a> {
    /// The client that sent it.
    #[getter(skip)]
    pub client: &'static Client,
    /// The variables of the hook's process.
    variable: EnvLookup<'a>,
    /// The client's own name of the event.
    name: String,
    /// The session's id. Absent if the payload lacks an id that is safe in a file name; then no
    /// loop can be crew's.
    session_id: Option<String>,
    /// The agent's working folder.
    folder: Option<PathBuf>,
    /// The file that records the whole session, if the client keeps one.
    transcript: Option<PathBuf>,
    /// Identifies the user's prompt that the agent works on.
    turn: Option<String>,
    /// The event itself.
    event: HookEvent,
    /// What the user should know about the session's mode when a loop begins in it.
    #[getter(copy)]
    caution: Option<&'static str>,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEvent {
    /// The agent is about to stop.
    Stopped(Stopped),
    /// The model's service failed the agent: a `kind` that `parse::service` knows, and the
    /// service's own message.
    ServiceFailed { kind: String, message: String },
    /// The session has been idle for a while.
    Idle,
    /// The agent is about to ask the user, and waits for this hook.
    Asked(Vec<AskedQuestion>),
    /// The user has answered what the agent asked.
    Answered,
    /// The client has waited a while for the user at a dialog, such as one for a permission; the
    /// tool, if the client names it.
    AtDialog { tool: Option<String> },
    /// A command typed to crew, and the raw text after it. If it is not `sure`, it is a command
    /// only in a session that had a loop.
    Command { name: String, raw: String, sure: bool },
    /// A message that is a request to crew, in a session that had a loop or where it names one.
    Request(TypedRequest),
    /// A message from the client itself: a wake, or the end of a background task.
    Notified,
    /// A message from the user to the agent.
    Prompted,
    /// A session began, or continues after its context was compacted.
    SessionBegan { compacted: bool },
    /// The session ended.
    SessionEnded { why: String },
    /// The event does not concern crew.
    NotOurs,
}

impl HookEvent {
    /// Whether the event shows that the user is present.
    pub fn is_typed(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Request(_) | Self::Prompted | Self::Answered)
    }
}

/// A question of the agent to the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedQuestion {
    pub question: String,
    /// The answers it offers.
    pub options: Vec<String>,
}

/// The end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// The agent's last message; absent if the event does not carry it. The transcript has it then.
    pub last_message: Option<String>,
    /// What the client still runs in the background.
    pub background: Vec<Task>,
}

/// Work the client runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// The client's own id of it.
    pub id: String,
    /// The kind: shell, subagent, monitor, workflow, teammate; clients may add others.
    pub kind: String,
    /// The client's description of it.
    pub description: String,
}

impl<'a> Hook<'a> {
    /// Reads one event. Fields that every event has are named as Claude Code names them; other
    /// clients copied the names. The error is one line for stderr.
    pub fn parse(bytes: &[u8], variable: EnvLookup<'a>) -> Result<Self, String> {
        let payload = parse_object(bytes)
            .map_err(|error| format!("the hook's payload is not a JSON object ({error})"))?;
        let others = &ALL[1..];
        let sender = others.iter().find(|client| (client.events.sent)(&payload, variable));
        let client = *sender.unwrap_or(&ALL[0]);
        let name = payload.text("/hook_event_name");
        let name = name.ok_or("the hook's payload has no hook_event_name")?;
        Ok(Self {
            client,
            variable,
            name: name.to_owned(),
            session_id: payload.owned("/session_id").filter(|id| is_session_id(id)),
            folder: payload.owned("/cwd").map(PathBuf::from),
            transcript: payload.owned("/transcript_path").map(PathBuf::from),
            turn: payload.owned(client.turns.id),
            caution: (client.session.caution)(&payload, variable),
            event: (client.events.read)(name, &payload),
        })
    }

    /// How the client's transcript is read.
    pub fn transcript_reader(&self) -> Option<&'static Transcript> {
        self.client.transcript.as_ref()
    }

    /// The transcript's file, and how to read it.
    pub fn readable_transcript(&self) -> Option<(&Path, &'static Transcript)> {
        self.transcript.as_deref().zip(self.transcript_reader())
    }

    /// Parses a message in the client's queue as a crew command with the raw text after it.
    pub fn parse_queued<'text>(&self, text: &'text str) -> Option<(&'text str, &'text str)> {
        (self.transcript_reader()?.queued)(text)
    }

    /// The client's answer to this event.
    pub fn write_reply(&self, reply: &Reply) -> Output {
        (self.client.events.write)(&self.name, reply)
    }

    /// Adds a notice to an answer, as the codes that the user's terminal accepts, if the client
    /// passes them on.
    pub fn add_notice(&self, output: &mut Output, codes: String) {
        (self.client.events.notify)(output, codes);
    }

    /// Whether a process above the hook's is the client itself.
    pub fn is_owner(&self) -> fn(&ProcessRow, &ProcessRow) -> bool {
        self.client.session.is_owner
    }

    /// Whether the user is at the client.
    pub fn is_attended(&self) -> bool {
        (self.client.session.is_attended)(self.variable)
    }

    /// Whether a process may sleep beside the session to start a turn later.
    pub fn may_wake(&self) -> bool {
        self.client.turns.wakes && self.is_attended()
    }

    /// The folder that a variable names, if its path is absolute.
    pub fn folder_of(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The client's cap on continuations in a row, if it has one. A value that is not a number
    /// means the usual cap; 0 or less means none.
    pub fn continuation_cap(&self) -> Option<i64> {
        let cap = self.client.turns.cap.as_ref()?;
        let set = cap.variable.and_then(self.variable);
        let set = set.and_then(|text| text.to_str()?.trim().parse().ok());
        Some(set.unwrap_or(cap.usual)).filter(|cap| *cap > 0)
    }
}

impl fmt::Debug for Hook<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {:?}", self.client.name, self.name, self.event)
    }
}

/// crew's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// No answer: the client proceeds as usual. For any event.
    Nothing,
    /// The agent continues with `prompt`, which quotes `task` as it was typed; `line` is for the
    /// person. For `Stopped`, for a `Command` that starts or resumes a loop, and for `SessionBegan`
    /// after a compaction.
    GoOn { task: String, prompt: String, line: String },
    /// Shown instead of the prompt or command; costs no model turn. Only for `Command`.
    Instead(String),
    /// A request typed as a message while the agent works was carried out. Only for `Request`.
    Executed(String),
    /// A text for the user; the client proceeds as usual. For `Stopped`, `Prompted` and
    /// `SessionBegan`.
    Say(String),
    /// The agent's question is not put to the user; the agent reads this instead. Only for `Asked`.
    Decide(String),
    /// Starts a turn with this prompt. Only from an asynchronous process: one called with
    /// `--companion` at `Stopped`, and the one that answers `ServiceFailed` or `Idle`.
    Wake(String),
}

impl Reply {
    /// Adds a line for the user.
    #[must_use]
    pub fn add_line(mut self, line: &str) -> Self {
        match &mut self {
            Self::Nothing => return Self::Say(line.to_owned()),
            Self::GoOn { line: text, .. } | Self::Say(text) => {
                *text = format!("{}\n{line}", text.trim_end());
            }
            _ => {}
        }
        self
    }

    /// The text that the user reads, so that the caller can reword it.
    pub fn text_mut(&mut self) -> Option<&mut String> {
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

/// The session whose status line is printed; fields that the client did not pass are absent.
#[derive(Getters, Debug, Default, PartialEq, Eq)]
pub struct StatusLineInput {
    /// The session's id, safe in a file name.
    session_id: Option<String>,
    /// The session's folder, an absolute path.
    folder: Option<PathBuf>,
}

impl StatusLineInput {
    /// Reads what the client passed; text of another shape counts as nothing.
    pub fn parse(bytes: &[u8]) -> Self {
        let payload = parse_object(bytes).unwrap_or_default();
        Self {
            session_id: payload.owned("/session_id").filter(|id| is_session_id(id)),
            folder: payload.owned("/cwd").map(PathBuf::from).filter(|folder| folder.is_absolute()),
        }
    }
}

#[cfg(test)]
mod status_line_tests {
    use super::*;

    #[test]
    fn the_session_and_its_folder_are_read_and_junk_is_ignored() {
        let seen =
            StatusLineInput::parse(br#"{"session_id":"a-1","cwd":"/repo","model":{"id":"m"}}"#);
        let expected =
            StatusLineInput { session_id: Some("a-1".to_owned()), folder: Some("/repo".into()) };
        assert_eq!(seen, expected);
        for junk in [&b""[..], b"[]", b"{", br#"{"session_id":"../x","cwd":"repo"}"#] {
            assert_eq!(StatusLineInput::parse(junk), StatusLineInput::default());
        }
    }
}
