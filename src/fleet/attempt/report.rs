//! The files that an attempt and its coordinator share: the lock, which names the live process,
//! and the report of its progress.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::drive::find::own_process;
use crate::fleet::files::FleetFiles;
use crate::fleet::spec::{AttemptPhase, AttemptReport, AttemptSpec};
use engine::fleet::{Carried, TaskId};
use engine::record::{Loop, Owner, ProcessIdentity};
use world::clock;
use world::files::disk::{self, Durability, Lock};
use world::store::{read_json, write_json};

/// The maximum size of a report, in bytes.
const REPORT_BYTES: u64 = 4 << 20;
/// The maximum number of bytes read of a lock's note about its holder.
const HOLDER_BYTES: u64 = 4096;
/// How long a start waits for a process that only tests the lock or is about to end.
const HELD_WAIT: Duration = Duration::from_secs(2);

/// Reads the last report of an attempt; `None` if there is no readable one.
pub fn read_report(files: &FleetFiles, task: &TaskId, number: u32) -> Option<AttemptReport> {
    let report: AttemptReport = read_json(&files.report(task, number), REPORT_BYTES)?;
    (report.number == number).then_some(report)
}

/// Whether a process on this machine works on an attempt.
pub fn is_alive(files: &FleetFiles, task: &TaskId, number: u32) -> bool {
    disk::is_locked(&files.attempt_lock(task, number))
}

/// The process that works on an attempt, according to its lock: the process id in a report may have
/// been reused.
pub fn process_of(files: &FleetFiles, task: &TaskId, number: u32) -> Option<ProcessIdentity> {
    if !is_alive(files, task, number) {
        return None;
    }
    let holder: AttemptHolder = read_json(&files.attempt_lock(task, number), HOLDER_BYTES)?;
    Some(holder.owner.process)
}

/// The note in the lock of an attempt about the process that holds it, or held it last.
#[derive(Debug, Serialize, Deserialize)]
struct AttemptHolder {
    owner: Owner,
    /// A value that differs between the file of its spec and a later one, even with the same text.
    /// `None` if the spec came from standard input.
    spec: Option<String>,
}

/// An attempt whose lock this process holds. The lock is released when the process ends.
#[derive(Debug)]
pub struct HeldAttempt {
    /// Whether the previous process had the same spec, so that no request has come since.
    pub is_same_spec: bool,
    /// Whether the process ids that it noted still name the same processes.
    pub is_of_this_start: bool,
    _lock: Lock,
}

impl HeldAttempt {
    /// Takes the lock of an attempt. `None` if another process works on it.
    pub fn take_attempt(files: &FleetFiles, spec: &AttemptSpec) -> Result<Option<Self>> {
        let (task, number) = (&spec.task.task, spec.number);
        let file = files.attempt_lock(task, number);
        let Some(lock) = disk::take_lock(&file, HELD_WAIT)? else { return Ok(None) };
        let before: Option<AttemptHolder> = read_json(&file, HOLDER_BYTES);
        let stamp = disk::stamp(&files.spec(task, number));
        let holder = AttemptHolder {
            owner: Owner { search_path: None, ..own_process()? },
            spec: stamp.map(|(bytes, modified)| format!("{bytes} {modified}")),
        };
        lock.write_holder(&serde_json::to_string(&holder)?)?;
        let here = holder.owner.host.as_ref();
        Ok(Some(Self {
            is_same_spec: before.as_ref().is_some_and(|before| before.spec == holder.spec),
            is_of_this_start: before.is_some_and(|before| before.owner.is_of_this_start(here)),
            _lock: lock,
        }))
    }
}

/// Writes the report of an attempt to its file when it changes.
#[derive(Debug)]
pub struct Reports {
    file: PathBuf,
    newest: RefCell<AttemptReport>,
    is_written: Cell<bool>,
}

impl Reports {
    /// Starts with this report, which the first change writes.
    pub fn new(file: PathBuf, report: AttemptReport) -> Self {
        Self { file, newest: RefCell::new(report), is_written: Cell::new(false) }
    }

    /// The newest report.
    pub fn newest_report(&self) -> AttemptReport {
        self.newest.borrow().clone()
    }

    /// Changes the report.
    ///
    /// # Errors
    /// If the file cannot be written. The next change tries again, so only the last error matters.
    pub fn change_report(&self, change: impl FnOnce(&mut AttemptReport)) -> io::Result<()> {
        let mut report = self.newest.borrow_mut();
        let before = report.clone();
        change(&mut report);
        if *report == before && self.is_written.get() {
            return Ok(());
        }
        report.at = clock::now().wall;
        let written = write_json(&self.file, &*report, Durability::Machine);
        self.is_written.set(written.is_ok());
        written
    }

    /// Reports a new phase of the attempt.
    pub fn enter_phase(&self, phase: AttemptPhase) -> io::Result<()> {
        self.change_report(|report| report.phase = phase)
    }
}

impl AttemptReport {
    /// Copies the progress of the loop, with the newest commit of its branch.
    pub(super) fn follow_loop(&mut self, record: &Loop, commit: Option<String>) {
        let last = std::mem::replace(&mut self.carried, Carried::from_record(record)).last;
        if self.carried.last.is_empty() {
            // An occasional reader still learns how the last iteration ended.
            self.carried.last = last;
        }
        self.loop_id = Some(record.id.clone());
        self.commit = commit.or(self.commit.take());
    }
}
