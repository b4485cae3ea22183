//! The machine: thin, impure, bounded. Each file is the one door to one noun, bounded in time and in
//! bytes; none of them decides anything or understands foreign text (that is `parse`).

pub mod awake;
pub mod client;
pub mod clock;
pub mod descendants;
pub mod detach;
pub mod disk;
pub mod env;
pub mod environment;
pub mod fault;
pub mod fingerprint;
pub mod git;
pub mod groups;
pub mod home;
pub mod host;
pub mod journal;
pub mod logs;
pub mod process;
#[cfg(target_os = "linux")]
mod processes;
pub mod protected;
pub mod room;
pub mod settings;
pub mod store;
pub mod terminal;
pub mod tree;
pub mod trust;
pub mod unix;
pub mod view;
pub mod wakes;
pub mod walk;
