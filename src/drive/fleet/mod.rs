//! Fleets: many loops at once. `describe` reads a folder of tasks, `begin` records them once a
//! person trusts them, `run` starts jobs as they may start, `job` is one attempt at one task. Every
//! step between "claimed" and "on main" is code. A job takes its contract from the lease, never
//! from a branch.

pub mod attempt;
pub mod begin;
mod close;
mod commands;
pub mod control;
pub mod describe;
pub mod engines;
pub mod find;
mod finish;
mod foreign;
pub mod foreseen;
pub mod forget;
mod heartbeat;
pub mod job;
mod joined;
mod land;
pub mod memory;
pub mod node;
mod orders;
mod outage;
mod places;
mod reach;
mod request;
pub mod run;
mod run_end;
mod seat;
mod settle;
mod shared;
pub mod slots;
mod takeover;
mod tie;
mod way;
mod workspace;
