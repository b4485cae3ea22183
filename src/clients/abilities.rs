//! What a client can do and where it leaves what crew needs: facts that were tried, as values.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::engine::record::Queue;
use crate::engine::usage::Message;

/// A message, and when it was written.
pub type Dated = (Message, Option<DateTime<Utc>>);

/// A call of a tool that has no result yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCall {
    pub id: String,
    /// The tool, by the client's name.
    pub tool: String,
}

/// How a client's transcript is read: line by line, or from its end, the `tail`.
#[derive(Debug)]
pub struct Transcript {
    /// The agent's final text.
    pub final_text: fn(tail: &str) -> Option<String>,
    /// Whether the agent used a tool since the line with `marker`, or since the user's last prompt.
    /// `cut` says that `tail` begins in the middle of this iteration. `None` if only earlier text
    /// can decide.
    pub used_a_tool: fn(tail: &str, marker: &str, cut: bool) -> Option<bool>,
    /// The calls that have no result yet, the first one first: it is the one that waits, because
    /// calls of one message run in order.
    pub pending_calls: fn(tail: &str) -> Vec<PendingCall>,
    /// Whether `text` holds the result of the call with that id.
    pub has_result: fn(text: &str, call: &str) -> bool,
    /// Whether the user interrupted the agent.
    pub interrupted: fn(tail: &str) -> bool,
    /// The model's message that a line reports.
    pub message: fn(line: &str) -> Option<Dated>,
    /// Whether a line that is too long to read may hold such a message.
    pub may_hold_a_message: fn(line: &str) -> bool,
    /// The folder with the transcripts of a session's subagents.
    pub agents: fn(transcript: &Path) -> PathBuf,
    /// Whether a file of this name in that folder is such a transcript.
    pub is_an_agents: fn(name: &str) -> bool,
    /// Updates the client's queue with a line.
    pub follow: fn(queue: &mut Queue, line: &str, session_id: &str),
    /// The name of the crew command that a queued text is, if crew obeys it before it is delivered,
    /// and the raw text after it.
    pub queued: fn(&str) -> Option<(&str, &str)>,
}

/// crew's plugin for a client.
#[derive(Debug)]
pub struct Plugin {
    /// The variable with its folder.
    pub root: &'static str,
    /// The manifest, relative to that folder.
    pub manifest: &'static str,
    /// The version a manifest gives.
    pub version: fn(&str) -> Option<String>,
}

/// The client's limit on hooks in a row that continue the agent without a tool call of it.
#[derive(Debug)]
pub struct Cap {
    /// How many hooks in a row may continue the agent, unless the variable says otherwise.
    pub usual: i64,
    /// The variable that sets another limit; 0 in it means no limit.
    pub variable: Option<&'static str>,
}
