//! Checks git, the disk and the remote before any agent of a fleet starts and costs money.
//! Everything missing is reported together, each with its fix. Creates and deletes one ref at the
//! remote, unless the fleet already has refs there.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use super::files::FleetFiles;
use super::record::FleetTerms;
use super::step::DescribedTask;
use super::store;
use engine::failure::Failure;
use engine::fleet::{LOCAL, LandingMode, Remote, TaskId};
use engine::git::{GitFault, GitTrouble};
use engine::text::{count, join_first_names};
use world::client::on_path;
use world::files::disk;
use world::git::readiness::{self, AbsentSubmodule, in_the_way};
use world::git::remotes::Refs;
use world::store::Home;
use world::{git, slots};

/// The disk space needed beside the clones, in bytes.
const SPARE_BYTES: u64 = 100 << 20;
/// The maximum number of refs or submodules that a sentence names.
const NAMED_MAX: usize = 5;

/// Checks everything a start needs. Returns notes for the user, one sentence each.
///
/// # Errors
/// Everything that is missing, a line each, with its fix.
pub fn check_start(
    home: &Home,
    terms: &FleetTerms,
    tasks: &[DescribedTask],
) -> Result<Vec<String>> {
    let mut preflight = Preflight { terms, tasks, missing: Vec::new(), notes: Vec::new() };
    preflight.check_git();
    if let Some(commit) = git::find_commit(&terms.repository, &format!("refs/heads/{}", terms.base))
    {
        preflight.check_submodules(&commit);
        preflight.check_disk(home, &commit);
    }
    preflight.check_gh();
    if let Some(remote) = &terms.remote {
        preflight.check_remote(remote);
    }
    let Preflight { missing, notes, .. } = preflight;
    if missing.is_empty() {
        return Ok(notes);
    }
    let lines = missing.join("\n  ");
    bail!(Failure::new(
        format!("the fleet {} cannot start:\n  {lines}", terms.name),
        "nothing was started"
    ))
}

/// The checks, and their findings so far.
struct Preflight<'a> {
    terms: &'a FleetTerms,
    tasks: &'a [DescribedTask],
    missing: Vec<String>,
    notes: Vec<String>,
}

impl Preflight<'_> {
    /// Adds something that is missing, with its fix.
    fn add_fault(&mut self, what: impl std::fmt::Display, fix: impl std::fmt::Display) {
        self.missing.push(format!("{what}: {fix}"));
    }

    /// Checks the commit author, refs in the way, and leftover locks.
    fn check_git(&mut self) {
        let FleetTerms { repository: top, name: fleet, .. } = self.terms;
        if let Err(GitFault { cause, hint, .. }) = readiness::check_identity(top) {
            self.add_fault(cause, hint);
        }
        let own = format!("refs/remotes/crew/{fleet}");
        let wanted: Vec<String> =
            self.tasks.iter().map(|task| format!("{own}/{}", task.task.id)).collect();
        let here = readiness::refs_below(top, &["refs/remotes/crew"]).into_iter();
        for name in in_the_way(&here.map(|found| found.name).collect::<Vec<_>>(), &wanted) {
            let what = format!("{name} is in the way of the refs of the tasks");
            self.add_fault(what, format!("git update-ref -d {name}"));
        }
        for lock in readiness::left_locks(top, &own) {
            let fix = format!("if no git works there, rm {}", lock.display());
            self.add_fault(format!("{} is locked", top.display()), fix);
        }
    }

    /// Checks the base's submodules, which clones get from this repository, and git-lfs.
    fn check_submodules(&mut self, commit: &str) {
        let FleetTerms { repository: top, base, .. } = self.terms;
        let mut unused = Vec::new();
        for AbsentSubmodule { path, is_initialised } in readiness::absent_submodules(top, commit) {
            if is_initialised {
                let what =
                    format!("the commit of the submodule {path} that {base} names is not here");
                self.add_fault(what, format!("git submodule update --init {path}"));
            } else {
                unused.push(path);
            }
        }
        if !unused.is_empty() {
            let what =
                "these submodules are not checked out here, and the tasks start without them";
            let note = format!("{what}: {}", join_first_names(&unused, NAMED_MAX));
            self.notes.push(Failure::new(note, "git submodule update --init").with_hint());
        }
        if readiness::uses_lfs(top, commit) && on_path("git-lfs").is_empty() {
            let what = "git-lfs is not on PATH, and .gitattributes gives files to it";
            self.add_fault(what, "install git-lfs, then git lfs install");
        }
    }

    /// The number of clones still to be made: one for each task at once, and one for landings.
    fn missing_clones(&self, home: &Home) -> u64 {
        let FleetTerms { name, limits, executor, landing, .. } = self.terms;
        let (files, known) =
            (FleetFiles::new(home, name), store::read_local(home, name).ok().flatten());
        let cloned: BTreeSet<TaskId> =
            files.list_clones().into_iter().map(|(task, _)| task).collect();
        let mut open: Vec<&TaskId> = self.tasks.iter().map(|task| &task.task.id).collect();
        if let Some(known) = known {
            open.retain(|id| known.task(id).is_none_or(|task| task.ending().is_none()));
        }
        let slots = if limits.slots > 0 { limits.slots } else { slots::default_count().count };
        let at_once = if executor == LOCAL { open.len().min(slots as usize) } else { 0 };
        let there = open.iter().filter(|id| cloned.contains(**id)).count();
        let lands = *landing == LandingMode::Main && !disk::exists(&files.land());
        at_once.saturating_sub(there) as u64 + u64::from(lands)
    }

    /// Checks the disk space for the clones still to be made.
    fn check_disk(&mut self, home: &Home, commit: &str) {
        let clone = readiness::checkout_bytes(&self.terms.repository, commit);
        let there = home.root().ancestors().find(|folder| disk::exists(folder));
        let (Some(clone), Some(folder)) = (clone, there) else { return };
        let Some(free) = disk::free_bytes(folder) else { return };
        let clones = self.missing_clones(home);
        let needed = clone.saturating_mul(clones).saturating_add(SPARE_BYTES);
        if free < needed {
            let [free, needed] = [free, needed].map(|bytes| bytes >> 20);
            let (folder, clones) = (folder.display(), count(clones, "clone"));
            self.add_fault(
                format!("{folder} has {free} MiB free, and {clones} need {needed} MiB"),
                "make room, set CREW_HOME to another disk, or fewer --slots",
            );
        }
    }

    /// Checks for the program that opens pull requests.
    fn check_gh(&mut self) {
        if self.terms.landing == LandingMode::Pr && on_path("gh").is_empty() {
            let what = "--land pr opens pull requests with gh, which is not on PATH";
            self.add_fault(what, "install the GitHub CLI, and log in with gh auth login");
        }
    }

    /// Checks that the remote answers, has the base, and accepts the fleet's refs.
    fn check_remote(&mut self, remote: &Remote) {
        if let Err(GitFault { trouble, cause, hint, .. }) = self.ask_remote(remote) {
            let without = match trouble {
                GitTrouble::Auth | GitTrouble::Network | GitTrouble::NoRemote => {
                    "; without --push, --land and --on it is not needed"
                }
                _ => "",
            };
            let what = format!("the remote {} cannot be used: {cause}", remote.name);
            self.add_fault(what, format!("{hint}{without}"));
        }
    }

    fn ask_remote(&mut self, remote: &Remote) -> Result<(), GitFault> {
        let FleetTerms { repository, base, name: fleet, folder, .. } = self.terms;
        let Remote { name, url } = remote;
        let refs = Refs { folder: repository, remote: url, stop: &|| false, patience: None };
        let (branch, record) = (format!("refs/heads/{base}"), format!("refs/crew/{fleet}/record"));
        let there = refs.list_refs(&[
            &branch,
            "refs/heads/fleet",
            "refs/crew",
            &format!("refs/heads/fleet/{fleet}*"),
            &format!("refs/crew/{fleet}*"),
        ])?;
        let there: BTreeMap<String, String> =
            there.into_iter().map(|found| (found.name, found.id)).collect();
        let branch_of =
            |task: &DescribedTask| format!("refs/heads/fleet/{fleet}/{}/1", task.task.id);
        let wanted = self.tasks.iter().map(branch_of).chain([record.clone()]);
        let names: Vec<String> = there.keys().cloned().collect();
        for blocking in in_the_way(&names, &wanted.collect::<Vec<_>>()) {
            let short = blocking.strip_prefix("refs/heads/").unwrap_or(blocking);
            let what = format!("{short} at {name} is in the way of the fleet's own");
            let fix = format!("rename it there, or name = \"NAME\" in {folder}/fleet.toml");
            self.add_fault(what, fix);
        }
        match there.get(&branch) {
            Some(tip) => self.check_ahead(remote, tip),
            None => self.add_fault(
                format!("{name} has no branch {base} for the tasks to start from"),
                format!("git push {name} {base}, or base = \"BRANCH\" in fleet.toml"),
            ),
        }
        if !there.contains_key(&record) && !refs.takes_ref(&record)? {
            let what = format!("{name} does not accept refs such as {record}");
            self.add_fault(what, "allow refs/crew/* in its rules, or use another remote");
        }
        Ok(())
    }

    /// Checks for base commits that the remote lacks: a note or, if they would land with a task's
    /// work, a fault.
    fn check_ahead(&mut self, remote: &Remote, tip: &str) {
        let FleetTerms { repository, base, landing, name: fleet, .. } = self.terms;
        let branch = format!("refs/heads/{base}");
        // The tip is not here if others pushed since the last fetch.
        let known = [tip.to_owned(), remote.tracking_ref(base)]
            .into_iter()
            .find_map(|known| Some((git::count_lacking(repository, &branch, &known)?, known)));
        let Some((ahead @ 1.., known)) = known else { return };
        let name = &remote.name;
        let push = format!("git push {name} {base}");
        let tasks = format!("refs/remotes/crew/{fleet}/");
        if *landing == LandingMode::Main
            && let Some(task) = git::begun_beyond(repository, &branch, &known, &tasks)
        {
            let what = format!(
                "{task} began on commits that {name}/{base} lacks, and would land them too"
            );
            return self.add_fault(what, push);
        }
        let pull = match git::count_lacking(repository, &known, &branch) {
            Some(0) => String::new(),
            _ => format!("git pull --rebase {name} {base}, and "),
        };
        let ahead = count(ahead, "commit");
        let note =
            format!("{base} here is {ahead} ahead of {name}/{base}, from which the tasks start");
        self.notes.push(Failure::new(note, pull + &push).with_hint());
    }
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
