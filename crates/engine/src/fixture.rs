//! A loop and its facts for the tests of the rules: the simplest of each, defined in one place. Not
//! compiled into the program.

#![expect(clippy::unwrap_used, reason = "only tests call this")]

use chrono::{DateTime, TimeDelta};
use serde::Serialize;

use super::boundary::facts::{AgentFacts, AgentOutcome, Facts};
use super::claim::Claim;
use super::claim::promise::Promise;
use super::evidence::changes::Commits;
use super::evidence::{CheckResult, Verdict};
use super::fleet::TaskId;
use super::journal::story::Story;
use super::record::{
    Agent, Check, Contract, Driver, EndReason, IterationTimes, Limits, Loop, LoopId, Moment, Owner,
    Permissions, Place, ProcessIdentity, QuestionMode, Role, Run, State, TaskOfFleet, VERSION,
};
use super::test_changes::TestChanges;
use super::usage::Earlier;
use super::view::{ChangesFrom, LoopView, Page, PageInputs};
use crate::evidence::test_run::TestMemories;
use crate::test_changes::{ProofTerms, Prove};

/// An `EndReason` of which only the text matters.
impl From<&str> for EndReason {
    fn from(why: &str) -> Self {
        Self::External { cause: why.to_owned(), hint: String::new() }
    }
}

/// The instant `seconds` after the loop's start, all of them awake.
pub fn at(seconds: u32) -> Moment {
    let start = DateTime::from_timestamp(1_795_000_000, 0).unwrap();
    Moment {
        wall: start + TimeDelta::seconds(i64::from(seconds)),
        awake_ms: 1_000_000 + u64::from(seconds) * 1000,
    }
}

/// The id of a task.
pub fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// A task of the fleet `billing-cleanup`.
pub fn a_task(name: &str) -> TaskOfFleet {
    TaskOfFleet { name: "billing-cleanup".to_owned(), task: id(name) }
}

/// The limits of a loop without settings.
pub const USUAL_LIMITS: Limits = Limits {
    max_iterations: 10,
    failure_threshold: 3,
    stall: 5,
    max_duration_s: 12 * 3600,
    max_wait_s: 12 * 3600,
    max_cost_micros: 0,
    max_tokens: 0,
};

/// A session loop in its first iteration: 10 iterations, promise COMPLETE, no checks.
pub fn a_loop() -> Loop {
    let owner = Owner {
        driver: Driver::Session,
        session_id: Some("s-1".to_owned()),
        client: None,
        process: ProcessIdentity { pid: 42, started: "1".to_owned() },
        search_path: None,
        host: None,
    };
    let mut state = State::begin_first(owner, at(0));
    state.set("tree", "tree at the start");
    Loop {
        version: VERSION,
        id: LoopId::from_random(7),
        made_by: "0.1.0".to_owned(),
        started_at: at(0).wall,
        contract: Contract {
            task: "Build the todo API".to_owned(),
            promise: Some(Promise::default()),
            checks: Vec::new(),
            limits: USUAL_LIMITS,
            protect: Vec::new(),
            require: None,
            test_changes: TestChanges::default(),
            questions: QuestionMode::default(),
            silent: false,
            trial: ProofTerms {
                prove: Prove::default(),
                timeout_s: 900,
                setup: None,
                tests: Vec::new(),
                may_change: Vec::new(),
            },
            run: None,
        },
        place: Place {
            checkout: "/repo".into(),
            folder: "/repo".into(),
            branch: Some("main".to_owned()),
            branches: ".claude/branches",
            branch_dir: "main".to_owned(),
            repository: None,
            head: None,
            apart: None,
            is_clone: false,
        },
        elapsed_ms: Vec::new(),
        earlier: Earlier::default(),
        trusted: None,
        environment: None,
        protected: None,
        fleet: None,
        state,
    }
}

/// Sets fields of a state directly, without the history that leads to them.
pub trait SetState {
    /// Sets what the record on disk calls `path`: "usage.tokens.input".
    fn set(&mut self, path: &str, value: impl Serialize);
}

impl SetState for State {
    fn set(&mut self, path: &str, value: impl Serialize) {
        let mut state = serde_json::to_value(&*self).unwrap();
        let pointer = format!("/{}", path.replace('.', "/"));
        let place = state.pointer_mut(&pointer).unwrap_or_else(|| panic!("no {path} in {self:?}"));
        *place = serde_json::to_value(value).unwrap();
        *self = serde_json::from_value(state).unwrap();
    }
}

/// `a_loop` with the given checks.
pub fn a_loop_with(checks: &[(&str, Role)]) -> Loop {
    let mut subject = a_loop();
    subject.contract.checks = checks.iter().map(|(run, role)| Check::new(*run, *role)).collect();
    subject
}

/// `a_loop` in fresh processes, with a procedure or with its task alone.
pub fn a_run(procedure: Option<&str>) -> Loop {
    let mut subject = a_loop();
    subject.state.set("owner.driver", Driver::Process);
    subject.state.set("owner.session_id", None::<String>);
    subject.contract.run = Some(Run {
        procedure: procedure.map(str::to_owned),
        agent: Agent {
            name: "claude".to_owned(),
            permissions: [(Permissions::AcceptEdits, Vec::new())].into(),
            ..Agent::default()
        },
        pace: IterationTimes { timeout_s: 3600, idle_timeout_s: 900, delay_s: 0 },
        ..Run::default()
    });
    subject
}

/// The end of an uneventful iteration that took a minute and changed the tree.
pub fn facts(claim: Claim) -> Facts {
    Facts {
        seen: AgentFacts { request: None, claim, agent: AgentOutcome::default(), jitter: 0 },
        now: at(60),
        checks: Vec::new(),
        tests_before: TestMemories::new(),
        tree: Some("another tree".into()),
        tree_checked: Some("another tree".into()),
        changes: None,
        unchanged: None,
        protected: None,
        test_changes: None,
        baseline: None,
        without_work: None,
        proves_later: false,
        usage: None,
    }
}

/// The page of a loop with this story, whose changes were not examined.
pub fn a_page(record: &Loop, story: &Story) -> Page {
    Page::from_inputs(&PageInputs {
        view: LoopView::from_record(record, at(3600).wall.fixed_offset()),
        story,
        changes: None,
        changes_from: ChangesFrom::Git,
        commits: &Commits::default(),
        tests: &TestMemories::new(),
        resume: &format!("crew resume {}", record.id),
        stop: &format!("crew pause {}", record.id),
    })
}

/// One check's result.
pub fn result(run: &str, verdict: Verdict) -> CheckResult {
    CheckResult {
        run: run.to_owned(),
        verdict,
        exit: match verdict {
            Verdict::Passed => Some(0),
            Verdict::Failed => Some(1),
            Verdict::TimedOut | Verdict::Unknown => None,
        },
        elapsed_ms: 1200,
        tail: format!("output of {run}"),
        ..CheckResult::default()
    }
}
