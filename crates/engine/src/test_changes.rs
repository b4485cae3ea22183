//! The changes that a loop makes to its tests and to what runs them. A change can only take belief
//! away, never add it, and fails no iteration.

pub mod kind;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::evidence::test_run::{TestRun, TestStatus};
use crate::evidence::{CheckResult, NoProofCause, Verdict, of_both};
use crate::test_changes::kind::NamedPaths;
use crate::text::{join_first_names, table_rows, variant_name};

/// The maximum number of tests or paths that a message names.
pub const NAMED_MAX: usize = 5;

/// What happens if the original tests contradict an end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestChanges {
    /// An end that needs the change of a failing test is refused.
    #[default]
    Refuse,
    /// The change only lowers the proof, and is reported.
    Report,
}

impl TestChanges {
    /// All modes, the default first.
    pub const ALL: [Self; 2] = [Self::Refuse, Self::Report];
}

/// What a loop found of its tests and check configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The snapshot that holds them.
    pub commit: String,
    /// What the commands of the checks named.
    pub named: NamedPaths,
    /// The hashes of files that no snapshot holds, by path: what may be a secret, and what checks
    /// run from folders that git ignores as a whole.
    pub hashes: BTreeMap<String, String>,
}

/// The option by which a person accepts tests and check configuration as they are now; every reason
/// that only a person can settle names it.
pub const ACCEPT: &str = "--accept-test-changes";
/// The remark if the original tests confirm the result.
const ALSO_PASSES: &str = "also passes with the tests and settings as the loop found them";

/// The text of each finding, for one name and for several, and the remedy if it refuses an end.
const WORDS: &str = include_str!("test_changes/original_tests.txt");

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
    /// The run shows nothing, for this reason: "`make test` failed in a scratch folder".
    Unknown(String),
}

impl WithOriginalTests {
    /// Whether it refuses an end.
    pub fn refuses(&self) -> bool {
        matches!(self, Self::StillRed(_) | Self::ScriptStillRed(_))
    }

    /// The remark about it, from the row of [`WORDS`] that ends with `row`; `None` if there is
    /// none.
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
        let doubt = format!("the changes to the tests are not known: {why}");
        Self { doubts: vec![doubt], ..Self::default() }
    }

    /// Adds what one check showed. `refuses` is false where a change is only reported.
    pub fn add_check(&mut self, shown: &WithOriginalTests, refuses: bool) {
        let Some(what) = shown.remark_words("") else { return };
        let remedy = if refuses { shown.remark_words(" remedy") } else { None };
        let Some(remedy) = remedy else { return self.doubts.push(what) };
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

/// The proof that crew tries to reach with runs of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prove {
    /// No extra runs: the proof depends on the checks in the loop alone.
    Off,
    /// If no check was seen to fail, the checks run on the tree as the loop found it.
    #[default]
    Checked,
    /// As `Checked`, and the checks also run without the work.
    Proven,
}

impl Prove {
    /// All values, from the least effort to the most.
    pub const ALL: [Self; 3] = [Self::Off, Self::Checked, Self::Proven];
}

/// The terms of a run without the work, a part of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofTerms {
    /// The proof to try for before the loop ends.
    pub prove: Prove,
    /// The seconds that all these runs may take.
    pub timeout_s: u64,
    /// The command that prepares the scratch folder, run by `sh -c`; `None` if nothing is needed.
    pub setup: Option<String>,
    /// Globs of paths that are tests, in addition to those recognised by name.
    pub tests: Vec<String>,
    /// Globs of tests and check configuration that are the task and count as work; a person named
    /// them.
    pub may_change: Vec<String>,
}

/// The result of running the checks without the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WithoutWork {
    /// "`cargo test` passes, and without the work it fails in rounds".
    Proven(String),
    /// The checks do not need the work; an agent can write a test that does.
    Failed(String),
    /// The run was not possible here, for a reason that no agent can change.
    Impossible(String),
}

impl WithoutWork {
    /// Why the work is not proven; `None` if it is.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Self::Proven(_) => None,
            Self::Failed(why) | Self::Impossible(why) => Some(why),
        }
    }
}

/// The runs of one check for a trial.
#[derive(Debug, Clone, Default)]
pub struct TriedCheck {
    /// The result on the final tree.
    pub control: CheckResult,
    /// The result on the tree without the work.
    pub without: Option<CheckResult>,
    /// The second result on the final tree.
    pub again: Option<CheckResult>,
}

/// Whether a check passed by its exit status and its output.
pub fn check_passed(result: &CheckResult) -> bool {
    let reports_failures = result.test_run.as_ref().is_some_and(TestRun::has_failed);
    result.verdict == Verdict::Passed && !result.ran_no_test() && !reports_failures
}

/// The tests that fail without the work and passed with it; otherwise the reason why there is none.
pub fn failing_tests(control: &CheckResult, without: &CheckResult) -> Result<Vec<String>, String> {
    match without.verdict {
        Verdict::Passed if without.ran_no_test() => {
            return Err("runs no test without the work".to_owned());
        }
        Verdict::Passed => {
            return Err("passes without the work too, as after a refactoring".to_owned());
        }
        Verdict::Failed => {}
        Verdict::TimedOut | Verdict::Unknown => {
            return Err(format!("{} without the work", without.what_happened()));
        }
    }
    let (Some(with), Some(run)) = (&control.test_run, &without.test_run) else {
        return Err("fails without the work, and its output does not say in which test".to_owned());
    };
    let passed_with = |name: &&str| match with.tests.get(*name) {
        Some(status) => *status == TestStatus::Passed,
        None => !with.names_all() && with.ran_any(),
    };
    let failing: Vec<String> =
        run.names_with(TestStatus::Failed).filter(passed_with).map(str::to_owned).collect();
    match run.errors {
        _ if !failing.is_empty() => Ok(failing),
        0 => Err("fails without the work in no test that passes with it".to_owned()),
        _ => Err("fails without the work before its tests run".to_owned()),
    }
}

/// Whether a check failed on the tree as the loop found it: what `crew run` learns before the first
/// iteration, looked up at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaselineResult {
    /// A check failed there, with this command.
    Failed(String),
    /// Every check passed there.
    Passed,
    /// A check failed there for a reason other than missing work.
    NoCause(NoProofCause),
    /// The result is unknown, for this reason.
    Unknown(String),
}

impl BaselineResult {
    /// Judges checks that failed on the tree as found, from their runs on the final tree and again
    /// on that tree.
    pub fn judge_checks(tried: &[TriedCheck]) -> Self {
        let (mut unknown, mut no_cause) = (Vec::new(), None);
        for check in tried {
            let (run, Some(found)) = (&check.control.run, &check.without) else { continue };
            unknown.push(match &check.again {
                _ if found.verdict != Verdict::Failed => {
                    format!("`{run}` {} on the tree as the loop found it", control_failure(found))
                }
                _ if !check_passed(&check.control) => unprepared_reason(check),
                None => continue,
                Some(again) if again.verdict != Verdict::Failed => {
                    format!("`{run}` is flaky: it {}", again.what_happened())
                }
                Some(again) => match of_both(again, &check.control) {
                    Ok(()) => return Self::Failed(run.clone()),
                    Err(why) => {
                        no_cause = Some(why);
                        continue;
                    }
                },
            });
        }
        match no_cause {
            _ if !unknown.is_empty() => Self::Unknown(unknown.join("; ")),
            Some(why) => Self::NoCause(why),
            None => Self::Passed,
        }
    }

    /// Why the result is unknown; `None` if it is known.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Self::Unknown(why) => Some(why),
            Self::Failed(_) | Self::Passed | Self::NoCause(_) => None,
        }
    }
}

/// Judges the checks of a trial. `mixed` are the files that hold tests and work and so were not
/// taken away. Where folders of the working tree `are_linked` in, a pass without the work shows
/// nothing: a workspace's packages are links to the work.
pub fn judge_without_work(tried: &[TriedCheck], mixed: &[String], are_linked: bool) -> WithoutWork {
    let (able, unable): (Vec<&TriedCheck>, Vec<&TriedCheck>) =
        tried.iter().partition(|it| check_passed(&it.control));
    if able.is_empty() {
        let why: Vec<String> = unable.into_iter().map(unprepared_reason).collect();
        return WithoutWork::Impossible(why.join("; "));
    }
    let mut why_not = Vec::new();
    for check in able {
        let (run, Some(without)) = (&check.control.run, &check.without) else { continue };
        match (failing_tests(&check.control, without), &check.again) {
            (Ok(_), Some(again)) if !check_passed(again) => {
                why_not.push(format!("`{run}` is flaky: it {}", control_failure(again)));
            }
            (Ok(tests), _) => {
                let tests = join_first_names(&tests, NAMED_MAX);
                let how = format!("`{run}` passes, and without the work it fails in {tests}");
                return WithoutWork::Proven(how);
            }
            (Err(why), _) => why_not.push(format!("`{run}` {why}")),
        }
    }
    if !mixed.is_empty() {
        return WithoutWork::Failed(cannot_be_separated(mixed));
    }
    why_not.extend(unable.into_iter().map(unprepared_reason));
    let why = why_not.join("; ");
    // No agent can make a command speak that does not name its tests.
    let is_silent = tried.iter().all(|check| check.control.test_run.is_none());
    let passes = |run: &CheckResult| run.verdict == Verdict::Passed;
    let is_by_links = are_linked && tried.iter().any(|it| it.without.as_ref().is_some_and(passes));
    if is_silent || is_by_links { WithoutWork::Impossible(why) } else { WithoutWork::Failed(why) }
}

/// "tests and work cannot be separated: src/tax.rs".
pub fn cannot_be_separated(mixed: &[String]) -> String {
    format!("tests and work cannot be separated: {}", join_first_names(mixed, NAMED_MAX))
}

/// Why a check shows nothing that does not pass on the final tree in the scratch folder.
fn unprepared_reason(check: &TriedCheck) -> String {
    let TriedCheck { control, .. } = check;
    let how = format!("`{}` {}", control.run, control_failure(control));
    // No preparation of the folder helps where nothing ran in it.
    match control.verdict {
        Verdict::Unknown => how,
        _ => format!("{how} in a scratch folder, which `setup` and .worktreeinclude prepare"),
    }
}

fn control_failure(result: &CheckResult) -> String {
    match result.verdict {
        Verdict::Passed if result.ran_no_test() => "runs no test".to_owned(),
        Verdict::Passed => "reports failing tests".to_owned(),
        Verdict::Unknown => result.incurable.clone().unwrap_or_else(|| result.what_happened()),
        Verdict::Failed | Verdict::TimedOut => result.what_happened(),
    }
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
    fn the_original_tests_leave_an_ending_as_it_is_or_lower_its_proof() {
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
            let evidence = refused.state.seen().evidence().as_ref().unwrap();
            let ClaimResult::Refused(why) = &evidence.claim else { panic!("{:?}", evidence.claim) };
            insta::allow_duplicates! {
                insta::assert_snapshot!(why, @"`T.test_tax` failed when the loop began and, as it was then, still fails. Restore it and make it pass. If it has to change, say BLOCKED and why");
            }
            assert_eq!(evidence.failure, None, "it fails no iteration");
            subject = refused;
        }
        let (blocked, decision) = claimed(&subject, shown(), true);
        assert_eq!(blocked.outcome(), Some(Outcome::Blocked), "{decision}");
        insta::assert_snapshot!(decision, @"blocked -: refused for a reason that only a person can change: `T.test_tax` failed when the loop began and, as it was then, still fails. Restore it and make it pass. If it has to change, say BLOCKED and why; a person can accept the change: crew resume --accept-test-changes");
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

#[cfg(test)]
mod trial_tests;
