//! The refs of a remote as the memory of a fleet: each lease is a commit whose message holds it,
//! and whose parents are its journal. What was read or written here is not fetched again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::engine::fleet::stored;
use crate::engine::fleet::{Lease, RecordFault, Remote, StoredRecord, UnreadableLease};
use crate::engine::git::{RefUpdate, RemoteRef, SwapResult};
use crate::world::git::refs::{Patience, Refs, WITHIN};
use crate::world::process::descendants;
use crate::world::process::signals::Signals;
use crate::world::store::{Home, Kept, Leases};

/// How a ref that cannot be read is put out of the way.
const AWAY: &str = "delete that ref of the remote, and the branch of the task";

/// The refs of a remote as memory.
#[derive(Debug, Clone)]
pub(super) struct SharedMemory {
    pub hub: PathBuf,
    url: String,
    /// The signals that end a talk, and how long a remote that cannot be reached is asked again.
    pub patience: Option<(Signals, Duration)>,
    /// The longest that one talk with the remote may take, where signals are heard.
    pub talk: Duration,
    /// Before the name of a task: `refs/crew/<fleet>/`.
    prefix: String,
    /// Leases by the commits that hold them, as last read.
    known: Arc<Mutex<BTreeMap<String, Lease>>>,
    /// The commits of refs that are here: only what is newer is fetched.
    held: Arc<Mutex<BTreeMap<String, String>>>,
}

impl SharedMemory {
    /// The memory of a fleet at its remote.
    pub fn of(home: &Home, fleet: &str, remote: &Remote) -> Self {
        Self {
            hub: home.fleet(fleet).join("hub.git"),
            url: remote.url.clone(),
            patience: None,
            talk: WITHIN,
            prefix: remote.lease(fleet, ""),
            known: Arc::default(),
            held: Arc::default(),
        }
    }

    pub fn refs(&self) -> Refs<'_> {
        let patience = self.patience.as_ref();
        let patience = patience.map(|(signals, within)| Patience {
            signals,
            within: *within,
            talk: self.talk,
        });
        Refs { folder: &self.hub, remote: &self.url, stop: &descendants::are_ending, patience }
    }

    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub fn read<T: StoredRecord>(&self, name: &str) -> Result<Option<Kept<T>>> {
        let (name, refs) = (self.name(name), self.refs());
        let found = refs.list(&[&name])?;
        let Some(RemoteRef { id, .. }) = found.into_iter().find(|it| it.name == name) else {
            return Ok(None);
        };
        self.bring(&[(&name, &id)])?;
        let text = refs.message(&id)?;
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
        self.refs().fetch_since(&names, &known)?;
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
        let (held, new): (Vec<_>, Vec<_>) = found.iter().partition(|it| known.contains_key(&it.id));
        let names: Vec<(&str, &str)> = new.iter().map(|it| (&*it.name, &*it.id)).collect();
        self.bring(&names)?;
        let ids: Vec<String> = new.iter().map(|it| it.id.clone()).collect();
        let texts = refs.messages(&ids)?;
        let mut next: BTreeMap<String, Lease> = BTreeMap::new();
        for it in held {
            next.insert(it.id.clone(), known[&it.id].clone());
        }
        let mut leases = Leases::default();
        for (it, text) in new.iter().zip(texts) {
            let text = text.ok_or_else(|| RecordFault::broken(&it.name, "it is too long", AWAY));
            match text.and_then(|text| value(&it.name, &text)) {
                Ok(lease) => {
                    next.insert(it.id.clone(), lease);
                }
                Err(fault) => {
                    let task = it.name[self.prefix.len()..].parse().ok();
                    let lease = task.map(|task| UnreadableLease::of(task, &it.name, &fault));
                    leases.unreadable.extend(lease);
                }
            }
        }
        *known = next;
        let kept = |it: RemoteRef| Some(Kept { value: known.get(&it.id)?.clone(), id: it.id });
        leases.readable = found.into_iter().filter_map(kept).collect();
        Ok(leases)
    }

    /// Writes a value under a name, together with other refs. Returns its id, or `None` where
    /// somebody else was first.
    pub fn write<T: Serialize>(
        &self,
        name: &str,
        title: &str,
        old: Option<&str>,
        value: &T,
        also: Option<Vec<RefUpdate>>,
    ) -> Result<Option<String>> {
        let id = self.refs().commit(&text(title, value)?, old)?;
        let lease =
            RefUpdate { name: self.name(name), old: old.map(str::to_owned), new: Some(id.clone()) };
        let updates: Vec<RefUpdate> = also.into_iter().flatten().chain([lease]).collect();
        let is_done = self.refs().swap(&updates)? == SwapResult::Done;
        if is_done {
            self.hold(&self.name(name), &id);
        }
        Ok(is_done.then_some(id))
    }
}

/// The message of a commit that holds a value.
pub(super) fn text<T: Serialize>(title: &str, value: &T) -> Result<String> {
    Ok(format!("{title}\n\n{}\n", serde_json::to_string_pretty(value)?))
}

/// What a commit's message holds below its title.
fn value<T: StoredRecord>(name: &str, message: &str) -> Result<T, RecordFault> {
    let (_, text) = message.split_once("\n\n").unwrap_or_default();
    stored::read(name, text.as_bytes(), AWAY)
}
