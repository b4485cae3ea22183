//! Removes what this machine keeps of a fleet: terms, leases, logs, and the repositories that crew
//! made for it. It refuses while somebody works on the fleet, and where a clone of crew's own holds
//! work that the remote lacks. It never touches a branch or a working tree beside a person's
//! repository, nor the remote.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::memory::{HELD_WAIT, Memory};
use super::{commands, find};
use crate::engine::fleet::Remote;
use crate::engine::text::Shown;
use crate::world::files::disk::{self, Lock};
use crate::world::git::{self, land, worktree};
use crate::world::store::{Home, fleets};

/// What a fleet has left elsewhere.
#[derive(Debug)]
pub struct Forgotten {
    /// The repository with its branches and working trees; `None` where that was a clone of crew's
    /// own, is gone, or is not known.
    pub repository: Option<PathBuf>,
    /// Whether branches of its tasks are left there; their working trees need them.
    pub stays_here: bool,
    /// Where its leases and branches are, if it has a remote and that is known.
    pub remote: Option<Remote>,
    /// Whether its terms could be read: they name both.
    pub was_readable: bool,
    /// Why some of what is forgotten is still on disk. The next removal or start tries again.
    pub left: Option<io::Error>,
}

/// Forgets the fleet of that name.
///
/// # Errors
/// If there is none, if somebody works on it here, or if its clone holds work that the remote
/// lacks. The fleet is then as it was.
pub fn forget(home: &Home, name: &str) -> Result<Forgotten> {
    fleets::remove_taken(home)?;
    if !fleets::is_kept(home, name) {
        let hint = find::names(home)?;
        bail!("there is no fleet {} on this machine\nhint: {hint}", Shown(name));
    }
    let _door = fleets::hold_door(home, name)?;
    let _held = end_leftovers(home, name)?;
    let Some(_run) = fleets::hold_fleet(home, name)? else {
        bail!("a crew runs the fleet {name}\nhint: crew fleet pause --fleet {name} ends it");
    };
    let Some(_clone) = fleets::hold_clone(home, name, Duration::ZERO, &|| true)? else {
        bail!("a job clones the repository of the fleet {name}\nhint: wait for it");
    };
    let terms = fleets::manifest(home, name).ok().flatten().map(|kept| kept.value);
    let was_readable = terms.is_some();
    let (repository, remote) = terms.map(|it| (it.repository, it.remote)).unzip();
    let (folder, remote) = (home.fleet(name), remote.flatten());
    let clone = folder.join("clone");
    if disk::exists(&clone) {
        nothing_is_lost(home, name, &clone, remote.clone())?;
    }
    land::discard(&folder.join("land"))?;
    fleets::take_out(home, name)?;
    let left = fleets::remove_taken(home).err();
    let repository = repository.filter(|it| *it != clone && disk::exists(it));
    // Where git does not answer, they may be.
    let branches = repository.as_deref().and_then(git::branches);
    let is_of_it = |(branch, _): &(String, String)| branch.starts_with(&format!("fleet/{name}/"));
    let stays_here = branches.is_none_or(|branches| branches.iter().any(is_of_it));
    Ok(Forgotten { repository, stays_here, remote, was_readable, left })
}

/// Ends what attempts that are gone have left on this machine, and keeps new ones away. Fails if
/// one is at work.
fn end_leftovers(home: &Home, name: &str) -> Result<Vec<Lock>> {
    let mut held = Vec::new();
    for task in fleets::taken_once(home, name)? {
        let Some(lock) = fleets::hold_behind_the_door(home, name, &task, HELD_WAIT)? else {
            bail!(
                "task {task} of the fleet {name} runs here\n\
                 hint: wait for it, or crew fleet pause --fleet {name} --now ends its iteration"
            );
        };
        commands::end_leftovers(home, name, &task);
        held.push(lock);
    }
    Ok(held)
}

/// Fails if crew's own clone, which goes with the fleet, holds work that is nowhere else.
fn nothing_is_lost(home: &Home, name: &str, clone: &Path, remote: Option<Remote>) -> Result<()> {
    let there = clone.display();
    let by_hand = format!("push or remove it there, or remove {there} if nothing of it is needed");
    let own = |(name, url)| Remote { name, url, only_branches: false };
    let remote = remote.or_else(|| git::remotes::of(clone).map(own));
    let (Some(remote), Some(branches)) = (remote, git::branches(clone)) else {
        bail!("{there} may hold work, and git cannot read it\nhint: {by_hand}");
    };
    let (memory, hub) = (Memory::shared_by(home, name, &remote), home.fleet(name).join("hub.git"));
    let land = home.fleet(name).join("land");
    let land = disk::real_path(&land).unwrap_or(land);
    let trees = worktree::roots(clone);
    for (at, tree) in trees.iter().enumerate().filter(|(_, it)| disk::exists(it) && **it != land) {
        let shown = tree.display();
        // The clone itself has no files.
        if at > 0 && git::status_text(tree).is_none_or(|text| !text.is_empty()) {
            bail!("{shown} holds files that are not committed\nhint: {by_hand}");
        }
        if git::has_stray_commits(tree) != Some(false) {
            bail!(
                "{shown} holds commits that are on no branch, such as those of a stash\nhint: {by_hand}"
            );
        }
    }
    for (branch, commit) in branches {
        // What a second attempt works on beside a branch is pushed as that branch.
        let pushed_as = branch.split('+').next().unwrap_or(&branch);
        let pushed = memory.fetch_branch(pushed_as).with_context(|| {
            format!("cannot find out whether all of {there} is pushed\nhint: {by_hand}")
        })?;
        if pushed.and_then(|pushed| git::lacking(&hub, &commit, &pushed)) != Some(0) {
            bail!("{there} holds commits of {branch} that were not pushed\nhint: {by_hand}");
        }
    }
    Ok(())
}
