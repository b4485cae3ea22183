//! Removes what a fleet left behind from tasks that landed or were given up: clones, the branches
//! and refs of their attempts, here and at the remote, and finally the fleet's record. A commit is
//! removed only if another ref keeps it or the base has the work. Anything that exists nowhere
//! else, or has changed since it was listed, stays and is reported.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::drive::failure::short_error;
use crate::fleet::attempt;
use crate::fleet::attempt::clones::{self, KEPT};
use crate::fleet::files::FleetFiles;
use crate::fleet::record::{FleetRecord, FleetTerms, Landed, TaskEnding, TaskRecord};
use crate::fleet::store;
use crate::fleet::store::remote_refs::RemoteAccess;
use engine::failure::Failure;
use engine::fleet::TaskId;
use engine::git::{RefUpdate, RemoteRef, SwapResult};
use engine::text::count;
use world::files::{disk, tree};
use world::git::{self, readiness};
use world::process::signals::Signals;
use world::store::Home;

/// How long to try for a lock, longer than a process that only tests it keeps it.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Everything that cleaning a fleet would remove.
#[derive(Debug)]
pub struct FleetLeftovers<'a> {
    home: &'a Home,
    record: &'a FleetRecord,
    files: FleetFiles,
    remote: Option<RemoteAccess>,
    clones: Vec<(TaskId, u32)>,
    /// The refs to remove, and whether each is the remote's.
    refs: Vec<(RemoteRef, bool)>,
    /// The ref of the record at the remote.
    shared: Option<RemoteRef>,
    /// Whether every task is settled, so that the record is removed too.
    has_record: bool,
    /// What stays, each with its reason.
    pub stays: Vec<String>,
}

impl<'a> FleetLeftovers<'a> {
    /// Finds the leftovers here and at the remote.
    ///
    /// # Errors
    /// If the fleet is running, another machine has continued it, or the remote does not answer.
    pub fn find_leftovers(
        home: &'a Home,
        record: &'a FleetRecord,
        signals: &Signals,
    ) -> Result<Self> {
        let (terms, fleet) = (&record.terms, &record.terms.name);
        if store::is_coordinated(home, fleet) {
            bail!(is_coordinated(fleet));
        }
        let (files, remote) =
            (FleetFiles::new(home, fleet), RemoteAccess::for_terms(terms, signals));
        let mut clones = files.list_clones();
        clones.retain(|(id, _)| record.task(id).is_some_and(is_settled));
        clones.sort();
        let has_record = record.tasks.values().all(is_settled);
        let (refs, stays) = (Vec::new(), Vec::new());
        let shared = store::own_ref(home, terms, signals)?;
        let mut all = Self { home, record, files, remote, clones, refs, shared, has_record, stays };
        all.look_at_refs()?;
        Ok(all)
    }

    fn look_at_refs(&mut self) -> Result<()> {
        let terms = &self.record.terms;
        let FleetTerms { name: fleet, repository: top, base, remote, .. } = terms;
        let kept = format!("{KEPT}/{fleet}/");
        let [work, heads, results, requests] = [
            format!("refs/remotes/crew/{fleet}/"),
            format!("refs/heads/fleet/{fleet}/"),
            format!("refs/crew/{fleet}/result/"),
            format!("refs/crew/{fleet}/request/"),
        ];
        let here =
            readiness::refs_below(top, &[&work, &kept]).into_iter().map(|found| (found, false));
        let there = [&heads, &results, &requests].map(|below| format!("{below}*"));
        let there = match &self.remote {
            Some(access) => access.refs()?.list_refs(&there.each_ref().map(String::as_str))?,
            None => Vec::new(),
        };
        let newest = remote
            .as_ref()
            .map_or(format!("refs/heads/{base}"), |remote| remote.tracking_ref(base));
        for (it, is_there) in here.chain(there.into_iter().map(|one| (one, true))) {
            let is_kept = it.name.starts_with(&kept);
            let below = [&work, &heads, &results, &requests];
            let rest = below.iter().find_map(|below| it.name.strip_prefix(below.as_str()));
            let id = rest.and_then(|rest| rest.split('/').next()?.parse().ok());
            let task = id.as_ref().and_then(|id: &TaskId| self.record.task(id));
            if !is_kept && !task.is_some_and(is_settled) {
                continue;
            }
            // Landed work is on the base in another commit, so this one may be removed if it is
            // here.
            let task = task.filter(|task| is_there || is_on_base(task));
            let keepers = [Some(&newest), task.and_then(|task| task.work.commit.as_ref())];
            let mut keepers = keepers.into_iter().flatten();
            let is_kept_there =
                keepers.any(|keeper| git::count_lacking(top, &it.id, keeper) == Some(0));
            let is_note = it.name.starts_with(&results) || it.name.starts_with(&requests);
            // Once a task has landed, its earlier attempts' commits were rebased or redone.
            let is_landed = is_there && task.is_some_and(is_on_base);
            let is_own = id.is_some_and(|id| {
                git::is_held(top, &it.id, &clones::known_commits(terms, &id, None))
            });
            if is_note || (is_landed && is_own) || is_kept_there {
                self.refs.push((it, is_there));
            } else if is_kept {
                let why = "commits that only a removed clone had; git update-ref -d drops them";
                self.stays.push(format!("{}: {why}", it.name));
            } else {
                self.stays.push(format!("{}: its work is not on {base}", it.name));
            }
        }
        Ok(())
    }

    /// Renders a line for each item that would be removed.
    pub fn render_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (id, number) in &self.clones {
            let clone = self.files.clone_of(id, *number);
            let changed = git::status_text(&clone).unwrap_or_default().lines().count() as u64;
            let remark = match changed {
                0 => String::new(),
                files => format!(": {} changed and not committed", count(files, "file")),
            };
            lines.push(format!("clone   {}{remark}", clone.display()));
        }
        let there = self.record.terms.remote.as_ref().map_or("", |remote| remote.name.as_str());
        for (it, is_there) in &self.refs {
            lines.push(format!("{:<7} {}", if *is_there { there } else { "ref" }, it.name));
        }
        if self.has_record {
            lines.extend(self.shared.iter().map(|found| format!("{there:<7} {}", found.name)));
            lines.push(format!("record  {}", self.files.root.display()));
        }
        lines
    }

    /// Removes the leftovers. Returns what stays all the same, each with its reason.
    ///
    /// # Errors
    /// If the fleet is running or has changed since it was listed, or the remote does not answer.
    pub fn remove_files(self) -> Result<Vec<String>> {
        let (terms, files) = (&self.record.terms, &self.files);
        let Some(_lock) = disk::take_lock(&files.lock(), LOCK_WAIT)? else {
            bail!(is_coordinated(&terms.name));
        };
        if super::read_with_requests(self.home, &terms.name)?.as_ref() != Some(self.record) {
            bail!(has_changed(&terms.name));
        }
        let mut stays = Vec::new();
        for (id, number) in &self.clones {
            let (clone, branch) = (files.clone_of(id, *number), self.record.branch(id, *number));
            let fetched = self.record.task(id).and_then(|task| task.work.commit.as_deref());
            if attempt::is_alive(files, id, *number) {
                stays.push(format!("{}: an attempt works there", clone.display()));
                continue;
            }
            match clones::remove_clone(&terms.repository, &clone, &branch, fetched) {
                Ok(kept) => {
                    let kept = kept.iter();
                    stays.extend(kept.map(|name| format!("{name}: commits that were only there")));
                    files.remove_attempt(id, *number)?;
                    disk::remove(&files.log(id, *number))?;
                }
                Err(error) => stays.push(format!("{}: {}", clone.display(), short_error(&error))),
            }
        }
        let is_whole = self.has_record && files.list_clones().is_empty();
        let (there, here): (Vec<_>, Vec<_>) = self.refs.into_iter().partition(|found| found.1);
        if let Some(access) = &self.remote {
            let record = if is_whole { self.shared } else { None };
            let gone = there.into_iter().map(|(one, _)| one).chain(record);
            let gone =
                gone.map(|found| RefUpdate { name: found.name, old: Some(found.id), new: None });
            if access.refs()?.swap(&gone.collect::<Vec<_>>())? == SwapResult::Refused {
                bail!(has_changed(&terms.name));
            }
        }
        for (it, _) in here {
            git::delete_ref(&terms.repository, &it)?;
        }
        if is_whole {
            tree::remove_stubborn(&files.root)?;
        }
        Ok(stays)
    }
}

fn is_coordinated(fleet: &str) -> Failure {
    let hint = "clean it once crew fleet run has ended";
    Failure::new(format!("the fleet {fleet} is coordinated now"), hint)
}

fn has_changed(fleet: &str) -> Failure {
    let hint = "crew fleet clean looks again";
    Failure::new(format!("the fleet {fleet} or its refs changed just now"), hint)
}

/// Whether a task is settled for good: it has landed or was given up.
fn is_settled(task: &TaskRecord) -> bool {
    is_on_base(task) || task.ending().is_some_and(TaskEnding::is_cancelled)
}

fn is_on_base(task: &TaskRecord) -> bool {
    matches!(task.landed(), Some(Landed::Main(_)))
}

#[cfg(test)]
#[path = "clean_tests.rs"]
mod tests;
