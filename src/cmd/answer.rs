//! What the driver answers to a client's event, as the JSON the client takes.

use serde_json::Value;

use super::control_replies;
use super::status::since;
use crate::drive::end::owner_is_gone;
use crate::drive::session::EventResult;
use crate::drive::session::queued::Aside;
use crate::drive::session::stop::StopResult;
use crate::drive::start::session::Started;
use crate::engine::record::{Loop, Status};
use crate::engine::words::prompt;
use crate::parse::arguments;
use crate::parse::payload::Payload;
use crate::parse::typed::Typed;
use crate::report::{answer as words, help, line, page};
use crate::world::client;
use crate::world::store::home::Home;

/// The answer as the client wants it; `None` says nothing.
pub fn render(home: &Home, payload: &Payload, answer: EventResult) -> Option<Value> {
    // What a boundary names can be typed in the client itself, and so can what the help quotes.
    let is_typed_here = matches!(answer, EventResult::Stopped(..) | EventResult::Typed(..));
    let is_help = matches!(answer, EventResult::Help);
    let said = said(home, payload, answer)?;
    match client::off_path("crew").filter(|_| !is_typed_here) {
        Some(program) => Some(words::called(said, &program, is_help)),
        None => Some(said),
    }
}

fn said(home: &Home, payload: &Payload, answer: EventResult) -> Option<Value> {
    let event = payload.event.as_str();
    Some(match answer {
        EventResult::Silent | EventResult::Wake(_) => return None,
        EventResult::Stopped(stop, asides) => {
            let asides = asides.iter().map(|aside| told_aside(home, aside));
            return asides.fold(stopped(event, stop), |said, line| Some(words::also(said, &line)));
        }
        EventResult::Started(started) => {
            let record = &started.record;
            go_on(event, record, &prompt::start(record), &greeting(&started))
        }
        EventResult::Resumed(resumed) => {
            let record = &resumed.record;
            let prompt = prompt::again(record, resumed.handoff.as_deref());
            let told = [Some(line::resumed(record)), resumed.accepted].into_iter().flatten();
            go_on(event, record, &prompt, &told.collect::<Vec<_>>().join("\n"))
        }
        EventResult::Reminded(record) => {
            go_on(event, &record, &prompt::again(&record, None), &line::reminded(&record))
        }
        EventResult::Refused(why) => words::instead(&format!("crew: {why}")),
        EventResult::Help => words::instead(&help::page(&arguments::options_page())),
        EventResult::Status(None) => {
            words::instead("crew: no loop belongs to this session or folder")
        }
        EventResult::Status(Some(record)) => {
            let gone = owner_is_gone(home, &record);
            words::instead(&page::status(&record, gone, &since(&record)))
        }
        EventResult::Cancelled(attempt) => words::instead(&control_replies::cancelled(&attempt)),
        EventResult::Paused(paused) => words::instead(&control_replies::paused(&paused)),
        EventResult::HandedOff(file) => words::instead(&control_replies::handed_off(&file)),
        EventResult::Already(obeyed, record) => {
            words::instead(&control_replies::already(&obeyed, &record))
        }
        EventResult::Typed(order, record, was_over) => {
            words::typed(&typed(&order, &record, was_over))
        }
        EventResult::Waits(record) => {
            words::notice(&format!("loop {}: {}", record.id, line::standing(&record)))
        }
        EventResult::BrokenOff(record) => words::say(&line::broken_off(&record)),
        EventResult::Interrupted(record) => words::say(&line::interrupted(&record)),
    })
}

/// What a stop came to; `None` says nothing.
fn stopped(event: &str, stop: StopResult) -> Option<Value> {
    Some(match stop {
        StopResult::NotOurs => return None,
        StopResult::Continue(boundary) => {
            let after = &boundary.after;
            let line = noted(line::boundary(after), boundary.note);
            go_on(event, after, &prompt::next(after), &line)
        }
        StopResult::Woken(boundary) => {
            words::say(&noted(line::boundary(&boundary.after), boundary.note))
        }
        StopResult::Held(boundary) => {
            words::say(&noted(line::held(&boundary.after), boundary.note))
        }
        StopResult::Finished(ended) => {
            words::say(&page::finish(&ended.record, &ended.since, ended.handoff.as_deref()))
        }
    })
}

/// What is said of a queued command.
fn told_aside(home: &Home, aside: &Aside) -> String {
    match aside {
        Aside::Status(record) => {
            page::status(record, owner_is_gone(home, record), &since(record)).trim_end().to_owned()
        }
        Aside::HandedOff(file) => control_replies::handed_off(file),
        Aside::Refused(why) => format!("crew: {why}"),
    }
}

fn go_on(event: &str, record: &Loop, prompt: &str, line: &str) -> Value {
    words::go_on(event, &record.contract.task, prompt, line)
}

/// A line, and below it what the user should know.
fn noted(mut line: String, note: Option<String>) -> String {
    line.extend(note.map(|note| format!("\n{note}")));
    line
}

/// The client shows one dim line for an order typed while the agent works.
fn typed(order: &Typed, record: &Loop, was_over: bool) -> String {
    match order {
        _ if was_over => format!("loop {} is over: {}", record.id, line::standing(record)),
        Typed::Pause if record.state.status == Status::Running => {
            format!("pauses after iteration {}", record.iteration())
        }
        Typed::Pause | Typed::Cancel { .. } | Typed::Status => line::standing(record),
    }
}

fn greeting(started: &Started) -> String {
    let mut lines = vec![line::start(&started.record)];
    if started.record.contract.checks.is_empty() {
        let example = started.suggestion.as_deref().unwrap_or("your test command");
        let what = match started.record.contract.promise {
            Some(_) => "a claim will be believed",
            None => "it runs to its limit",
        };
        lines.push(format!("nothing is checked: {what}. Try --verify \"{example}\""));
    }
    lines.extend(started.notes.iter().cloned());
    lines.join("\n")
}
