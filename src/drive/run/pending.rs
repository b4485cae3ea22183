//! What follows the record of a boundary or an end: commit, push, reaction. The record names them
//! until they were tried, and whoever finds some left does them.

use std::cell::RefCell;

use anyhow::{Result, anyhow};

use super::Runner;
use crate::drive::end;
use crate::drive::owner::myself;
use crate::drive::resume::make_way;
use crate::drive::start::repository::on_another_branch;
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::engine::journal::Event;
use crate::engine::record::{Loop, LoopMoment, Pending};
use crate::world::git::steps;
use crate::world::git::steps::put_back;
use crate::world::process::signals::Signals;
use crate::world::store::{self, Home, LOCK_WAIT};

/// Does what is pending of an ended loop, and returns the loop as it then is. This process becomes
/// its owner meanwhile, so that nobody starts beside it.
///
/// # Errors
/// If another loop works there, its own crew still does that, or nothing can be recorded.
pub fn settle(
    home: &Home,
    found: &Loop,
    signals: &Signals,
    sink: &mut dyn EventSink,
) -> Result<Loop> {
    let id = &found.id;
    end::let_end(found)?;
    make_way(home, &home.checkout_pointer(&found.place.checkout), id)?;
    let held = store::hold(home, id, LOCK_WAIT)?;
    let mut record = held.load()?;
    let left = record.state.git.left();
    if record.is_live() || left.is_empty() {
        return Ok(record);
    }
    put_back(&record.place.checkout).map_err(|fault| anyhow!(fault.line()))?;
    record.state.owner = myself()?;
    let record = held.record(record, |next| Event::changed("doing what is pending", next))?;
    drop(held);
    let what = left.names().join(", ");
    sink.on_event(&RunEvent::Noted(&format!("loop {id} ended with this pending: {what}")));
    let sink = RefCell::new(&mut *sink as &mut dyn EventSink);
    Runner::new(home, record, signals, &sink, None).do_pending(left);
    let record = store::load(home, id)?;
    end::complete(home, &record);
    Ok(record)
}

impl Runner<'_> {
    /// Does what an earlier process of the loop left.
    pub(super) fn do_pending(&mut self, left: Pending) {
        let own = self.ledger.record.branch();
        let stand = steps::stand(&self.ledger.record.place, GitStep::Commit).ok();
        // What is there may be another branch's work.
        if let Some(stand) = stand.filter(|it| left.commit && it.branch.as_deref() != own) {
            let why = on_another_branch(own, stand.branch.as_deref());
            self.tell(&RunEvent::CommitFailed { why: &why });
        } else if let Some(fault) = self.take_steps(left.commit, left.push) {
            self.end_without_a_repository(&fault);
        }
        if left.reaction {
            self.react_to_the_end();
        }
    }

    /// Commits and pushes, and crosses that out. Returns the fault of a lost repository.
    pub(super) fn take_steps(&mut self, commits: bool, pushes: bool) -> Option<GitFault> {
        let fault = if commits { self.commit() } else { None };
        if commits || pushes {
            self.tell_of_repositories_inside();
        }
        let pushes = pushes && fault.is_none() && self.signals.times() == 0;
        let fault = if pushes { self.push() } else { fault };
        let pending = self.ledger.record.state.git.pending;
        if (commits && pending.commit) || (pushes && pending.push) {
            self.remember_of_git(|git| {
                git.pending.commit &= !commits;
                git.pending.push &= !pushes;
            });
        }
        fault.filter(|fault| fault.trouble == GitTrouble::Repository)
    }

    /// Runs the user's commands for the end, and crosses them out unless a signal ended them.
    pub(super) fn react_to_the_end(&self) {
        self.react(LoopMoment::Finish);
        if self.signals.times() <= 1 && !self.ledger.is_behind() {
            let id = &self.ledger.record.id;
            let _ = end::amend(self.home, id, "reacted to the end", |record| {
                record.state.git.pending.reaction = false;
            });
        }
    }
}
