//! The money of a fleet, with agents that report their cost and agents that do not.

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::run::claude::{COST, answer};

/// Makes crew read the agent's output as Claude Code's.
const REPORTS: &str = "agents.fake.output = \"claude\"\n";

fn spent(world: &FleetWorld, tasks: &[&str]) -> f64 {
    let of = |task: &&str| {
        let (record, begun) = (world.task(task), world.begun(task).len());
        let begun = u32::try_from(begun).unwrap();
        assert_eq!(record["carried"]["completed"], begun, "{record:#}");
        f64::from(begun) * COST
    };
    tasks.iter().map(of).sum()
}

/// An agent that reports its cost, and is done if `claims` succeeds.
fn world(claims: &str) -> FleetWorld {
    let [done, more] = ["<promise>COMPLETE</promise>", "Wrote a line."].map(answer);
    let agent = format!("echo $iteration >> work-$task; if {claims}; then {done}; else {more}; fi");
    FleetWorld::new(&agent).settings(REPORTS)
}

#[test]
fn tasks_without_a_limit_share_the_budget_of_the_fleet_to_within_an_iteration_each() {
    let tasks = ["a", "b", "c"];
    let world = world("false").tasks(&tasks, "max-iterations = 50").terms("slots = 2").ready();
    let ran = world.run(&["--max-cost", "0.09"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let all = spent(&world, &tasks);
    assert!((0.09 - 1e-9..0.09 + 2.0 * COST).contains(&all), "{all}");
    assert!(tasks.iter().all(|task| world.begun(task).len() >= 3), "{}", world.noted("log"));
}

#[test]
fn a_task_whose_limit_does_not_fit_waits_for_money_that_others_leave() {
    let world = world("[ $task = a ]")
        .tasks(&["a", "b", "c"], "max-cost = 0.03\nmax-iterations = 50")
        .terms("slots = 3\nmax-cost = 0.05")
        .ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_eq!(["a", "b", "c"].map(|it| world.state(it)), ["completed", "exhausted", "waiting"]);
    assert_eq!((world.begun("b").len(), world.begun("c").len()), (3, 0));
    assert_eq!(world.most_at_once(), 1, "what was set aside for one was not given to another");

    let again = world.run(&["--max-cost", "1"]);
    assert_eq!((again.code(), world.begun("c").len()), (10, 3), "{again:#?}");
}

#[test]
fn a_running_attempt_keeps_to_a_new_limit_of_its_fleet_from_its_next_iteration() {
    let more = answer("More.");
    let agent = format!("[ $call -lt 2 ] || wait_for go\necho $iteration >> work-$task\n{more}");
    let world = FleetWorld::new(&agent)
        .settings(REPORTS)
        .tasks(&["a", "b"], "max-iterations = 50")
        .terms("slots = 1")
        .ready();
    let running = world.start(&[]);
    world.until("a is in its second iteration", |world| world.begun("a") == [1, 2]);
    running.signal(Signal::KILL);
    running.wait(LONG);
    let limited = world.start(&["--max-cost", "0.08"]);
    world.until("it has the fleet", |world| world.record()["terms"]["max_cost_micros"] == 80_000);
    world.allow("go");
    let ran = limited.wait(LONG);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let all = spent(&world, &["a", "b"]);
    assert!((0.08 - 1e-9..0.08 + COST).contains(&all), "{all} {ran:#?}");
    assert_eq!((world.attempt("a"), world.task("a")["gone"].clone()), (1, 0.into()));
}

#[test]
fn an_agent_without_usage_reports_is_announced_and_ends_a_limited_task_after_an_iteration() {
    let announced = "max-cost cannot count what these use: a, b";
    let agent = format!("if [ $task = a ]; then {ONE}; else {TWO}; fi");
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "").terms("max-cost = 1").ready();
    let ran = world.run(&[]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    assert!(ran.stderr.contains(announced) && ran.stdout.contains("unknown of $1.00"), "{ran:#?}");
    assert_eq!((world.state("a"), world.state("b")), ("completed".into(), "blocked".into()));
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1], vec![1]));

    world.crew(&["resume", "repo/b"]).success();
    let unlimited = world.run(&["--max-cost", "0"]);
    assert!(!unlimited.stderr.contains(announced), "{unlimited:#?}");
    assert_eq!((unlimited.code(), world.begun("b")), (0, vec![1, 2]), "{unlimited:#?}");
}

#[test]
fn usage_reported_before_an_attempt_was_killed_counts() {
    // The first reports its cost and works on; the second is killed before it reports anything.
    let (more, done) = (answer("More."), answer("<promise>COMPLETE</promise>"));
    let agent =
        format!("case $call in 1) {more}; wait_for never ;; 2) wait_for never ;; esac\n{done}");
    let world =
        FleetWorld::new(&agent).settings(REPORTS).tasks(&["a"], "").terms("max-cost = 1").ready();
    let running = world.start(&[]);
    world.until("crew has read it", |world| {
        world.crew(&["show", "repo/a", "--log"]).stdout.contains("More.")
    });
    world.kill_attempt("a");
    world.until("it is tried again", |world| world.begun("a") == [1, 1]);
    world.kill_attempt("a");
    let ran = running.wait(LONG);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let usage = world.task("a")["carried"]["usage"].clone();
    assert_eq!((&usage["lost"], world.begun("a")), (&true.into(), vec![1, 1, 1]), "{usage:#}");
    assert!(ran.stdout.contains("at least $0.02"), "{ran:#?}\n{usage:#}");
}
