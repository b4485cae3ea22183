//! What may start next, and what every other task waits for. A task waits for one named thing. The
//! fleet's money is kept by setting aside what each running task may still cost. Two tasks whose
//! globs may cover one path do not run at once: it says yes wherever it is not sure.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::record::{FleetRecord, TaskRecord, TaskState, WaitsFor};
use super::spec::{AttemptReport, Coordination, DescribedTask};
use crate::engine::boundary::protect;
use crate::engine::fleet::{FleetTask, TaskId};

/// A task that starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub task: TaskId,
    /// The most that it may cost, earlier attempts included, in millionths of a dollar; 0 without a
    /// limit.
    pub reserved_micros: u64,
    /// With the number, the clone and the loop that are there.
    pub continues: bool,
}

/// What starts, in this order, and what every waiting task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetPlan {
    pub starts: Vec<Start>,
    pub waits: BTreeMap<TaskId, WaitsFor>,
}

impl FleetPlan {
    /// What the coordinator recorded last. Where it is not there any more, what could start now or
    /// next waits for it.
    pub fn recorded(record: &FleetRecord, is_coordinated: bool) -> Self {
        let mut plan = Self::default();
        for (id, task) in &record.tasks {
            if task.state != TaskState::Waiting {
                continue;
            }
            let request = record.request_of(id).cloned();
            let waits = match (request, &task.waits) {
                (Some(request), _) => WaitsFor::Request { request },
                (None, Some(waits)) if is_coordinated || waits.needs_another() => waits.clone(),
                (None, _) => WaitsFor::Run,
            };
            plan.waits.insert(id.clone(), waits);
        }
        plan
    }
}

impl WaitsFor {
    /// Whether it is another task, a person's decision or money, which a start of the fleet alone
    /// does not give.
    pub fn needs_another(&self) -> bool {
        matches!(self, Self::Task { .. } | Self::Ended { .. } | Self::Money | Self::File)
    }

    /// Whether it passes without a person, and without another task that itself waits.
    pub fn passes(&self) -> bool {
        let is_held = matches!(self, Self::Run | Self::Request { .. } | Self::Signal);
        !is_held && !self.needs_another()
    }
}

/// Decides for all tasks. A task that only waits for the model's service takes no place, but there
/// are at most twice as many attempts as places: a limit of the account holds each new one, too.
pub fn waits(record: &FleetRecord, coordination: &Coordination, now: DateTime<Utc>) -> FleetPlan {
    let mut plan = FleetPlan::default();
    let mut money = Money::of(record, coordination);
    let described = &coordination.described;
    let is_running =
        |it: &&DescribedTask| record.task(&it.task.id).is_some_and(TaskRecord::is_running);
    let mut busy: Vec<&FleetTask> =
        described.iter().filter(is_running).map(|it| &it.task).collect();
    let mut free = free_places(record, coordination);
    let stopped = stopped(coordination, now);
    for DescribedTask { task: described, .. } in described {
        let id = &described.id;
        let Some(task) = record.task(id) else { continue };
        if task.state != TaskState::Waiting {
            continue;
        }
        let continues = continues(record, coordination, described, task);
        let request = record.request_of(id).cloned();
        let waits = request
            .map(|request| WaitsFor::Request { request })
            .or_else(|| before(record, described))
            .or_else(|| (!continues && !task.is_fetched()).then_some(WaitsFor::Fetch))
            .or_else(|| stopped.clone())
            .or_else(|| (free == 0).then_some(WaitsFor::Slot))
            .or_else(|| files(described, &busy));
        let reserved = if waits.is_none() { money.reserve(coordination, id, task) } else { None };
        let waits = match (waits, reserved) {
            (Some(waits), _) => waits,
            (None, None) => WaitsFor::Money,
            (None, Some(reserved_micros)) => {
                free -= 1;
                busy.push(described);
                plan.starts.push(Start { task: id.clone(), reserved_micros, continues });
                WaitsFor::Nothing
            }
        };
        plan.waits.insert(id.clone(), waits);
    }
    for (id, task) in &record.tasks {
        if task.state == TaskState::Waiting && !plan.waits.contains_key(id) {
            let request = record.request_of(id).cloned();
            let waits = request.map_or(WaitsFor::File, |request| WaitsFor::Request { request });
            plan.waits.insert(id.clone(), waits);
        }
    }
    plan
}

/// How many more attempts may run.
fn free_places(record: &FleetRecord, coordination: &Coordination) -> usize {
    let running = || record.tasks.iter().filter(|(_, task)| task.is_running());
    let rests = |id: &TaskId| coordination.reports.get(id).is_some_and(AttemptReport::rests);
    let active = running().filter(|(id, _)| !rests(id)).count();
    let most = coordination.slots.saturating_mul(2).saturating_sub(running().count());
    coordination.slots.saturating_sub(active).min(most)
}

/// Why nothing starts at all.
fn stopped(coordination: &Coordination, now: DateTime<Utc>) -> Option<WaitsFor> {
    let Coordination { trouble, starts, gave_up, signals, .. } = coordination;
    if *signals > 0 {
        return Some(WaitsFor::Signal);
    }
    let refused = if starts.holds(now) { Some("the executor took nothing") } else { None };
    let why = gave_up.as_deref().or(trouble.as_deref()).or(refused)?;
    Some(WaitsFor::Trouble { why: why.to_owned() })
}

/// Whether the next attempt is the last one again: its clone is here, its text is the same, and no
/// landing sent it back. Elsewhere a lost attempt may still run, so each one has its own number.
fn continues(
    record: &FleetRecord,
    coordination: &Coordination,
    described: &FleetTask,
    task: &TaskRecord,
) -> bool {
    let is_same = task.revision == described.revision && !task.begins_anew;
    record.is_local() && task.attempt > 0 && is_same && coordination.clones.contains(&described.id)
}

fn before(record: &FleetRecord, described: &FleetTask) -> Option<WaitsFor> {
    let mut waits = None;
    for id in &described.after {
        match record.task(id) {
            Some(task) if task.is_done(record.terms.landing) => {}
            Some(task) if task.ending().is_none() || is_to_fetch(task) => {
                waits.get_or_insert(WaitsFor::Task { task: id.clone() });
            }
            // One that needs a person is named before one that only needs time.
            _ => return Some(WaitsFor::Ended { task: id.clone() }),
        }
    }
    waits
}

/// Whether it is completed, and its work is not in the repository yet.
fn is_to_fetch(task: &TaskRecord) -> bool {
    let is_completed = task.ending().is_some_and(|it| it.proof.is_some() && it.landed.is_none());
    is_completed && !task.is_fetched()
}

fn files(described: &FleetTask, busy: &[&FleetTask]) -> Option<WaitsFor> {
    busy.iter().find_map(|other| {
        let (theirs, ours) = overlap(other, described)?;
        Some(WaitsFor::Files { task: other.id.clone(), theirs, ours })
    })
}

/// The fleet's money.
struct Money {
    /// What is neither spent nor set aside; `None` without a limit.
    left: Option<u64>,
    /// How many tasks without a limit of their own share it.
    sharers: u64,
}

impl Money {
    fn of(record: &FleetRecord, coordination: &Coordination) -> Self {
        let max = record.terms.max_cost_micros;
        let aside = |task: &TaskRecord| task.reserved_micros.max(task.cost());
        let gone = record.tasks.values().map(aside).fold(0, u64::saturating_add);
        // Nobody knows what a task may still cost that runs without a limit: it ends its iteration,
        // and waits for its share.
        let is_unknown = record.tasks.values().any(|task| lacks_a_share(record, task));
        let left = if is_unknown { 0 } else { max.saturating_sub(gone) };
        let shares = |it: &&DescribedTask| {
            let task = record.task(&it.task.id);
            own(it) == 0 && task.is_some_and(|task| task.state == TaskState::Waiting)
        };
        let sharers = coordination.described.iter().filter(shares).count() as u64;
        Self { left: (max > 0).then_some(left), sharers }
    }

    /// Sets aside what a task may still cost, or all of its share. `None` where it does not fit.
    fn reserve(
        &mut self,
        coordination: &Coordination,
        id: &TaskId,
        task: &TaskRecord,
    ) -> Option<u64> {
        let (own, cost) = (coordination.described(id).map_or(0, own), task.cost());
        let Some(left) = self.left else { return Some(own) };
        let more = match own {
            0 => left / self.sharers.max(1),
            own => own.saturating_sub(cost),
        };
        // Its own limit is used up: its loop says so, at no cost.
        if own > 0 && more == 0 {
            return Some(cost);
        }
        if more > left || more == 0 {
            return None;
        }
        self.left = Some(left - more);
        if own == 0 {
            self.sharers -= 1;
        }
        Some(cost.saturating_add(more))
    }
}

/// The limit that the task itself names; 0 without one.
fn own(described: &DescribedTask) -> u64 {
    described.contract.limits.max_cost_micros
}

/// Whether it runs, and was started before the money of its fleet had a limit.
pub fn lacks_a_share(record: &FleetRecord, task: &TaskRecord) -> bool {
    task.is_running() && record.terms.max_cost_micros > 0 && task.reserved_micros == 0
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
