//! The process driver: every iteration is a fresh process of the agent's command line, so its context is
//! always clean, and crew is what lasts. It goes round and round until the record says that the loop is over
//! or paused; what a round came to is the boundary's to say, as in a session.

pub mod adapt;
mod attempt;
pub mod baseline;
pub mod handover;
mod prompt;
mod repository;
mod rest;
mod round;
pub mod start;
mod steps;
mod watch;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Error;

use super::boundary;
use super::ending::{self, Ended, is};
use super::resume::myself;
use crate::engine::git::Trusted;
use crate::engine::looped::{Loop, LoopId, Status};
use crate::engine::news::{Listener, News};
use crate::engine::outcome::Outcome;
use crate::engine::run::{On, Run};
use crate::world::home::Home;
use crate::world::store::{self, StoreError};
use crate::world::unix::Signals;
use crate::world::{awake, descendants, git, room, view};

/// What became of a loop in this process.
#[derive(Debug)]
pub enum End {
    Finished(Box<Ended>),
    Paused,
    /// Another owner has it.
    Taken(LoopId),
    /// A newer crew has written its record, which is left as it is.
    Refused(Error),
}

/// Drives a loop that this process owns until it is over or paused. Nothing that fails on the way loses it: what
/// cannot be recorded is remembered.
pub fn drive(home: &Home, record: Loop, signals: &Signals, listener: &mut dyn Listener) -> End {
    // Before orphans are adopted: what keeps the machine awake is to be none of theirs.
    let is_wanted = record.contract.run.as_ref().is_some_and(|run| !run.may_sleep);
    let awake = is_wanted.then(awake::keep).flatten();
    if let Some(awake) = &awake {
        let by = awake.by;
        let told = format!("keeping this machine awake ({by}); --no-awake lets it sleep");
        listener.hear(&News::Noted(&told));
    }
    // Without it an agent's orphans outlive their iteration; only a system without the call has none.
    let _ = descendants::adopt();
    let trusted = record.trusted.clone();
    let mut runner = Runner {
        home,
        record,
        signals,
        listener: RefCell::new(listener),
        trusted,
        behind: None,
        was_said: false,
        refused: None,
        handoff: None,
        is_rested: true,
        nested: BTreeSet::new(),
        missed: BTreeSet::new(),
        elsewhere: None,
    };
    runner.go()
}

/// Whether this process owns a loop.
fn is_ours(record: &Loop) -> bool {
    myself().is_ok_and(|me| is(&record.state.owner, &me.process))
}

/// A run in progress.
struct Runner<'a> {
    home: &'a Home,
    /// As it was last recorded, or, while nothing can be recorded, as it is.
    record: Loop,
    signals: &'a Signals,
    listener: RefCell<&'a mut dyn Listener>,
    /// As it was recorded when this process took the loop: an agent can write the record too.
    trusted: Option<Trusted>,
    /// The record as it was last known on disk, while the one in memory is ahead of it.
    behind: Option<Box<Loop>>,
    /// Whether it was said that nothing can be recorded.
    was_said: bool,
    /// Why the record must never be written by this crew.
    refused: Option<Error>,
    /// The page of whoever had the loop before, for the first iteration here. A loop that begins has none.
    handoff: Option<PathBuf>,
    /// Whether the next iteration waits for no delay: the first here, and one that a wait stood before.
    is_rested: bool,
    /// The repositories in the working tree that were told of.
    nested: BTreeSet<PathBuf>,
    /// What the user had not committed and was told to be gone, or to be ignored no more.
    missed: BTreeSet<PathBuf>,
    /// The branch, not the loop's, that was told of; empty for none.
    elsewhere: Option<String>,
}

impl Runner<'_> {
    fn go(&mut self) -> End {
        self.handoff = view::newest_handoff(&self.record);
        loop {
            if !self.look() {
                return End::Taken(self.record.id.clone());
            }
            let rests = matches!(self.record.state.status, Status::Finished | Status::Paused);
            if rests && self.save() {
                continue;
            }
            if let Some(error) = self.refused.take() {
                return End::Refused(error);
            }
            match self.record.state.status {
                Status::Finished => return End::Finished(Box::new(self.finished())),
                Status::Paused => {
                    self.tell(&News::Paused(&self.record));
                    return End::Paused;
                }
                Status::Waiting => self.wait(),
                Status::Running => self.round(),
            }
        }
    }

    /// Reads what others did to the record meanwhile. False when it is no longer this process's.
    fn look(&mut self) -> bool {
        if self.is_unsaved() {
            return true;
        }
        match store::load(self.home, &self.record.id) {
            Ok(found) => self.record = found,
            Err(error) => self.remember(error.into()),
        }
        self.is_unsaved() || !self.record.is_live() || is_ours(&self.record)
    }

    /// From now on the memory of this process is what counts; said once. A newer crew's record ends the run
    /// instead: what it means is not known here.
    fn remember(&mut self, why: Error) {
        if self.behind.is_none() {
            self.behind = Some(Box::new(self.record.clone()));
        }
        if matches!(why.downcast_ref(), Some(StoreError::Newer { .. })) {
            self.refused = Some(why);
        } else if !self.was_said {
            self.was_said = true;
            self.tell(&News::Unsaved { why: &format!("{why:#}") });
        }
    }

    /// Whether the record on disk is behind the one in memory.
    fn is_unsaved(&self) -> bool {
        self.behind.is_some()
    }

    /// Records what only memory has, if the disk takes it by now: the last chance before this process goes. True
    /// when the record is another than it was.
    fn save(&mut self) -> bool {
        let Some(known) = &self.behind else { return false };
        match boundary::recover(self.home, known, &self.record) {
            Ok(record) => {
                self.behind = None;
                self.record = record;
                ending::complete(self.home, &self.record);
                true
            }
            // What is given up may be what the last word needs.
            Err(_) if room::give_up(self.home, &self.record.id) => self.save(),
            Err(error) => {
                self.remember(error);
                false
            }
        }
    }

    fn run(&self) -> Run {
        self.record.contract.run.clone().unwrap_or_default()
    }

    fn tell(&self, news: &News<'_>) {
        self.listener.borrow_mut().hear(news);
    }

    /// Time goes by; whether a person asked for the end.
    fn tick(&self) -> bool {
        self.listener.borrow_mut().tick();
        self.signals.times() > 0
    }

    /// The end as it is recorded: a boundary of this run wound it up, or whoever ended it from outside did.
    fn finished(&self) -> Ended {
        let since = git::since(&self.record);
        let is_done = self.record.outcome() == Some(Outcome::Completed);
        let handoff = if is_done { None } else { view::newest_handoff(&self.record) };
        self.react(On::Finish);
        let ended = Ended { record: self.record.clone(), since, handoff };
        self.tell(&News::Finished {
            record: &ended.record,
            since: &ended.since,
            handoff: ended.handoff.as_deref(),
            saved: !self.is_unsaved(),
        });
        ended
    }

    /// The reason a signal ends the loop with.
    fn signal_why(&self) -> &'static str {
        self.signals.why()
    }
}
