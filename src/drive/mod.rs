//! The drivers: from an event or a process's end to a judged and recorded boundary, and back to an
//! answer. They decide nothing (the engine does), lay out no page (`report` does) and print nothing
//! (`cmd` does). An error and its hint are written where the error arises.

pub mod boundary;
pub mod checks;
pub mod control;
pub mod end;
pub mod failure;
pub mod find;
pub mod installation;
pub mod page;
pub mod prompt;
pub mod resume;
pub mod run;
pub mod session;
pub mod start;
pub mod transcript;
pub mod tree;
pub mod usage;
pub mod windows;
