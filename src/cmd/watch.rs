//! `crew watch`: the status of a loop until it is over, redrawn every second on a terminal, printed
//! at each change otherwise. Ctrl-C ends the watching and leaves the loop alone.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use anyhow::Result;

use super::{print, reading, requested};
use crate::drive::owner::{gone_why, owner_is_gone};
use crate::drive::page::read;
use crate::engine::record::Loop;
use crate::exit::Exit;
use crate::report::{line, page};
use crate::world::store::{self, Home};
use crate::world::{clock, env, terminal};

const LOOK: Duration = Duration::from_secs(1);

/// Watches the requested loop.
pub fn watch(name: Option<&str>) -> Result<Exit> {
    let (home, mut record) = requested(name)?;
    let draws = stdout().is_terminal() && env::text("TERM").is_some_and(|term| term != "dumb");
    let mut said = String::new();
    while record.is_live() {
        let gone = owner_is_gone(&home, &record);
        let is_read = if draws { draw(&home, &record) } else { say(&record, &mut said) };
        if !is_read {
            return Ok(Exit::SUCCESS);
        }
        if gone {
            print::err(&format!("crew: loop {}: {}", record.id, gone_why(&record)));
            return Ok(Exit::SUCCESS);
        }
        clock::sleep(LOOK);
        record = store::load(&home, &record.id)?;
    }
    if draws {
        print::wipe();
    }
    print::out(&page::text(&read(&home, &record), reading()));
    Ok(Exit::SUCCESS)
}

/// Draws the status, as far as the terminal has room.
fn draw(home: &Home, record: &Loop) -> bool {
    let running = clock::now().awake_ms.saturating_sub(record.state.began.awake_ms);
    let head = line::watched(record, running, clock::local());
    let page = page::text(&read(home, record), reading());
    let height = usize::from(terminal::rows().unwrap_or(24)).max(2) - 1;
    print::draw(&format!("{head}\n{page}"), height)
}

/// Prints the status if it has changed.
fn say(record: &Loop, said: &mut String) -> bool {
    let standing = line::changed(record);
    if *said == standing {
        return true;
    }
    let stamp = clock::local().format("[%H:%M:%S]");
    let is_read = print::offer(&format!("{stamp} {standing}\n"));
    *said = standing;
    is_read
}
