//! Whether an iteration changed anything that counts, and why that is the judgement. A state in
//! which the tree was before, and white space, are no progress; a check with another verdict is,
//! and so is work that was only committed. Without a look at the tree it does not guess.

use super::facts::Facts;
use crate::engine::evidence::changes::Changes;
use crate::engine::evidence::{Progress, Verdict};
use crate::engine::record::Loop;
use crate::engine::text::count;

/// Judges an iteration by what changed since the boundary before, with the reason in a few words:
/// "2 files changed, 1 commit", "only white space changed".
pub fn progress(subject: &Loop, facts: &Facts) -> (Progress, String) {
    let verdicts = verdicts(subject, facts);
    let (progress, tree) = tree(subject, facts);
    if verdicts.is_empty() || progress == Progress::Unknown {
        return (progress, tree);
    }
    let tree = Some(tree).filter(|_| progress == Progress::Made);
    let why: Vec<String> = verdicts.into_iter().chain(tree).collect();
    (Progress::Made, why.join(", "))
}

/// "1 check passing now", "1 check failing now".
fn verdicts(subject: &Loop, facts: &Facts) -> Vec<String> {
    let changed = |passed: bool| {
        facts.checks.iter().filter(move |result| {
            let before = subject.state.checks.get(&result.run);
            result.verdict != Verdict::Unknown
                && (result.verdict == Verdict::Passed) == passed
                && before.is_some_and(|memory| memory.last != result.verdict)
        })
    };
    let words = [(true, "passing"), (false, "failing")].map(|(passed, word)| {
        let checks = changed(passed).count() as u64;
        (checks > 0).then(|| format!("{} {word} now", count(checks, "check")))
    });
    words.into_iter().flatten().collect()
}

fn tree(subject: &Loop, facts: &Facts) -> (Progress, String) {
    if !facts.seen.judges_progress(&subject.contract) {
        return (Progress::Unknown, String::new());
    }
    let Some(tree) = &facts.tree else {
        return (Progress::Unknown, "the tree could not be looked at".to_owned());
    };
    let (state, changes) = (&subject.state, facts.changes.as_ref());
    let words = || changes.and_then(Changes::words);
    if changes.is_some_and(|changes| changes.elsewhere > 0) {
        return (Progress::Made, words().unwrap_or_default());
    }
    if state.tree.as_ref() == Some(&tree.identity) {
        let head = changes.and_then(|changes| changes.head.as_ref());
        let is_committed = head.is_some_and(|head| head.commits > 0 && head.holds_work);
        return match words().filter(|_| is_committed) {
            Some(words) => (Progress::Made, words),
            None => (Progress::None, "nothing changed".to_owned()),
        };
    }
    if state.tree.is_some() && state.trees.snapshot.is_some() != tree.snapshot.is_some() {
        return (Progress::Unknown, "the tree was looked at in another way before".to_owned());
    }
    match state.trees.seen_after(&tree.identity) {
        Some(0) => (Progress::None, "the tree is as it was before iteration 1".to_owned()),
        Some(after) => (Progress::None, format!("the tree is as it was after iteration {after}")),
        None if changes.is_some_and(|changes| changes.white_space) => {
            (Progress::None, "only white space changed".to_owned())
        }
        None => (Progress::Made, words().unwrap_or_else(|| "files changed".to_owned())),
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
