//! Records that cannot be read: one bad lease stops no other task, and nothing starts in its place.

use super::{FleetWorld, LONG, ONE};
use crate::lanes::side_by_side;

const BROKEN: &str = "{\"schema\": 1,";
const NEWER: &str = "{\"schema\": 99, \"task\": 7}";

/// What is stored of a task's lease, as it is.
fn stored(world: &FleetWorld, task: &str) -> String {
    if world.has_hub {
        return world.git_there(&["log", "-1", "--format=%B", &format!("refs/crew/repo/{task}")]);
    }
    let file = world.sandbox.crew_home().join(format!("fleets/repo/tasks/{task}.json"));
    std::fs::read_to_string(file).unwrap()
}

pub(super) fn store(world: &FleetWorld, task: &str, text: &str) {
    if world.has_hub {
        let tree = world.git_there(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
        let message = format!("a lease\n\n{text}");
        let hub = world.hub().display().to_string();
        let commit = world.sandbox.git(&["-C", &hub, "commit-tree", "-m", &message, &tree]);
        world.git_there(&["update-ref", &format!("refs/crew/repo/{task}"), &commit]);
        return;
    }
    let file = world.sandbox.crew_home().join(format!("fleets/repo/tasks/{task}.json"));
    std::fs::write(file, text).unwrap();
}

/// A fleet of `a` and `n` is over, its two leases become unreadable, and three tasks are added.
fn goes_on(world: FleetWorld, more: &[&str]) {
    let world = world.tasks(&["a", "n"], "").ready();
    let ran = world.run(more);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    store(&world, "a", BROKEN);
    store(&world, "n", NEWER);
    let before = ["a", "n"].map(|task| stored(&world, task));
    let world = world.tasks(&["b"], "").tasks(&["later"], "after = [\"a\"]");

    let ran = world.run(more);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    assert_eq!((world.state("b"), world.state("later")), ("completed".into(), "waiting".into()));
    assert_eq!(["a", "n"].map(|task| stored(&world, task)), before, "both are left as they are");
    assert_eq!((world.begun("a"), world.begun("n")), (vec![1], vec![1]));
    let told = |text: &str, task: &str, part: &str| {
        assert!(text.lines().any(|line| line.contains(task) && line.contains(part)), "{text}");
    };
    for text in [&ran.stderr, &ran.stdout] {
        told(text, "a", "its record cannot be read");
        told(text, "n", "its record was made by a newer crew; update crew");
    }
    told(&ran.stdout, "1 of 4 completed", "2 need you");
    let status = world.crew(&["fleet", "status", "--json"]).success();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["counts"]["needs_you"], 2, "{status:#}");
    assert_eq!(status["tasks"][0]["what"], "unreadable", "{status:#}");
}

#[test]
fn a_lease_that_cannot_be_read_needs_a_person_and_the_others_run_on() {
    let here = || goes_on(FleetWorld::new(ONE), &[]);
    let there = || goes_on(FleetWorld::new(ONE).shared(), &["--push"]);
    side_by_side([&here as &(dyn Fn() + Sync), &there]);
}

#[test]
fn a_task_that_becomes_unreadable_while_the_fleet_runs_is_named_and_one_put_away_begins_anew() {
    let world = FleetWorld::new(&format!("[ $task = a ] || wait_for go; {ONE}"))
        .tasks(&["a", "b"], "")
        .ready();
    let running = world.start(&[]);
    world.until("a is done and b works", |world| {
        world.state("a") == "completed" && world.begun("b") == [1]
    });
    store(&world, "a", BROKEN);
    world.until("it is named", |_| running.stdout().contains("a needs you: "));
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("b")), (13, "completed".into()), "{ran:#?}");
    let shown = world.crew(&["fleet", "show", "a"]);
    assert!(shown.stderr.contains("hint: move the file away"), "{shown:#?}");

    std::fs::remove_file(world.sandbox.crew_home().join("fleets/repo/tasks/a.json")).unwrap();
    let again = world.run(&[]);
    assert_eq!((again.code(), world.begun("a")), (0, vec![1, 1]), "{again:#?}");
}

#[test]
fn the_terms_of_one_fleet_that_cannot_be_read_stop_no_verb_of_another() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    world.run(&[]);
    let folder = world.sandbox.crew_home().join("fleets/other");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("fleet.json"), NEWER).unwrap();
    let status = world.crew(&["fleet", "status"]);
    assert_eq!(status.code(), 0, "{status:#?}");
    assert!(status.stderr.contains("was made by a newer crew"), "{status:#?}");
    let other = world.crew(&["fleet", "status", "other"]);
    assert_eq!(other.code(), 1, "{other:#?}");
    assert!(other.stderr.contains("newer crew\nhint: update crew"), "{other:#?}");
}
