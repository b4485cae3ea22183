//! The one integration binary: it runs the built `crew` the way its users and their client do.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests act on the real world")]

mod binary;
mod book;
mod client;
mod colours;
mod completions;
mod demo;
#[cfg(target_os = "linux")]
mod differences;
mod doctor;
mod door;
mod endings;
mod examples;
mod faults;
mod fleet;
mod fleet_page;
mod foreign;
mod hints;
mod install;
mod interruptions;
mod isolation;
mod launcher;
mod lists;
mod loops;
mod morning;
mod nights;
mod packages;
#[cfg(target_os = "linux")]
mod pictures;
mod questions;
mod reference;
mod roster;
mod run;
mod sandbox;
mod settings;
mod show;
mod side_by_side;
mod slurm;
mod spawned;
mod status_line;
mod terminal;
mod tidy;
mod unreadable;
mod usage;
mod words;
