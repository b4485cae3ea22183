//! The lines of a fleet in the foreground, one an event, each with its task in front. They hold no
//! time of day: whoever prints them puts it there.

use chrono::{DateTime, FixedOffset};
use unicode_width::UnicodeWidthStr;

use super::{COMMIT_CHARS, counted, rests, shown};
use crate::engine::fleet::standing::end_of;
use crate::engine::fleet::{FleetEvent, Landed, StandingNews, TaskEnding, TaskId};
use crate::engine::record::Outcome;
use crate::engine::text::{quoted, start, with_reason};

/// The least columns of a task's name: those of one fleet are mostly shorter.
const TASK_COLUMNS: usize = 14;

/// The line of an event at `at`, the user's local time, without its line break.
pub fn line(event: &FleetEvent, at: DateTime<FixedOffset>) -> String {
    match event {
        FleetEvent::Started { task, attempt: 0 | 1 } => of_task(task, "starts"),
        FleetEvent::Started { task, attempt } => {
            of_task(task, &format!("starts, attempt {attempt}"))
        }
        FleetEvent::Boundary { task, iteration, of, last } => {
            let ended = format!("iteration {} ended", counted(*iteration, *of));
            of_task(task, &with_reason(&ended, &shown(last)))
        }
        FleetEvent::Rests { task, until, why } => of_task(task, &rests(*until, why, at)),
        FleetEvent::Resumes { task } => of_task(task, "resumes"),
        FleetEvent::Paused { task } => of_task(task, "is paused"),
        FleetEvent::Lands { task } => of_task(task, "is being landed"),
        FleetEvent::SentBack { task, why } => {
            of_task(task, &with_reason("sent back to its loop", &shown(why)))
        }
        FleetEvent::Ended { task, ending } => of_task(task, &ended(ending)),
        FleetEvent::Joined { task } => of_task(task, "runs already, joined"),
        FleetEvent::Gone { task, why } => {
            of_task(task, &with_reason("taken up again, its process is gone", &shown(why)))
        }
        FleetEvent::Noted(text) => shown(text),
    }
}

fn of_task(task: &TaskId, text: &str) -> String {
    let task = task.to_string();
    let missing = TASK_COLUMNS.saturating_sub(task.width());
    format!("{task}{:missing$} {text}", "")
}

/// How a task ended: "landed as 4f2c9d1, proof: checked", "needs you: conflict: src/pay.rs changed
/// on main".
pub fn ended(ending: &TaskEnding) -> String {
    let (word, news) = end_of(ending);
    let said = match news {
        Some(StandingNews::Needs(needs)) => quoted(&shown(&needs)),
        Some(StandingNews::Why(why)) => shown(&why),
        _ => String::new(),
    };
    match ending.outcome {
        Outcome::Completed => {
            let place = match &ending.landed {
                Some(Landed::Main(Some(commit))) => {
                    format!(" as {}", start(&shown(commit), COMMIT_CHARS))
                }
                Some(Landed::Main(None)) => ": main has its work already".to_owned(),
                Some(Landed::Request(address)) => format!(": {}", shown(address)),
                None => String::new(),
            };
            let proof = ending.proof.map(|proof| format!(", proof: {}", proof.label()));
            format!("{word}{place}{}", proof.unwrap_or_default())
        }
        Outcome::Cancelled if said.starts_with(word) => said,
        Outcome::Cancelled => with_reason(word, &said),
        _ => with_reason(&format!("needs you: {word}"), &said),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::fixture::at;
    use crate::engine::fleet::TaskState;
    use crate::engine::fleet::fixture::{ended, id, landed};

    #[test]
    fn an_event_is_one_line_with_its_task_in_front() {
        let vat = || id("vat-rounding");
        let last = || "npm test 1 of 402 fails".to_owned();
        let why = "claude:\nusage \u{1b}[2Jlimit\u{202e}".to_owned();
        let none = String::new;
        let until = Some(at(3600).wall);
        let events = [
            FleetEvent::Started { task: vat(), attempt: 1 },
            FleetEvent::Started { task: id("a-name-that-is-rather-long"), attempt: 2 },
            FleetEvent::Boundary { task: vat(), iteration: 3, of: 10, last: last() },
            FleetEvent::Boundary { task: vat(), iteration: 4, of: 0, last: none() },
            FleetEvent::Rests { task: vat(), until, why },
            FleetEvent::Rests { task: vat(), until: Some(at(119).wall), why: none() },
            FleetEvent::Rests { task: vat(), until: Some(at(120).wall), why: none() },
            FleetEvent::Rests { task: vat(), until: None, why: none() },
            FleetEvent::Resumes { task: vat() },
            FleetEvent::Lands { task: vat() },
            FleetEvent::SentBack { task: vat(), why: "src/tax.rs changed on main".to_owned() },
            FleetEvent::Joined { task: vat() },
            FleetEvent::Gone { task: vat(), why: none() },
            FleetEvent::Gone { task: vat(), why: "NODE_FAIL (NodeDown)".to_owned() },
            FleetEvent::Noted("the account answers \u{1b}]0;again\u{7}again".to_owned()),
        ];
        let lines = events.map(|event| line(&event, at(0).wall.fixed_offset()));
        assert_snapshot!(lines.join("\n"), @"
        vat-rounding   starts
        a-name-that-is-rather-long starts, attempt 2
        vat-rounding   iteration 3/10 ended: npm test 1 of 402 fails
        vat-rounding   iteration 4 ended
        vat-rounding   rests until 12:06: claude: usage limit
        vat-rounding   rests until 11:08:39
        vat-rounding   rests until 11:08
        vat-rounding   rests
        vat-rounding   resumes
        vat-rounding   is being landed
        vat-rounding   sent back to its loop: src/tax.rs changed on main
        vat-rounding   runs already, joined
        vat-rounding   taken up again, its process is gone
        vat-rounding   taken up again, its process is gone: NODE_FAIL (NodeDown)
        the account answers again
        ");
    }

    #[test]
    fn an_end_says_where_the_work_went_or_what_it_needs() {
        let went = |place: Landed| {
            let mut lease = ended("vat-rounding", Outcome::Completed, "done", 1);
            if let TaskState::Ended(ending) = &mut lease.state {
                ending.landed = Some(place);
            }
            lease
        };
        let leases = [
            ended("vat-rounding", Outcome::Completed, "done", 1),
            landed("vat-rounding", "4f2c9d1", 1),
            went(Landed::Main(None)),
            went(Landed::Request("https://example.org/7".to_owned())),
            ended("vat-rounding", Outcome::Blocked, "conflict: a.rs changed on main", 1),
            ended("vat-rounding", Outcome::Blocked, "the agent said BLOCKED: a \"key\"", 1),
            ended("vat-rounding", Outcome::Stalled, "no progress", 1),
            ended("vat-rounding", Outcome::Cancelled, "cancelled by the user: wrong", 1),
        ];
        let lines = leases.iter().map(|lease| {
            let (task, ending) = (lease.id().clone(), lease.ending().unwrap().clone());
            line(&FleetEvent::Ended { task, ending }, at(0).wall.fixed_offset())
        });
        assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        vat-rounding   completed, proof: checked
        vat-rounding   landed as 4f2c9d1, proof: checked
        vat-rounding   landed: main has its work already, proof: checked
        vat-rounding   requested: https://example.org/7, proof: checked
        vat-rounding   needs you: conflict: a.rs changed on main
        vat-rounding   needs you: blocked: "a 'key'"
        vat-rounding   needs you: stalled: no progress
        vat-rounding   cancelled by the user: wrong
        "#);
    }
}
