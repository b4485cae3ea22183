//! What ties a run to a fleet: its leave before an iteration, and what becomes of the work after
//! it. A run that a person typed has no tie. Waiting for leave counts to no limit.

use std::time::Duration;

use super::Runner;
use crate::engine::events::RunEvent;
use crate::engine::record::{Ending, Loop};
use crate::world::clock::{self, RetryPolicy};

/// Between two requests for leave: many runs may wait in line.
const ASKS: RetryPolicy = RetryPolicy {
    within: None,
    first_pause: Duration::from_millis(10),
    longest_pause: Duration::from_millis(200),
};

/// What a fleet answers before an iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    Granted,
    /// Not yet; what the run waits for.
    Later(String),
    /// A person paused the fleet.
    Paused,
    /// The loop ends here.
    Ends(Ending),
}

/// A fleet, as one of its runs sees it.
pub trait Tie {
    /// Asks for leave; is called again until the answer is another than `Later`.
    fn leave(&mut self, record: &Loop) -> Leave;
    /// An iteration begins with this leave. Returns the end of a loop that may not go on.
    fn begins(&mut self, record: &Loop) -> Option<Ending>;
    /// The commit of the main branch that the loop's branch was on, before it is rebased again.
    fn stood_on(&self) -> Option<String>;
    /// The loop waits until what is due, and needs no place meanwhile.
    fn rests(&mut self, record: &Loop);
    /// An iteration is over and its work is kept. Returns the end of a loop that may not go on.
    fn is_over(&mut self, record: &Loop) -> Option<Ending>;
}

impl Runner<'_> {
    /// Waits for leave. False where the loop was paused or ended instead, or a person asked for
    /// something.
    pub(super) fn has_leave(&mut self) -> bool {
        let Some(mut tie) = self.tie.take() else { return true };
        let mut answer = self.ask_for_leave(&mut *tie);
        if answer == Some(Leave::Granted)
            && let Some(ending) = tie.begins(&self.ledger.record)
        {
            answer = Some(Leave::Ends(ending));
        }
        self.tie = Some(tie);
        match answer {
            // The fleet may have left messages for the agent.
            Some(Leave::Granted) => return self.ledger.look() && self.ledger.record.is_live(),
            Some(Leave::Paused) => self.ledger.pause(),
            Some(Leave::Ends(ending)) => self.ledger.end(&ending),
            Some(Leave::Later(_)) | None => self.obey(),
        }
        false
    }

    /// The answer, or `None` where a person asked for something meanwhile.
    fn ask_for_leave(&mut self, tie: &mut dyn Tie) -> Option<Leave> {
        let mut told = None;
        let answered = clock::retry(
            ASKS,
            || false,
            || match tie.leave(&self.ledger.record) {
                Leave::Later(why) => {
                    if told.is_none() {
                        self.tell(&RunEvent::Noted(&format!("waits for {why}")));
                        told = Some(why);
                    }
                    if self.tick() || self.is_asked() { Ok(None) } else { Err(()) }
                }
                answer => Ok(Some(answer)),
            },
        );
        let answer = answered.ok().flatten();
        if let (Some(Leave::Granted), Some(why)) = (&answer, told) {
            self.ledger.begin(&format!("the wait for {why} is over"));
        }
        answer
    }

    /// Gives back what the iteration needed, and ends a loop that may not go on.
    pub(super) fn leave_is_over(&mut self) {
        let Some(mut tie) = self.tie.take() else { return };
        let ending = tie.is_over(&self.ledger.record);
        self.tie = Some(tie);
        if let Some(ending) = ending.filter(|_| self.ledger.record.is_live()) {
            self.ledger.end(&ending);
        }
    }
}
