//! Turns values into output: lines and pages for people, JSON for programs. It is pure; `cmd`
//! decides what is printed, and where.

pub mod board;
pub mod colour;
pub mod events;
pub mod help;
pub mod layout;
pub mod line;
pub mod list;
pub mod morning;
pub mod page;
pub mod settings;
pub mod setup;
pub mod show;
pub mod words;
