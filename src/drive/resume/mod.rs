//! Resumes a loop, in a session or in fresh processes: the same contract, counters and evidence, a
//! new owner. Refuses a spent limit that is not raised in the same command, and a loop whose owner
//! lives: that must be paused or ended there first.

pub mod adapt;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::boundary::undelivered;
use super::end::{self, EndAttempt, handoff};
use super::find::{NewOwner, elsewhere, environment_of, gone_why, life, owner_is_gone};
use super::start::establish::HeldPointers;
use super::start::place;
use super::{test_changes, tree};
use crate::clients;
use crate::clients::spelling::{self, going_on_at};
use crate::engine::boundary::limits::{LimitChanges, changed, raise, reached};
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::journal::{DELIVERED, Event, RESUMED_IN_A_RUN, RESUMED_IN_A_SESSION, TOLD};
use crate::engine::record::{Driver, Life, Loop, LoopId, Outcome, Owner, Status};
use crate::world::files::room;
use crate::world::store::{self, Held, Home, LOCK_WAIT, read_pointer, view, wakes};
use crate::world::{clock, recorded_environment};

/// A resumed loop.
#[derive(Debug)]
pub struct Resumed {
    pub record: Loop,
    /// The newest handoff, for the new owner to read.
    pub handoff: Option<PathBuf>,
    /// What the user should know: of a changed environment or changed tests that are accepted, of
    /// the agent, of processes that a killed crew may have left.
    pub notes: Vec<String>,
}

impl Resumed {
    /// Reports the resume of a loop of fresh processes, and returns the loop.
    pub fn report(self, sink: &mut dyn EventSink) -> Loop {
        sink.on_event(&RunEvent::Resumed(&self.record));
        for note in &self.notes {
            sink.on_event(&RunEvent::Noted(note));
        }
        self.record
    }
}

/// Takes a loop over. `adapt` makes the changes to the contract that the new owner needs, and
/// returns what the user should know of them.
pub fn resume(
    home: &Home,
    id: &LoopId,
    changes: &LimitChanges,
    new_owner: NewOwner,
    adapt: impl FnOnce(&mut Loop) -> Result<Vec<String>>,
) -> Result<Resumed> {
    let found = store::load(home, id)?;
    refuse(home, &found, &new_owner.owner)?;
    look_around(home, &found, &new_owner.owner)?;
    end::complete(home, &found);
    let pointers = HeldPointers::hold(home, &found.place.checkout, &new_owner.owner)?;
    for occupied in &pointers.files {
        make_way(home, occupied, id)?;
    }
    let held = store::hold(home, id, LOCK_WAIT)?;
    let mut record = held.load()?;
    refuse(home, &record, &new_owner.owner)?;
    record.contract.limits = changed(changes, &record, 0);
    let command = match new_owner.owner.driver {
        Driver::Session => spelling::command(clients::of(&new_owner.owner), "resume"),
        Driver::Process => "crew resume".to_owned(),
    };
    refuse_the_spent(&record, &command)?;
    let messages = record.state.messages.len();
    let adapted = adapt(&mut record)?;
    let is_told = record.state.messages.len() > messages;
    end::end_leftovers(home, &record);
    // Nobody has seen what its agent did last. A session may resume its own loop, which it drives.
    let is_open = record.state.status == Status::Running;
    if is_open {
        tree::close(home, &record);
    }
    let was_gone = is_open && owner_is_gone(home, &record);
    let late = was_gone.then(|| end::left_uncounted(&mut record));
    let former = record.state.owner.session_id.clone();
    let is_another = former.is_none() || former != new_owner.owner.session_id;
    let made = if is_another { handoff::for_the_next(home, &record) } else { None };
    let (accepted, unproved) = match new_owner.owner.driver {
        Driver::Session => (recorded_environment::plan(&record).accepted(), None),
        Driver::Process if is_cut_off(home, &record) => (None, end::unproved(&record)),
        Driver::Process => (None, None),
    };
    hand_over(home, &mut record, new_owner);
    view::place_task(home, &mut record)?;
    store::clear_orders(home, id)?;
    room::keep(home, id);
    pointers.write(id)?;
    undelivered::mark(home, &record)?;
    let mut record = held.record(record, resumed)?;
    // Only now: another try at a resume that fails before needs to know what was cut off.
    tree::reopen(home, &record);
    if is_told {
        record = told(&held, record);
    }
    for note in late.iter().chain(&accepted) {
        let _ = held.note(&record, clock::now(), note);
    }
    release(home, former, &record);
    let _ = view::write(&record);
    let handoff = made.or_else(|| Some(view::newest_handoff(&record)?.0));
    let notes = accepted.into_iter().chain(unproved).chain(adapted).collect();
    Ok(Resumed { record, handoff, notes })
}

/// Tells the story of a message that came with the resume. The loop is taken already, so a failure
/// is none.
fn told(held: &Held, mut record: Loop) -> Loop {
    // A session's prompt is the answer to this command.
    let is_there = record.driver() == Driver::Session;
    for what in std::iter::once(TOLD).chain(is_there.then_some(DELIVERED)) {
        match held.record(record.clone(), |next| Event::changed(what, next)) {
            Ok(next) => record = next,
            Err(_) => break,
        }
    }
    record
}

fn resumed(next: &Loop) -> Event {
    Event::Changed {
        what: match next.driver() {
            Driver::Session => RESUMED_IN_A_SESSION.to_owned(),
            Driver::Process => RESUMED_IN_A_RUN.to_owned(),
        },
        limits: Some(next.contract.limits.clone()),
        run: next.contract.run.clone().map(Box::new),
        environment: next.environment.clone().map(Box::new),
        protected: None,
        state: Box::new(next.state.clone()),
    }
}

/// Fails for a loop that is completed, or has used up a limit; `command` is how it is resumed.
pub fn refuse_the_spent(record: &Loop, command: &str) -> Result<()> {
    refuse_the_completed(record)?;
    match reached(record) {
        Some(limit) => bail!(
            "{limit}\nhint: raise it in the same command: {command} {}{}",
            record.id,
            raise(record)
        ),
        None => Ok(()),
    }
}

/// Fails for the loop of a fleet: the lease of its task would never hear of a resume from outside.
/// Once the fleet is forgotten here, nobody waits for it.
pub fn refuse_a_task(home: &Home, record: &Loop) -> Result<()> {
    let task = record.fleet.as_ref().filter(|task| store::fleets::is_kept(home, &task.name));
    let Some(refusal) = task.and_then(|_| record.refusal_of_its_fleet()) else { return Ok(()) };
    refuse_the_completed(record)?;
    bail!(refusal)
}

fn refuse_the_completed(record: &Loop) -> Result<()> {
    if record.outcome() == Some(Outcome::Completed) {
        bail!("loop {} is completed\nhint: {}", record.id, spelling::way_on(record));
    }
    Ok(())
}

/// Fails if the loop's place prevents a resume: a person switched it off there, or its folder is
/// gone.
fn look_around(home: &Home, found: &Loop, owner: &Owner) -> Result<()> {
    let id = &found.id;
    if end::obey_view(home, found)?.is_some() {
        bail!(
            "loop {id} is cancelled now: {}\nhint: {} still resumes it",
            end::SWITCHED_OFF,
            going_on_at(owner, found)
        );
    }
    if let Some(gone) = place::gone(&found.place) {
        bail!("loop {id} cannot be resumed: {gone}");
    }
    Ok(())
}

/// Takes the loop's pointer and wakes from its former session.
fn release(home: &Home, former: Option<String>, record: &Loop) {
    match (former, &record.state.owner.session_id) {
        (Some(former), now) if Some(&former) != now.as_ref() => {
            end::release(home, &former, &record.id);
        }
        // Otherwise a ticket of the wait that ended here would be valid for the next wait.
        (_, Some(session_id)) => wakes::clear(home, session_id, None),
        (_, None) => {}
    }
}

/// Whether its crew was killed before it could end what it had started.
fn is_cut_off(home: &Home, record: &Loop) -> bool {
    let why = record.state.ending.as_ref().map(|ending| ending.why.as_str());
    owner_is_gone(home, record) || why == Some(gone_why(record))
}

/// The state of a loop that continues under a driver: what ended it, or kept it waiting, is over.
fn begin_anew(record: &mut Loop, driver: Driver) {
    let outcome = record.outcome();
    let state = &mut record.state;
    state.status = Status::Running;
    state.ending = None;
    state.git.pending.reaction = false;
    state.due = None;
    state.transient_errors = 0;
    // What was told in an iteration that never reached its boundary is told again; a session is
    // told at once.
    state.told = match driver {
        Driver::Session => state.messages.len(),
        Driver::Process => 0,
    };
    state.incurable = None;
    state.test_refusals = 0;
    // Whoever resumes has seen to what kept an agent from its work; the first one tries first.
    state.agents.stand_in = None;
    state.agents.out.clear();
    // What ended the loop is forgiven once: otherwise the first boundaries would end it again.
    if matches!(outcome, Some(Outcome::Aborted | Outcome::Stalled)) {
        state.consecutive_failures = 0;
        state.iterations_without_progress = 0;
    }
}

/// Changes the record to its new owner's.
fn hand_over(home: &Home, record: &mut Loop, new_owner: NewOwner) {
    begin_anew(record, new_owner.owner.driver);
    record.environment = match new_owner.owner.driver {
        Driver::Session => Some(environment_of(&new_owner.owner, &record.place)),
        Driver::Process => None,
    };
    let state = &mut record.state;
    state.owner = new_owner.owner;
    state.session = new_owner.memory;
    state.began = clock::now();
    let is_watched = record.watches_the_tree();
    let tree = is_watched.then(|| tree::begin(home, record).seen).flatten();
    test_changes::follow(home, record, tree, true);
}

/// Fails with the reason why a loop cannot be taken.
fn refuse(home: &Home, record: &Loop, new_owner: &Owner) -> Result<()> {
    refuse_the_completed(record)?;
    let id = &record.id;
    let owner = &record.state.owner;
    let is_paused_run = record.state.status == Status::Paused && record.driver() == Driver::Process;
    let runs = matches!(record.state.status, Status::Running | Status::Waiting);
    if let (true, Some(elsewhere)) = (runs || is_paused_run, elsewhere(record)) {
        bail!(elsewhere);
    }
    // The pause is recorded before crew commits and pushes.
    if is_paused_run && life(owner) == Life::Alive {
        bail!(
            "loop {id} is paused, and its crew run, process {}, ends in a moment\n\
             hint: crew resume {id} once it has ended",
            owner.process.pid
        );
    }
    if !runs || owner_is_gone(home, record) {
        return end::let_end(record);
    }
    // A command typed in this session runs only while the agent does not, so there is nothing to
    // take over. Another client may have the same session open, with its agent at work.
    if owner.session_id.is_some()
        && (&owner.session_id, &owner.process) == (&new_owner.session_id, &new_owner.process)
    {
        return Ok(());
    }
    let whose = match owner.session_id.as_deref() {
        Some(session) => format!("in session {session}"),
        None => "in crew run".to_owned(),
    };
    bail!(
        "loop {id} is {} {whose}, process {}\n\
         hint: crew pause {id} or crew cancel {id} first",
        record.status_word(),
        owner.process.pid
    )
}

/// Fails if the pointer names another live loop.
pub fn make_way(home: &Home, pointer: &Path, id: &LoopId) -> Result<()> {
    let Some(other) = read_pointer(pointer)?.filter(|other| other != id) else { return Ok(()) };
    let Ok(record) = store::load(home, &other) else { return Ok(()) };
    if !record.is_live() {
        return end::let_end(&record);
    }
    if owner_is_gone(home, &record) {
        let attempt = end::interrupt(home, &other, gone_why(&record), LOCK_WAIT)?;
        if !matches!(attempt, EndAttempt::LeftToTheBoundary) {
            return Ok(());
        }
    }
    bail!("loop {other} is {} here\nhint: crew cancel {other} ends it", record.status_word())
}
