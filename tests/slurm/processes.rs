//! The processes that belong to a node of a test's cluster, according to /proc. A process is
//! identified by an open log, its variables or its parents, never by a name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::sandbox::poll_until;
use crate::spawned::in_new_session;

/// A program that stays in the foreground, in its own session. Dropping it kills its group.
#[derive(Debug)]
pub(super) struct Daemon(Child);

impl Daemon {
    pub(super) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        in_new_session(&mut command);
        Self(command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        kill_process_group(self.pid(), Signal::KILL).ok();
        self.0.wait().ok();
    }
}

/// Kills the processes that `found` returns, in its order, until it returns none.
#[track_caller]
pub(super) fn end(found: impl Fn() -> Vec<Pid>) {
    poll_until("all processes were killed", || {
        let left = found();
        for pid in &left {
            kill_process(*pid, Signal::KILL).ok();
        }
        left.is_empty()
    });
}

/// The processes that have `log` open, then those with all of these variables, then all that is
/// below any of them. A step daemon has only the log: it writes its title over its variables.
pub(super) fn with(log: &Path, variables: &[String]) -> Vec<Pid> {
    let all = all();
    let is_new = |pid: &&Pid| !has_open(**pid, log) && has_variables(**pid, variables);
    let roots = all.iter().filter(|pid| has_open(**pid, log)).chain(all.iter().filter(is_new));
    with_descendants(roots.copied().collect())
}

/// These processes and all that is below them.
pub(super) fn with_descendants(mut found: Vec<Pid>) -> Vec<Pid> {
    let parents: Vec<_> = all().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut at = 0;
    while let Some(above) = found.get(at).copied() {
        let known: BTreeSet<i32> = found.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        let below = parents.iter().filter(|(_, parent)| *parent == above.as_raw_nonzero().get());
        let is_new = |pid: &Pid| !known.contains(&pid.as_raw_nonzero().get());
        found.extend(below.map(|(pid, _)| *pid).filter(is_new));
        at += 1;
    }
    found
}

fn all() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

/// The parent; `None` for a process that has ended and only waits to be reaped.
fn parent(pid: Pid) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    (fields.next()? != "Z").then_some(())?;
    fields.next()?.parse().ok()
}

fn has_open(pid: Pid, file: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == file))
}

fn has_variables(pid: Pid, variables: &[String]) -> bool {
    let text = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let set: BTreeSet<&[u8]> = text.split(|byte| *byte == 0).collect();
    variables.iter().all(|variable| set.contains(variable.as_bytes()))
}
