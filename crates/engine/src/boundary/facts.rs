//! Everything a boundary may consider. [`AgentFacts`] is the cheap part; [`Facts`] adds the costly
//! part. An absent value means *not checked*, never zero.

use chrono::{DateTime, Utc};
use derive_getters::Getters;

use crate::claim::Claim;
use crate::evidence::changes::Changes;
use crate::evidence::test_run::{TestMemories, newly_failing, ran_nothing, update_memories};
use crate::evidence::{CheckResult, Verdict};
use crate::record::{Actor, Contract, EndSignal, Loop, Moment, Role, TreeSeen};
use crate::test_changes::{BaselineResult, TestChangesFinding, WithoutWork};
use crate::text::join_first_names;
use crate::usage::Usage;

/// The maximum number of tests that a refusal names.
const WORSE_NAMED: usize = 5;

/// A request from outside the loop, kept in a separate file until it is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRequest {
    /// End the loop.
    Cancel { by: Actor, reason: Option<String> },
    /// Hold the loop after this iteration.
    Pause,
}

/// Why the model's service did not answer, grouped by the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiError {
    /// Rate limit, overload, 5xx, network, unknown: counts neither as an iteration nor as a
    /// failure. `is_limit` says that a limit of the account was met, which every loop of it shares.
    Transient { message: String, reset: Option<DateTime<Utc>>, is_limit: bool },
    /// Auth, billing, model, organisation: only a person can fix it.
    Fatal { cause: String, hint: String },
    /// Invalid, too long, truncated or refused: the iteration failed, and the next prompt says why.
    Request { message: String },
}

/// How the process of one iteration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    Exit(i32),
    /// By a signal crew did not send.
    Signal(i32),
    /// By crew, at the iteration's timeout of this many seconds.
    TimedOut(u64),
    /// By crew, because the loop's own time was used up.
    OutOfTime,
    /// By crew, after this many seconds without output while no tool call was open.
    Silent(u64),
    /// By crew, because it only waited for the model's service.
    Waited,
    /// By crew, because a person asked for it: how, or `None` where a request to the loop did.
    BrokenOff(Option<EndSignal>),
    /// Not started by the system, for this reason.
    NotStarted(String),
    /// Not started, because one of the user's reactions failed, for this reason.
    Skipped(String),
}

/// What an agent's closing event says about its iteration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AgentClosing {
    /// No failure beyond the way its process ended, or an agent without such an event.
    #[default]
    Plain,
    /// The agent reported a failure, in these words.
    Failed(String),
    /// The event never came, although the agent has one.
    Missing,
}

/// How the agent's iteration ended, as its client or its process reported it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentOutcome {
    /// `None` for an agent in a session: its process continues to run.
    pub process: Option<ProcessEnd>,
    /// What else failed around the iteration, such as a reaction of the user's.
    pub failed_around: Option<String>,
    pub error: Option<ApiError>,
    pub closing: AgentClosing,
    /// Tools that were denied.
    pub denied: Vec<String>,
    /// Work that the client still runs in the background and that is worth waiting for.
    pub background: Option<String>,
    /// When another agent of the run may work, if this one reached a limit of its account.
    pub fallback_at: Option<DateTime<Utc>>,
    /// Whether the token limit truncated the answer. Such an answer makes no claim, and its end is
    /// not a failure.
    pub cut: bool,
    /// The agent's own limit on turns ended it.
    pub out_of_turns: bool,
    /// The highest fill level of its context, in percent; `None` where the agent does not report
    /// it.
    pub context_percent: Option<u8>,
    /// The tokens of its fullest message; `None` where no message is reported.
    pub context_tokens: Option<u64>,
    /// Its last words on one line, for people; no decision depends on them.
    pub said: Option<String>,
    /// The last lines its process wrote to standard error, bounded.
    pub errors: String,
    /// How long it ran, in milliseconds; `None` if crew did not start it.
    pub ran_ms: Option<u64>,
    /// Milliseconds of the iteration in which crew itself was stopped and could not watch. They
    /// count neither for the iteration nor for the loop.
    pub missed_ms: u64,
}

impl AgentOutcome {
    /// Whether another agent may work by then in place of this one.
    pub fn has_fallback_by(&self, time: DateTime<Utc>) -> bool {
        self.fallback_at.is_some_and(|at| at <= time)
    }
}

/// The cheap part: enough to decide which checks and diffs are worth their cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentFacts {
    pub request: Option<ControlRequest>,
    /// The claim as read; [`AgentFacts::effective_claim`] returns the one that counts.
    pub claim: Claim,
    pub agent: AgentOutcome,
    /// A number from 0 to 999 that spreads the waits of many loops.
    pub jitter: u16,
}

impl AgentFacts {
    /// The claim that counts; a truncated answer makes none.
    pub fn effective_claim(&self) -> &Claim {
        if self.agent.cut { &Claim::None } else { &self.claim }
    }

    /// Whether a request breaks the iteration off: any cancel does, and a pause while the agent
    /// works. If the process has ended by itself, a pause only prevents the next iteration. A
    /// request that was lifted since has broken it off all the same.
    pub fn breaks_off(&self) -> bool {
        let process = &self.agent.process;
        let ended =
            !matches!(process, None | Some(ProcessEnd::BrokenOff(_) | ProcessEnd::Skipped(_)));
        match self.request {
            Some(ControlRequest::Cancel { .. }) => true,
            Some(ControlRequest::Pause) => !ended,
            None => matches!(process, Some(ProcessEnd::BrokenOff(None))),
        }
    }

    /// Whether an iteration ran. A transient or fatal API error, or background work without a
    /// claim, means that it did not.
    pub fn ran_an_iteration(&self) -> bool {
        let failed_to_run =
            matches!(self.agent.error, Some(ApiError::Transient { .. } | ApiError::Fatal { .. }));
        !failed_to_run && self.waits_for().is_none()
    }

    /// The background work a boundary waits for. A near miss is not a claim: "I will say it when
    /// the build is done" waits, too.
    pub fn waits_for(&self) -> Option<&str> {
        let work = self.agent.background.as_deref()?;
        matches!(self.effective_claim(), Claim::None | Claim::NearMiss(_)).then_some(work)
    }

    /// Whether it matters that the iteration changed something.
    pub fn judges_progress(&self, contract: &Contract) -> bool {
        let may_time_out = self.agent.process.is_some() && contract.bounds_an_iteration();
        contract.limits.stall > 0 || may_time_out || !self.agent.denied.is_empty()
    }

    /// Which facts are worth their cost, before any check has run. Snapshots also show what checks
    /// proved.
    pub fn needed_looks(&self, contract: &Contract) -> Looks {
        let tree = self.judges_progress(contract)
            || !contract.checks.is_empty()
            || !contract.protect.is_empty();
        if self.breaks_off() || !self.ran_an_iteration() {
            return Looks::default();
        }
        let process = &self.agent.process;
        let checks = !matches!(process, Some(ProcessEnd::BrokenOff(_) | ProcessEnd::Skipped(_)));
        Looks { tree, protected: checks && !contract.protect.is_empty(), checks }
    }
}

/// Which of the costly facts are to be gathered.
#[derive(Getters, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looks {
    /// Whether to examine the working tree.
    #[getter(copy)]
    tree: bool,
    /// Whether to examine the protected paths.
    #[getter(copy)]
    protected: bool,
    /// Whether to run checks; `wants` chooses which.
    #[getter(copy)]
    checks: bool,
}

/// Everything known about an iteration at its boundary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    pub seen: AgentFacts,
    /// When all facts were gathered: an iteration's time includes its checks.
    pub now: Moment,
    /// Check results in the order in which they ran; empty if no check ran.
    pub checks: Vec<CheckResult>,
    /// What is remembered of the checks' tests.
    pub tests_before: TestMemories,
    /// The working tree as the agent left it; `None` if it is unknown or was not checked.
    pub tree: Option<TreeSeen>,
    /// The working tree after the checks; files that checks write are not the agent's progress.
    pub tree_checked: Option<TreeSeen>,
    /// What the agent changed; `None` if it is unknown or was not checked.
    pub changes: Option<Changes>,
    /// Whether the tree is still the one that the loop found; `None` if it is unknown or was not
    /// checked.
    pub unchanged: Option<bool>,
    /// The protected paths that changed, or why they are unknown; `None` if they were not checked.
    pub protected: Option<Result<Vec<String>, String>>,
    /// The result of the run with the original tests; `None` if there was no such run.
    pub test_changes: Option<TestChangesFinding>,
    /// Whether a check fails on the tree as the loop found it; `None` if none was run there.
    pub baseline: Option<BaselineResult>,
    /// The result of the run without the work; `None` if there was none.
    pub without_work: Option<WithoutWork>,
    /// Whether what could raise the proof takes long and is run after the end.
    pub proves_later: bool,
    /// The usage since the last boundary; `None` where nothing reports it.
    pub usage: Option<Usage>,
}

impl Facts {
    /// The verdict of a command at this boundary; `None` if it did not run.
    pub fn verdict_of(&self, run: &str) -> Option<Verdict> {
        self.checks.iter().find(|result| result.run == run).map(|result| result.verdict)
    }

    /// Whether every check of a role passed at this boundary and ran something; true if the
    /// contract has none.
    pub fn all_pass(&self, contract: &Contract, role: Role) -> bool {
        contract.of_role(role).all(|check| {
            self.checks.iter().find(|result| result.run == check.run).is_some_and(|result| {
                result.verdict == Verdict::Passed && self.ran_nothing(result).is_none()
            })
        })
    }

    /// Why a check that passed has shown nothing: "`cargo test x` ran 0 tests (57 filtered out)".
    pub fn ran_nothing(&self, result: &CheckResult) -> Option<String> {
        let run = result.test_run.as_ref()?;
        // With `--no-worse`, or where another status is success, failing tests may be expected.
        let is_expected = run.has_failed() && result.exit != Some(0);
        if result.verdict != Verdict::Passed || is_expected {
            return None;
        }
        let ever_ran = self.tests_before.get(&result.run).is_some_and(|memory| memory.ever_ran);
        ran_nothing(run, ever_ran).map(|why| format!("`{}` {why}", result.run))
    }

    /// How a check that did not pass ended, with the tests that got worse where only those count.
    pub fn what_happened(&self, subject: &Loop, result: &CheckResult) -> String {
        let checks = &subject.contract.checks;
        let only_worse = checks.iter().any(|check| check.no_worse && check.run == result.run);
        let worse = if only_worse { newly_failing(&self.tests_before, result) } else { Vec::new() };
        let happened = result.what_happened();
        if worse.is_empty() {
            return happened;
        }
        format!(
            "{happened}, worse than before the loop in {}",
            join_first_names(&worse, WORSE_NAMED)
        )
    }

    /// Whether a command was seen to fail on the tree as the loop found it.
    pub fn fails_on_baseline(&self, run: &str) -> bool {
        matches!(&self.baseline, Some(BaselineResult::Failed(failing)) if failing == run)
    }

    /// What will be remembered of the tests; `None` if no check spoke of any.
    pub fn tests_after(&self) -> Option<TestMemories> {
        update_memories(&self.tests_before, &self.checks)
    }
}
