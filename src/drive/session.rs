//! The session driver's entry: one event of the client in, one answer out. An event that does not
//! concern one of crew's loops gets an empty answer.

pub mod companion;
pub mod questions;
pub mod queued;
pub mod stop;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Error, Result};

use self::companion::{handle_failure, idle_fallback};
use self::queued::{LoopIs, execute_request};
use self::stop::{StopResult, handle_stop, is_ours};
use super::boundary;
use super::control::{self, PauseResult};
use super::end::{self, EndAttempt, handoff};
use super::failure::failure_of;
use super::find::{self, NewOwner, end_mark, gone_reason, owner_is_gone};
use super::resume::{Resumed, accept_test_changes, refuse_a_task, resume_loop};
use super::start::establish::{Started, start_session_loop};
use super::transcript::{self, is_at_work};
use engine::record::{Actor, EndReason, ExecutedCommand, Loop, LoopId, Outcome, Status};
use engine::refuse;
use readers::clients::{Hook, HookEvent};
use readers::parse::arguments;
use readers::parse::requests::{self, SessionRequest};
use world::clock;
use world::files::disk::{self, Durability};
use world::store::{self, Home, LOCK_WAIT, read_pointer};

/// The longest wait for a lock at a session's end.
const END_WAIT: Duration = Duration::from_millis(300);

/// The result of an event.
#[derive(Debug)]
pub enum EventResult {
    Silent,
    /// The result of a stop, with the results of commands that the user had queued.
    Stopped(StopResult, Vec<EventResult>),
    Started(Box<Started>),
    /// A command that was understood and refused; it costs no model turn.
    Refused(String),
    Help,
    /// The loop of this session or working tree, for a status.
    Status(Option<Box<Loop>>),
    Cancelled(EndAttempt),
    Paused(Box<Loop>, PauseResult),
    Resumed(Box<Resumed>),
    HandedOff(PathBuf),
    /// A queued command that a boundary has already carried out and that the client delivers now.
    Already(ExecutedCommand, Box<Loop>),
    /// A request typed as a message, which is not passed on; or the loop for which it could not be
    /// carried out immediately.
    Requested(SessionRequest, Result<(Box<Loop>, LoopIs), LoopId>),
    /// The loop is paused, because the user interrupted the agent and typed something else.
    BrokenOff(Box<Loop>),
    /// The agent gets the task, the rules and the evidence again, because the context was
    /// compacted.
    Reminded(Box<Loop>),
    /// The session's loop was cancelled elsewhere, for example in a terminal; reported once.
    CancelledElsewhere(Box<Loop>),
    /// A loop of this working tree was interrupted; reported once.
    Interrupted(Box<Loop>),
    /// A notice for the terminal: the loop waits for the model's service, or ended because of it.
    ServiceNotice(Box<Loop>),
    /// The agent has to answer its own question.
    Deferred(Box<Loop>),
    /// The client waits at a dialog, which was recorded.
    AtDialog(Box<Loop>),
    /// A turn starts with this prompt.
    Wake(String),
}

/// Notes that the prompt of an answer was written.
pub fn mark_delivered(home: &Home, hook: &Hook<'_>) -> Result<()> {
    Ok(owned_id(home, hook)?.map_or(Ok(()), |id| boundary::clear_undelivered(home, &id))?)
}

/// Answers one event. An error means that the client proceeds as usual.
pub fn answer_hook(home: &Home, hook: &Hook<'_>) -> Result<EventResult> {
    let mut answer = answer_to(home, hook);
    let is_silent = match &answer {
        Ok(EventResult::Stopped(StopResult::Over, asides)) => asides.is_empty(),
        answer => matches!(answer, Ok(EventResult::Silent)),
    };
    if let (true, Some(record)) = (is_silent, cancelled_elsewhere(home, hook)) {
        answer = Ok(EventResult::CancelledElsewhere(record));
    }
    if hook.event().is_typed() {
        questions::note_typing(home, hook);
    }
    answer
}

fn answer_to(home: &Home, hook: &Hook<'_>) -> Result<EventResult> {
    match hook.event() {
        HookEvent::Stopped(stopped) => handle_stop(home, hook, stopped),
        HookEvent::ServiceFailed { kind, message } => handle_failure(home, hook, kind, message),
        HookEvent::Idle => idle_fallback(home, hook),
        HookEvent::Command { sure: false, .. } if owned_or_last(home, hook)?.is_none() => {
            Ok(EventResult::Silent)
        }
        HookEvent::Command { name, raw, .. } => Ok(run_command(home, hook, name, raw)),
        HookEvent::Request(request) => execute_request(home, hook, request),
        HookEvent::Notified | HookEvent::Prompted => handle_prompt(home, hook),
        HookEvent::SessionBegan { compacted } => session_start(home, hook, *compacted),
        HookEvent::SessionEnded { why } => session_end(home, hook, why),
        HookEvent::Asked(asked) => questions::handle_question(home, hook, asked),
        HookEvent::AtDialog { tool } => questions::handle_dialog(home, hook, tool.as_deref()),
        HookEvent::Answered | HookEvent::NotOurs => Ok(EventResult::Silent),
    }
}

/// The last loop of this session, if it was cancelled and the session does not know that yet. It is
/// reported now, by this answer or by the event's own.
fn cancelled_elsewhere(home: &Home, hook: &Hook<'_>) -> Option<Box<Loop>> {
    let is_answered = matches!(
        *hook.event(),
        HookEvent::Stopped(_)
            | HookEvent::Prompted
            | HookEvent::SessionBegan { .. }
            | HookEvent::Command { .. }
            | HookEvent::Request(_)
    );
    if !is_answered {
        return None;
    }
    let id = read_pointer(&home.last_pointer(hook.session_id().as_ref()?)).ok()??;
    let mark = home.loop_file(&id, end::UNREPORTED);
    if !disk::exists(&mark) {
        return None;
    }
    let record = Box::new(store::load(home, &id).ok()?);
    disk::remove(&mark).ok()?;
    (record.outcome() == Some(Outcome::Cancelled)).then_some(record)
}

/// Journals what went wrong with an event, if its session's loop can be found and written.
pub fn note_fault(home: &Home, hook: &Hook<'_>, what: &str) {
    if let Ok(Some(id)) = owned_id(home, hook)
        && let Ok(held) = store::hold_loop(home, &id, END_WAIT)
        && let Ok(record) = held.load()
    {
        let _ = held.note(&record, clock::now(), what);
    }
}

/// A slash command. Every error is reported to the user, who has just typed it.
fn run_command(home: &Home, hook: &Hook<'_>, name: &str, raw: &str) -> EventResult {
    if let Ok(Some(record)) = owned_or_last(home, hook)
        && let Ok(Some(executed)) = queued::take_executed(home, &record, hook, name, raw)
    {
        return EventResult::Already(executed, Box::new(record));
    }
    let answer = match name {
        "loop" => start_loop(home, hook, raw),
        "resume" => resume_session_loop(home, hook, raw),
        "help" => Ok(EventResult::Help),
        "cancel-loop" | "status" | "pause" | "handoff" => match of_session(home, hook) {
            Ok(Some(record)) => command_loop(home, hook, &record, name, raw),
            found => found.map(|_| EventResult::Status(None)),
        },
        _ => Ok(EventResult::Silent),
    };
    answer.unwrap_or_else(|error| refusal_result(&error))
}

fn refusal_result(error: &Error) -> EventResult {
    EventResult::Refused(failure_of(error).with_hint())
}

/// Carries out a command about a loop, however it arrived.
fn command_loop(
    home: &Home,
    hook: &Hook<'_>,
    record: &Loop,
    name: &str,
    raw: &str,
) -> Result<EventResult> {
    Ok(match name {
        "cancel-loop" => {
            let reason = queued::cancel_reason(raw);
            EventResult::Cancelled(end::cancel_loop(home, &record.id, Actor::User, reason)?)
        }
        "pause" => {
            let (record, how) = pause_session(home, hook, record)?;
            EventResult::Paused(Box::new(record), how)
        }
        "handoff" => {
            let (kind, words) = requests::split_handoff(raw);
            EventResult::HandedOff(handoff::write_handoff(home, record, kind, words, Actor::User)?)
        }
        _ => {
            end::complete_end(home, record);
            EventResult::Status(Some(Box::new(record.clone())))
        }
    })
}

fn start_loop(home: &Home, hook: &Hook<'_>, raw: &str) -> Result<EventResult> {
    let Some(arguments) = arguments::parse_loop(raw)? else { return Ok(EventResult::Help) };
    if raw.trim().is_empty() {
        return Ok(EventResult::Help);
    }
    hook.session_id().as_ref().context("the hook's payload has no session id")?;
    let cwd = hook.folder().as_deref().context("the hook's payload has no folder (cwd)")?;
    // The client has put the command back into its input line, to be corrected.
    let ours = session_loop(home, hook)?;
    let taken_back = ours.filter(|record| transcript::is_withdrawn(record, hook));
    let started =
        start_session_loop(home, hook, &arguments, cwd, taken_back.map(|record| record.id))?;
    Ok(started.map_or(EventResult::Silent, |started| EventResult::Started(Box::new(started))))
}

/// Pauses a loop: immediately if the user interrupted its agent's turn, which will have no end.
fn pause_session(home: &Home, hook: &Hook<'_>, record: &Loop) -> Result<(Loop, PauseResult)> {
    let is_running = record.state.status() == Status::Running;
    if is_running && is_ours(record, hook) && transcript::broke_off(record, hook) {
        let record = control::pause_now(home, &record.id, "paused by the user")?;
        return Ok((record, PauseResult::Now));
    }
    control::pause_loop(home, &record.id, Actor::User, false)
}

fn resume_session_loop(home: &Home, hook: &Hook<'_>, raw: &str) -> Result<EventResult> {
    let typed = arguments::parse_resume(raw)?;
    let folder = hook.folder().as_deref().context("the hook's payload has no folder (cwd)")?;
    let record = match (typed.set().name(), of_session(home, hook)?) {
        (None, Some(record)) => record,
        (name, _) => {
            let mut found = find::find_loops(home, name.as_deref(), folder)?;
            match found.len() {
                0 => refuse!("there is no loop to resume", "crew status --all lists them"),
                1 => found.remove(0),
                _ => refuse!("more than one loop matches", "crew status --all"),
            }
        }
    };
    refuse_a_task(home, &record)?;
    hook.session_id().as_ref().context("the hook's payload has no session id")?;
    let new_owner = NewOwner::from_hook(hook)?;
    let changes = typed.set().limits().limit_changes();
    let resumed = resume_loop(home, &record.id, &changes, new_owner, |record| {
        adapt_record(home, record, typed.answer())
    })?;
    Ok(EventResult::Resumed(Box::new(resumed)))
}

/// Adds the user's message, and accepts changed tests if the user does. Returns notes for the user.
/// A procedure is a recipe for the prompts of fresh processes: a session has no task from it.
fn adapt_record(
    home: &Home,
    record: &mut Loop,
    answer: &arguments::AnswerArgs,
) -> Result<Vec<String>> {
    if record.contract.task.is_empty() {
        let id = &record.id;
        refuse!(
            "loop {id} runs a procedure, which a session cannot do",
            "crew resume {id} in a terminal"
        );
    }
    record.state.add_messages(answer.tell().as_deref().map(control::check_message).transpose()?);
    if *answer.accept_test_changes() { accept_test_changes(home, record) } else { Ok(Vec::new()) }
}

/// Handles a message that is neither a command nor a request. A message typed while the agent works
/// steers it and is left alone.
fn handle_prompt(home: &Home, hook: &Hook<'_>) -> Result<EventResult> {
    let ours = session_loop(home, hook)?.filter(is_at_work);
    let Some(record) = ours else { return Ok(EventResult::Silent) };
    let is_the_users = *hook.event() != HookEvent::Notified;
    if is_the_users && transcript::broke_off(&record, hook) {
        let what = "paused: the user interrupted the agent";
        let paused = control::pause_now(home, &record.id, what)?;
        return Ok(EventResult::BrokenOff(Box::new(paused)));
    }
    if record.state.wait().due().is_some() {
        // The loop continues from the end of this turn: a wake in the middle of it would be one too
        // many. A wake has used up its ticket, so what the client notifies of is the end of a task,
        // and the hold ends with it.
        let by =
            if is_the_users { "the user's own prompt" } else { "the end of a background task" };
        let what = format!("continued by {by}");
        control::move_on(home, &record.id, &what, |record| record.state.end_wait())?;
    }
    Ok(EventResult::Silent)
}

/// The id of the loop of this session, even of one without a record.
fn owned_id(home: &Home, hook: &Hook<'_>) -> Result<Option<LoopId>> {
    let Some(session_id) = hook.session_id() else { return Ok(None) };
    Ok(read_pointer(&home.session_pointer(session_id))?)
}

/// The loop of this session.
fn owned_loop(home: &Home, hook: &Hook<'_>) -> Result<Option<Loop>> {
    let Some(session_id) = hook.session_id() else { return Ok(None) };
    find::named_by(home, &home.session_pointer(session_id))
}

/// The loop of this session, if the client that sent the event owns it.
fn session_loop(home: &Home, hook: &Hook<'_>) -> Result<Option<Loop>> {
    Ok(owned_loop(home, hook)?.filter(|record| is_ours(record, hook)))
}

/// The loop of a session, otherwise the one it had last.
fn owned_or_last(home: &Home, hook: &Hook<'_>) -> Result<Option<Loop>> {
    match (owned_loop(home, hook)?, hook.session_id()) {
        (None, Some(session_id)) => find::named_by(home, &home.last_pointer(session_id)),
        (owned, _) => Ok(owned),
    }
}

/// The loop this session owns, otherwise the one of its working tree.
fn of_session(home: &Home, hook: &Hook<'_>) -> Result<Option<Loop>> {
    match (owned_loop(home, hook)?, hook.folder()) {
        (None, Some(cwd)) => find::of_working_tree(home, cwd),
        (owned, _) => Ok(owned),
    }
}

/// Reminds the agent after a compaction. Otherwise reports a loop that lost its owner, and never
/// resumes it unasked.
fn session_start(home: &Home, hook: &Hook<'_>, compacted: bool) -> Result<EventResult> {
    let Some(record) = of_session(home, hook)? else { return Ok(EventResult::Silent) };
    end::complete_end(home, &record);
    if compacted {
        let is_reminded = is_at_work(&record) && is_ours(&record, hook);
        return Ok(if is_reminded {
            EventResult::Reminded(Box::new(record))
        } else {
            EventResult::Silent
        });
    }
    let record = if owner_is_gone(home, &record) {
        match end::interrupt_run(home, &record.id, gone_reason(&record), LOCK_WAIT)? {
            EndAttempt::Ended(ended) => ended.record,
            EndAttempt::Over(record) => *record,
            EndAttempt::LeftToTheBoundary => return Ok(EventResult::Silent),
        }
    } else {
        record
    };
    let reported = home.loop_file(&record.id, "reported");
    if record.outcome() != Some(Outcome::Interrupted) || disk::exists(&reported) {
        return Ok(EventResult::Silent);
    }
    disk::write(&reported, b"", Durability::Process)?;
    Ok(EventResult::Interrupted(Box::new(record)))
}

/// Interrupts the loop of a session that ends. If the lock cannot be taken in time, it leaves a
/// mark on which the next reader acts.
fn session_end(home: &Home, hook: &Hook<'_>, why: &str) -> Result<EventResult> {
    if let Some(record) = session_loop(home, hook)?.filter(Loop::is_live) {
        let reason = EndReason::SessionEnded(Some(why.to_owned()));
        let within = END_WAIT.min(*hook.client.turns().waits_at_the_end());
        if let EndAttempt::LeftToTheBoundary = end::interrupt_run(home, &record.id, reason, within)?
        {
            disk::write(&end_mark(home, &record.id), why.as_bytes(), Durability::Machine)?;
        }
    }
    Ok(EventResult::Silent)
}
