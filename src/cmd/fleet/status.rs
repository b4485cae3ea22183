//! `crew fleet status`: how a fleet stands, as a page, as JSON, or as a board that is redrawn.

use std::io::{IsTerminal, stdin, stdout};
use std::time::Duration;

use anyhow::Result;

use super::requested;
use crate::cmd::watch::screen::FullScreen;
use crate::cmd::{print, reading};
use crate::drive::error_text::git_trouble;
use crate::drive::fleet::engines::LOCAL;
use crate::drive::fleet::memory::Memory;
use crate::drive::fleet::places::slots_of;
use crate::drive::fleet::run::REMOTE_LOOKS;
use crate::engine::fleet::lease::Lease;
use crate::engine::fleet::manifest::Fleet;
use crate::engine::fleet::overlap::overlap;
use crate::engine::fleet::pace::Pace;
use crate::engine::fleet::plan::FleetPlan;
use crate::engine::fleet::standing::Standing;
use crate::engine::fleet::stored::UnreadableLease;
use crate::engine::git::GitTrouble;
use crate::exit::Exit;
use crate::parse::arguments::FleetStatusArgs;
use crate::report::board::BoardKey;
use crate::report::fleet::json;
use crate::report::fleet::status::{self as words, FleetReading};
use crate::report::page::Reading;
use crate::world::clock::{self, Deadline};
use crate::world::store::{Home, fleets};
use crate::world::{env, host};

/// The widest page.
const COLUMNS_MAX: usize = 120;
/// Between two looks of the board.
const LOOK: Duration = Duration::from_millis(500);

/// Shows the fleet that is meant.
pub fn status(arguments: &FleetStatusArgs) -> Result<Exit> {
    let (home, memory, _) = requested(arguments.fleet.as_deref())?;
    let view = FleetView::of(&home, &memory)?;
    let has_screen = stdin().is_terminal()
        && stdout().is_terminal()
        && env::text("TERM").is_some_and(|term| term != "dumb");
    if arguments.watch && has_screen {
        return watch(&home, &memory, view);
    }
    if arguments.json {
        print::json(&json::status(&view.standing(), &view.fleet, &view.leases));
    } else {
        print::out(&words::page(&view.standing(), at(&host())));
    }
    Ok(Exit::SUCCESS)
}

/// What is known of a fleet at one moment.
pub struct FleetView {
    pub fleet: Fleet,
    /// In the order in which tasks start.
    pub leases: Vec<Lease>,
    /// The tasks whose leases cannot be read.
    pub unreadable: Vec<UnreadableLease>,
    is_run: bool,
}

impl FleetView {
    /// Looks at the terms, at all leases, and whether a crew runs the fleet.
    pub fn of(home: &Home, memory: &Memory) -> Result<Self> {
        let (fleet, found) = (memory.manifest()?.value, memory.leases()?);
        let leases = found.readable.into_iter().map(|kept| kept.value).collect();
        let is_run = fleets::is_run(home, &fleet.name);
        Ok(Self { fleet, leases, unreadable: found.unreadable, is_run })
    }

    /// How the fleet stands now.
    pub fn standing(&self) -> Standing {
        let Self { fleet, leases, unreadable, is_run } = self;
        let plan = FleetPlan::of(fleet, leases, slots_of(fleet), &overlap);
        let is_unknown = fleet.max_cost_micros > 0 && !unreadable.is_empty();
        let plan = if is_unknown { plan.without_money() } else { plan };
        // A cluster starts by itself what was handed to it.
        let is_left = fleet.engine == LOCAL && !is_run;
        let plan = if is_left { plan.unattended() } else { plan };
        Standing::of(fleet, leases, unreadable, &plan, clock::now().wall)
    }

    /// Whether nothing has happened between the two.
    fn is_still(&self, before: &Self) -> bool {
        let is_same = |(one, other): (&Lease, &Lease)| one.is_still(other);
        self.leases.len() == before.leases.len()
            && self.leases.iter().zip(&before.leases).all(is_same)
    }
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

/// Redraws the board until a person leaves it, or the fleet is over and no crew runs it: its last
/// page stays on the terminal then.
fn watch(home: &Home, memory: &Memory, mut view: FleetView) -> Result<Exit> {
    let (mut screen, host) = (FullScreen::open()?, host());
    let [least, most] = if memory.is_shared() { REMOTE_LOOKS } else { [LOOK; 2] };
    let mut pace = Pace::of(least, most);
    let mut next = Deadline::after(pace.after(true));
    loop {
        let standing = view.standing();
        if standing.is_over() && !view.is_run {
            drop(screen);
            print::out(&words::page(&standing, at(&host)));
            return Ok(Exit::SUCCESS);
        }
        let (width, rows) = screen.size()?;
        let reading = Reading { width, ..reading() };
        let lines = words::board(&standing, FleetReading { reading, host: &host }, rows);
        let lines: Vec<_> = lines.into_iter().map(ratatui::text::Line::from).collect();
        screen.draw(&lines)?;
        let key = screen.key(LOOK.min(next.left()))?;
        if let Some(BoardKey::Char('q') | BoardKey::Escape | BoardKey::Interrupt) = key {
            return Ok(Exit::SUCCESS);
        }
        if next.passed() {
            // A remote that does not answer leaves the page as it was.
            let now = match FleetView::of(home, memory) {
                Err(error) if git_trouble(&error) == Some(GitTrouble::Network) => None,
                now => Some(now?),
            };
            next =
                Deadline::after(pace.after(now.as_ref().is_some_and(|now| !now.is_still(&view))));
            view = now.unwrap_or(view);
        }
    }
}
