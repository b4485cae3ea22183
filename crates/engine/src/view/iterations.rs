//! One line for each iteration: what changed, what the checks said, what the agent claimed or said.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::evidence::words::describe_files;
use crate::evidence::{CUT, CheckResult, ClaimResult, Evidence, IterationStatus, Verdict};
use crate::journal::Choice;
use crate::journal::story::{Iteration, Story};
use crate::record::{Loop, Proof};
use crate::text::{one_line, with_reason};

/// The most lines of a page; the newest are kept.
pub const LINES_MAX: usize = 12;
/// The longest words of an agent in a line, in characters.
const SAID_CHARS: usize = 200;

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IterationLine {
    pub number: u32,
    pub status: IterationStatus,
    pub started_at: Option<DateTime<Utc>>,
    pub elapsed_ms: u64,
    /// The agent's exit status; `None` if it did not exit by itself.
    pub exit: Option<i32>,
    /// Why it did not run, or not to its end; not written if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Who worked; not written in a loop with one agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// How full the agent's context was at most; not written where the agent does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<u8>,
    /// "4 files, 1 new", "src/tax.rs", "nothing".
    pub files: String,
    /// "2 of 215 fail", "passes"; empty where no check ran.
    pub checks: String,
    pub said: LastWords,
}

/// What is worth telling of an iteration's end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "by", content = "words")]
pub enum LastWords {
    /// By crew: "claimed, refused".
    Crew(String),
    /// The agent's own words, unchecked.
    Agent(String),
    #[default]
    Nothing,
}

/// The newest lines of a story.
pub fn newest_lines(record: &Loop, story: &Story, most: usize) -> Vec<IterationLine> {
    let proof = record.state.ending.as_ref().and_then(|ending| ending.proof);
    let mut lines: Vec<_> =
        story.iterations().map(|it| IterationLine::from_iteration(it, proof)).collect();
    lines.drain(..lines.len().saturating_sub(most));
    lines
}

impl IterationLine {
    /// The line of an iteration; `proof` is that of the loop's end, for the one that ended it.
    pub fn from_iteration(iteration: &Iteration, proof: Option<Proof>) -> Self {
        let evidence = &iteration.evidence;
        Self {
            number: iteration.number,
            status: evidence.status,
            started_at: evidence.started_at,
            elapsed_ms: iteration.elapsed_ms,
            exit: evidence.exit,
            skipped: evidence.skipped.clone(),
            agent: evidence.agent.clone(),
            cost: evidence.cost(),
            context_percent: evidence.context_percent,
            files: evidence
                .changes
                .as_ref()
                .map_or_else(|| describe_progress(evidence), describe_files),
            checks: describe_checks(evidence),
            said: last_words(iteration, proof),
        }
    }
}

/// Whether anything changed, where nothing can say what.
fn describe_progress(evidence: &Evidence) -> String {
    evidence.progress.worded(["something", "nothing", ""]).to_owned()
}

/// What the checks said, in a few words; empty where none ran.
fn describe_checks(evidence: &Evidence) -> String {
    let failing: Vec<&CheckResult> = evidence.failing().collect();
    match (&failing[..], evidence.checks.len()) {
        ([], 0) => String::new(),
        ([], _) => {
            let ran = evidence.checks.iter().filter_map(|check| check.tests.as_ref());
            match ran.map(|tests| u64::from(tests.passed)).sum::<u64>() {
                0 => "passes".to_owned(),
                1 => "1 test passes".to_owned(),
                passed => format!("{passed} tests pass"),
            }
        }
        ([check, ..], _) => describe_failure(check),
    }
}

/// "2 of 215 fail", "lint fails".
fn describe_failure(check: &CheckResult) -> String {
    if let Some(tests) = check.tests.as_ref().filter(|tests| tests.failed > 0) {
        return format!("{} of {} {}", tests.failed, tests.total(), tests.verb());
    }
    match check.verdict {
        Verdict::TimedOut => "timed out".to_owned(),
        Verdict::Unknown => "did not finish".to_owned(),
        Verdict::Failed | Verdict::Passed => "fails".to_owned(),
    }
}

fn last_words(iteration: &Iteration, proof: Option<Proof>) -> LastWords {
    let evidence = &iteration.evidence;
    let is_end = iteration.decision == Choice::Finish;
    // A failed gate stands in the column of the checks.
    let whole = evidence.failure.as_deref().filter(|_| evidence.said.is_none());
    let failure = evidence.other_failure().or(whole);
    let told = match (&evidence.claim, failure) {
        (ClaimResult::Accepted, _) => {
            let proof = match proof.filter(|_| is_end) {
                None => "accepted",
                Some(Proof::Claimed) => "unchecked",
                Some(proof) => proof.label(),
            };
            Some(format!("claimed, {proof}"))
        }
        (ClaimResult::Refused(_), _) => Some("claimed, refused".to_owned()),
        (ClaimResult::NearMiss(_), _) => Some("claimed, not heard".to_owned()),
        (ClaimResult::Blocked(_), _) => Some("blocked".to_owned()),
        (ClaimResult::Failure(why), _) => Some(with_reason("said it failed", why)),
        (ClaimResult::None, Some(failure)) => Some(failure.to_owned()),
        (ClaimResult::None, None) if evidence.cut => Some(CUT.to_owned()),
        (ClaimResult::None, None) => evidence.unended(),
    };
    match (told, &evidence.said) {
        (Some(told), _) => LastWords::Crew(one_line(&told, SAID_CHARS)),
        (None, Some(said)) => LastWords::Agent(one_line(said, SAID_CHARS)),
        (None, None) => LastWords::Nothing,
    }
}
