//! Which machine this is, and since which start of it: without both a process id means nothing. Says nothing where
//! the system does not tell.

#[cfg(target_os = "linux")]
use std::path::Path;

use rustix::system::uname;

use super::files::disk;
use super::store::home::hash;
#[cfg(target_os = "linux")]
use crate::engine::record::owner::Host;

/// The longest id that is read.
#[cfg(target_os = "linux")]
const ID_BYTES: u64 = 256;

/// This machine since its last start.
pub fn host() -> Option<Host> {
    let (machine, boot) = ids()?;
    // The id itself is not for others to see (machine-id(5)), and programs read what is recorded.
    let machine =
        if machine.is_empty() { machine } else { hash(format!("crew {machine}").as_bytes()) };
    Some(Host { name: uname().nodename().to_string_lossy().into_owned(), machine, boot })
}

/// A container may have no machine id: then it is empty.
#[cfg(target_os = "linux")]
fn ids() -> Option<(String, String)> {
    let line = |path| Some(disk::read_text(Path::new(path), ID_BYTES).ok()??.trim().to_owned());
    Some((line("/etc/machine-id").unwrap_or_default(), line("/proc/sys/kernel/random/boot_id")?))
}

#[cfg(not(target_os = "linux"))]
fn ids() -> Option<(String, String)> {
    let arguments = ["-n", "kern.uuid", "kern.bootsessionuuid"];
    let told = super::process::output_of("sysctl", &arguments)?;
    let mut lines = told.lines().map(|line| line.trim().to_owned());
    Some((lines.next()?, lines.next()?))
}
