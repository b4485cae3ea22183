//! The hook under stress: events of the client, one after another or all at once, from a careless
//! agent, in a broken environment. The test process is the client that owns the loops. No companion
//! runs here, so the client's cap is off.

mod answers;
mod as_found;
mod broken;
mod crashes;
mod environment;
mod hollow;
mod inputs;
mod interrupted;
mod owners;
mod paused;
mod protection;
mod questions;
mod queued;
mod races;
mod records;
mod rules;
mod soak;
mod stall;
mod tamper;
pub(crate) mod tested;
mod usage;
mod wakes;
mod windows;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::sandbox::{DEADLINE, Sandbox, checkout, poll_until};
use crate::spawned::{Ran, Running};

/// The session that events come from by default.
const SESSION: &str = "00000000-0000-4000-8000-000000000001";
/// Another session of the same client.
const OTHER_SESSION: &str = "00000000-0000-4000-8000-000000000002";
/// The precision with which a system reports when a process began.
const TICK: Duration = Duration::from_millis(10);

/// A sandbox whose client has crew's hooks.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) sandbox: Sandbox,
    /// The prompt and the words of the last stop that was sent.
    last_stop: Mutex<String>,
}

impl Door {
    pub(crate) fn new() -> Self {
        Self::of(Sandbox::new())
    }

    pub(crate) fn of(sandbox: Sandbox) -> Self {
        sandbox.put_crew_on_the_path();
        let sandbox = sandbox.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0");
        Self { sandbox, last_stop: Mutex::default() }
    }

    /// An event to send.
    fn event(&self, name: &str) -> Event<'_> {
        let payload = json!({
            "hook_event_name": name,
            "session_id": SESSION,
            "transcript_path": self.sandbox.home().join(".claude/projects/repo/session.jsonl"),
            "cwd": self.sandbox.repository(),
        });
        Event { door: self, payload, environment: Vec::new(), wrapper: &[] }
    }

    /// Types `/crew:loop` with these arguments.
    fn command(&self, arguments: &str) -> Event<'_> {
        self.event("UserPromptExpansion")
            .with("command_name", "crew:loop")
            .with("command_args", arguments)
            .with("prompt_id", "p-0")
    }

    /// Starts a loop and returns its id.
    #[track_caller]
    pub(crate) fn begin(&self, arguments: &str) -> String {
        let answer = self.command(arguments).send();
        let line = answer.line();
        let id = line.strip_prefix("loop ").and_then(|rest| rest.split_once(':'));
        id.unwrap_or_else(|| panic!("no start: {answer:#?}")).0.to_owned()
    }

    /// The event of an agent that stops after these words.
    fn stopping(&self, words: &str) -> Event<'_> {
        self.event("Stop")
            .with("stop_hook_active", true)
            .with("prompt_id", "p-1")
            .with("last_assistant_message", words)
    }

    /// Sends the stop of an agent after these words.
    #[track_caller]
    pub(crate) fn stop(&self, words: &str) -> Answer {
        self.stopping(words).send()
    }

    /// A file of a loop in crew's home.
    pub(crate) fn file(&self, id: &str, name: &str) -> PathBuf {
        self.sandbox.crew_home().join("loops").join(id).join(name)
    }

    /// The content of `loop.json`.
    #[track_caller]
    pub(crate) fn record(&self, id: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.file(id, "loop.json")).unwrap()).unwrap()
    }

    /// The readable lines of the journal.
    fn journal(&self, id: &str) -> Vec<Value> {
        let bytes = std::fs::read(self.file(id, "journal.jsonl")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The journal's remarks without a change of state, one a line.
    fn remarks(&self, id: &str) -> String {
        let journal = self.journal(id);
        let remarks = journal.iter().filter_map(|line| reported(line)["what"].as_str());
        remarks.fold(String::new(), |all, what| all + what + "\n")
    }

    /// The output of `crew status --json` about a loop.
    #[track_caller]
    fn status(&self, id: &str) -> Value {
        let shown = self.sandbox.crew(&["status", "--json", id]).success();
        serde_json::from_str::<Value>(&shown).unwrap()["loops"][0].clone()
    }

    /// The view in the checkout, on branch `main`.
    fn view_file(&self) -> PathBuf {
        self.sandbox.file(".claude/branches/main/state.json")
    }

    #[track_caller]
    fn view(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.view_file()).unwrap()).unwrap()
    }

    /// The handoff pages in the checkout, on branch `main`.
    fn handoffs(&self) -> Vec<PathBuf> {
        let folder = self.sandbox.file(".claude/branches/main/handoffs");
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// One event of the client, to be sent to `crew hook`.
#[derive(Debug)]
struct Event<'door> {
    door: &'door Door,
    payload: Value,
    /// The client's changes to it; `None` removes the variable.
    environment: Vec<(String, Option<OsString>)>,
    wrapper: &'static [&'static str],
}

impl Event<'_> {
    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.payload[key] = value.into();
        self
    }

    fn without(mut self, key: &str) -> Self {
        self.payload.as_object_mut().unwrap().remove(key);
        self
    }

    #[track_caller]
    fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.door.sandbox.build().assert_obeys(name);
        self.environment.push((name.into(), Some(value.into())));
        self
    }

    fn without_env(mut self, name: &str) -> Self {
        self.environment.push((name.into(), None));
        self
    }

    /// Sends it through a process that starts the hook in a different session: another client.
    #[cfg(target_os = "linux")]
    fn through_another_client(mut self) -> Self {
        self.wrapper = &["setsid", "--fork", "--wait"];
        self
    }

    fn hook(&self) -> Command {
        let sandbox = &self.door.sandbox;
        let crew = sandbox.build().path();
        let mut command = match self.wrapper {
            [] => sandbox.command(crew),
            [program, arguments @ ..] => {
                let mut command = sandbox.command(program);
                command.args(arguments).arg(crew);
                command
            }
        };
        command
            .arg("hook")
            .env("CLAUDECODE", "1")
            .env("CLAUDE_PROJECT_DIR", sandbox.repository())
            .env("CLAUDE_PLUGIN_ROOT", checkout())
            .env("CLAUDE_PLUGIN_DATA", plugin_data(sandbox));
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Waits until this stop is not taken for a second report of the last one: crew treats the same
    /// words within a tick as one stop, and a client's second stop comes one model answer later.
    fn come_later_than_the_same_words(&self) {
        let [event, prompt, words] = ["hook_event_name", "prompt_id", "last_assistant_message"]
            .map(|key| self.payload[key].to_string());
        let stop = event + &prompt + &words;
        if std::mem::replace(&mut *self.door.last_stop.lock().unwrap(), stop.clone()) == stop {
            std::thread::sleep(TICK * 2);
        }
    }

    /// Starts the companion that the client runs beside a stop.
    fn companion(self) -> Running {
        let mut command = self.hook();
        command.arg("--companion");
        Running::start(command, Some(self.payload.to_string().into_bytes()))
    }

    /// Sends it and leaves the hook running.
    fn start(self) -> Running {
        Running::start(self.hook(), Some(self.payload.to_string().into_bytes()))
    }

    /// Sends it and reads the answer.
    #[track_caller]
    fn send(self) -> Answer {
        self.come_later_than_the_same_words();
        Answer::of(self.start().wait(DEADLINE))
    }

    /// Sends these bytes instead.
    #[track_caller]
    fn send_raw(self, bytes: &[u8]) -> Answer {
        Answer::of(Running::start(self.hook(), Some(bytes.to_vec())).wait(DEADLINE))
    }
}

/// The folder the client keeps for the plugin.
fn plugin_data(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".claude/plugins/data/crew-inline")
}

/// The output of a hook.
#[derive(Debug)]
pub(crate) struct Answer {
    ran: Ran,
    json: Value,
}

impl Answer {
    #[track_caller]
    fn of(ran: Ran) -> Self {
        let json = match ran.stdout.as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {ran:#?}")),
        };
        Self { ran, json }
    }

    /// The agent's next prompt; empty when the stop is allowed.
    fn context(&self) -> &str {
        self.json["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default()
    }

    /// The line that the user reads.
    fn line(&self) -> &str {
        self.json["systemMessage"].as_str().unwrap_or_default()
    }

    /// Why a command was not passed on.
    fn refusal(&self) -> &str {
        self.json["reason"].as_str().unwrap_or_default()
    }

    fn goes_on(&self) -> bool {
        !self.context().is_empty()
    }

    #[track_caller]
    fn assert_goes_on(self) -> Self {
        assert!(self.ran.code() == 0 && self.goes_on(), "{self:#?}");
        self
    }

    /// Asserts that the stop was allowed, with at most one line for the log.
    #[track_caller]
    fn assert_lets_go(self) -> Self {
        let quiet = self.ran.code() == 0 && self.ran.stderr.lines().count() <= 1;
        assert!(quiet && !self.goes_on() && self.json["decision"].is_null(), "{self:#?}");
        self
    }

    /// Asserts that the stop after a cancel elsewhere was allowed; the first such stop may report
    /// the cancel.
    #[track_caller]
    fn assert_lets_go_after_a_cancel(self) {
        let line = self.assert_lets_go().line().to_owned();
        assert!(line.is_empty() || line.contains(" was cancelled "), "{line}");
    }

    /// Asserts that the answer was empty.
    #[track_caller]
    fn assert_silent(self) {
        let said = (self.ran.code(), self.ran.stdout.as_str(), self.ran.stderr.as_str());
        assert_eq!(said, (0, "", ""));
    }
}

/// Waits until the processes that a check has named have ended. An orphan that nobody reaps stays
/// as a zombie, which also counts.
#[track_caller]
pub(crate) fn assert_gone(pids: &str) {
    for pid in pids.split_whitespace() {
        let id = Pid::from_raw(pid.parse().unwrap()).unwrap();
        poll_until(&format!("the end of process {pid}"), || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            test_kill_process(id).is_err() || stat.contains(") Z ")
        });
    }
}

/// The event of a line of a journal, whatever its kind.
pub(crate) fn reported(line: &Value) -> &Value {
    line["event"].as_object().and_then(|event| event.values().next()).unwrap()
}

/// The valid lines of a journal: the last of those with the same generation.
fn kept(journal: &[Value]) -> Vec<&Value> {
    let changes: Vec<&Value> =
        journal.iter().filter(|line| line["event"]["noted"].is_null()).collect();
    let generation = |line: &Value| line["generation"].as_u64().unwrap();
    let is_last = |(index, line): &(usize, &&Value)| {
        changes[index + 1..].iter().all(|later| generation(later) > generation(line))
    };
    changes.iter().enumerate().filter(is_last).map(|(_, line)| *line).collect()
}

/// The record that a journal adds up to.
fn replay(journal: &[Value]) -> Value {
    let mut record = Value::Null;
    for line in kept(journal) {
        let event = reported(line);
        let whole = [&event["record"], &event["after"]["record"]];
        if let Some(whole) = whole.into_iter().find(|whole| whole.is_object()) {
            record = whole.clone();
            continue;
        }
        let states = [&event["state"], &event["after"]["state"]];
        record["state"] = states.into_iter().find(|state| state.is_object()).unwrap().clone();
        if !event["elapsed_ms"].is_null() {
            record["elapsed_ms"].as_array_mut().unwrap().push(event["elapsed_ms"].clone());
        }
    }
    record
}

/// Numbers that look random and are the same in every run (xorshift).
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
