//! Tests of what is found as a regression.

use super::*;
use crate::evidence::Evidence;
use crate::evidence::changes::{ChangeKind, ChangedFile, Changes};
use crate::fixture::{SetState, a_loop, at, result};
use crate::journal::{Choice, Event, JournalEntry, SCHEMA};
use crate::record::{CheckMemory, Loop};

/// What one iteration changed, how the check ended if it ran, and what became of a claim.
type Step = (Vec<String>, Option<Verdict>, ClaimResult);

fn story(green_before: bool, steps: &[Step]) -> Story {
    let mut story = Story::with_pick(None);
    let mut record = a_loop();
    if green_before {
        let memory = CheckMemory::from_result(&result("cargo test", Verdict::Passed), 0, None);
        record.state.remember_check("cargo test".to_owned(), memory);
        record.state.set("generation", record.state.generation() + 1);
        story.add_entry(entry(
            &record,
            Event::from_change("checked before iteration 1", &record, &record),
        ));
    }
    for (files, verdict, claim) in steps {
        let file = |path: &String| ChangedFile {
            path: path.clone(),
            kind: ChangeKind::Modified,
            lines: None,
            yours: false,
        };
        record.state.set("completed", record.state.counts().completed() + 1);
        record.state.set("generation", record.state.generation() + 1);
        let evidence = Evidence {
            iteration: record.state.counts().completed(),
            claim: claim.clone(),
            changes: Some(Changes::from_files(files.iter().map(file))),
            checks: verdict.iter().map(|verdict| result("cargo test", *verdict)).collect(),
            ..Evidence::default()
        };
        record.state.set("evidence", evidence);
        story.add_entry(entry(
            &record,
            Event::Boundary {
                decision: Choice::Continue,
                why: None,
                elapsed_ms: Some(1),
                state: Box::new(record.state.clone()),
            },
        ));
    }
    story
}

fn entry(record: &Loop, event: Event) -> JournalEntry {
    JournalEntry { schema: SCHEMA, at: at(0).wall, generation: record.state.generation(), event }
}

#[test]
fn a_check_that_turned_red_is_named_with_what_changed_since_it_was_green() {
    use Verdict::{Failed, Passed, TimedOut, Unknown};
    let files = |names: &str| names.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let step = |names: &str, verdict| (files(names), verdict, ClaimResult::None);
    let refused = (files("a"), Some(Passed), ClaimResult::Refused("changed tests".to_owned()));
    let long = [
        step("a", Some(Passed)),
        step("b", None),
        step("c b", Some(TimedOut)),
        step("d", Some(Failed)),
    ];
    let table: [(bool, &[Step]); 7] = [
        (false, &long),
        (true, &[step("a b c d e f g", Some(Failed))]),
        (true, &[step("a", Some(Failed)), step("b", Some(Passed))]),
        (false, &[step("a", Some(Failed)), step("b", Some(Failed))]),
        (true, &[step("a", Some(Unknown))]),
        (true, &[step("", Some(Failed))]),
        (true, &[refused, step("b", Some(Failed))]),
    ];
    let shown = table.map(|(green_before, steps)| {
        let found = find_regressions(&story(green_before, steps));
        found.iter().map(Regression::regression_words).collect::<Vec<_>>().join("; ")
    });
    insta::assert_snapshot!(shown.join("\n"), @"
    `cargo test` passed after iteration 1 and has failed since iteration 3; changed in between: b, c
    `cargo test` passed before iteration 1 and has failed since iteration 1, which changed a, b, c, d, e and 2 more



    `cargo test` passed before iteration 1 and has failed since iteration 1
    `cargo test` passed before iteration 1 and has failed since iteration 2; changed in between: a, b
    ");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    /// A check that runs after every iteration names the very one; one that runs now and then
    /// names a span that holds it.
    #[test]
    fn a_planted_regression_is_found_in_every_history(
        length in 1_usize..40, planted in 0_usize..40, seldom in 1_usize..5, green in 1_usize..3,
    ) {
        let planted = planted % length;
        let culprit = u32::try_from(planted + 1).unwrap();
        let steps: Vec<Step> = (0..length).map(|at| {
            let verdict = if at < planted { Verdict::Passed } else { Verdict::Failed };
            let runs = at % seldom == 0 || at + 1 == length;
            let file = if at == planted { "planted".to_owned() } else { format!("src/{at}") };
            (vec![file; green], runs.then_some(verdict), ClaimResult::None)
        }).collect();
        let found = find_regressions(&story(true, &steps));
        let [Regression { green_after, red_since, files, .. }] = &found[..] else {
            panic!("{found:?}")
        };
        proptest::prop_assert!(*green_after < culprit && culprit <= *red_since);
        proptest::prop_assert!(files.iter().any(|file| file == "planted"));
        if seldom == 1 {
            proptest::prop_assert_eq!((*green_after + 1, *red_since), (culprit, culprit));
            proptest::prop_assert_eq!(files, &["planted".to_owned()]);
        }
    }
}
