//! The folder of a fleet, and the name of every file in it. A task's name cannot clash with crew's
//! own names: a clone has a dot and a number after the name.

use std::io;
use std::path::PathBuf;

use engine::fleet::TaskId;
use world::files::{disk, tree};
use world::store::{Home, hash};

/// The maximum number of names read in a folder here.
const NAMES_MAX: usize = 60_000;
/// The number of digits that distinguish the remotes of fleets with the same name.
const URL_DIGITS: usize = 8;

/// The folder `$CREW_HOME/fleets/<fleet>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetFiles {
    pub root: PathBuf,
}

impl FleetFiles {
    /// The folder of the fleet of this name. The name must be a valid [`TaskId`].
    pub fn new(home: &Home, fleet: &str) -> Self {
        Self { root: home.fleet_folder(fleet) }
    }

    /// The folder for attempts of another machine's fleet; this machine may have a fleet of that
    /// name too. `url` is the remote that both share.
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

    /// The fleet's record, which the coordinator writes.
    pub fn record(&self) -> PathBuf {
        self.root.join("fleet.json")
    }

    /// The lock that the coordinator holds while it runs.
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

    /// The clone in which landings are prepared.
    pub fn land(&self) -> PathBuf {
        self.root.join("land")
    }

    /// Lists the clones on this machine, unsorted.
    pub fn list_clones(&self) -> Vec<(TaskId, u32)> {
        let names = disk::names(&self.root, NAMES_MAX);
        let clones = names.iter().filter_map(|name| attempt_of(name, '.'));
        clones.filter(|(task, number)| disk::is_folder(&self.clone_of(task, *number))).collect()
    }

    /// The spec of an attempt.
    pub fn spec(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "json")
    }

    /// The report of an attempt, which only the attempt writes.
    pub fn report(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "report.json")
    }

    /// The log of an attempt's output, which is bounded.
    pub fn log(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "log")
    }

    /// The lock that an attempt's process holds while it runs.
    pub fn attempt_lock(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "lock")
    }

    /// The notes of the process groups that an attempt has started outside of its loop.
    pub fn groups(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "groups")
    }

    /// The folder of the attempts' other files, outside their clones.
    pub fn attempts(&self) -> PathBuf {
        self.root.join("attempts")
    }

    /// The repository through which an attempt elsewhere contacts the remote, apart from its agent.
    pub fn link(&self, task: &TaskId, number: u32) -> PathBuf {
        self.attempt_file(task, number, "link")
    }

    /// Removes an attempt's files outside its clone, except its log. Its process must have ended.
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

/// The attempt that a name such as `vat.2` denotes; `before_number` is the character before the
/// number.
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
