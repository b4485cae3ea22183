//! A run in memory: twins of its ports, and the stage on which a test drives it. Time passes only
//! while an agent works or the run sleeps, so a wait of an hour takes no time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use super::{Actors, Driver};
use crate::drive::boundary::{Boundary, Concluded, DriverNotes, Open, conclude_iteration};
use crate::drive::find::own_process;
use crate::drive::prompt::Prompt;
use crate::drive::run::ledger::Ledger;
use crate::drive::run::ledger::{AgentRunner, KnownGate, PreparedAgent, Workspace};
use crate::drive::run::ports::RecordChange;
use crate::drive::run::ports::{
    Checks, Clock, IterationGate, IterationRun, JudgedBoundary, LoopStore, Tell,
};
use crate::drive::windows::{LoopTurn, account_of, account_with};
use engine::boundary::decide::reconcile_records;
use engine::boundary::facts::{
    AgentFacts, AgentOutcome, ApiError, ControlRequest, Facts, ProcessEnd,
};
use engine::boundary::wants::wanted_checks;
use engine::boundary::window::{MetLimit, RateWindow, was_answered};
use engine::claim::Claim;
use engine::evidence::Verdict;
use engine::evidence::said::PromptSize;
use engine::fixture::{SetState, a_page, a_run, at, result};
use engine::journal::story::Story;
use engine::record::{
    AccountId, Actor, Agent, Ending, Loop, LoopId, LoopMoment, Moment, Outcome, Place, Reaction,
    Run,
};
use engine::usage::Usage;
use engine::view::Page;
use engine::view::events::{EventSink, RunEvent};
use engine::words::programs::ReactionEnd;
use readers::agents::Launch;
use world::process::Stop;
use world::process::signals::Signals;
use world::store::{Home, StoreError};

/// The seconds that an agent works unless a step says otherwise.
const WORKS_S: u64 = 60;

/// An action, and the time in milliseconds at which it is run.
type Plan = (u64, Box<dyn Fn()>);

/// A clock that jumps over every sleep, and runs the actions that are planned for the skipped time.
#[derive(Default)]
pub struct JumpingClock {
    ms: Cell<u64>,
    plans: RefCell<Vec<Plan>>,
}

impl JumpingClock {
    fn pass(&self, ms: u64) {
        self.ms.set(self.ms.get() + ms);
        let now = self.ms.get();
        let due: Vec<_> = self.plans.borrow_mut().extract_if(.., |plan| plan.0 <= now).collect();
        for (_, act) in due {
            act();
        }
    }

    fn seconds(&self) -> u64 {
        self.ms.get() / 1000
    }
}

impl Clock for JumpingClock {
    fn now(&self) -> Moment {
        let (start, ms) = (at(0), self.ms.get());
        let passed = TimeDelta::milliseconds(ms.cast_signed());
        Moment { wall: start.wall + passed, awake_ms: start.awake_ms + ms }
    }

    fn local_time(&self) -> DateTime<FixedOffset> {
        self.now().wall.fixed_offset()
    }

    fn sleep(&self, step: Duration) {
        self.pass(u64::try_from(step.as_millis()).unwrap().max(1));
    }

    fn after_a_crash(&self, due: DateTime<Utc>) -> DateTime<Utc> {
        due
    }

    fn enter_was_pressed(&self) -> bool {
        false
    }
}

/// A record in memory, whose next writes fail if a test says so.
pub struct MemoryLoopStore {
    clock: Rc<JumpingClock>,
    pub record: RefCell<Loop>,
    pub request: RefCell<Option<ControlRequest>>,
    pub windows: RefCell<Vec<RateWindow>>,
    /// Whether the windows can be written.
    pub shares_windows: Cell<bool>,
    /// How many of the next writes fail.
    pub fails: Cell<u32>,
}

impl MemoryLoopStore {
    fn try_write(&self) -> Result<()> {
        if self.fails.get() == 0 {
            return Ok(());
        }
        self.fails.set(self.fails.get() - 1);
        Err(anyhow!("the disk is full"))
    }

    pub fn cancel(&self) {
        *self.request.borrow_mut() = Some(ControlRequest::Cancel { by: Actor::User, reason: None });
    }

    /// Opens the window of this account, as the answer to another loop does.
    pub fn open_window(&self, name: &str) {
        let now = self.clock.now().wall;
        for window in self.windows.borrow_mut().iter_mut() {
            if window.account.name == name {
                *window = window.clone().when_opened(&LoopId::from_random(9), now);
            }
        }
    }

    fn learn(&self, before: &Loop, seen: &AgentFacts, next: &mut Loop) {
        let (account, now) = (account_of(before), self.clock.now().wall);
        let mut windows = self.windows.borrow_mut();
        let known = windows.iter().position(|window| window.account == account);
        if let Some(limit) = MetLimit::from_boundary(before, seen, next) {
            if self.shares_windows.get() {
                let known = known.map(|place| windows.remove(place));
                windows.push(RateWindow::after_limit(known, account.clone(), limit, now));
            }
            if next.state.wait().due().is_some() {
                next.state.name_window(Some(account));
            }
        } else if let Some(place) = known
            && was_answered(&seen.agent)
            && windows[place].is_disproved_by(before.state.time().began().wall, now)
        {
            let window = windows.remove(place);
            windows.push(window.when_opened(&before.id, now));
        }
    }
}

impl LoopStore for MemoryLoopStore {
    fn load(&self, _: &LoopId) -> Result<Loop, StoreError> {
        Ok(self.record.borrow().clone())
    }

    fn write(&self, _: &LoopId, change: &RecordChange<'_>) -> Result<()> {
        self.try_write()?;
        let mut record = self.record.borrow_mut();
        if change.suits(&record) {
            change.apply(self.clock.now(), &mut record);
        }
        Ok(())
    }

    fn recover(&self, known: &Loop, memory: &Loop) -> Result<Loop> {
        self.try_write()?;
        let merged = reconcile_records(known, memory, &self.record.borrow());
        *self.record.borrow_mut() = merged.clone();
        Ok(merged)
    }

    fn read_request(&self, _: &LoopId) -> Option<ControlRequest> {
        self.request.borrow().clone()
    }

    fn breaks_off(&self, _: &LoopId) -> bool {
        matches!(*self.request.borrow(), Some(ControlRequest::Cancel { .. }))
    }

    fn open_boundary(&self, behind: Option<&Loop>, record: &Loop) -> Result<Option<Open>> {
        let before = match behind {
            Some(known) => self.recover(known, record)?,
            None => self.record.borrow().clone(),
        };
        Ok(if before.is_live() { Some(self.open_in_memory(&before)) } else { None })
    }

    fn open_in_memory(&self, record: &Loop) -> Open {
        Open::for_record(&Home::at(Path::new("/nowhere")), record.clone(), None)
    }

    fn judge(&self, open: Open, mut facts: Facts, notes: DriverNotes) -> Option<JudgedBoundary> {
        facts.seen.request = self.request.borrow().clone();
        let Concluded { decision, mut next, .. } = conclude_iteration(&open.before, &facts, notes);
        self.learn(&open.before, &facts.seen, &mut next);
        let failure: Option<Error> = self.try_write().err();
        if failure.is_none() {
            *self.record.borrow_mut() = next.clone();
        }
        let boundary = Boundary { after: next, decision, note: None, proves_later: false };
        Some((boundary, failure))
    }

    fn read_window(&self, account: &AccountId) -> Option<RateWindow> {
        self.windows.borrow().iter().find(|window| window.account == *account).cloned()
    }

    fn take_turn(&self, account: &AccountId, by: &LoopId) -> Option<LoopTurn> {
        let mut windows = self.windows.borrow_mut();
        let window = windows.iter_mut().find(|window| window.account == *account)?;
        let at = window.take_turn(by, self.clock.now().wall)?;
        Some(LoopTurn { account: account.clone(), at, why: window.wait_reason() })
    }

    fn window_has_moved(&self, record: &Loop) -> bool {
        let (Some(due), Some(own)) = (record.state.wait().due(), record.state.wait().window())
        else {
            return false;
        };
        let agents = record.able_agents().map(|agent| account_with(record, Some(agent)));
        let mut accounts = [own.clone()].into_iter().chain(agents);
        accounts.any(|account| {
            self.read_window(&account).is_some_and(|window| window.has_moved(&record.id, due))
        })
    }

    fn show_step(&self, _: &Loop, _: &RunEvent<'_>) {}

    fn show_record(&self, _: &Loop) {}

    fn add_note(&self, _: &LoopId, _: &str) {}

    fn hand_on(&self, _: &Loop, kind: &str) -> Option<PathBuf> {
        Some(kind.into())
    }

    fn read_page(&self, record: &Loop) -> Page {
        a_page(record, &Story::with_pick(None))
    }

    fn wind_up(&self, _: &Loop) {}

    fn count_late(&self, _: &LoopId, _: &Usage) -> Result<()> {
        Ok(())
    }

    fn end_reaction(&self, _: &LoopId) {
        self.record.borrow_mut().state.git_mut().pending.reaction = false;
    }
}

/// A working tree that always exists, and of which nothing is committed.
pub struct MemoryWorkspace;

impl Workspace for MemoryWorkspace {
    fn missing_reason(&self, _: &Place) -> Option<String> {
        None
    }

    fn lost_ending(&self, _: &Loop) -> Option<Ending> {
        None
    }

    fn follow_person(&self, _: &mut Ledger<'_>) {}

    fn close(&self, _: &Loop) {}

    fn is_closed(&self, _: &Loop) -> bool {
        true
    }

    fn keep_work(&mut self, _: &mut Ledger<'_>, _: bool, _: bool) {}

    fn rebase(&self, _: &mut Ledger<'_>, _: &str, _: KnownGate<'_>) -> bool {
        true
    }
}

/// Checks that pass, and user commands that end as a test requires.
pub struct ScriptedChecks {
    clock: Rc<JumpingClock>,
    work: Rc<Cell<u32>>,
    /// The user commands that fail.
    pub failing: RefCell<Vec<String>>,
    /// The commands that ran.
    pub reacted: RefCell<Vec<String>>,
}

impl Checks for ScriptedChecks {
    fn look(&self, open: &Open, seen: AgentFacts, usage: Option<Usage>) -> Facts {
        let looks = seen.needed_looks(&open.before.contract);
        let name = format!("tree {}", self.work.get());
        let tree = if looks.tree() { Some(name.as_str().into()) } else { None };
        let now = self.clock.now();
        Facts { seen, now, tree_checked: tree.clone(), tree, usage, ..Facts::default() }
    }

    fn run(&self, open: &Open, mut facts: Facts, _: Stop<'_>, tell: Tell<'_>) -> Option<Facts> {
        for check in wanted_checks(&open.before, &facts) {
            tell(&RunEvent::CheckStarted(&check.run));
            facts.checks.push(result(&check.run, Verdict::Passed));
        }
        Some(facts)
    }

    fn react(&self, of: &Loop, on: LoopMoment, _: Tell<'_>, _: Stop<'_>) -> Vec<ReactionEnd> {
        let reactions = of.contract.run.iter().flat_map(|run| &run.reactions);
        let mut ends = Vec::new();
        for Reaction { run, .. } in reactions.filter(|reaction| reaction.on == on) {
            let has_failed = self.failing.borrow().contains(run);
            let verdict = if has_failed { Verdict::Failed } else { Verdict::Passed };
            self.reacted.borrow_mut().push(format!("{run} {}", of.state.counts().completed()));
            let (exit, tail) = (Some(i32::from(has_failed)), String::new());
            ends.push(ReactionEnd { on, run: run.clone(), verdict, exit, elapsed_ms: 0, tail });
        }
        ends
    }
}

/// The behaviour of an agent in one call.
#[derive(Clone)]
pub struct AgentStep {
    pub facts: AgentFacts,
    /// The seconds for which it works.
    pub works_s: u64,
    changes: bool,
    /// The seconds until the limit that it reaches ends.
    limit_s: Option<i64>,
}

impl AgentStep {
    fn new(process: ProcessEnd, changes: bool) -> Self {
        let agent = AgentOutcome { process: Some(process), ..AgentOutcome::default() };
        let facts = AgentFacts { agent, ..AgentFacts::default() };
        Self { facts, works_s: WORKS_S, changes, limit_s: None }
    }

    fn with_error(error: ApiError) -> Self {
        let mut step = Self::new(ProcessEnd::Exit(1), false);
        step.facts.agent.error = Some(error);
        step
    }

    pub fn taking(self, works_s: u64) -> Self {
        Self { works_s, ..self }
    }
}

/// A step that changes a file and claims nothing.
pub fn work() -> AgentStep {
    AgentStep::new(ProcessEnd::Exit(0), true)
}

/// A step that claims success.
pub fn claim() -> AgentStep {
    let mut step = AgentStep::new(ProcessEnd::Exit(0), false);
    step.facts.claim = Claim::Success;
    step
}

/// A step that ends in this way.
pub fn ends(process: ProcessEnd) -> AgentStep {
    AgentStep::new(process, false)
}

/// A step that reaches a limit which ends this many seconds later.
pub fn limited(seconds: i64) -> AgentStep {
    AgentStep { limit_s: Some(seconds), ..AgentStep::new(ProcessEnd::Exit(1), false) }
}

/// A step that meets an outage of the service.
pub fn outage() -> AgentStep {
    let message = "the service is away".to_owned();
    AgentStep::with_error(ApiError::Transient { message, reset: None, is_limit: false })
}

/// A step that meets an error that only the user can fix.
pub fn locked_out() -> AgentStep {
    let (cause, hint) = ("unauthorized".to_owned(), "log in again".to_owned());
    AgentStep::with_error(ApiError::Fatal { cause, hint })
}

/// Agents that take the steps of a test, one for each call; the last one repeats.
pub struct ScriptedAgents {
    clock: Rc<JumpingClock>,
    work: Rc<Cell<u32>>,
    steps: RefCell<BTreeMap<String, Vec<AgentStep>>>,
    /// The called agents, each with the time and the page.
    pub calls: RefCell<Vec<(String, u64)>>,
    pub pages: RefCell<Vec<Option<String>>>,
}

impl AgentRunner for ScriptedAgents {
    fn prepare(&self, record: &Loop, _: &Run, handoff: Option<&Path>) -> PreparedAgent {
        self.pages.borrow_mut().push(handoff.map(|page| page.display().to_string()));
        let (text, input) = (format!("This is iteration {}.", record.iteration()), String::new());
        let (program, arguments) = ("agent".to_owned(), Vec::new());
        let launch = Launch { program, arguments, variables: BTreeMap::new(), input };
        Ok((Prompt { text, size: PromptSize { tokens: 1, budget: 0 } }, launch))
    }

    fn run(&self, _: &Ledger<'_>, run: &Run, _: (&str, &Launch)) -> IterationRun {
        let name = run.agent.name.clone();
        self.calls.borrow_mut().push((name.clone(), self.clock.seconds()));
        let mut steps = self.steps.borrow_mut();
        let steps = steps.get_mut(&name).unwrap_or_else(|| panic!("{name} was called"));
        let mut step = if steps.len() > 1 { steps.remove(0) } else { steps[0].clone() };
        self.clock.pass(step.works_s * 1000);
        step.facts.agent.ran_ms = Some(step.works_s * 1000);
        if let Some(seconds) = step.limit_s {
            let reset = Some(self.clock.now().wall + TimeDelta::seconds(seconds));
            let message = "usage limit reached".to_owned();
            let error = ApiError::Transient { message, reset, is_limit: true };
            step.facts.agent.error = Some(error);
        }
        self.work.set(self.work.get() + u32::from(step.changes));
        IterationRun { seen: step.facts, usage: None }
    }
}

/// Records the time and the kind of each event that a test may ask for.
struct Lines {
    clock: Rc<JumpingClock>,
    lines: Vec<String>,
}

impl EventSink for Lines {
    fn on_event(&mut self, event: &RunEvent<'_>) {
        let seconds = |time: DateTime<Utc>| (time - at(0).wall).num_seconds();
        let line = match event {
            RunEvent::Noted(what) => format!("note: {what}"),
            RunEvent::Skipped { why, .. } => format!("skipped: {why}"),
            RunEvent::IterationStarted(record) => format!("iteration {}", record.iteration()),
            RunEvent::Delayed { until, .. } => format!("delay until {}", seconds(*until)),
            RunEvent::Waiting(record) => {
                let state = &record.state;
                let (until, why) =
                    (state.wait().due().map_or(0, seconds), state.wait().wait_reason().as_deref());
                format!("wait until {until}: {}", why.unwrap_or_default())
            }
            RunEvent::ReactionFailed { why, is_reported: false, .. } => format!("failed: {why}"),
            RunEvent::Unsaved { why } => format!("unsaved: {why}"),
            RunEvent::Paused(_) => "paused".to_owned(),
            RunEvent::Finished { saved, .. } => {
                format!("finished{}", if *saved { "" } else { ", unsaved" })
            }
            _ => return,
        };
        self.lines.push(format!("{} {line}", self.clock.seconds()));
    }
}

/// A run in memory, with everything that a test sets up.
pub struct Stage {
    pub clock: Rc<JumpingClock>,
    pub store: Rc<MemoryLoopStore>,
    pub checks: ScriptedChecks,
    pub agents: ScriptedAgents,
}

/// The observations of a run that returned.
pub struct Ran {
    pub record: Loop,
    pub lines: Vec<String>,
    /// The called agents, each with the second of the call.
    pub calls: Vec<(String, u64)>,
}

impl Stage {
    /// A loop of the agent `claude`, which takes these steps.
    pub fn new(steps: &[AgentStep]) -> Self {
        let clock = Rc::new(JumpingClock::default());
        let mut record = a_run(None);
        record.state.set("owner", own_process().unwrap());
        record.state.set("tree", "tree 0");
        let store = MemoryLoopStore {
            clock: Rc::clone(&clock),
            record: RefCell::new(record),
            request: RefCell::default(),
            windows: RefCell::default(),
            shares_windows: Cell::new(true),
            fails: Cell::default(),
        };
        let work: Rc<Cell<u32>> = Rc::default();
        let checks = ScriptedChecks {
            clock: Rc::clone(&clock),
            work: Rc::clone(&work),
            failing: RefCell::default(),
            reacted: RefCell::default(),
        };
        let agents = ScriptedAgents {
            clock: Rc::clone(&clock),
            work: Rc::clone(&work),
            steps: RefCell::new([("claude".to_owned(), steps.to_vec())].into()),
            calls: RefCell::default(),
            pages: RefCell::default(),
        };
        Self { clock, store: Rc::new(store), checks, agents }
    }

    /// A loop with a fallback named `second`.
    pub fn with_fallback(first: &[AgentStep], second: &[AgentStep]) -> Self {
        let stage = Self::new(first);
        stage.set_terms(|run| {
            run.fallback = vec![Agent { name: "second".to_owned(), ..run.agent.clone() }];
            run.agent.command = vec!["claude".to_owned()];
            run.fallback[0].command = vec!["second".to_owned()];
        });
        stage.agents.steps.borrow_mut().insert("second".to_owned(), second.to_vec());
        stage
    }

    pub fn set_terms(&self, set: impl Fn(&mut Run)) {
        set(self.store.record.borrow_mut().contract.run.as_mut().unwrap());
    }

    pub fn set_record(&self, set: impl Fn(&mut Loop)) {
        set(&mut self.store.record.borrow_mut());
    }

    /// Sets user commands for moments of the loop.
    pub fn react(&self, reactions: &[(LoopMoment, &str)]) {
        self.set_terms(|run| {
            run.reactions.extend(reactions.iter().map(|(on, run)| Reaction {
                on: *on,
                run: (*run).to_owned(),
                timeout_s: 60,
            }));
        });
    }

    /// Plans an action for this many seconds after the start.
    pub fn plan(&self, seconds: u64, act: impl Fn(&MemoryLoopStore) + 'static) {
        let store = Rc::clone(&self.store);
        self.clock.plans.borrow_mut().push((seconds * 1000, Box::new(move || act(&store))));
    }

    pub fn clock_seconds(&self) -> u64 {
        self.clock.seconds()
    }

    /// Drives the loop until it ends or is paused.
    pub fn run(&self) -> Ran {
        self.run_at(None)
    }

    pub fn run_at(&self, gate: Option<Box<dyn IterationGate + '_>>) -> Ran {
        let mut lines = Lines { clock: Rc::clone(&self.clock), lines: Vec::new() };
        let signals = Signals::default();
        let record = self.store.record.borrow().clone();
        let memory = {
            let sink = RefCell::new(&mut lines as &mut dyn EventSink);
            let ports = (&*self.clock as &dyn Clock, &*self.store as &dyn LoopStore);
            let ledger = Ledger::new(ports, record, &signals, &sink);
            let mut workspace = MemoryWorkspace;
            let workspace = &mut workspace;
            let actors = Actors { checks: &self.checks, agents: &self.agents, workspace, gate };
            let mut driver = Driver::new(ledger, actors, None);
            driver.run_iterations().unwrap();
            driver.ledger.record.clone()
        };
        Ran { record: memory, lines: lines.lines, calls: self.agents.calls.borrow().clone() }
    }
}

impl Ran {
    /// The outcome, the reason, and the number of counted iterations.
    pub fn end(&self) -> (Option<Outcome>, String, u32) {
        let ending = self.record.state.end().ending().as_ref();
        let why = ending.map(|ending| ending.reason.to_string()).unwrap_or_default();
        (self.record.outcome(), why, self.record.state.counts().completed())
    }

    /// The lines that contain this text.
    pub fn lines_with(&self, what: &str) -> Vec<&str> {
        self.lines.iter().map(String::as_str).filter(|line| line.contains(what)).collect()
    }

    /// The names of the called agents, in order.
    pub fn agents(&self) -> Vec<&str> {
        self.calls.iter().map(|(name, _)| name.as_str()).collect()
    }
}
