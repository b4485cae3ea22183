//! What may start next, and what every other task waits for. A task waits for one named thing. The
//! fleet's money is kept by setting aside what each running task may still cost. Two tasks whose
//! globs may cover one path do not run at once: it says yes wherever it is not sure.

use std::collections::BTreeMap;

use super::lease::{Lease, TaskState};
use super::manifest::{Fleet, FleetRequest, FleetTask, LandingMode, TaskId};
use crate::engine::boundary::protect;
use crate::engine::record::Outcome;
use serde::Serialize;

/// What a waiting task waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitsFor {
    /// Nothing: it starts now.
    Nothing,
    /// No crew runs the fleet: nobody starts it.
    Run,
    /// As many tasks run as there are slots.
    Slot,
    /// A task that comes before it is not done yet.
    Task { task: TaskId },
    /// A task that comes before it ended without being done, or its lease cannot be read.
    #[serde(rename = "ended_task")]
    Ended { task: TaskId },
    /// A task that runs touches the same files: its globs and ours.
    Files { task: TaskId, theirs: String, ours: String },
    /// What is left of the fleet's money is set aside for the tasks that run.
    Money,
    /// A person's order.
    Order { order: FleetRequest },
}

/// A task that starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub task: TaskId,
    /// The most that it may cost, earlier attempts included; 0 without a limit.
    pub reserved_micros: u64,
}

/// What starts, in this order, and what every waiting task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetPlan {
    pub starts: Vec<Start>,
    pub waits: BTreeMap<TaskId, WaitsFor>,
}

impl FleetPlan {
    /// The same while no crew runs the fleet: what could start now or next waits for that.
    pub fn unattended(mut self) -> Self {
        self.starts.clear();
        let waits = self.waits.values_mut();
        waits
            .filter(|it| matches!(it, WaitsFor::Nothing | WaitsFor::Slot | WaitsFor::Files { .. }))
            .for_each(|it| *it = WaitsFor::Run);
        self
    }

    /// The same where what could start waits for money, as nobody knows what some tasks have cost.
    pub fn without_money(mut self) -> Self {
        for Start { task, .. } in self.starts.drain(..) {
            self.waits.insert(task, WaitsFor::Money);
        }
        self
    }

    /// Decides for all tasks; `leases` are in the order in which they start, and `slots` of them
    /// may run at once. A job that only waits for the model's service takes no place, but of all
    /// jobs there are at most twice as many: a limit of the account holds each new one, too.
    pub fn of(fleet: &Fleet, leases: &[Lease], slots: usize) -> Self {
        let mut plan = Self::default();
        let mut money = Money::of(fleet, leases);
        let is_busy = |lease: &&Lease| lease.attempt().is_some();
        let mut busy: Vec<&Lease> = leases.iter().filter(is_busy).collect();
        let active = busy.iter().filter(|lease| !lease.rests()).count();
        let most = slots.saturating_mul(2).saturating_sub(busy.len());
        let mut free = slots.saturating_sub(active).min(most);
        for lease in leases.iter().filter(|lease| lease.state == TaskState::Waiting) {
            let files = || files(lease, &busy);
            let order =
                fleet.order_of(lease.id()).map(|order| WaitsFor::Order { order: order.what });
            let waits = order.or_else(|| before(fleet, lease, leases)).or_else(files);
            let waits = waits.or_else(|| (free == 0).then_some(WaitsFor::Slot));
            let reserved = if waits.is_none() { money.reserve(lease) } else { None };
            let waits = match (waits, reserved) {
                (Some(waits), _) => waits,
                (None, None) => WaitsFor::Money,
                (None, Some(reserved_micros)) => {
                    free -= 1;
                    busy.push(lease);
                    plan.starts.push(Start { task: lease.id().clone(), reserved_micros });
                    WaitsFor::Nothing
                }
            };
            plan.waits.insert(lease.id().clone(), waits);
        }
        plan
    }
}

/// Whether a task that comes before another is done: it is on the branch that the other starts
/// from, or will be merged into it.
fn is_done(fleet: &Fleet, lease: &Lease) -> bool {
    let is_where_it_belongs = fleet.landing != LandingMode::Main || lease.is_on_main();
    lease.outcome() == Some(Outcome::Completed) && is_where_it_belongs
}

fn before(fleet: &Fleet, lease: &Lease, leases: &[Lease]) -> Option<WaitsFor> {
    let of = |id: &TaskId| leases.iter().find(|other| other.id() == id);
    let waits = lease.task.after.iter().filter_map(|id| match of(id) {
        Some(found) if is_done(fleet, found) => None,
        Some(found) if found.ending().is_none() => Some(WaitsFor::Task { task: id.clone() }),
        // Without a lease that can be read, nobody knows whether it is done.
        Some(_) | None => Some(WaitsFor::Ended { task: id.clone() }),
    });
    // One that ended needs a person; the others only need time.
    let all: Vec<WaitsFor> = waits.collect();
    all.iter().find(|it| matches!(it, WaitsFor::Ended { .. })).or(all.first()).cloned()
}

fn files(lease: &Lease, busy: &[&Lease]) -> Option<WaitsFor> {
    busy.iter().find_map(|other| {
        let (theirs, ours) = overlap(&other.task, &lease.task)?;
        Some(WaitsFor::Files { task: other.id().clone(), theirs, ours })
    })
}

/// What a task has cost at most, in millionths of a dollar, rounded up.
pub fn cost(lease: &Lease) -> u64 {
    lease.carried.usage.cost_at_most().micros()
}

/// The fleet's money.
struct Money {
    /// What is neither spent nor set aside; `None` without a limit.
    left: Option<u64>,
    /// How many tasks without a limit of their own share it.
    sharers: u64,
    /// Whether every job finds the loops of those before it.
    is_local: bool,
}

impl Money {
    fn of(fleet: &Fleet, leases: &[Lease]) -> Self {
        let aside = |lease: &Lease| {
            let runs = lease.attempt().is_some();
            if runs { lease.reserved_micros.max(cost(lease)) } else { cost(lease) }
        };
        let gone = leases.iter().map(aside).fold(0, u64::saturating_add);
        let left = fleet.max_cost_micros.saturating_sub(gone);
        // Nobody knows what a task may still cost that runs without a limit: it ends its iteration,
        // and waits for its share.
        let is_unknown = leases.iter().any(|it| it.attempt().is_some() && it.lacks_a_share(fleet));
        let left = (fleet.max_cost_micros > 0).then_some(if is_unknown { 0 } else { left });
        let waits = |lease: &&Lease| lease.state == TaskState::Waiting && own(lease) == 0;
        let sharers = leases.iter().filter(waits).count() as u64;
        Self { left, sharers, is_local: fleet.is_local() }
    }

    /// Sets aside what a task may still cost, or all of its share. `None` where it does not fit.
    fn reserve(&mut self, lease: &Lease) -> Option<u64> {
        let own = own(lease);
        let Some(left) = self.left else { return Some(own) };
        let more = match own {
            0 => left / self.sharers.max(1),
            own => own.saturating_sub(cost(lease)),
        };
        if more > left || more == 0 {
            // What is completed costs nothing more, where its loop or its branch is at hand. A 0
            // would be no limit.
            let is_at_hand = self.is_local || lease.commit.is_some();
            return (lease.loop_end.is_some() && is_at_hand).then(|| cost(lease).max(1));
        }
        self.left = Some(left - more);
        if own == 0 {
            self.sharers -= 1;
        }
        Some(cost(lease).saturating_add(more))
    }
}

/// The limit that the task itself names; 0 without one.
fn own(lease: &Lease) -> u64 {
    lease.contract.limits.max_cost_micros
}

/// What makes a part of a path a pattern.
const PATTERN: [char; 5] = ['*', '?', '[', '{', '\\'];

/// The first globs of two tasks, one of each, that can cover the same path. A task that names no
/// globs overlaps with nothing.
///
/// A glob covers what it matches and everything below that, as `protect` does. So two globs are
/// compared folder by folder, until one of them ends: what is left of the other lies below it. They
/// are apart only where two names differ, where a pattern does not match the other's name, or where
/// two patterns begin or end with different letters. `**`, `[…]` and braces around a slash may
/// stand for any number of folders: from there on, the globs overlap.
pub fn overlap(one: &FleetTask, other: &FleetTask) -> Option<(String, String)> {
    let pairs =
        one.touches.iter().flat_map(|mine| other.touches.iter().map(move |its| (mine, its)));
    pairs.into_iter().find(|(mine, its)| meet(mine, its)).map(|(a, b)| (a.clone(), b.clone()))
}

fn meet(one: &str, other: &str) -> bool {
    let mut parts =
        one.trim_end_matches('/').split('/').zip(other.trim_end_matches('/').split('/'));
    parts.find_map(|(one, other)| names_meet(one, other)).unwrap_or(true)
}

/// Whether the globs are known to overlap or to be apart at these parts; `None` if both can name
/// the same folder or file, and what follows decides.
fn names_meet(one: &str, other: &str) -> Option<bool> {
    if crosses(one) || crosses(other) {
        return Some(true);
    }
    let can_meet = match (one.contains(PATTERN), other.contains(PATTERN)) {
        (false, false) => one == other,
        _ if !edges_meet(one, other) => false,
        (true, true) => true,
        (true, false) => matches(one, other),
        (false, true) => matches(other, one),
    };
    if can_meet { None } else { Some(false) }
}

/// Whether a part may match a slash, or is a piece of something that does.
fn crosses(part: &str) -> bool {
    let is_piece = || part.contains(['{', '}', '\\']) && protect::glob(part).is_err();
    part.contains("**") || part.contains('[') || is_piece()
}

fn matches(pattern: &str, name: &str) -> bool {
    protect::glob(pattern).is_ok_and(|glob| glob.is_match(name))
}

/// Whether one name can begin and end with the plain letters of both.
fn edges_meet(one: &str, other: &str) -> bool {
    let (one_lead, other_lead) = (lead(one), lead(other));
    let (one_tail, other_tail) = (tail(one), tail(other));
    (one_lead.starts_with(other_lead) || other_lead.starts_with(one_lead))
        && (one_tail.ends_with(other_tail) || other_tail.ends_with(one_tail))
}

/// The plain letters before the first pattern.
fn lead(part: &str) -> &str {
    part.split(PATTERN).next().unwrap_or_default()
}

/// The plain letters after the last pattern; the one after a backslash is plain.
fn tail(part: &str) -> &str {
    part.rsplit(['*', '?', '}', '\\']).next().unwrap_or_default()
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

#[cfg(test)]
mod overlap_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::boundary::protect::Cover;

    fn task(touches: &[&str]) -> FleetTask {
        FleetTask {
            id: "a".parse().unwrap(),
            prompt: "do it".to_owned(),
            words: Vec::new(),
            after: Vec::new(),
            touches: touches.iter().map(|glob| (*glob).to_owned()).collect(),
            priority: 5,
            revision: String::new(),
        }
    }

    #[test]
    fn globs_overlap_unless_a_name_on_the_way_keeps_them_apart() {
        for (one, other, expected) in [
            ("src/auth/**", "src/auth/**", true),
            ("src/auth/**", "src/auth/login.rs", true),
            ("src/auth", "src/auth/login.rs", true),
            ("src/", "src/auth/*.rs", true),
            ("Cargo.lock", "*.lock", true),
            ("src/*.rs", "src/main.rs", true),
            ("src/a*", "src/*b", true),
            ("**/*.md", "src/lib.rs", true),
            ("src/{a,b}/x", "src/b/x", true),
            ("{src/a,tests}/x", "docs/x", true),
            ("x[!a]y", "x/y", true),
            ("a\\*", "a*", true),
            ("src/auth/**", "src/user/**", false),
            ("src/auth", "src/authority", false),
            ("*.lock", "Cargo.toml", false),
            ("src/*.rs", "src/*.md", false),
            ("src/a*", "src/b*", false),
            ("src/?.rs", "src/main.rs", false),
            ("src/{a,b}/x", "src/c/x", false),
            ("src/*/x", "src/a/y", false),
            ("a\\*", "ab", false),
        ] {
            assert_eq!(meet(one, other), expected, "{one} and {other}");
            assert_eq!(meet(other, one), expected, "{other} and {one}");
        }
    }

    #[test]
    fn the_first_pair_that_meets_is_named_and_no_globs_meet_nothing() {
        let found = overlap(&task(&["docs", "src/*.rs"]), &task(&["tests", "src/main.rs"]));
        assert_eq!(found, Some(("src/*.rs".to_owned(), "src/main.rs".to_owned())));
        assert_eq!(overlap(&task(&["docs"]), &task(&["tests"])), None);
        assert_eq!(overlap(&task(&[]), &task(&["**"])), None);
    }

    /// A few names, so that globs and paths meet often.
    fn path() -> impl Strategy<Value = String> {
        prop::collection::vec("[ab]{1,2}", 1..4).prop_map(|names| names.join("/"))
    }

    fn glob() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            4 => "[ab]{1,2}",
            4 => "[ab*?]{1,3}",
            1 => Just("**".to_owned()),
            1 => "[ab]?\\{[ab*]{1,2},[ab/]{0,2}\\}[ab]?",
            1 => "[ab]?\\[!?[ab]\\][ab]?",
            1 => "\\\\[ab*]",
        ];
        let globs = prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"));
        globs.prop_filter("a glob", |glob| protect::glob(glob).is_ok())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]
        #[test]
        fn globs_that_cover_one_path_overlap(one in glob(), other in glob(), path in path()) {
            let covers = |glob: &String| Cover::of(&[glob]).covers(&path);
            if covers(&one) && covers(&other) {
                prop_assert!(meet(&one, &other), "{one} and {other} cover {path}");
            }
        }

        #[test]
        fn a_glob_overlaps_itself_and_order_does_not_matter(one in glob(), other in glob()) {
            prop_assert!(meet(&one, &one), "{one}");
            prop_assert_eq!(meet(&one, &other), meet(&other, &one));
        }
    }
}
