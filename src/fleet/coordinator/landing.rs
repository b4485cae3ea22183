//! Lands one task at a time: a thread merges and checks its work, then one push moves the base and
//! the record. If another process has moved the base first, the landing begins again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};

use super::{Coordinator, Done};
use crate::drive::failure::{git_trouble, short_error};
use crate::fleet::landing::{self, Landing, PreparedLanding};
use crate::fleet::record::{FleetRecord, Landed, TaskRecord};
use crate::fleet::spec::Coordination;
use crate::fleet::step::{FleetEvent, step_fleet};
use crate::fleet::store::StoreFault;
use engine::fleet::{Refusal, TaskId};
use engine::git::{GitTrouble, RefUpdate};
use engine::record::Contract;
use engine::text::clean_text;
use world::clock;
use world::logs::Log;

/// How often a landing begins again because the base has moved.
const LANDING_TRIES: u32 = 8;

/// The reason of a landing that was given up, or of a start after a signal.
pub(super) const STOPPED: &str = "it was stopped";

/// The landing in progress.
#[derive(Default)]
pub(super) struct LandingTry {
    /// How many times the landing began again.
    tries: u32,
    stops: Arc<AtomicBool>,
}

impl LandingTry {
    pub(super) fn begin(&mut self) {
        self.tries = 0;
        self.stops.store(false, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// Whether the landing has been cancelled or given up.
    fn is_stopped(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }
}

pub(super) fn queue_landing(coordinator: &mut Coordinator<'_>, task: &TaskId) {
    let Some(record) = coordinator.record.task(task).cloned() else { return };
    let Some((contract, message)) = words_of(coordinator, task, &record) else {
        let why = "its file is gone, and with it its checks".to_owned();
        let task = task.clone();
        return coordinator.take_in(FleetEvent::LandingFailed { task, why, needs_person: true });
    };
    let (home, terms, task) =
        (coordinator.home.clone(), coordinator.record.terms.clone(), task.clone());
    let log = coordinator.files.log(&task, record.attempt);
    add_landing(coordinator, move |stop| {
        let prepared = landing::prepare_landing(&Landing {
            home: &home,
            terms: &terms,
            task: &task,
            record: &record,
            contract: &contract,
            message: &message,
            stop,
            note: &|line| note_in(&log, line),
        });
        Box::new(move |this| take_prepared(this, task, prepared))
    });
}

/// Runs `work` in the landing thread; a cancel or a second signal stops it.
fn add_landing(
    coordinator: &Coordinator<'_>,
    work: impl FnOnce(&dyn Fn() -> bool) -> Done + Send + 'static,
) {
    let (stops, signals) =
        (Arc::clone(&coordinator.workers.landing_try.stops), coordinator.signals.clone());
    coordinator
        .workers
        .landing
        .add(move || work(&|| stops.load(Ordering::Relaxed) || signals.times() > 1));
}

/// A task's current contract, and the message of the commit that lands.
fn words_of(
    coordinator: &Coordinator<'_>,
    task: &TaskId,
    record: &TaskRecord,
) -> Option<(Contract, String)> {
    let described = coordinator.coordination.described_task(task)?;
    let (name, prompt) = (&coordinator.record.terms.name, &described.task.prompt);
    let branch = coordinator.record.branch(task, record.attempt);
    Some((described.contract.clone(), landing::landing_message(name, task, prompt, &branch)))
}

pub(super) fn queue_pull(coordinator: &mut Coordinator<'_>, task: &TaskId) {
    let Some(record) = coordinator.record.task(task).cloned() else { return };
    let message =
        words_of(coordinator, task, &record).map(|(_, message)| message).unwrap_or_default();
    let (terms, task) = (coordinator.record.terms.clone(), task.clone());
    let branch = coordinator.record.branch(&task, record.attempt);
    add_landing(coordinator, move |stop| {
        let opened = landing::open_pull(landing::GH, &terms, &record, (&branch, &message), stop);
        Box::new(move |this| report_landing(this, task, opened))
    });
}

pub(super) fn take_prepared(
    coordinator: &mut Coordinator<'_>,
    task: TaskId,
    result: Result<PreparedLanding>,
) {
    let ended = match result {
        Ok(PreparedLanding::Refused(refusal)) => Ok(Err(refusal)),
        Ok(PreparedLanding::Ready { main, commit })
            if !coordinator.workers.landing_try.is_stopped() =>
        {
            return push_landing(coordinator, task, main, commit);
        }
        Ok(PreparedLanding::Ready { .. } | PreparedLanding::Stopped) => Err(anyhow!(STOPPED)),
        Err(error) => Err(error),
    };
    report_landing(coordinator, task, ended);
}

/// Pushes the checked commit together with a record that contains the landing: both or neither.
fn push_landing(coordinator: &mut Coordinator<'_>, task: TaskId, main: String, commit: String) {
    let new = if commit == main { None } else { Some(commit.clone()) };
    let landed = Landed::Main(new);
    let record = record_when_landed(coordinator, &task, &landed);
    let name = format!("refs/heads/{}", record.terms.base);
    let base = RefUpdate { name, old: Some(main), new: Some(commit) };
    let Some(push) = coordinator.store.push_with_base(base, &record) else {
        return report_landing(coordinator, task, Err(anyhow!("this fleet has no remote")));
    };
    coordinator.workers.talk.add(move || {
        let moved = push();
        Box::new(move |this| take_moved(this, task, landed, moved))
    });
}

/// The record as it will be once the push has moved it together with the base. The effects of
/// the landing are decided again after that push.
fn record_when_landed(
    coordinator: &Coordinator<'_>,
    task: &TaskId,
    landed: &Landed,
) -> FleetRecord {
    let mut record = coordinator.record.clone();
    let mut coordination = Coordination { landing: Some(task.clone()), ..Coordination::default() };
    let event = FleetEvent::Landed(task.clone(), landed.clone());
    drop(step_fleet(&mut record, &mut coordination, event, clock::now().wall));
    record
}

/// Handles a push that moved the base and the record; `false` if another process moved the base
/// first.
pub(super) fn take_moved(
    coordinator: &mut Coordinator<'_>,
    task: TaskId,
    landed: Landed,
    moved: Result<bool, StoreFault>,
) {
    coordinator.store.note_answer(matches!(moved, Ok(true)));
    let ended = match moved {
        Ok(true) => Ok(Ok(landed)),
        Ok(false) if coordinator.workers.landing_try.is_stopped() => Err(anyhow!(STOPPED)),
        Ok(false) if coordinator.workers.landing_try.tries < LANDING_TRIES => {
            coordinator.workers.landing_try.tries += 1;
            return queue_landing(coordinator, &task);
        }
        Ok(false) => {
            let base = &coordinator.record.terms.base;
            let why = format!("{base} moved {LANDING_TRIES} times while the checks ran");
            Ok(Err(Refusal::Moved(why)))
        }
        Err(StoreFault::Lost(who)) => return coordinator.pending.lost = Some(who),
        Err(fault) => Err(fault.into_error()),
    };
    report_landing(coordinator, task, ended);
}

/// Passes on the result of a landing; an error means that it could not be tried.
fn report_landing(
    coordinator: &mut Coordinator<'_>,
    task: TaskId,
    ended: Result<Result<Landed, Refusal>>,
) {
    use GitTrouble::{Auth, Network, NoRemote, Other};
    coordinator.take_in(match ended {
        Ok(Ok(landed)) => FleetEvent::Landed(task, landed),
        Ok(Err(refusal)) => FleetEvent::Refused(task, refusal),
        Err(error) => {
            let trouble = git_trouble(&error);
            // A killed git process counts as `Other`.
            let is_passing = matches!(trouble, None | Some(Auth | Network | NoRemote | Other));
            let needs_person = !is_passing;
            FleetEvent::LandingFailed { task, why: short_error(&error), needs_person }
        }
    });
}
fn note_in(log: &Path, line: &str) {
    let mut log = Log::open(log);
    log.add(format!("{}\n", clean_text(line)).as_bytes());
    // A landing does not depend on its log.
    let _ = log.close();
}
