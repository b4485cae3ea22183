//! `crew pause`: lets the running iteration end and no other begin, from any terminal.

use anyhow::Result;

use super::{by, home, meant, print, told};
use crate::cli::Pause;
use crate::drive::steer;
use crate::exit::Exit;
use crate::world::store::{self, StoreError};

/// Pauses the loop that is meant.
pub fn pause(arguments: &Pause) -> Result<Exit> {
    let home = home()?;
    let record = match meant(&home, arguments.name.as_deref()) {
        Ok(Some(record)) => record,
        Ok(None) => return Ok(Exit::Usage),
        Err(error) => {
            // The order is written and honoured by every crew, older or newer.
            let Some(StoreError::Newer { id, made_by, is_over }) = error.downcast_ref() else {
                return Err(error);
            };
            if *is_over {
                print::out(&told::over_already(id, made_by));
                return Ok(Exit::Success);
            }
            store::order_pause(&home, id, by().label(), arguments.now)?;
            print::out(&format!("loop {id}: told to pause; crew {made_by}, which runs it, obeys"));
            return Ok(Exit::Success);
        }
    };
    print::out(&told::paused(&steer::pause(&home, &record.id, by(), arguments.now)?));
    Ok(Exit::Success)
}
