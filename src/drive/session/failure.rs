//! The model's service failed the agent. The client takes no answer to that, but this process may
//! stay alive beside the session and wake it: after a wait for an error that passes, at once for a
//! request that was refused because of its content. If nobody is at the client, nothing may sleep:
//! there the loop ends and can be resumed.

use std::path::Path;

use anyhow::Result;

use super::companion;
use super::stop::{facts, open_ours, ticket};
use crate::clients::{Hook, Transcript};
use crate::drive::boundary::{DriverNotes, Recorded};
use crate::drive::end::wind_up;
use crate::drive::{meter, tree, windows};
use crate::engine::boundary::decide::Decision;
use crate::engine::boundary::facts::{AgentOutcome, Seen};
use crate::engine::claim::Claim;
use crate::engine::record::{Ending, Loop, Outcome, Status};
use crate::parse::api_error;
use crate::world::files::disk;
use crate::world::process::identity;
use crate::world::store::{Home, view, wakes};
use crate::world::{clock, env};

/// Records the failure, and waits if waiting helps. Returns the words to wake the agent with, or
/// `None`.
pub fn failure(home: &Home, hook: &Hook<'_>, kind: &str, message: &str) -> Result<Option<String>> {
    let Some(open) = open_ours(home, hook)? else { return Ok(None) };
    let error = api_error::classify(kind, message, clock::local());
    let agent = AgentOutcome { error: Some(error), ..AgentOutcome::default() };
    let jitter = u16::try_from(env::random() % 1000).unwrap_or(0);
    let seen = Seen { order: open.order(), claim: Claim::None, agent, jitter };
    let reading = meter::read(&open.before, hook, None, false);
    let Some(facts) = facts(home, &open, seen, reading.usage.as_ref())? else { return Ok(None) };
    let mut memory = open.before.state.session.clone();
    memory.transcript_bytes = hook.transcript.as_deref().map_or(0, disk::size);
    memory.last_stop = None;
    // A wake starts another turn.
    memory.prompt_id = None;
    memory.metered = reading.metered;
    let why = format!("the model's service failed ({kind}), and this session cannot wait for it");
    let veto = (!hook.may_wake()).then(|| Ending::new(Outcome::Interrupted, why));
    // A refusal does not clear the window of the account.
    let turn = windows::turn(home, &windows::account_of(&open.before), &open.before.id);
    let closing = DriverNotes { memory, veto, turn, ..DriverNotes::default() };
    let Some(recorded) = open.record(facts, closing)? else { return Ok(None) };
    let Recorded { boundary, held, lock } = recorded;
    let after = boundary.after;
    let session_id = hook.session_id.as_deref().unwrap_or_default();
    wakes::clear(home, session_id, None);
    let _ = view::write(&after);
    let rests = tree::may_rest(&boundary.decision);
    let close = || rests.then(|| tree::close(home, &after));
    match (boundary.decision, identity::myself()) {
        (Decision::Continue | Decision::Wait { .. }, Some(me)) => {
            let file = wakes::register(home, session_id, &me)?;
            wakes::hand_over(&file, &ticket(&after))?;
            drop((held, lock));
            close();
            companion::serve(home, &after.id, hook, &file)
        }
        (Decision::Finish(_), _) => {
            drop((held, lock));
            close();
            wind_up(home, after);
            Ok(None)
        }
        _ => {
            drop((held, lock));
            close();
            Ok(None)
        }
    }
}

// Whether the user broke off the agent's turn (Esc), which no event reports. The client leaves a
// mark in the transcript, or, where the agent had not answered yet, takes its prompt back without
// one. Then only the next prompt shows it: it has a turn of its own, although the turn that began
// the loop has not come to its end.

/// The most that is read of the transcript to find an answer of the agent, in bytes.
const ANSWER_WITHIN: u64 = 8 << 20;
/// How far from the transcript's end the mark of an interruption is searched for, in bytes.
const MARK_WITHIN: u64 = 64 << 10;

/// Whether the prompt of this event follows an interruption of the loop's running iteration. What
/// is typed while the agent works is part of its turn, and steers it.
pub fn broke_off(record: &Loop, hook: &Hook<'_>) -> bool {
    is_marked(record, hook.transcript.as_deref(), hook.reader()) || is_taken_back(record, hook)
}

/// Whether the transcript holds the client's mark since the last boundary.
pub fn is_marked(record: &Loop, file: Option<&Path>, reader: Option<&Transcript>) -> bool {
    file.zip(reader).is_some_and(|(file, reader)| {
        let tail = disk::read_end(file, record.state.session.transcript_bytes, MARK_WITHIN);
        tail.is_ok_and(|(tail, _)| (reader.interrupted)(&tail))
    })
}

/// Whether this event is of another turn than the start or resume, no stop of which was seen.
/// Later turns may be a companion's: of those the record knows no more than their last stop.
fn is_taken_back(record: &Loop, hook: &Hook<'_>) -> bool {
    let memory = &record.state.session;
    let is_another = || {
        let turns = memory.prompt_id.as_ref().zip(hook.turn.as_ref());
        turns.is_some_and(|(began, now)| began != now)
    };
    hook.abilities().steers_within_the_turn && memory.last_stop.is_none() && is_another()
}

/// Whether a loop's first prompt was taken back before the agent answered a word of it. Nothing is
/// lost with such a loop. Without a transcript nobody knows.
pub fn came_to_nothing(record: &Loop, hook: &Hook<'_>) -> bool {
    let is_its_first = record.state.status == Status::Running && record.state.boundaries == 0;
    is_its_first && is_taken_back(record, hook) && has_no_answer(record, hook) == Some(true)
}

fn has_no_answer(record: &Loop, hook: &Hook<'_>) -> Option<bool> {
    let (file, reader) = (hook.transcript.as_deref()?, hook.reader()?);
    let mut answers = 0;
    let each = |line: &str, cut: bool| {
        let is_one =
            if cut { (reader.may_hold_a_message)(line) } else { (reader.message)(line).is_some() };
        answers += u32::from(is_one);
    };
    let start = record.state.session.transcript_bytes;
    let (_, has_more) = disk::read_lines(file, start, ANSWER_WITHIN, each).ok()?;
    Some(answers == 0 && !has_more)
}
