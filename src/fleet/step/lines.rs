//! The lines that a coordinator prints: one for each event, beginning with its task. Text from a
//! file, an agent or a remote is cleaned.

use chrono::{DateTime, FixedOffset, Utc};
use unicode_width::UnicodeWidthStr;

use crate::fleet::record::{FleetRecord, Landed, TaskEnding, TaskReason};
use crate::fleet::step::FleetLine;
use engine::record::Outcome;
use engine::text::{clean_text, clock_time, one_line, quote_words, text_start, with_reason};

/// The maximum number of characters in foreign text in a line.
const TEXT_CHARS: usize = 200;
/// The width that a task's name is padded to; most names are shorter.
const TASK_COLUMNS: usize = 14;
/// How many characters of a commit are shown.
pub const COMMIT_CHARS: usize = 7;
/// The length of a wait, in seconds, below which its end is shown to the second.
const SECONDS_BELOW_S: i64 = 120;

/// Renders the line of an event at `at`, the user's local time, without a line break.
pub fn render_line(line: &FleetLine, record: &FleetRecord, at: DateTime<FixedOffset>) -> String {
    let (task, text) = match line {
        FleetLine::Note(text) => return show_text(text),
        FleetLine::Started { task, number: 0 | 1, continues: false } => (task, "starts".to_owned()),
        FleetLine::Started { task, number, continues: false } => {
            (task, format!("starts, attempt {number}"))
        }
        FleetLine::Started { task, .. } => (task, "continues".to_owned()),
        FleetLine::Adopted { task } => (task, "already running, adopted".to_owned()),
        FleetLine::Iteration { task, iteration, of, what } => {
            let of = if *of > 0 { format!("/{of}") } else { String::new() };
            (task, with_reason(&format!("iteration {iteration}{of} ended"), &show_text(what)))
        }
        FleetLine::Waits { task, until, why } => (task, render_wait(*until, why, at)),
        FleetLine::Resumes { task } => (task, "resumes".to_owned()),
        FleetLine::Paused { task } => (task, "is paused".to_owned()),
        FleetLine::Lands { task } => (task, "is being landed".to_owned()),
        FleetLine::SentBack { task, why } => {
            (task, with_reason("sent back to its loop", &show_text(why)))
        }
        FleetLine::Gone { task, why } => {
            (task, with_reason("tried again, its process has disappeared", &show_text(why)))
        }
        FleetLine::Ended { task } => {
            let ending = record.task(task).and_then(|task| task.ending());
            (task, ending.map_or_else(|| "ended".to_owned(), render_ending))
        }
    };
    let name = task.as_str();
    let missing = TASK_COLUMNS.saturating_sub(name.width());
    format!("{name}{:missing$} {text}", "")
}

/// Renders how a task ended: "landed as 4f2c9d1, proof: checked", "needs you: conflict: src/pay.rs
/// changed on main too".
pub fn render_ending(ending: &TaskEnding) -> String {
    let TaskEnding { outcome, proof, reason, landed } = ending;
    let why = show_text(&reason.to_string());
    let proved = || proof.map_or(String::new(), |proof| format!(", proof: {}", proof.label()));
    match (outcome, landed) {
        (_, Some(Landed::Main(Some(commit)))) => {
            format!("landed as {}{}", text_start(commit, COMMIT_CHARS), proved())
        }
        (_, Some(Landed::Main(None))) => format!("landed: main has its work already{}", proved()),
        (_, Some(Landed::Request(url))) => format!("requested: {}{}", show_text(url), proved()),
        (Outcome::Completed, None) => format!("completed{}", proved()),
        (Outcome::Cancelled, None) => match reason {
            TaskReason::FileGone => with_reason("cancelled", &why),
            _ => why,
        },
        (Outcome::Blocked, None) => match reason {
            TaskReason::Asked(_) => format!("needs you: blocked: {}", quote_words(&why)),
            _ => format!("needs you: {why}"),
        },
        (outcome, None) => with_reason(&format!("needs you: {}", outcome.label()), &why),
    }
}

/// Renders a wait: "waits until 09:10: usage limit", with seconds if the wait is short.
fn render_wait(until: Option<DateTime<Utc>>, why: &str, at: DateTime<FixedOffset>) -> String {
    let until = until.map_or(String::new(), |until| {
        let is_near = (until - at.to_utc()).num_seconds().abs() < SECONDS_BELOW_S;
        if is_near {
            return until.with_timezone(at.offset()).format(" until %H:%M:%S").to_string();
        }
        format!(" until {}", clock_time(until, at))
    });
    with_reason(&format!("waits{until}"), &show_text(why))
}

/// Renders foreign text on one line.
pub fn show_text(text: &str) -> String {
    one_line(&clean_text(text), TEXT_CHARS)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::fleet::record::{TaskRecord, TaskState};
    use engine::fixture::at;
    use engine::fleet::{Refusal, TaskId};
    use engine::record::{Actor, Proof};

    fn vat_id() -> TaskId {
        "vat-rounding".parse().unwrap()
    }

    fn shown_line(line: &FleetLine) -> String {
        render_line(line, &FleetRecord::default(), at(0).wall.fixed_offset())
    }

    #[test]
    fn each_event_is_one_line_that_begins_with_its_task() {
        let (task, why) = (vat_id(), "claude:\nusage \u{1b}[2Jlimit\u{202e}".to_owned());
        let long: TaskId = "a-name-that-is-rather-long".parse().unwrap();
        let (what, none) = ("npm test 1 of 402 fails".to_owned(), String::new());
        let waits = |s: u32| FleetLine::Waits {
            task: vat_id(),
            until: Some(at(s).wall),
            why: String::new(),
        };
        let lines = [
            FleetLine::Started { task: task.clone(), number: 1, continues: false },
            FleetLine::Started { task: long, number: 2, continues: false },
            FleetLine::Started { task: task.clone(), number: 2, continues: true },
            FleetLine::Adopted { task: task.clone() },
            FleetLine::Iteration { task: task.clone(), iteration: 3, of: 10, what },
            FleetLine::Iteration { task: task.clone(), iteration: 4, of: 0, what: none.clone() },
            FleetLine::Waits { task: task.clone(), until: None, why },
            waits(119),
            waits(3600),
            FleetLine::Resumes { task: task.clone() },
            FleetLine::Paused { task: task.clone() },
            FleetLine::Lands { task: task.clone() },
            FleetLine::SentBack { task: task.clone(), why: "src/tax.rs changed".to_owned() },
            FleetLine::Gone { task: task.clone(), why: "NODE_FAIL (NodeDown)".to_owned() },
            FleetLine::Gone { task, why: none },
            FleetLine::Note("vat stays exhausted; hint: raise max-iterations".to_owned()),
            FleetLine::Note("the account answers \u{1b}]0;again\u{7}again".to_owned()),
        ];
        assert_snapshot!(lines.map(|line| shown_line(&line)).join("\n"), @"
        vat-rounding   starts
        a-name-that-is-rather-long starts, attempt 2
        vat-rounding   continues
        vat-rounding   already running, adopted
        vat-rounding   iteration 3/10 ended: npm test 1 of 402 fails
        vat-rounding   iteration 4 ended
        vat-rounding   waits: claude: usage limit
        vat-rounding   waits until 11:08:39
        vat-rounding   waits until 12:06
        vat-rounding   resumes
        vat-rounding   is paused
        vat-rounding   is being landed
        vat-rounding   sent back to its loop: src/tax.rs changed
        vat-rounding   tried again, its process has disappeared: NODE_FAIL (NodeDown)
        vat-rounding   tried again, its process has disappeared
        vat stays exhausted; hint: raise max-iterations
        the account answers again
        ");
    }

    #[test]
    fn an_end_says_where_the_work_is_or_what_it_needs() {
        let ending = |outcome, reason: TaskReason, landed| TaskEnding {
            outcome,
            proof: (outcome == Outcome::Completed).then_some(Proof::Checked),
            reason,
            landed,
        };
        let done = |landed| ending(Outcome::Completed, "done".into(), landed);
        let refusal = Refusal::Conflict(vec!["a.rs".to_owned()]);
        let conflict = TaskReason::Refused { refusal, unsettled: None };
        let (by, reason) = (Actor::User, Some("wrong".to_owned()));
        let url = "https://example.org/7".to_owned();
        let endings = [
            done(None),
            done(Some(Landed::Main(Some("4f2c9d1aaaa".to_owned())))),
            done(Some(Landed::Main(None))),
            done(Some(Landed::Request(url))),
            ending(Outcome::Blocked, conflict, None),
            ending(Outcome::Blocked, TaskReason::Asked("a \"key\"".to_owned()), None),
            ending(Outcome::Stalled, "no progress".into(), None),
            ending(Outcome::Cancelled, TaskReason::Cancelled { by, reason }, None),
            ending(Outcome::Cancelled, TaskReason::FileGone, None),
        ];
        let lines = endings.map(|ending| {
            let mut record = FleetRecord::default();
            let state = TaskState::Ended(ending);
            record.tasks.insert(vat_id(), TaskRecord { state, ..TaskRecord::default() });
            let line = FleetLine::Ended { task: vat_id() };
            render_line(&line, &record, at(0).wall.fixed_offset())
        });
        assert_snapshot!(lines.join("\n"), @r#"
        vat-rounding   completed, proof: checked
        vat-rounding   landed as 4f2c9d1, proof: checked
        vat-rounding   landed: main has its work already, proof: checked
        vat-rounding   requested: https://example.org/7, proof: checked
        vat-rounding   needs you: conflict: a.rs changed on main too
        vat-rounding   needs you: blocked: "a 'key'"
        vat-rounding   needs you: stalled: no progress
        vat-rounding   cancelled by the user: wrong
        vat-rounding   cancelled: its file is gone
        "#);
    }
}
