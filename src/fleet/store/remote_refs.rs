//! The refs of a remote through which a coordinator, its successor, and attempts elsewhere find
//! each other. A document is the message of a commit that a ref points to. Its owner moves the ref
//! only from where it left it, and in one push with a branch if both belong together, so of two
//! owners only one can push.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::fleet::record::FleetTerms;
use engine::fleet::Remote;
use engine::git::{GitBaseline, GitFault, GitStep, RefUpdate, RemoteRef, SwapResult};
use world::git::referred;
use world::git::remotes::{Patience, Refs, make_aside};
use world::git::steps;
use world::process::descendants;
use world::process::signals::Signals;

/// The time limit of one connection to the remote.
const TALK: Duration = Duration::from_secs(30);

/// Access to a remote from a repository here, with the git settings that a person agreed to.
#[derive(Debug, Clone)]
pub struct RemoteAccess {
    pub repository: PathBuf,
    pub remote: Remote,
    trusted: Option<GitBaseline>,
    patience: Patience,
    stop: fn() -> bool,
}

impl RemoteAccess {
    /// Accesses the fleet's remote, if it has one, from the user's repository. A signal ends a
    /// connection soon, a second one at once.
    pub fn for_terms(terms: &FleetTerms, signals: &Signals) -> Option<Self> {
        let patience = Patience { signals: signals.clone(), within: Duration::ZERO, talk: TALK };
        let (repository, trusted) = (terms.repository.clone(), terms.clones.trusted.clone());
        Some(Self { repository, remote: terms.remote.clone()?, trusted, patience, stop: || false })
    }

    /// Accesses the remote at an address from a bare repository in `folder`, in which no agent
    /// works.
    pub fn in_folder(folder: &Path, url: &str, signals: &Signals) -> Result<Self, GitFault> {
        let patience = Patience { signals: signals.clone(), within: Duration::ZERO, talk: TALK };
        let remote = Remote { name: "the remote".to_owned(), url: url.to_owned() };
        let (repository, stop) = (make_aside(folder)?, descendants::are_ending);
        Ok(Self { repository, remote, trusted: None, patience, stop })
    }

    /// The same access, but retrying an unreachable remote for `within`, with a time limit of
    /// `talk` for one call.
    pub fn with_patience(&self, within: Duration, talk: Duration) -> Self {
        let patience = Patience { within, talk, ..self.patience.clone() };
        Self { patience, ..self.clone() }
    }

    /// The refs of the remote; objects are read from and stored in the repository.
    ///
    /// # Errors
    /// If a program or an address was planted in the repository's configuration.
    pub fn refs(&self) -> Result<Refs<'_>, GitFault> {
        if let Some(before) = &self.trusted {
            steps::check_unplanted(&self.repository, before, GitStep::Refs, Some(""))?;
        }
        let (folder, patience) = (&self.repository, Some(&self.patience));
        Ok(Refs { folder, remote: &self.remote.url, stop: &self.stop, patience })
    }

    /// The commit that a ref at the remote points to.
    pub fn find_ref(&self, name: &str) -> Result<Option<String>, GitFault> {
        Ok(self.refs()?.list_refs(&[name])?.pop().map(|found| found.id))
    }

    /// Sends the git LFS files of a commit, except those of the commits `has` and of others known
    /// to be at the remote.
    pub fn send_lfs(&self, commit: &str, has: &[String]) -> Result<(), GitFault> {
        let (name, signals) = (&self.remote.name, &self.patience.signals);
        referred::send_lfs(&self.repository, name, commit, has, &|| signals.times() > 1)
    }
}

/// Reads the document of each of these refs; `None` if crew did not write it. Objects that are
/// already here are not fetched again.
pub fn read_documents<T: DeserializeOwned>(
    refs: &Refs<'_>,
    found: &[RemoteRef],
) -> Result<Vec<Option<T>>, GitFault> {
    let ids: Vec<String> = found.iter().map(|one| one.id.clone()).collect();
    let mut messages = refs.read_messages(&ids)?;
    let read = found.iter().zip(&messages);
    let missing: Vec<&str> =
        read.filter(|(_, text)| text.is_none()).map(|(found, _)| found.name.as_str()).collect();
    if !missing.is_empty() {
        refs.fetch_objects(&missing, &[])?;
        messages = refs.read_messages(&ids)?;
    }
    Ok(messages.into_iter().map(|text| serde_json::from_str(&text?).ok()).collect())
}

/// Reads the document of one ref.
pub fn read_document<T: DeserializeOwned>(
    refs: &Refs<'_>,
    found: Option<&RemoteRef>,
) -> Result<Option<T>, GitFault> {
    let Some(found) = found else { return Ok(None) };
    Ok(read_documents(refs, std::slice::from_ref(found))?.pop().flatten())
}

/// The refs that a process owns, as it last left or saw them.
#[derive(Debug, Clone, Default)]
pub struct OwnRefs {
    /// The last known commit of each ref.
    known: BTreeMap<String, String>,
    /// The push whose result is unknown.
    tried: Vec<RefUpdate>,
}

impl OwnRefs {
    /// Treats the remote's refs as the ones that this owner left.
    pub fn adopt_refs(&mut self, there: &[RemoteRef]) {
        self.known = there.iter().map(|one| (one.name.clone(), one.id.clone())).collect();
        self.tried.clear();
    }

    /// The last known commit of a ref.
    pub fn known_id(&self, name: &str) -> Option<&String> {
        self.known.get(name)
    }

    /// Whether no other process has moved any of these refs. A push may have worked even if its
    /// result was lost.
    pub fn are_own(&self, names: &[&str], there: &[RemoteRef]) -> bool {
        names.iter().all(|name| {
            let now = there.iter().find(|one| one.name == *name).map(|one| &one.id);
            let mut tried = self.tried.iter().filter(|update| update.name == *name);
            now == self.known_id(name) || tried.any(|update| update.new.as_ref() == now)
        })
    }

    /// A move of a ref from its last known commit.
    pub fn ref_update(&self, name: &str, new: String) -> RefUpdate {
        RefUpdate { name: name.to_owned(), old: self.known_id(name).cloned(), new: Some(new) }
    }

    /// Moves refs, all of them or none. False if one of them has been moved.
    pub fn push(&mut self, refs: &Refs<'_>, updates: Vec<RefUpdate>) -> Result<bool, GitFault> {
        self.tried = updates;
        self.push_again(refs)
    }

    /// Whether the result of a push is unknown.
    pub fn is_unanswered(&self) -> bool {
        !self.tried.is_empty()
    }

    /// Repeats the push whose result is unknown.
    pub fn push_again(&mut self, refs: &Refs<'_>) -> Result<bool, GitFault> {
        let is_moved = refs.swap(&self.tried)? == SwapResult::Done;
        let tried = self.tried.drain(..);
        if is_moved {
            self.known.extend(tried.filter_map(|update| Some((update.name, update.new?))));
        }
        Ok(is_moved)
    }

    /// Forgets the push whose result is unknown if it moves this ref, and returns whether it did.
    pub fn give_up(&mut self, name: &str) -> bool {
        let moves_it = self.tried.iter().any(|update| update.name == name);
        self.tried.retain(|_| !moves_it);
        moves_it
    }
}

#[cfg(test)]
impl OwnRefs {
    /// Treats the pushes since `before` as if their results had been lost.
    pub fn lose_answer(&mut self, before: &Self) {
        let pushed = std::mem::replace(&mut self.known, before.known.clone());
        self.tried = pushed.into_iter().map(|(name, new)| before.ref_update(&name, new)).collect();
    }
}
