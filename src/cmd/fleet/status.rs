//! `crew fleet status`: how a fleet stands, as a page, as JSON, or as a board that is redrawn.

use std::io::{IsTerminal, stdin, stdout};
use std::time::Duration;

use anyhow::Result;

use super::requested;
use crate::cmd::watch::screen::FullScreen;
use crate::cmd::{print, reading};
use crate::drive::fleet::memory::Memory;
use crate::drive::fleet::run::slots_of;
use crate::engine::fleet::lease::Lease;
use crate::engine::fleet::manifest::Fleet;
use crate::engine::fleet::overlap::overlap;
use crate::engine::fleet::plan::FleetPlan;
use crate::engine::fleet::standing::Standing;
use crate::exit::Exit;
use crate::parse::arguments::FleetStatusArgs;
use crate::report::board::BoardKey;
use crate::report::fleet::json;
use crate::report::fleet::status::{self as words, FleetReading};
use crate::report::page::Reading;
use crate::world::{clock, env, host};

/// The widest page.
const COLUMNS_MAX: usize = 120;
/// Between two looks of the board.
const LOOK: Duration = Duration::from_millis(500);

/// Shows the fleet that is meant.
pub fn status(arguments: &FleetStatusArgs) -> Result<Exit> {
    let (_, memory, fleet) = requested(arguments.fleet.as_deref())?;
    if arguments.watch {
        return watch(&memory);
    }
    let leases = leases(&memory)?;
    let standing = standing(&fleet, &leases);
    if arguments.json {
        print::json(&json::status(&standing, &fleet, &leases));
    } else {
        print::out(&words::page(&standing, at(&host())));
    }
    Ok(Exit::SUCCESS)
}

/// All leases, in the order in which tasks start.
pub fn leases(memory: &Memory) -> Result<Vec<Lease>> {
    Ok(memory.leases()?.into_iter().map(|kept| kept.value).collect())
}

/// How the fleet stands now.
pub fn standing(fleet: &Fleet, leases: &[Lease]) -> Standing {
    let plan = FleetPlan::of(fleet, leases, slots_of(fleet), &overlap);
    Standing::of(fleet, leases, &plan, clock::now().wall)
}

/// This machine's name, which no row repeats.
pub fn host() -> String {
    host::host().map(|host| host.name).unwrap_or_default()
}

/// How a page is read here; its columns have an end where a terminal has none.
pub fn at(host: &str) -> FleetReading<'_> {
    let reading = reading();
    FleetReading { reading: Reading { width: reading.width.min(COLUMNS_MAX), ..reading }, host }
}

/// Redraws the board until a person leaves it; off a terminal it is printed once.
fn watch(memory: &Memory) -> Result<Exit> {
    let look = || {
        let (fleet, leases) = (memory.manifest()?.value, leases(memory)?);
        Ok::<_, anyhow::Error>(standing(&fleet, &leases))
    };
    let has_screen = stdin().is_terminal()
        && stdout().is_terminal()
        && env::text("TERM").is_some_and(|term| term != "dumb");
    if !has_screen {
        print::out(&words::page(&look()?, at(&host())));
        return Ok(Exit::SUCCESS);
    }
    let (mut screen, host) = (FullScreen::open()?, host());
    loop {
        let (width, rows) = screen.size()?;
        let reading = Reading { width, ..reading() };
        let lines = words::board(&look()?, FleetReading { reading, host: &host }, rows);
        let lines: Vec<_> = lines.into_iter().map(ratatui::text::Line::from).collect();
        screen.draw(&lines)?;
        let key = screen.key(LOOK)?;
        if let Some(BoardKey::Char('q') | BoardKey::Escape | BoardKey::Interrupt) = key {
            break;
        }
    }
    Ok(Exit::SUCCESS)
}
