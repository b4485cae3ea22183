//! The machine: thin, impure, bounded. Each file is the one door to one noun, bounded in time and in
//! bytes; none of them decides anything or understands foreign text (that is `parse`).

pub mod client;
pub mod clock;
pub mod env;
pub mod environment;
pub mod fault;
pub mod files;
pub mod git;
pub mod host;
pub mod process;
pub mod store;
pub mod terminal;
