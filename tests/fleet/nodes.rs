//! Attempts on the nodes of a cluster: a lost one is replaced, one that returns pushes nothing, and
//! what a node cannot push now is pushed later.

use std::time::Duration;

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::sandbox::write_executable;
use crate::side_by_side::side_by_side;
use crate::spawned::Running;

/// Each iteration writes a line with its node's name. The second one on `old` does not end.
const SIGNED: &str = "if [ $NODE$iteration = old2 ]; then touch $NOTES/here; wait_for go; fi
echo \"$iteration $NODE\" >> work-a; [ $iteration -lt 3 ] || claim";
const VERIFY: &str = "max-iterations = 3\nverify = [\"grep -q 3 work-a\"]";

fn signed() -> FleetWorld {
    FleetWorld::new(SIGNED).tasks(&["a"], VERIFY).with_nodes()
}

/// All refs of the remote but the record, which is renewed.
fn refs(world: &FleetWorld) -> String {
    let refs = world.git_there(&["for-each-ref"]);
    refs.lines().filter(|line| !line.ends_with("/record")).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn killed(running: Running) {
    running.signal(Signal::KILL);
    assert_eq!(running.wait(LONG).status.code(), None);
}

/// The node is stopped in the second iteration, the cluster starts the job on another node, and the
/// first one continues.
fn stopped() {
    let world = signed();
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    let old = world.on("old").runs("a.1");
    world.until_noted("here");
    old.signal(Signal::STOP);
    let new = world.on("new").runs("a.1").wait(LONG);
    assert_eq!(new.code(), 0, "{new:#?}");
    let before = refs(&world);
    old.signal(Signal::CONT);
    world.allow("go");
    let ended = old.wait(LONG);
    assert_eq!(ended.code(), 14, "{ended:#?}");
    assert_eq!(refs(&world), before);
    let ran = coordinator.wait(LONG);
    assert_eq!((ran.code(), world.attempt("a")), (0, 1), "{ran:#?}");
    assert_eq!(world.work("a", "work-a"), "1 old\n2 new\n3 new\n");
    assert_eq!(world.begun("a"), [1, 2, 2, 3]);
}

/// The node is lost in the second iteration, and the coordinator starts another attempt, which has
/// only the task's third iteration left.
fn gone() {
    let world = signed();
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    let old = world.on("old").runs("a.1");
    world.until_noted("here");
    killed(old);
    std::fs::write(world.note("status.a.1"), "failed").unwrap();
    world.until_noted("scripts/a.2");
    let new = world.on("new").runs("a.2").wait(LONG);
    assert_eq!(new.code(), 0, "{new:#?}");
    let ran = coordinator.wait(LONG);
    assert_eq!((ran.code(), world.attempt("a")), (0, 2), "{ran:#?}");
    assert_eq!(world.begun("a"), [1, 2, 2, 3], "the limit of three is the task's");
    assert_eq!(world.work("a", "work-a"), "1 old\n2 new\n3 new\n");
}

/// The node is stopped, another node takes over the attempt and dies before its loop begins, and
/// the first one takes it over again.
fn taken_back() {
    let world = FleetWorld::new(SIGNED)
        .tasks(&["a"], "max-iterations = 4\nverify = [\"grep -q 3 work-a\"]")
        .terms("setup = '[ $NODE = old ] || { touch $NOTES/held; sleep 600; }'")
        .with_nodes();
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    let old = world.on("old").runs("a.1");
    world.until_noted("here");
    old.signal(Signal::STOP);
    let new = world.on("new").runs("a.1");
    world.until_noted("held");
    old.signal(Signal::CONT);
    world.allow("go");
    assert_eq!(old.wait(LONG).code(), 14);
    killed(new);
    let again = world.on("old").runs("a.1").wait(LONG);
    assert_eq!(again.code(), 0, "{again:#?}");
    let ran = coordinator.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
}

#[test]
fn a_lost_node_is_replaced_and_pushes_nothing_when_it_returns() {
    side_by_side([stopped, gone, taken_back]);
}

#[test]
fn a_restarted_coordinator_adopts_running_jobs_and_submits_none_again() {
    let world = FleetWorld::new(&format!("wait_for go; {TWO}")).tasks(&["a"], "").with_nodes();
    let first = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    let node = world.on("node").runs("a.1");
    world.until("a works", |world| world.begun("a") == [1]);
    killed(first);
    let next = world.start(&["--on", "nodes"]);
    world.until("it knows the job", |_| next.stdout().contains("adopted"));
    world.allow("go");
    assert_eq!(node.wait(LONG).code(), 0);
    let ran = next.wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    let scripts = std::fs::read_dir(world.note("scripts")).unwrap().count();
    assert_eq!((scripts, world.attempt("a")), (1, 1));
}

#[test]
fn a_node_begins_no_iteration_before_its_last_one_is_at_the_remote() {
    let agent = format!("[ $iteration -ne 1 ] || touch $NOTES/down; {TWO}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").with_nodes().by_ssh();
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    let node = world.on("node").runs("a.1");
    world.until_refused(10);
    assert_eq!(world.begun("a"), [1]);
    world.restore_remote();
    assert_eq!(node.wait(LONG).code(), 0);
    let ran = coordinator.wait(LONG);
    assert_eq!((ran.code(), world.begun("a"), world.attempt("a")), (0, vec![1, 2], 1), "{ran:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n2\n");
}

#[test]
fn a_signal_ends_cloning_on_a_new_node_and_the_next_process_clones_again() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").with_nodes().by_ssh();
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    killed(coordinator);
    world.allow("hangs");
    let cut_off = world.on("node").runs("a.1");
    world.until_noted("hung");
    cut_off.signal(Signal::TERM);
    let ended = cut_off.wait(LONG);
    assert_ne!(ended.code(), 0, "{ended:#?}");
    std::fs::remove_file(world.note("hangs")).unwrap();
    let ran = world.on("node").runs("a.1").wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
}

#[test]
fn a_branch_that_the_remote_refuses_from_a_node_ends_its_task_with_the_remotes_message() {
    let world = FleetWorld::new(TWO).tasks(&["a"], "").with_nodes();
    let refuses = "#!/bin/sh\ncase $1 in refs/heads/fleet/repo/a/*)\n\
                   echo 'no branches of a' >&2; exit 1 ;; esac\n";
    let hook = world.hub().join("hooks/update");
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    write_executable(&hook, refuses);
    let node = world.on("node").runs("a.1").wait(LONG);
    assert_eq!((node.code(), world.begun("a")), (13, vec![1]), "{node:#?}");
    let ran = coordinator.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    assert!(world.why("a").contains("no branches of a"), "{}", world.why("a"));
}

#[test]
fn a_node_leaves_a_local_fleet_of_the_same_name_alone() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let folder = world.sandbox.crew_home().join("fleets/repo");
    let kept = || {
        ["fleet.json", "attempts/a.1.report.json"].map(|it| std::fs::read(folder.join(it)).unwrap())
    };
    let (before, tip) = (kept(), world.sandbox.git(&["rev-parse", "refs/remotes/crew/repo/a"]));
    let world = world.with_nodes();
    // Another machine's fleet of the same name, whose job comes to this one.
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["fleet", "run", "tasks", "--yes", "--on", "nodes"]);
    command.env("CREW_HOME", world.sandbox.root().join("elsewhere"));
    let coordinator = Running::start(command, None);
    world.until_noted("scripts/a.1");
    let home = world.sandbox.crew_home().display().to_string();
    let node = world.on("unused").runs_with("a.1", &[("CREW_HOME", &home)]).wait(LONG);
    let own = world.shown("fleet/repo/a/1", "work-a");
    assert_eq!((node.code(), own, world.begun("a")), (0, "1\n".into(), vec![1, 1]), "{node:#?}");
    assert!(kept() == before, "its record and reports are others now");
    assert_eq!(
        world.sandbox.git(&["-C", &world.clone_of("a").display().to_string(), "rev-parse", "HEAD"]),
        tip
    );
    drop(coordinator);
}

/// A batch system of three commands that runs each job at once, on a node with a home of its own.
const BATCH: &str = r#"[executor.batch]
submit = '''
job="$NOTES/jobs"/{name}; mkdir -p "$job" && cp {script} "$job/script" || exit
cat > "$job/node" <<'NODE'
CREW_HOME=$1/home sh "$1/script" > "$1/log" 2>&1 &
echo $! > "$1/pid"; wait $!; echo $? > "$1/code"
NODE
setsid -f sh "$job/node" "$job" < /dev/null > /dev/null 2>&1
until test -s "$job/pid"; do sleep 0.05; done; echo {name}
'''
status = '''
job="$NOTES/jobs"/{job}
if test -e "$job/code"; then echo done; elif kill -0 "$(cat "$job/pid")"; then echo running; else echo failed; fi
'''
cancel = '''cd "$NOTES/jobs"/{job} && kill "$(cat pid)"'''
"#;

/// Three iterations; a task's name says what else it does. `rash` once kills its crew.
const KINDS: &str = "echo $iteration >> work-$task
case $task in
blocked) echo '<promise>BLOCKED: a key</promise>'; exit ;;
rash) [ $call != 2 ] || kill -9 $PPID ;;
esac
[ $iteration -lt 3 ] || claim";

#[test]
#[ignore = "long"]
fn twenty_tasks_run_by_three_commands_and_a_killed_one_starts_again() {
    let usual: Vec<String> = (0..17).map(|number| format!("task{number:02}")).collect();
    let usual: Vec<&str> = usual.iter().map(String::as_str).collect();
    let world = FleetWorld::new(KINDS)
        .tasks(&usual, "max-iterations = 4")
        .tasks(&["blocked", "rash"], "max-iterations = 4")
        .tasks(&["short"], "max-iterations = 2")
        .terms("slots = 6")
        .settings(BATCH)
        .shared()
        .ready();
    world.sandbox.put_crew_on_the_path();
    let jobs = || std::fs::read_dir(world.note("jobs")).unwrap().count();
    let ran = world.start(&["--on", "batch"]).wait(Duration::from_secs(300));
    assert_eq!(ran.code(), 13, "{ran:#?}");
    for task in &usual {
        assert_eq!((*task, world.state(task)), (*task, "completed".into()), "{}", world.task(task));
        assert_eq!((*task, world.begun(task)), (*task, vec![1, 2, 3]));
        assert_eq!(
            world.shown(&format!("fleet/repo/{task}/1"), &format!("work-{task}")),
            "1\n2\n3\n"
        );
    }
    let ends = ["blocked", "short", "rash"].map(|task| world.state(task));
    assert_eq!(ends, ["blocked", "exhausted", "completed"], "{ran:#?}");
    assert_eq!((world.begun("rash"), world.attempt("rash")), (vec![1, 2, 2, 3], 2));
    assert_eq!(world.shown("fleet/repo/rash/2", "work-rash"), "1\n2\n3\n");
    assert_eq!(jobs(), 21, "one more than there are tasks");
    let again = world.run(&["--on", "batch"]);
    assert_eq!((again.code(), jobs()), (13, 21), "{again:#?}");
}

#[test]
fn a_cancel_survives_a_system_that_forgets_it_and_jobs_that_the_system_ends_restart() {
    let agent = format!("[ $call != 1 ] || wait_for never; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["stays", "left"], "").with_nodes();
    let coordinator = world.start(&["--on", "nodes"]);
    let jobs = ["stays.1", "left.1"].map(|job| {
        world.until_noted(&format!("scripts/{job}"));
        world.on("old").runs(job)
    });
    world.until("both work", |world| world.begun("stays") == [1] && world.begun("left") == [1]);
    world.crew(&["cancel", "repo/stays"]).success();
    world.until_noted("status.stays.1");
    world.until("the remote has the request", |world| {
        world.git_there(&["for-each-ref", "refs/crew/repo/request"]).contains("/stays")
    });
    killed(coordinator);
    // The system loses all that it knew, ends one job, and begins the other one again.
    std::fs::remove_file(world.note("status.stays.1")).unwrap();
    std::fs::write(world.note("status.left.1"), "cancelled").unwrap();
    jobs.into_iter().for_each(killed);
    let again = world.on("new").runs("stays.1").wait(LONG);
    assert_eq!((again.code(), world.begun("stays")), (14, vec![1]), "{again:#?}");
    let next = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/left.2");
    assert_eq!(world.on("new").runs("left.2").wait(LONG).code(), 0);
    std::fs::write(world.note("status.left.2"), "done").unwrap();
    let ran = next.wait(LONG);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_eq!(["stays", "left"].map(|task| world.state(task)), ["cancelled", "completed"]);
    assert_eq!((world.begun("stays"), world.begun("left")), (vec![1], vec![1, 1]));
}

#[test]
fn a_cancel_that_the_system_rejects_is_repeated_until_it_is_accepted() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").with_nodes();
    world.allow("away");
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    world.crew(&["cancel", "repo/a"]).success();
    world.until("it was tried twice", |world| world.noted("refused") == "a.1\na.1\n");
    std::fs::remove_file(world.note("away")).unwrap();
    let ran = coordinator.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (14, "cancelled".into()), "{ran:#?}");
    assert_eq!(ran.stdout.matches("could not be ended").count(), 1, "{ran:#?}");
}

#[test]
fn the_longest_prompt_reaches_a_node_and_its_report_returns_whatever_it_contains() {
    // In JSON these have two, two and six bytes.
    let prompt = "\"\\\u{1}".repeat(85_000);
    let world = FleetWorld::new(ONE).file("tasks/a.md", &prompt).with_nodes();
    let coordinator = world.start(&["--on", "nodes"]);
    world.until_noted("scripts/a.1");
    assert_eq!(world.on("node").runs("a.1").wait(LONG).code(), 0);
    std::fs::write(world.note("status.a.1"), "done").unwrap();
    let ran = coordinator.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
    assert!(world.prompt("a", 1).matches("\"\\").count() >= 85_000);
}
