//! `crew drive`: the separate process of a detached run, or of a proof that is looked for after the
//! end. It works only on a loop that was handed to it.

use anyhow::{Error, Result};

use super::home;
use super::reporter::Reporter;
use super::run::drive_or_detach;
use crate::cli::DriveArgs;
use crate::drive::prove;
use crate::drive::run::handover::take;
use crate::exit::Exit;
use crate::parse::arguments::RunOptions;
use crate::world::process::signals::Signals;

/// Takes the loop and drives it, or looks for its proof if it is over.
pub fn drive(arguments: &DriveArgs) -> Result<Exit> {
    let home = home()?;
    let signals = Signals::listen()?;
    let id = arguments.id.parse().map_err(Error::msg)?;
    if let Some(record) = prove::handed_to_me(&home, &id)? {
        prove::in_background(&home, &record, &|| signals.times() > 0)?;
        return Ok(Exit::SUCCESS);
    }
    let record = take(&home, &id)?;
    let mut reporter = Reporter::new(arguments.output);
    drive_or_detach(&home, record, &RunOptions::default(), &signals, &mut reporter)
}
