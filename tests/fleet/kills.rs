//! `kill -9` of a job and of the crew that runs the fleet, at each moment of a task: nothing is
//! done twice beyond the iteration that was cut off, nothing is lost, and every task ends.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::lanes::side_by_side;
use crate::sandbox::poll_until;

/// Stays here the first time, for as long as the test does.
pub(super) const HOLD: &str = "if mkdir $NOTES/here 2>/dev/null; then
while test -d $NOTES; do sleep 0.1; done & echo $! > $NOTES/holder; wait; fi";

/// A moment at which a job is ended, and the iterations that begin in all.
#[derive(Debug)]
struct Moment {
    name: &'static str,
    agent: String,
    verify: String,
    setup: String,
    git: String,
    begun: &'static [u32],
    work: &'static str,
    /// What is held is a command of the user's, and no step of crew's own.
    is_ended: bool,
}

fn moments() -> [Moment; 7] {
    let usual = |name, begun| Moment {
        name,
        agent: TWO.to_owned(),
        verify: "grep -q 2 work-a".to_owned(),
        setup: "true".to_owned(),
        git: String::new(),
        begun,
        work: "1\n2\n",
        is_ended: false,
    };
    [
        Moment { setup: HOLD.to_owned(), is_ended: true, ..usual("setup", &[1, 2]) },
        Moment { agent: format!("{HOLD}; {TWO}"), is_ended: true, ..usual("agent", &[1, 1, 2]) },
        Moment {
            agent: format!("[ $iteration -eq 1 ] || {{ {HOLD}; }}; {TWO}"),
            is_ended: true,
            ..usual("agent, later", &[1, 2, 2])
        },
        Moment {
            verify: format!("grep -q 2 work-a && {{ {HOLD}; }}"),
            work: "1\n2\n2\n",
            is_ended: true,
            ..usual("check", &[1, 2, 2])
        },
        Moment {
            git: format!("case \" $* \" in *' update-ref -m commit: '*) {HOLD} ;; esac"),
            ..usual("commit", &[1, 2])
        },
        Moment {
            git: format!(
                "grep -qs 'begin a 2' $NOTES/log && case \" $* \" in *' update-ref -m commit: '*) {HOLD} ;; esac"
            ),
            ..usual("the last commit", &[1, 2])
        },
        Moment {
            git: format!(
                "[ -n \"$GIT_INDEX_FILE\" ] || case \" $* \" in *' update-index --add --remove --replace '*)
                if [ $(/usr/bin/git rev-list --count HEAD) = 3 ]; then
                test -d $NOTES/here || touch \"$(/usr/bin/git rev-parse --git-dir)/index.lock\"
                {HOLD}; fi ;; esac"
            ),
            ..usual("the index", &[1, 2])
        },
    ]
}

fn killed_at(moment: &Moment) {
    let world = FleetWorld::new(&moment.agent)
        .tasks(&["a"], &format!("verify = ['''{}''']", moment.verify))
        .terms(&format!("setup = '''{}'''", moment.setup))
        .ready();
    world.sandbox.program("git", &format!("{}\nexec /usr/bin/git \"$@\"", moment.git));
    let running = world.start(&[]);
    world.until("it is held", |world| world.noted("holder").ends_with('\n'));
    world.kill_job("a");
    let ran = running.wait(LONG);
    let (name, lease) = (moment.name, world.lease("a"));
    assert_eq!((name, ran.code()), (name, 0), "{ran:#?}\n{lease:#}");
    assert_eq!((name, &*world.begun("a")), (name, moment.begun));
    assert_eq!((name, &*world.work("a", "work-a")), (name, moment.work));
    assert_eq!((name, &lease["attempts"]), (name, &2.into()));
    if moment.is_ended {
        holder_is_gone(name, &world);
    }
}

/// What a killed job had started is gone once the next attempt is over.
#[track_caller]
pub(super) fn holder_is_gone(name: &str, world: &FleetWorld) {
    let holder = format!("/proc/{}", world.noted("holder").trim());
    let expected = format!("{name}: what the killed job had started is gone");
    poll_until(&expected, || !Path::new(&holder).exists());
}

#[test]
fn a_job_killed_at_any_moment_is_taken_up_and_repeats_at_most_the_iteration_that_was_cut_off() {
    side_by_side(moments().map(|moment| move || killed_at(&moment)));
}

#[test]
fn a_rebase_that_a_killed_job_had_begun_is_undone_and_made_again_with_all_work() {
    let world = FleetWorld::new(&format!("[ $iteration -gt 1 ] || wait_for moved; {TWO}"))
        .file(".gitattributes", "*.held filter=held\n")
        .tasks(&["a"], "verify = [\"grep -q 2 work-a\"]")
        .shared()
        .ready();
    world.sandbox.git(&["config", "filter.held.smudge", &format!("{HOLD}; cat")]);
    let running = world.start(&["--push"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let world = world.file("new.held", "new\n").ready();
    world.allow("moved");
    world.until("it is held", |world| world.noted("holder").ends_with('\n'));
    assert!(world.sandbox.file(".git/worktrees/a/rebase-merge").exists());
    world.kill_job("a");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(["work-a", "new.held"].map(|it| world.work("a", it)), ["1\n2\n", "new\n"]);
}

#[test]
fn jobs_outlive_the_crew_that_runs_the_fleet_and_the_next_one_joins_them() {
    let world = FleetWorld::new(&format!("wait_for go; {TWO}"))
        .tasks(&["a", "b"], "")
        .terms("slots = 1")
        .ready();
    let first = world.start(&[]);
    world.until("a works", |world| world.begun("a") == [1]);
    first.signal(Signal::KILL);
    assert_eq!(first.wait(LONG).status.code(), None);
    let in_line = world.on("home").job("b");
    world.until("b is in line", |world| world.phase("b") == "lines");
    world.kill_job("b");
    in_line.wait(LONG);

    let next = world.start(&[]);
    let watches = world.start(&[]);
    world.until("b is taken up", |world| {
        world.lease("b")["attempts"] == 2 || world.state("b") == "waiting"
    });
    world.allow("go");
    let (next, watches) = (next.wait(LONG), watches.wait(LONG));
    assert_eq!((next.code(), watches.code()), (0, 0), "{next:#?}\n{watches:#?}");
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1, 2]));
    assert_eq!(world.lease("a")["attempts"], 1);
    assert_eq!(world.most_at_once(), 1);
}

#[test]
fn what_ran_here_when_the_machine_was_started_anew_is_taken_up_at_once() {
    let agent = format!("[ $call -gt 1 ] || {{ touch $NOTES/here.$task; wait_for go; }}; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "").ready();
    let running = world.start(&["--slots", "2"]);
    for note in ["here.a", "here.b"] {
        world.until_noted(note);
    }
    running.signal(Signal::KILL);
    running.wait(LONG);
    for task in ["a", "b"] {
        world.kill_job(task);
        let file = format!("fleets/repo/tasks/{task}.json");
        let file = world.sandbox.crew_home().join(file);
        let seat = world.lease(task)["state"]["seat"].as_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(&seat, "of another boot")).unwrap();
    }
    let job = world.on("home").job("a").wait(LONG);
    assert_eq!((job.code(), world.begun("a")), (0, vec![1, 1]), "{job:#?}");
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("b")), (0, vec![1, 1]), "{ran:#?}");
}

/// The records that an attempt of two iterations writes in its life.
const RECORDS: u32 = 7;

/// The attempt is ordered to die once it has written its record for this time; the next one is
/// not. Returns whether it died.
fn cut_off_after(record: u32) -> bool {
    let world =
        FleetWorld::with_faults(TWO).tasks(&["a"], "verify = [\"grep -q 2 work-a\"]").by_hand(&[]);
    let fault = format!("record.after#{record}=kill");
    let first = world.on("home").job_with("a", &[("CREW_FAULT", &fault)]).wait(LONG);
    let signal = first.status.signal();
    assert!(signal == Some(Signal::KILL.as_raw()) || first.status.success(), "{first:#?}");
    let ran = world.on("home").job("a").wait(LONG);
    assert_eq!(ran.code(), 0, "{record}: {ran:#?}");
    let begun = world.begun("a");
    assert!([&[1, 2][..], &[1, 1, 2], &[1, 2, 2]].contains(&&*begun), "{record}: {begun:?}");
    let numbers: Vec<String> = begun.iter().map(|number| format!("{number}\n")).collect();
    assert_eq!((record, world.work("a", "work-a")), (record, numbers.concat()));
    assert_eq!((record, &world.lease("a")["carried"]["completed"]), (record, &2.into()));
    signal.is_some()
}

#[test]
fn an_attempt_cut_off_at_any_of_its_records_is_carried_on_and_its_work_is_pushed_once() {
    // One more than there are: it must find none, or a record was left out here.
    side_by_side((1..=RECORDS + 1).map(|record| {
        move || assert_eq!((record, cut_off_after(record)), (record, record <= RECORDS))
    }));
}
