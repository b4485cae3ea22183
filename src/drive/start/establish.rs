//! Makes a loop, whoever drives it: one loop per working tree, and the files in an order that a
//! crash cannot turn into half a loop (the record comes last; a pointer to a missing record means
//! nothing).

use std::path::{Path, PathBuf};
use std::{io, iter};

use anyhow::{Context, Result, bail};

use super::terms::{self, build_contract, detect_project, typed_layer};
use crate::drive::checks::check::missing_at_the_start;
use crate::drive::checks::test_changes;
use crate::drive::end::{self, EndAttempt};
use crate::drive::find::{NewOwner, environment_of, gone_reason, on_another_host, owner_is_gone};
use crate::drive::tree::{self, place};
use engine::failure::Failure;
use engine::fleet::Carried;
use engine::journal::Event;
use engine::record::{
    Actor, Check, Contract, Driver, Loop, LoopId, Outcome, Owner, Place, Status, TaskOfFleet,
};
use engine::text::count;
use readers::clients::{Hook, resume_command, resume_command_at};
use readers::parse::arguments::{LoopArgs, RunArgs};
use readers::parse::settings::LogRetention;
use readers::parse::test_changes::only_what_changed;
use world::files::disk::{self, Lock};
use world::files::tree as tree_files;
use world::git::steps::put_back_in;
use world::store::StoreError::{self, Absent, Corrupt, Newer};
use world::store::{self, Held, Home, LOCK_WAIT, read_pointer, view, write_pointer};
use world::{clock, env, git};

/// A loop that can begin; nothing is written yet.
#[derive(Debug)]
pub struct Prepared {
    pub place: Place,
    pub contract: Contract,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
    pub keep: LogRetention,
    /// Whether a loop that occupies the place is ended first.
    pub replace: bool,
    /// A loop that is ended first if it occupies the place, because its command was withdrawn.
    pub taken_back: Option<LoopId>,
    /// What earlier loops of its task have used of its limits.
    pub carried: Option<Carried>,
    /// The task; `None` outside a fleet.
    pub fleet: Option<TaskOfFleet>,
    /// Whether the working tree is as an earlier loop of that task left it.
    pub is_as_left: bool,
}

impl Prepared {
    /// A loop outside a fleet, for which no other loop is ended.
    pub fn new(place: Place, contract: Contract, notes: Vec<String>) -> Self {
        let (keep, replace, is_as_left) = (LogRetention::default(), false, false);
        let (taken_back, carried, fleet) = (None, None, None);
        Self { place, contract, notes, keep, replace, taken_back, carried, fleet, is_as_left }
    }
}

/// The pointers to the loop of a working tree and of a session. While they are held, no other loop
/// starts or is resumed there.
pub struct HeldPointers {
    pub files: Vec<PathBuf>,
    _lock: Lock,
}

impl HeldPointers {
    /// Takes the lock of the working tree. Fails if another start or resume has it.
    pub fn hold_pointers(home: &Home, checkout: &Path, owner: &Owner) -> Result<Self> {
        let pointer = home.checkout_pointer(checkout);
        let lock = disk::take_lock(&pointer.with_extension("lock"), LOCK_WAIT)?;
        let lock = lock.context("another loop is being started in this working tree")?;
        let of_session = owner.session_id.as_deref().map(|id| home.session_pointer(id));
        Ok(Self { files: iter::once(pointer).chain(of_session).collect(), _lock: lock })
    }

    /// Makes them name this loop.
    pub fn write_pointers(&self, id: &LoopId) -> io::Result<()> {
        self.files.iter().try_for_each(|file| write_pointer(file, id))
    }
}

/// Creates the loop and records its start. The result still holds its lock, and has the notes for
/// the user, one of them for each loop that had to end. `None` if this same command has already
/// started the loop.
pub fn establish_loop(
    home: &Home,
    prepared: Prepared,
    new_owner: NewOwner,
) -> Result<Option<(Held, Loop, Vec<String>)>> {
    home.make_folders()
        .with_context(|| format!("cannot keep loops in {}", home.root().display()))?;
    home.write_pin()?;
    let pointers = HeldPointers::hold_pointers(home, &prepared.place.checkout, &new_owner.owner)?;
    let mut vacated = Vec::new();
    for pointer in &pointers.files {
        let Some(record) = in_the_way(home, pointer, &mut vacated)? else { continue };
        if is_same_command(&record, &prepared.contract, &new_owner) {
            return Ok(None);
        }
        let is_ended = prepared.replace || prepared.taken_back.as_ref() == Some(&record.id);
        vacated.extend(vacate_tree(home, &record, &new_owner.owner, is_ended)?);
    }
    let NewOwner { owner, memory } = new_owner;
    let Prepared { place, contract, mut notes, carried, fleet, .. } = prepared;
    notes.extend(vacated);
    notes.extend(put_back_in(&place).err().map(|fault| fault.cause_and_hint()));
    let id = LoopId::from_random(env::random_number());
    let mut record = Loop::begin_at(id, contract, place, owner, clock::now());
    record.fleet = fleet;
    if let Some(carried) = &carried {
        carried.give_to(&mut record);
    }
    disk::make_private_folder(&home.loop_folder(&record.id))?;
    match record.driver() {
        Driver::Process => {
            record.trusted = git::steps::read_trusted(&record.place.checkout);
            record.place.repository = git::steps::repository_folder(&record.place.checkout);
        }
        Driver::Session => {
            record.environment = Some(environment_of(record.state.owner(), &record.place));
        }
    }
    *record.state.session_mut() = memory;
    match look_at_tree(home, &mut record) {
        Ok(seen) => notes.extend(seen),
        Err(refused) => {
            let _ = tree_files::remove_folder(&home.loop_folder(&record.id));
            return Err(refused);
        }
    }
    pointers.write_pointers(&record.id)?;
    view::place_task(home, &mut record)?;
    let held = store::hold_loop(home, &record.id, LOCK_WAIT)?;
    let record = begin_record(home, &held, record)?;
    store::keep_room(home, &record.id);
    if let Err(error) = view::write_view(&record) {
        let folder = record.place.reading_folder();
        notes.push(format!(
            "the checkout's files could not be written ({error}); the task and handoffs are in {}",
            folder.display()
        ));
    }
    Ok(Some((held, record, notes)))
}

/// Records the baseline for progress and protected paths. Returns notes for the user.
fn look_at_tree(home: &Home, record: &mut Loop) -> Result<Vec<String>> {
    let mut notes: Vec<String> =
        record.contract.checks.iter().filter_map(partial_check_note).collect();
    if record.watches_the_tree() {
        notes.extend(tree::begin_tree(home, record).remember_in(record));
        let found = record.state.seen().baseline().as_ref();
        if !found.is_some_and(|found| test_changes::is_here(home, record, found)) {
            let snapshot = record.state.seen().trees().snapshot().clone();
            notes.extend(test_changes::begin_baseline(home, record, snapshot));
        }
    }
    notes.extend(tree::begin_protection(home, record)?);
    Ok(notes)
}

/// The note on a check that runs only the tests of what changed.
fn partial_check_note(check: &Check) -> Option<String> {
    let word = only_what_changed(&check.run)?;
    Some(format!(
        "`{}` leaves tests out ({word}): what it does not run, it does not prove",
        check.run
    ))
}

/// Records the start. If that fails the user is told that nothing was started, so the record is
/// removed.
fn begin_record(home: &Home, held: &Held, record: Loop) -> Result<Loop> {
    let file = home.loop_file(&record.id, "loop.json");
    let recorded = held.record(record, |next| Event::Started { record: Box::new(next.clone()) });
    if recorded.is_err() {
        disk::remove(&file)?;
    }
    Ok(recorded?)
}

/// The loop that a pointer names, unless it cannot block another loop; a note if it cannot be read.
fn in_the_way(home: &Home, pointer: &Path, notes: &mut Vec<String>) -> Result<Option<Loop>> {
    let Some(id) = read_pointer(pointer)? else { return Ok(None) };
    match store::load(home, &id) {
        Ok(record) => Ok(Some(record)),
        Err(Absent(_) | Newer { is_over: true, .. }) => Ok(None),
        Err(error @ Corrupt { .. }) => {
            let note = format!("{error} · read its journal there, or remove that folder");
            // The pointer of the session names it, too.
            if !notes.contains(&note) {
                notes.push(note);
            }
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether this command has already started the loop: a client may send it twice, in the same turn.
fn is_same_command(record: &Loop, contract: &Contract, new_owner: &NewOwner) -> bool {
    let NewOwner { owner, memory } = new_owner;
    let state = &record.state;
    let is_its_session = owner.session_id.is_some() && state.owner().session_id == owner.session_id;
    let is_its_turn = is_its_session && state.session().prompt_id == memory.prompt_id;
    record.is_live()
        && is_its_turn
        && state.counts().boundaries() == 0
        && record.contract == *contract
}

/// Frees the place for a loop that resumes: fails if the pointer names another loop at work. If a
/// loop cannot be read, a note is added to `notes`.
pub fn make_way(
    home: &Home,
    pointer: &Path,
    id: &LoopId,
    owner: &Owner,
    notes: &mut Vec<String>,
) -> Result<()> {
    match in_the_way(home, pointer, notes)? {
        Some(other) if other.id != *id => vacate_tree(home, &other, owner, false).map(drop),
        _ => Ok(()),
    }
}

/// Frees the place for a loop of that owner. A loop at work there is ended if `is_ended`, and
/// otherwise the error names it. The notes are about a loop that had to end, or could be resumed.
fn vacate_tree(home: &Home, record: &Loop, owner: &Owner, is_ended: bool) -> Result<Vec<String>> {
    let id = &record.id;
    if !record.is_live() {
        end::let_end(record)?;
        end::complete_end(home, record);
        let (was, resume) = (after_loop(record), resume_command_at(owner, record));
        let offer = match record.state.git().describe_undone() {
            _ if record.outcome() == Some(Outcome::Interrupted) => Some(format!(
                "loop {id} was interrupted {was}; this is a new one · to resume that one: {resume}"
            )),
            Some(undone) if record.fleet.is_none() => {
                let status = record.status_word();
                Some(format!(
                    "loop {id} is {status} {was}, but {undone} · crew resume {id} does that"
                ))
            }
            _ => None,
        };
        return Ok(offer.into_iter().collect());
    }
    let attempt = if let Some(attempt) = end::apply_view(home, record)? {
        attempt
    } else if owner_is_gone(home, record) {
        end::interrupt_run(home, id, gone_reason(record), LOCK_WAIT)?
    } else if is_ended {
        end::cancel_locked(home, id, Actor::User, Some("replaced by a new loop"))?
    } else {
        bail!(
            on_another_host(record)
                .unwrap_or_else(|| occupied_error(record, owner.session_id.as_deref()))
        );
    };
    let ended = match attempt {
        EndAttempt::LeftToTheBoundary => bail!(StoreError::Busy(id.clone())),
        EndAttempt::Over(record) => return end::let_end(&record).map(|()| Vec::new()),
        EndAttempt::Ended(ended) => ended.record,
    };
    // The new loop's agent must not begin beside the old one's, even during the old one's grace
    // time.
    end::end_groups(home, record);
    end::let_end(&ended)?;
    let is_now = format!("loop {id} is now {} {}", ended.status_word(), after_loop(&ended));
    if ended.outcome() != Some(Outcome::Interrupted) {
        return Ok(vec![is_now]);
    }
    let resume = resume_command_at(owner, &ended);
    let note = format!("{is_now}; this is a new one · to resume that one: {resume}");
    Ok(iter::once(note).chain(end::unproved_note(record)).collect())
}

fn after_loop(record: &Loop) -> String {
    format!("after {}", count(record.state.counts().completed(), "iteration"))
}

fn occupied_error(record: &Loop, session_id: Option<&str>) -> Failure {
    let (id, owner, iteration) = (&record.id, record.state.owner(), record.iteration());
    let pid = owner.process.pid;
    let what = match (owner.driver, owner.session_id.as_deref()) {
        (Driver::Process, _) if record.state.status() == Status::Paused => {
            format!(
                "paused here before iteration {iteration}; {} resumes it",
                resume_command(record)
            )
        }
        (driver, owning) => {
            let who = match driver {
                Driver::Process => format!("crew run, process {pid}"),
                Driver::Session if owning.is_some() && owning == session_id => {
                    "this session".to_owned()
                }
                Driver::Session => format!("session {}, process {pid}", owning.unwrap_or("none")),
            };
            format!("{} here at iteration {iteration}, owned by {who}", record.status_word())
        }
    };
    Failure::new(
        format!("loop {id} is {what}"),
        format!(
            "end it with `crew cancel {id}`, use another git worktree, or start with --replace"
        ),
    )
}

// A loop of a session: its contract comes from the user's words and the settings in force there. A
// refusal starts nothing.

/// A loop that has begun.
#[derive(Debug)]
pub struct Started {
    pub record: Loop,
    /// A check that would fit this working tree, if the loop has none.
    pub suggestion: Option<String>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// Starts a loop for a session. `None` if this same command has already started it: the plugin may
/// be loaded twice. An error means that nothing was started. `taken_back` is a loop of this session
/// that had no effect, and is replaced.
pub fn start_session_loop(
    home: &Home,
    hook: &Hook<'_>,
    arguments: &LoopArgs,
    cwd: &Path,
    taken_back: Option<LoopId>,
) -> Result<Option<Started>> {
    let new_owner = NewOwner::from_hook(hook)?;
    let project = hook.client.variables().project().and_then(|name| hook.folder_of(name));
    let place = place::find_place(cwd, project.as_deref())?;
    let known = terms::load_settings(home, &place.checkout, !arguments.no_project)?;
    let known = known.in_a_session(hook.client.title());
    let options = RunArgs { start: arguments.clone(), ..RunArgs::default() }.loop_options();
    let typed = typed_layer(options, &place.folder)?;
    let (settings, mut notes) = terms::in_force(home, known, typed, None)?;
    let contract = build_contract(arguments, &settings, cwd, None)?;
    notes.extend(missing_at_the_start(&place, &contract.checks)?);
    let replace = arguments.replace;
    let prepared = Prepared { replace, taken_back, ..Prepared::new(place, contract, notes) };
    let begun = establish_loop(home, prepared, new_owner)?;
    let Some((held, record, mut notes)) = begun else { return Ok(None) };
    if let Some(theirs) = home.overridden() {
        let ours = home.root().display();
        let note =
            format!("CREW_HOME is {}, but this client's loops are in {ours}", theirs.display());
        let _ = held.note_once(&record, "overridden", &note);
        notes.push(note);
    }
    let suggestion = suggest_checks(&record);
    Ok(Some(Started { record, suggestion, notes }))
}

/// A check that would fit the working tree of a loop that has none.
pub fn suggest_checks(record: &Loop) -> Option<String> {
    if !record.contract.checks.is_empty() {
        return None;
    }
    detect_project(&record.place.folder).checks().first().map(|detected| detected.run().clone())
}
