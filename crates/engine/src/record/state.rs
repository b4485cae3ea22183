//! The transitions of a loop's state: what a boundary, a driver or a person changes in it. Each of
//! them keeps the rules of `Loop::check`; a change that is none of them may break those.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    ASKED_MAX, AccountId, AgentMemory, CheckMemory, Driver, Ending, FallbackAgent, GitMemory,
    IncurableRefusal, Moment, Outcome, Owner, ProcessIdentity, Question, SessionMemory, Tally,
    TreeMemory,
};
use crate::evidence::Evidence;
use crate::test_changes::Baseline;
use crate::usage::Usage;

/// The status of a loop. A finished one also has an ending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    #[default]
    Running,
    /// Waits until `due`. If the model's service did not answer, the same iteration is tried again;
    /// after a crash of the agent the next one begins.
    Waiting,
    Paused,
    Finished,
}

/// The part of the record that every boundary replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Rises by one with every write.
    pub generation: u64,
    /// Boundaries recorded, counted iterations or not.
    pub boundaries: u64,
    pub status: Status,
    pub ending: Option<Ending>,
    pub owner: Owner,
    /// Iterations judged and counted.
    pub completed: u32,
    pub consecutive_failures: u32,
    /// Iterations in a row without progress.
    #[serde(rename = "still")]
    pub iterations_without_progress: u32,
    /// Transient API errors in a row.
    pub transient_errors: u32,
    /// Crashes of the agent in a row.
    pub crashes: u32,
    pub tally: Tally,
    /// When a waiting loop tries again.
    pub due: Option<DateTime<Utc>>,
    /// Why the loop waits; meaningless while it does not wait.
    #[serde(rename = "awaited")]
    pub wait_reason: Option<String>,
    /// Who of several agents works, and what each has done.
    pub agents: AgentMemory,
    /// The account whose rate window it waits for; meaningless while it does not wait.
    pub window: Option<AccountId>,
    /// Awake milliseconds over all iterations.
    pub awake_ms: u64,
    /// When the running iteration began.
    pub began: Moment,
    pub last_iteration_at: Option<DateTime<Utc>>,
    /// When the end was recorded; `None` of a live loop.
    pub ended_at: Option<DateTime<Utc>>,
    /// When its proof was last looked for after its end; `None` if it never was.
    pub proved_at: Option<DateTime<Utc>>,
    /// The process that looks for it in the background.
    pub prover: Option<ProcessIdentity>,
    /// The identity of the working tree at the last boundary.
    pub tree: Option<String>,
    pub trees: TreeMemory,
    /// The memory of each check, by command.
    pub checks: BTreeMap<String, CheckMemory>,
    /// Whether the tree as the loop found it has nothing more to show: the checks, as they are held
    /// now, have run there.
    pub checked_as_found: bool,
    /// Whether those before the first iteration ran on the work of an attempt that was cut off.
    pub checked_after_work: bool,
    /// The tests and check configuration as the loop found them; `None` if there are no checks, or
    /// no snapshots.
    pub baseline: Option<Baseline>,
    /// How many claims in a row were refused for a change of tests.
    pub test_refusals: u32,
    /// Why the tree as the loop found it is not known, with a hint; `None` if it was recorded.
    pub unrecorded: Option<String>,
    /// Why the last requested end was refused, if no agent can change the reason.
    pub incurable: Option<IncurableRefusal>,
    pub evidence: Option<Evidence>,
    /// Since the start, as far as it could be counted.
    pub usage: Usage,
    /// The agent whose use was counted although no boundary judged it; see `drive/usage.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_late: Option<u64>,
    /// The user's messages to the agent for the next prompt.
    #[serde(rename = "words")]
    pub messages: Vec<String>,
    /// How many of them, oldest first, were in the prompt of the running iteration. They count as
    /// delivered unless that iteration runs again.
    pub told: usize,
    /// The questions that the agent had to decide itself, the newest [`ASKED_MAX`].
    pub asked: Vec<Question>,
    /// The results of git steps so far.
    pub git: GitMemory,
    pub session: SessionMemory,
}

/// What an event does to the count of equal events in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    Extends,
    /// Says nothing about it.
    Keeps,
    /// Is the first of a new one.
    Begins,
    Ends,
}

impl Row {
    fn apply_to(self, count: &mut u32) {
        *count = match self {
            Self::Extends => count.saturating_add(1),
            Self::Keeps => *count,
            Self::Begins => 1,
            Self::Ends => 0,
        };
    }
}

/// A counted iteration that ends.
#[derive(Debug)]
pub struct IterationEnd {
    pub at: DateTime<Utc>,
    pub spent_ms: u64,
    pub evidence: Evidence,
    pub failures: Row,
    pub without_progress: Row,
    pub crashes: Row,
}

// Whether it works, waits, is paused or over.
impl State {
    /// The state of a loop whose first iteration begins now.
    pub fn begin_first(owner: Owner, now: Moment) -> Self {
        Self { owner, began: now, ..Self::default() }
    }

    /// Counts an iteration.
    pub(super) fn end_iteration(&mut self, end: IterationEnd) {
        self.completed += 1;
        end.failures.apply_to(&mut self.consecutive_failures);
        end.without_progress.apply_to(&mut self.iterations_without_progress);
        end.crashes.apply_to(&mut self.crashes);
        self.last_iteration_at = Some(end.at);
        self.tally.count_iteration(&end.evidence);
        self.evidence = Some(end.evidence);
    }

    /// Begins an iteration. The time since the last one counts as the loop's.
    pub fn begin_iteration(&mut self, now: Moment) {
        self.awake_ms =
            self.awake_ms.saturating_add(now.awake_ms.saturating_sub(self.began.awake_ms));
        self.began = now;
        self.hold(None);
    }

    /// Waits until then, for a turn of the account if one is given.
    pub fn begin_wait(&mut self, until: DateTime<Utc>, why: String, account: Option<AccountId>) {
        self.status = Status::Waiting;
        self.due = Some(until);
        self.wait_reason = Some(why);
        self.window = account;
    }

    /// Names the account whose window it waits for.
    pub fn name_window(&mut self, account: Option<AccountId>) {
        self.window = account;
    }

    /// Works again, in the same iteration.
    pub fn end_wait(&mut self) {
        self.hold(None);
    }

    /// Works on; `wake_at` is when its session is woken at the latest.
    pub fn hold(&mut self, wake_at: Option<DateTime<Utc>>) {
        self.status = Status::Running;
        self.due = wake_at;
    }

    /// Pauses after `worked_ms` of the iteration.
    pub fn pause(&mut self, now: Moment, worked_ms: u64) {
        self.awake_ms = self.awake_ms.saturating_add(worked_ms);
        self.began = now;
        self.status = Status::Paused;
        self.due = None;
    }

    /// Ends the loop after `worked_ms` of the iteration.
    pub fn finish(&mut self, ending: Ending, worked_ms: u64) {
        self.awake_ms = self.awake_ms.saturating_add(worked_ms);
        self.status = Status::Finished;
        self.due = None;
        self.ending = Some(ending);
    }

    /// Continues an ended or interrupted loop under a driver: what ended it, or kept it waiting, is
    /// over.
    pub fn reopen(&mut self, driver: Driver) {
        let outcome = self.ending.take().map(|ending| ending.outcome);
        self.end_wait();
        self.git.pending.reaction = false;
        self.transient_errors = 0;
        // Messages of an iteration that never reached its boundary are sent again; a session gets
        // them at once.
        self.told = match driver {
            Driver::Session => self.messages.len(),
            Driver::Process => 0,
        };
        self.incurable = None;
        self.test_refusals = 0;
        // Whoever resumes has seen to what kept an agent from its work; the first one tries first.
        self.agents.stand_in = None;
        self.agents.out.clear();
        // What ended the loop is forgiven once: otherwise the first boundaries would end it again.
        if matches!(outcome, Some(Outcome::Aborted | Outcome::Stalled)) {
            self.consecutive_failures = 0;
            self.iterations_without_progress = 0;
        }
    }

    /// Gives the loop to another session or process, whose iteration begins now.
    pub fn hand_over(&mut self, owner: Owner, session: SessionMemory, now: Moment) {
        self.owner = owner;
        self.session = session;
        self.began = now;
    }

    /// Names the process that drives the loop, or does what it left.
    pub fn name_owner(&mut self, owner: Owner) {
        self.owner = owner;
    }

    /// Counts a write of the record, and notes when it ended.
    pub fn count_write(&mut self, at: DateTime<Utc>) {
        self.generation += 1;
        self.ended_at = match self.status {
            Status::Finished => self.ended_at.or(Some(at)),
            _ => None,
        };
    }

    /// Adds what others changed on disk since `known` to the state that a driver continued in
    /// memory.
    pub fn merge(&mut self, known: &Self, found: &Self) {
        self.generation = self.generation.max(found.generation);
        let since = found.messages.strip_prefix(known.messages.as_slice());
        let missing = since.unwrap_or(&found.messages).iter();
        let missing = missing.filter(|words| !self.messages.contains(words)).cloned();
        self.messages.extend(missing.collect::<Vec<_>>());
        if matches!(found.status, Status::Paused | Status::Finished) {
            self.status = found.status;
            self.ending.clone_from(&found.ending);
            self.due = None;
        }
    }

    /// Looks for a better proof of an ended loop in a process.
    pub fn begin_proof(&mut self, prover: ProcessIdentity) {
        self.prover = Some(prover);
    }

    /// Replaces the end by the one that a search for a better proof found.
    pub fn end_proof(&mut self, ending: Ending, at: DateTime<Utc>, knows_the_start: bool) {
        self.prover = None;
        self.proved_at = Some(at);
        self.checked_as_found |= knows_the_start;
        self.ending = Some(ending);
    }
}

// What a boundary counts.
impl State {
    /// Counts a boundary, after `spent_ms` of the iteration.
    pub fn count_boundary(&mut self, now: Moment, spent_ms: u64) {
        self.boundaries += 1;
        self.awake_ms = self.awake_ms.saturating_add(spent_ms);
        self.began = now;
        self.due = None;
    }

    /// Counts a transient error of the model's service, or the end of their row.
    pub fn count_transient_errors(&mut self, row: Row) {
        row.apply_to(&mut self.transient_errors);
    }

    /// Refuses a requested end: `why` if no agent can change the reason, and whether it is a change
    /// of tests.
    pub fn refuse_end(&mut self, why: Option<IncurableRefusal>, for_tests: bool) {
        self.incurable = why;
        self.test_refusals = if for_tests { self.test_refusals + 1 } else { 0 };
    }

    /// Remembers that what the agent with this id used is counted without a boundary.
    pub fn count_late(&mut self, agent: u64) {
        self.counted_late = Some(agent);
    }

    /// Notes that an agent used what was not reported.
    pub fn lose_usage(&mut self) {
        self.usage.lost = true;
    }
}

// What it remembers of its checks and their tests.
impl State {
    /// Remembers a run of a check.
    pub fn remember_check(&mut self, run: String, memory: CheckMemory) {
        self.checks.insert(run, memory);
    }

    /// Forgets the output of the checks before the first iteration.
    pub fn forget_output(&mut self) {
        self.checks.values_mut().for_each(|memory| memory.tail.clear());
    }

    /// Forgets that checks failed: what failed were others.
    pub fn forget_failures(&mut self) {
        self.checks.values_mut().for_each(CheckMemory::forget_failures);
        self.checked_as_found = false;
    }

    /// Notes that the tree as the loop found it has nothing more to show.
    pub fn end_looks_at_the_start(&mut self) {
        self.checked_as_found = true;
    }

    /// Notes that the checks before the first iteration ran on an agent's work.
    pub fn note_work_before_the_first(&mut self) {
        self.checked_after_work = true;
    }

    /// Notes why the tree as the loop found it is not known; `None` if it is.
    pub fn note_unrecorded(&mut self, why: Option<String>) {
        self.unrecorded = why;
    }

    /// Replaces the tests and check configuration that count as those of the start.
    pub fn replace_baseline(&mut self, baseline: Option<Baseline>) {
        self.baseline = baseline;
    }
}

// The messages to the agent, and its questions.
impl State {
    /// Adds messages for the next prompt.
    pub fn add_messages(&mut self, messages: impl IntoIterator<Item = String>) {
        self.messages.extend(messages);
    }

    /// The oldest `count` messages are in the prompt of the iteration that begins.
    pub fn mark_in_prompt(&mut self, count: usize) {
        self.told = count.min(self.messages.len());
    }

    /// Takes the messages that no agent got; all of them if none was started.
    pub fn take_messages(&mut self, was_started: bool) -> Vec<String> {
        let messages = std::mem::take(&mut self.messages);
        let told = std::mem::take(&mut self.told);
        if was_started {
            return messages.into_iter().skip(told).collect();
        }
        let last = self.evidence.take().map(|last| last.words);
        last.into_iter().flatten().chain(messages).collect()
    }

    /// Puts the messages that were sent during a wait into the prompt that ends it.
    pub fn put_messages_in_prompt(&mut self) {
        match &mut self.evidence {
            Some(evidence) if self.messages.len() > self.told => {
                let told = std::mem::take(&mut self.told);
                evidence.words = std::mem::take(&mut self.messages).split_off(told);
            }
            Some(_) => {}
            None => self.told = self.messages.len(),
        }
    }

    /// Takes back the messages of a prompt that was not delivered.
    pub fn take_back_prompt(&mut self) {
        self.told = 0;
        let words = self.evidence.as_mut().map(|last| std::mem::take(&mut last.words));
        self.messages.splice(0..0, words.unwrap_or_default());
    }

    /// Adds questions that the agent had to decide itself; the oldest make room.
    pub fn add_questions(&mut self, questions: impl IntoIterator<Item = Question>) {
        self.asked.extend(questions);
        self.asked.drain(..self.asked.len().saturating_sub(ASKED_MAX));
    }
}

// Who works, and what belongs to one driver alone.
impl State {
    /// Gives the work to a fallback, or back to the first agent.
    pub fn hand_to_agent(&mut self, next: Option<FallbackAgent>) {
        let before = self.agents.stand_in.as_ref().map(|stand_in| &stand_in.agent);
        if before != next.as_ref().map(|stand_in| &stand_in.agent) {
            // Those were another service's.
            self.transient_errors = 0;
        }
        self.agents.stand_in = next;
    }

    /// Takes a fallback off the loop.
    pub fn lose_agent(&mut self, name: String) {
        self.agents.out.push(name);
    }

    /// What its git steps change.
    pub fn git_mut(&mut self) -> &mut GitMemory {
        &mut self.git
    }

    /// What its session changes between two boundaries.
    pub fn session_mut(&mut self) -> &mut SessionMemory {
        &mut self.session
    }
}
