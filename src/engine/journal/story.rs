//! The story of a loop, from its journal: who drove it, what every iteration was, what happened
//! between. Lines come one at a time, and only what a page shows is kept, so a journal of any
//! length needs little memory.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    Choice, Event, HANDED_OFF, HANDED_ON, JournalEntry, RESUMED_IN_A_RUN, RESUMED_IN_A_SESSION,
    Settled, TOLD,
};
use crate::engine::evidence::{Evidence, Verdict};
use crate::engine::record::{Driver, Limits, Owner, Status};

/// The most chapters kept; the newest are.
pub const CHAPTERS_MAX: usize = 10_000;

/// What a journal reports.
#[derive(Debug, Clone)]
pub struct Story {
    pub chapters: Settled<Chapter>,
    /// Everyone who drove the loop, in order.
    pub drivers: Settled<Who>,
    /// The checks that passed before the first iteration, by command.
    pub green_before: BTreeSet<String>,
    /// When it ended; `None` while it lives, or where no line says so.
    pub ended_at: Option<DateTime<Utc>>,
    /// Lines that could not be read.
    pub torn: u64,
    /// Whether the journal is longer than the part that was read: its beginning is missing then.
    pub cut: bool,
    pick: Option<u32>,
    picked: Settled<Iteration>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chapter {
    pub at: DateTime<Utc>,
    pub generation: u64,
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum What {
    /// The loop started.
    Started { by: Who },
    /// An iteration that was counted.
    Iteration(Box<Iteration>),
    /// A boundary that counted no iteration.
    Boundary { decision: Choice, why: Option<String> },
    /// A change between boundaries; `by` is the new driver, if that changed.
    Changed { what: String, by: Option<Who>, limits: Option<Limits> },
    /// The user told the agent something.
    Told { words: String },
    /// For information.
    Noted { what: String },
}

/// Who drives a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Who {
    pub driver: Driver,
    pub session_id: Option<String>,
    pub pid: i32,
}

impl Who {
    fn of(owner: &Owner) -> Self {
        let session_id = owner.session_id.clone();
        Self { driver: owner.driver, session_id, pid: owner.process.pid }
    }
}

/// An iteration that counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Iteration {
    /// 1-based.
    #[serde(rename = "iteration")]
    pub number: u32,
    pub elapsed_ms: u64,
    /// What was decided at its boundary.
    pub decision: Choice,
    pub why: Option<String>,
    /// What was seen. The output of checks and agents is kept only for the picked iteration.
    pub evidence: Evidence,
}

impl Story {
    /// An empty story that will keep all evidence of iteration `pick`.
    pub fn picking(pick: Option<u32>) -> Self {
        let (chapters, drivers) = (Settled::newest(CHAPTERS_MAX), Settled::newest(usize::MAX));
        let (green_before, picked) = (BTreeSet::new(), Settled::newest(1));
        let ended_at = None;
        Self { chapters, drivers, green_before, ended_at, torn: 0, cut: false, pick, picked }
    }

    /// Takes the next line.
    pub fn add(&mut self, entry: JournalEntry) {
        let reached = entry.reached();
        let JournalEntry { at, generation, event, .. } = entry;
        if let Some(state) = event.state() {
            let is_over = state.status == Status::Finished;
            self.ended_at = is_over.then(|| self.ended_at.unwrap_or(at));
        }
        self.chapters.reach(reached);
        self.drivers.reach(reached);
        self.picked.reach(reached);
        if let Event::Boundary { state, .. } = &event
            && self.drivers.iter().len() == 0
        {
            // The journal's beginning was not read.
            self.drivers.push(None, Who::of(&state.owner));
        }
        let what = match event {
            Event::Started { record } => {
                let by = Who::of(&record.state.owner);
                self.drivers.push(reached, by.clone());
                What::Started { by }
            }
            Event::Boundary { decision, why, elapsed_ms: Some(elapsed_ms), state } => {
                let evidence = state.evidence.unwrap_or_default();
                let number = state.completed;
                let mut it = Iteration { number, elapsed_ms, decision, why, evidence };
                if self.pick == Some(number) {
                    self.picked.push(reached, it.clone());
                }
                it.evidence.checks.iter_mut().for_each(|check| check.tail.clear());
                it.evidence.errors.clear();
                What::Iteration(Box::new(it))
            }
            Event::Boundary { decision, why, .. } => What::Boundary { decision, why },
            Event::Changed { what, limits, state, .. } => {
                if state.completed == 0 {
                    // Of a cut-off attempt's work they say nothing about the time before the loop.
                    let known = state.checks.iter().filter(|_| !state.checked_after_work);
                    let passed = known.filter(|(_, it)| it.last == Verdict::Passed);
                    self.green_before = passed.map(|(run, _)| run.clone()).collect();
                }
                let now = Who::of(&state.owner);
                let by = (self.drivers.iter().last() != Some(&now)).then_some(now);
                if let Some(by) = &by {
                    self.drivers.push(reached, by.clone());
                }
                match state.messages.last() {
                    Some(words) if what == TOLD => What::Told { words: words.clone() },
                    _ => What::Changed { what, by, limits },
                }
            }
            Event::Recovered { what, .. } => {
                let what = what.unwrap_or_else(|| "recorded after all".to_owned());
                What::Changed { what, by: None, limits: None }
            }
            Event::Noted { what } => What::Noted { what },
        };
        self.chapters.push(reached, Chapter { at, generation, what });
    }

    /// Whether the newest handoff page that somebody wrote has been through no iteration of another
    /// worker. One that is cut off is repeated, and so is what it was told.
    pub fn has_unread_handoff(&self) -> bool {
        let resumed = [RESUMED_IN_A_SESSION, RESUMED_IN_A_RUN];
        let mut is_counted = false;
        for chapter in self.chapters.iter().rev() {
            let is_handed_on = match &chapter.what {
                What::Noted { what } if what.starts_with(HANDED_OFF) => return true,
                What::Noted { what } => what == HANDED_ON,
                What::Changed { what, by, .. } => by.is_some() && resumed.contains(&what.as_str()),
                _ => false,
            };
            if is_handed_on && is_counted {
                return false;
            }
            is_counted |= matches!(chapter.what, What::Iteration(_));
        }
        false
    }

    /// The picked iteration, with all its evidence.
    pub fn picked(&self) -> Option<&Iteration> {
        self.picked.iter().last()
    }

    /// The iterations kept, in order.
    pub fn iterations(&self) -> impl Iterator<Item = &Iteration> {
        self.chapters.iter().filter_map(|chapter| match &chapter.what {
            What::Iteration(iteration) => Some(&**iteration),
            _ => None,
        })
    }
}

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;
