use super::*;
use crate::fleet::fixture::{Bench, a_commit, a_running_task, an_ended_task, id};
use crate::fleet::record::{Landed, TaskInput, TaskState, TaskWork};
use engine::fleet::LandingMode;
use engine::record::{Check, Outcome, Role};

fn a_source() -> Source {
    Source::Remote { url: "/hub.git".to_owned() }
}

fn make_spec(bench: &Bench) -> AttemptSpec {
    bench.record.spec_of(&bench.coordination, &id("a"), 2, a_source()).unwrap()
}

#[test]
fn a_spec_contains_the_tasks_share_its_checks_and_the_earlier_work() {
    let done = TaskRecord {
        work: TaskWork { commit: Some(a_commit(7)), ..an_ended_task(Outcome::Completed).work },
        ..an_ended_task(Outcome::Completed)
    };
    let mut landed = done.clone();
    if let TaskState::Ended(ending) = &mut landed.state {
        ending.landed = Some(Landed::Main(None));
    }
    let a = TaskRecord {
        reserved_micros: 5,
        asked: TaskInput { messages: vec!["hi".to_owned()], ..a_running_task().asked },
        ..a_running_task()
    };
    let tasks = vec![("a", a), ("done", done), ("landed", landed)];
    let mut bench = Bench::new(LandingMode::No, tasks);
    bench.coordination.described[0].task.after = vec![id("done"), id("landed")];
    bench.record.terms.land_checks = vec![Check::new("make e2e".to_owned(), Role::Verify)];
    let first = make_spec(&bench);
    assert_eq!(first.branch, "fleet/shop/a/2");
    assert_eq!(
        (first.task.name.as_str(), first.origin.base.as_str(), first.turn.slots),
        ("shop", "main", 4)
    );
    assert_eq!(first.contract.limits.max_cost_micros, 5);
    assert_eq!((first.origin.before, first.origin.start), (vec![(id("done"), a_commit(7))], None));
    let checks = bench.coordination.described[0].contract.checks.clone();
    assert_eq!((first.contract.checks, first.messages), (checks.clone(), vec!["hi".to_owned()]));

    let task = bench.record.tasks.get_mut(&id("a")).unwrap();
    task.work.commit = Some(a_commit(8));
    task.refused.sent_back =
        Some(Refusal::Red { run: "make e2e".to_owned(), output: String::new() });
    bench.record.terms.executor = "slurm".to_owned();
    let again = make_spec(&bench);
    assert_eq!(
        (again.origin.start, again.origin.before, again.turn.slots),
        (Some(a_commit(8)), Vec::new(), 0)
    );
    assert_eq!(again.contract.checks.len(), checks.len() + 1, "the checks of landings are its own");
    assert!(again.sent_back.is_some());
    bench.coordination.described.clear();
    assert!(bench.record.spec_of(&bench.coordination, &id("a"), 2, a_source()).is_none());
}
