//! A run as a stream of JSON objects, one per line, for programs: `crew run --json`. Every object
//! has `schema`, `event`, `at` (UTC), `loop` (its id), `iteration` (the running one, from 1) and
//! `phase` (the step of the iteration: `pre_hook`, `agent`, `check` …; null between iterations).
//! New keys and events may be added; a change of meaning raises `schema`.
//!
//! docs/reference/json.md lists when each event happens.

use chrono::{DateTime, SecondsFormat, Utc};
use engine::doing::LoopStep;
use engine::events::RunEvent;
use engine::evidence::{CheckResult, Evidence};
use engine::record::{Loop, Outcome};
use engine::view::{LoopView, usage_value};
use readers::clients::resume_command;
use serde_json::{Value, json};

/// The fields that every event has, collected from the events that carry the loop's record.
#[derive(Debug, Default)]
pub struct Events {
    subject: Option<String>,
    iteration: u32,
    completed: u32,
    phase: Option<LoopStep>,
}

impl Events {
    /// Renders an event as a JSON object.
    pub fn render_event(&mut self, event: &RunEvent<'_>, at: DateTime<Utc>) -> Value {
        if let Some(record) = record_of(event) {
            self.subject = Some(record.id.to_string());
            self.completed = record.state.completed;
            self.iteration = match event {
                RunEvent::IterationEnded { .. } => self.completed,
                _ => record.iteration(),
            };
        }
        if let RunEvent::StepStarted(LoopStep::PreHook | LoopStep::Rebase, _) = event {
            self.iteration = self.completed + 1;
        }
        self.phase = match event {
            RunEvent::IterationEnded { .. } | RunEvent::Finished { .. } => None,
            _ => event.begun_step().map(|(step, _)| step).or(self.phase),
        };
        let (name, value) = event_fields(event, at);
        let mut event = json!({
            "schema": SCHEMA, "event": name, "at": utc_stamp(at), "loop": self.subject,
            "iteration": self.iteration, "phase": self.phase,
        });
        if let (Value::Object(event), Value::Object(value)) = (&mut event, value) {
            event.extend(value);
        }
        event
    }
}

fn utc_stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The loop that the event is about, if it carries the record.
pub fn record_of<'a>(event: &RunEvent<'a>) -> Option<&'a Loop> {
    match *event {
        RunEvent::Started(record)
        | RunEvent::Resumed(record)
        | RunEvent::IterationStarted(record)
        | RunEvent::Skipped { record, .. }
        | RunEvent::IterationEnded { after: record, .. }
        | RunEvent::Delayed { record, .. }
        | RunEvent::Waiting(record)
        | RunEvent::Paused(record)
        | RunEvent::Finished { record, .. } => Some(record),
        _ => None,
    }
}

/// The name of an event, and its own fields.
pub fn event_fields(event: &RunEvent<'_>, at: DateTime<Utc>) -> (&'static str, Value) {
    match *event {
        RunEvent::Started(record) => {
            ("start", json!(LoopView::from_record(record, at.fixed_offset())))
        }
        RunEvent::Resumed(record) => {
            ("resume", json!(LoopView::from_record(record, at.fixed_offset())))
        }
        RunEvent::Noted(text) => ("note", json!({ "text": text })),
        RunEvent::OverBudget { tokens, budget } => {
            ("prompt_over_budget", json!({ "tokens": tokens, "budget": budget }))
        }
        RunEvent::StepStarted(_, run) => ("step_start", json!({ "run": run })),
        RunEvent::IterationStarted(_) => ("iteration_start", Value::Null),
        RunEvent::Skipped { why, .. } => ("iteration_skipped", json!({ "why": why })),
        RunEvent::Said(text) => ("agent_line", json!({ "text": text })),
        RunEvent::CheckStarted(run) => ("check_start", json!({ "run": run })),
        RunEvent::CheckEnded(result) => ("check_end", check_fields(result)),
        RunEvent::TrialStarted => ("trial_start", Value::Null),
        RunEvent::IterationEnded { after, exit, ends } => {
            ("iteration_end", iteration_fields(after, exit, ends))
        }
        RunEvent::Delayed { until, .. } => ("delay", json!({ "until": utc_stamp(until) })),
        RunEvent::Waiting(record) => (
            "wait",
            json!({ "until": record.state.due.map(utc_stamp), "why": record.state.wait_reason }),
        ),
        RunEvent::Paused(_) => ("pause", Value::Null),
        RunEvent::ReactionFailed { on, run, why, .. } => {
            ("reaction_failed", json!({ "on": on, "run": run, "why": why }))
        }
        RunEvent::Committed { commit, branch, subject } => {
            ("commit", json!({ "commit": commit, "branch": branch, "subject": subject }))
        }
        RunEvent::CommitFailed { why } => ("commit_failed", json!({ "why": why })),
        RunEvent::Pushed { branch, remote } => {
            ("push", json!({ "branch": branch, "remote": remote }))
        }
        RunEvent::PushFailed { why } => ("push_failed", json!({ "why": why })),
        RunEvent::Rebased { onto } => ("rebase", json!({ "onto": onto })),
        RunEvent::Unsaved { why } => ("state_unwritable", json!({ "why": why })),
        RunEvent::Stopping => ("stopping", Value::Null),
        RunEvent::Finished { .. } => ("finish", finish_fields(event, at)),
    }
}

fn check_fields(result: &CheckResult) -> Value {
    json!({
        "run": result.run,
        "verdict": result.verdict,
        "exit": result.exit,
        "elapsed_ms": result.elapsed_ms,
    })
}

fn iteration_fields(after: &Loop, exit: Option<i32>, ends: Option<Outcome>) -> Value {
    let unseen = Evidence::default();
    let evidence = after.state.evidence.as_ref().unwrap_or(&unseen);
    json!({
        "elapsed_ms": after.elapsed_ms.last(),
        "status": evidence.status,
        "exit": exit,
        "agent": evidence.agent,
        "failure": evidence.failure,
        "claim": evidence.claim,
        "progress": evidence.progress,
        "checks": evidence.checks,
        "usage": evidence.usage.as_ref().map(usage_value),
        "context_percent": evidence.context_percent,
        "context_tokens": evidence.context_tokens,
        "consecutive_failures": after.state.consecutive_failures,
        "ends": ends,
    })
}

fn finish_fields(event: &RunEvent<'_>, at: DateTime<Utc>) -> Value {
    let RunEvent::Finished { record, page, saved } = *event else { return Value::Null };
    let is_resumable = saved && record.outcome() != Some(Outcome::Completed);
    let mut value = json!(LoopView::from_record(record, at.fixed_offset()));
    value["spread_ms"] = json!(record.time_spread());
    value["commits"] = json!(page.commits.known_commits());
    value["handoff"] = json!(page.handoff);
    value["page"] = json!(page);
    value["next"] = if is_resumable { json!(resume_command(record)) } else { Value::Null };
    value["saved"] = saved.into();
    value
}

/// The version of what `--json` prints.
pub const SCHEMA: u32 = 2;

/// The output of `crew status --json`.
pub fn status_json(loops: &[LoopView<'_>]) -> Value {
    json!({ "schema": SCHEMA, "loops": loops })
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;

#[cfg(test)]
mod json_tests {
    use super::*;
    use engine::fixture::{a_loop, at};

    #[test]
    fn every_object_names_its_schema() {
        let value = status_json(&[LoopView::from_record(&a_loop(), at(0).wall.fixed_offset())]);
        assert_eq!(value["schema"], 2);
        assert_eq!(value["loops"][0]["iteration"], 1);
        assert_eq!(value["loops"][0]["limits"]["max_iterations"], 10);
        assert_eq!(value["loops"][0]["usage"]["total_tokens"], 0);
    }
}
