//! Identifies this machine and its last boot: without both, a process id means nothing. Returns
//! nothing where the system does not say.

use rustix::system::uname;

use super::store::home::hash;
use crate::engine::record::Host;

/// The longest id that is read.
#[cfg(target_os = "linux")]
const ID_BYTES: u64 = 256;

/// The identity of this machine and its last boot.
pub fn host() -> Option<Host> {
    let (machine, boot) = ids()?;
    // The machine id itself must not be exposed (machine-id(5)), and other programs read the
    // record.
    let machine =
        if machine.is_empty() { machine } else { hash(format!("crew {machine}").as_bytes()) };
    Some(Host { name: uname().nodename().to_string_lossy().into_owned(), machine, boot })
}

/// A container may have no machine id; then it is empty.
#[cfg(target_os = "linux")]
fn ids() -> Option<(String, String)> {
    let text = |path: &str| super::files::disk::read_text(path.as_ref(), ID_BYTES).ok()?;
    let line = |path| Some(text(path)?.trim().to_owned());
    Some((line("/etc/machine-id").unwrap_or_default(), line("/proc/sys/kernel/random/boot_id")?))
}

#[cfg(not(target_os = "linux"))]
fn ids() -> Option<(String, String)> {
    let arguments = ["-n", "kern.uuid", "kern.bootsessionuuid"];
    let told = super::process::output_of("sysctl", &arguments)?;
    let mut lines = told.lines().map(|line| line.trim().to_owned());
    Some((lines.next()?, lines.next()?))
}
