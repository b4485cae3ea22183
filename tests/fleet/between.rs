//! What a user does between two starts of a fleet, or during one: another remote, another executor,
//! work that is rejected, merged or given up, a landing check that is added.

use super::{FleetWorld, LONG, ONE, TWO};

#[test]
fn a_fleet_whose_remote_was_replaced_continues_there() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--land"]).code(), 0);
    let new = world.sandbox.root().join("new.git").display().to_string();
    let old = world.hub().display().to_string();
    world.sandbox.git(&["init", "--quiet", "--bare", "--initial-branch=main", &new]);
    world.sandbox.git(&["-C", &old, "push", "--quiet", &new, "refs/heads/main"]);
    world.sandbox.git(&["remote", "set-url", "origin", &new]);
    world.sandbox.git(&["pull", "--quiet", "origin", "main"]);
    let refs = world.git_there(&["for-each-ref"]);
    let world = world.tasks(&["b"], "after = \"a\"").ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a"), world.begun("b")), (0, vec![1], vec![1]), "{ran:#?}");
    let subjects = world.sandbox.git(&["-C", &new, "log", "--format=%s", "main"]);
    assert_eq!(subjects, "Do task b.\nTasks\nDo task a.\nTasks\nBegin");
    assert_eq!(world.git_there(&["for-each-ref"]), refs, "nothing goes to the old one");
}

#[test]
fn completed_work_that_a_person_rejects_does_not_land_later() {
    let world = FleetWorld::new(ONE).tasks(&["a", "b", "c"], "").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 0);
    world.crew(&["cancel", "repo/b"]).success();
    world.sandbox.git(&["rm", "--quiet", "tasks/a.md"]);
    let world = world.ready();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let expected = [("a", "completed"), ("b", "cancelled"), ("c", "completed")];
    let expected = expected.map(|(task, end)| (task, end.to_owned()));
    assert_eq!(world.states(&["a", "b", "c"]), expected);
    let on_main = || ["work-a", "work-b", "work-c"].map(|file| world.shown("main", file));
    assert_eq!(on_main(), ["", "", "1\n"]);
    world.crew(&["resume", "repo/b"]).success();
    let again = world.run(&["--land"]);
    assert_eq!(
        (again.code(), on_main()),
        (10, ["", "1\n", "1\n"].map(str::to_owned)),
        "{again:#?}"
    );
    assert_eq!(world.begun("b"), [1], "its work was completed before");
}

#[test]
fn work_completed_before_the_whole_fleet_was_cancelled_may_land() {
    let agent = format!("[ $task = a ] || wait_for never; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "").terms("slots = 2").shared().ready();
    let running = world.start(&["--push"]);
    world.until("a is completed and b works", |world| {
        world.state("a") == "completed" && world.begun("b") == [1]
    });
    world.crew(&["cancel", "repo"]).success();
    assert_eq!(running.wait(LONG).code(), 14);
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.shown("main", "work-a")), (10, "1\n".into()), "{ran:#?}");
    assert_eq!((world.state("b"), world.begun("b")), ("cancelled".into(), vec![1]));
}

#[test]
fn a_landing_check_added_or_corrected_while_a_task_runs_applies_to_that_task() {
    let agent = format!(
        "[ $call != 1 ] || wait_for go
         [ $call != 2 ] || {{ echo '<promise>BLOCKED: no</promise>'; exit; }}\n{ONE}"
    );
    let world = FleetWorld::new(&agent).tasks(&["a"], "").shared().ready();
    let running = world.start(&["--land"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let world = world.terms("[land]\ncheck = [\"test -e never\"]");
    // The second start gets the trust that the first one waits for, and nothing else.
    let second = world.run(&["--land"]);
    assert!(second.code() == 1 && second.stderr.contains("is coordinated already"), "{second:#?}");
    let has = |check: &'static str| {
        move |world: &FleetWorld| world.record()["terms"]["land_checks"].to_string().contains(check)
    };
    world.until("the new check is recorded", has("never"));
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    let red = "red: `test -e never` fails on main with this work";
    assert!(world.why("a").starts_with(red), "{}", world.why("a"));
    assert_eq!(world.shown("main", "work-a"), "");

    let world = world.terms("[land]\ncheck = [\"test -e work-a\"]");
    world.crew(&["resume", "repo/a"]).success();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.shown("main", "work-a")), (0, "1\n3\n".into()), "{ran:#?}");
}

#[test]
fn work_in_the_fleets_folder_that_a_person_squashed_onto_main_is_found_there() {
    let agent = format!("echo more >> tasks/note; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").file("tasks/note", "one\n");
    let world = world.shared().ready();
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (13, "blocked".into()));
    world.sandbox.git(&["merge", "--quiet", "--squash", "crew/repo/a"]);
    let world = world.ready();
    world.crew(&["resume", "repo/a"]).success();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
    assert_eq!(world.git_there(&["log", "--format=%s", "main"]), "Tasks\nTasks\nBegin");
}

#[test]
fn a_task_builds_on_one_whose_work_was_merged_and_cleaned_away() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    world.sandbox.git(&["merge", "--quiet", "crew/repo/a"]);
    world.crew(&["fleet", "clean", "--yes"]).success();
    let world = world.tasks(&["b"], "after = [\"a\"]\nverify = [\"test -e work-a\"]").ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("b")), (0, "completed".into()), "{ran:#?}");
}

#[test]
fn the_work_of_a_local_fleet_is_pushed_before_a_node_continues_it() {
    let agent = format!("[ $task = b ] && {{ {ONE}; exit 0; }}; {TWO}");
    let world =
        FleetWorld::new(&agent).tasks(&["b"], "").tasks(&["a"], "max-iterations = 1").ready();
    assert_eq!(world.run(&[]).code(), 10);
    let world = world.tasks(&["a"], "max-iterations = 2").with_nodes();
    world
        .sandbox
        .write("tasks/d.md", "+++\nafter = \"b\"\nverify = [\"test -e work-b\"]\n+++\nDo d.\n");
    world.crew(&["resume", "repo/a"]).success();
    let running = world.start(&["--on", "nodes"]);
    for attempt in ["a.2", "d.1"] {
        world.until_noted(&format!("scripts/{attempt}"));
        let ran = world.on("second").runs(attempt).wait(LONG);
        assert_eq!(ran.code(), 0, "{attempt}: {ran:#?}");
        std::fs::write(world.note(&format!("status.{attempt}")), "done").unwrap();
    }
    let ran = running.wait(LONG);
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1]), "{ran:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n2\n");
    assert_eq!((world.state("a"), world.state("d")), ("completed".into(), "completed".into()));
}
