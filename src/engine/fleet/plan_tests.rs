use super::*;
use crate::engine::fleet::fixture::{a_fleet, a_lease, after, ended, id, landed, running};
use crate::engine::fleet::lease::JobPhase;
use crate::engine::fleet::manifest::FleetOrder;
use crate::engine::record::{Actor, Outcome};

const WORKS: JobPhase = JobPhase::Lines;

fn rests() -> JobPhase {
    JobPhase::Rests { until: None, why: "a limit".to_owned() }
}

/// What starts, and what each other task waits for, a line each.
fn told(fleet: &Fleet, leases: &[Lease], slots: usize) -> Vec<String> {
    let plan = FleetPlan::of(fleet, leases, slots);
    let reserved = |task: &TaskId| plan.starts.iter().find(|start| start.task == *task);
    let waits = plan.waits.iter().map(|(task, waits)| match reserved(task) {
        Some(start) => format!("{task} starts with {}", start.reserved_micros),
        None => format!("{task} {waits:?}"),
    });
    waits.collect()
}

fn free() -> Fleet {
    Fleet { max_cost_micros: 0, ..a_fleet() }
}

fn coming_after(name: &str, before: &[&str]) -> Lease {
    let mut lease = a_lease(name);
    lease.task.after = before.iter().map(|name| id(name)).collect();
    lease
}

fn touching(mut lease: Lease, glob: &str) -> Lease {
    lease.task.touches = vec![glob.to_owned()];
    lease
}

fn costing(mut lease: Lease, micros: u64) -> Lease {
    lease.contract.limits.max_cost_micros = micros;
    lease
}

#[test]
fn as_many_tasks_start_as_there_are_slots_that_no_job_takes() {
    let leases = [a_lease("a"), a_lease("b"), a_lease("c"), running("r", WORKS)];
    assert_eq!(told(&free(), &leases, 3), ["a starts with 0", "b starts with 0", "c Slot"]);
    assert_eq!(told(&free(), &leases, 1), ["a Slot", "b Slot", "c Slot"]);
}

#[test]
fn without_a_crew_that_runs_the_fleet_nothing_starts_and_what_could_waits_for_one() {
    let leases = [a_lease("a"), a_lease("b"), coming_after("c", &["a"])];
    let plan = FleetPlan::of(&free(), &leases, 1).unattended();
    let waits = [WaitsFor::Run, WaitsFor::Run, WaitsFor::Task { task: id("a") }];
    assert_eq!((plan.starts, plan.waits.into_values().collect()), (vec![], waits.to_vec()));
}

#[test]
fn a_job_that_rests_gives_its_place_to_one_other_and_no_more() {
    let leases = [a_lease("a"), a_lease("b"), running("r", rests()), running("s", rests())];
    assert_eq!(told(&free(), &leases, 2), ["a starts with 0", "b starts with 0"]);
    let more = [&leases[..], &[running("t", rests()), running("u", rests())]].concat();
    assert_eq!(told(&free(), &more, 2), ["a Slot", "b Slot"]);
}

#[test]
fn a_task_waits_for_what_comes_before_it_and_names_the_one_that_needs_a_person() {
    let blocked = ended("blocked", Outcome::Blocked, "a key", 1);
    let done = ended("done", Outcome::Completed, "so", 1);
    let leases = [
        coming_after("x", &["r", "blocked"]),
        coming_after("y", &["r"]),
        coming_after("z", &["done"]),
        running("r", WORKS),
        blocked,
        done,
    ];
    let expected = [
        "x Ended { task: TaskId(\"blocked\") }",
        "y Task { task: TaskId(\"r\") }",
        "z starts with 0",
    ];
    assert_eq!(told(&free(), &leases, 9), expected);
}

#[test]
fn with_landing_only_what_has_landed_is_done() {
    let fleet = Fleet { landing: LandingMode::Main, ..free() };
    let done = ended("done", Outcome::Completed, "so", 1);
    let leases =
        [coming_after("x", &["done"]), coming_after("y", &["main"]), done, landed("main", "1", 1)];
    assert_eq!(told(&fleet, &leases, 9), ["x Ended { task: TaskId(\"done\") }", "y starts with 0"]);
}

#[test]
fn tasks_that_touch_the_same_files_do_not_run_at_once() {
    let leases = [
        touching(a_lease("a"), "src/tax/**"),
        touching(a_lease("b"), "src/tax/**"),
        touching(a_lease("c"), "src/pay/**"),
        touching(running("r", rests()), "src/pay/**"),
    ];
    assert_eq!(
        told(&free(), &leases, 9),
        [
            "a starts with 0",
            "b Files { task: TaskId(\"a\"), theirs: \"src/tax/**\", ours: \"src/tax/**\" }",
            "c Files { task: TaskId(\"r\"), theirs: \"src/pay/**\", ours: \"src/pay/**\" }",
        ]
    );
}

#[test]
fn an_order_holds_for_all_or_for_single_tasks_and_a_cancel_goes_before_a_pause() {
    let order = |what| FleetOrder { what, by: Actor::User, reason: None };
    let mut fleet = free();
    fleet.orders = [(id("a"), order(FleetRequest::Pause))].into();
    let leases = [a_lease("a"), a_lease("b")];
    assert_eq!(told(&fleet, &leases, 9), ["a Order { order: Pause }", "b starts with 0"]);
    fleet.order = Some(order(FleetRequest::Cancel));
    assert_eq!(
        told(&fleet, &leases, 9),
        ["a Order { order: Cancel }", "b Order { order: Cancel }"]
    );
}

#[test]
fn money_is_set_aside_for_what_runs_and_a_task_that_does_not_fit_waits() {
    let fleet = Fleet { max_cost_micros: 10_000_000, ..a_fleet() };
    let mut runs = after(running("r", WORKS), 1, 1, 100, "");
    runs.reserved_micros = 4_000_000;
    // One dollar of three that are spent is of the task that runs; four are set aside for it.
    let over = after(ended("o", Outcome::Completed, "so", 1), 3, 9, 200, "");
    let leases = [
        costing(a_lease("a"), 3_000_000),
        costing(a_lease("b"), 2_000_000),
        costing(a_lease("c"), 1_000_000),
        runs,
        over,
    ];
    assert_eq!(
        told(&fleet, &leases, 9),
        ["a starts with 3000000", "b Money", "c starts with 1000000"]
    );
}

#[test]
fn tasks_without_a_limit_of_their_own_share_what_is_left() {
    let fleet = Fleet { max_cost_micros: 9_000_000, ..a_fleet() };
    let again = after(a_lease("c"), 2, 2, 300, "");
    let leases = [a_lease("a"), a_lease("b"), again];
    let expected = ["a starts with 2000000", "b starts with 2000000", "c starts with 5000000"];
    assert_eq!(told(&fleet, &leases, 9), expected);
    let spent = after(ended("o", Outcome::Completed, "so", 1), 3, 9, 900, "");
    assert_eq!(told(&fleet, &[a_lease("a"), spent], 9), ["a Money"]);
}

proptest::proptest! {
    /// Whatever has been spent and set aside, a start never promises more than is left.
    #[test]
    fn no_plan_sets_more_aside_than_the_fleet_may_cost(
        most in 1_u64..50, costs in proptest::collection::vec((0_u64..20, 0_u64..8, 0_u64..3), 0..12)
    ) {
        let fleet = Fleet { max_cost_micros: most * 10_000, ..a_fleet() };
        let lease = |(at, (own, spent, kind)): (usize, &(u64, u64, u64))| {
            let name = format!("t{at}");
            let lease = match kind {
                0 => a_lease(&name),
                1 => running(&name, WORKS),
                _ => ended(&name, Outcome::Stalled, "so", 1),
            };
            let mut lease = after(costing(lease, own * 10_000), 1, 1, *spent, "");
            lease.reserved_micros = own * 10_000;
            lease
        };
        let leases: Vec<Lease> = costs.iter().enumerate().map(lease).collect();
        let plan = FleetPlan::of(&fleet, &leases, 100);
        let gone: u64 = leases.iter().map(|it| if it.attempt().is_some() { it.reserved_micros.max(cost(it)) } else { cost(it) }).sum();
        let promised: u64 = plan.starts.iter().map(|start| {
            let lease = leases.iter().find(|lease| *lease.id() == start.task).unwrap();
            start.reserved_micros - cost(lease)
        }).sum();
        proptest::prop_assert!(plan.starts.is_empty() || gone + promised <= fleet.max_cost_micros);
    }
}

#[test]
fn completed_work_lands_though_the_money_is_used_up() {
    let fleet = Fleet { max_cost_micros: 3_000_000, ..a_fleet() };
    let mut done = after(a_lease("a"), 1, 1, 400, "");
    assert_eq!(told(&fleet, &[done.clone()], 1), ["a Money"]);
    done.loop_end = ended("a", Outcome::Completed, "", 1).ending().cloned();
    assert_eq!(told(&fleet, &[done.clone()], 1), ["a starts with 4000000"]);
    // Its loop may be on another node.
    let fleet = Fleet { engine: "slurm".to_owned(), ..fleet };
    assert_eq!(told(&fleet, &[done], 1), ["a Money"]);
}

#[test]
fn tokens_without_a_price_count_at_the_highest_one() {
    let fleet = Fleet { max_cost_micros: 3_000_000, ..a_fleet() };
    let mut over = ended("a", Outcome::Completed, "done", 1);
    over.carried.usage.unpriced.output = 1_000_000;
    assert_eq!(told(&fleet, &[over, a_lease("b")], 1), ["b Money"]);
}
