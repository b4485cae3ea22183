//! What the run with the original tests showed where a loop would end, and what that takes away
//! from the belief in its checks. The work is kept; tests and check configuration are those that
//! the loop found.

use std::collections::BTreeSet;

use serde::Serialize;

use super::NAMED_MAX;
use crate::evidence::test_run::TestStatus;
use crate::evidence::{CheckResult, Verdict};
use crate::text::{join_first_names, table_rows, variant_name};

/// The option by which a person accepts tests and check configuration as they are now; every reason
/// that only a person can settle names it.
pub const ACCEPT: &str = "--accept-test-changes";
/// What is said where the original tests take nothing away.
const ALSO_PASSES: &str = "also passes with the tests and settings as the loop found them";

/// What each finding says, of one name and of several, and the remedy where it refuses an end.
const WORDS: &str = include_str!("original_tests.txt");

/// What the original tests show of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WithOriginalTests {
    Passes,
    /// The loop found a project without tests: there is nothing to compare them with.
    FirstTests,
    /// These tests failed when the loop began, still fail as they were, and pass or are gone now.
    StillRed(Vec<String>),
    /// These scripts, which the check names by path, were changed, and as they were the check fails
    /// as it did when the loop began.
    ScriptStillRed(Vec<String>),
    /// These tests passed when the loop began, and fail as they were.
    Rewritten(Vec<String>),
    /// It passes only with the change of these paths.
    OnlyWith(Vec<String>),
    /// It shows nothing: "`make test` failed in a scratch folder".
    Unknown(String),
}

impl WithOriginalTests {
    /// Whether it refuses an end.
    pub fn refuses(&self) -> bool {
        matches!(self, Self::StillRed(_) | Self::ScriptStillRed(_))
    }

    /// What is said of it, in the row of [`WORDS`] that ends with `row`; `None` if there is none.
    fn remark_words(&self, row: &str) -> Option<String> {
        let names = match self {
            Self::Passes | Self::FirstTests => return None,
            Self::StillRed(tests) => tests.iter().map(|name| format!("`{name}`")).collect(),
            Self::ScriptStillRed(names) | Self::Rewritten(names) | Self::OnlyWith(names) => {
                names.clone()
            }
            Self::Unknown(why) => vec![why.clone()],
        };
        let number = if names.len() == 1 { "one" } else { "many" };
        let row = format!("{} {number}{row}", variant_name(self));
        let (_, words) = table_rows(WORDS).find(|(of, _)| *of == row)?;
        let count = names.len().to_string();
        Some(
            words
                .replace("{count}", &count)
                .replace("{names}", &join_first_names(&names, NAMED_MAX)),
        )
    }
}

/// What was found of the tests and the check configuration that a loop changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestChangesFinding {
    /// Whether checks ran with the original tests, and all of them passed.
    pub also_passes: bool,
    /// Why the end is refused, each reason once and with its remedy; empty if it is not.
    pub refusals: Vec<String>,
    /// Why the proof is at most `passing`.
    pub doubts: Vec<String>,
}

impl TestChangesFinding {
    /// The finding where nothing could be compared, which is no sign that nothing changed.
    pub fn unknown(why: &str) -> Self {
        let doubt = format!("what was changed of the tests is not known: {why}");
        Self { doubts: vec![doubt], ..Self::default() }
    }

    /// Adds what one check showed. `refuses` is false where a change is only reported.
    pub fn add_check(&mut self, shown: &WithOriginalTests, refuses: bool) {
        let Some(what) = shown.remark_words("") else { return };
        let Some(remedy) = shown.remark_words(" remedy").filter(|_| refuses) else {
            return self.doubts.push(what);
        };
        let text = format!("{what}. {remedy}");
        if !self.refusals.contains(&text) {
            self.refusals.push(text);
        }
    }

    /// Why the end is refused, with the remedy; `None` if it is not.
    pub fn refusal_reason(&self) -> Option<String> {
        if self.refusals.is_empty() { None } else { Some(self.refusals.join(". ")) }
    }

    /// What a person should know of an end that stays as it is.
    pub fn remark_text(&self) -> Option<String> {
        (self.also_passes && self.doubts.is_empty()).then(|| ALSO_PASSES.to_owned())
    }
}

/// Judges a check that fails with the original tests alone put back. `now` is its result on the
/// final tree, in the same folder; `red` are the tests that failed when the loop began, or in it.
/// `None` if the output does not say in which tests it fails, as where it could not be built.
pub fn judge_failing_tests(
    original: &CheckResult,
    now: &CheckResult,
    red: &BTreeSet<String>,
) -> Option<WithOriginalTests> {
    let run = original.test_run.as_ref()?;
    let fails_now = |name: &str| {
        let status = now.test_run.as_ref().and_then(|run| run.tests.get(name));
        status == Some(&TestStatus::Failed)
    };
    let failing =
        run.names_with(TestStatus::Failed).filter(|name| !fails_now(name)).map(str::to_owned);
    let (still_red, rewritten): (Vec<String>, Vec<String>) =
        failing.partition(|it| red.contains(it));
    match (still_red.is_empty(), rewritten.is_empty()) {
        (false, _) => Some(WithOriginalTests::StillRed(still_red)),
        (true, false) => Some(WithOriginalTests::Rewritten(rewritten)),
        (true, true) => None,
    }
}

/// Whether a check that failed names its failing tests, and all of them fail `now`, too.
pub fn fails_in_no_other_test(result: &CheckResult, now: &CheckResult) -> bool {
    let (Some(run), Some(now)) = (&result.test_run, &now.test_run) else { return false };
    let fails_now = |name: &str| now.tests.get(name) == Some(&TestStatus::Failed);
    result.verdict == Verdict::Failed
        && run.failed > 0
        && run.errors == 0
        && run.unfinished.is_none()
        && run.names_with(TestStatus::Failed).count() >= run.failed as usize
        && run.names_with(TestStatus::Failed).all(fails_now)
}

/// Whether the text of a file may hold a test of that name: the last part of the name is in it.
pub fn may_hold(text: &str, test: &str) -> bool {
    let last = test.rsplit([':', '.', '›', '>', '/', ' ']).find(|part| !part.trim().is_empty());
    let is_title =
        || test.rsplit(['›', '>']).next().is_some_and(|title| text.contains(title.trim()));
    last.is_some_and(|name| text.contains(name.split('[').next().unwrap_or(name))) || is_title()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::decide::{Decision, apply_decision, decide_next};
    use crate::boundary::judge::judge_boundary;
    use crate::claim::Claim;
    use crate::evidence::ClaimResult;
    use crate::fixture::{a_loop_with, facts, result};
    use crate::record::{CheckMemory, Loop, Outcome, Role};

    /// The loop after a claim whose check passes and failed before, and what was decided.
    fn claimed(before: &Loop, shown: Option<WithOriginalTests>, refuses: bool) -> (Loop, String) {
        let mut facts = facts(Claim::Success);
        facts.checks = vec![result("sh check.sh", Verdict::Passed)];
        facts.test_changes = shown.map(|shown| {
            let also_passes = shown == WithOriginalTests::Passes;
            let mut finding = TestChangesFinding { also_passes, ..TestChangesFinding::default() };
            finding.add_check(&shown, refuses);
            finding
        });
        let judged = judge_boundary(before, &facts);
        let decision = decide_next(&judged, &facts);
        let words = match &decision {
            Decision::Finish(ending) => {
                let proof = ending.proof.map_or("-", |proof| proof.label());
                format!("{} {proof}: {}", ending.outcome.label(), ending.full_reason())
            }
            other => format!("{other:?}"),
        };
        (apply_decision(judged, &decision), words)
    }

    fn a_checked_loop() -> Loop {
        let mut subject = a_loop_with(&[("sh check.sh", Role::Verify)]);
        let failed = CheckMemory::from_result(&result("sh check.sh", Verdict::Failed), 0, None);
        subject.state.remember_check("sh check.sh".to_owned(), failed);
        subject
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_the_original_tests_show_leaves_an_end_as_it_is_or_lowers_its_proof() {
        use WithOriginalTests::{OnlyWith, Passes, Rewritten, ScriptStillRed, StillRed, Unknown};
        let table = [
            (None, true),
            (Some(Passes), true),
            (Some(Rewritten(names(&["T.test_add"]))), true),
            (Some(Rewritten(names(&["a", "b"]))), true),
            (Some(OnlyWith(names(&["mk/test.mk"]))), true),
            (Some(Unknown("`make test` failed in a scratch folder".to_owned())), true),
            (Some(StillRed(names(&["T.test_tax"]))), false),
            (Some(ScriptStillRed(names(&["check.sh"]))), false),
        ];
        let ends = table.map(|(shown, refuses)| claimed(&a_checked_loop(), shown, refuses).1);
        insta::assert_snapshot!(ends.join("\n"), @"
        completed checked: a check that had failed now passes
        completed checked: a check that had failed now passes; also passes with the tests and settings as the loop found them
        completed passing: the checks pass; 1 test was rewritten; as the loop found it, it fails: T.test_add
        completed passing: the checks pass; 2 tests were rewritten; as the loop found them, they fail: a, b
        completed passing: the checks pass; it passes only with the change of mk/test.mk
        completed passing: the checks pass; the tests as the loop found them show nothing: `make test` failed in a scratch folder
        completed passing: the checks pass; `T.test_tax` failed when the loop began and, as it was then, still fails
        completed passing: the checks pass; check.sh changed since the loop began, when the check failed, and as it was then the check still fails
        ");
    }

    #[test]
    fn a_red_test_that_was_changed_refuses_the_claim_until_the_failure_threshold() {
        let shown = || Some(WithOriginalTests::StillRed(names(&["T.test_tax"])));
        let mut subject = a_checked_loop();
        for _ in 0..2 {
            let (refused, decision) = claimed(&subject, shown(), true);
            assert_eq!(decision, "Continue");
            let evidence = refused.state.evidence.as_ref().unwrap();
            let ClaimResult::Refused(why) = &evidence.claim else { panic!("{:?}", evidence.claim) };
            insta::allow_duplicates! {
                insta::assert_snapshot!(why, @"`T.test_tax` failed when the loop began and, as it was then, still fails. Restore it and make it pass. If it has to change, say BLOCKED and why");
            }
            assert_eq!(evidence.failure, None, "it fails no iteration");
            subject = refused;
        }
        let (blocked, decision) = claimed(&subject, shown(), true);
        assert_eq!(blocked.outcome(), Some(Outcome::Blocked), "{decision}");
        insta::assert_snapshot!(decision, @"blocked -: refused for what only a person can change: `T.test_tax` failed when the loop began and, as it was then, still fails. Restore it and make it pass. If it has to change, say BLOCKED and why; a person can accept the change: crew resume --accept-test-changes");
        let (_, decision) = claimed(&subject, None, true);
        assert!(decision.starts_with("completed checked"), "{decision}");
    }

    #[test]
    fn a_test_file_may_hold_a_test_by_the_last_part_of_its_name() {
        for (text, test, expected) in [
            ("def test_tax(self):", "test_shop.T.test_tax", true),
            ("def test_tax():", "tests/test_shop.py::test_tax[eur]", true),
            ("fn rounds() {}", "tax::tests::rounds", true),
            ("it('adds two numbers', f)", "sum › adds two numbers", true),
            ("def test_add(self):", "test_shop.T.test_tax", false),
        ] {
            assert_eq!(may_hold(text, test), expected, "{test}");
        }
    }
}
