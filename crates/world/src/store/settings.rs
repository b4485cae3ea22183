//! Reads settings from this machine: the user's file, the project's file, and the environment's
//! variables. Which of them is in force is decided in `parse/settings/merge.rs`.

use std::path::{Path, PathBuf};

use crate::env;
use crate::files::disk;
use readers::parse::settings::merge::{Layer, parse_variables};
use readers::parse::settings::{ParsedSettings, SettingsOwner, parse_settings};

/// The largest settings file that is read.
pub const FILE_BYTES: u64 = 256 << 10;

/// The user's own file; `None` if this user has no home folder. On Claude Code 2.1.330 a project's
/// settings cannot change the two variables that locate it.
pub fn user_file() -> Option<PathBuf> {
    Some(env::find_folder("XDG_CONFIG_HOME", ".config")?.join("crew").join("config.toml"))
}

/// The project's file.
pub fn project_file(checkout: &Path) -> PathBuf {
    checkout.join(".claude").join("crew.toml")
}

/// Reads a settings file; `outputs` are the formats of an agent's output that can be read. `None`
/// when it does not exist; an error lists every fault.
pub fn read_settings_file(
    path: &Path,
    whose: SettingsOwner,
    outputs: &[&'static str],
) -> Result<Option<ParsedSettings>, String> {
    let bytes = disk::read(path, FILE_BYTES).map_err(|error| error.to_string())?;
    let Some(bytes) = bytes else { return Ok(None) };
    let text = String::from_utf8(bytes);
    let text =
        text.map_err(|_| format!("{} is not UTF-8 text: save it as such", path.display()))?;
    parse_settings(&text, path, whose, outputs, &disk::is_file).map(Some)
}

/// The settings from the environment. The error has one line for each variable that cannot be used.
pub fn read_environment() -> Result<Layer, String> {
    parse_variables(&env::text)
}
