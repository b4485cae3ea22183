//! Requests to a running fleet: pause, cancel, resume, and a message for its agents.

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::run::claude::limited;
use crate::spawned::Running;

const TASKS: [&str; 3] = ["a", "b", "c"];

/// Two tasks at work on two slots, each in its first iteration until its note `go`, and one that
/// waits.
fn at_work() -> (FleetWorld, Running) {
    let agent = format!("echo $call >> \"begun-$task\"; wait_for \"go.$task\"; {TWO}");
    let world = FleetWorld::new(&agent)
        .tasks(&TASKS, "verify = [\"grep -q 2 work-*\"]")
        .terms("slots = 2")
        .ready();
    let running = world.start(&[]);
    world.until("two work", |world| world.begun("a") == [1] && world.begun("b") == [1]);
    (world, running)
}

/// Lets these tasks end their iterations.
fn go(world: &FleetWorld, tasks: &[&str]) {
    for task in tasks {
        world.allow(&format!("go.{task}"));
    }
}

impl FleetWorld {
    /// Waits until the coordinator has carried out each request.
    #[track_caller]
    fn until_executed(&self) {
        let folder = self.sandbox.crew_home().join("fleets/repo/requests");
        self.until("the requests are obeyed", |_| {
            std::fs::read_dir(&folder).map_or(true, |files| files.count() == 0)
        });
    }
}

#[test]
fn a_pause_lets_each_iteration_end_and_the_next_start_continues() {
    let (world, running) = at_work();
    world.crew(&["pause", "repo"]).success();
    go(&world, &TASKS);
    let paused = running.wait(LONG);
    assert_eq!(paused.code(), 130, "{paused:#?}");
    assert_eq!(TASKS.map(|task| world.begun(task)), [vec![1], vec![1], vec![]]);
    assert_eq!(TASKS.map(|task| world.state(task)), ["waiting"; 3]);
    assert_eq!(world.work("a", "work-a"), "1\n", "the iteration that ended is kept");

    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!(TASKS.map(|task| world.begun(task)), [[1, 2]; 3]);
    assert_eq!(TASKS.map(|task| world.attempt(task)), [1; 3], "each continues in its clone");
}

#[test]
fn a_resume_lifts_the_pause_of_one_task_while_the_others_stay_paused() {
    let (world, running) = at_work();
    world.crew(&["pause", "repo"]).success();
    go(&world, &["a"]);
    world.until("a is paused", |world| world.state("a") == "waiting");
    world.crew(&["resume", "repo/a"]).success();
    world.until("a continues", |world| world.begun("a") == [1, 2]);
    go(&world, &["b", "c"]);
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 130, "{ran:#?}");
    assert_eq!(TASKS.map(|task| world.begun(task)), [vec![1, 2], vec![1], vec![]]);
    assert_eq!(TASKS.map(|task| world.state(task)), ["completed", "waiting", "waiting"]);
}

#[test]
fn every_subcommand_treats_a_tasks_loop_as_the_task_by_id_prefix_or_folder() {
    let (world, running) = at_work();
    world.until("the record knows the loop", |world| world.task("a")["loop_id"].is_string());
    let id = world.task("a")["loop_id"].as_str().unwrap().to_owned();
    let clone = world.clone_of("a");
    let typed = [
        (&["pause", &id][..], "is paused after this iteration"),
        (&["resume", &id[..6]], "is resumed"),
        (&["tell", "--loop", &id, "Mind the gap"], "gets the message"),
        (&["cancel", "--reason", "not now"], "is cancelled"),
    ];
    for (words, what) in typed {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.args(words).current_dir(&clone);
        let answer = Running::start(command, None).wait(LONG).success();
        assert!(answer.starts_with(&format!("repo/a {what}")), "{answer}");
        world.until_executed();
    }
    world.until("it has ended", |world| world.state("a") == "cancelled");
    assert!(world.why("a").contains("not now"), "{}", world.why("a"));
    go(&world, &TASKS);
    assert_eq!(running.wait(LONG).code(), 10);
    let over = world.crew(&["cancel", &id]);
    assert_eq!((over.code(), &*over.stdout), (1, ""), "{over:#?}");
    assert!(over.stderr.starts_with("crew: task repo/a is cancelled"), "{over:#?}");
}

#[test]
fn an_immediate_pause_ends_the_running_iterations_which_are_repeated_later() {
    let (world, running) = at_work();
    world.crew(&["pause", "repo", "--now"]).success();
    let paused = running.wait(LONG);
    assert_eq!(paused.code(), 130, "{paused:#?}");
    go(&world, &TASKS);
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!(TASKS.map(|task| world.begun(task)), [vec![1, 1, 2], vec![1, 1, 2], vec![1, 2]]);
    let work = TASKS.map(|task| world.work(task, &format!("work-{task}")));
    assert_eq!(work, ["1\n2\n"; 3]);
}

#[test]
fn a_cancelled_task_ends_at_once_keeps_its_work_and_stays_cancelled_until_resumed() {
    let (world, running) = at_work();
    world.crew(&["cancel", "repo/b"]).success();
    world.crew(&["cancel", "repo/c", "--reason", "not now"]).success();
    world.until("both have ended", |world| {
        ["b", "c"].iter().all(|task| world.state(task) == "cancelled")
    });
    assert_eq!((world.begun("b"), world.begun("c")), (vec![1], vec![]));
    assert!(world.why("c").contains("not now"), "{}", world.why("c"));
    go(&world, &["a"]);
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.state("a")), (10, "completed".into()), "{ran:#?}");
    let work = std::fs::read_to_string(world.clone_of("b").join("begun-b")).unwrap();
    assert_eq!(work, "1\n", "its work is kept");

    assert_eq!(world.run(&[]).code(), 10);
    assert_eq!((world.begun("b"), world.begun("c")), (vec![1], vec![]));
    go(&world, &TASKS);
    for task in ["repo/b", "repo/c"] {
        world.crew(&["resume", task]).success();
    }
    let again = world.run(&[]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert_eq!(world.begun("a"), [1, 2], "what is completed is not touched");
    assert!(world.work("b", "begun-b").starts_with("1\n"), "it continues with its work");
}

#[test]
fn a_cancelled_fleet_stays_cancelled_and_a_new_task_of_it_runs() {
    let (world, running) = at_work();
    world.crew(&["cancel", "repo", "--reason", "enough"]).success();
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 14, "{ran:#?}");
    assert_eq!(TASKS.map(|task| world.state(task)), ["cancelled"; 3]);
    assert!(world.why("c").contains("enough"), "{}", world.why("c"));
    let again = world.run(&[]);
    assert_eq!(again.code(), 14, "{again:#?}");
    assert_eq!(TASKS.map(|task| world.begun(task)), [vec![1], vec![1], vec![]]);

    let world = world.acts(ONE).tasks(&["d"], "");
    let more = world.run(&[]);
    assert_eq!((more.code(), world.state("d")), (10, "completed".into()), "{more:#?}");
    assert_eq!(TASKS.map(|task| world.state(task)), ["cancelled"; 3]);
}

#[test]
fn a_cancel_ends_the_setup_of_a_task() {
    let setup = "setup = 'touch $NOTES/here; sleep 600'";
    let world = FleetWorld::new(ONE).tasks(&["a"], "").terms(setup).ready();
    let running = world.start(&[]);
    world.until_noted("here");
    world.crew(&["cancel", "repo/a"]).success();
    let ran = running.wait(LONG);
    assert_eq!((world.state("a"), world.begun("a")), ("cancelled".into(), vec![]), "{ran:#?}");
}

#[test]
fn a_pause_or_a_signal_ends_the_setup_of_a_task_and_no_iteration_begins() {
    for is_signal in [false, true] {
        let setup = "setup = 'touch $NOTES/here; test -e $NOTES/go || sleep 600'";
        let world = FleetWorld::new(ONE).tasks(&["a"], "").terms(setup).ready();
        let running = world.start(&[]);
        world.until_noted("here");
        if is_signal {
            running.signal(Signal::INT);
        } else {
            world.crew(&["pause", "repo"]).success();
        }
        let ran = running.wait(LONG);
        assert_eq!((ran.code(), world.begun("a")), (130, vec![]), "{ran:#?}");
        world.allow("go");
        let again = world.run(&[]);
        assert_eq!((again.code(), world.begun("a")), (0, vec![1]), "{again:#?}");
    }
}

#[test]
fn a_task_that_waits_for_a_limit_is_cancelled_at_once() {
    let agent = format!("{}\nexit 1", limited(3600));
    let world = FleetWorld::new(&agent)
        .settings("agents.fake.output = \"claude\"\n")
        .tasks(&["a"], "")
        .ready();
    let running = world.start(&[]);
    world.until("it waits", |world| world.phase("a") == "waiting");
    world.crew(&["cancel", "repo/a"]).success();
    let ran = running.wait(LONG);
    assert_eq!((world.state("a"), ran.code()), ("cancelled".into(), 14), "{ran:#?}");
}

#[test]
fn a_message_to_a_fleet_is_in_the_next_prompt_of_every_task_once() {
    let (world, running) = at_work();
    world.crew(&["tell", "repo", "Mind the gap"]).success();
    world.until_executed();
    go(&world, &TASKS);
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let reads = |task, call| world.prompt(task, call).matches("Mind the gap").count();
    let read = TASKS.map(|task| [reads(task, 1), reads(task, 2)]);
    assert_eq!(read, [[0, 1], [0, 1], [1, 0]]);
}

#[test]
fn the_agent_of_a_task_sends_its_fleet_marked_messages_and_resumes_nothing() {
    let agent = r#"if [ $task = a ]; then
        crew cancel repo/c > /dev/null; echo $? >> "$NOTES/codes"
        crew tell repo/b "Mind the gap" > /dev/null; echo $? >> "$NOTES/codes"
        crew resume repo/c; echo $? >> "$NOTES/codes"
        crew fleet run tasks --yes; echo $? >> "$NOTES/codes"
        crew fleet clean repo --yes; echo $? >> "$NOTES/codes"
        wait_for read
    fi
    echo $call > work-$task; claim"#;
    let world = FleetWorld::new(agent)
        .tasks(&["a"], "priority = 9")
        .tasks(&["b", "c"], "")
        .terms("slots = 1")
        .ready();
    world.sandbox.put_crew_on_the_path();
    let running = world.start(&[]);
    world.until("its agent has tried all", |world| world.noted("codes").lines().count() == 5);
    world.until_executed();
    world.allow("read");
    let ran = running.wait(LONG);
    assert_eq!(world.noted("codes"), "0\n0\n1\n1\n1\n", "{ran:#?}");
    assert_eq!(TASKS.map(|task| world.state(task)), ["completed", "completed", "cancelled"]);
    let prompt = world.prompt("b", 1);
    assert!(prompt.contains("unchecked") && prompt.contains("Mind the gap"), "{prompt}");
}
