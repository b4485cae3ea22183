//! The seam for clients: what a client's hook reports, in crew's words, what crew answers, and what
//! each client can do. **To add a client**, write a folder beside `claude` with a [`Client`] in it,
//! and list it in [`all`]. All of this is pure: files and variables are passed in. It refuses to
//! guess: a fact is a value of [`Abilities`], and what a client does not report is absent.

pub mod claude;
mod fields;
#[cfg(test)]
#[path = "recorded/all_tests.rs"]
mod recorded;
pub mod spelling;
pub mod variables;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

pub use self::fields::Fields;
use crate::engine::record::owner::{Owner, Queue};
use crate::engine::usage::Message;
use crate::parse::process_table::ProcessRow;
use crate::parse::typed::Typed;

/// A variable's value; absent when unset or empty.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Every client. The first one takes what none of the others recognises as its own.
pub fn all() -> &'static [&'static dyn Client] {
    &[
        &claude::ClaudeCode,
        #[cfg(test)]
        &recorded::Codex,
        #[cfg(test)]
        &recorded::Gemini,
        #[cfg(test)]
        &recorded::Qwen,
    ]
}

/// The client of a loop; a loop that an older crew recorded does not name one.
pub fn of(owner: &Owner) -> &'static dyn Client {
    let named = all().iter().find(|client| Some(client.name()) == owner.client.as_deref());
    *named.unwrap_or(&all()[0])
}

/// A client whose hooks crew answers.
pub trait Client: fmt::Debug + Sync {
    /// Its name in records.
    fn name(&self) -> &'static str;

    /// What its users call it.
    fn title(&self) -> &'static str;

    /// What it can do.
    fn abilities(&self) -> &'static Abilities;

    /// Whether this client sent the payload, with these variables around the hook. A client inside
    /// which it was started may have left its variables there, too. The first client is not asked.
    fn sent(&self, payload: &Fields, variable: EnvLookup<'_>) -> bool;

    /// What happened, given the client's own name of the event.
    fn read(&self, name: &str, payload: &mut Fields) -> HookEvent;

    /// The answer to the client's event `name`, in the client's format.
    fn write(&self, name: &str, reply: &Reply) -> Output;

    /// Whether a process above the hook's is the client itself.
    fn is_owner(&self, hook: &ProcessRow, above: &ProcessRow) -> bool;

    /// Whether a person is at the client, so that a hook may wait beside the session.
    fn is_attended(&self, variable: EnvLookup<'_>) -> bool;
}

/// What a client can do, as tried. `None` and `false` mean that it cannot.
#[derive(Debug)]
pub struct Abilities {
    /// The prefix of a command's name. Without one no command reaches a hook, and crew takes its
    /// orders from messages: `crew pause`.
    pub commands: Option<&'static str>,
    /// How often in a row the client's hooks may continue the agent.
    pub cap: Option<Cap>,
    /// The largest prompt that reaches the agent whole, in bytes.
    pub prompt_bytes: Option<usize>,
    /// Whether the last message repeats earlier messages of the turn that crew continued: only the
    /// new part counts then.
    pub message_grows: bool,
    /// Whether a process beside the session can start a turn. Without this no companion sleeps
    /// there.
    pub wakes: bool,
    /// How long it waits when a session ends.
    pub waits_at_the_end: Duration,
    /// How its transcript is read for what no event reports, such as the usage.
    pub transcript: Option<Transcript>,
    /// The field of the payload that stays the same from one prompt to the next.
    pub turn: &'static str,
    /// The variable with the client's own folder for the plugin. crew pins its home in that folder,
    /// because a project's settings must not move it.
    pub data: Option<&'static str>,
    /// The variable with the folder the client was started in.
    pub project: Option<&'static str>,
    /// Where its plugin is.
    pub plugin: Option<Plugin>,
    /// What a person must do before the hooks of an installed plugin run.
    pub trust: Option<&'static str>,
    /// The variable that everything started by the client's agent has: there crew
    /// only narrows settings and limits.
    pub mark: &'static str,
    /// The variables the client sets for what it starts. No child of crew gets them.
    pub own: &'static [&'static str],
    /// The variables that differ between two hooks of one session although nobody changed them.
    pub shifting: &'static [&'static str],
    /// The files of a project that can set variables for its hooks, and the variables that one
    /// sets.
    pub settings: &'static [&'static str],
    pub set_by: fn(&str) -> Vec<(String, String)>,
}

/// A message, and when it was written.
pub type Dated = (Message, Option<DateTime<Utc>>);

/// How a client's transcript is read: line by line, or from its end, the `tail`.
#[derive(Debug)]
pub struct Transcript {
    /// The agent's final text.
    pub final_text: fn(tail: &str) -> Option<String>,
    /// Whether the agent used a tool since the line with `marker`, or since the user's last prompt.
    /// `cut` says that `tail` begins in the middle of this iteration. `None` if only earlier text
    /// can decide.
    pub used_a_tool: fn(tail: &str, marker: &str, cut: bool) -> Option<bool>,
    /// Whether the user interrupted the agent.
    pub interrupted: fn(tail: &str) -> bool,
    /// The model's message that a line reports.
    pub message: fn(line: &str) -> Option<Dated>,
    /// Whether a line that is too long to read may hold such a message.
    pub may_hold_a_message: fn(line: &str) -> bool,
    /// The folder with the transcripts of a session's subagents, and whether a file in it is one.
    pub agents: fn(transcript: &Path) -> PathBuf,
    pub is_an_agents: fn(name: &str) -> bool,
    /// Updates the client's queue with a line.
    pub follow: fn(queue: &mut Queue, line: &str, session_id: &str),
    /// The crew command that a queued text is, if crew obeys it before it is delivered.
    pub queued: for<'text> fn(&'text str) -> Option<Queued<'text>>,
}

/// crew's plugin for a client.
#[derive(Debug)]
pub struct Plugin {
    /// The variable with its folder, and the manifest in that folder.
    pub root: &'static str,
    pub manifest: &'static str,
    /// The version a manifest gives.
    pub version: fn(&str) -> Option<String>,
}

/// The client's limit on hooks in a row that continue the agent.
#[derive(Debug)]
pub struct Cap {
    pub usual: i64,
    /// The variable that sets another limit; 0 in it means no limit.
    pub variable: Option<&'static str>,
    /// Whether a tool call of the agent begins a new row. If not, the cap is hard: crew hands the
    /// loop over when it is reached.
    pub tools_reset_it: bool,
}

/// One event of a client.
pub struct Hook<'a> {
    pub client: &'static dyn Client,
    /// The variables around it.
    pub variable: EnvLookup<'a>,
    /// The client's own name of the event.
    pub name: String,
    /// Absent if the payload has no id that is safe in a file name: no loop can be ours then.
    pub session_id: Option<String>,
    /// The agent's working folder.
    pub folder: Option<PathBuf>,
    pub transcript: Option<PathBuf>,
    /// Identifies the user's prompt that the agent works on.
    pub turn: Option<String>,
    pub event: HookEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEvent {
    /// The agent is about to stop.
    Stopped(Stopped),
    /// The model's service failed the agent: a `kind` that `parse::api_error` knows, and the
    /// service's own message.
    ServiceFailed { kind: String, message: String },
    /// The session has been idle for a while.
    Idle,
    /// A command typed to crew, and the raw text after it. If it is not `sure`, it is a command
    /// only in a session that had a loop.
    Command { name: String, raw: String, sure: bool },
    /// A message that is an order to crew in a session that had a loop.
    Order(Typed),
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

/// The end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Absent if the event does not carry it; the transcript then has it.
    pub last_message: Option<String>,
    /// What the client still runs in the background.
    pub background: Vec<Task>,
}

/// Work the client runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    /// shell, subagent, monitor, workflow, teammate; clients may add others.
    pub kind: String,
    pub description: String,
}

/// A crew command that is obeyed from the client's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queued<'text> {
    Pause,
    /// With the raw text after it.
    Cancel(&'text str),
    Status,
    HandOff(&'text str),
}

/// What crew answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// No answer: the event takes its course.
    Nothing,
    /// The agent continues with `prompt`, which quotes `task` as it was typed; `line` is for the
    /// person.
    GoOn { task: String, prompt: String, line: String },
    /// Shown instead of the prompt or command; costs no model turn.
    Instead(String),
    /// The same for an order typed as a message while the agent works.
    Obeyed(String),
    /// Text for the person; the event takes its course.
    Say(String),
    /// Text for the user's terminal, outside the client.
    Notice(String),
    /// Starts a turn with this prompt.
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
    pub out: Option<Value>,
    pub err: Option<String>,
    pub status: u8,
}

impl<'a> Hook<'a> {
    /// Reads one event. The error is one line for stderr.
    pub fn read(bytes: &[u8], variable: EnvLookup<'a>) -> Result<Self, String> {
        let mut payload = Fields::parse(bytes)?;
        let others = &all()[1..];
        let sender = others.iter().find(|client| client.sent(&payload, variable));
        let client = *sender.unwrap_or(&all()[0]);
        let name = payload.take("hook_event_name");
        let name = name.ok_or("the hook's payload has no hook_event_name")?;
        Ok(Self {
            client,
            variable,
            session_id: payload.take("session_id").filter(|id| fields::is_session_id(id)),
            folder: payload.take("cwd").map(PathBuf::from),
            transcript: payload.take("transcript_path").map(PathBuf::from),
            turn: payload.text(client.abilities().turn),
            event: client.read(&name, &mut payload),
            name,
        })
    }

    /// What its client can do.
    pub fn abilities(&self) -> &'static Abilities {
        self.client.abilities()
    }

    /// How its client's transcript is read.
    pub fn reader(&self) -> Option<&'static Transcript> {
        self.abilities().transcript.as_ref()
    }

    /// The crew command that a text in the client's queue is.
    pub fn queued<'text>(&self, text: &'text str) -> Option<Queued<'text>> {
        (self.reader()?.queued)(text)
    }

    /// Whether a person is at the client.
    pub fn is_attended(&self) -> bool {
        self.client.is_attended(self.variable)
    }

    /// Whether a process may sleep beside the session to start a turn later.
    pub fn may_wake(&self) -> bool {
        self.abilities().wakes && self.is_attended()
    }

    /// The folder that a variable names, if its path is absolute.
    pub fn folder_of(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

impl fmt::Debug for Hook<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} {} {:?}", self.client, self.name, self.event)
    }
}
