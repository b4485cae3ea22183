//! Where settings come from on this machine: the user's file, the project's file, and the variables of
//! the environment. It reads and hands over; what is in force is the engine's to say.

use std::io;
use std::path::{Path, PathBuf};

use super::disk;
use super::env;
use crate::engine::settings::{Layer, Limit, Origin, Sourced};
use crate::parse::settings::{Read, limit, parse};

/// The largest settings file that is read.
const FILE_BYTES: u64 = 256 << 10;

/// The user's own file; `None` where this user has no home. On Claude Code 2.1.330 a project's settings
/// cannot move the two variables it is found by.
pub fn user_file() -> Option<PathBuf> {
    let folder =
        env::path("XDG_CONFIG_HOME").or_else(|| Some(env::path("HOME")?.join(".config")))?;
    Some(folder.join("crew").join("config.toml"))
}

/// The project's file.
pub fn project_file(checkout: &Path) -> PathBuf {
    checkout.join(".claude").join("crew.toml")
}

/// Reads a settings file. `None` when there is none; an error tells every fault of it.
pub fn read(path: &Path) -> Result<Option<Read>, String> {
    let told = |error: io::Error| format!("cannot read {}: {error}", path.display());
    let Some(bytes) = disk::read(path, FILE_BYTES).map_err(told)? else { return Ok(None) };
    let text = String::from_utf8(bytes);
    let text =
        text.map_err(|_| format!("{} is not UTF-8 text: save it as such", path.display()))?;
    parse(&text, path).map(Some)
}

/// The limits the environment names. The error is one line for each that cannot be used.
pub fn environment() -> Result<Layer, String> {
    let mut layer = Layer::default();
    let mut faults = Vec::new();
    for which in Limit::ALL {
        let name = which.variable();
        let Some(text) = env::text(name) else { continue };
        match limit(which, &text) {
            Ok(value) => {
                let origin = Origin::Environment(name);
                layer.limits.insert(which, Sourced { value, origin });
            }
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(layer) } else { Err(faults.join("\n")) }
}
