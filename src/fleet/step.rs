//! The next effects of a coordinator, as a pure function of its record and an event. Nothing here
//! uses files, clocks, git or processes.

pub mod events;
pub mod lines;
mod requests;

use chrono::{DateTime, Utc};

pub use self::events::{Effect, FetchConcern, FleetEvent, FleetLine, FleetRequest};
use super::plan::{self, FleetPlan, Start};
use super::record::{
    FleetRecord, Landed, TaskEnding, TaskReason, TaskRecord, TaskRequest, TaskState, Unsettled,
    WaitsFor,
};
use super::spec::{AttemptEnd, AttemptPhase, AttemptReport};
pub use super::spec::{Backoff, Coordination, DescribedTask};
use engine::fleet::{LandingMode, Refusal, TaskId};
use engine::record::Outcome;

/// How many times in a row a task's process may disappear without a finished iteration.
const GONE_MAX: u32 = 3;
/// How many times in a row the executor may refuse a job.
const NOT_STARTED_MAX: u32 = 5;
/// How many times in a row a landing may fail for a reason unknown to crew.
const LANDING_FAILURES_MAX: u32 = 5;
/// The name of the trouble that prevents every fetch.
const FETCH: &str = "fetch";
/// How many times in a row fetching a task's commits may fail because of its clone or branch.
const FETCH_FAILURES_MAX: u32 = 5;

/// Applies an event at `now` and returns the effects, to be carried out in order. A `Tick` decides
/// what starts, lands and is fetched, once for all events before it.
///
/// A new coordinator first reports what it finds out about an earlier one's attempts, except
/// running ones, and then describes the folder. `Start` is answered by `Started` or `NotStarted`;
/// `Fetch` by `Fetched` or `FetchFailed`; a landing by one of its three results, also after `End`.
pub fn step_fleet(
    record: &mut FleetRecord,
    coordination: &mut Coordination,
    event: FleetEvent,
    now: DateTime<Utc>,
) -> Vec<Effect> {
    let (effects, is_changed) = (Vec::new(), false);
    let mut turn = Turn { record, coordination, now, effects, is_changed };
    turn.apply_event(event);
    if turn.is_changed {
        turn.effects.insert(0, Effect::Save);
    }
    turn.effects
}

/// One step, with its record and its effects so far.
pub(super) struct Turn<'a> {
    record: &'a mut FleetRecord,
    coordination: &'a mut Coordination,
    now: DateTime<Utc>,
    effects: Vec<Effect>,
    is_changed: bool,
}

impl Turn<'_> {
    fn apply_event(&mut self, event: FleetEvent) {
        match event {
            FleetEvent::Described(tasks) => self.take_described(tasks),
            FleetEvent::Reported(id, report) => self.update(&id, report, Self::take_report),
            FleetEvent::Started { task: id, number, job } => {
                self.update(&id, (number, job), Self::take_start);
            }
            FleetEvent::Fetched { task: id, commit } => self.update(&id, commit, Self::take_work),
            FleetEvent::FetchFailed { task: id, why, concerns } => {
                self.update(&id, (why, concerns), Self::fetch_failed);
            }
            FleetEvent::Gone { task: id, number, why } => {
                let reason = TaskReason::ProcessGone(why);
                let end = AttemptEnd::Failed { reason, needs_person: false };
                self.update(&id, end, |turn, id, task, end| {
                    turn.attempt_ended(id, task, number, end);
                });
            }
            FleetEvent::NotStarted { task: id, why } => self.update(&id, why, Self::not_started),
            FleetEvent::EndAsked { task: id, why } => self.end_asked(&id, why),
            FleetEvent::Landed(id, landed) => self.update(&id, landed, Self::take_landed),
            FleetEvent::Refused(id, refusal) => self.update(&id, refusal, Self::take_refusal),
            FleetEvent::LandingFailed { task: id, why, needs_person } => {
                self.update(&id, (why, needs_person), Self::landing_failed);
            }
            FleetEvent::Requested(target, request) => self.take_request(target, &request),
            FleetEvent::Trouble { of, why } => self.set_trouble(of, why),
            FleetEvent::Signal { times, is_hangup } => self.take_signal(times.max(1), is_hangup),
            FleetEvent::Tick => self.settle_tasks(),
        }
    }

    fn set_trouble(&mut self, of: &'static str, why: Option<String>) {
        let before = self.coordination.first_trouble().map(str::to_owned);
        match why {
            Some(why) => drop(self.coordination.troubles.insert(of, why)),
            None => drop(self.coordination.troubles.remove(of)),
        }
        match self.coordination.first_trouble() {
            Some(why) if before.as_deref() != Some(why) => {
                self.note(format!("{why}; it is tried again, and nothing starts until then"));
            }
            None if before.is_some() => self.note("it works again".to_owned()),
            _ => {}
        }
    }

    /// Applies a rule to a task and stores the task if the rule changed it. The fleet's record
    /// still contains the old task while the rule runs.
    pub(super) fn update<T>(
        &mut self,
        id: &TaskId,
        what: T,
        rule: impl FnOnce(&mut Self, &TaskId, &mut TaskRecord, T),
    ) {
        let Some(before) = self.record.task(id).cloned() else { return };
        let mut task = before.clone();
        rule(self, id, &mut task, what);
        if task != before {
            self.is_changed = true;
            self.record.tasks.insert(id.clone(), task);
        }
    }

    /// The ids of the tasks that satisfy `is_one`.
    pub(super) fn tasks_where(&self, is_one: fn(&TaskRecord) -> bool) -> Vec<TaskId> {
        let tasks = self.record.tasks.iter().filter(|(_, task)| is_one(task));
        tasks.map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn say(&mut self, line: FleetLine) {
        self.effects.push(Effect::Say(line));
    }

    pub(super) fn note(&mut self, text: String) {
        self.say(FleetLine::Note(text));
    }

    pub(super) fn end(&mut self, id: &TaskId, task: &mut TaskRecord, ending: TaskEnding) {
        task.set(TaskState::Ended(ending), self.now);
        self.say(FleetLine::Ended { task: id.clone() });
    }

    pub(super) fn pause_attempt(&mut self, id: &TaskId) {
        self.pass_request(id, FleetRequest::Task(TaskRequest::Pause { now: false }));
    }

    pub(super) fn pass_request(&mut self, id: &TaskId, request: FleetRequest) {
        match request {
            FleetRequest::Resume { .. } => self.continue_after_a_pause(id),
            FleetRequest::Task(_) => drop(self.coordination.to_continue.remove(id)),
            FleetRequest::Tell { .. } => {}
        }
        self.effects.push(Effect::Pass { task: id.clone(), request });
    }

    /// Makes a task continue once it reports the pause that ends its current iteration.
    pub(super) fn continue_after_a_pause(&mut self, id: &TaskId) {
        let done = self.coordination.reports.get(id).map_or(0, |report| report.carried.completed);
        self.coordination.to_continue.insert(id.clone(), done);
    }

    pub(super) fn task_file(&self, id: &TaskId) -> String {
        format!("{}/{id}.md", self.record.terms.folder)
    }

    pub(super) fn lands(&self) -> bool {
        self.record.terms.landing != LandingMode::No
    }

    fn take_start(&mut self, _: &TaskId, task: &mut TaskRecord, (number, job): (u32, String)) {
        if let TaskState::Running { job: known, .. } = &mut task.state
            && task.attempt == number
        {
            *known = job;
            self.coordination.backoffs.starts = Backoff::default();
        }
    }

    fn not_started(&mut self, id: &TaskId, task: &mut TaskRecord, why: String) {
        if !task.is_running() {
            return;
        }
        if self.coordination.stop.signals == 0 && self.record.request_of(id).is_none() {
            self.coordination.backoffs.starts.add_failure(self.now);
            self.note(format!("{id} could not start: {why}"));
        }
        match self.record.cancel_of(id) {
            Some(ending) => self.end(id, task, ending),
            None => task.set(TaskState::Waiting, self.now),
        }
        if self.coordination.backoffs.starts.times >= NOT_STARTED_MAX {
            self.coordination.stop.gave_up = Some(why);
        }
    }

    fn take_report(&mut self, id: &TaskId, task: &mut TaskRecord, report: AttemptReport) {
        if !task.is_running() || task.attempt != report.number {
            return;
        }
        let before = self.coordination.reports.insert(id.clone(), report.clone());
        if let (None, Some(done)) = (&before, self.coordination.to_continue.get_mut(id)) {
            *done = report.carried.completed;
        }
        let (rested, had_loop) =
            before.map_or((false, false), |report| (report.is_waiting(), report.has_loop()));
        let is_further = task.take_report(&report);
        // A short iteration, and its loop too, may be over before its start was read.
        if rested && !report.is_waiting() && (report.end.is_none() || is_further) {
            self.say(FleetLine::Resumes { task: id.clone() });
        }
        if is_further {
            let (iteration, of) = (report.carried.completed, task.text.max_iterations);
            let what = task.carried.last.clone();
            self.say(FleetLine::Iteration { task: id.clone(), iteration, of, what });
        }
        if let (false, AttemptPhase::Waiting { until, why }) = (rested, &report.phase) {
            let (until, why) = (*until, why.clone());
            self.say(FleetLine::Waits { task: id.clone(), until, why });
        }
        if report.has_loop() && !had_loop {
            self.loop_begins(id, task);
        }
        if let Some(end) = report.end {
            self.attempt_ended(id, task, report.number, end);
        }
    }

    /// Passes on requests that arrived before the loop began.
    fn loop_begins(&mut self, id: &TaskId, task: &mut TaskRecord) {
        (task.asked.accepts_test_changes, task.asked.is_resumed) = (false, false);
        let given = std::mem::take(&mut task.asked.given);
        for words in std::mem::take(&mut task.asked.messages).into_iter().skip(given) {
            self.pass_request(id, FleetRequest::Tell { words, by_agent: false });
        }
        if let Some(request) = self.record.request_of(id).cloned() {
            self.pass_request(id, FleetRequest::Task(request));
        } else if self.coordination.stop.signals > 0 && self.record.is_local() {
            self.pause_attempt(id);
        }
    }

    /// Applies the end of an attempt. A cancel ends the task, unless its work is completed and does
    /// not land. If the loop did not settle a refused landing, a person must.
    fn attempt_ended(&mut self, id: &TaskId, task: &mut TaskRecord, number: u32, end: AttemptEnd) {
        if !task.is_running() || task.attempt != number {
            return;
        }
        let report = self.coordination.reports.remove(id);
        let asked = self.record.request_of(id).cloned();
        let (cancel, is_signal) = (self.record.cancel_of(id), self.coordination.stop.signals > 0);
        // A start lifts every pause, even one found before the folder is read.
        let done = report.map_or(0, |report| report.carried.completed);
        // A pause that comes iterations later is a different one.
        let lifted = self.coordination.to_continue.remove(id).is_some_and(|then| done <= then + 1);
        let continues = lifted || !self.coordination.has_begun;
        let is_expected = continues || is_signal || asked.is_some();
        match (end, cancel, &task.refused.sent_back) {
            (AttemptEnd::Ended(ending), ..) if ending.is_completed() && !self.lands() => {
                self.end(id, task, ending);
            }
            (_, Some(cancelled), _) => self.end(id, task, cancelled),
            (AttemptEnd::Ended(ending), ..) if ending.is_completed() => task.land(ending, self.now),
            (AttemptEnd::Ended(ending), _, Some(refusal)) if !ending.is_cancelled() => {
                let unsettled = Unsettled::Loop(Box::new(ending.reason));
                let ending = refused_ending(refusal, Some(unsettled));
                self.end(id, task, ending);
            }
            (AttemptEnd::Ended(ending), ..) => self.end(id, task, ending),
            (AttemptEnd::Paused, ..) => {
                // If neither a request nor a signal paused the loop, a person paused it directly.
                if !is_expected {
                    task.asked.request = Some(TaskRequest::Pause { now: false });
                }
                task.set(TaskState::Waiting, self.now);
                self.say(FleetLine::Paused { task: id.clone() });
            }
            (AttemptEnd::Interrupted, ..) if is_expected => task.set(TaskState::Waiting, self.now),
            (AttemptEnd::Interrupted, ..) => {
                self.take_loss(id, task, TaskReason::Interrupted);
            }
            (AttemptEnd::Failed { reason, needs_person: true }, ..) => {
                self.end(id, task, TaskEnding::new(Outcome::Blocked, reason));
            }
            (AttemptEnd::Failed { reason, .. }, ..) => self.take_loss(id, task, reason),
        }
    }

    /// Lets a task wait again after its process disappeared or failed, or ends it after too many
    /// times in a row. It does not count if crew ended the process or never submitted it.
    fn take_loss(&mut self, id: &TaskId, task: &mut TaskRecord, reason: TaskReason) {
        let was_started = matches!(&task.state, TaskState::Running { job, .. } if !job.is_empty());
        let is_asked = self.coordination.stop.signals > 0 || self.record.request_of(id).is_some();
        task.gone += u32::from(was_started && !is_asked);
        if task.gone >= GONE_MAX {
            let reason = TaskReason::Repeated { times: GONE_MAX, last: Box::new(reason) };
            return self.end(id, task, TaskEnding::new(Outcome::Error, reason));
        }
        task.set(TaskState::Waiting, self.now);
        self.say(FleetLine::Gone { task: id.clone(), why: reason.to_string() });
    }

    /// Records that a landing has ended. Returns the loop's ending if the task was still landing.
    fn landing_over(&mut self, id: &TaskId, task: &TaskRecord) -> Option<TaskEnding> {
        self.coordination.landing.take_if(|landing| landing == id);
        task.landing().cloned()
    }

    fn take_landed(&mut self, id: &TaskId, task: &mut TaskRecord, landed: Landed) {
        let Some(ending) = self.landing_over(id, task) else { return };
        self.coordination.backoffs.landings = Backoff::default();
        if matches!(landed, Landed::Main(_)) {
            self.effects.push(Effect::Remove { task: id.clone() });
        }
        self.end(id, task, TaskEnding { landed: Some(landed), ..ending });
    }

    /// Applies a refusal: the task goes back to its loop once, if an iteration is left to settle
    /// it. A cancel ends the task.
    fn take_refusal(&mut self, id: &TaskId, task: &mut TaskRecord, refusal: Refusal) {
        let Some(TaskEnding { proof, .. }) = self.landing_over(id, task) else { return };
        self.coordination.backoffs.landings = Backoff::default();
        if let Some(cancelled) = self.record.cancel_of(id) {
            return self.end(id, task, cancelled);
        }
        let described = self.coordination.described_task(id);
        let limit = described.and_then(|one| task.spent_limit(&one.contract.limits));
        let mut unsettled = None;
        if refusal.can_be_settled() && task.refused.sent_back.is_none() {
            let Some(limit) = limit else {
                let why = refusal.full_reason();
                task.send_back(refusal, self.now);
                return self.say(FleetLine::SentBack { task: id.clone(), why });
            };
            let resume = format!("crew resume {}", self.record.full_name(id));
            unsettled = Some(Unsettled::LimitUsedUp { limit: limit.to_owned(), resume });
        }
        // Keep the loop's proof: only the landing remains to be done.
        let ending = refused_ending(&refusal, unsettled);
        task.refused.sent_back = Some(refusal);
        self.end(id, task, TaskEnding { proof, ..ending });
    }

    /// Retries a failed landing later, unless that is useless.
    fn landing_failed(&mut self, id: &TaskId, task: &mut TaskRecord, failure: (String, bool)) {
        let (why, is_final) = failure;
        let Some(TaskEnding { proof, .. }) = self.landing_over(id, task) else { return };
        if let Some(cancelled) = self.record.cancel_of(id) {
            return self.end(id, task, cancelled);
        }
        self.coordination.backoffs.landings.add_failure(self.now);
        if !is_final && self.coordination.backoffs.landings.times < LANDING_FAILURES_MAX {
            return self.note(format!("{id} could not land: {why}; it is tried again"));
        }
        self.coordination.backoffs.landings = Backoff::default();
        let outcome = if is_final { Outcome::Blocked } else { Outcome::Error };
        let ending = TaskEnding::new(outcome, TaskReason::NotLanded(why));
        self.end(id, task, TaskEnding { proof, ..ending });
    }

    /// Decides what starts, lands and is fetched now.
    fn settle_tasks(&mut self) {
        self.end_again();
        let mut is_finished = self.coordination.stop.signals > 0;
        if self.coordination.has_begun {
            self.fetch_all();
            self.land_next();
            let plan = plan::plan_starts(self.record, self.coordination, self.now);
            for start in &plan.starts {
                self.update(&start.task, start, Self::start_task);
            }
            for (id, waits) in &plan.waits {
                self.note_wait(id, waits);
            }
            is_finished = self.is_finished(&plan);
        }
        if is_finished {
            self.effects.push(Effect::Finish);
        }
    }

    fn note_wait(&mut self, id: &TaskId, waits: &WaitsFor) {
        let waiting = self.record.tasks.get_mut(id).filter(|task| task.is_waiting());
        if let Some(task) = waiting.filter(|task| task.waits.as_ref() != Some(waits)) {
            task.waits = Some(waits.clone());
            self.is_changed = true;
        }
    }

    /// Fetches all work that was reported and not fetched yet. Work that was only in a clone that
    /// is gone is lost: the task continues from the last commit fetched.
    fn fetch_all(&mut self) {
        if self.coordination.backoffs.fetch_pause.is_active(self.now) {
            return;
        }
        let those = self.tasks_where(|task| !task.is_fetched());
        if those.is_empty() {
            self.set_trouble(FETCH, None);
        }
        for id in those {
            let Coordination { fetching, backoffs, troubles, clones, .. } = &*self.coordination;
            // If all of them may fail, one fetch is enough to find out.
            let is_enough = troubles.contains_key(FETCH) && !fetching.is_empty();
            let is_held = backoffs.fetches.get(&id).is_some_and(|tries| tries.is_active(self.now));
            if is_enough || is_held || fetching.contains_key(&id) {
                continue;
            }
            let can_be_fetched = !self.record.is_local() || clones.contains(&id);
            self.update(&id, can_be_fetched, Self::fetch_work);
        }
    }

    fn fetch_work(&mut self, id: &TaskId, task: &mut TaskRecord, can_be_fetched: bool) {
        if can_be_fetched || task.work.tip == task.work.commit {
            self.coordination.fetching.insert(id.clone(), task.work.tip.clone());
            return self.effects.push(Effect::Fetch { task: id.clone() });
        }
        self.note(format!("{id}: its clone is gone, with the commits that were not fetched"));
        task.work.tip.clone_from(&task.work.commit);
        let ending =
            task.landing().or_else(|| task.ending().filter(|ending| ending.landed.is_none()));
        if ending.is_some_and(TaskEnding::is_completed) {
            task.refused.begins_anew = true;
            task.set(TaskState::Waiting, self.now);
        }
    }

    /// Applies a fetched commit. Commits beyond those reported are accepted, except after a
    /// completed loop, whose checks have not seen them.
    fn take_work(&mut self, id: &TaskId, task: &mut TaskRecord, commit: String) {
        self.set_trouble(FETCH, None);
        let asked = self.coordination.fetching.remove(id).flatten();
        let is_of_now = asked == task.work.tip;
        let is_proved =
            task.landing().is_some() || task.ending().is_some_and(TaskEnding::is_completed);
        if is_proved && is_of_now && asked.is_some_and(|asked| asked != commit) {
            let why = "its branch moved after its loop".to_owned();
            return self.fetch_failed(id, task, (why, FetchConcern::Task));
        }
        self.coordination.backoffs.fetches.remove(id);
        if is_of_now && !is_proved {
            task.work.tip = Some(commit.clone());
        }
        (task.work.commit, task.work.needs_push) = (Some(commit), false);
    }

    /// Applies a failed fetch. A fault of one clone concerns only its task: it is retried, and
    /// finally ends the task. An attempt running there may still correct it. A push that the remote
    /// refuses is retried until it succeeds or the task is cancelled.
    fn fetch_failed(
        &mut self,
        id: &TaskId,
        task: &mut TaskRecord,
        (why, concerns): (String, FetchConcern),
    ) {
        self.coordination.fetching.remove(id);
        if concerns == FetchConcern::All {
            self.coordination.backoffs.fetch_pause = Backoff::default();
            self.coordination.backoffs.fetch_pause.add_failure(self.now);
            return self.set_trouble(FETCH, Some(format!("{id} cannot be fetched: {why}")));
        }
        let tries = self.coordination.backoffs.fetches.entry(id.clone()).or_default();
        tries.add_failure(self.now);
        let times = tries.times;
        let is_refused = concerns == FetchConcern::Rules;
        if times == 1 {
            let what = if is_refused { "pushed" } else { "fetched" };
            self.note(format!("{id} cannot be {what}: {why}; it is tried again"));
        }
        let is_cancelled = task.ending().is_some_and(TaskEnding::is_cancelled)
            || self.record.request.as_ref().is_some_and(TaskRequest::is_cancel);
        let is_enough = if is_refused { is_cancelled } else { times >= FETCH_FAILURES_MAX };
        if !is_enough || task.is_running() {
            return;
        }
        self.coordination.backoffs.fetches.remove(id);
        task.work.tip.clone_from(&task.work.commit);
        task.work.needs_push = false;
        if !is_cancelled {
            let reason = TaskReason::Unfetchable(why);
            self.end(id, task, TaskEnding::new(Outcome::Blocked, reason));
        }
    }

    /// Starts landing the task that was completed first.
    fn land_next(&mut self) {
        let Coordination { troubles, stop, landing, backoffs, .. } = &*self.coordination;
        let is_held = stop.signals > 0 || backoffs.landings.is_active(self.now);
        if !troubles.is_empty() || landing.is_some() || is_held {
            return;
        }
        let open = self.record.tasks.iter().filter(|(id, task)| {
            let is_open = task.landing().is_some() && self.record.request_of(id).is_none();
            is_open && task.is_fetched() && self.coordination.described_task(id).is_some()
        });
        let next = open.min_by_key(|(_, task)| task.at).map(|(id, _)| id.clone());
        let Some(task) = next else { return };
        self.coordination.landing = Some(task.clone());
        // The record must say so before anything lands.
        self.is_changed = true;
        self.say(FleetLine::Lands { task: task.clone() });
        self.effects.push(match self.record.terms.landing {
            LandingMode::Pr => Effect::OpenPull { task },
            LandingMode::Main | LandingMode::No => Effect::Land { task },
        });
    }

    fn start_task(&mut self, id: &TaskId, task: &mut TaskRecord, start: &Start) {
        let Start { reserved_micros, continues, .. } = *start;
        let Some(described) = self.coordination.described_task(id) else { return };
        task.set(TaskState::Running { job: String::new(), since: self.now }, self.now);
        task.reserved_micros = reserved_micros;
        task.text.revision.clone_from(&described.task.revision);
        task.text.agents = described.agent_names();
        task.text.max_iterations = described.contract.limits.max_iterations;
        task.refused.begins_anew = false;
        task.asked.given = task.asked.messages.len();
        if !continues {
            if self.record.is_local() && task.attempt > 0 && !self.coordination.clones.contains(id)
            {
                self.note(format!(
                    "{id}: its last clone is not here, and what was not committed in it is lost"
                ));
            }
            task.attempt += 1;
            (task.loop_id, task.asked.is_resumed) = (None, false);
            task.refused.land_checks = match task.refused.sent_back {
                Some(_) => self.record.terms.land_checks.clone(),
                None => Vec::new(),
            };
        }
        if self.record.is_local() {
            self.coordination.clones.insert(id.clone());
        }
        let (task, number) = (id.clone(), task.attempt);
        self.say(FleetLine::Started { task: task.clone(), number, continues });
        self.effects.push(Effect::Start { task, number, continues });
    }

    /// Whether nothing runs, and nothing would start or land without a person.
    fn is_finished(&self, plan: &FleetPlan) -> bool {
        let Coordination { stop, landing, troubles, backoffs, .. } = &*self.coordination;
        let mut tasks = self.record.tasks.iter();
        let runs = self.record.tasks.values().any(TaskRecord::is_running);
        if landing.is_some() || (runs && (self.record.is_local() || !stop.is_hangup)) {
            return false;
        }
        // Another machine may continue the fleet, and has only what was fetched. Failed fetches are
        // not waited for.
        let is_over =
            tasks.clone().all(|(id, task)| task.is_fetched() || backoffs.fetches.contains_key(id));
        if stop.signals == 1 && troubles.is_empty() && !is_over {
            return false;
        }
        let is_open = tasks.any(|(id, task)| {
            if task.landing().is_none() {
                return !task.is_fetched();
            }
            self.record.request_of(id).is_none() && self.coordination.described_task(id).is_some()
        });
        let is_temporary = plan.waits.values().any(WaitsFor::ends_by_itself);
        stop.signals > 0 || stop.gave_up.is_some() || !(is_temporary || is_open)
    }
}

/// The ending of a task whose landing was refused. The record already contains the check's output.
fn refused_ending(refusal: &Refusal, unsettled: Option<Unsettled>) -> TaskEnding {
    let refusal = refusal.without_output();
    TaskEnding::new(Outcome::Blocked, TaskReason::Refused { refusal, unsettled })
}

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod requests_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
