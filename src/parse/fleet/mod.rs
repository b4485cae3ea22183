//! Reads a fleet's folder: task files in Markdown with front matter, and fleet.toml. All that is
//! wrong in any of them is reported at once, because one unknown key or broken fence starts
//! nothing.

mod folder;
#[cfg(test)]
mod folder_tests;
mod front_matter;
mod options;
#[cfg(test)]
mod properties;
pub mod slurm;
#[cfg(test)]
mod tests;

pub use self::folder::{FLEET_FILE, folder, is_task};
pub use self::options::as_keys;
use crate::engine::fleet::FleetTask;
use crate::parse::arguments::{RunArgs, UsageError, run_of};

/// The largest task file and the largest fleet.toml, in bytes.
pub const MAX_FLEET_FILE_BYTES: u64 = 1 << 20;

/// The arguments of `crew run` for a task, whose prompt stays as it is.
///
/// # Errors
/// When a word of a recorded task is not one that this crew takes.
pub fn run_args(task: &FleetTask) -> Result<RunArgs, UsageError> {
    run_of(&task.words, &task.prompt).map_err(|error| error.about(task.id.as_str()))
}
