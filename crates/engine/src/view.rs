//! The status of a loop as one value, from which lists, boards, the line for a prompt and JSON are
//! made; together with the loop's story also the page that a person reads in the morning, the page
//! for the next worker, and the story in HTML. It contains what crew itself saw; what an agent said
//! is marked as said. It decides nothing and reads nothing.

pub mod columns;
mod ending;
pub mod events;
mod results;

use std::path::PathBuf;

use chrono::{DateTime, FixedOffset, Utc};
use serde::Serialize;
use serde_json::{Value, json};

pub use self::ending::{asked_for_help, at_dialog, state_of_the_checks, verdict_text};
pub use self::results::TOLD_CHARS;
use super::boundary::limits;
use super::evidence::changes::{Changes, Commits};
use super::journal::story::Story;
use super::record::{Check, Dialog, Loop, LoopId, Outcome, Proof, Role, Status, TaskOfFleet};
use super::text::clock_time;
use super::usage::Usage;
use crate::evidence::test_run::TestMemories;
use crate::record::Doing;
pub use crate::text::templates::Fact;
pub use crate::view::ending::NextStep;
pub use crate::view::results::{IterationLine, LINES_MAX, LastWords, newest_lines};

/// The status of a loop: its record, and what this machine knows about it. Lists, boards, pages,
/// the line for a prompt and the output for programs are made from it.
#[derive(Debug, Clone)]
pub struct LoopView<'a> {
    pub record: &'a Loop,
    /// Whether no process drives the loop any longer although it has not ended.
    pub owner_is_gone: bool,
    /// The dialog at which its client waits.
    pub dialog: Option<&'a Dialog>,
    /// Whether a pause is pending.
    pub is_pausing: bool,
    /// The current step of a running loop.
    pub doing: Option<Doing>,
    /// Milliseconds since its iteration began.
    pub running_ms: u64,
    /// Its task, if its fleet is kept on this machine.
    pub task: Option<&'a TaskOfFleet>,
    /// Whether a later loop works, or worked, in the same working tree.
    pub is_replaced: bool,
    /// The size of its record in bytes, where it is known.
    pub bytes: u64,
    /// The time on the reader's clock.
    pub now: DateTime<FixedOffset>,
}

/// What the user has to do about a loop, in the order of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoardGroup {
    NeedsYou,
    Running,
    Waiting,
    Ended,
}

impl<'a> LoopView<'a> {
    /// A loop of which only the record is known.
    pub fn from_record(record: &'a Loop, now: DateTime<FixedOffset>) -> Self {
        Self {
            record,
            owner_is_gone: false,
            dialog: None,
            is_pausing: false,
            doing: None,
            running_ms: 0,
            task: None,
            is_replaced: false,
            bytes: 0,
            now,
        }
    }

    /// The state in words: "running", "waiting until 03:10", "completed, checked", "completed,
    /// proven at 09:12".
    pub fn state_text(&self) -> String {
        let Self { record, now, .. } = self;
        let word = record.status_word();
        let proof = record.state.end().ending().as_ref().and_then(|ending| ending.proof);
        let left = if record.is_live() { "" } else { record.state.git().left_in_a_list() };
        let due = if record.is_live() { record.state.wait().due() } else { None };
        match (due, proof) {
            _ if self.owner_is_gone => "owner gone".to_owned(),
            (Some(due), _) => format!("waiting until {}", clock_time(due, *now)),
            (None, Some(proof)) => {
                let tried = record.state.end().proved_at();
                let at = tried.map(|it| format!(" at {}", clock_time(it, *now)));
                format!("{word}, {}{}{left}", proof.label(), at.unwrap_or_default())
            }
            (None, None) => word.to_owned() + left,
        }
    }

    /// The iteration that runs or is next; for a paused loop, the last one completed.
    pub fn iteration_text(&self) -> String {
        let is_paused = self.record.state.status() == Status::Paused;
        let completed = self.record.state.counts().completed();
        number_iteration(self.record, if is_paused { completed } else { self.record.iteration() })
    }

    /// The group of the loop on the board, however long ago it ended.
    pub fn board_group(&self) -> BoardGroup {
        match self.record.state.status() {
            _ if self.needs_a_person() => BoardGroup::NeedsYou,
            Status::Running => BoardGroup::Running,
            Status::Waiting | Status::Paused => BoardGroup::Waiting,
            Status::Finished => BoardGroup::Ended,
        }
    }

    /// Whether a loop that is over needs a person: it is blocked, could not commit or push, or
    /// leaves its fleet's task undone. A task that was only interrupted waits for its fleet.
    fn needs_a_person(&self) -> bool {
        let git = self.record.state.git();
        match (self.record.outcome(), self.task) {
            (None, _) => self.owner_is_gone || self.dialog.is_some(),
            _ if self.is_replaced => false,
            (Some(Outcome::Blocked), _) => true,
            (Some(Outcome::Interrupted), Some(_)) => false,
            (Some(outcome), Some(_)) => outcome.leaves_a_task_undone(),
            (Some(_), None) => git.commits.count > 0 || git.pushes.count > 0,
        }
    }
}

/// The iteration and its limit: "3/10", or "3" where there is no limit.
pub fn number_iteration(subject: &Loop, iteration: u32) -> String {
    match subject.contract.limits.max_iterations {
        0 => iteration.to_string(),
        max => format!("{iteration}/{max}"),
    }
}

/// What was used, for programs: tokens and cost.
pub fn usage_value(usage: &Usage) -> Value {
    json!({
        "tokens": usage.tokens,
        "total_tokens": usage.tokens.total(),
        "cost_usd": usage.cost.dollars(),
        "cost_usd_at_most": usage.cost_at_most().dollars(),
        "unpriced_models": usage.unpriced_models,
        "is_lower_bound": usage.is_lower_bound(),
    })
}

/// The inputs of a page.
#[derive(Debug, Clone)]
pub struct PageInputs<'a> {
    pub view: LoopView<'a>,
    pub story: &'a Story,
    /// What the loop changed since its start; `None` where nothing could look.
    pub changes: Option<&'a Changes>,
    pub changes_from: ChangesFrom,
    /// What happened to the commits.
    pub commits: &'a Commits,
    /// The test results of each check, by command.
    pub tests: &'a TestMemories,
    /// The command that resumes it.
    pub resume: &'a str,
    /// How it is stopped while it runs.
    pub stop: &'a str,
}

/// Where a page's changes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangesFrom {
    /// The changes are only in git, or nowhere: there are no snapshots to show or to return to.
    Git,
    /// The changes are in the snapshots up to the last boundary, or to the end.
    Snapshots,
    /// The changes are in the current tree, which is no longer what the loop left.
    Tree,
}

/// A page. Empty values and `None` are not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page {
    pub id: LoopId,
    pub outcome: Option<Outcome>,
    pub proof: Option<Proof>,
    /// When a better proof was last searched for after the end; not written if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proved_at: Option<DateTime<Utc>>,
    /// The first line: "completed after 4 iterations", "running, iteration 4 of 15".
    pub verdict: String,
    /// The remark on the first line: "proof: proven", "2 of 148 tests fail", "needs you"; `None`
    /// without one.
    pub remark: Option<String>,
    /// The task, or the procedure that replaces it.
    pub task: String,
    /// `running`, `waiting`, `paused`, or the outcome.
    pub status: &'static str,
    pub branch: Option<String>,
    pub folder: PathBuf,
    /// The file with the exact task; `None` for a procedure without one.
    pub task_file: Option<PathBuf>,
    /// What the agent says when it is done; `None` after `--no-promise`.
    pub promise: Option<String>,
    /// Each check with its last result.
    pub checks: Vec<PageCheck>,
    /// The agent's last words, unchecked; `None` if there are none.
    pub said: Option<String>,
    /// The rows about the end: what is needed, why it ended, the best result.
    pub ending: Vec<Fact>,
    /// Time it worked, in milliseconds.
    pub awake_ms: u64,
    pub started_at: DateTime<Utc>,
    /// When it ended; `None` while it is live.
    pub ended_at: Option<DateTime<Utc>>,
    /// What it cost, such as "$3.42 of $8.00"; `None` while no usage is known.
    pub cost: Option<String>,
    pub iterations: Vec<IterationLine>,
    /// How many iterations came before the first line.
    pub earlier: u64,
    /// The rows about the results: tests, checks, files, commits, pushes and questions.
    pub results: Vec<Fact>,
    /// What happened to the commits.
    #[serde(flatten)]
    pub commits: Commits,
    pub changes: Option<Changes>,
    /// The file of the handoff; `None` if there is none.
    pub handoff: Option<String>,
    /// Whether nobody has read the newest handoff that a person or an agent wrote.
    #[serde(skip)]
    pub has_unread_handoff: bool,
    /// How a running loop is stopped; `None` for one that does not run.
    pub stop: Option<String>,
    /// The command to type next, which shows something.
    pub next: NextStep,
    /// The command after that, where looking is not enough; otherwise `None`.
    pub then: Option<NextStep>,
    /// The command that resumes it; `None` where that leads nowhere.
    pub resume: Option<String>,
}

/// A check of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageCheck {
    run: String,
    role: Role,
    /// Its last result: "failed (exit 1)", "passed after iteration 3"; `None` if it never ran.
    last: Option<String>,
    /// Whether it did not pass after the last iteration.
    is_failing: bool,
}

impl Page {
    /// The page of a loop, without its handoff, which may be written from it.
    pub fn from_inputs(inputs: &PageInputs<'_>) -> Self {
        let record = inputs.view.record;
        let iterations = newest_lines(record, inputs.story, LINES_MAX);
        let earlier = iterations.first().map_or(0, |line| u64::from(line.number.saturating_sub(1)));
        let (next, then) = ending::next_steps(inputs);
        let task = record.contract.task.trim();
        let checks = page_checks(record);
        Self {
            id: record.id.clone(),
            outcome: record.outcome(),
            proof: record.state.end().ending().as_ref().and_then(|ending| ending.proof),
            proved_at: record.state.end().proved_at(),
            verdict: verdict_text(record, inputs.view.now),
            remark: ending::verdict_remark(inputs),
            task: columns::task_text(record).trim().to_owned(),
            status: record.status_word(),
            branch: record.place.branch.clone(),
            folder: record.place.folder.clone(),
            task_file: (!task.is_empty()).then(|| record.place.task_file()),
            promise: record.contract.promise.as_ref().map(ToString::to_string),
            results: results::result_facts(inputs, &checks),
            checks,
            said: record.state.seen().evidence().as_ref().and_then(|seen| seen.said.clone()),
            ending: ending::ending_facts(inputs),
            awake_ms: record.state.time().awake_ms(),
            started_at: record.started_at,
            ended_at: ending::end_time(inputs),
            cost: cost_text(record),
            iterations,
            earlier,
            commits: inputs.commits.clone(),
            changes: inputs.changes.cloned(),
            handoff: None,
            has_unread_handoff: inputs.story.has_unread_handoff(),
            stop: ending::stop_command(inputs),
            next,
            then,
            resume: ending::can_resume(inputs).then(|| inputs.resume.to_owned()),
        }
    }
}

fn page_checks(record: &Loop) -> Vec<PageCheck> {
    let failing =
        record.state.seen().evidence().iter().flat_map(super::evidence::Evidence::failing);
    let failing: Vec<&String> = failing.map(|check| &check.run).collect();
    let one = |check: &Check| PageCheck {
        run: check.run.clone(),
        role: check.role,
        last: record.last_of(&check.run),
        is_failing: failing.contains(&&check.run),
    };
    record.contract.checks.iter().map(one).collect()
}

/// What it cost: "$3.42 of $8.00", or the usage alone where nothing limits it.
fn cost_text(record: &Loop) -> Option<String> {
    if record.contract.limits.bound_usage()
        && let Some(text) = limits::cost_and_tokens(record)
    {
        return Some(text);
    }
    record.usage_text()
}

#[cfg(test)]
mod tests;
