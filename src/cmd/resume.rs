//! `crew resume`: resumes a loop in fresh processes, whichever driver it had. It refuses inside an
//! agent.

use anyhow::{Result, bail};

use super::drive::{drive_or_detach, show_prompt};
use super::reporter::Reporter;
use super::{print, refuse_an_agent, requested};
use crate::drive::control;
use crate::drive::find::resumable;
use crate::drive::owner::NewOwner;
use crate::drive::resume::adapt::{adapt, prepare, preview};
use crate::drive::resume::{Resumed, refuse_a_task, resume as take};
use crate::drive::run::pending::settle;
use crate::drive::start::baseline::baseline;
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::record::Outcome;
use crate::exit::Exit;
use crate::parse::arguments::ResumeArgs;
use crate::world::process::signals::Signals;

/// Takes the requested loop into this process and drives it.
pub fn resume(arguments: &ResumeArgs) -> Result<Exit> {
    if !arguments.dry_run {
        refuse_an_agent(
            "an agent cannot resume a loop\nhint: a person can, in a terminal or with /crew:resume",
        )?;
    }
    let name = arguments.set.name.as_deref();
    let (home, record) = requested(name)?;
    let record = resumable(&home, record, name);
    if record.procedure().is_some() && record.procedure() == name {
        print::err(&format!("crew: this is loop {}: {}", record.id, record.status_word()));
    }
    let changes = arguments.set.limits.by_key().collect();
    if arguments.now
        && let Some(woken) = control::wake(&home, &record.id, &changes, arguments.tell.as_deref())?
    {
        let iteration = woken.iteration();
        print::out(&format!("loop {}: the wait is over, iteration {iteration} begins", woken.id));
        return Ok(Exit::SUCCESS);
    }
    refuse_a_task(&home, &record)?;
    if arguments.dry_run {
        let (record, prompt, launches) = preview(&home, record, arguments, &changes)?;
        show_prompt(&record, &prompt, &launches);
        return Ok(Exit::SUCCESS);
    }
    let signals = Signals::listen()?;
    let mut reporter = Reporter::new(arguments.options.output);
    if !record.is_live() && !record.state.git.left().is_empty() {
        let record = settle(&home, &record, &signals, &mut reporter)?;
        if record.outcome() == Some(Outcome::Completed) {
            return match record.state.git.undone() {
                Some(undone) => bail!("loop {} is completed, but {undone}", record.id),
                None => Ok(Exit::SUCCESS),
            };
        }
    }
    let mut notes = Vec::new();
    let is_ended = || signals.times() > 0;
    let prepared = |record: &_| prepare(&home, record, arguments, &changes, &is_ended);
    let adapted = |record: &mut _, (run, told)| {
        notes = told;
        notes.extend(adapt(&home, record, arguments, run)?);
        Ok(())
    };
    let options = &arguments.options;
    let Resumed { record, unproved, .. } =
        take(&home, &record.id, &changes, NewOwner::process()?, prepared, adapted)?;
    reporter.on_event(&RunEvent::Resumed(&record));
    for note in unproved.iter().chain(&notes) {
        reporter.on_event(&RunEvent::Noted(note));
    }
    let record = baseline(&home, record, true, &signals, &mut reporter)?;
    drive_or_detach(&home, record, options, &signals, &mut reporter)
}
