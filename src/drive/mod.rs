//! The drivers: from an event or a process's end to a judged and recorded boundary, and back to an
//! answer. They decide nothing (the engine does), phrase nothing (`report` does) and print nothing
//! (`cmd` does).

pub mod boundary;
pub mod control;
pub mod doctor;
pub mod end;
pub mod find;
pub mod install;
pub mod meter;
pub mod missing;
pub mod owner;
pub mod prompt;
pub mod resume;
pub mod run;
pub mod session;
pub mod start;
