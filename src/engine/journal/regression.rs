//! Where a check turned red, from the story of a loop: "`cargo test` passed after iteration 4 and
//! has failed since iteration 6, which changed src/a.rs, src/b.rs". It goes back to nothing and
//! runs nothing.

use std::collections::BTreeMap;

use serde::Serialize;

use super::story::Story;
use crate::engine::evidence::test_report::TestReport;
use crate::engine::evidence::{CheckResult, ClaimResult, Verdict};
use crate::engine::text::{named, one_line};

/// The most files that are named.
const FILES_NAMED: usize = 5;
/// The longest path, in characters.
const PATH_CHARS: usize = 300;
/// The most files that are kept.
const FILES_KEPT: usize = 100;

/// A check that passed once and fails at the end of what is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Regression {
    pub run: String,
    /// The last iteration after which it passed; 0 is before the first.
    pub green_after: u32,
    /// The first iteration after that at whose end it failed.
    pub red_since: u32,
    /// What changed in between; the first of them.
    pub files: Vec<String>,
}

impl Regression {
    /// In one line.
    pub fn words(&self) -> String {
        let Self { run, green_after, red_since, files } = self;
        let green = match green_after {
            0 => "before iteration 1".to_owned(),
            after => format!("after iteration {after}"),
        };
        let names = named(files, FILES_NAMED);
        let what = match red_since - green_after {
            _ if files.is_empty() => String::new(),
            1 => format!(", which changed {names}"),
            _ => format!("; changed in between: {names}"),
        };
        format!("`{run}` passed {green} and has failed since iteration {red_since}{what}")
    }
}

/// What is known of one check while the iterations go by.
#[derive(Default)]
struct Known {
    green_after: Option<u32>,
    red_since: Option<u32>,
    /// Changed since it was green, up to the iteration at whose end it failed.
    files: Vec<String>,
}

impl Known {
    fn pass(&mut self, iteration: u32) {
        *self = Self { green_after: Some(iteration), ..Self::default() };
    }
}

/// The checks that turned red and stayed so, by command.
pub fn regressions(story: &Story) -> Vec<Regression> {
    let mut checks: BTreeMap<&str, Known> = BTreeMap::new();
    for run in &story.green_before {
        checks.entry(run).or_default().pass(0);
    }
    for iteration in story.iterations() {
        let changed = iteration.evidence.changes.iter().flat_map(|changes| &changes.files);
        for known in checks.values_mut().filter(|known| known.red_since.is_none()) {
            for file in changed.clone().map(|file| &file.path) {
                let file = one_line(file, PATH_CHARS);
                if known.files.len() < FILES_KEPT && !known.files.contains(&file) {
                    known.files.push(file);
                }
            }
        }
        // What was refused though all passed may have passed with weakened tests only.
        let is_refused = matches!(iteration.evidence.claim, ClaimResult::Refused(_));
        if is_refused && iteration.evidence.failing().next().is_none() {
            continue;
        }
        let is_told = |it: &&CheckResult| it.verdict != Verdict::Unknown && !ran_nothing(it);
        for check in iteration.evidence.checks.iter().filter(is_told) {
            let known = checks.entry(&check.run).or_default();
            if check.verdict == Verdict::Passed {
                known.pass(iteration.number);
            } else {
                known.red_since.get_or_insert(iteration.number);
            }
        }
    }
    let turned = checks.into_iter().filter_map(|(run, known)| {
        let Known { green_after: Some(green_after), red_since: Some(red_since), files } = known
        else {
            return None;
        };
        Some(Regression { run: run.to_owned(), green_after, red_since, files })
    });
    turned.collect()
}

/// Whether it passed without a test, which says nothing.
fn ran_nothing(check: &CheckResult) -> bool {
    let ran_none = |it: &TestReport| it.passed == 0 && it.failed == 0;
    check.verdict == Verdict::Passed && check.tests.as_ref().is_some_and(ran_none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::evidence::Evidence;
    use crate::engine::evidence::changes::{ChangeKind, ChangedFile, Changes};
    use crate::engine::fixture::{a_loop, at, result};
    use crate::engine::journal::{Choice, Event, JournalEntry, SCHEMA};
    use crate::engine::record::{CheckMemory, Loop};

    /// What one iteration changed, how the check ended if it ran, and what became of a claim.
    type Step = (Vec<String>, Option<Verdict>, ClaimResult);

    fn story(green_before: bool, steps: &[Step]) -> Story {
        let mut story = Story::picking(None);
        let mut record = a_loop();
        if green_before {
            let memory = CheckMemory::of(&result("cargo test", Verdict::Passed), 0, None);
            record.state.checks.insert("cargo test".to_owned(), memory);
            record.state.generation += 1;
            story.add(entry(&record, Event::changed("checked before iteration 1", &record)));
        }
        for (files, verdict, claim) in steps {
            let file = |path: &String| ChangedFile {
                path: path.clone(),
                kind: ChangeKind::Modified,
                lines: None,
                yours: false,
            };
            record.state.completed += 1;
            record.state.generation += 1;
            record.state.evidence = Some(Evidence {
                iteration: record.state.completed,
                claim: claim.clone(),
                changes: Some(Changes::of(files.iter().map(file))),
                checks: verdict.iter().map(|verdict| result("cargo test", *verdict)).collect(),
                ..Evidence::default()
            });
            story.add(entry(
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
        JournalEntry { schema: SCHEMA, at: at(0).wall, generation: record.state.generation, event }
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
        let told = table.map(|(green_before, steps)| {
            let found = regressions(&story(green_before, steps));
            found.iter().map(Regression::words).collect::<Vec<_>>().join("; ")
        });
        insta::assert_snapshot!(told.join("\n"), @"
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
            let found = regressions(&story(true, &steps));
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
}
