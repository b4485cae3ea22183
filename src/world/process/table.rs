//! Linux: the other processes of this machine, read from `/proc`. It only looks; `signals` sends
//! signals.

use std::path::Path;

use super::identity;
use crate::engine::text::start;
use crate::parse::process_table::ProcessRow;
use crate::world::files::disk;

/// The most processes that are looked at.
const PROCESSES_MAX: usize = 1 << 17;
/// The longest environment that is searched.
const ENVIRONMENT_BYTES: u64 = 2 << 20;

/// Every process with its id.
pub fn table() -> Vec<(i32, ProcessRow)> {
    let names = disk::names(Path::new("/proc"), PROCESSES_MAX);
    let ids = names.iter().filter_map(|name| name.parse().ok());
    ids.filter_map(|pid| Some((pid, identity::row(pid)?))).collect()
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
pub fn command(pid: i32) -> String {
    let path = format!("/proc/{pid}/cmdline");
    let found = disk::read_text(Path::new(&path), ENVIRONMENT_BYTES);
    let words = found.ok().flatten().unwrap_or_default().replace('\0', " ");
    start(words.trim_end(), 60).to_owned()
}
