//! The drivers: from an event or a process's end to a judged and recorded boundary, and back to an answer.
//! Decisions are the engine's; words for people are `report`'s, and printing is `cmd`'s.

pub mod agent;
pub mod boundary;
pub mod cap;
pub mod companion;
pub mod detect;
pub mod ending;
pub mod establish;
pub mod examine;
pub mod failure;
pub mod find;
pub mod gather;
pub mod handoff;
pub mod hold;
pub mod install;
pub mod meter;
mod missing;
pub mod notice;
pub mod place;
pub mod procedures;
pub mod process;
pub mod queued;
pub mod reactions;
pub mod refused;
pub mod resume;
pub mod session;
pub mod settings;
pub mod skew;
pub mod start;
pub mod steer;
pub mod stop;
pub mod terms;
pub mod untold;
