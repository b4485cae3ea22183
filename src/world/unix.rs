//! What only Unix has: process ids, sessions, signals, and the parent's death signal. The one file with
//! `unsafe` in it, for the step between fork and exec that std does not offer.

use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::Read;
use std::io::{self, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Pid, Signal, getpid, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::engine::owner::ProcessIdentity;
use crate::parse::process_table::Row;

/// Ends this process at once, as a crash would.
#[cfg(debug_assertions)]
pub fn kill_myself() -> ! {
    let _ = rustix::process::kill_process(getpid(), Signal::KILL);
    std::process::abort()
}

/// A flag that rises when the client or the user asks this process to end.
pub fn end_requested() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// Has a child begin a process group of its own. On Linux it also writes who it is into `note` before it
/// runs anything, so that no crash can leave a group that nobody knows, and dies with the process that
/// starts it.
pub fn lead_a_group(command: &mut Command, note: Option<File>) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
    #[cfg(target_os = "linux")]
    {
        before_exec(command, die_with(getpid()));
        if let Some(note) = note {
            before_exec(command, move || sign(&note));
        }
    }
    #[cfg(not(target_os = "linux"))]
    drop(note);
}

/// The same with a session of its own, which makes the group.
pub fn lead_a_session(command: &mut Command) {
    before_exec(command, || Ok(rustix::process::setsid().map(drop)?));
    #[cfg(target_os = "linux")]
    before_exec(command, die_with(getpid()));
}

#[cfg(target_os = "linux")]
fn die_with(parent: Pid) -> impl FnMut() -> io::Result<()> + Send + Sync + 'static {
    move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died between fork and here; then nobody sends the signal.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

/// Writes who this process is, as the system tells it.
#[cfg(target_os = "linux")]
fn sign(note: &File) -> io::Result<()> {
    let mut row = [0; 1024];
    let length = File::open("/proc/self/stat")?.read(&mut row)?;
    let _ = (&*note).write(&row[..length]);
    Ok(())
}

/// Writes who leads a group, where the leader cannot do it itself.
pub fn note_leader(note: &File, leader: i32) {
    #[cfg(not(target_os = "linux"))]
    if let Some(leader) = identity(leader) {
        let _ = write!(&*note, "{} {}", leader.pid, leader.started);
    }
    #[cfg(target_os = "linux")]
    let _ = (note, leader);
}

/// The process that a note tells of.
pub fn noted_leader(text: &str) -> Option<ProcessIdentity> {
    let (pid, rest) = text.split_once(' ')?;
    #[cfg(target_os = "linux")]
    let started = crate::parse::process_table::proc_stat(rest)?.started;
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

/// Which signal a group gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupSignal {
    Term,
    Kill,
}

/// Signals a whole group by its leader's id; a group that is gone is as good.
pub fn signal_group(leader: i32, signal: GroupSignal) {
    let signal = match signal {
        GroupSignal::Term => Signal::TERM,
        GroupSignal::Kill => Signal::KILL,
    };
    // 0 and 1 would mean this group and every process.
    if let Some(leader) = Pid::from_raw(leader).filter(|leader| leader.as_raw_nonzero().get() > 1) {
        let _ = kill_process_group(leader, signal);
    }
}

/// Whether any process of a group is left.
pub fn group_lives(leader: i32) -> bool {
    Pid::from_raw(leader)
        .is_some_and(|leader| rustix::process::test_kill_process_group(leader).is_ok())
}

/// The process that runs this hook: the first one above us in another session. The client gives each
/// hook a session of its own (tried on 2.1.197 and 2.1.330), so shells between it and us do not count.
pub fn client() -> Option<ProcessIdentity> {
    let me = row(getpid().as_raw_nonzero().get())?;
    let mut pid = me.parent;
    for _ in 0..64 {
        let parent = row(pid)?;
        if parent.session != me.session || parent.parent <= 1 {
            return Some(ProcessIdentity { pid, started: parent.started });
        }
        pid = parent.parent;
    }
    None
}

/// This process.
pub fn myself() -> Option<ProcessIdentity> {
    identity(getpid().as_raw_nonzero().get())
}

/// A process by its id; `None` when there is none.
pub fn identity(pid: i32) -> Option<ProcessIdentity> {
    Some(ProcessIdentity { pid, started: row(pid)?.started })
}

/// Whether this very process, not a later one with its id, is there.
pub fn is_alive(process: &ProcessIdentity) -> bool {
    row(process.pid).is_some_and(|row| row.started == process.started)
}

/// When this process was started, in milliseconds since boot, rounded down to the system's tick.
pub fn started_ms() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let ticks: u64 = myself()?.started.parse().ok()?;
        Some(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(target_os = "linux")]
fn row(pid: i32) -> Option<Row> {
    let path = format!("/proc/{pid}/stat");
    let text = super::disk::read_text(std::path::Path::new(&path), 4096).ok()??;
    crate::parse::process_table::proc_stat(&text)
}

#[cfg(not(target_os = "linux"))]
fn row(pid: i32) -> Option<Row> {
    let text =
        super::process::output_of("ps", &["-o", "ppid=,sess=,lstart=", "-p", &pid.to_string()])?;
    crate::parse::process_table::ps(&text)
}
