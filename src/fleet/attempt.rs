//! One attempt at a task, as an executor runs it: its clone, its loop, its reports. It may be
//! started at any time and any number of times: a second process exits immediately, an interrupted
//! loop is resumed, and a reported end is only acknowledged. The coordinator decides what follows
//! from the end.

pub mod clones;
mod gate;
pub mod remote;
pub mod report;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Context as _, Error, Result, bail};

use self::clones::{AttemptClone, FleetCommands, WorkConflict};
use self::gate::{AttemptGate, loop_tip};
use self::remote::{PATIENCE, RemoteLink, RemoteTrouble};
use self::report::{HeldAttempt, Reports};
pub use self::report::{is_alive, process_of, read_report};
use super::files::FleetFiles;
use super::record::{TaskEnding, TaskReason};
use super::spec::{AttemptEnd, AttemptPhase, AttemptReport, AttemptSpec, Source};
use crate::drive::control;
use crate::drive::failure::{git_trouble, short_error};
use crate::drive::find::NewOwner;
use crate::drive::resume::{accept_test_changes_of, resume_loop};
use crate::drive::run::drive_loop;
use crate::drive::run::settle_steps;
use crate::drive::start::establish::Prepared;
use crate::drive::start::run::begin_run;
use crate::drive::tree;
use crate::drive::tree::place;
use crate::drive::tree::place::drafts_of;
use engine::boundary::limits::{LimitChange, LimitName, reached_limit};
use engine::fleet::{Carried, TaskId, refusal_evidence, without_markers};
use engine::git::GitTrouble;
use engine::record::{Contract, EndReason, Ending, Fragment, Loop, Outcome, Phase, Place};
use engine::view::events::{EventSink, RunEvent};
use world::files::disk;
use world::git::land::OwnTip;
use world::process::identity;
use world::process::signals::Signals;
use world::store::{self, Home, read_pointer};
use world::{clock, env, git, host};

/// The result of starting an attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum AttemptResult {
    Over(AttemptEnd),
    /// Another process works on this attempt.
    Elsewhere,
    /// Another process has moved the attempt's branch at the remote; this one pushed nothing more.
    Fenced,
}

/// What the start of an attempt has to do.
#[derive(Debug, PartialEq, Eq)]
pub enum AttemptStart {
    /// The attempt has already ended, and no request has arrived since.
    Answer(AttemptEnd),
    /// The attempt's loop has ended, and nothing has reported that yet.
    Close,
    Resume,
    /// Begins a new loop, in a new or an existing clone.
    Begin,
}

/// Decides what a start does, by the last `report` and the loop that was `found` in the clone.
/// `is_same_spec`: an earlier process had the same spec. `is_resumed`: a person has resumed the
/// task.
pub fn decide_start(
    report: Option<&AttemptReport>,
    [is_same_spec, is_resumed]: [bool; 2],
    found: Option<&Loop>,
) -> AttemptStart {
    let end = report.and_then(|report| report.end.as_ref());
    if let (Some(end @ AttemptEnd::Ended(_)), true) = (end, is_same_spec) {
        return AttemptStart::Answer(end.clone());
    }
    let Some(found) = found else { return AttemptStart::Begin };
    // Another machine has got further, and a lost machine that comes back cannot know that.
    if report.is_some_and(|report| report.carried.completed > found.state.counts().completed()) {
        return AttemptStart::Begin;
    }
    match found.outcome() {
        None | Some(Outcome::Interrupted) => AttemptStart::Resume,
        Some(outcome) if is_resumed && outcome != Outcome::Completed => AttemptStart::Resume,
        Some(_) => AttemptStart::Close,
    }
}

/// Works on an attempt until its loop is over or paused.
///
/// # Errors
/// If the attempt cannot report. The coordinator then only sees that its process is gone.
pub fn run_attempt(
    home: &Home,
    spec: AttemptSpec,
    signals: &Signals,
    sink: &mut dyn EventSink,
) -> Result<AttemptResult> {
    check_names(&spec)?;
    let home = &remote::home_of(home, &spec.origin.source);
    let files = match &spec.origin.source {
        Source::Remote { url } => FleetFiles::of_node(home, &spec.task.name, url),
        Source::Local { .. } => FleetFiles::new(home, &spec.task.name),
    };
    files.make().with_context(|| format!("cannot keep a fleet in {}", files.root.display()))?;
    let Some(held) = HeldAttempt::take_attempt(&files, &spec)? else {
        return Ok(AttemptResult::Elsewhere);
    };
    let (task, number) = (spec.task.task.clone(), spec.number);
    clones::end_leftovers(&files.groups(&task, number), held.is_of_this_start);
    let link = RemoteLink::open_link(home, &spec, signals)?;
    let earlier = match &link {
        Some(link) => link.fetch_report()?,
        None => read_report(&files, &task, number),
    };
    let spec = spec.continuing_after(earlier.as_ref());
    let attempt = Attempt {
        home,
        files: &files,
        clone: files.clone_of(&task, number),
        reports: Reports::new(files.report(&task, number), begun_report(&spec, earlier.as_ref())),
        spec: &spec,
        signals,
        link: link.as_ref(),
        // A remote executor retries with the same spec.
        is_same_spec: held.is_same_spec || link.is_some(),
    };
    match attempt.run_work(earlier.as_ref(), sink) {
        Err(error) if matches!(error.downcast_ref(), Some(RemoteTrouble::Fenced)) => {
            Ok(AttemptResult::Fenced)
        }
        worked => worked.map(AttemptResult::Over),
    }
}

/// Refuses a spec whose names lead out of the fleet's folder, or that names another branch.
fn check_names(spec: &AttemptSpec) -> Result<()> {
    let (fleet, task) = (&spec.task.name, &spec.task.task);
    if let Err(why) = fleet.parse::<TaskId>() {
        bail!("the spec names no fleet: {why}");
    }
    let branch = task.branch_name(fleet, spec.number);
    if spec.number == 0 || spec.branch != branch {
        bail!("the spec of {task} is of another branch than {branch}: {:?}", spec.branch);
    }
    Ok(())
}

/// Builds a process's first report, which keeps the findings of an earlier process.
fn begun_report(spec: &AttemptSpec, earlier: Option<&AttemptReport>) -> AttemptReport {
    AttemptReport {
        number: spec.number,
        host: host::this_host().map(|host| host.name).unwrap_or_default(),
        process: identity::this_process(),
        phase: AttemptPhase::Preparing,
        carried: spec.carried.clone(),
        stands_on: spec.origin.stands_on.clone(),
        end: None,
        at: clock::now().wall,
        ..earlier.cloned().unwrap_or_default()
    }
}

impl AttemptSpec {
    /// Continues from what an earlier process reported. If that process may have run on another
    /// machine, only what it pushed still exists.
    fn continuing_after(mut self, earlier: Option<&AttemptReport>) -> Self {
        let Some(report) = earlier else { return self };
        if report.carried.completed >= self.carried.completed {
            self.carried = report.carried.clone();
        }
        self.origin.stands_on = report.stands_on.clone().or(self.origin.stands_on);
        if matches!(self.origin.source, Source::Remote { .. }) && report.commit.is_some() {
            self.origin.start.clone_from(&report.commit);
            self.origin.before.clear();
        }
        self
    }

    /// The ref of the base in the attempt's clone.
    fn tracked_base(&self) -> String {
        format!("refs/remotes/origin/{}", self.origin.base)
    }
}

/// The attempt that this process runs.
struct Attempt<'a> {
    home: &'a Home,
    spec: &'a AttemptSpec,
    files: &'a FleetFiles,
    clone: PathBuf,
    signals: &'a Signals,
    reports: Reports,
    link: Option<&'a RemoteLink>,
    is_same_spec: bool,
}

impl Attempt<'_> {
    fn run_work(
        &self,
        earlier: Option<&AttemptReport>,
        sink: &mut dyn EventSink,
    ) -> Result<AttemptEnd> {
        let found = self.left_here();
        let how = [self.is_same_spec, self.spec.is_resumed];
        let start = decide_start(earlier, how, found.as_ref());
        if let AttemptStart::Answer(end) = start {
            return Ok(end);
        }
        if let Some(link) = self.link {
            link.claim_attempt(&self.reports.newest_report())?;
        }
        let _heartbeat = self.link.map(RemoteLink::start_heartbeat);
        self.reports.enter_phase(AttemptPhase::Preparing)?;
        let worked = match (start, found) {
            (AttemptStart::Close, Some(found)) => Ok(self.close_loop(found, sink)),
            (AttemptStart::Resume, Some(found)) => self.drive_loop(Some(&found), sink),
            _ => self.drive_loop(None, sink),
        };
        let (end, record) = worked.unwrap_or_else(|error| (self.end_of_error(&error), None));
        self.conclude_attempt(end, record.as_ref())
    }

    /// The task's loop, if an earlier process left one in the clone.
    fn left_here(&self) -> Option<Loop> {
        let clone = disk::real_path(&self.clone).ok()?;
        let id = read_pointer(&self.home.checkout_pointer(&clone)).ok()??;
        let found = store::load(self.home, &id).ok()?;
        (found.fleet.as_ref() == Some(&self.spec.task)).then_some(found)
    }

    /// Starts the loop, or resumes the one that was `found`, and drives it until it is over or
    /// paused.
    fn drive_loop(
        &self,
        found: Option<&Loop>,
        sink: &mut dyn EventSink,
    ) -> Result<(AttemptEnd, Option<Loop>)> {
        if let Some(found) = found {
            let mut as_now = found.clone();
            as_now.contract.limits = self.spec.contract.limits.clone();
            if let Some(limit) = reached_limit(&as_now) {
                let ending = Ending::new(Outcome::Exhausted, EndReason::LimitReached(limit));
                let ending = TaskEnding::of_loop(&ending);
                return Ok((AttemptEnd::Ended(ending), Some(found.clone())));
            }
        } else {
            self.set_stale_clone_aside()?;
        }
        let made = {
            let stop = || self.signals.times() > 0;
            let mut note = |words: &str| sink.on_event(&RunEvent::Noted(words));
            let groups = self.files.groups(&self.spec.task.task, self.spec.number);
            let commands = FleetCommands::new(groups, &stop, &mut note);
            let made = clones::make_clone(self.spec, &self.clone, &commands)?;
            if made.is_new && self.link.is_some() {
                self.remove_earlier(&commands);
            }
            made
        };
        let mut gate = AttemptGate::new(self);
        let record = match found {
            Some(found) => self.resume_loop(found, &mut gate, sink)?,
            None => self.begin_loop(made, &mut gate, sink)?,
        };
        self.reports.change_report(|report| report.loop_id = Some(record.id.clone()))?;
        if !self.is_same_spec || found.is_none() {
            self.pass_messages(&record, sink);
        }
        let id = record.id.clone();
        match drive_loop(self.home, record, self.signals, sink, Some(Box::new(gate)))? {
            Some(ended) => Ok(self.close_loop(ended, sink)),
            None => Ok((AttemptEnd::Paused, store::load(self.home, &id).ok())),
        }
    }

    /// Passes a person's messages to the loop.
    fn pass_messages(&self, record: &Loop, sink: &mut dyn EventSink) {
        for words in &self.spec.messages {
            if let Err(error) = control::add_message(self.home, &record.id, words) {
                let why = format!("a message did not reach the agent: {}", short_error(&error));
                sink.on_event(&RunEvent::Noted(&why));
            }
        }
    }

    /// Sets a stale clone aside: on a node that was lost and is back, it may lack what another node
    /// has pushed since.
    fn set_stale_clone_aside(&self) -> Result<()> {
        let Some(pushed) = self.link.and(self.spec.origin.start.as_ref()) else { return Ok(()) };
        if disk::is_folder(&self.clone) && git::find_commit(&self.clone, pushed).is_none() {
            let (task, number) = (&self.spec.task.task, self.spec.number);
            disk::move_aside(
                &self.clone,
                &format!("{task}.{number}.lost.{:08x}", env::random_number()),
            )?;
        }
        Ok(())
    }

    /// Removes what earlier attempts at the task left on this node, where no coordinator does so.
    /// Commits that only they had are kept in the clone of this one.
    fn remove_earlier(&self, commands: &FleetCommands<'_>) {
        let (name, task) = (&self.spec.task.name, &self.spec.task.task);
        for (of, number) in self.files.list_clones() {
            let is_over = number < self.spec.number && !is_alive(self.files, &of, number);
            if of != *task || !is_over {
                continue;
            }
            let (clone, branch) =
                (self.files.clone_of(task, number), task.branch_name(name, number));
            let removed = clones::remove_clone(&self.clone, &clone, &branch, None)
                .and_then(|_| Ok(self.files.remove_attempt(task, number)?));
            if let Err(error) = removed {
                commands.note(&format!("{} stays: {}", clone.display(), short_error(&error)));
            }
        }
    }

    /// Begins a new loop, charged with what the task's earlier loops used.
    fn begin_loop(
        &self,
        made: AttemptClone,
        gate: &mut AttemptGate<'_>,
        sink: &mut dyn EventSink,
    ) -> Result<Loop> {
        let spec = self.spec;
        let conflicts = made.conflicts;
        if !conflicts.is_empty() {
            self.reports.change_report(|report| report.conflicts.clone_from(&conflicts))?;
        }
        let mut carried = spec.carried.clone();
        if spec.accepts_test_changes || spec.sent_back.is_some() {
            // Merging the base also changes tests and check configuration.
            carried.baseline = None;
        }
        let place = Place { is_clone: true, ..place::find_place(&made.path, None)? };
        let prepared = Prepared {
            replace: true,
            carried: (carried != Carried::default()).then_some(carried),
            fleet: Some(spec.task.clone()),
            is_as_left: !made.is_new,
            ..Prepared::new(place, self.loop_contract(&conflicts), Vec::new())
        };
        gate.await_slot(&prepared.contract)?;
        begin_run(self.home, prepared, self.signals, sink)
    }

    /// Takes over the loop that an earlier process left, with the current limits.
    fn resume_loop(
        &self,
        found: &Loop,
        gate: &mut AttemptGate<'_>,
        sink: &mut dyn EventSink,
    ) -> Result<Loop> {
        // The task may have had earlier loops.
        let is_first = found.state.counts().boundaries() == 0;
        if is_first {
            gate.await_slot(&found.contract)?;
        }
        let limits = self.spec.contract.limits.by_key().into_iter();
        let limits = limits.filter(|(key, _)| *key != LimitName::MaxWait);
        let changes = limits.map(|(key, number)| (key, LimitChange::To(number))).collect();
        let is_blocked = found.outcome() == Some(Outcome::Blocked);
        let accepts = is_blocked && self.spec.accepts_test_changes && !self.is_same_spec;
        let adapt = |record: &mut Loop| {
            let mut notes = Vec::new();
            if accepts {
                // The tree as the loop left it, which the user saw, without later changes.
                let seen = record.state.seen().trees().snapshot().clone();
                notes = accept_test_changes_of(self.home, record, seen)?;
                // Otherwise later changes would count as a person's, and be accepted too.
                record.state.remember_tree(tree::look_at_tree(self.home, record));
            }
            if is_first {
                // A signal may have come before the drafts were listed and before any agent ran.
                notes.extend(drafts_of(self.home, record, &|| false)?);
            }
            Ok(notes)
        };
        let resumed =
            resume_loop(self.home, &found.id, &changes, NewOwner::from_process()?, adapt)?;
        resumed.begin_resumed(self.home, self.signals, sink)
    }

    /// The contract of a new loop: the one in the spec, plus the findings of a landing.
    fn loop_contract(&self, conflicts: &[String]) -> Contract {
        let spec = self.spec;
        let mut contract = spec.contract.clone();
        contract.checks.extend(without_markers(conflicts));
        if let Some(run) = &mut contract.run {
            let sent_back =
                spec.sent_back.as_ref().map(|refusal| refusal_evidence(refusal, conflicts));
            let context = run.recipe.0.entry(Phase::Context).or_default();
            context.extend(sent_back.map(Fragment::Text));
            let has_remote = !matches!(spec.origin.source, Source::Local { url: None, .. });
            run.git.rebase = if has_remote { Some(spec.tracked_base()) } else { None };
        }
        contract
    }

    /// Finishes the git steps of a loop that has ended, and returns how it ended.
    fn close_loop(&self, ended: Loop, sink: &mut dyn EventSink) -> (AttemptEnd, Option<Loop>) {
        // Retry a failed commit: a person may have fixed the cause.
        let settled = if ended.state.git().pending_steps().is_empty() {
            None
        } else {
            settle_steps(self.home, &ended, self.signals, sink).ok()
        };
        // On a full disk the record there may not be over yet.
        let record = settled.filter(|record| !record.is_live()).unwrap_or(ended);
        (self.end_of(&record), Some(record))
    }

    /// The end of the attempt, given the end of its loop.
    fn end_of(&self, record: &Loop) -> AttemptEnd {
        let Some(ending) = record.state.end().ending() else { return AttemptEnd::Interrupted };
        if ending.outcome == Outcome::Interrupted && self.signals.times() > 0 {
            return AttemptEnd::Interrupted;
        }
        let git = record.state.git();
        let mut lack = None;
        if ending.outcome == Outcome::Completed {
            lack = loop_tip(record).astray;
            if lack.is_none() && git.pending_steps().commit {
                lack = git.describe_undone();
            }
        }
        AttemptEnd::Ended(match lack {
            Some(why) => TaskEnding::new(Outcome::Blocked, TaskReason::LacksWork(why)),
            None => TaskEnding::of_loop(ending),
        })
    }

    /// The end of the attempt after an error. A failed remote or git command may work on the next
    /// try; a failed setup will not.
    fn end_of_error(&self, error: &Error) -> AttemptEnd {
        if self.signals.times() > 0 {
            return AttemptEnd::Interrupted;
        }
        let needs_person = match git_trouble(error) {
            Some(GitTrouble::Auth) => false,
            Some(trouble) => trouble.needs_a_person(),
            None => !error.chain().any(<dyn std::error::Error + 'static>::is::<std::io::Error>),
        };
        let reason = match error.downcast_ref() {
            Some(WorkConflict(what)) => TaskReason::WorkConflict(what.clone()),
            None => TaskReason::Failed(short_error(error)),
        };
        AttemptEnd::Failed { reason, needs_person }
    }

    /// Reports the end.
    fn conclude_attempt(&self, end: AttemptEnd, record: Option<&Loop>) -> Result<AttemptEnd> {
        let tip = record.map(loop_tip);
        let end = end_with(end, tip.as_ref());
        self.reports.change_report(|report| {
            if let (Some(record), Some(tip)) = (record, tip) {
                report.follow_loop(record, tip.commit);
            }
            report.end = Some(end.clone());
        })?;
        if let Some(link) = self.link {
            link.publish(&self.reports.newest_report(), record, PATIENCE)?;
        }
        Ok(end)
    }
}

/// The end with this newest commit. While git cannot name the newest commit, the work is not
/// completed: an earlier commit would land instead.
fn end_with(end: AttemptEnd, tip: Option<&OwnTip>) -> AttemptEnd {
    match end {
        AttemptEnd::Ended(ending)
            if ending.is_completed() && tip.is_some_and(|tip| tip.commit.is_none()) =>
        {
            let why = "git cannot read the branch of its clone".to_owned();
            AttemptEnd::Failed { reason: TaskReason::Failed(why), needs_person: false }
        }
        end => end,
    }
}
