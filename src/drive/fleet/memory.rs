//! Where a fleet's terms and leases are kept: in `$CREW_HOME`, or as refs of its remote where other
//! machines work too. A change is written only over the state it was made from, so that of two
//! writers one is refused. With a lease goes its branch, both or neither. On a remote a lease is a
//! commit whose message holds it, and whose parents are its journal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::drive::error_text::git_trouble;
use crate::engine::fleet::manifest::read_record;
use crate::engine::fleet::{
    Attempt, Fleet, Lease, RecordFault, Remote, TaskEnding, TaskId, TaskState, UnreadableLease,
};
use crate::engine::git::{GitFault, GitStep, GitTrouble, RefUpdate, RemoteRef, SwapResult};
use crate::engine::record::Ending;
use crate::engine::text::Shown;
use crate::world::clock::{self, Stopwatch};
use crate::world::files::disk::Lock;
use crate::world::git::hub;
use crate::world::git::refs::{Patience, Refs, WITHIN};
use crate::world::process::signals::Signals;
use crate::world::process::{Stop, descendants};
use crate::world::store::{Home, Kept, Leases, fleets, hash};
use crate::world::{fault, host};

/// How often a change is made again because somebody else was first.
pub(super) const TRIES: u32 = 20;
/// The most new refs in one push.
pub(super) const PUSHED_AT_ONCE: usize = 200;
/// How long a job waits for another that may be ending.
pub const HELD_WAIT: Duration = Duration::from_secs(2);
/// How long a job waits for others that make their working trees.
const TREES_WAIT: Duration = Duration::from_secs(30 * 60);
/// Before the name of a branch.
const HEADS: &str = "refs/heads/";
/// The name of the terms beside those of the tasks, which never begin with `_`.
const TERMS: &str = "_fleet";

/// The memory of one fleet.
#[derive(Debug, Clone)]
pub struct Memory {
    home: Home,
    pub fleet: String,
    remote: Option<SharedMemory>,
}

impl Memory {
    /// The memory of a fleet of this machine.
    pub fn of(home: &Home, fleet: &str) -> Result<Self> {
        let remote = Self::at(home, fleet, None).manifest()?.value.remote;
        Ok(Self::at(home, fleet, remote.as_ref()))
    }

    /// The memory of a fleet at this remote, or on this machine alone.
    pub fn at(home: &Home, fleet: &str, remote: Option<&Remote>) -> Self {
        let remote = remote.map(|remote| SharedMemory {
            hub: home.fleet(fleet).join("hub.git"),
            url: remote.url.clone(),
            patience: None,
            prefix: format!("refs/crew/{fleet}/"),
            known: Arc::default(),
            held: Arc::default(),
        });
        Self { home: home.clone(), fleet: fleet.to_owned(), remote }
    }

    /// The same, which asks a remote that cannot be reached again for so long. A signal ends that,
    /// and whatever git runs when it comes.
    pub fn with_patience(self, signals: &Signals, within: Duration) -> Self {
        self.with(Patience { signals: signals.clone(), within, talk: WITHIN })
    }

    /// The same, which asks once, and does not wait longer than so for each answer of the remote.
    pub fn with_haste(self, signals: &Signals, talk: Duration) -> Self {
        self.with(Patience { signals: signals.clone(), within: Duration::ZERO, talk })
    }

    fn with(mut self, patience: Patience) -> Self {
        if let Some(shared) = &mut self.remote {
            shared.patience = Some(patience);
        }
        self
    }

    /// Whether other machines work on it too.
    pub fn is_shared(&self) -> bool {
        self.remote.is_some()
    }

    /// Whether an attempt's process can be looked at from here. What is not shared has no other
    /// machine: an attempt of another name is of before this one was started anew.
    pub fn is_here(&self, attempt: &Attempt) -> bool {
        !self.is_shared() || is_here(&self.home, attempt)
    }

    /// The terms and orders. Fails if there is no such fleet.
    pub fn manifest(&self) -> Result<Kept<Fleet>> {
        let Some(found) = self.known_manifest()? else {
            let hint = names(&self.home)?;
            bail!(
                "there is no fleet {} here\n\
                 hint: {hint}; a job of one that another machine started takes --remote=URL",
                Shown(&self.fleet)
            );
        };
        Ok(found)
    }

    /// The terms, with what this machine has of its own.
    pub fn manifest_here(&self) -> Result<Fleet> {
        let fleet = self.manifest()?.value;
        Ok(match fleets::manifest(&self.home, &self.fleet)? {
            Some(here) => fleet.with_own(here.value),
            None => fleet,
        })
    }

    /// The terms if there are any.
    pub fn known_manifest(&self) -> Result<Option<Kept<Fleet>>> {
        match &self.remote {
            Some(shared) => shared.read(TERMS),
            None => Ok(fleets::manifest(&self.home, &self.fleet)?),
        }
    }

    /// Writes the terms over `old`. False where somebody else was first.
    pub fn put_manifest(&self, old: Option<&str>, fleet: &Fleet) -> Result<bool> {
        let Some(shared) = &self.remote else {
            return Ok(fleets::swap_manifest(&self.home, old, fleet)?.is_some());
        };
        let title = format!("fleet {}", fleet.name);
        // Each machine has programs of its own.
        let fleet = Fleet { trusted: None, ..fleet.clone() };
        Ok(shared.write(TERMS, &title, old, &fleet, Vec::new())?.is_some())
    }

    /// Changes the terms.
    pub fn change_manifest(&self, change: impl Fn(&mut Fleet)) -> Result<Fleet> {
        for _ in 0..TRIES {
            let Kept { mut value, id } = self.manifest()?;
            change(&mut value);
            if self.put_manifest(Some(&id), &value)? {
                return Ok(value);
            }
        }
        bail!("the fleet {} is changed all the time\nhint: try again", self.fleet)
    }

    /// All leases, in the order in which their tasks start.
    pub fn leases(&self) -> Result<Leases> {
        let mut leases = match &self.remote {
            Some(shared) => shared.leases()?,
            None => fleets::leases(&self.home, &self.fleet)?,
        };
        leases.readable.sort_by(|one, other| one.task.turn(&other.task));
        Ok(leases)
    }

    /// The lease of a task. Fails if there is none.
    pub fn lease(&self, task: &TaskId) -> Result<Kept<Lease>> {
        let found = self.known_lease(task)?;
        found.with_context(|| {
            let fleet = &self.fleet;
            format!(
                "the fleet {fleet} has no task {task}\nhint: crew fleet status {fleet} names them"
            )
        })
    }

    /// The lease of a task if there is one.
    pub fn known_lease(&self, task: &TaskId) -> Result<Option<Kept<Lease>>> {
        match &self.remote {
            Some(shared) => shared.read(&task.to_string()),
            None => Ok(fleets::lease(&self.home, &self.fleet, task)?),
        }
    }

    /// Writes a lease over `old`, with its branch where the lease says that it has moved, and with
    /// another ref of the remote. `None` where somebody else was first.
    pub fn put(
        &self,
        old: &Kept<Lease>,
        lease: &Lease,
        also: Option<RefUpdate>,
    ) -> Result<Option<Kept<Lease>>> {
        let id = match &self.remote {
            None => fleets::swap_lease(&self.home, Some(&old.id), lease)?,
            Some(shared) => {
                let before = old.value.commit.clone();
                let branch = (before != lease.commit).then(|| RefUpdate {
                    name: format!("{HEADS}{}", lease.branch),
                    old: before,
                    new: lease.commit.clone(),
                });
                let also = branch.into_iter().chain(also).collect();
                shared.write(lease.id().as_str(), &lease.title(), Some(&old.id), lease, also)?
            }
        };
        Ok(id.map(|id| Kept { value: lease.clone(), id }))
    }

    /// Writes the leases of new tasks. False where somebody else was first.
    pub fn put_new(&self, leases: &[Lease]) -> Result<bool> {
        let Some(shared) = &self.remote else {
            for lease in leases {
                if fleets::swap_lease(&self.home, None, lease)?.is_none() {
                    return Ok(false);
                }
            }
            return Ok(true);
        };
        for some in leases.chunks(PUSHED_AT_ONCE) {
            let update = |lease: &Lease| {
                let text = text(&lease.title(), lease)?;
                let new = Some(shared.commit(&text)?);
                Ok(RefUpdate { name: shared.name(&lease.id().to_string()), old: None, new })
            };
            let updates: Result<Vec<RefUpdate>> = some.iter().map(update).collect();
            if !shared.swap(&updates?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Changes a lease, as long as `change` wants to: where it returns false, what it changed is
    /// thrown away and the lease stays. It may be called again, with what somebody else wrote.
    pub fn change(
        &self,
        task: &TaskId,
        mut change: impl FnMut(&mut Lease) -> bool,
    ) -> Result<Kept<Lease>> {
        let mut refused = None;
        for _ in 0..TRIES {
            let kept = self.lease(task)?;
            let mut next = kept.value.clone();
            if !change(&mut next) {
                return Ok(kept);
            }
            if refused.as_ref() == Some(&kept.id) {
                let cause = format!("somebody else pushed to {}", kept.value.branch);
                let cure = "look at it, and move what is there to another branch";
                let trouble = GitTrouble::NonFastForward;
                bail!(GitFault::new(GitStep::Lease, trouble, cause, cure));
            }
            if let Some(kept) = self.put(&kept, &next, None)? {
                return Ok(kept);
            }
            refused = Some(kept.id);
        }
        bail!("the task {task} is changed all the time\nhint: try again")
    }

    /// Changes the lease of a task that this attempt has; `None` where another one has it.
    pub fn change_own(
        &self,
        task: &TaskId,
        attempt: &str,
        change: impl Fn(&mut Lease),
    ) -> Result<Option<Kept<Lease>>> {
        let kept = self.change(task, |lease| {
            let is_own = lease.is_of(attempt);
            change(lease);
            is_own
        })?;
        Ok(kept.value.is_of(attempt).then_some(kept))
    }

    /// Ends a task whose lease is `meant` to end now. Returns the lease as it is then.
    pub fn end(
        &self,
        task: &TaskId,
        ending: Ending,
        is_meant: impl Fn(&Lease) -> bool,
    ) -> Result<Lease> {
        let ending = TaskEnding::of(ending);
        let kept = self.change(task, |lease| {
            let is_meant = is_meant(lease);
            lease.state = TaskState::Ended(ending.clone());
            lease.at = clock::now().wall;
            is_meant
        })?;
        Ok(kept.value)
    }

    /// What has become of a task, the newest first: the titles of its lease's commits. Empty where
    /// the lease is a file.
    pub fn journal(&self, kept: &Kept<Lease>, most: usize) -> Result<Vec<String>> {
        let Some(shared) = &self.remote else { return Ok(Vec::new()) };
        let messages = shared.refs().journal(&kept.id, most)?;
        Ok(messages.iter().map(|it| it.lines().next().unwrap_or_default().to_owned()).collect())
    }

    /// Takes a task for this process's life; `None` while another process of this machine has it.
    pub fn hold(&self, task: &TaskId) -> Result<Option<Lock>> {
        Ok(fleets::hold(&self.home, &self.fleet, task, HELD_WAIT)?)
    }

    /// Whether a process of this machine works on a task.
    pub fn is_held(&self, task: &TaskId) -> bool {
        fleets::is_held(&self.home, &self.fleet, task)
    }

    /// Held while a working tree is added to a repository of this machine. `stop` ends the wait.
    pub fn hold_trees(&self, repository: &Path, stop: Stop<'_>) -> Result<Lock> {
        let lock = fleets::hold_trees(&self.home, repository, TREES_WAIT, stop)?;
        lock.with_context(|| {
            let others = "other jobs have made working trees for half an hour";
            if stop() { "the wait for a working tree was ended" } else { others }
        })
    }

    /// Brings the commit of a branch of the remote into the hub, and returns it.
    pub fn fetch_branch(&self, branch: &str) -> Result<Option<String>> {
        let Some(shared) = &self.remote else { return Ok(None) };
        let name = format!("{HEADS}{branch}");
        let found = shared.seen(&name)?;
        if found.is_some() {
            shared.refs().fetch(&[&name], &[])?;
        }
        Ok(found)
    }

    /// Brings the same into a working tree, as the ref `name`.
    pub fn bring(&self, branch: &str, folder: &Path, name: &str) -> Result<Option<String>> {
        let found = self.fetch_branch(branch)?;
        if let (Some(commit), Some(hub)) = (&found, self.hub()) {
            hub::give(hub, folder, commit, name)?;
        }
        Ok(found)
    }

    /// The fleet's own repository here.
    pub fn hub(&self) -> Option<&PathBuf> {
        self.remote.as_ref().map(|shared| &shared.hub)
    }

    /// What is kept at the remote.
    pub(super) fn shared(&self) -> Result<&SharedMemory> {
        self.remote.as_ref().context("this fleet has no remote")
    }
}

/// How a ref that cannot be read is put out of the way.
const AWAY: &str = "delete that ref of the remote, and the branch of the task";

/// The refs of a remote as memory.
#[derive(Debug, Clone)]
pub(super) struct SharedMemory {
    pub hub: PathBuf,
    pub url: String,
    patience: Option<Patience>,
    /// Before the name of a task: `refs/crew/<fleet>/`.
    prefix: String,
    /// Leases by the commits that hold them, as last read.
    known: Arc<Mutex<BTreeMap<String, Lease>>>,
    /// The commits of refs that are here: only what is newer is fetched.
    held: Arc<Mutex<BTreeMap<String, String>>>,
}

impl SharedMemory {
    pub fn refs(&self) -> Refs<'_> {
        let (folder, remote, patience) = (&self.hub, &self.url, self.patience.as_ref());
        Refs { folder, remote, stop: &descendants::are_ending, patience }
    }

    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// What the remote has of a ref.
    pub fn seen(&self, name: &str) -> Result<Option<String>> {
        let found = self.refs().list(&[name])?;
        Ok(found.into_iter().find(|it| it.name == name).map(|it| it.id))
    }

    /// A ref of the remote, and the first line of the commit that it points to.
    pub fn text(&self, name: &str) -> Result<Option<(String, String)>> {
        for _ in 0..TRIES {
            let Some(id) = self.seen(name)? else { return Ok(None) };
            self.refs().fetch(&[name], &[])?;
            let texts = self.refs().messages(std::slice::from_ref(&id))?;
            // It may have been moved or deleted since it was looked at.
            if let [Some(text)] = &texts[..] {
                return Ok(Some((id, text.lines().next().unwrap_or_default().to_owned())));
            }
        }
        bail!("{name} is changed all the time\nhint: try again")
    }

    /// The branches of the remote that a pattern names, with their commits.
    pub fn branches(&self, pattern: &str) -> Result<BTreeMap<String, String>> {
        let found = self.refs().list(&[&format!("{HEADS}{pattern}")])?;
        let named = found.into_iter().filter_map(|RemoteRef { name, id }| {
            let branch = name.strip_prefix(HEADS)?.to_owned();
            Some((branch, id))
        });
        Ok(named.collect())
    }

    /// Asks the remote's host, and again for as long as the patience lasts and it is out of reach.
    pub fn patiently<T>(&self, ask: impl Fn() -> Result<T>) -> Result<T> {
        let is_network = |error: &Error| git_trouble(error) == Some(GitTrouble::Network);
        self.refs().patiently(ask, |answer| answer.as_ref().is_err_and(is_network))
    }

    /// Moves refs of the remote together. False where somebody else was first.
    pub fn swap(&self, updates: &[RefUpdate]) -> Result<bool> {
        Ok(self.refs().swap(updates)? == SwapResult::Done)
    }

    /// A new commit with a text.
    pub fn commit(&self, text: &str) -> Result<String> {
        Ok(self.refs().commit(text, None)?)
    }

    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<Kept<T>>> {
        let name = self.name(name);
        let Some(id) = self.seen(&name)? else { return Ok(None) };
        self.bring(&[(&name, &id)])?;
        let text = self.refs().message(&id)?;
        Ok(Some(Kept { value: value(&name, &text)?, id }))
    }

    /// Fetches what the refs of these names point to, as far as it is not here.
    fn bring(&self, refs: &[(&str, &str)]) -> Result<()> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_new = |(name, id): &&(&str, &str)| held.get(*name).is_none_or(|held| held != id);
        let names: Vec<&str> = refs.iter().filter(is_new).map(|(name, _)| *name).collect();
        if names.is_empty() {
            return Ok(());
        }
        let known: Vec<&str> =
            names.iter().filter_map(|name| Some(held.get(*name)?.as_str())).collect();
        self.refs().fetch(&names, &known)?;
        for (name, id) in refs {
            self.hold(name, id);
        }
        Ok(())
    }

    fn hold(&self, name: &str, id: &str) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(name.to_owned(), id.to_owned());
    }

    pub fn leases(&self) -> Result<Leases> {
        let refs = self.refs();
        let mut found = refs.list(&[&self.name("*")])?;
        found.retain(|it| !it.name[self.prefix.len()..].starts_with('_'));
        found.sort_by(|one, other| one.name.cmp(&other.name));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || found.iter().filter(|it| !known.contains_key(&it.id));
        self.bring(&new().map(|it| (&*it.name, &*it.id)).collect::<Vec<_>>())?;
        let ids: Vec<String> = new().map(|it| it.id.clone()).collect();
        let mut texts = refs.messages(&ids)?.into_iter();
        let (mut next, mut leases) = (BTreeMap::new(), Leases::default());
        for RemoteRef { name, id } in found {
            let too_long = || RecordFault::broken(&name, "it is too long", AWAY);
            let lease = match known.get(&id) {
                Some(lease) => Ok(lease.clone()),
                None => {
                    texts.next().flatten().ok_or_else(too_long).and_then(|it| value(&name, &it))
                }
            };
            match lease {
                Ok(lease) => {
                    next.insert(id, lease.clone());
                    leases.readable.push(lease);
                }
                Err(fault) => {
                    let task = name[self.prefix.len()..].parse().ok();
                    let lease = task.map(|task| UnreadableLease::of(task, &name, &fault));
                    leases.unreadable.extend(lease);
                }
            }
        }
        *known = next;
        Ok(leases)
    }

    /// Writes a value under a name, together with other `updates`. Returns its id, or `None` where
    /// somebody else was first.
    pub fn write<T: Serialize>(
        &self,
        name: &str,
        title: &str,
        old: Option<&str>,
        value: &T,
        mut updates: Vec<RefUpdate>,
    ) -> Result<Option<String>> {
        let id = self.refs().commit(&text(title, value)?, old)?;
        let (old, new) = (old.map(str::to_owned), Some(id.clone()));
        updates.push(RefUpdate { name: self.name(name), old, new });
        let is_done = self.swap(&updates)?;
        if is_done {
            self.hold(&self.name(name), &id);
        }
        Ok(is_done.then_some(id))
    }
}

/// The message of a commit that holds a value.
fn text<T: Serialize>(title: &str, value: &T) -> Result<String> {
    Ok(format!("{title}\n\n{}\n", serde_json::to_string_pretty(value)?))
}

/// What a commit's message holds below its title.
fn value<T: DeserializeOwned>(name: &str, message: &str) -> Result<T, RecordFault> {
    let (_, text) = message.split_once("\n\n").unwrap_or_default();
    read_record(name, text.as_bytes(), AWAY)
}

/// How long a lease stands still before its attempt counts as gone: five heartbeats, on this
/// machine's own clock while it is awake.
const STALE_MS: u64 = 5 * 60 * 1000;

/// What names this machine since it was started, and this home.
pub fn seat(home: &Home) -> String {
    // Containers of one machine share all but their names.
    let host = host::host().map(|it| format!("{} {} {}", it.name, it.machine, it.boot));
    let seat = format!("{} {}", host.unwrap_or_default(), home.root().display());
    hash(seat.as_bytes())[..16].to_owned()
}

/// Whether an attempt's process can be looked at from here.
pub fn is_here(home: &Home, attempt: &Attempt) -> bool {
    attempt.seat == seat(home)
}

/// The most milliseconds that count between two looks. In a longer gap the remote was away, and its
/// writer could not have moved it either.
const GAP_MS: u64 = 30_000;

/// How long something has had the same value.
#[derive(Debug, Default)]
pub struct Stillness {
    last: Option<(String, Stopwatch)>,
    /// For how many milliseconds it was looked at since it last changed.
    still_ms: u64,
}

impl Stillness {
    /// Whether it has had this value for so long that its writer is gone.
    pub fn is_stale(&mut self, value: &str) -> bool {
        match &self.last {
            Some((last, since)) if last == value => {
                self.still_ms += since.elapsed_ms().min(GAP_MS);
            }
            _ => self.still_ms = 0,
        }
        self.last = Some((value.to_owned(), Stopwatch::start()));
        self.still_ms >= fault::number("CREW_STALE_MS").unwrap_or(STALE_MS)
    }
}

/// Which fleets of this machine can be named, as a hint.
pub(super) fn names(home: &Home) -> Result<String> {
    let known = fleets::names(home)?;
    if known.is_empty() {
        return Ok("crew fleet run FOLDER starts one".to_owned());
    }
    Ok(format!("name one of these: {}", known.join(", ")))
}
