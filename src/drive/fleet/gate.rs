//! What a job needs before an iteration: a slot, no request against it, and a lease that says how
//! far the task is. A heartbeat renews a lease that other machines read. It judges nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

use anyhow::{Error, Result};

use super::executors::MANUAL;
use super::memory::{self, Memory};
use crate::drive::control;
use crate::drive::error_text::{error_text, git_trouble};
use crate::drive::run::round::{Leave, Tie};
use crate::engine::fleet::{
    Attempt, Carried, Fleet, FleetPlan, FleetRequest, JobPhase, Lease, Places, TaskId, WaitsFor,
};
use crate::engine::git::GitTrouble;
use crate::engine::record::{Actor, Ending, Loop, LoopId, Outcome};
use crate::world::clock::{self, Stopwatch};
use crate::world::git::land::{OwnTip, own_tip};
use crate::world::git::{self, hub};
use crate::world::process::{Stop, descendants};
use crate::world::slots::{self, Line, Slot};
use crate::world::store::{self, Home, Kept, fleets};

/// Milliseconds between two looks for an order while the job waits for a slot, and between two
/// requests of a remote that is away.
const ORDERS_MS: u64 = 1000;
/// Milliseconds that a loop waits for its remote before its first iteration begins without.
const NAMED_WITHIN_MS: u64 = 30 * 60 * 1000;

/// The end of a loop whose task another attempt has taken.
pub const FENCED: &str = "another attempt has this task";

/// The tie of one attempt.
pub struct JobTie {
    pub home: Home,
    pub memory: Memory,
    pub task: TaskId,
    /// The attempt that this process is.
    pub attempt: String,
    pub priority: u8,
    /// How many slots this machine has for the fleet; 0 where the engine has given a place.
    pub slots: u32,
    /// The loop that the lease is known to name.
    pub named: Option<LoopId>,
    /// Since when the remote has not answered, and since when it was not asked again.
    pub unheard: Option<[Stopwatch; 2]>,
    /// The remote's name and main branch, where the fleet has one.
    pub main: Option<(String, String)>,
    pub line: Option<Line>,
    pub slot: Option<Slot>,
    pub looked: Option<Stopwatch>,
    /// The commit of the main branch that the branch was on, as far as is known.
    pub stood_on: Option<String>,
    /// The one that was brought last.
    pub brought: Option<String>,
}

impl JobTie {
    /// Says in the lease what the attempt does, how far its loop is and, if it is known, the commit
    /// of its branch, which other machines then see.
    fn say(&self, record: &Loop, phase: &JobPhase, commit: Option<&str>) -> Option<Ending> {
        match self.write(record, phase, commit) {
            Ok(false) => Some(Ending::new(Outcome::Cancelled, FENCED)),
            // A lease that the remote does not take needs a person; any other fault may be over by
            // the next time.
            Err(error) if git_trouble(&error)?.needs_a_person() => {
                Some(Ending::new(Outcome::Blocked, first_line(&error)))
            }
            Ok(true) | Err(_) => None,
        }
    }

    /// Writes it into the lease. False where another attempt has the task.
    fn write(&self, record: &Loop, phase: &JobPhase, commit: Option<&str>) -> Result<bool> {
        let stands_on = self.stands_on(record);
        let kept = self.memory.change_own(&self.task, &self.attempt, |lease| {
            lease.set_phase(phase.clone());
            lease.loop_id = Some(record.id.clone());
            // A loop that runs has taken them.
            (lease.is_renewed, lease.is_retried, lease.loop_end) = (false, false, None);
            let before = std::mem::replace(&mut lease.carried, Carried::of(record));
            if record.state.evidence.is_none() {
                // Whoever looks from time to time still learns how the last iteration ended.
                lease.carried.last = before.last;
            }
            if let Some(commit) = commit {
                lease.commit = Some(commit.to_owned());
            }
            lease.stands_on.clone_from(&stands_on);
            lease.at = clock::now().wall;
        })?;
        Ok(kept.is_some())
    }

    /// Has the lease name a new loop before its first iteration, and waits for its remote, though
    /// not for ever: the work of one that no lease names would be done again, and counted to no
    /// limit.
    fn wait_for_name(&mut self, record: &Loop) -> Option<Leave> {
        let later = || Some(Leave::Later("the remote, which is out of reach".to_owned()));
        if self.named.as_ref() == Some(&record.id) {
            return None;
        }
        if let Some([since, asked]) = self.unheard {
            if since.elapsed_ms() >= NAMED_WITHIN_MS {
                return None;
            }
            if asked.elapsed_ms() < ORDERS_MS {
                return later();
            }
        }
        let error = match self.write(record, &JobPhase::Prepares, None) {
            Ok(true) => {
                self.named = Some(record.id.clone());
                return None;
            }
            Ok(false) => return Some(Leave::Ends(Ending::new(Outcome::Cancelled, FENCED))),
            Err(error) => error,
        };
        // Any other fault is told as the iteration begins.
        let is_away = matches!(git_trouble(&error)?, GitTrouble::Network | GitTrouble::NoRemote);
        let now = Stopwatch::start();
        self.unheard = is_away.then(|| [self.unheard.map_or(now, |[since, _]| since), now]);
        if is_away { later() } else { None }
    }

    /// What the fleet wants of the loop, if anything. One that began before the fleet's money had a
    /// limit stops, and gets its share with its next start.
    fn ordered(&mut self, record: &Loop) -> Option<Leave> {
        if self.looked.as_ref().is_some_and(|looked| looked.elapsed_ms() < ORDERS_MS) {
            return None;
        }
        self.looked = Some(Stopwatch::start());
        let fleet = self.memory.manifest().ok()?.value;
        let is_unlimited = record.contract.limits.max_cost_micros == 0;
        let lacks_a_share = fleet.max_cost_micros > 0 && is_unlimited;
        match fleet.order_of(&self.task) {
            Some(order) if order.what == FleetRequest::Cancel => Some(Leave::Ends(order.ending())),
            Some(_) => Some(Leave::Paused),
            None => lacks_a_share.then_some(Leave::Paused),
        }
    }

    /// Passes a person's messages on to the loop. One that it cannot take now stays in the lease.
    fn deliver(&self, record: &Loop) {
        let Ok(kept) = self.memory.lease(&self.task) else { return };
        for words in kept.value.messages {
            if control::tell(&self.home, &record.id, &words).is_err() {
                return;
            }
            let _ = self.memory.change(&self.task, |lease| {
                let found = lease.messages.iter().position(|known| *known == words);
                found.map(|at| lease.messages.remove(at)).is_some()
            });
        }
    }

    /// Brings the main branch of the remote into the checkout: the iteration begins with a rebase
    /// onto it. Without an answer of the remote it begins without.
    fn bring_main(&mut self, record: &Loop) {
        let (Some(hub), Some((remote, base))) = (self.memory.hub(), &self.main) else { return };
        if let Ok(Some(commit)) = self.memory.fetch_branch(base) {
            let name = format!("refs/remotes/{remote}/{base}");
            if hub::give(hub, &record.place.checkout, &commit, &name).is_ok() {
                self.stood_on = self.stands_on(record);
                self.brought = Some(commit);
            }
        }
    }

    /// The commit of the main branch that the branch is on now: the one that was brought last, if a
    /// rebase onto it has worked.
    fn stands_on(&self, record: &Loop) -> Option<String> {
        let checkout = &record.place.checkout;
        let is_in = |commit: &&String| git::lacking(checkout, commit, "HEAD") == Some(0);
        self.brought.as_ref().filter(is_in).or(self.stood_on.as_ref()).cloned()
    }

    fn take_slot(&mut self) -> io::Result<Option<usize>> {
        if self.slots == 0 {
            return Ok(None);
        }
        let line = if let Some(line) = &mut self.line {
            line
        } else {
            self.slots = slots_now(&self.home, &self.memory.fleet, self.slots);
            self.line.insert(Line::join(&self.home, self.priority, self.slots)?)
        };
        self.slot = line.poll()?;
        if self.slot.is_none() {
            return Ok(Some(line.ahead()));
        }
        self.line = None;
        Ok(None)
    }
}

/// What a loop's working tree has of the task's branch.
pub fn tip(record: &Loop) -> OwnTip {
    let checkout = &record.place.checkout;
    match record.branch() {
        Some(branch) => own_tip(checkout, branch),
        None => OwnTip { commit: git::head(checkout).1, astray: None },
    }
}

impl Tie for JobTie {
    fn leave(&mut self, record: &Loop) -> Leave {
        if let Some(ordered) = self.ordered(record) {
            self.line = None;
            return ordered;
        }
        if let Some(unnamed) = self.wait_for_name(record) {
            return unnamed;
        }
        let is_new = self.line.is_none();
        match self.take_slot() {
            Ok(None) => {
                self.bring_main(record);
                Leave::Granted
            }
            Ok(Some(ahead)) => {
                if is_new && let Some(fenced) = self.say(record, &JobPhase::Lines, None) {
                    return Leave::Ends(fenced);
                }
                let before =
                    if ahead == 0 { String::new() } else { format!(", {ahead} before it") };
                Leave::Later(format!("a slot{before}"))
            }
            Err(error) => Leave::Later(format!("a slot, which cannot be had: {error}")),
        }
    }

    fn begins(&mut self, record: &Loop) -> Option<Ending> {
        let slot = self.slot.as_ref().map(Slot::number);
        let since = clock::now().wall;
        let fenced = self.say(record, &JobPhase::Works { slot, since }, None);
        self.looked = None;
        if fenced.is_none() {
            self.deliver(record);
        }
        fenced
    }

    fn stood_on(&self) -> Option<String> {
        self.stood_on.clone()
    }

    fn rests(&mut self, record: &Loop) {
        self.slot = None;
        let why = record.state.wait_reason.clone().unwrap_or_default();
        self.say(record, &JobPhase::Rests { until: record.state.due, why }, None);
    }

    fn is_over(&mut self, record: &Loop) -> Option<Ending> {
        self.slot = None;
        self.say(record, &JobPhase::Lines, tip(record).commit.as_deref())
    }
}

/// Milliseconds between two beats.
const BEAT_MS: u64 = 60_000;
/// Between two looks whether the attempt is over.
const LOOK: Duration = Duration::from_millis(200);

/// Beats until it is dropped.
pub struct Heartbeat(Arc<AtomicBool>);

impl Heartbeat {
    /// Begins; `None` where no other machine reads the lease.
    pub fn start(home: &Home, memory: &Memory, task: &TaskId, attempt: &str) -> Option<Self> {
        if !memory.is_shared() {
            return None;
        }
        let over = Arc::new(AtomicBool::new(false));
        let heartbeat = Self(Arc::clone(&over));
        let (home, memory) = (home.clone(), memory.clone());
        let (task, attempt) = (task.clone(), attempt.to_owned());
        // git dies with the thread that started it, so this one stays for as long as it beats.
        thread::spawn(move || {
            let (mut last, mut own_loop) = (Stopwatch::start(), None);
            while !over.load(Ordering::Relaxed) {
                if last.elapsed_ms() >= BEAT_MS {
                    last = Stopwatch::start();
                    let beat = || beat(&home, &memory, &task, &attempt, &mut own_loop);
                    descendants::beside(beat);
                }
                clock::sleep(LOOK);
            }
        });
        Some(heartbeat)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One beat. A remote that does not answer is asked again at the next one.
fn beat(home: &Home, memory: &Memory, task: &TaskId, attempt: &str, own_loop: &mut Option<LoopId>) {
    match memory.change_own(task, attempt, |lease| lease.at = clock::now().wall) {
        Ok(Some(Kept { value: lease, .. })) => {
            own_loop.clone_from(&lease.loop_id);
            if let (true, Some(id)) = (lease.rests(), own_loop) {
                wake(home, memory, task, id);
            }
        }
        Ok(None) => {
            if let Some(id) = own_loop {
                let _ = store::order_cancel(home, id, Actor::User, Some(FENCED));
            }
        }
        Err(_) => {}
    }
}

/// Passes an order of the fleet on to a loop that rests, and would only ask after that.
fn wake(home: &Home, memory: &Memory, task: &TaskId, id: &LoopId) {
    let Ok(fleet) = memory.manifest() else { return };
    let Some(order) = fleet.value.order_of(task) else { return };
    let _ = match order.what {
        FleetRequest::Pause => store::order_pause(home, id, order.by, true),
        FleetRequest::Cancel => store::order_cancel(home, id, order.by, order.reason.as_deref()),
    };
}

/// How many tasks of a fleet run at once. A cluster gives each job its place by itself, and nobody
/// counts the jobs that are started by hand.
pub fn slots_of(fleet: &Fleet) -> usize {
    let slots = match fleet.slots {
        _ if fleet.engine == MANUAL => u32::MAX,
        0 if !fleet.is_local() => u32::MAX,
        0 => slots::default_count().count,
        slots => slots,
    };
    usize::try_from(slots).unwrap_or(usize::MAX)
}

/// What may start here, `slots` tasks at once: what another machine works on takes none of them
/// where each has slots of its own. Unless `all` leases are known, nobody knows what is left of the
/// fleet's money.
pub fn plan(home: &Home, fleet: &Fleet, leases: &[Lease], slots: usize, all: bool) -> FleetPlan {
    let takes_one = |attempt: &Attempt| !fleet.is_local() || memory::is_here(home, attempt);
    let plan = FleetPlan::of(fleet, leases, Places { slots, takes_one: &takes_one });
    let is_unknown = fleet.max_cost_micros > 0 && !all;
    if is_unknown { plan.waiting_for(&WaitsFor::Money) } else { plan }
}

/// How many slots of its machine a job of the fleet shares; 0 where the executor has given it a
/// place.
pub fn job_slots(fleet: &Fleet) -> u32 {
    if fleet.is_local() { u32::try_from(slots_of(fleet)).unwrap_or(1) } else { 0 }
}

/// The same as a person typed it last on this machine, which may be after the job began with
/// `before`.
pub(super) fn slots_now(home: &Home, fleet: &str, before: u32) -> u32 {
    let now = fleets::manifest(home, fleet).ok().flatten();
    let now = now.map_or(0, |now| job_slots(&now.value));
    if before > 0 && now > 0 { now } else { before }
}

/// Between two looks for a slot.
const ASKED: Duration = Duration::from_millis(50);

/// A slot of this machine for checks outside an iteration; those of a landing go before every task
/// that waits for one. `waits` is called once if there is none at first. `None` where `slots` is 0,
/// or `stop` came first.
pub(super) fn slot_for_checks(
    home: &Home,
    priority: u8,
    slots: u32,
    stop: Stop<'_>,
    waits: impl FnOnce(),
) -> Result<Option<Slot>> {
    if slots == 0 {
        return Ok(None);
    }
    let mut line = Line::join(home, priority, slots)?;
    let mut waits = Some(waits);
    loop {
        let slot = line.poll()?;
        if slot.is_some() || stop() {
            return Ok(slot);
        }
        if let Some(waits) = waits.take() {
            waits();
        }
        clock::sleep(ASKED);
    }
}

/// What an error says, without the way out.
pub(super) fn first_line(error: &Error) -> String {
    error_text(error).lines().next().unwrap_or_default().to_owned()
}
