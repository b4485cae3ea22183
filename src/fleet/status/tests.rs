use std::collections::BTreeMap;

use chrono::{FixedOffset, TimeDelta};
use insta::assert_snapshot;
use serde_json::Value as Json;
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::fleet::fixture::an_ending;
use crate::fleet::record::{FleetLimits, FleetTerms, Holder, TaskReason, TaskRequest, Unsettled};
use crate::report::colour;
use crate::report::layout::Reading;
use engine::fixture::at;
use engine::fleet::{Carried, LandingMode, Refusal};
use engine::record::{Actor, Check};

fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// A fleet that lands its tasks and began two hours ago.
fn a_record() -> FleetRecord {
    let terms = FleetTerms {
        name: "shop".to_owned(),
        folder: "tasks".to_owned(),
        base: "main".to_owned(),
        executor: "local".to_owned(),
        landing: LandingMode::Main,
        land_checks: Vec::<Check>::new(),
        limits: FleetLimits {
            max_cost_micros: 50_000_000,
            typed_max_cost_micros: Some(50_000_000),
            ..FleetLimits::default()
        },
        ..FleetTerms::default()
    };
    let begun = at(0).wall - TimeDelta::hours(2);
    FleetRecord::begin_fleet(terms, "f1".to_owned(), Holder::default(), begun)
}

fn add_task(record: &mut FleetRecord, name: &str, minutes: i64, state: TaskState) {
    let since = at(0).wall - TimeDelta::minutes(minutes);
    let mut task = TaskRecord::new("r", 10, since);
    task.attempt = u32::from(state != TaskState::Waiting);
    task.set(state, since);
    if task.attempt > 0 {
        task.carried.completed = 3;
        task.carried.awake_ms = 600_000;
        task.carried.last = "2 of 5 tests fail".to_owned();
        task.carried.usage = Usage { cost: Money::from_micros(1_100_000), ..Usage::default() };
    }
    record.tasks.insert(id(name), task);
}

fn ended_with(outcome: Outcome, reason: impl Into<TaskReason>) -> TaskState {
    TaskState::Ended(TaskEnding::new(outcome, reason))
}

fn landed_as(commit: &str) -> TaskState {
    let ending = TaskEnding::new(Outcome::Completed, "so");
    let landed = Some(Landed::Main(Some(commit.repeat(20))));
    TaskState::Ended(TaskEnding { landed, proof: Some(Proof::Checked), ..ending })
}

fn running_since(since: i64) -> TaskState {
    TaskState::Running { job: "4711".to_owned(), since: at(0).wall - TimeDelta::minutes(since) }
}

fn report_in(phase: AttemptPhase) -> AttemptReport {
    let carried = Carried { completed: 4, last: "all pass".to_owned(), ..Carried::default() };
    AttemptReport {
        number: 1,
        host: "box".to_owned(),
        process: None,
        loop_id: None,
        phase,
        carried,
        commit: None,
        stands_on: None,
        conflicts: Vec::new(),
        end: None,
        at: at(0).wall,
    }
}

fn a_fleet() -> (FleetRecord, BTreeMap<TaskId, AttemptReport>, FleetPlan) {
    let mut record = a_record();
    let files = ["src/pay.rs", "src/tax.rs", "src/refund.rs"].map(str::to_owned).to_vec();
    let of_loop = Box::new("the agent could not decide which of both rounds".into());
    let (refusal, unsettled) = (Refusal::Conflict(files), Some(Unsettled::Loop(of_loop)));
    let conflict = TaskReason::Refused { refusal, unsettled };
    add_task(&mut record, "vat", 30, ended_with(Outcome::Blocked, conflict));
    let asked = TaskReason::Asked("which port?".to_owned());
    add_task(&mut record, "ask", 40, ended_with(Outcome::Blocked, asked));
    add_task(&mut record, "pay", 5, running_since(20));
    add_task(&mut record, "rests", 6, running_since(9));
    add_task(&mut record, "first", 8, landed_as("4f"));
    add_task(&mut record, "second", 7, landed_as("ab"));
    add_task(&mut record, "lands", 2, TaskState::Landing(an_ending(Outcome::Completed)));
    add_task(&mut record, "turn", 1, TaskState::Landing(an_ending(Outcome::Completed)));
    add_task(&mut record, "next", 0, TaskState::Waiting);
    add_task(&mut record, "after", 0, TaskState::Waiting);
    add_task(
        &mut record,
        "off",
        50,
        ended_with(
            Outcome::Cancelled,
            TaskReason::Cancelled { by: Actor::User, reason: Some("not needed".to_owned()) },
        ),
    );
    let since = at(0).wall - TimeDelta::minutes(3);
    let until = Some(at(600).wall);
    let reports = BTreeMap::from([
        (id("pay"), report_in(AttemptPhase::Running { slot: Some(1), since })),
        (id("rests"), report_in(AttemptPhase::Waiting { until, why: "usage limit".to_owned() })),
    ]);
    let waits = BTreeMap::from([
        (id("next"), WaitsFor::Slot),
        (id("after"), WaitsFor::Ended { task: id("vat") }),
    ]);
    (record, reports, FleetPlan { waits, ..FleetPlan::default() })
}

fn render_page(status: &FleetStatus<'_>, width: usize, rows: Option<usize>) -> Vec<String> {
    let reading = Reading { width, now: at(0).wall, offset: FixedOffset::east_opt(0).unwrap() };
    let lines = status.render_page(reading, rows, None);
    lines.iter().map(|line| colour::paint_marks(line, false)).collect()
}

#[test]
fn tasks_that_need_a_person_come_first_oldest_on_top_with_their_full_reasons() {
    let (record, reports, plan) = a_fleet();
    let status = FleetStatus::from_plan(&record, &reports, &plan, at(0).wall);
    assert_snapshot!(render_page(&status, 100, None).join("\n"), @r#"
    fleet shop: 2 of 11 landed · 3 run · 3 wait · 2 need you · 1 cancelled
      $9.90 of $50.00 · begun 2h ago · about 9m left

      ask  blocked   40m ago  "which port?"
      vat  conflict  30m ago
          src/pay.rs, src/tax.rs, src/refund.rs changed on main too; its loop: the agent could not
          decide which of both rounds

      rests  waits  5/10  6m         until 11:16: usage limit       box
      pay    runs   5/10  3m         all pass                       slot 1
      lands  lands  3/10  2m  $1.10  its work is tried on the base

      after  waits  after vat, which needs you
      next   waits  for a slot
      turn   waits  for its turn to land

      landed    main abababa: second, first

      off  cancelled  50m ago  cancelled by the user: not needed

      next      crew show shop/ask
    "#);
}

#[test]
fn a_fleet_of_two_thousand_tasks_fits_any_screen_and_names_what_it_leaves_out() {
    let (mut record, reports, _) = a_fleet();
    for number in 0..2000 {
        let why = "a reason that is longer than what is left of a line ".repeat(3);
        let state = match number % 4 {
            0 => ended_with(Outcome::Stalled, &*why),
            1 => running_since(number),
            2 => TaskState::Waiting,
            _ => landed_as("4f"),
        };
        add_task(&mut record, &format!("t{number}"), number, state);
    }
    let plan = FleetPlan::from_record(&record, true);
    let status = FleetStatus::from_plan(&record, &reports, &plan, at(0).wall);
    for (width, rows) in [(80, 24), (40, 12), (120, 50), (20, 5), (200, 1)] {
        let lines = render_page(&status, width, Some(rows));
        assert!(lines.len() <= rows, "{lines:#?}");
        assert!(lines.iter().all(|line| line.width() <= width), "{lines:#?}");
    }
    let lines = render_page(&status, 80, Some(24)).join("\n");
    assert!(lines.contains("more") && lines.contains("next      crew show shop/"), "{lines}");
}

#[test]
fn every_task_has_the_same_keys_and_the_remote_no_password() {
    let (mut record, reports, plan) = a_fleet();
    let url = "https://me:secret@host/x.git".to_owned();
    record.terms.remote = Some(engine::fleet::Remote { name: "origin".to_owned(), url });
    let status = FleetStatus::from_plan(&record, &reports, &plan, at(0).wall);
    let value = serde_json::to_value(&status).unwrap();
    assert!(!value.to_string().contains("secret"));
    let tasks = value["tasks"].as_array().unwrap();
    let keys = |task: &Json| task.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert!(tasks.iter().all(|task| keys(task) == keys(&tasks[0])), "{tasks:?}");
    let named = |name: &str| tasks.iter().find(|task| task["task"] == name).unwrap();
    assert_eq!(named("pay")["iteration"], 5);
    assert_eq!(named("vat")["reason"], "conflict");
    assert_eq!(named("after")["waits"], json!({ "for": "ended", "task": "vat" }));
    assert_eq!(value["counts"]["total"], 11);
}

#[test]
fn reported_work_that_is_not_fetched_or_pushed_yet_is_named() {
    let mut record = a_record();
    add_task(&mut record, "runs", 5, running_since(20));
    add_task(&mut record, "lands", 2, TaskState::Landing(an_ending(Outcome::Completed)));
    add_task(&mut record, "first", 8, landed_as("4f"));
    add_task(&mut record, "done", 1, ended_with(Outcome::Completed, "so"));
    for name in ["runs", "lands", "done"] {
        record.tasks.get_mut(&id(name)).unwrap().work.tip = Some("ab".repeat(20));
    }
    let lines = |record: &FleetRecord| {
        let (reports, plan) = (BTreeMap::new(), FleetPlan::default());
        let status = FleetStatus::from_plan(record, &reports, &plan, at(0).wall);
        let json = serde_json::to_value(&status).unwrap();
        let behind =
            json["tasks"].as_array().unwrap().iter().filter(|row| row["is_behind"] == true);
        assert_eq!(behind.count(), 3, "{json:#}");
        let lines = render_page(&status, 100, None);
        let rows = lines[2..].iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        rows.collect::<Vec<_>>().join("\n")
    };
    let here = lines(&record);
    let (name, url) = ("origin".to_owned(), "https://host/x.git".to_owned());
    record.terms.remote = Some(engine::fleet::Remote { name, url });
    assert_snapshot!(format!("{here}\n{}", lines(&record)), @"
    runs  runs  4/10  5m  $1.10  2 of 5 tests fail · its newest commit is not fetched yet
    lands  waits  for its work to be fetched from its clone
    completed crew/shop/*: done (not fetched)
    landed    main 4f4f4f4: first
    runs  runs  4/10  5m  $1.10  2 of 5 tests fail · its newest commit is not pushed yet
    lands  waits  for its work to be fetched and pushed
    completed crew/shop/*: done (not pushed)
    landed    main 4f4f4f4: first
    ");
}

#[test]
fn the_reason_for_every_wait_of_a_task_is_shown() {
    let request = TaskRequest::Pause { now: false };
    let files = ["src/**", "src/tax/**"].map(str::to_owned);
    let [theirs, ours] = files;
    let why = "the remote cannot be reached".to_owned();
    let all = [
        WaitsFor::Nothing,
        WaitsFor::Run,
        WaitsFor::Slot,
        WaitsFor::Task { task: id("b") },
        WaitsFor::Ended { task: id("b") },
        WaitsFor::Files { task: id("b"), theirs, ours },
        WaitsFor::Money,
        WaitsFor::Request { request },
        WaitsFor::File,
        WaitsFor::Fetch,
        WaitsFor::Trouble { why },
        WaitsFor::Signal,
    ];
    let shown = all.map(|waits| {
        let mut record = a_record();
        add_task(&mut record, "a", 1, TaskState::Waiting);
        let plan = FleetPlan { waits: [(id("a"), waits)].into(), ..FleetPlan::default() };
        let reports = BTreeMap::new();
        let status = FleetStatus::from_plan(&record, &reports, &plan, at(0).wall);
        format!("{} · {}", status.line_of(&id("a")), status.next.clone().unwrap_or_default())
    });
    assert_snapshot!(shown.join("\n"), @"
    waits: starts next · 
    waits: for crew fleet run tasks --land --max-cost 50.00 · crew fleet run tasks --land --max-cost 50.00
    waits: for a slot · 
    waits: after b · 
    waits: after b, which is not there · crew resume shop/b
    waits: b works on src/**, and this one on src/tax/** · 
    waits: for money: what is left does not cover it · crew fleet run tasks --land --max-cost MORE
    paused: until crew resume shop/a · crew resume shop/a
    waits: for its file, which is gone · 
    waits: for its work to be fetched from its clone · 
    waits: until this is over: the remote cannot be reached · 
    waits: for the next crew fleet run tasks --land --max-cost 50.00 ·
    ");
}
