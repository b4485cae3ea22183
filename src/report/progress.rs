//! How a run reports its progress: a line for each event, on a pipe and above the live line, and on
//! a terminal the live line and the terms before all. Each line has the time of day, and a mark if
//! something went wrong. The wording of the lines must not change: people's scripts look for it.

use chrono::{DateTime, FixedOffset, Utc};

use super::line::done_when;
use super::words::took;
use crate::engine::boundary::failures::exited;
use crate::engine::boundary::limits;
use crate::engine::events::RunEvent;
use crate::engine::evidence::{CheckResult, ClaimResult, Evidence, Verdict};
use crate::engine::record::{Ending, Loop, Outcome, Proof};
use crate::engine::text::{
    self, clip, clip_line_at_word, clock_time, count, duration, with_reason,
};
use crate::engine::usage::tokens_text;
use crate::engine::view::numbered;

/// The time of day before every line of a run, on a terminal and on a pipe.
pub const STAMP: &str = "[%H:%M:%S]";
/// The most characters of a person's or the agent's words in a line.
const WORDS_MAX: usize = 120;
/// The most characters of the reason why something ended or failed, with the hint at its end.
const WHY_MAX: usize = 500;
/// The most lines shown of a check that did not pass.
const TAIL_LINES: usize = 2;

/// How important a line is: `-q` shows only what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    Plain,
    /// An end that is not a completion. It has no mark.
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
pub fn lines(event: &RunEvent<'_>, at: DateTime<FixedOffset>) -> Vec<ProgressLine> {
    let said = match *event {
        RunEvent::Started(record) => vec![plain(started(record))],
        RunEvent::Resumed(record) => resumed(record),
        RunEvent::OverBudget { tokens, budget } => {
            let [about, of] = [tokens, budget].map(tokens_text);
            vec![warning(format!(
                "Prompt exceeds its budget: about {about} of {of} tokens; sent all the same"
            ))]
        }
        RunEvent::IterationStarted(record) => {
            vec![plain(format!("Iteration {} starting...", numbered(record, record.iteration())))]
        }
        RunEvent::Skipped { record, why } => {
            let iteration = numbered(record, record.iteration());
            vec![warning(format!("Iteration {iteration} skipped: {}", short(why)))]
        }
        RunEvent::CheckEnded(result) => checked(result),
        RunEvent::IterationEnded { after, exit, ends } => iteration_ended(after, exit, ends),
        RunEvent::Delayed { record, until } => {
            let starts = second(until, at);
            vec![plain(format!("Iteration {} starts at {starts}", record.iteration()))]
        }
        RunEvent::Waiting(record) => vec![plain(waiting(record, at))],
        RunEvent::Paused(record) => vec![plain(format!(
            "Paused before iteration {}. Resume with: {}",
            numbered(record, record.iteration()),
            resume(record)
        ))],
        RunEvent::ReactionFailed { is_told: false, why, .. } => {
            vec![warning(format!("Reaction to {}", short(why)))]
        }
        RunEvent::Unsaved { why } => vec![error(format!(
            "State cannot be written: {}. The run continues within its limits; this is said once",
            short(why)
        ))],
        RunEvent::Finished { record, saved, .. } => finished(record, saved),
        RunEvent::Committed { commit, branch, subject } => {
            let commit = commit.get(..12).unwrap_or(commit);
            let branch = branch.unwrap_or("no branch");
            vec![plain(format!("Committed {commit} on {branch}: {}", short(subject)))]
        }
        RunEvent::Pushed { branch, remote } => vec![plain(format!("Pushed {branch} to {remote}"))],
        RunEvent::Rebased { onto } => vec![plain(format!("Rebased onto {onto}"))],
        // Shown whole if it is one line, because the hint comes last.
        RunEvent::CommitFailed { why } | RunEvent::PushFailed { why } => {
            let (first, rest) = why.split_at(why.chars().next().map_or(0, char::len_utf8));
            vec![warning(format!("{}{}", first.to_uppercase(), clip(rest, WHY_MAX)))]
        }
        RunEvent::TrialStarted => vec![plain("Running the checks without the work...".into())],
        RunEvent::StepStarted(..)
        | RunEvent::Said(_)
        | RunEvent::Noted(_)
        | RunEvent::CheckStarted(_)
        | RunEvent::Stopping
        | RunEvent::ReactionFailed { .. } => Vec::new(),
    };
    let stamp = at.format(STAMP);
    said.into_iter()
        .map(|(tone, text)| {
            let mark = match tone {
                Tone::Plain | Tone::Ended => "",
                Tone::Warning => "WARNING: ",
                Tone::Error => "ERROR: ",
            };
            ProgressLine { tone, text: format!("{stamp} {mark}{text}") }
        })
        .collect()
}

type Said = (Tone, String);

fn plain(text: String) -> Said {
    (Tone::Plain, text)
}

fn ended(text: String) -> Said {
    (Tone::Ended, text)
}

fn warning(text: String) -> Said {
    (Tone::Warning, text)
}

fn error(text: String) -> Said {
    (Tone::Error, text)
}

/// One line of a text that may have many.
fn short(text: &str) -> String {
    clip_line_at_word(text, WORDS_MAX)
}

/// "procedure: build", or the task in quotes.
fn subject(record: &Loop) -> String {
    match record.procedure() {
        Some(name) => format!("procedure: {name}"),
        None => format!("\"{}\"", clip(&record.contract.task, 60)),
    }
}

fn started(record: &Loop) -> String {
    let max = record.contract.limits.max_iterations;
    let bound = match max {
        0 => limits::in_force(&record.contract.limits),
        _ => format!("max {}", count(max, "iteration")),
    };
    match record.procedure() {
        Some(name) => format!("Starting procedure: {name} ({bound})"),
        None => format!("Starting: {} ({bound})", subject(record)),
    }
}

fn resumed(record: &Loop) -> Vec<Said> {
    let max = record.contract.limits.max_iterations;
    let bound = match max {
        0 => limits::in_force(&record.contract.limits),
        _ => format!("max {max}"),
    };
    // The last counted iteration; the line of the next one follows anyway.
    let (subject, iteration) = (subject(record), record.state.completed.max(1));
    let colon = if record.procedure().is_some() { "" } else { ":" };
    let done = count(record.state.completed, "iteration");
    vec![
        plain(format!("Resuming{colon} {subject} from iteration {iteration} ({bound})")),
        plain(format!("Previous session: {done} completed in {}", took(record.state.awake_ms))),
    ]
}

/// How a check ended, and the last lines of one that did not pass: they distinguish a failed test
/// from a typing error.
fn checked(result: &CheckResult) -> Vec<Said> {
    let (run, time) = (clip(&result.run, 80), took(result.elapsed_ms));
    let said = match (result.verdict, result.exit) {
        (Verdict::Passed, _) => plain(format!("Check passed: `{run}` in {time}")),
        (Verdict::Failed, Some(code)) => {
            plain(format!("Check failed: `{run}` (exit {code}) in {time}"))
        }
        (Verdict::Failed, None) => plain(format!("Check failed: `{run}` in {time}")),
        (Verdict::TimedOut, _) => plain(format!("Check timed out: `{run}` after {time}")),
        (Verdict::Unknown, _) => {
            let why = result.tail.lines().next().map(|why| format!(": {}", short(why)));
            warning(format!("Check did not finish: `{run}`{}", why.unwrap_or_default()))
        }
    };
    let printed = text::plain(&result.tail);
    let lines: Vec<&str> = match result.verdict {
        Verdict::Passed | Verdict::Unknown => Vec::new(),
        _ => printed.lines().rev().filter(|it| !it.trim().is_empty()).take(TAIL_LINES).collect(),
    };
    let tail = lines.into_iter().rev().map(|line| plain(format!("  | {}", short(line))));
    std::iter::once(said).chain(tail).collect()
}

fn iteration_ended(after: &Loop, exit: Option<i32>, ends: Option<Outcome>) -> Vec<Said> {
    let mut said = Vec::new();
    let evidence = after.state.evidence.as_ref();
    if let Some(failure) = evidence.and_then(|evidence| evidence.failure.as_deref()) {
        // For a process that only exited with an error, the client's name for that is shorter.
        let failure = match exit.filter(|code| exited(*code) == failure) {
            Some(code) => format!("AI CLI failed (exit {code})"),
            None => short(failure),
        };
        said.push(warning(format!("{failure}, consecutive failures: {}", failures(after))));
    }
    if let Some(ended) = evidence.and_then(|evidence| evidence.ended.as_deref()) {
        let (first, rest) = ended.split_at(1);
        let text = format!("{}{rest}; something changed: not a failure", first.to_uppercase());
        said.push(plain(text));
    }
    if evidence.is_some_and(|evidence| evidence.cut) {
        said.push(plain("The answer was cut by the token limit: it makes no claim".to_owned()));
    }
    let claim = match evidence.map(|last| &last.claim) {
        Some(ClaimResult::Refused(why)) => Some(with_reason("Claim refused", &short(why))),
        Some(ClaimResult::NearMiss(why)) => Some(with_reason("Claim not recognized", &short(why))),
        _ => None,
    };
    said.extend(claim.map(plain));
    // Otherwise the line about the loop's end says so: an iteration that aborts the loop has
    // failed, and an interrupted one was not finished.
    if !matches!(ends, Some(Outcome::Aborted | Outcome::Interrupted)) {
        let time = took(after.elapsed_ms.last().copied().unwrap_or_default());
        let iteration = numbered(after, after.state.completed);
        let cost = evidence.and_then(Evidence::cost);
        let cost = cost.map_or_else(String::new, |cost| format!(" · {cost}"));
        let agent = evidence.and_then(|evidence| evidence.agent.as_ref());
        let agent = agent.map_or_else(String::new, |agent| format!(" · {agent}"));
        said.push(plain(format!("Iteration {iteration} completed in {time}{cost}{agent}")));
    }
    said
}

/// "2/3", or "2" if failures cannot abort the loop.
fn failures(after: &Loop) -> String {
    let failures = after.state.consecutive_failures;
    match after.contract.limits.failure_threshold {
        0 => failures.to_string(),
        threshold => format!("{failures}/{threshold}"),
    }
}

fn waiting(record: &Loop, at: DateTime<FixedOffset>) -> String {
    let is_crash = record.state.transient_errors == 0;
    let (time, again) =
        if is_crash { (second as fn(_, _) -> _, "") } else { (clock_time as _, " again") };
    let until = record.state.due.map_or_else(String::new, |it| format!(" until {}", time(it, at)));
    let why = record.state.wait_reason.as_deref().map(|why| format!(" ({})", clip(why, 60)));
    let iteration = record.iteration();
    format!("Waiting{until}{}, then iteration {iteration}{again}", why.unwrap_or_default())
}

fn second(then: DateTime<Utc>, at: DateTime<FixedOffset>) -> String {
    then.with_timezone(at.offset()).format("%H:%M:%S").to_string()
}

/// The command that resumes a loop from a terminal; the name of a procedure also names its loop.
fn resume(record: &Loop) -> String {
    let alone = || format!("crew resume {}", record.procedure().unwrap_or(record.id.as_str()));
    record.fleet_resume().unwrap_or_else(alone)
}

fn finished(record: &Loop, saved: bool) -> Vec<Said> {
    let Some(ending) = &record.state.ending else { return Vec::new() };
    let Ending { outcome, proof, .. } = ending;
    let total = took(record.state.awake_ms);
    let done = count(record.state.completed, "iteration");
    let sum = format!("({done} completed, total: {total})");
    let why = clip(&ending.reason(), WHY_MAX);
    let reached_max = || {
        let max = record.contract.limits.max_iterations;
        format!("Reached max iterations: {max} (total: {total})")
    };
    vec![match outcome {
        Outcome::Interrupted if saved => {
            ended(format!("Interrupted. State saved. Resume with: {}", resume(record)))
        }
        Outcome::Interrupted => warning("Interrupted. State could not be saved".to_owned()),
        Outcome::Exhausted if at_max(record) => ended(reached_max()),
        Outcome::Completed if *proof == Some(Proof::Claimed) && ran_out(record) => {
            plain(reached_max())
        }
        Outcome::Completed => {
            let proof = proof.map_or_else(String::new, |proof| format!(", {}", proof.label()));
            plain(format!("Completed{proof}: {why} {sum}"))
        }
        Outcome::Exhausted => ended(format!("Exhausted: {why} {sum}")),
        Outcome::Aborted => error(format!(
            "Aborting after {} {sum}",
            count(record.state.consecutive_failures, "consecutive failure")
        )),
        Outcome::Stalled => warning(format!("Stalled: {why} {sum}")),
        Outcome::Blocked => error(format!("Blocked: {why} {sum}")),
        Outcome::Cancelled => ended(format!("Cancelled: {why} {sum}")),
        Outcome::Error => error(format!("{why} {sum}")),
    }]
}

/// Whether a loop that only its limit could end ran all its iterations.
fn ran_out(record: &Loop) -> bool {
    at_max(record) && !record.contract.can_complete()
}

/// Whether the iterations ran out. This limit is checked before all others.
fn at_max(record: &Loop) -> bool {
    let max = record.contract.limits.max_iterations;
    max > 0 && record.state.completed >= max
}

/// "loop k3v9 · claude on main · up to 10 iterations, 12h · done when … · stop: …": the terms of a
/// run, for a person at a terminal.
pub fn terms(record: &Loop) -> String {
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
        limits::named(&record.contract.limits),
        done_when(record)
    )
}

/// The contents of the live line: the latest event of each kind.
#[derive(Debug, Default)]
pub struct Live {
    /// "iteration 3/10".
    iteration: String,
    number: u32,
    /// What happens besides the agent's work, and until when.
    doing: Option<String>,
    until: Option<DateTime<Utc>>,
    cost: Option<String>,
    /// "`cargo test` failed (exit 1)", and the iteration after which it ran.
    check: Option<(u32, String)>,
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
            RunEvent::IterationStarted(record) => self.look(record),
            RunEvent::Waiting(record) => {
                self.look(record);
                let why = record.state.wait_reason.as_deref().unwrap_or("the model's service");
                self.doing = Some(format!("waiting ({})", clip(why, 40)));
                self.until = record.state.due;
            }
            RunEvent::Delayed { until, .. } => {
                self.doing = Some("delay".to_owned());
                self.until = Some(until);
            }
            RunEvent::CheckEnded(result) => {
                let run = clip(&result.run, 30);
                self.check = Some((self.number, format!("`{run}` {}", result.what_happened())));
                self.doing = None;
                return false;
            }
            RunEvent::IterationEnded { after, .. } => {
                self.cost = spent(after);
                return false;
            }
            RunEvent::CheckStarted(_) | RunEvent::TrialStarted | RunEvent::Stopping => {
                self.doing = Some(match *event {
                    RunEvent::CheckStarted(run) => format!("checking `{}`", clip(run, 40)),
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

    fn look(&mut self, record: &Loop) {
        self.number = record.iteration();
        let by =
            record.stand_in_at_work().map(|it| format!(" by {}", it.agent)).unwrap_or_default();
        self.iteration = format!("iteration {}{by}", numbered(record, self.number));
        self.cost = spent(record);
        (self.doing, self.until) = (None, None);
    }

    /// The line at `now`, most important part first, because a narrow terminal cuts its end.
    pub fn line(&self, now: DateTime<Utc>) -> String {
        let left = self.until.map(|until| (until - now).num_milliseconds().max(0) / 1000);
        let left = left.and_then(|seconds| u64::try_from(seconds).ok()).map(|left| match left {
            0 => ", 0s left".to_owned(),
            left => format!(", {} left", duration(left * 1000)),
        });
        let doing = self.doing.as_ref().map(|doing| doing.clone() + &left.unwrap_or_default());
        // What an earlier iteration left is no news of what this one found.
        let check = self.check.as_ref().filter(|(after, _)| after + 1 >= self.number);
        [Some(&self.iteration), doing.as_ref(), self.cost.as_ref(), check.map(|(_, check)| check)]
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(" · ")
    }
}

fn spent(record: &Loop) -> Option<String> {
    record.state.usage.cost_text(record.contract.limits.max_cost_micros > 0)
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
