//! The slots of a machine under the attempts of several fleets, some of which die: no more work
//! runs at the same time than there are slots, nobody waits for a dead process, and waiting
//! attempts can be ended.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{FleetWorld, LONG, ONE};
use crate::spawned::Running;

const SLOTS: usize = 4;
/// Three fleets, which together have three times as many attempts as there are slots.
const FLEETS: [&str; 3] = ["one", "two", "three"];
const TASKS: usize = 6;
/// Each slot is used by one agent at a time. The first agents wait for the note `go`.
const AGENT: &str = "exec 9> $NOTES/slot.$CREW_SLOT; flock -n 9 || echo $task >> $NOTES/shared
echo $iteration >> work-$task; wait_for go; [ $iteration -lt 2 ] || claim";

impl FleetWorld {
    /// Starts the fleet of another folder.
    fn start_of(&self, folder: &str) -> Running {
        self.sandbox.start_crew(&["fleet", "run", folder, "--yes"])
    }

    /// The first attempts of a fleet that are in this phase, each with its report.
    fn that_do(&self, fleet: &str, phase: &str) -> Vec<(String, Value)> {
        let folder = self.sandbox.crew_home().join(format!("fleets/{fleet}/attempts"));
        let mut found = Vec::new();
        for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = file.file_name().into_string().unwrap();
            let Some(task) = name.strip_suffix(".1.report.json") else { continue };
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            let report: Value = serde_json::from_str(&text).unwrap_or_default();
            if report["phase"]["does"] == phase {
                found.push((task.to_owned(), report));
            }
        }
        found
    }
}

#[test]
fn three_fleets_share_four_slots_even_if_five_of_their_attempts_are_killed() {
    let mut world = FleetWorld::new(AGENT);
    for fleet in FLEETS {
        for number in 1..=TASKS {
            world = world.file(&format!("{fleet}/{fleet}-{number}.md"), "Do it.\n");
        }
        world = world.file(&format!("{fleet}/fleet.toml"), &format!("slots = {SLOTS}\n"));
    }
    let world = world.ready();
    let fleets = FLEETS.map(|fleet| world.start_of(fleet));
    let all_that = |world: &FleetWorld, phase: &str| {
        FLEETS.iter().flat_map(|fleet| world.that_do(fleet, phase)).collect::<Vec<_>>()
    };
    world.until("all places are taken, and the others are in line", |world| {
        let counts = ["running", "queued"].map(|phase| all_that(world, phase).len());
        counts == [SLOTS, FLEETS.len() * SLOTS - SLOTS]
    });
    let begun = |world: &FleetWorld| world.noted("log").lines().count();
    world.until("their agents work", |world| begun(world) >= SLOTS);
    assert_eq!(begun(&world), SLOTS);

    let typed = world.crew(&["run", "Say hello", "-n", "1", "--agent-cmd", "true"]);
    assert_eq!(typed.code(), 10, "a run that a person types waits for no slot: {typed:#?}");

    // Agents of a killed holder may go on for a moment, so none is waited for in a slot of theirs.
    let (working, waiting) = (all_that(&world, "running"), all_that(&world, "queued"));
    let killed = [&working[..2], &waiting[..3]].concat();
    for (task, report) in &killed {
        let pid = report["process"]["pid"].as_i64().unwrap_or_else(|| panic!("{task}: {report}"));
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    world.allow("go");
    for (fleet, running) in FLEETS.iter().zip(fleets) {
        let ran = running.wait(LONG);
        assert_eq!((*fleet, ran.code()), (*fleet, 0), "{ran:#?}");
    }
    for task in FLEETS.iter().flat_map(|fleet| (1..=TASKS).map(move |it| format!("{fleet}-{it}"))) {
        let begun = world.begun(&task);
        let was_killed = killed.iter().any(|(killed, _)| *killed == task);
        assert!(begun == [1, 2] || (was_killed && begun == [1, 1, 2]), "{task}: {begun:?}");
    }
    assert_eq!(world.noted("shared"), "", "two agents had one slot");
    let queue = std::fs::read_dir(world.sandbox.crew_home().join("slots/queue")).unwrap();
    assert_eq!(queue.count(), 0, "the queue is empty");
}

#[test]
fn the_checks_before_the_first_iteration_also_use_a_slot() {
    let check = "verify = [\"echo ${CREW_SLOT-none} >> $NOTES/slots; ls work-*\"]";
    let world = FleetWorld::new(ONE).tasks(&["a", "b"], check).terms("slots = 1").ready();
    assert_eq!(world.run(&[]).code(), 0);
    assert_eq!(world.noted("slots"), "0\n0\n0\n0\n");
}

#[test]
fn an_attempt_waiting_for_its_first_slot_can_be_ended_and_does_its_work_later() {
    let agent = format!("[ $task = b ] || wait_for go; {ONE}");
    let world = FleetWorld::new(&agent)
        .tasks(&["a"], "")
        .terms("slots = 1")
        // With a check that runs before the first iteration.
        .file("other/b.md", "---\nverify: test -e work-b\n---\nDo it.\n")
        .file("other/fleet.toml", "slots = 1\n")
        .ready();
    let first = world.start(&[]);
    world.until("a works", |world| world.begun("a") == [1]);
    let in_line = || {
        let other = world.start_of("other");
        world.until("b is in line", |world| world.that_do("other", "queued").len() == 1);
        other
    };
    let other = in_line();
    other.signal(Signal::INT);
    assert_eq!(other.wait(LONG).code(), 130, "no iteration runs that it would wait for");
    let other = in_line();
    world.crew(&["cancel", "other/b"]).success();
    assert_eq!(other.wait(LONG).code(), 14);
    assert_eq!((world.state("a"), world.begun("b")), ("running".into(), vec![]));

    world.allow("go");
    assert_eq!(first.wait(LONG).code(), 0);
    world.crew(&["resume", "other/b"]).success();
    let again = world.start_of("other").wait(LONG);
    assert_eq!((again.code(), world.begun("b")), (0, vec![1]), "{again:#?}");
}

#[test]
fn the_checks_of_a_landing_hold_a_slot_and_a_setup_at_the_same_time_holds_none() {
    let noted = "$(basename $PWD) ${CREW_SLOT-none} >> $NOTES/slots";
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "priority = 9")
        .tasks(&["b"], "")
        .terms(&format!(
            "slots = 1\nsetup = 'case $PWD in *land) ;; *) echo {noted} ;; esac'
             [land]\ncheck = ['until grep -q b.1 $NOTES/slots; do sleep 0.05; done; echo {noted}']"
        ))
        .shared()
        .ready();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!(world.noted("slots"), "a.1 none\nb.1 none\nland 0\nland 0\n");
}
