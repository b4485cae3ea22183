//! Reads what Slurm's commands print about jobs. A line that is something else, such as a greeting
//! of the login shell, is absent. A state with an unknown name never counts as an end.

use super::job::JobState;

/// What `squeue -O` has to print for [`listed`]. With a width and a mark for each column, a long
/// value neither runs into the next nor is cut to 20 characters. The name is last, as it may hold
/// the mark. The exit code is not asked for: versions print it differently.
pub const COLUMNS: &str = "JobID:20|,State:30|,RestartCnt:12|,NodeList:255|,Reason:255|,Name:1024";

/// The states in which nothing of a job runs or will run.
const ENDS: [&str; 10] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
];

/// A job as Slurm knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmJob {
    pub id: u64,
    pub name: String,
    pub state: JobState,
    /// How often Slurm put it back into the queue.
    pub restarts: u32,
}

/// The id of a new job, in a line of `sbatch --parsable`: `ID`, or `ID;CLUSTER`.
pub fn submitted(line: &str) -> Option<u64> {
    let line = line.trim();
    line.split_once(';').map_or(line, |(id, _)| id).parse().ok()
}

/// The job in a line of `squeue -h -O` with [`COLUMNS`]. An end has no exit code here.
pub fn listed(line: &str) -> Option<SlurmJob> {
    let fields: Vec<&str> = line.splitn(6, '|').map(str::trim).collect();
    let [id, word, restarts, node, reason, name] = fields[..] else { return None };
    Some(SlurmJob {
        id: id.parse().ok()?,
        name: name.to_owned(),
        state: state(word, node, reason, None),
        restarts: restarts.parse().ok()?,
    })
}

/// The job in a line of `scontrol -o show job`. A name may hold blanks. After it, only the first
/// field of each name counts: words of a user, such as those of the command, come late in the line.
pub fn shown(line: &str) -> Option<SlurmJob> {
    let (id, rest) = line.strip_prefix("JobId=")?.split_once(" JobName=")?;
    let (name, _) = rest.split_once(" UserId=")?;
    let line = &rest[name.len()..];
    let (exit, signal) = field(line, "ExitCode")?.split_once(':')?;
    let numbers = Some((exit.parse().ok()?, signal.parse().ok()?));
    let node = field(line, "NodeList").filter(|node| *node != "(null)").unwrap_or_default();
    Some(SlurmJob {
        id: id.parse().ok()?,
        name: name.to_owned(),
        state: state(field(line, "JobState")?, node, field(line, "Reason")?, numbers),
        restarts: field(line, "Restarts")?.parse().ok()?,
    })
}

fn field<'line>(line: &'line str, name: &str) -> Option<&'line str> {
    line.split_once(&format!(" {name}="))?.1.split(' ').next()
}

/// `numbers` are the exit code and the signal.
fn state(word: &str, node: &str, reason: &str, numbers: Option<(i32, i32)>) -> JobState {
    let reason = if reason == "None" { "" } else { reason };
    if ENDS.contains(&word) {
        let (exit, signal) = numbers.unwrap_or_default();
        // Slurm also prints 0 for a job that was cancelled before it began or lost its node.
        let has_exit = exit != 0 || signal == 0 && word == "COMPLETED" && numbers.is_some();
        return JobState::Ended {
            exit: has_exit.then_some(exit),
            signal: Some(signal).filter(|signal| *signal != 0),
            why: if reason.is_empty() { word.to_owned() } else { format!("{word} ({reason})") },
        };
    }
    if node.is_empty() {
        return JobState::Waiting(reason.to_owned());
    }
    JobState::Running { node: node.to_owned() }
}

#[cfg(test)]
#[path = "slurm_tests.rs"]
mod tests;
