use chrono::TimeDelta;

use super::*;
use crate::engine::fleet::fixture::{a_fleet, id as task};
use crate::report::board::tests::{a_loop, ended, now, row};

#[test]
fn an_old_end_is_left_to_the_history_and_one_that_needs_a_person_stays_for_a_week() {
    let aged = |outcome, hours, is_replaced| {
        let mut record = ended(a_loop("aaaaaaaa", "api"), outcome, None);
        record.state.last_iteration_at = Some(now().to_utc() - TimeDelta::hours(hours));
        let row = BoardRow::of(&LoopView { is_replaced, ..LoopView::of(&record, now()) }, None);
        row.map(|row| row.group)
    };
    let mut cancelled = ended(a_loop("aaaaaaaa", "api"), Outcome::Cancelled, None);
    cancelled.state.last_iteration_at = Some(now().to_utc() - TimeDelta::hours(48));
    cancelled.state.ended_at = Some(now().to_utc());
    assert!(row(&cancelled, false).is_some(), "it ended now, long after its last iteration");
    assert_eq!(aged(Outcome::Exhausted, 23, false), Some(BoardGroup::Ended));
    assert_eq!(aged(Outcome::Exhausted, 24, false), None);
    assert_eq!(aged(Outcome::Blocked, 100, false), Some(BoardGroup::NeedsYou));
    assert_eq!(aged(Outcome::Blocked, 168, false), None);
    assert_eq!(aged(Outcome::Blocked, 100, true), None, "a later loop works there");
    assert_eq!(aged(Outcome::Blocked, 1, true), Some(BoardGroup::Ended));
}

#[test]
fn a_task_of_a_fleet_that_ended_undone_needs_a_person_as_its_fleet_says() {
    let group = |outcome, is_task: bool| {
        let mut record = ended(a_loop("aaaaaaaa", "api"), outcome, None);
        record.fleet = is_task.then(|| a_fleet().task(&task("vat")));
        row(&record, false).map(|row| row.group)
    };
    for outcome in [Outcome::Exhausted, Outcome::Aborted, Outcome::Stalled, Outcome::Error] {
        assert_eq!(group(outcome, true), Some(BoardGroup::NeedsYou), "{outcome:?}");
        assert_eq!(group(outcome, false), Some(BoardGroup::Ended), "{outcome:?}");
    }
    for outcome in [Outcome::Completed, Outcome::Cancelled, Outcome::Interrupted] {
        assert_eq!(group(outcome, true), Some(BoardGroup::Ended), "{outcome:?}");
    }
}
