//! The texts made from a record for the next worker: prompts, handoffs, commit messages, the view
//! for other tools. The text that people read at a terminal belongs to `report`.

pub mod commit_message;
pub mod handoff;
pub mod prompt;
pub mod reaction;
pub mod view;
