//! The money of a fleet, for agents that report what they cost.

use super::FleetWorld;
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
