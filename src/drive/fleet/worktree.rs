//! The working tree of a task: made once, from the fleet's base and the tasks before it, with the
//! ignored files and the setup that it needs. One that exists is used as it is, for it may hold
//! work. What its setup and checks start is noted on disk, so that the next attempt ends it.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::gate::Job;
use super::memory::{self, Memory, PUSHED_AT_ONCE};
use crate::engine::events::{EventSink, RunEvent};
use crate::engine::fleet::{Fleet, INCLUDE, LandingMode, Lease, TaskId, TaskState};
use crate::engine::git::{GitStep, RefUpdate};
use crate::engine::record::Check;
use crate::engine::text::{named, one_line, tail_of, with_reason};
use crate::world::files::disk::{self, Durability};
use crate::world::git::land::merge;
use crate::world::git::steps::put_back;
use crate::world::git::worktree::{clear_half_made, clear_half_merged, worktree};
use crate::world::git::{self, hub, include, steps};
use crate::world::process::{Call, ExitCause, FinishedProcess, Stop, descendants, groups};
use crate::world::store::{Home, fleets, hash};

/// The longest that a setup may take.
const SETUP_WITHIN: Duration = Duration::from_secs(45 * 60);
/// How many files that are not copied the job's log names.
const LEFT_OUT_NAMED: usize = 5;
/// The most characters of a failed setup's output that the error shows.
const TAIL_CHARS: usize = 400;
/// The most characters of its command that the error shows.
const COMMAND_CHARS: usize = 60;
/// The file in a working tree's own git folder that names the setup that succeeded, and its size.
const SET_UP: &str = "crew-set-up";
const MARK_BYTES: u64 = 4096;

/// Makes the working tree of a task ready. Returns it, and whether it was there, and its setup had
/// run: what it holds beyond its commits is work then.
pub(super) fn make(job: &Job<'_>, commands: &FleetCommands<'_>) -> Result<(PathBuf, bool)> {
    let Job { memory, fleet, lease, .. } = *job;
    let (name, start) = start(job)?;
    let trees = memory.hold_trees(&fleet.repository, commands.stop())?;
    unplanted(fleet, &fleet.repository)?;
    clear_half_made(&fleet.repository, Path::new(&name))?;
    let is_made_anew = git::commit(&fleet.repository, &format!("refs/heads/{name}")).is_none()
        && (!memory.is_shared() || lease.commit.is_none());
    let made = worktree(&fleet.repository, &name, &start)?;
    drop(trees);
    if !made.is_new {
        put_back(&made.path)?;
    }
    if !made.is_new && lease.loop_id.is_none() {
        clear_half_merged(&made.path);
    }
    // A commit before the first loop is that of an earlier fleet, which had other work before it.
    let is_first = lease.commit.is_none() || lease.loop_id.is_none();
    let is_first = lease.carried.completed == 0 && is_first;
    if (is_first || is_made_anew) && fleet.landing != LandingMode::Main {
        let mut others = vec![fleet.base.as_str()];
        for before in &lease.task.after {
            if let Some(work) = before_of(job, before, commands)? {
                take_in(&made.path, before, &work, &others)?;
                others.push(before.as_str());
            }
        }
    }
    let has_run = set_up(fleet, &made.path, false, commands)?;
    Ok((made.path, !made.is_new && !has_run))
}

/// Whether a folder is a working tree of the fleet's repository. One that was moved, or cloned anew
/// in its place, is another. A repository that cannot be read tells nothing.
pub(super) fn is_of(fleet: &Fleet, folder: &Path) -> bool {
    let repository = git::shared_folder(&fleet.repository);
    repository.is_none() || git::shared_folder(folder) == repository
}

/// Fails if a program was planted in the configuration that holds in `folder` since the fleet was
/// started or came to this machine.
pub fn unplanted(fleet: &Fleet, folder: &Path) -> Result<()> {
    let before = fleet.trusted.as_ref();
    Ok(before.map_or(Ok(()), |before| steps::unplanted(folder, before, GitStep::Worktree, None))?)
}

/// The local branch of a task, and where it begins. Work of an attempt that was never pushed stays
/// on its branch, and the task goes on beside it.
fn start(job: &Job<'_>) -> Result<(String, String)> {
    let Job { memory, fleet, lease, .. } = *job;
    let Fleet { repository, base, remote: Some(_), .. } = fleet else {
        return Ok((lease.branch.clone(), fleet.base.clone()));
    };
    let main = bring(memory, fleet, base)?;
    let main = main.with_context(|| format!("the remote has no branch {base}"))?;
    let start = match &lease.commit {
        Some(commit) => {
            bring(memory, fleet, &lease.branch)?;
            commit.clone()
        }
        None => main,
    };
    let own = git::commit(repository, &format!("refs/heads/{}", lease.branch));
    // A local fleet that got a remote has work here that was never pushed.
    let is_local_work = lease.commit.is_none() && lease.carried.completed > 0;
    // An attempt whose setup failed leaves a branch without work.
    let is_in_main = |own: &String| git::lacking(repository, own, &start) == Some(0);
    let is_empty = lease.commit.is_none() && own.as_ref().is_some_and(is_in_main);
    let is_as_pushed = own.is_none() || own == lease.commit || is_local_work || is_empty;
    let beside = || format!("{}+{}", lease.branch, lease.attempts);
    Ok((if is_as_pushed { lease.branch.clone() } else { beside() }, start))
}

/// Has new leases continue from the work that there is: from the branch that the remote has of a
/// task, for the first push of another commit would be refused, and from what a local fleet has
/// kept here, which goes to the remote first, for any machine may take the task. Returns what the
/// user should know.
///
/// # Errors
/// If a task has worked here beside what such a branch holds.
pub(super) fn continue_branches(
    memory: &Memory,
    fleet: &Fleet,
    leases: &mut [Lease],
) -> Result<Vec<String>> {
    let Ok(shared) = memory.shared() else { return Ok(Vec::new()) };
    let there = shared.branches(&fleet.branch_of("*"))?;
    let mut notes = Vec::new();
    let mut kept = Vec::new();
    for lease in leases.iter_mut().filter(|lease| lease.state == TaskState::Waiting) {
        let (id, branch) = (lease.id().clone(), &lease.branch);
        let name = format!("refs/heads/{branch}");
        let old = there.get(branch);
        let has_worked = lease.loop_id.is_some() || lease.carried.completed > 0;
        // A person may have deleted a branch that was merged.
        let known = lease.commit.take().and_then(|it| git::commit(&fleet.repository, &it));
        let own = has_worked.then(|| git::commit(&fleet.repository, &name).or(known)).flatten();
        if let Some(old) = old.filter(|_| has_worked) {
            memory.fetch_branch(branch)?;
            if own.as_ref().and_then(|own| git::lacking(&shared.hub, old, own)) != Some(0) {
                bail!(
                    "the remote's branch {branch} holds work that {id} lacks here\n\
                     hint: move it to another branch there, or merge it into {branch} here"
                );
            }
        }
        if old.is_some() {
            notes.push(format!("{id} continues from the remote's branch {branch}"));
        }
        lease.commit = own.as_ref().or(old).cloned();
        if own.is_some() && own.as_ref() != old {
            kept.push(RefUpdate { name, old: old.cloned(), new: own });
        }
    }
    for some in kept.chunks(PUSHED_AT_ONCE) {
        if !shared.swap(some)? {
            bail!("a task's branch was pushed by somebody else meanwhile\nhint: try again");
        }
    }
    Ok(notes)
}

/// Whether the main branch of the remote has the work of a task as its branch has it, by a person's
/// merge.
pub(super) fn is_merged(memory: &Memory, fleet: &Fleet, lease: &Lease) -> Result<bool> {
    let (Some(hub), Some(commit), Some(stood)) = (memory.hub(), &lease.commit, &lease.stands_on)
    else {
        return Ok(false);
    };
    if fleet.landing != LandingMode::Main || git::lacking(hub, commit, stood) == Some(0) {
        return Ok(false);
    }
    memory.fetch_branch(&lease.branch)?;
    let main = memory.fetch_branch(&fleet.base)?;
    Ok(main.is_some_and(|main| git::lacking(hub, commit, &main) == Some(0)))
}

/// Brings a branch of the remote into the repository, and returns its commit.
fn bring(memory: &Memory, fleet: &Fleet, branch: &str) -> Result<Option<String>> {
    let Some(remote) = &fleet.remote else { return Ok(None) };
    memory.bring(branch, &fleet.repository, &remote.tracked(branch))
}

/// What holds the work of a task that comes before: its branch here or, where other machines work
/// too, the commit that the remote has. A person or a host may delete a branch that was merged: it
/// is then the commit as it was, or nothing where that cannot be seen from here.
fn before_of(
    job: &Job<'_>,
    before: &TaskId,
    commands: &FleetCommands<'_>,
) -> Result<Option<String>> {
    let Job { memory, fleet, .. } = *job;
    let (branch, repository) = (fleet.branch(before), &fleet.repository);
    let shared = memory.hub().zip(fleet.remote.as_ref());
    let found = if shared.is_some() {
        bring(memory, fleet, &branch)?
    } else {
        git::commit(repository, &format!("refs/heads/{branch}")).map(|_| branch.clone())
    };
    if found.is_some() {
        return Ok(found);
    }
    let lease = memory.lease(before)?.value;
    // The hub has the objects of the repository, too.
    let known = memory.hub().unwrap_or(repository);
    if let Some(commit) = lease.commit.as_ref().filter(|it| git::commit(known, it).is_some()) {
        if let Some((hub, remote)) = shared.filter(|_| git::commit(repository, commit).is_none()) {
            hub::give(hub, repository, commit, &remote.tracked(&branch))?;
        }
        return Ok(lease.commit);
    }
    if lease.ending().is_some_and(|ending| ending.landed.is_some()) {
        let base = &fleet.base;
        commands.note(&format!("the branch {branch} is gone: {before} is taken from {base} alone"));
        return Ok(None);
    }
    let (whose, back) = match shared {
        Some(_) => ("the remote has no", "push it again"),
        None => ("there is no", "bring it back"),
    };
    bail!("{whose} branch {branch}, which comes before: {back}, then --retry")
}

/// Merges the work of a task that comes before into that of the `others`.
fn take_in(folder: &Path, before: &TaskId, work: &str, others: &[&str]) -> Result<()> {
    let files = merge(folder, work)?;
    if files.is_empty() {
        return Ok(());
    }
    bail!(
        "conflict: {before}, which comes before, and {} change the same lines: {}",
        others.join(" or "),
        files.join(", ")
    )
}

/// Copies the ignored files that the fleet names, except those that are there: its agent may have
/// changed them. Runs its setup once; the folder remembers one that succeeded. Where its files are
/// now others, both are done `again`, over what is there. Returns whether the setup ran.
pub(super) fn set_up(
    fleet: &Fleet,
    folder: &Path,
    again: bool,
    commands: &FleetCommands<'_>,
) -> Result<bool> {
    if let Some(patterns) = &fleet.include {
        let copied = include::copy(patterns, &fleet.repository, folder, again);
        let left_out = copied.map_err(|why| anyhow!("{INCLUDE}: {why}"))?;
        if !left_out.is_empty() {
            commands.note(&format!("{INCLUDE} leaves out {}", named(&left_out, LEFT_OUT_NAMED)));
        }
    }
    let Some(command) = &fleet.setup else { return Ok(false) };
    let done = steps::repository(folder).unwrap_or_else(|| folder.join(".git")).join(SET_UP);
    let mark = hash(command.as_bytes());
    if !again && disk::read_text(&done, MARK_BYTES).ok().flatten().as_deref() == Some(&*mark) {
        return Ok(false);
    }
    let mut each = |line: &str| commands.note(&format!("setup: {line}"));
    let ended = commands.run(command, folder, SETUP_WITHIN, &mut each);
    // Of an error only the first line becomes the reason for a task's end.
    let setup = format!("setup `{}`", one_line(command, COMMAND_CHARS));
    let ended = ended.with_context(|| setup.clone())?;
    match ended.cause {
        ExitCause::Exit(0) => {
            disk::write(&done, mark.as_bytes(), Durability::Process)?;
            Ok(true)
        }
        ExitCause::Exit(code) => {
            bail!(with_reason(&format!("{setup} exits {code}"), &last_lines(&ended.text())))
        }
        ExitCause::TimedOut => bail!("{setup} took longer than 45 minutes"),
        _ => bail!("{setup} was ended"),
    }
}

/// The last lines of an output that are not empty, as one line.
fn last_lines(output: &str) -> String {
    let tail = tail_of(output, TAIL_CHARS);
    let lines = tail.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// The most characters of a failed check's output that its loop is told.
const CHECK_TAIL_CHARS: usize = 4000;

/// How the commands of one attempt run.
pub(super) struct FleetCommands<'a> {
    notes: PathBuf,
    stop: Stop<'a>,
    sink: RefCell<&'a mut dyn EventSink>,
}

impl<'a> FleetCommands<'a> {
    /// Those of an attempt. `stop` ends one early; `sink` hears what a setup prints.
    pub fn of(job: &Job<'_>, stop: Stop<'a>, sink: &'a mut dyn EventSink) -> Self {
        let notes = notes(job.home, &job.fleet.name, job.lease.id());
        Self { notes, stop, sink: RefCell::new(sink) }
    }

    /// What ends a command early.
    pub fn stop(&self) -> Stop<'a> {
        self.stop
    }

    /// Runs a check and ends what it leaves running; its output, if it fails.
    pub fn fails(&self, check: &Check, folder: &Path) -> Result<Option<String>> {
        let within = Duration::from_secs(check.timeout_s.max(1));
        let ended = descendants::leaving_none(|| self.run(&check.run, folder, within, &mut |_| {}));
        let ended = ended.with_context(|| format!("the check `{}`", check.run))?;
        let passes = ended.cause == ExitCause::Exit(check.success_exit_code);
        Ok((!passes).then(|| tail_of(&ended.text(), CHECK_TAIL_CHARS)))
    }

    /// A line for the job's log.
    pub fn note(&self, words: &str) {
        self.sink.borrow_mut().on_event(&RunEvent::Noted(words));
    }

    fn run(
        &self,
        run: &str,
        folder: &Path,
        within: Duration,
        each: &mut dyn FnMut(&str),
    ) -> io::Result<FinishedProcess> {
        let call = Call::shell(run, folder).within(within);
        call.noted(self.notes.clone()).each_line(each).run(self.stop)
    }
}

/// Ends what the commands of an earlier attempt at a task left on this machine. The task must be
/// held: the commands of an attempt that lives are noted, too.
pub(super) fn end_leftovers(home: &Home, fleet: &str, task: &TaskId) {
    groups::end_leftovers(&notes(home, fleet, task), true);
}

/// After a new start of the machine the ids of processes mean others, and its seat is another.
fn notes(home: &Home, fleet: &str, task: &TaskId) -> PathBuf {
    fleets::groups(home, fleet, task, &memory::seat(home))
}
