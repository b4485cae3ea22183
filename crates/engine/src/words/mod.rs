//! The texts made from a record for the next worker: prompts, handoffs, commit messages, the view
//! for other tools. The text that people read at a terminal belongs to `report`.

pub mod handoff;
pub mod news;
pub mod prompt;
pub mod reaction;
pub mod view;

/// Who reads about an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptReader {
    /// The session that ran it.
    Maker,
    /// A fresh process that knows nothing of it.
    Next,
}
