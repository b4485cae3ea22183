//! One attempt at a task, as a value: what it works with, and what becomes of it.

use std::path::Path;

use super::memory::Memory;
use crate::engine::fleet::{Fleet, Lease, TaskEnding};
use crate::engine::record::Loop;
use crate::world::process::signals::Signals;
use crate::world::store::Home;

/// What became of an attempt.
#[derive(Debug)]
pub enum JobEnd {
    /// The task ended, now or before.
    Ended(TaskEnding),
    /// Another process works on it.
    Elsewhere,
    /// Another attempt has taken it over.
    Fenced,
    /// A person paused the fleet or its loop.
    Paused,
    /// A signal ended the attempt; the task waits for the next one.
    Interrupted,
}

/// The attempt that this process is.
pub(super) struct Job<'a> {
    pub home: &'a Home,
    pub memory: &'a Memory,
    pub fleet: &'a Fleet,
    pub lease: Lease,
    pub attempt: &'a str,
    pub signals: &'a Signals,
}

/// What comes next for an attempt.
pub(super) enum AfterLoop {
    Over(JobEnd),
    /// Another loop of the task, by this lease.
    Again(Box<Lease>),
}

/// The completed work of a task.
#[derive(Clone, Copy)]
pub(super) struct DoneWork<'a> {
    /// A working tree of its branch.
    pub checkout: &'a Path,
    /// The loop that did it; `None` where that is on another machine, and the branch is on the
    /// remote.
    pub record: Option<&'a Loop>,
}
