//! The seam for clients: what a client's hook reports, in crew's words, what crew answers, and what
//! each client can do. **To add a client**, write a folder beside `claude` with a [`Client`] in it,
//! and list it in [`ALL`]. All of this is pure: files and variables are passed in. Nothing is
//! guessed: each fact is a value of [`Client`], and what a client does not report is absent.
//!
//! A client also needs its hooks file, which lies where the client looks for it: for Claude Code it
//! is `hooks/hooks.json`. It calls `crew hook` for each event, with the payload on standard input,
//! and the client waits for the answer. Where a client can wake the agent ([`TurnRules::wakes`]),
//! the file also starts asynchronous processes, for which it does not wait: `crew hook --companion`
//! beside each stop, and `crew hook` itself for a failed service and an idle session. What an
//! asynchronous process prints is not shown, so after a failed service the client waits for
//! `crew hook --companion` instead.

pub mod claude;
mod event;
mod fields;
#[cfg(any(test, feature = "fixture"))]
#[path = "clients/recorded/all_fixture.rs"]
mod recorded;

use derive_getters::Getters;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

pub use self::event::{
    AskedQuestion, Hook, HookEvent, Output, Reply, StatusLineInput, Stopped, Task,
};
pub use self::fields::{FieldsByPointer, parse_object};
use crate::parse::process_table::ProcessRow;
use engine::boundary::limits::raise_options;
use engine::record::{Driver, Loop, Outcome, Owner, Queue};
use engine::usage::Message;

/// Every client. The first one gets the events that no other client recognises as its own.
pub static ALL: &[&Client] = &[
    &claude::CLAUDE_CODE,
    #[cfg(any(test, feature = "fixture"))]
    &recorded::CODEX,
    #[cfg(any(test, feature = "fixture"))]
    &recorded::GEMINI,
    #[cfg(any(test, feature = "fixture"))]
    &recorded::QWEN,
];

/// The client of a loop.
pub fn client_of(owner: &Owner) -> &'static Client {
    let name = owner.client.as_deref();
    ALL.iter().find(|client| Some(client.name) == name).unwrap_or(&ALL[0])
}

/// A variable's value; absent when unset or empty.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A client whose hooks crew answers, as tried. `None` and `false` mean that it cannot.
#[derive(Getters, Debug)]
pub struct Client {
    /// Its name in records.
    name: &'static str,
    /// The program of its command line: a run that starts it shares the limits of its sessions.
    program: &'static str,
    /// Its name for its users.
    title: &'static str,
    /// The prefix of a command's name. Without a prefix no command reaches a hook, and crew reads
    /// requests from messages: `crew pause`.
    #[getter(skip)]
    commands: Option<&'static str>,
    /// How its turns begin, continue and end.
    turns: TurnRules,
    /// How its transcript is read for facts that no event reports, such as the usage.
    transcript: Option<Transcript>,
    /// The variables it sets.
    variables: ClientVariables,
    /// The tool with which the agent asks the user.
    #[getter(copy)]
    question_tool: Option<&'static str>,
    /// The files of a project that can set variables for its hooks.
    settings: &'static [&'static str],
    /// Reads the variables that such a file sets, with their values.
    set_by: fn(&str) -> Vec<(String, String)>,
    /// How its events are read and answered.
    events: EventFormat,
    /// What a hook can find out about the session around it.
    session: SessionFacts,
}

/// How a client's turns begin, continue and end.
#[derive(Getters, Debug)]
pub struct TurnRules {
    /// The pointer to the field of the payload that stays the same from one prompt to the next.
    id: &'static str,
    /// The cap on how many times in a row the client's hooks may continue the agent.
    cap: Option<Cap>,
    /// Whether a process beside the session can start a turn. Without this no companion sleeps
    /// there.
    wakes: bool,
    /// How long the client waits when a session ends.
    waits_at_the_end: Duration,
    /// Whether a message typed while the agent works belongs to the turn that it steers, so that an
    /// event of another turn shows the end of that one.
    steers_within_the_turn: bool,
}

/// The variables a client sets for what it starts.
#[derive(Getters, Debug)]
pub struct ClientVariables {
    /// The variable with the client's own folder for the plugin. crew keeps its home in that
    /// folder, because a project's settings must not move it.
    #[getter(copy)]
    data: Option<&'static str>,
    /// The variable with the folder the client was started in.
    #[getter(copy)]
    project: Option<&'static str>,
    /// The variable with the folder of crew's plugin for this client.
    #[getter(copy)]
    plugin: Option<&'static str>,
    /// The variable that marks everything started by the client's agent: there crew only narrows
    /// settings and limits.
    mark: &'static str,
    /// All of its variables, separated by blanks. No child of crew gets them.
    own: &'static str,
    /// Variables that differ between two hooks of one session for no outside reason.
    shifting: &'static [&'static str],
}

/// How a client's events are read, and answers to them written.
#[derive(Debug)]
struct EventFormat {
    /// Whether this client sent the payload, with these variables around the hook. A client inside
    /// which it was started may have left its variables there, too. This is not called for the
    /// first client.
    sent: fn(payload: &Value, variable: EnvLookup<'_>) -> bool,
    /// What happened, given the client's own name of the event.
    read: fn(name: &str, payload: &Value) -> HookEvent,
    /// The answer to the client's event `name`, in the client's format.
    write: fn(name: &str, reply: &Reply) -> Output,
    /// Adds a notice to an answer, as the codes that the user's terminal accepts, if the client
    /// passes them on.
    notify: fn(output: &mut Output, codes: String),
}

/// What a hook can find out about the session around it.
#[derive(Debug)]
struct SessionFacts {
    /// Whether a process above the hook's is the client itself.
    is_owner: fn(hook: &ProcessRow, above: &ProcessRow) -> bool,
    /// What the user should know about a session in which a loop begins: that it cannot edit, or
    /// will stop at dialogs.
    caution: fn(payload: &Value, variable: EnvLookup<'_>) -> Option<&'static str>,
    /// Whether the user is at the client, so that a hook may wait beside the session.
    is_attended: fn(variable: EnvLookup<'_>) -> bool,
}

/// A message with the time at which it was written.
pub type DatedMessage = (Message, Option<DateTime<Utc>>);

/// A call of a tool that has no result yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCall {
    pub id: String,
    /// The tool, by the client's name.
    pub tool: String,
}

/// How a client's transcript is read: line by line, or backwards from its `tail`.
#[derive(Getters, Debug)]
pub struct Transcript {
    /// The agent's final text.
    final_text: fn(tail: &str) -> Option<String>,
    /// Whether the agent used a tool since the line with `marker`, or since the user's last prompt.
    /// `cut` means that `tail` begins in the middle of this iteration. `None` if that depends on
    /// earlier lines.
    used_a_tool: fn(tail: &str, marker: &str, cut: bool) -> Option<bool>,
    /// The calls that have no result yet, the oldest first. The oldest is the one that waits,
    /// because calls of one message run one after the other.
    pending_calls: fn(tail: &str) -> Vec<PendingCall>,
    /// Whether `text` contains the result of the call with that id.
    has_result: fn(text: &str, call: &str) -> bool,
    /// Whether the user interrupted the agent.
    interrupted: fn(tail: &str) -> bool,
    /// The model's message that a line reports.
    message: fn(line: &str) -> Option<DatedMessage>,
    /// Whether a line that is too long to read may hold such a message.
    may_hold_a_message: fn(line: &str) -> bool,
    /// The folder with the transcripts of a session's subagents.
    agents: fn(transcript: &Path) -> PathBuf,
    /// Whether a file of this name in that folder is such a transcript.
    is_an_agents: fn(name: &str) -> bool,
    /// Updates the client's queue from a line.
    follow: fn(queue: &mut Queue, line: &str, session_id: &str),
    /// If a queued message is a crew command that is carried out before it is delivered: its name,
    /// and the raw text after it.
    queued: fn(&str) -> Option<(&str, &str)>,
}

/// The client's limit on consecutive hooks that continue the agent without a tool call.
#[derive(Getters, Debug)]
pub struct Cap {
    /// How many consecutive hooks may continue the agent, unless the variable sets another number.
    usual: i64,
    /// The variable that sets another limit; 0 in it means no limit.
    #[getter(copy)]
    variable: Option<&'static str>,
}

/// A crew command in the client's spelling. If no command reaches a hook, it is spelled as in a
/// terminal.
pub fn spell_command(client: &Client, name: &str) -> String {
    format!("{}{name}", client.commands.unwrap_or("crew "))
}

/// A crew command for whoever drives this loop.
pub fn of_loop(subject: &Loop, name: &str) -> String {
    match subject.driver() {
        Driver::Session => spell_command(client_of(subject.state.owner()), name),
        Driver::Process => format!("crew {name}"),
    }
}

/// The command that resumes a loop from a terminal: by its fleet, else with the reached limits
/// raised.
pub fn resume_command(subject: &Loop) -> String {
    match subject.fleet_resume() {
        Some(command) => command,
        None => format!("crew resume {}{}", subject.id, raise_options(subject)),
    }
}

/// The command that resumes a loop, as `owner` would type it.
pub fn resume_command_at(owner: &Owner, subject: &Loop) -> String {
    match owner.driver {
        Driver::Session => in_its_session(&resume_command(subject), subject),
        Driver::Process => resume_command(subject),
    }
}

/// The commands that stop a running loop from a terminal.
pub fn spell_stop(subject: &Loop) -> String {
    let id = &subject.id;
    format!("crew pause {id}, crew cancel {id}")
}

/// Rewrites the terminal commands in a text about a loop as they are typed in the session that
/// reads it.
pub fn in_its_session(text: &str, subject: &Loop) -> String {
    if subject.driver() == Driver::Process {
        return text.to_owned();
    }
    let id = &subject.id;
    let [resume, pause, cancel] =
        ["resume", "pause", "cancel-loop"].map(|name| of_loop(subject, name));
    text.replace(&format!("crew resume {id}"), &format!("{resume} {id}")).replace(
        &spell_stop(subject),
        &format!("{pause}, {cancel}; in any terminal: crew cancel {id}"),
    )
}

/// What a person can do with a loop that has ended, for a hint: "crew resume k3v9abcd resumes it".
pub fn next_step(subject: &Loop) -> String {
    match subject.outcome() {
        Some(Outcome::Completed) if !subject.state.git().pending_steps().is_empty() => {
            format!("{} completes the pending steps", resume_command(subject))
        }
        Some(Outcome::Completed) if subject.driver() == Driver::Session => {
            format!("start a new one with {}, or with crew run", of_loop(subject, "loop"))
        }
        Some(Outcome::Completed) => "start a new one with crew run".to_owned(),
        _ => format!("{} resumes it", resume_command(subject)),
    }
}

/// The name of a crew command, and the text after it; `None` if the message is not one.
pub fn split_command<'text>(client: &Client, text: &'text str) -> Option<(&'text str, &'text str)> {
    let rest = text.trim().strip_prefix(client.commands?)?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    Some((&rest[..end], rest[end..].trim()))
}

/// crew's own mark on what one of its agents starts.
const CREW_MARK: &str = "CREW_LOOP";
/// Variables set by many kinds of agents, and by tests of crew.
const OWN_VARIABLES: [&str; 2] = ["AI_AGENT", "CREW_FAULT"];
/// Variables that point git at a repository whatever the folder, and settings for one call of git.
/// git sets them for its hooks and aliases, which may start crew; only a person sets
/// `GIT_CONFIG_COUNT`.
const CALLING_GIT_VARIABLES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_ATTR_SOURCE GIT_COMMON_DIR \
     GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_DIR GIT_GRAFT_FILE GIT_IMPLICIT_WORK_TREE GIT_INDEX_FILE \
     GIT_INTERNAL_SUPER_PREFIX GIT_LITERAL_PATHSPECS GIT_NAMESPACE GIT_NO_REPLACE_OBJECTS \
     GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_QUARANTINE_PATH GIT_REFLOG_ACTION GIT_REPLACE_REF_BASE \
     GIT_SHALLOW_FILE GIT_WORK_TREE";
/// Variables that change after a `cd` by the agent or in a window of another size.
const SHIFTING_VARIABLES: [&str; 7] =
    ["COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TRACEPARENT", "_"];

/// Whether this process runs inside an agent: there crew only narrows settings and limits.
pub fn inside_an_agent(variable: EnvLookup<'_>) -> bool {
    let marks = ALL.iter().map(|client| client.variables.mark);
    marks.chain([CREW_MARK]).any(|mark| variable(mark).is_some())
}

/// The variables that clients, and a git process that called crew, set for their children. crew
/// passes them to none of its children: a child would think that it runs inside a client, and its
/// git would change the caller's repository.
pub fn client_variables() -> impl Iterator<Item = &'static str> {
    let clients = ALL.iter().flat_map(|client| client.variables.own.split(' '));
    clients.chain(OWN_VARIABLES).chain(CALLING_GIT_VARIABLES.split(' '))
}

/// The variables that differ between two hooks of one session for no outside reason.
pub fn shifting_variables() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|client| client.variables.shifting).copied().chain(SHIFTING_VARIABLES)
}
