//! Readers of foreign text: git's porcelain, the system's process tables, settings files, the raw
//! words after a command. Text in, values out: no reader here touches a file, and none panics on
//! junk. What was not understood is absent or an error.

pub mod amounts;
pub mod arguments;
pub mod fragment;
pub mod git;
pub mod patterns;
pub mod process_table;
pub mod project;
pub mod remote;
pub mod requests;
#[cfg(any(test, feature = "fixture"))]
pub mod schema_fixture;
pub mod service;
pub mod settings;
pub mod shell_command;
pub mod spelling;
pub mod test_changes;
pub mod test_output;
