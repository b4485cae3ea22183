use proptest::prelude::*;

use super::*;
use crate::fleet::fixture::{
    Bench, a_carried, a_commit, a_report, a_running_task, a_task, an_ended_task, id,
};
use crate::fleet::record::{
    Landed, RefusedLanding, TaskInput, TaskRequest, TaskState, TaskText, TaskWork,
};
use crate::fleet::spec::{AttemptPhase, Backoff};
use engine::fixture::at;
use engine::fleet::LandingMode;
use engine::record::Outcome;

/// What starts, and what each other task waits for, one line each.
fn plan_lines(bench: &Bench) -> Vec<String> {
    let plan = plan_starts(&bench.record, &bench.coordination, at(bench.second).wall);
    let start = |task: &TaskId| plan.starts.iter().find(|start| start.task == *task);
    let waits = plan.waits.iter().map(|(task, waits)| match start(task) {
        Some(Start { reserved_micros, continues: true, .. }) => {
            format!("{task} starts again with {reserved_micros}")
        }
        Some(start) => format!("{task} starts with {}", start.reserved_micros),
        None => format!("{task} {waits:?}"),
    });
    waits.collect()
}

fn make_bench(tasks: Vec<(&str, TaskRecord)>) -> Bench {
    let mut bench = Bench::new(LandingMode::No, tasks);
    bench.coordination.clones.clear();
    bench
}

fn described_task<'a>(bench: &'a mut Bench, name: &str) -> &'a mut DescribedTask {
    bench.coordination.described.iter_mut().find(|task| task.task.id.as_str() == name).unwrap()
}

/// A fleet with this limit, and these limits of its tasks, in dollars.
fn with_costs(mut bench: Bench, max: u64, own: &[(&str, u64)]) -> Bench {
    bench.record.terms.limits.max_cost_micros = max * 1_000_000;
    for (name, dollars) in own {
        described_task(&mut bench, name).contract.limits.max_cost_micros = dollars * 1_000_000;
    }
    bench
}

fn set_waiting(bench: &mut Bench, name: &str) {
    let mut report = a_report(1, 0, None);
    report.phase = AttemptPhase::Waiting { until: None, why: "a limit".to_owned() };
    bench.coordination.reports.insert(id(name), report);
}

#[test]
fn as_many_tasks_start_as_there_are_slots_and_a_waiting_task_frees_its_slot() {
    let tasks = || vec![("a", a_task()), ("b", a_task()), ("c", a_task()), ("r", a_running_task())];
    let mut it = make_bench(tasks());
    it.coordination.slots = 3;
    assert_eq!(plan_lines(&it), ["a starts with 0", "b starts with 0", "c Slot"]);
    it.coordination.slots = 1;
    assert_eq!(plan_lines(&it), ["a Slot", "b Slot", "c Slot"]);
    set_waiting(&mut it, "r");
    assert_eq!(plan_lines(&it), ["a starts with 0", "b Slot", "c Slot"]);
    it.coordination.slots = usize::MAX;
    assert_eq!(plan_lines(&it).len(), 3);
}

#[test]
fn a_task_waits_for_earlier_tasks_and_names_one_that_needs_a_person() {
    let done = an_ended_task(Outcome::Completed);
    let unfetched = TaskRecord {
        work: TaskWork { tip: Some(a_commit(1)), ..done.work.clone() },
        ..done.clone()
    };
    let tasks = vec![
        ("v", a_task()),
        ("w", a_task()),
        ("x", a_task()),
        ("y", a_task()),
        ("z", a_task()),
        ("r", a_running_task()),
        ("blocked", an_ended_task(Outcome::Blocked)),
        ("done", done),
        ("unfetched", unfetched),
    ];
    let mut it = make_bench(tasks);
    it.coordination.slots = 9;
    let after = [
        ("v", vec!["unfetched"]),
        ("w", vec!["nobody"]),
        ("x", vec!["r", "blocked"]),
        ("y", vec!["r"]),
        ("z", vec!["done"]),
    ];
    for (name, before) in after {
        described_task(&mut it, name).task.after = before.into_iter().map(id).collect();
    }
    let expected = [
        "v Task { task: TaskId(\"unfetched\") }",
        "w Ended { task: TaskId(\"nobody\") }",
        "x Ended { task: TaskId(\"blocked\") }",
        "y Task { task: TaskId(\"r\") }",
        "z starts with 0",
    ];
    assert_eq!(plan_lines(&it), expected);
    it.record.terms.landing = LandingMode::Main;
    assert_eq!(plan_lines(&it)[4], "z Ended { task: TaskId(\"done\") }");
    if let Some(TaskState::Ended(ending)) =
        it.record.tasks.get_mut(&id("done")).map(|task| &mut task.state)
    {
        ending.landed = Some(Landed::Main(None));
    }
    assert_eq!(plan_lines(&it)[4], "z starts with 0");
}

#[test]
fn tasks_that_touch_the_same_files_do_not_run_at_once() {
    let tasks = vec![("a", a_task()), ("b", a_task()), ("c", a_task()), ("r", a_running_task())];
    let mut it = make_bench(tasks);
    for (name, glob) in [("a", "tax/**"), ("b", "tax/**"), ("c", "pay/**"), ("r", "pay/**")] {
        described_task(&mut it, name).task.touches = vec![glob.to_owned()];
    }
    let expected = [
        "a starts with 0",
        "b Files { task: TaskId(\"a\"), theirs: \"tax/**\", ours: \"tax/**\" }",
        "c Files { task: TaskId(\"r\"), theirs: \"pay/**\", ours: \"pay/**\" }",
    ];
    assert_eq!(plan_lines(&it), expected);
}

#[test]
fn a_task_names_the_request_trouble_signal_or_missing_file_it_waits_for() {
    let pause = Some(TaskRequest::Pause { now: false });
    let mut it = make_bench(vec![
        ("a", TaskRecord { asked: TaskInput { request: pause, ..a_task().asked }, ..a_task() }),
        ("b", a_task()),
    ]);
    assert_eq!(plan_lines(&it), ["a Request { request: Pause { now: false } }", "b starts with 0"]);
    it.coordination.troubles.insert("push", "no remote".to_owned());
    assert_eq!(plan_lines(&it)[1], "b Trouble { why: \"no remote\" }");
    it.coordination.troubles.clear();
    it.coordination.backoffs.starts.add_failure(at(0).wall);
    assert_eq!(plan_lines(&it)[1], "b Trouble { why: \"the executor accepted no job\" }");
    it.second = 5;
    assert_eq!(plan_lines(&it)[1], "b starts with 0");
    it.coordination.backoffs.starts.until = Some(at(4000).wall);
    assert_eq!(plan_lines(&it)[1], "b starts with 0", "a clock that was set back");
    it.coordination.stop.signals = 1;
    assert_eq!(plan_lines(&it)[1], "b Signal");
    it.coordination.described.clear();
    assert_eq!(plan_lines(&it)[1], "b File");
}

#[test]
fn the_backoff_doubles_up_to_160_seconds() {
    let mut backoff = Backoff::default();
    let waits: Vec<i64> = (0..8)
        .map(|_| {
            backoff.add_failure(at(0).wall);
            (backoff.until.unwrap() - at(0).wall).num_seconds()
        })
        .collect();
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 160, 160]);
}

#[test]
fn an_attempt_continues_if_its_clone_is_here_and_nothing_changed() {
    let again = || TaskRecord { attempt: 1, ..a_task() };
    let unfetched = || TaskRecord {
        work: TaskWork { tip: Some(a_commit(2)), commit: Some(a_commit(1)), ..again().work },
        ..again()
    };
    let is = |task: TaskRecord, has_clone: bool, executor: &str| {
        let mut it = make_bench(vec![("a", task)]);
        it.record.terms.executor = executor.to_owned();
        if has_clone {
            it.coordination.clones.insert(id("a"));
        }
        plan_lines(&it).remove(0)
    };
    let changed = |task: TaskRecord| TaskRecord {
        text: TaskText { revision: "r0".to_owned(), ..task.text },
        ..task
    };
    // The settings of the user or the project name another one now.
    let of_another_agent = TaskRecord {
        text: TaskText { agents: "[[\"other\"]]".to_owned(), ..again().text },
        ..again()
    };
    let sent_back =
        TaskRecord { refused: RefusedLanding { begins_anew: true, ..again().refused }, ..again() };
    assert_eq!(is(again(), true, "local"), "a starts again with 0");
    assert_eq!(is(unfetched(), true, "local"), "a starts again with 0");
    assert_eq!(is(again(), false, "local"), "a starts with 0");
    assert_eq!(is(again(), true, "slurm"), "a starts with 0");
    assert_eq!(is(a_task(), true, "local"), "a starts with 0");
    assert_eq!(is(changed(again()), true, "local"), "a starts with 0");
    assert_eq!(is(sent_back, true, "local"), "a starts with 0");
    assert_eq!(is(of_another_agent, true, "local"), "a starts with 0");
    assert_eq!(is(changed(unfetched()), true, "local"), "a Fetch");
}

#[test]
fn money_is_reserved_for_running_tasks_and_a_task_that_does_not_fit_waits() {
    let runs =
        TaskRecord { reserved_micros: 4_000_000, carried: a_carried(1, 100), ..a_running_task() };
    let over = TaskRecord { carried: a_carried(2, 100), ..an_ended_task(Outcome::Completed) };
    let tasks = vec![("a", a_task()), ("b", a_task()), ("c", a_task()), ("r", runs), ("o", over)];
    let mut it = with_costs(make_bench(tasks), 10, &[("a", 3), ("b", 2), ("c", 1)]);
    it.coordination.slots = 9;
    assert_eq!(plan_lines(&it), ["a starts with 3000000", "b Money", "c starts with 1000000"]);
    it.record.tasks.get_mut(&id("r")).unwrap().reserved_micros = 0;
    assert_eq!(plan_lines(&it), ["a Money", "b Money", "c Money"], "one runs without a limit");
}

#[test]
fn tasks_without_their_own_limit_share_what_is_left() {
    let again = TaskRecord { carried: a_carried(3, 100), ..a_task() };
    let it = with_costs(make_bench(vec![("a", a_task()), ("b", a_task()), ("c", again)]), 9, &[]);
    let expected = ["a starts with 2000000", "b starts with 2000000", "c starts with 5000000"];
    assert_eq!(plan_lines(&it), expected);
    let mut over = an_ended_task(Outcome::Completed);
    over.carried.usage.unpriced.output = 1_000_000;
    let it = with_costs(make_bench(vec![("a", a_task()), ("o", over)]), 3, &[]);
    assert_eq!(plan_lines(&it), ["a Money"], "tokens without a price count at the highest one");
    let used = TaskRecord { carried: a_carried(2, 100), ..a_task() };
    let it = with_costs(make_bench(vec![("a", used)]), 3, &[("a", 2)]);
    assert_eq!(
        plan_lines(&it),
        ["a starts with 2000000"],
        "its loop says that its own limit is used up"
    );
}

#[test]
fn without_a_coordinator_what_could_start_waits_for_one() {
    let waiting = |waits| TaskRecord { waits: Some(waits), ..a_task() };
    let paused = TaskRecord {
        asked: TaskInput { request: Some(TaskRequest::Pause { now: false }), ..a_task().asked },
        ..a_task()
    };
    let tasks = vec![
        ("a", waiting(WaitsFor::Slot)),
        ("b", waiting(WaitsFor::Money)),
        ("c", waiting(WaitsFor::Signal)),
        ("d", paused),
        ("e", a_task()),
        ("r", a_running_task()),
    ];
    let it = make_bench(tasks);
    let shown = |is_coordinated| {
        let plan = FleetPlan::from_record(&it.record, is_coordinated);
        let words = plan.waits.values().map(|wait| format!("{wait:?}"));
        words.map(|text| text.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(false), ["Run", "Money", "Run", "Run", "Run"], "a start lifts a pause");
    assert_eq!(shown(true), ["Slot", "Money", "Signal", "Request", "Run"]);
}

proptest! {
    /// Whatever has been spent and set aside, a plan never promises more than is left, and names
    /// one thing for each task that waits.
    #[test]
    fn no_plan_reserves_more_than_the_fleet_may_cost(
        most in 1_u64..50, costs in prop::collection::vec((0_u64..20, 0_u32..8, 0_u64..3), 0..12)
    ) {
        let names: Vec<String> = (0..costs.len()).map(|at| format!("t{at}")).collect();
        let task = |(_, spent, kind): &(u64, u32, u64)| {
            let task = match kind {
                0 => a_task(),
                1 => a_running_task(),
                _ => an_ended_task(Outcome::Stalled),
            };
            TaskRecord { carried: a_carried(*spent, 100), ..task }
        };
        let tasks = names.iter().map(String::as_str).zip(costs.iter().map(task)).collect();
        let own: Vec<(&str, u64)> =
            names.iter().map(String::as_str).zip(costs.iter().map(|cost| cost.0)).collect();
        let mut it = with_costs(make_bench(tasks), most, &own);
        it.coordination.slots = 100;
        for (name, dollars) in &own {
            let task = it.record.tasks.get_mut(&id(name)).unwrap();
            if task.is_running() {
                task.reserved_micros = dollars * 1_000_000;
            }
        }
        let plan = plan_starts(&it.record, &it.coordination, at(0).wall);
        let aside = |task: &TaskRecord| task.reserved_micros.max(task.cost());
        let gone: u64 = it.record.tasks.values().map(aside).sum();
        let promised: u64 = plan
            .starts
            .iter()
            .map(|start| start.reserved_micros - it.record.tasks[&start.task].cost())
            .sum();
        prop_assert!(promised == 0 || gone + promised <= it.record.terms.limits.max_cost_micros);
        let waiting = it.record.tasks.iter().filter(|(_, task)| task.state == TaskState::Waiting);
        prop_assert!(waiting.map(|(id, _)| id).eq(plan.waits.keys()));
    }
}
