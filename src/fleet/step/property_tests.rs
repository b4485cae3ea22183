//! A coordinator with random events: what is true of its record and effects in every order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::fleet::fixture::{
    Bench, a_carried, a_commit, a_described, a_report, a_task, an_ending, id, some_terms,
};
use crate::fleet::record::{Holder, WaitsFor};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The cost of an iteration, in cents and in millionths of a dollar.
const CENTS: u64 = 10;
const ITERATION_MICROS: u64 = CENTS * 10_000;

/// A random event: its kind, and the index of its task.
type Happening = (u8, usize);

/// An attempt that runs.
#[derive(Debug, Clone)]
struct Process {
    number: u32,
    completed: u32,
    /// The maximum that it may cost.
    limit: u64,
}

/// The world around a step: processes, clones, what landed.
struct World {
    bench: Bench,
    processes: BTreeMap<TaskId, Process>,
    numbers: BTreeMap<TaskId, u32>,
    landed: BTreeSet<TaskId>,
    landing: Option<TaskId>,
    is_finished: bool,
}

impl World {
    fn new(landing: LandingMode, executor: &str, dollars: u64) -> Self {
        let mut bench = Bench::new(landing, NAMES.iter().map(|name| (*name, a_task())).collect());
        bench.record.terms.executor = executor.to_owned();
        bench.record.terms.limits.max_cost_micros = dollars * 1_000_000;
        bench.coordination.clones.clear();
        bench.coordination.slots = 2;
        bench.coordination.described[3].task.after = vec![id("a")];
        for described in &mut bench.coordination.described {
            // More than can happen: a task whose limit is used up is not tried again.
            described.contract.limits.max_iterations = 1000;
        }
        Self {
            bench,
            processes: BTreeMap::new(),
            numbers: BTreeMap::new(),
            landed: BTreeSet::new(),
            landing: None,
            is_finished: false,
        }
    }

    /// Takes a step, checks the invariants, and carries out the effects.
    fn step(&mut self, event: FleetEvent) {
        let before = self.bench.record.clone();
        let was_signalled =
            self.bench.coordination.stop.signals > 0 || matches!(event, FleetEvent::Signal { .. });
        let effects = self.bench.step(event);
        let record = &self.bench.record;
        assert!(effects.first() == Some(&Effect::Save) || *record == before, "a change is saved");
        let saves = effects.iter().filter(|effect| **effect == Effect::Save).count();
        for (id, task) in &record.tasks {
            assert!(task.attempt >= before.tasks.get(id).map_or(0, |task| task.attempt));
            let is_named = task.waits.is_some() || !self.bench.coordination.has_begun;
            assert!(task.state != TaskState::Waiting || is_named, "{id} waits");
            let was_completed = before.tasks.get(id).and_then(TaskRecord::ending);
            if was_completed.is_some_and(|ending| {
                ending.outcome == Outcome::Completed && ending.landed.is_some()
            }) {
                assert_eq!(task.ending(), was_completed, "{id} has landed");
            }
        }
        self.hold_the_money();
        let mut fetches = Vec::new();
        for effect in effects {
            match effect {
                Effect::Start { task, number, continues } => {
                    assert!(saves == 1 && !was_signalled, "{task} starts");
                    assert!(!before.tasks[&task].is_done(before.terms.landing));
                    let known = self.numbers.get(&task).copied().unwrap_or_default();
                    assert!(if continues { number == known } else { number > known });
                    self.numbers.insert(task.clone(), number);
                    let record = &self.bench.record.tasks[&task];
                    let (completed, limit) = (record.carried.completed, record.reserved_micros);
                    let process = Process { number, completed, limit };
                    let other = self.processes.insert(task.clone(), process);
                    assert!(other.is_none(), "{task} runs twice");
                }
                Effect::Land { task } | Effect::OpenPull { task } => {
                    assert!(saves == 1 && !was_signalled);
                    assert_eq!(self.landing.replace(task), None, "one at a time");
                }
                Effect::Fetch { task } => fetches.push(task),
                Effect::Remove { task } => {
                    assert!(self.landed.contains(&task), "only what has landed is removed");
                    assert!(!self.processes.contains_key(&task));
                }
                Effect::Finish => self.is_finished = true,
                Effect::Save | Effect::Pass { .. } | Effect::End { .. } | Effect::Say(_) => {}
            }
        }
        for task in fetches {
            let commit = self.bench.record.tasks[&task].work.tip.clone().unwrap();
            self.step(FleetEvent::Fetched { task, commit });
        }
    }

    /// Checks that the money spent and set aside exceeds the limit by at most one iteration of each
    /// task that ran at that time.
    fn hold_the_money(&self) {
        let max = self.bench.record.terms.limits.max_cost_micros;
        let tasks = self.bench.record.tasks.values();
        let gone: u64 = tasks.map(|task| task.reserved_micros.max(task.cost())).sum();
        let most = max + 2 * self.bench.coordination.slots as u64 * ITERATION_MICROS;
        assert!(max == 0 || gone <= most, "{gone} of {max}");
    }

    fn report(&mut self, task: &TaskId, is_iteration: bool, end: Option<AttemptEnd>) {
        let Some(mut process) = self.processes.get(task).cloned() else { return };
        process.completed += u32::from(is_iteration);
        let mut report = a_report(process.number, process.completed, end);
        report.carried = a_carried(process.completed, CENTS);
        report.commit = Some(a_commit(process.number * 1000 + process.completed));
        let cost = u64::from(process.completed) * ITERATION_MICROS;
        if process.limit > 0 && cost >= process.limit && report.end.is_none() {
            report.end = Some(AttemptEnd::Ended(an_ending(Outcome::Exhausted)));
        }
        if report.end.is_some() {
            self.processes.remove(task);
        } else {
            self.processes.insert(task.clone(), process);
        }
        self.step(FleetEvent::Reported(task.clone(), report));
    }

    /// Restarts a killed coordinator: the next one finds what is gone, and reads the folder.
    fn restart(&mut self) {
        let described = std::mem::take(&mut self.bench.coordination.described);
        let clones = std::mem::take(&mut self.bench.coordination.clones);
        self.bench.coordination = Coordination { clones, slots: 2, ..Coordination::default() };
        (self.landing, self.is_finished) = (None, false);
        let terms = self.bench.record.terms.clone();
        self.bench.record.take_up(terms, Holder::default());
        let running = self.bench.record.tasks.iter().filter(|(_, task)| task.is_running());
        let running: Vec<(TaskId, u32)> =
            running.map(|(id, task)| (id.clone(), task.attempt)).collect();
        for (task, number) in running {
            if !self.processes.contains_key(&task) {
                self.step(FleetEvent::Gone { task, number, why: String::new() });
            }
        }
        self.step(FleetEvent::Described(described));
    }

    fn land(&mut self, result: fn(TaskId) -> FleetEvent) {
        let Some(task) = self.landing.take() else { return };
        let event = result(task.clone());
        if matches!(event, FleetEvent::Landed(..)) {
            assert!(self.landed.insert(task), "nothing lands twice");
        }
        self.step(event);
    }

    fn happens(&mut self, (kind, task): Happening) {
        let task = id(NAMES[task % NAMES.len()]);
        let number = self.numbers.get(&task).copied().unwrap_or_default();
        let why = "why".to_owned();
        let request = |request| FleetEvent::Requested(Some(task.clone()), request);
        let ends = |outcome| Some(AttemptEnd::Ended(an_ending(outcome)));
        match kind {
            0..=5 => self.report(&task, true, None),
            6..=9 => self.report(&task, true, ends(Outcome::Completed)),
            10 => self.report(&task, true, ends(Outcome::Stalled)),
            11 => self.report(&task, false, Some(AttemptEnd::Paused)),
            12 => self.report(&task, true, Some(AttemptEnd::Interrupted)),
            13 => {
                let reason = TaskReason::Failed(why);
                let end = AttemptEnd::Failed { reason, needs_person: false };
                self.report(&task, false, Some(end));
            }
            14 | 15 if self.processes.remove(&task).is_some() => {
                self.step(FleetEvent::Gone { task, number, why });
            }
            16 if self.processes.remove(&task).is_some() => {
                self.step(FleetEvent::NotStarted { task, why });
            }
            17 => self.step(FleetEvent::Started { task, number, job: "7".to_owned() }),
            18 => {
                self.step(FleetEvent::Reported(task, a_report(number.saturating_sub(1), 9, None)));
            }
            19..=22 => self.land(|task| FleetEvent::Landed(task, Landed::Main(None))),
            23 | 24 => self.land(|task| FleetEvent::Refused(task, Refusal::Conflict(Vec::new()))),
            25 => self.land(|task| FleetEvent::LandingFailed {
                task,
                why: String::new(),
                needs_person: false,
            }),
            26 => self.step(request(FleetRequest::Task(TaskRequest::Pause { now: false }))),
            27 => {
                let cancel = TaskRequest::Cancel { now: true, by_agent: false, reason: None };
                self.step(request(FleetRequest::Task(cancel)));
            }
            28 | 29 => self.step(request(FleetRequest::Resume { accepts_test_changes: false })),
            30 => self.step(request(FleetRequest::Tell { words: why, by_agent: true })),
            31 => {
                let pause = FleetRequest::Task(TaskRequest::Pause { now: true });
                self.step(FleetEvent::Requested(None, pause));
            }
            32 | 33 => {
                let resume = FleetRequest::Resume { accepts_test_changes: true };
                self.step(FleetEvent::Requested(None, resume));
            }
            34 => self.step(FleetEvent::Trouble { of: "push", why: Some(why) }),
            35 | 36 => self.step(FleetEvent::Trouble { of: "push", why: None }),
            37 => {
                let mut tasks = self.bench.coordination.described.clone();
                if let Some(it) = tasks.iter_mut().find(|one| one.task.id == task) {
                    it.task.revision.push('x');
                }
                self.step(FleetEvent::Described(tasks));
            }
            38 => drop(self.bench.coordination.clones.remove(&task)),
            39 => {
                let times = self.bench.coordination.stop.signals + 1;
                self.step(FleetEvent::Signal { times, is_hangup: false });
            }
            40 | 41 => self.restart(),
            42 => self.step(FleetEvent::EndAsked { task, why: Some(why) }),
            _ => self.step(FleetEvent::Tick),
        }
    }

    /// Completes everything without further faults.
    fn finish(&mut self) {
        self.restart();
        for _ in 0..30 {
            let resume = || FleetRequest::Resume { accepts_test_changes: false };
            self.step(FleetEvent::Requested(None, resume()));
            for name in NAMES {
                self.step(FleetEvent::Requested(Some(id(name)), resume()));
                self.report(
                    &id(name),
                    true,
                    Some(AttemptEnd::Ended(an_ending(Outcome::Completed))),
                );
            }
            self.land(|task| FleetEvent::Landed(task, Landed::Main(None)));
            self.bench.second += 400;
            self.step(FleetEvent::Tick);
        }
    }
}

fn any_happenings() -> impl Strategy<Value = Vec<Happening>> {
    prop::collection::vec((0_u8..44, 0_usize..NAMES.len()), 0..120)
}

proptest! {
    #[test]
    fn nothing_runs_or_lands_twice_and_everything_is_done_in_the_end(
        lands in any::<bool>(), is_local in any::<bool>(), all in any_happenings()
    ) {
        let landing = if lands { LandingMode::Main } else { LandingMode::No };
        let mut world = World::new(landing, if is_local { "local" } else { "slurm" }, 0);
        for it in all {
            world.happens(it);
        }
        world.finish();
        prop_assert!(world.is_finished);
        for name in NAMES {
            let task = world.bench.task(name);
            prop_assert!(task.is_done(landing), "{} {:?}", name, task);
        }
    }

    #[test]
    fn a_fleet_stays_within_its_cost_limit_whatever_happens(dollars in 1_u64..3, all in any_happenings()) {
        let mut world = World::new(LandingMode::Main, "local", dollars);
        for it in all {
            world.happens(it);
        }
    }
}

#[test]
fn a_thousand_tasks_take_a_step_in_a_few_milliseconds() {
    let names: Vec<String> = (0..1000).map(|at| format!("t{at}")).collect();
    let mut bench = Bench::new(LandingMode::No, Vec::new());
    let described = names.iter().map(|name| a_described(name)).collect();
    bench.record.terms = some_terms(LandingMode::No);
    let effects = bench.step(FleetEvent::Described(described));
    let starts = effects.iter().filter(|effect| matches!(effect, Effect::Start { .. })).count();
    assert_eq!((starts, bench.record.tasks.len()), (4, 1000));
    assert_eq!(bench.task("t999").waits, Some(WaitsFor::Slot));
    assert_eq!(bench.step(FleetEvent::Tick), [], "an idle tick says nothing");
}
