//! `crew fleet`: many loops at once, one file a verb. An agent may look and end, and starts
//! nothing.

mod job;
mod orders;
mod run;
mod show;
mod status;

use anyhow::{Result, bail};

use super::home;
use crate::drive::fleet::memory::Memory;
use crate::engine::fleet::manifest::{Fleet, FleetRequest};
use crate::engine::fleet::task::TaskId;
use crate::exit::Exit;
use crate::parse::arguments::{FleetVerb, UsageError};
use crate::world::store::{Home, fleets};
use crate::world::{env, git};

pub use self::orders::tell;

/// Carries out a verb of fleets.
pub fn fleet(verb: &FleetVerb) -> Result<Exit> {
    match verb {
        FleetVerb::Run(arguments) => run::run(arguments),
        FleetVerb::Status(arguments) => status::status(arguments),
        FleetVerb::Show { task, which } => show::show(task, which.fleet.as_deref()),
        FleetVerb::Pause(arguments) => orders::order(arguments, FleetRequest::Pause, None),
        FleetVerb::Cancel { order, reason } => {
            orders::order(order, FleetRequest::Cancel, reason.as_deref())
        }
        FleetVerb::Job { fleet, task, remote } => job::job(fleet, task, remote.as_deref()),
    }
}

/// The fleet that is meant: the named one, else this repository's newest, else the only one.
fn requested(name: Option<&str>) -> Result<(Home, Memory, Fleet)> {
    let home = home()?;
    let mut known = Vec::new();
    for found in fleets::names(&home)? {
        let fleet = fleets::manifest(&home, &found)?.map(|kept| kept.value);
        known.extend(fleet.filter(|fleet| name.is_none_or(|name| name == fleet.name)));
    }
    if name.is_none() {
        let here = git::top(&env::current_folder()?);
        if known.iter().any(|fleet| Some(&fleet.repository) == here.as_ref()) {
            known.retain(|fleet| Some(&fleet.repository) == here.as_ref());
            known.sort_by_key(|fleet| fleet.started_at);
            known.drain(..known.len() - 1);
        }
    }
    match known.len() {
        0 => bail!("there is no such fleet here\nhint: crew fleet run FOLDER starts one"),
        1 => {
            let fleet = known.remove(0);
            let memory = Memory::of(&home, &fleet.name)?;
            Ok((home, memory, fleet))
        }
        _ => {
            let names: Vec<String> = known.into_iter().map(|fleet| fleet.name).collect();
            bail!(UsageError::new(
                "there is more than one fleet on this machine",
                format!("name one of these: {}", names.join(", "))
            ))
        }
    }
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
