//! The process groups that the crew of a loop or of a fleet's task has started. Each child leads a
//! session, and its group is recorded on disk, so that the next crew can end a group that outlived
//! the last one. A group whose leader's id was reused is spared.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::Read;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, getpid};

#[cfg(not(target_os = "linux"))]
use super::identity::identify_process;
use super::{identity, signals};
use crate::env;
use crate::files::disk;
use engine::record::ProcessIdentity;
#[cfg(target_os = "linux")]
use readers::parse::process_table;

/// A bound greater than the number of groups that a loop has at one time.
const GROUPS_MAX: usize = 256;
/// The largest note that is read.
const NOTE_BYTES: u64 = 4096;

/// Creates the note of a group that is about to be started; it exists until it is dropped.
pub fn create_note(folder: &Path) -> io::Result<Note> {
    disk::make_private_folder(folder)?;
    let path = folder.join(format!("{:x}", env::random_number()));
    let file = disk::create_private(&path)?;
    Ok(Note { path, file })
}

/// A group's note.
#[derive(Debug)]
#[must_use]
pub struct Note {
    path: PathBuf,
    file: File,
}

impl Note {
    /// The file to which the group's leader is written.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = disk::remove(&self.path);
    }
}

/// Ends every group recorded in a folder that outlived its crew. A leader's id is not reused while
/// its group exists, so a leader with another start time means that the group is gone. If
/// `is_of_this_start` is false, the ids are from another machine or from before its last boot; then
/// the notes are only removed.
pub fn end_leftovers(folder: &Path, is_of_this_start: bool) {
    for name in disk::names(folder, GROUPS_MAX) {
        let file = folder.join(&name);
        let text = disk::read_text(&file, NOTE_BYTES).ok().flatten().unwrap_or_default();
        if let Some(leader) = noted_leader(&text) {
            let another = identity::identify_process(leader.pid)
                .is_some_and(|found| found.started != leader.started);
            if is_of_this_start && !another {
                signals::signal_group(leader.pid, Signal::KILL);
            }
        }
        let _ = disk::remove(&file);
    }
}

// The step between fork and exec that std does not offer: a session for a child, the parent's
// death signal, and a note of who leads a group. Nothing here allocates or locks in that step.

/// Makes a child the leader of a new session and group. It has no terminal, so nothing in it can
/// stop for one, ask there for a password, or write into what a person reads. On Linux it also
/// writes its identity into `note` before it runs anything, so that a crash cannot leave an unknown
/// group, and it gets `signal` when the process that started it dies.
pub fn lead_a_session(command: &mut Command, note: Option<File>, signal: Signal) {
    leave_the_terminal(command);
    #[cfg(target_os = "linux")]
    {
        before_exec(command, die_with(getpid(), signal));
        if let Some(note) = note {
            before_exec(command, move || sign_note(&note));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (note, signal);
}

/// Makes a child the leader of a new session without a terminal, so that it outlives this process.
/// The child must not lead a group already: `setsid` would fail.
pub fn leave_the_terminal(command: &mut Command) {
    before_exec(command, || Ok(rustix::process::setsid().map(drop)?));
}

#[cfg(target_os = "linux")]
fn die_with(parent: Pid, signal: Signal) -> impl FnMut() -> io::Result<()> + Send + Sync + 'static {
    move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // The parent may have died since the fork; then the signal is never sent.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

/// Writes the identity of this process, as the system reports it.
#[cfg(target_os = "linux")]
fn sign_note(note: &File) -> io::Result<()> {
    let mut row = [0; 1024];
    let length = File::open("/proc/self/stat")?.read(&mut row)?;
    let _ = (&*note).write(&row[..length]);
    Ok(())
}

/// Writes the identity of a group's leader, on systems where the leader cannot do so itself.
pub fn note_leader(note: &File, leader: i32) {
    #[cfg(not(target_os = "linux"))]
    if let Some(leader) = identify_process(leader) {
        let _ = write!(&*note, "{} {}", leader.pid, leader.started);
    }
    #[cfg(target_os = "linux")]
    let _ = (note, leader);
}

/// The process that a note names.
pub fn noted_leader(text: &str) -> Option<ProcessIdentity> {
    let (pid, rest) = text.split_once(' ')?;
    #[cfg(target_os = "linux")]
    let started = process_table::proc_stat(rest)?.started;
    #[cfg(not(target_os = "linux"))]
    let started = rest.to_owned();
    Some(ProcessIdentity { pid: pid.parse().ok()?, started })
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
