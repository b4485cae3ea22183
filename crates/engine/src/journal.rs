//! The lines of a loop's journal and the one way to read them back: what was decided, in order,
//! with enough in each line to rebuild the record. A line is written before the state, so after a
//! crash the journal may be one line ahead. The state is then what counts, and the line's
//! generation is written again.

pub mod story;

use derive_getters::Getters;
use std::collections::VecDeque;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::record::{Actor, Driver, Limits, Loop, State};

/// The version of the lines' format.
pub const SCHEMA: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub schema: u32,
    pub at: DateTime<Utc>,
    /// The generation the record has after this line.
    pub generation: u64,
    pub event: Event,
}

/// A boundary's decision, in one word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    Continue,
    Wait,
    Hold,
    Finish,
    /// A word of another version, shown as it is.
    #[serde(untagged)]
    Other(String),
}

/// What a line reports, nested under its kind, so that a line is read in one pass and without
/// copying its contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The loop started with this record.
    Started { record: Box<Loop> },
    /// A boundary, with its decision and the reason, if there is one. `elapsed_ms` are the awake
    /// milliseconds of the iteration; `None` if it did not count.
    Boundary { decision: Choice, why: Option<String>, elapsed_ms: Option<u64>, state: Box<State> },
    /// The record changed between boundaries: cancelled, interrupted, woken, resumed, or recorded
    /// after boundaries that were only in its driver's memory. `limits` are the new ones, if the
    /// user changed them.
    Changed {
        what: String,
        #[serde(default, skip_serializing_if = "NoteKind::is_plain")]
        kind: NoteKind,
        limits: Option<Limits>,
        after: AfterChange,
    },
    /// For information; changes nothing.
    Noted {
        what: String,
        #[serde(default, skip_serializing_if = "NoteKind::is_plain")]
        kind: NoteKind,
    },
}

/// What a change leaves: the new state, or the whole record where anything else changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterChange {
    State(Box<State>),
    Record(Box<Loop>),
}

impl AfterChange {
    fn from_records(before: &Loop, next: &Loop) -> Self {
        let state = next.state.clone();
        let expected = Loop { state, ..before.clone() };
        if expected == *next {
            Self::State(Box::new(expected.state))
        } else {
            Self::Record(Box::new(next.clone()))
        }
    }

    fn state(&self) -> &State {
        match self {
            Self::State(state) => state,
            Self::Record(record) => &record.state,
        }
    }
}

impl Event {
    /// The state that the loop has after this; `None` for a note.
    pub fn state(&self) -> Option<&State> {
        match self {
            Self::Started { record } => Some(&record.state),
            Self::Boundary { state, .. } => Some(state),
            Self::Changed { after, .. } => Some(after.state()),
            Self::Noted { .. } => None,
        }
    }

    /// A note, which changes nothing.
    pub fn from_note(note: impl Into<JournalNote>) -> Self {
        let JournalNote { what, kind } = note.into();
        Self::Noted { what, kind }
    }

    /// The whole record, after boundaries that were only in its driver's memory.
    pub fn from_memory(record: &Loop) -> Self {
        let JournalNote { what, kind } = "recorded after all".into();
        let after = AfterChange::Record(Box::new(record.clone()));
        Self::Changed { what, kind, limits: None, after }
    }

    /// A change between boundaries.
    pub fn from_change(note: impl Into<JournalNote>, before: &Loop, next: &Loop) -> Self {
        let (had, has) = (&before.contract.limits, &next.contract.limits);
        let limits = if had == has { None } else { Some(has.clone()) };
        let JournalNote { what, kind } = note.into();
        Self::Changed { what, kind, limits, after: AfterChange::from_records(before, next) }
    }
}

impl JournalEntry {
    /// The generation the record reached by this line; `None` for a note, which changes nothing.
    pub fn reached_generation(&self) -> Option<u64> {
        (!matches!(self.event, Event::Noted { .. })).then_some(self.generation)
    }
}

/// The valid lines of a journal, taken one at a time. Of several lines with one generation the last
/// counts, because the earlier ones never reached the record. Only the newest are kept.
#[derive(Getters, Debug, Clone)]
pub struct Settled<T> {
    kept: VecDeque<(Option<u64>, T)>,
    most: usize,
    /// How many came before the ones that are kept.
    #[getter(copy)]
    earlier: u64,
}

impl<T> Settled<T> {
    /// An empty story that keeps at most `most` items.
    pub fn keep_newest(most: usize) -> Self {
        Self { kept: VecDeque::new(), most, earlier: 0 }
    }

    /// Announces a line that reaches this generation: kept items of this or a later generation are
    /// dropped. Notes stay.
    pub fn reach(&mut self, generation: Option<u64>) {
        let Some(generation) = generation else { return };
        let last = self.kept.iter().rposition(|(at, _)| at.is_some_and(|at| at < generation));
        let dropped = self.kept.split_off(last.map_or(0, |index| index + 1));
        self.kept.extend(dropped.into_iter().filter(|(at, _)| at.is_none()));
    }

    /// Takes the item for the line that reaches this generation.
    pub fn push(&mut self, generation: Option<u64>, item: T) {
        self.kept.push_back((generation, item));
        if self.kept.len() > self.most {
            self.kept.pop_front();
            self.earlier += 1;
        }
    }

    /// Keeps only the newest of the wanted items.
    pub fn keep(&mut self, is_wanted: impl Fn(&T) -> bool, newest: usize) {
        self.kept.retain(|(_, item)| is_wanted(item));
        self.kept.drain(..self.kept.len().saturating_sub(newest));
    }

    /// The items that are kept, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.kept.iter().map(|(_, item)| item)
    }
}

/// Rebuilds the record from its journal. `None` without a start, and for a record that breaks its
/// own rules.
pub fn replay_journal(entries: &[JournalEntry]) -> Option<Loop> {
    replay_unchecked(entries).filter(|record| record.check_rules().is_ok())
}

fn replay_unchecked(entries: &[JournalEntry]) -> Option<Loop> {
    let mut settled = Settled::keep_newest(usize::MAX);
    for entry in entries.iter().filter(|entry| entry.reached_generation().is_some()) {
        settled.reach(entry.reached_generation());
        settled.push(entry.reached_generation(), entry);
    }
    let mut record: Option<Loop> = None;
    for entry in settled.iter() {
        match (&entry.event, &mut record) {
            (
                Event::Started { record: whole }
                | Event::Changed { after: AfterChange::Record(whole), .. },
                _,
            ) => record = Some((**whole).clone()),
            (Event::Boundary { elapsed_ms, state, .. }, Some(record)) => {
                if let Some(ms) = elapsed_ms {
                    record.add_time(*ms);
                }
                record.state = (**state).clone();
            }
            (Event::Changed { after: AfterChange::State(state), .. }, Some(record)) => {
                record.state = (**state).clone();
            }
            _ => {}
        }
    }
    record
}

/// What a change between boundaries, or a note, is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "of")]
pub enum NoteKind {
    /// An ordinary note: its sentence is all.
    #[default]
    Plain,
    /// The user sent the agent a message.
    Message,
    /// An agent got the messages that waited.
    Delivered,
    /// A wait in a session ended with the prompt for this iteration.
    Woken(u32),
    /// A session took the loop over, with a prompt.
    ResumedInSession,
    ResumedInRun,
    /// crew committed; with the commit's id.
    Committed(String),
    /// crew rebased onto this branch.
    Rebased(String),
    /// The user brought the tree back; with the command that undoes it.
    BroughtBack {
        to: String,
        undo: String,
    },
    /// The end was recorded late, because the loop's crew or client was gone. By the time this is
    /// read, another driver may have the loop.
    CountedLate(Driver),
    /// The author of a handoff page.
    HandedOff(Actor),
    /// The next process of a run is given the text of a handoff page.
    HandedOn,
}

/// A line of a journal: its sentence, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalNote {
    pub what: String,
    pub kind: NoteKind,
}

impl NoteKind {
    /// Whether it is an ordinary note, which no code treats specially.
    pub fn is_plain(&self) -> bool {
        *self == Self::Plain
    }

    /// What a page says about the tree because of this line: that the listed files differ from what
    /// is there, or that the user's changes may be among them.
    pub fn of_the_tree(&self) -> Option<String> {
        match self {
            Self::BroughtBack { to, .. } => Some(brought_back(to)),
            Self::CountedLate(_) => Some(self.to_string()),
            _ => None,
        }
    }
}

impl fmt::Display for NoteKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => Ok(()),
            Self::Message => out.write_str("message of the user"),
            Self::Delivered => out.write_str("messages delivered to the agent"),
            Self::Woken(iteration) => write!(out, "woken for iteration {iteration}"),
            Self::ResumedInSession => out.write_str("resumed in a session"),
            Self::ResumedInRun => out.write_str("resumed in fresh processes"),
            Self::Committed(commit) => write!(out, "committed {commit}"),
            Self::Rebased(onto) => write!(out, "rebased onto {onto}"),
            Self::BroughtBack { to, undo } => write!(out, "{}; undo: {undo}", brought_back(to)),
            Self::CountedLate(gone) => write!(
                out,
                "everything that changed in the tree until now counts as the loop's: its {} was \
                 gone",
                gone.program()
            ),
            Self::HandedOff(by) => write!(out, "handoff written by the {}", by.label()),
            Self::HandedOn => out.write_str("the text of the last handoff is in the next prompt"),
        }
    }
}

fn brought_back(to: &str) -> String {
    format!("the user restored the tree to {to}")
}

impl From<NoteKind> for JournalNote {
    fn from(kind: NoteKind) -> Self {
        Self { what: kind.to_string(), kind }
    }
}

impl From<String> for JournalNote {
    fn from(what: String) -> Self {
        Self { what, kind: NoteKind::Plain }
    }
}

impl From<&str> for JournalNote {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::decide::{apply_decision, decide_next};
    use crate::boundary::judge::judge_boundary;
    use crate::claim::Claim;
    use crate::fixture::{SetState, a_loop, at, facts};
    use crate::record::names_tests::every_field;

    fn entry(generation: u64, event: Event) -> JournalEntry {
        JournalEntry { schema: SCHEMA, at: at(0).wall, generation, event }
    }

    fn boundary(before: &Loop) -> (Loop, JournalEntry) {
        let facts = facts(Claim::None);
        let judged = judge_boundary(before, &facts);
        let decision = decide_next(&judged, &facts);
        let mut after = apply_decision(judged, &decision);
        after.state.set("generation", after.state.generation() + 1);
        let event = Event::Boundary {
            decision: Choice::Continue,
            why: None,
            elapsed_ms: after.elapsed_ms.last().copied(),
            state: Box::new(after.state.clone()),
        };
        (after.clone(), entry(after.state.generation(), event))
    }

    #[test]
    fn a_journal_replays_to_the_record_it_was_written_for() {
        let started = a_loop();
        let (first, line_1) = boundary(&started);
        let (second, line_2) = boundary(&first);
        let start = entry(0, Event::Started { record: Box::new(started) });
        let note = entry(2, Event::from_note("the view was altered"));
        assert_eq!(replay_journal(&[start, line_1, line_2, note]), Some(second));
    }

    #[test]
    fn a_journal_line_that_never_reached_the_state_is_replaced_by_its_second_try() {
        let started = a_loop();
        let (first, line) = boundary(&started);
        let start = entry(0, Event::Started { record: Box::new(started) });
        assert_eq!(replay_journal(&[start, line.clone(), line]), Some(first));
    }

    #[test]
    fn after_boundaries_that_were_never_journalled_the_record_is_taken_whole() {
        let started = a_loop();
        let (lost, _) = boundary(&started);
        let (mut recovered, _) = boundary(&lost);
        recovered.state.set("generation", recovered.state.generation() + 1);
        let (last, line) = boundary(&recovered);
        let start = entry(0, Event::Started { record: Box::new(started) });
        assert_eq!(replay_journal(&[start.clone(), line.clone()]), None);
        let generation = recovered.state.generation();
        let whole = entry(generation, Event::from_memory(&recovered));
        assert_eq!(replay_journal(&[start, whole, line]), Some(last));
    }

    /// A copy of the record in which this field, given as a JSON pointer, has the value it has in a
    /// record with every field.
    fn with_field(record: &Loop, pointer: &str) -> Loop {
        let mut value = serde_json::to_value(record).unwrap();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        parent.insert(field.to_owned(), every_field().pointer(pointer).unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_change_of_any_field_replays_to_the_changed_record() {
        let before = a_loop();
        let start = entry(0, Event::Started { record: Box::new(before.clone()) });
        let all = every_field();
        let nested = ["contract", "place"].into_iter().flat_map(|outer| {
            let fields = all[outer].as_object().unwrap().keys();
            fields.map(move |field| format!("/{outer}/{field}"))
        });
        let pointers = all.as_object().unwrap().keys().map(|field| format!("/{field}"));
        let mut changed = 0;
        for pointer in pointers.chain(nested) {
            let mut next = with_field(&before, &pointer);
            changed += usize::from(next != before);
            next.state.set("generation", before.state.generation() + 1);
            let line = entry(next.state.generation(), Event::from_change("w", &before, &next));
            // The record is compared as it is, because some fields break its rules alone.
            assert_eq!(replay_unchecked(&[start.clone(), line]), Some(next), "{pointer}");
        }
        assert!(changed > 20, "{changed}");
    }

    #[test]
    fn decisions_have_stable_names_and_unknown_names_are_kept() {
        let words = [Choice::Continue, Choice::Wait, Choice::Hold, Choice::Finish]
            .map(|choice| serde_json::to_string(&choice).unwrap());
        assert_eq!(words, ["\"continue\"", "\"wait\"", "\"hold\"", "\"finish\""]);
        assert_eq!(
            serde_json::from_str::<Choice>("\"yield\"").unwrap(),
            Choice::Other("yield".to_owned())
        );
    }

    #[test]
    fn without_a_start_there_is_no_record() {
        assert_eq!(replay_journal(&[]), None);
        assert_eq!(replay_journal(&[boundary(&a_loop()).1]), None);
    }
}
