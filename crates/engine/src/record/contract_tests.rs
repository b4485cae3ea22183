//! Tests of the contract.

use crate::fixture::{SetState, a_run, a_task};
use crate::record::{Ending, Loop, Outcome};

#[test]
fn the_loop_of_a_task_is_resumed_by_its_name_however_it_ended() {
    let resumed = |outcome: Option<Outcome>| {
        let mut record = Loop { fleet: Some(a_task("vat")), ..a_run(None) };
        record.state.set("ending", outcome.map(|outcome| Ending::new(outcome, "w")));
        record.fleet_resume()
    };
    for outcome in [None, Some(Outcome::Interrupted), Some(Outcome::Blocked)] {
        let expected = Some("crew resume billing-cleanup/vat".to_owned());
        assert_eq!(resumed(outcome), expected, "{outcome:?}");
    }
    assert_eq!(a_run(None).fleet_resume(), None);
}
