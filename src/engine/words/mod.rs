//! The texts made from a record for whoever works next: prompts, handoffs, commit messages, the view for
//! other tools. What people read at a terminal is `report`'s.

pub mod commit_message;
pub mod handoff;
pub mod prompt;
pub mod reaction;
pub mod view;
