//! What an iteration came to, in a few words: its files, what the checks said, and its claim.

use super::changes::Changes;
use super::{CUT, CheckResult, ClaimResult, Evidence};
use crate::text::{clip_line, clip_line_at_word, count, one_line, with_reason};

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

/// Whether an iteration has results, so that nobody has said that it changed nothing.
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
    let Some(tests) = check.tests.as_ref().filter(|tests| tests.failed > 0) else {
        return format!("{run} {}", check.what_happened());
    };
    let was = tests.failed_before.map(|was| format!(" (was {was})")).unwrap_or_default();
    format!("{run} {} of {} {}{was}", tests.failed, tests.total(), tests.verb())
}

/// The same with what else happened: a claim that was accepted, a failure, an early end.
pub fn list_findings(evidence: &Evidence) -> Vec<String> {
    let mut parts = describe_evidence(evidence);
    if evidence.claim == ClaimResult::Accepted {
        parts.insert(0, "claim accepted".to_owned());
    }
    let is_told =
        matches!(evidence.claim, ClaimResult::Failure(_)) || evidence.failing().next().is_some();
    parts.extend(evidence.failure.clone().filter(|_| !is_told));
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
    let some = |number: u64, word: &str| (number > 0).then(|| format!("{number} {word}"));
    let mut parts = vec![count(total, if created == total { "new file" } else { "file" })];
    parts.extend(some(created, "new").filter(|_| created < total));
    parts.extend(some(changes.deleted, "gone"));
    parts.join(", ")
}
