//! What happens in a fleet while it runs, as it happens. Lines for people are made from these.

use chrono::{DateTime, Utc};

use super::lease::{Attempt, JobPhase, Lease, TaskEnding, TaskState};
use super::manifest::{FleetRequest, TaskId};

/// A moment of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetEvent {
    /// Something happened to a task.
    Of(TaskId, TaskEvent),
    /// For information.
    Noted(String),
}

/// What happened to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEvent {
    /// This attempt begins, counted from 1.
    Started(u32),
    /// A process that was running already is joined.
    Joined,
    /// An iteration is over.
    Boundary {
        iteration: u32,
        of: u32,
        last: String,
    },
    /// The loop waits for the model's service, or after a crash.
    Rests {
        until: Option<DateTime<Utc>>,
        why: String,
    },
    /// That wait is over.
    Resumes,
    /// A person's pause has stopped it.
    Paused,
    /// Its branch is being landed.
    Lands,
    /// Its landing sent it back to its loop, for this reason.
    SentBack(String),
    Ended(TaskEnding),
    /// Its process is gone; it is taken up again. The text is the executor's reason, if it has one.
    Gone(String),
}

impl TaskEvent {
    /// What happened to a task between two looks at its lease, with the order that it is under.
    pub fn between(
        before: Option<&Lease>,
        after: &Lease,
        order: Option<FleetRequest>,
    ) -> Vec<Self> {
        let mut events = Vec::new();
        match before {
            // It may also have ended since.
            Some(before) if after.attempts > before.attempts => {
                events.push(Self::Started(after.attempts));
            }
            None if after.attempt().is_some() => events.push(Self::Joined),
            _ => {}
        }
        let rested = before.and_then(Lease::attempt).filter(|attempt| attempt.rests());
        let is_awake = |now: &Attempt| rested.is_some_and(|then| then.id == now.id) && !now.rests();
        if after.attempt().is_some_and(is_awake) {
            events.push(Self::Resumes);
        }
        let (was, is) = (before.map_or(0, |it| it.carried.completed), after.carried.completed);
        let (of, last) = (after.contract.limits.max_iterations, after.carried.last.clone());
        let has_ended = before.is_some() && is > was;
        let boundary = has_ended.then_some(Self::Boundary { iteration: is, of, last });
        let is_new = before.is_some_and(|before| before.sent_back.is_none());
        let refusal = after.sent_back.as_ref().filter(|_| is_new);
        let sent_back = refusal.map(|it| Self::SentBack(it.why()));
        let phase = |lease: &Lease| lease.attempt().map(|attempt| attempt.phase.clone());
        // The iteration of a branch that was being landed is one that begins with the refusal.
        let was_landing = before.and_then(phase) == Some(JobPhase::Lands);
        let [first, second] =
            if was_landing { [sent_back, boundary] } else { [boundary, sent_back] };
        events.extend(first.into_iter().chain(second));
        match phase(after).filter(|now| before.and_then(phase).as_ref() != Some(now)) {
            Some(JobPhase::Rests { until, why }) => events.push(Self::Rests { until, why }),
            Some(JobPhase::Lands) => events.push(Self::Lands),
            _ => {}
        }
        match (&after.state, before) {
            (TaskState::Waiting, Some(before))
                if order == Some(FleetRequest::Pause) && before.attempt().is_some() =>
            {
                events.push(Self::Paused);
            }
            (TaskState::Ended(ending), Some(before)) if before.ending() != Some(ending) => {
                events.push(Self::Ended(ending.clone()));
            }
            _ => {}
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fleet::Refusal;
    use crate::engine::fleet::fixture::{a_lease, after, ended, running};
    use crate::engine::record::Outcome;

    #[test]
    fn what_happened_between_two_looks_is_told_once_and_in_order() {
        let waits = a_lease("a");
        let works = running("a", JobPhase::Lines);
        let one = after(works.clone(), 1, 1, 0, "files changed");
        let rests = JobPhase::Rests { until: None, why: "a limit".to_owned() };
        let rests = after(running("a", rests), 1, 1, 0, "files changed");
        let mut back = after(running("a", JobPhase::Lands), 1, 1, 0, "files changed");
        back.sent_back = Some(Refusal::Conflict(vec!["x".to_owned()]));
        let over = after(ended("a", Outcome::Completed, "done", 9), 2, 2, 0, "");
        let mut settled = after(running("a", JobPhase::Lines), 2, 2, 0, "");
        settled.sent_back.clone_from(&back.sent_back);
        let lands = after(running("a", JobPhase::Lands), 1, 1, 0, "files changed");
        let looks = [&waits, &works, &works, &one, &rests, &rests, &one, &back, &over];
        let told = looks.windows(2).map(|two| {
            let events = TaskEvent::between(Some(two[0]), two[1], None);
            let words = events.iter().map(|event| format!("{event:?}"));
            let words = words.map(|it| it.split([' ', '(']).next().unwrap_or_default().to_owned());
            words.collect::<Vec<_>>().join(" ")
        });
        let expected =
            ["Started", "", "Boundary", "Rests", "", "Resumes", "SentBack Lands", "Boundary Ended"];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let both = TaskEvent::between(Some(&lands), &settled, None);
        assert!(
            matches!(&both[..], [TaskEvent::SentBack(..), TaskEvent::Boundary { .. }]),
            "{both:?}"
        );
        let met_again = TaskEvent::between(Some(&rests), &after(rests.clone(), 2, 1, 0, ""), None);
        assert!(matches!(&met_again[..], [TaskEvent::Boundary { .. }]), "{met_again:?}");
        assert!(matches!(&TaskEvent::between(None, &works, None)[..], [TaskEvent::Joined]));
        assert_eq!(TaskEvent::between(None, &over, None), []);
        let rested = after(a_lease("a"), 1, 1, 0, "files changed");
        let pause = Some(FleetRequest::Pause);
        let paused = [&one, &rested].map(|it| TaskEvent::between(Some(it), &rested, pause));
        assert!(matches!(&paused[0][..], [TaskEvent::Paused]), "{paused:?}");
        assert_eq!(
            (&paused[1][..], TaskEvent::between(Some(&one), &rested, None)),
            (&[][..], vec![])
        );
    }
}
