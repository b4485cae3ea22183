//! The drivers: from an event or a process's end to a judged and recorded boundary, and back to an
//! answer. They decide nothing (the engine does), lay out no page (`report` does) and print nothing
//! (`cmd` does). An error and its hint are worded where they arise.

pub mod back;
pub mod boundary;
pub mod clean;
pub mod control;
pub mod doctor;
pub mod end;
pub mod failure;

pub mod find;
pub mod install;
pub mod meter;
pub mod page;
pub mod plugin_files;
pub mod prompt;
pub mod prove;
pub mod resume;
pub mod run;
pub mod scratch;
pub mod session;
pub mod shell_files;
pub mod slurm;
pub mod start;
pub mod test_changes;
pub mod tree;
pub mod trial;
pub mod windows;
