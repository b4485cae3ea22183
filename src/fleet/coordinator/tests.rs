//! The loop of a coordinator with a record in memory and an executor whose attempts end as the test
//! requires.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tempfile::TempDir;

use super::*;
use crate::fleet::executors::{Executor, FoundJobs};
use crate::fleet::landing::PreparedLanding;
use crate::fleet::record::{FleetLimits, Landed, TaskEnding, TaskRequest};
use crate::fleet::spec::{AttemptEnd, AttemptPhase, AttemptSpec};
use crate::fleet::step::FleetRequest;
use crate::fleet::store::PushTime;
use crate::fleet::store::{Push, StoreFault};
use engine::fixture::a_loop;
use engine::fleet::{Carried, FleetTask};
use engine::git::RefUpdate;
use engine::record::{LoopId, Outcome, Proof};
use world::store::write_json;

/// A record in memory, which is lost or cannot be written when a test requires it.
#[derive(Clone, Default)]
struct MemoryStore {
    saved: Rc<RefCell<Option<FleetRecord>>>,
    saves: Rc<Cell<u32>>,
    /// How many of the next writes fail.
    fails: Rc<Cell<u32>>,
    is_lost: Rc<Cell<bool>>,
}

impl FleetStore for MemoryStore {
    fn save_record(&mut self, record: &FleetRecord) -> Result<(), StoreFault> {
        if self.is_lost.get() {
            return Err(StoreFault::Lost("process 7 on other".to_owned()));
        }
        if self.fails.get() > 0 {
            self.fails.set(self.fails.get() - 1);
            return Err(StoreFault::Disk(std::io::Error::other("the disk is full")));
        }
        self.saves.set(self.saves.get() + 1);
        *self.saved.borrow_mut() = Some(record.clone());
        Ok(())
    }

    fn push(&mut self, _: &mut FleetRecord, _: PushTime) -> Option<Push> {
        None
    }

    fn push_with_base(&mut self, _: RefUpdate, _: &FleetRecord) -> Option<Push> {
        Some(Box::new(|| Ok(true)))
    }

    fn note_answer(&mut self, _: bool) {}
}

/// Jobs that end immediately, or once they are cancelled.
#[derive(Clone)]
struct Scripted {
    files: Rc<FleetFiles>,
    started: Rc<RefCell<Vec<SeenJob>>>,
    most: Rc<Cell<usize>>,
    is_instant: bool,
    on_start: Rc<dyn Fn()>,
}

impl Scripted {
    fn end(&self, job: &mut SeenJob) {
        let ending = TaskEnding {
            outcome: Outcome::Completed,
            proof: Some(Proof::Checked),
            reason: "done".into(),
            landed: None,
        };
        let report = AttemptReport {
            number: job.number,
            host: "here".to_owned(),
            process: None,
            loop_id: None,
            phase: AttemptPhase::Preparing,
            carried: Carried::default(),
            commit: None,
            stands_on: None,
            conflicts: Vec::new(),
            end: Some(AttemptEnd::Ended(ending)),
            at: clock::now().wall,
        };
        let file = self.files.report(&job.task, job.number);
        write_json(&file, &report, disk::Durability::Process).unwrap();
        job.ended = Some(String::new());
    }
}

impl Executor for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn submit_job(&mut self, spec: &AttemptSpec) -> Result<String> {
        let (task, number) = (spec.task.task.clone(), spec.number);
        let id = format!("{task} {number}");
        let mut job = SeenJob { id: id.clone(), task, number, ended: None };
        let running = self.started.borrow().iter().filter(|job| job.ended.is_none()).count();
        self.most.set(self.most.get().max(running + 1));
        if self.is_instant {
            self.end(&mut job);
        }
        self.started.borrow_mut().push(job);
        (self.on_start)();
        Ok(id)
    }

    fn is_id(&self, id: &str) -> bool {
        self.started.borrow().iter().any(|job| job.id == id)
    }

    fn find_jobs(&mut self, _: &[SeenJob]) -> Result<FoundJobs> {
        Ok(FoundJobs { known: self.started.borrow().clone(), missing: Vec::new() })
    }

    fn cancel_job(&mut self, id: &str) -> Result<()> {
        for job in self.started.borrow_mut().iter_mut().filter(|job| job.id == id) {
            job.ended = Some("cancelled".to_owned());
        }
        Ok(())
    }
}

struct Stage {
    folder: TempDir,
    home: Home,
    signals: Signals,
    store: MemoryStore,
    executor: Scripted,
}

impl Stage {
    fn new(is_instant: bool) -> Self {
        let folder = testkit::folder();
        let home = Home::at(folder.path());
        home.make_folders().unwrap();
        let files = FleetFiles::new(&home, "shop");
        files.make().unwrap();
        let executor = Scripted {
            files: Rc::new(files),
            started: Rc::default(),
            most: Rc::default(),
            is_instant,
            on_start: Rc::new(|| {}),
        };
        Self { folder, home, signals: Signals::default(), store: MemoryStore::default(), executor }
    }

    fn record(&self, slots: u32) -> FleetRecord {
        let terms = FleetTerms {
            name: "shop".to_owned(),
            repository: self.folder.path().to_owned(),
            folder: "tasks".to_owned(),
            base: "main".to_owned(),
            executor: "local".to_owned(),
            limits: FleetLimits { slots, ..FleetLimits::default() },
            ..FleetTerms::default()
        };
        let now = clock::now().wall;
        FleetRecord::begin_fleet(
            terms,
            "a1".to_owned(),
            Holder::this_process(&self.home, now).unwrap(),
            now,
        )
    }

    fn run(&self, record: FleetRecord, tasks: &[&str]) -> (Result<CoordinatorEnd>, Vec<String>) {
        let mut lines = Vec::new();
        let mut say = |line: &str| lines.push(line.to_owned());
        let coordinator = self.coordinator(record, &mut say);
        let end = coordinator.run_rounds(tasks.iter().map(|task| a_described_task(task)).collect());
        (end, lines)
    }

    fn coordinator<'a>(
        &'a self,
        record: FleetRecord,
        say: &'a mut dyn FnMut(&str),
    ) -> Coordinator<'a> {
        let (store, executor) =
            (Box::new(self.store.clone()), FleetJobs::new(self.executor.clone()));
        Coordinator::new(&self.home, store, executor, record, &self.signals, say)
    }

    fn saved(&self) -> FleetRecord {
        self.store.saved.borrow().clone().unwrap()
    }
}

fn a_described_task(id: &str) -> DescribedTask {
    let task = FleetTask {
        id: id.parse().unwrap(),
        prompt: "do it".to_owned(),
        words: Vec::new(),
        after: Vec::new(),
        touches: Vec::new(),
        priority: 5,
        revision: "0123456789ab".to_owned(),
    };
    DescribedTask { task, contract: a_loop().contract }
}

fn outcomes_of(record: &FleetRecord) -> Vec<Option<Outcome>> {
    record.tasks.values().map(|task| task.ending().map(|ending| ending.outcome)).collect()
}

#[test]
fn instant_tasks_each_run_once_with_fewer_writes_than_tasks() {
    let stage = Stage::new(true);
    let names: Vec<String> = (0..200).map(|number| format!("t{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let began = Stopwatch::start();
    let (end, lines) = stage.run(stage.record(16), &names);
    assert_eq!(end.unwrap(), CoordinatorEnd::Done, "{lines:?}");
    assert_eq!(outcomes_of(&stage.saved()), vec![Some(Outcome::Completed); 200]);
    assert_eq!(stage.executor.started.borrow().len(), 200);
    assert!(began.elapsed_ms() < 60_000, "{} ms", began.elapsed_ms());
    assert!(stage.store.saves.get() < 200, "{} writes", stage.store.saves.get());
    assert_eq!(stage.saved().holder.pid, 0, "anybody may take it now");
}

#[test]
fn the_record_is_written_at_once_only_if_something_waits_for_it() {
    let stage = Stage::new(true);
    let saves = Rc::clone(&stage.store.saves);
    let (store, executor) = (Box::new(stage.store.clone()), FleetJobs::new(stage.executor.clone()));
    let mut say = |_: &str| {};
    let mut coordinator =
        Coordinator::new(&stage.home, store, executor, stage.record(1), &stage.signals, &mut say);
    coordinator.perform_effects().unwrap();
    assert_eq!((saves.get(), coordinator.pending.is_unsaved), (1, false), "the first one");
    let task: TaskId = "gone".parse().unwrap();
    let pause = || FleetRequest::Task(TaskRequest::Pause { now: false });
    let table = [
        (None, 0),
        (Some(Effect::Fetch { task: task.clone() }), 0),
        (Some(Effect::Land { task: task.clone() }), 1),
        (Some(Effect::Remove { task: task.clone() }), 1),
        (Some(Effect::End { task: task.clone() }), 1),
        (Some(Effect::Pass { task, request: pause() }), 1),
    ];
    for (effect, expected) in table {
        let (name, before) = (format!("{effect:?}"), saves.get());
        (coordinator.pending.is_unsaved, coordinator.pending.save_due) =
            (true, Deadline::after(Duration::from_secs(3600)));
        coordinator.pending.effects.extend(effect);
        coordinator.perform_effects().unwrap();
        assert_eq!(
            (saves.get() - before, coordinator.pending.is_unsaved),
            (expected, expected == 0),
            "{name}"
        );
    }
    coordinator.pending.is_unsaved = true;
    coordinator.pending.requests.requests.push((None, pause()));
    coordinator.perform_effects().unwrap();
    assert_eq!(
        (saves.get(), coordinator.pending.is_unsaved),
        (6, false),
        "a request stays in its file until then"
    );
    coordinator.pending.requests.requests.clear();
    (coordinator.pending.is_unsaved, coordinator.pending.save_due) =
        (true, Deadline::after(Duration::ZERO));
    coordinator.perform_effects().unwrap();
    assert_eq!((saves.get(), coordinator.pending.is_unsaved), (7, false), "after some time");
}

#[test]
fn a_report_is_read_once_and_jobs_that_are_over_are_forgotten() {
    let stage = Stage::new(true);
    let (store, executor) = (Box::new(stage.store.clone()), FleetJobs::new(stage.executor.clone()));
    let mut say = |_: &str| {};
    let mut it =
        Coordinator::new(&stage.home, store, executor, stage.record(1), &stage.signals, &mut say);
    let task: TaskId = "a".parse().unwrap();
    assert_eq!(it.new_report(&task, 1, true), None, "there is none");
    let report = || stage.executor.end(&mut a_job("a 1", &task));
    for _ in 0..3 {
        report();
        assert!(it.new_report(&task, 1, true).is_some());
        assert_eq!(it.new_report(&task, 1, true), None, "it is the same");
    }
    assert!(it.new_report(&task, 1, false).is_some(), "what is over has said its last word");
    for number in 1..=2 {
        let id = format!("a {number}");
        stage.executor.started.borrow_mut().push(SeenJob { number, ..a_job(&id, &task) });
        stage.executor.clone().cancel_job(&id).unwrap();
        it.executor.adopt_job(&task, number, &id);
    }
    stage.executor.started.borrow_mut().push(a_job("b 1", &"b".parse().unwrap()));
    it.executor.list_jobs().unwrap();
    stage.executor.started.borrow_mut().clear();
    it.executor.forget_ended(&[(task, 2)]);
    let left = it.executor.list_jobs().unwrap();
    assert_eq!(left.iter().map(|job| &*job.id).collect::<Vec<_>>(), ["a 2", "b 1"]);
}

fn a_job(id: &str, task: &TaskId) -> SeenJob {
    SeenJob { id: id.to_owned(), task: task.clone(), number: 1, ended: None }
}

#[test]
fn no_task_starts_before_the_record_can_be_written() {
    let stage = Stage::new(true);
    let fails = Rc::clone(&stage.store.fails);
    let record = stage.record(1);
    // The first write, before anything else, has to work.
    let store = stage.store.clone();
    let mut failing = stage.executor.clone();
    let started = Rc::clone(&stage.executor.started);
    failing.on_start = Rc::new(move || {
        let is_first = started.borrow().len() == 1;
        if is_first {
            fails.set(3);
        }
        assert_eq!(store.fails.get(), if is_first { 3 } else { 0 });
    });
    let stage = Stage { executor: failing, ..stage };
    let (end, lines) = stage.run(record, &["a", "b"]);
    assert_eq!(end.unwrap(), CoordinatorEnd::Done);
    let troubled = lines.iter().filter(|line| line.contains("the disk is full")).count();
    let works = lines.iter().filter(|line| line.contains("it works again")).count();
    assert_eq!((troubled, works), (1, 1), "{lines:?}");
}

#[test]
fn a_coordinator_that_lost_its_record_ends_what_it_started_and_says_so() {
    let stage = Stage::new(false);
    let is_lost = Rc::clone(&stage.store.is_lost);
    let mut executor = stage.executor.clone();
    executor.on_start = Rc::new(move || is_lost.set(true));
    let stage = Stage { executor, ..stage };
    let (end, lines) = stage.run(stage.record(2), &["a"]);
    let error = end.unwrap_err().to_string();
    assert!(error.starts_with("the fleet shop was taken over by process 7 on other"), "{error}");
    assert!(stage.executor.started.borrow().iter().all(|job| job.ended.is_some()));
    assert!(lines.iter().any(|line| line.contains("writes nothing more")), "{lines:?}");
}

#[test]
fn a_running_attempt_is_adopted_and_a_lost_one_is_tried_again() {
    let stage = Stage::new(true);
    let mut record = stage.record(2);
    let now = clock::now().wall;
    for (name, job) in [("lives", "lives 1"), ("gone", "gone 1")] {
        let mut task = TaskRecord::new("0123456789ab", 0, now);
        task.attempt = 1;
        task.state = TaskState::Running { job: job.to_owned(), since: now };
        record.tasks.insert(name.parse().unwrap(), task);
    }
    let lives: TaskId = "lives".parse().unwrap();
    let lock = disk::take_lock(&stage.executor.files.attempt_lock(&lives, 1), Duration::ZERO);
    let lock = RefCell::new(lock.unwrap());
    let mut executor = stage.executor.clone();
    let ends = stage.executor.clone();
    // Once the other one was tried again, this one ends.
    executor.on_start = Rc::new(move || {
        let task = "lives".parse().unwrap();
        ends.end(&mut SeenJob { id: String::new(), task, number: 1, ended: None });
        drop(lock.borrow_mut().take());
    });
    let stage = Stage { executor, ..stage };
    let (end, lines) = stage.run(record, &["gone", "lives"]);
    assert_eq!(end.unwrap(), CoordinatorEnd::Done, "{lines:?}");
    assert_eq!(outcomes_of(&stage.saved()), [Some(Outcome::Completed); 2]);
    let started = stage.executor.started.borrow();
    assert_eq!(started.len(), 1, "{lines:?}");
    assert_eq!(started[0].task.as_str(), "gone");
    assert!(lines.iter().any(|line| line.contains("already running, adopted")), "{lines:?}");
}

#[test]
fn a_cancelled_landing_is_neither_pushed_nor_begun_again() {
    let commit = || "0".repeat(40);
    let ready = || PreparedLanding::Ready { main: commit(), commit: commit() };
    let id: TaskId = "a".parse().unwrap();
    for is_ready in [true, false] {
        let stage = Stage::new(true);
        let mut record = stage.record(1);
        let mut task = TaskRecord::new("0123456789ab", 0, clock::now().wall);
        task.attempt = 1;
        task.land(TaskEnding::new(Outcome::Completed, ""), clock::now().wall);
        task.asked.request =
            Some(TaskRequest::Cancel { now: false, by_agent: false, reason: None });
        record.tasks.insert(id.clone(), task);
        let mut say = |_: &str| {};
        let mut coordinator = stage.coordinator(record, &mut say);
        coordinator.coordination.described = vec![a_described_task("a")];
        coordinator.coordination.landing = Some(id.clone());
        coordinator.carry_out(Effect::End { task: id.clone() });
        if is_ready {
            landing::take_prepared(&mut coordinator, id.clone(), Ok(ready()));
        } else {
            landing::take_moved(&mut coordinator, id.clone(), Landed::Main(None), Ok(false));
        }
        assert_eq!(outcomes_of(&coordinator.record), [Some(Outcome::Cancelled)], "{is_ready}");
    }
}

#[test]
fn jobs_for_other_machines_are_submitted_one_by_one_and_none_after_a_signal() {
    let stage = Stage::new(false);
    let (mut record, now) = (stage.record(4), clock::now().wall);
    record.terms.executor = "scripted".to_owned();
    let names = ["a", "b", "c", "d"];
    let tasks: [TaskId; 4] = names.map(|name| name.parse().unwrap());
    for id in &tasks {
        let mut task = TaskRecord::new("0123456789ab", 0, now);
        task.attempt = 1;
        task.state = TaskState::Running { job: String::new(), since: now };
        record.tasks.insert(id.clone(), task);
    }
    let mut say = |_: &str| {};
    let mut coordinator = stage.coordinator(record, &mut say);
    coordinator.coordination.described = names.map(a_described_task).into();
    let start = |task: &TaskId| Effect::Start { task: task.clone(), number: 1, continues: false };
    coordinator.remote.starts = tasks.iter().map(start).collect();
    coordinator.ask_executor();
    assert_eq!(stage.executor.started.borrow().len(), 0, "the remote does not know of them");
    coordinator.take_pushed(3, Ok(true));
    let paused = coordinator.record.tasks.get_mut(&tasks[2]).unwrap();
    paused.asked.request = Some(TaskRequest::Pause { now: false });
    for started in [1, 2, 2, 2] {
        coordinator.ask_executor();
        assert_eq!(stage.executor.started.borrow().len(), started);
    }
    let runs = |run: &Coordinator<'_>| tasks.each_ref().map(|id| run.record.tasks[id].is_running());
    assert_eq!(runs(&coordinator), [true, true, false, true], "the third one is paused");
    coordinator.coordination.stop.signals = 1;
    coordinator.ask_executor();
    // The remote answers after the signal.
    coordinator.take_pushed(1, Ok(true));
    coordinator.push_record();
    coordinator.ask_executor();
    assert_eq!((stage.executor.started.borrow().len(), coordinator.remote.ready), (2, 0));
    assert_eq!(runs(&coordinator), [true, true, false, false]);
}

#[test]
fn a_message_that_does_not_reach_its_loop_is_kept_for_the_next_loop() {
    let stage = Stage::new(true);
    let (mut record, now) = (stage.record(1), clock::now().wall);
    let mut task = TaskRecord::new("0123456789ab", 0, now);
    // That loop is not here.
    (task.attempt, task.loop_id) = (1, Some(LoopId::from_random(7)));
    task.state = TaskState::Running { job: "7".to_owned(), since: now };
    let id: TaskId = "a".parse().unwrap();
    record.tasks.insert(id.clone(), task);
    let mut say = |_: &str| {};
    let mut coordinator = stage.coordinator(record, &mut say);
    let tell = FleetRequest::Tell { words: "hi".to_owned(), by_agent: false };
    coordinator.carry_out(Effect::Pass { task: id.clone(), request: tell });
    coordinator.send_requests();
    assert_eq!(coordinator.remote.unsent.len(), 1);
    coordinator.take_in(FleetEvent::Gone { task: id.clone(), number: 1, why: String::new() });
    coordinator.send_requests();
    assert_eq!(
        (coordinator.remote.unsent.len(), &*coordinator.record.tasks[&id].asked.messages),
        (0, &["hi".to_owned()][..])
    );
}
