//! The runs of a loop's checks with the original tests, in the scratch folder: as few as tell, a
//! failure twice, and none that counts where the final tree fails there too.

use std::collections::BTreeSet;

use super::Changes;
use crate::drive::scratch::{ScratchFolder, ScratchTerms};
use crate::engine::evidence::check::is_failure;
use crate::engine::evidence::test_report::{TestMemories, is_no_worse};
use crate::engine::evidence::test_run::{TestRun, TestStatus};
use crate::engine::evidence::{CheckResult, Verdict};
use crate::engine::record::{Check, CheckMemory};
use crate::engine::test_changes::finding::{
    TestChangesFinding, WithOriginalTests, came_to_its_tests, fails_in_no_other_test,
    judge_failing_tests, may_hold,
};
use crate::engine::test_changes::kind::is_test;
use crate::engine::test_changes::trial::passed;
use crate::engine::test_changes::{Baseline, TestChanges};
use crate::parse::test_changes::is_static;
use crate::world::git::head::changed_by_others;

/// What the runs of one end share.
struct OriginalRuns<'s, 'a> {
    scratch: &'s mut ScratchFolder<'a>,
    terms: ScratchTerms<'a>,
    changes: &'s Changes,
    memories: &'s TestMemories,
    found: &'s str,
    left: &'s str,
    /// The present check on the final tree, once it ran there.
    control: Option<CheckResult>,
    /// The tests that the last check named where it passed.
    named: BTreeSet<String>,
}

/// Runs every check that a change of tests or configuration concerns.
pub fn run(
    terms: ScratchTerms<'_>,
    left: &Baseline,
    found: &Baseline,
    changes: &Changes,
    memories: &TestMemories,
) -> TestChangesFinding {
    let mut finding = TestChangesFinding::default();
    let mut scratch = match terms.open() {
        Ok(scratch) => scratch,
        Err(why) => {
            finding.add(WithOriginalTests::Unknown(why), true);
            return finding;
        }
    };
    let (found, left) = (&*found.commit, &*left.commit);
    let (scratch, control, named) = (&mut scratch, None, BTreeSet::new());
    let mut runs = OriginalRuns { scratch, terms, changes, memories, found, left, control, named };
    let refuses = terms.subject.contract.test_changes == TestChanges::Refuse;
    let mut known: Vec<&str> = Vec::new();
    let (mut ran, mut all_pass) = (0, true);
    for check in &terms.subject.contract.checks {
        let is_concerned = changes.have_configuration() || have_tests_for(changes, check);
        if known.contains(&&*check.run) || !is_concerned {
            continue;
        }
        known.push(&check.run);
        runs.named.clear();
        let mut shown = runs.try_check(check).unwrap_or_else(WithOriginalTests::Unknown);
        if shown.refuses() {
            shown = runs.without_others(check, shown).unwrap_or_else(WithOriginalTests::Unknown);
        }
        ran += 1;
        all_pass &= shown == WithOriginalTests::Passes;
        let named_tests = shown == WithOriginalTests::Passes && !runs.named.is_empty();
        if named_tests || shown == WithOriginalTests::FirstTests {
            finding.uncovered.insert(check.run.clone(), runs.uncovered(check));
        }
        finding.add(shown, refuses);
    }
    finding.also_passes = ran > 0 && all_pass;
    finding
}

/// Whether tests that differ concern a check.
fn have_tests_for(changes: &Changes, check: &Check) -> bool {
    changes.have_tests() && !is_static(&check.run)
}

impl OriginalRuns<'_, '_> {
    fn original(&self, tests: bool, configuration: bool) -> Result<String, String> {
        let snapshots = &self.scratch.snapshots;
        self.changes.original(snapshots, self.found, self.left, (tests, configuration))
    }

    /// Whether a check passes; one that may fail as before the loop also passes where it fails in
    /// no other test than on the final tree.
    fn passes(&self, check: &Check, result: &CheckResult) -> bool {
        let is_as_now = |now: &CheckResult| fails_in_no_other_test(result, now);
        passed(result) || check.no_worse && self.control.as_ref().is_some_and(is_as_now)
    }

    fn passes_on_the_final_tree(&self, check: &Check, result: &CheckResult) -> bool {
        passed(result) || check.no_worse && is_no_worse(self.memories, result)
    }

    /// What a check shows where the tests and settings that came with commits of others stay as
    /// they are now; `shown` refuses, which only a change of the agent's may.
    fn without_others(
        &mut self,
        check: &Check,
        shown: WithOriginalTests,
    ) -> Result<WithOriginalTests, String> {
        let mut others = changed_by_others(self.terms.subject);
        others.retain(|path| self.changes.holds(path));
        if others.is_empty() {
            return Ok(shown);
        }
        let changes = self.changes.without(&others);
        let OriginalRuns { terms, memories, found, left, .. } = *self;
        let (scratch, control, named) = (&mut *self.scratch, None, BTreeSet::new());
        let changes = &changes;
        let mut rest =
            OriginalRuns { scratch, terms, changes, memories, found, left, control, named };
        let is_concerned = changes.have_configuration() || have_tests_for(changes, check);
        let shown = if is_concerned { Some(rest.try_check(check)?) } else { None };
        let only_with = || WithOriginalTests::OnlyWith(others);
        Ok(shown.filter(WithOriginalTests::refuses).unwrap_or_else(only_with))
    }

    fn try_check(&mut self, check: &Check) -> Result<WithOriginalTests, String> {
        let changes = self.changes;
        let has_tests = have_tests_for(changes, check);
        let has_configuration = changes.have_configuration();
        let original = self.original(has_tests, has_configuration)?;
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
        let failed = if has_tests && has_configuration {
            let tests_alone = self.original(true, false)?;
            self.runs_clean(&tests_alone, check)?
        } else {
            has_tests.then_some(failed)
        };
        match failed {
            Some(failed) => self.judge_tests(check, &failed, &control),
            None => self.judge_scripts(check, changes.configuration_paths()),
        }
    }

    /// Whether the loop found a project without a test.
    fn has_no_tests_at_the_start(&self) -> Result<bool, String> {
        let entries = self.scratch.snapshots.entries(self.found)?;
        Ok(!entries.iter().any(|(_, path)| is_test(path)))
    }

    /// Runs a check on the final tree, where it passed; an error if it does not in this folder.
    fn run_control(&mut self, check: &Check) -> Result<CheckResult, String> {
        let mut control = self.scratch.run_on(self.left, check)?;
        if !self.passes_on_the_final_tree(check, &control) && self.scratch.prepare()? {
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
        if !self.passes(check, &result) {
            return Ok(Some(result));
        }
        self.named.extend(result.test_run.into_iter().flat_map(|run| run.tests.into_keys()));
        Ok(None)
    }

    /// These changed paths make the check pass, and no test is named: as scripts that it names by
    /// path, or otherwise.
    fn judge_scripts(
        &mut self,
        check: &Check,
        paths: Vec<String>,
    ) -> Result<WithOriginalTests, String> {
        let changes = self.changes;
        let scripts: Vec<&str> = changes.scripts.iter().map(String::as_str).collect();
        let only_with = || WithOriginalTests::OnlyWith(paths);
        if scripts.is_empty() || !self.was_red(check)? {
            return Ok(only_with());
        }
        let as_found = self.scratch.snapshots.mixed(self.left, self.found, &scripts)?;
        Ok(match self.runs_clean(&as_found, check)? {
            Some(_) => WithOriginalTests::ScriptStillRed(changes.scripts.iter().cloned().collect()),
            None => only_with(),
        })
    }

    fn judge_tests(
        &mut self,
        check: &Check,
        failed: &CheckResult,
        control: &CheckResult,
    ) -> Result<WithOriginalTests, String> {
        let red = self.red_tests(check)?;
        let changes = self.changes;
        if came_to_its_tests(failed)
            && let Some(judged) = judge_failing_tests(failed, control, &red)
        {
            return Ok(judged);
        }
        // It may not have been built: only the files that held a failing test are put back.
        let paths: Vec<&str> = changes.tests.iter().map(String::as_str).collect();
        let texts = self.scratch.snapshots.texts(self.found, &paths);
        let holds_red = |text: &String| red.iter().any(|test| may_hold(text, test));
        let held = paths.iter().zip(&texts).filter(|(_, text)| holds_red(text));
        let held: Vec<&str> = held.map(|(path, _)| *path).collect();
        if !held.is_empty() && (held.len() < paths.len() || !changes.old_modules.is_empty()) {
            let tree = self.scratch.snapshots.mixed(self.left, self.found, &held)?;
            if let Some(failed) = self.runs_clean(&tree, check)?
                && came_to_its_tests(&failed)
                && let Some(judged) = judge_failing_tests(&failed, control, &red)
            {
                return Ok(judged);
            }
        }
        self.judge_scripts(check, changes.test_paths())
    }

    /// What a check says of its tests on the tree as the loop found it.
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
        Ok(runs.flat_map(|run| run.named(TestStatus::Failed)).map(str::to_owned).collect())
    }

    /// The tests that failed when the loop began and that passing runs with the original tests did
    /// not name. Where none is remembered, the check runs again if work that changed held tests.
    fn uncovered(&mut self, check: &Check) -> Vec<String> {
        let is_known = self.memories.get(&check.run).is_some_and(|memory| memory.as_found);
        if !is_known && !self.changed_inline_tests() {
            return Vec::new();
        }
        let run = self.run_as_found(check).ok().flatten().unwrap_or_default();
        let red = run.named(TestStatus::Failed).filter(|name| !self.named.contains(*name));
        red.map(str::to_owned).collect()
    }

    /// Whether a file of work that differs held tests when the loop began.
    fn changed_inline_tests(&self) -> bool {
        const MARKS: [&str; 7] =
            ["test]", "cfg(test", "// ```", "//! ```", ">>> ", "def test", "import.meta.vitest"];
        let work: Vec<&str> = self.changes.work.iter().map(String::as_str).collect();
        let texts = self.scratch.snapshots.texts(self.found, &work);
        texts.iter().any(|text| MARKS.iter().any(|mark| text.contains(mark)))
    }

    /// Whether the check failed before or in the loop.
    fn was_red(&mut self, check: &Check) -> Result<bool, String> {
        let known = self.terms.subject.state.checks.get(&check.run);
        if known.is_some_and(CheckMemory::ever_failed) {
            return Ok(true);
        }
        if self.terms.subject.state.checked_as_found {
            return Ok(false);
        }
        let found = self.found.to_owned();
        Ok(is_failure(&self.scratch.run_on(&found, check)?))
    }
}
