//! The rate-limit window of an account and model. The first loop that meets a limit closes it for
//! every loop on the machine; when it reopens, the loops return one after the other. These are
//! plain values: nothing reads a file or starts a process. The user can always try.

use derive_getters::Getters;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::facts::{AgentClosing, AgentFacts, AgentOutcome, ApiError, ProcessEnd};
use crate::record::{AccountId, Loop, LoopId};
use crate::text::clip_line;

/// The time between two returns: 20 s, and one second because a start may be late.
pub const APART: TimeDelta = TimeDelta::seconds(21);
/// The minimum time between two returns.
const LEAST_APART: TimeDelta = TimeDelta::seconds(20);
/// How much later one limit may seem to end to another loop that met it: every loop adds some time
/// of its own, so that not all of them try again at once.
const SAME_LIMIT: TimeDelta = TimeDelta::seconds(30);
/// The maximum number of loops that have a turn; the oldest turns are forgotten.
const TURNS_MAX: usize = 1000;
/// The maximum length of a stored reason, in characters.
const WHY_CHARS: usize = 200;

type Time = DateTime<Utc>;

/// A limit as one loop met it.
#[derive(Getters, Debug, Clone, PartialEq, Eq)]
pub struct MetLimit {
    until: Time,
    /// Whether the service named that time; otherwise the loop guessed it.
    is_stated: bool,
    /// The reason in the service's words.
    why: String,
    by: LoopId,
    /// When the iteration began that met it.
    began: Time,
    /// When the loop's next try began, if only to wait: an answer to that try counts.
    met_at: Time,
}

impl MetLimit {
    /// The limit that a boundary reports, if any; `next` is the record after it. A loop that does
    /// not wait leaves only what the service stated.
    pub fn from_boundary(before: &Loop, seen: &AgentFacts, next: &Loop) -> Option<Self> {
        let Some(ApiError::Transient { message, reset, is_limit: true }) = &seen.agent.error else {
            return None;
        };
        Some(Self {
            until: next.state.wait().due().or(*reset)?,
            is_stated: reset.is_some_and(|reset| reset > next.state.time().began().wall),
            why: message.clone(),
            by: before.id.clone(),
            began: before.state.time().began().wall,
            met_at: next.state.time().began().wall,
        })
    }
}

/// Whether the model's service completed its answer to an iteration.
pub fn was_answered(agent: &AgentOutcome) -> bool {
    let is_whole = matches!(agent.process, None | Some(ProcessEnd::Exit(0)));
    is_whole && agent.error.is_none() && agent.closing == AgentClosing::Plain
}

/// A rate window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateWindow {
    pub account: AccountId,
    /// No loop starts an iteration by itself before this time.
    pub until: Time,
    pub why: String,
    pub met_by: LoopId,
    pub met_at: Time,
    /// When each loop returns or returned.
    pub turns: BTreeMap<LoopId, Time>,
    /// The loops that have returned. A loop may also sleep through its turn.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub back: BTreeSet<LoopId>,
}

impl RateWindow {
    /// The window after a limit was met. A current one that ends later is kept against a guess,
    /// and against an iteration that began before it was closed; a later try knows better.
    pub fn after_limit(
        known: Option<Self>,
        account: AccountId,
        limit: MetLimit,
        now: Time,
    ) -> Self {
        let kept = known.filter(|known| {
            let is_same = known.until <= limit.until && limit.until - known.until <= SAME_LIMIT;
            let is_longer = known.until > limit.until;
            let knows_better = known.met_at > limit.began || !limit.is_stated;
            known.is_closed(now) && ((is_longer && knows_better) || is_same)
        });
        if let Some(mut kept) = kept {
            // It tried, so it waits again, in a turn of its own.
            kept.back.remove(&limit.by);
            kept.turns.retain(|by, at| *by != limit.by || *at > now);
            kept.take_turn(&limit.by, now);
            return kept;
        }
        let turns = [(limit.by.clone(), limit.until)].into();
        let why = clip_line(&limit.why, WHY_CHARS);
        let MetLimit { until, by, met_at, .. } = limit;
        Self { account, until, why, met_by: by, met_at, turns, back: BTreeSet::new() }
    }

    /// Whether loops must still wait for it.
    pub fn is_closed(&self, now: Time) -> bool {
        now < self.until
    }

    /// Whether an answer of the service to an iteration that began then shows that the limit is
    /// over. An iteration from before it was met shows nothing.
    pub fn is_disproved_by(&self, began: Time, now: Time) -> bool {
        self.is_closed(now) && began >= self.met_at
    }

    /// The window that a loop found open: the others return after it.
    pub fn when_opened(self, by: &LoopId, now: Time) -> Self {
        let (turns, back) = ([(by.clone(), now)].into(), [by.clone()].into());
        Self { until: now, turns, back, ..self }
    }

    /// The loop's turn, claimed if it has none; `None` where it may start now. One that overslept
    /// its turn starts apart from the others, too.
    pub fn take_turn(&mut self, by: &LoopId, now: Time) -> Option<Time> {
        if !self.may_hold_back(by, now) {
            return None;
        }
        let known = self.turns.get(by).copied();
        if let Some(at) = known.filter(|at| *at > now) {
            return Some(at);
        }
        let returns = self.turns.iter().filter(|(by, _)| self.back.contains(*by));
        let last = returns.map(|(_, at)| *at).filter(|at| *at <= now).max();
        if known.is_some() && last.is_none_or(|last| now - last >= LEAST_APART) {
            self.turns.insert(by.clone(), now);
            self.back.insert(by.clone());
            return None;
        }
        let free = self.free_from();
        self.turns.insert(by.clone(), free);
        if self.turns.len() > TURNS_MAX {
            let oldest = self.turns.iter().min_by_key(|(_, at)| **at).map(|(by, _)| by.clone());
            oldest.map(|by| (self.back.remove(&by), self.turns.remove(&by)));
        }
        Some(free)
    }

    /// Frees the turn of a loop that is over: those behind it move up, and find that when they look
    /// again. Where one has returned, its start stays known.
    pub fn free_turn(&mut self, by: &LoopId, now: Time) {
        let Self { turns, back, .. } = self;
        if back.contains(by) {
            return;
        }
        let Some(left) = turns.remove(by) else { return };
        let mut free = left.max(now);
        let waiting = turns.iter_mut().filter(|(by, at)| !back.contains(*by) && **at > left);
        let mut behind: Vec<&mut Time> = waiting.map(|(_, at)| at).collect();
        behind.sort_unstable();
        for at in behind {
            *at = free.min(*at);
            free = *at + APART;
        }
    }

    /// Whether the window may delay this loop: others are still returning, or its own turn has not
    /// been used yet.
    pub fn may_hold_back(&self, by: &LoopId, now: Time) -> bool {
        let is_back = self.back.contains(by);
        !is_back && (self.turns.contains_key(by) || self.free_from() > now)
    }

    /// Whether a loop that waits for its turn until `due` should check again: the window was
    /// cleared, or closed again.
    pub fn has_moved(&self, by: &LoopId, due: Time) -> bool {
        self.turns.get(by).is_none_or(|at| *at < due)
    }

    /// When the next turn is free.
    pub fn free_from(&self) -> Time {
        self.turns.values().max().map_or(self.until, |last| self.until.max(*last + APART))
    }

    /// "limit met by loop k3vq7xwa: usage limit reached".
    pub fn wait_reason(&self) -> String {
        format!("limit met by loop {}: {}", self.met_by, self.why)
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
