//! Fleets: many loops at once. `describe` reads a folder of tasks, `begin` records them once a
//! person trusts them, `run` starts jobs as they may start, `job` is one attempt at one task. Every
//! step between "claimed" and "on main" is code. A job takes its contract from the lease, never
//! from a branch.

pub mod begin;
pub mod control;
pub mod coordinator;
pub mod describe;
pub mod executors;
mod finish;
pub mod gate;
pub mod job;
pub mod join;
mod land;
pub mod memory;
mod worktree;
