//! `crew fleet run`: starts or continues a folder of tasks, and stays until nothing runs and
//! nothing can start. What names a program is trusted by a person first, text by text. `crew fleet
//! job` is one attempt at one task, as an executor runs it; its exit code is the task's.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ColorChoice;

use super::status::{FleetView, at, host};
use super::task;
use crate::clients::variables::inside_an_agent;
use crate::cmd::reporter::Reporter;
use crate::cmd::{home, print, project, reading};
use crate::drive::fleet::begin::{self, foreseen};
use crate::drive::fleet::coordinator::{Coordinator, FleetEnd, FleetNow};
use crate::drive::fleet::describe::{Described, describe};
use crate::drive::fleet::executors::executor_of;
use crate::drive::fleet::gate::JobEnd;
use crate::drive::fleet::job::job as attempt;
use crate::drive::fleet::join;
use crate::drive::fleet::memory::Memory;
use crate::engine::fleet::{Fleet, FleetEvent, FleetRequest, Lease};
use crate::engine::record::Outcome;
use crate::exit::Exit;
use crate::parse::arguments::{FleetRunArgs, OutputArgs};
use crate::report::fleet::before::{self, FleetStart};
use crate::report::fleet::{lines, status as words};
use crate::world::process::signals::Signals;
use crate::world::store::Home;
use crate::world::{clock, env, slots};

/// Starts or continues the fleet.
pub fn run(arguments: &FleetRunArgs) -> Result<Exit> {
    if inside_an_agent(&env::raw) {
        bail!("an agent cannot start a fleet\nhint: a person can, in a terminal");
    }
    let home = home()?;
    let described = describe(&home, arguments, &env::current_folder()?)?;
    for note in &described.notes {
        print::err(&format!("crew: {note}"));
    }
    if arguments.dry_run {
        print::page(&page(&home, &described, false, true)?);
        asked(&described);
        return Ok(Exit::SUCCESS);
    }
    home.make().with_context(|| format!("cannot keep fleets in {}", home.root().display()))?;
    if !described.untrusted.is_empty() {
        print::out(&page(&home, &described, false, false)?);
        asked(&described);
        let Described { fleet, untrusted, .. } = &described;
        let (yes, again) = (arguments.yes, "crew fleet run");
        project::ask(&fleet.repository, untrusted, yes, "go?", "started", again)?;
    }
    for note in begin::record(&home, &described, false)? {
        print::err(&format!("crew: {note}"));
    }
    coordinate(&home, &described.fleet)
}

/// The page before a start.
fn page(home: &Home, described: &Described, retry: bool, is_dry: bool) -> Result<String> {
    let Described { fleet, left_out, .. } = described;
    let leases = foreseen(home, described, retry)?;
    let is_counted = fleet.is_local() && fleet.slots == 0;
    let slots = is_counted.then(slots::default_count);
    let start =
        FleetStart { fleet, leases: &leases, not_tasks: left_out, slots: slots.as_ref(), is_dry };
    Ok(before::page(&start, reading().width))
}

/// What a person has not trusted yet.
fn asked(described: &Described) {
    let Described { fleet, untrusted, .. } = described;
    if untrusted.is_empty() {
        print::out("  trust   nothing is new: it starts without asking");
    } else {
        project::list(&fleet.folder, untrusted, untrusted, &print::out);
    }
}

/// How long the last page waits for a remote that cannot be reached.
const PATIENCE: Duration = Duration::from_secs(60);

fn coordinate(home: &Home, fleet: &Fleet) -> Result<Exit> {
    if fleet.slots == 0 && fleet.is_local() {
        print::err(&format!("crew: {}; --slots N sets another number", slots::default_count().why));
    }
    let signals = Signals::listen()?;
    let memory = Memory::of(home, &fleet.name)?.with_patience(&signals, Duration::ZERO);
    let stop = || signals.times() > 1;
    let engine = executor_of(home, fleet, &stop)?;
    let mut say = |event: &FleetEvent| {
        print::stamped(&lines::line(event, clock::local()));
    };
    let (sink, now) = (&mut say, FleetNow::default());
    let end = Coordinator { home, memory: &memory, engine, signals: &signals, sink, now }.run()?;
    match end {
        FleetEnd::Interrupted => {
            // A person who is in a hurry, or a remote that is gone, gets none.
            if let (1, Ok(view)) = (signals.times(), FleetView::of(home, &memory)) {
                print_page(&view);
            }
            Ok(signals.exit_code().map_or(Exit::INTERRUPTED, Exit::signalled))
        }
        FleetEnd::Done => {
            let view = FleetView::of(home, &memory.with_patience(&signals, PATIENCE))?;
            print_page(&view);
            Ok(exit(&view))
        }
    }
}

fn print_page(view: &FleetView) {
    print::page(&format!("\n{}", words::page(&view.standing(), at(&host()))));
}

/// The code of a fleet of which nothing runs.
fn exit(view: &FleetView) -> Exit {
    let FleetView { fleet, leases, unreadable, .. } = view;
    let outcomes = || leases.iter().map(Lease::outcome);
    let ordered = fleet.order.as_ref().map(|order| order.what);
    let is_paused = || fleet.orders.values().any(|order| order.what == FleetRequest::Pause);
    let is_readable = unreadable.is_empty();
    let is_done =
        |lease: &Lease| lease.outcome() == Some(Outcome::Completed) && !lease.wants_landing(fleet);
    if is_readable && leases.iter().all(is_done) {
        Exit::SUCCESS
    } else if ordered == Some(FleetRequest::Cancel) {
        Exit::of(Outcome::Cancelled)
    } else if !is_readable || outcomes().any(|outcome| outcome == Some(Outcome::Blocked)) {
        Exit::of(Outcome::Blocked)
    } else if ordered == Some(FleetRequest::Pause)
        || (is_paused() && outcomes().any(|it| it.is_none()))
    {
        Exit::INTERRUPTED
    } else {
        Exit::of(Outcome::Exhausted)
    }
}

/// Works on a task until its loop is over, unless it ended before or is worked on elsewhere.
pub fn job(fleet: &str, name: &str, remote: Option<&str>) -> Result<Exit> {
    if inside_an_agent(&env::raw) {
        bail!("an agent cannot start a job of a fleet\nhint: a person can, with crew fleet run");
    }
    // What it prints is kept in a file.
    print::set_colour(ColorChoice::Never);
    let mut home = home()?;
    // Machines of a cluster often share the folder, and a lock holds on one of them alone.
    if let Some(node) = env::text("SLURMD_NODENAME").filter(|_| remote.is_some()) {
        home = home.of_node(&node);
    }
    let task = task(name)?;
    let signals = Signals::listen()?;
    if let Some(url) = remote {
        let joined = join::join(&home, fleet, url, &signals);
        if let (Err(_), Some(signal)) = (&joined, signals.exit_code()) {
            return Ok(Exit::signalled(signal));
        }
        joined?;
    }
    let mut reporter = Reporter::new(OutputArgs::default());
    Ok(match attempt(&home, fleet, &task, &signals, &mut reporter)? {
        JobEnd::Ended(ending) => {
            print::err(&format!("crew: {task} is {}: {}", ending.outcome.label(), ending.why));
            Exit::of(ending.outcome)
        }
        JobEnd::Elsewhere => {
            print::err(&format!("crew: {task} is left to the process that works on it"));
            Exit::SUCCESS
        }
        JobEnd::Fenced => {
            print::err(&format!("crew: another attempt has {task}; this one pushed nothing more"));
            Exit::FENCED
        }
        JobEnd::Paused | JobEnd::SentBack(_) => Exit::INTERRUPTED,
        JobEnd::Interrupted => signals.exit_code().map_or(Exit::INTERRUPTED, Exit::signalled),
    })
}
