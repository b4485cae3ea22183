//! How a fleet stands, for programs: `crew fleet status --json`. Texts are as they were recorded,
//! except that a remote is named without its address, which may hold a password.

use serde_json::{Value, json};

use crate::engine::fleet::{Attempt, Fleet, Lease, Standing, StandingNews, StandingRow};
use crate::engine::usage::Money;
use crate::engine::view::usage;
use crate::report::events::SCHEMA;

/// The whole fleet. `tasks` have the order of the page; `left_ms` is an estimate. As in `crew
/// status --json`, every key is always there, and null where there is nothing to say.
pub fn status(standing: &Standing<'_>, fleet: &Fleet) -> Value {
    json!({
        "schema": SCHEMA,
        "fleet": standing.name,
        "repository": fleet.repository,
        "folder": fleet.folder,
        "base": fleet.base,
        "slots": fleet.slots,
        "remote": fleet.remote.as_ref().map(|remote| &remote.name),
        "landing": fleet.landing,
        "order": fleet.order,
        "counts": standing.counts,
        "usage": usage(&standing.spent),
        "max_cost_usd": dollars(fleet.max_cost_micros),
        "started_at": fleet.started_at,
        "elapsed_ms": standing.elapsed_ms,
        "left_ms": standing.left_ms,
        "next": standing.next,
        "tasks": standing.rows.iter().map(|row| task(row, fleet)).collect::<Vec<_>>(),
    })
}

fn task(row: &StandingRow<'_>, fleet: &Fleet) -> Value {
    let lease = row.lease;
    let carried = lease.map(|lease| lease.carried.clone()).unwrap_or_default();
    let attempt = lease.and_then(Lease::attempt);
    let ending = lease.and_then(Lease::ending);
    let (mut until, mut why, mut obeys, mut waits) = (None, None, None, None);
    match &row.news {
        Some(StandingNews::Rests { until: time, why: said }) => (until, why) = (*time, Some(said)),
        Some(StandingNews::Why(said)) if lease.is_none() => why = Some(said),
        Some(StandingNews::Obeys(what)) => obeys = Some(what),
        Some(StandingNews::Waits(what)) => waits = Some(what),
        _ => {}
    }
    json!({
        "task": row.task,
        "group": row.group,
        "what": row.what,
        "obeys": obeys,
        "iteration": row.iteration,
        "max_iterations": lease.map_or(0, |it| it.contract.limits.max_iterations),
        "since": row.since,
        "elapsed_ms": carried.awake_ms,
        "usage": usage(&carried.usage),
        "max_cost_usd": lease.map(|it| dollars(it.contract.limits.max_cost_micros)),
        "reserved_usd": lease.map(|it| dollars(it.reserved_micros)),
        "last": carried.last,
        "waits": waits,
        "until": until,
        "why": why.or(ending.map(|ending| &ending.why)),
        "outcome": ending.map(|ending| ending.outcome),
        "proof": ending.and_then(|ending| ending.proof),
        "landed": lease.and_then(Lease::landed),
        "was_sent_back": lease.is_some_and(|it| it.sent_back.is_some()),
        "branch": lease.map_or_else(|| fleet.branch(row.task), |it| it.branch.clone()),
        "commit": lease.and_then(|it| it.commit.as_ref()),
        "attempts": lease.map(|it| it.attempts),
        "loop": lease.and_then(|lease| lease.loop_id.as_ref()),
        "slot": attempt.and_then(Attempt::slot),
        "host": attempt.map(|attempt| &attempt.host),
        "job": attempt.and_then(|attempt| attempt.job.as_ref()),
        "revision": lease.map(|it| &it.task.revision),
    })
}

/// In dollars, as other costs; 0 without a limit.
fn dollars(micros: u64) -> f64 {
    Money::from_micros(micros).dollars()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::fixture::at;
    use crate::engine::fleet::fixture::{a_fleet, a_lease, after, ended, id, running};
    use crate::engine::fleet::{FleetPlan, FleetRequest, JobPhase, Remote, WaitsFor};
    use crate::engine::record::Outcome;

    /// One task that needs a person, one that rests, and one that waits.
    fn told() -> Value {
        let url = "https://me:secret@example.org/r.git".to_owned();
        let remote = Remote { name: "origin".to_owned(), url };
        let fleet = Fleet { remote: Some(remote), ..a_fleet() };
        let why = "conflict: src/pay.rs changed on main";
        let mut later = a_lease("later");
        later.task.after = vec![id("pay")];
        let rests = JobPhase::Rests { until: Some(at(9000).wall), why: "usage limit".to_owned() };
        let vat = Lease { at: at(7190).wall, ..running("vat", rests) };
        let leases = [
            after(ended("pay", Outcome::Blocked, why, 600), 4, 30, 250, "2 of 5 tests fail"),
            after(vat, 2, 15, 125, ""),
            later,
        ];
        let plan = FleetPlan::of(&fleet, &leases, 4);
        let standing = Standing::of(&fleet, &leases, &[], &plan, at(7200).wall);
        status(&standing, &fleet)
    }

    #[test]
    fn a_fleet_names_its_schema_and_no_password_of_its_remote() {
        let mut value = told();
        assert!(!value.to_string().contains("secret"));
        assert_eq!(value["usage"]["cost_usd"], 3.75);
        for key in ["tasks", "usage"] {
            value[key] = Value::Null;
        }
        assert_snapshot!(serde_json::to_string_pretty(&value).unwrap(), @r#"
        {
          "base": "main",
          "counts": {
            "cancelled": 0,
            "completed": 0,
            "landed": 0,
            "needs_you": 1,
            "requested": 0,
            "running": 1,
            "total": 3,
            "waiting": 1
          },
          "elapsed_ms": 7200000,
          "fleet": "billing-cleanup",
          "folder": "tasks",
          "landing": "no",
          "left_ms": null,
          "max_cost_usd": 50.0,
          "next": "crew fleet show pay",
          "order": null,
          "remote": "origin",
          "repository": "/repo",
          "schema": 2,
          "slots": 4,
          "started_at": "2026-11-18T11:06:40Z",
          "tasks": null,
          "usage": null
        }
        "#);
    }

    #[test]
    fn a_task_holds_what_its_row_says_and_what_its_lease_holds() {
        let mut value = told();
        let rests = &value["tasks"][1];
        assert_eq!((&rests["why"], &rests["what"]), (&json!("usage limit"), &json!("rests")));
        assert_eq!(rests["until"], json!(at(9000).wall));
        assert_eq!(value["tasks"][2]["waits"], json!({ "for": "ended_task", "task": "pay" }));
        let pay = &mut value["tasks"][0];
        assert_eq!(pay["usage"]["cost_usd"], 2.5);
        pay["usage"] = Value::Null;
        assert_snapshot!(serde_json::to_string_pretty(pay).unwrap(), @r#"
        {
          "attempts": 1,
          "branch": "fleet/billing-cleanup/pay",
          "commit": null,
          "elapsed_ms": 1800000,
          "group": "needs_you",
          "host": null,
          "iteration": 4,
          "job": null,
          "landed": null,
          "last": "2 of 5 tests fail",
          "loop": null,
          "max_cost_usd": 0.0,
          "max_iterations": 10,
          "obeys": null,
          "outcome": "blocked",
          "proof": null,
          "reserved_usd": 0.0,
          "revision": "0123456789ab",
          "since": "2026-11-18T11:16:40Z",
          "slot": null,
          "task": "pay",
          "until": null,
          "usage": null,
          "waits": null,
          "was_sent_back": false,
          "what": "conflict",
          "why": "conflict: src/pay.rs changed on main"
        }
        "#);
    }

    #[test]
    fn every_task_has_the_same_keys_whatever_its_state() {
        let value = told();
        let keys = |task: &Value| task.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let tasks = value["tasks"].as_array().unwrap();
        assert!(tasks.iter().all(|task| keys(task) == keys(&tasks[0])), "{tasks:?}");
        assert_eq!(tasks[2]["why"], Value::Null);
    }

    #[test]
    fn every_reason_to_wait_has_its_word() {
        let told = |waits: WaitsFor| {
            let plan = FleetPlan { waits: [(id("a"), waits)].into(), ..FleetPlan::default() };
            let leases = [a_lease("a")];
            let standing = Standing::of(&a_fleet(), &leases, &[], &plan, at(0).wall);
            task(&standing.rows[0], &a_fleet())["waits"].to_string()
        };
        let [theirs, ours] = ["src/**", "src/tax/**"].map(str::to_owned);
        let all = [
            WaitsFor::Nothing,
            WaitsFor::Run,
            WaitsFor::Slot,
            WaitsFor::Task { task: id("b") },
            WaitsFor::Ended { task: id("b") },
            WaitsFor::Files { task: id("b"), theirs, ours },
            WaitsFor::Money,
            WaitsFor::Order { order: FleetRequest::Pause },
        ];
        assert_snapshot!(all.map(told).join("\n"), @r#"
        {"for":"nothing"}
        {"for":"run"}
        {"for":"slot"}
        {"for":"task","task":"b"}
        {"for":"ended_task","task":"b"}
        {"for":"files","ours":"src/tax/**","task":"b","theirs":"src/**"}
        {"for":"money"}
        {"for":"order","order":"pause"}
        "#);
    }
}
