//! What an engine says about a job, in crew's words. It is the engine's word alone: how the loop
//! inside a job ended stands in the task's lease.

/// Where a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It has no place yet. The text is the engine's reason, empty if it gave none.
    Waiting(String),
    /// It holds a place, though its processes may be suspended or still ending.
    Running,
    /// It is over and nothing of it runs, as far as the engine knows. The text is the engine's
    /// reason, empty if it gave none.
    Ended(String),
}

impl JobState {
    /// Whether the job is over.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// The engine's reason, empty if there is none.
    pub fn why(&self) -> &str {
        match self {
            Self::Waiting(why) | Self::Ended(why) => why,
            Self::Running => "",
        }
    }
}
