//! `crew hook`: one event of the client on stdin, one answer on stdout, worded from the driver's
//! result. It decides nothing. If anything fails inside, the agent may stop: one line on stderr,
//! exit 0.

use std::io::stdin;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error, Result};
use clap::ColorChoice;

use super::{client_reading, control, print};
use crate::drive::end::EndAttempt;
use crate::drive::failure::failure_of;
use crate::drive::installation::install;
use crate::drive::page::read_page;
use crate::drive::session::companion::{handle_notice, run_companion};
use crate::drive::session::queued::LoopIs;
use crate::drive::session::stop::StopResult;
use crate::drive::session::{self, EventResult, mark_delivered, note_fault};
use crate::drive::start::establish::Started;
use crate::report::line::{self, LoopLine};
use crate::report::words::with_program_path;
use crate::report::{help, page, setup};
use engine::boundary::limits;
use engine::record::{Loop, LoopId, Status};
use engine::view::Page;
use engine::words::{self, DECIDE_YOURSELF};
use readers::clients::{Hook, HookEvent, Output, Reply, in_its_session, spell_command};
use readers::parse::arguments;
use readers::parse::requests::SessionRequest;
use world::files::disk;
use world::store::{Home, journal};
use world::{client, clock, env, fault};

/// The largest payload. A stop with a very long last message must be judged, too.
const PAYLOAD_BYTES: u64 = 64 << 20;

/// Answers one event, as the boundary or as its companion.
pub fn answer_event(is_companion: bool) -> ExitCode {
    print::set_colour(ColorChoice::Never);
    let bytes = disk::read_stream(stdin().lock(), PAYLOAD_BYTES).context("cannot read the payload");
    let hook = bytes.and_then(|bytes| Hook::parse(&bytes, &env::raw).map_err(Error::msg));
    let (home, hook) = match hook.and_then(|hook| Ok((home_of(&hook)?, hook))) {
        Ok(read) => read,
        Err(error) => return let_through(&error),
    };
    print_answer(&home, &hook, is_companion).unwrap_or_else(|error| {
        note_fault(&home, &hook, &format!("{}: {error:#}", hook.name()));
        let_through(&error)
    })
}

fn let_through(error: &Error) -> ExitCode {
    print::err(&format!("crew: {}", failure_of(error).in_a_line()));
    ExitCode::SUCCESS
}

fn home_of(hook: &Hook<'_>) -> Result<Home> {
    let data = hook.client.variables().data().and_then(|name| hook.folder_of(name));
    let home = Home::of_hook(data.as_deref()).context("cannot find out where loops are kept")?;
    home.context("cannot find out where loops are kept: HOME is not set")
}

fn print_answer(home: &Home, hook: &Hook<'_>, is_companion: bool) -> Result<ExitCode> {
    let (output, is_a_prompt) = answer_hook(home, hook, is_companion)?;
    if let Some(value) = &output.out {
        fault::point("answer")?;
        print::json(value);
    }
    if let Some(words) = &output.err {
        print::err(words);
    }
    if is_a_prompt {
        // Repeating a message is better than losing a wake.
        let _ = mark_delivered(home, hook);
    }
    Ok(output.status.into())
}

/// The client's answer, and whether it is a prompt for the agent.
fn answer_hook(home: &Home, hook: &Hook<'_>, is_companion: bool) -> Result<(Output, bool)> {
    let answer = match (is_companion, hook.event()) {
        (false, _) => session::answer_hook(home, hook)?,
        (true, HookEvent::NotOurs) => EventResult::Silent,
        (true, HookEvent::ServiceFailed { .. }) => handle_notice(home, hook)?,
        (true, _) => run_companion(home, hook)?,
    };
    let notice = notice_of(&answer);
    let mut said = reply_to(home, hook, answer);
    if let Some(skew) = install::version_skew(hook) {
        said = said.add_line(&setup::skew_line(&skew.plugin, skew.launched));
    }
    let mut output = hook.write_reply(&said);
    if let Some(text) = notice
        && let Some(codes) =
            line::terminal_notice(&text, &|name| (*hook.variable())(name)?.into_string().ok())
    {
        hook.add_notice(&mut output, codes);
    }
    Ok((output, matches!(said, Reply::GoOn { .. } | Reply::Wake(_))))
}

/// The reply to an event, in a neutral form that each client translates into its own.
fn reply_to(home: &Home, hook: &Hook<'_>, answer: EventResult) -> Reply {
    // Commands that a boundary or the help quotes can be typed in the client itself.
    let is_typed_here = matches!(answer, EventResult::Stopped(..) | EventResult::Requested(..));
    let is_help = matches!(answer, EventResult::Help);
    let mut said = word_reply(home, hook, answer);
    if !is_typed_here
        && let Some(words) = said.text_mut()
        && let Some(program) = client::off_path("crew")
    {
        *words = with_program_path(words, &program, is_help);
    }
    said
}

/// Renders a page of a loop for the loop's session.
fn page_in_session(page: &Page, record: &Loop) -> String {
    in_its_session(&page::render_page(page, client_reading()), record)
}

/// The notice for an answer, if it needs one.
fn notice_of(answer: &EventResult) -> Option<String> {
    let (record, text) = match answer {
        EventResult::Stopped(StopResult::Finished(ended), _) => {
            (&ended.record, line::end_notice(&ended.record, clock::local_time()))
        }
        EventResult::Deferred(record) => (&**record, line::question_notice(record)),
        EventResult::AtDialog(record) => {
            (&**record, line::dialog_notice(record, clock::local_time()))
        }
        EventResult::ServiceNotice(record) if record.is_live() => {
            (&**record, Some(line::wait_notice(record, clock::local_time())))
        }
        EventResult::ServiceNotice(record) => {
            (&**record, line::end_notice(record, clock::local_time()))
        }
        _ => return None,
    };
    if record.contract.silent { None } else { text }
}

/// The full prompt of a loop. Without its last iterations, if they cannot be read, it still has the
/// task and the latest evidence.
fn full_prompt(home: &Home, record: &Loop, handoff: Option<&Path>) -> String {
    let journal = home.loop_file(&record.id, "journal.jsonl");
    let last = journal::last_summaries(&journal).unwrap_or_default();
    words::full_prompt(record, handoff, &last, &crew_program())
}

/// The program that the agent runs as crew.
fn crew_program() -> PathBuf {
    env::program_path().unwrap_or_else(|_| "crew".into())
}

/// A line about a loop, as it reads now.
fn current_line(line: LoopLine, record: &Loop) -> String {
    line::render_line(line, record, clock::local_time())
}

fn word_reply(home: &Home, hook: &Hook<'_>, answer: EventResult) -> Reply {
    match answer {
        // The notice says everything.
        EventResult::Silent | EventResult::ServiceNotice(_) | EventResult::AtDialog(_) => {
            Reply::Nothing
        }
        EventResult::Wake(prompt) => Reply::Wake(prompt),
        EventResult::Stopped(stop, asides) => {
            asides.into_iter().fold(reply_to_stop(stop), |reply, aside| {
                match word_reply(home, hook, aside) {
                    Reply::Instead(text) => reply.add_line(text.trim_end()),
                    _ => reply,
                }
            })
        }
        EventResult::Started(started) => {
            let record = &started.record;
            let prompt = words::start_prompt(record, &crew_program());
            go_on(record, prompt, start_lines(&started, hook.caution()))
        }
        EventResult::Resumed(resumed) => {
            let record = &resumed.record;
            let prompt = full_prompt(home, record, resumed.handoff.as_deref());
            let caution = hook.caution().map(mark_caution);
            let mut lines = vec![current_line(LoopLine::Resumed, record)];
            lines.extend(resumed.notes.into_iter().chain(caution));
            go_on(record, prompt, lines.join("\n"))
        }
        EventResult::Reminded(record) => {
            let prompt = full_prompt(home, &record, None);
            go_on(&record, prompt, current_line(LoopLine::Reminded, &record))
        }
        EventResult::Refused(why) => Reply::Instead(format!("crew: {why}")),
        EventResult::Help => Reply::Instead(help::client_page(&arguments::options_page())),
        EventResult::Status(None) => {
            let start = spell_command(hook.client, "loop");
            Reply::Instead(format!("crew: {}", help::no_loop_in_a_session(&start)))
        }
        EventResult::Status(Some(record)) => {
            Reply::Instead(page_in_session(&read_page(home, &record), &record))
        }
        EventResult::Cancelled(EndAttempt::Ended(ended)) => {
            Reply::Instead(page_in_session(&ended.page, &ended.record))
        }
        EventResult::Cancelled(attempt) => {
            Reply::Instead(control::describe_cancel(&attempt, client_reading()))
        }
        EventResult::CancelledElsewhere(record) => {
            Reply::Say(current_line(LoopLine::CancelledElsewhere, &record))
        }
        EventResult::Paused(record, how) => {
            Reply::Instead(in_its_session(&control::describe_pause(&record, how), &record))
        }
        EventResult::HandedOff(file) => Reply::Instead(control::describe_handoff(&file)),
        EventResult::Already(executed, record) => {
            Reply::Instead(control::describe_repeat(&executed, &record))
        }
        EventResult::Requested(request, result) => {
            Reply::Executed(answer_command(request, &result))
        }
        EventResult::Deferred(_) => Reply::Decide(DECIDE_YOURSELF.to_owned()),
        EventResult::BrokenOff(record) => Reply::Say(current_line(LoopLine::BrokenOff, &record)),
        EventResult::Interrupted(record) => {
            Reply::Say(current_line(LoopLine::Interrupted, &record))
        }
    }
}

/// The reply to a stop.
fn reply_to_stop(stop: StopResult) -> Reply {
    match stop {
        StopResult::Over => Reply::Nothing,
        StopResult::Continue(boundary) => {
            let after = &boundary.after;
            let line = line_with_note(LoopLine::Boundary, after, boundary.note);
            go_on(after, words::next_prompt(after), line)
        }
        StopResult::Woken(boundary) => {
            Reply::Say(line_with_note(LoopLine::Boundary, &boundary.after, boundary.note))
        }
        StopResult::Held(boundary) => {
            Reply::Say(line_with_note(LoopLine::Held, &boundary.after, boundary.note))
        }
        StopResult::Finished(ended) => Reply::Say(page_in_session(&ended.page, &ended.record)),
    }
}

fn go_on(record: &Loop, prompt: String, line: String) -> Reply {
    Reply::GoOn { task: record.contract.task.clone(), prompt, line }
}

/// A line about a loop, with the user's note below it.
fn line_with_note(line: LoopLine, record: &Loop, note: Option<String>) -> String {
    let mut line = line::render_line(line, record, clock::local_time());
    line.extend(note.map(|note| format!("\n{note}")));
    line
}

/// The answer to a command typed while the agent works, which the client shows as one dim line.
fn answer_command(request: SessionRequest, result: &Result<(Box<Loop>, LoopIs), LoopId>) -> String {
    let (record, is) = match result {
        Ok((record, is)) => (record, *is),
        Err(id) => {
            let verb = request.label();
            return format!("that failed; type this in a terminal: crew {verb} {id}");
        }
    };
    let (id, status) = (&record.id, line::status_line(record, clock::local_time()));
    let gone = if is == LoopIs::Ownerless { ", no process drives it" } else { "" };
    match request {
        _ if is == LoopIs::Over => format!("loop {id} is over: {status}"),
        SessionRequest::Pause if record.state.status() == Status::Running && gone.is_empty() => {
            format!("loop {id} {}", line::pausing_text(record))
        }
        SessionRequest::Cancel if record.is_live() => {
            format!("loop {id} is cancelled; what runs it ends it in a moment")
        }
        SessionRequest::Status if is == LoopIs::Own => status,
        SessionRequest::Cancel if is == LoopIs::Own => {
            format!("loop {id}: {status}; Esc ends a turn")
        }
        SessionRequest::Pause | SessionRequest::Cancel | SessionRequest::Status => {
            format!("loop {id}: {status}{gone}")
        }
    }
}

fn mark_caution(caution: &str) -> String {
    format!("! {caution}")
}

fn start_lines(started: &Started, caution: Option<&str>) -> String {
    let mut lines = vec![line::render_line(LoopLine::Start, &started.record, clock::local_time())];
    if started.record.contract.checks.is_empty() {
        let example = started.suggestion.as_deref().unwrap_or("your test command");
        let what = limits::without_checks(&started.record.contract);
        lines.push(format!("{what}. Try --verify \"{example}\""));
    }
    lines.extend(started.notes.iter().cloned());
    lines.extend(caution.map(mark_caution));
    lines.join("\n")
}

#[cfg(test)]
#[path = "hook_tests.rs"]
mod tests;
