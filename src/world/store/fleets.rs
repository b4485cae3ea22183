//! The fleets of this machine: each one's terms, and a file and a lock for each of its tasks. What
//! is written replaces only what its writer has read. A file that cannot be read is an error, never
//! an empty fleet.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::LOCK_WAIT;
use super::home::{Home, hash};
use crate::engine::fleet::manifest::read_record;
use crate::engine::fleet::{Fleet, Lease, TaskId, UnreadableLease};
use crate::world::clock::Deadline;
use crate::world::fault;
use crate::world::files::disk::{self, Durability, Lock};
use crate::world::files::tree;
use crate::world::process::Stop;

/// The largest file that is read, in bytes.
const FILE_BYTES: u64 = 8 << 20;
/// The most fleets that are listed.
const FLEETS_MAX: usize = 1000;
/// The most names in a fleet's folder of tasks: three for each.
const NAMES_MAX: usize = 60_000;
/// What the name of a fleet's folder begins with once it is out of the store. No fleet's name does.
const TAKEN: &str = ".removed-";
/// Longer than somebody holds a lock who only looks whether it is held.
const RUN_WAIT: Duration = Duration::from_millis(50);
/// Between two tries to take a task.
const HELD_LOOK: Duration = Duration::from_millis(50);
/// Between two looks whether a long wait is to end.
const STOP_LOOK: Duration = Duration::from_millis(200);

/// What is kept, and what names exactly this state of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<T> {
    pub value: T,
    pub id: String,
}

/// The leases of a fleet. One that cannot be read is a task all the same.
#[derive(Debug, Default)]
pub struct Leases {
    pub readable: Vec<Lease>,
    pub unreadable: Vec<UnreadableLease>,
}

/// The names of all fleets, in their order.
pub fn names(home: &Home) -> io::Result<Vec<String>> {
    let mut names = disk::list(&home.fleets(), FLEETS_MAX)?;
    names.retain(|name| !name.starts_with(TAKEN) && disk::is_file(&manifest_file(home, name)));
    names.sort();
    Ok(names)
}

/// A fleet's terms; `None` if there is no such fleet here.
pub fn manifest(home: &Home, fleet: &str) -> io::Result<Option<Kept<Fleet>>> {
    read(&manifest_file(home, fleet))
}

/// Replaces a fleet's terms if they are still `old`; `None` for a new fleet. Returns the new id, or
/// `None` where somebody else was first.
pub fn swap_manifest(home: &Home, old: Option<&str>, fleet: &Fleet) -> io::Result<Option<String>> {
    swap(home, &fleet.name, &manifest_file(home, &fleet.name), old, fleet)
}

/// Takes a fleet's terms back if they are still those.
pub fn remove_manifest(home: &Home, fleet: &str, id: &str) -> io::Result<()> {
    let _lock = hold_records(home, fleet)?;
    let file = manifest_file(home, fleet);
    let found = disk::read(&file, FILE_BYTES)?.map(|bytes| hash(&bytes));
    if found.as_deref() == Some(id) { disk::remove(&file) } else { Ok(()) }
}

/// The lease of a task; `None` if there is none.
pub fn lease(home: &Home, fleet: &str, task: &TaskId) -> io::Result<Option<Kept<Lease>>> {
    read(&task_file(home, fleet, task, "json"))
}

/// The leases of all tasks, by name. A file whose name no task can have is none.
pub fn leases(home: &Home, fleet: &str) -> io::Result<Leases> {
    let folder = tasks(home, fleet);
    let mut names = disk::list(&folder, NAMES_MAX)?;
    names.sort();
    let mut leases = Leases::default();
    for name in names {
        let Some(Ok(task)) = name.strip_suffix(".json").map(str::parse) else { continue };
        let file = folder.join(&name);
        match read(&file) {
            Ok(kept) => leases.readable.extend(kept.map(|kept: Kept<Lease>| kept.value)),
            Err(error) => {
                let name = file.display().to_string();
                leases.unreadable.push(UnreadableLease::of(task, &name, &error));
            }
        }
    }
    Ok(leases)
}

/// Replaces a lease if it is still `old`; `None` for a new task. Returns the new id, or `None`
/// where somebody else was first.
pub fn swap_lease(home: &Home, old: Option<&str>, lease: &Lease) -> io::Result<Option<String>> {
    let file = task_file(home, &lease.fleet, lease.id(), "json");
    swap(home, &lease.fleet, &file, old, lease)
}

/// Takes a task for as long as this process lives: its death frees it. `None` while another process
/// of this machine has it. Fails for a fleet that is not kept here, or that is being forgotten.
pub fn hold(home: &Home, fleet: &str, task: &TaskId, wait: Duration) -> io::Result<Option<Lock>> {
    let held = Deadline::after(wait).poll(HELD_LOOK, || hold_now(home, fleet, task).transpose());
    held.transpose()
}

fn hold_now(home: &Home, fleet: &str, task: &TaskId) -> io::Result<Option<Lock>> {
    let _door = hold_door(home, fleet)?;
    if !disk::is_file(&manifest_file(home, fleet)) {
        return Err(io::Error::other(format!(
            "the fleet {fleet} was forgotten on this machine\n\
             hint: crew fleet run FOLDER starts it again"
        )));
    }
    hold_behind_the_door(home, fleet, task, Duration::ZERO)
}

/// The same for whoever holds the door.
pub fn hold_behind_the_door(
    home: &Home,
    fleet: &str,
    task: &TaskId,
    wait: Duration,
) -> io::Result<Option<Lock>> {
    disk::make_private_folder(&tasks(home, fleet))?;
    disk::lock(&task_file(home, fleet, task, "lock"), wait)
}

/// Held while a task is taken, and by whoever forgets the fleet, from the look whether somebody
/// works on it until it is gone. It is outside of the fleet's folder, and stays.
pub fn hold_door(home: &Home, fleet: &str) -> io::Result<Lock> {
    disk::make_private_folder(&home.fleets())?;
    let lock = disk::lock(&home.fleets().join(format!("{fleet}.door.lock")), LOCK_WAIT)?;
    lock.ok_or_else(|| io::Error::other(format!("the fleet {fleet} is being forgotten")))
}

/// Whether a process of this machine has taken the task.
pub fn is_held(home: &Home, fleet: &str, task: &TaskId) -> bool {
    is_locked(&task_file(home, fleet, task, "lock"))
}

/// Held by whoever starts a fleet's jobs from here.
pub fn hold_fleet(home: &Home, fleet: &str) -> io::Result<Option<Lock>> {
    disk::make_private_folder(&home.fleet(fleet))?;
    disk::lock(&run_lock(home, fleet), RUN_WAIT)
}

/// Whether a crew of this machine starts a fleet's jobs.
pub fn is_run(home: &Home, fleet: &str) -> bool {
    is_locked(&run_lock(home, fleet))
}

fn is_locked(file: &Path) -> bool {
    disk::is_file(file) && disk::lock(file, Duration::ZERO).is_ok_and(|lock| lock.is_none())
}

/// Whether this machine keeps anything of a fleet, readable or not.
pub fn is_kept(home: &Home, fleet: &str) -> bool {
    fleet.parse::<TaskId>().is_ok() && tree::is_folder(&home.fleet(fleet))
}

/// The tasks that a process of this machine has taken at some time.
pub fn taken_once(home: &Home, fleet: &str) -> io::Result<Vec<TaskId>> {
    let names = disk::list(&tasks(home, fleet), NAMES_MAX)?;
    Ok(names.iter().filter_map(|name| name.strip_suffix(".lock")?.parse().ok()).collect())
}

/// Takes a fleet with all that is kept of it out of the store: from here on no command finds it.
/// One rename does it, so a crash leaves a whole fleet or none.
pub fn take_out(home: &Home, fleet: &str) -> io::Result<()> {
    let _lock = hold_records(home, fleet)?;
    disk::rename(&home.fleet(fleet), &home.fleets().join(format!("{TAKEN}{fleet}")))?;
    fault::point("remove.taken")
}

/// Removes what was taken out, also what an earlier removal has left.
pub fn remove_taken(home: &Home) -> io::Result<()> {
    let names = disk::list(&home.fleets(), FLEETS_MAX)?;
    for name in names.iter().filter(|name| name.starts_with(TAKEN)) {
        let folder = home.fleets().join(name);
        tree::remove(&folder).map_err(|error| {
            let (there, way) = (folder.display(), "remove it by hand; the next start tries it too");
            io::Error::new(error.kind(), format!("cannot remove {there}: {error}\nhint: {way}"))
        })?;
    }
    Ok(())
}

fn run_lock(home: &Home, fleet: &str) -> PathBuf {
    home.fleet(fleet).join("run.lock")
}

/// Held by whoever adds a working tree to a repository: git reads those of others meanwhile, and
/// fails on one that is half made. `None` where others took longer than `wait`, or `stop` says so.
pub fn hold_trees(
    home: &Home,
    repository: &Path,
    wait: Duration,
    stop: Stop<'_>,
) -> io::Result<Option<Lock>> {
    disk::make_private_folder(&home.fleets())?;
    let name = format!("{}.lock", hash(repository.as_os_str().as_bytes()));
    lock(&home.fleets().join(name), wait, stop)
}

/// Held by whoever makes the clone of a fleet's repository on a machine that did not start the
/// fleet. `None` as for [`hold_trees`].
pub fn hold_clone(
    home: &Home,
    fleet: &str,
    wait: Duration,
    stop: Stop<'_>,
) -> io::Result<Option<Lock>> {
    disk::make_private_folder(&home.fleet(fleet))?;
    lock(&home.fleet(fleet).join("clone.lock"), wait, stop)
}

/// Takes a lock that others may hold for minutes. It is tried once even if `stop` says so already.
fn lock(path: &Path, wait: Duration, stop: Stop<'_>) -> io::Result<Option<Lock>> {
    let deadline = Deadline::after(wait);
    loop {
        let lock = disk::lock(path, STOP_LOOK.min(deadline.left()))?;
        if lock.is_some() || stop() || deadline.passed() {
            return Ok(lock);
        }
    }
}

/// The notes of the process groups that attempts at a task have started, on the machine and in the
/// start of it that `seat` names.
pub fn groups(home: &Home, fleet: &str, task: &TaskId, seat: &str) -> PathBuf {
    home.fleet(fleet).join("groups").join(seat).join(task.as_str())
}

/// The output of a task's jobs.
pub fn log(home: &Home, fleet: &str, task: &TaskId) -> PathBuf {
    task_file(home, fleet, task, "log")
}

fn manifest_file(home: &Home, fleet: &str) -> PathBuf {
    home.fleet(fleet).join("fleet.json")
}

fn tasks(home: &Home, fleet: &str) -> PathBuf {
    home.fleet(fleet).join("tasks")
}

fn task_file(home: &Home, fleet: &str, task: &TaskId, extension: &str) -> PathBuf {
    tasks(home, fleet).join(format!("{task}.{extension}"))
}

fn read<T: DeserializeOwned>(file: &Path) -> io::Result<Option<Kept<T>>> {
    let Some(bytes) = disk::read(file, FILE_BYTES)? else { return Ok(None) };
    let value = read_record(&file.display().to_string(), &bytes, "move the file away")
        .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
    Ok(Some(Kept { value, id: hash(&bytes) }))
}

fn swap<T: Serialize>(
    home: &Home,
    fleet: &str,
    file: &Path,
    old: Option<&str>,
    value: &T,
) -> io::Result<Option<String>> {
    disk::make_private_folder(&tasks(home, fleet))?;
    let _lock = hold_records(home, fleet)?;
    let found = disk::read(file, FILE_BYTES)?.map(|bytes| hash(&bytes));
    if found.as_deref() != old {
        return Ok(None);
    }
    let bytes = serde_json::to_vec_pretty(value)?;
    disk::write(file, &bytes, Durability::Machine)?;
    Ok(Some(hash(&bytes)))
}

/// Held while a record of the fleet is replaced.
fn hold_records(home: &Home, fleet: &str) -> io::Result<Lock> {
    let lock = disk::lock(&home.fleet(fleet).join("lock"), LOCK_WAIT)?;
    lock.ok_or_else(|| io::Error::other(format!("the fleet {fleet} is busy")))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::engine::fleet::fixture::{a_fleet, id};

    const FREE_WITHIN: Duration = Duration::from_secs(10);

    #[test]
    fn a_long_wait_for_a_lock_ends_once_it_is_told_to_and_a_free_one_is_taken_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let wait = Duration::from_secs(30 * 60);
        let asked = Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) == 2;
        let takes = || hold_trees(&home, Path::new("/repo"), wait, &stop).unwrap();
        let held = takes();
        assert!(held.is_some() && takes().is_none());
        assert_eq!(asked.get(), 3);
        drop(held);
        // A process that another test starts may have the lock until its program runs.
        let at_once = || hold_trees(&home, Path::new("/repo"), wait, &|| true).unwrap();
        assert!(Deadline::after(FREE_WITHIN).poll(HELD_LOOK, at_once).is_some());
    }

    #[test]
    fn a_task_is_not_taken_while_its_fleet_is_forgotten_and_not_after_that() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        swap_manifest(&home, None, &a_fleet()).unwrap();
        let (fleet, wait) = (a_fleet().name, Duration::ZERO);
        let takes = || match hold(&home, &fleet, &id("vat"), wait) {
            Ok(lock) => lock.map_or("held", |_| "taken").to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(takes(), "taken");
        let held = hold(&home, &fleet, &id("vat"), wait).unwrap();
        assert_eq!(takes(), "held");
        drop(held);
        let door = hold_door(&home, &fleet).unwrap();
        assert_eq!(takes(), "the fleet billing-cleanup is being forgotten");
        take_out(&home, &fleet).unwrap();
        drop(door);
        insta::assert_snapshot!(takes(), @"
        the fleet billing-cleanup was forgotten on this machine
        hint: crew fleet run FOLDER starts it again
        ");
        assert!(!is_kept(&home, &fleet), "nothing of it is made anew");
    }
}
