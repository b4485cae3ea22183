//! A boundary in every driver: look → wants → gather → judge → decide → record. The sequence never
//! runs backwards. A driver may foresee the decision, but the final one is made on the current
//! record. The loop's lock is held to read and to record, never while a check runs. The boundary's
//! own lock is held throughout, so that a stop is counted only once.

pub mod gather;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use chrono::{DateTime, Utc};

use super::find::end_mark;
use super::windows::{self, LoopTurn};
use super::{end, tree};
use engine::boundary::decide::{
    Decision, Hold, apply_decision, decide_next, reconcile_records, wait_or_end,
};
use engine::boundary::facts::{ControlRequest, Facts};
use engine::boundary::judge::{Judged, judge_boundary};
use engine::evidence::test_run::TestMemories;
use engine::journal::{Choice, Event};
use engine::record::{
    Actor, Driver, EndReason, Ending, Loop, LoopId, Outcome, Pending, SessionMemory, Status,
    StopMark,
};
use engine::words::programs::ViewState;
use world::files::disk::{self, Durability, Lock};
use world::store::{self, Held, Home, LOCK_WAIT, StoreError, hash, view};
use world::{clock, recorded_environment};

/// A boundary whose lock is held.
#[derive(Debug)]
#[must_use]
pub struct Open {
    home: Home,
    /// The record as the boundary found it.
    pub before: Loop,
    /// The state of the view in the checkout, journalled with the record.
    view_state: ViewState,
    /// The boundary's lock; `None` for a boundary that is kept in memory only.
    lock: Option<Lock>,
}

/// What a driver adds to the record.
#[derive(Debug, Clone, Default)]
pub struct DriverNotes {
    pub memory: SessionMemory,
    /// The digest of the stop that this boundary judges, to recognise a second report of it.
    pub stop: Option<String>,
    /// An ending for a loop that would otherwise continue or wait.
    pub veto: Option<Ending>,
    /// An ending that replaces every decision except a pause or an end that needs the user just as
    /// much.
    pub lost: Option<Ending>,
    /// The turn for which a loop that would otherwise continue must wait.
    pub turn: Option<LoopTurn>,
    /// When a hold for background work ends.
    pub hold_until: Option<DateTime<Utc>>,
}

/// A recorded boundary.
#[derive(Debug)]
pub struct Boundary {
    pub after: Loop,
    pub decision: Decision,
    /// A note for the user, shown once.
    pub note: Option<String>,
    /// Whether to search for a better proof after the end.
    pub proves_later: bool,
}

/// A boundary just after it was recorded. No other process can record before these locks are
/// dropped.
#[derive(Debug)]
pub struct Recorded {
    pub boundary: Boundary,
    pub held: Held,
    pub lock: Option<Lock>,
}

/// Opens a boundary. `None` if another one is open, the loop has ended, or its start was
/// interrupted before it was recorded.
pub fn open_boundary(home: &Home, id: &LoopId) -> Result<Option<Open>> {
    if !store::is_there(home, id) {
        return Ok(None);
    }
    match store::boundary_lock(home, id, Duration::ZERO)? {
        Some(lock) => open_under(home, id, lock),
        None => Ok(None),
    }
}

/// Opens a boundary for a driver that has an attempt to count: `None` only for a loop that has
/// ended. A missing record and a lock that another process keeps are errors.
pub fn open_counting(home: &Home, id: &LoopId) -> Result<Option<Open>> {
    if !store::is_there(home, id) {
        return Err(StoreError::Absent(id.clone()).into());
    }
    let lock = patient_lock(home, id)?;
    open_under(home, id, lock)
}

fn patient_lock(home: &Home, id: &LoopId) -> Result<Lock> {
    store::boundary_lock(home, id, LOCK_WAIT)?
        .with_context(|| format!("another process is judging an iteration of loop {id}"))
}

fn open_under(home: &Home, id: &LoopId, lock: Lock) -> Result<Option<Open>> {
    let held = store::hold_loop(home, id, LOCK_WAIT)?;
    let before = held.load()?;
    drop(held);
    if !before.is_live() {
        end::complete_end(home, &before);
        return Ok(None);
    }
    if disk::exists(&end_mark(home, id)) {
        end::interrupt_run(home, id, EndReason::SessionEnded(None), LOCK_WAIT)?;
        return Ok(None);
    }
    end::end_groups(home, &before);
    Ok(Some(Open::for_record(home, before, Some(lock))))
}

/// Opens a boundary of a loop whose last boundaries could not be recorded, and first records their
/// results. `known` is the record as it was last on disk, `memory` the driver's later version.
/// `None` when the driver no longer has the loop: another process owns it, or it is paused or has
/// ended.
pub fn reopen_boundary(home: &Home, known: &Loop, memory: &Loop) -> Result<Option<Open>> {
    let lock = patient_lock(home, &memory.id)?;
    let before = recover_record(home, known, memory)?;
    let is_ours = *before.state.owner() == *memory.state.owner();
    if !is_ours || matches!(before.state.status(), Status::Paused | Status::Finished) {
        return Ok(None);
    }
    Ok(Some(Open::for_record(home, before, Some(lock))))
}

/// Records everything that is only in memory, merged with changes that other processes have made to
/// the record on disk since. A newer crew's record is never written.
pub fn recover_record(home: &Home, known: &Loop, memory: &Loop) -> Result<Loop> {
    let held = store::hold_loop(home, &memory.id, LOCK_WAIT)?;
    let next = match held.load() {
        Ok(found) if *found.state.owner() != *memory.state.owner() => return Ok(found),
        Ok(found) => reconcile_records(known, memory, &found),
        Err(StoreError::Absent(_) | StoreError::Corrupt { .. }) => memory.clone(),
        Err(error) => return Err(error.into()),
    };
    Ok(held.record(next, Event::from_memory)?)
}

impl Open {
    /// Opens a boundary on a loaded record. Without a lock it is kept in memory only: what its
    /// driver remembers overrides what is on disk.
    pub fn for_record(home: &Home, before: Loop, lock: Option<Lock>) -> Self {
        Self { home: home.clone(), view_state: view::compare_view(&before), before, lock }
    }

    /// The pending request for the loop: its own file, or the one edit of the view that crew acts
    /// on. A cancel takes precedence over a pause, whatever its source.
    pub fn read_request(&self) -> Option<ControlRequest> {
        match store::pending_request(&self.home, &self.before.id) {
            None | Some(ControlRequest::Pause) if self.view_state == ViewState::Deactivated => {
                let reason = Some(end::SWITCHED_OFF.to_owned());
                Some(ControlRequest::Cancel { by: Actor::User, reason })
            }
            filed => filed,
        }
    }

    /// The decision to which the record as loaded would lead.
    pub fn foresee_decision(&self, facts: &Facts) -> Decision {
        decide_next(&judge_boundary(&self.before, facts), facts)
    }

    /// Judges, decides and records, based on the current record. `None` if the examined iteration
    /// is no longer running: then this boundary counts nothing.
    pub fn record_boundary(
        mut self,
        mut facts: Facts,
        closing: DriverNotes,
    ) -> Result<Option<Recorded>> {
        let held = store::hold_loop(&self.home, &self.before.id, LOCK_WAIT)?;
        let mut record = held.load()?;
        if !is_the_same_iteration(&self.before, &record) {
            return Ok(None);
        }
        if view::compare_view(&record) == ViewState::Deactivated {
            self.view_state = ViewState::Deactivated;
        }
        if let Some(request) = self.read_request() {
            facts.seen.request = Some(request);
        }
        take_back(&self.home, &mut record)?;
        let Concluded { judged, decision, mut next } = conclude_iteration(&record, &facts, closing);
        view::place_task(&self.home, &mut next)?;
        let cleared = windows::learn_window(&self.home, &record, &facts.seen, &mut next);
        name_the_end(&self.home, &record, &judged, &facts);
        let note = self.write_note(&held, &record, &facts)?;
        mark_undelivered(&self.home, &next)?;
        let after = held.record(next, |next| boundary_event(&judged, &decision, next))?;
        if let Some(cleared) = &cleared {
            let _ = held.note(&after, facts.now, cleared.as_str());
        }
        remember_tests(&self.home, &after.id, facts.tests_after());
        let proves_later = facts.proves_later;
        let boundary = Boundary { after, decision, note: note.or(cleared), proves_later };
        Ok(Some(Recorded { boundary, held, lock: self.lock }))
    }

    /// Records a boundary for a driver that survives a failing disk: if nothing can be recorded it
    /// continues from memory, and notes the cause if it is new. Storing the state is best effort;
    /// the limits always apply.
    pub fn record_or_remember(
        self,
        mut facts: Facts,
        closing: DriverNotes,
    ) -> Option<(Boundary, Option<Error>)> {
        let (home, before) = (self.home.clone(), self.before.clone());
        let request = self.read_request();
        let mut failed = None;
        if self.lock.is_some() {
            match self.record_boundary(facts.clone(), closing.clone()) {
                Ok(recorded) => return recorded.map(|recorded| (recorded.boundary, None)),
                Err(error) => failed = Some(error),
            }
        }
        facts.seen.request = request;
        let Concluded { judged, decision, mut next } = conclude_iteration(&before, &facts, closing);
        name_the_end(&home, &before, &judged, &facts);
        next.state.count_write(facts.now.wall);
        windows::learn_window(&home, &before, &facts.seen, &mut next);
        Some((Boundary { after: next, decision, note: None, proves_later: false }, failed))
    }

    /// Journals an altered or deleted view, changes of the environment that are ignored, and how
    /// long the machine slept or crew was stopped. Returns what the user should also see.
    fn write_note(&self, held: &Held, record: &Loop, facts: &Facts) -> Result<Option<String>> {
        let now = facts.now;
        let what = match self.view_state {
            ViewState::Altered => Some("state.json was altered; written again"),
            ViewState::Missing => Some("state.json was deleted; written again"),
            ViewState::AsWritten | ViewState::Deactivated => None,
        };
        if let Some(what) = what {
            held.note(record, now, what)?;
        }
        if let Some(theirs) = self.home.overridden() {
            let what = format!("CREW_HOME is {} in the environment; ignored", theirs.display());
            held.note_once(record, "overridden", &what)?;
        }
        for remark in recorded_environment::plan_environment(record).remarks() {
            let mark = format!("environment-{}", &hash(remark.as_bytes())[..8]);
            held.note_once(record, &mark, &remark)?;
        }
        let asleep = now.asleep_since(record.state.time().began()).to_std().unwrap_or_default();
        let stopped = Duration::from_millis(facts.seen.agent.missed_ms);
        for (what, long) in [("asleep", asleep), ("stopped", stopped)] {
            if long >= SLEEP_NOTED {
                let minutes = Duration::from_secs(long.as_secs() / 60 * 60);
                held.note(record, now, format!("{what} {}", humantime::format_duration(minutes)))?;
            }
        }
        let is_blind = record.contract.limits.stall > 0
            && record.state.seen().tree().is_some()
            && facts.tree.is_none()
            && facts.seen.needed_looks(&record.contract).tree();
        let is_news = is_blind && held.note_once(record, "unwatched", tree::NO_STALL_RULE)?;
        Ok(if is_news { Some(tree::NO_STALL_RULE.to_owned()) } else { None })
    }
}

/// The result of a boundary on one record.
pub struct Concluded {
    pub judged: Judged,
    pub decision: Decision,
    pub next: Loop,
}

/// Judges an iteration and decides, without writing anything.
pub fn conclude_iteration(record: &Loop, facts: &Facts, closing: DriverNotes) -> Concluded {
    let judged = judge_boundary(record, facts);
    let decision = match (decide_next(&judged, facts), closing.veto) {
        (Decision::Continue | Decision::Wait { .. }, Some(ending)) => Decision::Finish(ending),
        (Decision::Continue, None) => match &closing.turn {
            Some(turn) => wait_or_end(&judged.after, facts.now, turn.at, &turn.why),
            None => Decision::Continue,
        },
        (decision, _) => decision,
    };
    // An end that needs a person as much as a lost repository does, or was asked for, stays.
    let is_spared = match &decision {
        Decision::Hold(_) => true,
        Decision::Finish(Ending { outcome, .. }) => matches!(
            outcome,
            Outcome::Blocked | Outcome::Cancelled | Outcome::Interrupted | Outcome::Error
        ),
        Decision::Continue | Decision::Wait { .. } => false,
    };
    let decision = match closing.lost {
        Some(lost) if !is_spared => Decision::Finish(lost),
        _ => decision,
    };
    let mut next = apply_decision(judged.clone(), &decision);
    next.state.git_mut().pending = Pending::after_boundary(&next, judged.counted());
    *next.state.session_mut() = closing.memory;
    next.state.name_window(match (&decision, closing.turn) {
        (Decision::Wait { until, .. }, Some(turn)) if *until == turn.at => Some(turn.account),
        _ => None,
    });
    if let Decision::Hold(Hold::Background(_)) = decision {
        next.state.hold(closing.hold_until);
    }
    if let Some(digest) = closing.stop {
        let recorded_ms = clock::since_boot_ms();
        next.state.session_mut().last_stop = Some(StopMark { digest, recorded_ms });
    }
    Concluded { judged, decision, next }
}

/// Names the snapshot that the iteration left. An iteration that a request interrupted, even while
/// it was judged, is not counted and has no end: it runs again.
fn name_the_end(home: &Home, record: &Loop, judged: &Judged, facts: &Facts) {
    if let (true, Some(agents)) = (judged.counted(), &facts.tree) {
        tree::name_the_end(home, record, agents, facts.tree_checked.as_ref());
    }
}

/// Remembers what the checks reported about their tests. If that fails, the next run is compared
/// with an older one, which does not stop the loop.
pub fn remember_tests(home: &Home, id: &LoopId, memories: Option<TestMemories>) {
    if let Some(memories) = memories {
        let _ = store::write_tests(home, id, &memories);
    }
}

/// The shortest sleep of the machine, or stop of crew itself, that is journalled.
const SLEEP_NOTED: Duration = Duration::from_secs(60);

/// Whether the iteration is still the one that was examined. Another boundary ends it. A pause, a
/// wake or a resume, even by the same session, starts the iteration again.
fn is_the_same_iteration(before: &Loop, now: &Loop) -> bool {
    now.is_live()
        && now.state.counts().boundaries() == before.state.counts().boundaries()
        && now.state.time().began() == before.state.time().began()
}

fn boundary_event(judged: &Judged, decision: &Decision, next: &Loop) -> Event {
    let (decision, why) = match decision {
        Decision::Continue => (Choice::Continue, None),
        Decision::Wait { why, .. } => (Choice::Wait, Some(why.clone())),
        Decision::Hold(Hold::Paused) => (Choice::Hold, Some("paused".to_owned())),
        Decision::Hold(Hold::Background(work)) => (Choice::Hold, Some(work.clone())),
        Decision::Finish(ending) => (Choice::Finish, Some(ending.full_reason())),
    };
    Event::Boundary {
        decision,
        why,
        elapsed_ms: if judged.counted() { next.elapsed_ms.last().copied() } else { None },
        state: Box::new(next.state.clone()),
    }
}

// Messages to the agent whose prompt may be lost: the record says that they were delivered, but
// the process was ended before its answer was out. They are repeated rather than lost.

/// The largest mark that is read.
const MARK_BYTES: u64 = 64;

/// Marks, before they are recorded, that the messages in a session's next prompt have not been sent
/// yet: those of the last boundary, and those that a resume took from the queue.
pub fn mark_undelivered(home: &Home, next: &Loop) -> io::Result<()> {
    let has_words =
        next.state.seen().evidence().as_ref().is_some_and(|last| !last.words.is_empty());
    if next.driver() != Driver::Session || !(has_words || next.state.exchange().in_prompt() > 0) {
        return Ok(());
    }
    // The mark belongs to one boundary's prompt: messages of an earlier one are not repeated.
    let boundaries = next.state.counts().boundaries().to_string();
    disk::write(&undelivered_file(home, &next.id), boundaries.as_bytes(), Durability::Process)
}

/// Returns the messages that the last prompt did not deliver to the record.
pub fn take_back(home: &Home, record: &mut Loop) -> io::Result<()> {
    if record.driver() != Driver::Session {
        return Ok(());
    }
    let mark = disk::read_text(&undelivered_file(home, &record.id), MARK_BYTES)?;
    if mark.is_none_or(|of| of != record.state.counts().boundaries().to_string()) {
        return Ok(());
    }
    record.state.take_back_prompt();
    Ok(())
}

/// Removes the mark, because the prompt was sent.
pub fn clear_undelivered(home: &Home, id: &LoopId) -> io::Result<()> {
    disk::remove(&undelivered_file(home, id))
}

fn undelivered_file(home: &Home, id: &LoopId) -> PathBuf {
    home.loop_file(id, "undelivered")
}
