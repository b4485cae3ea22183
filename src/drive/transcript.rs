//! Reads from a session's transcript what no event reports: whether the client still waits at a
//! dialog, and whether the user interrupted the agent's turn.

use std::path::Path;

use engine::record::{Dialog, Loop, Status};
use readers::clients::{self, Hook};
use world::files::disk;

// Whether the client still waits at the dialog that was recorded last. No event says that a dialog
// was answered, but the transcript then has the result of its call.

/// How much of a transcript's end is searched for the result of a call, in bytes.
const SINCE_BYTES: u64 = 1 << 20;

/// The dialog at which a loop's client still waits.
pub fn waiting_dialog(record: &Loop) -> Option<&Dialog> {
    let dialog = record.state.session().dialog.as_ref();
    dialog.filter(|dialog| is_at_work(record) && still_waits(record, dialog))
}

/// Whether the call has no result yet. Other calls of the same message may get results before it.
pub fn still_waits(record: &Loop, dialog: &Dialog) -> bool {
    let (file, known) = (&dialog.transcript, dialog.transcript_bytes);
    if disk::size(file) == known {
        return true;
    }
    let reader = clients::client_of(record.state.owner()).transcript().as_ref();
    let Some((reader, call)) = reader.zip(dialog.call.as_deref()) else { return false };
    let since = disk::read_end(file, known, SINCE_BYTES);
    since.is_ok_and(|(since, is_cut)| !is_cut && !(*reader.has_result())(&since, call))
}

/// Whether the agent, or a job that it left behind, may be at work.
pub fn is_at_work(record: &Loop) -> bool {
    matches!(record.state.status(), Status::Running | Status::Waiting)
}

// Whether the user interrupted the agent's turn (Esc), which no event reports. The client leaves a
// mark in the transcript or, if the agent had not answered yet, withdraws its prompt without one.
// Then only the next prompt shows it: it starts a new turn, although the turn that started the loop
// has not ended.

/// The maximum number of bytes of the transcript read to find an answer of the agent.
const ANSWER_WITHIN: u64 = 8 << 20;
/// How far from the transcript's end the mark of an interruption is searched for, in bytes.
const MARK_WITHIN: u64 = 64 << 10;

/// Whether the prompt of this event follows an interruption of the loop's running iteration. Text
/// typed while the agent works is part of its turn, and steers it.
pub fn broke_off(record: &Loop, hook: &Hook<'_>) -> bool {
    is_marked(record, hook.transcript().as_deref()) || is_taken_back(record, hook)
}

/// Whether the transcript contains the client's mark since the last boundary.
pub fn is_marked(record: &Loop, file: Option<&Path>) -> bool {
    let reader = clients::client_of(record.state.owner()).transcript().as_ref();
    file.zip(reader).is_some_and(|(file, reader)| {
        let tail = disk::read_end(file, record.state.session().transcript_bytes, MARK_WITHIN);
        tail.is_ok_and(|(tail, _)| (*reader.interrupted())(&tail))
    })
}

/// Whether this event belongs to another turn than the start or resume, for which no stop was seen.
/// Later turns may be a companion's, of which the record knows only their last stop.
fn is_taken_back(record: &Loop, hook: &Hook<'_>) -> bool {
    let memory = record.state.session();
    let turns = memory.prompt_id.as_ref().zip(hook.turn().as_ref());
    *hook.client.turns().steers_within_the_turn()
        && memory.last_stop.is_none()
        && turns.is_some_and(|(began, now)| began != now)
}

/// Whether the user withdrew a loop's first prompt before the agent answered any of it. Nothing is
/// lost with such a loop. Without a transcript this is unknown.
pub fn is_withdrawn(record: &Loop, hook: &Hook<'_>) -> bool {
    let is_its_first =
        record.state.status() == Status::Running && record.state.counts().boundaries() == 0;
    is_its_first && is_taken_back(record, hook) && has_no_answer(record, hook) == Some(true)
}

fn has_no_answer(record: &Loop, hook: &Hook<'_>) -> Option<bool> {
    let (file, reader) = hook.readable_transcript()?;
    let mut answers = 0;
    let start = record.state.session().transcript_bytes;
    let read = disk::read_lines(file, start, ANSWER_WITHIN, |line, cut| {
        let is_one = if cut {
            (*reader.may_hold_a_message())(line)
        } else {
            (*reader.message())(line).is_some()
        };
        answers += u32::from(is_one);
    });
    let (_, has_more) = read.ok()?;
    Some(answers == 0 && !has_more)
}
