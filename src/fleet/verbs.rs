//! The verbs of loops for tasks: `shop/vat` is a task, and `shop` all tasks of that fleet. A request
//! goes to the coordinator, and to a loop that is at work on this machine also directly. Without a
//! coordinator only that loop hears of it; what has to outlive it waits for the next one.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::attempt;
use super::files::FleetFiles;
use super::record::{FleetRecord, FleetSetup, Landed, MESSAGES_MAX, TaskRecord, TaskRequest};
use super::step::FleetRequest;
use super::store;
use crate::drive::{control, end};
use crate::engine::fleet::TaskId;
use crate::engine::record::{Actor, Loop, Outcome};
use crate::engine::text::{Shown, count};
use crate::parse::arguments::UsageError;
use crate::world::files::disk;
use crate::world::git::{self, head};
use crate::world::store::{self as loops, Home};

/// A task, or all tasks of a fleet.
#[derive(Debug)]
pub struct Named {
    pub record: FleetRecord,
    pub task: Option<TaskId>,
}

/// What a name means; `None` if it names no fleet of this machine.
///
/// # Errors
/// If the fleet cannot be read, or has no such task.
pub fn resolve(home: &Home, text: &str) -> Result<Option<Named>> {
    let (fleet, task) = text.split_once('/').map_or((text, None), |(it, task)| (it, Some(task)));
    if fleet.parse::<TaskId>().is_err() {
        return Ok(None);
    }
    let Some(record) = store::read(home, fleet)? else { return Ok(None) };
    let Some(typed) = task else { return Ok(Some(Named { record, task: None })) };
    let task = typed.parse().ok().filter(|id| record.tasks.contains_key(id));
    if task.is_none() {
        bail!(
            "the fleet {fleet} has no task {}\nhint: crew fleet status {fleet} lists them",
            Shown(typed)
        );
    }
    Ok(Some(Named { record, task }))
}

/// The fleet of that name. Without one, the newest of the repository that holds `folder`, whichever
/// of its working trees started it; outside a repository the only one of this machine.
pub fn find(home: &Home, name: Option<&str>, folder: &Path) -> Result<FleetRecord> {
    let names = store::names(home)?;
    if let Some(name) = name {
        if let Some(found) = names.iter().find(|known| *known == name) {
            return store::read(home, found)?.ok_or_else(|| anyhow::anyhow!("it was removed"));
        }
        let fix = match names.join(", ") {
            known if known.is_empty() => "crew fleet run FOLDER starts one".to_owned(),
            known => format!("name one of these: {known}"),
        };
        bail!("there is no fleet {} here\nhint: {fix}", Shown(name));
    }
    let mut known: Vec<FleetRecord> =
        names.iter().filter_map(|name| store::read(home, name).ok().flatten()).collect();
    let trees = head::roots(folder);
    if let Some(found) = newest(&known, &trees) {
        return Ok(found.clone());
    }
    match known.len() {
        0 => bail!("there is no fleet on this machine\nhint: crew fleet run FOLDER starts one"),
        1 if trees.is_empty() => Ok(known.remove(0)),
        _ => bail!(UsageError::new(
            "there is no fleet of this folder",
            format!("name one of these: {}", names.join(", "))
        )),
    }
}

/// The name of the newest fleet of the repository that holds `folder`.
pub fn newest_here(home: &Home, folder: &Path) -> Option<String> {
    let names = store::names(home).ok().filter(|names| !names.is_empty())?;
    let read = |name: &String| store::read(home, name).ok().flatten();
    let known: Vec<FleetRecord> = names.iter().filter_map(read).collect();
    Some(newest(&known, &head::roots(folder))?.terms.name.clone())
}

fn newest<'a>(known: &'a [FleetRecord], trees: &[PathBuf]) -> Option<&'a FleetRecord> {
    let ours = known.iter().filter(|fleet| trees.contains(&fleet.terms.repository));
    ours.max_by_key(|fleet| fleet.started_at)
}

impl Named {
    fn fleet(&self) -> &str {
        &self.record.terms.name
    }

    /// Whether the loop of this id works on one of its tasks.
    pub fn is_fleet_of(&self, home: &Home, loop_id: Option<&str>) -> bool {
        let id = loop_id.and_then(|id| id.parse().ok());
        let record = id.and_then(|id| loops::load(home, &id).ok());
        record.and_then(|it| it.fleet).is_some_and(|task| task.name == self.fleet())
    }

    /// The tasks that are meant.
    pub fn tasks(&self) -> impl Iterator<Item = (&TaskId, &TaskRecord)> {
        let is_meant =
            |(id, _): &(&TaskId, &TaskRecord)| self.task.as_ref().is_none_or(|it| it == *id);
        self.record.tasks.iter().filter(is_meant)
    }

    /// The loop of a task's newest attempt, if its record is here.
    pub fn loop_of(&self, home: &Home, id: &TaskId) -> Option<Loop> {
        let task = self.record.task(id)?;
        let files = FleetFiles::of(home, self.fleet());
        // Its record may not know the loop yet.
        let report = attempt::read_report(&files, id, task.attempt);
        let known = report.and_then(|report| report.loop_id).or_else(|| task.loop_id.clone())?;
        loops::load(home, &known).ok()
    }

    /// The loop of the task that is meant.
    ///
    /// # Errors
    /// If a whole fleet is meant, or the loop is not on this machine.
    pub fn own_loop(&self, home: &Home) -> Result<Loop> {
        let fleet = self.fleet();
        let Some(id) = &self.task else {
            bail!(UsageError::new(
                format!("{fleet} is a fleet"),
                format!("name one of its tasks: crew fleet status {fleet} lists them")
            ));
        };
        let hint = format!("hint: crew show {fleet}/{id} shows what is known of it");
        let found = self.loop_of(home, id);
        found.with_context(|| format!("no loop of {fleet}/{id} is on this machine\n{hint}"))
    }

    /// What a task changed, from where its work begins to the commit that was fetched last; `None`
    /// while the clone of its loop is here, which shows more.
    pub fn fetched_difference(&self, home: &Home, stat: Option<u16>) -> Result<Option<String>> {
        let Some((id, task)) = self.task.as_ref().and_then(|_| self.tasks().next()) else {
            return Ok(None);
        };
        let is_here = |record: &Loop| disk::exists(&record.place.checkout);
        if self.loop_of(home, id).as_ref().is_some_and(is_here) {
            return Ok(None);
        }
        let FleetSetup { repository, base, remote, .. } = &self.record.terms;
        let Some(commit) = &task.commit else {
            bail!("nothing of {}/{id} was fetched yet", self.fleet());
        };
        let base = remote.as_ref().map_or_else(|| base.clone(), |remote| remote.tracked(base));
        let from = task.stands_on.clone().unwrap_or(base);
        git::difference(repository, &from, commit, stat)
            .map(Some)
            .with_context(|| format!("{commit} is not in {} any more", repository.display()))
    }

    /// The same, if it lives here.
    fn live(&self, home: &Home, id: &TaskId, task: &TaskRecord) -> Option<Loop> {
        let is_here = self.record.is_local() && task.is_running();
        self.loop_of(home, id).filter(|record| is_here && record.is_live())
    }

    /// Pauses or cancels; what it says of that.
    pub fn stop(&self, home: &Home, request: &TaskRequest, by: Actor) -> Result<String> {
        let (is_cancel, fleet) = (request.ending().is_some(), self.fleet());
        let verb = if is_cancel { "cancelled" } else { "paused" };
        let open = self.tasks().filter(|(_, task)| task.ending().is_none());
        let (running, others): (Vec<_>, Vec<_>) = open.partition(|(_, task)| task.is_running());
        if let (0, Some(refusal)) = (running.len() + others.len(), self.refusal(is_cancel)) {
            bail!(refusal);
        }
        let is_coordinated = store::is_coordinated(home, fleet);
        if is_coordinated || is_cancel {
            store::send(home, fleet, self.task.as_ref(), &FleetRequest::Task(request.clone()))?;
        }
        for &(id, task) in &running {
            let Some(record) = self.live(home, id, task) else { continue };
            match request {
                TaskRequest::Pause { now } => drop(control::pause(home, &record.id, by, *now)?),
                TaskRequest::Cancel { reason, .. } => {
                    drop(end::cancel(home, &record.id, by, reason.as_deref())?);
                }
            }
        }
        let when = if request.is_now() { "" } else { " after this iteration" };
        let mut parts = Vec::new();
        for (tasks, when) in [(running.len(), when), (others.len(), "")] {
            if tasks > 0 {
                let is = if tasks == 1 { "is" } else { "are" };
                parts.push(format!("{} {is} {verb}{when}", count(tasks as u64, "task")));
            }
        }
        let text = match (&self.task, &parts[..]) {
            (Some(id), [part]) => format!("{fleet}/{id}{}", part.trim_start_matches("1 task")),
            (Some(id), _) => format!("{fleet}/{id} is given up"),
            (None, parts) => format!("fleet {fleet}: {}", parts.join(", ")),
        };
        Ok(format!("{text} · {}", self.what_follows(is_coordinated, is_cancel)))
    }

    fn what_follows(&self, is_coordinated: bool, is_cancel: bool) -> String {
        let name = self.task.as_ref().map_or_else(String::new, |task| format!("/{task}"));
        match (is_coordinated, is_cancel) {
            (true, _) => format!("crew resume {}{name} resumes it", self.fleet()),
            (false, true) => format!("{} takes note", self.record.terms.run_command()),
            (false, false) => format!("{} resumes it", self.record.terms.run_command()),
        }
    }

    /// Why nothing of what is meant can be paused or cancelled, if every task of it has ended.
    fn refusal(&self, is_cancel: bool) -> Option<String> {
        let (fleet, verb) = (self.fleet(), if is_cancel { "cancel" } else { "pause" });
        let Some(id) = &self.task else {
            return Some(format!(
                "there is nothing to {verb}: every task of the fleet {fleet} has ended\n\
                 hint: crew fleet status {fleet} says how"
            ));
        };
        let ending = self.record.task(id)?.ending()?;
        let is_landed = matches!(ending.landed, Some(Landed::Main(_)));
        // By its name completed work is given up that shall not land.
        let is_open = is_cancel && !is_landed && ending.outcome != Outcome::Cancelled;
        let word = ending.outcome.label();
        (!is_open).then(|| {
            format!("task {fleet}/{id} is {word}\nhint: crew status {fleet}/{id} says why")
        })
    }

    /// Sends a message to the agents of the tasks that are open or asked for one. That of another
    /// agent is marked.
    pub fn tell(&self, home: &Home, words: &str, by: Actor) -> Result<String> {
        let (words, fleet) = (control::tellable(words)?, self.fleet());
        let (is_alone, by_agent) = (self.task.is_some(), by == Actor::Agent);
        let reads = |task: &TaskRecord| match task.ending().map(|ending| ending.outcome) {
            None | Some(Outcome::Blocked) => true,
            Some(Outcome::Completed | Outcome::Cancelled) => false,
            Some(_) => is_alone,
        };
        let tasks: Vec<_> = self.tasks().filter(|(_, task)| reads(task)).collect();
        let Some((first, task)) = tasks.first() else {
            let over =
                self.task.as_ref().and_then(|id| Some((id, self.record.task(id)?.ending()?)));
            let hint = match over {
                Some((id, ending)) if ending.outcome == Outcome::Cancelled => {
                    format!("crew resume {fleet}/{id} first: it was cancelled")
                }
                _ => "what is still to do is a task of its own".to_owned(),
            };
            bail!("nobody reads that: what is meant is over\nhint: {hint}");
        };
        if is_alone && task.messages.len() >= MESSAGES_MAX {
            bail!(
                "{MESSAGES_MAX} messages already wait for {fleet}/{first}\n\
                 hint: its agent gets them with its next prompt"
            );
        }
        let request = FleetRequest::Tell { words: words.clone(), by_agent };
        if store::is_coordinated(home, fleet) || by_agent {
            store::send(home, fleet, self.task.as_ref(), &request)?;
        } else {
            for &(id, task) in &tasks {
                match self.live(home, id, task) {
                    Some(record) => drop(control::tell(home, &record.id, &words)?),
                    None => store::send(home, fleet, Some(id), &request)?,
                }
            }
        }
        let again = match task.ending() {
            Some(_) if is_alone => format!(" · crew resume {fleet}/{first} tries it again"),
            _ => String::new(),
        };
        let readers = count(tasks.len() as u64, "agent");
        let verb = if tasks.len() == 1 { "gets" } else { "get" };
        Ok(format!("fleet {fleet}: {readers} {verb} the message with the next prompt{again}"))
    }

    /// Lifts a pause, or tries again what ended without being completed.
    pub fn resume(&self, home: &Home, accepts_test_changes: bool) -> Result<String> {
        let fleet = self.fleet();
        if self.tasks().all(|(_, task)| task.is_done(self.record.terms.landing)) {
            bail!("what is meant is completed\nhint: what is still to do is a task of its own");
        }
        let request = FleetRequest::Resume { accepts_test_changes };
        store::send(home, fleet, self.task.as_ref(), &request)?;
        let named = self
            .task
            .as_ref()
            .map_or_else(|| format!("fleet {fleet}"), |task| format!("{fleet}/{task}"));
        let run = self.record.terms.run_command();
        Ok(match store::is_coordinated(home, fleet) {
            true => format!("{named} is resumed · crew fleet status {fleet}"),
            false => format!("{named} is resumed by the next start · now type: {run}"),
        })
    }
}
