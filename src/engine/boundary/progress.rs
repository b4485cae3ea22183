//! Whether an iteration changed anything crew can see. This is the one function to replace if there
//! is better evidence than the working tree's hash and the checks' verdicts. Without a hash it does
//! not guess.

use super::facts::Facts;
use crate::engine::evidence::{Progress, Verdict};
use crate::engine::record::Loop;

/// Progress is a tree or a check's verdict that differs from the boundary before. Without a tree it
/// is unknown.
pub fn progress(subject: &Loop, facts: &Facts) -> Progress {
    let Some(tree) = &facts.tree else { return Progress::Unknown };
    let moved = subject.state.tree.as_ref() != Some(tree);
    let verdict_changed = facts.checks.iter().any(|result| {
        let before = subject.state.checks.get(&result.run);
        result.verdict != Verdict::Unknown
            && before.is_some_and(|memory| memory.last != result.verdict)
    });
    if moved || verdict_changed { Progress::Made } else { Progress::None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::claim::Claim;
    use crate::engine::fixture::{a_loop_with, facts, result};
    use crate::engine::record::{CheckMemory, Role};

    #[test]
    fn a_changed_tree_or_verdict_is_progress_and_no_tree_is_unknown() {
        let mut subject = a_loop_with(&[("test", Role::Gate)]);
        let failing = CheckMemory::of(&result("cargo test", Verdict::Failed), 0, None);
        subject.state.checks.insert("test".to_owned(), failing);
        let same = || Some("tree at the start".to_owned());
        let table = [
            (same(), Verdict::Failed, Progress::None),
            (same(), Verdict::Passed, Progress::Made),
            (same(), Verdict::Unknown, Progress::None),
            (Some("moved".to_owned()), Verdict::Failed, Progress::Made),
            (None, Verdict::Passed, Progress::Unknown),
        ];
        for (tree, verdict, expected) in table {
            let mut facts = facts(Claim::None);
            facts.tree = tree;
            facts.checks = vec![result("test", verdict)];
            assert_eq!(progress(&subject, &facts), expected, "{:?} {verdict:?}", facts.tree);
        }
    }
}
