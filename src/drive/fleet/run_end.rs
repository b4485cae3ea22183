//! How the run of a fleet ends its jobs when a signal comes. It ends nothing that another crew
//! runs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::engines::SeenJob;
use super::run::{Coordinator, LOOK};
use super::seat;
use crate::engine::fleet::{FleetEvent, Lease};
use crate::engine::record::ProcessIdentity;
use crate::world::clock::{self, Deadline};
use crate::world::process::identity::{identity, is_alive};
use crate::world::process::signals::ask_to_end;

/// How long jobs get to end after a signal: an agent gets 5 s, a commit may take minutes.
const END_WITHIN: Duration = Duration::from_secs(360);

impl Coordinator<'_> {
    /// Ends the jobs of this fleet that the engine knows, in order, and waits for them; also those
    /// that an earlier crew started. Nothing, where another crew runs the fleet, and where a
    /// terminal was closed whose jobs run elsewhere.
    pub(super) fn end_all(&mut self, is_local: bool) {
        let (told, ends) = if self.lock.is_none() {
            ("this crew only watched: the other one runs on", false)
        } else if !is_local && self.signals.is_hangup() {
            ("the terminal was closed: the jobs run on, and crew fleet run joins them", false)
        } else {
            ("ending: each agent is stopped, its work is kept, and the task waits", true)
        };
        (self.sink)(&FleetEvent::Noted(told.to_owned()));
        if !ends {
            return;
        }
        self.jobs.keys().for_each(|id| drop(self.engine.cancel(id)));
        let joined = self.joined();
        joined.iter().for_each(ask_to_end);
        let deadline = Deadline::after(END_WITHIN);
        let is_left = |jobs: &BTreeMap<_, _>| !jobs.is_empty() || joined.iter().any(is_alive);
        while is_left(&self.jobs) && !deadline.passed() && self.signals.times() < 2 {
            if let Ok(seen) = self.engine.list() {
                let lives = |it: &SeenJob| !it.state.is_ended();
                self.jobs.retain(|id, _| seen.iter().any(|it| it.id == *id && lives(it)));
            }
            clock::sleep(LOOK);
        }
    }

    /// The jobs of this machine that another crew has started.
    fn joined(&self) -> Vec<ProcessIdentity> {
        let here = self.known.values().filter(|lease| self.memory.is_held(lease.id()));
        let attempts = here.filter_map(Lease::attempt);
        let others = attempts.filter(|attempt| {
            seat::is_here(self.home, attempt) && !self.jobs.contains_key(&attempt.pid.to_string())
        });
        others.filter_map(|attempt| identity(attempt.pid)).collect()
    }
}
