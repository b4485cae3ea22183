//! Runs the user's commands at a moment of a loop. They come from the contract, so nothing that the
//! agent writes can add one. Reports how each ended; the caller decides what that means.

use std::time::Duration;

use crate::engine::evidence::{TAIL_CHARS, Verdict};
use crate::engine::record::{Loop, LoopMoment, Reaction};
use crate::engine::text::{plain, tail_of};
use crate::engine::words::reaction::{ReactionEnd, document, variables};
use crate::world::process::groups::{self, Note};
use crate::world::process::{self, Capture, ExitCause, ProcessSpec, Stop};
use crate::world::store::Home;

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
    let input = document(subject, on).to_string() + "\n";
    let arguments = ["-c", &reaction.run];
    let spec = ProcessSpec {
        variables: &variables,
        input: Some(input.as_bytes()),
        within: Some(Duration::from_secs(reaction.timeout_s)),
        ..ProcessSpec::of("sh", &arguments, &subject.place.folder)
    };
    let note = groups::note(home, &subject.id).ok();
    let ended = process::run(&spec, Capture::ForReading, note.as_ref().map(Note::file), stop);
    let result = |verdict, exit, elapsed_ms, output: &str| ReactionEnd {
        on,
        run: reaction.run.clone(),
        verdict,
        exit,
        elapsed_ms,
        tail: tail_of(output, TAIL_CHARS),
    };
    match ended {
        Err(error) => result(Verdict::Failed, None, 0, &error.to_string()),
        Ok(ended) => {
            let (verdict, exit) = match ended.cause {
                ExitCause::Exit(0) => (Verdict::Passed, Some(0)),
                ExitCause::Exit(code) => (Verdict::Failed, Some(code)),
                ExitCause::TimedOut => (Verdict::TimedOut, None),
                _ => (Verdict::Unknown, None),
            };
            result(verdict, exit, ended.elapsed_ms, &plain(&String::from_utf8_lossy(&ended.output)))
        }
    }
}

#[cfg(test)]
#[path = "reactions_tests.rs"]
mod tests;
