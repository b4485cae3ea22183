//! One attempt at one task, as an executor runs it: its working tree, its loop, its landing, its
//! end in the lease. It may be started at any moment and as often as anybody likes: a task that
//! ended is left alone, one that another process works on too, and a loop that was cut off is
//! resumed.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use chrono::{DateTime, Utc};

use super::control::stop;
use super::gate::{FENCED, Job, JobEnd, heartbeat};
use super::memory::{self, Memory};
use super::worktree::{self, FleetCommands, end_leftovers, unplanted};
use crate::drive::find::NewOwner;
use crate::drive::resume::{accept_test_changes_of, resume};
use crate::drive::run::drive;
use crate::drive::start::baseline::baseline;
use crate::drive::start::establish::Prepared;
use crate::drive::start::place::{self, drafts_of};
use crate::drive::start::run::begin;
use crate::drive::{test_changes, tree};
use crate::engine::boundary::limits::{LimitChange, LimitName, reached};
use crate::engine::events::EventSink;
use crate::engine::fleet::{
    Attempt, Carried, Fleet, FleetOrder, FleetRequest, JobPhase, LandingMode, Lease, TaskId,
    TaskState, evidence, without_markers,
};
use crate::engine::journal::Event;
use crate::engine::record::{Check, Contract, Ending, Fragment, Limits, Loop, Outcome, Phase};
use crate::world::files::disk;
use crate::world::git::commit::drafts_are_listed;
use crate::world::git::steps;
use crate::world::git::steps::put_back;
use crate::world::process::identity::my_id;
use crate::world::process::signals::Signals;
use crate::world::store::{self, Home, Kept};
use crate::world::{clock, env, host};

/// How long a remote that cannot be reached is asked again.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Works on a task until its loop is over and its branch has landed.
pub fn job(
    home: &Home,
    fleet: &str,
    task: &TaskId,
    signals: &Signals,
    sink: &mut dyn EventSink,
) -> Result<JobEnd> {
    let memory = Memory::of(home, fleet)?.with_patience(signals, PATIENCE);
    let mut fleet = memory.manifest_here()?;
    let lease = memory.lease(task)?.value;
    if let Some(ending) = lease.ending() {
        return Ok(JobEnd::Ended(ending.clone()));
    }
    let Some(_held) = memory.hold(task)? else { return Ok(JobEnd::Elsewhere) };
    end_leftovers(home, &fleet.name, task);
    let order = fleet.order_of(task);
    if order.is_some_and(|order| order.what == FleetRequest::Pause) {
        return Ok(JobEnd::Paused);
    }
    if is_elsewhere(&memory, &lease) {
        return Ok(JobEnd::Elsewhere);
    }
    let gone = lease.attempt().map(|attempt| attempt.id.clone());
    if let Some(order) = order {
        let ended = end_cancelled(home, &memory, &lease, order)?;
        return Ok(ended.ending().cloned().map_or(JobEnd::Elsewhere, JobEnd::Ended));
    }
    has_its_share(&memory, &fleet, &lease)?;
    let attempt = format!("{:016x}", env::random());
    // Another machine may have taken it since.
    let Kept { value: mut lease, .. } = memory.change(task, |lease| {
        let is_free = is_free(lease, gone.as_ref());
        lease.attempts += 1;
        lease.at = clock::now().wall;
        lease.state = TaskState::Running(attempt_here(home, &attempt, lease.at));
        is_free
    })?;
    match &lease.state {
        TaskState::Ended(ending) => return Ok(JobEnd::Ended(ending.clone())),
        TaskState::Running(found) if found.id == attempt => {}
        TaskState::Running(_) | TaskState::Waiting => return Ok(JobEnd::Elsewhere),
    }
    let hasty = memory.clone().with_patience(signals, Duration::ZERO);
    let _heartbeat = heartbeat(home, hasty, task, &attempt);
    loop {
        let job = Job {
            home,
            memory: &memory,
            fleet: &fleet,
            lease: &lease,
            attempt: &attempt,
            signals,
            record: None,
        };
        match job.work(sink)? {
            JobEnd::SentBack(sent_back) => lease = *sent_back,
            end => return Ok(end),
        }
        // Its next loop is held to the checks that the landing was.
        if let Ok(newest) = memory.manifest() {
            fleet = fleet.landing_as(&newest.value);
        }
    }
}

/// Fails where nothing of the fleet's money is set aside for a task that may cost more.
fn has_its_share(memory: &Memory, fleet: &Fleet, lease: &Lease) -> Result<()> {
    if lease.loop_end.is_some() || !lease.lacks_a_share(fleet) {
        return Ok(());
    }
    let task = lease.id();
    if let Some(gone) = lease.attempt() {
        memory.change_own(task, &gone.id, |lease| lease.state = TaskState::Waiting)?;
    }
    bail!(
        "nothing of the fleet's money is set aside for {task}\n\
         hint: {} does that, as soon as there is enough",
        fleet.task(task).run()
    );
}

impl Job<'_> {
    /// One loop of the task, and what follows from its end.
    fn work(&self, sink: &mut dyn EventSink) -> Result<JobEnd> {
        let Lease { loop_end, is_retried, is_renewed, .. } = self.lease;
        let found = self.left_here();
        if let Some(ending) = loop_end.as_ref().filter(|it| it.outcome != Outcome::Completed) {
            return Job { record: found.as_ref(), ..*self }.close(ending.clone());
        }
        if found.is_none() {
            if let Some(why) = self.stranded() {
                return self.failed(anyhow!(why));
            }
            // Another text is for an agent.
            if let Some(ending) = loop_end
                && self.has_its_branch()
                && !(*is_retried && *is_renewed)
            {
                return self.finished_elsewhere(ending, sink);
            }
        }
        match self.begin(found, sink) {
            Ok(record) => {
                let tie = self.tie();
                tie.name(&record, sink);
                match drive(self.home, record, self.signals, sink, Some(Box::new(tie)))? {
                    Some(ended) => self.settled(&ended, sink),
                    None => self.paused(),
                }
            }
            Err(_) if self.signals.times() > 0 => self.leave(JobEnd::Interrupted),
            Err(_) if self.order().is_some() => self.paused(),
            Err(error) => self.failed(error),
        }
    }

    /// The loop of the task in this process: the one that an earlier attempt left here, or a new
    /// one with what earlier loops used.
    fn begin(&self, found: Option<Loop>, sink: &mut dyn EventSink) -> Result<Loop> {
        let stop = self.ends_by(|order| order == FleetRequest::Cancel);
        unplanted(self.fleet, &self.fleet.repository)?;
        if let Some(found) = found.filter(|found| !self.begins_anew(found)) {
            let checkout = &found.place.checkout;
            if unplanted(self.fleet, checkout).is_ok() {
                put_back(checkout)?;
            }
            let commands = FleetCommands::of(self, &stop, sink);
            worktree::set_up(self.fleet, checkout, false, &commands)?;
            // The attempt that ended it was cut off before it could say so.
            let goes_on =
                |it: &Ending| it.outcome == Outcome::Interrupted || it.why.ends_with(FENCED);
            let is_over = found.state.ending.as_ref().is_some_and(|ending| !goes_on(ending));
            let stays = found.outcome() == Some(Outcome::Completed) || self.spent(&found).is_some();
            return if is_over && (stays || !self.lease.is_retried) {
                Ok(found)
            } else {
                self.resume(&found, sink)
            };
        }
        let commands = FleetCommands::of(self, &stop, sink);
        let (folder, is_as_left) = worktree::make(self, &commands)?;
        let sent_back = self.lease.sent_back.is_some();
        let lease = if sent_back { self.merge_main(&folder)? } else { self.lease.clone() };
        let contract = Job { lease: &lease, ..*self }.contract();
        let prepared = Prepared {
            replace: true,
            carried: (self.lease.carried != Carried::default()).then(|| self.lease.carried.clone()),
            fleet: Some(self.fleet.task(self.lease.id())),
            is_as_left,
            ..Prepared::new(place::place(&folder, None)?, contract, Vec::new())
        };
        let _slot = self.slot_at_first(&prepared.contract)?;
        begin(self.home, prepared, self.signals, sink)
    }

    /// Whether a task that is tried again has another text than its completed loop had. Where only
    /// its checks are others, a landing runs them itself.
    fn begins_anew(&self, found: &Loop) -> bool {
        let Lease { is_retried, is_renewed, contract, .. } = self.lease;
        let is_judged = self.fleet.landing == LandingMode::Main;
        let is_another = *is_renewed && !(is_judged && contract.task == found.contract.task);
        *is_retried && is_another && found.outcome() == Some(Outcome::Completed)
    }

    /// The contract of the task's next loop: the lease's, with what a landing found.
    fn contract(&self) -> Contract {
        let Lease { contract, sent_back, conflicts, .. } = self.lease;
        let mut contract = Contract { limits: self.limits(), ..contract.clone() };
        contract.checks.extend(without_markers(conflicts));
        if sent_back.is_some() {
            contract.checks.extend(self.fleet.land_checks.iter().cloned());
        }
        if let Some(run) = &mut contract.run {
            let told =
                sent_back.as_ref().map(|refusal| Fragment::Text(evidence(refusal, conflicts)));
            run.recipe.0.entry(Phase::Context).or_default().extend(told);
            run.git.rebase =
                self.fleet.remote.as_ref().map(|it| format!("{}/{}", it.name, self.fleet.base));
        }
        contract
    }

    /// The limits of the task, with its part of the fleet's money.
    fn limits(&self) -> Limits {
        let mut limits = self.lease.contract.limits.clone();
        if self.lease.reserved_micros > 0 {
            limits.max_cost_micros = self.lease.reserved_micros;
        }
        limits
    }

    /// The task's loop, if an earlier attempt left it on this machine.
    fn left_here(&self) -> Option<Loop> {
        let found = store::load(self.home, self.lease.loop_id.as_ref()?).ok()?;
        let is_newest = found.state.completed >= self.lease.carried.completed;
        let is_there = place::gone(&found.place).is_none();
        let is_ours = || worktree::is_of(self.fleet, &found.place.checkout);
        (is_newest && is_there && is_ours()).then_some(found)
    }

    /// Why the task cannot go on where its loop was: the repository was moved or made anew since,
    /// and what is left in that folder may be work.
    fn stranded(&self) -> Option<String> {
        let place = store::load(self.home, self.lease.loop_id.as_ref()?).ok()?.place;
        let (folder, repository) = (place.checkout.display(), self.fleet.repository.display());
        let is_stranded =
            disk::is_folder(&place.checkout) && !worktree::is_of(self.fleet, &place.checkout);
        // Where only its `.git` is gone, git finds the rest by what the repository knows.
        let cure = if disk::exists(&place.checkout.join(".git")) {
            "move it away, run git worktree prune, then --retry".to_owned()
        } else {
            format!("git -C {repository} worktree repair puts back its .git, then --retry")
        };
        is_stranded.then(|| format!("{folder} is no working tree of {repository} any more: {cure}"))
    }

    /// That a loop has used up one of the task's limits, as they are now.
    pub(super) fn spent(&self, found: &Loop) -> Option<String> {
        let mut as_now = found.clone();
        as_now.contract.limits = self.limits();
        reached(&as_now)
    }

    /// Gives the loop that is to be resumed the text that its task has now, and the settings of git
    /// that a person has agreed to since it began.
    fn renew(&self, found: &Loop) -> Result<()> {
        let held = store::hold(self.home, &found.id, store::LOCK_WAIT)?;
        let before = held.load()?;
        let mut record = before.clone();
        let (had, now) = (&before.contract.checks, self.contract().checks);
        // A person may have corrected the check that sent it back. One that still holds stays,
        // though a retry has forgotten that it was red.
        let holds = |check: &Check| now.contains(check) || self.fleet.land_checks.contains(check);
        let has_others = !had.iter().all(holds) || !now.iter().all(|check| had.contains(check));
        if self.lease.is_renewed || has_others {
            let limits = before.contract.limits.clone();
            record.contract = Contract { limits, ..self.contract() };
            if record.contract.protect != before.contract.protect {
                tree::begin_protection(self.home, &mut record)?;
            }
            if record.contract.checks != before.contract.checks {
                // It was said of the others.
                record.state.checked_as_found = false;
            }
            if record.state.baseline.is_none() {
                let tree = record.state.trees.snapshot.clone();
                test_changes::begin(self.home, &mut record, tree);
            }
        }
        let checkout = &record.place.checkout;
        if self.fleet.trusted.is_some() && unplanted(self.fleet, checkout).is_ok() {
            record.trusted = steps::trusted(checkout).or(record.trusted);
        }
        if record != before {
            let what = if self.lease.is_renewed {
                "took the new text of its task"
            } else if has_others {
                "took the checks that hold now"
            } else {
                "took the settings of git that a person agreed to"
            };
            held.record(record, |next| Event::Recovered {
                what: Some(what.to_owned()),
                record: Box::new(next.clone()),
            })?;
        }
        Ok(())
    }

    fn resume(&self, found: &Loop, sink: &mut dyn EventSink) -> Result<Loop> {
        self.renew(found)?;
        let numbers =
            self.limits().by_key().into_iter().filter(|(key, _)| *key != LimitName::MaxWait);
        let changes = numbers.map(|(key, number)| (key, LimitChange::To(number))).collect();
        let new_owner = NewOwner::process()?;
        let is_blocked = found.outcome() == Some(Outcome::Blocked);
        let is_accepted =
            is_blocked && self.lease.accepted_test_changes == Some(found.state.completed);
        let adapt = |record: &mut Loop| {
            let mut notes = Vec::new();
            if is_accepted {
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
        let record = resume(self.home, &found.id, &changes, new_owner, adapt)?.report(sink);
        let is_first = record.state.completed == 0;
        let slot = is_first.then(|| self.slot_at_first(&record.contract)).transpose();
        // Whoever ended the wait is obeyed before the first iteration.
        let Ok(_slot) = slot else { return Ok(record) };
        baseline(self.home, record, true, self.signals, sink)
    }
}

/// Whether another node's attempt has the task, as far as this one can tell. Whoever runs the fleet
/// frees a task whose attempt is gone.
fn is_elsewhere(memory: &Memory, lease: &Lease) -> bool {
    let Some(attempt) = lease.attempt() else { return false };
    // The engine started its own job again: it says that the first start is over.
    let is_restarted = env::text("SLURM_RESTART_COUNT").is_some_and(|count| count != "0");
    let is_own = attempt.job.is_some() && attempt.job == env::text("SLURM_JOB_ID");
    let is_known = memory.is_here(attempt) || (is_restarted && is_own);
    !is_known
}

/// An attempt of this process that begins now.
pub(super) fn attempt_here(home: &Home, id: &str, began_at: DateTime<Utc>) -> Attempt {
    Attempt {
        id: id.to_owned(),
        host: host::host().map(|host| host.name).unwrap_or_default(),
        seat: memory::seat(home),
        pid: my_id(),
        job: env::text("SLURM_JOB_ID"),
        began_at,
        phase: JobPhase::Prepares,
    }
}

/// Ends a task that a person cancelled and nobody works on, or whose attempt is gone, with what
/// that attempt left running here. An attempt that lives obeys by itself. The task must be held.
pub(super) fn end_cancelled(
    home: &Home,
    memory: &Memory,
    lease: &Lease,
    order: &FleetOrder,
) -> Result<Lease> {
    if lease.attempt().is_some() {
        end_leftovers(home, &memory.fleet, lease.id());
        stop(home, lease, order)?;
    }
    let gone = lease.attempt().map(|attempt| &attempt.id);
    memory.end(lease.id(), order.ending(), |lease| is_free(lease, gone))
}

/// Whether nobody works on a task, or only the attempt that is gone.
fn is_free(lease: &Lease, gone: Option<&String>) -> bool {
    match &lease.state {
        TaskState::Waiting => true,
        TaskState::Running(found) => Some(&found.id) == gone,
        TaskState::Ended(_) => false,
    }
}
