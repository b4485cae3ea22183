//! Hands a loop to a separate crew process, which outlives the terminal it was started from. The
//! loop has an owner at every moment: the old one records the new one, which begins only when it
//! finds itself in the record.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::drive::find::{is, myself};
use crate::engine::evidence::{TAIL_CHARS, Verdict};
use crate::engine::journal::Event;
use crate::engine::record::{Loop, LoopId, LoopMoment, Owner, Reaction};
use crate::engine::text::{plain, tail_of};
use crate::engine::words::reaction::{ReactionEnd, document, variables};
use crate::world::clock::{self, Deadline};
use crate::world::process::{Call, ExitCause, Stop, groups};
use crate::world::store::{self, Home};

/// How long the new crew waits for the loop.
const WITHIN: Duration = Duration::from_secs(10);

/// Starts the new crew with `flags` and makes it the owner. Returns the loop, and the file with
/// that crew's output.
pub fn hand_over(home: &Home, record: &Loop, flags: &[&str]) -> Result<(Loop, PathBuf)> {
    let output = home.loop_file(&record.id, "run.log");
    let arguments = [&["drive", record.id.as_str()], flags].concat();
    let process = Call::crew(home, &record.place.folder)
        .and_then(|call| call.args(arguments).detach(&output))
        .context("cannot start a crew in the background")?;
    let held = store::hold(home, &record.id, store::LOCK_WAIT)?;
    let mut found = held.load()?;
    found.state.owner = Owner { process, ..found.state.owner };
    Ok((held.record(found, |next| Event::changed("detached", next))?, output))
}

/// Waits until this process is the loop's owner.
pub fn take(home: &Home, id: &LoopId) -> Result<Loop> {
    let me = myself()?.process;
    let mine = || {
        let found = store::load(home, id).ok()?;
        is(&found.state.owner, &me).then_some(found)
    };
    let found = Deadline::after(WITHIN).poll(Duration::from_millis(20), mine);
    found.with_context(|| format!("loop {id} was not handed to this process"))
}

// Runs the user's commands at a moment of a loop. They come from the contract, so nothing that the
// agent writes can add one. Reports how each ended; the caller decides what that means.

/// Runs every reaction to a moment, in the given order, even if an earlier one failed.
/// `stop` ends the running one and skips the rest.
pub fn react(home: &Home, subject: &Loop, on: LoopMoment, stop: Stop<'_>) -> Vec<ReactionEnd> {
    let reactions = subject.contract.run.iter().flat_map(|run| &run.reactions);
    let mut ends = Vec::new();
    for reaction in reactions.filter(|reaction| reaction.on == on) {
        if stop() {
            break;
        }
        ends.push(run(home, subject, reaction, stop));
    }
    ends
}

fn run(home: &Home, subject: &Loop, reaction: &Reaction, stop: Stop<'_>) -> ReactionEnd {
    let on = reaction.on;
    let mut variables = variables(subject, on);
    variables.extend(subject.state.owner.search_path.clone().map(|path| ("PATH", path)));
    let input = document(subject, on, clock::local()).to_string() + "\n";
    let ended = Call::shell(&reaction.run, &subject.place.folder)
        .envs(variables)
        .input(input.as_bytes())
        .within(Duration::from_secs(reaction.timeout_s))
        .noted(groups::note(&home.groups(&subject.id)))
        .run(stop);
    let (verdict, exit) = match ended.as_ref().map(|ended| ended.cause) {
        Ok(ExitCause::Exit(0)) => (Verdict::Passed, Some(0)),
        Ok(ExitCause::Exit(code)) => (Verdict::Failed, Some(code)),
        Ok(ExitCause::TimedOut) => (Verdict::TimedOut, None),
        Ok(_) => (Verdict::Unknown, None),
        Err(_) => (Verdict::Failed, None),
    };
    let elapsed_ms = ended.as_ref().map_or(0, |ended| ended.elapsed_ms);
    let output = ended.map_or_else(|error| error.to_string(), |ended| plain(&ended.text()));
    let tail = tail_of(&output, TAIL_CHARS);
    ReactionEnd { on, run: reaction.run.clone(), verdict, exit, elapsed_ms, tail }
}

#[cfg(test)]
#[path = "reactions_tests.rs"]
mod reactions_tests;
