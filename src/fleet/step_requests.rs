//! What follows from a request: a pause, a cancel, another try, a message, a signal. What is
//! cancelled stays so until it is resumed, and what is completed is never worked on again.

use super::record::{
    EndReason, Landed, MESSAGES_MAX, TaskEnding, TaskRecord, TaskRequest, TaskState,
};
use super::spec::DescribedTask;
use super::step::{Effect, FleetRequest, Turn};
use crate::engine::fleet::{LandingMode, TaskId};
use crate::engine::record::Outcome;

impl Turn<'_> {
    /// Takes in a signal. The first starts nothing more, the second ends what runs.
    pub(super) fn signalled(&mut self, times: u32, is_hangup: bool) {
        self.known.is_hangup |= is_hangup;
        if times.max(1) <= self.known.signals {
            return;
        }
        self.known.signals = times.max(1);
        let runs = |(id, task): (&TaskId, &TaskRecord)| task.is_running().then(|| id.clone());
        let running: Vec<TaskId> = self.record.tasks.iter().filter_map(runs).collect();
        let is_local = self.record.is_local();
        let words = match (times, is_local) {
            (0 | 1, true) => SIGNALLED[0],
            (0 | 1, false) => SIGNALLED[if is_hangup { 2 } else { 1 }],
            _ => SIGNALLED[3],
        };
        self.note(words.to_owned());
        let landing = self.known.landing.clone();
        if times > 1 {
            let ended = running.into_iter().chain(landing);
            self.effects.extend(ended.map(|task| Effect::End { task }));
        } else if is_local {
            running.iter().for_each(|id| self.pause(id));
        }
    }

    /// Takes in a request for one task, or for all of them.
    pub(super) fn requested(&mut self, target: Option<TaskId>, request: FleetRequest) {
        let is_alone = target.is_some();
        let ids: Vec<TaskId> = match target {
            Some(id) if self.record.task(&id).is_none() => {
                return self.note(format!("there is no task {id}"));
            }
            Some(id) => vec![id],
            None => self.record.tasks.keys().cloned().collect(),
        };
        match request {
            FleetRequest::Task(request) => {
                if !is_alone {
                    self.ask_all(&request);
                }
                ids.iter().for_each(|id| self.stop(id, &request, is_alone));
            }
            FleetRequest::Resume { accepts_test_changes } => {
                self.lift(is_alone);
                ids.iter().for_each(|id| self.resume(id, accepts_test_changes, is_alone));
            }
            FleetRequest::Tell { words, by_agent } => {
                let words = if by_agent { format!("{BY_AGENT}{words}") } else { words };
                ids.iter().for_each(|id| self.tell(id, &words, is_alone));
            }
        }
    }

    /// Keeps a request for all tasks, also for those that are new later.
    fn ask_all(&mut self, request: &TaskRequest) {
        let is_cancelled = self.record.request.as_ref().is_some_and(is_cancel);
        if !is_cancelled || is_cancel(request) {
            self.record.request = Some(request.clone());
            self.is_changed = true;
        }
    }

    /// Lifts a request for all tasks; where one task alone is resumed, the others keep it.
    fn lift(&mut self, is_alone: bool) {
        let Some(request) = self.record.request.take() else { return };
        self.is_changed = true;
        if is_alone {
            for task in self.record.tasks.values_mut().filter(|task| task.ending().is_none()) {
                task.request.get_or_insert_with(|| request.clone());
            }
        }
    }

    /// A pause or a cancel of one task. A pause of all tasks is not noted in each.
    fn stop(&mut self, id: &TaskId, request: &TaskRequest, is_alone: bool) {
        let Some(task) = self.record.task(id) else { return };
        if task.request.as_ref().is_some_and(is_cancel) && !is_cancel(request) {
            return;
        }
        let ending = request.ending();
        let is_landing = self.known.landing.as_ref() == Some(id);
        match (&task.state, ending) {
            (TaskState::Ended(found), Some(ending)) => {
                let is_kept = found.outcome == Outcome::Cancelled
                    || matches!(found.landed, Some(Landed::Main(_)));
                // Completed work that shall not land is given up by its name, and not by an agent.
                if is_alone
                    && !is_kept
                    && ending.reason == EndReason::Person
                    && !is_by_agent(request)
                {
                    self.end(id, ending);
                }
            }
            (TaskState::Ended(_), None) => {}
            (TaskState::Running { .. }, _) => {
                self.keep_request(id, request, is_alone);
                self.pass(id, FleetRequest::Task(request.clone()));
                if request.is_now() && !self.record.is_local() {
                    self.effects.push(Effect::End { task: id.clone() });
                }
            }
            (TaskState::Landing { .. }, Some(_)) if is_landing => {
                self.keep_request(id, request, is_alone);
                self.effects.push(Effect::End { task: id.clone() });
            }
            (TaskState::Waiting | TaskState::Landing { .. }, Some(ending)) => self.end(id, ending),
            (TaskState::Waiting | TaskState::Landing { .. }, None) => {
                self.keep_request(id, request, is_alone);
            }
        }
    }

    fn keep_request(&mut self, id: &TaskId, request: &TaskRequest, is_alone: bool) {
        if (is_alone || is_cancel(request))
            && let Some(task) = self.change(id)
        {
            task.request = Some(request.clone());
        }
    }

    /// Lifts a pause, or tries a task again that ended without being completed.
    fn resume(&mut self, id: &TaskId, accepts: bool, is_alone: bool) {
        let Some(task) = self.record.task(id) else { return };
        let is_cancelled = task.request.as_ref().is_some_and(is_cancel);
        match task.state.clone() {
            TaskState::Ended(ending) => self.try_again(id, &ending, accepts, is_alone),
            _ if is_cancelled => {
                self.note(format!("{id} is being cancelled: resume it after that"))
            }
            state => {
                if let Some(task) = self.change(id) {
                    task.request = None;
                }
                if matches!(state, TaskState::Running { .. }) {
                    self.pass(id, FleetRequest::Resume { accepts_test_changes: false });
                }
            }
        }
    }

    /// What is left of completed work is to land, unless its text has changed since.
    fn try_again(&mut self, id: &TaskId, ending: &TaskEnding, accepts: bool, is_alone: bool) {
        if let Some(why) = self.refusal_to_try(id, ending, accepts) {
            if is_alone || ending.outcome == Outcome::Exhausted {
                self.note(why);
            }
            return;
        }
        let lands = self.record.terms.landing != LandingMode::No;
        let revision = self.known.described(id).map(|it| it.task.revision.clone());
        let Some(task) = self.change(id) else { return };
        let is_same = revision.as_ref() == Some(&task.revision);
        task.try_again(accepts);
        if ending.proof.is_none() {
            task.sent_back = None;
        } else if is_same && lands {
            task.sent_back = None;
            return self.land_now(id, ending);
        }
        self.wait(id);
    }

    /// Why a task that ended is not tried again.
    fn refusal_to_try(&self, id: &TaskId, ending: &TaskEnding, accepts: bool) -> Option<String> {
        let file = self.file(id);
        if ending.outcome == Outcome::Completed {
            return Some(format!("{id} is completed: what is still to do is a task of its own"));
        }
        let Some(DescribedTask { contract, .. }) = self.known.described(id) else {
            return Some(format!("{id} is not tried again: there is no {file}"));
        };
        if accepts && ending.reason != EndReason::TestChanges {
            return Some(format!("{id} is not blocked by a change of its tests"));
        }
        let limit = self.record.task(id)?.spent_limit(&contract.limits);
        let limit = limit.filter(|_| ending.outcome == Outcome::Exhausted)?;
        Some(format!(
            "{id} stays exhausted: its {limit} is used up\n\
             hint: raise {limit} in {file}, or under [task] in fleet.toml, then resume it"
        ))
    }

    /// Keeps a message until a loop takes it. One for all tasks is for those that are open, and for
    /// those that asked a person.
    fn tell(&mut self, id: &TaskId, words: &str, is_alone: bool) {
        let has_loop = self.known.reports.get(id).is_some_and(|report| report.has_loop());
        let Some(task) = self.record.task(id) else { return };
        let is_full = task.messages.len() >= MESSAGES_MAX;
        match task.ending().map(|ending| ending.outcome) {
            Some(outcome @ (Outcome::Completed | Outcome::Cancelled)) => {
                if is_alone {
                    self.note(format!("{id} is {}, so nobody reads that", outcome.label()));
                }
            }
            Some(outcome) if !is_alone && outcome != Outcome::Blocked => {}
            None if has_loop => {
                let words = words.to_owned();
                self.pass(id, FleetRequest::Tell { words, by_agent: false });
            }
            _ if is_full => {
                self.note(format!("{id} does not get that: {MESSAGES_MAX} messages wait for it"));
            }
            _ => {
                if let Some(task) = self.change(id) {
                    task.messages.push(words.to_owned());
                }
            }
        }
    }
}

/// What is said after a signal: here, for jobs elsewhere, to a terminal that is closed, and then.
const SIGNALLED: [&str; 4] = [
    "no task starts any more, and each iteration that runs is the last one; Ctrl-C again ends them now",
    "no task starts any more, and the jobs run on; Ctrl-C again ends them, a closed terminal leaves them",
    "the terminal was closed: the jobs run on, and crew fleet run adopts them",
    "each agent is stopped, its work is kept, and the task waits",
];

/// What stands before the words of an agent.
const BY_AGENT: &str = "(an agent says, unchecked) ";

fn is_cancel(request: &TaskRequest) -> bool {
    matches!(request, TaskRequest::Cancel { .. })
}

fn is_by_agent(request: &TaskRequest) -> bool {
    matches!(request, TaskRequest::Cancel { by_agent: true, .. })
}
