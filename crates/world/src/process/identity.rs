//! The processes of this machine, from the system's table: identified by id and start time, because
//! ids are reused. It only reads; `signals` sends signals.

use std::path::Path;

use rustix::process::getpid;

use crate::files::disk;
use engine::record::ProcessIdentity;
use engine::text::text_start;
use readers::parse::process_table::{self, ProcessRow};

/// The process that runs this hook: the nearest ancestor for which `is_owner`, given this process
/// and the ancestor, is true.
pub fn find_client(is_owner: impl Fn(&ProcessRow, &ProcessRow) -> bool) -> Option<ProcessIdentity> {
    let me = read_row(my_id())?;
    let mut pid = me.parent;
    for _ in 0..64 {
        let parent = read_row(pid)?;
        if is_owner(&me, &parent) || parent.parent <= 1 {
            return Some(ProcessIdentity { pid, started: parent.started });
        }
        pid = parent.parent;
    }
    None
}

/// This process.
pub fn this_process() -> Option<ProcessIdentity> {
    identify_process(my_id())
}

/// A process by its id; `None` when it does not exist.
pub fn identify_process(pid: i32) -> Option<ProcessIdentity> {
    Some(ProcessIdentity { pid, started: read_row(pid)?.started })
}

/// Whether this process, not a later one with the same id, exists and has not ended.
pub fn is_alive(process: &ProcessIdentity) -> bool {
    read_row(process.pid).is_some_and(|row| row.started == process.started && !row.has_ended)
}

/// Whether this process has ended and its parent has reaped it.
pub fn is_reaped(process: &ProcessIdentity) -> bool {
    read_row(process.pid).is_none_or(|row| row.started != process.started)
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
        let ticks: u64 = this_process()?.started.parse().ok()?;
        Some(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(target_os = "linux")]
pub(super) fn read_row(pid: i32) -> Option<ProcessRow> {
    let path = format!("/proc/{pid}/stat");
    let text = disk::read_text(Path::new(&path), 4096).ok()??;
    process_table::proc_stat(&text)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn read_row(pid: i32) -> Option<ProcessRow> {
    let text = super::output_of("ps", &["-o", "ppid=,sess=,lstart=", "-p", &pid.to_string()])?;
    process_table::parse_ps(&text)
}

/// This process's id.
pub fn my_id() -> i32 {
    getpid().as_raw_nonzero().get()
}

// Linux only: the table itself, read from `/proc`.

/// The maximum number of processes examined.
const PROCESSES_MAX: usize = 1 << 17;
/// The longest environment that is searched.
const ENVIRONMENT_BYTES: u64 = 2 << 20;

/// Every process with its id.
pub fn read_table() -> Vec<(i32, ProcessRow)> {
    let names = disk::names(Path::new("/proc"), PROCESSES_MAX);
    let ids = names.iter().filter_map(|name| name.parse().ok());
    ids.filter_map(|pid| Some((pid, read_row(pid)?))).collect()
}

/// Whether a process of this user was started with `variable`, given as `NAME=value`.
pub fn has_variable(pid: i32, variable: &str) -> bool {
    let path = format!("/proc/{pid}/environ");
    let found = disk::read(Path::new(&path), ENVIRONMENT_BYTES);
    let environment = found.ok().flatten().unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
}

/// Whether the working folder of a process of this user is inside `folder`.
pub fn works_in(pid: i32, folder: &Path) -> bool {
    let at = format!("/proc/{pid}/cwd");
    disk::real_path(Path::new(&at)).is_ok_and(|at| at.starts_with(folder))
}

/// The beginning of a process's command line.
pub fn read_command(pid: i32) -> String {
    let path = format!("/proc/{pid}/cmdline");
    let found = disk::read_text(Path::new(&path), ENVIRONMENT_BYTES);
    let words = found.ok().flatten().unwrap_or_default().replace('\0', " ");
    text_start(words.trim_end(), 60).to_owned()
}
