//! Every column of a loop: its key for programs, and its cell in the lists for people. A narrow
//! terminal leaves out the least important columns. The rows of a page are templates over the keys.

use std::borrow::Cow;
use std::path::Path;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;
use unicode_truncate::Alignment;

use super::{LoopView, usage_value};
use crate::record::Doing;
use crate::record::{Ending, Loop, Status};
use crate::text::{format_age, format_briefly, format_size, one_line};

/// The longest task, in characters; a terminal cuts it further.
const TASK_CHARS: usize = 100;
/// The widest column except the task's.
const WIDEST: usize = 40;

// What programs read: every key is always there, and null where there is nothing to say.
impl Serialize for LoopView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { record, owner_is_gone, dialog, is_pausing, doing, .. } = self;
        let (state, contract) = (&record.state, &record.contract);
        let run = contract.run.as_ref();
        let ending = state.end().ending().as_ref();
        // What a waiting loop waits for: an account where it is the end of a limit that its loops
        // share.
        let wait = (state.status() == Status::Waiting).then(
            || json!({ "until": state.wait().due(), "why": state.wait().wait_reason(), "account": state.wait().window() }),
        );
        let fallback = run.map(|run| run.fallback.iter().map(|it| &it.name).collect::<Vec<_>>());
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &record.id)?;
        map.serialize_entry("status", &state.status())?;
        map.serialize_entry("outcome", &record.outcome())?;
        map.serialize_entry("proof", &ending.and_then(|ending| ending.proof))?;
        map.serialize_entry("proved_at", &state.end().proved_at())?;
        map.serialize_entry("why", &ending.map(Ending::full_reason))?;
        map.serialize_entry("iteration", &record.iteration())?;
        map.serialize_entry("completed_iterations", &state.counts().completed())?;
        map.serialize_entry("limits", &contract.limits)?;
        map.serialize_entry("consecutive_failures", &state.counts().consecutive_failures())?;
        map.serialize_entry(
            "iterations_without_progress",
            &state.counts().iterations_without_progress(),
        )?;
        map.serialize_entry("awake_ms", &state.time().awake_ms())?;
        map.serialize_entry("wait", &wait)?;
        map.serialize_entry("started_at", &record.started_at)?;
        map.serialize_entry("last_iteration_at", &state.time().last_iteration_at())?;
        map.serialize_entry("driver", &record.driver())?;
        map.serialize_entry("agent", &run.map(|run| &run.agent.name))?;
        map.serialize_entry("fallback", &fallback)?;
        map.serialize_entry("active_fallback", &record.running_fallback())?;
        map.serialize_entry("shares", state.work().agents().shares())?;
        map.serialize_entry("model", &run.and_then(|run| run.model.as_ref()))?;
        map.serialize_entry("agent_words", &run.map(|run| &run.words))?;
        map.serialize_entry("permissions", &run.map(|run| run.permissions))?;
        map.serialize_entry("git", &run.map(|run| &run.git))?;
        map.serialize_entry("pending", &state.git().pending_steps().pending_names())?;
        map.serialize_entry("git_undone", &state.git().describe_undone())?;
        map.serialize_entry("procedure", &record.procedure())?;
        map.serialize_entry("task", &contract.task)?;
        map.serialize_entry("require", &contract.require)?;
        map.serialize_entry("promise", &contract.promise)?;
        map.serialize_entry("checks", &contract.checks)?;
        map.serialize_entry("usage", &usage_value(state.work().usage()))?;
        map.serialize_entry("iterations_ms", &record.elapsed_ms)?;
        map.serialize_entry("asked", state.exchange().asked())?;
        map.serialize_entry("evidence", state.seen().evidence())?;
        map.serialize_entry("owner", state.owner())?;
        map.serialize_entry("owner_is_gone", owner_is_gone)?;
        map.serialize_entry("doing", doing)?;
        map.serialize_entry("pausing", is_pausing)?;
        map.serialize_entry("dialog", dialog)?;
        map.serialize_entry("checkout", &record.place.checkout)?;
        map.serialize_entry("folder", &record.place.folder)?;
        map.serialize_entry("branch", &record.place.branch)?;
        map.end()
    }
}

/// The importance of a column that is always shown.
pub const ALWAYS: u8 = u8::MAX;

/// Which part of a cell is coloured.
#[derive(Debug, Clone, Copy)]
pub enum CellColour {
    Plain,
    /// The whole cell is dimmed, because it is the least important.
    Quiet,
    /// Only crew's words for a state are coloured.
    Words,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its importance, which decides whether it is shown when not all columns fit.
    pub worth: u8,
    pub alignment: Alignment,
    /// The maximum width of its cells.
    pub most: usize,
    /// The minimum width, if it takes the space that the others leave.
    pub rest: Option<usize>,
    pub colour: CellColour,
}

impl Column {
    /// A column that is as wide as its widest cell, up to `most`.
    pub const fn text(worth: u8, most: usize) -> Self {
        Self { worth, alignment: Alignment::Left, most, rest: None, colour: CellColour::Plain }
    }

    /// A column whose cells are right-aligned.
    pub const fn number(worth: u8, most: usize) -> Self {
        Self { alignment: Alignment::Right, ..Self::text(worth, most) }
    }

    /// A column that takes the space that the others leave, if that is at least `least`.
    pub const fn rest(worth: u8, least: usize) -> Self {
        Self { rest: Some(least), ..Self::text(worth, usize::MAX) }
    }

    /// Sets the colour of the column.
    pub const fn with_colour(self, colour: CellColour) -> Self {
        Self { colour, ..self }
    }

    /// The width that it needs.
    pub fn room_needed(self) -> usize {
        self.rest.unwrap_or(self.most)
    }
}

/// A column of a list, and the function that makes its cell; the folder is the home, shown as `~`.
pub type ListColumn = (Column, fn(&LoopView<'_>, Option<&Path>) -> String);

const ID: ListColumn = (Column::text(ALWAYS, WIDEST), |view, _| view.record.id.to_string());
const STARTED: ListColumn = (Column::text(1, WIDEST).with_colour(CellColour::Quiet), |view, _| {
    let started = view.record.started_at.with_timezone(view.now.offset());
    started.format("%Y-%m-%d %H:%M").to_string()
});
const STATE: ListColumn =
    (Column::text(ALWAYS, WIDEST).with_colour(CellColour::Words), |view, _| view.state_text());
const DOING: ListColumn = (Column::text(2, WIDEST), |view, _| {
    view.doing.as_ref().map(Doing::doing_words).unwrap_or_default()
});
const COUNT: ListColumn = (Column::text(4, WIDEST), |view, _| view.iteration_text());
const ITERATIONS: ListColumn =
    (Column::number(4, WIDEST), |view, _| view.record.state.counts().completed().to_string());
const TIME: ListColumn =
    (Column::number(0, WIDEST), |view, _| format_briefly(view.record.state.time().awake_ms()));
const COST: ListColumn = (Column::number(4, WIDEST), |view, _| {
    view.record.state.work().usage().cost_text(false).unwrap_or_default()
});
const AGE: ListColumn = (Column::text(4, WIDEST), |view, _| {
    format_age((view.now.to_utc() - view.record.last_at()).num_milliseconds())
});
const BYTES: ListColumn = (Column::number(1, WIDEST), |view, _| format_size(view.bytes));
const PLACE: ListColumn = (Column::text(3, WIDEST), |view, home| {
    let branch = view.record.branch().map(|branch| format!(" ({branch})"));
    short_folder(view.record, home) + &branch.unwrap_or_default()
});
const TASK: ListColumn = (Column::rest(ALWAYS, 10), |view, _| task_line(view.record));

/// The columns of the lists: live loops, ended ones here and everywhere, and loops whose records
/// may be removed.
pub const STANDING: [ListColumn; 7] = [ID, STARTED, STATE, DOING, COUNT, PLACE, TASK];
pub const ENDED: [ListColumn; 7] = [ID, STARTED, STATE, ITERATIONS, TIME, COST, TASK];
pub const ENDED_EVERYWHERE: [ListColumn; 8] =
    [ID, STARTED, STATE, ITERATIONS, TIME, COST, PLACE, TASK];
pub const REMOVABLE: [ListColumn; 6] = [ID, AGE, STATE, BYTES, PLACE, TASK];

/// The task, or the procedure that replaces it.
pub fn task_text(subject: &Loop) -> Cow<'_, str> {
    let task = subject.contract.task.as_str();
    match subject.procedure() {
        Some(name) if task.is_empty() => Cow::Owned(format!("procedure {name}")),
        _ => Cow::Borrowed(task),
    }
}

/// The task on one line.
pub fn task_line(subject: &Loop) -> String {
    one_line(&task_text(subject), TASK_CHARS)
}

/// The folder with the home shortened: "~/w/api".
pub fn short_folder(subject: &Loop, home: Option<&Path>) -> String {
    let folder = &subject.place.checkout;
    let below = home.and_then(|home| folder.strip_prefix(home).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => folder.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::a_run;

    #[test]
    fn a_procedure_is_shown_only_in_place_of_a_missing_task() {
        let mut run = a_run(Some("build"));
        assert_eq!(task_text(&run), "Build the todo API");
        run.contract.task.clear();
        assert_eq!(task_text(&run), "procedure build");
    }
}
