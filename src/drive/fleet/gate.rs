//! The attempt that a process is, and what it needs before an iteration: a slot, no request against
//! it, and a lease that says how far the task is. A heartbeat renews a lease that other machines
//! read. It judges nothing.

use std::cell::Cell;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;
use std::{io, thread};

use anyhow::{Error, Result, bail};

use super::memory::Memory;
use crate::drive::control;
use crate::drive::error_text::{error_text, git_trouble};
use crate::drive::run::round::{Admission, IterationGate};
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::fleet::{
    Carried, Fleet, FleetPlan, FleetRequest, JobPhase, Lease, TaskEnding, TaskId,
};
use crate::engine::git::GitTrouble;
use crate::engine::record::{Actor, Contract, Ending, Loop, LoopId, Outcome};
use crate::world::clock::{self, RetryPolicy, Stopwatch};
use crate::world::git;
use crate::world::git::land::{OwnTip, own_tip};
use crate::world::process::signals::Signals;
use crate::world::process::{Stop, descendants};
use crate::world::slots::{self, Line, Slot};
use crate::world::store::{self, Home, Kept, fleets};

/// The end of a loop whose task another attempt has taken.
pub const FENCED: &str = "another attempt has this task";

/// What became of an attempt.
#[derive(Debug)]
pub enum JobEnd {
    /// The task ended, now or before.
    Ended(TaskEnding),
    /// Another process works on it.
    Elsewhere,
    /// Another attempt has taken it over.
    Fenced,
    /// A person paused the fleet or its loop.
    Paused,
    /// A signal ended the attempt; the task waits for the next one.
    Interrupted,
    /// A landing sent the task back: another loop of it follows, by this lease.
    SentBack(Box<Lease>),
}

/// The attempt that this process is.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub home: &'a Home,
    pub memory: &'a Memory,
    pub fleet: &'a Fleet,
    pub lease: &'a Lease,
    pub attempt: &'a str,
    pub signals: &'a Signals,
    /// The loop that is over; `None` before that and where it is on another machine.
    pub record: Option<&'a Loop>,
}

/// Milliseconds between two looks for an order.
const ORDERS_MS: u64 = 5000;
/// The longest that one talk with the remote may take for such a look, which has two.
const ORDERS_WITHIN: Duration = Duration::from_secs(7);
/// Between two looks for a slot.
const ASKED: Duration = Duration::from_millis(50);

impl<'a> Job<'a> {
    /// Changes the task's lease, which takes in what its loop has used; `None` where another
    /// attempt has it.
    pub fn change_own(&self, change: impl Fn(&mut Lease)) -> Result<Option<Kept<Lease>>> {
        self.memory.change_own(self.lease.id(), self.attempt, |lease| {
            if let Some(record) = self.record {
                lease.carry(record);
            }
            change(lease);
        })
    }

    /// What a person has ordered of the task, as far as its memory answers now.
    pub fn order(&self) -> Option<FleetRequest> {
        // It is asked while a check runs, which nobody watches then.
        let memory = self.memory.clone().with_haste(self.signals, ORDERS_WITHIN);
        let fleet = memory.manifest().ok()?.value;
        fleet.order_of(self.lease.id()).map(|order| order.what)
    }

    pub fn is_cancelled(&self) -> bool {
        self.order() == Some(FleetRequest::Cancel)
    }

    /// Whether a signal has come or, by a look every five seconds, an order that is `meant`.
    pub fn ends_by(&self, meant: impl Fn(FleetRequest) -> bool) -> impl Fn() -> bool {
        let asked = Cell::new((Stopwatch::start(), false));
        move || {
            let (since, is_ordered) = asked.get();
            if since.elapsed_ms() >= ORDERS_MS && !is_ordered {
                asked.set((Stopwatch::start(), self.order().is_some_and(&meant)));
            }
            self.signals.times() > 0 || asked.get().1
        }
    }

    /// How many slots of this machine the fleet has now, as a person typed it last, which may be
    /// after the job began; 0 where the executor has given a place.
    fn slots(&self) -> u32 {
        let before = job_slots(self.fleet);
        let now = fleets::manifest(self.home, &self.fleet.name).ok().flatten();
        let now = now.map_or(0, |now| job_slots(&now.value));
        if before > 0 && now > 0 { now } else { before }
    }

    /// A slot for checks outside an iteration; those of a landing go before every task that waits
    /// for one. `waits` is called once if there is none at first. `None` where the executor has
    /// given a place, or `stop` came first.
    pub fn slot_for_checks(
        &self,
        priority: u8,
        stop: Stop<'_>,
        waits: impl FnOnce(),
    ) -> Result<Option<Slot>> {
        let slots = self.slots();
        if slots == 0 {
            return Ok(None);
        }
        let mut line = Line::join(self.home, priority, slots)?;
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

    /// A slot for the checks that run before the first iteration, if there are any.
    ///
    /// # Errors
    /// If a signal or a person's order ends the wait.
    pub fn slot_at_first(&self, contract: &Contract) -> Result<Option<Slot>> {
        if contract.before_the_first().next().is_none() {
            return Ok(None);
        }
        let stop = self.ends_by(|_| true);
        let mut has_waited = false;
        let waits = || {
            has_waited = true;
            self.shows(&JobPhase::Lines);
        };
        let slot = self.slot_for_checks(self.lease.task.priority, &stop, waits)?;
        if slot.is_none() && stop() {
            bail!("the wait for a slot was ended");
        }
        if has_waited {
            self.shows(&JobPhase::Prepares);
        }
        Ok(slot)
    }

    /// Says in the lease what the attempt does, for those who look on; nothing rests on it.
    fn shows(&self, phase: &JobPhase) {
        let _ = self.change_own(|lease| lease.set_phase(phase.clone()));
    }

    /// What ties the loop of the attempt to its fleet. Its remote is asked once each time.
    pub fn tie(self) -> JobTie<'a> {
        JobTie {
            memory: self.memory.clone().with_patience(self.signals, Duration::ZERO),
            line: None,
            slot: None,
            looked: None,
            stood_on: self.lease.stands_on.clone(),
            brought: None,
            job: self,
        }
    }
}

/// Milliseconds between two looks for an order while the job waits for a slot.
const LOOKED_MS: u64 = 1000;
/// How a remote that is away is asked to take the name of a loop before that begins without.
const NAMED: RetryPolicy = RetryPolicy::every(Duration::from_secs(1), Duration::from_secs(30 * 60));

/// The tie of one attempt.
pub(super) struct JobTie<'a> {
    job: Job<'a>,
    memory: Memory,
    line: Option<Line>,
    slot: Option<Slot>,
    looked: Option<Stopwatch>,
    /// The commit of the main branch that the branch was on, as far as is known.
    stood_on: Option<String>,
    /// The one that was brought last.
    brought: Option<String>,
}

impl JobTie<'_> {
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
        let kept = self.memory.change_own(self.job.lease.id(), self.job.attempt, |lease| {
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
    pub fn name(&self, record: &Loop, sink: &mut dyn EventSink) {
        if self.job.lease.loop_id.as_ref() == Some(&record.id) {
            return;
        }
        let mut is_told = false;
        let ends = self.job.ends_by(|_| true);
        let _ = clock::retry(
            NAMED,
            || ends() || store::breaks_off(self.job.home, &record.id),
            || {
                let named = self.write(record, &JobPhase::Prepares, None);
                // Any other fault is told as the iteration begins.
                let trouble = named.as_ref().err().and_then(git_trouble);
                let is_away = matches!(trouble, Some(GitTrouble::Network | GitTrouble::NoRemote));
                if is_away && !std::mem::replace(&mut is_told, true) {
                    sink.on_event(&RunEvent::Noted("waits for the remote, which is out of reach"));
                }
                if is_away { Err(()) } else { Ok(()) }
            },
        );
    }

    /// What the fleet wants of the loop, if anything. One that began before the fleet's money had a
    /// limit stops, and gets its share with its next start.
    fn ordered(&mut self, record: &Loop) -> Option<Admission> {
        if self.looked.as_ref().is_some_and(|looked| looked.elapsed_ms() < LOOKED_MS) {
            return None;
        }
        self.looked = Some(Stopwatch::start());
        let fleet = self.memory.manifest().ok()?.value;
        let is_unlimited = record.contract.limits.max_cost_micros == 0;
        let lacks_a_share = fleet.max_cost_micros > 0 && is_unlimited;
        match fleet.order_of(self.job.lease.id()) {
            Some(order) if order.what == FleetRequest::Cancel => {
                Some(Admission::Ends(order.ending()))
            }
            Some(_) => Some(Admission::Paused),
            None => lacks_a_share.then_some(Admission::Paused),
        }
    }

    /// Passes a person's messages on to the loop. One that it cannot take now stays in the lease.
    fn deliver(&self, record: &Loop) {
        let Ok(kept) = self.memory.lease(self.job.lease.id()) else { return };
        for words in kept.value.messages {
            if control::tell(self.job.home, &record.id, &words).is_err() {
                return;
            }
            let _ = self.memory.change(self.job.lease.id(), |lease| {
                let found = lease.messages.iter().position(|known| *known == words);
                found.map(|at| lease.messages.remove(at)).is_some()
            });
        }
    }

    /// Brings the main branch of the remote into the checkout: the iteration begins with a rebase
    /// onto it. Without an answer of the remote it begins without.
    fn bring_main(&mut self, record: &Loop) {
        let Fleet { remote: Some(remote), base, .. } = self.job.fleet else { return };
        let name = remote.tracked(base);
        if let Ok(Some(commit)) = self.memory.bring(base, &record.place.checkout, &name) {
            self.stood_on = self.stands_on(record);
            self.brought = Some(commit);
        }
    }

    /// The commit of the main branch that the branch is on now: the one that was brought last, if a
    /// rebase onto it has worked.
    fn stands_on(&self, record: &Loop) -> Option<String> {
        let checkout = &record.place.checkout;
        let is_in = |commit: &&String| git::lacking(checkout, commit, "HEAD") == Some(0);
        self.brought.as_ref().filter(is_in).or(self.stood_on.as_ref()).cloned()
    }

    /// An iteration begins in the slot that was taken. Returns the end of a loop that may not
    /// continue.
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

    /// Takes a slot, or says how many are before it in the line.
    fn take_slot(&mut self) -> io::Result<Option<usize>> {
        let line = if let Some(line) = &mut self.line {
            line
        } else {
            let slots = self.job.slots();
            if slots == 0 {
                return Ok(None);
            }
            self.line.insert(Line::join(self.job.home, self.job.lease.task.priority, slots)?)
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

impl IterationGate for JobTie<'_> {
    fn admit(&mut self, record: &Loop) -> Admission {
        if let Some(ordered) = self.ordered(record) {
            self.line = None;
            return ordered;
        }
        let is_new = self.line.is_none();
        match self.take_slot() {
            Ok(None) => {
                self.bring_main(record);
                self.begins(record).map_or(Admission::Granted, Admission::Ends)
            }
            Ok(Some(ahead)) => {
                if is_new && let Some(fenced) = self.say(record, &JobPhase::Lines, None) {
                    return Admission::Ends(fenced);
                }
                let before =
                    if ahead == 0 { String::new() } else { format!(", {ahead} before it") };
                Admission::Later(format!("a slot{before}"))
            }
            Err(error) => Admission::Later(format!("a slot, which cannot be had: {error}")),
        }
    }

    fn stood_on(&self) -> Option<String> {
        self.stood_on.clone()
    }

    fn wait_began(&mut self, record: &Loop) {
        self.slot = None;
        let why = record.state.wait_reason.clone().unwrap_or_default();
        self.say(record, &JobPhase::Rests { until: record.state.due, why }, None);
    }

    fn iteration_ended(&mut self, record: &Loop) -> Option<Ending> {
        self.slot = None;
        self.say(record, &JobPhase::Lines, tip(record).commit.as_deref())
    }
}

/// Between two beats.
const BEAT: Duration = Duration::from_secs(60);

/// Has a heartbeat renew the lease until what is returned is dropped; `None` where no other machine
/// reads it. A remote that does not answer is asked again at the next beat.
pub fn heartbeat(home: &Home, memory: Memory, task: &TaskId, attempt: &str) -> Option<Sender<()>> {
    if !memory.is_shared() {
        return None;
    }
    let (heart, over) = mpsc::channel();
    let (home, task, attempt) = (home.clone(), task.clone(), attempt.to_owned());
    // git dies with the thread that started it, so this one stays for as long as it beats.
    thread::spawn(move || {
        let mut own_loop = None;
        while over.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            descendants::beside(|| beat(&home, &memory, &task, &attempt, &mut own_loop));
        }
    });
    Some(heart)
}

/// Renews the lease. A loop whose task another attempt has taken is ended, and one that rests, and
/// would only ask after that, obeys what the fleet has ordered.
fn beat(home: &Home, memory: &Memory, task: &TaskId, attempt: &str, own_loop: &mut Option<LoopId>) {
    let Ok(kept) = memory.change_own(task, attempt, |lease| lease.at = clock::now().wall) else {
        return;
    };
    let Some(Kept { value: lease, .. }) = kept else {
        if let Some(id) = own_loop {
            let _ = store::order_cancel(home, id, Actor::User, Some(FENCED));
        }
        return;
    };
    own_loop.clone_from(&lease.loop_id);
    let Some(id) = lease.loop_id.as_ref().filter(|_| lease.rests()) else { return };
    let Ok(fleet) = memory.manifest() else { return };
    let Some(order) = fleet.value.order_of(task) else { return };
    let _ = match order.what {
        FleetRequest::Pause => store::order_pause(home, id, order.by, true),
        FleetRequest::Cancel => store::order_cancel(home, id, order.by, order.reason.as_deref()),
    };
}

/// How many tasks of a fleet run at once. A cluster gives each job its place by itself.
fn slots_of(fleet: &Fleet) -> u32 {
    match fleet.slots {
        0 if !fleet.is_local() => u32::MAX,
        0 => slots::default_count().count,
        slots => slots,
    }
}

/// What may start here. Unless `all` leases are known, nobody knows what is left of the fleet's
/// money.
pub fn plan(fleet: &Fleet, leases: &[Lease], all: bool) -> FleetPlan {
    let slots = usize::try_from(slots_of(fleet)).unwrap_or(usize::MAX);
    let plan = FleetPlan::of(fleet, leases, slots);
    let is_unknown = fleet.max_cost_micros > 0 && !all;
    if is_unknown { plan.without_money() } else { plan }
}

/// How many slots of its machine a job of the fleet shares; 0 where the executor has given it a
/// place.
fn job_slots(fleet: &Fleet) -> u32 {
    if fleet.is_local() { slots_of(fleet) } else { 0 }
}

/// What an error says, without the way out.
pub(super) fn first_line(error: &Error) -> String {
    error_text(error).lines().next().unwrap_or_default().to_owned()
}
