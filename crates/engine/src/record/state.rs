//! The transitions of a loop's state: what a boundary, a driver or a person changes in it. Each of
//! them keeps the rules of `Loop::check_rules`; any other change may break them.

use derive_getters::Getters;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    ASKED_MAX, AccountId, AgentMemory, Carried, CheckMemory, Driver, Ending, FallbackAgent,
    GitMemory, IncurableRefusal, Moment, Outcome, Owner, ProcessIdentity, Question, SessionMemory,
    Tally, TreeMemory, TreeSeen,
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
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Rises by one with every write.
    #[getter(copy)]
    generation: u64,
    #[getter(copy)]
    status: Status,
    owner: Owner,
    #[serde(flatten)]
    counts: StateCounts,
    #[serde(flatten)]
    wait: WaitState,
    #[serde(flatten)]
    time: StateTimes,
    #[serde(flatten)]
    end: EndState,
    #[serde(flatten)]
    seen: SeenState,
    #[serde(flatten)]
    work: WorkState,
    #[serde(flatten)]
    exchange: Exchange,
    /// The results of git steps so far.
    git: GitMemory,
    session: SessionMemory,
}

/// What the loop has counted so far.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCounts {
    /// Boundaries recorded, counted iterations or not.
    #[getter(copy)]
    boundaries: u64,
    /// Iterations judged and counted.
    #[getter(copy)]
    completed: u32,
    #[getter(copy)]
    consecutive_failures: u32,
    /// Iterations in a row without progress.
    #[serde(rename = "still")]
    #[getter(copy)]
    iterations_without_progress: u32,
    /// Transient API errors in a row.
    #[getter(copy)]
    transient_errors: u32,
    /// Consecutive crashes of the agent.
    #[getter(copy)]
    crashes: u32,
    tally: Tally,
}

/// What a waiting loop waits for.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitState {
    /// When a waiting loop tries again.
    #[getter(copy)]
    due: Option<DateTime<Utc>>,
    /// Why the loop waits; meaningless while it does not wait.
    #[serde(rename = "awaited")]
    wait_reason: Option<String>,
    /// The account whose rate window it waits for; meaningless while it does not wait.
    window: Option<AccountId>,
}

/// When its iterations ran, and for how long.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateTimes {
    /// Awake milliseconds over all iterations.
    #[getter(copy)]
    awake_ms: u64,
    /// When the running iteration began.
    #[getter(copy)]
    began: Moment,
    #[getter(copy)]
    last_iteration_at: Option<DateTime<Utc>>,
}

/// How the loop ended, and the results of requests to end it.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndState {
    ending: Option<Ending>,
    /// When the end was recorded; `None` while the loop is live.
    #[getter(copy)]
    ended_at: Option<DateTime<Utc>>,
    /// When a better proof was last searched for after its end; `None` if it never was.
    #[getter(copy)]
    proved_at: Option<DateTime<Utc>>,
    /// The process that searches for a better proof in the background.
    prover: Option<ProcessIdentity>,
    /// Why the last requested end was refused, if no agent can change the reason.
    incurable: Option<IncurableRefusal>,
    /// How many claims in a row were refused for a change of tests.
    #[getter(copy)]
    test_refusals: u32,
}

/// What its boundaries found in the working tree.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenState {
    /// The identity of the working tree at the last boundary.
    tree: Option<String>,
    trees: TreeMemory,
    /// The memory of each check, by command.
    checks: BTreeMap<String, CheckMemory>,
    /// Whether the tree as the loop found it has nothing more to show, because the checks in their
    /// current form have run there.
    #[getter(copy)]
    checked_as_found: bool,
    /// Whether the checks before the first iteration ran on the work of an interrupted attempt.
    #[getter(copy)]
    checked_after_work: bool,
    /// The tests and check configuration that the loop found; `None` without checks or snapshots.
    baseline: Option<Baseline>,
    /// Why the tree as the loop found it is not known, with a hint; `None` if it was recorded.
    unrecorded: Option<String>,
    evidence: Option<Evidence>,
}

/// Who worked, and what that used.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkState {
    /// Who of several agents works, and what each has done.
    agents: AgentMemory,
    /// The usage since the start, as far as it could be counted.
    usage: Usage,
    /// The agent whose use was counted although no boundary judged it; see `drive/usage.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[getter(copy)]
    counted_late: Option<u64>,
}

/// What the user and the agent say to each other.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The user's messages to the agent for the next prompt.
    #[serde(rename = "words")]
    messages: Vec<String>,
    /// How many of them, oldest first, were in the prompt of the running iteration. They count as
    /// delivered unless that iteration runs again.
    #[getter(copy)]
    in_prompt: usize,
    /// The questions that the agent had to decide itself, the newest [`ASKED_MAX`].
    asked: Vec<Question>,
}

/// How an event changes a count of consecutive events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    Extends,
    /// The event does not affect the count.
    Keeps,
    /// The event starts a new count.
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
        Self { owner, time: StateTimes { began: now, ..StateTimes::default() }, ..Self::default() }
    }

    /// Continues what earlier attempts at the task left.
    pub(super) fn take_over(&mut self, carried: &Carried) {
        self.counts.completed = carried.completed;
        self.counts.consecutive_failures = carried.consecutive_failures;
        self.counts.iterations_without_progress = carried.iterations_without_progress;
        self.time.awake_ms = carried.awake_ms;
        self.work.usage = carried.usage.clone();
        self.seen.checks = carried.checks.clone();
        self.seen.baseline.clone_from(&carried.baseline);
    }

    /// Counts an iteration.
    pub(super) fn end_iteration(&mut self, end: IterationEnd) {
        self.counts.completed += 1;
        end.failures.apply_to(&mut self.counts.consecutive_failures);
        end.without_progress.apply_to(&mut self.counts.iterations_without_progress);
        end.crashes.apply_to(&mut self.counts.crashes);
        self.time.last_iteration_at = Some(end.at);
        self.counts.tally.count_iteration(&end.evidence);
        self.seen.evidence = Some(end.evidence);
    }

    /// Begins an iteration. The time since the last one counts as the loop's.
    pub fn begin_iteration(&mut self, now: Moment) {
        self.time.awake_ms = self
            .time
            .awake_ms
            .saturating_add(now.awake_ms.saturating_sub(self.time.began.awake_ms));
        self.time.began = now;
        self.hold(None);
    }

    /// Waits until then, for a turn of the account if one is given.
    pub fn begin_wait(&mut self, until: DateTime<Utc>, why: String, account: Option<AccountId>) {
        self.status = Status::Waiting;
        self.wait.due = Some(until);
        self.wait.wait_reason = Some(why);
        self.wait.window = account;
    }

    /// Names the account whose window the loop waits for.
    pub fn name_window(&mut self, account: Option<AccountId>) {
        self.wait.window = account;
    }

    /// Continues the same iteration after a wait.
    pub fn end_wait(&mut self) {
        self.hold(None);
    }

    /// Lets the loop continue; `wake_at` is the latest time at which its session is woken.
    pub fn hold(&mut self, wake_at: Option<DateTime<Utc>>) {
        self.status = Status::Running;
        self.wait.due = wake_at;
    }

    /// Pauses after `worked_ms` of the iteration.
    pub fn pause(&mut self, now: Moment, worked_ms: u64) {
        self.time.awake_ms = self.time.awake_ms.saturating_add(worked_ms);
        self.time.began = now;
        self.status = Status::Paused;
        self.wait.due = None;
    }

    /// Ends the loop after `worked_ms` of the iteration.
    pub fn finish(&mut self, ending: Ending, worked_ms: u64) {
        self.time.awake_ms = self.time.awake_ms.saturating_add(worked_ms);
        self.status = Status::Finished;
        self.wait.due = None;
        self.end.ending = Some(ending);
    }

    /// Reopens an ended or interrupted loop under a driver; what ended it or kept it waiting no
    /// longer applies.
    pub fn reopen(&mut self, driver: Driver) {
        let outcome = self.end.ending.take().map(|ending| ending.outcome);
        self.end_wait();
        self.git.pending.reaction = false;
        self.counts.transient_errors = 0;
        // Messages of an iteration that never reached its boundary are sent again; a session gets
        // them at once.
        self.exchange.in_prompt = match driver {
            Driver::Session => self.exchange.messages.len(),
            Driver::Process => 0,
        };
        self.end.incurable = None;
        self.end.test_refusals = 0;
        // Whoever resumes has seen to what kept an agent from its work; the first one tries first.
        self.work.agents.active_fallback = None;
        self.work.agents.out.clear();
        // What ended the loop is forgiven once: otherwise the first boundaries would end it again.
        if matches!(outcome, Some(Outcome::Aborted | Outcome::Stalled)) {
            self.counts.consecutive_failures = 0;
            self.counts.iterations_without_progress = 0;
        }
    }

    /// Gives the loop to another session or process, whose iteration begins now.
    pub fn hand_over(&mut self, owner: Owner, session: SessionMemory, now: Moment) {
        self.owner = owner;
        self.session = session;
        self.time.began = now;
    }

    /// Records the process that drives the loop, or completes what was left to do.
    pub fn name_owner(&mut self, owner: Owner) {
        self.owner = owner;
    }

    /// Counts a write of the record, and notes when it ended.
    pub fn count_write(&mut self, at: DateTime<Utc>) {
        self.generation += 1;
        self.end.ended_at = match self.status {
            Status::Finished => self.end.ended_at.or(Some(at)),
            _ => None,
        };
    }

    /// Adds what others changed on disk since `known` to the state that a driver continued in
    /// memory.
    pub fn merge(&mut self, known: &Self, found: &Self) {
        self.generation = self.generation.max(found.generation);
        let since = found.exchange.messages.strip_prefix(known.exchange.messages.as_slice());
        let missing = since.unwrap_or(&found.exchange.messages).iter();
        let missing = missing.filter(|words| !self.exchange.messages.contains(words)).cloned();
        self.exchange.messages.extend(missing.collect::<Vec<_>>());
        if matches!(found.status, Status::Paused | Status::Finished) {
            self.status = found.status;
            self.end.ending.clone_from(&found.end.ending);
            self.wait.due = None;
        }
    }

    /// Looks for a better proof of an ended loop in a process.
    pub fn begin_proof(&mut self, prover: ProcessIdentity) {
        self.end.prover = Some(prover);
    }

    /// Replaces the ending with the result of a search for a better proof.
    pub fn end_proof(&mut self, ending: Ending, at: DateTime<Utc>, knows_the_start: bool) {
        self.end.prover = None;
        self.end.proved_at = Some(at);
        self.seen.checked_as_found |= knows_the_start;
        self.end.ending = Some(ending);
    }
}

// What a boundary counts.
impl State {
    /// Counts a boundary, after `spent_ms` of the iteration.
    pub fn count_boundary(&mut self, now: Moment, spent_ms: u64) {
        self.counts.boundaries += 1;
        self.time.awake_ms = self.time.awake_ms.saturating_add(spent_ms);
        self.time.began = now;
        self.wait.due = None;
    }

    /// Counts a transient error of the model's service, or the end of their row.
    pub fn count_transient_errors(&mut self, row: Row) {
        row.apply_to(&mut self.counts.transient_errors);
    }

    /// Refuses a requested end. `why` is the reason if no agent can change it; the flag says
    /// whether it is a change of tests.
    pub fn refuse_end(&mut self, why: Option<IncurableRefusal>, for_tests: bool) {
        self.end.incurable = why;
        self.end.test_refusals = if for_tests { self.end.test_refusals + 1 } else { 0 };
    }

    /// Remembers that the usage of the agent with this id is counted without a boundary.
    pub fn count_late(&mut self, agent: u64) {
        self.work.counted_late = Some(agent);
    }

    /// Notes that an agent did not report what it used.
    pub fn lose_usage(&mut self) {
        self.work.usage.lost = true;
    }
}

// What it remembers of its checks and their tests.
impl State {
    /// Remembers the tree at the end of the last iteration, or before the first.
    pub fn remember_tree(&mut self, seen: Option<TreeSeen>) {
        self.seen.tree = seen.as_ref().map(|seen| seen.identity.clone());
        self.seen.trees.remember_tree(self.counts.completed, seen);
    }

    /// Remembers a run of a check.
    pub fn remember_check(&mut self, run: String, memory: CheckMemory) {
        self.seen.checks.insert(run, memory);
    }

    /// Forgets the output of the checks before the first iteration.
    pub fn forget_output(&mut self) {
        self.seen.checks.values_mut().for_each(|memory| memory.tail.clear());
    }

    /// Forgets earlier failures of the checks, because those checks have been replaced.
    pub fn forget_failures(&mut self) {
        self.seen.checks.values_mut().for_each(CheckMemory::forget_failures);
        self.seen.checked_as_found = false;
    }

    /// Notes that the tree as the loop found it has nothing more to show.
    pub fn end_looks_at_the_start(&mut self) {
        self.seen.checked_as_found = true;
    }

    /// Notes that the checks before the first iteration ran on an agent's work.
    pub fn note_work_before_the_first(&mut self) {
        self.seen.checked_after_work = true;
    }

    /// Records why the tree that the loop found is unknown; `None` if it is known.
    pub fn note_unrecorded(&mut self, why: Option<String>) {
        self.seen.unrecorded = why;
    }

    /// Replaces the tests and check configuration that count as the original ones.
    pub fn replace_baseline(&mut self, baseline: Option<Baseline>) {
        self.seen.baseline = baseline;
    }
}

// The messages to the agent, and its questions.
impl State {
    /// Adds messages for the next prompt.
    pub fn add_messages(&mut self, messages: impl IntoIterator<Item = String>) {
        self.exchange.messages.extend(messages);
    }

    /// The oldest `count` messages are in the prompt of the iteration that begins.
    pub fn mark_in_prompt(&mut self, count: usize) {
        self.exchange.in_prompt = count.min(self.exchange.messages.len());
    }

    /// Takes the messages that no agent got; all of them if none was started.
    pub fn take_messages(&mut self, was_started: bool) -> Vec<String> {
        let messages = std::mem::take(&mut self.exchange.messages);
        let in_prompt = std::mem::take(&mut self.exchange.in_prompt);
        if was_started {
            return messages.into_iter().skip(in_prompt).collect();
        }
        let last = self.seen.evidence.take().map(|last| last.words);
        last.into_iter().flatten().chain(messages).collect()
    }

    /// Puts the messages that were sent during a wait into the prompt that ends it.
    pub fn put_messages_in_prompt(&mut self) {
        match &mut self.seen.evidence {
            Some(evidence) if self.exchange.messages.len() > self.exchange.in_prompt => {
                let in_prompt = std::mem::take(&mut self.exchange.in_prompt);
                evidence.words = std::mem::take(&mut self.exchange.messages).split_off(in_prompt);
            }
            Some(_) => {}
            None => self.exchange.in_prompt = self.exchange.messages.len(),
        }
    }

    /// Takes back the messages of a prompt that was not delivered.
    pub fn take_back_prompt(&mut self) {
        self.exchange.in_prompt = 0;
        let words = self.seen.evidence.as_mut().map(|last| std::mem::take(&mut last.words));
        self.exchange.messages.splice(0..0, words.unwrap_or_default());
    }

    /// Adds questions that the agent had to decide itself; the oldest make room.
    pub fn add_questions(&mut self, questions: impl IntoIterator<Item = Question>) {
        self.exchange.asked.extend(questions);
        self.exchange.asked.drain(..self.exchange.asked.len().saturating_sub(ASKED_MAX));
    }
}

// Who works, and what belongs to one driver alone.
impl State {
    /// Gives the work to a fallback, or back to the first agent.
    pub fn hand_to_agent(&mut self, next: Option<FallbackAgent>) {
        let before =
            self.work.agents.active_fallback.as_ref().map(|active_fallback| &active_fallback.agent);
        if before != next.as_ref().map(|active_fallback| &active_fallback.agent) {
            // Those were another service's.
            self.counts.transient_errors = 0;
        }
        self.work.agents.active_fallback = next;
    }

    /// Takes a fallback off the loop.
    pub fn lose_agent(&mut self, name: String) {
        self.work.agents.out.push(name);
    }

    /// The usage so far, and which agent's it is.
    pub(super) fn use_mut(&mut self) -> (&mut Usage, &mut AgentMemory) {
        (&mut self.work.usage, &mut self.work.agents)
    }

    /// The memory of its git steps, to be changed.
    pub fn git_mut(&mut self) -> &mut GitMemory {
        &mut self.git
    }

    /// The memory of its session, to be changed between two boundaries.
    pub fn session_mut(&mut self) -> &mut SessionMemory {
        &mut self.session
    }
}
