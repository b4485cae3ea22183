//! `crew hook`: one event of the client on stdin, one answer on stdout. Whatever goes wrong inside, the
//! agent's stop is let through: one line on stderr, exit 0. Only a companion ever exits 2.

use std::io::stdin;

use anyhow::{Context, Error, Result};

use super::answer::render;
use super::print;
use crate::drive::session::companion::companion;
use crate::drive::session::notice::notice;
use crate::drive::session::{EventResult, answer, delivered, note_fault, skew};
use crate::exit::{self, Exit};
use crate::parse::payload::{self, Payload};
use crate::report::{answer as words, install};
use crate::world::fault;
use crate::world::files::disk;
use crate::world::store::home::Home;

/// The largest payload: an event of the client is far smaller.
const PAYLOAD_BYTES: u64 = 4 << 20;

/// Answers one event, as the boundary or as its companion.
pub fn hook(is_companion: bool) -> Exit {
    let (home, payload) = match read() {
        Ok(read) => read,
        Err(error) => return let_through(&error),
    };
    speak(&home, &payload, is_companion).unwrap_or_else(|error| {
        note_fault(&home, &payload, &format!("{}: {error:#}", payload.event));
        let_through(&error)
    })
}

fn let_through(error: &Error) -> Exit {
    print::err(&exit::message(error).replace('\n', "; "));
    Exit::Success
}

fn read() -> Result<(Home, Payload)> {
    let bytes =
        disk::read_stream(stdin().lock(), PAYLOAD_BYTES).context("cannot read the payload")?;
    let payload = payload::parse(&bytes).map_err(Error::msg)?;
    let home = Home::of_hook().context("cannot tell where loops are kept")?;
    Ok((home.context("cannot tell where loops are kept: HOME is not set")?, payload))
}

fn speak(home: &Home, payload: &Payload, is_companion: bool) -> Result<Exit> {
    let answer = match (is_companion, payload.event.as_str()) {
        (false, _) => answer(home, payload)?,
        (true, "StopFailure") => {
            notice(home, payload)?.map_or(EventResult::Silent, EventResult::Waits)
        }
        (true, _) => companion(home, payload)?.map_or(EventResult::Silent, EventResult::Wake),
    };
    let is_a_prompt = answer.prompts_the_agent();
    if let EventResult::Wake(prompt) = &answer {
        print::err(prompt);
        // Words that are told once more are a lesser evil than a wake that is lost.
        let _ = delivered(home, payload);
        return Ok(Exit::Wake);
    }
    let mut said = render(home, payload, answer);
    if let Some(skew) = skew::look(payload) {
        said = Some(words::also(said, &install::skew(&skew.plugin, skew.launched)));
    }
    if let Some(value) = said {
        fault::point("answer")?;
        print::json(&value);
        if is_a_prompt {
            let _ = delivered(home, payload);
        }
    }
    Ok(Exit::Success)
}
