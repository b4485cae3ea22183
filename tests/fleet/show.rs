//! What `crew fleet show` says of a task: never less than how it stands, and where to look.

use super::{FleetWorld, LONG, ONE, TWO};

/// Has two lines, and fails with three on its output, one of them empty.
const FAILS: &str = "setup = '''echo fetching; echo\necho no such package >&2; exit 3'''";

impl FleetWorld {
    /// The page of a task: its home is `~`, and no line ends with a blank.
    #[track_caller]
    fn page(&self, task: &str) -> String {
        let page = self.crew(&["fleet", "show", task]).success();
        let page = page.replace(&self.sandbox.home().display().to_string(), "~");
        page.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
    }
}

#[test]
fn a_task_that_ended_before_its_loop_shows_why_and_the_end_of_its_log_and_one_that_waits_for_what()
{
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "")
        .tasks(&["later"], "after = [\"a\"]")
        .terms(FAILS)
        .ready();
    assert_eq!(world.run(&[]).code(), 10);
    insta::assert_snapshot!(world.page("a"), @"
    task a of fleet repo, branch fleet/repo/a
    needs you: error: setup `echo fetching; echo echo no such package >&2; exit 3` exits 3: fetching; no such package
      next    crew fleet run tasks --retry
              once its cause is gone

    the end of ~/.local/state/crew/fleets/repo/tasks/a.log:
      crew: setup: fetching
      crew: setup:
      crew: setup: no such package
      crew: a is error: setup `echo fetching; echo echo no such package >&2; exit 3` exits 3: fetching; no such package
    ");
    insta::assert_snapshot!(world.page("later"), @"
    task later of fleet repo, branch fleet/repo/later
    waits: after a, which needs you
    ");
}

#[test]
fn a_task_of_a_shared_fleet_also_shows_its_journal() {
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "")
        .tasks(&["later"], "after = [\"a\"]")
        .terms(FAILS)
        .shared()
        .ready();
    assert_eq!(world.run(&["--push"]).code(), 10);
    let page = world.page("a");
    let journal = "\na is error after 0 iterations\na prepares on ";
    let log =
        "\nthe end of ~/.local/state/crew/fleets/repo/tasks/a.log:\n  crew: setup: fetching\n";
    assert!(page.contains(journal) && page.contains(log), "{page}");
    insta::assert_snapshot!(world.page("later"), @"
    task later of fleet repo, branch fleet/repo/later
    waits: after a, which needs you

    later waits after 0 iterations
    ");
}

#[test]
fn a_task_that_only_a_person_may_land_names_the_commands_by_which_a_retry_finds_it_landed() {
    let agent = format!("[ $task != a ] || echo new > tasks/new.md; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--land"]).code(), 13);
    let page = world.page("a");
    let steps =
        "  next    git fetch origin && git merge origin/main && git merge origin/fleet/repo/a
          on main, if you want what it changes; then push
  then    crew fleet run tasks --retry
          finds its work there

loop ";
    assert!(page.contains(steps), "{page}");
    world.sandbox.git(&["fetch", "--quiet", "origin"]);
    world.sandbox.git(&["merge", "--quiet", "origin/fleet/repo/a"]);
    world.sandbox.git(&["push", "--quiet", "origin", "main"]);
    world.run(&["--retry"]);
    assert_eq!((world.state("a"), world.begun("a")), ("completed".into(), vec![1]));
    assert!(!world.page("a").contains("--retry"), "{}", world.page("a"));
}

#[test]
fn a_task_that_was_given_up_because_its_process_dies_names_one_command() {
    let world = FleetWorld::new("wait_for never").tasks(&["a"], "").ready();
    let running = world.start(&[]);
    for begun in 1..=3 {
        world.until("it works", |world| world.begun("a").len() == begun);
        world.kill_job("a");
    }
    assert_eq!((running.wait(LONG).code(), world.state("a")), (10, "error".into()));
    let page = world.page("a");
    let commands: Vec<&str> = page.lines().filter(|line| line.contains("fleet run")).collect();
    assert_eq!(commands, ["  next    crew fleet run tasks --retry"], "{page}");
}

#[test]
fn what_a_rebase_brings_to_the_branch_of_a_task_counts_as_none_of_its_loops_work() {
    let world = FleetWorld::new(&format!("wait_for moved; {TWO}")).tasks(&["a"], "").shared();
    let world = world.ready();
    let running = world.start(&["--push"]);
    world.until("it works", |world| world.begun("a") == [1]);
    let world = world.file("theirs", "x\n").ready();
    world.allow("moved");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.work("a", "theirs")), (0, "x\n".into()), "{ran:#?}");
    let page = world.page("a");
    assert!(page.contains("commits 2 on fleet/repo/a") && !page.contains("theirs"), "{page}");
    let diff = world.crew(&["diff", world.lease("a")["loop_id"].as_str().unwrap()]).success();
    assert!(diff.contains("work-a") && !diff.contains("theirs"), "{diff}");
}

/// A check that fails where a branch lands, and says for the how-manieth time.
const RED: &str = r"[land]
check = ['case $PWD in */land) echo >> $NOTES/red; echo no tax $(wc -l < $NOTES/red); exit 1; esac']";

#[test]
fn a_task_whose_landing_is_red_shows_what_failed_and_the_end_of_its_output() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "max-iterations = 3").terms(RED).shared();
    let world = world.ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a")), (13, vec![1, 2]), "{ran:#?}");
    let page = world.page("a");
    let said = "\nbefore its landing on main, `case $PWD in */land) echo >> $NOTES/red; \
                echo no tax $(wc -l < $NOTES/red); exit 1; esac` failed and its output ended with:\n  \
                no tax 2\n\nloop ";
    assert!(page.contains(said), "{page}");
}

#[test]
fn a_red_landing_that_cannot_be_sent_back_shows_the_end_of_its_log() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "max-iterations = 1").terms(RED).shared();
    let world = world.ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a")), (13, vec![1]), "{ran:#?}");
    let page = world.page("a");
    let (_, log) = page.split_once("\nthe end of ~/.local/state/crew/").expect("its log");
    assert!(log.contains("\n  crew: red: no tax 1\n"), "{page}");
}

#[test]
fn a_task_whose_loop_ended_it_names_its_way_out_once() {
    let world = FleetWorld::new(super::answers::ASKS).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 13);
    let page = world.page("a");
    assert_eq!(page.matches("crew fleet run tasks --retry").count(), 1, "{page}");
}
