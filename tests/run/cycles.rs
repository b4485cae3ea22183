//! Many random requests to one loop, some while a resume starts, some on a full disk: none is lost,
//! and no answer is untrue. It runs in a separate mount if the system allows users to make one,
//! otherwise without a full disk.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use super::World;
use super::full_disk::may_mount;
use super::kills::Dice;
use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::{Ran, Running};

const CYCLES: u64 = 60;
/// Every cycle of this number meets a full disk.
const FULL: u64 = 5;
/// The variable that marks a test inside its separate mount.
const MOUNTED: &str = "CREW_TEST_MOUNTED";

#[test]
#[ignore = "long"]
fn sixty_random_requests_are_all_carried_out_and_answered_truthfully() {
    let name = "run::cycles::sixty_random_requests_are_all_carried_out_and_answered_truthfully";
    if std::env::var_os(MOUNTED).is_some() || !may_mount() {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
        println!("seed {seed}");
        let step = "echo $call >> work.txt; sleep 0.$((call % 4))";
        return cycles(&World::of(Sandbox::new(), &[step]), seed);
    }
    let mut inside = Command::new("unshare");
    inside.arg("-rm").arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]);
    inside.env(MOUNTED, "1");
    let ran = Running::start(inside, None).wait(DEADLINE * 4);
    assert_eq!(ran.code(), 0, "{}\n{}", ran.stdout, ran.stderr);
}

fn cycles(world: &World, seed: u32) {
    let home = world.sandbox.crew_home();
    let has_small_disk = std::env::var_os(MOUNTED).is_some();
    if has_small_disk {
        std::fs::create_dir_all(&home).unwrap();
        let mut mount = world.sandbox.command("mount");
        mount.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&home);
        Running::start(mount, None).wait(DEADLINE).success();
    }
    let mut dice = Dice(u64::from(seed));
    let mut going: Option<Going<'_>> = None;
    for cycle in 0..CYCLES {
        let it = going.take().filter(|it| it.goes_on).unwrap_or_else(|| Going::start(world));
        let is_full = has_small_disk && cycle % FULL == 0;
        if is_full {
            it.wait_for_an_agent();
            let full = "dd if=/dev/zero of=\"$CREW_HOME/fill\" bs=64k; dd if=/dev/zero of=\"$CREW_HOME/more\" bs=1";
            let mut fill = world.sandbox.command("sh");
            fill.args(["-c", full]);
            Running::start(fill, None).wait(DEADLINE);
        }
        std::thread::sleep(Duration::from_millis(dice.below(300)));
        let orders = [&["pause"][..], &["pause", "--now"], &["cancel"], &[]];
        let order = orders[usize::try_from(dice.below(4)).unwrap()];
        going = Some(it.ordered(order, &format!("cycle {cycle}, full: {is_full}, {order:?}")));
        for file in ["fill", "more"] {
            std::fs::remove_file(home.join(file)).ok();
        }
    }
}

/// A crew at work.
struct Going<'a> {
    world: &'a World,
    running: Option<Running>,
    id: String,
    goes_on: bool,
}

impl<'a> Going<'a> {
    /// Resumes if possible, otherwise starts a new loop.
    fn start(world: &'a World) -> Self {
        let newest = world.loops().into_iter().next();
        let newest = newest.filter(|it| it["outcome"] != "cancelled");
        let known = newest.map(|it| it["id"].as_str().unwrap().to_owned());
        let arguments = match &known {
            Some(id) => vec!["resume", id],
            None => vec!["run", "Do it", "-n", "0", "--stall", "0"],
        };
        let running = world.sandbox.start_crew(&arguments);
        let id = known.unwrap_or_else(|| {
            let live = || world.loops().into_iter().find(|it| it["outcome"].is_null());
            poll_until("the loop", || live().is_some());
            live().unwrap()["id"].as_str().unwrap().to_owned()
        });
        Self { world, running: Some(running), id, goes_on: true }
    }

    fn wait_for_an_agent(&self) {
        let calls = self.world.calls();
        poll_until("an agent", || self.world.calls() > calls);
    }

    fn shown(&self) -> Value {
        self.world.loops().into_iter().find(|it| it["id"] == *self.id).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.world.sandbox.crew_home().join("loops").join(&self.id).join(name)
    }

    /// How often it was resumed, according to its journal.
    fn resumes(&self) -> usize {
        let journal = std::fs::read_to_string(self.file("journal.jsonl")).unwrap_or_default();
        journal.matches("resumed in fresh").count()
    }

    /// Sends a request, or kills it if there is none, and checks the answer against the result.
    fn ordered(mut self, order: &[&str], what: &str) -> Self {
        let Some((verb, options)) = order.split_first() else {
            let running = self.running.take().unwrap();
            running.signal(Signal::KILL);
            running.wait(DEADLINE);
            self.goes_on = false;
            return self;
        };
        let before = self.resumes();
        let mut arguments = vec![*verb, &self.id];
        arguments.extend(options);
        let answer: Ran = self.world.crew(&arguments);
        assert_eq!(answer.code(), 0, "{what}: {answer:#?}");
        let (code, word) = if *verb == "cancel" { (14, "cancelled") } else { (130, "paused") };
        assert!(
            answer.stdout.contains(word) || answer.stdout.contains("pauses"),
            "{what}: {answer:#?}"
        );
        // Only a resume that came after the order may continue, if it found the loop stopped; an
        // order that came after the resume waits in its file.
        poll_until(&format!("{what}: {answer:#?}"), || {
            let is_over = self.running.as_ref().is_some_and(Running::has_ended);
            let waits = || self.file("pause").exists() || self.file("cancel").exists();
            let goes_on = || self.resumes() > before && self.shown()["status"] == "running";
            is_over || (!waits() && goes_on())
        });
        let running = self.running.take().unwrap();
        if running.has_ended() {
            let ran = running.wait(DEADLINE);
            let shown = self.shown();
            let stands = shown["outcome"].as_str().or(shown["status"].as_str()).unwrap();
            assert_eq!((ran.code(), stands), (code, word), "{what}: {answer:#?} {ran:#?}");
            self.goes_on = false;
        } else {
            self.running = Some(running);
        }
        self
    }
}
