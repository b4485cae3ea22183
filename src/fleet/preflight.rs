//! What a fleet needs before any agent works and costs: of git on this machine, of the disk, of the
//! executor, and of the remote. Everything that is missing is reported together, each with its fix.
//! It starts nothing. At the remote it makes one ref and deletes it again, unless the fleet was
//! there before.

use anyhow::{Result, bail};

use super::executors::{executor_of, executors_of_user};
use super::record::FleetSetup;
use super::step::DescribedTask;
use crate::engine::fleet::task::LOCAL;
use crate::engine::fleet::{LandingMode, Remote};
use crate::engine::git::{GitFault, GitTrouble, RemoteRef};
use crate::engine::text::{count, named};
use crate::world::client::on_path;
use crate::world::files::disk;
use crate::world::git;
use crate::world::git::readiness::{self, in_the_way};
use crate::world::git::refs::Refs;
use crate::world::slots;
use crate::world::store::Home;

/// What has to be free on the disk beside the clones, in bytes.
const SPARE_BYTES: u64 = 100 << 20;
/// The most refs or submodules that a sentence names.
const NAMED_MAX: usize = 5;

/// Looks at all of it. Returns what the user should know: one sentence each.
///
/// # Errors
/// Everything that is missing, a line each, with its fix.
pub fn check(home: &Home, setup: &FleetSetup, tasks: &[DescribedTask]) -> Result<Vec<String>> {
    let mut found = Findings::default();
    found.check_git(setup, tasks);
    found.check_submodules(setup);
    found.check_disk(home, setup, tasks);
    found.check_executor(home, setup);
    if let Some(remote) = &setup.remote {
        found.check_remote(setup, remote, tasks);
    }
    let Findings { missing, notes } = found;
    if missing.is_empty() {
        return Ok(notes);
    }
    let lines: String = missing.iter().map(|what| format!("\n  {what}")).collect();
    bail!("the fleet {} cannot start:{lines}\nhint: nothing was started", setup.name)
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    missing: Vec<String>,
    notes: Vec<String>,
}

impl Findings {
    /// Something that is missing, with its fix.
    fn lacks(&mut self, what: impl std::fmt::Display, fix: impl std::fmt::Display) {
        self.missing.push(format!("{what}: {fix}"));
    }

    /// Who commits, refs in the way, and locks that were left.
    fn check_git(&mut self, setup: &FleetSetup, tasks: &[DescribedTask]) {
        let top = &setup.repository;
        if let Err(GitFault { cause, cure, .. }) = readiness::identity(top) {
            self.lacks(cause, cure);
        }
        let own = format!("refs/remotes/crew/{}", setup.name);
        let wanted: Vec<String> =
            tasks.iter().map(|task| format!("{own}/{}", task.task.id)).collect();
        for name in in_the_way(&readiness::refs_below(top, &["refs/remotes/crew"]), &wanted) {
            let what = format!("{name} is in the way of the refs of the tasks");
            self.lacks(what, format!("git update-ref -d {name}"));
        }
        for lock in readiness::left_locks(top, &own) {
            let fix = format!("if no git works there, rm {}", lock.display());
            self.lacks(format!("{} is locked", top.display()), fix);
        }
    }

    /// The submodules of the base that a clone gets from here, and git-lfs.
    fn check_submodules(&mut self, setup: &FleetSetup) {
        let FleetSetup { repository: top, base, .. } = setup;
        let Some(commit) = git::commit(top, base) else { return };
        let mut absent = Vec::new();
        for submodule in readiness::submodules(top, &commit) {
            let path = submodule.path;
            if !submodule.is_initialised {
                absent.push(path);
            } else if !submodule.has_commit {
                let what =
                    format!("the commit of the submodule {path} that {base} names is not here");
                self.lacks(what, format!("git submodule update --init {path}"));
            }
        }
        if !absent.is_empty() {
            self.notes.push(format!(
                "these submodules are not checked out here, and the tasks start without them: {}\n\
                 hint: git submodule update --init",
                named(&absent, NAMED_MAX)
            ));
        }
        if readiness::uses_lfs(top, &commit) && on_path("git-lfs").is_empty() {
            let what = "git-lfs is not on PATH, and .gitattributes gives files to it";
            self.lacks(what, "install git-lfs, then git lfs install");
        }
    }

    /// The room for as many clones as work at once, and for the one of landings.
    fn check_disk(&mut self, home: &Home, setup: &FleetSetup, tasks: &[DescribedTask]) {
        let top = &setup.repository;
        let commit = git::commit(top, &setup.base);
        let clone = commit.and_then(|commit| readiness::checkout_bytes(top, &commit));
        let there = home.root().ancestors().find(|folder| disk::exists(folder));
        let (Some(clone), Some(folder)) = (clone, there) else { return };
        let Some(free) = disk::free_bytes(folder) else { return };
        let slots = if setup.slots > 0 { setup.slots } else { slots::default_count().count };
        let at_once = if setup.executor == LOCAL { tasks.len().min(slots as usize) } else { 0 };
        let clones = at_once as u64 + u64::from(setup.landing == LandingMode::Main);
        let needed = clone.saturating_mul(clones).saturating_add(SPARE_BYTES);
        if free < needed {
            let [free, needed] = [free, needed].map(|bytes| bytes >> 20);
            let what = format!(
                "{} has {free} MiB free, and {} need {needed} MiB",
                folder.display(),
                count(clones, "clone")
            );
            self.lacks(what, "make room, set CREW_HOME to another disk, or fewer --slots");
        }
    }

    /// Where jobs run, and the program that opens pull requests.
    fn check_executor(&mut self, home: &Home, setup: &FleetSetup) {
        let executor = executors_of_user()
            .and_then(|entries| executor_of(home, setup, &entries, &|| false).map(drop));
        if let Err(error) = executor {
            let text = error.to_string();
            let (what, fix) = text.split_once("\nhint: ").unwrap_or((&text, "correct that"));
            self.lacks(what, fix);
        }
        if setup.landing == LandingMode::Pr && on_path("gh").is_empty() {
            let what = "--land pr opens pull requests with gh, which is not on PATH";
            self.lacks(what, "install the GitHub CLI, and log in with gh auth login");
        }
    }

    /// That the remote answers, has the base, and takes the refs of the fleet.
    fn check_remote(&mut self, setup: &FleetSetup, remote: &Remote, tasks: &[DescribedTask]) {
        let FleetSetup { repository, base, name: fleet, .. } = setup;
        let refs =
            Refs { folder: repository, remote: &remote.url, stop: &|| false, patience: None };
        let branch = format!("refs/heads/{base}");
        let below = [format!("refs/heads/fleet/{fleet}*"), format!("refs/crew/{fleet}*")];
        let fixed = [&*branch, "refs/heads/fleet", "refs/crew"];
        let patterns: Vec<&str> =
            fixed.into_iter().chain(below.iter().map(String::as_str)).collect();
        let there = match refs.list(&patterns) {
            Ok(there) => there,
            Err(fault) => return self.unreached(&remote.name, fault),
        };
        self.check_names(setup, remote, tasks, &there);
        let record = format!("refs/crew/{fleet}/record");
        let tip = there.iter().find(|it| it.name == branch);
        if !there.iter().any(|it| it.name == record) {
            match refs.takes(&record) {
                Ok(true) => {}
                Ok(false) => self.lacks(
                    format!("{} does not take refs such as {record}", remote.name),
                    "have its rules take refs/crew/*, or use another remote",
                ),
                Err(fault) => self.unreached(&remote.name, fault),
            }
        }
        match tip {
            Some(tip) => self.check_ahead(setup, remote, tip),
            None => self.lacks(
                format!("{} has no branch {base} for the tasks to start from", remote.name),
                format!("git push {} {base}, or base = \"BRANCH\" in fleet.toml", remote.name),
            ),
        }
    }

    fn unreached(&mut self, remote: &str, fault: GitFault) {
        let GitFault { trouble, cause, cure, .. } = fault;
        let is_away =
            matches!(trouble, GitTrouble::Auth | GitTrouble::Network | GitTrouble::NoRemote);
        let without =
            if is_away { "; without --push, --land and --on it is not needed" } else { "" };
        self.lacks(
            format!("the remote {remote} cannot be used: {cause}"),
            format!("{cure}{without}"),
        );
    }

    /// Refs at the remote that are in the way of the branches and refs of the fleet.
    fn check_names(
        &mut self,
        setup: &FleetSetup,
        remote: &Remote,
        tasks: &[DescribedTask],
        there: &[RemoteRef],
    ) {
        let fleet = &setup.name;
        let branches =
            tasks.iter().map(|task| format!("refs/heads/fleet/{fleet}/{}/1", task.task.id));
        let wanted: Vec<String> = branches.chain([format!("refs/crew/{fleet}/record")]).collect();
        let names: Vec<String> = there.iter().map(|it| it.name.clone()).collect();
        for name in in_the_way(&names, &wanted) {
            let short = name.strip_prefix("refs/heads/").unwrap_or(name);
            let what = format!("{short} at {} is in the way of the fleet's own", remote.name);
            let fix = format!("rename it there, or name = \"NAME\" in {}/fleet.toml", setup.folder);
            self.lacks(what, fix);
        }
    }

    /// Commits of the base that the remote does not have: a note, and where they would land with a
    /// task's work, a fault.
    fn check_ahead(&mut self, setup: &FleetSetup, remote: &Remote, tip: &RemoteRef) {
        let FleetSetup { repository, base, landing, name: fleet, .. } = setup;
        let branch = format!("refs/heads/{base}");
        // The tip is not here if others pushed since the last fetch.
        let lacks = |known: String| Some((git::lacking(repository, &branch, &known)?, known));
        let known = [tip.id.clone(), remote.tracked(base)].into_iter().find_map(lacks);
        let (ahead, known) = known.unwrap_or_default();
        if ahead == 0 {
            return;
        }
        let name = &remote.name;
        let tasks = format!("refs/remotes/crew/{fleet}/");
        if *landing == LandingMode::Main
            && let Some(task) = git::begun_beyond(repository, &branch, &known, &tasks)
        {
            let what = format!(
                "{task} began on commits that {name}/{base} lacks, and would land them too"
            );
            return self.lacks(what, format!("git push {name} {base}"));
        }
        let is_behind = git::lacking(repository, &known, &branch) != Some(0);
        let pull = if is_behind {
            format!("git pull --rebase {name} {base}, and ")
        } else {
            String::new()
        };
        let them = if ahead == 1 { "it" } else { "them" };
        self.notes.push(format!(
            "{base} here is {} ahead of {name}/{base}: the tasks start without {them}\n\
             hint: {pull}git push {name} {base}",
            count(ahead, "commit")
        ));
    }
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
