//! `crew cancel`: ends a loop from any terminal. The order is a file of its own, so it needs no model, and
//! a hook in flight cannot undo it.

use anyhow::Result;

use super::{by, home, meant, print, told};
use crate::cli::Cancel;
use crate::drive::ending;
use crate::exit::Exit;
use crate::world::store::{self, StoreError};

/// Cancels the loop that is meant.
pub fn cancel(arguments: &Cancel) -> Result<Exit> {
    let home = home()?;
    let reason = arguments.reason.as_deref();
    let record = match meant(&home, arguments.name.as_deref()) {
        Ok(Some(record)) => record,
        Ok(None) => return Ok(Exit::Usage),
        Err(error) => {
            // The order is the one thing that every crew writes and honours, older or newer.
            let Some(StoreError::Newer { id, made_by, is_over }) = error.downcast_ref() else {
                return Err(error);
            };
            if *is_over {
                print::out(&told::over_already(id, made_by));
                return Ok(Exit::Success);
            }
            store::order_cancel(&home, id, by().label(), reason)?;
            print::out(&format!("loop {id}: cancelled; crew {made_by}, which runs it, obeys"));
            return Ok(Exit::Success);
        }
    };
    let attempt = ending::cancel(&home, &record.id, by().label(), reason)?;
    print::out(&told::cancelled(&attempt));
    Ok(Exit::Success)
}
