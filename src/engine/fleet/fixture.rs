//! A fleet and its leases for tests: the simplest of each, defined in one place. Not compiled into
//! the program.

use std::collections::BTreeMap;

use super::lease::{Attempt, Carried, JobPhase, Landed, Lease, TaskEnding, TaskState};
use super::manifest::{self, Fleet, FleetTask, LandingMode, TaskId};
use crate::engine::fixture::{a_run, at};
use crate::engine::record::{Outcome, Proof};
use crate::engine::usage::{Money, Tokens, Usage};

/// A name.
pub fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// A fleet that keeps everything here, started at second 0.
pub fn a_fleet() -> Fleet {
    Fleet {
        schema: manifest::SCHEMA,
        made_by: "0.1.0".to_owned(),
        name: "billing-cleanup".to_owned(),
        repository: "/repo".into(),
        folder: "tasks".to_owned(),
        base: "main".to_owned(),
        typed: manifest::TypedTerms::default(),
        engine: "local".to_owned(),
        slots: 4,
        max_cost_micros: 50_000_000,
        setup: None,
        include: None,
        remote: None,
        landing: LandingMode::No,
        land_checks: Vec::new(),
        order: None,
        orders: BTreeMap::new(),
        ran_at: None,
        started_at: at(0).wall,
        trusted: None,
    }
}

/// A task that nobody works on, without checks and without a limit on its cost.
pub fn a_lease(name: &str) -> Lease {
    let task = FleetTask {
        id: id(name),
        prompt: format!("Do {name}"),
        words: Vec::new(),
        after: Vec::new(),
        touches: Vec::new(),
        priority: 5,
        revision: "0123456789ab".to_owned(),
    };
    Lease::new(&a_fleet(), task, a_run(None).contract, at(0).wall)
}

/// A task on which an attempt of this machine works since second 0.
pub fn running(name: &str, phase: JobPhase) -> Lease {
    let attempt = Attempt {
        id: "a1".to_owned(),
        host: "here".to_owned(),
        seat: "seat".to_owned(),
        pid: 42,
        job: None,
        began_at: at(0).wall,
        phase,
    };
    Lease { state: TaskState::Running(attempt), attempts: 1, ..a_lease(name) }
}

/// A task that ended at this second.
pub fn ended(name: &str, outcome: Outcome, why: &str, second: u32) -> Lease {
    let proof = (outcome == Outcome::Completed).then_some(Proof::Checked);
    let ending = TaskEnding { outcome, proof, why: why.to_owned(), landed: None };
    let state = TaskState::Ended(ending);
    Lease { state, attempts: 1, at: at(second).wall, ..a_lease(name) }
}

/// A task whose work landed as this commit at this second.
pub fn landed(name: &str, commit: &str, second: u32) -> Lease {
    let mut lease = ended(name, Outcome::Completed, "done", second);
    if let TaskState::Ended(ending) = &mut lease.state {
        ending.landed = Some(Landed::Main(Some(commit.to_owned())));
    }
    lease
}

/// The lease after so many iterations that took so many minutes and cents.
pub fn after(mut lease: Lease, completed: u32, minutes: u32, cents: u64, last: &str) -> Lease {
    let tokens = Tokens { input: cents * 1000, ..Tokens::default() };
    let cost = Money::from_micros(cents * 10_000);
    lease.carried = Carried {
        completed,
        awake_ms: u64::from(minutes) * 60_000,
        usage: Usage { tokens, cost, ..Usage::default() },
        last: last.to_owned(),
        ..Carried::default()
    };
    lease
}
