//! `crew drive`: the separate process of a detached run. It drives only a loop that was handed to
//! it.

use anyhow::{Error, Result};

use super::home;
use super::reporter::Reporter;
use super::run::drive_or_detach;
use crate::cli::DriveArgs;
use crate::drive::run::handover::take;
use crate::exit::Exit;
use crate::parse::arguments::RunOptions;
use crate::world::process::signals::Signals;

/// Takes the loop and drives it.
pub fn drive(arguments: &DriveArgs) -> Result<Exit> {
    let home = home()?;
    let signals = Signals::listen()?;
    let id = arguments.id.parse().map_err(Error::msg)?;
    let record = take(&home, &id)?;
    let mut reporter = Reporter::new(arguments.output);
    drive_or_detach(&home, record, &RunOptions::default(), &signals, &mut reporter)
}
