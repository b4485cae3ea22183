//! The slots of this machine, in each of which a loop of a fleet runs one iteration, and the queue
//! for them. It needs no daemon: a slot is an exclusive lock on `$CREW_HOME/slots/<number>`, and a
//! ticket in `$CREW_HOME/slots/queue` is a file that its owner keeps locked. The kernel releases
//! both when a process dies. `$CREW_HOME` must be local to the machine: a network file system may
//! grant one lock twice. Nothing here waits; the caller decides how often to poll.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::clock;
use super::files::disk::{self, Lock};
use crate::home::Home;
#[cfg(test)]
use engine::fleet::SLOTS_MAX;
use engine::fleet::{SlotCount, SlotTicket, default_slots};

/// The maximum number of queue entries read. Further tickets wait until there are fewer.
const QUEUE_MAX: usize = 4096;
/// How long a ticket may take from its file's creation to its name.
const DRAFT_AGE: TimeDelta = TimeDelta::minutes(1);
/// A ticket whose owner has not polled for so long is passed over until it polls again: otherwise a
/// stopped process would keep everybody from the free slots.
const SILENCE: Duration = Duration::from_secs(60);

/// The value of [`OWN`] while this process has no slot.
const NONE: u32 = u32::MAX;
/// The slot that this process holds.
static OWN: AtomicU32 = AtomicU32::new(NONE);

/// The number of the slot that this process holds now, if it holds one.
pub fn own_number() -> Option<u32> {
    Some(OWN.load(Ordering::Relaxed)).filter(|number| *number != NONE)
}

/// A slot that this process holds; dropping it frees it. A process must hold at most one.
#[derive(Debug)]
#[must_use]
pub struct Slot {
    number: u32,
    _lock: Lock,
}

impl Slot {
    /// The slot's number, from 0. Exclusive resources, such as a port, can be derived from it.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A newer slot's number stays in force for children.
        let relaxed = Ordering::Relaxed;
        let _ = OWN.compare_exchange(self.number, NONE, relaxed, relaxed);
    }
}

/// A ticket in the queue; dropping it leaves the queue.
#[derive(Debug)]
#[must_use]
pub struct SlotQueue {
    folder: PathBuf,
    ticket: SlotTicket,
    /// The lock on the ticket's file, until there is a slot.
    lock: Option<Lock>,
    ahead: usize,
}

impl SlotQueue {
    /// Joins the queue for one of the first `slots` slots. `priority` is 0 to 9, 9 being the most
    /// urgent. Errors come from the disk.
    pub fn join(home: &Home, priority: u8, slots: u32) -> io::Result<Self> {
        static JOINED: AtomicU32 = AtomicU32::new(0);
        let counter = JOINED.fetch_add(1, Ordering::Relaxed);
        let at = clock::now().wall;
        let ticket = SlotTicket::new(priority, slots, at, std::process::id(), counter);
        let mut queue = Self { folder: home.slots_folder(), ticket, lock: None, ahead: 0 };
        disk::make_private_folder(&queue.folder.join("queue"))?;
        // It gets its name once it is locked: an unlocked ticket counts as a dead owner's.
        let draft = queue.ticket_file(&format!(".{}", queue.ticket));
        let lock = disk::take_lock(&draft, Duration::ZERO)?;
        queue.lock = Some(lock.ok_or_else(|| io::Error::other("the new ticket's lock is held"))?);
        disk::rename(&draft, &queue.ticket_file(&queue.ticket.to_string()))?;
        Ok(queue)
    }

    /// Takes a slot if it is this ticket's turn and one is free; never waits. Poll at least every
    /// half minute: after [`SILENCE`] others go first. A queue gives only one slot.
    pub fn poll(&mut self) -> io::Result<Option<Slot>> {
        if self.lock.is_none() {
            return Ok(None);
        }
        let now = clock::now().wall;
        if let Some(mine) = disk::open_file(&self.ticket_file(&self.ticket.to_string()))? {
            mine.set_modified(now.into())?;
        }
        let mut before = self.ticket.those_before(self.list_waiting(now)?, now);
        let passed = before.iter().take_while(|ticket| self.is_passed(ticket, now)).count();
        before.drain(..passed);
        self.ahead = before.len();
        for number in self.ticket.may_take(&before) {
            let lock = disk::take_lock(&self.folder.join(number.to_string()), Duration::ZERO)?;
            if let Some(lock) = lock {
                self.leave_queue();
                OWN.store(number, Ordering::Relaxed);
                return Ok(Some(Slot { number, _lock: lock }));
            }
        }
        Ok(None)
    }

    /// How many were ahead at the last poll. A dead owner counts until it is the first.
    pub fn count_ahead(&self) -> usize {
        self.ahead
    }

    /// The tickets in the queue. Removes files left by a process that died before it named its
    /// ticket.
    fn list_waiting(&self, now: DateTime<Utc>) -> io::Result<Vec<SlotTicket>> {
        let names = disk::list_names(&self.folder.join("queue"), QUEUE_MAX)?;
        for name in names.iter().filter(|name| name.starts_with('.')) {
            let draft = SlotTicket::of_name(&name[1..]);
            if draft.is_some_and(|draft| draft.time_waited(now) > DRAFT_AGE) {
                self.remove_if_dead(name);
            }
        }
        Ok(names.iter().filter_map(|name| SlotTicket::of_name(name)).collect())
    }

    /// Removes a file of the queue if its owner is dead, and returns whether that is so.
    fn remove_if_dead(&self, name: &str) -> bool {
        let file = self.ticket_file(name);
        let is_dead = !disk::is_locked(&file);
        if is_dead {
            // What cannot be removed, such as a folder, is passed over each time.
            let _ = disk::remove(&file);
        }
        is_dead
    }

    /// Whether the owner of a ticket is dead or has not polled for too long.
    fn is_passed(&self, ticket: &SlotTicket, now: DateTime<Utc>) -> bool {
        let name = ticket.to_string();
        if self.remove_if_dead(&name) {
            return true;
        }
        let asked_ns = disk::stamp(&self.ticket_file(&name)).map_or(0, |(_, modified)| modified);
        i128::from(now.timestamp_micros()) * 1000 - asked_ns > SILENCE.as_nanos().cast_signed()
    }

    fn ticket_file(&self, name: &str) -> PathBuf {
        self.folder.join("queue").join(name)
    }

    fn leave_queue(&mut self) {
        if let Some(_held) = self.lock.take() {
            // If this fails, the file is still unlocked, and another process removes it.
            let _ = disk::remove(&self.ticket_file(&self.ticket.to_string()));
        }
    }
}

impl Drop for SlotQueue {
    fn drop(&mut self) {
        self.leave_queue();
    }
}

/// How many of the first `slots` slots are held now.
#[cfg(test)]
pub fn holders(home: &Home, slots: u32) -> u32 {
    let files =
        (0..slots.min(SLOTS_MAX)).map(|number| home.slots_folder().join(number.to_string()));
    files.map(|file| u32::from(disk::is_locked(&file))).sum()
}

/// The default number of slots on this machine. Its memory is known on Linux only.
pub fn default_count() -> SlotCount {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    default_slots(cores, memory_bytes())
}

#[cfg(target_os = "linux")]
fn memory_bytes() -> Option<u64> {
    let system = rustix::system::sysinfo();
    system.totalram.checked_mul(system.mem_unit.into())
}

#[cfg(not(target_os = "linux"))]
fn memory_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
