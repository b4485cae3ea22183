//! What a line of a journal is about, where pages and rules ask for that, and its sentence.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::{Actor, Driver};

/// What a change between boundaries, or a note, is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "of")]
pub enum NoteKind {
    /// Nothing that is asked for: its sentence is all.
    #[default]
    Plain,
    /// The user sent the agent a message.
    Told,
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
    /// A person brought the tree back; with the command that undoes it.
    BroughtBack {
        to: String,
        undo: String,
    },
    /// The loop's crew or client was gone before that was recorded. By the time it is read, another
    /// may drive the loop.
    CountedLate(Driver),
    /// Somebody wrote a handoff page.
    HandedOff(Actor),
    /// The next process of a run gets what somebody wrote in a handoff page.
    HandedOn,
}

/// A line of a journal: its sentence, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalNote {
    pub what: String,
    pub kind: NoteKind,
}

impl NoteKind {
    /// Whether nothing asks for it.
    pub fn is_plain(&self) -> bool {
        *self == Self::Plain
    }

    /// What a page says of the tree because of it: that the files it lists are not what is there,
    /// or that a person's may be among them.
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
            Self::Told => out.write_str("told by the user"),
            Self::Delivered => out.write_str("told the agent"),
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
            Self::HandedOn => out.write_str("the words of the last handoff are in the next prompt"),
        }
    }
}

fn brought_back(to: &str) -> String {
    format!("the user brought the tree back to {to}")
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
