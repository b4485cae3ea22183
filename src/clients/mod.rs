//! The seam for clients: what a client's hook tells, in crew's words, what crew answers, and what
//! each client can do. **To add a client**, write a folder beside `claude` with a [`Client`] in it,
//! and list it in [`all`]. All of this is pure: files and variables are handed in. It refuses to
//! guess: a fact is a value of [`Abilities`], and what a client does not tell is absent.

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
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Every client, the first for what none of the others takes for its own.
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

/// The client of a loop; a loop that an older crew recorded names none.
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

    /// Whether it sent this payload, with these variables around the hook: those of another, inside
    /// which it was started, may be there too. Not asked of the first client.
    fn sent(&self, payload: &Fields, variable: Variable<'_>) -> bool;

    /// What happened, by its own name of the event.
    fn read(&self, name: &str, payload: &mut Fields) -> HookEvent;

    /// The answer to its event `name`, as it takes it.
    fn write(&self, name: &str, reply: &Reply) -> Output;

    /// Whether a process above a hook's is the client itself.
    fn is_owner(&self, hook: &ProcessRow, above: &ProcessRow) -> bool;

    /// Whether a person sits before it, so that a hook may wait beside the session.
    fn is_attended(&self, variable: Variable<'_>) -> bool;
}

/// What a client can do, as it was tried. `None` and `false` say that it cannot.
#[derive(Debug)]
pub struct Abilities {
    /// What stands before a command's name. Without it no command reaches a hook, and crew is
    /// spoken to by messages: `crew pause`.
    pub commands: Option<&'static str>,
    /// How often in a row its hooks may let the agent go on.
    pub cap: Option<Cap>,
    /// The largest prompt that reaches the agent whole, in bytes.
    pub prompt_bytes: Option<usize>,
    /// Whether the last message repeats those of the turn that crew let go on: only what is new
    /// counts.
    pub message_grows: bool,
    /// Whether a process beside the session can start a turn. Without it nothing sleeps there.
    pub wakes: bool,
    /// How long it waits when a session ends.
    pub waits_at_the_end: Duration,
    /// How its transcript is read, for what no event tells: what was used, among it.
    pub transcript: Option<Transcript>,
    /// The field of the payload that stays the same from a prompt to the next.
    pub turn: &'static str,
    /// The variable with the client's own folder for the plugin, in which the home is pinned: a
    /// project's settings must not move it.
    pub data: Option<&'static str>,
    /// The variable with the folder the client was started in.
    pub project: Option<&'static str>,
    /// Where its plugin is.
    pub plugin: Option<Plugin>,
    /// What a person has to do before the hooks of an installed plugin run.
    pub trust: Option<&'static str>,
    /// The variable that everything started by its agent has: there crew only ever narrows.
    pub mark: &'static str,
    /// The variables it sets for what it starts itself, which no child of crew is given.
    pub own: &'static [&'static str],
    /// Those that differ between two hooks of one session without anybody's doing.
    pub shifting: &'static [&'static str],
    /// The files of a project that can set variables for its hooks, and those a file sets.
    pub settings: &'static [&'static str],
    pub set_by: fn(&str) -> Vec<(String, String)>,
}

/// A message, and when it was written.
pub type Dated = (Message, Option<DateTime<Utc>>);

/// A client's transcript, a line at a time or by its end: `tail`.
#[derive(Debug)]
pub struct Transcript {
    /// The text that the agent ended with.
    pub final_text: fn(tail: &str) -> Option<String>,
    /// Whether the agent used a tool since the line with `marker`, or since the user's last prompt.
    /// `cut` says that `tail` begins in the middle of this iteration. `None` where only what is
    /// before it can tell.
    pub used_a_tool: fn(tail: &str, marker: &str, cut: bool) -> Option<bool>,
    /// Whether the user interrupted the agent.
    pub interrupted: fn(tail: &str) -> bool,
    /// The model's message that a line tells of.
    pub message: fn(line: &str) -> Option<Dated>,
    /// Whether a line that is too long to be read may hold one.
    pub may_hold_a_message: fn(line: &str) -> bool,
    /// The folder with the transcripts of a session's own agents, and whether a file in there is
    /// one.
    pub agents: fn(transcript: &Path) -> PathBuf,
    pub is_an_agents: fn(name: &str) -> bool,
    /// Brings what waits in the client's queue up to date with a line.
    pub follow: fn(queue: &mut Queue, line: &str, session_id: &str),
    /// The command of crew's that a text in the queue is, if it is obeyed before it is delivered.
    pub queued: for<'text> fn(&'text str) -> Option<Queued<'text>>,
}

/// A client's plugin of crew's.
#[derive(Debug)]
pub struct Plugin {
    /// The variable with its folder, and the manifest in there.
    pub root: &'static str,
    pub manifest: &'static str,
    /// The version a manifest gives.
    pub version: fn(&str) -> Option<String>,
}

/// A bound of the client's on the hooks in a row that let the agent go on.
#[derive(Debug)]
pub struct Cap {
    pub usual: i64,
    /// The variable that says another one; 0 there is none.
    pub variable: Option<&'static str>,
    /// Whether a tool call of the agent's begins a new row. Where none does, the cap is hard: the
    /// loop is handed over at it.
    pub tools_reset_it: bool,
}

/// One event of a client.
pub struct Hook<'a> {
    pub client: &'static dyn Client,
    /// The variables around it.
    pub variable: Variable<'a>,
    /// The client's own name of the event.
    pub name: String,
    /// Absent where none is told that could name a file: then no loop can be ours.
    pub session_id: Option<String>,
    /// Where the agent is.
    pub folder: Option<PathBuf>,
    pub transcript: Option<PathBuf>,
    /// Of the user's prompt that the agent works on.
    pub turn: Option<String>,
    pub event: HookEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEvent {
    /// The agent is about to stop.
    Stopped(Stopped),
    /// The model's service failed the agent: in a word that `parse::api_error` knows, and in its
    /// own.
    ServiceFailed {
        kind: String,
        message: String,
    },
    /// The session has been idle for a while.
    Idle,
    /// A command typed to crew, and the raw text behind it. Where it is not `sure` it is one only
    /// in a session that had a loop.
    Command {
        name: String,
        raw: String,
        sure: bool,
    },
    /// A message that is an order to crew in a session that had a loop.
    Order(Typed),
    /// A message of the client's own: a wake, or the end of a background task.
    Notified,
    /// A message of the user's to the agent.
    Prompted,
    /// A session began, or goes on after its context was compacted.
    SessionBegan {
        compacted: bool,
    },
    SessionEnded {
        why: String,
    },
    /// Nothing that is crew's.
    NotOurs,
}

/// The end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Where it is not told, its transcript has it.
    pub last_message: Option<String>,
    /// What the client still runs in the background.
    pub background: Vec<Task>,
}

/// Work the client runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    pub id: String,
    /// shell, subagent, monitor, workflow, teammate; others may come.
    pub kind: String,
    pub description: String,
}

/// A command of crew's that is obeyed from the client's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queued<'text> {
    Pause,
    /// With the raw text behind it.
    Cancel(&'text str),
    Status,
    HandOff(&'text str),
}

/// What crew answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing: the event takes its course.
    Nothing,
    /// The agent goes on with `prompt`, which quotes `task` as it was typed; `line` is for the
    /// person.
    GoOn { task: String, prompt: String, line: String },
    /// In place of the prompt or command, which costs no model turn.
    Instead(String),
    /// The same for an order typed as a message in the middle of the agent's work.
    Obeyed(String),
    /// For the person; the event takes its course.
    Say(String),
    /// For the user's terminal, outside the client.
    Notice(String),
    /// Starts a turn with these words.
    Wake(String),
}

impl Reply {
    /// With a line more for the person.
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

    /// What the person reads of it, to be put in other words.
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
    pub fn read(bytes: &[u8], variable: Variable<'a>) -> Result<Self, String> {
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

    /// The command of crew's that a text in the client's queue is.
    pub fn queued<'text>(&self, text: &'text str) -> Option<Queued<'text>> {
        (self.reader()?.queued)(text)
    }

    /// Whether a person sits before the client.
    pub fn is_attended(&self) -> bool {
        self.client.is_attended(self.variable)
    }

    /// Whether a process may sleep beside the session to start a turn later.
    pub fn may_wake(&self) -> bool {
        self.abilities().wakes && self.is_attended()
    }

    /// A folder that a variable names.
    pub fn folder_of(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

impl fmt::Debug for Hook<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} {} {:?}", self.client, self.name, self.event)
    }
}
