//! `crew hook`: one event of the client on stdin, one answer on stdout. Whatever goes wrong inside, the
//! agent's stop is let through: one line on stderr, exit 0. Only a companion ever exits 2.

use std::io::stdin;

use anyhow::{Context, Result};
use serde_json::Value;

use super::cancel::told;
use super::print;
use super::status::since;
use crate::drive::companion::companion;
use crate::drive::ending::owner_is_gone;
use crate::drive::session::{Answer, answer};
use crate::drive::start::Started;
use crate::drive::stop::Stop;
use crate::engine::prompt;
use crate::exit::{self, Exit};
use crate::parse::payload::{self, Payload};
use crate::report::{answer as words, help, line, page};
use crate::world::disk;
use crate::world::fault;
use crate::world::home::Home;

/// The largest payload: an event of the client is far smaller.
const PAYLOAD_BYTES: u64 = 4 << 20;

/// Answers one event, as the boundary or as its companion.
pub fn hook(is_companion: bool) -> Exit {
    match read().and_then(|(home, payload)| speak(&home, &payload, is_companion)) {
        Ok(exit) => exit,
        Err(error) => {
            print::err(&exit::message(&error).replace('\n', "; "));
            Exit::Success
        }
    }
}

fn read() -> Result<(Home, Payload)> {
    let bytes =
        disk::read_stream(stdin().lock(), PAYLOAD_BYTES).context("cannot read the payload")?;
    let payload = payload::parse(&bytes).map_err(anyhow::Error::msg)?;
    let home = Home::of_hook().context("cannot tell where loops are kept")?;
    Ok((home.context("cannot tell where loops are kept: HOME is not set")?, payload))
}

fn speak(home: &Home, payload: &Payload, is_companion: bool) -> Result<Exit> {
    if is_companion {
        return Ok(match companion(home, payload)? {
            Some(prompt) => {
                print::err(&prompt);
                Exit::Wake
            }
            None => Exit::Success,
        });
    }
    if let Some(value) = render(home, payload, answer(home, payload)?) {
        fault::point("answer")?;
        print::out(&value.to_string());
    }
    Ok(Exit::Success)
}

/// The answer as the client wants it; `None` says nothing.
fn render(home: &Home, payload: &Payload, answer: Answer) -> Option<Value> {
    Some(match answer {
        Answer::Silent | Answer::Stopped(Stop::NotOurs) => return None,
        Answer::Stopped(Stop::Continue(boundary)) => {
            words::go_on(&prompt::next(&boundary.after), &line::boundary(&boundary.after))
        }
        Answer::Stopped(Stop::Woken(boundary) | Stop::Held(boundary)) => {
            words::say(&line::boundary(&boundary.after))
        }
        Answer::Stopped(Stop::Finished(ended)) => {
            words::say(&page::finish(&ended.record, &ended.since, ended.handoff.as_deref()))
        }
        Answer::Started(started) => {
            words::begin(&payload.event, &prompt::start(&started.record), &greeting(&started))
        }
        Answer::Refused(why) => words::instead(&format!("crew: {why}")),
        Answer::Help => words::instead(help::LOOP),
        Answer::Status(None) => words::instead("crew: no loop belongs to this session or folder"),
        Answer::Status(Some(record)) => {
            let gone = owner_is_gone(home, &record);
            words::instead(&page::status(&record, gone, &since(&record)))
        }
        Answer::Cancelled(attempt) => words::instead(&told(&attempt)),
        Answer::Interrupted(record) => words::say(&format!(
            "crew: loop {} was interrupted: {}. Its task and handoff are in {}",
            record.id,
            line::standing(&record),
            record.place.branch_folder().display(),
        )),
    })
}

fn greeting(started: &Started) -> String {
    let mut lines = vec![line::start(&started.record)];
    if started.record.contract.checks.is_empty() {
        let example = started.suggestion.unwrap_or("your test command");
        lines.push(format!(
            "nothing is checked: a claim will be believed. Try --verify \"{example}\""
        ));
    }
    lines.extend(started.notes.iter().cloned());
    lines.join("\n")
}
