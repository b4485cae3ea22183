//! What happens in a fleet while it runs, as it happens. Lines for people are made from these.

use chrono::{DateTime, Utc};

use super::lease::{JobPhase, Lease, TaskEnding, TaskState};
use super::task::TaskId;

/// A moment of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetEvent {
    /// An attempt begins.
    Started {
        task: TaskId,
        attempt: u32,
    },
    /// A process that was running already is joined.
    Joined {
        task: TaskId,
    },
    /// An iteration is over.
    Boundary {
        task: TaskId,
        iteration: u32,
        of: u32,
        last: String,
    },
    /// The loop waits for the model's service, or after a crash.
    Rests {
        task: TaskId,
        until: Option<DateTime<Utc>>,
        why: String,
    },
    /// Its branch is being landed.
    Lands {
        task: TaskId,
    },
    /// Its landing sent it back to its loop.
    SentBack {
        task: TaskId,
        why: String,
    },
    Ended {
        task: TaskId,
        ending: TaskEnding,
    },
    /// Its process is gone; it is taken up again.
    Gone {
        task: TaskId,
    },
    /// For information.
    Noted(String),
}

impl FleetEvent {
    /// What happened to a task between two looks at its lease.
    pub fn between(before: Option<&Lease>, after: &Lease) -> Vec<Self> {
        let task = || after.id().clone();
        let mut events = Vec::new();
        let known = before.and_then(Lease::attempt).map(|attempt| &attempt.id);
        if let Some(attempt) = after.attempt()
            && known != Some(&attempt.id)
        {
            let attempts = after.attempts;
            events.push(match before {
                Some(_) => Self::Started { task: task(), attempt: attempts },
                None => Self::Joined { task: task() },
            });
        }
        let (was, is) = (before.map_or(0, |it| it.carried.completed), after.carried.completed);
        if before.is_some() && is > was {
            let (of, last) = (after.contract.limits.max_iterations, after.carried.last.clone());
            events.push(Self::Boundary { task: task(), iteration: is, of, last });
        }
        if before.is_some_and(|before| before.sent_back.is_none())
            && let Some(refusal) = &after.sent_back
        {
            events.push(Self::SentBack { task: task(), why: refusal.why() });
        }
        let phase = |lease: &Lease| lease.attempt().map(|attempt| attempt.phase.clone());
        if before.and_then(phase) != phase(after) {
            match phase(after) {
                Some(JobPhase::Rests { until, why }) => {
                    events.push(Self::Rests { task: task(), until, why });
                }
                Some(JobPhase::Lands) => events.push(Self::Lands { task: task() }),
                _ => {}
            }
        }
        match &after.state {
            TaskState::Ended(ending) if before.is_some_and(|it| it.ending() != Some(ending)) => {
                events.push(Self::Ended { task: task(), ending: ending.clone() });
            }
            _ => {}
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fleet::fixture::{a_lease, after, ended, running};
    use crate::engine::fleet::landing::Refusal;
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
        let looks = [&waits, &works, &works, &one, &rests, &one, &back, &over];
        let told = looks.windows(2).map(|two| {
            let events = FleetEvent::between(Some(two[0]), two[1]);
            let words = events.iter().map(|event| format!("{event:?}"));
            let words = words.map(|it| it.split_whitespace().next().unwrap_or_default().to_owned());
            words.collect::<Vec<_>>().join(" ")
        });
        let expected = ["Started", "", "Boundary", "Rests", "", "SentBack Lands", "Boundary Ended"];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert!(matches!(&FleetEvent::between(None, &works)[..], [FleetEvent::Joined { .. }]));
        assert_eq!(FleetEvent::between(None, &over), []);
    }
}
