//! Who owns a loop: what a new owner is recorded with, and what is known here about the process of
//! the present one. It ends nothing and takes nothing over.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::meter;
use crate::clients::{self, Hook};
use crate::engine::record::{
    Driver, Environment, Life, Loop, LoopId, Owner, Place, ProcessIdentity, SessionMemory, Status,
};
use crate::world::files::disk;
use crate::world::process::identity;
use crate::world::store::Home;
use crate::world::{clock, env, host, recorded_environment};

/// Who takes the loop.
#[derive(Debug)]
pub struct NewOwner {
    pub owner: Owner,
    pub memory: SessionMemory,
}

impl NewOwner {
    /// A session: the client's process and the session's id.
    pub fn session(hook: &Hook<'_>) -> Result<Self> {
        let process = identity::client(|hooks, above| hook.client.is_owner(hooks, above));
        let owner = Owner {
            driver: Driver::Session,
            session_id: hook.session_id.clone(),
            client: Some(hook.client.name().to_owned()),
            process: process.context("cannot tell which client this session belongs to")?,
            search_path: env::text("PATH"),
            host: host::host(),
        };
        Ok(Self { owner, memory: meter::begin(hook) })
    }

    /// This process.
    pub fn process() -> Result<Self> {
        Ok(Self { owner: myself()?, memory: SessionMemory::default() })
    }
}

/// The environment of a session that takes over a loop at `place`.
pub fn environment_of(owner: &Owner, place: &Place) -> Environment {
    let abilities = clients::of(owner).abilities();
    recorded_environment::of_session(place, abilities.settings, abilities.set_by)
}

/// This process as an owner.
pub fn myself() -> Result<Owner> {
    let process = identity::myself().context("cannot tell which process this is")?;
    let search_path = env::text("PATH");
    let host = host::host();
    let (session_id, client) = (None, None);
    Ok(Owner { driver: Driver::Process, session_id, client, process, search_path, host })
}

/// What is known here about an owner's process.
pub fn life(owner: &Owner) -> Life {
    owner.life(host::host().as_ref(), identity::is_alive)
}

/// Whether an owner is this process.
pub fn is(owner: &Owner, process: &ProcessIdentity) -> bool {
    let here = host::host();
    owner.process == *process && (here.is_none() || owner.is_of_this_start(here.as_ref()))
}

/// Whether this process owns a loop.
pub fn is_ours(record: &Loop) -> bool {
    myself().is_ok_and(|me| is(&record.state.owner, &me.process))
}

/// Awake milliseconds since the running iteration, or a wait, began. Zero if another machine
/// counted them, or this machine did before it was restarted.
pub fn spent_ms(record: &Loop) -> u64 {
    if record.state.owner.is_of_this_start(host::host().as_ref()) {
        clock::now().awake_ms.saturating_sub(record.state.began.awake_ms)
    } else {
        0
    }
}

/// Why a live loop of another machine is left alone; `None` for a loop of this machine.
pub fn elsewhere(record: &Loop) -> Option<String> {
    let (id, owner) = (&record.id, &record.state.owner);
    let name = &owner.host.as_ref()?.name;
    (life(owner) == Life::Elsewhere).then(|| {
        format!(
            "loop {id} is {}, owned by a process on another machine ({name}), which cannot be seen from here\n\
             hint: pause or end it there; if that machine is gone, `crew cancel {id}` ends it here, and it can \
             be resumed",
            record.status_word()
        )
    })
}

/// The file that marks a session as ended while another process held the loop's lock.
pub fn end_mark(home: &Home, id: &LoopId) -> PathBuf {
    home.loop_file(id, "ended")
}

/// Whether a live loop has lost its owner: the process of the client or crew is gone, or its
/// session ended. A paused run has no owner to lose: its crew has ended in good order, and the loop
/// stays paused.
pub fn owner_is_gone(home: &Home, record: &Loop) -> bool {
    let gone = || life(&record.state.owner) == Life::Gone;
    let rests = record.state.status == Status::Paused && record.driver() == Driver::Process;
    record.is_live() && !rests && (disk::exists(&end_mark(home, &record.id)) || gone())
}

/// Whether its agent is at work now, as far as this machine knows.
pub fn works(home: &Home, record: &Loop) -> bool {
    record.state.status == Status::Running && !owner_is_gone(home, record)
}

/// Whether a session's hooks are to judge it: its client lives, and no pause holds it.
pub fn needs_hooks(home: &Home, record: &Loop) -> bool {
    let rests = matches!(record.state.status, Status::Paused | Status::Finished);
    let is_here = || life(&record.state.owner) == Life::Alive;
    record.driver() == Driver::Session && !rests && is_here() && !owner_is_gone(home, record)
}

/// The reason an ownerless loop is ended with.
pub fn gone_why(record: &Loop) -> &'static str {
    match record.driver() {
        Driver::Session => "its client is gone",
        Driver::Process => "its crew is gone",
    }
}
