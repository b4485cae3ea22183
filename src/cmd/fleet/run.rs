//! `crew fleet run`: starts a folder of tasks or joins it, and stays until nothing runs and nothing
//! can start. What names a program is trusted by a person first, text by text. `crew fleet job` is
//! one attempt at one task, as an executor runs it; its exit code is the task's.

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
use crate::drive::fleet::executors::{MANUAL, executor_of};
use crate::drive::fleet::gate::JobEnd;
use crate::drive::fleet::job::job as attempt;
use crate::drive::fleet::join;
use crate::drive::fleet::memory::Memory;
use crate::engine::fleet::{
    Fleet, FleetEvent, FleetRequest, LandingMode, Lease, TaskEnding, overlap,
};
use crate::engine::record::Outcome;
use crate::exit::Exit;
use crate::parse::arguments::{FleetRunArgs, OutputArgs};
use crate::report::fleet::before::{self, FleetOverlap, FleetStart};
use crate::report::fleet::{lines, status as words};
use crate::world::process::signals::Signals;
use crate::world::store::Home;
use crate::world::{clock, env, slots};

/// Starts or joins the fleet.
pub fn run(arguments: &FleetRunArgs) -> Result<Exit> {
    if inside_an_agent(&env::raw) {
        bail!("an agent cannot start a fleet\nhint: a person can, in a terminal");
    }
    let home = home()?;
    let mut described = describe(&home, arguments, &env::current_folder()?)?;
    for note in &described.notes {
        print::err(&format!("crew: {note}"));
    }
    if arguments.dry_run {
        print::page(&page(&home, &described, arguments.retry, true)?);
        asked(&described, &print::out);
        return Ok(Exit::SUCCESS);
    }
    home.make().with_context(|| format!("cannot keep fleets in {}", home.root().display()))?;
    if !described.untrusted.is_empty() {
        saying(&described.fleet)(&page(&home, &described, arguments.retry, false)?);
    }
    let mut notes = None;
    while notes.is_none() {
        if !described.untrusted.is_empty() {
            let Described { fleet, untrusted, .. } = &described;
            asked(&described, &saying(fleet));
            let (yes, again) = (arguments.yes, "crew fleet run");
            project::ask(&fleet.repository, untrusted, yes, "go?", "started", again)?;
        }
        notes = begin::record(&home, &mut described, arguments.retry)?;
    }
    for note in notes.into_iter().flatten() {
        print::err(&format!("crew: {note}"));
    }
    let fleet = &described.fleet;
    if fleet.engine == MANUAL {
        for start in begin::starts(&home, fleet)? {
            print::out(&fleet.job(&start));
        }
        return Ok(Exit::SUCCESS);
    }
    coordinate(&home, fleet)
}

/// The page before a start.
fn page(home: &Home, described: &Described, retry: bool, is_dry: bool) -> Result<String> {
    let Described { fleet, left_out, .. } = described;
    let leases = foreseen(home, described, retry)?;
    let new = described.new_commands();
    let is_local = fleet.is_local();
    let slots = (is_local && fleet.slots == 0).then(slots::default_count);
    let start = FleetStart {
        fleet,
        leases: &leases,
        not_tasks: left_out,
        overlaps: &overlaps(&leases),
        engine: (!is_local).then_some(fleet.engine.as_str()),
        slots: slots.as_ref(),
        new: &new,
        refs: &fleet.refs(leases.iter().map(Lease::id)),
        is_dry,
    };
    Ok(before::page(&start, reading().width))
}

/// The tasks that do not run at once.
fn overlaps(leases: &[Lease]) -> Vec<FleetOverlap> {
    let open: Vec<&Lease> = leases.iter().filter(|lease| lease.ending().is_none()).collect();
    let mut found = Vec::new();
    for (at, one) in open.iter().enumerate() {
        for other in &open[at + 1..] {
            if let Some(globs) = overlap(&one.task, &other.task) {
                let (one, other) = (one.id().clone(), other.id().clone());
                found.push(FleetOverlap { one, other, globs });
            }
        }
    }
    found
}

/// What a person has not trusted yet.
fn asked(described: &Described, say: &dyn Fn(&str)) {
    if described.untrusted.is_empty() {
        return say(match described.fleet.remote {
            None => "  trust   nothing is new: it starts without asking",
            Some(_) => {
                "  trust   nothing is new here; what other machines changed is asked about at the start"
            }
        });
    }
    project::list(&described.fleet.folder, &described.untrusted, &described.untrusted, say);
}

/// Where a person reads the page and the list: a script reads the commands on standard output.
fn saying(fleet: &Fleet) -> impl Fn(&str) {
    if fleet.engine == MANUAL { print::err } else { print::out }
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
    let outcomes = || leases.iter().map(|lease| lease.ending().map(|ending| ending.outcome));
    let ordered = fleet.order.as_ref().map(|order| order.what);
    let is_paused = || fleet.orders.values().any(|order| order.what == FleetRequest::Pause);
    let is_readable = unreadable.is_empty();
    let is_done = |ending: &TaskEnding| {
        let is_where_it_belongs = fleet.landing == LandingMode::No || ending.landed.is_some();
        ending.outcome == Outcome::Completed && is_where_it_belongs
    };
    if is_readable && leases.iter().all(|lease| lease.ending().is_some_and(is_done)) {
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
