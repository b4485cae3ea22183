//! `crew fleet job`: one attempt at one task, as an engine runs it. Its exit code is the task's.

use anyhow::{Result, bail};
use clap::ColorChoice;

use super::task;
use crate::clients::variables::inside_an_agent;
use crate::cmd::reporter::Reporter;
use crate::cmd::{home, print};
use crate::drive::fleet::attempt::JobEnd;
use crate::drive::fleet::job::job as attempt;
use crate::drive::fleet::node;
use crate::exit::Exit;
use crate::parse::arguments::OutputArgs;
use crate::world::env;
use crate::world::process::signals::Signals;

/// Works on a task until its loop is over, unless it ended before or is worked on elsewhere.
pub fn job(fleet: &str, name: &str, remote: Option<&str>) -> Result<Exit> {
    if inside_an_agent(&env::raw) {
        bail!("an agent cannot start a job of a fleet\nhint: a person can, with crew fleet run");
    }
    // What it prints is kept in a file.
    print::set_colour(ColorChoice::Never);
    let mut home = home()?;
    // Machines of a cluster often share the folder, and a lock holds on one of them alone.
    if let Some(node) = env::text("SLURMD_NODENAME").filter(|_| remote.is_some()) {
        home = home.of_node(&node);
    }
    let task = task(name)?;
    let signals = Signals::listen()?;
    if let Some(url) = remote {
        let joined = node::join(&home, fleet, url, &signals);
        if let (Err(_), Some(signal)) = (&joined, signals.exit_code()) {
            return Ok(Exit::signalled(signal));
        }
        joined?;
    }
    let mut reporter = Reporter::new(OutputArgs::default());
    Ok(match attempt(&home, fleet, &task, &signals, &mut reporter)? {
        JobEnd::Ended(ending) => {
            print::err(&format!("crew: {task} is {}: {}", ending.outcome.label(), ending.why));
            Exit::of(ending.outcome)
        }
        JobEnd::Elsewhere => {
            print::err(&format!("crew: {task} is left to the process that works on it"));
            Exit::SUCCESS
        }
        JobEnd::Fenced => {
            print::err(&format!("crew: another attempt has {task}; this one pushed nothing more"));
            Exit::FENCED
        }
        JobEnd::Paused => Exit::INTERRUPTED,
        JobEnd::Interrupted => signals.exit_code().map_or(Exit::INTERRUPTED, Exit::signalled),
    })
}
