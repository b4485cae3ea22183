//! The events of a run: for people the lines of its progress, and on a terminal also the terms at
//! the start and a live line below; for programs a stream of JSON objects, one per line, with
//! `crew run --json`. The wording of the lines, in `templates/progress.j2`, must not change:
//! people's scripts look for it.
//!
//! Every object has `schema`, `event`, `at` (UTC), `loop` (its id), `iteration` (the running one,
//! from 1) and `phase` (the step of the iteration: `pre_hook`, `agent`, `check` …; null between
//! iterations). New keys and events may be added; a change of meaning raises `schema`.
//!
//! docs/reference/json.md lists when each event happens.

use super::line::done_when;
use super::words;
use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use engine::boundary::judge::exit_reason;
use engine::boundary::limits;
use engine::evidence::{CheckResult, Evidence, Verdict};
use engine::record::LoopStep;
use engine::record::{Loop, Outcome};
use engine::text::{self, clip_line, clock_time, format_duration};
use engine::view::events::RunEvent;
use engine::view::{Fact, LoopView, number_iteration, usage_value};
use minijinja::value::merge_maps;
use minijinja::{Value, context};
use readers::clients::resume_command;
use serde_json::{Value as Json, json};

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
    pub fn render_event(&mut self, event: &RunEvent<'_>, at: DateTime<Utc>) -> Json {
        if let Some(record) = record_of(event) {
            self.subject = Some(record.id.to_string());
            self.completed = record.state.counts().completed();
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
        if let (Json::Object(event), Json::Object(value)) = (&mut event, value) {
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
pub fn event_fields(event: &RunEvent<'_>, at: DateTime<Utc>) -> (&'static str, Json) {
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
        RunEvent::IterationStarted(_) => ("iteration_start", Json::Null),
        RunEvent::Skipped { why, .. } => ("iteration_skipped", json!({ "why": why })),
        RunEvent::Said(text) => ("agent_line", json!({ "text": text })),
        RunEvent::CheckStarted(run) => ("check_start", json!({ "run": run })),
        RunEvent::CheckEnded(result) => ("check_end", check_fields(result)),
        RunEvent::TrialStarted => ("trial_start", Json::Null),
        RunEvent::IterationEnded { after, exit, ends } => {
            ("iteration_end", iteration_fields(after, exit, ends))
        }
        RunEvent::Delayed { until, .. } => ("delay", json!({ "until": utc_stamp(until) })),
        RunEvent::Waiting(record) => (
            "wait",
            json!({ "until": record.state.wait().due().map(utc_stamp), "why": record.state.wait().wait_reason() }),
        ),
        RunEvent::Paused(_) => ("pause", Json::Null),
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
        RunEvent::Stopping => ("stopping", Json::Null),
        RunEvent::Finished { .. } => ("finish", finish_fields(event, at)),
    }
}

fn check_fields(result: &CheckResult) -> Json {
    json!({
        "run": result.run,
        "verdict": result.verdict,
        "exit": result.exit,
        "elapsed_ms": result.elapsed_ms,
    })
}

fn iteration_fields(after: &Loop, exit: Option<i32>, ends: Option<Outcome>) -> Json {
    let unseen = Evidence::default();
    let evidence = after.state.seen().evidence().as_ref().unwrap_or(&unseen);
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
        "consecutive_failures": after.state.counts().consecutive_failures(),
        "ends": ends,
    })
}

fn finish_fields(event: &RunEvent<'_>, at: DateTime<Utc>) -> Json {
    let RunEvent::Finished { record, page, saved } = *event else { return Json::Null };
    let is_resumable = saved && record.outcome() != Some(Outcome::Completed);
    let mut value = json!(LoopView::from_record(record, at.fixed_offset()));
    value["spread_ms"] = json!(record.time_spread());
    value["commits"] = json!(page.commits.known_commits());
    value["handoff"] = json!(page.handoff);
    value["page"] = json!(page);
    value["next"] = if is_resumable { json!(resume_command(record)) } else { Json::Null };
    value["saved"] = saved.into();
    value
}

/// The version of what `--json` prints.
pub const SCHEMA: u32 = 2;

/// The output of `crew status --json`.
pub fn status_json(loops: &[LoopView<'_>]) -> Json {
    json!({ "schema": SCHEMA, "loops": loops })
}

/// The time of day before every line of a run, on a terminal and on a pipe.
pub const STAMP: &str = "[%H:%M:%S]";
/// The maximum number of characters in the reason why something ended or failed, with the hint at
/// its end.
const WHY_MAX: usize = 500;
/// The maximum number of lines shown of a check that did not pass.
const TAIL_LINES: usize = 2;

/// The importance of a line: `-q` shows only what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    Plain,
    /// An end that is not a completion, without a mark.
    Ended,
    Warning,
    Error,
}

/// One line of progress, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressLine {
    pub tone: Tone,
    /// The text: `[10:02:10] WARNING: …`.
    pub text: String,
}

/// The lines for an event at `at`, the user's local time. The agent's output and events that only
/// the live line shows have no lines.
pub fn progress_lines(event: &RunEvent<'_>, at: DateTime<FixedOffset>) -> Vec<ProgressLine> {
    let stamp = at.format(STAMP);
    let mut lines = Vec::new();
    for Fact { name, text, .. } in words::render_rows("progress.j2", &template_values(event, at)) {
        let (tone, mark) = match &*name {
            "ended" => (Tone::Ended, ""),
            "warning" => (Tone::Warning, "WARNING: "),
            "error" => (Tone::Error, "ERROR: "),
            _ => (Tone::Plain, ""),
        };
        lines.push(ProgressLine { tone, text: format!("{stamp} {mark}{text}") });
    }
    lines
}

/// The values of the template: the event's fields for programs, and what only its lines show.
fn template_values(event: &RunEvent<'_>, at: DateTime<FixedOffset>) -> Value {
    let (name, fields) = event_fields(event, at.to_utc());
    let more = match *event {
        RunEvent::CheckEnded(result) => {
            let printed = text::plain_text(&result.tail);
            let printed = printed.lines().filter(|line| !line.trim().is_empty());
            let printed: Vec<&str> = match result.verdict {
                Verdict::Passed | Verdict::Unknown => Vec::new(),
                // The last lines distinguish a failed test from a typing error.
                _ => printed.collect(),
            };
            let printed = &printed[printed.len().saturating_sub(TAIL_LINES)..];
            context! { tail => result.tail, printed }
        }
        RunEvent::IterationEnded { after, exit, .. } => {
            let evidence = after.state.seen().evidence().as_ref();
            let failure = evidence.and_then(|evidence| evidence.failure.as_deref());
            // For a process that only exited with an error, the client's name for that is shorter.
            let is_exit = exit.is_some_and(|code| failure == Some(&exit_reason(code)));
            context! { is_exit, cost => evidence.and_then(Evidence::cost) }
        }
        RunEvent::Delayed { until, .. } => context! { time => time_with_seconds(until, at) },
        RunEvent::Waiting(record) => {
            let is_crash = record.state.counts().transient_errors() == 0;
            let time = if is_crash { time_with_seconds } else { clock_time };
            context! { is_crash, time => record.state.wait().due().map(|due| time(due, at)) }
        }
        RunEvent::ReactionFailed { is_reported, .. } => context! { is_reported },
        _ => context! {},
    };
    let of_loop = record_of(event).map(|record| loop_values(record, at)).unwrap_or_default();
    let event = context! { event => name, why_max => WHY_MAX };
    merge_maps([of_loop, Value::from_serialize(fields), more, event])
}

fn loop_values(record: &Loop, at: DateTime<FixedOffset>) -> Value {
    // The name of a procedure also names its loop.
    let name = record.procedure().unwrap_or(record.id.as_str());
    let values = context! {
        record => true,
        in_force => limits::in_force(&record.contract.limits),
        resume => record.fleet_resume().unwrap_or_else(|| format!("crew resume {name}")),
        can_complete => record.contract.can_complete(),
    };
    context! { ..values, ..Value::from_serialize(LoopView::from_record(record, at)) }
}

fn time_with_seconds(then: DateTime<Utc>, at: DateTime<FixedOffset>) -> String {
    then.with_timezone(at.offset()).format("%H:%M:%S").to_string()
}

/// The terms of a run, for a user at a terminal: "loop k3v9 · claude on main · up to 10 iterations,
/// 12h · done when … · stop: …".
pub fn terms_line(record: &Loop) -> String {
    let agent = record.contract.run.as_ref().map(|run| {
        let model = run.model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
        let others = run.fallback.iter().map(|agent| format!(", else {}", agent.name));
        format!(" · {}{model}{}", run.agent.name, others.collect::<String>())
    });
    let branch = record.branch().map(|branch| format!(" on {branch}")).unwrap_or_default();
    let checked = if record.contract.checks.is_empty() { "; nothing checks it" } else { "" };
    format!(
        "loop {0}{1}{branch} · {2} · {3}{checked} · stop: Ctrl-C, or anywhere: crew cancel {0}",
        record.id,
        agent.unwrap_or_default(),
        limits::describe_limits(&record.contract.limits),
        done_when(record)
    )
}

/// The contents of the live line: the latest event of each kind.
#[derive(Debug, Default)]
pub struct Live {
    /// The iteration: "iteration 3/10".
    iteration: String,
    number: u32,
    /// An activity besides the agent's work.
    doing: Option<String>,
    /// When that activity ends.
    until: Option<DateTime<Utc>>,
    cost: Option<String>,
    /// The result of the last check, such as "`cargo test` failed (exit 1)", and the iteration
    /// after which it ran.
    check: Option<(u32, String)>,
}

impl Live {
    /// Records an event. Returns whether it starts a new activity, whose time counts from zero.
    pub fn on_event(&mut self, event: &RunEvent<'_>) -> bool {
        match *event {
            RunEvent::Started(record) | RunEvent::Resumed(record) => {
                self.show_record(record);
                self.number = record.state.counts().completed();
                "starting".clone_into(&mut self.iteration);
            }
            RunEvent::IterationStarted(record) => self.show_record(record),
            RunEvent::Waiting(record) => {
                self.show_record(record);
                let why =
                    record.state.wait().wait_reason().as_deref().unwrap_or("the model's service");
                self.doing = Some(format!("waiting ({})", clip_line(why, 40)));
                self.until = record.state.wait().due();
            }
            RunEvent::Delayed { until, .. } => {
                self.doing = Some("delay".to_owned());
                self.until = Some(until);
            }
            RunEvent::CheckEnded(result) => {
                let run = clip_line(&result.run, 30);
                self.check = Some((self.number, format!("`{run}` {}", result.what_happened())));
                self.doing = None;
                return false;
            }
            RunEvent::IterationEnded { after, .. } => {
                self.cost = cost_text(after);
                self.doing = None;
                return false;
            }
            RunEvent::CheckStarted(_)
            | RunEvent::TrialStarted
            | RunEvent::StepStarted(..)
            | RunEvent::Stopping => {
                self.doing = Some(match *event {
                    RunEvent::StepStarted(step, run) => step.step_words(run),
                    RunEvent::CheckStarted(run) => format!("checking `{}`", clip_line(run, 40)),
                    RunEvent::TrialStarted => "checking without the work".to_owned(),
                    _ => "ending the agent, Ctrl-C again kills it".to_owned(),
                });
                self.until = None;
                return false;
            }
            _ => return false,
        }
        true
    }

    fn show_record(&mut self, record: &Loop) {
        self.number = record.iteration();
        let number = number_iteration(record, self.number);
        self.iteration = match record.running_fallback() {
            Some(fallback) => format!("iteration {number} by {}", fallback.agent),
            None => format!("iteration {number}"),
        };
        self.cost = cost_text(record);
        (self.doing, self.until) = (None, None);
    }

    /// The line at `now`, with the most important part first, because a narrow terminal truncates
    /// it.
    pub fn line(&self, now: DateTime<Utc>) -> String {
        let mut parts = vec![self.iteration.clone()];
        if let Some(doing) = &self.doing {
            parts.push(match self.until.map(|until| (until - now).num_seconds()) {
                None => doing.clone(),
                Some(..1) => format!("{doing}, 0s left"),
                Some(left) => {
                    format!("{doing}, {} left", format_duration(left.unsigned_abs() * 1000))
                }
            });
        }
        parts.extend(self.cost.clone());
        // The check of an earlier iteration says nothing about this one.
        if let Some((after, check)) = &self.check
            && after + 1 >= self.number
        {
            parts.push(check.clone());
        }
        parts.join(" · ")
    }
}

fn cost_text(record: &Loop) -> Option<String> {
    record.state.work().usage().cost_text(record.contract.limits.max_cost_micros > 0)
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

#[cfg(test)]
#[path = "progress_tests.rs"]
mod progress_tests;
