//! The result of a loop, as one value: the page that a person reads in the morning, the page of the
//! next worker and the story in HTML are made from it. It holds what crew itself saw; what an agent
//! said is marked as said. It decides nothing and reads nothing.

mod ending;
mod iterations;
mod live;
mod messages;
mod next;
mod results;

use chrono::{DateTime, FixedOffset, Utc};
use serde::Serialize;

pub use self::ending::{asked_for_help, state_of_the_checks, verdict};
pub use self::iterations::{IterationLine, LastWords, PageLine, files};
pub use self::live::at_dialog;
pub use self::messages::TOLD_CHARS;
pub use self::next::Step;
use super::boundary::limits;
use super::evidence::changes::Changes;
use super::evidence::commits::Commits;
use super::evidence::test_report::TestMemories;
use super::journal::story::Story;
use super::record::{Dialog, Loop, LoopId, Outcome, Proof};

/// Everything that a page is made from.
#[derive(Debug, Clone, Copy)]
pub struct PageInputs<'a> {
    pub record: &'a Loop,
    pub story: &'a Story,
    /// Nobody drives the loop any more although it did not end.
    pub owner_is_gone: bool,
    /// The dialog at which its client waits.
    pub dialog: Option<&'a Dialog>,
    /// A pause is pending.
    pub is_pausing: bool,
    /// What the loop changed since its start; `None` where nothing could look.
    pub changes: Option<&'a Changes>,
    pub changes_from: ChangesFrom,
    /// What became of the commits.
    pub commits: &'a Commits,
    /// The test results of each check, by command.
    pub tests: &'a TestMemories,
    /// The command that resumes it.
    pub resume: &'a str,
    /// How it is stopped while it runs.
    pub stop: &'a str,
    /// The time on the reader's clock.
    pub now: DateTime<FixedOffset>,
}

/// Where a page's changes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangesFrom {
    /// What git lists, or nowhere: there are no snapshots to show or to go back to.
    Git,
    /// The snapshots up to the last boundary, or to the end.
    Snapshots,
    /// The tree as it is, which is no longer what the loop left.
    Tree,
}

/// A page. Whatever is empty or `None` is no news and is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Page {
    pub id: LoopId,
    pub outcome: Option<Outcome>,
    pub proof: Option<Proof>,
    /// When it was last looked for after the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proved_at: Option<DateTime<Utc>>,
    /// "completed after 4 iterations", "running, iteration 4 of 15".
    pub verdict: String,
    /// What belongs to it: "proof: proven", "2 of 148 tests fail", "needs you".
    pub remark: Option<String>,
    /// The task, or the procedure that replaces it.
    pub task: String,
    /// What is needed, why it ended, what was best.
    pub ending: Vec<Fact>,
    /// Time it worked, in milliseconds.
    pub awake_ms: u64,
    pub started_at: DateTime<Utc>,
    /// When it ended; `None` while it lives.
    pub ended_at: Option<DateTime<Utc>>,
    /// "$3.42 of $8.00".
    pub cost: Option<String>,
    pub iterations: Vec<PageLine>,
    /// How many iterations came before the first line.
    pub earlier: u64,
    /// What became of tests, checks, files, commits and questions.
    pub results: Vec<Fact>,
    /// What became of the commits.
    #[serde(flatten)]
    pub commits: Commits,
    pub changes: Option<Changes>,
    /// The file of the handoff.
    pub handoff: Option<String>,
    /// Whether nobody has read the newest words of a person's or an agent's handoff.
    #[serde(skip)]
    pub has_unread_handoff: bool,
    /// How a running loop is stopped.
    pub stop: Option<String>,
    /// The command to type next, which shows something.
    pub next: Step,
    /// The one after it, where looking is not enough.
    pub then: Option<Step>,
    /// The command that resumes it; `None` where that leads nowhere.
    pub resume: Option<String>,
}

/// One row: what it is, and what crew saw of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// One word: `why`, `tests`.
    pub name: &'static str,
    pub text: String,
    /// What was printed or said, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub detail: Vec<String>,
}

impl Fact {
    /// A row of one text.
    pub fn new(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text.into(), detail: Vec::new() }
    }

    fn of(name: &'static str, text: Option<String>) -> Option<Self> {
        text.map(|text| Self::new(name, text))
    }
}

impl Page {
    /// The page of a loop, without its handoff, which may be written from it.
    pub fn of(inputs: &PageInputs<'_>) -> Self {
        let record = inputs.record;
        let (iterations, earlier) = iterations::lines(inputs);
        let (next, then) = next::steps(inputs);
        let task = record.contract.task.trim();
        let procedure = record.procedure().filter(|_| task.is_empty());
        Self {
            id: record.id.clone(),
            outcome: record.outcome(),
            proof: record.state.ending.as_ref().and_then(|ending| ending.proof),
            proved_at: record.state.proved_at,
            verdict: verdict(record, inputs.now),
            remark: ending::remark(inputs),
            task: procedure.map_or_else(|| task.to_owned(), |name| format!("procedure {name}")),
            ending: ending::facts(inputs),
            awake_ms: record.state.awake_ms,
            started_at: record.started_at,
            ended_at: ending::at(inputs),
            cost: cost(record),
            iterations,
            earlier,
            results: results::facts(inputs),
            commits: inputs.commits.clone(),
            changes: inputs.changes.cloned(),
            handoff: None,
            has_unread_handoff: inputs.story.has_unread_handoff(),
            stop: next::stop(inputs),
            next,
            then,
            resume: next::can_resume(inputs).then(|| inputs.resume.to_owned()),
        }
    }
}

/// "$3.42 of $8.00", or what was used where nothing limits it.
fn cost(record: &Loop) -> Option<String> {
    let is_limited = record.contract.limits.bound_usage();
    limits::cost_and_tokens(record).filter(|_| is_limited).or_else(|| record.spent())
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
