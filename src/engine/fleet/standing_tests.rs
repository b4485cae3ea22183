use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::engine::boundary::decide::{Decision, decide};
use crate::engine::boundary::judge::judge;
use crate::engine::claim::Claim;
use crate::engine::fixture::{a_loop, at, facts};
use crate::engine::fleet::fixture::{a_fleet, a_lease, after, ended, id, landed, running};
use crate::engine::fleet::lease::Attempt;
use crate::engine::fleet::manifest::{FleetOrder, Remote};
use crate::engine::record::Actor;

/// How they stand, at a time; the leases are never freed.
fn planned(leases: &[Lease], plan: &FleetPlan) -> Standing<'static> {
    Standing::of(&a_fleet(), leases.to_vec().leak(), &[], plan, at(7200).wall)
}

fn standing(leases: &[Lease]) -> Standing<'static> {
    planned(leases, &FleetPlan::of(&a_fleet(), leases, 4))
}

fn works(name: &str, since: u32) -> Lease {
    running(name, JobPhase::Works { slot: Some(2), since: at(since).wall })
}

#[test]
fn an_end_has_a_group_and_one_word_and_its_reason_does_not_repeat_the_word() {
    use StandingGroup::{Cancelled, Done, NeedsYou};
    let table = [
        (Outcome::Completed, "done", Done, "completed", None),
        (Outcome::Cancelled, "by the user", Cancelled, "cancelled", Some("by the user")),
        (Outcome::Blocked, "conflict: a.rs on main", NeedsYou, "conflict", Some("a.rs on main")),
        (Outcome::Blocked, "red: 2 tests fail", NeedsYou, "red", Some("2 tests fail")),
        (Outcome::Blocked, "tasks folder: a.md", NeedsYou, "folder", Some("a.md")),
        (Outcome::Blocked, "no tokens reported", NeedsYou, "blocked", Some("no tokens reported")),
        (Outcome::Exhausted, "red: of 10", NeedsYou, "exhausted", Some("red: of 10")),
        (Outcome::Aborted, "3 failures", NeedsYou, "aborted", Some("3 failures")),
        (Outcome::Stalled, "5 idle", NeedsYou, "stalled", Some("5 idle")),
        (Outcome::Interrupted, "gone", NeedsYou, "interrupted", Some("gone")),
        (Outcome::Error, "no disk", NeedsYou, "error", Some("no disk")),
    ];
    for (outcome, why, group, what, news) in table {
        let standing = standing(&[ended("a", outcome, why, 60)]);
        let row = &standing.rows[0];
        let told = news.map(|why| StandingNews::Why(why.to_owned()));
        assert_eq!((row.group, row.what, row.news.clone()), (group, what, told), "{why}");
        assert_eq!(row.since, Some(at(60).wall));
    }
}

#[test]
fn what_an_agent_needs_is_told_in_its_own_words() {
    let asks = facts(Claim::Blocked { reason: Some("the password".to_owned()) });
    let Decision::Finish(ending) = decide(&judge(&a_loop(), &asks), &asks) else { panic!() };
    let standing = standing(&[ended("a", ending.outcome, &ending.why, 60)]);
    assert_eq!(standing.rows[0].news, Some(StandingNews::Needs("the password".to_owned())));
}

#[test]
fn rows_stand_by_what_needs_a_person_and_in_a_group_by_age() {
    let rests = JobPhase::Rests { until: None, why: "usage limit".to_owned() };
    let leases = vec![
        landed("first", "4f2c9d1", 100),
        a_lease("next"),
        works("runs", 7000),
        ended("young", Outcome::Stalled, "so", 300),
        landed("last", "5f2c9d1", 200),
        ended("over", Outcome::Cancelled, "so", 50),
        running("limited", rests),
        ended("old", Outcome::Blocked, "so", 20),
        a_lease("then"),
    ];
    let standing = standing(&leases);
    let names: Vec<String> = standing.rows.iter().map(|row| row.task.to_string()).collect();
    let expected = ["old", "young", "runs", "limited", "next", "then", "last", "first", "over"];
    assert_eq!(names, expected);
    let counts = StandingCounts {
        total: 9,
        landed: 2,
        running: 2,
        waiting: 2,
        needs_you: 2,
        cancelled: 1,
        ..StandingCounts::default()
    };
    assert_eq!(standing.counts, counts);
}

#[test]
fn a_row_counts_the_iteration_that_runs_or_the_last_one_and_says_since_when() {
    let table = [
        (after(a_lease("a"), 3, 0, 0, ""), "waits", 3, None, None),
        (after(works("a", 600), 3, 0, 0, ""), "works", 4, Some(600), Some(2)),
        (after(works("a", 600), 10, 0, 0, ""), "works", 10, Some(600), Some(2)),
        (after(running("a", JobPhase::Prepares), 0, 0, 0, ""), "prepares", 1, Some(0), None),
        (after(running("a", JobPhase::Lines), 3, 0, 0, ""), "lines", 4, None, None),
        (after(running("a", JobPhase::Lands), 3, 0, 0, ""), "lands", 3, None, None),
        (after(landed("a", "4f2c9d1", 900), 3, 0, 0, ""), "landed", 3, Some(900), None),
    ];
    for (lease, what, iteration, since, slot) in table {
        let standing = standing(&[lease]);
        let row = &standing.rows[0];
        let since = since.map(|second| at(second).wall);
        assert_eq!((row.what, row.iteration, row.since), (what, iteration, since));
        assert_eq!(row.lease.and_then(Lease::attempt).and_then(Attempt::slot), slot);
    }
}

#[test]
fn the_time_that_is_left_is_the_mean_of_what_ended_for_each_open_task_shared_by_those_that_run() {
    let done = |name: &str, minutes| after(landed(name, "4f2c9d1", 100), 1, minutes, 0, "");
    let two = [done("a", 20), after(ended("b", Outcome::Stalled, "so", 1), 1, 40, 0, "")];
    let cancelled = ended("d", Outcome::Cancelled, "so", 1);
    let behind = |name: &str| {
        let mut lease = a_lease(name);
        lease.task.after = vec![id("b")];
        lease
    };
    let table = [
        ("one that ended tells nothing", vec![two[0].clone(), works("c", 7200)], None),
        ("nor does one that was cancelled", vec![done("a", 9), cancelled, works("c", 1)], None),
        ("nobody works", vec![two[0].clone(), two[1].clone(), a_lease("c")], None),
        ("10 of 30 are over", vec![two[0].clone(), two[1].clone(), works("c", 6600)], Some(20)),
        ("longer than usual", vec![two[0].clone(), two[1].clone(), works("c", 0)], None),
        (
            "three tasks, two at once",
            vec![two[0].clone(), two[1].clone(), works("c", 7200), works("d", 7200), a_lease("e")],
            Some(45),
        ),
        (
            "what waits for a person is not counted",
            vec![two[0].clone(), two[1].clone(), works("c", 7200), behind("e")],
            Some(30),
        ),
    ];
    for (case, leases, minutes) in table {
        let left = standing(&leases).left_ms;
        assert_eq!(left, minutes.map(|minutes: u64| minutes * 60_000), "{case}");
    }
}

#[test]
fn time_stands_still_once_no_task_is_open() {
    let elapsed = |leases: &[Lease]| standing(leases).elapsed_ms;
    assert_eq!(elapsed(&[landed("a", "4f2c9d1", 100), a_lease("b")]), 7_200_000);
    assert_eq!(elapsed(&[landed("a", "4f2c9d1", 100), landed("b", "5f2c9d1", 60)]), 100_000);
}

#[test]
fn one_command_is_next_for_the_oldest_thing_that_needs_a_person() {
    let gone = || ended("gone", Outcome::Interrupted, "its process ended", 10);
    let table = [
        (vec![a_lease("a"), ended("b", Outcome::Cancelled, "so", 1)], None),
        (vec![gone()], Some("crew fleet run 'my tasks' --retry")),
        (
            vec![
                gone(),
                ended("young", Outcome::Blocked, "so", 60),
                ended("old", Outcome::Exhausted, "so", 20),
            ],
            Some("crew fleet show old"),
        ),
    ];
    let fleet = Fleet { folder: "my tasks".to_owned(), ..a_fleet() };
    for (leases, expected) in table {
        let standing = Standing::of(&fleet, &leases, &[], &FleetPlan::default(), at(7200).wall);
        assert_eq!(standing.next.as_deref(), expected);
    }
}

#[test]
fn a_paused_task_says_so_and_one_that_waits_names_what_it_waits_for() {
    let pause = FleetOrder { what: FleetRequest::Pause, by: Actor::User, reason: None };
    let orders = [(id("held"), pause)].into();
    let mut later = a_lease("later");
    later.task.after = vec![id("held")];
    let leases = [a_lease("held"), later];
    let fleet = Fleet { orders, ..a_fleet() };
    let plan = FleetPlan::of(&fleet, &leases, 4);
    let standing = Standing::of(&fleet, &leases, &[], &plan, at(7200).wall);
    let said: Vec<_> = standing.rows.iter().map(|row| (row.what, row.news.clone())).collect();
    let held = StandingNews::Waits(WaitsFor::Order { order: FleetRequest::Pause });
    let waits = StandingNews::Waits(WaitsFor::Task { task: id("held") });
    assert_eq!(said, [("paused", Some(held)), ("waits", Some(waits))]);
}

#[test]
fn an_attempt_that_other_machines_may_take_over_is_silent_once_its_lease_stood_still() {
    let url = "/r.git".to_owned();
    let remote = Some(Remote { name: "origin".to_owned(), url });
    let (here, shared) = (a_fleet(), Fleet { remote, ..a_fleet() });
    let works = |second| Lease { at: at(second).wall, ..works("a", 1) };
    let ended = ended("a", Outcome::Completed, "so", 1);
    let (silent, run) = (Some(StandingNews::Silent(360_000)), Some("crew fleet run tasks"));
    let table = [
        (&shared, works(6840), silent, run),
        (&shared, works(6900), None, None),
        (&shared, works(7300), None, None),
        (&here, works(6840), None, None),
        (&shared, ended, None, None),
    ];
    for (fleet, lease, news, next) in table {
        let leases = [lease];
        let standing = Standing::of(fleet, &leases, &[], &FleetPlan::default(), at(7200).wall);
        let row = &standing.rows[0];
        assert_eq!((&row.news, standing.next.as_deref()), (&news, next), "{}", leases[0].at);
    }
}

#[test]
fn what_waits_for_a_run_names_it_next_and_a_fleet_is_over_when_nothing_would_start() {
    let waiting = |waits: WaitsFor| {
        let plan = FleetPlan { waits: [(id("a"), waits)].into(), ..FleetPlan::default() };
        planned(&[a_lease("a")], &plan)
    };
    let (run, show) = (Some("crew fleet run tasks"), Some("crew fleet show b"));
    let more = Some("crew fleet run tasks --max-cost MORE");
    let retry = Some("crew fleet run tasks --retry");
    let mut behind_b = a_lease("a");
    behind_b.task.after = vec![id("b")];
    let table = [
        (waiting(WaitsFor::Run), run, false),
        (waiting(WaitsFor::Order { order: FleetRequest::Pause }), run, true),
        (waiting(WaitsFor::Nothing), None, false),
        (waiting(WaitsFor::Money), more, true),
        (waiting(WaitsFor::Ended { task: id("gone") }), None, true),
        (standing(&[ended("b", Outcome::Cancelled, "so", 1), behind_b.clone()]), retry, true),
        (
            standing(&[ended("b", Outcome::Cancelled, "so", 1), behind_b, works("c", 1)]),
            None,
            false,
        ),
        (standing(&[works("a", 1)]), None, false),
        (standing(&[ended("b", Outcome::Blocked, "so", 1)]), show, true),
        (standing(&[landed("a", "1", 1)]), None, true),
    ];
    for (standing, next, is_over) in table {
        assert_eq!((standing.next.as_deref(), standing.is_over()), (next, is_over), "{standing:?}");
    }
}

#[test]
fn a_task_without_a_lease_that_can_be_read_needs_a_person_first() {
    let why = "a.json was made by a newer crew; update crew".to_owned();
    let lost = UnreadableLease { task: id("lost"), why: why.clone() };
    let mut later = a_lease("later");
    later.task.after = vec![id("lost")];
    let leases = [ended("old", Outcome::Blocked, "so", 1), later];
    let plan = FleetPlan::of(&a_fleet(), &leases, 4);
    let standing =
        Standing::of(&a_fleet(), &leases, std::slice::from_ref(&lost), &plan, at(7200).wall);
    let said: Vec<_> = standing.rows.iter().map(|row| (row.what, row.news.clone())).collect();
    let waits = StandingNews::Waits(WaitsFor::Ended { task: id("lost") });
    let so = StandingNews::Why("so".to_owned());
    let expected = [
        ("unreadable", Some(StandingNews::Why(why))),
        ("blocked", Some(so)),
        ("waits", Some(waits)),
    ];
    assert_eq!(said, expected);
    let StandingCounts { total, needs_you, waiting, .. } = standing.counts;
    assert_eq!((total, needs_you, waiting), (3, 2, 1));
    assert_eq!(standing.next.as_deref(), Some("crew fleet show lost"));
}

fn any_state() -> impl Strategy<Value = TaskState> {
    let phase = prop_oneof![
        Just(JobPhase::Prepares),
        Just(JobPhase::Lines),
        Just(JobPhase::Lands),
        any::<u32>().prop_map(|since| JobPhase::Works { slot: None, since: at(since).wall }),
        any::<String>().prop_map(|why| JobPhase::Rests { until: None, why }),
    ];
    let landed = prop_oneof![
        Just(None),
        any::<Option<String>>().prop_map(|commit| Some(Landed::Main(commit))),
        any::<String>().prop_map(|address| Some(Landed::Request(address))),
    ];
    prop_oneof![
        Just(TaskState::Waiting),
        phase.prop_map(|phase| running("any", phase).state),
        (select(&Outcome::ALL), any::<String>(), landed).prop_map(|(outcome, why, landed)| {
            TaskState::Ended(TaskEnding { outcome, proof: None, why, landed })
        }),
    ]
}

fn any_lease() -> impl Strategy<Value = (Lease, Option<WaitsFor>)> {
    let waits = select(vec![
        None,
        Some(WaitsFor::Nothing),
        Some(WaitsFor::Slot),
        Some(WaitsFor::Money),
        Some(WaitsFor::Ended { task: id("t0") }),
        Some(WaitsFor::Order { order: FleetRequest::Cancel }),
    ]);
    (any_state(), any::<u32>(), any::<u64>(), any::<u32>(), 0..12_u32, waits).prop_map(
        |(state, second, awake_ms, completed, of, waits)| {
            let mut lease = Lease { state, at: at(second).wall, ..a_lease("any") };
            lease.carried.awake_ms = awake_ms;
            lease.carried.completed = completed;
            lease.contract.limits.max_iterations = of;
            (lease, waits)
        },
    )
}

proptest! {
    #[test]
    fn every_task_has_one_row_and_the_groups_follow_each_other(all in vec(any_lease(), 0..12)) {
        let mut plan = FleetPlan::default();
        let mut leases = Vec::new();
        for (index, (mut lease, waits)) in all.into_iter().enumerate() {
            lease.task.id = id(&format!("t{index}"));
            plan.waits.extend(waits.map(|waits| (lease.task.id.clone(), waits)));
            leases.push(lease);
        }
        let standing = Standing::of(&a_fleet(), &leases, &[], &plan, at(7200).wall);
        let mut rows: Vec<&TaskId> = standing.rows.iter().map(|row| row.task).collect();
        rows.sort();
        let mut tasks: Vec<&TaskId> = leases.iter().map(Lease::id).collect();
        tasks.sort();
        prop_assert_eq!(rows, tasks);
        prop_assert!(standing.rows.is_sorted_by_key(|row| row.group));
        let needs = standing.rows.iter().filter(|row| row.group == StandingGroup::NeedsYou);
        prop_assert!(needs.clone().is_sorted_by_key(|row| row.since));
        let needs_a_person = needs.count() > 0;
        prop_assert!(standing.next.is_some() || !needs_a_person);
        prop_assert!(standing.next.is_none() || needs_a_person || standing.is_over());
        let StandingCounts {
            total, landed, requested, completed, running, waiting, needs_you, cancelled,
        } = standing.counts;
        let sum = landed + requested + completed + running + waiting + needs_you + cancelled;
        prop_assert_eq!((total, sum), (leases.len(), leases.len()));
    }
}
