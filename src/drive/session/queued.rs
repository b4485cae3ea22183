//! Commands that the user typed while the agent worked. The client keeps them until its turn ends,
//! which a loop postpones until its own end. So the boundary carries them out as it finds them in
//! the transcript, and when the client delivers them later, the answer is one line. Commands from
//! before the loop, and other plugins' commands, are left alone.

use anyhow::{Error, Result};

use super::{EventResult, command_loop, handle_prompt, owned_or_last, refusal_result};
use crate::drive::end;
use crate::drive::find::owner_is_gone;
use engine::boundary::facts::ControlRequest;
use engine::record::{Actor, ExecutedCommand, Loop, LoopId, Queue};
use readers::clients::{Hook, split_command};
use readers::parse::requests::{SessionRequest, TypedRequest};
use world::files::disk;
use world::store::{self, Home};

/// The maximum number of bytes read of the transcript at once.
const BYTES: u64 = 32 << 20;

/// Continues to read the transcript, and stores the queued requests where all requests are stored.
/// If nobody is at the client, prompts come from a program, in the order it wants.
pub fn read_queue(home: &Home, before: &Loop, hook: &Hook<'_>, queue: &mut Queue) -> Result<()> {
    if !read_on(before, hook, queue) {
        return Ok(());
    }
    let (id, by) = (&before.id, Actor::User);
    for text in &queue.waiting {
        match (hook.parse_queued(text), store::pending_request(home, id)) {
            (Some(("cancel-loop", raw)), None | Some(ControlRequest::Pause)) => {
                store::request_cancel(home, id, by, cancel_reason(raw))?;
            }
            (Some(("pause", _)), None) => store::request_pause(home, id, by, false)?,
            _ => {}
        }
    }
    Ok(())
}

/// Updates the queue from the transcript, if a person types there and the queue can be known.
fn read_on(before: &Loop, hook: &Hook<'_>, queue: &mut Queue) -> bool {
    let (Some((file, reader)), Some(session_id), true) =
        (hook.readable_transcript(), hook.session_id(), hook.is_attended())
    else {
        return false;
    };
    let from = match queue.bytes {
        0 => before.state.session().transcript_bytes,
        bytes => bytes,
    };
    if disk::size(file) < from {
        // The transcript was rewritten: the queue cannot be known.
        *queue = Queue { bytes: disk::size(file), ..Queue::default() };
        return false;
    }
    let read = disk::read_lines(file, from, BYTES, |line, cut| {
        if !cut {
            (*reader.follow())(queue, line, session_id);
        }
    });
    if let Ok((end, _)) = read {
        queue.bytes = end;
    }
    true
}

/// Takes the queued commands, for the boundary after `iteration` to remember.
pub fn take_requests(hook: &Hook<'_>, queue: &mut Queue, iteration: u32) -> Vec<String> {
    let waiting = queue.waiting.iter_mut().filter(|text| hook.parse_queued(text).is_some());
    let taken: Vec<String> = waiting.map(std::mem::take).collect();
    let executed = taken.iter().cloned().map(|command| ExecutedCommand { command, iteration });
    queue.executed.extend(executed);
    taken
}

/// Completes the commands that were taken, after the boundary is recorded.
pub fn answer_requests(
    home: &Home,
    hook: &Hook<'_>,
    id: &LoopId,
    taken: &[String],
) -> Vec<EventResult> {
    let answers = taken.iter().filter_map(|text| {
        let (name @ ("status" | "handoff"), raw) = hook.parse_queued(text)? else { return None };
        let record = store::load(home, id).map_err(Error::from);
        let done = record.and_then(|record| command_loop(home, hook, &record, name, raw));
        Some(done.unwrap_or_else(|error| refusal_result(&error)))
    });
    answers.collect()
}

/// The reason given to `/crew:cancel-loop`.
pub fn cancel_reason(raw: &str) -> Option<&str> {
    let raw = raw.trim();
    let quoted = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    Some(quoted.unwrap_or(raw).trim()).filter(|reason| !reason.is_empty())
}

/// If the command that the client now delivers was already carried out, and not revoked since,
/// returns it and stops expecting it.
pub fn take_executed(
    home: &Home,
    record: &Loop,
    hook: &Hook<'_>,
    name: &str,
    raw: &str,
) -> Result<Option<ExecutedCommand>> {
    let command = Some((name, raw.trim()));
    let mut queue = record.state.session().queue.clone();
    if !queue.executed.is_empty() {
        read_on(record, hook, &mut queue);
    }
    let is_it = queue
        .executed
        .iter()
        .any(|executed| split_command(hook.client, &executed.command) == command);
    if !is_it {
        return Ok(None);
    }
    let mut found = None;
    end::amend_record(
        home,
        &record.id,
        "a queued command was delivered that had been carried out",
        |record| {
            let executed = &mut record.state.session_mut().queue.executed;
            let at = executed
                .iter()
                .position(|executed| split_command(hook.client, &executed.command) == command);
            found = at.map(|at| executed.remove(at));
        },
    )?;
    Ok(found)
}

// Obeys requests that a person typed as a message. Such a message never reaches the model. It means
// the session's own loop, or the one whose id it names, for which the same is done as in a
// terminal.

/// Which loop an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopIs {
    /// The session's own loop, without being named.
    Own,
    /// The loop that was named.
    Named,
    /// A named loop whose owner is gone.
    Ownerless,
    /// A loop that had ended before the request arrived.
    Over,
}

/// Executes a request. In a session that never had a loop it is the user's own text, unless it
/// names a loop.
pub fn execute_request(home: &Home, hook: &Hook<'_>, typed: &TypedRequest) -> Result<EventResult> {
    let own = owned_or_last(home, hook)?.map(|own| own.id);
    let named =
        typed.named().as_ref().filter(|id| own.as_ref() == Some(*id) || store::is_there(home, id));
    if named.is_none() && typed.named().is_some() && *typed.request() != SessionRequest::Cancel {
        // A word for the agent.
        return handle_prompt(home, hook);
    }
    let Some(id) = named.or(own.as_ref()) else { return Ok(EventResult::Silent) };
    match try_request(home, hook, id, typed, named.is_some()) {
        Err(error) if own.as_ref() == Some(id) => Err(error),
        // The message must not become the agent's.
        done => Ok(EventResult::Requested(*typed.request(), done.map_err(|_| id.clone()))),
    }
}

fn try_request(
    home: &Home,
    hook: &Hook<'_>,
    id: &LoopId,
    typed: &TypedRequest,
    is_named: bool,
) -> Result<(Box<Loop>, LoopIs)> {
    let before = store::load(home, id)?;
    let name = match *typed.request() {
        SessionRequest::Pause => "pause",
        SessionRequest::Cancel => "cancel-loop",
        SessionRequest::Status => "status",
    };
    let reason = typed.cancel_reason(is_named).unwrap_or_default();
    command_loop(home, hook, &before, name, &reason)?;
    let record = Box::new(store::load(home, id)?);
    let is = match is_named {
        _ if !before.is_live() => LoopIs::Over,
        true if owner_is_gone(home, &record) => LoopIs::Ownerless,
        true => LoopIs::Named,
        false => LoopIs::Own,
    };
    Ok((record, is))
}
