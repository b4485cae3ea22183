//! What a coordinator does next, as a pure function of the record and of what happened. Nothing
//! here knows a file, a clock, git or a process.

use chrono::{DateTime, Utc};

pub use super::events::{Effect, FleetEvent, FleetLine, FleetRequest};
use super::plan::{self, FleetPlan, lacks_a_share};
use super::record::{
    EndReason, FleetRecord, Landed, TaskEnding, TaskRecord, TaskRequest, TaskState, WaitsFor,
    reason_of,
};
use super::spec::{AttemptEnd, AttemptPhase, AttemptReport};
pub use super::spec::{Backoff, Coordination, DescribedTask};
use crate::engine::fleet::{LandingMode, Refusal, TaskId};
use crate::engine::record::Outcome;

/// How often in a row a task's process may be gone without an iteration to show for it.
const GONE_MAX: u32 = 3;
/// How often in a row the executor may refuse what is handed to it.
const NOT_STARTED_MAX: u32 = 5;
/// How often in a row a landing may fail for a reason that crew does not know.
const LANDING_FAILURES_MAX: u32 = 5;

/// Takes in what happened at `now`, and says what follows, to be done in this order.
///
/// A coordinator that begins first reports what it finds out about attempts of an earlier one, those
/// that run excepted, and then describes the folder. `Start` is answered by `Started` or
/// `NotStarted`; `Fetch` by `Fetched` or `Trouble`; a landing by one of its three results, also after
/// `End`. What is not answered is asked again at the next `Tick`, except a start or a landing.
pub fn step(
    record: &mut FleetRecord,
    coordination: &mut Coordination,
    event: FleetEvent,
    now: DateTime<Utc>,
) -> Vec<Effect> {
    let (effects, is_changed) = (Vec::new(), false);
    let mut turn = Turn { record, known: coordination, now, effects, is_changed };
    turn.take_in(event);
    turn.settle();
    let needs_the_record = |it: &Effect| {
        matches!(it, Effect::Start { .. } | Effect::Land { .. } | Effect::OpenRequest { .. })
    };
    if turn.is_changed || turn.effects.iter().any(needs_the_record) {
        turn.effects.insert(0, Effect::Save);
    }
    turn.effects
}

/// One step, which follows from one event.
pub(super) struct Turn<'a> {
    pub(super) record: &'a mut FleetRecord,
    pub(super) known: &'a mut Coordination,
    now: DateTime<Utc>,
    pub(super) effects: Vec<Effect>,
    pub(super) is_changed: bool,
}

impl Turn<'_> {
    fn take_in(&mut self, event: FleetEvent) {
        match event {
            FleetEvent::Described(tasks) => self.described(tasks),
            FleetEvent::Reported(task, report) => self.reported(&task, report),
            FleetEvent::Started { task, number, job } => self.started(&task, number, job),
            FleetEvent::Fetched { task, commit } => {
                if let Some(task) = self.change(&task) {
                    task.commit = Some(commit);
                }
            }
            FleetEvent::Gone { task, number, why } => {
                if self.runs(&task, number) {
                    let reason = EndReason::Machine;
                    self.attempt_ended(
                        &task,
                        AttemptEnd::Failed { why, reason, needs_person: false },
                    );
                }
            }
            FleetEvent::NotStarted { task, why } => self.not_started(&task, why),
            FleetEvent::Landed(task, landed) => self.landed(&task, landed),
            FleetEvent::Refused(task, refusal) => self.refused(&task, refusal),
            FleetEvent::LandingFailed { task, why, needs_person } => {
                self.landing_failed(&task, why, needs_person);
            }
            FleetEvent::Requested(target, request) => self.requested(target, request),
            FleetEvent::Trouble(why) => {
                if self.known.trouble.replace(why.clone()).as_ref() != Some(&why) {
                    self.note(format!("{why}; it is tried again, and nothing starts before"));
                }
            }
            FleetEvent::Restored => {
                if self.known.trouble.take().is_some() {
                    self.note("it works again".to_owned());
                }
                self.fetch_all();
            }
            FleetEvent::Signal { times, is_hangup } => self.signalled(times, is_hangup),
            FleetEvent::Tick => self.fetch_all(),
        }
    }

    fn say(&mut self, line: FleetLine) {
        self.effects.push(Effect::Say(line));
    }

    pub(super) fn note(&mut self, text: String) {
        self.say(FleetLine::Note(text));
    }

    /// The record of a task, which is saved afterwards.
    pub(super) fn change(&mut self, id: &TaskId) -> Option<&mut TaskRecord> {
        let task = self.record.tasks.get_mut(id)?;
        self.is_changed = true;
        Some(task)
    }

    pub(super) fn end(&mut self, id: &TaskId, ending: TaskEnding) {
        let now = self.now;
        if let Some(task) = self.change(id) {
            task.end(ending, now);
            self.say(FleetLine::Ended { task: id.clone() });
        }
    }

    pub(super) fn wait(&mut self, id: &TaskId) {
        let now = self.now;
        if let Some(task) = self.change(id) {
            task.set(TaskState::Waiting, now);
        }
    }

    pub(super) fn pause(&mut self, id: &TaskId) {
        self.pass(id, FleetRequest::Task(TaskRequest::Pause { now: false }));
    }

    pub(super) fn pass(&mut self, id: &TaskId, request: FleetRequest) {
        self.effects.push(Effect::Pass { task: id.clone(), request });
    }

    /// Whether this attempt at the task runs, as far as is known.
    fn runs(&self, id: &TaskId, number: u32) -> bool {
        self.record.task(id).is_some_and(|task| task.is_running() && task.attempt == number)
    }

    pub(super) fn named(&self, id: &TaskId) -> String {
        format!("{}/{id}", self.record.terms.name)
    }

    pub(super) fn file(&self, id: &TaskId) -> String {
        format!("{}/{id}.md", self.record.terms.folder)
    }

    fn described(&mut self, mut tasks: Vec<DescribedTask>) {
        tasks.sort_by(|one, other| one.task.turn(&other.task));
        let is_start = !std::mem::replace(&mut self.known.has_begun, true);
        let before = std::mem::replace(&mut self.known.described, tasks.clone());
        for DescribedTask { task: described, contract } in &tasks {
            let (id, revision) = (&described.id, &described.revision);
            let Some(task) = self.record.task(id) else {
                let task = TaskRecord::new(revision, contract.limits.max_iterations, self.now);
                self.record.tasks.insert(id.clone(), task);
                self.is_changed = true;
                continue;
            };
            let known = before.iter().find(|it| it.task.id == *id);
            let known = known.map_or(&task.revision, |it| &it.task.revision);
            if known != revision
                && let Some(text) = changed(task)
            {
                self.note(format!("{id} has changed, but {text}"));
            }
        }
        let ids: Vec<TaskId> = self.record.tasks.keys().cloned().collect();
        for id in &ids {
            let is_gone = self.known.described(id).is_none();
            let was_there = before.iter().any(|it| it.task.id == *id);
            if is_start {
                self.begin(id, is_gone);
            } else if is_gone && was_there {
                self.note(format!("{}: the file is gone", self.file(id)));
            }
        }
        if is_start {
            self.fetch_all();
        }
    }

    /// What a start makes of a task that was there before. An attempt that runs is adopted, and a
    /// pause of it is lifted; a cancel that a landing has not obeyed ends the task; completed work lands if the fleet lands now; what has no file any more
    /// is given up unless it is done.
    fn begin(&mut self, id: &TaskId, is_gone: bool) {
        let Some(task) = self.record.task(id) else { return };
        let lands = self.record.terms.landing != LandingMode::No;
        let is_open = !task.is_running() && task.ending().is_none();
        if let (true, Some(cancelled)) = (is_open, self.record.cancel_of(id)) {
            return self.end(id, cancelled);
        }
        let given_up =
            TaskEnding::new(Outcome::Cancelled, "its file is gone".to_owned(), EndReason::Person);
        match task.state.clone() {
            TaskState::Running { .. } => {
                self.say(FleetLine::Adopted { task: id.clone() });
                if lacks_a_share(self.record, &self.record.tasks[id]) {
                    self.pause(id);
                } else if self.record.cancel_of(id).is_none() {
                    self.pass(id, FleetRequest::Resume { accepts_test_changes: false });
                }
                if is_gone {
                    let named = self.named(id);
                    self.note(format!("{id} runs without its file; crew cancel {named} ends it"));
                }
            }
            TaskState::Waiting | TaskState::Landing { .. } if is_gone => self.end(id, given_up),
            TaskState::Landing { proof, why } if !lands => {
                let ending = TaskEnding::new(Outcome::Completed, why, EndReason::Loop);
                self.end(id, TaskEnding { proof, ..ending });
            }
            TaskState::Ended(ending) if ending.outcome == Outcome::Completed => {
                if lands && ending.landed.is_none() && !is_gone {
                    self.land_now(id, &ending);
                    self.note(format!("{id} is completed, and lands now"));
                }
            }
            TaskState::Ended(ending) if is_gone && ending.outcome != Outcome::Cancelled => {
                self.end(id, given_up);
            }
            TaskState::Ended(_) | TaskState::Waiting | TaskState::Landing { .. } => {}
        }
    }

    /// Lets completed work wait for its turn to land.
    pub(super) fn land_now(&mut self, id: &TaskId, ending: &TaskEnding) {
        let (now, proof, why) = (self.now, ending.proof, ending.why.clone());
        if let Some(task) = self.change(id) {
            task.set(TaskState::Landing { proof, why }, now);
        }
    }

    fn started(&mut self, id: &TaskId, number: u32, job: String) {
        let now = self.now;
        let is_held = self.known.starts.holds(now);
        let Some(task) = self.change(id) else { return };
        match &mut task.state {
            TaskState::Running { job: known, .. } if task.attempt == number => *known = job,
            // The executor refused it, and took it all the same.
            TaskState::Waiting if task.attempt == number && is_held => {
                task.set(TaskState::Running { job, since: now }, now);
            }
            _ => return,
        }
        self.known.starts = Backoff::default();
    }

    fn not_started(&mut self, id: &TaskId, why: String) {
        if !self.record.task(id).is_some_and(TaskRecord::is_running) {
            return;
        }
        self.known.starts.fail(self.now);
        self.note(format!("{id} could not start: {why}"));
        match self.record.cancel_of(id) {
            Some(ending) => self.end(id, ending),
            None => self.wait(id),
        }
        if self.known.starts.times >= NOT_STARTED_MAX {
            self.known.gave_up = Some(why);
        }
    }

    fn reported(&mut self, id: &TaskId, report: AttemptReport) {
        if !self.runs(id, report.number) {
            return;
        }
        let Some(task) = self.record.tasks.get_mut(id) else { return };
        let (was, of) = (task.clone(), task.max_iterations);
        let has_iterated = task.take_report(&report);
        self.is_changed |= was != *task;
        let last = task.carried.last.clone();
        let is_to_fetch = !task.is_fetched() && self.known.trouble.is_none();
        if has_iterated {
            let (task, iteration) = (id.clone(), report.carried.completed);
            self.say(FleetLine::Iteration { task, iteration, of, what: last });
        }
        let before = self.known.reports.insert(id.clone(), report.clone());
        let rested = before.as_ref().is_some_and(AttemptReport::rests);
        match report.phase.clone() {
            AttemptPhase::Waiting { until, why } if !rested => {
                self.say(FleetLine::Waits { task: id.clone(), until, why });
            }
            AttemptPhase::Waiting { .. } => {}
            _ if rested && report.end.is_none() => {
                self.say(FleetLine::Resumes { task: id.clone() })
            }
            _ => {}
        }
        if report.has_loop() && !before.as_ref().is_some_and(AttemptReport::has_loop) {
            self.loop_begins(id);
        }
        if is_to_fetch {
            self.effects.push(Effect::Fetch { task: id.clone() });
        }
        if let Some(end) = report.end {
            self.attempt_ended(id, end);
        }
    }

    /// Passes on what was asked before there was a loop to take it.
    fn loop_begins(&mut self, id: &TaskId) {
        let Some(task) = self.change(id) else { return };
        task.accepts_test_changes = false;
        let mut messages = std::mem::take(&mut task.messages);
        let rest = messages.split_off(std::mem::take(&mut task.given).min(messages.len()));
        for words in rest {
            self.pass(id, FleetRequest::Tell { words, by_agent: false });
        }
        if let Some(request) = self.record.request_of(id).cloned() {
            self.pass(id, FleetRequest::Task(request));
        } else if self.known.signals > 0 && self.record.is_local() {
            self.pause(id);
        }
    }

    fn attempt_ended(&mut self, id: &TaskId, end: AttemptEnd) {
        self.known.reports.remove(id);
        match (end, self.record.cancel_of(id)) {
            (AttemptEnd::Ended(ending), cancel) => self.loop_ended(id, ending, cancel),
            (_, Some(ending)) => self.end(id, ending),
            (AttemptEnd::Paused, None) => self.paused(id),
            (AttemptEnd::Interrupted, None) => {
                let is_asked = self.record.request_of(id).is_some_and(TaskRequest::is_now);
                if is_asked || self.known.signals > 0 {
                    self.wait(id);
                } else {
                    self.gone(id, "it was interrupted".to_owned(), EndReason::Machine);
                }
            }
            (AttemptEnd::Failed { why, reason, needs_person: true }, None) => {
                self.end(id, TaskEnding::new(Outcome::Blocked, why, reason));
            }
            (AttemptEnd::Failed { why, reason, needs_person: false }, None) => {
                self.gone(id, why, reason);
            }
        }
    }

    /// A loop that neither a request nor a signal has paused was paused by a person on its own,
    /// unless it had to wait for its share of the fleet's money.
    fn paused(&mut self, id: &TaskId) {
        let is_signal = self.known.signals > 0;
        let is_known = is_signal || self.record.request_of(id).is_some();
        let is_for_money = lacks_a_share(self.record, &self.record.tasks[id]);
        self.wait(id);
        if !is_known && !is_for_money {
            if let Some(task) = self.change(id) {
                task.request = Some(TaskRequest::Pause { now: false });
            }
        }
        self.say(FleetLine::Paused { task: id.clone() });
    }

    fn loop_ended(&mut self, id: &TaskId, ending: TaskEnding, cancel: Option<TaskEnding>) {
        let lands = self.record.terms.landing != LandingMode::No;
        let is_completed = ending.outcome == Outcome::Completed;
        let sent_back = self.record.task(id).and_then(|task| task.sent_back.clone());
        match (cancel, sent_back) {
            _ if is_completed && !lands => self.end(id, ending),
            (Some(cancelled), _) => self.end(id, cancelled),
            (None, _) if is_completed => self.land_now(id, &ending),
            (None, Some(refusal)) if ending.outcome != Outcome::Cancelled => {
                let why = format!("{}; its loop: {}", refusal.why(), ending.why);
                self.end(id, TaskEnding::new(Outcome::Blocked, why, reason_of(&refusal)));
            }
            (None, _) => self.end(id, ending),
        }
    }

    /// Frees a task whose process is gone, or could not work; one for which that happens again and
    /// again ends. It does not count where crew ended the process, or never handed it over.
    fn gone(&mut self, id: &TaskId, why: String, reason: EndReason) {
        let is_signal = self.known.signals > 0;
        let Some(task) = self.change(id) else { return };
        let was_started = matches!(&task.state, TaskState::Running { job, .. } if !job.is_empty());
        task.gone += u32::from(was_started && !is_signal);
        if task.gone >= GONE_MAX {
            let why = format!("its process was gone {GONE_MAX} times in a row: {why}");
            self.end(id, TaskEnding::new(Outcome::Error, why, reason));
        } else {
            self.wait(id);
            self.say(FleetLine::Gone { task: id.clone(), why });
        }
    }

    /// Takes note that a landing is over. How the loop had ended, if the task still waits for that.
    fn landing_over(&mut self, id: &TaskId) -> Option<TaskEnding> {
        self.known.landing.take_if(|landing| landing == id);
        let TaskState::Landing { proof, why } = &self.record.task(id)?.state else { return None };
        let (proof, ending) = (*proof, TaskEnding::new(Outcome::Completed, why, EndReason::Loop));
        Some(TaskEnding { proof, ..ending })
    }

    /// The same of one that did not land: a cancel ends it.
    fn not_landed(&mut self, id: &TaskId) -> Option<TaskEnding> {
        let ending = self.landing_over(id)?;
        let Some(cancelled) = self.record.cancel_of(id) else { return Some(ending) };
        self.end(id, cancelled);
        None
    }

    fn landed(&mut self, id: &TaskId, landed: Landed) {
        let Some(ending) = self.landing_over(id) else { return };
        self.known.landings = Backoff::default();
        let is_on_main = matches!(landed, Landed::Main(_));
        self.end(id, TaskEnding { landed: Some(landed), ..ending });
        if is_on_main {
            self.effects.push(Effect::Remove { task: id.clone() });
        }
    }

    /// What follows from a refusal: once, the task goes back to its loop, if that has an iteration
    /// left to settle it.
    fn refused(&mut self, id: &TaskId, refusal: Refusal) {
        let Some(TaskEnding { proof, .. }) = self.not_landed(id) else { return };
        self.known.landings = Backoff::default();
        let (mut why, reason, now) = (refusal.why(), reason_of(&refusal), self.now);
        let (named, limits) = (self.named(id), self.known.described(id));
        let limits = limits.map(|it| it.contract.limits.clone());
        let Some(task) = self.change(id) else { return };
        if refusal.can_be_settled() && task.sent_back.is_none() {
            let Some(limit) = limits.and_then(|limits| task.spent_limit(&limits)) else {
                task.send_back(refusal, now);
                return self.say(FleetLine::SentBack { task: id.clone(), why });
            };
            why = format!("{why}; its {limit} is used up: raise it, then crew resume {named}");
        }
        task.sent_back = Some(refusal);
        // With the proof of its loop: what is left of it is to land.
        self.end(id, TaskEnding { proof, ..TaskEnding::new(Outcome::Blocked, why, reason) });
    }

    fn landing_failed(&mut self, id: &TaskId, why: String, needs_person: bool) {
        let Some(TaskEnding { proof, .. }) = self.not_landed(id) else { return };
        self.known.landings.fail(self.now);
        if !needs_person && self.known.landings.times < LANDING_FAILURES_MAX {
            return self.note(format!("{id} could not land: {why}; it is tried again"));
        }
        self.known.landings = Backoff::default();
        let outcome = if needs_person { Outcome::Blocked } else { Outcome::Error };
        let ending = TaskEnding::new(outcome, why, EndReason::Machine);
        self.end(id, TaskEnding { proof, ..ending });
    }

    /// What follows from how things are now.
    fn settle(&mut self) {
        if self.known.has_begun {
            self.land_next();
            let plan = plan::waits(self.record, self.known, self.now);
            for start in &plan.starts {
                self.start(start);
            }
            for (id, waits) in &plan.waits {
                let task = self.record.tasks.get_mut(id);
                if let Some(task) = task.filter(|task| task.state == TaskState::Waiting)
                    && task.waits.as_ref() != Some(waits)
                {
                    task.waits = Some(waits.clone());
                    self.is_changed = true;
                }
            }
            if self.is_finished(&plan) {
                self.effects.push(Effect::Finish);
            }
        } else if self.known.signals > 0 {
            self.effects.push(Effect::Finish);
        }
    }

    /// Asks for what was reported and not fetched yet. What is only in a clone that is gone is lost:
    /// completed work is done again from the last commit that was fetched.
    fn fetch_all(&mut self) {
        if self.known.trouble.is_some() || !self.known.has_begun {
            return;
        }
        let lacks = |(id, task): (&TaskId, &TaskRecord)| (!task.is_fetched()).then(|| id.clone());
        let lacking: Vec<TaskId> = self.record.tasks.iter().filter_map(lacks).collect();
        for id in lacking {
            if !self.record.is_local() || self.known.clones.contains(&id) {
                self.effects.push(Effect::Fetch { task: id });
                continue;
            }
            self.note(format!("{id}: its clone is gone, with what was not fetched from it"));
            let now = self.now;
            let Some(task) = self.change(&id) else { continue };
            task.tip.clone_from(&task.commit);
            if matches!(task.state, TaskState::Landing { .. }) {
                task.begins_anew = true;
                task.set(TaskState::Waiting, now);
            }
        }
    }

    /// The next task whose turn it is to land: the one that was completed first.
    fn land_next(&mut self) {
        let Coordination { trouble, signals, landing, landings, .. } = &*self.known;
        if trouble.is_some() || *signals > 0 || landing.is_some() || landings.holds(self.now) {
            return;
        }
        let is_next = |(id, task): &(&TaskId, &TaskRecord)| {
            let lands = matches!(task.state, TaskState::Landing { .. });
            lands && task.is_fetched() && self.record.request_of(id).is_none()
        };
        let next = self.record.tasks.iter().filter(is_next).min_by_key(|(_, task)| task.at);
        let Some(task) = next.map(|(id, _)| id.clone()) else { return };
        self.known.landing = Some(task.clone());
        self.say(FleetLine::Lands { task: task.clone() });
        self.effects.push(match self.record.terms.landing {
            LandingMode::Pr => Effect::OpenRequest { task },
            LandingMode::Main | LandingMode::No => Effect::Land { task },
        });
    }

    fn start(&mut self, start: &plan::Start) {
        let (id, now, continues) = (&start.task, self.now, start.continues);
        let Some(described) = self.known.described(id).cloned() else { return };
        let is_local = self.record.is_local();
        let Some(task) = self.change(id) else { return };
        task.set(TaskState::Running { job: String::new(), since: now }, now);
        task.reserved_micros = start.reserved_micros;
        task.revision = described.task.revision;
        task.max_iterations = described.contract.limits.max_iterations;
        task.begins_anew = false;
        task.given = task.messages.len();
        if !continues {
            task.attempt += 1;
            task.loop_id = None;
        }
        let (task, number) = (id.clone(), task.attempt);
        if is_local {
            self.known.clones.insert(id.clone());
        }
        self.say(FleetLine::Started { task: task.clone(), number, continues });
        self.effects.push(Effect::Start { task, number, continues });
    }

    /// Whether nothing runs, and nothing would start or land without a person.
    fn is_finished(&self, plan: &FleetPlan) -> bool {
        let Coordination { signals, is_hangup, landing, gave_up, .. } = &*self.known;
        let is_local = self.record.is_local();
        let runs = self.record.tasks.values().any(TaskRecord::is_running);
        if *signals > 2 {
            return true;
        }
        if landing.is_some() || (runs && (is_local || !is_hangup)) {
            return false;
        }
        if *signals > 0 || gave_up.is_some() {
            return true;
        }
        let is_open = |(id, task): (&TaskId, &TaskRecord)| match task.state {
            TaskState::Landing { .. } => self.record.request_of(id).is_none(),
            _ => !task.is_fetched(),
        };
        let passes = plan.waits.values().any(WaitsFor::passes);
        !passes && !self.record.tasks.iter().any(is_open)
    }
}

/// What is to be said of a task whose text changed; `None` where it just counts.
fn changed(task: &TaskRecord) -> Option<&'static str> {
    match &task.state {
        TaskState::Running { .. } => Some("it runs; its next start takes that"),
        TaskState::Ended(ending) if ending.outcome == Outcome::Completed => {
            Some("it is completed: give the file another name")
        }
        TaskState::Ended(_) => Some("it has ended; crew resume takes that"),
        TaskState::Waiting | TaskState::Landing { .. } => None,
    }
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "step_property_tests.rs"]
mod property_tests;
