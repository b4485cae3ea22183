//! The landing of a task's branch: as one commit on the main branch as it will be, with the task's
//! checks and the fleet's run on exactly that commit, pushed only if the main branch has not moved
//! meanwhile. One lands at a time. A conflict or a red check sends the task back to its loop once;
//! then a person is needed. It never pushes what has not passed. A pull request is opened by the
//! host's own command line; one that is open already, or was merged, is found.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};

use super::gate::{Job, JobEnd};
use super::memory::{SharedMemory, Stillness};
use super::worktree::{self, FleetCommands};
use crate::drive::error_text::git_trouble;
use crate::engine::fleet::manifest::MAX_PRIORITY;
use crate::engine::fleet::{
    Fleet, JobPhase, Landed, LandingMode, Lease, RecordFault, Refusal, TaskEnding, TaskId,
    TaskState, touches_the_fleet, without_markers,
};
use crate::engine::git::{GitFault, GitStep, GitTrouble, RefUpdate};
use crate::engine::record::Outcome;
use crate::engine::text::{tail_of, words_of};
use crate::parse::gh::{RequestState, requests, unreached};
use crate::world::clock::{self, RetryPolicy};
use crate::world::files::{disk, tree};
use crate::world::git::land::{self, Squashed};
use crate::world::git::worktree::{clear_half_made, clear_half_merged};
use crate::world::git::{self, hub};
use crate::world::process::{Call, ExitCause, Stop};
use crate::world::slots::Slot;
use crate::world::store::Kept;

/// How often a landing begins again because the main branch has moved.
const TRIES: u32 = 8;
/// How the landing's lease is asked for.
const ASKS: RetryPolicy = RetryPolicy {
    within: None,
    first_pause: Duration::from_millis(50),
    longest_pause: Duration::from_secs(5),
};
/// How long a landing begins again because the remote does not answer.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// The name of the landing's lease beside those of the tasks.
const LANDING: &str = "_land";

/// A landing in progress.
#[derive(Clone, Copy)]
pub struct Landing<'a, 'commands> {
    /// The attempt that lands.
    pub job: Job<'a>,
    /// How the setup and the checks run; what ends them early ends the landing.
    pub commands: &'a FleetCommands<'commands>,
    /// A working tree of the branch.
    pub checkout: &'a Path,
    /// How the loop ended.
    pub ending: &'a TaskEnding,
}

/// What became of a landing.
pub enum LandEnd {
    /// The main branch holds the work, and the lease says so.
    Landed(Box<Lease>),
    Refused(Refusal),
    /// The lease has another owner.
    Fenced,
    /// A person wants a request by now.
    Requested,
    /// A signal or an order came first.
    Stopped,
}

impl Landing<'_, '_> {
    /// Lands the branch of a lease.
    pub fn land(&self, mut kept: Kept<Lease>) -> Result<LandEnd> {
        let here = self.job.home.fleet(&self.job.fleet.name).join("land.lock");
        let mut own = None;
        while own.is_none() {
            if self.is_stopped() {
                return Ok(LandEnd::Stopped);
            }
            own = disk::lock(&here, ASKS.longest_pause)?;
        }
        let policy = RetryPolicy { within: Some(PATIENCE), ..ASKS };
        let mut is_first = true;
        // A remote that is away is waited for without a slot; then all begins again.
        let end = clock::retry(
            policy,
            || self.is_stopped(),
            || {
                if !std::mem::take(&mut is_first) {
                    match self.job.memory.lease(kept.value.id()) {
                        Ok(now) => kept = now,
                        Err(error) => return Ok(Err(error)),
                    }
                    // The answer of a push that did land may have been lost.
                    if kept.value.is_on_main() {
                        return Ok(Ok(LandEnd::Landed(Box::new(kept.value.clone()))));
                    }
                    if !kept.value.is_of(self.job.attempt) {
                        return Ok(Ok(LandEnd::Fenced));
                    }
                }
                match self.land_with_a_slot(&kept) {
                    Err(error) if git_trouble(&error) == Some(GitTrouble::Network) => Err(error),
                    end => Ok(end),
                }
            },
        );
        let end = end.flatten();
        // What was ended because of a signal is no fault of the task.
        if end.is_err() && self.is_stopped() { Ok(LandEnd::Stopped) } else { end }
    }

    fn is_stopped(&self) -> bool {
        (self.commands.stop())()
    }

    /// Lands with a slot of this machine, and with the landing's lease. Both are given back.
    fn land_with_a_slot(&self, kept: &Kept<Lease>) -> Result<LandEnd> {
        let Job { memory, signals, .. } = self.job;
        let memory = memory.clone().with_patience(signals, Duration::ZERO);
        let hasty = Landing { job: Job { memory: &memory, ..self.job }, ..*self };
        let (task, mut still) = (kept.value.id(), Stillness::default());
        let taken = clock::retry(
            ASKS,
            || self.is_stopped(),
            || hasty.take_both(task, &mut still).transpose().ok_or(()),
        );
        let Ok(taken) = taken else { return Ok(LandEnd::Stopped) };
        let (token, slot) = taken?;
        let end = hasty.land_alone(kept.clone());
        drop(slot);
        let (shared, old) = (memory.shared()?, Some(token));
        let _ = shared.swap(&[RefUpdate { name: shared.name(LANDING), old, new: None }]);
        end
    }

    fn land_alone(&self, mut kept: Kept<Lease>) -> Result<LandEnd> {
        let Job { memory, fleet, attempt, .. } = self.job;
        let remote = fleet.remote.as_ref().context("landing needs a remote")?;
        let (base, tracked) = (format!("refs/heads/{}", fleet.base), remote.tracked(&fleet.base));
        let mut terms = fleet.landing_as(&memory.manifest()?.value);
        for _ in 0..TRIES {
            if terms.landing != LandingMode::Main {
                return Ok(LandEnd::Requested);
            }
            let main = self.job.bring_main(self.checkout, &tracked)?;
            let now = Landing { job: Job { fleet: &terms, ..self.job }, ..*self };
            let prepared = now.prepare(&kept.value, &main)?;
            if prepared.is_err() {
                land::clear(&self.folder());
                if self.is_stopped() {
                    return Ok(LandEnd::Stopped);
                }
            }
            let fleet = memory.manifest()?.value;
            if fleet.cancel_of(kept.value.id()).is_some() {
                return Ok(LandEnd::Stopped);
            }
            // A person may have changed the checks while those of before ran.
            let newest = terms.landing_as(&fleet);
            if newest != terms {
                terms = newest;
                continue;
            }
            let commit = match prepared {
                Ok(commit) => commit,
                Err(refusal) => return Ok(LandEnd::Refused(refusal)),
            };
            // A heartbeat may have moved the lease: what was checked still holds.
            while memory.shared()?.seen(&base)?.as_ref() == Some(&main) {
                // Without a commit main had the work already.
                let new = Some(commit.clone()).filter(|commit| *commit != main);
                let lease = self.landed(&kept.value, new.clone());
                let (name, old) = (base.clone(), Some(main.clone()));
                let also = new.map(|new| RefUpdate { name, old, new: Some(new) });
                let put = memory.put(&kept, &lease, also);
                if let Some(kept) = put.map_err(|error| not_taken(error, &fleet.base))? {
                    return Ok(LandEnd::Landed(Box::new(kept.value)));
                }
                kept = memory.lease(kept.value.id())?;
                if !kept.value.is_of(attempt) {
                    return Ok(LandEnd::Fenced);
                }
            }
        }
        let why = format!("{} moved {TRIES} times while the checks ran", fleet.base);
        Ok(LandEnd::Refused(Refusal::Moved(why)))
    }

    /// The lease of the task once it has landed as this commit.
    fn landed(&self, lease: &Lease, commit: Option<String>) -> Lease {
        let ending = TaskEnding { landed: Some(Landed::Main(commit)), ..self.ending.clone() };
        let mut lease = lease.clone();
        (lease.state, lease.at) = (TaskState::Ended(ending), clock::now().wall);
        (lease.is_retried, lease.is_renewed, lease.accepted_test_changes) = (false, false, None);
        lease
    }

    /// The landing's lease and a slot, if nobody else lands. Neither is held while the other is
    /// waited for: then other machines could not land, or other tasks of this one not work.
    fn take_both(
        &self,
        task: &TaskId,
        still: &mut Stillness,
    ) -> Result<Option<(String, Option<Slot>)>> {
        let shared = self.job.memory.shared()?;
        let name = shared.name(LANDING);
        let found = shared.text(&name)?;
        if let Some((id, holder)) = &found
            && !self.is_left(task, id, holder, still)?
        {
            return Ok(None);
        }
        let slot = self.job.slot_for_checks(MAX_PRIORITY, self.commands.stop(), || ())?;
        if self.is_stopped() {
            return Ok(None);
        }
        let text = format!("{task} {}\n\n{}\n", self.job.attempt, clock::now().wall);
        let token = shared.commit(&text)?;
        let (old, new) = (found.map(|(id, _)| id), Some(token.clone()));
        let is_ours = shared.swap(&[RefUpdate { name, old, new }])?;
        Ok(is_ours.then_some((token, slot)))
    }

    /// The commit that may land, checked; or why it may not.
    fn prepare(&self, lease: &Lease, main: &str) -> Result<Result<String, Refusal>> {
        let (checkout, Job { memory, fleet, .. }) = (self.checkout, self.job);
        let branch = lease.commit.as_deref().unwrap_or_default();
        // A person may have brought it there otherwise than by a merge.
        let changed = land::changed_and_differing(checkout, main, branch);
        let changed =
            changed.with_context(|| format!("git cannot compare {} with main", lease.branch))?;
        if let Some(path) = touches_the_fleet(&fleet.folder, &changed) {
            return Ok(Err(Refusal::Folder(path.to_owned())));
        }
        if let Some(before) = &lease.stands_on
            && is_rewritten(checkout, before, branch, main)
        {
            let (base, before) = (&fleet.base, before.get(..7).unwrap_or(before));
            let why = format!("{base} was rewritten: it lacks {before}, which this branch holds");
            return Ok(Err(Refusal::Moved(why)));
        }
        let (folder, repository) = (self.folder(), &fleet.repository);
        let trees = memory.hold_trees(repository, self.commands.stop())?;
        // It is crew's own, and what landings made in it is made again.
        if disk::exists(&folder.join(".git")) && !worktree::is_of(fleet, &folder) {
            tree::remove(&folder)?;
        }
        worktree::unplanted(fleet, if disk::exists(&folder) { &folder } else { repository })?;
        clear_half_made(repository, &folder)?;
        clear_half_merged(&folder);
        land::lay_out(repository, &folder, main)?;
        drop(trees);
        let message = lease.landing_message();
        let commit = match land::squash(&folder, branch, &message)? {
            Squashed::Commit(commit) => commit,
            // Main may hold the work already; that it does has to be shown all the same.
            Squashed::Nothing => main.to_owned(),
            Squashed::Conflict(files) => return Ok(Err(Refusal::Conflict(files))),
        };
        worktree::set_up(fleet, &folder, true, self.commands)?;
        let altered = land::altered(&folder);
        if !altered.is_empty() {
            return Ok(Err(altered_by(fleet, &altered.join(", "))));
        }
        let markers = without_markers(&lease.conflicts);
        let checks = lease.contract.checks.iter().chain(&fleet.land_checks).chain(&markers);
        for check in checks {
            if let Some(output) = self.commands.fails(check, &folder)? {
                return Ok(Err(Refusal::Red { run: check.run.clone(), output }));
            }
        }
        Ok(Ok(commit))
    }

    /// Where landings of this fleet are tried on this machine.
    fn folder(&self) -> PathBuf {
        self.job.home.fleet(&self.job.fleet.name).join("land")
    }

    /// Whether nobody lands by this lease any more: an earlier attempt at our task has it, its
    /// holder does something else by now, or its holder has no heartbeat.
    fn is_left(
        &self,
        task: &TaskId,
        id: &str,
        holder: &str,
        still: &mut Stillness,
    ) -> Result<bool> {
        let (name, attempt) = holder.split_once(' ').unwrap_or((holder, ""));
        if name == task.as_str() {
            return Ok(true);
        }
        let Ok(name) = name.parse() else { return Ok(true) };
        let lease = match self.job.memory.known_lease(&name) {
            // Nobody knows what it does; main is only ever pushed over what was checked.
            Err(error) if error.is::<RecordFault>() => return Ok(still.is_stale(id)),
            lease => lease?,
        };
        let lands = |lease: &Lease| {
            lease.attempt().is_some_and(|it| it.id == attempt && it.phase == JobPhase::Lands)
        };
        let Some(lease) = lease.filter(|kept| lands(&kept.value)) else { return Ok(true) };
        Ok(still.is_stale(&format!("{id} {}", lease.id)))
    }
}

/// The refusal where files that are committed differ before any check has run.
fn altered_by(fleet: &Fleet, files: &str) -> Refusal {
    let (run, what) = match (&fleet.setup, &fleet.include) {
        (Some(setup), _) => (setup.clone(), "it changed files that are committed"),
        (None, Some(_)) => {
            (String::new(), "what .worktreeinclude names replaces files that are committed")
        }
        (None, None) => (String::new(), "git checks out files that differ from their commit"),
    };
    Refusal::Red { run, output: format!("{what}: {files}") }
}

/// Whether a branch holds a commit that the main branch had, and has no longer: its squash would
/// bring that back.
fn is_rewritten(checkout: &Path, before: &str, branch: &str, main: &str) -> bool {
    let lacks = |of: &str| git::lacking(checkout, before, of).is_some_and(|some| some > 0);
    lacks(main) && !lacks(branch)
}

/// The error of a landing's push: the lease and the branch went up before.
fn not_taken(error: Error, base: &str) -> Error {
    match error.downcast::<GitFault>() {
        Ok(fault) if fault.trouble == GitTrouble::Rejected => {
            let cause = format!("{base} is not taken: {}", fault.cause);
            let cause = format!("{cause} (--land pr opens a pull request instead)");
            GitFault::new(GitStep::Push, fault.trouble, cause, fault.cure).into()
        }
        Ok(fault) => fault.into(),
        Err(error) => error,
    }
}

/// The longest that the command may take.
const WITHIN: Duration = Duration::from_secs(120);
/// The most characters of its output that an error shows.
const TAIL_CHARS: usize = 300;

/// Which requests of a branch are listed, and what of each.
const LISTED: &str = "--state all --json url,headRefOid,state,mergeCommit";
/// What is asked of a request's state, for `parse::gh`.
const STATE: &str = r#".state + " " + (.mergeCommit.oid // "")"#;

impl Job<'_> {
    pub(super) fn request(&self, ending: &TaskEnding) -> Result<JobEnd> {
        let Some(kept) = self.lands(ending)? else { return Ok(JobEnd::Fenced) };
        let stop = || self.signals.times() > 0;
        let shared = self.memory.shared()?;
        let opened = shared.patiently(|| {
            // The host may have been away for long.
            if self.is_cancelled() {
                bail!("it is cancelled");
            }
            open(self.fleet, &kept.value, shared, &stop)
        });
        match opened {
            Ok(landed) => self.close(TaskEnding { landed: Some(landed), ..ending.clone() }),
            Err(_) if stop() || self.is_cancelled() => self.leave(JobEnd::Interrupted),
            Err(error) if git_trouble(&error) == Some(GitTrouble::Network) => Err(error),
            Err(error) => self.ended(Outcome::Blocked, format!("pull request: {error:#}")),
        }
    }
}

/// Opens the request, or finds the one that is open, or that was merged with all of the work before
/// the lease could name it.
///
/// The command runs in the fleet's own repository: in the task's tree an agent could lead it to
/// another address.
fn open(fleet: &Fleet, lease: &Lease, shared: &SharedMemory, stop: Stop<'_>) -> Result<Landed> {
    let hub = &shared.hub;
    hub::name_remote(hub, &shared.url)?;
    let (branch, base) = (lease.branch.as_str(), fleet.base.as_str());
    let asked = format!(r#".[] | .url + " " + .headRefOid + " " + {STATE}"#);
    let own = ["pr", "list", "--head", branch, "--base", base, "--jq", &asked];
    let list: Vec<&str> = own.into_iter().chain(words_of(LISTED)).collect();
    let found = requests(&gh(&list, hub, stop)?);
    if let Some(open) = found.iter().find(|it| it.state == RequestState::Open) {
        return Ok(Landed::Request(open.address.clone()));
    }
    let merged = found.into_iter().find_map(|it| match it.state {
        RequestState::Merged(commit) if Some(&it.head) == lease.commit.as_ref() => Some(commit),
        _ => None,
    });
    if let Some(commit) = merged {
        return Ok(Landed::Main(Some(commit)));
    }
    let message = lease.landing_message();
    let (title, body) = message.split_once("\n\n").unwrap_or((&message, ""));
    let create =
        ["pr", "create", "--head", branch, "--base", base, "--title", title, "--body", body];
    let told = gh(&create, hub, stop)?;
    let address = told.lines().rev().find(|line| line.starts_with("http"));
    let address = address.with_context(|| format!("gh names no address: {told}"))?;
    Ok(Landed::Request(address.to_owned()))
}

fn gh(arguments: &[&str], hub: &Path, stop: Stop<'_>) -> Result<String> {
    let call = Call::of("gh", hub).args(arguments).envs([("GH_PROMPT_DISABLED", "1")]);
    let ended = call
        .within(WITHIN)
        .run(stop)
        .context("gh cannot be started: install the GitHub CLI, and log in with gh auth login")?;
    let text = ended.text().trim().to_owned();
    let away = match &ended.cause {
        ExitCause::Exit(0) => return Ok(text),
        ExitCause::TimedOut => Some(ended.cause.to_string()),
        _ => unreached(&text).map(str::to_owned),
    };
    let what = format!("gh {}", arguments[..2].join(" "));
    match away {
        Some(why) => bail!(GitFault::new(
            GitStep::Request,
            GitTrouble::Network,
            format!("{what}: {why}"),
            "see whether gh auth status answers here",
        )),
        None => bail!("{what} fails: {}", tail_of(&text, TAIL_CHARS)),
    }
}
