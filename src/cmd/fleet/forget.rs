//! `crew fleet forget`: removes what this machine keeps of a fleet, and says what stays elsewhere.
//! It asks nothing, because no work goes; an agent cannot have a fleet forgotten.

use anyhow::Result;

use crate::cmd::{home, print, refuse_an_agent};
use crate::drive::fleet::forget::{Forgotten, forget as forget_fleet};
use crate::exit::Exit;
use crate::report::fleet::forgotten::page;

/// Forgets the fleet of that name.
pub fn forget(name: &str) -> Result<Exit> {
    refuse_an_agent("an agent cannot have a fleet forgotten\nhint: a person can, in a terminal")?;
    let Forgotten { repository, stays_here, remote, was_readable, left } =
        forget_fleet(&home()?, name)?;
    print::out(&page(name, repository.as_deref(), stays_here, remote.as_ref()));
    if !was_readable {
        print::err(&format!(
            "crew: its terms could not be read\n\
             hint: git branch --list 'fleet/{name}/*' in its repository lists what stays of it"
        ));
    }
    let Some(error) = left else { return Ok(Exit::SUCCESS) };
    print::err(&format!("crew: {error}"));
    Ok(Exit::ERROR)
}
