//! One loop on the board: its group, and what its row says. What needs a person comes first.

use std::path::Path;

use chrono::{DateTime, Utc};

use crate::engine::boundary::decide::INCURABLE;
use crate::engine::record::{Ending, Loop, LoopId, Outcome, Status};
use crate::engine::text::{clean, clock_time, one_line, quoted, with_reason};
use crate::engine::view::{BoardGroup, LoopView, asked_for_help, at_dialog, state_of_the_checks};
use crate::report::line;
use crate::report::list::folder;
use crate::report::words::{ago, brief};

/// How long an ended loop stays on the board, and one that needs a person, in hours.
const ENDED_HOURS: i64 = 24;
const BLOCKED_HOURS: i64 = 7 * 24;
/// The most of what a row says, in characters; the terminal cuts it further.
const NEWS_CHARS: usize = 200;

/// The row of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardRow {
    pub id: LoopId,
    pub group: BoardGroup,
    /// "~/w/api".
    pub folder: String,
    /// "3/10".
    pub count: String,
    /// How long it has been so, or when it begins or ended: "22m", "09:10".
    pub when: String,
    pub cost: String,
    pub cost_micros: u64,
    pub news: String,
    pub task: String,
    pub is_completed: bool,
    /// Whether a message for its agent resumes it: it is over, and not a task, whose fleet keeps
    /// the message.
    pub is_resumed_by_words: bool,
    /// Under which heading it stands, and where there; the smallest comes first. The heading is
    /// that of its group, except while no row may move.
    pub place: (BoardGroup, i64),
}

impl BoardRow {
    /// The row of a loop; `None` if it is over long enough to be left to `crew history`.
    pub fn of(facts: &LoopView<'_>, home: Option<&Path>) -> Option<Self> {
        let (record, group) = (facts.record, facts.group());
        let hours = if group == BoardGroup::NeedsYou { BLOCKED_HOURS } else { ENDED_HOURS };
        if !record.is_live() && (facts.now.to_utc() - record.last_at()).num_hours() >= hours {
            return None;
        }
        let last = record.last_at().timestamp_millis();
        let order = match group {
            BoardGroup::NeedsYou => last,
            BoardGroup::Running => record.started_at.timestamp_millis(),
            BoardGroup::Waiting => record.state.due.map_or(i64::MAX, |due| due.timestamp_millis()),
            BoardGroup::Ended => -last,
        };
        Some(Self {
            id: record.id.clone(),
            group,
            folder: clean(&folder(record, home)),
            count: facts.counted(),
            when: when(facts, group),
            cost: record.state.usage.cost_text(false).unwrap_or_default(),
            cost_micros: record.state.usage.cost.micros(),
            news: one_line(&clean(&news(facts)), NEWS_CHARS),
            task: one_line(&clean(&crate::report::run::task(record)), NEWS_CHARS),
            is_completed: record.outcome() == Some(Outcome::Completed),
            is_resumed_by_words: !record.is_live() && facts.task.is_none(),
            place: (group, order),
        })
    }
}

fn when(facts: &LoopView<'_>, group: BoardGroup) -> String {
    let record = facts.record;
    let clock = |at| clock_time(at, facts.now);
    let since = |at: DateTime<Utc>| {
        let spoken = ago((facts.now.to_utc() - at).num_milliseconds());
        spoken.trim_end_matches(" ago").to_owned()
    };
    match (group, record.state.due) {
        (BoardGroup::NeedsYou, _) => since(facts.dialog.map_or(record.last_at(), |it| it.since)),
        (BoardGroup::Running, _) => brief(facts.running_ms),
        (BoardGroup::Waiting, Some(due)) if record.state.status == Status::Waiting => clock(due),
        (BoardGroup::Waiting, _) => since(record.last_at()),
        (BoardGroup::Ended, _) => clock(record.last_at()),
    }
}

fn news(facts: &LoopView<'_>) -> String {
    let record = facts.record;
    let iteration = record.iteration();
    if let Some(dialog) = facts.dialog {
        return at_dialog(dialog, facts.now);
    }
    if facts.owner_is_gone {
        return format!("owner gone: its {} has ended", record.driver().program());
    }
    if let Some(ending) = &record.state.ending {
        return ended(record, ending) + record.state.git.left_in_a_list();
    }
    match record.state.status {
        Status::Paused => format!("paused before iteration {iteration}"),
        Status::Waiting => {
            let why = record.state.wait_reason.as_deref().unwrap_or("waits");
            format!("{why} · then iteration {iteration}")
        }
        _ => {
            let mut parts = Vec::new();
            if facts.is_pausing {
                parts.push("pauses when the iteration ends".to_owned());
            }
            parts.extend(record.stand_in_at(facts.now));
            match &record.state.evidence {
                Some(evidence) => parts.extend(line::said(evidence)),
                None => parts.push("first iteration".to_owned()),
            }
            parts.extend(line::in_a_row(record));
            parts.join(" · ")
        }
    }
}

/// "completed, proven", "exhausted · 2 of 5 tests fail", what a blocked agent needs.
fn ended(record: &Loop, ending: &Ending) -> String {
    let outcome = ending.outcome.label();
    if let Some(needs) = asked_for_help(record) {
        return format!("{outcome}: {}", quoted(needs));
    }
    match (ending.proof, state_of_the_checks(record)) {
        (Some(proof), _) => format!("{outcome}, {}", proof.label()),
        (None, Some(checks)) => format!("{outcome} · {checks}"),
        (None, None) if ending.why.starts_with(outcome) => ending.why.clone(),
        (None, None) => {
            let why = ending.why.strip_prefix(INCURABLE).unwrap_or(&ending.why);
            with_reason(outcome, why)
        }
    }
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
