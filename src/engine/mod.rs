//! The rules of a loop, as values in and values out: what an iteration's end was (`judge`), and what
//! to do about it (`decide`). Everything a rule may look at is in `Loop` or `Facts`; time comes in as
//! an argument. Nothing here reads a file, a clock, the environment or a process, and nothing here
//! knows which driver called it.

pub mod account;
pub mod agent;
pub mod claim;
pub mod contract;
pub mod crash;
pub mod decide;
pub mod environment;
pub mod evidence;
pub mod facts;
pub mod git;
pub mod git_memory;
pub mod handoff;
pub mod health;
pub mod journal;
pub mod judge;
pub mod limits;
#[path = "loop.rs"]
pub mod looped;
pub mod news;
pub mod outcome;
pub mod owner;
pub mod prices;
pub mod progress;
pub mod promise;
pub mod prompt;
pub mod protect;
pub mod reaction;
pub mod recovery;
pub mod run;
pub mod settings;
pub mod size;
pub mod story;
pub mod text;
pub mod times;
pub mod upgrade;
pub mod usage;
pub mod view;
pub mod wants;

#[cfg(test)]
pub mod fixture;
