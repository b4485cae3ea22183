//! The session driver's boundary: the client reports that the agent is about to stop. Either the
//! loop continues in this turn, or the stop is allowed; when in doubt it is allowed.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;

use super::{EventResult, owned_id, queued};
use crate::drive::boundary::{Boundary, DriverNotes, Open, Recorded, open_boundary};
use crate::drive::end::{self, EndAttempt, EndedLoop, prove, wind_up};
use crate::drive::find::owner_is;
use crate::drive::transcript::still_waits;
use crate::drive::usage::{self, TRANSCRIPT_BYTES, TRANSCRIPT_WAIT, ends_with};
use crate::drive::windows::{self, LoopTurn};
use crate::drive::{control, tree};
use engine::boundary::decide::{Decision, Hold};
use engine::boundary::facts::{AgentFacts, AgentOutcome, ControlRequest, Facts};
use engine::claim::{self, Claim};
use engine::evidence::said::extract_summary;
use engine::record::{EndReason, Ending, Loop, Outcome, SessionMemory, Status};
use engine::text::text_start;
use engine::usage::Usage;
use engine::view::events::RunEvent;
use engine::words;
use readers::clients::{Cap, Hook, Stopped, Task};
use world::clock::{self, Deadline};
use world::files::disk;
use world::process::{identity, signals};
use world::store::wakes::{self, Companion, Ticket, WakeFile};
use world::store::{self, Held, Home, LOCK_WAIT, hash, view};

/// How long a client under load needs, from the end of a companion, to handle its wake. If the
/// hook's answer arrives at the same time, 2.1.197 handles the answer first and ends its session (3
/// of 14 on a busy machine).
const WAKE_TAKEN: Duration = Duration::from_millis(20);

/// The result of a stop.
#[derive(Debug)]
pub enum StopResult {
    /// The loop has ended since, or a cancel is pending: the answer is empty.
    Over,
    /// The loop continues in this turn, with its next prompt.
    Continue(Box<Boundary>),
    /// The loop continues in a separate turn that a companion has started.
    Woken(Box<Boundary>),
    /// The stop is allowed, and the loop's state is kept.
    Held(Box<Boundary>),
    Finished(Box<EndedLoop>),
}

/// Opens the boundary of this event, if it belongs to a loop that this session and client own.
pub fn open_ours(home: &Home, hook: &Hook<'_>) -> Result<Option<Open>> {
    let Some(id) = owned_id(home, hook)? else { return Ok(None) };
    let Some(open) = open_boundary(home, &id)? else { return Ok(None) };
    let is_cancelled = matches!(open.read_request(), Some(ControlRequest::Cancel { .. }));
    let is_paused = open.before.state.status() == Status::Paused && !is_cancelled;
    Ok((!is_paused && is_ours(&open.before, hook)).then_some(open))
}

/// Judges a stop, and carries out what the user queued. An error means that the stop must be
/// allowed.
pub fn handle_stop(home: &Home, hook: &Hook<'_>, stopped: &Stopped) -> Result<EventResult> {
    let Some(open) = open_ours(home, hook)? else { return Ok(EventResult::Silent) };
    let digest = stop_digest(hook, stopped);
    if is_same_stop(&open.before, &digest) {
        return Ok(EventResult::Silent);
    }
    let mut memory = open.before.state.session().clone();
    let words = stopped.last_message.as_deref();
    queued::read_queue(home, &open.before, hook, &mut memory.queue)?;
    let (row, used_a_tool) = stops_in_row(&open.before, hook, stopped);
    let background = background_wait(&stopped.background, used_a_tool, &mut memory);
    let work = background.as_ref().map(|background| background.work.clone());
    let decides = open.before.contract.limits.bound_usage();
    let reading = usage::read_meter(&open.before, hook, words, decides);
    let seen = read_stop(&open, hook, stopped, work, reading.context_tokens);
    let Some(mut facts) = gather_facts(home, &open, seen, reading.usage.as_ref())? else {
        return Ok(EventResult::Silent);
    };
    // The checks may have taken minutes.
    queued::read_queue(home, &open.before, hook, &mut memory.queue)?;
    let foreseen = open.foresee_decision(&facts);
    memory.metered = if decides || continues_alone(&foreseen) {
        reading.metered
    } else {
        // The last sum for a while, so the final message is waited for now. It decides nothing.
        let reading = usage::read_meter(&open.before, hook, words, true);
        facts.usage = reading.usage;
        facts.seen.agent.context_tokens = reading.context_tokens;
        reading.metered
    };
    let holds = matches!(foreseen, Decision::Hold(Hold::Background(_)));
    let counts = !matches!(foreseen, Decision::Hold(_));
    let continues = matches!(foreseen, Decision::Continue);
    let turn = if continues { windows::turn_after(home, &open.before) } else { None };
    let (companion, veto) = match next_turn(home, hook, &foreseen, turn.as_ref(), row) {
        Ok(companion) => (companion, None),
        Err(ending) => (None, Some(ending)),
    };
    // The agent that stops waits for nothing; one of its subagents may.
    memory.dialog.take_if(|dialog| {
        hook.transcript().as_ref() == Some(&dialog.transcript) || !still_waits(&open.before, dialog)
    });
    memory.prompt_id.clone_from(hook.turn());
    memory.without_tools = row + 1;
    memory.transcript.clone_from(hook.transcript());
    memory.transcript_bytes = hook.transcript().as_deref().map_or(0, disk::size);
    if counts {
        memory.worked_holds = 0;
    }
    if let (true, Some(held)) = (holds, &background) {
        remember_wait(&mut memory, held);
    }
    let hold_until = background.map(|background| {
        clock::now().wall + TimeDelta::from_std(background.within).unwrap_or_default()
    });
    let taken = queued::take_requests(hook, &mut memory.queue, open.before.iteration());
    let stop = Some(digest);
    let closing = DriverNotes { memory, stop, veto, turn, hold_until, lost: None };
    let Some(recorded) = open.record_boundary(facts, closing)? else {
        return Ok(EventResult::Silent);
    };
    let Recorded { boundary, held, lock } = recorded;
    let id = boundary.after.id.clone();
    let stop = answer_stop(home, hook, boundary, held, companion)?;
    drop(lock);
    Ok(EventResult::Stopped(stop, queued::answer_requests(home, hook, &id, &taken)))
}

/// Hands the ticket of the recorded boundary to this companion, and answers.
fn answer_stop(
    home: &Home,
    hook: &Hook<'_>,
    boundary: Boundary,
    held: Held,
    companion: Option<Companion>,
) -> Result<StopResult> {
    let companion = if continues_alone(&boundary.decision) { companion } else { None };
    let file = companion.as_ref().map(|companion| companion.file.as_path());
    let is_handed_over = hand_over(home, hook, &boundary, held, file).is_ok();
    let cancel = home.loop_file(&boundary.after.id, "cancel");
    Ok(match (&boundary.decision, companion) {
        (Decision::Finish(_), _) => {
            let ended = wind_up(home, boundary.after);
            if boundary.proves_later {
                prove::start_in_background(home, &ended.record.id);
            }
            StopResult::Finished(Box::new(ended))
        }
        (Decision::Wait { .. } | Decision::Hold(_), _) => StopResult::Held(Box::new(boundary)),
        (Decision::Continue, Some(companion)) if is_handed_over => {
            await_wake(home, hook, boundary, &companion)?
        }
        // A cancel that came after the record has ended the loop: the agent must not begin another
        // turn.
        (Decision::Continue, _) if disk::exists(&cancel) => StopResult::Over,
        (Decision::Continue, _) => StopResult::Continue(Box::new(boundary)),
    })
}

/// Hands the ticket of the recorded boundary to the companion with this file, releases all others,
/// and updates the loop's view. An error means that nobody has the ticket.
pub fn hand_over(
    home: &Home,
    hook: &Hook<'_>,
    boundary: &Boundary,
    held: Held,
    file: Option<&Path>,
) -> io::Result<()> {
    let after = &boundary.after;
    let done = file.map_or(Ok(()), |file| wakes::hand_over(file, &wake_ticket(after)));
    let session_id = hook.session_id().as_deref().unwrap_or_default();
    wakes::clear_companions(home, session_id, if done.is_ok() { file } else { None });
    let _ = view::write_view(after);
    drop(held);
    tree::close_after(home, after, &boundary.decision);
    done
}

/// Gathers the facts. `None` when the client has ended this hook: then nothing is known, and
/// nothing is recorded.
pub fn gather_facts(
    home: &Home,
    open: &Open,
    seen: AgentFacts,
    usage: Option<&Usage>,
) -> Result<Option<Facts>> {
    let ended = signals::end_requested()?;
    let cancel = home.loop_file(&open.before.id, "cancel");
    let give_up = || ended.load(Ordering::Relaxed) || disk::exists(&cancel);
    let mut left = open.gather_facts(seen, usage.cloned());
    let follow = |event: &RunEvent<'_>| view::record_step(home, &open.before, event);
    let facts = match open.gather_checked(left.clone(), &give_up, &follow) {
        // A cancel ended a check: the request alone decides.
        None if !ended.load(Ordering::Relaxed) => {
            left.seen.request = open.read_request();
            open.gather_checked(left, &|| ended.load(Ordering::Relaxed), &follow)
        }
        facts => facts,
    };
    Ok(if ended.load(Ordering::Relaxed) { None } else { facts })
}

/// Whether the loop continues by itself. Then no stop waits for the last part of the usage: the
/// next boundary counts it.
fn continues_alone(foreseen: &Decision) -> bool {
    matches!(
        foreseen,
        Decision::Continue | Decision::Wait { .. } | Decision::Hold(Hold::Background(_))
    )
}

/// Whether a stop comes from the session and the client process that own the loop.
pub fn is_ours(record: &Loop, hook: &Hook<'_>) -> bool {
    let owner = record.state.owner();
    hook.session_id().is_some()
        && owner.session_id == *hook.session_id()
        && identity::find_client(hook.is_owner()).is_some_and(|client| owner_is(owner, &client))
}

/// Whether this is the stop that the last boundary already handled: the same words under the same
/// prompt, from a process that was already running when that boundary was recorded. The plugin may
/// be loaded twice, and the client starts all hooks of a stop together. A later stop comes at least
/// one model answer later.
fn is_same_stop(record: &Loop, digest: &str) -> bool {
    let Some(mark) = &record.state.session().last_stop else { return false };
    mark.digest == digest
        && identity::started_ms().is_some_and(|started| started <= mark.recorded_ms)
}

fn stop_digest(hook: &Hook<'_>, stopped: &Stopped) -> String {
    let prompt = hook.turn().as_deref().unwrap_or_default();
    let words = stopped.last_message.as_deref().unwrap_or_default();
    hash(format!("{prompt}\0{words}").as_bytes())
}

/// Reads the facts that cost little: the claim and the background `work`. If the event lacks the
/// agent's last words, the transcript is polled for them.
fn read_stop(
    open: &Open,
    hook: &Hook<'_>,
    stopped: &Stopped,
    background: Option<String>,
    context_tokens: Option<u64>,
) -> AgentFacts {
    let Loop { contract, state, .. } = &open.before;
    let words = stopped.last_message.clone().or_else(|| {
        let (file, reader) = hook.readable_transcript()?;
        Deadline::after(TRANSCRIPT_WAIT).poll(Duration::from_millis(20), || {
            let start = state.session().transcript_bytes;
            let (tail, _) = disk::read_end(file, start, TRANSCRIPT_BYTES).ok()?;
            (*reader.final_text())(&tail)
        })
    });
    let claim = words.as_deref().map_or(Claim::None, |words| {
        claim::read_message(words, &contract.task, contract.promise.as_ref())
    });
    let said = words.as_deref().and_then(extract_summary);
    let agent = AgentOutcome { background, context_tokens, said, ..AgentOutcome::default() };
    AgentFacts { claim, agent, ..AgentFacts::default() }
}

/// The ticket for the loop as it was just recorded.
pub fn wake_ticket(after: &Loop) -> Ticket {
    Ticket {
        boundaries: after.state.counts().boundaries(),
        iteration: after.iteration(),
        due: after.state.wait().due().unwrap_or_else(|| clock::now().wall),
    }
}

fn paused_boundary(after: Loop) -> Boundary {
    Boundary { after, decision: Decision::Hold(Hold::Paused), note: None, proves_later: false }
}

/// Waits until the client has seen the end of the companion that has the ticket, because its wake
/// counts only if it comes before our answer. An unused ticket is taken back. A request that
/// arrived since is carried out now, because it would otherwise wait until the next turn.
fn await_wake(
    home: &Home,
    hook: &Hook<'_>,
    boundary: Boundary,
    companion: &Companion,
) -> Result<StopResult> {
    let reaped = Deadline::after(COMPANION_WAIT)
        .poll(Duration::from_millis(2), || identity::is_reaped(&companion.process).then_some(()));
    if reaped.is_some() {
        clock::sleep(WAKE_TAKEN);
    }
    let id = &boundary.after.id;
    let held = store::hold_loop(home, id, LOCK_WAIT)?;
    let is_used = !matches!(wakes::read_wake_file(&companion.file), Ok(WakeFile::Ticket(_)));
    disk::remove(&companion.file)?;
    let record = held.load()?;
    drop(held);
    match (record.state.status(), store::pending_request(home, id)) {
        (Status::Finished, _) | (_, Some(ControlRequest::Cancel { .. })) => {
            return Ok(StopResult::Over);
        }
        (Status::Paused, _) => return Ok(StopResult::Held(Box::new(paused_boundary(record)))),
        _ if is_used => return Ok(StopResult::Woken(Box::new(boundary))),
        (_, Some(ControlRequest::Pause)) => {
            let record = control::pause_now(home, id, "paused")?;
            return Ok(StopResult::Held(Box::new(paused_boundary(record))));
        }
        _ => {}
    }
    if client_allows(hook, boundary.after.state.session().without_tools - 1) {
        return Ok(StopResult::Continue(Box::new(boundary)));
    }
    Ok(match end::end_loop(home, id, ending_at_the_cap(hook), LOCK_WAIT)? {
        EndAttempt::Ended(ended) => StopResult::Finished(ended),
        EndAttempt::Over(_) | EndAttempt::LeftToTheBoundary => StopResult::Over,
    })
}

// The client's cap on consecutive hooks that let the agent continue, and the ways around it. Only
// the first few continuations of such a row are given in the agent's own turn. The next is a wake
// by the companion, which starts a separate turn that the client does not count. A client that
// cannot be woken hands over at its cap.

/// How many continuations below the cap are kept in reserve, in case no companion is available.
const IN_HAND: i64 = 2;
/// How long to wait for a companion.
const COMPANION_WAIT: Duration = Duration::from_secs(2);
/// How many bytes at the end of a transcript contain most turns. More is read only for a longer
/// turn.
const TURN_BYTES: u64 = 128 << 10;

/// The companion that starts the next turn after `row` consecutive continuations without a tool
/// call; `None` if the loop continues in this turn. The error is the end of a loop that has no next
/// turn: the client would override the hook and no companion waits, or the loop must wait although
/// nobody is at the client.
fn next_turn(
    home: &Home,
    hook: &Hook<'_>,
    foreseen: &Decision,
    turn: Option<&LoopTurn>,
    row: u32,
) -> Result<Option<Companion>, Ending> {
    match (foreseen, turn) {
        (Decision::Continue, None) if is_near(hook, row) => match find_companion(home, hook) {
            None if !client_allows(hook, row) => Err(ending_at_the_cap(hook)),
            found => Ok(found),
        },
        (Decision::Continue, Some(turn)) if !hook.may_wake() => {
            let reason = EndReason::CannotAwaitTurn(turn.why.clone());
            Err(Ending::new(Outcome::Interrupted, reason))
        }
        // A late companion costs no wait: the idle fallback takes its ticket over.
        (Decision::Continue, Some(_)) | (Decision::Hold(Hold::Background(_)), _)
            if hook.may_wake() =>
        {
            Ok(find_companion(home, hook))
        }
        _ => Ok(None),
    }
}

/// A waiting companion. The client starts it beside the hook, so it may not be ready yet.
fn find_companion(home: &Home, hook: &Hook<'_>) -> Option<Companion> {
    if !*hook.client.turns().wakes() {
        return None;
    }
    let session_id = hook.session_id().as_deref()?;
    Deadline::after(COMPANION_WAIT)
        .poll(Duration::from_millis(5), || wakes::find_waiting(home, session_id))
}

/// Whether the client would honour one more continuation.
fn client_allows(hook: &Hook<'_>, row: u32) -> bool {
    hook.continuation_cap().is_none_or(|cap| i64::from(row) < cap)
}

/// Whether one more continuation would use the reserve below the cap.
fn is_near(hook: &Hook<'_>, row: u32) -> bool {
    let usual = hook.client.turns().cap().as_ref().map_or(0, |cap| *cap.usual());
    hook.continuation_cap().is_some_and(|cap| i64::from(row) >= cap.min(usual) - IN_HAND)
}

/// The end of a loop that the client does not let continue.
fn ending_at_the_cap(hook: &Hook<'_>) -> Ending {
    let variable = hook.client.turns().cap().as_ref().and_then(Cap::variable);
    Ending::new(Outcome::Stalled, EndReason::HookCap { variable: variable.map(str::to_owned) })
}

/// The number of consecutive continuations without a tool call, and whether the turn that ends now
/// used a tool. The transcript is written late (up to 200 ms seen), so its last lines are waited
/// for when the number is about to matter.
fn stops_in_row(before: &Loop, hook: &Hook<'_>, stopped: &Stopped) -> (u32, bool) {
    let memory = before.state.session();
    let row = if memory.prompt_id == *hook.turn() { memory.without_tools } else { 0 };
    let Some((file, reader)) = hook.readable_transcript() else { return (row, false) };
    let marker = words::session_marker(before);
    let words = stopped.last_message.as_deref();
    let matters = is_near(hook, row) || !stopped.background.is_empty();
    let within = if matters && disk::exists(file) { TRANSCRIPT_WAIT } else { Duration::ZERO };
    let found = Deadline::after(within).poll(Duration::from_millis(10), || {
        let mut last = None;
        for bytes in [TURN_BYTES, TRANSCRIPT_BYTES] {
            let (tail, cut) = disk::read_end(file, memory.transcript_bytes, bytes).ok()?;
            let used = (*reader.used_a_tool())(&tail, &marker, cut);
            last = Some((used == Some(true), tail));
            if used.is_some() {
                break;
            }
        }
        let (used_a_tool, tail) = last?;
        let is_whole = words.is_some_and(|words| ends_with(reader, &tail, words));
        (used_a_tool || is_whole || !matters).then_some(used_a_tool)
    });
    let used_a_tool = found == Some(true);
    (if used_a_tool { 0 } else { row }, used_a_tool)
}

// Which background work a boundary waits for, and for how long at most. A hold ends with its task.
// Each hold is bounded, so that a task that never ends cannot hang a loop. Work that the agent
// continued beside (a dev server) is not waited for at all. An agent that works and leaves a new
// job behind at every stop must not postpone its iterations for ever: after a few such turns the
// next one counts, whatever is pending.

/// How long to wait for the client's own agents, which end by themselves.
const AGENTS_WITHIN: Duration = Duration::from_secs(60 * 60);
/// How long the first hold for commands lasts; the next ones are twice, four times and eight times
/// as long.
const COMMANDS_WITHIN: Duration = Duration::from_secs(5 * 60);
/// How many turns since the last iteration may use tools, end in a hold and still not count.
const WORKED_HOLDS_MAX: u32 = 3;
/// How many times `COMMANDS_WITHIN` is doubled.
const DOUBLINGS_MAX: u32 = 3;

/// The background work that the loop waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BackgroundWait {
    /// The description for people.
    work: String,
    within: Duration,
    /// Whether the turn that ends now did more than wait.
    has_worked: bool,
}

/// Updates the memory of background tasks and returns the task that the loop waits for, if any.
fn background_wait(
    tasks: &[Task],
    used_a_tool: bool,
    memory: &mut SessionMemory,
) -> Option<BackgroundWait> {
    memory.unawaited.retain(|id| is_running(tasks, id));
    if used_a_tool {
        memory.holds = 0;
        for id in &memory.tasks {
            if is_running(tasks, id) && !memory.unawaited.contains(id) {
                memory.unawaited.push(id.clone());
            }
        }
    }
    let before =
        std::mem::replace(&mut memory.tasks, tasks.iter().map(|task| task.id.clone()).collect());
    let left: Vec<&Task> =
        tasks.iter().filter(|task| !memory.unawaited.contains(&task.id)).collect();
    let first = left.first()?;
    // Only a tool begins a job, even if the transcript does not show it yet.
    let has_worked = used_a_tool || left.iter().any(|task| !before.contains(&task.id));
    if has_worked && memory.worked_holds >= WORKED_HOLDS_MAX {
        return None;
    }
    let within =
        if left.iter().any(|task| matches!(&*task.kind, "subagent" | "workflow" | "teammate")) {
            AGENTS_WITHIN
        } else {
            COMMANDS_WITHIN * (1 << memory.holds.min(DOUBLINGS_MAX))
        };
    let description = text_start(&first.description, 60);
    let work = format!("{} {description}", first.kind).trim_end().to_owned();
    Some(BackgroundWait { work, within, has_worked })
}

fn is_running(tasks: &[Task], id: &str) -> bool {
    tasks.iter().any(|task| task.id == id)
}

/// Counts a stop that ended in this hold.
fn remember_wait(memory: &mut SessionMemory, held: &BackgroundWait) {
    memory.holds += 1;
    memory.worked_holds += u32::from(held.has_worked);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, kind: &str) -> Task {
        Task { id: id.to_owned(), kind: kind.to_owned(), description: "npm run dev".to_owned() }
    }

    fn held_minutes(tasks: &[Task], used_a_tool: bool, memory: &mut SessionMemory) -> Option<u64> {
        let awaited = background_wait(tasks, used_a_tool, memory)?;
        memory.holds += 1;
        Some(awaited.within.as_secs() / 60)
    }

    #[test]
    fn each_wait_for_a_command_is_longer_than_the_last_and_an_agent_gets_an_hour() {
        let mut memory = SessionMemory::default();
        let server = [task("1", "shell")];
        let held: Vec<_> = (0..5).map(|_| held_minutes(&server, false, &mut memory)).collect();
        assert_eq!(held, [Some(5), Some(10), Some(20), Some(40), Some(40)]);
        let agent = [task("1", "shell"), task("2", "subagent")];
        assert_eq!(held_minutes(&agent, false, &mut memory), Some(60));
        assert_eq!(held_minutes(&[], false, &mut memory), None);
    }

    #[test]
    fn every_fourth_turn_that_leaves_a_job_behind_counts_as_an_iteration() {
        let mut memory = SessionMemory::default();
        let mut held = |id: u32, used_a_tool: bool| {
            let awaited =
                background_wait(&[task(&id.to_string(), "shell")], used_a_tool, &mut memory);
            match &awaited {
                Some(held) => remember_wait(&mut memory, held),
                None => memory.worked_holds = 0,
            }
            awaited.is_some()
        };
        for used_a_tool in [true, false] {
            let row: Vec<bool> = (0..8).map(|id| held(id, used_a_tool)).collect();
            assert_eq!(row, [true, true, true, false, true, true, true, false]);
        }
        // A turn that only waits for the earlier job neither counts nor restarts the row.
        let row: Vec<bool> = (0..8).map(|turn| held(8 + turn / 2, false)).collect();
        assert_eq!(row, [true, true, true, true, true, true, false, true]);
    }

    #[test]
    fn a_background_task_is_not_waited_for_again_once_the_agent_has_worked_beside_it() {
        let mut memory = SessionMemory::default();
        let server = [task("1", "shell")];
        assert_eq!(held_minutes(&server, true, &mut memory), Some(5));
        assert_eq!(held_minutes(&server, true, &mut memory), None);
        assert_eq!(held_minutes(&server, false, &mut memory), None);
        let another = [task("1", "shell"), task("2", "shell")];
        assert_eq!(held_minutes(&another, false, &mut memory), Some(5));
    }
}
