//! The lines of a coordinator: one for each thing that happened, with its task in front. What came
//! from a file, an agent or a remote is cleaned. They hold no time of day.

use chrono::{DateTime, FixedOffset, Utc};
use unicode_width::UnicodeWidthStr;

use super::record::{EndReason, FleetRecord, Landed, TaskEnding};
use super::step::FleetLine;
use crate::engine::record::Outcome;
use crate::engine::text::{clean, clock_time, one_line, quoted, with_reason};

/// The most characters of foreign text in a line.
const TEXT_CHARS: usize = 200;
/// The least columns of a task's name: those of one fleet are mostly shorter.
const TASK_COLUMNS: usize = 14;
/// How many characters of a commit are shown.
const COMMIT_CHARS: usize = 7;
/// A wait of fewer seconds is told to the second.
const SECONDS_BELOW_S: i64 = 120;

/// The line of an event at `at`, the user's local time, without its line break.
pub fn line(line: &FleetLine, record: &FleetRecord, at: DateTime<FixedOffset>) -> String {
    let (task, text) = match line {
        FleetLine::Note(text) => return shown(text),
        FleetLine::Started { task, number: 0 | 1, continues: false } => (task, "starts".to_owned()),
        FleetLine::Started { task, number, continues: false } => {
            (task, format!("starts, attempt {number}"))
        }
        FleetLine::Started { task, .. } => (task, "continues".to_owned()),
        FleetLine::Adopted { task } => (task, "runs already, adopted".to_owned()),
        FleetLine::Iteration { task, iteration, of, what } => {
            let of = if *of > 0 { format!("/{of}") } else { String::new() };
            (task, with_reason(&format!("iteration {iteration}{of} ended"), &shown(what)))
        }
        FleetLine::Waits { task, until, why } => (task, waits(*until, why, at)),
        FleetLine::Resumes { task } => (task, "resumes".to_owned()),
        FleetLine::Paused { task } => (task, "is paused".to_owned()),
        FleetLine::Lands { task } => (task, "is being landed".to_owned()),
        FleetLine::SentBack { task, why } => {
            (task, with_reason("sent back to its loop", &shown(why)))
        }
        FleetLine::Gone { task, why } => {
            (task, with_reason("tried again, its process is gone", &shown(why)))
        }
        FleetLine::Ended { task } => {
            let ending = record.task(task).and_then(|task| task.ending());
            (task, ending.map_or_else(|| "ended".to_owned(), ended))
        }
    };
    let name = task.as_str();
    let missing = TASK_COLUMNS.saturating_sub(name.width());
    format!("{name}{:missing$} {text}", "")
}

/// How a task ended: "landed as 4f2c9d1, proof: checked", "needs you: conflict: src/pay.rs changed
/// on main too".
pub fn ended(ending: &TaskEnding) -> String {
    let TaskEnding { outcome, proof, why, reason, landed } = ending;
    let why = shown(why);
    let proved = || proof.map_or(String::new(), |proof| format!(", proof: {}", proof.label()));
    match (outcome, landed) {
        (_, Some(Landed::Main(Some(commit)))) => {
            format!("landed as {}{}", commit.get(..COMMIT_CHARS).unwrap_or(commit), proved())
        }
        (_, Some(Landed::Main(None))) => format!("landed: main has its work already{}", proved()),
        (_, Some(Landed::Request(url))) => format!("requested: {}{}", shown(url), proved()),
        (Outcome::Completed, None) => format!("completed{}", proved()),
        (Outcome::Cancelled, None) => with_reason("cancelled", &why),
        (Outcome::Blocked, None) => match reason {
            EndReason::Asked => format!("needs you: blocked: {}", quoted(&why)),
            _ => format!("needs you: {why}"),
        },
        (outcome, None) => with_reason(&format!("needs you: {}", outcome.label()), &why),
    }
}

/// "waits until 09:10: usage limit"; with the second where it is near.
fn waits(until: Option<DateTime<Utc>>, why: &str, at: DateTime<FixedOffset>) -> String {
    let until = until.map_or(String::new(), |until| {
        let is_near = (until - at.to_utc()).num_seconds().abs() < SECONDS_BELOW_S;
        let second = || until.with_timezone(at.offset()).format("%H:%M:%S").to_string();
        format!(" until {}", if is_near { second() } else { clock_time(until, at) })
    });
    with_reason(&format!("waits{until}"), &shown(why))
}

/// Foreign text on one line.
fn shown(text: &str) -> String {
    one_line(&clean(text), TEXT_CHARS)
}
