//! The changes of a record between two boundaries, as values.

use crate::drive::windows::LoopTurn;
use engine::journal::JournalNote;
use engine::record::{Ending, FallbackAgent, Loop, Moment, Pending, Status};

/// A change of the record between two boundaries.
pub enum RecordChange<'a> {
    /// An iteration starts after a rest, whose time counts as the loop's and not the iteration's.
    Begin(String),
    Pause,
    End(Ending),
    /// The loop waits for its turn after a limit that another one met.
    HoldBack(LoopTurn),
    /// Another agent works from here on, at once.
    HandTo {
        next: Option<FallbackAgent>,
        what: String,
    },
    /// A fallback is out of the loop.
    Lose {
        agent: String,
        what: String,
    },
    /// Any other, with its line in the journal.
    Edit(JournalNote, &'a dyn Fn(&mut Loop)),
}

impl RecordChange<'_> {
    /// Whether the record can change like this: only an edit changes a loop that is over.
    pub fn suits(&self, record: &Loop) -> bool {
        record.is_live() || matches!(self, Self::Edit(..))
    }

    /// The line in the journal.
    pub fn note(&self) -> JournalNote {
        match self {
            Self::Edit(note, _) => note.clone(),
            Self::Pause => "paused by the user".into(),
            Self::End(ending) => ending.reason.to_string().into(),
            Self::HoldBack(turn) => format!("waits for its turn: {}", turn.why).into(),
            Self::Begin(what) | Self::HandTo { what, .. } | Self::Lose { what, .. } => {
                what.as_str().into()
            }
        }
    }

    /// Makes the change in the record of a run that this process drives.
    pub fn apply(&self, now: Moment, record: &mut Loop) {
        let state = &mut record.state;
        let spent_ms = now.awake_ms.saturating_sub(state.time().began().awake_ms);
        match self {
            Self::Begin(_) => state.begin_iteration(now),
            Self::Pause => state.pause(now, spent_ms),
            Self::End(ending) => {
                let is_at_work = state.status() == Status::Running;
                state.finish(ending.clone(), if is_at_work { spent_ms } else { 0 });
                record.state.git_mut().pending = Pending::after_boundary(record, false);
            }
            Self::HoldBack(turn) => turn.hold_back(record),
            Self::HandTo { next, .. } => {
                state.hand_to_agent(next.clone());
                if state.status() == Status::Waiting {
                    state.begin_iteration(now);
                }
            }
            Self::Lose { agent, .. } => state.lose_agent(agent.clone()),
            Self::Edit(_, change) => change(record),
        }
    }
}
