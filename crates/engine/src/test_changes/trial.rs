//! The trial of a finished job: its checks pass on the final tree, and do they fail in a test when
//! the work is taken away? It can raise a proof that the checks already gave, and nothing else.

use serde::{Deserialize, Serialize};

use super::NAMED_MAX;
use crate::evidence::check::{NoProofCause, of_both};
use crate::evidence::test_run::{TestRun, TestStatus};
use crate::evidence::{CheckResult, Verdict};
use crate::text::join_first_names;

/// The proof that crew tries to reach by runs of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prove {
    /// None: what the checks show in the loop is all.
    Off,
    /// Where no check was seen to fail, they run on the tree as the loop found it.
    #[default]
    Checked,
    /// The same, and they run without the work.
    Proven,
}

impl Prove {
    /// All of them, the widest first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Checked, Self::Proven];
}

/// The terms of a trial, a part of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofTerms {
    /// What is tried before the loop ends.
    pub prove: Prove,
    /// Seconds for all of it.
    pub timeout_s: u64,
    /// Prepares the scratch folder, by `sh -c`; `None` if nothing has to.
    pub setup: Option<String>,
    /// Globs of paths that are tests, beside those known by their names.
    pub tests: Vec<String>,
    /// Globs of tests and check configuration that are the task and count as work; a person named
    /// them.
    pub may_change: Vec<String>,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WithoutWork {
    /// "`cargo test` passes, and without the work it fails in rounds".
    Proven(String),
    /// The checks do not need the work; an agent can write a test that does.
    Failed(String),
    /// It could not be tried here, which no agent can change.
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

/// One check of a trial, by its runs.
#[derive(Debug, Clone, Default)]
pub struct TriedCheck {
    /// On the final tree.
    pub control: CheckResult,
    /// On the tree without the work.
    pub without: Option<CheckResult>,
    /// On the final tree once more.
    pub again: Option<CheckResult>,
}

/// Whether a check passed by its exit status and by its words.
pub fn check_passed(result: &CheckResult) -> bool {
    let reports_failures = result.test_run.as_ref().is_some_and(TestRun::has_failed);
    result.verdict == Verdict::Passed && !result.ran_no_test() && !reports_failures
}

/// The tests that fail without the work and passed with it; else why there is none.
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
    /// The command of one that did.
    Failed(String),
    /// None did.
    Passed,
    /// One did, and not for want of the work.
    NoCause(NoProofCause),
    /// It cannot be told, for this reason.
    Unknown(String),
}

impl BaselineResult {
    /// Judges checks that failed on the tree as found, and ran on the final tree and on the former
    /// again.
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
                    format!("`{run}` is unsteady: it {}", again.what_happened())
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

    /// Why it cannot be told; `None` if it can.
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
                why_not.push(format!("`{run}` is unsteady: it {}", control_failure(again)));
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
        return WithoutWork::Failed(cannot_be_told_apart(mixed));
    }
    why_not.extend(unable.into_iter().map(unprepared_reason));
    let why = why_not.join("; ");
    // No agent can make a command speak that does not name its tests.
    let is_silent = tried.iter().all(|check| check.control.test_run.is_none());
    let passes = |run: &CheckResult| run.verdict == Verdict::Passed;
    let is_by_links = are_linked && tried.iter().any(|it| it.without.as_ref().is_some_and(passes));
    if is_silent || is_by_links { WithoutWork::Impossible(why) } else { WithoutWork::Failed(why) }
}

/// "tests and work cannot be told apart: src/tax.rs".
pub fn cannot_be_told_apart(mixed: &[String]) -> String {
    format!("tests and work cannot be told apart: {}", join_first_names(mixed, NAMED_MAX))
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
#[path = "trial_tests.rs"]
mod tests;
