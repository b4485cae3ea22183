//! Fleets: a folder of tasks, each of which is a loop. `tasks` reads the folder, one coordinator is
//! the only writer of the fleet's record, an attempt is a process that runs a task's loop in a
//! clone of its own, and landing is serial. No model claims, merges or lands anything.

pub mod attempt;
pub mod clean;
pub mod coordinator;
mod effects;
mod ending;
pub mod events;
pub mod executors;
pub mod files;
mod folder_watch;
pub mod landing;
pub mod lines;
pub mod plan;
pub mod plan_page;
pub mod preflight;
pub mod record;
pub mod requests;
pub mod shared;
pub mod spec;
pub mod status;
pub mod step;
mod step_requests;
pub mod store;
pub mod tasks;
pub mod verbs;
mod worker;
pub mod workspace;

#[cfg(test)]
pub mod fixture;
