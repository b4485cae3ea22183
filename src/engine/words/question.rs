//! What the agent reads instead of an answer to its question. No text of the question is repeated.

/// The reason with which a question is refused.
pub const DECIDE_YOURSELF: &str = "Nobody is here to answer; crew keeps the question for the user. \
    Decide yourself what fits the task best, continue, and say in your final message what you \
    assumed. Only if no choice is safe without a person, end with BLOCKED and the reason, as crew's \
    rules say. An answer that comes later is in crew's next prompt.";
