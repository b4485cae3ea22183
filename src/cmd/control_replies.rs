//! The results of orders, in the same words for a terminal and for the client.

use std::path::Path;

use crate::clients;
use crate::clients::spelling::{going_on, split};
use crate::drive::control::{PauseResult, Paused};
use crate::drive::end::EndAttempt;
use crate::engine::record::{Loop, Obeyed, Status};
use crate::engine::text::clean;
use crate::engine::view::Fact;
use crate::report::page::Reading;
use crate::report::{line, page};
use crate::world::clock;

/// What a cancel in a terminal cannot end.
const TURN_GOES_ON: &str = "its agent finishes the turn it is in; Esc in the client stops it";

/// The result of a cancel from outside the session, whose client cannot be told to stop.
pub fn cancelled_from_outside(attempt: &EndAttempt, reading: Reading) -> String {
    match attempt {
        EndAttempt::Ended(ended) if ended.turn_goes_on => {
            let mut page = ended.page.clone();
            page.ending.push(Fact::new("now", TURN_GOES_ON));
            page::text(&page, reading)
        }
        _ => cancelled(attempt, reading),
    }
}

/// The result of a cancel.
pub fn cancelled(attempt: &EndAttempt, reading: Reading) -> String {
    match attempt {
        EndAttempt::Ended(ended) => page::text(&ended.page, reading),
        EndAttempt::Over(record) => clean(&over(record)),
        EndAttempt::LeftToTheBoundary => {
            "cancelled: the process that runs the loop ends it in a moment".to_owned()
        }
    }
}

/// The result of a pause.
pub fn paused(Paused { record, how }: &Paused) -> String {
    let (id, iteration, goes_on) = (&record.id, record.iteration(), going_on(record));
    let what = match how {
        PauseResult::Now => line::status_line(record, clock::local()),
        PauseResult::AfterIteration => line::pausing(record),
        PauseResult::BreakingOff => format!("is being paused; iteration {iteration} is repeated"),
        PauseResult::Already => {
            return format!("loop {id} is already paused, at iteration {iteration}");
        }
        PauseResult::Over => return over(record),
    };
    format!("loop {id}: {what} · {goes_on} resumes it")
}

/// The reply when the client delivers a queued command that was already obeyed.
pub fn already(obeyed: &Obeyed, record: &Loop) -> String {
    let Obeyed { command, iteration } = obeyed;
    let what = match split(clients::of(&record.state.owner), command).map(|(name, _)| name) {
        Some("pause") => format!("loop {} was paused", record.id),
        Some("cancel-loop") => format!("loop {} was cancelled", record.id),
        _ => format!("{command} was answered"),
    };
    format!("{what} already, at iteration {iteration}")
}

fn over(record: &Loop) -> String {
    format!("loop {} is already over: {}", record.id, line::status_line(record, clock::local()))
}

/// When the agent gets a message.
pub fn told(record: &Loop) -> String {
    let max = record.contract.limits.max_iterations;
    // A wake delivers it, too.
    let is_at_work = record.state.status == Status::Running && record.state.due.is_none();
    if is_at_work && record.iteration() == max {
        let id = &record.id;
        return format!(
            "this is its last iteration: crew set {id} -n +1, or later crew resume {id} -n +1, \
             delivers it"
        );
    }
    "the agent gets the message with its next prompt".to_owned()
}

/// Where a handoff is.
pub fn handed_off(file: &Path) -> String {
    format!("handoff: {}", file.display())
}
