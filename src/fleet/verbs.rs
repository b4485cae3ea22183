//! Applies the subcommands for loops to tasks: `shop/vat` is a task, and `shop` all tasks of that
//! fleet. A request goes to the coordinator, and directly to a loop that is running on this
//! machine. Without a coordinator only that loop gets the request; a lasting one waits for the next
//! coordinator.

pub mod clean;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use minijinja::context;

use super::attempt;
use super::files::FleetFiles;
use super::record::{
    FleetRecord, FleetTerms, Landed, MESSAGES_MAX, TaskRecord, TaskRequest, TaskState,
};
use super::step::FleetRequest;
use super::store::{self, requests};
use crate::drive::{control, end};
use engine::failure::Failure;
use engine::fleet::TaskId;
use engine::record::{Actor, Loop, LoopId, Outcome, TaskOfFleet};
use engine::text::EscapedLine;
use engine::text::templates;
use world::files::disk;
use world::git::{self, head};
use world::store::{self as loops, Home};

/// The template of the answers to requests.
const ANSWERS: &str = include_str!("verbs.j2");

/// A task, or all tasks of a fleet.
#[derive(Debug)]
pub struct Named {
    pub record: FleetRecord,
    pub task: Option<TaskId>,
}

/// Finds the fleet or task that a name denotes; `None` if this machine has no such fleet.
///
/// # Errors
/// If the fleet cannot be read, or has no such task.
pub fn resolve_name(home: &Home, text: &str) -> Result<Option<Named>> {
    let (fleet, typed) =
        text.split_once('/').map_or((text, None), |(fleet, task)| (fleet, Some(task)));
    if fleet.parse::<TaskId>().is_err() {
        return Ok(None);
    }
    let Some(record) = read_fleet(home, fleet)? else { return Ok(None) };
    let task = typed.and_then(|typed| typed.parse().ok());
    let task = task.filter(|id| record.tasks.contains_key(id));
    match (typed, &task) {
        (Some(typed), None) => bail!(Failure::new(
            format!("the fleet {fleet} has no task {}", EscapedLine(typed)),
            format!("crew fleet status {fleet} lists them")
        )),
        _ => Ok(Some(Named { record, task })),
    }
}

/// Finds the task that a loop works on, if its fleet is here. `None` for the loop of an earlier
/// attempt, or of another machine's fleet with that name.
///
/// # Errors
/// If the fleet cannot be read.
pub fn task_of(home: &Home, id: &LoopId) -> Result<Option<Named>> {
    let works_on = loops::load(home, id).ok().and_then(|record| record.fleet);
    let Some(TaskOfFleet { name, task }) = works_on else { return Ok(None) };
    let Some(record) = read_fleet(home, &name)? else { return Ok(None) };
    let named = Named { record, task: Some(task.clone()) };
    let is_newest = named.loop_of(home, &task).is_some_and(|newest| newest.id == *id);
    Ok(is_newest.then_some(named))
}

/// Finds the fleet with that name. Without a name, the newest fleet of the repository that contains
/// `folder`, from any of its working trees; outside a repository, the only fleet on this machine.
pub fn find_fleet(home: &Home, name: Option<&str>, folder: &Path) -> Result<FleetRecord> {
    let names = store::list_names(home)?;
    let hint = match names.join(", ") {
        known if known.is_empty() => "crew fleet run FOLDER starts one".to_owned(),
        known => format!("name one of these: {known}"),
    };
    if let Some(name) = name {
        let known = names.iter().find(|known| *known == name);
        let found = known.map_or(Ok(None), |known| read_fleet(home, known))?;
        return found.ok_or_else(|| {
            Failure::new(format!("this machine has no fleet {}", EscapedLine(name)), hint).into()
        });
    }
    let (mut known, trees) = (read_fleets(home, &names), head::list_roots(folder));
    match (newest_fleet(&known, &trees), known.len()) {
        (Some(found), _) => Ok(found.clone()),
        (None, 0) => bail!(Failure::new("this machine has no fleet", hint)),
        (None, 1) if trees.is_empty() => Ok(known.remove(0)),
        _ => bail!(Failure::usage("this folder has no fleet", hint)),
    }
}

/// The name of the newest fleet of the repository that contains `folder`.
pub fn newest_here(home: &Home, folder: &Path) -> Option<String> {
    let known = read_fleets(home, &store::list_names(home).ok()?);
    if known.is_empty() {
        return None;
    }
    Some(newest_fleet(&known, &head::list_roots(folder))?.terms.name.clone())
}

fn read_fleets(home: &Home, names: &[String]) -> Vec<FleetRecord> {
    names.iter().filter_map(|name| read_fleet(home, name).ok().flatten()).collect()
}

/// Reads the current record of a fleet. Without a coordinator it includes the requests that wait
/// for the next start, so that a person sees that they were kept.
pub fn read_fleet(home: &Home, name: &str) -> Result<Option<FleetRecord>> {
    if store::is_coordinated(home, name) {
        return store::read_local(home, name);
    }
    read_with_requests(home, name)
}

/// Reads a fleet and its waiting requests, for the process that holds its lock.
pub fn read_with_requests(home: &Home, name: &str) -> Result<Option<FleetRecord>> {
    let known = store::read_local(home, name)?;
    let asked = requests::waiting_requests(home, name);
    Ok(known.map(|record| asked.into_iter().fold(record, with_request)))
}

fn with_request(record: FleetRecord, (task, asked): (Option<TaskId>, FleetRequest)) -> FleetRecord {
    let named = Named { record, task };
    let taken = named.named_tasks().filter(|(_, task)| named.accepts_request(task, &asked));
    let taken: Vec<TaskId> = taken.map(|(id, _)| id.clone()).collect();
    let mut record = named.record;
    match &asked {
        FleetRequest::Resume { .. } if named.task.is_none() => record.request = None,
        FleetRequest::Task(asked) if named.task.is_none() => {
            asked.replace_request(&mut record.request);
        }
        _ => {}
    }
    for id in taken {
        record.tasks.entry(id).and_modify(|task| apply_request(task, &asked));
    }
    record
}

/// Applies the visible effects of a waiting request before a coordinator carries it out.
fn apply_request(task: &mut TaskRecord, request: &FleetRequest) {
    match (request, task.ending()) {
        (FleetRequest::Resume { .. }, Some(ending)) if !ending.is_completed() => {
            task.set(TaskState::Waiting, task.at);
        }
        (FleetRequest::Resume { .. }, _) => task.asked.request = None,
        (FleetRequest::Task(asked), None) => asked.replace_request(&mut task.asked.request),
        (FleetRequest::Task(asked), Some(_)) => {
            // No running attempt has to end first.
            if let Some(ending) = asked.ending() {
                task.set(TaskState::Ended(ending), task.at);
            }
        }
        (FleetRequest::Tell { words, .. }, _) => task.asked.messages.push(words.clone()),
    }
}

fn newest_fleet<'a>(known: &'a [FleetRecord], trees: &[PathBuf]) -> Option<&'a FleetRecord> {
    let ours = known.iter().filter(|fleet| trees.contains(&fleet.terms.repository));
    ours.max_by_key(|fleet| fleet.started_at)
}

impl Named {
    fn fleet_name(&self) -> &str {
        &self.record.terms.name
    }

    /// The name as the user types it: `shop` or `shop/vat`.
    fn full_name(&self) -> String {
        self.task
            .as_ref()
            .map_or_else(|| self.fleet_name().to_owned(), |id| self.record.full_name(id))
    }

    /// Whether the loop with this id works on one of the named fleet's tasks.
    pub fn is_fleet_of(&self, home: &Home, loop_id: Option<&str>) -> bool {
        let id = loop_id.and_then(|id| id.parse().ok());
        let record = id.and_then(|id| loops::load(home, &id).ok());
        record.and_then(|record| record.fleet).is_some_and(|task| task.name == self.fleet_name())
    }

    /// The named task, or all tasks of the named fleet.
    pub fn named_tasks(&self) -> impl Iterator<Item = (&TaskId, &TaskRecord)> {
        let tasks = self.record.tasks.iter();
        tasks.filter(|(id, _)| self.task.as_ref().is_none_or(|task| task == *id))
    }

    /// The loop of a task's newest attempt, if its record is here.
    pub fn loop_of(&self, home: &Home, id: &TaskId) -> Option<Loop> {
        let task = self.record.task(id)?;
        let files = FleetFiles::new(home, self.fleet_name());
        // The fleet's record may not have the loop yet.
        let report = attempt::read_report(&files, id, task.attempt);
        let known = report.and_then(|report| report.loop_id).or_else(|| task.loop_id.clone())?;
        loops::load(home, &known).ok()
    }

    /// The loop of the named task.
    ///
    /// # Errors
    /// If it names a whole fleet, or the loop is not on this machine.
    pub fn own_loop(&self, home: &Home) -> Result<Loop> {
        let fleet = self.fleet_name();
        let Some(id) = &self.task else {
            bail!(Failure::usage(
                format!("{fleet} is a fleet"),
                format!("name one of its tasks: crew fleet status {fleet} lists them")
            ));
        };
        self.loop_of(home, id).ok_or_else(|| {
            let hint = format!("crew show {fleet}/{id} shows what is known of it");
            Failure::new(format!("no loop of {fleet}/{id} is on this machine"), hint).into()
        })
    }

    /// The difference that a task has made, up to the last fetched commit; `None` while its loop's
    /// clone is here, which shows more.
    pub fn fetched_difference(&self, home: &Home, stat: Option<u16>) -> Result<Option<String>> {
        let Some((id, task)) = self.task.as_ref().and_then(|_| self.named_tasks().next()) else {
            return Ok(None);
        };
        if self.loop_of(home, id).is_some_and(|record| disk::exists(&record.place.checkout)) {
            return Ok(None);
        }
        let FleetTerms { repository, base, remote, .. } = &self.record.terms;
        let Some(commit) = &task.work.commit else {
            bail!("nothing of {}/{id} was fetched yet", self.fleet_name());
        };
        let base = remote.as_ref().map_or_else(|| base.clone(), |remote| remote.tracking_ref(base));
        let from = task.work.stands_on.clone().unwrap_or(base);
        git::difference_text(repository, &from, commit, stat)
            .map(Some)
            .with_context(|| format!("{commit} is no longer in {}", repository.display()))
    }

    /// Sends a message to the agents of tasks that are open or asked a person. A message from
    /// another agent is marked.
    pub fn send_message(&self, home: &Home, words: &str, by: Actor) -> Result<String> {
        let (words, by_agent) = (control::check_message(words)?, by == Actor::Agent);
        self.send_request(home, &FleetRequest::Tell { words, by_agent }, by)
    }

    /// Resumes the tasks, with an optional message for their agents. A cancelled task accepts a
    /// message only after it is resumed.
    pub fn resume_tasks(&self, home: &Home, words: Option<&str>, accepts: bool) -> Result<String> {
        let resume = FleetRequest::Resume { accepts_test_changes: accepts };
        let Some(words) = words else { return self.send_request(home, &resume, Actor::User) };
        let tell = FleetRequest::Tell { words: control::check_message(words)?, by_agent: false };
        let is_taken = self.named_tasks().any(|(_, task)| self.accepts_request(task, &tell));
        if is_taken {
            self.send_request(home, &tell, Actor::User)?;
        }
        let answer = self.send_request(home, &resume, Actor::User)?;
        if !is_taken {
            requests::send_request(home, self.fleet_name(), self.task.as_ref(), &tell)?;
        }
        Ok(answer)
    }

    /// Sends a request for all named tasks to the coordinator, and to the loops that run here.
    /// Returns a line that says what happens.
    ///
    /// # Errors
    /// If no task accepts it, or it cannot be left for the coordinator.
    pub fn send_request(&self, home: &Home, request: &FleetRequest, by: Actor) -> Result<String> {
        let tasks: Vec<_> =
            self.named_tasks().filter(|(_, task)| self.accepts_request(task, request)).collect();
        if tasks.is_empty() {
            bail!(self.refuse_request(request));
        }
        let is_message = matches!(request, FleetRequest::Tell { .. });
        let is_full = tasks.iter().any(|(_, task)| task.asked.messages.len() >= MESSAGES_MAX);
        if is_message && self.task.is_some() && is_full {
            bail!(Failure::new(
                format!("{MESSAGES_MAX} messages already wait for {}", self.full_name()),
                "its agent gets them with its next prompt"
            ));
        }
        let (fleet, is_coordinated) =
            (self.fleet_name(), store::is_coordinated(home, self.fleet_name()));
        let is_sent = match request {
            // The next start lifts a pause.
            FleetRequest::Task(request) => is_coordinated || request.is_cancel(),
            FleetRequest::Tell { by_agent, .. } => is_coordinated || *by_agent,
            FleetRequest::Resume { .. } => true,
        };
        if is_sent {
            requests::send_request(home, fleet, self.task.as_ref(), request)?;
        }
        for &(id, task) in &tasks {
            let is_here = self.record.is_local() && task.is_running();
            let live = if is_here { self.loop_of(home, id) } else { None };
            let live = live.filter(Loop::is_live);
            match (request, live.as_ref().map(|record| &record.id)) {
                (FleetRequest::Task(TaskRequest::Pause { now }), Some(live)) => {
                    drop(control::pause_loop(home, live, by, *now)?);
                }
                (FleetRequest::Task(TaskRequest::Cancel { reason, .. }), Some(live)) => {
                    drop(end::cancel_loop(home, live, by, reason.as_deref())?);
                }
                (FleetRequest::Tell { words, .. }, Some(live)) if !is_sent => {
                    drop(control::add_message(home, live, words)?);
                }
                (FleetRequest::Tell { .. }, None) if !is_sent => {
                    requests::send_request(home, fleet, Some(id), request)?;
                }
                _ => {}
            }
        }
        Ok(self.render_answer(request, &tasks, is_coordinated))
    }

    /// Whether this task accepts a request to the named fleet or task.
    fn accepts_request(&self, task: &TaskRecord, request: &FleetRequest) -> bool {
        let is_alone = self.task.is_some();
        match (request, task.ending().map(|ending| ending.outcome)) {
            (FleetRequest::Resume { .. }, _) => !task.is_done(self.record.terms.landing),
            (_, None) => true,
            // Completed work is given up only by the task's name.
            (FleetRequest::Task(request), Some(outcome)) => {
                let is_landed = matches!(task.landed(), Some(Landed::Main(_)));
                is_alone && request.is_cancel() && !is_landed && outcome != Outcome::Cancelled
            }
            (FleetRequest::Tell { .. }, Some(outcome)) => match outcome {
                Outcome::Completed | Outcome::Cancelled => false,
                outcome => is_alone || outcome == Outcome::Blocked,
            },
        }
    }

    /// Why no task accepts a request.
    fn refuse_request(&self, request: &FleetRequest) -> Failure {
        const OWN: &str = "what is still to do is a task of its own";
        let (fleet, name) = (self.fleet_name(), self.full_name());
        let task = self.task.as_ref().and_then(|id| self.record.task(id));
        let outcome = task.and_then(TaskRecord::ending).map(|ending| ending.outcome);
        let all = format!("all tasks of the fleet {fleet}");
        match (request, outcome) {
            (FleetRequest::Resume { .. }, Some(_)) => {
                Failure::new(format!("task {name} is completed"), OWN)
            }
            (FleetRequest::Resume { .. }, None) => {
                Failure::new(format!("{all} are completed"), OWN)
            }
            (FleetRequest::Tell { .. }, Some(outcome)) => Failure::new(
                format!("task {name} is {}: no agent would read the message", outcome.label()),
                match outcome {
                    Outcome::Cancelled => format!("crew resume {name} first: it was cancelled"),
                    _ => OWN.to_owned(),
                },
            ),
            (FleetRequest::Tell { .. }, None) => Failure::new(
                format!("{all} have ended: no agent would read the message"),
                format!(
                    "crew tell {fleet}/TASK leaves it for one that is not completed, and crew resume \
                     {fleet}/TASK has it read"
                ),
            ),
            (FleetRequest::Task(_), Some(outcome)) => Failure::new(
                format!("task {name} is {}", outcome.label()),
                format!("crew status {name} says why"),
            ),
            (FleetRequest::Task(request), None) => {
                let asks = if request.is_cancel() { "cancel" } else { "pause" };
                Failure::new(
                    format!(
                        "there is nothing to {asks}: every task of the fleet {fleet} has ended"
                    ),
                    format!("crew fleet status {fleet} says how"),
                )
            }
        }
    }

    /// Renders the effect of a request on these tasks, in a line.
    fn render_answer(
        &self,
        request: &FleetRequest,
        tasks: &[(&TaskId, &TaskRecord)],
        is_coordinated: bool,
    ) -> String {
        let task = self.task.as_ref().and_then(|id| self.record.task(id));
        let ending = task.and_then(TaskRecord::ending);
        let is_spent = task.is_some_and(|task| {
            let is_used_up = (1..=task.carried.completed).contains(&task.text.max_iterations);
            is_used_up && ending.is_some_and(|ending| ending.proof.is_none())
        });
        let values = context! {
            request, is_coordinated, is_spent,
            fleet => self.fleet_name(),
            name => self.full_name(),
            is_alone => self.task.is_some(),
            outcome => ending.map(|ending| ending.outcome.label()),
            tasks => tasks.len(),
            runs => tasks.iter().any(|(_, task)| task.is_running()),
            run => self.record.terms.run_command(),
        };
        let text = templates::new_environment().render_str(ANSWERS, values);
        text.map_or_else(|error| format!("{error:#}"), |text| text.trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests;
