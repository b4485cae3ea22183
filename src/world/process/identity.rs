//! Identifies processes: by id and start time, because ids are reused. Reads the system's table and
//! sends no signal.

use rustix::process::getpid;

use crate::engine::record::ProcessIdentity;
use crate::parse::process_table::{self, ProcessRow};
#[cfg(target_os = "linux")]
use crate::world::files::disk;

/// The process that runs this hook: the nearest ancestor for which `is_owner`, given this process
/// and the ancestor, is true.
pub fn client(is_owner: impl Fn(&ProcessRow, &ProcessRow) -> bool) -> Option<ProcessIdentity> {
    let me = row(my_id())?;
    let mut pid = me.parent;
    for _ in 0..64 {
        let parent = row(pid)?;
        if is_owner(&me, &parent) || parent.parent <= 1 {
            return Some(ProcessIdentity { pid, started: parent.started });
        }
        pid = parent.parent;
    }
    None
}

/// This process.
pub fn myself() -> Option<ProcessIdentity> {
    identity(my_id())
}

/// A process by its id; `None` when there is none.
pub fn identity(pid: i32) -> Option<ProcessIdentity> {
    Some(ProcessIdentity { pid, started: row(pid)?.started })
}

/// Whether this process, not a later one with the same id, exists and has not ended.
pub fn is_alive(process: &ProcessIdentity) -> bool {
    row(process.pid).is_some_and(|row| row.started == process.started && !row.has_ended)
}

/// Whether this process has ended and its parent has reaped it.
pub fn is_reaped(process: &ProcessIdentity) -> bool {
    row(process.pid).is_none_or(|row| row.started != process.started)
}

/// Whether this process is a session leader.
#[cfg(test)]
pub fn leads_its_session() -> bool {
    rustix::process::getsid(None) == Ok(getpid())
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
pub(super) fn row(pid: i32) -> Option<ProcessRow> {
    let path = format!("/proc/{pid}/stat");
    let text = disk::read_text(std::path::Path::new(&path), 4096).ok()??;
    process_table::proc_stat(&text)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn row(pid: i32) -> Option<ProcessRow> {
    let text = super::output_of("ps", &["-o", "ppid=,sess=,lstart=", "-p", &pid.to_string()])?;
    process_table::ps(&text)
}

/// This process's id.
pub fn my_id() -> i32 {
    getpid().as_raw_nonzero().get()
}
