//! Tests of the contract.

use super::fleet_run;
use crate::engine::fixture::a_run;
use crate::engine::fleet::fixture::a_task;
use crate::engine::record::{Ending, Loop, Outcome, TaskOfFleet};

#[test]
fn a_fleet_takes_up_what_is_not_over_and_retries_only_what_ended_undone() {
    assert_eq!(fleet_run(""), "crew fleet run .", "tasks at the root of their repository");
    let task = TaskOfFleet { folder: "my tasks".to_owned(), ..a_task("vat") };
    let resumed = |outcome: Option<Outcome>| {
        let mut record = Loop { fleet: Some(task.clone()), ..a_run(None) };
        record.state.ending = outcome.map(|outcome| Ending::new(outcome, "w"));
        record.fleet_resume()
    };
    let run = "crew fleet run 'my tasks'";
    for outcome in [None, Some(Outcome::Interrupted)] {
        assert_eq!(resumed(outcome).as_deref(), Some(run), "{outcome:?}");
    }
    for outcome in [Outcome::Blocked, Outcome::Exhausted, Outcome::Cancelled] {
        assert_eq!(
            resumed(Some(outcome)),
            Some("crew resume billing-cleanup/vat".to_owned()),
            "{outcome:?}"
        );
    }
    assert_eq!(a_run(None).fleet_resume(), None);
}
