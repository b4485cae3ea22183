//! The money of a fleet, for agents that report what they cost.

use super::{FleetWorld, LONG, ONE, TWO};
use crate::run::claude::{COST, answer};

fn spent(world: &FleetWorld, tasks: &[&str]) -> f64 {
    let of = |task: &&str| {
        let lease = world.lease(task);
        let begun = u32::try_from(world.begun(task).len()).unwrap();
        assert_eq!(lease["carried"]["completed"], begun, "{lease:#}");
        f64::from(begun) * COST
    };
    tasks.iter().map(of).sum()
}

fn world(claims: &str) -> FleetWorld {
    let step = |text: &str| answer(text);
    let agent = format!(
        "echo $iteration >> work-$task; if {claims}; then {}; else {}; fi",
        step("<promise>COMPLETE</promise>"),
        step("Wrote a line.")
    );
    FleetWorld::new(&agent).settings("agents.fake.output = \"claude\"\n")
}

#[test]
fn tasks_without_a_limit_share_what_the_fleet_may_cost_to_within_an_iteration_of_each_that_runs() {
    let tasks = ["a", "b", "c"];
    let world = world("false").tasks(&tasks, "max-iterations = 50").terms("slots = 2").ready();
    let ran = world.run(&["--max-cost", "0.09"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let all = spent(&world, &tasks);
    assert!((0.09 - 1e-9..0.09 + 2.0 * COST).contains(&all), "{all}");
    assert!(tasks.iter().all(|task| world.begun(task).len() >= 3), "{}", world.noted("log"));
    let again = world.run(&["--dry-run"]).success();
    assert!(again.contains("$0.09"), "the next start keeps the limit: {again}");
}

#[test]
fn a_task_whose_limit_does_not_fit_waits_for_what_others_leave() {
    let world = world("[ $task = a ]")
        .tasks(&["a", "b", "c"], "max-cost = 0.03\nmax-iterations = 50")
        .terms("slots = 3\nmax-cost = 0.05")
        .ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let states =
        [("a", "completed".to_owned()), ("b", "exhausted".into()), ("c", "waiting".into())];
    assert_eq!(world.states(&["a", "b", "c"]), states);
    assert_eq!((world.begun("b").len(), world.begun("c").len()), (3, 0));
    assert_eq!(world.most_at_once(), 1, "what was set aside for one was not given to another");

    let again = world.run(&["--max-cost", "1"]);
    assert_eq!((again.code(), world.begun("c").len()), (10, 3), "{again:#?}");
}

#[test]
fn a_task_that_runs_when_its_fleet_gets_a_limit_keeps_to_it_from_its_next_iteration() {
    let agent = format!(
        "[ $call -lt 2 ] || wait_for go\necho $iteration >> work-$task\n{}",
        answer("More.")
    );
    let world = FleetWorld::new(&agent)
        .settings("agents.fake.output = \"claude\"\n")
        .tasks(&["a", "b"], "max-iterations = 50")
        .terms("slots = 1")
        .ready();
    let running = world.start(&[]);
    world.until("a is in its second iteration", |world| world.begun("a") == [1, 2]);
    let watching = world.start(&["--max-cost", "0.08"]);
    let terms = world.sandbox.crew_home().join("fleets/repo/fleet.json");
    world.until("the limit stands", |_| {
        std::fs::read_to_string(&terms).unwrap_or_default().contains("80000")
    });
    world.allow("go");
    let ran = running.wait(LONG);
    watching.wait(LONG);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let all = spent(&world, &["a", "b"]);
    assert!((0.08 - 1e-9..0.08 + COST).contains(&all), "{all} {ran:#?}");
    assert!(!ran.stdout.contains("gone"), "{ran:#?}");
}

#[test]
fn a_job_begins_nothing_for_which_no_money_is_set_aside() {
    let world =
        world("true").tasks(&["a", "b"], "max-cost = 0.03").by_hand(&["--max-cost", "0.05"]);
    let refused = world.on("home").job("b").wait(LONG);
    let told = "crew: nothing of the fleet's money is set aside for b\n\
                hint: crew fleet run tasks does that, as soon as there is enough\n";
    assert_eq!((refused.code(), refused.stderr.as_str()), (1, told), "{refused:#?}");
    assert_eq!(world.on("home").job("a").wait(LONG).code(), 0);
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1], vec![]));
}

#[test]
fn a_task_whose_cost_nobody_reports_says_how_its_file_and_the_fleet_go_on_without_a_limit() {
    let blocked = "its limit on cost or tokens cannot be kept: the agent does not report what it used; to go on \
                   without it: max-cost: 0 and max-tokens: 0 in the task's file (--max-cost 0 lifts the fleet's), \
                   then crew fleet run tasks --retry";
    let table: [(_, _, &[&str]); 2] =
        [("max-cost = 1", "", &["--retry"]), ("", "max-cost = 1", &["--retry", "--max-cost", "0"])];
    for (own, whole, again) in table {
        let world = FleetWorld::new(TWO).tasks(&["a"], own).terms(whole).ready();
        let ran = world.run(&[]);
        assert_eq!((ran.code(), world.why("a").as_str()), (13, blocked), "{ran:#?}");
        let text = "---\nmax-cost: 0\nmax-tokens: 0\n---\nDo task a.\n";
        let world = world.file("tasks/a.md", text);
        let again = world.run(again);
        assert_eq!((again.code(), world.begun("a")), (0, vec![1, 2]), "{again:#?}");
    }
}

#[test]
fn what_nobody_reports_is_announced_before_a_start_and_is_unknown_afterwards_and_never_nothing() {
    let world = FleetWorld::new(ONE).tasks(&["a", "b", "c", "d"], "").terms("max-cost = 1").ready();
    let told = "crew: max-cost cannot count what these use: a, b, c and 1 more. Their agent does not report it, \
                so each has one iteration, and is blocked if it is not done then\n";
    let dry = world.run(&["--dry-run"]);
    assert!(dry.stderr.contains(told), "{dry:#?}");
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert!(ran.stderr.contains(told) && ran.stdout.contains("unknown of $1.00"), "{ran:#?}");
    assert!(world.crew(&["fleet", "status"]).stdout.contains("unknown of $1.00"));

    let unlimited = world.run(&["--dry-run", "--max-cost", "0"]);
    assert!(!unlimited.stderr.contains("cannot count"), "{unlimited:#?}");
    let reports = world.settings("agents.fake.output = \"claude\"\n");
    let reported = reports.run(&["--dry-run"]);
    assert!(!reported.stderr.contains("cannot count"), "{reported:#?}");
}

#[test]
fn what_an_iteration_cost_before_its_crew_was_killed_makes_the_sum_a_lower_bound() {
    let world = world("wait_for go").tasks(&["a"], "").terms("max-cost = 1").ready();
    let running = world.start(&[]);
    world.until("a works", |world| world.begun("a") == [1]);
    world.kill_job("a");
    world.until("it is taken up", |world| world.begun("a") == [1, 1]);
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert_eq!(world.lease("a")["carried"]["usage"]["lost"], true);
    assert!(ran.stdout.contains("at least $"), "{ran:#?}");
}
