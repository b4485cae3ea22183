//! `crew run` through the built binary: a repository, and an agent that does at its Nth call what
//! the test has written for it, and keeps its prompt.

mod agent;
#[cfg(target_os = "linux")]
mod awake;
mod board;
mod branches;
mod children;
pub(crate) mod claude;
mod clean;
mod client;
mod closing;
mod commits;
mod crashes;
mod cut_off;
#[cfg(target_os = "linux")]
mod cycles;
#[cfg(target_os = "linux")]
mod daemons;
mod examples;
mod exits;
mod fallback;
mod final_pages;
mod first_day;
#[cfg(target_os = "linux")]
mod full_disk;
mod git;
mod gone;
mod inside;
#[cfg(target_os = "linux")]
mod kills;
mod limits;
mod live;
mod log;
mod logins;
mod moves;
#[cfg(target_os = "linux")]
mod notices;
mod owners;
#[cfg(target_os = "linux")]
mod pending;
mod prompts;
mod protection;
pub(crate) mod proven;
mod reactions;
mod redline;
mod repository;
mod requests;
mod resumed;
mod retries;
mod second_look;
mod signals;
mod snapshots;
mod state;
#[cfg(target_os = "linux")]
mod terminal;
mod test_changes;
mod tested;
mod waits;
mod windows;
mod words;

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::{Ran, Running};
use crate::tidy::pattern;

/// An agent's step that changes a file and claims nothing.
pub(crate) const WORK: &str = "echo \"call $call\" >> work.txt; echo Wrote a line.";
/// An agent's step that changes nothing and claims that all is done.
pub(crate) const CLAIM: &str = "echo 'All is done.'; echo '<promise>COMPLETE</promise>'";
/// An agent's step that never ends by itself.
pub(crate) const HANG: &str = "echo Thinking.; touch \"$notes/hangs\"; sleep 600";

/// A world in which `crew run` starts the test's own agent unless another is named.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
}

impl World {
    /// An agent that takes `steps`, one per call, in `sh`; the last one repeats. `$call` is the
    /// call's number, and `$notes` a folder for the test's notes.
    pub(crate) fn new(steps: &[&str]) -> Self {
        Self::of(Sandbox::new(), steps)
    }

    pub(crate) fn of(sandbox: Sandbox, steps: &[&str]) -> Self {
        let world = Self { sandbox };
        let notes = world.notes();
        std::fs::create_dir_all(&notes).unwrap();
        world.sandbox.program("agent", &agent(&notes));
        world.settings("");
        world.steps(steps);
        world
    }

    /// Sets the agent's steps from now on, beginning with the next call.
    pub(crate) fn steps(&self, steps: &[&str]) {
        for (index, step) in steps.iter().enumerate() {
            let call = self.calls() + 1 + index;
            std::fs::write(self.notes().join(format!("step.{call}")), step).unwrap();
        }
        if let Some(last) = steps.last() {
            std::fs::write(self.notes().join("step.last"), last).unwrap();
        }
    }

    /// Adds settings of the user to those that name the agent.
    pub(crate) fn settings(&self, more: &str) {
        let file = self.sandbox.home().join(".config/crew/config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let agent = "loop.agent = \"fake\"\nagents.fake.command = [\"agent\"]\n";
        std::fs::write(file, format!("{agent}{more}")).unwrap();
    }

    fn notes(&self) -> PathBuf {
        self.sandbox.root().join("notes")
    }

    /// The file of a note that the agent or the test left for the other.
    pub(crate) fn note(&self, name: &str) -> PathBuf {
        self.notes().join(name)
    }

    /// How many times the agent was started.
    pub(crate) fn calls(&self) -> usize {
        let calls = std::fs::read_to_string(self.note("calls")).unwrap_or_default();
        calls.lines().count()
    }

    /// The agent's prompt at a call, the first being 1.
    #[track_caller]
    pub(crate) fn prompt(&self, call: usize) -> String {
        let file = self.note(&format!("prompt.{call}"));
        String::from_utf8(std::fs::read(file).unwrap()).unwrap()
    }

    /// Runs crew to its end.
    #[track_caller]
    pub(crate) fn crew(&self, arguments: &[&str]) -> Ran {
        self.sandbox.crew(arguments)
    }

    /// Runs crew in a folder of the repository.
    #[track_caller]
    pub(crate) fn crew_in(&self, folder: &str, arguments: &[&str]) -> Ran {
        let mut command = self.sandbox.command(self.sandbox.build().path());
        command.args(arguments).current_dir(self.sandbox.file(folder));
        Running::start(command, None).wait(DEADLINE)
    }

    /// Starts crew and waits until its agent hangs, at the latest in the last step.
    #[track_caller]
    pub(crate) fn hanging(&self, arguments: &[&str]) -> Running {
        std::fs::remove_file(self.note("hangs")).ok();
        let running = self.sandbox.start_crew(arguments);
        poll_until("the agent hangs", || self.note("hangs").exists());
        running
    }

    /// Starts crew, waits until its agent hangs, and sends Ctrl-C.
    #[track_caller]
    pub(crate) fn interrupted(&self, arguments: &[&str]) -> Ran {
        let running = self.hanging(arguments);
        running.signal(Signal::INT);
        running.wait(DEADLINE)
    }

    /// What `crew status --all --json` says about every loop, the newest first.
    #[track_caller]
    pub(crate) fn loops(&self) -> Vec<Value> {
        let shown = self.crew(&["status", "--all", "--json"]).success();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["loops"].as_array().unwrap().clone()
    }

    /// The only loop.
    #[track_caller]
    pub(crate) fn the_loop(&self) -> Value {
        let loops = self.loops();
        assert_eq!(loops.len(), 1, "{loops:#?}");
        loops[0].clone()
    }

    /// The id of the only loop.
    #[track_caller]
    pub(crate) fn id(&self) -> String {
        self.the_loop()["id"].as_str().unwrap().to_owned()
    }

    /// A file in the folder of the only loop.
    #[track_caller]
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let mut loops = std::fs::read_dir(self.sandbox.crew_home().join("loops")).unwrap();
        loops.next().unwrap().unwrap().path().join(name)
    }

    /// The content of the only loop's `loop.json`.
    #[track_caller]
    pub(crate) fn record(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.file("loop.json")).unwrap()).unwrap()
    }

    /// crew's text with the parts that differ between runs normalised: times of day, durations, ids
    /// and paths.
    pub(crate) fn same(&self, text: &str) -> String {
        let root = self.sandbox.root().display().to_string();
        let changes = [
            (r"\[\d\d:\d\d:\d\d\]", "[10:00:00]"),
            (r"\b(\d+h)?(\d+m)?\d+(\.\d)?m?s\b", "1.0s"),
            (r"until \d\d:\d\d:\d\d", "until 10:00:05"),
            (r"from \d\d:\d\d to \d\d:\d\d", "from 10:00 to 10:00"),
            (r"\bloop [a-z][a-z0-9]{7}\b", "loop ID"),
            (r"\b(resume|cancel|watch|show|diff) [a-z][a-z0-9]{7}\b", "$1 ID"),
            (r"\bdiff [0-9a-f]{12}\b", "diff COMMIT"),
            (r"(?m)^[0-9a-f]{7} ", "COMMIT "),
            (r"-\d{4}-\d\d-\d\dT[0-9-]+Z", "-TIME"),
        ];
        let same = text.replace(&root, "ROOT");
        changes
            .iter()
            .fold(same, |text, (regex, same)| pattern(regex).replace_all(&text, *same).into_owned())
    }

    /// The lines of a run, normalised, without the page that closes it.
    pub(crate) fn lines(&self, ran: &Ran) -> String {
        let lines: Vec<&str> = ran.stdout.lines().take_while(|line| !line.is_empty()).collect();
        self.same(&lines.join("\n"))
    }
}

fn agent(notes: &Path) -> String {
    let notes = notes.display();
    format!(
        "notes='{notes}'\n\
         echo \"$PWD\" >> \"$notes/calls\"\n\
         call=$(($(wc -l < \"$notes/calls\")))\n\
         cat > \"$notes/prompt.$call\"\n\
         step=\"$notes/step.$call\"\n\
         test -e \"$step\" || step=\"$notes/step.last\"\n\
         . \"$step\""
    )
}
