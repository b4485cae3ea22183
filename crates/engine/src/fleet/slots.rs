//! The queue in which loops wait for a slot of their machine: who is before whom, and which slots
//! are left for whom. A ticket is the name of a file and nothing else; a name that is not written
//! as tickets are is refused. It reads no file and does not know who is still alive.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::task::MAX_PRIORITY;
use crate::text;

/// The most slots of one machine.
pub const SLOTS_MAX: u32 = 1024;
/// After each such wait a ticket counts as one priority more urgent, so that nobody starves.
const AGEING: TimeDelta = TimeDelta::minutes(10);

/// A place in the queue, as the name of its file says it:
/// `<priority>-<arrival>-<process>-<counter>-<slots>`, the arrival in microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotTicket {
    // The order of the fields is that of tickets that are equally urgent.
    arrived_us: u64,
    process: u32,
    counter: u32,
    priority: u8,
    slots: u32,
}

impl SlotTicket {
    /// The ticket of a loop that came `at` that time and may use the first `slots` slots. `counter`
    /// tells apart the tickets of one process. What is out of range becomes the nearest in it.
    pub fn new(priority: u8, slots: u32, at: DateTime<Utc>, process: u32, counter: u32) -> Self {
        Self {
            arrived_us: to_microseconds(at),
            process,
            counter,
            priority: priority.min(MAX_PRIORITY),
            slots: slots.clamp(1, SLOTS_MAX),
        }
    }

    /// The ticket that a file's name says; `None` for any other name.
    pub fn of_name(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.split('-').collect();
        let &[priority, arrived_us, process, counter, slots] = parts.as_slice() else {
            return None;
        };
        let ticket = Self {
            arrived_us: arrived_us.parse().ok()?,
            process: process.parse().ok()?,
            counter: counter.parse().ok()?,
            priority: priority.parse().ok().filter(|priority| *priority <= MAX_PRIORITY)?,
            slots: slots.parse().ok().filter(|slots| (1..=SLOTS_MAX).contains(slots))?,
        };
        // `+7` and `007` are numbers, too, but no ticket is written like that.
        (ticket.to_string() == name).then_some(ticket)
    }

    /// How long it has waited; zero if the clock was set back since.
    pub fn time_waited(&self, now: DateTime<Utc>) -> TimeDelta {
        let waited = to_microseconds(now).saturating_sub(self.arrived_us);
        TimeDelta::microseconds(i64::try_from(waited).unwrap_or(i64::MAX))
    }

    /// The tickets of `queue` that come before this one, the first one first.
    pub fn those_before(&self, queue: Vec<Self>, now: DateTime<Utc>) -> Vec<Self> {
        let mine = self.rank(now);
        let mut before: Vec<Self> =
            queue.into_iter().filter(|ticket| ticket.rank(now) < mine).collect();
        before.sort_by_cached_key(|ticket| ticket.rank(now));
        before
    }

    fn rank(&self, now: DateTime<Utc>) -> (Reverse<u64>, Self) {
        (Reverse(self.urgency(now)), self.clone())
    }

    /// The slots that it may take behind `before`: those that none of them may use. So only the
    /// first in the queue takes one, unless its loop may use fewer than those behind it.
    pub fn may_take(&self, before: &[Self]) -> Range<u32> {
        before.iter().map(|ticket| ticket.slots).max().unwrap_or(0)..self.slots
    }

    /// Its priority with what waiting has added to it.
    fn urgency(&self, now: DateTime<Utc>) -> u64 {
        let aged = self.time_waited(now).num_seconds() / AGEING.num_seconds();
        let urgency = u64::from(self.priority).saturating_add(u64::try_from(aged).unwrap_or(0));
        urgency.min(MAX_PRIORITY.into())
    }
}

fn to_microseconds(at: DateTime<Utc>) -> u64 {
    u64::try_from(at.timestamp_micros()).unwrap_or(0)
}

impl fmt::Display for SlotTicket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arrived_us, process, counter, priority, slots } = self;
        write!(out, "{priority}-{arrived_us}-{process}-{counter}-{slots}")
    }
}

/// The memory that one slot is meant to have, in bytes: an agent and its checks.
const SLOT_BYTES: u64 = 2_000_000_000;
/// The most slots that a machine gets unless a person asks for more.
const DEFAULT_MAX: u64 = 4;

/// A number of slots, with a sentence that says why: "2 slots: half of 4 cores".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlotCount {
    pub count: u32,
    pub why: String,
}

/// The slots of a machine for which nobody named a number: half its cores, one for every 2 GB of
/// its memory if that is known, at most 4 and at least 1.
pub fn default_slots(cores: usize, memory_bytes: Option<u64>) -> SlotCount {
    let cores = cores as u64;
    let by_cores = (cores / 2, "half of", text::count(cores, "core"));
    let by_memory = memory_bytes.map(|bytes| {
        let tenths = bytes / 100_000_000;
        let memory = format!("{}.{} GB of memory", tenths / 10, tenths % 10);
        (bytes / SLOT_BYTES, "2 GB for each, of", memory)
    });
    let by_default = (DEFAULT_MAX, "the most", "unless more are asked for".to_owned());
    let limits = [Some(by_cores), by_memory, Some(by_default)].into_iter().flatten();
    let (limit, rule, of) = limits.min_by_key(|(limit, ..)| *limit).unwrap_or_default();
    let (count, rule) = match u32::try_from(limit) {
        Ok(0) | Err(_) => (1, "the least, with"),
        Ok(limit) => (limit, rule),
    };
    SlotCount { count, why: format!("{}: {rule} {of}", text::count(count, "slot")) }
}

// How often a fleet is looked at: often while something changes, ever less often while nothing
// does. A remote and a cluster answer many others. It reads no clock.

/// The time from one look to the next.
#[derive(Debug)]
pub struct Pace {
    least: Duration,
    most: Duration,
    pause: Duration,
}

impl Pace {
    /// A pause of `least` at first, and of `most` in the end.
    pub fn from_bounds(least: Duration, most: Duration) -> Self {
        Self { least, most, pause: least }
    }

    /// The pause after a look. It doubles as long as nothing has changed.
    pub fn next_pause(&mut self, has_changed: bool) -> Duration {
        if has_changed {
            self.pause = self.least;
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(self.most);
        pause
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;

#[cfg(test)]
mod pace_tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_most_and_a_change_brings_the_least_back() {
        let mut pace = Pace::from_bounds(Duration::from_secs(1), Duration::from_secs(15));
        let changes = [true, true, false, false, false, false, false, true, false];
        let pauses = changes.map(|has_changed| pace.next_pause(has_changed).as_secs());
        assert_eq!(pauses, [1, 1, 2, 4, 8, 15, 15, 1, 2]);
        let mut even = Pace::from_bounds(Duration::from_millis(100), Duration::from_millis(100));
        assert_eq!([false, true, false].map(|it| even.next_pause(it).as_millis()), [100; 3]);
    }
}
