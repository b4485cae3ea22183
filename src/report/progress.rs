//! The progress of a run: a line for each event; on a terminal also the terms at the start and a
//! live line below. Each line has the time of day, and a mark if something went wrong. The wording
//! of the lines, in `templates/progress.j2`, must not change: people's scripts look for it.

use chrono::{DateTime, FixedOffset, Utc};
use minijinja::value::merge_maps;
use minijinja::{Value, context};

use super::events::{event_fields, record_of};
use super::line::done_when;
use super::templates;
use engine::boundary::judge::exit_reason;
use engine::boundary::limits;
use engine::events::RunEvent;
use engine::evidence::{Evidence, Verdict};
use engine::record::Loop;
use engine::text::{self, clip_line, clock_time, format_duration};
use engine::view::{Fact, LoopView, number_iteration};

/// The time of day before every line of a run, on a terminal and on a pipe.
pub const STAMP: &str = "[%H:%M:%S]";
/// The most characters of the reason why something ended or failed, with the hint at its end.
const WHY_MAX: usize = 500;
/// The most lines shown of a check that did not pass.
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

/// One line, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressLine {
    pub tone: Tone,
    /// `[10:02:10] WARNING: …`
    pub text: String,
}

/// The lines for an event at `at`, the user's local time. The agent's output and events that only
/// the live line shows have no lines.
pub fn progress_lines(event: &RunEvent<'_>, at: DateTime<FixedOffset>) -> Vec<ProgressLine> {
    let stamp = at.format(STAMP);
    let mut lines = Vec::new();
    for Fact { name, text, .. } in
        templates::render_rows("progress.j2", &template_values(event, at))
    {
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
            let evidence = after.state.evidence.as_ref();
            let failure = evidence.and_then(|evidence| evidence.failure.as_deref());
            // For a process that only exited with an error, the client's name for that is shorter.
            let is_exit = exit.is_some_and(|code| failure == Some(&exit_reason(code)));
            context! { is_exit, cost => evidence.and_then(Evidence::cost) }
        }
        RunEvent::Delayed { until, .. } => context! { time => time_with_seconds(until, at) },
        RunEvent::Waiting(record) => {
            let is_crash = record.state.transient_errors == 0;
            let time = if is_crash { time_with_seconds } else { clock_time };
            context! { is_crash, time => record.state.due.map(|due| time(due, at)) }
        }
        RunEvent::ReactionFailed { is_told, .. } => context! { is_told },
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

/// The terms of a run, for a person at a terminal: "loop k3v9 · claude on main · up to 10
/// iterations, 12h · done when … · stop: …".
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
    /// "iteration 3/10".
    iteration: String,
    number: u32,
    /// What happens besides the agent's work.
    doing: Option<String>,
    /// When that ends.
    until: Option<DateTime<Utc>>,
    cost: Option<String>,
    /// "`cargo test` failed (exit 1)", and the iteration after which it ran.
    check: Option<(u32, String)>,
}

impl Live {
    /// Records an event. Returns whether it starts a new activity, whose time counts from zero.
    pub fn on_event(&mut self, event: &RunEvent<'_>) -> bool {
        match *event {
            RunEvent::Started(record) | RunEvent::Resumed(record) => {
                self.show_record(record);
                self.number = record.state.completed;
                "starting".clone_into(&mut self.iteration);
            }
            RunEvent::IterationStarted(record) => self.show_record(record),
            RunEvent::Waiting(record) => {
                self.show_record(record);
                let why = record.state.wait_reason.as_deref().unwrap_or("the model's service");
                self.doing = Some(format!("waiting ({})", clip_line(why, 40)));
                self.until = record.state.due;
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
        self.iteration = match record.stand_in_at_work() {
            Some(fallback) => format!("iteration {number} by {}", fallback.agent),
            None => format!("iteration {number}"),
        };
        self.cost = cost_text(record);
        (self.doing, self.until) = (None, None);
    }

    /// The line at `now`, most important part first, because a narrow terminal cuts its end.
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
    record.state.usage.cost_text(record.contract.limits.max_cost_micros > 0)
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
