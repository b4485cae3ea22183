//! `crew watch`: on a terminal the board of every loop on this machine; elsewhere the status of one
//! loop, printed at each change until it is over. Watching never changes a loop.

mod act;
pub mod board;
pub mod screen;

use std::time::Duration;

use anyhow::Result;

use super::{find_requested, print, terminal_home, terminal_reading};
use crate::drive::find::{gone_reason, owner_is_gone};
use crate::drive::page::read_page;
use crate::exit::Exit;
use crate::report::line::{self, LoopLine};
use crate::report::page;
use engine::record::Loop;
use world::{clock, store};

/// The time between two looks at the loop.
const LOOK: Duration = Duration::from_secs(1);

/// Opens the board, at the named loop if there is a name; off a terminal follows one loop.
pub fn watch_loops(name: Option<&str>) -> Result<Exit> {
    if !screen::FullScreen::is_possible() {
        return follow_loop(name);
    }
    match name {
        Some(_) => {
            find_requested(name).and_then(|(home, record)| board::run_board(&home, Some(&record)))
        }
        None => board::run_board(&terminal_home()?, None),
    }
}

/// Prints the status of the requested loop at each change, and its page at the end.
fn follow_loop(name: Option<&str>) -> Result<Exit> {
    let (home, mut record) = find_requested(name)?;
    let mut said = String::new();
    while record.is_live() {
        let gone = owner_is_gone(&home, &record);
        if !print_change(&record, &mut said) {
            return Ok(Exit::SUCCESS);
        }
        if gone {
            print::err(&format!("crew: loop {}: {}", record.id, gone_reason(&record)));
            return Ok(Exit::SUCCESS);
        }
        clock::sleep(LOOK);
        record = store::load(&home, &record.id)?;
    }
    print::page(&page::render_page(&read_page(&home, &record), terminal_reading()));
    Ok(Exit::SUCCESS)
}

/// Prints the status if it has changed; `false` when the reader is gone.
fn print_change(record: &Loop, said: &mut String) -> bool {
    let line = line::render_line(LoopLine::Changed, record, clock::local_time());
    if *said == line {
        return true;
    }
    let is_read = print::stamped(&line);
    *said = line;
    is_read
}
