//! A fleet's record, its tasks and reports for tests: the simplest of each, defined in one place.
//! Not compiled into the program.

use super::record::{
    FleetRecord, FleetTerms, Holder, LOCAL, TaskEnding, TaskReason, TaskRecord, TaskState,
    TaskText, TaskWork,
};
use super::spec::{AttemptEnd, AttemptPhase, AttemptReport, Coordination, DescribedTask};
use super::step::{Effect, FleetEvent, step_fleet};
use engine::fixture::{a_run, at};
use engine::fleet::{Carried, FleetTask, LandingMode, TaskId};
use engine::record::{LoopId, Outcome, Proof};
use engine::usage::{Money, Usage};

/// The end of a loop of which only the text matters.
impl From<&str> for TaskReason {
    fn from(why: &str) -> Self {
        Self::Loop { reason: why.into(), notes: Vec::new() }
    }
}

/// A name.
pub fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// The full name of a commit that ends in this number.
pub fn a_commit(number: u32) -> String {
    format!("{number:040x}")
}

/// The terms of a local fleet without a limit on its money.
pub fn some_terms(landing: LandingMode) -> FleetTerms {
    FleetTerms {
        name: "shop".to_owned(),
        repository: "/repo".into(),
        folder: "tasks".to_owned(),
        base: "main".to_owned(),
        executor: LOCAL.to_owned(),
        landing,
        ..FleetTerms::default()
    }
}

/// A fleet that was started at second 0.
pub fn a_record(landing: LandingMode) -> FleetRecord {
    FleetRecord::begin_fleet(some_terms(landing), "f1".to_owned(), Holder::default(), at(0).wall)
}

/// A task as its file describes it, with ten iterations and without a limit on its cost.
pub fn a_described(name: &str) -> DescribedTask {
    let task = FleetTask {
        id: id(name),
        prompt: format!("Do {name}"),
        words: Vec::new(),
        after: Vec::new(),
        touches: Vec::new(),
        priority: 5,
        revision: "r1".to_owned(),
    };
    let mut contract = a_run(None).contract;
    contract.limits.max_iterations = 10;
    DescribedTask { task, contract }
}

/// A task without a running attempt.
pub fn a_task() -> TaskRecord {
    let agents = a_described("a").agent_names();
    TaskRecord {
        text: TaskText { agents, ..TaskRecord::new("r1", 10, at(0).wall).text },
        ..TaskRecord::new("r1", 10, at(0).wall)
    }
}

/// A task whose first attempt runs.
pub fn a_running_task() -> TaskRecord {
    let state = TaskState::Running { job: "7".to_owned(), since: at(0).wall };
    TaskRecord { state, attempt: 1, ..a_task() }
}

/// An ending; for completed work, with a proof.
pub fn an_ending(outcome: Outcome) -> TaskEnding {
    let proof = (outcome == Outcome::Completed).then_some(Proof::Checked);
    TaskEnding { proof, ..TaskEnding::new(outcome, "so") }
}

/// A task that ended after its first attempt.
pub fn an_ended_task(outcome: Outcome) -> TaskRecord {
    TaskRecord { state: TaskState::Ended(an_ending(outcome)), attempt: 1, ..a_task() }
}

/// The usage of this many iterations, each of which cost this many cents.
pub fn a_carried(completed: u32, cents: u64) -> Carried {
    let cost = Money::from_micros(u64::from(completed) * cents * 10_000);
    let usage = Usage { cost, ..Usage::default() };
    Carried { completed, usage, ..Carried::default() }
}

/// The report of an attempt whose loop works.
pub fn a_report(number: u32, completed: u32, end: Option<AttemptEnd>) -> AttemptReport {
    AttemptReport {
        number,
        host: "here".to_owned(),
        process: None,
        loop_id: Some(LoopId::from_random(u64::from(number))),
        phase: AttemptPhase::Running { slot: Some(0), since: at(0).wall },
        carried: a_carried(completed, 1),
        commit: None,
        stands_on: None,
        conflicts: Vec::new(),
        end,
        at: at(0).wall,
    }
}

/// A coordinator of these tasks that has read the folder, and knows the clones of all of them.
pub struct Bench {
    pub record: FleetRecord,
    pub coordination: Coordination,
    pub second: u32,
}

impl Bench {
    /// With four slots, and with every task of the record described.
    pub fn new(landing: LandingMode, tasks: Vec<(&str, TaskRecord)>) -> Self {
        let mut record = a_record(landing);
        let described = tasks.iter().map(|(name, _)| a_described(name)).collect();
        record.tasks = tasks.into_iter().map(|(name, task)| (id(name), task)).collect();
        let clones = record.tasks.keys().cloned().collect();
        let coordination = Coordination {
            described,
            clones,
            has_begun: true,
            slots: 4,
            ..Coordination::default()
        };
        Self { record, coordination, second: 0 }
    }

    /// Applies an event, a second later, and returns the effects that are decided then.
    pub fn step(&mut self, event: FleetEvent) -> Vec<Effect> {
        self.second += 1;
        let now = at(self.second).wall;
        let mut effects = match event {
            FleetEvent::Tick => Vec::new(),
            event => step_fleet(&mut self.record, &mut self.coordination, event, now),
        };
        effects.extend(step_fleet(&mut self.record, &mut self.coordination, FleetEvent::Tick, now));
        // One write goes before all of it.
        if effects.contains(&Effect::Save) {
            effects.retain(|effect| *effect != Effect::Save);
            effects.insert(0, Effect::Save);
        }
        effects
    }

    /// The task of that name.
    pub fn task(&self, name: &str) -> &TaskRecord {
        &self.record.tasks[&id(name)]
    }
}

/// A task with the newest commit that its attempt has reported.
pub fn with_tip(task: TaskRecord, tip: Option<String>) -> TaskRecord {
    TaskRecord { work: TaskWork { tip, ..task.work }, ..task }
}

/// A task with the newest commits that its attempt has reported, and that were fetched.
pub fn with_commits(task: TaskRecord, [tip, commit]: [Option<String>; 2]) -> TaskRecord {
    TaskRecord { work: TaskWork { commit, tip, ..task.work }, ..task }
}
