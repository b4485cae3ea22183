//! The lines of a run on a terminal, above the live line: what a loop is about to do, then a line
//! for each iteration, which is what remains of a night in the scrollback. On a pipe a run has the
//! lines of `progress`.

use chrono::{DateTime, FixedOffset};

use super::line::{done_when, failures, said};
use super::progress::{ProgressLine, STAMP, Tone, lines};
use super::words::brief;
use crate::engine::boundary::limits;
use crate::engine::events::RunEvent;
use crate::engine::evidence::{CheckResult, ClaimResult, Verdict};
use crate::engine::record::{Loop, Outcome};
use crate::engine::text::{clip, count};

/// The longest command of a check, in characters.
const RUN_CHARS: usize = 60;

/// Which lines a run has had.
#[derive(Debug, Default)]
pub struct ScreenLines {
    /// Whether an iteration has begun: the checks before it are reported one by one.
    has_begun: bool,
}

impl ScreenLines {
    /// The lines for an event at `at`, the user's local time.
    pub fn lines(&mut self, event: &RunEvent<'_>, at: DateTime<FixedOffset>) -> Vec<ProgressLine> {
        let plain = |text: String| vec![ProgressLine { tone: Tone::Plain, text }];
        match *event {
            RunEvent::Started(record) => plain(start(record)),
            RunEvent::Resumed(record) => {
                plain(format!("{}\n{}", start(record), row("so far", &so_far(record))))
            }
            RunEvent::IterationStarted(_) => {
                self.has_begun = true;
                Vec::new()
            }
            RunEvent::CheckEnded(_) if self.has_begun => Vec::new(),
            RunEvent::CheckEnded(result) => plain(row("now", &now(result))),
            RunEvent::IterationEnded { after, ends, .. } => match ends {
                Some(Outcome::Interrupted) => Vec::new(),
                _ => plain(iteration(after, at)),
            },
            // The page says it.
            RunEvent::Finished { .. } => Vec::new(),
            _ => lines(event, at),
        }
    }
}

fn row(name: &str, value: &str) -> String {
    format!("  {name:<7} {value}")
}

/// Who works where, how far, when it is done, and how to stop it.
fn start(record: &Loop) -> String {
    let agent = record.contract.run.as_ref().map(|run| {
        let model = run.model.as_ref().map(|model| format!(" {model}")).unwrap_or_default();
        let others = run.fallback.iter().map(|agent| format!(", else {}", agent.name));
        format!(" · {}{model}{}", run.agent.name, others.collect::<String>())
    });
    let branch = record.branch().map(|branch| format!(" on {branch}")).unwrap_or_default();
    let head = format!(
        "loop {}{} · {}{branch} · {}",
        record.id,
        agent.unwrap_or_default(),
        record.place.folder.display(),
        limits::named(&record.contract.limits)
    );
    let done = done_when(record);
    let done = done.strip_prefix("done when ").unwrap_or(&done);
    let is_checked = !record.contract.checks.is_empty();
    let checked = if is_checked { "" } else { "; nothing checks it" };
    let done = row("done", &format!("{done}{checked}"));
    let stop =
        row("stop", &format!("Ctrl-C, or anywhere: crew pause {0}, crew cancel {0}", record.id));
    [head, done, stop].join("\n")
}

/// "3 iterations in 38m, $2.10".
fn so_far(record: &Loop) -> String {
    let done = count(record.state.completed, "iteration");
    let spent = record.spent().map_or_else(String::new, |spent| format!(", {spent}"));
    format!("{done} in {}{spent}", brief(record.state.awake_ms))
}

/// "`cargo test` fails: 3 of 212 tests, in 12s".
fn now(result: &CheckResult) -> String {
    let run = clip(&result.run, RUN_CHARS);
    let tests = result.test_run.as_ref().filter(|run| run.failed > 0);
    let tests = tests.map(|run| format!(": {} of {} tests", run.failed, run.total()));
    let time = brief(result.elapsed_ms);
    let happened = match result.verdict {
        Verdict::Passed => "passes".to_owned(),
        Verdict::Failed => format!("fails{}", tests.unwrap_or_default()),
        Verdict::TimedOut | Verdict::Unknown => result.what_happened(),
    };
    format!("`{run}` {happened}, in {time}")
}

/// `[22:51:07] 2  11m  $1.02  4 files  cargo test 2 of 215 fail (was 5)  claim refused`.
fn iteration(after: &Loop, at: DateTime<FixedOffset>) -> String {
    let elapsed = after.elapsed_ms.last().copied().unwrap_or_default();
    let mut parts = vec![format!("{} {}", at.format(STAMP), after.state.completed), brief(elapsed)];
    if let Some(evidence) = &after.state.evidence {
        parts.extend(evidence.cost());
        parts.extend(said(evidence));
        parts
            .extend((evidence.claim == ClaimResult::Accepted).then(|| "claim accepted".to_owned()));
        parts.extend(evidence.other_failure().map(str::to_owned));
        parts.extend(evidence.ended.clone());
        parts.extend(evidence.failure.as_ref().and_then(|_| failures(after)));
    }
    parts.join("  ")
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
