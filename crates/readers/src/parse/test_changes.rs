//! Reads what the commands of checks name, and the parts of files that are tests or configure
//! checks. It runs nothing; a doubtful name counts.

mod command;
pub mod files;
mod purpose;

pub use self::command::{named_paths, path_below};
pub use self::purpose::{is_static, only_what_changed, path_out};
