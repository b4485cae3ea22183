//! The verbs that control a loop from any terminal, and `crew tell`, a message for its agent.

use super::{
    actor, apply_request, find_named, find_requested, find_task_or_fleet, print, refuse_an_agent,
    terminal_home, terminal_reading,
};
use crate::drive::control;
use crate::drive::control::PauseResult;
use crate::drive::end::{self, EndAttempt, handoff};
use crate::drive::find::owner_is_gone;
use crate::exit::Exit;
use crate::fleet::record::TaskRequest;
use crate::fleet::step::events::FleetRequest;
use crate::report::layout::Reading;
use crate::report::{line, page};
use anyhow::{Result, bail};
use engine::boundary::limits::{self, LimitChange, LimitChanges};
use engine::failure::Failure;
use engine::record::{Actor, ExecutedCommand, Loop, Status};
use engine::text::clean_text;
use engine::view::Fact;
use readers::clients;
use readers::clients::{resume_command, split_command};
use readers::parse::arguments::SetArgs;
use readers::parse::requests::handoff_of_shell;
use std::path::Path;
use world::{clock, env, store};

/// Cancels the requested loop, task or fleet. The request is a separate file, so it needs no model,
/// and a hook in flight cannot undo it.
pub fn cancel_loop(name: Option<&str>, reason: Option<&str>) -> Result<Exit> {
    let (by_agent, reason_of) = (actor() == Actor::Agent, reason.map(str::to_owned));
    let request = TaskRequest::Cancel { now: true, by_agent, reason: reason_of };
    if let Some(done) = request_of_fleet(name, request)? {
        return Ok(done);
    }
    apply_request(
        name,
        |home, id| {
            let attempt = end::cancel_loop(home, id, actor(), reason)?;
            Ok(describe_cancel_from_outside(&attempt, terminal_reading()))
        },
        ("cancelled", |home, id| store::request_cancel(home, id, actor(), reason)),
    )
}

/// Pauses the requested loop, task or fleet: its running iteration ends, and none begins.
pub fn pause_loop(name: Option<&str>, now: bool) -> Result<Exit> {
    if let Some(done) = request_of_fleet(name, TaskRequest::Pause { now })? {
        return Ok(done);
    }
    apply_request(
        name,
        |home, id| {
            let (record, how) = control::pause_loop(home, id, actor(), now)?;
            Ok(clean_text(&describe_pause(&record, how)))
        },
        ("asked to pause", |home, id| store::request_pause(home, id, actor(), now)),
    )
}

/// Sends the request to the requested task or fleet; `None` if it is neither.
fn request_of_fleet(name: Option<&str>, request: TaskRequest) -> Result<Option<Exit>> {
    let home = terminal_home()?;
    let Some(named) = find_task_or_fleet(&home, name)? else { return Ok(None) };
    print::out(&named.send_request(&home, &FleetRequest::Task(request), actor())?);
    Ok(Some(Exit::SUCCESS))
}

/// Changes the limits of the requested live loop. An agent may lower them, never raise them.
pub fn set_limits(arguments: &SetArgs) -> Result<Exit> {
    let changes: LimitChanges = arguments.limits().limit_changes();
    if changes.is_empty() {
        bail!(Failure::usage("no limit is named", "crew set --max-iterations 30, or -n +10"));
    }
    if changes.values().any(|change| *change == LimitChange::By(0)) {
        bail!(Failure::usage(
            "`+0` adds nothing to a limit",
            "crew set -n +10 adds ten iterations"
        ));
    }
    let (home, record) = find_requested(arguments.name().as_deref())?;
    let record = control::set_limits(&home, &record.id, &changes, actor())?;
    print::out(&format!(
        "loop {}: {}",
        record.id,
        limits::describe_limits(&record.contract.limits)
    ));
    Ok(Exit::SUCCESS)
}

/// Writes a page for the next worker of the requested loop.
pub fn write_handoff(words: &[String], kind: Option<&str>, name: Option<&str>) -> Result<Exit> {
    let (home, record) = find_requested(name)?;
    let (kind, text) = handoff_of_shell(kind, words);
    let page = handoff::write_handoff(&home, &record, &kind, &text, actor())?;
    print::out(&describe_handoff(&page));
    if record.state.status() == Status::Running {
        print::aside("it is read when the loop is resumed; crew tell reaches its agent now");
    }
    Ok(Exit::SUCCESS)
}

/// The error of `crew tell` inside an agent.
pub fn not_for_an_agent() -> Failure {
    Failure::new(
        "an agent cannot send a message to a loop, neither to its own nor to another: only a person \
         steers a loop",
        "say it in your last message, which the next iteration and the person read",
    )
}

/// Queues a message for the agent of the requested loop. The first word may name a task or a fleet.
/// The agent of a task may send a message to its own fleet.
pub fn tell_agent(words: &[String], name: Option<&str>) -> Result<Exit> {
    let home = terminal_home()?;
    let (first, rest) = words.split_first().map_or(("", words), |(first, rest)| (&**first, rest));
    let mut found = None;
    if name.is_none() && !rest.is_empty() {
        found = find_named(&home, Some(first))?.map(|found| (found, rest));
    }
    if found.is_none() {
        found = find_task_or_fleet(&home, name)?.map(|found| (found, words));
    }
    if let Some((named, words)) = found {
        if actor() == Actor::Agent && !named.is_fleet_of(&home, env::text("CREW_LOOP").as_deref()) {
            bail!(not_for_an_agent());
        }
        print::out(&named.send_message(&home, &words.join(" "), actor())?);
        return Ok(Exit::SUCCESS);
    }
    refuse_an_agent(not_for_an_agent())?;
    let words = control::check_message(&words.join(" "))?;
    let (home, record) = find_requested(name)?;
    let record = control::add_message(&home, &record.id, &words)?;
    let id = &record.id;
    let resume = record.fleet_resume().unwrap_or_else(|| format!("crew resume {id}"));
    let answer = if owner_is_gone(&home, &record) {
        format!("kept, but no longer driven by any process · {resume} resumes it")
    } else {
        describe_delivery(&record)
    };
    print::out(&format!("loop {id}: {answer}"));
    Ok(Exit::SUCCESS)
}

/// The message about a turn that a cancel in a terminal cannot end.
const TURN_CONTINUES: &str = "its agent finishes the turn it is in; Esc in the client stops it";

/// The result of a cancel from outside the session, which cannot stop its client.
pub fn describe_cancel_from_outside(attempt: &EndAttempt, reading: Reading) -> String {
    match attempt {
        EndAttempt::Ended(ended) if ended.turn_continues => {
            let mut page = ended.page.clone();
            page.ending.push(Fact::new("now", TURN_CONTINUES));
            page::render_page(&page, reading)
        }
        _ => describe_cancel(attempt, reading),
    }
}

/// The result of a cancel, in the same words for a terminal and a client.
pub fn describe_cancel(attempt: &EndAttempt, reading: Reading) -> String {
    match attempt {
        EndAttempt::Ended(ended) => page::render_page(&ended.page, reading),
        EndAttempt::Over(record) => clean_text(&describe_end(record)),
        EndAttempt::LeftToTheBoundary => {
            "cancelled: the process that runs the loop ends it in a moment".to_owned()
        }
    }
}

/// The result of a pause, in the same words for a terminal and a client.
pub fn describe_pause(record: &Loop, how: PauseResult) -> String {
    let (id, iteration, resume) = (&record.id, record.iteration(), resume_command(record));
    let what = match how {
        PauseResult::Now => line::status_line(record, clock::local_time()),
        PauseResult::AfterIteration => line::pausing_text(record),
        PauseResult::BreakingOff => format!("is being paused; iteration {iteration} is repeated"),
        PauseResult::Already => {
            return format!("loop {id} is already paused, at iteration {iteration}");
        }
        PauseResult::Over => return describe_end(record),
    };
    format!("loop {id}: {what} · {resume} resumes it")
}

/// The reply when the client delivers a queued command that was already carried out.
pub fn describe_repeat(executed: &ExecutedCommand, record: &Loop) -> String {
    let ExecutedCommand { command, iteration } = executed;
    let what = match split_command(clients::client_of(record.state.owner()), command)
        .map(|(name, _)| name)
    {
        Some("pause") => format!("loop {} was paused", record.id),
        Some("cancel-loop") => format!("loop {} was cancelled", record.id),
        _ => format!("{command} was answered"),
    };
    format!("{what} already, at iteration {iteration}")
}

fn describe_end(record: &Loop) -> String {
    format!(
        "loop {} is already over: {}",
        record.id,
        line::status_line(record, clock::local_time())
    )
}

/// The answer to `crew tell`, with the time at which the agent gets the message.
pub fn describe_delivery(record: &Loop) -> String {
    let max = record.contract.limits.max_iterations;
    // A wake delivers the message, too.
    let is_at_work =
        record.state.status() == Status::Running && record.state.wait().due().is_none();
    if is_at_work && record.iteration() == max {
        let id = &record.id;
        return format!(
            "this is its last iteration: crew set {id} -n +1, or later crew resume {id} -n +1, \
             delivers it"
        );
    }
    "the agent gets the message with its next prompt".to_owned()
}

/// The line that names the file of a handoff.
pub fn describe_handoff(file: &Path) -> String {
    format!("handoff: {}", file.display())
}
