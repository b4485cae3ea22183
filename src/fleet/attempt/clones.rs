//! The clone of an attempt: made whole or not at all, with the ignored files and the setup that it
//! needs. An existing clone is used as it is, because it may contain work. Only commits leave it,
//! and those that no other repository has are kept before it is removed. What its setup and checks
//! start is noted on disk, so that the next attempt can end it.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::fleet::record::{CloneSetup, FleetTerms};
use crate::fleet::spec::{AttemptSpec, Source};
use engine::failure::Failure;
use engine::fleet::{INCLUDE, TaskId};
use engine::git::{GitFault, GitStep};
use engine::record::Check;
use engine::text::{join_first_names, one_line, tail_of, with_reason};
use readers::parse::git::{zero_ended_names, zero_list};
use world::files::disk::{self, Durability};
use world::files::tree;
use world::git::clone::{self, CloneSource, CloneTerms};
use world::git::{self, include, land, steps};
use world::process::{Call, ExitCause, FinishedProcess, Stop, descendants, groups};
use world::store::hash;

/// The time limit of a setup if the fleet does not set one.
const SETUP_WITHIN: Duration = Duration::from_secs(45 * 60);
/// How many of the files that were not copied the log names.
const LEFT_OUT_NAMED: usize = 5;
/// How many lines the log keeps of the start and of the end of a setup's output, and the maximum
/// number of characters in a line.
const SETUP_LINES: usize = 200;
const SETUP_LAST: usize = 20;
const SETUP_LINE_CHARS: usize = 300;
/// The maximum number of characters of a failed setup's output, and of its command, in the error.
const TAIL_CHARS: usize = 400;
const COMMAND_CHARS: usize = 60;
/// The maximum number of characters of a failed check's output that its loop gets.
const CHECK_TAIL_CHARS: usize = 4000;
/// Files in a clone's git folder, for the setup that succeeded and for the files in conflict with
/// the base; and the maximum size of each, in bytes.
const SET_UP: &str = "crew-set-up";
const CONFLICTS: &str = "crew-conflicts";
const MARK_BYTES: u64 = 4 << 20;
/// The variable, set for every process of a setup or a check, that says where its group is noted.
const MARK: &str = "CREW_GROUPS";
/// The prefix of the refs that keep commits that only a removed clone had.
pub const KEPT: &str = "refs/crew/kept";

/// The ref in the user's repository that points to a task's work.
pub fn tracking_ref(fleet: &str, task: &TaskId) -> String {
    format!("refs/remotes/crew/{fleet}/{task}")
}

/// The commits of a task that its attempts brought to the user's repository, as far as is known,
/// and the one in its record. The presence of another commit proves nothing, because a person
/// fetches what others push.
pub fn known_commits(terms: &FleetTerms, task: &TaskId, commit: Option<&str>) -> Vec<String> {
    let top = &terms.repository;
    let mut known = git::named_by(top, &tracking_ref(&terms.name, task));
    known.extend(commit.and_then(|commit| git::find_commit(top, commit)));
    known
}

/// The clone of an attempt.
#[derive(Debug)]
pub struct AttemptClone {
    /// The root of the clone, with every link resolved.
    pub path: PathBuf,
    /// Whether the clone is new. Otherwise anything in it beyond its commits is work.
    pub is_new: bool,
    /// The files in conflict when the base was merged into a branch that a landing sent back. Files
    /// that git can merge by lines contain markers; the others have the branch's side.
    pub conflicts: Vec<String>,
}

/// An earlier task changes the same lines as the base or another task.
#[derive(Debug, thiserror::Error)]
#[error("conflict: {0}")]
pub struct WorkConflict(pub String);

/// Prepares the clone of an attempt. An existing clone is always complete.
///
/// # Errors
/// A [`GitFault`], a [`WorkConflict`], a setup that fails, or an error of the system.
pub fn make_clone(
    spec: &AttemptSpec,
    clone: &Path,
    commands: &FleetCommands<'_>,
) -> Result<AttemptClone> {
    let is_new = !disk::exists(clone);
    if is_new {
        let part = sibling_path(clone, "part");
        tree::remove_stubborn(&part)?;
        clone.parent().map_or(Ok(()), disk::make_private_folder)?;
        fill_clone(spec, &part, commands)?;
        disk::rename(&part, clone)?;
    } else if let Err(GitFault { cause, hint, .. }) = steps::stays_inside(clone, GitStep::Worktree)
    {
        bail!(Failure::new(cause, hint));
    } else {
        steps::put_back(clone)?;
    }
    let path = disk::real_path(clone)?;
    let from = match &spec.origin.source {
        Source::Local { repository, .. } => Some(repository.as_path()),
        Source::Remote { .. } => None,
    };
    set_up(&spec.clones, from, &path, false, commands)?;
    let conflicts = disk::read(&path.join(".git").join(CONFLICTS), MARK_BYTES)?;
    let conflicts = zero_ended_names(&conflicts.unwrap_or_default()).collect();
    Ok(AttemptClone { path, is_new, conflicts })
}

/// Makes the clone with the work that the attempt begins from.
fn fill_clone(spec: &AttemptSpec, part: &Path, commands: &FleetCommands<'_>) -> Result<()> {
    let (base, start) = (&*spec.origin.base, spec.origin.start.as_deref());
    let terms = CloneTerms { base, branch: &spec.branch, start, stop: commands.stop() };
    let has_remote = match &spec.origin.source {
        Source::Local { repository, url } => {
            let (url, trusted) = (url.as_deref(), spec.clones.trusted.as_ref());
            let source = CloneSource { checkout: repository, url, trusted };
            for note in clone::clone_local(&source, &terms, part)? {
                commands.note(&note);
            }
            url.is_some()
        }
        Source::Remote { url } => {
            clone::clone_remote(url, &terms, part)?;
            true
        }
    };
    let mut others = vec![base];
    for (task, commit) in &spec.origin.before {
        merge_before(part, task, commit, &others)?;
        others.push(task.as_str());
    }
    if spec.sent_back.is_some() {
        if has_remote {
            clone::fetch_base(part, base, commands.stop())?;
        }
        let name = if has_remote { "refs/remotes/origin" } else { "refs/heads" };
        let newest = git::find_commit(part, &format!("{name}/{base}"));
        let newest = newest.with_context(|| format!("branch {base} no longer exists"))?;
        let files = land::merge_to_conflicts(part, &newest)?;
        if !files.is_empty() {
            land::commit_markers(part, &files)?;
        }
        let file = part.join(".git").join(CONFLICTS);
        disk::write(&file, &zero_list(&files), Durability::Process)?;
    }
    Ok(())
}

/// Merges the work of an earlier task with that of the `others`.
fn merge_before(folder: &Path, before: &TaskId, work: &str, others: &[&str]) -> Result<()> {
    let files = land::merge_branch(folder, work)?;
    if files.is_empty() {
        return Ok(());
    }
    let (others, files) = (others.join(" or "), files.join(", "));
    let why =
        format!("{before}, which comes before, and {others} change the same lines in {files}");
    Err(WorkConflict(why).into())
}

/// Copies the ignored files that the fleet names, except those that exist, because its agent may
/// have changed them. Runs the setup once; the folder remembers one that succeeded. `again` repeats
/// both. `from` is the working tree with the ignored files, if this machine has one.
pub fn set_up(
    terms: &CloneSetup,
    from: Option<&Path>,
    folder: &Path,
    again: bool,
    commands: &FleetCommands<'_>,
) -> Result<()> {
    if let Some((patterns, from)) = terms.include.as_ref().zip(from) {
        let copied = include::copy_included(patterns, from, folder, again);
        let left_out = copied.map_err(|why| anyhow!("{INCLUDE}: {why}"))?;
        if !left_out.is_empty() {
            commands.note(&format!(
                "{INCLUDE} leaves out {}",
                join_first_names(&left_out, LEFT_OUT_NAMED)
            ));
        }
    }
    let Some(command) = &terms.setup else { return Ok(()) };
    let within = match terms.setup_timeout_s {
        0 => SETUP_WITHIN,
        seconds => Duration::from_secs(seconds),
    };
    let done = steps::repository_folder(folder).unwrap_or_else(|| folder.join(".git")).join(SET_UP);
    let mark = hash(command.as_bytes());
    if !again && disk::read_text(&done, MARK_BYTES).ok().flatten().as_deref() == Some(&*mark) {
        return Ok(());
    }
    let mut lines = 0;
    let shown = |line: &str| format!("setup: {}", one_line(line, SETUP_LINE_CHARS));
    let ended = commands.run_command(command, folder, within, &mut |line| {
        lines += 1;
        if lines <= SETUP_LINES {
            commands.note(&shown(line));
        }
    });
    // Only an error's first line becomes the reason for a task's end.
    let setup = format!("setup `{}`", one_line(command, COMMAND_CHARS));
    let ended = ended.with_context(|| setup.clone())?;
    let output = ended.text();
    let more = lines.saturating_sub(SETUP_LINES);
    if more > SETUP_LAST {
        commands.note(&format!("setup: ({} lines are left out)", more - SETUP_LAST));
    }
    let last: Vec<&str> = output.lines().rev().take(more.min(SETUP_LAST)).collect();
    last.iter().rev().for_each(|line| commands.note(&shown(line)));
    match ended.cause() {
        ExitCause::Exit(0) => Ok(disk::write(&done, mark.as_bytes(), Durability::Process)?),
        ExitCause::Exit(code) => {
            bail!(with_reason(&format!("{setup} exits {code}"), &last_lines(&output)))
        }
        ExitCause::TimedOut => bail!("{setup} took longer than {} s", within.as_secs()),
        _ => bail!("{setup} was ended"),
    }
}

/// Joins the last non-empty lines of an output into one line.
fn last_lines(output: &str) -> String {
    let tail = tail_of(output, TAIL_CHARS);
    let lines = tail.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

/// Ends processes left by the commands of an earlier attempt or landing that noted its groups in
/// this folder. No other process may use the same notes at that time.
pub fn end_leftovers(groups: &Path, is_of_this_start: bool) {
    groups::end_leftovers(groups, is_of_this_start);
    descendants::end_with(&marker_variable(groups));
}

/// The environment variable of every process whose group is noted in this folder.
fn marker_variable(groups: &Path) -> String {
    format!("{MARK}={}", groups.display())
}

/// Runs the commands of one attempt or one landing.
pub struct FleetCommands<'a> {
    groups: PathBuf,
    stop: Stop<'a>,
    note: RefCell<&'a mut dyn FnMut(&str)>,
}

impl<'a> FleetCommands<'a> {
    /// `groups` is the folder where the groups of their processes are noted. `stop` ends a command
    /// early; `note` receives lines for the log, such as a setup's output.
    pub fn new(groups: PathBuf, stop: Stop<'a>, note: &'a mut dyn FnMut(&str)) -> Self {
        Self { groups, stop, note: RefCell::new(note) }
    }

    /// The condition that ends a command early.
    pub fn stop(&self) -> Stop<'a> {
        self.stop
    }

    /// Runs a check and ends what it leaves running. Returns its output if it fails.
    pub fn find_failure(&self, check: &Check, folder: &Path) -> Result<Option<String>> {
        let within = Duration::from_secs(check.timeout_s.max(1));
        let ended = self.run_command(&check.run, folder, within, &mut |_| {});
        let ended = ended.with_context(|| format!("the check `{}`", check.run))?;
        if ended.cause() == ExitCause::Exit(check.success_exit_code) {
            return Ok(None);
        }
        Ok(Some(tail_of(&ended.text(), CHECK_TAIL_CHARS)))
    }

    /// Adds a line to the log.
    pub fn note(&self, words: &str) {
        (self.note.borrow_mut())(words);
    }

    /// Runs a command, and ends what it leaves running, even in a session of its own. Other
    /// attempts can be children of this process too, so only processes with the mark are ended.
    fn run_command(
        &self,
        run: &str,
        folder: &Path,
        within: Duration,
        each: &mut dyn FnMut(&str),
    ) -> io::Result<FinishedProcess> {
        let call = Call::shell(run, folder).within(within).envs([(MARK, self.groups.as_os_str())]);
        let ended = call.noted(self.groups.clone()).each_line(each).run(self.stop);
        descendants::end_with(&marker_variable(&self.groups));
        ended
    }
}

/// Removes an attempt's clone. `branch` is the attempt's, and `fetched` the commit of it that the
/// person's repository has. No commit is lost: commits that only a ref, the checkout or the stash
/// had are kept below `refs/crew/kept/<fleet>/<task>/<number>`. Returns those refs.
///
/// # Errors
/// If something would be lost; the clone then stays.
pub fn remove_clone(
    repository: &Path,
    clone: &Path,
    branch: &str,
    fetched: Option<&str>,
) -> Result<Vec<String>> {
    let gone = sibling_path(clone, "gone");
    tree::remove_stubborn(&gone)?;
    if let Some(commit) = fetched
        && git::find_commit(repository, commit).is_none()
    {
        bail!("{commit} is no longer in {}", repository.display());
    }
    let (own, mut kept) = (clone.join(".git"), Vec::new());
    if tree::is_folder(&own) {
        let below = format!("{KEPT}/{}", branch.strip_prefix("fleet/").unwrap_or(branch));
        kept = clone::keep_strays(repository, clone, &below)?;
    } else if disk::exists(&own) {
        bail!("{} is no longer a folder", own.display());
    }
    if disk::exists(clone) {
        // A half-removed clone would look like work.
        disk::rename(clone, &gone)?;
        tree::remove_stubborn(&gone)?;
    }
    Ok(kept)
}

/// The path of a clone while it is being made or removed.
fn sibling_path(clone: &Path, end: &str) -> PathBuf {
    let mut name = clone.as_os_str().to_owned();
    name.push(".");
    name.push(end);
    name.into()
}

#[cfg(test)]
#[path = "clones_tests.rs"]
mod tests;
