//! `crew fleet attempt`: one attempt at a task of a fleet, as an executor runs it. Its exit code is
//! that of the task's loop.

use std::io::stdin;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use clap::ColorChoice;

use super::{print, terminal_home};
use crate::cmd::reporter::Reporter;
use crate::exit::Exit;
use crate::fleet::attempt::{self, AttemptResult};
use crate::fleet::spec::{AttemptEnd, AttemptSpec};
use engine::failure::Failure;
use engine::record::Outcome;
use readers::clients::variables::inside_an_agent;
use readers::parse::arguments::OutputArgs;
use world::env;
use world::files::disk;
use world::process::signals::Signals;

/// The largest spec that is read, in bytes: a prompt of 256 KiB and as many checks.
const SPEC_BYTES: u64 = 8 << 20;

/// Runs the attempt that a spec describes; `-` reads the spec from standard input.
pub fn run_attempt(file: &Path) -> Result<Exit> {
    if inside_an_agent(&env::raw) {
        bail!(Failure::new("an agent cannot make an attempt", "a person can, with crew fleet run"));
    }
    // The output is kept in a file.
    print::set_colour(ColorChoice::Never);
    let bytes = if file == Path::new("-") {
        disk::read_stream(stdin(), SPEC_BYTES)?
    } else {
        let read = disk::read(file, SPEC_BYTES)?;
        read.with_context(|| format!("there is no spec {}", file.display()))?
    };
    let spec: AttemptSpec = serde_json::from_slice(&bytes).context(
        "the spec cannot be read: crew fleet run writes it, for the same version of crew",
    )?;
    let (task, signals) = (spec.task.clone(), Signals::listen()?);
    let mut reporter = Reporter::new(OutputArgs::default());
    Ok(match attempt::run_attempt(&terminal_home()?, spec, &signals, &mut reporter)? {
        AttemptResult::Over(AttemptEnd::Ended(ending)) => {
            print::err(&format!("crew: {task} is {}: {}", ending.outcome.label(), ending.reason));
            Exit::for_outcome(ending.outcome)
        }
        AttemptResult::Over(AttemptEnd::Paused) => Exit::INTERRUPTED,
        AttemptResult::Over(AttemptEnd::Interrupted) => {
            signals.exit_code().map_or(Exit::INTERRUPTED, Exit::from_signal)
        }
        AttemptResult::Over(AttemptEnd::Failed { reason, needs_person }) => {
            print::err(&format!("crew: {task} cannot continue: {reason}"));
            if needs_person { Exit::for_outcome(Outcome::Blocked) } else { Exit::ERROR }
        }
        AttemptResult::Elsewhere => {
            print::err(&format!("crew: {task} is left to the process that works on it"));
            Exit::SUCCESS
        }
        AttemptResult::Fenced => {
            print::err(&format!("crew: another attempt has {task}; this one pushed nothing more"));
            Exit::FENCED
        }
    })
}
