//! The client's cap on consecutive hooks that let the agent continue, and the ways around it. Only
//! the first few continuations of such a row are given in the agent's own turn. The next is a wake
//! by the companion, which starts a separate turn that the client does not count. A client that
//! cannot be woken hands over at its cap.

use std::path::PathBuf;
use std::time::Duration;

use crate::clients::spelling::going_on;
use crate::clients::{Hook, Stopped, Transcript};
use crate::engine::record::Loop;
use crate::engine::record::outcome::{Ending, Outcome};
use crate::engine::words::prompt;
use crate::world::clock::Deadline;
use crate::world::files::disk;
use crate::world::store::home::Home;
use crate::world::store::wakes;

/// How many continuations below the cap are kept in reserve, in case no companion is available.
const IN_HAND: i64 = 2;
/// How long a companion is waited for.
pub const COMPANION_WAIT: Duration = Duration::from_secs(2);
/// How much of a transcript's end holds most turns. More is read only for a turn that does not fit.
const TURN_BYTES: u64 = 128 << 10;
/// How much of a transcript's end is read.
pub const TRANSCRIPT_BYTES: u64 = 512 << 10;
/// How long the transcript's last lines are waited for.
pub const TRANSCRIPT_WAIT: Duration = Duration::from_millis(500);

/// How a loop that continues gets its next turn.
#[derive(Debug)]
pub enum NextTurn {
    /// In this turn.
    Context,
    /// By this companion.
    Wake { file: PathBuf, pid: i32 },
    /// The client would override the hook, and there is no companion.
    None,
}

impl NextTurn {
    /// Chooses after `row` continuations in a row without a tool call.
    pub fn choose(home: &Home, hook: &Hook<'_>, row: u32) -> Self {
        if !is_near(hook, row) {
            return Self::Context;
        }
        match Self::wake(home, hook) {
            None if allows(hook, row) => Self::Context,
            None => Self::None,
            Some(wake) => wake,
        }
    }

    /// By a companion. The client starts it beside the hook, so it may not be ready yet.
    pub fn wake(home: &Home, hook: &Hook<'_>) -> Option<Self> {
        let session_id = hook.session_id.as_deref().filter(|_| hook.abilities().wakes)?;
        let companion = Deadline::after(COMPANION_WAIT)
            .poll(Duration::from_millis(5), || wakes::waiting(home, session_id));
        companion.map(|(file, pid)| Self::Wake { file, pid })
    }
}

/// Whether the client would honour one more continuation.
pub fn allows(hook: &Hook<'_>, row: u32) -> bool {
    cap(hook).is_none_or(|cap| i64::from(row) < cap)
}

/// Whether one more continuation would use the reserve below the cap.
fn is_near(hook: &Hook<'_>, row: u32) -> bool {
    let usual = hook.abilities().cap.as_ref().map_or(0, |cap| cap.usual);
    cap(hook).is_some_and(|cap| i64::from(row) >= cap.min(usual) - IN_HAND)
}

/// The client's cap, if it has one. A value that is not a number means the usual cap; 0 or less
/// means none.
fn cap(hook: &Hook<'_>) -> Option<i64> {
    let cap = hook.abilities().cap.as_ref()?;
    let set = cap.variable.and_then(hook.variable);
    let set = set.and_then(|text| text.to_str()?.trim().parse().ok());
    Some(set.unwrap_or(cap.usual)).filter(|cap| *cap > 0)
}

/// Whether a tool call of the agent does not reset the cap.
fn is_hard(hook: &Hook<'_>) -> bool {
    hook.abilities().cap.as_ref().is_some_and(|cap| !cap.tools_reset_it)
}

/// What the user should know if the loop's own limit is above a hard cap.
pub fn at_the_start(hook: &Hook<'_>, record: &Loop) -> Option<String> {
    let cap = cap(hook).filter(|_| is_hard(hook))?;
    let max = i64::from(record.contract.limits.max_iterations);
    let resume = going_on(record);
    (max == 0 || max > cap + 1).then(|| {
        format!("at most {} iterations here, by the client's cap: then {resume} goes on", cap + 1)
    })
}

/// The end of a loop that the client does not let continue.
pub fn met(hook: &Hook<'_>) -> Ending {
    let (outcome, why) = if is_hard(hook) {
        (Outcome::Interrupted, "the client lets no hook go on any more")
    } else {
        (Outcome::Stalled, "the agent used no tool for so long that the client lets no hook go on")
    };
    let variable = hook.abilities().cap.as_ref().and_then(|cap| cap.variable);
    let lifted = variable.map_or_else(String::new, |name| format!("; {name}=0 lifts its cap"));
    Ending::new(outcome, format!("{why}{lifted}"))
}

/// Whether a transcript already contains the agent's last `words`. A client may trim what it
/// reports.
pub fn ends_with(reader: &Transcript, tail: &str, words: &str) -> bool {
    (reader.final_text)(tail).is_some_and(|text| text.trim() == words.trim())
}

/// Continuations in a row without a tool call, and whether the turn that ends now used one. The
/// transcript is written late (up to 200 ms seen), so its last lines are waited for when the row is
/// about to matter.
pub fn row(before: &Loop, hook: &Hook<'_>, stopped: &Stopped) -> (u32, bool) {
    let memory = &before.state.session;
    let row = if memory.prompt_id == hook.turn { memory.without_tools } else { 0 };
    let transcript = hook.transcript.as_deref().zip(hook.reader());
    let Some((file, reader)) = transcript else { return (row, false) };
    let marker = prompt::marker(before);
    let read = || {
        let end = |bytes| disk::read_end(file, memory.transcript_bytes, bytes).ok();
        let (tail, cut) = end(TURN_BYTES)?;
        if let Some(used_a_tool) = (reader.used_a_tool)(&tail, &marker, cut) {
            return Some((tail, used_a_tool));
        }
        let (tail, cut) = end(TRANSCRIPT_BYTES)?;
        let used_a_tool = (reader.used_a_tool)(&tail, &marker, cut);
        Some((tail, used_a_tool == Some(true)))
    };
    let words = stopped.last_message.as_deref();
    let whole = |(tail, used_a_tool): &(String, bool)| {
        *used_a_tool || words.is_some_and(|words| ends_with(reader, tail, words))
    };
    let matters = is_near(hook, row) || !stopped.background.is_empty();
    let found = if matters && disk::exists(file) {
        Deadline::after(TRANSCRIPT_WAIT)
            .poll(Duration::from_millis(10), || read().filter(|found| whole(found)))
    } else {
        read()
    };
    let used_a_tool = found.is_some_and(|(_, used_a_tool)| used_a_tool);
    (if used_a_tool && !is_hard(hook) { 0 } else { row }, used_a_tool)
}
