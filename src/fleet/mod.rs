//! Fleets: a folder of tasks, each of which is a loop. `tasks` reads the folder. One coordinator is
//! the only writer of the fleet's record. An attempt is a process that runs a task's loop in its
//! own clone. Tasks land one at a time. No model claims, merges or lands anything.

pub mod attempt;
pub mod coordinator;
pub mod executors;
pub mod files;
pub mod landing;
pub mod plan;
pub mod preflight;
pub mod record;
pub mod spec;
pub mod status;
pub mod step;
pub mod store;
pub mod tasks;
pub mod verbs;

#[cfg(test)]
pub mod fixture;
