//! What the tests of several crates share. It knows nothing of crew, and fails a test where the
//! machine fails it.

use tempfile::{Builder, TempDir};

/// The file system in memory that a Linux usually has.
#[cfg(target_os = "linux")]
const MEMORY: &str = "/dev/shm";
/// Free bytes that eight tests at once do not fill.
#[cfg(target_os = "linux")]
const ROOM: u64 = 2 << 30;

/// An empty folder of one test, in memory where it fits: a disk spends a third of the time of git's
/// many small files. It is removed when it is dropped.
pub fn folder() -> TempDir {
    let mut builder = Builder::new();
    builder.prefix("crew-");
    in_memory(&builder).unwrap_or_else(|| builder.tempdir().expect("a temporary folder"))
}

#[cfg(target_os = "linux")]
fn in_memory(builder: &Builder<'_, '_>) -> Option<TempDir> {
    let memory = rustix::fs::statvfs(MEMORY).ok()?;
    let runs_programs = !memory.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
    let has_room = memory.f_bavail * memory.f_frsize >= ROOM;
    if runs_programs && has_room { builder.tempdir_in(MEMORY).ok() } else { None }
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &Builder<'_, '_>) -> Option<TempDir> {
    None
}
