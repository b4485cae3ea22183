//! Who drives a loop now, and what the session driver must remember from one client event to the
//! next. The rules of a boundary read only which driver it is; the rest is stored here because the
//! record is one file.

use derive_getters::Getters;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::record::contract::{Agent, Run};
use crate::text::{clip_line, one_line, variant_name};
use crate::usage::CountedMessage;

/// The kind of driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    #[default]
    Session,
    Process,
}

impl Driver {
    /// The program that drives.
    pub fn program(self) -> &'static str {
        match self {
            Self::Session => "client",
            Self::Process => "crew",
        }
    }
}

/// A process, distinguished from a later one with the same id by its start time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// The start time in the units of the system that reported it; only compared for equality.
    pub started: String,
}

/// A machine between two boots: on another machine or after another boot its process ids mean other
/// processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The machine's name, for people.
    pub name: String,
    /// The machine's id, only compared for equality; empty if it has none.
    pub machine: String,
    /// An id that differs after each boot.
    pub boot: String,
}

/// What is known about an owner's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Alive,
    Gone,
    /// On another machine, where it may still be running.
    Elsewhere,
}

/// The client session or the process that drives the loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub driver: Driver,
    /// The client's session; `None` for the process driver.
    pub session_id: Option<String>,
    /// The client's name; `None` for the process driver.
    pub client: Option<String>,
    pub process: ProcessIdentity,
    /// `PATH` when it took the loop. A later one may come from the agent, because the project's
    /// settings can set it. `None` if it was not set.
    pub search_path: Option<String>,
    /// Where its process runs; `None` if the system did not report it.
    pub host: Option<Host>,
}

impl Owner {
    /// Judges its process from `here`; `is_up` looks it up. An owner without a recorded host
    /// counts as one of this machine and boot. If `here` is unknown, an owner with a recorded host
    /// is not judged.
    pub fn judge_life(
        &self,
        here: Option<&Host>,
        is_up: impl FnOnce(&ProcessIdentity) -> bool,
    ) -> Life {
        match (&self.host, here) {
            (Some(_), None) => return Life::Elsewhere,
            (Some(host), Some(here)) if !self.is_of_this_start(Some(here)) => {
                let was_here = host.machine == here.machine && !here.machine.is_empty();
                return if was_here { Life::Gone } else { Life::Elsewhere };
            }
            _ => {}
        }
        if is_up(&self.process) { Life::Alive } else { Life::Gone }
    }

    /// Whether the ids of its processes are valid here: another machine, and this one after a
    /// reboot, gives them to other processes.
    pub fn is_of_this_start(&self, here: Option<&Host>) -> bool {
        self.host.as_ref().is_none_or(|host| {
            here.is_some_and(|here| (&host.machine, &host.boot) == (&here.machine, &here.boot))
        })
    }
}

/// What the session driver remembers between two stops of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMemory {
    /// The user prompt or wake the stops belong to.
    pub prompt_id: Option<String>,
    /// Continuations in a row under `prompt_id` without a tool call, which the client's cap counts.
    pub without_tools: u32,
    /// Size in bytes of the transcript at the last boundary.
    pub transcript_bytes: u64,
    /// The path of the transcript.
    pub transcript: Option<PathBuf>,
    /// How far its usage has been counted.
    pub metered: MeteredUsage,
    /// The stop that the last boundary judged.
    pub last_stop: Option<StopMark>,
    /// Background tasks that were running at the last boundary, by the client's ids.
    pub tasks: Vec<String>,
    /// The tasks that crew no longer waits for, because the agent continued to work beside them.
    pub unawaited: Vec<String>,
    /// Consecutive holds without a tool call between them.
    pub holds: u32,
    /// Turns since the last iteration that used tools and ended in a hold.
    pub worked_holds: u32,
    /// What the user typed while the agent worked.
    pub queue: Queue,
    /// The dialog at which the client last waited.
    pub dialog: Option<Dialog>,
}

/// The client's queue of typed messages, as far as the transcript shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// How far the transcript has been read; 0 means up to the last boundary.
    pub bytes: u64,
    /// The queued messages, in order. One that is not a command, or was already carried out, is
    /// stored as an empty string.
    pub waiting: Vec<String>,
    /// Commands that were carried out before the client delivered them.
    pub executed: Vec<ExecutedCommand>,
}

/// A queued command that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedCommand {
    pub command: String,
    /// The iteration at whose boundary it was carried out.
    pub iteration: u32,
}

/// How far the usage of a session has been counted. Its subagents have separate transcripts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeteredUsage {
    /// The time from which messages count; `None` while nothing has been counted.
    pub since: Option<DateTime<Utc>>,
    /// When the transcripts were last read.
    pub last: Option<DateTime<Utc>>,
    pub main: Mark,
    /// The transcripts of agents that were recently written to, by file name.
    pub agents: BTreeMap<String, Mark>,
}

/// A place in a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub bytes: u64,
    /// A digest of the bytes just before it; empty if unknown. A different digest shows that the
    /// file was rewritten.
    pub ends: String,
    /// The last messages before it; further lines of them may follow.
    pub recent: Vec<CountedMessage>,
}

/// Distinguishes a second report of one stop from the next stop (the client gives a stop no id).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopMark {
    /// Hash of the prompt's id and the final message.
    pub digest: String,
    /// Milliseconds since boot when the boundary was recorded.
    pub recorded_ms: u64,
}

// What the agent asked when no user was there to answer, and the dialog at which its client waits:
// kept in the record for people, of bounded size. No decision about a loop reads them.

/// The maximum number of questions kept; older ones are dropped.
pub const ASKED_MAX: usize = 20;
/// The maximum length of a stored question, in characters.
const QUESTION_CHARS: usize = 300;
/// The maximum number of options kept for a question, and of characters kept of each.
const OPTIONS_MAX: usize = 8;
const OPTION_CHARS: usize = 80;

/// A step of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStep {
    Delay,
    /// The commands before an iteration.
    PreHook,
    Rebase,
    Agent,
    /// The commands after an iteration.
    PostHook,
    Check,
    /// The checks run again in the scratch folder.
    TestChanges,
    Commit,
    Push,
}

impl LoopStep {
    /// The step with the command that it runs.
    pub fn step_words(self, run: &str) -> String {
        let step = variant_name(&self).replace('_', "-");
        if run.is_empty() { step } else { format!("{step} `{}`", clip_line(run, 60)) }
    }
}

/// What a loop does at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    pub step: LoopStep,
    /// The command that runs; not written where the step says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    pub since: DateTime<Utc>,
}

impl Doing {
    /// "agent", "check `cargo test`", "pre-hook `make deps`".
    pub fn doing_words(&self) -> String {
        self.step.step_words(&self.run)
    }
}

/// A question that the agent had to decide by itself.
#[derive(Getters, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The iteration in which it was asked, 1-based.
    #[getter(copy)]
    iteration: u32,
    /// The question on one line, in the agent's words.
    #[serde(rename = "question")]
    text: String,
    /// The answers it offered, one line each.
    options: Vec<String>,
}

impl Question {
    /// A question, truncated to its maximum length.
    pub fn new(iteration: u32, text: &str, options: &[String]) -> Self {
        let options = options.iter().take(OPTIONS_MAX).map(|text| one_line(text, OPTION_CHARS));
        let text = one_line(text, QUESTION_CHARS);
        Self { iteration, text, options: options.collect() }
    }

    /// An example of an answer to type: the first option, if it can stand in double quotes.
    pub fn example_answer(&self) -> &str {
        match self.options.first().map(|first| first.trim_end_matches(" (Recommended)")) {
            None | Some("") => "your answer",
            Some(first) if first.contains(['"', '$', '`', '\\', '!']) => "your answer",
            Some(first) => first,
        }
    }
}

/// A dialog of the client that waits for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialog {
    /// When the client reported it.
    pub since: DateTime<Utc>,
    /// The tool that waits for permission, by the client's name; `None` if it is not known.
    pub tool: Option<String>,
    /// The id of its call, whose result shows that the dialog was answered; `None` if it is not
    /// known.
    pub call: Option<String>,
    /// Whether it is a question of the agent, and not one for permission.
    pub is_question: bool,
    /// The transcript of the session, or of its subagent, that waits.
    pub transcript: PathBuf,
    /// Its size at that time, in bytes. Without the id of a call, a longer one shows that the
    /// dialog was answered.
    pub transcript_bytes: u64,
}

/// The maximum length of an account and of a model in a file name, in bytes. A longer one is
/// truncated, and ends with its fingerprint.
const NAME_BYTES: usize = 80;

/// The account whose limit it is: a name, never a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountId {
    pub name: String,
    /// The model that was asked for; `None` leaves the choice to the agent.
    pub model: Option<String>,
}

impl AccountId {
    /// The account of an agent in a run: what the settings name, else the program's name. Both that
    /// setting and the model are meant for the run's own agent.
    pub fn of_agent(run: &Run, agent: &Agent) -> Self {
        let is_own = agent.name == run.agent.name;
        let (account, model) =
            if is_own { (run.account.as_deref(), run.model.clone()) } else { (None, None) };
        let program = agent.command.first().and_then(|program| program.rsplit('/').next());
        Self { name: account.or(program).unwrap_or(&agent.name).to_owned(), model }
    }

    /// The name of its file, without an extension: different accounts have different ones, and none
    /// begins with a dot or leaves the folder.
    pub fn file_stem(&self) -> String {
        let name = escape_name(&self.name);
        match &self.model {
            Some(model) => format!("{name}+{}", escape_name(model)),
            None => name,
        }
    }
}

/// Escapes upper case, because some file systems do not distinguish it from lower case.
fn escape_name(text: &str) -> String {
    let mut name = String::new();
    for byte in text.to_lowercase().bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if is_plain || (byte == b'.' && !name.is_empty()) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    if name.len() > NAME_BYTES {
        let fingerprint = Sha256::digest(&name);
        name.truncate(NAME_BYTES);
        for byte in &fingerprint[..8] {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name
}

impl fmt::Display for AccountId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(model) => write!(out, "{} ({model})", self.name),
            None => out.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::a_loop;

    #[test]
    fn only_a_process_of_this_machine_since_its_last_boot_is_identified_by_its_id() {
        let host = |machine: &str, boot: &str| {
            let [name, machine, boot] = ["node", machine, boot].map(str::to_owned);
            Some(Host { name, machine, boot })
        };
        let by_id = [Life::Alive, Life::Gone];
        let table = [
            (None, host("m", "b"), by_id),
            (host("m", "b"), None, [Life::Elsewhere; 2]),
            (host("m", "b"), host("m", "b"), by_id),
            (host("m", "earlier"), host("m", "b"), [Life::Gone; 2]),
            (host("other", "earlier"), host("m", "b"), [Life::Elsewhere; 2]),
            (host("other", "b"), host("m", "b"), [Life::Elsewhere; 2]),
            (host("", "b"), host("m", "b"), [Life::Elsewhere; 2]),
            (host("", "b"), host("", "b"), by_id),
            (host("", "earlier"), host("", "b"), [Life::Elsewhere; 2]),
        ];
        for (theirs, here, expected) in table {
            let owner = Owner { host: theirs, ..a_loop().state.owner().clone() };
            let found = [true, false].map(|is_there| owner.judge_life(here.as_ref(), |_| is_there));
            assert_eq!(found, expected, "{:?} seen from {here:?}", owner.host);
        }
    }

    #[test]
    fn an_owner_recorded_under_another_name_of_this_machine_is_local() {
        let host = |name: &str| {
            let [name, machine, boot] = [name, "m", "b"].map(str::to_owned);
            Host { name, machine, boot }
        };
        let owner = Owner { host: Some(host("before")), ..a_loop().state.owner().clone() };
        assert_eq!(owner.judge_life(Some(&host("after")), |_| true), Life::Alive);
    }
}

#[cfg(test)]
mod question_tests {
    use super::*;
    use crate::record::QuestionMode;
    use crate::record::State;
    use std::time::Duration;

    #[test]
    fn only_a_user_who_typed_in_the_last_ten_minutes_is_asked() {
        let minutes = |number: u64| Some(Duration::from_secs(60 * number));
        let table = [
            (minutes(2), [false, false, true]),
            (minutes(10), [false, false, true]),
            (Some(Duration::from_secs(601)), [true, false, true]),
            (None, [true, false, true]),
        ];
        for (typed, expected) in table {
            assert_eq!(QuestionMode::ALL.map(|mode| mode.defers(typed)), expected, "{typed:?}");
        }
    }

    #[test]
    fn questions_are_bounded_in_number_and_length_and_the_newest_stay() {
        let long = "which one\nof the two? ".repeat(100);
        let mut state = State::default();
        for iteration in 0..30 {
            state.add_questions([Question::new(iteration, &long, &vec![long.clone(); 30])]);
        }
        let asked = state.exchange().asked();
        let iterations: Vec<u32> = asked.iter().map(|it| it.iteration).collect();
        assert_eq!(iterations, (10..30).collect::<Vec<u32>>());
        let last = &asked[19];
        assert!(last.text.chars().count() <= QUESTION_CHARS && !last.text.contains('\n'));
        assert_eq!(last.options.len(), OPTIONS_MAX);
        assert!(last.options.iter().all(|it| it.chars().count() <= OPTION_CHARS));
    }

    #[test]
    fn the_proposed_answer_can_be_typed_as_it_is_shown() {
        let table = [
            (vec!["SMTP (Recommended)", "SES"], "SMTP"),
            (vec!["the \"old\" one"], "your answer"),
            (vec!["$HOME"], "your answer"),
            (vec![], "your answer"),
        ];
        for (options, expected) in table {
            let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
            assert_eq!(Question::new(1, "which?", &options).example_answer(), expected);
        }
    }
}

#[cfg(test)]
mod account_tests {
    use super::*;
    use crate::fixture::a_run;

    fn account(name: &str, model: Option<&str>) -> AccountId {
        AccountId { name: name.to_owned(), model: model.map(str::to_owned) }
    }

    #[test]
    fn an_account_is_named_by_the_settings_or_by_the_program() {
        let mut run = a_run(None).contract.run.unwrap();
        run.agent.command = ["/opt/bin/claude", "-p"].map(str::to_owned).into();
        let of = |run: &Run, agent: &Agent| AccountId::of_agent(run, agent).to_string();
        assert_eq!(of(&run, &run.agent), "claude");
        run.model = Some("opus".to_owned());
        assert_eq!(of(&run, &run.agent), "claude (opus)");
        run.account = Some("work".to_owned());
        assert_eq!(of(&run, &run.agent), "work (opus)");
        let command = vec!["codex".to_owned(), "exec".to_owned()];
        let other = Agent { name: "codex".to_owned(), command, ..Agent::default() };
        assert_eq!(of(&run, &other), "codex");
    }

    #[test]
    fn the_file_name_of_an_account_is_safe_and_unique() {
        let table = [
            (account("claude", None), "claude"),
            (account("claude", Some("opus")), "claude+opus"),
            (account("claude+opus", None), "claude%2bopus"),
            (account("codex", Some("gpt-5.1")), "codex+gpt-5.1"),
            (account("../../etc", None), "%2e.%2f..%2fetc"),
            (account(".hidden", None), "%2ehidden"),
            (account("WORK", None), "work"),
            (account("büro 1", None), "b%c3%bcro%201"),
        ];
        for (account, expected) in table {
            assert_eq!(account.file_stem(), expected);
        }
        let long = |name: &str| account(&name.repeat(5000), Some("/")).file_stem();
        assert_eq!(long("x"), format!("{}c59d3c0480cc2d71+%2f", "x".repeat(80)));
        // Alike to the last byte, and no longer than a file's name may be.
        let ends = |end: &str| account("a", Some(&("/".repeat(5000) + end))).file_stem();
        assert_ne!(ends("b"), ends("c"));
        assert_eq!((ends("B"), ends("b").len()), (ends("b"), 98));
    }
}
