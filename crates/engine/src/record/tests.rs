use proptest::prelude::*;

use super::*;
use crate::fixture::{SetState, a_loop};

proptest! {
    #[test]
    fn every_random_number_spells_a_valid_id(bits: u64) {
        let id = LoopId::from_random(bits);
        prop_assert_eq!(id.as_str().parse::<LoopId>(), Ok(id.clone()));
    }

    #[test]
    fn no_text_with_a_path_in_it_is_an_id(text in ".*[/.\\\\].*") {
        prop_assert!(text.parse::<LoopId>().is_err());
    }
}

#[test]
fn a_record_keeps_the_newest_times_and_sums_up_the_others() {
    let mut subject = a_loop();
    subject.contract.limits.max_iterations = 0;
    for ms in 1..=250 {
        subject.add_time(ms);
        subject.state.set("completed", ms);
        assert_eq!(subject.check_rules(), Ok(()));
    }
    assert_eq!(subject.elapsed_ms, (151..=250).collect::<Vec<u64>>());
    assert_eq!((subject.earlier.count, subject.earlier.max_ms), (150, 150));
    let spread = subject.time_spread().unwrap();
    assert_eq!((spread.min(), spread.mean(), spread.max()), (1, 126, 250));
}

type Breakage = (&'static str, fn(&mut Loop));

#[test]
fn a_record_that_breaks_its_own_rules_is_not_believed() {
    assert_eq!(a_loop().check_rules(), Ok(()));
    let breakages: [Breakage; 6] = [
        ("format", |subject| subject.version = 0),
        ("format", |subject| subject.version = VERSION + 1),
        ("ending", |subject| subject.state.set("status", Status::Finished)),
        ("iterations of", |subject| subject.state.set("completed", 11)),
        ("times for", |subject| subject.elapsed_ms.push(5)),
        ("ahead", |subject| subject.state.set("still", 1)),
    ];
    for (expected, break_it) in breakages {
        let mut subject = a_loop();
        break_it(&mut subject);
        let complaint = subject.check_rules().expect_err(expected);
        assert!(complaint.contains(expected), "{complaint}");
    }
}

#[test]
fn a_record_survives_its_own_json() {
    let text = serde_json::to_string(&a_loop()).unwrap();
    let mut record: Loop = serde_json::from_str(&text).unwrap();
    record.place.branches = a_loop().place.branches;
    assert_eq!(record, a_loop());
}
