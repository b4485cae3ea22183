//! Reads what Slurm's commands print about jobs. A line that is something else, such as a greeting
//! of the login shell, is absent. A state with an unknown name never counts as an end.

use super::JobState;
use crate::engine::text::is_word_of;

/// What `squeue -O` has to print for [`listed`]. With a width and a mark for each column, a long
/// value neither runs into the next nor is cut to 20 characters. The name is last, as it may hold
/// the mark.
pub const COLUMNS: &str = "JobID:20|,State:30|,NodeList:255|,Reason:255|,Name:1024";

/// The states in which nothing of a job runs or will run.
const ENDS: &str = "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED \
    REVOKED TIMEOUT";

/// A job as Slurm knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmJob {
    pub id: u64,
    pub name: String,
    pub state: JobState,
}

/// The id of a new job, in a line of `sbatch --parsable`: `ID`, or `ID;CLUSTER`.
pub fn submitted(line: &str) -> Option<u64> {
    let line = line.trim();
    line.split_once(';').map_or(line, |(id, _)| id).parse().ok()
}

/// The job in a line of `squeue -h -O` with [`COLUMNS`].
pub fn listed(line: &str) -> Option<SlurmJob> {
    let fields: Vec<&str> = line.splitn(5, '|').map(str::trim).collect();
    let [id, word, node, reason, name] = fields[..] else { return None };
    Some(SlurmJob { id: id.parse().ok()?, name: name.to_owned(), state: state(word, node, reason) })
}

/// The job in a line of `scontrol -o show job`. A name may hold blanks. After it, only the first
/// field of each name counts: words of a user, such as those of the command, come late in the line.
pub fn shown(line: &str) -> Option<SlurmJob> {
    let (id, rest) = line.strip_prefix("JobId=")?.split_once(" JobName=")?;
    let (name, _) = rest.split_once(" UserId=")?;
    let line = &rest[name.len()..];
    let node = field(line, "NodeList").filter(|node| *node != "(null)").unwrap_or_default();
    Some(SlurmJob {
        id: id.parse().ok()?,
        name: name.to_owned(),
        state: state(field(line, "JobState")?, node, field(line, "Reason")?),
    })
}

fn field<'line>(line: &'line str, name: &str) -> Option<&'line str> {
    line.split_once(&format!(" {name}="))?.1.split(' ').next()
}

fn state(word: &str, node: &str, reason: &str) -> JobState {
    let reason = if reason == "None" { "" } else { reason };
    if is_word_of(ENDS, word) {
        let why = if reason.is_empty() { word.to_owned() } else { format!("{word} ({reason})") };
        return JobState::Ended(why);
    }
    if node.is_empty() {
        return JobState::Waiting(reason.to_owned());
    }
    JobState::Running
}

#[cfg(test)]
#[path = "slurm_text_tests.rs"]
mod tests;
