//! `crew fleet run`: starts or continues a folder of tasks, and coordinates it until nothing runs and
//! nothing can start. What names a program is trusted by a person first, text by text.

use anyhow::{Context, Result, bail};

use super::{home, print, project, reading};
use crate::clients::variables::inside_an_agent;
use crate::engine::record::Outcome;
use crate::exit::Exit;
use crate::fleet::coordinator::{CoordinatorEnd, coordinate};
use crate::fleet::preflight;
use crate::fleet::record::{FleetRecord, TaskRequest};
use crate::fleet::tasks::{DescribedFleet, describe};
use crate::fleet::{plan_page, store};
use crate::parse::arguments::FleetRunArgs;
use crate::world::env;
use crate::world::process::signals::Signals;
use crate::world::store::Home;

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
    let page = |is_dry| -> Result<String> {
        let record = store::read(&home, &described.setup.name)?;
        Ok(plan_page::page(&described, record.as_ref(), reading().width, is_dry))
    };
    if arguments.dry_run {
        print::page(&page(true)?);
        return Ok(Exit::SUCCESS);
    }
    home.make().with_context(|| format!("cannot keep fleets in {}", home.root().display()))?;
    if !described.untrusted.is_empty() {
        print::page(&page(false)?);
        let DescribedFleet { setup, untrusted, .. } = &described;
        let (yes, again) = (arguments.yes, "crew fleet run");
        project::ask(&setup.repository, untrusted, yes, "go?", "started", again)?;
    }
    // A coordinator that runs takes up by itself what was trusted just now.
    if !store::is_coordinated(&home, &described.setup.name) {
        for note in preflight::check(&home, &described.setup, &described.tasks)? {
            print::err(&format!("crew: {note}"));
        }
    }
    let (signals, name) = (Signals::listen()?, described.setup.name.clone());
    let mut say = |line: &str| drop(print::stamped(line));
    let end = coordinate(&home, described, arguments, &signals, &mut say)?;
    exit(&home, &name, end, &signals)
}

/// The code of a fleet of which nothing runs, or of the signal that ended its coordinator.
fn exit(home: &Home, name: &str, end: CoordinatorEnd, signals: &Signals) -> Result<Exit> {
    if end == CoordinatorEnd::Interrupted {
        return Ok(signals.exit_code().map_or(Exit::INTERRUPTED, Exit::signalled));
    }
    let record = store::read(home, name)?.context("the fleet's record is gone")?;
    Ok(code(&record))
}

fn code(record: &FleetRecord) -> Exit {
    let tasks = || record.tasks.values();
    let outcomes = || tasks().map(|task| task.ending().map(|ending| ending.outcome));
    let is_paused = |id| matches!(record.request_of(id), Some(TaskRequest::Pause { .. }));
    if tasks().all(|task| task.is_done(record.terms.landing)) {
        Exit::SUCCESS
    } else if matches!(record.request, Some(TaskRequest::Cancel { .. })) {
        Exit::of(Outcome::Cancelled)
    } else if outcomes().any(|outcome| outcome == Some(Outcome::Blocked)) {
        Exit::of(Outcome::Blocked)
    } else if record.tasks.iter().any(|(id, task)| task.ending().is_none() && is_paused(id)) {
        Exit::INTERRUPTED
    } else {
        Exit::of(Outcome::Exhausted)
    }
}
