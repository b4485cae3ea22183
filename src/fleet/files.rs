//! The folder of a fleet, and the name of every file in it. A task's name is never one of crew's
//! own here: a clone has a dot and a number behind the name.

use std::io;
use std::path::PathBuf;

use engine::fleet::TaskId;
use world::files::{disk, tree};
use world::store::{Home, hash};

/// The maximum number of names read in a folder here.
const NAMES_MAX: usize = 60_000;
/// The digits that distinguish the remotes of fleets of one name.
const URL_DIGITS: usize = 8;

/// `$CREW_HOME/fleets/<fleet>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetFiles {
    pub root: PathBuf,
}

impl FleetFiles {
    /// The folder of the fleet of this name. The name must be a valid [`TaskId`].
    pub fn new(home: &Home, fleet: &str) -> Self {
        Self { root: home.fleet_folder(fleet) }
    }

    /// The folder of what attempts of another machine's fleet need here: this one may have a fleet
    /// of that name, too. `url` is the remote that both share.
    pub fn of_node(home: &Home, fleet: &str, url: &str) -> Self {
        Self::new(home, &format!("{fleet}@{}", &hash(url.as_bytes())[..URL_DIGITS]))
    }

    /// Creates the folders, for this user only: logs contain secrets.
    pub fn make(&self) -> io::Result<()> {
        for folder in [self.requests(), self.attempts()] {
            disk::make_private_folder(&folder)?;
        }
        Ok(())
    }

    /// What the coordinator knows of the fleet.
    pub fn record(&self) -> PathBuf {
        self.root.join("fleet.json")
    }

    /// Held by the coordinator for its life.
    pub fn lock(&self) -> PathBuf {
        self.root.join("fleet.lock")
    }

    /// The folder of requests that the coordinator has not read yet.
    pub fn requests(&self) -> PathBuf {
        self.root.join("requests")
    }

    /// The clone in which an attempt works.
    pub fn clone_of(&self, task: &TaskId, number: u32) -> PathBuf {
        self.root.join(format!("{task}.{number}"))
    }

    /// The clone in which landings are tried.
    pub fn land(&self) -> PathBuf {
        self.root.join("land")
    }

    /// The clones that are here, unsorted.
    pub fn list_clones(&self) -> Vec<(TaskId, u32)> {
        let names = disk::names(&self.root, NAMES_MAX);
        let clones = names.iter().filter_map(|name| attempt_of(name, '.'));
        clones.filter(|(task, number)| disk::is_folder(&self.clone_of(task, *number))).collect()
    }

    /// What an attempt works by.
    pub fn spec(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "json")
    }

    /// How far an attempt is. Only the attempt writes it.
    pub fn report(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "report.json")
    }

    /// The bounded output of an attempt.
    pub fn log(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "log")
    }

    /// Held by the process of an attempt for its life.
    pub fn attempt_lock(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "lock")
    }

    /// The notes of the process groups that an attempt has started outside of its loop.
    pub fn groups(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "groups")
    }

    /// The folder of what belongs to attempts beside their clones.
    pub fn attempts(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// The repository by which an attempt elsewhere talks to the remote beside its agent.
    pub fn link(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "link")
    }

    /// Removes what belongs to an attempt beside its clone, but for its log. Its process is over.
    pub fn remove_attempt(&self, task: &TaskId, number: u32) -> io::Result<()> {
        let script = self.root.join(format!("scripts/{task}.{number}.sh"));
        let lock = self.attempt_lock(task, number);
        let files = [self.spec(task, number), self.report(task, number), lock, script];
        files.iter().try_for_each(|file| disk::remove(file))?;
        let folders = [self.groups(task, number), self.link(task, number)];
        folders.iter().try_for_each(|folder| tree::remove_stubborn(folder))
    }

    fn attempt_file(&self, task: &TaskId, number: u32, kind: &str) -> PathBuf {
        self.attempts().join(format!("{task}.{number}.{kind}"))
    }
}

/// The attempt that a name like `vat.2` means, by the sign before its number.
pub fn attempt_of(name: &str, before_number: char) -> Option<(TaskId, u32)> {
    let (task, number) = name.rsplit_once(before_number)?;
    let is_canonical = !number.starts_with(['0', '+']);
    let number = if is_canonical { number.parse().ok()? } else { return None };
    Some((task.parse().ok()?, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_is_found_by_its_name_and_other_folders_are_ignored() {
        let folder = testkit::folder();
        let files = FleetFiles::new(&Home::at(folder.path()), "shop");
        files.make().unwrap();
        let [vat, dotted]: [TaskId; 2] = ["vat", "v1.2"].map(|name| name.parse().unwrap());
        for clone in [files.clone_of(&vat, 2), files.clone_of(&dotted, 10), files.land()] {
            std::fs::create_dir(clone).unwrap();
        }
        for file in [files.record(), files.clone_of(&vat, 3)] {
            disk::write(&file, b"{}", disk::Durability::Process).unwrap();
        }
        let mut found = files.list_clones();
        found.sort();
        assert_eq!(found, [(dotted, 10), (vat, 2)]);
        for name in ["vat", "vat.", "vat.02", "vat.+2", "../x.1", ".x.1", "vat.4294967296"] {
            assert_eq!(attempt_of(name, '.'), None, "{name}");
        }
    }
}
