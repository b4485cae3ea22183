//! The story of a loop, from its journal: who drove it, what every iteration was, what happened between. Lines
//! come one at a time and only what a page shows of them is kept, so a journal of any length is read in
//! little room.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::evidence::Evidence;
use super::journal::{Entry, Event};
use super::limits::Limits;
use super::owner::{Driver, Owner};

/// The most chapters that are kept, the newest.
pub const CHAPTERS_MAX: usize = 10_000;

/// What a journal tells.
#[derive(Debug, Clone, Default)]
pub struct Story {
    pub chapters: VecDeque<Chapter>,
    /// Chapters before those, no longer kept.
    pub earlier: u64,
    /// Everybody who drove the loop, in order.
    pub drivers: Vec<Who>,
    /// The iteration that was asked for, with all its evidence.
    pub picked: Option<Box<Iteration>>,
    /// Lines that could not be read.
    pub torn: u64,
    /// Whether the journal is longer than what is read of it: then its beginning is missing.
    pub cut: bool,
    pick: Option<u32>,
    /// The generation of what is picked.
    picked_at: u64,
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
    Started {
        by: Who,
    },
    Iteration(Box<Iteration>),
    /// A boundary that counted no iteration.
    Boundary {
        decision: String,
        why: Option<String>,
    },
    /// Something from outside a boundary.
    Changed {
        what: String,
        /// Who drives the loop since then, where that changed.
        by: Option<Who>,
        limits: Option<Limits>,
    },
    Noted {
        what: String,
    },
}

/// Who drives a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Who {
    pub driver: Driver,
    pub session_id: Option<String>,
    pub pid: i32,
    /// The generation since which it does.
    #[serde(skip)]
    pub since: u64,
}

impl Who {
    fn of(owner: &Owner, since: u64) -> Self {
        let session_id = owner.session_id.clone();
        Self { driver: owner.driver, session_id, pid: owner.process.pid, since }
    }

    fn is(&self, owner: &Owner) -> bool {
        self.driver == owner.driver
            && self.session_id == owner.session_id
            && self.pid == owner.process.pid
    }
}

/// An iteration that counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Iteration {
    /// 1-based.
    #[serde(rename = "iteration")]
    pub number: u32,
    pub elapsed_ms: u64,
    /// What was decided at its boundary: `continue`, `wait`, `hold` or `finish`.
    pub decision: String,
    pub why: Option<String>,
    /// What was seen; what checks and agents printed only of the one that was asked for.
    pub evidence: Evidence,
}

impl Story {
    /// An empty story that will keep all of iteration `pick`.
    pub fn picking(pick: Option<u32>) -> Self {
        Self { pick, ..Self::default() }
    }

    /// Takes the next line. Of several lines with one generation the last counts, because the earlier ones
    /// never reached the record.
    pub fn add(&mut self, entry: Entry) {
        let Entry { at, generation, event, .. } = entry;
        if !matches!(event, Event::Noted { .. }) {
            self.take_back(generation);
        }
        if let (Event::Boundary { state, .. }, true) = (&event, self.drivers.is_empty()) {
            // The beginning was not read.
            self.drivers.push(Who::of(&state.owner, 0));
        }
        let what = match event {
            Event::Started { record } => {
                let by = Who::of(&record.state.owner, generation);
                self.drivers.push(by.clone());
                What::Started { by }
            }
            Event::Boundary { decision, why, elapsed_ms: Some(elapsed_ms), state } => {
                let evidence = state.evidence.unwrap_or_default();
                let number = state.completed;
                let it = Iteration { number, elapsed_ms, decision, why, evidence };
                self.iteration(it, generation)
            }
            Event::Boundary { decision, why, .. } => What::Boundary { decision, why },
            Event::Changed { what, limits, state, .. } => {
                let is_new = self.drivers.last().is_none_or(|last| !last.is(&state.owner));
                let by = is_new.then(|| Who::of(&state.owner, generation));
                self.drivers.extend(by.clone());
                What::Changed { what, by, limits }
            }
            Event::Recovered { .. } => {
                What::Changed { what: "recorded after all".to_owned(), by: None, limits: None }
            }
            Event::Noted { what } => What::Noted { what },
        };
        self.chapters.push_back(Chapter { at, generation, what });
        if self.chapters.len() > CHAPTERS_MAX {
            self.chapters.pop_front();
            self.earlier += 1;
        }
    }

    fn iteration(&mut self, mut iteration: Iteration, generation: u64) -> What {
        if self.pick == Some(iteration.number) {
            self.picked = Some(Box::new(iteration.clone()));
            self.picked_at = generation;
        }
        for check in &mut iteration.evidence.checks {
            check.tail = String::new();
        }
        iteration.evidence.errors = String::new();
        What::Iteration(Box::new(iteration))
    }

    /// Forgets what was told with this generation or a later one; what was only noted stands.
    fn take_back(&mut self, generation: u64) {
        let is_over = |chapter: &Chapter| {
            chapter.generation >= generation && !matches!(chapter.what, What::Noted { .. })
        };
        let mut index = self.chapters.len();
        while index > 0 && self.chapters[index - 1].generation >= generation {
            index -= 1;
            if is_over(&self.chapters[index]) {
                self.chapters.remove(index);
            }
        }
        if self.picked_at >= generation {
            self.picked = None;
        }
        while self.drivers.last().is_some_and(|who| who.since >= generation) {
            self.drivers.pop();
        }
    }

    /// The iterations that are kept, in order.
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
