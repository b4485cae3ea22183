//! The runs of a loop's checks with the original tests, in the scratch folder: no more than needed,
//! and each failure twice. A failure does not count if the final tree fails there, too.

use std::collections::{BTreeMap, BTreeSet};

use super::{Changes, Originals, doubt_text, is_gone};
use crate::drive::checks::scratch::{ScratchFolder, ScratchTerms};
use engine::evidence::test_run::{TestMemories, TestRun, TestStatus, is_no_worse};
use engine::evidence::{CheckResult, Verdict, is_failure};
use engine::record::{Check, CheckMemory, Loop};
use engine::test_changes::kind::is_test;
use engine::test_changes::{
    Baseline, TestChanges, TestChangesFinding, WithOriginalTests, check_passed,
    fails_in_no_other_test, judge_failing_tests, may_hold,
};
use world::git::head::changed_by_others;

/// The parameters shared by the runs at one end.
struct OriginalRuns<'a> {
    scratch: ScratchFolder<'a>,
    subject: &'a Loop,
    memories: &'a TestMemories,
    found: &'a str,
    left: &'a str,
    /// The result of the current check on the final tree, once it ran there.
    control: Option<CheckResult>,
    /// The tests that the current check named where it passed.
    named: BTreeSet<String>,
}

/// Runs every check that a change of tests or configuration concerns.
pub fn run_originals(
    terms: ScratchTerms<'_>,
    left: &Baseline,
    found: &Baseline,
    changes: &Changes,
    memories: &TestMemories,
    last: &BTreeMap<&String, &TestRun>,
) -> TestChangesFinding {
    let mut finding = TestChangesFinding::default();
    let scratch = match terms.open_folder() {
        Ok(scratch) => scratch,
        Err(why) => {
            finding.add_check(&WithOriginalTests::Unknown(why), true);
            return finding;
        }
    };
    let (subject, found, left) = (terms.subject, &*found.commit, &*left.commit);
    let (control, named) = (None, BTreeSet::new());
    let mut runs = OriginalRuns { scratch, subject, memories, found, left, control, named };
    let refuses = subject.contract.test_changes == TestChanges::Refuse;
    let (mut ran, mut all_pass) = (0, true);
    for check in subject.contract.unique_checks().filter(|check| changes.concern_check(check)) {
        runs.named.clear();
        let mut shown = runs.try_check(check, changes);
        if let Ok(refusal) = shown.as_ref()
            && refusal.refuses()
        {
            shown = runs.without_others(check, changes, refusal.clone());
        }
        let shown = shown.unwrap_or_else(WithOriginalTests::Unknown);
        ran += 1;
        all_pass &= shown == WithOriginalTests::Passes;
        let named_tests = shown == WithOriginalTests::Passes && !runs.named.is_empty();
        if named_tests || shown == WithOriginalTests::FirstTests {
            let mut tests = runs.uncovered_tests(check, changes);
            tests.retain(|test| last.get(&check.run).is_some_and(|run| is_gone(test, run)));
            let what = "tests failed when the loop began and did not run at its end";
            finding.doubts.extend(doubt_text(what, &tests));
        }
        finding.add_check(&shown, refuses);
    }
    finding.also_passes = ran > 0 && all_pass;
    finding
}

impl OriginalRuns<'_> {
    /// Whether a check passes; a check that may fail as before the loop also passes if it fails in
    /// no other test than on the final tree.
    fn check_passes(&self, check: &Check, result: &CheckResult) -> bool {
        let control = self.control.as_ref();
        let is_as_now = control.is_some_and(|control| fails_in_no_other_test(result, control));
        check_passed(result) || check.no_worse && is_as_now
    }

    fn passes_on_the_final_tree(&self, check: &Check, result: &CheckResult) -> bool {
        check_passed(result) || check.no_worse && is_no_worse(self.memories, result)
    }

    /// What a check shows if tests and settings that came with other people's commits stay as they
    /// are now; `shown` refuses, which only the agent's own change may do.
    fn without_others(
        &mut self,
        check: &Check,
        changes: &Changes,
        shown: WithOriginalTests,
    ) -> Result<WithOriginalTests, String> {
        let mut others = changed_by_others(self.subject);
        others.retain(|path| changes.holds(path));
        if others.is_empty() {
            return Ok(shown);
        }
        let rest = changes.without(&others);
        if rest.concern_check(check) {
            let shown = self.try_check(check, &rest)?;
            if shown.refuses() {
                return Ok(shown);
            }
        }
        Ok(WithOriginalTests::OnlyWith(others))
    }

    fn try_check(&mut self, check: &Check, changes: &Changes) -> Result<WithOriginalTests, String> {
        let kinds = (changes.have_tests_for(check), !changes.configuration.is_empty());
        let original =
            changes.original_texts(&self.scratch.snapshots, self.found, self.left, kinds)?;
        self.control = None;
        if self.runs_clean(&original, check)?.is_none() {
            return Ok(WithOriginalTests::Passes);
        }
        if changes.are_first_tests && self.has_no_tests_at_the_start()? {
            return Ok(WithOriginalTests::FirstTests);
        }
        let control = self.run_control(check)?;
        self.control = Some(control.clone());
        // The first failure may have been the folder's; a second one is not.
        let Some(failed) = self.runs_clean(&original, check)? else {
            return Ok(WithOriginalTests::Passes);
        };
        let failed = match kinds {
            (true, true) => {
                let snapshots = &self.scratch.snapshots;
                let tests =
                    changes.original_texts(snapshots, self.found, self.left, (true, false))?;
                self.runs_clean(&tests, check)?
            }
            (has_tests, _) => has_tests.then_some(failed),
        };
        match failed {
            Some(failed) => self.judge_tests(check, changes, &failed, &control),
            None => self.judge_scripts(check, changes, &changes.configuration),
        }
    }

    /// Whether the loop found a project without tests.
    fn has_no_tests_at_the_start(&self) -> Result<bool, String> {
        let entries = self.scratch.snapshots.entries(self.found)?;
        Ok(!entries.iter().any(|(_, path)| is_test(path)))
    }

    /// Runs a check on the final tree, where it had passed; an error if it does not pass in this
    /// folder.
    fn run_control(&mut self, check: &Check) -> Result<CheckResult, String> {
        let mut control = self.scratch.run_on(self.left, check)?;
        if !self.passes_on_the_final_tree(check, &control) && self.scratch.prepare_folder()? {
            control = self.scratch.run_on(self.left, check)?;
        }
        if self.passes_on_the_final_tree(check, &control) {
            return Ok(control);
        }
        let how = control.what_happened();
        Err(format!("`{}` {how} in a scratch folder on the final tree", check.run))
    }

    /// Runs a check on a tree; `None` if it passes there.
    fn runs_clean(&mut self, tree: &str, check: &Check) -> Result<Option<CheckResult>, String> {
        let result = self.scratch.run_on(tree, check)?;
        if result.verdict == Verdict::TimedOut || result.verdict == Verdict::Unknown {
            return Err(format!("`{}` {}", check.run, result.what_happened()));
        }
        if !self.check_passes(check, &result) {
            return Ok(Some(result));
        }
        self.named.extend(result.test_run.into_iter().flat_map(|run| run.tests.into_keys()));
        Ok(None)
    }

    /// Judges a failure with the `originals` in which no test is named: either scripts that the
    /// check names by path still fail, or it passes only with the change.
    fn judge_scripts(
        &mut self,
        check: &Check,
        changes: &Changes,
        originals: &Originals,
    ) -> Result<WithOriginalTests, String> {
        let scripts: Vec<&str> = changes.scripts.iter().map(String::as_str).collect();
        if !scripts.is_empty() && self.was_red(check)? {
            let as_found = self.scratch.snapshots.mixed(self.left, self.found, &scripts)?;
            if self.runs_clean(&as_found, check)?.is_some() {
                let scripts = changes.scripts.iter().cloned().collect();
                return Ok(WithOriginalTests::ScriptStillRed(scripts));
            }
        }
        Ok(WithOriginalTests::OnlyWith(originals.keys().cloned().collect()))
    }

    fn judge_tests(
        &mut self,
        check: &Check,
        changes: &Changes,
        failed: &CheckResult,
        control: &CheckResult,
    ) -> Result<WithOriginalTests, String> {
        let red = self.red_tests(check)?;
        if let Some(judged) = judge_failing_tests(failed, control, &red) {
            return Ok(judged);
        }
        // It may not have been built: only the files that held a failing test are put back.
        let whole = changes.tests.iter().filter(|(_, text)| text.is_none());
        let paths: Vec<&str> = whole.map(|(path, _)| path.as_str()).collect();
        let texts = self.scratch.snapshots.texts(self.found, &paths);
        let held = paths.iter().zip(&texts);
        let held = held.filter(|(_, text)| red.iter().any(|test| may_hold(text, test)));
        let held: Vec<&str> = held.map(|(path, _)| *path).collect();
        if !held.is_empty() && held.len() < changes.tests.len() {
            let tree = self.scratch.snapshots.mixed(self.left, self.found, &held)?;
            let failed = self.runs_clean(&tree, check)?;
            let judged = failed.and_then(|failed| judge_failing_tests(&failed, control, &red));
            if let Some(judged) = judged {
                return Ok(judged);
            }
        }
        self.judge_scripts(check, changes, &changes.tests)
    }

    /// The tests of a check on the tree as the loop found it.
    fn run_as_found(&mut self, check: &Check) -> Result<Option<TestRun>, String> {
        match self.memories.get(&check.run).filter(|memory| memory.as_found) {
            Some(memory) => Ok(Some(memory.first.clone())),
            None => Ok(self.scratch.run_on(self.found, check)?.test_run),
        }
    }

    /// The tests that failed when the loop began, or at its last boundary.
    fn red_tests(&mut self, check: &Check) -> Result<BTreeSet<String>, String> {
        let found = self.run_as_found(check)?;
        let memory = self.memories.get(&check.run).into_iter();
        let runs = memory.flat_map(|memory| [&memory.first, &memory.last]).chain(&found);
        Ok(runs.flat_map(|run| run.names_with(TestStatus::Failed)).map(str::to_owned).collect())
    }

    /// The tests that failed when the loop began and that passing runs with the original tests did
    /// not name. If none is remembered, the check runs again, provided that changed work contained
    /// tests.
    fn uncovered_tests(&mut self, check: &Check, changes: &Changes) -> Vec<String> {
        let is_known = self.memories.get(&check.run).is_some_and(|memory| memory.as_found);
        if !is_known && !self.held_tests(&changes.work) {
            return Vec::new();
        }
        let run = self.run_as_found(check).ok().flatten().unwrap_or_default();
        let red = run.names_with(TestStatus::Failed).filter(|name| !self.named.contains(*name));
        red.map(str::to_owned).collect()
    }

    /// Whether one of these files of work contained tests when the loop began.
    fn held_tests(&self, work: &BTreeSet<String>) -> bool {
        const MARKS: [&str; 7] =
            ["test]", "cfg(test", "// ```", "//! ```", ">>> ", "def test", "import.meta.vitest"];
        let work: Vec<&str> = work.iter().map(String::as_str).collect();
        let texts = self.scratch.snapshots.texts(self.found, &work);
        texts.iter().any(|text| MARKS.iter().any(|mark| text.contains(mark)))
    }

    /// Whether the check failed before or in the loop.
    fn was_red(&mut self, check: &Check) -> Result<bool, String> {
        let state = &self.subject.state;
        if state.seen().checks().get(&check.run).is_some_and(CheckMemory::ever_failed) {
            return Ok(true);
        }
        Ok(!state.seen().checked_as_found() && is_failure(&self.scratch.run_on(self.found, check)?))
    }
}
