//! Ends what crew's child processes leave behind. On Linux crew adopts every orphan among its
//! descendants, even in other sessions, and can therefore end it. Other systems lack this: there
//! only what stays in a child's group is ended with it, and these functions find nothing.

use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::getpid;
use rustix::process::{Pid, Signal, WaitOptions};

use super::{identity, signals};
use crate::clock::{self, Deadline};
use engine::record::{LoopId, ProcessIdentity};

/// The time from TERM to KILL.
const GRACE: Duration = Duration::from_millis(500);
/// The time from the first KILL until crew gives up.
const KILLED: Duration = Duration::from_secs(2);
/// The time between two checks of the signalled processes.
const STEP: Duration = Duration::from_millis(10);

static ADOPTED: AtomicBool = AtomicBool::new(false);
/// The children that this process waits for.
static AWAITED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
/// The children that were started to outlive this process and are not yet reaped.
static DETACHED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
/// Locked by a second thread while it starts children, and by [`end_all`].
static BESIDE: Mutex<()> = Mutex::new(());
static ENDING: AtomicBool = AtomicBool::new(false);

/// Makes every later orphan among the descendants a child of this process. It is for a process that
/// starts its children one at a time, so that a process left behind belongs to a known child. An
/// error means that the system lacks this; then only groups are ended.
pub fn adopt_orphans() -> io::Result<()> {
    be_subreaper(true)?;
    ADOPTED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whether this process adopts orphans.
pub fn are_adopted() -> bool {
    ADOPTED.load(Ordering::Relaxed)
}

/// A child that this process waits for, as long as this value exists.
#[derive(Debug)]
pub struct Awaited(i32);

impl Awaited {
    /// Starts a child that no other code reaps.
    pub fn spawn_child(command: &mut Command) -> io::Result<(Child, Self)> {
        // The lock keeps the child from being reaped, even if it ends before it is recorded.
        let mut awaited = AWAITED.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command.spawn()?;
        let pid = child.id().cast_signed();
        awaited.push(pid);
        Ok((child, Self(pid)))
    }
}

/// Starts a child that outlives this process. Neither it nor its descendants count as left behind
/// by another child.
pub fn detach_child(command: &mut Command) -> io::Result<Child> {
    // The lock keeps others from deciding what was left behind before the child is recorded.
    let mut detached = DETACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    detached.push(child.id().cast_signed());
    Ok(child)
}

impl Drop for Awaited {
    fn drop(&mut self) {
        AWAITED.lock().unwrap_or_else(PoisonError::into_inner).retain(|pid| *pid != self.0);
    }
}

/// Runs `work`, which starts children, in a second thread. They do not count as left behind by an
/// agent: [`end_all`] waits, and `work` ends early once [`are_ending`] is true.
pub fn run_beside<T>(work: impl FnOnce() -> T) -> T {
    let _beside = BESIDE.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Whether the main thread is about to end all descendants.
pub fn are_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Reaps orphans that have ended, but no child that is waited for.
pub fn reap_orphans() {
    if are_adopted() && has_ended_child() {
        let me = identity::my_id();
        let awaited = AWAITED.lock().unwrap_or_else(PoisonError::into_inner);
        for (pid, row) in identity::read_table() {
            if row.has_ended && row.parent == me && !awaited.contains(&pid) {
                reap_child(pid);
            }
        }
    }
}

/// Ends every descendant of this process, except detached ones: TERM, half a second, KILL. No child
/// that this thread waits for may be running. Returns the ids of processes that did not end, which
/// only a broken disk or device causes.
pub fn end_all() -> Vec<i32> {
    if !are_adopted() {
        return Vec::new();
    }
    ENDING.store(true, Ordering::Relaxed);
    let alone = BESIDE.lock().unwrap_or_else(PoisonError::into_inner);
    ENDING.store(false, Ordering::Relaxed);
    let left = if has_children() {
        end_processes(left_by_children, || list_detached().is_empty() && has_children())
    } else {
        Vec::new()
    };
    drop(alone);
    left
}

/// Runs `work`, which starts children one at a time, and then ends everything that they left
/// running. Afterwards orphans are adopted only if they were before.
pub fn leaving_none<T>(work: impl FnOnce() -> T) -> T {
    let were_adopted = are_adopted();
    let _ = adopt_orphans();
    let result = work();
    end_all();
    if !were_adopted && be_subreaper(false).is_ok() {
        ADOPTED.store(false, Ordering::Relaxed);
    }
    result
}

/// Ends every process of this user that was started in this loop, found by the variable that crew
/// sets for each child. It finds what outlived a killed crew in a separate session, outside every
/// group that crew knows. This process and its ancestors are spared.
pub fn end_marked(id: &LoopId) -> Vec<i32> {
    end_with(&format!("CREW_LOOP={id}"))
}

/// Ends every process of this user that has this variable, as `NAME=value`. It finds processes that
/// left their group, and spares other children of this process.
pub fn end_with(mark: &str) -> Vec<i32> {
    end_processes(|table| find_marked(table, mark), || false)
}

/// The rows of the processes with a variable, without this process and its ancestors.
fn find_marked(table: &Table, mark: &str) -> Table {
    let above = list_ancestors(table, identity::my_id());
    let found = table.iter().filter(|(pid, row)| {
        !row.has_ended && !above.contains(pid) && identity::has_variable(*pid, mark)
    });
    found.cloned().collect()
}

/// Processes that a killed crew may have started but that do not carry its variable: orphans and
/// session leaders without a terminal that work in `checkout` and started after `owner`. Somebody
/// else may have started them, so they are only reported, by id and command.
pub fn find_unproved(checkout: &Path, owner: &ProcessIdentity) -> Vec<String> {
    let Ok(since) = owner.started.parse::<u64>() else { return Vec::new() };
    let table = identity::read_table();
    let above = list_ancestors(&table, identity::my_id());
    let mut found: Vec<String> = Vec::new();
    for (pid, row) in table.iter().filter(|(pid, _)| !above.contains(pid)) {
        let is_loose = (row.parent == 1 || row.session == *pid) && !row.has_terminal;
        let is_later = row.started.parse().is_ok_and(|started: u64| started >= since);
        if is_loose && is_later && !row.has_ended && identity::works_in(*pid, checkout) {
            found.push(format!("{pid} ({})", identity::read_command(*pid)));
        }
    }
    found
}

type Table = Vec<(i32, readers::parse::process_table::ProcessRow)>;

/// Ends the processes that `find` returns, and returns those that did not end. The search is
/// repeated after every step, because a signalled process may just have started another.
/// `is_unseen` reports a process that the table missed because its parent ended during the look.
fn end_processes(find: impl Fn(&Table) -> Table, is_unseen: impl Fn() -> bool) -> Vec<i32> {
    let grace = Deadline::after(GRACE);
    let last = Deadline::after(GRACE + KILLED);
    let mut asked: Vec<(i32, String)> = Vec::new();
    loop {
        let table = identity::read_table();
        let me = identity::my_id();
        let (ended, left): (Table, Table) =
            find(&table).into_iter().partition(|(_, row)| row.has_ended);
        for (pid, _) in ended.iter().filter(|(_, row)| row.parent == me) {
            reap_child(*pid);
        }
        if last.passed() || (left.is_empty() && !is_unseen()) {
            return left.into_iter().map(|(pid, _)| pid).collect();
        }
        for (pid, row) in left {
            let this = (pid, row.started);
            if grace.passed() {
                signals::signal_process(pid, &this.1, Signal::KILL);
            } else if !asked.contains(&this) {
                signals::signal_process(pid, &this.1, Signal::TERM);
                asked.push(this);
            }
        }
        clock::sleep(STEP);
    }
}

/// The rows of all descendants of this process, except detached ones.
fn left_by_children(table: &Table) -> Table {
    rows_below(table, identity::my_id(), &list_detached())
}

fn list_detached() -> Vec<i32> {
    DETACHED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The rows of all descendants of `ancestor`, except `spared` and its descendants.
fn rows_below(table: &Table, ancestor: i32, spared: &[i32]) -> Table {
    let mut found: Table = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for (pid, row) in table {
            if row.parent == parent && !spared.contains(pid) {
                parents.push(*pid);
                found.push((*pid, row.clone()));
            }
        }
    }
    found
}

/// `pid` and its ancestors.
fn list_ancestors(table: &Table, pid: i32) -> Vec<i32> {
    let mut line = vec![pid];
    while let Some((_, row)) = table.iter().find(|(other, _)| Some(other) == line.last()) {
        if line.contains(&row.parent) {
            break;
        }
        line.push(row.parent);
    }
    line
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::process::fixture::run_alone;
    use crate::process::{Call, ExitCause};
    use readers::parse::process_table::ProcessRow;

    #[test]
    fn descendants_are_found_by_their_parents() {
        let row = |pid: i32, parent| {
            let started = pid.to_string();
            (pid, ProcessRow { parent, session: 0, has_ended: false, has_terminal: false, started })
        };
        let table = vec![row(1, 0), row(5, 1), row(6, 5), row(7, 6), row(8, 1), row(9, 5)];
        let mut found: Vec<i32> =
            rows_below(&table, 5, &[]).into_iter().map(|(pid, _)| pid).collect();
        found.sort_unstable();
        assert_eq!(found, [6, 7, 9]);
        assert_eq!(rows_below(&table, 5, &[6]).len(), 1);
        assert_eq!(list_ancestors(&table, 7), [7, 6, 5, 1, 0]);
    }

    fn shell(script: &str, stop: impl Fn() -> bool) -> ExitCause {
        let call = Call::shell(script, Path::new("/")).within(Duration::from_secs(10));
        call.run(stop).expect("sh").cause()
    }

    #[test]
    fn a_child_of_another_thread_is_neither_reaped_nor_killed() {
        run_alone(|| {
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let beside = scope.spawn(|| {
                    let causes: Vec<_> =
                        (0..30).map(|_| run_beside(|| shell("exit 7", || false))).collect();
                    is_over.store(true, Ordering::Relaxed);
                    causes
                });
                while !is_over.load(Ordering::Relaxed) {
                    reap_orphans();
                    assert_eq!(end_all(), [0; 0]);
                }
                assert_eq!(beside.join().unwrap(), [ExitCause::Exit(7); 30]);
            });
        });
    }

    #[test]
    fn ending_all_ends_the_child_of_another_thread_cleanly() {
        run_alone(|| {
            let folder = testkit::folder();
            let begun = folder.path().join("begun");
            let script = format!(
                "trap 'echo asked; exit 3' TERM; : > {}; while :; do sleep 0.01; done",
                begun.display()
            );
            std::thread::scope(|scope| {
                let beside = scope.spawn(|| run_beside(|| shell(&script, are_ending)));
                while !begun.exists() {
                    clock::sleep(STEP);
                }
                assert_eq!(end_all(), [0; 0]);
                assert_eq!(beside.join().unwrap(), ExitCause::Stopped);
                assert!(!are_ending() && !has_children());
            });
        });
    }

    #[test]
    fn a_detached_child_and_its_children_are_spared_while_others_are_ended() {
        run_alone(|| {
            let folder = testkit::folder();
            let script = "sh -c 'echo > ready; while :; do sleep 0.01; done'; exit 1";
            let call = Call::shell(script, folder.path());
            let process = call.detach(&folder.path().join("log")).unwrap();
            let is_ready = || folder.path().join("ready").exists();
            assert!(Deadline::after(Duration::from_secs(10)).poll_until(STEP, is_ready));
            let left = leaving_none(|| shell("setsid sh -c 'sleep 50' & sleep 0.1", || false));
            assert_eq!(left, ExitCause::Exit(0));
            assert!(identity::is_alive(&process));
            let table = identity::read_table();
            assert_eq!(left_by_children(&table).len(), 0);
            assert!(!rows_below(&table, process.pid, &[]).is_empty());
            signals::signal_group(process.pid, Signal::KILL);
            let is_gone = || !identity::is_alive(&process);
            assert!(Deadline::after(Duration::from_secs(10)).poll_until(STEP, is_gone));
            reap_child(process.pid);
            assert_eq!(list_detached(), [0; 0]);
        });
    }

    #[test]
    fn a_process_whose_group_is_unknown_is_found_by_the_id_of_its_loop() {
        run_alone(|| {
            let id = "k3v9aaaa".parse().unwrap();
            let folder = testkit::folder();
            let script = "setsid sh -c 'touch one; sleep 50' &
                setsid sh -c 'trap \"\" TERM; touch two; sleep 50' &
                while ! [ -e one -a -e two ]; do sleep 0.01; done";
            let call = Call::shell(script, folder.path()).envs([("CREW_LOOP", "k3v9aaaa")]);
            let ended = call.within(Duration::from_secs(10)).run(|| false).unwrap();
            assert_eq!(ended.cause(), ExitCause::Exit(0));
            assert_eq!(end_marked(&"another1".parse().unwrap()), [0; 0]);
            let living = || {
                let all = left_by_children(&identity::read_table());
                all.into_iter().filter(|(_, row)| !row.has_ended).count()
            };
            assert!(living() >= 2);
            assert_eq!(end_marked(&id), [0; 0]);
            assert_eq!(living(), 0);
            // They were orphans of this process, which had to reap them.
            assert_eq!((end_all(), has_children()), (Vec::new(), false));
        });
    }
}

// Reaping of groups and orphans that have ended.

/// Reaps what has ended in a group whose leader is already reaped.
pub fn reap_group(leader: i32) {
    let Some(leader) = Pid::from_raw(leader) else { return };
    while let Ok(Some(_)) = rustix::process::waitpgid(leader, WaitOptions::NOHANG) {}
}

/// Whether a process of the group is left.
pub fn group_lives(leader: i32) -> bool {
    Pid::from_raw(leader)
        .is_some_and(|leader| rustix::process::test_kill_process_group(leader).is_ok())
}

/// Whether this process becomes the parent of every orphan among its descendants. Only Linux
/// supports this.
pub fn be_subreaper(is_one: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::process::set_child_subreaper(is_one.then(getpid))?);
    #[cfg(not(target_os = "linux"))]
    Err(io::Error::new(io::ErrorKind::Unsupported, is_one.to_string()))
}

/// Whether this process has any child, including ones that ended.
pub fn has_children() -> bool {
    !matches!(look_at_children(), Err(rustix::io::Errno::CHILD))
}

/// Whether a child of this process has ended and has not been reaped.
pub fn has_ended_child() -> bool {
    matches!(look_at_children(), Ok(Some(_)))
}

fn look_at_children() -> rustix::io::Result<Option<rustix::process::WaitIdStatus>> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

/// Reaps a child that has ended.
pub fn reap_child(pid: i32) {
    if let Ok(Some(_)) = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::NOHANG) {
        // The id is free for another process.
        DETACHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != pid);
    }
}
