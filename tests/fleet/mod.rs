//! Fleets through the built binary: a folder of tasks, an agent that a test writes, and as many
//! machines as it takes, each a `$CREW_HOME` of its own. It asserts on refs, records, reports and
//! the agents' own notes, not on the text of a page.

mod between;
mod branches;
mod clean;
mod kills;
mod landing;
mod local;
mod money;
mod nodes;
mod pulls;
mod records;
mod remotes;
mod requests;
mod resumes;
mod slots;
mod tampering;
mod test_changes;
mod trust;
mod verbs;
mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::sandbox::{POLL, Sandbox};
use crate::spawned::{Ran, Running};

/// How long a test waits for a fleet before it fails.
pub(crate) const LONG: Duration = Duration::from_secs(100);
/// An agent that needs two iterations, and then claims to be done.
const TWO: &str = "echo \"$iteration\" >> \"work-$task\"; [ \"$iteration\" -lt 2 ] || claim";
/// An agent that is done immediately.
pub(crate) const ONE: &str = "echo \"$iteration\" >> \"work-$task\"; claim";

/// A repository with a fleet `repo` in its folder `tasks`.
#[derive(Debug)]
pub(crate) struct FleetWorld {
    pub(crate) sandbox: Sandbox,
    has_hub: bool,
}

/// A node of a cluster, with a home of its own.
#[derive(Debug, Clone, Copy)]
struct Node<'a> {
    world: &'a FleetWorld,
    name: &'static str,
}

impl FleetWorld {
    /// The agent is a script for `sh` that knows its `$task`, its `$call` of that task, its
    /// `$iteration`, and the words `claim` and `wait_for NOTE`. Each call is noted as it begins and
    /// ends. Every process has the folder of the test's notes in `$NOTES`.
    pub(crate) fn new(agent: &str) -> Self {
        Self::of(Sandbox::new(), agent)
    }

    /// A world with a crew that follows `CREW_FAULT` and similar variables.
    fn with_faults(agent: &str) -> Self {
        Self::of(Sandbox::new().with_faults(), agent)
    }

    fn of(sandbox: Sandbox, agent: &str) -> Self {
        let notes = sandbox.root().join("notes");
        std::fs::create_dir_all(&notes).unwrap();
        let sandbox = sandbox.env("NOTES", &notes.display().to_string());
        sandbox.program("agent", PREAMBLE);
        let world = Self { sandbox, has_hub: false };
        world.acts(agent).settings("")
    }

    /// Sets what the agent does from now on.
    fn acts(self, agent: &str) -> Self {
        std::fs::write(self.note("agent"), agent).unwrap();
        self
    }

    /// Adds settings of the user to those that name the agent.
    fn settings(self, more: &str) -> Self {
        let file = self.sandbox.home().join(".config/crew/config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let agent = "loop.agent = \"fake\"\nagents.fake.command = [\"agent\"]\n";
        std::fs::write(file, format!("{agent}{more}")).unwrap();
        self
    }

    /// Adds tasks with this front matter.
    pub(crate) fn tasks(self, names: &[&str], terms: &str) -> Self {
        for name in names {
            let text = format!("+++\n{terms}\n+++\nDo task {name}.\n");
            self.sandbox.write(&format!("tasks/{name}.md"), &text);
        }
        self
    }

    /// Sets the terms of the whole fleet.
    pub(crate) fn terms(self, terms: &str) -> Self {
        self.file("tasks/fleet.toml", terms)
    }

    /// Adds a file to the repository.
    fn file(self, path: &str, text: &str) -> Self {
        self.sandbox.write(path, text);
        self
    }

    /// Adds a bare repository as the remote.
    pub(crate) fn shared(mut self) -> Self {
        let hub = self.hub().display().to_string();
        self.sandbox.git(&["init", "--quiet", "--bare", "--initial-branch=main", &hub]);
        self.sandbox.git(&["remote", "add", "origin", &hub]);
        self.has_hub = true;
        self
    }

    /// Commits everything so far, and pushes it if there is a remote.
    pub(crate) fn ready(self) -> Self {
        self.sandbox.git(&["add", "."]);
        self.sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "Tasks"]);
        if self.has_hub {
            self.sandbox.git(&["push", "--quiet", "origin", "main"]);
        }
        self
    }

    /// Shared and ready, with an executor `nodes` that keeps what is submitted in `scripts` of the
    /// notes, below the name of the attempt: the test is the nodes. A job runs until the note
    /// `status.<attempt>` has its status, and no cancel is accepted while there is a note `away`.
    fn with_nodes(self) -> Self {
        self.sandbox.put_crew_on_the_path();
        std::fs::create_dir_all(self.note("scripts")).unwrap();
        let submit = r#"name=$(basename {script} .sh); cp {script} "$NOTES/new.$name"
            mv "$NOTES/new.$name" "$NOTES/scripts/$name"; echo "$name""#;
        let status = r#"cat "$NOTES"/status.{job} 2> /dev/null || echo running"#;
        let cancel = r#"if test -e "$NOTES/away"; then echo {job} >> "$NOTES/refused"; exit 1; fi
            echo cancelled > "$NOTES"/status.{job}"#;
        let keys = [("submit", submit), ("status", status), ("cancel", cancel)];
        let keys = keys.map(|(key, command)| format!("{key} = '''{command}'''\n"));
        self.settings(&format!("[executor.nodes]\n{}", keys.concat())).shared().ready()
    }

    fn hub(&self) -> PathBuf {
        self.sandbox.root().join("hub.git")
    }

    /// Runs the fleet to its end, trusting the contents of the folder.
    #[track_caller]
    pub(crate) fn run(&self, more: &[&str]) -> Ran {
        self.start(more).wait(LONG)
    }

    pub(crate) fn start(&self, more: &[&str]) -> Running {
        self.sandbox.start_crew(&[&["fleet", "run", "tasks", "--yes"], more].concat())
    }

    #[track_caller]
    pub(crate) fn crew(&self, arguments: &[&str]) -> Ran {
        self.sandbox.start_crew(arguments).wait(LONG)
    }

    /// A node by its name.
    fn on(&self, name: &'static str) -> Node<'_> {
        Node { world: self, name }
    }

    /// The file of a note that the agents and the test leave for each other.
    fn note(&self, name: &str) -> PathBuf {
        self.sandbox.root().join("notes").join(name)
    }

    /// The text of a note; empty if there is none.
    fn noted(&self, name: &str) -> String {
        std::fs::read_to_string(self.note(name)).unwrap_or_default()
    }

    /// Leaves a note that an agent waits for.
    pub(crate) fn allow(&self, name: &str) {
        std::fs::write(self.note(name), "").unwrap();
    }

    /// Waits until the condition is met. A failure shows the status page and the agents' log.
    #[track_caller]
    pub(crate) fn until(&self, expected: &str, condition: impl Fn(&Self) -> bool) {
        let end = Instant::now() + LONG;
        while !condition(self) {
            if Instant::now() >= end {
                let Ran { stdout, stderr, .. } = self.crew(&["fleet", "status"]);
                let log = self.noted("log");
                panic!("not seen within {LONG:?}: {expected}\n{stdout}{stderr}agents' log:\n{log}");
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until an agent has left this note.
    #[track_caller]
    fn until_noted(&self, name: &str) {
        self.until(name, |world| world.note(name).exists());
    }

    /// The iterations of a task that have begun, including interrupted ones.
    pub(crate) fn begun(&self, task: &str) -> Vec<u32> {
        let begun = format!("begin {task} ");
        let log = self.noted("log");
        let lines = log.lines().filter_map(|line| line.strip_prefix(&begun));
        lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    }

    /// The maximum number of agents that were at work at the same time. Only for a test that kills
    /// none.
    fn most_at_once(&self) -> usize {
        let (mut now, mut most) = (0_usize, 0);
        for line in self.noted("log").lines() {
            now = if line.starts_with("begin ") { now + 1 } else { now - 1 };
            most = most.max(now);
        }
        most
    }

    /// The prompt of a call of a task.
    #[track_caller]
    fn prompt(&self, task: &str, call: u32) -> String {
        std::fs::read_to_string(self.note(&format!("prompt.{task}.{call}"))).unwrap()
    }

    /// The fleet's record on the machine that coordinates it; null before its first start.
    fn record(&self) -> Value {
        self.json("fleet.json")
    }

    /// The record of a task; null before it has one.
    fn task(&self, task: &str) -> Value {
        self.record()["tasks"][task].clone()
    }

    /// The number of a task's newest attempt; 0 before the first.
    fn attempt(&self, task: &str) -> u64 {
        self.task(task)["attempt"].as_u64().unwrap_or_default()
    }

    /// The last report of the newest attempt at a task, on this machine; null before there is one.
    fn report(&self, task: &str) -> Value {
        self.json(&format!("attempts/{task}.{}.report.json", self.attempt(task)))
    }

    fn json(&self, file: &str) -> Value {
        let file = self.sandbox.crew_home().join("fleets/repo").join(file);
        let text = std::fs::read_to_string(file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// `waiting`, `running`, `landing`, or how the task ended.
    fn state(&self, task: &str) -> String {
        let task = self.task(task);
        let state = &task["state"];
        let is = if state["is"] == "ended" { &state["outcome"] } else { &state["is"] };
        is.as_str().unwrap_or_default().to_owned()
    }

    fn states<'a>(&self, tasks: &[&'a str]) -> Vec<(&'a str, String)> {
        tasks.iter().map(|task| (*task, self.state(task))).collect()
    }

    /// The current phase of the attempt at a task.
    fn phase(&self, task: &str) -> String {
        self.report(task)["phase"]["does"].as_str().unwrap_or_default().to_owned()
    }

    /// The reason of an ended task.
    fn why(&self, task: &str) -> String {
        self.task(task)["state"]["why"].as_str().unwrap_or_default().to_owned()
    }

    /// The clone of a task's newest attempt.
    fn clone_of(&self, task: &str) -> PathBuf {
        let clone = format!("fleets/repo/{task}.{}", self.attempt(task));
        self.sandbox.crew_home().join(clone)
    }

    /// Ends the process of a task's attempt as a crash would: the one that its report names.
    #[track_caller]
    fn kill_attempt(&self, task: &str) {
        let process = process_of(&self.report(task)).expect("a task that runs");
        kill_process(process, Signal::KILL).unwrap();
    }

    /// A file of a branch, here or at the remote; empty if the branch lacks it.
    fn shown(&self, branch: &str, file: &str) -> String {
        let place = if self.has_hub { self.hub() } else { self.sandbox.repository() };
        let mut command = self.sandbox.command("git");
        command.arg("-C").arg(place).args(["show", &format!("{branch}:{file}")]);
        let ran = Running::start(command, None).wait(LONG);
        if ran.status.success() { ran.stdout } else { String::new() }
    }

    /// A file of a task's own work, as last fetched.
    fn work(&self, task: &str, file: &str) -> String {
        let place = self.sandbox.repository();
        let mut command = self.sandbox.command("git");
        let name = format!("refs/remotes/crew/repo/{task}:{file}");
        command.arg("-C").arg(place).args(["show", &name]);
        let ran = Running::start(command, None).wait(LONG);
        if ran.status.success() { ran.stdout } else { String::new() }
    }

    /// Runs git in the remote.
    #[track_caller]
    fn git_there(&self, arguments: &[&str]) -> String {
        let hub = self.hub().display().to_string();
        self.sandbox.git(&[&["-C", &hub], arguments].concat())
    }
}

impl Drop for FleetWorld {
    /// Ends the attempts of a failed test, which would otherwise continue.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let folder = self.sandbox.crew_home().join("fleets/repo/attempts");
        for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            let report = serde_json::from_str(&text).unwrap_or_default();
            if let Some(process) = process_of(&report) {
                kill_process(process, Signal::TERM).ok();
            }
        }
    }
}

/// The process that a report names, if it is still an attempt: another may have its id by now.
fn process_of(report: &Value) -> Option<Pid> {
    let pid = i32::try_from(report["process"]["pid"].as_i64()?).ok()?;
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_ours = String::from_utf8_lossy(&words).contains("fleet\0attempt\0");
    Pid::from_raw(pid).filter(|_| is_ours)
}

impl Node<'_> {
    /// Runs what was submitted for an attempt such as `vat.1`, as a node of a cluster does.
    fn runs(&self, attempt: &str) -> Running {
        self.runs_with(attempt, &[])
    }

    /// Runs what was submitted for an attempt, with additional variables.
    fn runs_with(&self, attempt: &str, variables: &[(&str, &str)]) -> Running {
        let mut command = self.world.sandbox.command("sh");
        command.arg(self.world.note("scripts").join(attempt)).env("NODE", self.name);
        command.env("CREW_HOME", self.world.sandbox.root().join(self.name));
        command.envs(variables.iter().copied());
        Running::start(command, None)
    }
}

/// The beginning of every agent's script.
const PREAMBLE: &str = r#"branch=$(git rev-parse --abbrev-ref HEAD)
task=${branch%/*}
task=${task##*/}
iteration=$CREW_ITERATION
echo "$task" >> "$NOTES/calls"
call=$(grep -cx "$task" "$NOTES/calls")
cat > "$NOTES/prompt.$task.$call"
claim() { echo '<promise>COMPLETE</promise>'; }
wait_for() {
    tries=0
    until test -e "$NOTES/$1"; do
        tries=$((tries + 1))
        test $tries -lt 4000 || exit 9
        sleep 0.05
    done
}
echo "begin $task $iteration slot ${CREW_SLOT:-none}" >> "$NOTES/log"
. "$NOTES/agent"
echo "end $task $iteration slot ${CREW_SLOT:-none}" >> "$NOTES/log""#;
