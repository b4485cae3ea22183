//! What crew saw at the last boundary, bounded so that it can be kept in the state and shown to the
//! agent: the results of checks, and what ties a check that passes to the work. A check that did
//! not finish is never taken for a failure.

pub mod changes;
pub mod said;
pub mod test_run;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::evidence::changes::Changes;
use crate::evidence::test_run::{TestReport, TestRun, TestStatus};
use crate::text::{clip_line, clip_line_at_word, count, one_line, variant_name, with_reason};
use crate::usage::{Usage, tokens_text};

/// How much of a check's or an agent's error output is kept, in characters.
pub const TAIL_CHARS: usize = 2000;

/// The report about an answer that the token limit truncated.
pub const CUT: &str = "the answer was truncated by the token limit";

/// The summary of one boundary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The iteration that ended, 1-based.
    pub iteration: u32,
    pub status: IterationStatus,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// The agent's exit status; `None` if it did not exit by itself, and in a session.
    pub exit: Option<i32>,
    /// The agent that worked, in a loop that has several; `None` in others.
    pub agent: Option<String>,
    pub claim: ClaimResult,
    pub checks: Vec<CheckResult>,
    /// Why the iteration failed; `None` if it did not.
    pub failure: Option<String>,
    /// The gate whose failure made the iteration a failure; `None` if none did.
    pub failed_gate: Option<String>,
    /// The end of the agent's standard error, if the end of its process was the failure; else
    /// empty.
    pub errors: String,
    /// Why the iteration did not run or did not finish; `None` if it finished.
    pub skipped: Option<String>,
    /// Why crew ended the agent where that was not a failure; `None` if it ended by itself.
    pub ended: Option<String>,
    pub progress: Progress,
    /// The reason for the judgement of progress, in a few words.
    pub progress_why: String,
    /// What the agent changed in the working tree; `None` where no snapshots are taken.
    pub changes: Option<Changes>,
    /// How many checks pass now and failed in their previous run.
    #[serde(rename = "mended")]
    pub newly_passing: u32,
    /// What the iteration used; `None` where nothing reports it.
    pub usage: Option<Usage>,
    /// How full the agent's context was at most; `None` where the agent does not report it.
    pub context_percent: Option<u8>,
    /// The tokens of its fullest message, answer included; `None` where the agent does not report
    /// each message.
    pub context_tokens: Option<u64>,
    /// The agent's last words, in one line; nothing is judged by them.
    pub said: Option<String>,
    /// The user's messages to the agent that the next prompt has.
    pub words: Vec<String>,
    /// Whether the token limit truncated the answer.
    pub cut: bool,
}

impl Evidence {
    /// Why the iteration did not finish, if that was not a failure.
    pub fn unended(&self) -> Option<String> {
        self.broken_off().or_else(|| self.ended.clone())
    }

    /// Why it did not run, or was ended from outside: "skipped: …".
    pub fn broken_off(&self) -> Option<String> {
        let why = self.skipped.as_ref()?;
        let is_skipped = self.status == IterationStatus::Skipped;
        Some(if is_skipped { format!("skipped: {why}") } else { why.clone() })
    }

    /// The checks that did not pass, in the order they ran.
    pub fn failing(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| check.verdict != Verdict::Passed)
    }

    /// Why the iteration failed, where no failing check shows it.
    pub fn other_failure(&self) -> Option<&str> {
        if self.failed_gate.is_some() { None } else { self.failure.as_deref() }
    }

    /// What happened to the tests: "3 tests fixed".
    pub fn test_news(&self) -> impl Iterator<Item = String> {
        self.checks.iter().filter_map(|check| check.tests.as_ref()).flat_map(TestReport::news_words)
    }

    /// Why it counts as progress or not, or otherwise the page's own word for that.
    pub fn progress_words(&self, words: [&'static str; 3]) -> String {
        match self.progress {
            Progress::Made | Progress::None if !self.progress_why.is_empty() => {
                self.progress_why.clone()
            }
            progress => progress.worded(words).to_owned(),
        }
    }

    /// "86% full", or "93k tokens" where the agent names no window.
    pub fn context(&self) -> Option<String> {
        let percent = self.context_percent.map(|percent| format!("{percent}% full"));
        percent.or_else(|| Some(format!("{} tokens", tokens_text(self.context_tokens?))))
    }

    /// Whether an iteration finished without a report of its usage.
    pub fn hides_its_use(&self) -> bool {
        self.skipped.is_none() && self.usage.is_none()
    }

    /// What it cost, where that is known: "$1.84".
    pub fn cost(&self) -> Option<String> {
        self.usage.as_ref()?.cost_text(false)
    }
}

/// How an iteration ended, as one word for lists and filters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationStatus {
    #[default]
    Completed,
    Failed,
    /// Ended by its timeout, or because its agent was silent for too long.
    TimedOut,
    /// Not run.
    Skipped,
    /// Ended by the user, or because the loop's time was used up.
    Interrupted,
}

/// The result of the agent's claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "because")]
pub enum ClaimResult {
    #[default]
    None,
    Accepted,
    /// A success claim that was refused, with the reasons.
    Refused(String),
    Failure(String),
    Blocked(String),
    /// Something that looks like a claim, and what was wrong with it.
    NearMiss(String),
}

/// Whether an iteration changed anything crew can see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    Made,
    None,
    /// The tree could not be examined; unknown progress never stalls a loop.
    #[default]
    Unknown,
}

impl Progress {
    /// The page's word for progress, for none, or for unknown.
    pub fn worded(self, [made, none, unknown]: [&'static str; 3]) -> &'static str {
        match self {
            Self::Made => made,
            Self::None => none,
            Self::Unknown => unknown,
        }
    }
}

/// When a check runs, and what its failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Must pass before a claim is believed.
    Verify,
    /// As `Verify`, and runs after every iteration; if it fails, the iteration is a failure.
    Gate,
    /// Ends the loop when it passes; no claim is needed.
    Until,
}

impl Role {
    /// All roles, in the order in which contracts list checks.
    pub const ALL: [Self; 3] = [Self::Verify, Self::Gate, Self::Until];

    /// The word used in messages, options and files.
    pub fn label(self) -> &'static str {
        variant_name(&self)
    }
}

/// What a check did at this boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Passed,
    Failed,
    /// Ended by its own timeout: a failed check.
    TimedOut,
    /// Died by a signal crew did not send, or did not run: never taken for a failure.
    #[default]
    Unknown,
}

impl Verdict {
    /// "failed (exit 1)", "timed out after 600 s": the result, for people and for the agent.
    pub fn what_happened(self, exit: Option<i32>, elapsed_ms: u64) -> String {
        match (self, exit) {
            (Self::Passed, Some(code)) if code != 0 => format!("passed (exit {code})"),
            (Self::Passed, _) => "passed".to_owned(),
            (Self::Failed, Some(code)) => format!("failed (exit {code})"),
            (Self::Failed, None) => "failed".to_owned(),
            (Self::TimedOut, _) => format!("timed out after {} s", elapsed_ms / 1000),
            (Self::Unknown, _) => "did not finish; its result is unknown".to_owned(),
        }
    }
}

/// One check, run once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The command.
    pub run: String,
    /// Every role of the command in the loop.
    // Only in the evidence.
    pub roles: Vec<Role>,
    pub verdict: Verdict,
    /// Its exit status; `None` if it did not exit by itself.
    pub exit: Option<i32>,
    pub elapsed_ms: u64,
    /// The last lines of its output, of bounded length. In the evidence it is empty for a check
    /// that passed.
    // Bounded; outside of the evidence also that of a check that passed.
    pub tail: String,
    /// Why it did not pass, with the remedy, if no agent can change the reason; else `None`. In a
    /// sentence the command comes before it. Not in the evidence.
    #[serde(skip)]
    pub incurable: Option<String>,
    /// Whether it failed because a program was not found or could not be run, which is not a
    /// failure of what it checks. Not part of the evidence.
    #[serde(skip)]
    pub program_missing: bool,
    /// What its output said about tests; `None` if it spoke of none. Not in the evidence.
    #[serde(skip)]
    pub test_run: Option<TestRun>,
    /// What its output says about tests, beside earlier runs; `None` if it does not speak of any.
    // Only in the evidence.
    pub tests: Option<TestReport>,
}

impl CheckResult {
    /// Why no agent can make it pass: "`make test` was not run: the time is over".
    pub fn incurable_words(&self) -> Option<String> {
        Some(format!("`{}` {}", self.run, self.incurable.as_ref()?))
    }

    /// Whether it passed although its output says that it ran no test: it has neither passed nor
    /// failed then.
    pub fn ran_no_test(&self) -> bool {
        let ran_none = |run: &TestRun| run.nothing.is_some() || !run.ran_any() && !run.has_failed();
        self.verdict == Verdict::Passed && self.test_run.as_ref().is_some_and(ran_none)
    }

    /// "failed (exit 1)", "timed out after 600 s": the result, for people and for the agent.
    pub fn what_happened(&self) -> String {
        self.verdict.what_happened(self.exit, self.elapsed_ms)
    }
}

/// Why checks that pass do not show that the work made them pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoProofCause {
    /// The final tree is the same as at the start.
    NothingChanged,
    /// The only run that did not pass found no program.
    ProgramMissing,
    /// No test that failed passes now, and no more pass than in a run that failed.
    AsManyPass,
}

impl NoProofCause {
    /// The reason, for the user's final report.
    pub fn reason_words(self) -> &'static str {
        match self {
            Self::NothingChanged => "nothing was changed",
            Self::ProgramMissing => "the program was missing",
            Self::AsManyPass => "as many tests pass as before",
        }
    }

    /// Whether the agent can do something about it.
    pub fn is_curable(self) -> bool {
        self != Self::ProgramMissing
    }
}

/// Whether a run that did not pass counts as a failure of what it checks.
pub fn is_failure(result: &CheckResult) -> bool {
    matches!(result.verdict, Verdict::Failed | Verdict::TimedOut) && !result.program_missing
}

/// Whether a check that passes has passed less before: `least` is the fewest tests that passed in a
/// run that failed, `red` are tests that failed, `now` is what the check says of its tests.
pub fn passes_more<'a>(
    least: u32,
    mut red: impl Iterator<Item = &'a str>,
    now: Option<&TestRun>,
) -> Result<(), NoProofCause> {
    // Suites without a number of tests cannot be compared.
    let Some(run) = now.filter(|run| run.ran_any() && run.uncounted == 0) else { return Ok(()) };
    let is_fixed = |name: &str| run.tests.get(name) == Some(&TestStatus::Passed);
    if run.passed > least || red.any(is_fixed) { Ok(()) } else { Err(NoProofCause::AsManyPass) }
}

/// Compares the results `found` before the loop and `now`, both in one folder.
pub fn of_both(found: &CheckResult, now: &CheckResult) -> Result<(), NoProofCause> {
    if !is_failure(found) {
        return Err(NoProofCause::ProgramMissing);
    }
    let run = found.test_run.as_ref();
    let red = run.into_iter().flat_map(|run| run.names_with(TestStatus::Failed));
    passes_more(run.map_or(0, |run| run.passed), red, now.test_run.as_ref())
}

/// The longest path, in characters.
const PATH_CHARS: usize = 300;

/// The results of an iteration, each in a few words; without any, what it changed.
pub fn describe_evidence(evidence: &Evidence) -> Vec<String> {
    let mut parts = list_results(evidence);
    if parts.is_empty() {
        let changed = ["changed something", "changed nothing", "no claim yet"];
        parts.push(evidence.progress_words(changed));
    }
    parts
}

/// Whether an iteration has results, so that it is wrong to say it changed nothing.
pub fn has_results(evidence: &Evidence) -> bool {
    !list_results(evidence).is_empty()
}

fn list_results(evidence: &Evidence) -> Vec<String> {
    let mut parts = Vec::new();
    let changes = evidence.changes.as_ref().filter(|changes| changes.file_count() > 0);
    parts.extend(changes.map(describe_files));
    if evidence.newly_passing > 0 {
        parts.push(format!("{} fixed", count(evidence.newly_passing, "check")));
    }
    parts.extend(evidence.test_news());
    let mut failing = evidence.failing().next().map(describe_red_check);
    let short = |why: &str| clip_line_at_word(why, 80);
    let claim = match &evidence.claim {
        ClaimResult::Refused(why) => {
            Some(("claim refused", failing.take().unwrap_or_else(|| short(why))))
        }
        ClaimResult::NearMiss(why) => Some(("claim not recognized", short(why))),
        ClaimResult::Failure(why) => Some(("the agent said FAILURE", short(why))),
        _ => None,
    };
    parts.extend(claim.map(|(what, wait_or_end_reason)| with_reason(what, &wait_or_end_reason)));
    parts.extend(failing);
    parts.extend(evidence.broken_off());
    parts.extend(evidence.cut.then(|| CUT.to_owned()));
    parts
}

/// "cargo test 2 of 215 fail (was 5)", "lint failed (exit 1)".
fn describe_red_check(check: &CheckResult) -> String {
    let run = clip_line(&check.run, 60);
    let Some(tests) = check.tests.as_ref().filter(|tests| tests.failed() > 0) else {
        return format!("{run} {}", check.what_happened());
    };
    let was = tests.failed_before().map(|was| format!(" (was {was})")).unwrap_or_default();
    format!("{run} {} of {} {}{was}", tests.failed(), tests.total(), tests.verb())
}

/// Lists the results of an iteration, and what else happened: an accepted claim, a failure, an
/// early end.
pub fn list_findings(evidence: &Evidence) -> Vec<String> {
    let mut parts = describe_evidence(evidence);
    if evidence.claim == ClaimResult::Accepted {
        parts.insert(0, "claim accepted".to_owned());
    }
    let is_reported =
        matches!(evidence.claim, ClaimResult::Failure(_)) || evidence.failing().next().is_some();
    if !is_reported {
        parts.extend(evidence.failure.clone());
    }
    parts.extend(evidence.ended.clone());
    parts
}

/// "4 files, 1 new", or the path of the only one; without files, what else changed.
pub fn describe_files(changes: &Changes) -> String {
    let (total, created) = (changes.file_count(), changes.created);
    match (total, &changes.files[..]) {
        (0, _) => {
            let words = changes.change_words().unwrap_or_else(|| "nothing".to_owned());
            return one_line(&words, PATH_CHARS);
        }
        (1, [only]) => return one_line(&only.path, PATH_CHARS),
        _ => {}
    }
    let mut parts = vec![count(total, if created == total { "new file" } else { "file" })];
    if created > 0 && created < total {
        parts.push(format!("{created} new"));
    }
    if changes.deleted > 0 {
        parts.push(format!("{} gone", changes.deleted));
    }
    parts.join(", ")
}

#[cfg(test)]
mod cause_tests {
    use super::*;
    use crate::fixture::result;

    /// "2 a b!": so many pass, and these are named; those with a mark fail.
    fn run(words: &str) -> Option<TestRun> {
        let mut words = words.split_whitespace();
        let mut run = TestRun { passed: words.next()?.parse().unwrap(), ..TestRun::default() };
        for word in words {
            let status = if word.ends_with('!') { TestStatus::Failed } else { TestStatus::Passed };
            run.failed += u32::from(status == TestStatus::Failed);
            run.add_name(word.trim_end_matches('!'), status);
        }
        Some(run)
    }

    #[test]
    fn a_baseline_failure_counts_if_its_test_now_passes_or_more_tests_pass() {
        let table = [
            // As found, and now.
            ("1 a b!", "2 a b", true),
            // The test is gone, is skipped, or is another one.
            ("1 a b!", "1 a", false),
            ("2 a c b!", "2 b a", true),
            // A runner that names only what fails.
            ("1 b!", "2", true),
            ("1 b!", "1", false),
            ("0 a! b!", "0", true),
            // It could not be built, or reported no test.
            ("", "3", true),
            ("", "", true),
            ("1 b!", "", true),
        ];
        for (found, now, expected) in table {
            let found = CheckResult { test_run: run(found), ..result("t", Verdict::Failed) };
            let now = CheckResult { test_run: run(now), ..result("t", Verdict::Passed) };
            assert_eq!(of_both(&found, &now).is_ok(), expected, "{found:?}, {now:?}");
        }
    }

    #[test]
    fn a_missing_program_is_not_a_failed_check() {
        let found = CheckResult { program_missing: true, ..result("t", Verdict::Failed) };
        let now = result("t", Verdict::Passed);
        assert_eq!(of_both(&found, &now), Err(NoProofCause::ProgramMissing));
    }
}
