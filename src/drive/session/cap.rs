//! The client's cap, and the roads round it. The client overrides the ninth hook in a row that lets the
//! agent go on without a tool call between (tried on 2.1.197 and 2.1.330). So only the first few
//! continuations of such a row are given in the agent's own turn; the next is a wake by the companion,
//! which starts a turn of its own and is not counted.

use std::path::PathBuf;
use std::time::Duration;

use crate::engine::record::Loop;
use crate::engine::record::outcome::{Ending, Outcome};
use crate::engine::words::prompt;
use crate::parse::payload::Payload;
use crate::parse::transcript;
use crate::world::clock::Deadline;
use crate::world::env;
use crate::world::files::disk;
use crate::world::store::home::Home;
use crate::world::store::wakes;

/// The client's cap where nothing says otherwise.
const CAP: i64 = 8;
/// How many continuations are kept in hand below the cap, for when no companion can be had.
const IN_HAND: i64 = 2;
/// How long a companion is waited for.
pub const COMPANION_WAIT: Duration = Duration::from_secs(2);
/// How much of a transcript's end most turns fit in: more is read only where one does not.
const TURN_BYTES: u64 = 128 << 10;
/// How much of a transcript's end is read.
pub const TRANSCRIPT_BYTES: u64 = 512 << 10;
/// How long the transcript's last lines are waited for.
pub const TRANSCRIPT_WAIT: Duration = Duration::from_millis(500);

/// How a loop that goes on gets its next turn.
#[derive(Debug)]
pub enum NextTurn {
    /// In this turn.
    Context,
    /// By this companion.
    Wake { file: PathBuf, pid: i32 },
    /// The client would override us, and there is no companion.
    None,
}

impl NextTurn {
    /// Chooses after `row` continuations in a row without a tool call.
    pub fn choose(home: &Home, session_id: &str, row: u32) -> Self {
        if !is_near(row) {
            return Self::Context;
        }
        match Self::wake(home, session_id) {
            None if allows(row) => Self::Context,
            None => Self::None,
            Some(wake) => wake,
        }
    }

    /// By a companion; client and hook start it side by side, so it may not be there yet.
    pub fn wake(home: &Home, session_id: &str) -> Option<Self> {
        let companion = Deadline::after(COMPANION_WAIT)
            .poll(Duration::from_millis(5), || wakes::waiting(home, session_id));
        companion.map(|(file, pid)| Self::Wake { file, pid })
    }
}

/// Whether the client would honour one more continuation.
pub fn allows(row: u32) -> bool {
    let cap = cap();
    cap <= 0 || i64::from(row) < cap
}

/// Whether one more continuation would use up what is kept in hand below the cap.
fn is_near(row: u32) -> bool {
    let cap = cap();
    cap > 0 && i64::from(row) >= cap.min(CAP) - IN_HAND
}

/// The client's cap: 0 or less is none; what is no number is the client's default.
fn cap() -> i64 {
    let set =
        env::text("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").and_then(|text| text.trim().parse().ok());
    set.unwrap_or(CAP)
}

/// The end of a loop that the client would not let go on.
pub fn met() -> Ending {
    let why = "the agent used no tool for so long that the client lets no hook go on; \
               CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 lifts its cap";
    Ending { outcome: Outcome::Stalled, proof: None, why: why.to_owned() }
}

/// Continuations in a row that used no tool, and whether the turn that ends now used one. The transcript is
/// written late (up to 200 ms seen), so where the row is about to matter its last lines are waited for.
pub fn row(before: &Loop, payload: &Payload) -> (u32, bool) {
    let memory = &before.state.session;
    let marker = prompt::marker(before);
    let read = || {
        let file = payload.transcript.as_deref()?;
        let end = |bytes| disk::read_end(file, memory.transcript_bytes, bytes).ok();
        let (tail, cut) = end(TURN_BYTES)?;
        if let Some(used_a_tool) = transcript::used_a_tool(&tail, &marker, cut) {
            return Some((tail, used_a_tool));
        }
        let (tail, cut) = end(TRANSCRIPT_BYTES)?;
        let used_a_tool = transcript::used_a_tool(&tail, &marker, cut);
        Some((tail, used_a_tool == Some(true)))
    };
    let words = payload.last_message.as_deref();
    let whole = |(tail, used_a_tool): &(String, bool)| {
        *used_a_tool || words.is_some_and(|words| transcript::ends_with(tail, words))
    };
    let row = if memory.prompt_id == payload.prompt_id { memory.without_tools } else { 0 };
    let there = payload.transcript.as_deref().is_some_and(disk::exists);
    let matters = is_near(row) || !payload.background.is_empty();
    let found = if matters && there {
        Deadline::after(TRANSCRIPT_WAIT)
            .poll(Duration::from_millis(10), || read().filter(|found| whole(found)))
    } else {
        read()
    };
    let used_a_tool = found.is_some_and(|(_, used_a_tool)| used_a_tool);
    (if used_a_tool { 0 } else { row }, used_a_tool)
}
