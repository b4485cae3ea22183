//! The coordinator of a fleet: its record here and at the remote has one coordinator at a time; and
//! records that cannot be read.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE};
use crate::spawned::Running;

const BROKEN: &str = "{\"schema\": 1,";
const NEWER: &str = "{\"schema\": 99, \"task\": 7}";
/// The time in milliseconds after which a record that does not change has no coordinator.
const STALE: (&str, &str) = ("CREW_STALE_MS", "1000");
/// Records the machine on which an agent works.
const SIGNED: &str = "case $PWD in */m2/*) machine=m2 ;; *) machine=m1 ;; esac";

/// Another machine: a clone of the remote in a folder with the same name as the first, and a home.
struct Machine<'a> {
    world: &'a FleetWorld,
    clone: PathBuf,
    home: PathBuf,
}

impl<'a> Machine<'a> {
    fn new(world: &'a FleetWorld, name: &str) -> Self {
        let root = world.sandbox.root();
        let (clone, home) = (root.join(name).join("repo"), root.join(name).join("home"));
        let [from, to] = [&world.hub(), &clone].map(|path| path.display().to_string());
        world.sandbox.git(&["clone", "--quiet", &from, &to]);
        Self { world, clone, home }
    }

    fn start_with(&self, more: &[&str], variables: &[(&str, &str)]) -> Running {
        let sandbox = &self.world.sandbox;
        let mut command = sandbox.command(sandbox.build().path());
        command.args(["fleet", "run", "tasks", "--yes"]).args(more).current_dir(&self.clone);
        command.env("CREW_HOME", &self.home).envs(variables.iter().copied());
        Running::start(command, None)
    }

    fn start(&self, more: &[&str]) -> Running {
        self.start_with(more, &[])
    }
}

/// The record at the remote.
fn there(world: &FleetWorld) -> serde_json::Value {
    let message = world.git_there(&["log", "-1", "--format=%B", "refs/crew/repo/record"]);
    serde_json::from_str(message.split_once("\n\n").unwrap().1).unwrap()
}

fn record_file(world: &FleetWorld) -> PathBuf {
    world.sandbox.crew_home().join("fleets/repo/fleet.json")
}

#[test]
fn one_of_twenty_simultaneous_coordinators_works_and_the_others_leave_nothing_behind() {
    let world = FleetWorld::new(&format!("wait_for go; {ONE}")).tasks(&["a"], "").shared().ready();
    let names = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"];
    let machines = names.map(|name| Machine::new(&world, name));
    let mut running: Vec<Running> = (0..12).map(|_| world.start(&["--push"])).collect();
    running.extend(machines.iter().map(|machine| machine.start(&["--push"])));
    let ended = || running.iter().filter(|it| it.has_ended()).count();
    world.until("one is left, and it works", |world| ended() == 19 && world.begun("a") == [1]);
    world.allow("go");
    let mut codes: Vec<i32> = running.into_iter().map(|it| it.wait(LONG).code()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [&[0][..], &[1; 19]].concat());
    assert_eq!(world.shown("fleet/repo/a/1", "work-a"), "1\n");
    let branches = world.git_there(&["for-each-ref", "--format=%(refname)", "refs/heads/fleet"]);
    assert_eq!(branches, "refs/heads/fleet/repo/a/1");
    // Whoever comes later has the same fleet, and finds its task done.
    let id = there(&world)["id"].clone();
    for machine in &machines {
        let later = machine.start(&["--push"]).wait(LONG);
        assert_eq!(later.code(), 0, "{later:#?}");
    }
    let later = world.run(&["--push"]);
    assert_eq!((later.code(), world.begun("a"), world.attempt("a")), (0, vec![1], 1));
    assert_eq!((there(&world)["id"].clone(), world.record()["id"].clone()), (id.clone(), id));
}

/// `a` is being landed and `b` works when the first coordinator is stopped. A second one takes the
/// fleet, lands `a` from its branch, and does `b` again once the first is back and has ended its
/// own attempt.
#[test]
fn a_replaced_coordinator_that_still_runs_lands_nothing_and_ends_its_attempts() {
    let agent = format!(
        "{SIGNED}; echo \"$machine\" >> \"work-$task\"
        [ $machine$task != m1b ] || {{ touch $NOTES/begun.b; wait_for never; }}; claim"
    );
    let check = "case $PWD in */m2/*) ;; *) touch $NOTES/here; until test -e $NOTES/go; \
                 do sleep 0.1; done ;; esac";
    let world = FleetWorld::with_faults(&agent)
        .tasks(&["a", "b"], "")
        .terms(&format!("slots = 2\n[land]\ncheck = [\"{check}\"]"))
        .shared()
        .ready();
    let second = Machine::new(&world, "m2");
    let first = world.start(&["--land"]);
    world.until_noted("here");
    world.until_noted("begun.b");
    world.until("its branch is pushed, and the remote's record says that it lands", |world| {
        let tasks = &there(world)["tasks"];
        world.shown("fleet/repo/a/1", "work-a") == "m1\n"
            && tasks["a"]["state"]["is"] == "landing"
            && tasks["b"]["attempt"] == 1
    });
    let refused = second.start(&["--land"]).wait(LONG);
    assert_eq!(refused.code(), 1, "{refused:#?}");
    first.signal(Signal::STOP);
    let other = second.start_with(&["--land", "--replace-coordinator"], &[STALE]);
    world.until("the other one lands a", |world| world.shown("main", "work-a") == "m1\n");

    first.signal(Signal::CONT);
    world.allow("go");
    let first = first.wait(LONG);
    assert_eq!(first.code(), 1, "{first:#?}");
    let other = other.wait(LONG);
    assert_eq!(other.code(), 0, "{other:#?}");
    let landed = world.git_there(&["log", "--format=%s", "main"]);
    assert_eq!(landed.lines().collect::<Vec<_>>(), ["Do task b.", "Do task a.", "Tasks", "Begin"]);
    assert_eq!(world.shown("main", "work-b"), "m2\n", "the other one's own attempt");
    let record = there(&world);
    assert_eq!(
        (&record["tasks"]["a"]["attempt"], &record["tasks"]["b"]["attempt"]),
        (&1.into(), &2.into())
    );
    assert_eq!(record["terms"]["repository"], second.clone.display().to_string());
}

#[test]
fn an_interrupted_fleet_continues_on_another_machine_from_what_was_pushed() {
    let agent = format!(
        "{SIGNED}; [ $machine = m2 ] || wait_for go
        echo \"$iteration $machine\" >> work-a; [ $iteration -lt 2 ] || claim"
    );
    let world = FleetWorld::new(&agent).tasks(&["a"], "max-iterations = 2").shared().ready();
    let second = Machine::new(&world, "m2");
    let first = world.start(&["--push"]);
    world.until("a works", |world| world.begun("a") == [1]);
    first.signal(Signal::INT);
    world.allow("go");
    assert_eq!(first.wait(LONG).code(), 130);
    assert_eq!(world.shown("fleet/repo/a/1", "work-a"), "1 m1\n");
    let other = second.start(&["--push"]).wait(LONG);
    assert_eq!((other.code(), world.begun("a")), (0, vec![1, 2]), "{other:#?}");
    assert_eq!(world.shown("fleet/repo/a/2", "work-a"), "1 m1\n2 m2\n");
    let back = world.run(&["--push"]);
    assert_eq!((back.code(), world.begun("a")), (0, vec![1, 2]), "{back:#?}");
    assert_eq!((world.state("a"), world.attempt("a")), ("completed".into(), 2));
}

/// Asserts that what cannot be read is left unchanged, and nothing starts in its place.
#[track_caller]
fn is_refused(world: &FleetWorld, hint: &str) {
    let refused = world.run(&["--push"]);
    assert_eq!(refused.code(), 1, "{refused:#?}");
    assert!(refused.stderr.contains(hint), "{refused:#?}");
    assert_eq!(world.begun("a"), [1]);
}

#[test]
fn an_unreadable_record_starts_nothing_and_once_it_is_moved_all_work_is_found_again() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 0);
    let (file, hub) = (record_file(&world), world.hub().display().to_string());
    let whole = fs::read_to_string(&file).unwrap();
    for (text, hint) in [(BROKEN, "hint: move the file away"), (NEWER, "hint: update crew")] {
        fs::write(&file, text).unwrap();
        is_refused(&world, hint);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::write(&file, whole).unwrap();
    let tree = world.git_there(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
    for (text, hint) in [(BROKEN, "hint: delete that ref"), (NEWER, "hint: update crew")] {
        let message = format!("crew fleet repo\n\n{text}");
        let commit = world.sandbox.git(&["-C", &hub, "commit-tree", "-m", &message, &tree]);
        world.git_there(&["update-ref", "refs/crew/repo/record", &commit]);
        is_refused(&world, hint);
        assert_eq!(world.git_there(&["rev-parse", "refs/crew/repo/record"]), commit);
    }
    world.git_there(&["update-ref", "-d", "refs/crew/repo/record"]);
    fs::remove_file(&file).unwrap();
    let again = world.run(&["--push"]);
    assert_eq!((again.code(), world.begun("a")), (0, vec![1]), "{again:#?}");
    assert_eq!((world.state("a"), world.work("a", "work-a")), ("completed".into(), "1\n".into()));
}

#[test]
fn an_unreadable_record_of_one_fleet_stops_no_command_for_another() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let folder = world.sandbox.crew_home().join("fleets/other");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("fleet.json"), NEWER).unwrap();
    for arguments in [&["fleet", "status"][..], &["status"], &["show", "repo/a"]] {
        let ran = world.crew(arguments);
        assert_eq!(ran.code(), 0, "{ran:#?}");
    }
    let other = world.crew(&["fleet", "status", "other"]);
    assert_eq!(other.code(), 1, "{other:#?}");
    assert!(other.stderr.contains("newer crew\nhint: update crew"), "{other:#?}");
}

#[test]
fn a_fleet_continues_from_another_working_tree_once_its_first_one_is_removed() {
    let agent = format!("[ $task != b ] || test -e $NOTES/go || exit 0; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "max-iterations = 1").shared();
    let world = world.terms("base = \"main\"").ready();
    let tree = world.sandbox.root().join("tree");
    let there = tree.display().to_string();
    world.sandbox.git(&["worktree", "add", "--quiet", "-b", "wip", &there]);
    let start = |folder: &Path| {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.args(["fleet", "run", "tasks", "--yes", "--push"]).current_dir(folder);
        Running::start(command, None).wait(LONG)
    };
    let ran = start(&tree);
    assert_eq!(
        (ran.code(), world.state("a"), world.state("b")),
        (10, "completed".into(), "exhausted".into())
    );
    world.sandbox.git(&["worktree", "remove", "--force", &there]);
    world.allow("go");
    world.sandbox.write("tasks/b.md", "+++\nmax-iterations = 2\n+++\nDo task b.\n");
    world.crew(&["resume", "repo/b"]).success();
    let ran = start(&world.sandbox.repository());
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
    assert_eq!(world.shown("fleet/repo/a/1", "work-a"), "1\n");
}
