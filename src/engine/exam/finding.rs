//! What was found of the exam where a loop would end `completed`, and what that takes away from
//! the belief in its checks.

use super::NAMED_MAX;
use crate::engine::text::named;

/// The option by which a person accepts what the checks rest on as it is now; every reason that
/// only a person can settle names it.
pub const ACCEPT: &str = "--accept-exam";

/// How the final tree does in the exam as the loop found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OldExam {
    Passed,
    /// "`make test` failed (exit 1)".
    Failed(String),
    /// It could not be run, which passes as little; the text says why.
    NotRun(String),
    /// What the checks rest on could not be compared, which is no sign that it is the same.
    Unseen(String),
}

/// The differences from the exam that the loop began with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExamFinding {
    /// The held parts that differ, by name.
    pub changed: Vec<String>,
    /// `None` if nothing held differs, or differences are only reported.
    pub old: Option<OldExam>,
    /// The settings of test runners that differ, by name.
    pub settings: Vec<String>,
    /// Why they could not be compared; `None` if they were.
    pub uncompared: Option<String>,
}

impl ExamFinding {
    /// Why the end is refused, with the remedy; `None` if it stands. `accept` is the command by
    /// which a person accepts what differs.
    pub fn refusal(&self, accept: &str) -> Option<String> {
        let why = match self.old.as_ref()? {
            OldExam::Passed => return None,
            OldExam::Failed(how) => format!("as they were, {how}"),
            OldExam::NotRun(why) => format!("as they were they could not be run: {why}"),
            OldExam::Unseen(why) => {
                return Some(format!(
                    "what the checks rest on could not be compared with what the loop began with ({why}); a \
                     person can accept it as it is: {accept}"
                ));
            }
        };
        Some(format!(
            "the checks rest on {}, changed since the loop began, and {why}; put it back as it was, or let a \
             person accept it: {accept}",
            named(&self.changed, NAMED_MAX)
        ))
    }

    /// Why the proof is at most `passing`.
    pub fn doubts(&self) -> Vec<String> {
        let uncompared = self.uncompared.iter();
        let uncompared =
            uncompared.map(|why| format!("what the checks rest on could not be compared: {why}"));
        let settings = (!self.settings.is_empty()).then(|| {
            format!("settings of the tests were changed: {}", named(&self.settings, NAMED_MAX))
        });
        uncompared.chain(settings).collect()
    }

    /// What a person should know of an end that stands: "proved by the checks as they were".
    pub fn remark(&self) -> Option<String> {
        let how = match self.old {
            Some(OldExam::Passed) => "proved by the checks as they were; changed since",
            _ => "the checks rest on what was changed",
        };
        let is_changed = !self.changed.is_empty();
        is_changed.then(|| format!("{how}: {}", named(&self.changed, NAMED_MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::boundary::decide::{Decision, apply, decide};
    use crate::engine::boundary::judge::judge;
    use crate::engine::claim::Claim;
    use crate::engine::evidence::{ClaimResult, Verdict};
    use crate::engine::fixture::{a_loop_with, facts, result};
    use crate::engine::record::{CheckMemory, Loop, Outcome, Role};

    /// The loop after a claim whose check passes and failed before, and what was decided.
    fn claimed(before: &Loop, exam: Option<ExamFinding>) -> (Loop, String) {
        let mut facts = facts(Claim::Success);
        facts.checks = vec![result("sh check.sh", Verdict::Passed)];
        facts.exam = exam;
        let judged = judge(before, &facts);
        let decision = decide(&judged, &facts);
        let words = match &decision {
            Decision::Finish(ending) => {
                let proof = ending.proof.map_or("-", |proof| proof.label());
                format!("{} {proof}: {}", ending.outcome.label(), ending.why)
            }
            other => format!("{other:?}"),
        };
        (apply(judged, &decision), words)
    }

    fn a_checked_loop() -> Loop {
        let mut subject = a_loop_with(&[("sh check.sh", Role::Verify)]);
        let failed = CheckMemory::of(&result("sh check.sh", Verdict::Failed), 0, None);
        subject.state.checks.insert("sh check.sh".to_owned(), failed);
        subject
    }

    fn changed(old: Option<OldExam>) -> ExamFinding {
        ExamFinding { changed: vec!["check.sh".to_owned()], old, ..ExamFinding::default() }
    }

    #[test]
    fn an_end_stands_with_the_exam_as_it_was_and_a_change_only_takes_belief_away() {
        let settings =
            ExamFinding { settings: vec!["pytest.ini".to_owned()], ..ExamFinding::default() };
        let ends: Vec<String> = [
            None,
            Some(ExamFinding::default()),
            Some(changed(Some(OldExam::Passed))),
            Some(changed(None)),
            Some(settings),
        ]
        .into_iter()
        .map(|exam| claimed(&a_checked_loop(), exam).1)
        .collect();
        insta::assert_snapshot!(ends.join("\n"), @"
        completed checked: a check that had failed now passes
        completed checked: a check that had failed now passes
        completed checked: a check that had failed now passes; proved by the checks as they were; changed since: check.sh
        completed checked: a check that had failed now passes; the checks rest on what was changed: check.sh
        completed passing: the checks pass; settings of the tests were changed: pytest.ini
        ");
    }

    #[test]
    fn an_end_by_a_changed_exam_is_refused_once_and_then_needs_a_person() {
        let failed =
            || Some(changed(Some(OldExam::Failed("`sh check.sh` failed (exit 1)".to_owned()))));
        let (refused, decision) = claimed(&a_checked_loop(), failed());
        assert_eq!(decision, "Continue");
        let evidence = refused.state.evidence.as_ref().unwrap();
        let ClaimResult::Refused(why) = &evidence.claim else { panic!("{:?}", evidence.claim) };
        insta::assert_snapshot!(why, @"the checks rest on check.sh, changed since the loop began, and as they were, `sh check.sh` failed (exit 1); put it back as it was, or let a person accept it: crew resume --accept-exam");
        assert_eq!(evidence.failure, None, "it fails no iteration");
        let (blocked, decision) = claimed(&refused, failed());
        assert_eq!(blocked.outcome(), Some(Outcome::Blocked), "{decision}");
        let (_, decision) = claimed(&refused, None);
        assert!(decision.starts_with("completed checked"), "{decision}");
        let not_run = Some(changed(Some(OldExam::NotRun("no space left".to_owned()))));
        assert_eq!(claimed(&refused, not_run).1, "Continue", "another reason");
    }
}
