//! What a client's hook reports, in crew's words.

use std::fmt;
use std::path::PathBuf;

use super::abilities::{Abilities, Queued, Transcript};
use super::fields::{Fields, is_session_id};
use super::{Client, EnvLookup, all};
use crate::parse::requests::Typed;

/// One event of a client.
pub struct Hook<'a> {
    /// The client that sent it.
    pub client: &'static dyn Client,
    /// The variables around it.
    pub variable: EnvLookup<'a>,
    /// The client's own name of the event.
    pub name: String,
    /// Absent if the payload has no id that is safe in a file name: no loop can be ours then.
    pub session_id: Option<String>,
    /// The agent's working folder.
    pub folder: Option<PathBuf>,
    /// The file with all that was said and done in the session, if the client keeps one.
    pub transcript: Option<PathBuf>,
    /// Identifies the user's prompt that the agent works on.
    pub turn: Option<String>,
    /// What happened.
    pub event: HookEvent,
    /// What the user should know of the session's mode when a loop begins in it.
    pub caution: Option<&'static str>,
}

/// What every event of a client says about its session.
#[derive(Debug)]
pub struct EventHead {
    /// The client's own name of the event.
    pub name: String,
    /// The session's id, not yet checked.
    pub session_id: Option<String>,
    /// The agent's working folder.
    pub folder: Option<PathBuf>,
    /// The file with all that was said and done in the session.
    pub transcript: Option<PathBuf>,
}

/// What happened.
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
    /// A message that is an order to crew in a session that had a loop, or where it names one.
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

impl HookEvent {
    /// Whether it shows that the user is there.
    pub fn is_typed(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Order(_) | Self::Prompted | Self::Answered)
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
    /// Absent if the event does not carry it; the transcript then has it.
    pub last_message: Option<String>,
    /// What the client still runs in the background.
    pub background: Vec<Task>,
}

/// Work the client runs in the background.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// The client's own id of it.
    pub id: String,
    /// shell, subagent, monitor, workflow, teammate; clients may add others.
    pub kind: String,
    /// What the client calls it.
    pub description: String,
}

impl<'a> Hook<'a> {
    /// Reads one event. The error is one line for stderr.
    pub fn read(bytes: &[u8], variable: EnvLookup<'a>) -> Result<Self, String> {
        let mut payload = Fields::parse(bytes)?;
        let others = &all()[1..];
        let sender = others.iter().find(|client| client.sent(&payload, variable));
        let client = *sender.unwrap_or(&all()[0]);
        let EventHead { name, session_id, folder, transcript } = client.head(&mut payload)?;
        Ok(Self {
            client,
            variable,
            session_id: session_id.filter(|id| is_session_id(id)),
            folder,
            transcript,
            turn: payload.text(client.abilities().turn),
            caution: client.caution(&payload, variable),
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

    /// The client's cap on continuations in a row, if it has one. A value that is not a number
    /// means the usual cap; 0 or less means none.
    pub fn cap(&self) -> Option<i64> {
        let cap = self.abilities().cap.as_ref()?;
        let set = cap.variable.and_then(self.variable);
        let set = set.and_then(|text| text.to_str()?.trim().parse().ok());
        Some(set.unwrap_or(cap.usual)).filter(|cap| *cap > 0)
    }
}

impl fmt::Debug for Hook<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?} {} {:?}", self.client, self.name, self.event)
    }
}
