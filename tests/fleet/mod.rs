//! Fleets through the built binary: a folder of tasks, an agent that a test writes, and as many
//! machines as it takes, each a `$CREW_HOME` of its own. It asserts on facts, which are refs,
//! leases and the agents' own notes, and not on the words of a page.

mod answers;
mod between;
mod branches;
mod clones;
mod forget;
mod kept;
mod kills;
mod landing;
mod leases;
mod local;
mod money;
mod orders;
mod pulls;
mod records;
mod remotes;
mod shares;
mod show;
mod slots;
mod tampering;
mod test_changes;
mod trust;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::child::{Ran, Running};
use crate::sandbox::{Sandbox, poll_within};

/// How long a test waits for a fleet before it fails.
pub(crate) const LONG: Duration = Duration::from_secs(100);
/// An agent that needs two iterations, and then claims to be done.
const TWO: &str = "echo \"$iteration\" >> \"work-$task\"; [ \"$iteration\" -lt 2 ] || claim";
/// An agent that is done at once.
pub(crate) const ONE: &str = "echo \"$iteration\" >> \"work-$task\"; claim";

/// A repository with a fleet `repo` in its folder `tasks`.
#[derive(Debug)]
pub(crate) struct FleetWorld {
    pub(crate) sandbox: Sandbox,
    has_hub: bool,
}

/// A machine that works on the fleet.
#[derive(Debug, Clone, Copy)]
struct Machine<'a> {
    world: &'a FleetWorld,
    name: &'static str,
}

impl FleetWorld {
    /// The agent is a script for `sh` that knows its `$task`, its `$call` of that task, its
    /// `$iteration`, and the words `claim` and `wait_for NOTE`. Each call is noted as it begins and
    /// ends. Whatever runs has the test's notes in `$NOTES`.
    pub(crate) fn new(agent: &str) -> Self {
        Self::of(Sandbox::new(), agent)
    }

    /// The same with a crew that obeys `CREW_FAULT` and similar variables.
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

    /// What the agent does from now on.
    fn acts(self, agent: &str) -> Self {
        std::fs::write(self.note("agent"), agent).unwrap();
        self
    }

    /// The user's settings beside those that name the agent.
    fn settings(self, more: &str) -> Self {
        let file = self.sandbox.home().join(".config/crew/config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let agent = "loop.agent = \"fake\"\nagents.fake.command = [\"agent\"]\n";
        std::fs::write(file, format!("{agent}{more}")).unwrap();
        self
    }

    /// Tasks with this front matter.
    pub(crate) fn tasks(self, names: &[&str], terms: &str) -> Self {
        for name in names {
            let text = format!("+++\n{terms}\n+++\nDo task {name}.\n");
            self.sandbox.write(&format!("tasks/{name}.md"), &text);
        }
        self
    }

    /// What holds for the whole fleet.
    pub(crate) fn terms(self, terms: &str) -> Self {
        self.file("tasks/fleet.toml", terms)
    }

    /// A file of the repository.
    fn file(self, path: &str, text: &str) -> Self {
        self.sandbox.write(path, text);
        self
    }

    /// A bare repository as the remote.
    pub(crate) fn shared(mut self) -> Self {
        let hub = self.hub().display().to_string();
        self.sandbox.git(&["init", "--quiet", "--bare", "--initial-branch=main", &hub]);
        self.sandbox.git(&["remote", "add", "origin", &hub]);
        self.has_hub = true;
        self
    }

    /// Everything so far is committed, and pushed where there is a remote.
    pub(crate) fn ready(self) -> Self {
        self.sandbox.git(&["add", "."]);
        self.sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "Tasks"]);
        if self.has_hub {
            self.sandbox.git(&["push", "--quiet", "origin", "main"]);
        }
        self
    }

    /// Shared and ready, and recorded as by [`Self::record`].
    fn by_hand(self, more: &[&str]) -> Self {
        let world = self.shared().ready();
        world.record(more);
        world
    }

    /// Records the fleet for a cluster that takes every job and runs none: the test is the nodes.
    #[track_caller]
    fn record(&self, more: &[&str]) {
        self.sandbox.program("sbatch", "cat > /dev/null; echo $$");
        self.sandbox.program("scontrol", "");
        self.sandbox.program("squeue", "echo look >> \"$NOTES/looks\"");
        let before = self.noted("looks").lines().count();
        let running = self.start(&[&["--on", "slurm"], more].concat());
        // It looks again once all jobs of the first look are handed in.
        self.until("the jobs are handed in", |world| {
            assert!(!running.has_ended(), "{}", running.stderr());
            world.noted("looks").lines().count() >= before + 2
        });
        running.signal(Signal::KILL);
        running.wait(LONG);
    }

    fn hub(&self) -> PathBuf {
        self.sandbox.root().join("hub.git")
    }

    /// Runs the fleet to its end, trusting what is in the folder.
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

    /// A machine by its name; the fleet is started on the one called `home`.
    fn on(&self, name: &'static str) -> Machine<'_> {
        Machine { world: self, name }
    }

    /// A file that the agents or the test left for the other.
    fn note(&self, name: &str) -> PathBuf {
        self.sandbox.root().join("notes").join(name)
    }

    /// Its text; empty if there is none.
    fn noted(&self, name: &str) -> String {
        std::fs::read_to_string(self.note(name)).unwrap_or_default()
    }

    /// What an agent may wait for is there now.
    pub(crate) fn allow(&self, name: &str) {
        std::fs::write(self.note(name), "").unwrap();
    }

    #[track_caller]
    pub(crate) fn until(&self, expected: &str, condition: impl Fn(&Self) -> bool) {
        poll_within(LONG, expected, || condition(self));
    }

    /// Waits until an agent has left this note.
    #[track_caller]
    fn until_noted(&self, name: &str) {
        self.until(name, |world| world.note(name).exists());
    }

    /// The iterations of a task that have begun, cut off or not.
    pub(crate) fn begun(&self, task: &str) -> Vec<u32> {
        let begun = format!("begin {task} ");
        let log = self.noted("log");
        let lines = log.lines().filter_map(|line| line.strip_prefix(&begun));
        lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    }

    /// How many agents were at work at once, at most. Only for a test that kills none.
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

    /// A task's lease; null before it has one.
    fn lease(&self, task: &str) -> Value {
        let text = if self.has_hub {
            let name = format!("refs/crew/repo/{task}");
            let hub = self.hub().display().to_string();
            let held =
                self.sandbox.git(&["-C", &hub, "for-each-ref", "--format=%(contents)", &name]);
            held.split_once("\n\n").map(|(_, text)| text.to_owned()).unwrap_or_default()
        } else {
            let file = format!("fleets/repo/tasks/{task}.json");
            std::fs::read_to_string(self.sandbox.crew_home().join(file)).unwrap_or_default()
        };
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// `waiting`, `running`, or how the task ended.
    fn state(&self, task: &str) -> String {
        let lease = self.lease(task);
        let state = &lease["state"];
        let is = if state["is"] == "ended" { &state["outcome"] } else { &state["is"] };
        is.as_str().unwrap_or_default().to_owned()
    }

    fn states<'a>(&self, tasks: &[&'a str]) -> Vec<(&'a str, String)> {
        tasks.iter().map(|task| (*task, self.state(task))).collect()
    }

    /// What the attempt at a task does now.
    fn phase(&self, task: &str) -> String {
        let lease = self.lease(task);
        lease["state"]["phase"]["does"].as_str().unwrap_or_default().to_owned()
    }

    /// How an ended task explains itself.
    fn why(&self, task: &str) -> String {
        self.lease(task)["state"]["why"].as_str().unwrap_or_default().to_owned()
    }

    /// Ends the process of a task's attempt as a crash would: the one that its lease names.
    #[track_caller]
    fn kill_job(&self, task: &str) {
        let pid = self.lease(task)["state"]["pid"].as_i64().expect("a task that runs");
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }

    /// A file of a branch, here or on the remote; empty if it has none.
    fn shown(&self, branch: &str, file: &str) -> String {
        let place = if self.has_hub { self.hub() } else { self.sandbox.repository() };
        let mut command = self.sandbox.command("git");
        command.arg("-C").arg(place).args(["show", &format!("{branch}:{file}")]);
        let ran = Running::start(command, None).wait(LONG);
        if ran.status.success() { ran.stdout } else { String::new() }
    }

    /// A file of a task's own branch.
    fn work(&self, task: &str, file: &str) -> String {
        self.shown(&format!("fleet/repo/{task}"), file)
    }

    /// Runs git in the remote.
    #[track_caller]
    fn git_there(&self, arguments: &[&str]) -> String {
        let hub = self.hub().display().to_string();
        self.sandbox.git(&[&["-C", &hub], arguments].concat())
    }
}

impl Drop for FleetWorld {
    /// The jobs of a test that fails would go on without it.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let folder = self.sandbox.crew_home().join("fleets/repo/tasks");
        for lease in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(lease.path()).unwrap_or_default();
            let lease: Value = serde_json::from_str(&text).unwrap_or_default();
            let pid = lease["state"]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
            let command = pid.map(|pid| std::fs::read(format!("/proc/{pid}/cmdline")));
            let words = command.and_then(Result::ok).unwrap_or_default();
            let is_ours = String::from_utf8_lossy(&words).contains("fleet\0job\0repo\0");
            if let Some(pid) = pid.and_then(Pid::from_raw).filter(|_| is_ours) {
                kill_process(pid, Signal::TERM).ok();
            }
        }
    }
}

impl Machine<'_> {
    /// Starts an attempt at a task, as an engine does.
    fn job(&self, task: &str) -> Running {
        self.job_with(task, &[])
    }

    /// The same with more variables.
    fn job_with(&self, task: &str, variables: &[(&str, &str)]) -> Running {
        let mut command = self.world.sandbox.command(self.world.sandbox.build().path());
        command.args(["fleet", "job", "repo", task]).env("MACHINE", self.name);
        command.envs(variables.iter().copied());
        if self.name != "home" {
            command.env("CREW_HOME", self.world.sandbox.root().join(self.name));
        }
        if self.world.has_hub {
            command.arg(format!("--remote={}", self.world.hub().display()));
        }
        Running::start(command, None)
    }
}

/// What every agent does before its script.
const PREAMBLE: &str = r#"branch=$(git rev-parse --abbrev-ref HEAD)
task=${branch##*/}
task=${task%%+*}
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
