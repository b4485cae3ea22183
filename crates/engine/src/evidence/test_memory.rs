//! What is remembered of the tests of a loop's checks, so that a later run can be compared with it.

use std::collections::BTreeMap;

use super::check::CheckResult;
use super::test_run::{TestMemory, TestRun, TestStatus};

/// Whether a check that failed fails in nothing that passed before the first iteration. A test that
/// is new, a suite that cannot be loaded and a failure without a name count as worse.
pub fn is_no_worse(before: &TestMemories, now: &CheckResult) -> bool {
    let found = before.get(&now.run).filter(|memory| memory.as_found).map(|memory| &memory.first);
    let (Some(found), Some(run)) = (found, &now.test_run) else { return false };
    let names_failures =
        |run: &TestRun| run.names_with(TestStatus::Failed).count() >= run.failed as usize;
    let is_there = |(name, status): (&String, &TestStatus)| {
        *status != TestStatus::Passed || run.tests.contains_key(name)
    };
    let are_named = found.names_all() && run.names_all();
    let are_all_there =
        if are_named { found.tests.iter().all(is_there) } else { run.passed >= found.passed };
    run.ran_any()
        && are_all_there
        && run.errors == 0
        && names_failures(found)
        && names_failures(run)
        && newly_failing(before, now).is_empty()
}

/// The tests that fail now and did not before the first iteration, by name.
pub fn newly_failing(before: &TestMemories, now: &CheckResult) -> Vec<String> {
    let found = before.get(&now.run).filter(|memory| memory.as_found).map(|memory| &memory.first);
    let (Some(found), Some(run)) = (found, &now.test_run) else { return Vec::new() };
    let is_new = |name: &&str| {
        found.tests.get(*name) != Some(&TestStatus::Failed) || found.mixed.contains(*name)
    };
    run.names_with(TestStatus::Failed).filter(is_new).map(str::to_owned).collect()
}

/// What is remembered of the tests of a loop's checks, by command.
pub type TestMemories = BTreeMap<String, TestMemory>;

/// The memories of checks that ran before the first iteration; `None` if none spoke of tests.
pub fn mark_as_found(checks: &[CheckResult]) -> Option<TestMemories> {
    let mut memories = update_memories(&TestMemories::new(), checks)?;
    for memory in memories.values_mut() {
        memory.as_found = true;
    }
    Some(memories)
}

/// The memories after these checks; `None` if none of them spoke of tests.
pub fn update_memories(before: &TestMemories, checks: &[CheckResult]) -> Option<TestMemories> {
    let mut after = before.clone();
    let mut is_new = false;
    for (check, run) in checks.iter().filter_map(|check| Some((check, check.test_run.as_ref()?))) {
        after.insert(check.run.clone(), TestMemory::after_run(before.get(&check.run), run));
        is_new = true;
    }
    is_new.then_some(after)
}
