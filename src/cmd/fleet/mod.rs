//! `crew fleet`: many loops at once, one file a verb. An agent may look and end, and starts
//! nothing.

mod orders;
mod run;
mod status;

use anyhow::{Result, bail};

use super::{home, print};
use crate::drive::fleet::control::find;
use crate::drive::fleet::memory::Memory;
use crate::engine::fleet::{Fleet, FleetRequest, TaskId};
use crate::exit::Exit;
use crate::parse::arguments::{FleetVerb, UsageError};
use crate::world::env;
use crate::world::store::Home;

pub use self::orders::tell;

/// Carries out a verb of fleets.
pub fn fleet(verb: &FleetVerb) -> Result<Exit> {
    match verb {
        FleetVerb::Run(arguments) => run::run(arguments),
        FleetVerb::Status(arguments) => status::status(arguments),
        FleetVerb::Show { task, which } => status::show(task, which.fleet.as_deref()),
        FleetVerb::Pause(arguments) => orders::order(arguments, FleetRequest::Pause, None),
        FleetVerb::Cancel { order, reason } => {
            orders::order(order, FleetRequest::Cancel, reason.as_deref())
        }
        FleetVerb::Forget { fleet } => orders::forget(fleet),
        FleetVerb::Attempt { spec } => super::attempt::attempt(spec),
        FleetVerb::Job { fleet, task, remote } => run::job(fleet, task, remote.as_deref()),
    }
}

/// The fleet that is meant.
fn requested(name: Option<&str>) -> Result<(Home, Memory, Fleet)> {
    let home = home()?;
    let tell = |error| print::err(&format!("crew: {error}"));
    let fleet = find(&home, name, &env::current_folder()?, tell)?;
    let memory = Memory::of(&home, &fleet.name)?;
    Ok((home, memory, fleet))
}

/// A task's name, as it was typed.
fn task(typed: &str) -> Result<TaskId> {
    match typed.parse() {
        Ok(task) => Ok(task),
        Err(why) => bail!(UsageError::new(
            format!("`{typed}` names no task: {why}"),
            "crew fleet status lists them"
        )),
    }
}
