//! The drivers: from an event or a process's end to a judged and recorded boundary, and back to an answer.
//! Decisions are the engine's; words for people are `report`'s, and printing is `cmd`'s.

pub mod boundary;
pub mod companion;
pub mod ending;
pub mod find;
pub mod gather;
pub mod place;
pub mod session;
pub mod start;
pub mod stop;
pub mod terms;
