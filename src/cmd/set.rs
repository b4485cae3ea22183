//! `crew set`: changes the limits of a live loop. An agent may lower them, never raise them.

use anyhow::{Result, bail};

use super::{actor, named, print};
use crate::drive::control;
use crate::engine::boundary::limits::LimitChanges;
use crate::exit::Exit;
use crate::parse::arguments::{SetArgs, UsageError};
use crate::report::line;

/// Changes the limits of the requested loop.
pub fn set(arguments: &SetArgs) -> Result<Exit> {
    let changes = arguments.limits.changes();
    if changes == LimitChanges::default() {
        bail!(UsageError::new("no limit is named\nhint: crew set --max-iterations 30, or -n +10"));
    }
    let (home, record) = named(arguments.name.as_deref())?;
    let record = control::set(&home, &record.id, &changes, actor())?;
    print::out(&format!("loop {}: {}", record.id, line::limits(&record)));
    Ok(Exit::SUCCESS)
}
