//! The rules of a loop, as values in and values out: what the end of an iteration was (`judge`),
//! and what to do about it (`decide`). Everything a rule may look at is in `Loop` or `Facts`; time
//! comes in as an argument. Nothing here reads a file, a clock, the environment or a process, and
//! nothing here knows which driver called it.

pub mod boundary;
pub mod claim;
pub mod doctor;
pub mod evidence;
pub mod failure;
pub mod fleet;
pub mod git;
pub mod journal;
pub mod protect;
pub mod record;
pub mod test_changes;
pub mod text;
pub mod usage;
pub mod view;
pub mod words;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
