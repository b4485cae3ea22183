//! Removes what a fleet left behind of tasks that landed or were given up: clones, the branches and
//! refs of their attempts, here and at the remote, and in the end the fleet's record. A commit goes
//! only where another ref keeps it or the base has the work: what is nowhere else stays, and is
//! named.

use std::time::Duration;

use anyhow::{Result, bail};

use super::attempt;
use super::files::FleetFiles;
use super::record::{FleetRecord, Landed, TaskRecord};
use super::shared::RemoteAccess;
use super::workspace::{self, Removal};
use crate::engine::fleet::TaskId;
use crate::engine::git::{RefUpdate, RemoteRef};
use crate::engine::record::Outcome;
use crate::world::files::{disk, tree};
use crate::world::git::{self, readiness};
use crate::world::process::signals::Signals;
use crate::world::store::Home;

/// Longer than somebody holds the lock who only looks whether it is held.
const LOCK_LOOK: Duration = Duration::from_millis(50);

/// What a clean would remove.
#[derive(Debug, Default)]
pub struct FleetLeftovers {
    pub clones: Vec<(TaskId, u32)>,
    /// Refs of the person's repository.
    pub refs: Vec<String>,
    /// Branches and refs of the remote.
    pub remote: Vec<RemoteRef>,
    /// Whether every task is settled, so that the record goes, too.
    pub has_record: bool,
    /// What stays, each with its reason.
    pub stays: Vec<String>,
}

impl FleetLeftovers {
    /// Looks here and at the remote.
    pub fn of(home: &Home, record: &FleetRecord, signals: &Signals) -> Result<Self> {
        let terms = &record.terms;
        let (fleet, top) = (&terms.name, terms.repository.as_path());
        let files = FleetFiles::of(home, fleet);
        let settled = |id: &TaskId| record.task(id).filter(|task| is_settled(task));
        let mut found = Self::default();
        found.clones = files.clones();
        found.clones.retain(|(id, _)| settled(id).is_some());
        found.clones.sort();
        found.has_record = record.tasks.values().all(is_settled);
        let base = match &terms.remote {
            Some(remote) => remote.tracked(&terms.base),
            None => format!("refs/heads/{}", terms.base),
        };
        let below = format!("refs/remotes/crew/{fleet}/");
        for name in readiness::refs_below(top, &[&below]) {
            let task = name.strip_prefix(&below).and_then(|id| settled(&id.parse().ok()?));
            let Some(task) = task else { continue };
            let is_landed = git::commit(top, &name) == task.commit && is_on_base(task);
            if is_landed || git::lacking(top, &name, &base) == Some(0) {
                found.refs.push(name);
            } else {
                found.stays.push(format!("{name}: its work is not on {}", terms.base));
            }
        }
        let Some(access) = RemoteAccess::of(terms, signals) else { return Ok(found) };
        let own = format!("refs/crew/{fleet}/");
        let heads = format!("refs/heads/fleet/{fleet}/");
        let patterns = [format!("{own}*"), format!("{heads}*")];
        for it in access.refs()?.list(&patterns.each_ref().map(String::as_str))? {
            let (is_branch, rest) = match it.name.strip_prefix(&heads) {
                Some(rest) => (true, rest),
                None => (false, it.name.strip_prefix(&own).unwrap_or_default()),
            };
            let rest = rest.trim_start_matches("result/").trim_start_matches("request/");
            let id = rest.split('/').next().and_then(|id| id.parse().ok());
            let Some(task) = id.and_then(|id: TaskId| settled(&id)) else { continue };
            let keeper = task.commit.as_deref().unwrap_or(&base);
            // Of a task that landed, an earlier attempt has what was rebased or done again since.
            let is_over = !is_branch || is_on_base(task);
            if is_over || git::lacking(top, &it.id, keeper) == Some(0) {
                found.remote.push(it);
            } else {
                found.stays.push(format!("{}: it holds commits that are not here", it.name));
            }
        }
        Ok(found)
    }

    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        let Self { clones, refs, remote, has_record, .. } = self;
        clones.is_empty() && refs.is_empty() && remote.is_empty() && !has_record
    }

    /// A line for each thing that would go.
    pub fn lines(&self, record: &FleetRecord, home: &Home) -> Vec<String> {
        let files = FleetFiles::of(home, &record.terms.name);
        let there = record.terms.remote.as_ref().map_or("", |remote| remote.name.as_str());
        let clones = self.clones.iter().map(|(id, number)| files.clone(id, *number));
        let mut lines: Vec<String> =
            clones.map(|path| format!("clone   {}", path.display())).collect();
        lines.extend(self.refs.iter().map(|name| format!("ref     {name}")));
        lines.extend(self.remote.iter().map(|it| format!("{there}  {}", it.name)));
        if self.has_record {
            if record.terms.remote.is_some() {
                lines.push(format!("{there}  refs/crew/{}/record", record.terms.name));
            }
            lines.push(format!("record  {}", files.root.display()));
        }
        lines
    }

    /// Removes it. Returns what stays all the same, each with its reason.
    ///
    /// # Errors
    /// If somebody works on the fleet, or the remote does not answer.
    pub fn remove(
        self,
        home: &Home,
        record: &FleetRecord,
        signals: &Signals,
    ) -> Result<Vec<String>> {
        let terms = &record.terms;
        let (fleet, top) = (&terms.name, terms.repository.as_path());
        let files = FleetFiles::of(home, fleet);
        let Some(_lock) = disk::lock(&files.lock(), LOCK_LOOK)? else {
            bail!("the fleet {fleet} is coordinated now\nhint: clean it once crew fleet run ended");
        };
        let mut stays = Vec::new();
        for (id, number) in &self.clones {
            let (clone, branch) = (files.clone(id, *number), record.branch(id, *number));
            let fetched = record.task(id).and_then(|task| task.commit.as_deref());
            if attempt::is_alive(&files, id, *number) {
                stays.push(format!("{}: an attempt works there", clone.display()));
                continue;
            }
            match workspace::remove(top, &clone, &branch, fetched)? {
                Removal::Removed { kept } => {
                    stays.extend(
                        kept.iter().map(|name| format!("{name}: commits that were only there")),
                    );
                    files.remove_attempt(id, *number)?;
                    disk::remove(&files.log(id, *number))?;
                }
                Removal::Refused(why) => stays.push(format!("{}: {why}", clone.display())),
            }
        }
        for name in &self.refs {
            git::delete_ref(top, name)?;
        }
        let is_whole = self.has_record && files.clones().is_empty();
        if let Some(access) = RemoteAccess::of(terms, signals) {
            let refs = access.refs()?;
            let own = format!("refs/crew/{fleet}/record");
            let last = if is_whole { refs.list(&[&own])? } else { Vec::new() };
            let gone = self.remote.into_iter().chain(last);
            let gone = gone.map(|it| RefUpdate { name: it.name, old: Some(it.id), new: None });
            refs.swap(&gone.collect::<Vec<_>>())?;
        }
        if is_whole {
            tree::remove_stubborn(&files.root)?;
        }
        Ok(stays)
    }
}

/// Whether nobody will work on it again: it landed, or was given up.
fn is_settled(task: &TaskRecord) -> bool {
    is_on_base(task) || task.ending().is_some_and(|it| it.outcome == Outcome::Cancelled)
}

fn is_on_base(task: &TaskRecord) -> bool {
    matches!(task.landed(), Some(Landed::Main(_)))
}
