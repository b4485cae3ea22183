//! One attempt at a task, as a value: what it works with, and what becomes of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Error, Result};

use super::memory::Memory;
use super::tie::{FENCED, own};
use crate::drive::error_text::git_trouble;
use crate::engine::fleet::lease::{Lease, TaskEnding};
use crate::engine::fleet::manifest::{Fleet, FleetRequest};
use crate::engine::fleet::task::TaskId;
use crate::engine::git::GitTrouble;
use crate::engine::record::{Actor, Loop, LoopId};
use crate::world::clock::{self, Stopwatch};
use crate::world::process::descendants;
use crate::world::process::signals::Signals;
use crate::world::store::{self, Home};

/// What became of an attempt.
#[derive(Debug)]
pub enum JobEnd {
    /// The task ended, now or before.
    Ended(TaskEnding),
    /// Another process works on it.
    Elsewhere,
    /// Another attempt has taken it over.
    Fenced,
    /// A person paused the fleet or its loop.
    Paused,
    /// A signal ended the attempt; the task waits for the next one.
    Interrupted,
}

/// The attempt that this process is.
pub(super) struct Job<'a> {
    pub home: &'a Home,
    pub memory: &'a Memory,
    pub fleet: &'a Fleet,
    pub lease: Lease,
    pub attempt: &'a str,
    pub signals: &'a Signals,
}

/// What comes next for an attempt.
pub(super) enum AfterLoop {
    Over(JobEnd),
    /// Another loop of the task, by this lease.
    Again(Box<Lease>),
}

/// The completed work of a task.
#[derive(Clone, Copy)]
pub(super) struct DoneWork<'a> {
    /// A working tree of its branch.
    pub checkout: &'a Path,
    /// The loop that did it; `None` where that is on another machine, and the branch is on the
    /// remote.
    pub record: Option<&'a Loop>,
}

// The heartbeat of an attempt whose lease other machines read, also during a long iteration. An
// attempt that finds its lease in other hands ends its own loop: what it does now is for nothing.

/// Milliseconds between two beats.
const BEAT_MS: u64 = 60_000;
/// Between two looks whether the attempt is over.
const LOOK: Duration = Duration::from_millis(200);

/// Beats until it is dropped.
pub struct Heartbeat(Arc<AtomicBool>);

impl Heartbeat {
    /// Begins; `None` where no other machine reads the lease.
    pub fn start(home: &Home, memory: &Memory, task: &TaskId, attempt: &str) -> Option<Self> {
        if !memory.is_shared() {
            return None;
        }
        let over = Arc::new(AtomicBool::new(false));
        let heartbeat = Self(Arc::clone(&over));
        let (home, memory) = (home.clone(), memory.clone());
        let (task, attempt) = (task.clone(), attempt.to_owned());
        // git dies with the thread that started it, so this one stays for as long as it beats.
        thread::spawn(move || {
            let (mut last, mut own_loop) = (Stopwatch::start(), None);
            while !over.load(Ordering::Relaxed) {
                if last.elapsed_ms() >= BEAT_MS {
                    last = Stopwatch::start();
                    let beat = || beat(&home, &memory, &task, &attempt, &mut own_loop);
                    descendants::beside(beat);
                }
                clock::sleep(LOOK);
            }
        });
        Some(heartbeat)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One beat. A remote that does not answer is asked again at the next one.
fn beat(home: &Home, memory: &Memory, task: &TaskId, attempt: &str, own_loop: &mut Option<LoopId>) {
    let beaten = memory.change(task, |lease| {
        let is_ours = own(lease, attempt).is_some();
        if is_ours {
            lease.at = clock::now().wall;
        }
        is_ours
    });
    let Ok(kept) = beaten else { return };
    if let Some(found) = kept.value.attempt().filter(|found| found.id == attempt) {
        own_loop.clone_from(&kept.value.loop_id);
        if let (true, Some(id)) = (found.rests(), &kept.value.loop_id) {
            wake(home, memory, task, id);
        }
    } else if let Some(id) = own_loop {
        let _ = store::order_cancel(home, id, Actor::User, Some(FENCED));
    }
}

/// Passes an order of the fleet on to a loop that rests, and would only ask after that.
fn wake(home: &Home, memory: &Memory, task: &TaskId, id: &LoopId) {
    let Ok(fleet) = memory.manifest() else { return };
    let Some(order) = fleet.value.order_of(task) else { return };
    let _ = match order.what {
        FleetRequest::Pause => store::order_pause(home, id, order.by, true),
        FleetRequest::Cancel => store::order_cancel(home, id, order.by, order.reason.as_deref()),
    };
}

// How the run of a fleet bears a remote that is away: it is told once, and asked again for as long
// as it takes. An answer that crew does not understand is borne for some time only.

/// How many looks in a row may fail with an answer that crew does not understand, or that refuses
/// it; there are at most 15 s between two.
const ODD_MAX: u32 = 20;

/// Looks in a row that have failed.
#[derive(Debug, Default)]
pub struct Outage {
    is_on: bool,
    /// How many of the last ones had an answer that says something else.
    odd: u32,
    /// What was told last.
    told: Option<String>,
}

impl Outage {
    /// Whether the last look failed.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Takes in that a look failed, and returns what is new about it.
    ///
    /// # Errors
    /// The look's own, where another one would not help.
    pub fn bear(&mut self, error: Error) -> Result<Option<String>> {
        self.is_on = true;
        self.odd = match git_trouble(&error) {
            Some(GitTrouble::Network) => 0,
            Some(GitTrouble::Other | GitTrouble::Auth) if self.odd < ODD_MAX => self.odd + 1,
            _ => return Err(error),
        };
        let told = error.to_string().lines().next().unwrap_or_default().to_owned();
        let is_new = self.told.replace(told.clone()).as_ref() != Some(&told);
        Ok(is_new.then(|| format!("{told}; it is asked again")))
    }
}

#[cfg(test)]
mod outage_tests {
    use super::*;
    use crate::engine::git::{GitFault, GitStep};

    #[test]
    fn an_outage_is_told_once_for_each_reason_and_an_odd_answer_is_not_borne_for_ever() {
        let fault = |trouble, cause: &str| GitFault::new(GitStep::Lease, trouble, cause, "look");
        let mut outage = Outage::default();
        let bear = |outage: &mut Outage, trouble, cause| {
            outage.bear(fault(trouble, cause).into()).map_err(|error| error.to_string())
        };
        let told = "lease failed: refused; it is asked again";
        assert_eq!(bear(&mut outage, GitTrouble::Network, "refused"), Ok(Some(told.to_owned())));
        for _ in 0..1000 {
            assert_eq!(bear(&mut outage, GitTrouble::Network, "refused"), Ok(None));
        }
        let borne = (0..100).take_while(|_| bear(&mut outage, GitTrouble::Other, "odd").is_ok());
        assert_eq!(borne.count(), 20);
        bear(&mut Outage::default(), GitTrouble::NoRemote, "no such repository").unwrap_err();
    }
}
