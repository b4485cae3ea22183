//! `crew hook`: one event of the client on stdin, one answer on stdout. If anything fails inside,
//! the agent's stop is let through: one line on stderr, exit 0.

use std::io::stdin;
use std::process::ExitCode;

use anyhow::{Context, Error, Result};
use clap::ColorChoice;

use super::answer::{self, reply};
use super::print;
use crate::clients::{Hook, HookEvent, Output};
use crate::drive::install;
use crate::drive::session::companion::{companion, notice};
use crate::drive::session::{self, EventResult, delivered, note_fault};
use crate::exit;
use crate::report::{attention, setup};
use crate::world::files::disk;
use crate::world::store::Home;
use crate::world::{env, fault};

/// The largest payload. A stop with a very long last message must be judged, too.
const PAYLOAD_BYTES: u64 = 64 << 20;

/// Answers one event, as the boundary or as its companion.
pub fn hook(is_companion: bool) -> ExitCode {
    print::set_colour(ColorChoice::Never);
    let bytes = disk::read_stream(stdin().lock(), PAYLOAD_BYTES).context("cannot read the payload");
    let read = |bytes: Vec<u8>| Hook::read(&bytes, &env::raw).map_err(Error::msg);
    let (home, hook) = match bytes.and_then(read).and_then(|hook| Ok((home(&hook)?, hook))) {
        Ok(read) => read,
        Err(error) => return let_through(&error),
    };
    speak(&home, &hook, is_companion).unwrap_or_else(|error| {
        note_fault(&home, &hook, &format!("{}: {error:#}", hook.name));
        let_through(&error)
    })
}

fn let_through(error: &Error) -> ExitCode {
    print::err(&exit::message(error).replace('\n', "; "));
    ExitCode::SUCCESS
}

fn home(hook: &Hook<'_>) -> Result<Home> {
    let data = hook.client.data.and_then(|name| hook.folder_of(name));
    let home = Home::of_hook(data.as_deref()).context("cannot find out where loops are kept")?;
    home.context("cannot find out where loops are kept: HOME is not set")
}

fn speak(home: &Home, hook: &Hook<'_>, is_companion: bool) -> Result<ExitCode> {
    let (output, is_a_prompt) = answered(home, hook, is_companion)?;
    if let Some(value) = &output.out {
        fault::point("answer")?;
        print::json(value);
    }
    if let Some(words) = &output.err {
        print::err(words);
    }
    if is_a_prompt {
        // Repeating a message is better than losing a wake.
        let _ = delivered(home, hook);
    }
    Ok(output.status.into())
}

/// The client's answer, and whether it is a prompt for the agent.
fn answered(home: &Home, hook: &Hook<'_>, is_companion: bool) -> Result<(Output, bool)> {
    let answer = match (is_companion, &hook.event) {
        (false, _) => session::answer(home, hook)?,
        (true, HookEvent::NotOurs) => EventResult::Silent,
        (true, HookEvent::ServiceFailed { .. }) => notice(home, hook)?,
        (true, _) => companion(home, hook)?,
    };
    let is_a_prompt = answer.prompts_the_agent();
    let notice = answer::notice(&answer);
    let mut said = reply(home, hook, answer);
    if let Some(skew) = install::skew(hook) {
        said = said.also(&setup::skew(&skew.plugin, skew.launched));
    }
    let mut output = (hook.client.write)(&hook.name, &said);
    let variable = |name: &str| (hook.variable)(name)?.into_string().ok();
    if let Some(codes) = notice.and_then(|text| attention::notice(&text, &variable)) {
        (hook.client.notify)(&mut output, codes);
    }
    Ok((output, is_a_prompt))
}

#[cfg(test)]
#[path = "hook_tests.rs"]
mod tests;
