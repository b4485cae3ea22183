//! What may start next, and what every other task waits for. A task waits for one named thing. To
//! stay within the fleet's money, the plan sets aside what each running task may still cost. Two
//! tasks whose globs may cover the same path do not run at the same time; in case of doubt, globs
//! count as overlapping.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::record::{FleetRecord, TaskRecord, WaitsFor};
use super::spec::{AttemptReport, Coordination, DescribedTask};
use engine::fleet::{FleetTask, TaskId};
use engine::protect;

/// A task that starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub task: TaskId,
    /// The maximum cost, including earlier attempts, in millionths of a dollar; 0 means no limit.
    pub reserved_micros: u64,
    /// Whether it continues with its existing number, clone and loop.
    pub continues: bool,
}

/// What starts, in order, and what every waiting task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetPlan {
    pub starts: Vec<Start>,
    pub waits: BTreeMap<TaskId, WaitsFor>,
}

impl FleetPlan {
    /// The plan as the coordinator last recorded it. Without a coordinator, tasks that could start
    /// wait for one.
    pub fn from_record(record: &FleetRecord, is_coordinated: bool) -> Self {
        let waiting = record.tasks.iter().filter(|(_, task)| task.is_waiting());
        let waits = waiting.map(|(id, task)| {
            let known = task.waits.as_ref().filter(|wait| is_coordinated || wait.needs_another());
            // The next start of the fleet lifts a pause.
            let asked =
                wait_for_request(record, id).filter(|wait| is_coordinated || wait.is_cancel());
            let waits = asked.or_else(|| known.cloned()).unwrap_or(WaitsFor::Run);
            (id.clone(), waits)
        });
        Self { starts: Vec::new(), waits: waits.collect() }
    }
}

impl WaitsFor {
    /// Whether the task waits for more than a start of the fleet: another task, a person or money.
    pub fn needs_another(&self) -> bool {
        matches!(self, Self::Task { .. } | Self::Ended { .. } | Self::Money | Self::File)
    }

    /// Whether a person has cancelled the task.
    pub fn is_cancel(&self) -> bool {
        matches!(self, Self::Request { request } if request.is_cancel())
    }

    /// Whether the wait ends without a person and without another waiting task.
    pub fn ends_by_itself(&self) -> bool {
        let is_held = matches!(self, Self::Run | Self::Request { .. } | Self::Signal);
        !is_held && !self.needs_another()
    }
}

/// Decides for all tasks. A task that only waits for the model's service needs no slot, but there
/// are at most two attempts per slot, because the account's limit would stop new ones too.
pub fn plan_starts(
    record: &FleetRecord,
    coordination: &Coordination,
    now: DateTime<Utc>,
) -> FleetPlan {
    let Coordination { described, clones, .. } = coordination;
    let (mut plan, mut money) = (FleetPlan::default(), Money::new(record, coordination));
    let (mut free, stopped) =
        (free_places(record, coordination), wait_for_signal(coordination, now));
    // A task that starts before work on the same files has landed would only conflict with it.
    let texts = described.iter().map(|one| &one.task);
    let mut busy: Vec<&FleetTask> = texts.filter(|text| is_at_work(record, text)).collect();
    for described in described {
        let (id, text) = (&described.task.id, &described.task);
        let Some(task) = record.task(id).filter(|task| task.is_waiting()) else { continue };
        // Elsewhere a lost attempt may still run, so each attempt gets a new number.
        let is_there = record.is_local() && task.attempt > 0 && clones.contains(id);
        let has_its_checks = task.refused.land_checks.is_empty()
            || task.refused.land_checks == record.terms.land_checks;
        let is_same =
            task.text.revision == text.revision && has_its_checks && !task.refused.begins_anew;
        let continues = is_there && is_same && task.text.agents == described.agent_names();
        let waits = wait_for_request(record, id)
            .or_else(|| wait_for_tasks(record, text))
            .or_else(|| (!continues && !task.is_fetched()).then_some(WaitsFor::Fetch))
            .or_else(|| stopped.clone())
            .or_else(|| (free == 0).then_some(WaitsFor::Slot))
            .or_else(|| wait_for_files(text, &busy));
        let waits = waits.unwrap_or_else(|| match money.reserve_money(described, task) {
            Some(reserved_micros) => {
                free -= 1;
                busy.push(text);
                plan.starts.push(Start { task: id.clone(), reserved_micros, continues });
                WaitsFor::Nothing
            }
            None => WaitsFor::Money,
        });
        plan.waits.insert(id.clone(), waits);
    }
    for (id, task) in &record.tasks {
        if task.is_waiting() && !plan.waits.contains_key(id) {
            plan.waits.insert(id.clone(), wait_for_request(record, id).unwrap_or(WaitsFor::File));
        }
    }
    plan
}

fn wait_for_request(record: &FleetRecord, id: &TaskId) -> Option<WaitsFor> {
    Some(WaitsFor::Request { request: record.request_of(id)?.clone() })
}

/// Whether a task that declares its files is running, or is landing and was not asked to stop.
fn is_at_work(record: &FleetRecord, text: &FleetTask) -> bool {
    let Some(task) = record.task(&text.id) else { return false };
    let lands = task.landing().is_some() && record.request_of(&text.id).is_none();
    !text.touches.is_empty() && (task.is_running() || lands)
}

/// How many more attempts may run.
fn free_places(record: &FleetRecord, coordination: &Coordination) -> usize {
    let running = || record.tasks.iter().filter(|(_, task)| task.is_running());
    let reports = &coordination.reports;
    let active =
        running().filter(|(id, _)| !reports.get(id).is_some_and(AttemptReport::is_waiting)).count();
    let most = coordination.slots.saturating_mul(2).saturating_sub(running().count());
    coordination.slots.saturating_sub(active).min(most)
}

/// The reason why no task starts.
fn wait_for_signal(coordination: &Coordination, now: DateTime<Utc>) -> Option<WaitsFor> {
    let Coordination { backoffs, stop, .. } = coordination;
    if stop.signals > 0 {
        return Some(WaitsFor::Signal);
    }
    let refused =
        if backoffs.starts.is_active(now) { Some("the executor accepted no job") } else { None };
    let why = stop.gave_up.as_deref().or(coordination.first_trouble()).or(refused)?;
    Some(WaitsFor::Trouble { why: why.to_owned() })
}

/// The unfinished task that this one waits for; a task that needs a person comes first.
fn wait_for_tasks(record: &FleetRecord, described: &FleetTask) -> Option<WaitsFor> {
    let waits = described.after.iter().filter_map(|id| match record.task(id) {
        Some(task) if task.is_done(record.terms.landing) => None,
        // A completed task still has to be fetched.
        Some(task)
            if task.ending().is_none_or(|ending| ending.is_completed() && !task.is_fetched()) =>
        {
            Some(WaitsFor::Task { task: id.clone() })
        }
        _ => Some(WaitsFor::Ended { task: id.clone() }),
    });
    waits.min_by_key(|waits| matches!(waits, WaitsFor::Task { .. }))
}

fn wait_for_files(described: &FleetTask, busy: &[&FleetTask]) -> Option<WaitsFor> {
    busy.iter().find_map(|other| {
        let (theirs, ours) = find_overlap(other, described)?;
        Some(WaitsFor::Files { task: other.id.clone(), theirs, ours })
    })
}

/// The fleet's remaining money.
struct Money {
    /// The amount neither spent nor set aside; `None` without a limit.
    left: Option<u64>,
    /// The number of tasks without their own limit, which share the money.
    sharers: u64,
}

impl Money {
    fn new(record: &FleetRecord, coordination: &Coordination) -> Self {
        let max = record.terms.limits.max_cost_micros;
        if max == 0 {
            return Self { left: None, sharers: 0 };
        }
        // The remaining cost of a task that runs without a limit is unknown: it ends its iteration
        // and waits for its share.
        let is_unknown = record.tasks.values().any(|task| lacks_a_share(record, task));
        let left = if is_unknown { 0 } else { max.saturating_sub(taken_cost(record)) };
        let sharers = coordination.described.iter().filter(|one| {
            own_cost(one) == 0 && record.task(&one.task.id).is_some_and(TaskRecord::is_waiting)
        });
        Self { left: Some(left), sharers: sharers.count() as u64 }
    }

    /// Sets aside what a task may still cost, or its whole share. `None` if too little is left.
    fn reserve_money(&mut self, described: &DescribedTask, task: &TaskRecord) -> Option<u64> {
        let (own, cost) = (own_cost(described), task.cost());
        let Some(left) = self.left else { return Some(own) };
        let is_own = own > 0;
        let more = if is_own { own.saturating_sub(cost) } else { left / self.sharers.max(1) };
        if more == 0 || more > left {
            // If its own limit is used up, its loop reports that, at no cost.
            return (is_own && more == 0).then_some(cost);
        }
        self.left = Some(left - more);
        self.sharers -= u64::from(!is_own);
        Some(cost.saturating_add(more))
    }
}

/// The task's own cost limit; 0 if it has none.
fn own_cost(described: &DescribedTask) -> u64 {
    described.contract.limits.max_cost_micros
}

/// Whether a task runs without a share of the fleet's money: it started before the fleet had a
/// limit, or the limit is now below the amount spent and set aside.
pub fn lacks_a_share(record: &FleetRecord, task: &TaskRecord) -> bool {
    let max = record.terms.limits.max_cost_micros;
    task.is_running() && max > 0 && (task.reserved_micros == 0 || taken_cost(record) > max)
}

/// The amount spent and set aside.
fn taken_cost(record: &FleetRecord) -> u64 {
    let costs = record.tasks.values().map(|task| task.reserved_micros.max(task.cost()));
    costs.fold(0, u64::saturating_add)
}

/// The characters that make a path component a pattern.
const PATTERN: [char; 5] = ['*', '?', '[', '{', '\\'];

/// The first globs of two tasks, one of each, that can cover the same path. A task that names no
/// globs overlaps with nothing.
///
/// A glob covers what it matches and everything below that, as `protect` does. So two globs are
/// compared folder by folder, until one of them ends: what is left of the other lies below it. They
/// do not overlap only if two names differ, a pattern does not match the other's name, or two
/// patterns begin or end with different letters. `**`, `[…]` and braces around a slash may stand
/// for any number of folders: from there on, the globs overlap.
pub fn find_overlap(one: &FleetTask, other: &FleetTask) -> Option<(String, String)> {
    let pairs =
        one.touches.iter().flat_map(|mine| other.touches.iter().map(move |its| (mine, its)));
    pairs
        .into_iter()
        .find(|(mine, its)| patterns_meet(mine, its))
        .map(|(a, b)| (a.clone(), b.clone()))
}

fn patterns_meet(one: &str, other: &str) -> bool {
    let mut parts =
        one.trim_end_matches('/').split('/').zip(other.trim_end_matches('/').split('/'));
    parts.find_map(|(one, other)| names_meet(one, other)).unwrap_or(true)
}

/// Whether these parts decide that the globs overlap or do not; `None` if both can name the same
/// folder or file, so that later parts decide.
fn names_meet(one: &str, other: &str) -> Option<bool> {
    if crosses_folders(one) || crosses_folders(other) {
        return Some(true);
    }
    let can_meet = match (one.contains(PATTERN), other.contains(PATTERN)) {
        (true, true) => edges_meet(fixed_edges(one), fixed_edges(other)),
        (true, false) => matches_name(one, other),
        (false, _) => matches_name(other, one),
    };
    if can_meet { None } else { Some(false) }
}

/// Whether a part may match a slash, or is a piece of a pattern that may.
fn crosses_folders(part: &str) -> bool {
    part.contains("**")
        || part.contains('[')
        || (part.contains(['{', '}', '\\']) && protect::parse_glob(part).is_err())
}

fn matches_name(pattern: &str, name: &str) -> bool {
    protect::parse_glob(pattern).is_ok_and(|glob| glob.is_match(name))
}

/// Whether one name can begin and end with the literal letters of both patterns.
fn edges_meet((lead, tail): (&str, &str), (other, its): (&str, &str)) -> bool {
    let leads_meet = lead.starts_with(other) || other.starts_with(lead);
    leads_meet && (tail.ends_with(its) || its.ends_with(tail))
}

/// The literal letters before the first pattern and after the last one; a letter after a backslash
/// is literal.
fn fixed_edges(part: &str) -> (&str, &str) {
    let lead = part.split(PATTERN).next().unwrap_or_default();
    (lead, part.rsplit(['*', '?', '}', '\\']).next().unwrap_or_default())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

#[cfg(test)]
mod overlap_tests {
    use proptest::prelude::*;

    use super::*;
    use engine::protect::GlobCover;

    fn task_with(touches: &[&str]) -> FleetTask {
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
    fn globs_overlap_unless_a_name_in_their_paths_differs() {
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
            assert_eq!(patterns_meet(one, other), expected, "{one} and {other}");
            assert_eq!(patterns_meet(other, one), expected, "{other} and {one}");
        }
    }

    #[test]
    fn the_first_overlapping_pair_is_named_and_an_empty_list_overlaps_nothing() {
        let found =
            find_overlap(&task_with(&["docs", "src/*.rs"]), &task_with(&["tests", "src/main.rs"]));
        assert_eq!(found, Some(("src/*.rs".to_owned(), "src/main.rs".to_owned())));
        assert_eq!(find_overlap(&task_with(&["docs"]), &task_with(&["tests"])), None);
        assert_eq!(find_overlap(&task_with(&[]), &task_with(&["**"])), None);
    }

    /// A few names, so that globs and paths meet often.
    fn path() -> impl Strategy<Value = String> {
        prop::collection::vec("[ab]{1,2}", 1..4).prop_map(|names| names.join("/"))
    }

    fn any_glob() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            4 => "[ab]{1,2}",
            4 => "[ab*?]{1,3}",
            1 => Just("**".to_owned()),
            1 => "[ab]?\\{[ab*]{1,2},[ab/]{0,2}\\}[ab]?",
            1 => "[ab]?\\[!?[ab]\\][ab]?",
            1 => "\\\\[ab*]",
        ];
        let globs = prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"));
        globs.prop_filter("a glob", |glob| protect::parse_glob(glob).is_ok())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]
        #[test]
        fn globs_that_cover_one_path_overlap(one in any_glob(), other in any_glob(), path in path()) {
            let covers = |glob: &String| GlobCover::from_globs(&[glob]).covers(&path);
            if covers(&one) && covers(&other) {
                prop_assert!(patterns_meet(&one, &other), "{one} and {other} cover {path}");
            }
        }

        #[test]
        fn a_glob_overlaps_itself_and_order_does_not_matter(one in any_glob(), other in any_glob()) {
            prop_assert!(patterns_meet(&one, &one), "{one}");
            prop_assert_eq!(patterns_meet(&one, &other), patterns_meet(&other, &one));
        }
    }
}
