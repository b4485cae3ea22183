//! The live line of a run on a terminal: the iteration, its cost so far, the last check, and what
//! the run waits for.

use chrono::{DateTime, Utc};

use super::line::numbered;
use crate::engine::events::RunEvent;
use crate::engine::record::Loop;
use crate::engine::text::{clip, duration};

/// The contents of the line: the latest event of each kind.
#[derive(Debug, Default)]
pub struct Live {
    /// "iteration 3/10".
    iteration: String,
    number: u32,
    cost: Option<String>,
    /// "`cargo test` failed (exit 1)", and the iteration after which it ran.
    check: Option<(u32, String)>,
    doing: Doing,
}

/// The current activity.
#[derive(Debug, Default)]
enum Doing {
    /// The agent is working.
    #[default]
    Iterating,
    /// This check is running.
    Checking(String),
    /// Nothing happens until then.
    Idle { what: String, until: Option<DateTime<Utc>> },
    /// The agent is being stopped.
    Stopping,
}

impl Live {
    /// Takes an event. Returns whether it starts a new activity, whose time counts from zero.
    pub fn on_event(&mut self, event: &RunEvent<'_>) -> bool {
        match *event {
            RunEvent::Started(record) | RunEvent::Resumed(record) => {
                self.look(record);
                self.number = record.state.completed;
                "starting".clone_into(&mut self.iteration);
            }
            RunEvent::IterationStarted(record) => {
                self.look(record);
                self.doing = Doing::Iterating;
            }
            RunEvent::CheckStarted(run) => {
                self.doing = Doing::Checking(format!("`{}`", clip(run, 40)));
                return false;
            }
            RunEvent::TrialStarted => {
                self.doing = Doing::Checking("without the work".to_owned());
                return false;
            }
            RunEvent::CheckEnded(result) => {
                let run = clip(&result.run, 30);
                self.check = Some((self.number, format!("`{run}` {}", result.what_happened())));
                self.doing = Doing::Iterating;
                return false;
            }
            RunEvent::IterationEnded { after, .. } => {
                self.cost = spent(after);
                return false;
            }
            RunEvent::Waiting(record) => {
                let why = record.state.wait_reason.as_deref().unwrap_or("the model's service");
                let what = format!("waiting ({})", clip(why, 40));
                self.look(record);
                self.doing = Doing::Idle { what, until: record.state.due };
            }
            RunEvent::Delayed { until, .. } => {
                self.doing = Doing::Idle { what: "delay".to_owned(), until: Some(until) };
            }
            RunEvent::Stopping => {
                self.doing = Doing::Stopping;
                return false;
            }
            _ => return false,
        }
        true
    }

    fn look(&mut self, record: &Loop) {
        self.number = record.iteration();
        let by =
            record.stand_in_at_work().map(|it| format!(" by {}", it.agent)).unwrap_or_default();
        self.iteration = format!("iteration {}{by}", numbered(record, self.number));
        self.cost = spent(record);
    }

    /// The line at `now`, most important part first, because a narrow terminal cuts its end.
    pub fn line(&self, now: DateTime<Utc>) -> String {
        let mut parts = vec![self.iteration.clone()];
        match &self.doing {
            Doing::Iterating => {}
            Doing::Checking(run) => parts.push(format!("checking {run}")),
            Doing::Stopping => parts.push("ending the agent, Ctrl-C again kills it".to_owned()),
            Doing::Idle { what, until } => {
                let left = until.map(|until| (until - now).num_milliseconds().max(0) / 1000);
                let left = left.and_then(|seconds| u64::try_from(seconds).ok());
                let left = left.map(|seconds| format!(", {} left", countdown(seconds)));
                parts.insert(0, format!("{what}{}", left.unwrap_or_default()));
            }
        }
        parts.extend(self.cost.clone());
        // What an earlier iteration left is no news of what this one found.
        let is_new = |(after, _): &&(u32, String)| after + 1 >= self.number;
        parts.extend(self.check.as_ref().filter(is_new).map(|(_, check)| check.clone()));
        parts.join(" · ")
    }
}

fn countdown(seconds: u64) -> String {
    if seconds == 0 { "0s".to_owned() } else { duration(seconds * 1000) }
}

fn spent(record: &Loop) -> Option<String> {
    record.state.usage.cost_text(record.contract.limits.max_cost_micros > 0)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::evidence::Verdict;
    use crate::engine::fixture::{a_loop, at, result};
    use crate::engine::usage::{Money, Tokens, Usage};

    #[test]
    fn the_line_says_where_the_run_is_and_what_it_waits_for() {
        let mut record = a_loop();
        let mut live = Live::default();
        live.on_event(&RunEvent::Started(&record));
        assert_snapshot!(live.line(at(0).wall), @"starting");
        assert!(live.on_event(&RunEvent::IterationStarted(&record)), "its time counts from zero");
        assert_snapshot!(live.line(at(0).wall), @"iteration 1/10");
        assert!(!live.on_event(&RunEvent::CheckStarted("cargo test")));
        assert_snapshot!(live.line(at(0).wall), @"iteration 1/10 · checking `cargo test`");
        live.on_event(&RunEvent::CheckEnded(&result("cargo test", Verdict::Failed)));
        record.state.completed = 1;
        let tokens = Tokens { input: 1_840_000, ..Tokens::default() };
        record.state.usage =
            Usage { tokens, cost: Money::from_micros(1_840_000), ..Usage::default() };
        live.on_event(&RunEvent::IterationStarted(&record));
        assert_snapshot!(live.line(at(0).wall), @"iteration 2/10 · $1.84 · `cargo test` failed (exit 1)");
        record.state.due = Some(at(750).wall);
        record.state.wait_reason = Some("rate limit".to_owned());
        live.on_event(&RunEvent::Waiting(&record));
        assert_snapshot!(live.line(at(2).wall), @"waiting (rate limit), 12m 28s left · iteration 2/10 · $1.84 · `cargo test` failed (exit 1)");
        assert_snapshot!(live.line(at(900).wall), @"waiting (rate limit), 0s left · iteration 2/10 · $1.84 · `cargo test` failed (exit 1)");
        record.state.completed = 2;
        live.on_event(&RunEvent::IterationStarted(&record));
        assert_snapshot!(live.line(at(900).wall), @"iteration 3/10 · $1.84");
        live.on_event(&RunEvent::Stopping);
        assert_snapshot!(live.line(at(900).wall), @"iteration 3/10 · ending the agent, Ctrl-C again kills it · $1.84");
    }
}
