//! How a task ended and why, as values: rows, hints and exit codes match on them, and people read
//! them as sentences.

use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

use engine::fleet::Refusal;
use engine::record::{Actor, CompletionBasis, EndReason, Ending, Outcome, Proof};

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TaskEnding {
    pub outcome: Outcome,
    pub proof: Option<Proof>,
    pub reason: TaskReason,
    pub landed: Option<Landed>,
}

/// Where completed work went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Landed {
    /// On the base as this commit; `None` if the base already had all of it.
    Main(Option<String>),
    /// In a pull request with this address.
    Request(String),
}

/// Why a task ended, or why an attempt at it could not continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "of")]
pub enum TaskReason {
    /// The end of its loop, with the notes about its proof.
    Loop {
        reason: EndReason,
        notes: Vec<String>,
    },
    /// Its agent needs a person, with its reason, which may be empty.
    Asked(String),
    Cancelled {
        by: Actor,
        reason: Option<String>,
    },
    FileGone,
    /// A landing refused its work, and the refusal has not been settled.
    Refused {
        refusal: Refusal,
        unsettled: Option<Unsettled>,
    },
    /// The landing could not be carried out.
    NotLanded(String),
    Unfetchable(String),
    LacksWork(String),
    /// Two of its earlier tasks, or the base and one of them, change the same lines.
    WorkConflict(String),
    /// The attempt could not begin or continue.
    Failed(String),
    /// The executor reports that the process of the attempt is gone.
    ProcessGone(String),
    Interrupted,
    /// Its attempts ended this often in a row without a finished iteration.
    Repeated {
        times: u32,
        last: Box<TaskReason>,
    },
}

/// Why a refused landing was not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "of")]
pub enum Unsettled {
    /// The task's loop ended for this reason.
    Loop(Box<TaskReason>),
    /// This limit of the task's loop is used up; `resume` is the command once it is raised.
    LimitUsedUp { limit: String, resume: String },
}

/// The kind of a reason, for rows, hints and exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskEndKind {
    /// The loop's own end.
    Loop,
    /// The agent said BLOCKED.
    Asked,
    /// Refused claims because tests were changed; a person can accept them.
    TestChanges,
    Conflict,
    Red,
    /// A landing was refused for another reason.
    Landing,
    /// A fault of git, the remote or the executor.
    Machine,
    /// A person cancelled it, or its file is gone.
    Person,
}

impl TaskEnding {
    /// Creates an ending without a proof.
    pub fn new(outcome: Outcome, reason: impl Into<TaskReason>) -> Self {
        Self { outcome, proof: None, reason: reason.into(), landed: None }
    }

    /// The ending of a task, given that of its loop.
    pub fn of_loop(ending: &Ending) -> Self {
        let Ending { reason, proof_notes, .. } = ending.clone();
        let reason = match reason {
            EndReason::AgentBlocked(needs) => TaskReason::Asked(needs),
            reason => TaskReason::Loop { reason, notes: proof_notes },
        };
        Self { proof: ending.proof, ..Self::new(ending.outcome, reason) }
    }

    /// Whether the task's work is done.
    pub fn is_completed(&self) -> bool {
        self.outcome == Outcome::Completed
    }

    /// Whether the task was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.outcome == Outcome::Cancelled
    }

    /// The ending for work that is to land now, whatever prevented its landing before.
    pub fn for_landing(self) -> Self {
        let reason = match (self.reason, self.proof) {
            (reason @ TaskReason::Loop { .. }, _) | (reason, None) => reason,
            (_, Some(proof)) => TaskReason::Loop {
                reason: EndReason::Completed { basis: CompletionBasis::Proof(proof), remark: None },
                notes: Vec::new(),
            },
        };
        Self { outcome: Outcome::Completed, reason, landed: None, ..self }
    }
}

/// Also writes the reason as a sentence, for people who read the files.
impl Serialize for TaskEnding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { outcome, proof, reason, landed } = self;
        let mut fields = serializer.serialize_struct("TaskEnding", 5)?;
        fields.serialize_field("outcome", outcome)?;
        fields.serialize_field("proof", proof)?;
        fields.serialize_field("why", &reason.to_string())?;
        fields.serialize_field("reason", reason)?;
        fields.serialize_field("landed", landed)?;
        fields.end()
    }
}

impl TaskReason {
    /// The kind of its reason.
    pub fn kind(&self) -> TaskEndKind {
        match self {
            Self::Loop { reason, .. } if reason.is_of_test_changes() => TaskEndKind::TestChanges,
            Self::Loop { reason: EndReason::Cancelled { .. }, .. }
            | Self::Cancelled { .. }
            | Self::FileGone => TaskEndKind::Person,
            Self::Loop { .. } => TaskEndKind::Loop,
            Self::Asked(_) => TaskEndKind::Asked,
            Self::Refused { refusal: Refusal::Conflict(_), .. } | Self::WorkConflict(_) => {
                TaskEndKind::Conflict
            }
            Self::Refused { refusal: Refusal::Red { .. }, .. } => TaskEndKind::Red,
            Self::Refused { .. } => TaskEndKind::Landing,
            Self::NotLanded(_)
            | Self::Unfetchable(_)
            | Self::LacksWork(_)
            | Self::Failed(_)
            | Self::ProcessGone(_)
            | Self::Interrupted => TaskEndKind::Machine,
            Self::Repeated { last, .. } => last.kind(),
        }
    }

    /// The reason's sentence, without the word for its kind that a conflict or a failed check
    /// begins with.
    pub fn without_its_kind(&self) -> String {
        match self {
            Self::Refused {
                refusal: refusal @ (Refusal::Conflict(_) | Refusal::Red { .. }),
                unsettled,
            } => with_unsettled(refusal.reason_text(), unsettled.as_ref()),
            Self::WorkConflict(what) => what.clone(),
            reason => reason.to_string(),
        }
    }
}

impl fmt::Display for TaskReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop { reason, notes } => {
                reason.fmt(out)?;
                notes.iter().try_for_each(|note| write!(out, "; {note}"))
            }
            Self::Asked(needs) if needs.is_empty() => {
                EndReason::AgentBlocked(String::new()).fmt(out)
            }
            Self::Cancelled { by, reason } => {
                EndReason::Cancelled { by: *by, reason: reason.clone() }.fmt(out)
            }
            Self::FileGone => out.write_str("its file is gone"),
            Self::Refused { refusal, unsettled } => {
                out.write_str(&with_unsettled(refusal.full_reason(), unsettled.as_ref()))
            }
            Self::Asked(why)
            | Self::NotLanded(why)
            | Self::Failed(why)
            | Self::ProcessGone(why) => out.write_str(why),
            Self::Unfetchable(why) => write!(out, "its work cannot be fetched: {why}"),
            Self::LacksWork(why) => write!(out, "its branch lacks its work: {why}"),
            Self::WorkConflict(what) => write!(out, "conflict: {what}"),
            Self::Interrupted => out.write_str("it was interrupted"),
            Self::Repeated { times, last } => match &**last {
                Self::ProcessGone(why) => {
                    write!(out, "its process disappeared {times} times in a row: {why}")
                }
                Self::Interrupted => write!(out, "it was interrupted {times} times in a row"),
                last => write!(out, "it failed {times} times in a row, the last time: {last}"),
            },
        }
    }
}

fn with_unsettled(why: String, unsettled: Option<&Unsettled>) -> String {
    match unsettled {
        None => why,
        Some(Unsettled::Loop(reason)) => format!("{why}; its loop: {reason}"),
        Some(Unsettled::LimitUsedUp { limit, resume }) => {
            format!("{why}; its {limit} is used up: raise it, then {resume}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::record::IncurableRefusal;

    #[test]
    fn the_kind_of_an_end_and_its_sentence_follow_from_the_reason() {
        let (refusal, accept) = ("a test was changed".to_owned(), "crew resume".to_owned());
        let refused = EndReason::Refused(IncurableRefusal::TestChanges { refusal, accept });
        let cancelled = EndReason::Cancelled { by: Actor::User, reason: None };
        let asked = EndReason::AgentBlocked("which port?".to_owned());
        let silent = EndReason::AgentBlocked(String::new());
        let shown = [
            (Outcome::Blocked, asked),
            (Outcome::Blocked, silent),
            (Outcome::Blocked, refused),
            // The ending does not depend on earlier refusals.
            (Outcome::Blocked, "a fault of git".into()),
            (Outcome::Cancelled, cancelled),
            (Outcome::Stalled, "no progress".into()),
        ]
        .map(|(outcome, reason)| {
            let reason = TaskEnding::of_loop(&Ending::new(outcome, reason)).reason;
            format!("{:?}: {reason}", reason.kind())
        });
        insta::assert_snapshot!(shown.join("\n"), @r"
        Asked: which port?
        Asked: the agent said BLOCKED and gave no reason
        TestChanges: refused for a reason that only a person can change: a test was changed; a person can accept the change: crew resume
        Loop: a fault of git
        Person: cancelled by the user
        Loop: no progress
        ");
    }
}
