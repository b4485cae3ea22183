//! Many machines and one task: one of them works on it, another takes over what is left, and what
//! comes back from the dead pushes nothing.

use std::fs::{self, File};

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE};
use crate::lanes::side_by_side;
use crate::sandbox::Sandbox;

const MACHINES: [&str; 8] = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"];
/// A lease that stands still for so long counts as a dead machine's, in milliseconds.
const STALE: (&str, &str) = ("CREW_STALE_MS", "1000");
/// The job of a cluster, and the same job that the cluster has started again on another node.
const JOB: [(&str, &str); 1] = [("SLURM_JOB_ID", "7")];
const AGAIN: [(&str, &str); 2] = [JOB[0], ("SLURM_RESTART_COUNT", "1")];

#[test]
fn of_eight_machines_that_begin_a_task_at_once_one_works_on_it() {
    let world = FleetWorld::new(&format!("wait_for go; {ONE}")).tasks(&["a"], "").by_hand(&[]);
    let jobs = MACHINES.map(|name| world.on(name).job("a"));
    world.until("seven have left it", |_| jobs.iter().filter(|job| job.has_ended()).count() == 7);
    world.allow("go");
    let codes = jobs.map(|job| job.wait(LONG).code());
    assert_eq!(codes, [0; 8]);
    assert_eq!((world.begun("a"), world.state("a")), (vec![1], "completed".into()));
    assert_eq!(world.lease("a")["attempts"], 1);
    assert_eq!(world.work("a", "work-a"), "1\n");
    for name in ["m1", "home"] {
        assert_eq!(world.on(name).job("a").wait(LONG).code(), 0, "an end is an end");
    }
    assert_eq!(world.begun("a"), [1]);
}

/// Each iteration writes a line with its machine's name. The second one on `old` stays.
const SIGNED: &str = "if [ $MACHINE$iteration = old2 ]; then touch $NOTES/here; wait_for go; fi
echo \"$iteration $MACHINE\" >> work-a; [ $iteration -lt 3 ] || claim";

fn signed() -> FleetWorld {
    FleetWorld::with_faults(SIGNED)
        .tasks(&["a"], "max-iterations = 3\nverify = [\"grep -q 3 work-a\"]")
        .by_hand(&[])
}

/// The machine is stopped in the second iteration, another one takes the task, the first goes on.
fn stopped() {
    let world = signed();
    let old = world.on("old").job_with("a", &JOB);
    world.until_noted("here");
    old.signal(Signal::STOP);
    let new = world.on("new").job_with("a", &AGAIN).wait(LONG);
    assert_eq!(new.code(), 0, "{new:#?}");
    let (lease, tip) = (world.lease("a"), world.git_there(&["rev-parse", "fleet/repo/a"]));
    assert_eq!((&lease["attempts"], &lease["carried"]["completed"]), (&2.into(), &3.into()));

    old.signal(Signal::CONT);
    world.allow("go");
    let ended = old.wait(LONG);
    assert_eq!(ended.code(), 14, "{ended:#?}");
    assert_eq!((world.lease("a"), world.git_there(&["rev-parse", "fleet/repo/a"])), (lease, tip));
    assert_eq!(world.work("a", "work-a"), "1 old\n2 new\n3 new\n");
    assert_eq!(world.begun("a"), [1, 2, 2, 3]);
}

/// The machine is gone in the second iteration, and another one has only the task's third left.
fn gone() {
    let world = signed();
    let old = world.on("old").job_with("a", &JOB);
    world.until_noted("here");
    old.signal(Signal::KILL);
    old.wait(LONG);
    let new = world.on("new").job_with("a", &AGAIN).wait(LONG);
    assert_eq!(new.code(), 0, "{new:#?}");
    assert_eq!(world.begun("a"), [1, 2, 2, 3], "the limit of three is the task's");
    assert_eq!(world.work("a", "work-a"), "1 old\n2 new\n3 new\n");
}

/// The machine is stopped, another one takes the task and dies before its loop begins, and the
/// first one takes it back.
fn taken_back() {
    let setup = "setup = '[ $MACHINE = old ] || { touch $NOTES/held; sleep 600; }'";
    let world = FleetWorld::with_faults(SIGNED)
        .tasks(&["a"], "max-iterations = 4\nverify = [\"grep -q 3 work-a\"]")
        .terms(setup)
        .by_hand(&[]);
    let old = world.on("old").job_with("a", &JOB);
    world.until_noted("here");
    old.signal(Signal::STOP);
    let new = world.on("new").job_with("a", &AGAIN);
    world.until_noted("held");
    old.signal(Signal::CONT);
    world.allow("go");
    assert_eq!(old.wait(LONG).code(), 14);
    new.signal(Signal::KILL);
    new.wait(LONG);
    let again = world.on("old").job_with("a", &AGAIN).wait(LONG);
    assert_eq!((again.code(), world.state("a")), (0, "completed".into()), "{again:#?}");
}

#[test]
fn a_machine_that_is_gone_is_replaced_and_one_that_comes_back_is_refused() {
    side_by_side([stopped, gone, taken_back]);
}

/// A task is cancelled whose machine is gone.
fn cancelled_too_late() -> FleetWorld {
    let sandbox = Sandbox::new().with_faults().env(STALE.0, STALE.1);
    let world = FleetWorld::of(sandbox, SIGNED).tasks(&["a"], "").by_hand(&[]);
    let old = world.on("old").job_with("a", &JOB);
    world.until_noted("here");
    old.signal(Signal::KILL);
    old.wait(LONG);
    world.crew(&["fleet", "cancel", "a"]).success();
    assert_eq!(world.state("a"), "running");
    world
}

#[test]
fn a_cancel_is_obeyed_for_a_machine_that_is_gone_by_a_run_or_a_job_of_another_one() {
    let by_a_job = || {
        let world = cancelled_too_late();
        let other = world.on("new").job("a").wait(LONG);
        assert_eq!((other.code(), world.state("a")), (0, "running".into()), "{other:#?}");
        let job = world.on("new").job_with("a", &AGAIN).wait(LONG);
        assert_eq!((job.code(), world.state("a")), (14, "cancelled".into()), "{job:#?}");
    };
    let by_a_run = || {
        let world = cancelled_too_late();
        let ran = world.run(&["--on", "local"]);
        assert_eq!((ran.code(), world.state("a")), (10, "cancelled".into()), "{ran:#?}");
        assert!(!ran.stdout.contains("taken up"), "{ran:#?}");
    };
    let both: [fn(); 2] = [by_a_job, by_a_run];
    side_by_side(both);
}

#[test]
fn a_job_that_waits_for_another_ones_clone_ends_at_once_when_it_is_asked_to() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").by_hand(&[]);
    let folder = world.sandbox.root().join("m1/fleets/repo");
    fs::create_dir_all(&folder).unwrap();
    let lock = folder.join("clone.lock");
    let other = File::create(&lock).unwrap();
    other.lock().unwrap();
    let job = world.on("m1").job("a");
    let files = format!("/proc/{}/fd", job.pid().as_raw_nonzero());
    world.until("it waits for the lock", |_| {
        let open = fs::read_dir(&files).into_iter().flatten().flatten();
        open.filter_map(|it| fs::read_link(it.path()).ok()).any(|file| file == lock)
    });
    job.signal(Signal::TERM);
    let ended = job.wait(LONG);
    assert_eq!(ended.code(), 143, "{ended:#?}");
    assert_eq!(world.state("a"), "waiting");
}
