//! What counts as progress, and the reason that is given for it.

use super::*;
use crate::boundary::decide::{Decision, apply_decision, decide_next};
use crate::boundary::judge::judge_boundary;
use crate::claim::Claim;
use crate::evidence::changes::{ChangeKind, ChangedFile, Changes, HeadMove};
use crate::fixture::{SetState, a_loop, a_loop_with, facts, result};
use crate::record::{CheckMemory, Outcome, Role, TreeSeen};

/// A tree of which snapshots are taken.
fn kept(identity: &str) -> TreeSeen {
    TreeSeen { snapshot: Some(identity.to_owned()), ..identity.into() }
}

fn changed(files: usize, commits: u64) -> Changes {
    let file = ChangedFile {
        path: "a".to_owned(),
        kind: ChangeKind::Modified,
        lines: Some((1, 0)),
        yours: false,
    };
    let head = HeadMove { commits, holds_work: true, ..HeadMove::default() };
    let head = (commits > 0).then_some(head);
    Changes { head, ..Changes::from_files(std::iter::repeat_n(file, files)) }
}

#[test]
fn a_changed_tree_or_verdict_is_progress_and_no_tree_is_unknown() {
    use Progress::{Made, None as Idle, Unknown};
    let mut subject = a_loop_with(&[("test", Role::Gate)]);
    let failing = CheckMemory::from_result(&result("cargo test", Verdict::Failed), 0, None);
    subject.state.remember_check("test".to_owned(), failing);
    subject.state.set("completed", 1);
    for (completed, tree) in [(0, "a"), (1, "b")] {
        subject.state.set("completed", completed);
        subject.state.remember_tree(Some(kept(tree)));
    }
    let blank = Changes { white_space: true, ..changed(1, 0) };
    let empty = Changes {
        head: Some(HeadMove { commits: 1, ..HeadMove::default() }),
        ..Changes::default()
    };
    let table = [
        (Some("b"), None, Verdict::Failed, Idle, "nothing changed"),
        (Some("b"), None, Verdict::Passed, Made, "1 check passing now"),
        (Some("b"), None, Verdict::TimedOut, Idle, "nothing changed"),
        (Some("c"), None, Verdict::TimedOut, Made, "1 check failing now, files changed"),
        (Some("b"), None, Verdict::Unknown, Idle, "nothing changed"),
        (Some("b"), Some(changed(0, 2)), Verdict::Failed, Made, "2 commits"),
        (Some("b"), Some(empty), Verdict::Failed, Idle, "nothing changed"),
        (Some("c"), Some(changed(2, 1)), Verdict::Failed, Made, "2 files changed, +2 −0, 1 commit"),
        (Some("c"), None, Verdict::Passed, Made, "1 check passing now, files changed"),
        (
            Some("a"),
            Some(changed(1, 0)),
            Verdict::Failed,
            Idle,
            "the tree is as it was before iteration 1",
        ),
        (Some("c"), Some(blank), Verdict::Failed, Idle, "only white space changed"),
        (None, None, Verdict::Passed, Unknown, "the tree could not be examined"),
    ];
    for (tree, changes, verdict, expected, why) in table {
        let mut facts = facts(Claim::None);
        facts.tree = tree.map(kept);
        facts.changes = changes;
        facts.checks = vec![result("test", verdict)];
        let judged = judge_progress(&subject, &facts);
        assert_eq!((judged.0, &*judged.1), (expected, why), "{tree:?}");
    }
    let mut other = facts(Claim::None);
    other.tree = Some("hashed in another way".into());
    assert_eq!(judge_progress(&subject, &other).0, Unknown);
}

/// One iteration of a history: the tree it leaves, what changed, the verdict of the only check.
type Step = (&'static str, Changes, Verdict);

/// The outcome of a loop that ends after this history repeated, at the latest after 100 iterations.
fn outcome(history: &[Step]) -> Option<Outcome> {
    let mut subject = a_loop_with(&[("test", Role::Gate)]);
    subject.contract.limits.max_iterations = 0;
    subject.contract.limits.failure_threshold = 0;
    subject.state.remember_tree(Some(kept("as found")));
    for round in 0..100 {
        let (tree, changes, verdict) = &history[round % history.len()];
        let tree = tree.replace('#', &round.to_string());
        let mut facts = facts(Claim::None);
        facts.tree = Some(kept(&tree));
        facts.tree_checked.clone_from(&facts.tree);
        facts.changes = Some(changes.clone());
        facts.checks = vec![result("test", *verdict)];
        let judged = judge_boundary(&subject, &facts);
        let decision = decide_next(&judged, &facts);
        subject = apply_decision(judged, &decision);
        if let Decision::Finish(ending) = decision {
            return Some(ending.outcome);
        }
    }
    None
}

#[test]
fn the_stall_rule_ends_idle_histories_and_no_honest_one() {
    use Verdict::{Failed, Passed};
    let same = || Changes::default();
    let blank = || Changes { white_space: true, ..changed(1, 0) };
    let empty = |head| Changes { head: Some(head), ..Changes::default() };
    let empty_commit = || empty(HeadMove { commits: 1, ..HeadMove::default() });
    let amended = || empty(HeadMove { commits: 1, gone: 1, ..HeadMove::default() });
    let switched =
        |to: &str| empty(HeadMove { switched_to: Some(to.to_owned()), ..HeadMove::default() });
    let idle: [&[Step]; 11] = [
        &[("as found", same(), Failed), ("as found", same(), Verdict::TimedOut)],
        &[("as found", same(), Passed)],
        &[("as found", same(), Failed)],
        &[("a", changed(1, 0), Passed), ("b", changed(1, 0), Passed)],
        &[("a", changed(1, 0), Passed), ("b", changed(2, 0), Passed), ("c", changed(1, 0), Passed)],
        &[("#", blank(), Passed)],
        &[("#", blank(), Passed), ("as found", blank(), Passed)],
        &[("as found", empty_commit(), Passed)],
        &[("as found", amended(), Passed)],
        &[("as found", switched("side"), Passed), ("as found", switched("main"), Passed)],
        &[("a", changed(1, 1), Passed), ("as found", changed(1, 0), Passed)],
    ];
    for history in idle {
        assert_eq!(outcome(history), Some(Outcome::Stalled), "{history:?}");
    }
    let thinks = |times| std::iter::repeat_n(("as found", same(), Passed), times);
    let plan: Vec<Step> =
        std::iter::once(("plan #", changed(1, 0), Passed)).chain(thinks(3)).collect();
    let mut audit = plan.clone();
    audit.truncate(2);
    let honest: [&[Step]; 10] = [
        &[("#", changed(1, 0), Passed)],
        &plan,
        &audit,
        &[("work #", changed(90, 0), Failed)],
        &[("#", changed(3, 0), Failed), ("#", changed(1, 1), Failed)],
        &[("as found", changed(0, 1), Passed)],
        &[("as found", same(), Passed), ("as found", same(), Failed)],
        &[("#", blank(), Passed), ("and #", changed(1, 0), Passed)],
        &[("#", changed(1, 0), Passed), ("as found", changed(1, 0), Passed)],
        &[("#", Changes { left_out: vec!["model.bin".to_owned()], ..same() }, Passed)],
    ];
    for history in honest {
        assert_eq!(outcome(history), None, "{history:?}");
    }
}

#[test]
fn a_record_of_an_older_crew_does_not_count_as_a_stall() {
    let mut subject = a_loop();
    subject.state.set("tree", Some("hashed by an older crew".to_owned()));
    let mut facts = facts(Claim::None);
    facts.tree = Some(kept("a commit"));
    assert_eq!(judge_progress(&subject, &facts).0, Progress::Unknown);
}
