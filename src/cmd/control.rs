//! The verbs that control a loop from any terminal, and `crew tell`, a message for its agent.

use anyhow::{Result, bail};

use super::{actor, control_replies, ordered, print, reading, refuse_an_agent, requested};
use crate::drive::control;
use crate::drive::end::{self, handoff};
use crate::drive::owner::owner_is_gone;
use crate::engine::boundary::limits::{self, LimitChange, LimitChanges};
use crate::engine::record::Status;
use crate::engine::text::clean;
use crate::exit::Exit;
use crate::parse::arguments::{SetArgs, UsageError};
use crate::parse::requests::handoff_of_shell;
use crate::world::store;

// `crew cancel`: ends a loop from any terminal. The order is a separate file, so it needs no
// model, and a hook in flight cannot undo it.

/// Cancels the requested loop.
pub fn cancel(name: Option<&str>, reason: Option<&str>) -> Result<Exit> {
    ordered(
        name,
        |home, id| {
            let attempt = end::cancel(home, id, actor(), reason)?;
            Ok(control_replies::cancelled_from_outside(&attempt, reading()))
        },
        ("cancelled", |home, id| store::order_cancel(home, id, actor(), reason)),
    )
}

// `crew pause`: lets the running iteration end and prevents the next one, from any terminal.

/// Pauses the requested loop.
pub fn pause(name: Option<&str>, now: bool) -> Result<Exit> {
    ordered(
        name,
        |home, id| Ok(clean(&control_replies::paused(&control::pause(home, id, actor(), now)?))),
        ("asked to pause", |home, id| store::order_pause(home, id, actor(), now)),
    )
}

// `crew set`: changes the limits of a live loop. An agent may lower them, never raise them.

/// Changes the limits of the requested loop.
pub fn set(arguments: &SetArgs) -> Result<Exit> {
    let changes: LimitChanges = arguments.limits.by_key().collect();
    if changes.is_empty() {
        bail!(UsageError::new("no limit is named", "crew set --max-iterations 30, or -n +10"));
    }
    if changes.values().any(|change| *change == LimitChange::By(0)) {
        bail!(UsageError::new(
            "`+0` adds nothing to a limit",
            "crew set -n +10 adds ten iterations"
        ));
    }
    let (home, record) = requested(arguments.name.as_deref())?;
    let record = control::set(&home, &record.id, &changes, actor())?;
    print::out(&format!("loop {}: {}", record.id, limits::named(&record.contract.limits)));
    Ok(Exit::SUCCESS)
}

// `crew handoff`: a page for the next worker, in the middle of a loop.

/// Writes a page for the requested loop.
pub fn handoff(words: &[String], kind: Option<&str>, name: Option<&str>) -> Result<Exit> {
    let (home, record) = requested(name)?;
    let (kind, told) = handoff_of_shell(kind, words);
    let page = handoff::write(&home, &record, &kind, &told, actor())?;
    print::out(&control_replies::handed_off(&page));
    if record.state.status == Status::Running {
        print::aside("it is read when somebody resumes the loop; crew tell reaches its agent now");
    }
    Ok(Exit::SUCCESS)
}

/// The refusal inside an agent.
pub const NOT_FOR_AN_AGENT: &str = "an agent cannot send a message to a loop, neither to its own \
    nor to another: only a person steers a loop\n\
    hint: say it in your last message, which the next iteration and the person read";

/// Queues a message for the agent of the requested loop.
pub fn tell(words: &[String], name: Option<&str>) -> Result<Exit> {
    refuse_an_agent(NOT_FOR_AN_AGENT)?;
    let words = control::tellable(&words.join(" "))?;
    let (home, record) = requested(name)?;
    let record = control::tell(&home, &record.id, &words)?;
    let id = &record.id;
    let resume = record.fleet_resume().unwrap_or_else(|| format!("crew resume {id}"));
    let gone = format!("kept, but nobody drives it any more · {resume} resumes it");
    let told = if owner_is_gone(&home, &record) { gone } else { control_replies::told(&record) };
    print::out(&format!("loop {id}: {told}"));
    Ok(Exit::SUCCESS)
}
