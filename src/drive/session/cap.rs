//! The client's cap on consecutive hooks that let the agent continue, and the ways around it. Only
//! the first few continuations of such a row are given in the agent's own turn. The next is a wake
//! by the companion, which starts a separate turn that the client does not count. A client that
//! cannot be woken hands over at its cap.

use std::path::PathBuf;
use std::time::Duration;

use crate::clients::{Hook, Stopped};
use crate::drive::meter::{TRANSCRIPT_BYTES, TRANSCRIPT_WAIT, ends_with};
use crate::drive::windows::LoopTurn;
use crate::engine::record::{Ending, Loop, Outcome};
use crate::engine::words::prompt;
use crate::world::clock::Deadline;
use crate::world::files::disk;
use crate::world::store::{Home, wakes};

/// How many continuations below the cap are kept in reserve, in case no companion is available.
const IN_HAND: i64 = 2;
/// How long a companion is waited for.
pub const COMPANION_WAIT: Duration = Duration::from_secs(2);
/// How much of a transcript's end holds most turns. More is read only for a turn that does not fit.
const TURN_BYTES: u64 = 128 << 10;

/// How a loop that continues gets its next turn.
#[derive(Debug)]
pub enum NextTurn {
    /// In this turn.
    Context,
    /// By this companion.
    Wake { file: PathBuf, pid: i32 },
    /// The client would override the hook and there is no companion, or the loop must wait where
    /// nobody is at the client.
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

    /// After a wait, which only a companion can end, where somebody is at the client.
    pub fn later(home: &Home, hook: &Hook<'_>) -> Option<Self> {
        hook.may_wake().then(|| Self::wake(home, hook)).flatten()
    }

    /// By a companion. The client starts it beside the hook, so it may not be ready yet.
    pub fn wake(home: &Home, hook: &Hook<'_>) -> Option<Self> {
        let session_id = hook.session_id.as_deref().filter(|_| hook.client.wakes)?;
        let companion = Deadline::after(COMPANION_WAIT)
            .poll(Duration::from_millis(5), || wakes::waiting(home, session_id));
        companion.map(|(file, pid)| Self::Wake { file, pid })
    }
}

/// Whether the client would honour one more continuation.
pub fn allows(hook: &Hook<'_>, row: u32) -> bool {
    hook.cap().is_none_or(|cap| i64::from(row) < cap)
}

/// Whether one more continuation would use the reserve below the cap.
fn is_near(hook: &Hook<'_>, row: u32) -> bool {
    let usual = hook.client.cap.as_ref().map_or(0, |cap| cap.usual);
    hook.cap().is_some_and(|cap| i64::from(row) >= cap.min(usual) - IN_HAND)
}

/// The end of a loop that the client does not let continue.
pub fn ending_at_the_cap(hook: &Hook<'_>) -> Ending {
    let why = "the agent used no tool for so long that the client no longer lets a hook continue the turn";
    let variable = hook.client.cap.as_ref().and_then(|cap| cap.variable);
    let lifted = variable.map_or_else(String::new, |name| format!("; {name}=0 lifts its cap"));
    Ending::new(Outcome::Stalled, format!("{why}{lifted}"))
}

/// The end of a loop that has no next turn, because of a wait that its session cannot make or of
/// the client's cap.
pub fn ending(hook: &Hook<'_>, turn: Option<&LoopTurn>) -> Ending {
    let Some(turn) = turn else { return ending_at_the_cap(hook) };
    Ending::new(Outcome::Interrupted, format!("{}; this session cannot wait for it", turn.why))
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
    (if used_a_tool { 0 } else { row }, used_a_tool)
}
