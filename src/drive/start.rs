//! Starts a loop: the contract from the user's words, one loop per working tree, and the files in an order
//! that a crash cannot turn into half a loop (the record comes last; pointers to nothing mean nothing).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::ending::{self, Attempt};
use super::meter;
use super::place;
use super::terms::{contract, typed};
use super::{detect, settings};
use crate::engine::contract::Contract;
use crate::engine::journal::Event;
use crate::engine::looped::{Loop, LoopId, State, VERSION};
use crate::engine::owner::{Driver, Owner};
use crate::parse::arguments::LoopArguments;
use crate::world::home::{Home, read_pointer, write_pointer};
use crate::world::store::{self, Held, LOCK_WAIT};
use crate::world::{clock, disk, env, git, unix, view};

/// Who wants a loop, and where.
#[derive(Debug)]
pub struct Request<'a> {
    pub arguments: LoopArguments,
    pub session_id: &'a str,
    pub prompt_id: Option<String>,
    /// Where the agent is now.
    pub cwd: &'a Path,
    /// Where its client was started.
    pub project: Option<PathBuf>,
    pub transcript: Option<PathBuf>,
}

/// A loop that has begun.
#[derive(Debug)]
pub struct Started {
    pub record: Loop,
    /// A check that would fit this working tree, when the loop has none.
    pub suggestion: Option<String>,
    /// What the user should know: one sentence each.
    pub notes: Vec<String>,
}

/// Starts a loop for a session. `None` when this very command has started it already: the plugin may be
/// loaded twice. Any error means that nothing was started, and says why.
pub fn start(home: &Home, request: Request<'_>) -> Result<Option<Started>> {
    let process = unix::client().context("cannot tell which client this session belongs to")?;
    let place = place::place(request.cwd, request.project.as_deref())
        .with_context(|| format!("cannot look at {}", request.cwd.display()))?;
    let known = settings::look(home, &place.checkout, !request.arguments.no_project)?;
    let typed = typed(&request.arguments, &place.folder)?;
    let (settings, mut notes) = settings::for_start(home, known, typed)?;
    let contract = contract(&request.arguments, &settings, request.cwd)?;
    home.make().with_context(|| format!("cannot keep loops in {}", home.root().display()))?;
    home.settle()?;
    let pointer = home.checkout_pointer(&place.checkout);
    let lock = disk::lock(&pointer.with_extension("lock"), LOCK_WAIT)?;
    let _lock = lock.context("another loop is being started in this working tree")?;
    let session_pointer = home.session_pointer(request.session_id);
    for occupied in [&pointer, &session_pointer] {
        let Some(id) = read_pointer(occupied)? else { continue };
        match vacate(home, &id, &contract, &request)? {
            Vacancy::SameCommand => return Ok(None),
            Vacancy::Free(note) => notes.extend(note),
        }
    }
    let id = LoopId::from_random(env::random());
    let now = clock::now();
    disk::make_private_folder(&home.loop_folder(&id))?;
    let stall = contract.limits.stall > 0;
    let owner = Owner {
        driver: Driver::Session,
        session_id: Some(request.session_id.to_owned()),
        process,
        search_path: env::text("PATH"),
    };
    let mut record = Loop {
        version: VERSION,
        id,
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: now.wall,
        contract,
        place,
        elapsed_ms: Vec::new(),
        state: State::begin(owner, now),
    };
    record.state.session = meter::begin(request.prompt_id, request.transcript);
    record.state.tree = if stall { git::fingerprint(&record.place.checkout) } else { None };
    write_pointer(&pointer, &record.id)?;
    write_pointer(&session_pointer, &record.id)?;
    let held = store::hold(home, &record.id, LOCK_WAIT)?;
    let record = begin(home, &held, record)?;
    if let Err(error) = view::write(&record) {
        notes.push(format!("the checkout's files could not be written ({error})"));
    }
    if let Some(theirs) = &home.overridden {
        let ours = home.root().display();
        let note =
            format!("CREW_HOME is {}, but this client's loops are in {ours}", theirs.display());
        let _ = held.note_once(&record, "overridden", || note.clone());
        notes.push(note);
    }
    let suggestion = if record.contract.checks.is_empty() {
        let mut found = detect::checks(&record.place.folder).checks.into_iter();
        found.next().map(|detected| detected.run)
    } else {
        None
    };
    Ok(Some(Started { record, suggestion, notes }))
}

/// Records the start. When that fails the user is told that nothing was started, so nothing may be there.
fn begin(home: &Home, held: &Held, record: Loop) -> Result<Loop> {
    let file = home.loop_file(&record.id, "loop.json");
    let started = |next: &Loop| Event::Started { record: Box::new(next.clone()) };
    let recorded = held.record(record, started);
    if recorded.is_err() {
        disk::remove(&file)?;
    }
    Ok(recorded?)
}

enum Vacancy {
    /// Nothing stands in the way, or no longer: with a note where a loop had to go.
    Free(Option<String>),
    SameCommand,
}

/// Sees to it that the loop a pointer names is no obstacle, or says who is in the way.
fn vacate(home: &Home, id: &LoopId, contract: &Contract, request: &Request<'_>) -> Result<Vacancy> {
    let record = match store::load(home, id) {
        Ok(record) => record,
        Err(store::StoreError::Absent(_) | store::StoreError::Corrupt { .. }) => {
            return Ok(Vacancy::Free(None));
        }
        Err(error) => return Err(error.into()),
    };
    if !record.is_live() {
        return Ok(Vacancy::Free(None));
    }
    let owner = &record.state.owner;
    let same_command = owner.session_id.as_deref() == Some(request.session_id)
        && record.state.session.prompt_id == request.prompt_id
        && record.state.boundaries == 0
        && record.contract == *contract;
    if same_command {
        return Ok(Vacancy::SameCommand);
    }
    let attempt = if ending::owner_is_gone(home, &record) {
        ending::interrupt(home, id, ending::gone_why(&record), LOCK_WAIT)?
    } else if request.arguments.replace {
        ending::cancel(home, id, "user", Some("replaced by a new loop"))?
    } else {
        bail!(occupied(&record, request.session_id));
    };
    match attempt {
        Attempt::LeftToTheBoundary => bail!("loop {id} is busy; try again in a moment"),
        Attempt::Over(_) => Ok(Vacancy::Free(None)),
        Attempt::Ended(ended) => {
            let outcome = ended.record.standing();
            let done = ended.record.state.completed;
            Ok(Vacancy::Free(Some(format!("loop {id} is now {outcome} after {done} iterations"))))
        }
    }
}

fn occupied(record: &Loop, session_id: &str) -> String {
    let owner = &record.state.owner;
    let who = if owner.session_id.as_deref() == Some(session_id) {
        "this session".to_owned()
    } else {
        let session = owner.session_id.as_deref().unwrap_or("none");
        format!("session {session}, process {}", owner.process.pid)
    };
    format!(
        "loop {} is {} here at iteration {}, owned by {who}\n\
         hint: end it with `crew cancel {}`, start over it with --replace, or use another git worktree",
        record.id,
        record.standing(),
        record.iteration(),
        record.id,
    )
}
