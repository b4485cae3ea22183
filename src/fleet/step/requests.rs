//! The effects of what users do: task files, requests (a pause, a cancel, another try, a message)
//! and signals. A cancelled task stays cancelled until it is resumed, and no agent works on a
//! completed task again.

use std::collections::BTreeMap;

use crate::fleet::plan::lacks_a_share;
use crate::fleet::record::{
    Landed, MESSAGES_MAX, TaskEndKind, TaskEnding, TaskReason, TaskRecord, TaskRequest, TaskState,
};
use crate::fleet::spec::AttemptReport;
use crate::fleet::step::{DescribedTask, Effect, FleetLine, FleetRequest, Turn};
use engine::failure::Failure;
use engine::fleet::{LandingMode, TaskId};
use engine::record::Outcome;
use engine::text::join_first_names;

/// The notes after a first signal, for jobs here, for jobs elsewhere, and if the terminal was
/// closed; then after a second signal.
const SIGNALLED: [&str; 4] = [
    "no more tasks start, and each iteration that runs is the last one; Ctrl-C again ends them now",
    "no more tasks start, and the jobs run on; Ctrl-C again ends them, a closed terminal leaves them",
    "the terminal was closed: the jobs run on, and crew fleet run adopts them",
    "each agent is stopped, its work is kept, and the task waits",
];

/// The maximum number of tasks that a note names.
const NAMED_MAX: usize = 5;

/// The prefix of an agent's message.
const BY_AGENT: &str = "(an agent says, unchecked) ";

impl Turn<'_> {
    /// Applies the folder as it is now: new tasks, changed tasks, and tasks whose file is gone.
    pub(super) fn take_described(&mut self, mut tasks: Vec<DescribedTask>) {
        tasks.sort_by(|one, other| one.task.compare_turn(&other.task));
        let is_start = !std::mem::replace(&mut self.coordination.has_begun, true);
        let before = std::mem::replace(&mut self.coordination.described, tasks);
        let before = before.into_iter().map(|one| (one.task.id, one.task.revision));
        let before: BTreeMap<TaskId, String> = before.collect();
        for DescribedTask { task, contract } in &self.coordination.described {
            if !self.record.tasks.contains_key(&task.id) {
                let limit = contract.limits.max_iterations;
                let record = TaskRecord::new(&task.revision, limit, self.now);
                self.record.tasks.insert(task.id.clone(), record);
                self.is_changed = true;
            }
        }
        let mut changes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for id in self.tasks_where(|_| true) {
            let revision =
                self.coordination.described_task(&id).map(|one| one.task.revision.clone());
            if before.get(&id).is_none_or(|before| Some(before) != revision.as_ref())
                && let Some(text) = self.note_of_change(&id, revision.as_ref())
            {
                changes.entry(text).or_default().push(id.to_string());
            }
            match before.get(&id) {
                _ if is_start => self.update(&id, revision.as_ref(), Self::begin_task),
                Some(_) if revision.is_none() => {
                    self.note(format!("{}: the file is gone", self.task_file(&id)));
                }
                _ => {}
            }
        }
        for (text, ids) in changes {
            self.note(format!(
                "{}: the file has changed, but {text}",
                join_first_names(&ids, NAMED_MAX)
            ));
        }
        for id in self.tasks_where(TaskRecord::is_running) {
            let lacks = self.record.task(&id).is_some_and(|task| lacks_a_share(self.record, task));
            if lacks && self.record.request_of(&id).is_none() {
                self.pause_attempt(&id);
                self.continue_after_a_pause(&id);
            }
        }
    }

    /// Continues a task of an earlier start. Adopts a running attempt and lifts its pause. A cancel
    /// during a landing ends the task. Completed work lands if the fleet now lands, on the base
    /// even from a pull request. A task whose file is gone ends unless it is done.
    fn begin_task(&mut self, id: &TaskId, task: &mut TaskRecord, revision: Option<&String>) {
        let (lands, is_gone) = (self.lands(), revision.is_none());
        let given_up = TaskEnding::new(Outcome::Cancelled, TaskReason::FileGone);
        match (task.state.clone(), self.record.cancel_of(id)) {
            (TaskState::Running { .. }, cancel) => {
                self.say(FleetLine::Adopted { task: id.clone() });
                let is_now = self.record.request_of(id).is_some_and(TaskRequest::is_now);
                if cancel.is_none() {
                    self.pass_request(id, FleetRequest::Resume { accepts_test_changes: false });
                } else if is_now && !self.record.is_local() {
                    // The executor may not have accepted that before.
                    self.effects.push(Effect::End { task: id.clone() });
                }
                if is_gone {
                    let named = self.record.full_name(id);
                    self.note(format!("{id} runs without its file; crew cancel {named} ends it"));
                }
            }
            (TaskState::Ended(ending), _) if ending.is_completed() => {
                let is_landed = match self.record.terms.landing {
                    LandingMode::Main => matches!(ending.landed, Some(Landed::Main(_))),
                    LandingMode::Pr => ending.landed.is_some(),
                    LandingMode::No => true,
                };
                if matches!(ending.landed, Some(Landed::Main(_)))
                    && self.coordination.clones.contains(id)
                {
                    self.effects.push(Effect::Remove { task: id.clone() });
                } else if !is_landed && !is_gone {
                    task.land(ending, self.now);
                    self.note(format!("{id} is completed, and lands now"));
                }
            }
            (TaskState::Ended(ending), _) if ending.is_cancelled() => {}
            (TaskState::Waiting | TaskState::Landing(_), Some(cancelled)) => {
                self.end(id, task, cancelled);
            }
            (TaskState::Landing(ending), _) if !lands => self.end(id, task, ending),
            (TaskState::Landing(_), _) if is_gone => {
                let named = self.record.full_name(id);
                self.note(format!(
                    "{id} is completed and lands once its file is back; crew cancel {named} ends it"
                ));
            }
            _ if is_gone => self.end(id, task, given_up),
            _ => {}
        }
    }

    /// Reports what a changed file means for the task, unless the task simply starts with it.
    fn note_of_change(&self, id: &TaskId, revision: Option<&String>) -> Option<&'static str> {
        let task = self.record.task(id)?;
        if revision.is_none_or(|revision| *revision == task.text.revision) {
            return None;
        }
        match &task.state {
            TaskState::Running { .. } => Some("the task runs, and its next start reads it"),
            TaskState::Ended(it) if it.is_completed() => {
                Some("the task is completed; another name for the file makes a new one")
            }
            TaskState::Ended(_) => Some("the task has ended; crew resume applies it"),
            TaskState::Waiting | TaskState::Landing(_) => None,
        }
    }

    /// Applies a signal. After the first, nothing new starts; the second ends what runs.
    pub(super) fn take_signal(&mut self, times: u32, is_hangup: bool) {
        self.coordination.stop.is_hangup |= is_hangup;
        if times <= self.coordination.stop.signals {
            return;
        }
        self.coordination.stop.signals = times;
        let is_local = self.record.is_local();
        let words = match (times, is_local, is_hangup) {
            (1, true, _) => SIGNALLED[0],
            (1, false, false) => SIGNALLED[1],
            (1, false, true) => SIGNALLED[2],
            _ => SIGNALLED[3],
        };
        self.note(words.to_owned());
        let running = self.tasks_where(TaskRecord::is_running);
        if times > 1 {
            let ended = running.into_iter().chain(self.coordination.landing.clone());
            self.effects.extend(ended.map(|task| Effect::End { task }));
        } else if is_local {
            for id in &running {
                self.pause_attempt(id);
            }
        }
    }

    /// Records whether the executor accepted a request to end a job, which is repeated until it
    /// does.
    pub(super) fn end_asked(&mut self, id: &TaskId, why: Option<String>) {
        let Some(why) = why else {
            self.coordination.backoffs.ends.remove(id);
            return;
        };
        let tries = self.coordination.backoffs.ends.entry(id.clone()).or_default();
        tries.add_failure(self.now);
        if tries.times == 1 {
            self.note(format!("{id} could not be ended, and that is tried again: {why}"));
        }
    }

    /// Repeats the requests to end running jobs, unless a resume has lifted them.
    pub(super) fn end_again(&mut self) {
        let Self { record, coordination, .. } = self;
        coordination.backoffs.ends.retain(|id, _| {
            let is_asked = coordination.stop.signals > 1
                || record.request_of(id).is_some_and(TaskRequest::is_now);
            is_asked && record.task(id).is_some_and(TaskRecord::is_running)
        });
        let due = coordination.backoffs.ends.iter().filter(|(_, tries)| !tries.is_active(self.now));
        self.effects.extend(due.map(|(id, _)| Effect::End { task: id.clone() }));
    }

    /// Applies a request for one task, or for all of them.
    pub(super) fn take_request(&mut self, target: Option<TaskId>, request: &FleetRequest) {
        let is_alone = target.is_some();
        if let Some(id) = target.as_ref().filter(|id| self.record.task(id).is_none()) {
            return self.note(format!("the fleet has no task {id}"));
        }
        match request {
            FleetRequest::Task(request) if !is_alone => self.ask_all(request),
            FleetRequest::Resume { .. } => self.lift_stop(is_alone),
            FleetRequest::Task(_) | FleetRequest::Tell { .. } => {}
        }
        for id in target.map_or_else(|| self.tasks_where(|_| true), |id| vec![id]) {
            self.update(&id, request, |turn, id, task, request| match request {
                FleetRequest::Task(request) => turn.stop_task(id, task, request, is_alone),
                FleetRequest::Resume { accepts_test_changes: accepts } => {
                    turn.resume_task(id, task, *accepts, is_alone);
                }
                FleetRequest::Tell { words, by_agent: true } => {
                    turn.pass_message(id, task, format!("{BY_AGENT}{words}"), is_alone);
                }
                FleetRequest::Tell { words, .. } => {
                    turn.pass_message(id, task, words.clone(), is_alone);
                }
            });
        }
    }

    /// Keeps a request for all tasks, including those added later.
    fn ask_all(&mut self, request: &TaskRequest) {
        request.replace_request(&mut self.record.request);
        self.is_changed = true;
    }

    /// Lifts a request for all tasks; if only one task is resumed, the others keep it.
    fn lift_stop(&mut self, is_alone: bool) {
        let Some(request) = self.record.request.take() else { return };
        self.is_changed = true;
        if is_alone {
            for task in self.record.tasks.values_mut().filter(|task| task.ending().is_none()) {
                task.asked.request.get_or_insert_with(|| request.clone());
            }
        }
    }

    /// Pauses or cancels one task. A pause of all tasks is not stored in each task.
    fn stop_task(
        &mut self,
        id: &TaskId,
        task: &mut TaskRecord,
        asked: &TaskRequest,
        is_alone: bool,
    ) {
        if task.asked.request.as_ref().is_some_and(TaskRequest::is_cancel) && !asked.is_cancel() {
            return;
        }
        let is_landing = self.coordination.landing.as_ref() == Some(id);
        match (&task.state, asked.ending()) {
            (TaskState::Ended(found), Some(ending)) => {
                let is_by_agent = matches!(asked, TaskRequest::Cancel { by_agent: true, .. });
                let is_kept = found.is_cancelled() || matches!(found.landed, Some(Landed::Main(_)));
                // Completed work is given up only by a person who names the task.
                if is_alone && !is_kept && !is_by_agent {
                    self.end(id, task, ending);
                }
                return;
            }
            (TaskState::Ended(_), None) => return,
            (TaskState::Running { .. }, _) => {
                self.pass_request(id, FleetRequest::Task(asked.clone()));
                if asked.is_now() && !self.record.is_local() {
                    self.effects.push(Effect::End { task: id.clone() });
                }
            }
            (TaskState::Landing(_), Some(_)) if is_landing => {
                self.effects.push(Effect::End { task: id.clone() });
            }
            (_, Some(ending)) => return self.end(id, task, ending),
            (_, None) => {}
        }
        if is_alone || asked.is_cancel() {
            task.asked.request = Some(asked.clone());
        }
    }

    /// Lifts a pause, or retries a task that ended without being completed.
    fn resume_task(&mut self, id: &TaskId, task: &mut TaskRecord, accepts: bool, is_alone: bool) {
        if let TaskState::Ended(ending) = task.state.clone() {
            match self.refusal_to_try(id, task, accepts) {
                Some((why, is_limit)) if is_alone || is_limit => self.note(why),
                Some(_) => {}
                None => self.try_again(id, task, ending, accepts),
            }
        } else if task.asked.request.as_ref().is_some_and(TaskRequest::is_cancel) {
            self.note(format!("{id} is being cancelled: resume it after that"));
        } else {
            task.asked.request = None;
            if task.is_running() {
                self.pass_request(id, FleetRequest::Resume { accepts_test_changes: false });
            }
        }
    }

    /// Retries an ended task. Completed work only lands, unless its file has changed since.
    fn try_again(&self, id: &TaskId, task: &mut TaskRecord, ending: TaskEnding, accepts: bool) {
        let is_same = self
            .coordination
            .described_task(id)
            .is_some_and(|one| one.task.revision == task.text.revision);
        let (is_proved, lands) = (ending.proof.is_some(), is_same && self.lands());
        task.try_again(accepts);
        if !is_proved || lands {
            task.refused.sent_back = None;
        }
        if is_proved && lands {
            task.land(ending, self.now);
        } else {
            task.set(TaskState::Waiting, self.now);
        }
    }

    /// Why an ended task is not retried, and whether that is a used-up limit: its loop would only
    /// report the limit, and the reason for its end would be lost. Only proven work needs no loop.
    fn refusal_to_try(
        &self,
        id: &TaskId,
        task: &TaskRecord,
        accepts: bool,
    ) -> Option<(String, bool)> {
        let ending = task.ending()?;
        let file = self.task_file(id);
        if ending.is_completed() {
            let why = format!("{id} is completed: what is still to do is a task of its own");
            return Some((why, false));
        }
        let Some(described) = self.coordination.described_task(id) else {
            return Some((format!("{id} is not tried again: {file} is missing"), false));
        };
        if accepts && ending.reason.kind() != TaskEndKind::TestChanges {
            return Some((format!("{id} is not blocked by a change of its tests"), false));
        }
        if ending.proof.is_some() {
            return None;
        }
        let limit = task.spent_limit(&described.contract.limits)?;
        let stays = ending.outcome.label();
        let hint =
            format!("raise {limit} in {file}, or under [task] in fleet.toml, then resume it");
        let cause = format!("{id} stays {stays}: its {limit} is used up");
        Some((Failure::new(cause, hint).in_a_line(), true))
    }

    /// Keeps a message until a loop accepts it. A message for all tasks goes to open tasks and to
    /// those that asked a person.
    fn pass_message(&mut self, id: &TaskId, task: &mut TaskRecord, words: String, is_alone: bool) {
        let has_loop = self.coordination.reports.get(id).is_some_and(AttemptReport::has_loop);
        match task.ending().map(|ending| ending.outcome) {
            Some(outcome @ (Outcome::Completed | Outcome::Cancelled)) if is_alone => {
                self.note(format!("{id} is {}, so no agent reads the message", outcome.label()));
            }
            Some(outcome) if !is_alone && outcome != Outcome::Blocked => {}
            None if has_loop => {
                self.pass_request(id, FleetRequest::Tell { words, by_agent: false });
            }
            _ if task.asked.messages.len() >= MESSAGES_MAX => {
                self.note(format!(
                    "{id} did not get the message: {MESSAGES_MAX} messages wait for it"
                ));
            }
            _ => task.asked.messages.push(words),
        }
    }
}
