//! What a person orders of a fleet while it runs: pause, cancel, and a message to every agent.

use std::path::Path;

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::child::Running;
use crate::door::assert_gone;
use crate::run::claude::{answer, limited};

/// Two tasks at work on two slots, each in its first iteration until the note `go`, and one that
/// waits.
fn at_work(terms: &str) -> (FleetWorld, Running) {
    let world = FleetWorld::new(&format!("wait_for go; {TWO}"))
        .tasks(&["a", "b", "c"], &format!("verify = [\"grep -q 2 work-*\"]\n{terms}"))
        .terms("slots = 2")
        .ready();
    let running = world.start(&[]);
    world.until("two work", |world| world.noted("log").lines().count() == 2);
    (world, running)
}

#[test]
fn a_pause_lets_running_iterations_end_and_nothing_begin_until_the_fleet_is_run_again() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "pause"]).success();
    world.allow("go");
    let paused = running.wait(LONG);
    assert_eq!(paused.code(), 130, "{paused:#?}");
    assert_eq!(["a", "b", "c"].map(|task| world.begun(task)), [vec![1], vec![1], vec![]]);
    assert_eq!(world.work("a", "work-a"), "1\n", "the iteration that ended is kept");
    for task in ["a", "b"] {
        assert!(
            paused.stdout.contains(&format!("] {task}              is paused\n")),
            "{paused:#?}"
        );
    }
    let by_hand = world.on("home").job("c").wait(LONG);
    assert_eq!((by_hand.code(), world.begun("c")), (130, vec![]), "{by_hand:#?}");

    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!(["a", "b", "c"].map(|task| world.begun(task)), [[1, 2]; 3]);
}

#[test]
fn a_pause_now_breaks_the_running_iterations_off_and_they_are_repeated() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "pause", "--now"]).success();
    let paused = running.wait(LONG);
    assert_eq!(paused.code(), 130, "{paused:#?}");
    world.allow("go");
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!(world.begun("a"), [1, 1, 2]);
    assert_eq!(
        ["a", "b", "c"].map(|task| world.work(task, &format!("work-{task}"))),
        ["1\n2\n"; 3]
    );
}

#[test]
fn a_cancelled_task_ends_and_the_others_do_not() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "cancel", "b", "c"]).success();
    assert_eq!(world.state("c"), "cancelled", "nobody works on it");
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let states =
        [("a", "completed".to_owned()), ("b", "cancelled".into()), ("c", "cancelled".into())];
    assert_eq!(world.states(&["a", "b", "c"]), states);
    assert_eq!((world.begun("b"), world.begun("c")), (vec![1], vec![]));
    assert_eq!(world.work("b", "work-b"), "1\n", "its work is kept");
}

#[test]
fn a_cancel_of_all_now_ends_everything_and_no_job_undoes_it() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "cancel", "--now", "--reason", "enough"]).success();
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 14, "{ran:#?}");
    let log = world.noted("log");
    world.allow("go");
    for task in ["a", "b", "c"] {
        let job = world.on("home").job(task).wait(LONG);
        assert_eq!((task, job.code(), world.state(task)), (task, 14, "cancelled".to_owned()));
    }
    assert_eq!(world.noted("log"), log, "nothing runs any more");
    assert!(world.why("c").contains("enough"), "{}", world.why("c"));
    let again = world.run(&[]);
    assert_eq!((again.code(), world.noted("log")), (14, log), "{again:#?}");
    assert!(again.stdout.contains("\nfleet repo, cancelled "), "{again:#?}");
    let more = world.tasks(&["d"], "").run(&[]);
    assert_eq!(more.code(), 10, "a new task is not cancelled: {more:#?}");
    assert!(more.stdout.contains("\nfleet repo    1 of 4 completed"), "{more:#?}");
}

#[test]
fn what_a_person_cancelled_stays_so_though_the_fleet_gets_a_remote() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "pause", "--now"]).success();
    assert_eq!(running.wait(LONG).code(), 130);
    world.crew(&["fleet", "cancel", "b"]).success();
    assert_eq!(world.state("b"), "cancelled");
    let status = world.crew(&["status", "--all"]).success();
    let of_b = status.lines().find(|line| line.contains("Do task b.")).unwrap_or_default();
    assert!(of_b.contains(" cancelled "), "its loop does not wait: {status}");
    world.allow("go");
    let world = world.shared().ready();
    let dry = world.crew(&["fleet", "run", "tasks", "--push", "--dry-run"]).success();
    assert!(dry.contains("fleet/repo/a") && !dry.contains("fleet/repo/b"), "{dry}");
    assert!(dry.contains("refs/crew/repo/_fleet") && !dry.contains("_land"), "{dry}");
    let ran = world.run(&["--push"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let states = ["a", "b", "c"].map(|task| world.state(task));
    assert_eq!(states, ["completed", "cancelled", "completed"]);
    assert_eq!(world.begun("b"), [1]);
}

#[test]
fn a_task_that_needs_a_person_can_be_given_up() {
    let world = FleetWorld::new("echo '<promise>BLOCKED: which?</promise>'").tasks(&["a"], "");
    let world = world.ready();
    assert_eq!((world.run(&[]).code(), world.state("a")), (13, "blocked".into()));
    let all = world.crew(&["fleet", "cancel"]);
    assert!(all.stderr.contains("there is nothing to cancel"), "{all:#?}");
    assert_eq!(world.state("a"), "blocked", "only by its name");
    world.crew(&["fleet", "cancel", "a"]).success();
    assert_eq!(world.state("a"), "cancelled");
}

#[test]
fn ctrl_c_breaks_off_also_what_an_earlier_crew_started_but_not_what_another_runs() {
    let (world, running) = at_work("");
    running.signal(Signal::KILL);
    running.wait(LONG);
    let runs = world.start(&[]);
    world.until("it has joined", |_| runs.stdout().contains("] b "));
    let watches = world.start(&[]);
    world.until("it watches", |_| watches.stdout().contains("only watches"));
    watches.signal(Signal::INT);
    assert_eq!(watches.wait(LONG).code(), 130);
    assert_eq!(["a", "b"].map(|task| world.state(task)), ["running"; 2]);

    runs.signal(Signal::INT);
    let ran = runs.wait(LONG);
    assert_eq!(ran.code(), 130, "{ran:#?}");
    assert_eq!(["a", "b", "c"].map(|task| world.state(task)), ["waiting"; 3]);
    world.allow("go");
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    // As with any loop, what Ctrl-C breaks off counts as an iteration, and its work is kept.
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1, 2]));
    assert_eq!(["a", "b"].map(|task| world.lease(task)["attempts"].clone()), [2, 2]);
}

#[test]
fn a_message_to_the_fleet_is_in_the_next_prompt_of_every_task_once() {
    let (world, running) = at_work("");
    world.crew(&["tell", "--fleet", "repo", "Mind the gap"]).success();
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let reads = |task, call| world.prompt(task, call).matches("Mind the gap").count();
    let read = ["a", "b", "c"].map(|task| [reads(task, 1), reads(task, 2)]);
    assert_eq!(read, [[0, 1], [0, 1], [1, 0]]);
}

#[test]
fn an_order_without_a_name_reaches_this_repositorys_fleet_alone_from_any_of_its_trees() {
    let world = FleetWorld::new(TWO).tasks(&["a"], "verify = [\"grep -q 2 work-*\"]").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let root = world.sandbox.root();
    let (other, outside) = (root.join("other"), root.join("outside"));
    std::fs::create_dir_all(&outside).unwrap();
    world.sandbox.git(&["init", "--quiet", &other.display().to_string()]);
    let tree = world.sandbox.repository().with_extension("worktrees").join("fleet/repo/a");
    let within = |folder: &Path, arguments: &[&str]| {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.args(arguments).current_dir(folder);
        Running::start(command, None).wait(LONG)
    };
    for folder in [&tree, &outside] {
        let told = within(folder, &["fleet", "status"]).success();
        assert!(told.starts_with("fleet repo "), "{}: {told}", folder.display());
    }
    let repository = std::fs::canonicalize(world.sandbox.repository()).unwrap();
    let there = format!("repo ({})", repository.display());
    for order in [&["fleet", "status"][..], &["fleet", "pause"], &["fleet", "cancel", "a"]] {
        let refused = within(&other, order);
        let expected = format!(
            "crew: there is no fleet of this repository\n\
             hint: crew fleet status NAME, or --fleet NAME with any other command, means one of these: {there}\n"
        );
        assert_eq!((refused.code(), refused.stderr), (1, expected), "{order:?}");
    }
    let named = within(&other, &["fleet", "pause", "--fleet", "repo"]);
    let expected = "crew: there is nothing to pause: every task of the fleet repo has ended\n";
    assert!(named.stderr.starts_with(expected), "{named:#?}");
    let unknown = within(&other, &["fleet", "status", "shop"]);
    let expected = format!("crew: there is no fleet shop\nhint: name one of these: {there}\n");
    assert_eq!((unknown.code(), unknown.stderr), (1, expected));
}

#[test]
fn the_status_of_loops_points_to_the_fleet_of_the_repository() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    let before = world.crew(&["status"]).success();
    assert!(!before.contains("fleet"), "{before}");
    assert_eq!(world.run(&[]).code(), 0);
    let told = world.crew(&["status"]).success();
    assert!(told.ends_with("\nfleet repo: crew fleet status shows its tasks\n"), "{told}");
    let json = world.crew(&["status", "--json"]).success();
    assert!(!json.contains("crew fleet status"), "{json}");
}

#[test]
fn where_the_loops_of_a_fleet_match_the_first_are_listed_and_the_fleet_is_named() {
    let tasks = ["a", "b", "c", "d", "e", "f", "g"];
    let world = FleetWorld::new(ONE).tasks(&tasks, "").terms("slots = 4").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let hint = "crew: more than one loop matches\n\
                hint: name one of these; crew fleet status repo shows its tasks\n";
    let told = world.crew(&["status"]).success();
    let (list, fleet) = told.split_once("\n\n").unwrap();
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!((lines.len(), lines[5]), (6, "… 2 more: crew status --all"), "{told:#?}");
    assert_eq!(fleet, "fleet repo: crew fleet status shows its tasks\n");
    let refused = world.crew(&["pause"]);
    assert_eq!((refused.code(), refused.stderr), (2, format!("{hint}{list}\n")));
}

#[test]
fn a_pause_does_not_undo_a_cancel() {
    let (world, running) = at_work("");
    world.crew(&["fleet", "cancel", "b"]).success();
    let paused = world.crew(&["fleet", "pause", "a", "b"]).success();
    assert_eq!(
        paused,
        "fleet repo: paused after the running iteration: a\n\
         fleet repo: had ended or was cancelled already: b\n\
         the next crew fleet run resumes what is paused\n"
    );
    world.crew(&["fleet", "cancel"]).success();
    for what in [&["fleet", "pause"][..], &["fleet", "pause", "--now"]] {
        let refused = world.crew(what);
        let told =
            "crew: that is cancelled already\nhint: crew fleet status says what still ends\n";
        assert_eq!((refused.code(), refused.stderr.as_str()), (1, told), "{refused:#?}");
    }
    world.allow("go");
    running.wait(LONG);
    assert_eq!(["a", "b", "c"].map(|task| world.state(task)), ["cancelled"; 3]);
}

#[test]
fn a_task_that_rests_for_a_limit_obeys_at_once_on_this_machine() {
    let agent = format!("{}\nexit 1", limited(3600));
    let world = FleetWorld::new(&agent)
        .settings("agents.fake.output = \"claude\"\n")
        .tasks(&["a"], "")
        .ready();
    let running = world.start(&[]);
    world.until("it rests", |world| world.phase("a") == "rests");
    world.crew(&["fleet", "cancel", "a"]).success();
    let ran = running.wait(LONG);
    assert_eq!((world.state("a"), ran.code()), ("cancelled".into(), 10), "{ran:#?}");
}

#[test]
fn a_run_says_once_that_a_task_waits_for_a_limit_and_once_that_it_resumes() {
    let done = answer("<promise>COMPLETE</promise>");
    let agent =
        format!("[ $call = 1 ] || {{ wait_for go; {done}; exit; }}\n{}\nexit 1", limited(5));
    let world = FleetWorld::new(&agent)
        .settings("agents.fake.output = \"claude\"\n")
        .tasks(&["a"], "")
        .ready();
    let running = world.start(&[]);
    let times = |text: &str, line| text.matches(&format!("] a              {line}")).count();
    world.until("it is said to resume", |_| times(&running.stdout(), "resumes\n") > 0);
    world.allow("go");
    let ran = running.wait(LONG);
    let told = ["rests until", "resumes\n"].map(|line| times(&ran.stdout, line));
    assert_eq!((told, ran.code()), ([1, 1], 0), "{ran:#?}");
}

#[test]
fn a_task_whose_process_dies_after_its_cancel_is_cancelled_by_the_run_that_sees_it() {
    let agent = "echo $$ > $NOTES/agent.$iteration; wait_for never";
    let world = FleetWorld::new(agent).tasks(&["a"], "").ready();
    let running = world.start(&[]);
    world.until_noted("agent.1");
    world.crew(&["fleet", "cancel", "a"]).success();
    world.kill_job("a");
    let ran = running.wait(LONG);
    assert_eq!((world.state("a"), ran.code()), ("cancelled".into(), 10), "{ran:#?}");
    assert_gone(&world.noted("agent.1"));
    let told = world.crew(&["history"]).success();
    assert!(told.contains("cancelled"), "{told}");
}

#[test]
fn a_cancel_ends_the_setup_of_a_task() {
    let setup = "setup = 'touch $NOTES/here; sleep 600'";
    let world = FleetWorld::new(ONE).tasks(&["a"], "").terms(setup).ready();
    let running = world.start(&[]);
    world.until_noted("here");
    world.crew(&["fleet", "cancel", "a", "--now"]).success();
    let ran = running.wait(LONG);
    assert_eq!((world.state("a"), world.begun("a")), ("cancelled".into(), vec![]), "{ran:#?}");
}

#[test]
fn a_pause_that_a_new_run_lifts_while_the_agent_still_ends_is_not_written_again() {
    let agent =
        format!("trap '' TERM\n[ $call -gt 1 ] || {{ touch $NOTES/here; wait_for never; }}\n{ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").ready();
    let first = world.start(&[]);
    world.until_noted("here");
    world.crew(&["fleet", "pause", "a", "--now"]).success();
    let second = world.start(&[]);
    let (first, second) = (first.wait(LONG), second.wait(LONG));
    assert_eq!((first.code(), second.code()), (0, 0), "{first:#?}\n{second:#?}");
    assert_eq!((world.state("a"), world.begun("a")), ("completed".into(), vec![1, 1]));
}
