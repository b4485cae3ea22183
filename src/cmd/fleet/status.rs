//! `crew fleet status`: how a fleet stands, as a page, as JSON, or as a board that is redrawn.
//! `crew fleet show`: how a task stands, and the story of its newest loop, where that is on this
//! machine; else the journal of its lease and the end of its jobs' log.

use std::time::Duration;

use anyhow::{Result, bail};
use ratatui::crossterm::event::KeyCode;
use ratatui::text::Text;

use super::{requested, task};
use crate::cmd::watch::board::FullScreen;
use crate::cmd::{print, reading, show as loops};
use crate::drive::error_text::error_text;
use crate::drive::fleet::coordinator::REMOTE_LOOKS;
use crate::drive::fleet::gate;
use crate::drive::fleet::memory::Memory;
use crate::engine::fleet::standing::way_out;
use crate::engine::fleet::{
    Fleet, Lease, Pace, Refusal, Standing, TaskId, TaskState, UnreadableLease,
};
use crate::engine::record::Loop;
use crate::engine::text::{Shown, clean, distinct};
use crate::engine::view::Step;
use crate::exit::Exit;
use crate::parse::arguments::FleetStatusArgs;
use crate::report::board::is_interrupt;
use crate::report::colour;
use crate::report::fleet::status::{self, FleetReading};
use crate::report::fleet::{json, lines, status as words};
use crate::report::page::{self, Reading};
use crate::world::clock::{self, Deadline};
use crate::world::files::disk;
use crate::world::host;
use crate::world::store::{self, Home, fleets};

/// The widest page.
const COLUMNS_MAX: usize = 120;
/// Between two looks of the board.
const LOOK: Duration = Duration::from_millis(500);

/// Shows the fleet that is meant.
pub fn status(arguments: &FleetStatusArgs) -> Result<Exit> {
    let (home, memory, _) = requested(arguments.fleet.as_deref())?;
    let mut view = FleetView::of(&home, &memory)?;
    if arguments.watch {
        let screen = FullScreen::is_possible().then(FullScreen::open).transpose()?;
        let Some(last) = watch(&home, &memory, view, screen)? else { return Ok(Exit::SUCCESS) };
        view = last;
    }
    if arguments.json {
        print::json(&json::status(&view.standing(), &view.fleet));
    } else {
        print::page(&words::page(&view.standing(), at(&host())));
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
        let (fleet, found) = (memory.manifest_here()?, memory.leases()?);
        let mut leases = found.readable;
        let is_run = fleets::is_run(home, &fleet.name);
        // A run would take them up; without one nobody notices that their processes are gone.
        for lease in leases.iter_mut().filter(|lease| !is_run && is_gone(memory, lease)) {
            lease.state = TaskState::Waiting;
        }
        Ok(Self { fleet, leases, unreadable: found.unreadable, is_run })
    }

    /// How the fleet stands now.
    pub fn standing(&self) -> Standing<'_> {
        let Self { fleet, leases, unreadable, is_run } = self;
        let plan = gate::plan(fleet, leases, unreadable.is_empty());
        // A cluster starts by itself what was handed to it.
        let plan = if fleet.is_local() && !is_run { plan.unattended() } else { plan };
        Standing::of(fleet, leases, unreadable, &plan, clock::now().wall)
    }

    /// Whether nothing has happened between the two.
    fn is_still(&self, before: &Self) -> bool {
        let is_same = |(one, other): (&Lease, &Lease)| one.is_still(other);
        self.leases.len() == before.leases.len()
            && self.leases.iter().zip(&before.leases).all(is_same)
    }
}

/// Whether the process of a task's attempt has ended on this machine without saying so.
fn is_gone(memory: &Memory, lease: &Lease) -> bool {
    let is_here = lease.attempt().is_some_and(|attempt| memory.is_here(attempt));
    let stays = || memory.lease(lease.id()).is_ok_and(|now| now.value.state == lease.state);
    is_here && !memory.is_held(lease.id()) && stays()
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

/// Looks until the fleet is over and no crew runs it, and on a screen redraws the board:
/// `None` if a person leaves that. Without a screen it also ends where nobody is left who could
/// end the fleet. It fails only where the fleet is gone.
fn watch(
    home: &Home,
    memory: &Memory,
    mut view: FleetView,
    mut screen: Option<FullScreen>,
) -> Result<Option<FleetView>> {
    let host = host();
    let [least, most] = if memory.is_shared() { REMOTE_LOOKS } else { [LOOK; 2] };
    let mut pace = Pace::of(least, most);
    let (mut next, mut unseen) = (Deadline::after(pace.after(true)), None);
    loop {
        let standing = view.standing();
        let is_left = |view: &FleetView| {
            memory.is_shared() || view.leases.iter().any(|lease| memory.is_held(lease.id()))
        };
        if !view.is_run && (standing.is_over() || (screen.is_none() && !is_left(&view))) {
            return Ok(Some(view));
        }
        if let Some(screen) = &mut screen {
            let (width, rows) = screen.size()?;
            let at = FleetReading { reading: Reading { width, ..reading() }, host: &host };
            let lines = words::board(&standing, at, rows, unseen.as_deref());
            let lines: Text<'_> = lines.iter().map(|line| colour::spans(line)).collect();
            screen.draw(|frame| frame.render_widget(lines, frame.area()))?;
            let key = screen.key(LOOK.min(next.left()))?;
            let leaves = [KeyCode::Char('q'), KeyCode::Esc];
            if key.is_some_and(|key| leaves.contains(&key.code) || is_interrupt(key)) {
                return Ok(None);
            }
        } else {
            clock::sleep(next.left());
        }
        if next.passed() {
            let now = look_again(home, memory, &view.fleet)?;
            let is_new = now.as_ref().is_ok_and(|now| !now.is_still(&view));
            next = Deadline::after(pace.after(is_new));
            // What cannot be seen leaves the page as it was.
            (view, unseen) = match now {
                Ok(now) => (now, None),
                Err(why) => (view, Some(why)),
            };
        }
    }
}

/// Another look at a fleet, or why it failed, in one line.
///
/// # Errors
/// If the fleet is gone: no later look would find it.
fn look_again(home: &Home, memory: &Memory, fleet: &Fleet) -> Result<Result<FleetView, String>> {
    let is_gone = || match memory.known_manifest() {
        Ok(terms) => terms.is_none(),
        Err(_) => !fleets::is_kept(home, &fleet.name),
    };
    Ok(match FleetView::of(home, memory) {
        Err(_) if is_gone() => {
            bail!("there is no fleet {} any more\nhint: crew fleet status lists them", fleet.name)
        }
        Err(error) => Err(error_text(&error).lines().next().unwrap_or_default().to_owned()),
        Ok(view) => Ok(view),
    })
}

/// The most entries of a journal that are printed.
const ENTRIES_MAX: usize = 200;
/// The most lines of a log or an output that are printed.
const END_LINES: usize = 20;
/// How much of the end of a log is read, in bytes.
const LOG_BYTES: u64 = 16 << 10;

/// Shows what became of a task.
pub fn show(name: &str, fleet: Option<&str>) -> Result<Exit> {
    let (home, memory, fleet) = requested(fleet)?;
    let kept = memory.lease(&task(name)?)?;
    let lease = &kept.value;
    print::out(&format!("task {name} of fleet {}, branch {}", fleet.name, lease.branch));
    if let Some(ending) = lease.ending() {
        print::page(&colour::words(&clean(&lines::ended(ending))));
    }
    let record = lease.loop_id.as_ref().and_then(|id| store::load(&home, id).ok());
    let own = record.as_ref().and_then(|record| record.state.ending.as_ref());
    // The page of a loop that ended the task itself says what follows.
    let is_own = own.map(|ending| &ending.why) == lease.ending().map(|ending| &ending.why);
    let steps = if is_own { Vec::new() } else { way_out(&fleet, lease) };
    if !record.as_ref().is_some_and(Loop::is_live) {
        print_steps(&steps);
    }
    print_red(&fleet, lease);
    if let Some(record) = record {
        print::out("");
        loops::of_task(&home, &record, steps)?;
        if !is_own && lease.sent_back.is_none() {
            print_log(&home, &fleet.name, lease.id());
        }
        return Ok(Exit::SUCCESS);
    }
    if lease.ending().is_none() {
        let view = FleetView::of(&home, &memory)?;
        let standing = view.standing();
        if let Some(row) = standing.row_of(lease.id()) {
            print::out(&status::stands(&standing, row, at(&host())));
        }
    }
    let journal = distinct(memory.journal(&kept, ENTRIES_MAX)?.into_iter());
    if !journal.is_empty() {
        print::out("");
    }
    for line in &journal {
        print::out(&Shown(line).to_string());
    }
    print_log(&home, &fleet.name, lease.id());
    Ok(Exit::SUCCESS)
}

/// Prints a row for each command, and what it is for.
fn print_steps(steps: &[Step]) {
    for (name, step) in ["next", "then"].into_iter().zip(steps) {
        let mut text = String::new();
        page::step(&mut text, name, step, reading().width);
        print::page(&text);
    }
}

/// Prints the check that failed when the task was to land, and the end of its output.
fn print_red(fleet: &Fleet, lease: &Lease) {
    let Some(Refusal::Red { run, output }) = &lease.sent_back else { return };
    if run.is_empty() {
        // Its ending says it in a sentence.
        return;
    }
    let lines: Vec<&str> = output.lines().collect();
    let said = if lines.is_empty() { "printed nothing" } else { "its output ended with:" };
    print::out(&format!("\nbefore its landing on {}, `{run}` failed and {said}", fleet.base));
    print_end(&lines);
}

/// Prints the end of what a task's jobs said on this machine, if they did, below its path.
fn print_log(home: &Home, fleet: &str, task: &TaskId) {
    let log = fleets::log(home, fleet, task);
    let Ok((text, _)) = disk::read_end(&log, 0, LOG_BYTES) else { return };
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return;
    }
    print::out(&format!("\nthe end of {}:", log.display()));
    print_end(&lines);
}

fn print_end(lines: &[&str]) {
    for line in &lines[lines.len().saturating_sub(END_LINES)..] {
        print::out(&format!("  {line}"));
    }
}
