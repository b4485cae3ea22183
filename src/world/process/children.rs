//! Children, groups and orphans: what has ended is reaped here. Nothing here sends a signal.

use std::io;

#[cfg(target_os = "linux")]
use rustix::process::getpid;
use rustix::process::{Pid, WaitOptions};

/// Reaps what has ended in a group whose leader is already reaped.
pub fn reap_group(leader: i32) {
    let Some(leader) = Pid::from_raw(leader) else { return };
    while let Ok(Some(_)) = rustix::process::waitpgid(leader, WaitOptions::NOHANG) {}
}

/// Whether a process of the group is left.
pub fn group_lives(leader: i32) -> bool {
    Pid::from_raw(leader)
        .is_some_and(|leader| rustix::process::test_kill_process_group(leader).is_ok())
}

/// Whether this process becomes the parent of every orphan among its descendants. Only Linux
/// supports this.
pub fn be_subreaper(is_one: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::process::set_child_subreaper(is_one.then(getpid))?);
    #[cfg(not(target_os = "linux"))]
    Err(io::Error::new(io::ErrorKind::Unsupported, is_one.to_string()))
}

/// Whether this process has any child, including ones that ended.
pub fn has_children() -> bool {
    !matches!(look_at_children(), Err(rustix::io::Errno::CHILD))
}

/// Whether a child of this process has ended and has not been reaped.
pub fn has_ended_child() -> bool {
    matches!(look_at_children(), Ok(Some(_)))
}

fn look_at_children() -> rustix::io::Result<Option<rustix::process::WaitIdStatus>> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

/// Reaps a child that has ended.
pub fn reap(pid: i32) {
    let _ = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
}
