//! The process groups that the crew of a loop or of a fleet's task has started. Each child leads a
//! session, and its group is noted on disk, so that the next crew can end one that outlived the
//! last. It spares a group whose leader's id was reused.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::{identity, signals};
use crate::engine::record::ProcessIdentity;
use crate::world::env;
use crate::world::files::disk::{self, Durability};
use crate::world::store::{read_json, write_json};

/// More groups than a loop can have at once.
const GROUPS_MAX: usize = 256;
/// The largest note that is read.
const NOTE_BYTES: u64 = 4096;

/// Notes the leader of a group that was just started. The note exists until it is dropped; one that
/// cannot be made keeps no child from running. Until then a child dies with this process on Linux,
/// but what it has started by then outlives a kill of this process.
pub fn note(folder: &Path, leader: i32) -> Option<Note> {
    let leader = identity::identity(leader)?;
    let note = Note(folder.join(format!("{:x}", env::random())));
    disk::make_private_folder(folder).ok()?;
    write_json(&note.0, &leader, Durability::Remade).ok().map(|()| note)
}

/// A group's note.
#[derive(Debug)]
#[must_use]
pub struct Note(PathBuf);

impl Drop for Note {
    fn drop(&mut self) {
        let _ = disk::remove(&self.0);
    }
}

/// Ends every group noted in a folder that outlived the crew that started it. The id of a leader is
/// not reused while its group lives, so a leader with another start time means that the group is
/// gone. If `is_of_this_start` is false, the ids are from another machine or from before its last
/// boot: then they are only forgotten.
pub fn end_leftovers(folder: &Path, is_of_this_start: bool) {
    for name in disk::names(folder, GROUPS_MAX) {
        let file = folder.join(&name);
        let leader: Option<ProcessIdentity> = read_json(&file, NOTE_BYTES);
        let is_left = |leader: &ProcessIdentity| {
            identity::identity(leader.pid).is_none_or(|found| found == *leader)
        };
        if let Some(leader) = leader.filter(|leader| is_of_this_start && is_left(leader)) {
            signals::signal_group(leader.pid, Signal::KILL);
        }
        let _ = disk::remove(&file);
    }
}

// The step between fork and exec that std does not offer: a session for a child, and the parent's
// death signal. Nothing here allocates or locks in that step.

/// Makes a child the leader of a new session and group. Without a terminal nothing in it can stop
/// for one, ask there for a password, or write into what a person reads. On Linux it gets `signal`
/// when the process that starts it dies.
pub fn lead_a_session(command: &mut Command, signal: Signal) {
    leave_the_terminal(command);
    #[cfg(target_os = "linux")]
    {
        let parent = Some(rustix::process::getpid());
        before_exec(command, move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // The parent may have died since the fork; then the signal is never sent.
            let is_there = rustix::process::getppid() == parent;
            if is_there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = signal;
}

/// Makes a child the leader of a new session without a terminal, so that it outlives this process.
/// The child must not lead a group already: `setsid` would fail.
pub fn leave_the_terminal(command: &mut Command) {
    before_exec(command, || Ok(rustix::process::setsid().map(drop)?));
}

/// `step` runs between fork and exec: it may make system calls, and neither allocate nor lock.
fn before_exec(
    command: &mut Command,
    step: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    use std::os::unix::process::CommandExt;
    #[expect(unsafe_code, reason = "std's only door to the step between fork and exec")]
    // SAFETY: the steps of this file make system calls, and neither allocate nor lock.
    unsafe {
        command.pre_exec(step);
    }
}
