//! The story of a loop, from its journal: who drove it, what every iteration was, what happened
//! between. Lines come one at a time, and only what a page shows is kept, so a journal of any
//! length needs little memory.

use super::{Choice, Event, JournalEntry, NoteKind, Settled};
use crate::evidence::test_run::TestReport;
use crate::evidence::{
    CheckResult, ClaimResult, Evidence, Progress, Verdict, has_results, list_findings,
};
use crate::record::{Driver, Limits, Owner, Status};
use crate::text::{join_first_names, one_line};
use chrono::{DateTime, Utc};
use derive_getters::Getters;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of chapters kept; older ones are dropped.
pub const CHAPTERS_MAX: usize = 10_000;

/// What a journal reports.
#[derive(Getters, Debug, Clone)]
pub struct Story {
    pub chapters: Settled<Chapter>,
    /// Everyone who drove the loop, in order.
    drivers: Settled<StoryDriver>,
    /// The checks that passed before the first iteration, by command.
    green_before: BTreeSet<String>,
    /// When it ended; `None` while it is live, or if no line says when.
    #[getter(copy)]
    ended_at: Option<DateTime<Utc>>,
    /// Lines that could not be read.
    pub torn: u64,
    /// Whether the journal is longer than the part that was read: its beginning is missing then.
    #[getter(copy)]
    pub cut: bool,
    #[getter(skip)]
    pick: Option<u32>,
    #[getter(skip)]
    picked: Settled<Iteration>,
}

/// Something that happened.
#[derive(Getters, Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chapter {
    #[getter(copy)]
    at: DateTime<Utc>,
    generation: u64,
    #[serde(flatten)]
    what: StoryEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StoryEvent {
    /// The loop started.
    Started { by: StoryDriver },
    /// An iteration that was counted.
    Iteration(Box<Iteration>),
    /// A boundary that counted no iteration.
    Boundary { decision: Choice, why: Option<String> },
    /// A change between boundaries; `by` is the new driver and `limits` the new limits, if those
    /// changed.
    Changed {
        what: String,
        #[serde(skip)]
        about: NoteKind,
        by: Option<StoryDriver>,
        limits: Option<Limits>,
    },
    /// A message of the user to the agent.
    Message { words: String },
    /// For information.
    Noted {
        what: String,
        #[serde(skip)]
        about: NoteKind,
    },
}

/// Who drives a loop.
#[derive(Getters, Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoryDriver {
    #[getter(copy)]
    driver: Driver,
    session_id: Option<String>,
    #[getter(copy)]
    pid: i32,
}

impl StoryDriver {
    fn from_owner(owner: &Owner) -> Self {
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
    pub fn with_pick(pick: Option<u32>) -> Self {
        let (chapters, drivers) =
            (Settled::keep_newest(CHAPTERS_MAX), Settled::keep_newest(usize::MAX));
        let (green_before, picked) = (BTreeSet::new(), Settled::keep_newest(1));
        let ended_at = None;
        Self { chapters, drivers, green_before, ended_at, torn: 0, cut: false, pick, picked }
    }

    /// Adds the next line.
    pub fn add_entry(&mut self, entry: JournalEntry) {
        let reached = entry.reached_generation();
        let JournalEntry { at, generation, event, .. } = entry;
        if let Some(state) = event.state() {
            let is_over = state.status() == Status::Finished;
            self.ended_at = if is_over { self.ended_at.or(Some(at)) } else { None };
        }
        self.chapters.reach(reached);
        self.drivers.reach(reached);
        self.picked.reach(reached);
        if let Event::Boundary { state, .. } = &event
            && self.drivers.iter().len() == 0
        {
            // The journal's beginning was not read.
            self.drivers.push(None, StoryDriver::from_owner(state.owner()));
        }
        let what = match event {
            Event::Started { record } => {
                let by = StoryDriver::from_owner(record.state.owner());
                self.drivers.push(reached, by.clone());
                StoryEvent::Started { by }
            }
            Event::Boundary { decision, why, elapsed_ms: Some(elapsed_ms), state } => {
                let evidence = state.seen().evidence().clone().unwrap_or_default();
                let number = state.counts().completed();
                let mut iteration = Iteration { number, elapsed_ms, decision, why, evidence };
                if self.pick == Some(number) {
                    self.picked.push(reached, iteration.clone());
                }
                iteration.evidence.checks.iter_mut().for_each(|check| check.tail.clear());
                iteration.evidence.errors.clear();
                StoryEvent::Iteration(Box::new(iteration))
            }
            Event::Boundary { decision, why, .. } => StoryEvent::Boundary { decision, why },
            Event::Changed { what, kind, limits, after } => {
                let state = after.state();
                if state.counts().completed() == 0 {
                    // After an interrupted attempt they say nothing about the time before the loop.
                    let passed = state.seen().checks().iter().filter(|(_, memory)| {
                        !state.seen().checked_after_work() && memory.last() == Verdict::Passed
                    });
                    self.green_before = passed.map(|(run, _)| run.clone()).collect();
                }
                let now = StoryDriver::from_owner(state.owner());
                let by = (self.drivers.iter().last() != Some(&now)).then_some(now);
                if let Some(by) = &by {
                    self.drivers.push(reached, by.clone());
                }
                match state.exchange().messages().last() {
                    Some(words) if kind == NoteKind::Message => {
                        StoryEvent::Message { words: words.clone() }
                    }
                    _ => StoryEvent::Changed { what, about: kind, by, limits },
                }
            }
            Event::Noted { what, kind } => StoryEvent::Noted { what, about: kind },
        };
        self.chapters.push(reached, Chapter { at, generation, what });
    }

    /// Whether the newest handoff page that a person or an agent wrote has not been through an
    /// iteration of another worker yet. An interrupted iteration is repeated with the same prompt.
    pub fn has_unread_handoff(&self) -> bool {
        let mut is_counted = false;
        for chapter in self.chapters.iter().rev() {
            let is_handed_on = match &chapter.what {
                StoryEvent::Noted { about: NoteKind::HandedOff(_), .. } => return true,
                StoryEvent::Noted { about, .. } => *about == NoteKind::HandedOn,
                StoryEvent::Changed {
                    about: NoteKind::ResumedInSession | NoteKind::ResumedInRun,
                    by,
                    ..
                } => by.is_some(),
                _ => false,
            };
            if is_handed_on && is_counted {
                return false;
            }
            is_counted |= matches!(chapter.what, StoryEvent::Iteration(_));
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
            StoryEvent::Iteration(iteration) => Some(&**iteration),
            _ => None,
        })
    }
}

// The result of each iteration, in one line for the next agent: a fresh process knows nothing of
// earlier iterations. Made only from the journal's evidence, never from what an agent reports
// about itself.

/// How many earlier iterations a prompt lists.
pub const ACCOUNTS_SHOWN: usize = 5;
/// The maximum length of a line, in characters.
pub const ACCOUNT_CHARS: usize = 500;

/// One iteration's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationSummary {
    /// 1-based.
    pub iteration: u32,
    /// One line of at most [`ACCOUNT_CHARS`] characters, without the iteration's number.
    pub words: String,
}

impl IterationSummary {
    /// The line for the evidence of one boundary.
    pub fn from_evidence(evidence: &Evidence) -> Self {
        let mut parts = list_findings(evidence);
        let reports = evidence.checks.iter().filter_map(|check| check.tests.as_ref());
        parts.extend(reports.filter_map(TestReport::still_failing));
        if evidence.progress == Progress::None && has_results(evidence) {
            parts.push("nothing changed".to_owned());
        }
        if let Some(said) = &evidence.said {
            parts.push(format!("its last words, unchecked: \"{said}\""));
        }
        Self { iteration: evidence.iteration, words: one_line(&parts.join("; "), ACCOUNT_CHARS) }
    }
}

/// The last iterations in a journal. Lines come one at a time, and only a bounded number is kept.
#[derive(Debug)]
pub struct IterationSummaries(Settled<IterationSummary>);

impl Default for IterationSummaries {
    /// An empty list. It keeps more than it shows, because some entries may be taken back.
    fn default() -> Self {
        Self(Settled::keep_newest(2 * ACCOUNTS_SHOWN))
    }
}

impl IterationSummaries {
    /// Adds the next line.
    pub fn add_entry(&mut self, entry: &JournalEntry) {
        self.0.reach(entry.reached_generation());
        if let Event::Boundary { elapsed_ms: Some(_), state, .. } = &entry.event
            && let Some(evidence) = state.seen().evidence()
        {
            self.0.push(entry.reached_generation(), IterationSummary::from_evidence(evidence));
        }
    }

    /// The last [`ACCOUNTS_SHOWN`], oldest first.
    pub fn last_shown(&self) -> Vec<IterationSummary> {
        let earlier = self.0.iter().len().saturating_sub(ACCOUNTS_SHOWN);
        self.0.iter().skip(earlier).cloned().collect()
    }
}

// Where a check turned red, from the story of a loop: "`cargo test` passed after iteration 4 and
// has failed since iteration 6, which changed src/a.rs, src/b.rs". It goes back to nothing and
// runs nothing.

/// The maximum number of files named.
const FILES_NAMED: usize = 5;
/// The longest path, in characters.
const PATH_CHARS: usize = 300;
/// The maximum number of files kept.
const FILES_KEPT: usize = 100;

/// A check that passed once and fails now, as far as is known.
#[derive(Getters, Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Regression {
    run: String,
    /// The last iteration after which it passed; 0 is before the first.
    green_after: u32,
    /// The first iteration after that at whose end it failed.
    red_since: u32,
    /// The first of the files that changed in between.
    files: Vec<String>,
}

impl Regression {
    /// The regression on one line.
    pub fn regression_words(&self) -> String {
        let Self { run, green_after, red_since, files } = self;
        let green = match green_after {
            0 => "before iteration 1".to_owned(),
            after => format!("after iteration {after}"),
        };
        let names = join_first_names(files, FILES_NAMED);
        let what = match red_since - green_after {
            _ if files.is_empty() => String::new(),
            1 => format!(", which changed {names}"),
            _ => format!("; changed in between: {names}"),
        };
        format!("`{run}` passed {green} and has failed since iteration {red_since}{what}")
    }
}

/// What is known of one check while the iterations go by.
#[derive(Default)]
struct CheckStory {
    green_after: Option<u32>,
    red_since: Option<u32>,
    /// Changed since it was green, up to the iteration at whose end it failed.
    files: Vec<String>,
}

impl CheckStory {
    fn note_pass(&mut self, iteration: u32) {
        *self = Self { green_after: Some(iteration), ..Self::default() };
    }
}

/// The checks that turned red and stayed so, by command.
pub fn find_regressions(story: &Story) -> Vec<Regression> {
    let mut checks: BTreeMap<&str, CheckStory> = BTreeMap::new();
    for run in &story.green_before {
        checks.entry(run).or_default().note_pass(0);
    }
    for iteration in story.iterations() {
        let changed = iteration.evidence.changes.iter().flat_map(|changes| &changes.files);
        for known in checks.values_mut().filter(|known| known.red_since.is_none()) {
            for file in changed.clone().map(|file| &file.path) {
                let file = one_line(file, PATH_CHARS);
                if known.files.len() < FILES_KEPT && !known.files.contains(&file) {
                    known.files.push(file);
                }
            }
        }
        // What was refused though all passed may have passed with weakened tests only.
        let is_refused = matches!(iteration.evidence.claim, ClaimResult::Refused(_));
        if is_refused && iteration.evidence.failing().next().is_none() {
            continue;
        }
        for check in &iteration.evidence.checks {
            if check.verdict == Verdict::Unknown || ran_nothing(check) {
                continue;
            }
            let known = checks.entry(&check.run).or_default();
            if check.verdict == Verdict::Passed {
                known.note_pass(iteration.number);
            } else {
                known.red_since.get_or_insert(iteration.number);
            }
        }
    }
    let turned = checks.into_iter().filter_map(|(run, known)| {
        let CheckStory { green_after: Some(green_after), red_since: Some(red_since), files } =
            known
        else {
            return None;
        };
        Some(Regression { run: run.to_owned(), green_after, red_since, files })
    });
    turned.collect()
}

/// Whether it passed without running a test, which proves nothing.
fn ran_nothing(check: &CheckResult) -> bool {
    let tests = check.tests.as_ref();
    check.verdict == Verdict::Passed
        && tests.is_some_and(|tests| tests.passed() == 0 && tests.failed() == 0)
}

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "story_account_tests.rs"]
mod account_tests;

#[cfg(test)]
#[path = "story_regression_tests.rs"]
mod regression_tests;
