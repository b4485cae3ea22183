//! `crew cancel`: ends a loop from any terminal. The order is a file of its own, so it needs no model, and
//! a hook in flight cannot undo it.

use anyhow::{Result, bail};

use super::{home, print};
use crate::cli::Cancel;
use crate::drive::ending::{self, Attempt};
use crate::drive::find::{Found, find};
use crate::exit::Exit;
use crate::report::{line, page};
use crate::world::env;

/// Cancels the loop that is meant.
pub fn cancel(arguments: &Cancel) -> Result<Exit> {
    let home = home()?;
    let record = match find(&home, arguments.name.as_deref(), &env::current_folder()?)? {
        Found::One(record) => record,
        Found::None => bail!("no loop is running\nhint: crew status --all lists the ended ones"),
        Found::Many(loops) => {
            print::err(
                "crew: more than one loop could be meant\nhint: crew cancel ID, one of these",
            );
            print::err(&page::list(&loops));
            return Ok(Exit::Usage);
        }
    };
    // An agent may end its own loop; the record says that it was the agent.
    let by = if env::inside_an_agent() { "agent" } else { "user" };
    print::out(&told(&ending::cancel(&home, &record.id, by, arguments.reason.as_deref())?));
    Ok(Exit::Success)
}

/// What became of a cancel, in words.
pub fn told(attempt: &Attempt) -> String {
    match attempt {
        Attempt::Ended(ended) => {
            page::finish(&ended.record, &ended.since, ended.handoff.as_deref())
        }
        Attempt::Over(record) => format!("loop {}: {} already", record.id, line::standing(record)),
        Attempt::LeftToTheBoundary => {
            "cancelled: a boundary is being recorded and obeys before it answers".to_owned()
        }
    }
}
