//! What a client can do and where it leaves what crew needs: facts that were tried, as values. A
//! fact that holds for one client only is a field here, never a question about its name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::engine::record::Queue;
use crate::engine::usage::Message;

/// What a client can do, as tried. `None` and `false` mean that it cannot.
#[derive(Debug)]
pub struct Abilities {
    /// Its name in records.
    pub name: &'static str,
    /// The program of its command line: a run that starts it shares the limits of its sessions.
    pub program: &'static str,
    /// What its users call it.
    pub title: &'static str,
    /// The prefix of a command's name. Without one no command reaches a hook, and crew takes its
    /// orders from messages: `crew pause`.
    pub commands: Option<&'static str>,
    /// How often in a row the client's hooks may continue the agent.
    pub cap: Option<Cap>,
    /// Whether a process beside the session can start a turn. Without this no companion sleeps
    /// there.
    pub wakes: bool,
    /// How long it waits when a session ends.
    pub waits_at_the_end: Duration,
    /// How its transcript is read for what no event reports, such as the usage.
    pub transcript: Option<Transcript>,
    /// The pointer to the field of the payload that stays the same from one prompt to the next.
    pub turn: &'static str,
    /// Whether a message typed while the agent works is reported with the turn it steers, so that
    /// another turn shows the end of that one.
    pub steers_within_the_turn: bool,
    /// The variable with the client's own folder for the plugin. crew pins its home in that folder,
    /// because a project's settings must not move it.
    pub data: Option<&'static str>,
    /// The variable with the folder the client was started in.
    pub project: Option<&'static str>,
    /// Where its plugin is.
    pub plugin: Option<Plugin>,
    /// The tool with which the agent asks the user.
    pub question_tool: Option<&'static str>,
    /// The variable that everything started by the client's agent has: there crew
    /// only narrows settings and limits.
    pub mark: &'static str,
    /// The variables the client sets for what it starts, in one text. No child of crew gets them.
    pub own: &'static str,
    /// The variables that differ between two hooks of one session although nobody changed them.
    pub shifting: &'static [&'static str],
    /// The files of a project that can set variables for its hooks.
    pub settings: &'static [&'static str],
    /// The variables that the text of such a file sets, each with its value.
    pub set_by: fn(&str) -> Vec<(String, String)>,
}

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
