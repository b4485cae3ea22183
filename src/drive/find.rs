//! Finds the loop that the user means: by id, procedure, prefix of an id, or working tree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::usage;
use engine::failure::Failure;
use engine::record::{
    Driver, EndReason, Environment, Life, Loop, LoopId, Outcome, Owner, Place, ProcessIdentity,
    SessionMemory, Status,
};
use engine::refuse;
use readers::clients::{self, Hook};
use world::files::disk;
use world::process::identity;
use world::store::{self, Home, StoreError, read_pointer};
use world::{clock, env, git, host, recorded_environment};

/// Finds the loops that `name` may mean, newest first. Without a name: the loop of this working
/// tree, otherwise those of the repository's other working trees (live ones before ended ones),
/// otherwise the live ones on this machine.
pub fn find_loops(home: &Home, name: Option<&str>, folder: &Path) -> Result<Vec<Loop>> {
    if let Some(name) = name {
        return by_name(home, name, folder);
    }
    if let Some(record) = of_working_tree(home, folder)? {
        return Ok(vec![record]);
    }
    let mut beside = of_other_trees(home, folder);
    if beside.is_empty() {
        beside = store::load_all(home);
        beside.retain(Loop::is_live);
    } else if beside.iter().any(Loop::is_live) {
        beside.retain(Loop::is_live);
    }
    Ok(beside)
}

/// The newest loop of each of the repository's other working trees, the newest first.
pub fn of_other_trees(home: &Home, folder: &Path) -> Vec<Loop> {
    let here = tree_roots(folder);
    let others = git::head::list_roots(folder).into_iter().filter(|tree| !here.contains(tree));
    let pointers = others.filter_map(|tree| read_pointer(&home.checkout_pointer(&tree)).ok()?);
    let mut loops: Vec<Loop> = pointers.filter_map(|id| store::load(home, &id).ok()).collect();
    loops.sort_by_key(|record| std::cmp::Reverse(record.started_at));
    loops
}

/// The loop that a resume by procedure means: the newest uncompleted one with that procedure, in
/// the working tree of the one that was `found`.
pub fn find_resumable(home: &Home, found: Loop, name: Option<&str>) -> Loop {
    let completed = Some(Outcome::Completed);
    let is_named = found.procedure().is_some() && found.procedure() == name;
    if !is_named || found.outcome() != completed {
        return found;
    }
    let open = store::load_all(home).into_iter().find(|record| {
        record.procedure() == name
            && record.place.checkout == found.place.checkout
            && record.outcome() != completed
    });
    open.unwrap_or(found)
}

fn by_name(home: &Home, name: &str, folder: &Path) -> Result<Vec<Loop>> {
    if let Ok(id) = name.parse::<LoopId>() {
        match store::load(home, &id) {
            Ok(record) => return Ok(vec![record]),
            // Some names are spelled like an id: a procedure may be called `refactor`.
            Err(StoreError::Absent(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let of_the_procedure = by_procedure(home, name, folder);
    if !of_the_procedure.is_empty() {
        return Ok(of_the_procedure);
    }
    let matching = store::list_ids(home).filter(|id| id.as_str().starts_with(name));
    let found = matching.filter(|id| store::is_there(home, id)).map(|id| store::load(home, &id));
    let (loops, unreadable): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
    let loops: Vec<Loop> = loops.into_iter().flatten().collect();
    if let (true, Some(Err(error))) = (loops.is_empty(), unreadable.into_iter().next()) {
        return Err(error.into());
    }
    if loops.is_empty() {
        refuse!(
            "no loop has an id that begins with {name:?}, and none runs a procedure of that name",
            "crew status --all"
        );
    }
    Ok(loops)
}

/// The newest loop with that procedure in this working tree, otherwise in the repository's other
/// trees, otherwise the only live one on the machine, otherwise the newest in each working tree.
fn by_procedure(home: &Home, name: &str, folder: &Path) -> Vec<Loop> {
    let mut loops = store::load_all(home);
    loops.retain(|record| record.procedure() == Some(name));
    for trees in [tree_roots(folder), git::head::list_roots(folder)] {
        if let Some(here) = loops.iter().position(|found| trees.contains(&found.place.checkout)) {
            return vec![loops.swap_remove(here)];
        }
    }
    if loops.iter().filter(|record| record.is_live()).count() == 1 {
        loops.retain(Loop::is_live);
    }
    let mut trees = BTreeSet::new();
    loops.retain(|record| trees.insert(record.place.checkout.clone()));
    loops
}

/// Whether a loop works in the working tree that contains `folder`.
pub fn is_here(record: &Loop, folder: &Path) -> bool {
    tree_roots(folder).contains(&record.place.checkout)
}

/// The newest loop of the working tree that contains `folder`.
pub fn of_working_tree(home: &Home, folder: &Path) -> Result<Option<Loop>> {
    for root in tree_roots(folder) {
        if let Some(record) = named_by(home, &home.checkout_pointer(&root))? {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The loop that a pointer names. An interrupted start leaves a pointer to a missing loop, which is
/// ignored.
pub fn named_by(home: &Home, pointer: &Path) -> Result<Option<Loop>> {
    let id = read_pointer(pointer)?.filter(|id| store::is_there(home, id));
    Ok(id.map(|id| store::load(home, &id)).transpose()?)
}

/// The working tree's root, or without git the folder and its parents, nearest first.
fn tree_roots(folder: &Path) -> Vec<PathBuf> {
    let Ok(folder) = disk::real_path(folder) else { return Vec::new() };
    match git::find_top(&folder) {
        Some(top) => vec![top],
        None => folder.ancestors().map(Path::to_path_buf).collect(),
    }
}

// Owners of loops: what is recorded about a new one, and what is known here about the process of
// the current one. Nothing here ends or takes over a loop.

/// The owner that takes over the loop.
#[derive(Debug)]
pub struct NewOwner {
    pub owner: Owner,
    pub memory: SessionMemory,
}

impl NewOwner {
    /// A session: the client's process and the session's id.
    pub fn from_hook(hook: &Hook<'_>) -> Result<Self> {
        let process = identity::find_client(hook.is_owner())
            .context("cannot tell which client this session belongs to")?;
        let owner = Owner {
            driver: Driver::Session,
            session_id: hook.session_id().clone(),
            client: Some(hook.client.name().to_owned()),
            ..owner_here(process)
        };
        Ok(Self { owner, memory: usage::begin_memory(hook) })
    }

    /// This process.
    pub fn from_process() -> Result<Self> {
        Ok(Self { owner: own_process()?, memory: SessionMemory::default() })
    }
}

/// The environment of a session that takes over a loop at `place`.
pub fn environment_of(owner: &Owner, place: &Place) -> Environment {
    let client = clients::client_of(owner);
    recorded_environment::of_session(place, client.settings(), *client.set_by())
}

/// This process as an owner.
pub fn own_process() -> Result<Owner> {
    Ok(owner_here(identity::this_process().context("cannot tell which process this is")?))
}

/// A process of this machine as the owner of a run.
fn owner_here(process: ProcessIdentity) -> Owner {
    let (session_id, client) = (None, None);
    let (search_path, host) = (env::text("PATH"), host::this_host());
    Owner { driver: Driver::Process, session_id, client, process, search_path, host }
}

/// The state of an owner's process, as far as it is known here.
pub fn owner_life(owner: &Owner) -> Life {
    owner.judge_life(host::this_host().as_ref(), identity::is_alive)
}

/// Whether an owner is this process.
pub fn owner_is(owner: &Owner, process: &ProcessIdentity) -> bool {
    let here = host::this_host();
    owner.process == *process && (here.is_none() || owner.is_of_this_start(here.as_ref()))
}

/// Whether this process owns a loop.
pub fn is_ours(record: &Loop) -> bool {
    own_process().is_ok_and(|me| owner_is(record.state.owner(), &me.process))
}

/// Awake milliseconds since the running iteration, or a wait, began. Zero if another machine
/// counted them, or this machine did before it was restarted.
pub fn spent_ms(record: &Loop) -> u64 {
    if record.state.owner().is_of_this_start(host::this_host().as_ref()) {
        clock::now().awake_ms.saturating_sub(record.state.time().began().awake_ms)
    } else {
        0
    }
}

/// Why a live loop of another machine is not touched; `None` for a loop of this machine.
pub fn on_another_host(record: &Loop) -> Option<Failure> {
    let (id, owner) = (&record.id, record.state.owner());
    let name = &owner.host.as_ref()?.name;
    if owner_life(owner) != Life::Elsewhere {
        return None;
    }
    Some(Failure::new(
        format!(
            "loop {id} is {}, owned by a process on another machine ({name}), which cannot be seen \
             from here",
            record.status_word()
        ),
        format!(
            "pause or end it there; if that machine is gone, `crew cancel {id}` ends it here, and it \
             can be resumed"
        ),
    ))
}

/// The file that marks a session as ended while another process held the loop's lock.
pub fn end_mark(home: &Home, id: &LoopId) -> PathBuf {
    home.loop_file(id, "ended")
}

/// Whether a live loop has lost its owner: the process of the client or crew has exited, or its
/// session ended. A paused run has no owner to lose: its crew exited cleanly, and the loop stays
/// paused.
pub fn owner_is_gone(home: &Home, record: &Loop) -> bool {
    let is_paused_run =
        record.state.status() == Status::Paused && record.driver() == Driver::Process;
    record.is_live()
        && !is_paused_run
        && (disk::exists(&end_mark(home, &record.id))
            || owner_life(record.state.owner()) == Life::Gone)
}

/// Whether its agent is at work now, as far as this machine knows.
pub fn agent_works(home: &Home, record: &Loop) -> bool {
    record.state.status() == Status::Running && !owner_is_gone(home, record)
}

/// Whether a session's hooks judge the loop: its client is running, and it is not paused.
pub fn needs_hooks(home: &Home, record: &Loop) -> bool {
    record.driver() == Driver::Session
        && !matches!(record.state.status(), Status::Paused | Status::Finished)
        && owner_life(record.state.owner()) == Life::Alive
        && !owner_is_gone(home, record)
}

/// The reason with which a loop without an owner is ended.
pub fn gone_reason(record: &Loop) -> EndReason {
    EndReason::OwnerGone(record.driver())
}
