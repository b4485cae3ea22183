//! The rate window of an account and model. The first loop that meets a limit closes it for every
//! loop of the machine; after its end the loops return one after the other. Values in, values out:
//! it knows no file and starts nothing. It never keeps a person from trying.
#![allow(dead_code, reason = "the drivers use it from the next commits on")]

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::record::{Agent, LoopId, Run};
use super::text::clip;

/// Between two returns: 20 s, and one more, because a start itself may come a little late.
pub const APART: TimeDelta = TimeDelta::seconds(21);
/// How much later one limit may seem to end to another loop that met it: every loop adds some time
/// of its own, so that not all of them try again at once.
const SAME_LIMIT: TimeDelta = TimeDelta::seconds(30);
/// The most loops that have a turn; the oldest turns are forgotten.
const TURNS_MAX: usize = 1000;
/// The longest reason, in characters.
const WHY_CHARS: usize = 200;
/// The longest account and the longest model in a file's name, in bytes.
const NAME_BYTES: usize = 100;

type Time = DateTime<Utc>;

/// Whose limit it is. It is a name, never a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountId {
    pub name: String,
    /// The model that was asked for; `None` leaves the choice to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl AccountId {
    /// The account of an agent in a run: what the settings name, else the program's name. Both that
    /// setting and the model are meant for the run's own agent.
    pub fn of(run: &Run, agent: &Agent) -> Self {
        let is_own = agent.name == run.agent.name;
        let program = agent.command.first().and_then(|program| program.rsplit('/').next());
        let name = run.account.as_deref().filter(|_| is_own).or(program).unwrap_or(&agent.name);
        Self { name: name.to_owned(), model: run.model.clone().filter(|_| is_own) }
    }

    /// The name of its file, without an extension: different accounts have different ones, and none
    /// begins with a dot or leaves the folder.
    pub fn file_stem(&self) -> String {
        let name = escaped(&self.name);
        match &self.model {
            Some(model) => format!("{name}+{}", escaped(model)),
            None => name,
        }
    }
}

/// Lower case, because some file systems do not tell it from upper case.
fn escaped(text: &str) -> String {
    let mut name = String::new();
    for byte in text.to_lowercase().bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if is_plain || (byte == b'.' && !name.is_empty()) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name.truncate(NAME_BYTES);
    name
}

impl fmt::Display for AccountId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.model {
            Some(model) => write!(out, "{} ({model})", self.name),
            None => out.write_str(&self.name),
        }
    }
}

/// A limit as one loop met it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetLimit {
    pub until: Time,
    /// Whether the service named that time; else it is the loop's own guess.
    pub is_stated: bool,
    /// The service's words.
    pub why: String,
    pub by: LoopId,
    /// When the iteration began that met it.
    pub began: Time,
}

/// A rate window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateWindow {
    pub account: AccountId,
    /// Until then crew starts nothing by itself.
    pub until: Time,
    pub why: String,
    pub met_by: LoopId,
    pub met_at: Time,
    /// When each loop returns. A loop whose turn has passed is back.
    pub turns: BTreeMap<LoopId, Time>,
}

impl RateWindow {
    /// The window after a limit was met. A standing one that ends later is kept against a guess,
    /// and against an iteration that began before it was closed; a later try knows better.
    pub fn after(known: Option<Self>, account: AccountId, limit: MetLimit, now: Time) -> Self {
        let kept = known.filter(|known| {
            let is_same = known.until <= limit.until && limit.until - known.until <= SAME_LIMIT;
            let is_longer = known.until > limit.until;
            let knows_better = known.met_at > limit.began || !limit.is_stated;
            known.is_closed(now) && ((is_longer && knows_better) || is_same)
        });
        if let Some(mut kept) = kept {
            // It tried, so it waits again, in a turn of its own.
            kept.turns.retain(|by, at| *by != limit.by || *at > now);
            kept.turn(&limit.by, now);
            return kept;
        }
        let turns = [(limit.by.clone(), limit.until)].into();
        let why = clip(&limit.why, WHY_CHARS);
        Self { account, until: limit.until, why, met_by: limit.by, met_at: now, turns }
    }

    /// Whether it stands.
    pub fn is_closed(&self, now: Time) -> bool {
        now < self.until
    }

    /// Whether an answer of the service to an iteration that began then shows that the limit is
    /// over. An iteration from before it was met shows nothing.
    pub fn is_disproved_by(&self, began: Time, now: Time) -> bool {
        self.is_closed(now) && began >= self.met_at
    }

    /// The window that a loop found open: the others return after it.
    pub fn opened(self, by: &LoopId, now: Time) -> Self {
        Self { until: now, turns: [(by.clone(), now)].into(), ..self }
    }

    /// The loop's turn, claimed if it has none; `None` where it may start now.
    pub fn turn(&mut self, by: &LoopId, now: Time) -> Option<Time> {
        if let Some(at) = self.turns.get(by) {
            return Some(*at).filter(|at| *at > now);
        }
        let free = self.free_from();
        if free <= now {
            return None;
        }
        self.turns.insert(by.clone(), free);
        if self.turns.len() > TURNS_MAX {
            let oldest = self.turns.iter().min_by_key(|(_, at)| **at).map(|(by, _)| by.clone());
            oldest.map(|by| self.turns.remove(&by));
        }
        Some(free)
    }

    /// Whether a loop that waits for its turn until `due` should look again: the window was cleared
    /// or closed anew.
    pub fn has_moved(&self, by: &LoopId, due: Time) -> bool {
        self.turns.get(by).is_none_or(|at| *at < due)
    }

    /// When the next turn is free.
    pub fn free_from(&self) -> Time {
        self.turns.values().max().map_or(self.until, |last| self.until.max(*last + APART))
    }

    /// "usage limit reached, met by loop k3vq7xwa".
    pub fn reason(&self) -> String {
        format!("{}, met by loop {}", self.why, self.met_by)
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
