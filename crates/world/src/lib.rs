//! The machine: thin, impure, and bounded in time and bytes. Each file is the only access to one
//! resource. None of them makes decisions or interprets foreign text (`parse` does that).

pub mod client;
pub mod clock;
pub mod env;
pub mod fault;
pub mod files;
pub mod git;
pub mod home;
pub mod host;
pub mod logs;
pub mod process;
pub mod recorded_environment;
pub mod slots;
pub mod store;
pub mod terminal;
