//! `crew fleet pause`, `cancel` and `forget`, and `crew tell --fleet`: requests of a person, on the
//! fleet's own record first. An agent cannot have a fleet forgotten.

use anyhow::Result;

use super::{requested, task};
use crate::cmd::{actor, home, print, refuse_an_agent};
use crate::drive::fleet::control::{self, Delivery, Forgotten, forget as forget_fleet};
use crate::engine::fleet::{FleetOrder, FleetRequest, TaskId};
use crate::exit::Exit;
use crate::parse::arguments::FleetOrderArgs;
use crate::report::fleet::lines::{accepted, forgotten, obeyed, told};

/// Gives an order for the tasks named, or for all.
pub fn order(arguments: &FleetOrderArgs, what: FleetRequest, reason: Option<&str>) -> Result<Exit> {
    let tasks: Result<Vec<TaskId>> = arguments.tasks.iter().map(|name| task(name)).collect();
    let (home, memory, fleet) = requested(arguments.which.fleet.as_deref())?;
    let reason = reason.map(str::to_owned);
    let order = FleetOrder { what, by: actor(), reason };
    let (tasks, untold) = control::order(&home, &memory, &tasks?, &order, arguments.now)?;
    print::out(&obeyed(&fleet.name, what, tasks.each_ref().map(Vec::as_slice)));
    if let Some(why) = untold {
        print::err(&format!(
            "crew: the order stands, but {} could not be told: {why}",
            fleet.engine
        ));
    }
    Ok(Exit::SUCCESS)
}

/// Sends a message to the agents of a fleet, or to that of one task, whose changed checks a person
/// may accept with it.
pub fn tell(
    words: &[String],
    fleet: &str,
    name: Option<&str>,
    accepts_test_changes: bool,
) -> Result<Exit> {
    refuse_an_agent(
        "an agent cannot send messages to a fleet\nhint: say it in your last message, which the next iteration reads",
    )?;
    let only = name.map(task).transpose()?;
    let (home, memory, fleet) = requested(Some(fleet))?;
    if let Some(task) = only.as_ref().filter(|_| accepts_test_changes) {
        control::accept_test_changes(&home, &memory, task, &words.join(" "))?;
        print::out(&accepted(&fleet, task));
        return Ok(Exit::SUCCESS);
    }
    let Delivery { open, ended, full } =
        control::tell(&home, &memory, &fleet, only.as_ref(), &words.join(" "))?;
    print::out(&told(&fleet, &open, &ended, &full));
    Ok(Exit::SUCCESS)
}

/// Forgets the fleet of that name.
pub fn forget(name: &str) -> Result<Exit> {
    refuse_an_agent("an agent cannot have a fleet forgotten\nhint: a person can, in a terminal")?;
    let Forgotten { terms, stays_here, left } = forget_fleet(&home()?, name)?;
    print::out(&forgotten(name, terms.as_ref(), stays_here));
    let Some(error) = left else { return Ok(Exit::SUCCESS) };
    print::err(&format!("crew: {error}"));
    Ok(Exit::ERROR)
}
