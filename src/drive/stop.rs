//! The session driver's boundary: the client says that the agent is about to stop. Either the loop goes
//! on in this very turn, or the stop is let through; when in doubt it is let through.
//!
//! The client overrides the ninth hook in a row that lets the agent go on without a tool call between
//! (tried on 2.1.197 and 2.1.330). So only the first few continuations of such a row go that way; the
//! next is a wake by the companion, which starts a turn of its own and is not counted.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;

use super::boundary::{Boundary, Open, open};
use super::ending::{Ended, wind_up};
use crate::engine::claim::{self, Claim};
use crate::engine::decide::Decision;
use crate::engine::facts::{AgentEnd, Order, Seen};
use crate::engine::journal::Event;
use crate::engine::looped::{Loop, Status};
use crate::engine::outcome::{Ending, Outcome};
use crate::engine::owner::{SessionMemory, StopMark};
use crate::engine::prompt;
use crate::parse::api_error;
use crate::parse::payload::Payload;
use crate::parse::transcript;
use crate::world::clock::{self, Deadline};
use crate::world::home::{Home, hash, read_pointer};
use crate::world::store::{self, LOCK_WAIT};
use crate::world::wakes::{self, Post, Ticket};
use crate::world::{disk, env, unix, view};

/// The client's cap where nothing says otherwise.
const CAP: i64 = 8;
/// How many continuations are kept in hand below the cap, for when no companion can be had.
const IN_HAND: i64 = 2;
/// How long a companion is waited for.
const COMPANION_WAIT: Duration = Duration::from_secs(2);
/// How much of a transcript's end is read.
const TRANSCRIPT_BYTES: u64 = 512 << 10;
/// How long the transcript's last lines are waited for.
const TRANSCRIPT_WAIT: Duration = Duration::from_millis(500);

/// What a stop came to.
#[derive(Debug)]
pub enum Stop {
    /// No loop is ours, or this stop is not a boundary of it: nothing is said.
    NotOurs,
    /// The loop goes on in this turn, with its next prompt.
    Continue(Box<Boundary>),
    /// The loop goes on in a turn of its own that a companion has started.
    Woken(Box<Boundary>),
    /// The stop is let through and the loop stays where it is.
    Held(Box<Boundary>),
    Finished(Box<Ended>),
}

/// Judges a stop. An error means that the stop must be let through.
pub fn stop(home: &Home, payload: &Payload) -> Result<Stop> {
    let Some(session_id) = payload.session_id.as_deref().filter(|_| payload.agent_id.is_none())
    else {
        return Ok(Stop::NotOurs);
    };
    let Some(id) = read_pointer(&home.session_pointer(session_id))? else {
        return Ok(Stop::NotOurs);
    };
    let Some(open) = open(home, &id)? else { return Ok(Stop::NotOurs) };
    let digest = digest(payload);
    if !is_ours(&open.before, session_id) || is_same_stop(&open.before, &digest) {
        return Ok(Stop::NotOurs);
    }
    let is_cancelled = matches!(open.order()?, Some(Order::Cancel { .. }));
    if open.before.state.status == Status::Paused && !is_cancelled {
        return Ok(Stop::NotOurs);
    }
    let ended = unix::end_requested()?;
    let mut memory = remember(&open.before, payload);
    memory.last_stop = Some(StopMark { digest, recorded_ms: 0 });
    let seen = look(&open, payload)?;
    let cancel = home.loop_file(&id, "cancel");
    let give_up = || ended.load(Ordering::Relaxed) || disk::exists(&cancel);
    let facts = match open.gather(seen.clone(), &give_up) {
        Some(facts) => facts,
        None if ended.load(Ordering::Relaxed) => return Ok(Stop::NotOurs),
        // A cancel ended a check: the order alone decides.
        None => match open.gather(Seen { order: open.order()?, ..seen }, &|| false) {
            Some(facts) => facts,
            None => return Ok(Stop::NotOurs),
        },
    };
    if ended.load(Ordering::Relaxed) {
        return Ok(Stop::NotOurs);
    }
    let goes_on = payload.event == "Stop" && open.foresee(&facts) == Decision::Continue;
    let road = if goes_on { Road::choose(home, session_id, &memory) } else { Road::Context };
    memory.without_tools += 1;
    let veto = matches!(road, Road::None).then(capped);
    let Some((boundary, held, lock)) = open.record(facts, memory, veto)? else {
        return Ok(Stop::NotOurs);
    };
    let chosen = match (&boundary.decision, &road) {
        (Decision::Continue, Road::Wake { file, .. }) => {
            let handed = wakes::hand_over(file, &ticket(&boundary.after));
            handed.is_ok().then(|| file.clone())
        }
        _ => None,
    };
    wakes::clear(home, session_id, chosen.as_deref());
    let _ = view::write(&boundary.after);
    drop(held);
    let answer = match (&boundary.decision, chosen, road) {
        (Decision::Finish(_), ..) => Stop::Finished(Box::new(wind_up(home, boundary.after))),
        (Decision::Continue, Some(file), Road::Wake { pid, .. }) => {
            await_wake(home, boundary, &file, pid)?
        }
        // The client takes no answer to a failure: the loop goes on at the session's next stop.
        (Decision::Continue, ..) if payload.event != "Stop" => Stop::Held(Box::new(boundary)),
        // A cancel that came after the record has ended the loop; the agent must not begin another turn.
        (Decision::Continue, ..) if disk::exists(&cancel) => Stop::NotOurs,
        (Decision::Continue, ..) => Stop::Continue(Box::new(boundary)),
        (Decision::Wait { .. } | Decision::Hold(_), ..) => Stop::Held(Box::new(boundary)),
    };
    drop(lock);
    Ok(answer)
}

/// A stop is ours when it comes from the session and the very client process that own the loop.
pub fn is_ours(record: &Loop, session_id: &str) -> bool {
    let owner = &record.state.owner;
    owner.session_id.as_deref() == Some(session_id)
        && unix::client().is_some_and(|client| client == owner.process)
}

/// The same words under the same prompt, told by a process that was already running when the last boundary
/// was recorded, are that boundary's own stop: the plugin may be loaded twice, and the client starts all
/// hooks of a stop together. A later stop comes at least one answer of the model later.
fn is_same_stop(record: &Loop, digest: &str) -> bool {
    let Some(mark) = &record.state.session.last_stop else { return false };
    let before = unix::started_ms().is_some_and(|started| started <= mark.recorded_ms);
    mark.digest == digest && before
}

fn digest(payload: &Payload) -> String {
    let prompt = payload.prompt_id.as_deref().unwrap_or_default();
    let words = payload.last_message.as_deref().unwrap_or_default();
    hash(format!("{prompt}\0{words}").as_bytes())
}

/// The cheap look.
fn look(open: &Open, payload: &Payload) -> Result<Seen> {
    if payload.event == "StopFailure" {
        return failure(open, payload);
    }
    let words = match (&payload.last_message, &payload.transcript) {
        (Some(words), _) => Some(words.clone()),
        (None, Some(file)) => {
            let start = open.before.state.session.transcript_bytes;
            Deadline::after(TRANSCRIPT_WAIT).poll(Duration::from_millis(20), || {
                let (tail, _) = disk::read_end(file, start, TRANSCRIPT_BYTES).ok()?;
                transcript::final_text(&tail)
            })
        }
        (None, None) => None,
    };
    let promise = open.before.contract.promise.as_ref();
    Ok(Seen {
        order: open.order()?,
        claim: words.map_or(Claim::None, |words| claim::read(&words, promise)),
        agent: AgentEnd::default(),
        jitter: 0,
    })
}

/// The agent did not stop; the model's service failed it. What it last said is the error's own text then,
/// and no claim.
fn failure(open: &Open, payload: &Payload) -> Result<Seen> {
    let kind = payload.error.as_deref().unwrap_or("unknown");
    let message = payload.last_message.as_deref().unwrap_or_default();
    let agent = AgentEnd { error: Some(api_error::classify(kind, message)), ..AgentEnd::default() };
    Ok(Seen { order: open.order()?, claim: Claim::None, agent, jitter: 0 })
}

/// What the next stop must know: how many continuations in a row used no tool. The transcript is written
/// late (up to 200 ms seen), so where the row is about to matter its last lines are waited for.
fn remember(before: &Loop, payload: &Payload) -> SessionMemory {
    let memory = &before.state.session;
    let marker = prompt::marker(before);
    let look = || {
        let file = payload.transcript.as_deref()?;
        let (tail, cut) = disk::read_end(file, memory.transcript_bytes, TRANSCRIPT_BYTES).ok()?;
        let used_a_tool = transcript::used_a_tool(&tail, &marker, cut);
        let whole = used_a_tool || transcript::final_text(&tail) == payload.last_message;
        Some((used_a_tool, whole))
    };
    let row = if memory.prompt_id == payload.prompt_id { memory.without_tools } else { 0 };
    let used_a_tool =
        if near_the_cap(row) && payload.transcript.as_deref().is_some_and(disk::exists) {
            Deadline::after(TRANSCRIPT_WAIT)
                .poll(Duration::from_millis(10), || look().filter(|(_, whole)| *whole))
                .is_some_and(|(used_a_tool, _)| used_a_tool)
        } else {
            look().is_some_and(|(used_a_tool, _)| used_a_tool)
        };
    SessionMemory {
        prompt_id: payload.prompt_id.clone(),
        without_tools: if used_a_tool { 0 } else { row },
        transcript_bytes: payload.transcript.as_deref().map_or(0, disk::size),
        last_stop: None,
    }
}

/// Whether one more continuation would use up what is kept in hand below the client's cap.
fn near_the_cap(row: u32) -> bool {
    let cap = cap();
    cap > 0 && i64::from(row) >= cap.min(CAP) - IN_HAND
}

/// How a loop that goes on gets its next turn.
enum Road {
    /// In this turn.
    Context,
    /// By this companion.
    Wake { file: PathBuf, pid: i32 },
    /// The client would override us, and there is no companion.
    None,
}

impl Road {
    fn choose(home: &Home, session_id: &str, memory: &SessionMemory) -> Self {
        if !near_the_cap(memory.without_tools) {
            return Self::Context;
        }
        let row = i64::from(memory.without_tools);
        let companion = Deadline::after(COMPANION_WAIT)
            .poll(Duration::from_millis(5), || wakes::waiting(home, session_id));
        match companion {
            Some((file, pid)) => Self::Wake { file, pid },
            None if row < cap() => Self::Context,
            None => Self::None,
        }
    }
}

/// The client's cap: 0 or less is none; what is no number is the client's default.
fn cap() -> i64 {
    let set =
        env::text("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").and_then(|text| text.trim().parse().ok());
    set.unwrap_or(CAP)
}

fn capped() -> Ending {
    let why = "the agent used no tool for so long that the client lets no hook go on; \
               CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0 lifts its cap";
    Ending { outcome: Outcome::Stalled, proof: None, why: why.to_owned() }
}

fn ticket(after: &Loop) -> Ticket {
    Ticket {
        generation: after.state.generation,
        iteration: after.iteration(),
        due: clock::now().wall,
        why: "the next turn".to_owned(),
    }
}

/// Waits until the companion that has the ticket is gone, because its wake counts only when it comes before
/// our answer. A ticket it did not use is taken back.
fn await_wake(home: &Home, boundary: Boundary, file: &std::path::Path, pid: i32) -> Result<Stop> {
    let companion = unix::identity(pid);
    let _ = Deadline::after(COMPANION_WAIT).poll(Duration::from_millis(2), || {
        let gone = companion.as_ref().is_none_or(|companion| !unix::is_alive(companion));
        gone.then_some(())
    });
    let id = &boundary.after.id;
    let held = store::hold(home, id, LOCK_WAIT)?;
    if !matches!(wakes::read(file), Ok(Post::Ticket(_))) {
        return Ok(Stop::Woken(Box::new(boundary)));
    }
    disk::remove(file)?;
    let row = i64::from(boundary.after.state.session.without_tools) - 1;
    if row < cap() {
        return Ok(Stop::Continue(Box::new(boundary)));
    }
    let mut record = held.load()?;
    if !record.is_live() {
        return Ok(Stop::NotOurs);
    }
    let ending = capped();
    let what = ending.why.clone();
    record.state.status = Status::Finished;
    record.state.ending = Some(ending);
    let state = |next: &Loop| Box::new(next.state.clone());
    let record = held.record(record, |next| Event::Changed { what, state: state(next) })?;
    drop(held);
    Ok(Stop::Finished(Box::new(wind_up(home, record))))
}
