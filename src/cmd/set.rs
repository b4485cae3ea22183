//! `crew set`: changes the limits of a live loop. An agent may lower them, never raise them.

use anyhow::{Result, bail};

use super::{actor, print, requested};
use crate::drive::control;
use crate::engine::boundary::limits::{self, LimitChange, LimitChanges};
use crate::exit::Exit;
use crate::parse::arguments::{SetArgs, UsageError};

/// Changes the limits of the requested loop.
pub fn set(arguments: &SetArgs) -> Result<Exit> {
    let changes: LimitChanges = arguments.limits.by_key().collect();
    if changes.is_empty() {
        bail!(UsageError::new("no limit is named", "crew set --max-iterations 30, or -n +10"));
    }
    if changes.values().any(|change| *change == LimitChange::By(0)) {
        bail!(UsageError::new(
            "`+0` adds nothing to a limit",
            "crew set -n +10 adds ten iterations"
        ));
    }
    let (home, record) = requested(arguments.name.as_deref())?;
    let record = control::set(&home, &record.id, &changes, actor())?;
    print::out(&format!("loop {}: {}", record.id, limits::named(&record.contract.limits)));
    Ok(Exit::SUCCESS)
}
