//! One attempt at a task, as an executor runs it: its clone, its loop, its reports. It may be
//! started at any moment and any number of times: a second process leaves at once, a loop that was
//! cut off is resumed, and an end that was reported is only answered. What follows from the end is
//! the coordinator's business.

mod gate;
pub mod remote;
pub mod report;

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};

use self::gate::{AttemptGate, tip};
use self::remote::{Published, RemoteLink};
use self::report::{HeldAttempt, Reports};
pub use self::report::{is_alive, process_of, read_report};
use super::files::FleetFiles;
use super::record::{EndReason, TaskEnding};
use super::spec::{AttemptEnd, AttemptPhase, AttemptReport, AttemptSpec, Source};
use super::workspace::{self, FleetCommands, WorkspaceFault};
use crate::drive::control;
use crate::drive::error_text::{error_text, git_trouble};
use crate::drive::find::NewOwner;
use crate::drive::resume::{accept_test_changes_of, resume};
use crate::drive::run::drive;
use crate::drive::run::steps::settle;
use crate::drive::start::baseline::baseline;
use crate::drive::start::establish::Prepared;
use crate::drive::start::place::{self, drafts_of};
use crate::drive::start::run::begin;
use crate::engine::boundary::limits::{LimitChange, LimitName, reached};
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::evidence::ClaimResult;
use crate::engine::fleet::{Carried, TaskId, evidence, without_markers};
use crate::engine::git::GitTrouble;
use crate::engine::record::{Contract, Ending, Fragment, Limits, Loop, Outcome, Phase};
use crate::engine::words::news::commit_message;
use crate::world::files::disk;
use crate::world::git;
use crate::world::git::commit::{Drafts, drafts_are_listed};
use crate::world::git::steps::Steps;
use crate::world::process::signals::Signals;
use crate::world::process::{Stop, identity};
use crate::world::slots::{Line, Slot};
use crate::world::store::{self, Home, read_pointer};
use crate::world::{clock, env, host};

/// Between two looks for a slot.
const SLOT_LOOK: Duration = Duration::from_millis(50);

/// What became of a start of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum AttemptResult {
    Over(AttemptEnd),
    /// Another process works on it.
    Elsewhere,
    /// Somebody else has moved its branch at the remote: this process pushed nothing more.
    Fenced,
}

/// What a start of an attempt does.
#[derive(Debug, PartialEq, Eq)]
pub enum AttemptStart {
    /// It ended before, and nobody has asked for more.
    Answer(AttemptEnd),
    /// Its loop is over, and nothing has reported that.
    Close,
    Resume,
    /// A new loop, in a clone that is made or found.
    Begin,
}

/// Decides what a start does, by the last `report`, the loop that was `found` in the clone, and
/// whether the clone is there. `is_same_spec`: a process before had the same spec.
pub fn decide_start(
    report: Option<&AttemptReport>,
    is_same_spec: bool,
    found: Option<&Loop>,
    is_clone_there: bool,
) -> AttemptStart {
    let end = report.and_then(|report| report.end.as_ref());
    if let (Some(end @ AttemptEnd::Ended(_)), true) = (end, is_same_spec) {
        return AttemptStart::Answer(end.clone());
    }
    let Some(found) = found.filter(|_| is_clone_there) else { return AttemptStart::Begin };
    // Another machine has gone further, which a lost one that comes back cannot know.
    if report.is_some_and(|report| report.carried.completed > found.state.completed) {
        return AttemptStart::Begin;
    }
    match found.outcome() {
        None | Some(Outcome::Interrupted) => AttemptStart::Resume,
        Some(Outcome::Completed) => AttemptStart::Close,
        // An end that was reported is resumed by a person alone.
        Some(_) if matches!(end, Some(AttemptEnd::Ended(_))) => AttemptStart::Resume,
        Some(_) => AttemptStart::Close,
    }
}

/// Works on an attempt until its loop is over or paused.
///
/// # Errors
/// If the attempt cannot report: then its process is simply gone for the coordinator.
pub fn run(
    home: &Home,
    spec: AttemptSpec,
    signals: &Signals,
    sink: &mut dyn EventSink,
) -> Result<AttemptResult> {
    check_names(&spec)?;
    let node = remote::home_of_node(home);
    let home = if matches!(spec.source, Source::Remote { .. }) { &node } else { home };
    home.make().with_context(|| format!("cannot keep fleets in {}", home.root().display()))?;
    let files = FleetFiles::of(home, &spec.task.name);
    files.make()?;
    let (task, number) = (spec.task.task.clone(), spec.number);
    let Some(held) = HeldAttempt::take(&files, &spec)? else {
        return Ok(AttemptResult::Elsewhere);
    };
    workspace::end_leftovers(&files.groups(&task, number), held.is_of_this_start);
    let link = match &spec.source {
        Source::Remote { url } => Some(RemoteLink::open(home, &files, &spec, url, signals)?),
        Source::Local { .. } => None,
    };
    let earlier = match &link {
        Some(link) => link.look()?.map(|found| found.report),
        None => read_report(&files, &task, number),
    };
    let spec = spec.continued(earlier.as_ref(), link.is_some());
    let report = begun_report(&spec, earlier.as_ref());
    let attempt = Attempt {
        home,
        clone: files.clone(&task, number),
        reports: Reports::new(files.report(&task, number), report),
        files: &files,
        spec: &spec,
        signals,
        link: link.as_ref(),
        // Each try of an executor elsewhere has the spec of the one before.
        is_same_spec: held.is_same_spec || link.is_some(),
        is_fenced: Cell::new(false),
        notes: RefCell::default(),
    };
    attempt.work(earlier.as_ref(), sink)
}

/// Fails for a spec whose names lead out of the fleet's folder, or that names another branch.
fn check_names(spec: &AttemptSpec) -> Result<()> {
    let (fleet, task) = (&spec.task.name, &spec.task.task);
    if let Err(why) = fleet.parse::<TaskId>() {
        bail!("the spec names no fleet: {why}");
    }
    let branch = format!("fleet/{fleet}/{task}/{}", spec.number);
    if spec.number == 0 || spec.branch != branch {
        bail!("the spec of {task} is of another branch than {branch}: {:?}", spec.branch);
    }
    Ok(())
}

/// The first report of a process, which keeps what an earlier one has found out.
fn begun_report(spec: &AttemptSpec, earlier: Option<&AttemptReport>) -> AttemptReport {
    AttemptReport {
        number: spec.number,
        host: host::host().map(|host| host.name).unwrap_or_default(),
        process: identity::myself(),
        loop_id: earlier.and_then(|report| report.loop_id.clone()),
        phase: AttemptPhase::Preparing,
        carried: spec.carried.clone(),
        commit: earlier.and_then(|report| report.commit.clone()),
        stands_on: spec.stands_on.clone(),
        conflicts: earlier.map(|report| report.conflicts.clone()).unwrap_or_default(),
        end: None,
        at: clock::now().wall,
    }
}

impl AttemptSpec {
    /// The same, for a process that continues what an earlier one reported. Where that may have
    /// been on another machine, only what was pushed is left of it.
    fn continued(mut self, earlier: Option<&AttemptReport>, is_elsewhere: bool) -> Self {
        let Some(report) = earlier else { return self };
        if report.carried.completed >= self.carried.completed {
            self.carried = report.carried.clone();
        }
        self.stands_on = report.stands_on.clone().or(self.stands_on);
        if is_elsewhere && report.commit.is_some() {
            self.start.clone_from(&report.commit);
            self.before.clear();
        }
        self
    }

    /// The ref by which its clone knows the base.
    fn tracked_base(&self) -> String {
        format!("refs/remotes/origin/{}", self.base)
    }

    fn has_remote(&self) -> bool {
        !matches!(self.source, Source::Local { url: None, .. })
    }
}

/// The attempt that this process is.
struct Attempt<'a> {
    home: &'a Home,
    files: &'a FleetFiles,
    spec: &'a AttemptSpec,
    clone: PathBuf,
    signals: &'a Signals,
    reports: Reports,
    link: Option<&'a RemoteLink>,
    is_same_spec: bool,
    is_fenced: Cell<bool>,
    /// What was noted once, and what of it the loop has not shown yet.
    notes: RefCell<(BTreeSet<String>, Vec<String>)>,
}

impl Attempt<'_> {
    fn work(
        &self,
        earlier: Option<&AttemptReport>,
        sink: &mut dyn EventSink,
    ) -> Result<AttemptResult> {
        let found = self.left_here();
        let is_clone_there = disk::is_folder(&self.clone);
        let start = decide_start(earlier, self.is_same_spec, found.as_ref(), is_clone_there);
        if let AttemptStart::Answer(end) = start {
            return Ok(AttemptResult::Over(end));
        }
        if let Some(link) = self.link
            && link.claim(&self.reports.newest())? == Published::Fenced
        {
            return Ok(AttemptResult::Fenced);
        }
        let _heartbeat = self.link.map(RemoteLink::heartbeat);
        self.reports.change(|report| report.process = identity::myself())?;
        let worked = match (start, found) {
            (AttemptStart::Close, Some(found)) => self.close(&found, sink),
            (AttemptStart::Resume, Some(found)) => self.drive(Some(&found), sink),
            _ => self.drive(None, sink),
        };
        let (end, record) = worked.or_else(|error| self.failed(&error).map(|end| (end, None)))?;
        if self.is_fenced.get() || self.link.is_some_and(RemoteLink::is_fenced) {
            return Ok(AttemptResult::Fenced);
        }
        self.conclude(end, record.as_ref())
    }

    /// The loop of the task, if an earlier process left it in the clone.
    fn left_here(&self) -> Option<Loop> {
        let clone = disk::real_path(&self.clone).ok()?;
        let id = read_pointer(&self.home.checkout_pointer(&clone)).ok()??;
        let found = store::load(self.home, &id).ok()?;
        (found.fleet.as_ref() == Some(&self.spec.task)).then_some(found)
    }

    /// Begins the loop, or resumes the one that was `found`, and drives it until it is over or
    /// paused.
    fn drive(
        &self,
        found: Option<&Loop>,
        sink: &mut dyn EventSink,
    ) -> Result<(AttemptEnd, Option<Loop>)> {
        if let Some(found) = found
            && let Some(limit) = self.spent(found)
        {
            let ending = TaskEnding::new(Outcome::Exhausted, limit, EndReason::Loop);
            return Ok((AttemptEnd::Ended(ending), Some(found.clone())));
        }
        let record = match found {
            Some(found) => self.resume(found, sink)?,
            None => self.begin(sink)?,
        };
        self.reports.change(|report| report.loop_id = Some(record.id.clone()))?;
        if !self.is_same_spec || found.is_none() {
            self.tell(&record, sink);
        }
        let id = record.id.clone();
        let gate = Box::new(AttemptGate::new(self));
        match drive(self.home, record, self.signals, sink, Some(gate))? {
            Some(ended) => Ok((self.end_of(&ended), Some(ended))),
            None => Ok((AttemptEnd::Paused, store::load(self.home, &id).ok())),
        }
    }

    /// Gives a person's messages to the loop.
    fn tell(&self, record: &Loop, sink: &mut dyn EventSink) {
        for words in &self.spec.messages {
            if let Err(error) = control::tell(self.home, &record.id, words) {
                let why = first_line(&error);
                sink.on_event(&RunEvent::Noted(&format!(
                    "a message did not reach the agent: {why}"
                )));
            }
        }
    }

    /// A new loop, with what earlier ones of the task used.
    fn begin(&self, sink: &mut dyn EventSink) -> Result<Loop> {
        let spec = self.spec;
        self.set_stale_clone_aside()?;
        let stop = || self.is_called_off();
        let made = {
            let commands = self.commands(&stop, sink);
            workspace::make(spec, &self.clone, &commands)?
        };
        let conflicts = made.conflicts;
        if !conflicts.is_empty() {
            self.reports.change(|report| report.conflicts.clone_from(&conflicts))?;
        }
        let mut carried = spec.carried.clone();
        if spec.accepts_test_changes || spec.sent_back.is_some() {
            // What the base brings changes tests and check configuration, too.
            carried.baseline = None;
        }
        let place = place::place(&made.path, None)?;
        let prepared = Prepared {
            replace: true,
            carried: (carried != Carried::default()).then_some(carried),
            fleet: Some(spec.task.clone()),
            is_as_left: !made.is_new,
            ..Prepared::new(place, self.contract(&conflicts), Vec::new())
        };
        let _slot = self.slot_at_first(&prepared.contract)?;
        begin(self.home, prepared, self.signals, sink)
    }

    /// On a node that was lost and is back, the clone may lack what another one has pushed since.
    fn set_stale_clone_aside(&self) -> Result<()> {
        let Some(pushed) = self.link.and(self.spec.start.as_ref()) else { return Ok(()) };
        if disk::is_folder(&self.clone) && git::commit(&self.clone, pushed).is_none() {
            let name =
                format!("{}.{}.lost.{:08x}", self.spec.task.task, self.spec.number, env::random());
            disk::move_aside(&self.clone, &name)?;
        }
        Ok(())
    }

    fn commands<'c>(&self, stop: Stop<'c>, sink: &'c mut dyn EventSink) -> FleetCommands<'c> {
        let notes = self.files.groups(&self.spec.task.task, self.spec.number);
        FleetCommands::new(notes, stop, sink)
    }

    fn is_called_off(&self) -> bool {
        self.signals.times() > 0 || self.link.is_some_and(RemoteLink::is_called_off)
    }

    /// Takes over the loop that an earlier process left, with the limits that hold now.
    fn resume(&self, found: &Loop, sink: &mut dyn EventSink) -> Result<Loop> {
        {
            let stop = || self.is_called_off();
            let commands = self.commands(&stop, sink);
            workspace::make(self.spec, &self.clone, &commands)?;
        }
        let limits = self.limits().by_key().into_iter();
        let limits = limits.filter(|(key, _)| *key != LimitName::MaxWait);
        let changes = limits.map(|(key, number)| (key, LimitChange::To(number))).collect();
        let is_blocked = found.outcome() == Some(Outcome::Blocked);
        let accepts = is_blocked && self.spec.accepts_test_changes && !self.is_same_spec;
        let adapt = |record: &mut Loop| {
            let mut notes = Vec::new();
            if accepts {
                // As the loop left it, which the person saw, and not as anybody made it since.
                let seen = record.state.trees.snapshot.clone();
                notes = accept_test_changes_of(self.home, record, seen)?;
            }
            // A signal came before they were listed, and before any agent.
            if record.state.completed == 0 && !drafts_are_listed(self.home, &record.id) {
                notes.extend(drafts_of(self.home, record, &|| false)?);
            }
            Ok(notes)
        };
        let owner = NewOwner::process()?;
        let record = resume(self.home, &found.id, &changes, owner, adapt)?.report(sink);
        let is_first = record.state.completed == 0;
        let slot = is_first.then(|| self.slot_at_first(&record.contract)).transpose();
        // Whoever ended the wait is obeyed before the first iteration.
        let Ok(_slot) = slot else { return Ok(record) };
        baseline(self.home, record, true, self.signals, sink)
    }

    /// The contract of a new loop: that of the spec, with what a landing found.
    fn contract(&self, conflicts: &[String]) -> Contract {
        let spec = self.spec;
        let mut contract = Contract { limits: self.limits(), ..spec.contract.clone() };
        contract.checks.extend(without_markers(conflicts));
        if let Some(run) = &mut contract.run {
            let sent_back = spec.sent_back.as_ref().map(|refusal| evidence(refusal, conflicts));
            let context = run.recipe.0.entry(Phase::Context).or_default();
            context.extend(sent_back.map(Fragment::Text));
            run.git.rebase = spec.has_remote().then(|| spec.tracked_base());
        }
        contract
    }

    fn limits(&self) -> Limits {
        self.spec.contract.limits.clone()
    }

    /// That a loop has used up one of the limits, as they are now.
    fn spent(&self, found: &Loop) -> Option<String> {
        let mut as_now = found.clone();
        as_now.contract.limits = self.limits();
        reached(&as_now)
    }

    /// A slot for the checks that run before the first iteration, if there are any.
    ///
    /// # Errors
    /// If a signal or a request ends the wait.
    fn slot_at_first(&self, contract: &Contract) -> Result<Option<Slot>> {
        if self.spec.slots == 0 || contract.before_the_first().next().is_none() {
            return Ok(None);
        }
        let mut queue = Line::join(self.home, self.spec.priority, self.spec.slots)?;
        loop {
            if let Some(slot) = queue.poll()? {
                let _ = self.reports.change(|report| report.phase = AttemptPhase::Preparing);
                return Ok(Some(slot));
            }
            if self.is_called_off() {
                bail!("the wait for a slot was ended");
            }
            // A loop that is resumed has not got its messages yet, so it does not count as one that
            // takes requests.
            let _ = self.reports.change(|report| {
                if report.loop_id.is_none() {
                    report.phase = AttemptPhase::Queued;
                }
            });
            clock::sleep(SLOT_LOOK);
        }
    }

    /// Does what a loop that is over has left to do, and says how it ended.
    fn close(&self, found: &Loop, sink: &mut dyn EventSink) -> Result<(AttemptEnd, Option<Loop>)> {
        let record = if found.state.git.left().is_empty() {
            found.clone()
        } else {
            settle(self.home, found, self.signals, sink)?
        };
        Ok((self.end_of(&record), Some(record)))
    }

    /// How the attempt ends by the end of its loop.
    fn end_of(&self, record: &Loop) -> AttemptEnd {
        let Some(ending) = &record.state.ending else { return AttemptEnd::Interrupted };
        let is_signalled = self.signals.times() > 0;
        match ending.outcome {
            Outcome::Interrupted if is_signalled => AttemptEnd::Interrupted,
            Outcome::Completed => {
                let lack = tip(record).astray.or_else(|| uncommitted(self.home, record));
                AttemptEnd::Ended(match lack {
                    Some(why) => {
                        let why = format!("its branch lacks its work: {why}");
                        TaskEnding::new(Outcome::Blocked, why, EndReason::Machine)
                    }
                    None => of_loop(record, ending),
                })
            }
            _ => AttemptEnd::Ended(of_loop(record, ending)),
        }
    }

    /// What follows from an error. A remote or a git that is out of order may be back at the next
    /// try; a setup that fails will not.
    fn failed(&self, error: &Error) -> Result<AttemptEnd> {
        if self.signals.times() > 0 {
            return Ok(AttemptEnd::Interrupted);
        }
        if let Some(request) = self.link.and_then(RemoteLink::called_off) {
            return Ok(request.ending().map_or(AttemptEnd::Paused, AttemptEnd::Ended));
        }
        let needs_person = match git_trouble(error) {
            Some(GitTrouble::Auth) => false,
            Some(trouble) => trouble.needs_a_person(),
            None => !error.chain().any(|cause| cause.is::<std::io::Error>()),
        };
        let reason = match error.downcast_ref() {
            Some(WorkspaceFault::Conflict(_)) => EndReason::Conflict,
            _ => EndReason::Machine,
        };
        Ok(AttemptEnd::Failed { why: first_line(error), reason, needs_person })
    }

    /// Reports the end.
    fn conclude(&self, end: AttemptEnd, record: Option<&Loop>) -> Result<AttemptResult> {
        self.reports.change(|report| {
            if let Some(record) = record {
                let last = std::mem::replace(&mut report.carried, Carried::of(record)).last;
                if report.carried.last.is_empty() {
                    report.carried.last = last;
                }
                report.loop_id = Some(record.id.clone());
                report.commit = tip(record).commit.or(report.commit.take());
            }
            report.end = Some(end.clone());
        })?;
        let Some(link) = self.link else { return Ok(AttemptResult::Over(end)) };
        match link.publish_patiently(&self.reports.newest(), record)? {
            Published::Done => Ok(AttemptResult::Over(end)),
            Published::Fenced => Ok(AttemptResult::Fenced),
        }
    }

    /// Keeps what a person should know, once, for the loop to show.
    fn remember_note(&self, what: &str) {
        let (known, new) = &mut *self.notes.borrow_mut();
        if known.insert(what.to_owned()) {
            new.push(what.to_owned());
        }
    }

    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.borrow_mut().1)
    }
}

/// Why the last work of a loop is in no commit. One that failed is tried again, for a person may
/// have removed its cause.
fn uncommitted(home: &Home, record: &Loop) -> Option<String> {
    if record.state.git.commits.count == 0 {
        return None;
    }
    let again = || -> Result<()> {
        let trusted = record.trusted.as_ref().context("there is no repository")?;
        let drafts = Drafts::read(home, record)?;
        let drafts =
            drafts.ok_or_else(|| anyhow!("the list of what was there at first is gone"))?;
        let steps = Steps::new(&record.place, trusted, &|| false);
        steps.commit(&commit_message(record), &drafts)?;
        Ok(())
    };
    again().err().map(|error| first_line(&error))
}

/// The end of a task by that of its loop.
fn of_loop(record: &Loop, ending: &Ending) -> TaskEnding {
    let claim = record.state.evidence.as_ref().map(|evidence| &evidence.claim);
    let reason = match (ending.outcome, claim) {
        (Outcome::Blocked, Some(ClaimResult::Blocked(_))) => EndReason::Asked,
        (Outcome::Blocked, _) if record.state.test_refusals > 0 => EndReason::TestChanges,
        (Outcome::Cancelled, _) => EndReason::Person,
        _ => EndReason::Loop,
    };
    TaskEnding { proof: ending.proof, ..TaskEnding::new(ending.outcome, ending.reason(), reason) }
}

/// What an error says, without the way out.
fn first_line(error: &Error) -> String {
    error_text(error).lines().next().unwrap_or_default().to_owned()
}
