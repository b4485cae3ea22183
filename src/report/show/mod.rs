//! The whole story of one loop: the page of `crew show`, one iteration of it, and both as JSON for
//! programs.

pub mod html;

use std::fmt::Write as _;
use std::path::Path;

use chrono::{DateTime, FixedOffset, Utc};
use serde_json::{Value, json};

use super::events::SCHEMA;
use super::page::{self, Reading, optional, row, tail, value, wrapped};
use super::words::took;
use super::{line, run};
use crate::engine::boundary::limits;
use crate::engine::evidence::words::findings;
use crate::engine::evidence::{ClaimResult, Evidence, IterationStatus};
use crate::engine::journal::Choice;
use crate::engine::journal::story::{Chapter, Iteration, Story, What, Who};
use crate::engine::journal::story::{Regression, regressions};
use crate::engine::record::{Driver, Limits, Loop};
use crate::engine::text::{clip, count, quoted, with_reason, word};
use crate::engine::view::{IterationLine, LastWords, LoopView, Page};

/// Below this width what happened stands below its time.
const NARROW: usize = 60;
/// The most chapters on a page for people; the newest are shown.
const TOLD_MAX: usize = 200;

/// The contents of the story page.
#[derive(Debug, Clone)]
pub struct StoryPage<'a> {
    pub view: LoopView<'a>,
    pub story: &'a Story,
    pub page: &'a Page,
    /// Where and when it is read; the story in HTML takes only the time zone from it.
    pub reading: Reading,
}

/// The page: the loop's status or end, what it was asked for, and everything that happened.
pub fn page(known: &StoryPage<'_>) -> String {
    let (record, story) = (known.view.record, known.story);
    let mut text = page::text(known.page, known.reading);
    text.push_str("\nsettings of this loop\n");
    let width = known.reading.width;
    for (name, written) in contract(record) {
        value(&mut text, name, &clip(&written, 160), width);
    }
    value(&mut text, "run by", &drivers(story), width);
    let is_told = |it: &&Regression| known.page.ending.iter().any(|row| row.text == it.words());
    for regression in regressions(story).iter().filter(|it| !is_told(it)) {
        value(&mut text, "red", &clip(&regression.words(), 300), width);
    }
    text.push_str("\nstory\n");
    let skipped = story.chapters.iter().len().saturating_sub(TOLD_MAX);
    let earlier = story.chapters.earlier + skipped as u64;
    if earlier > 0 {
        let _ = writeln!(text, "  ({} before these)", count(earlier, "line"));
    }
    for chapter in story.chapters.iter().skip(skipped) {
        told(&mut text, &known.time(chapter.at), &chapter_line(chapter), width);
    }
    for remark in remarks(story) {
        let _ = writeln!(text, "  ({remark})");
    }
    text
}

impl StoryPage<'_> {
    fn time(&self, at: DateTime<Utc>) -> String {
        at.with_timezone(&self.reading.offset).format("%Y-%m-%d %H:%M:%S").to_string()
    }
}

/// A line of the story, wrapped beside its time or, where that leaves little room, below it.
fn told(text: &mut String, time: &str, what: &str, width: usize) {
    let is_beside = width >= NARROW;
    let indent = if is_beside { time.len() + 4 } else { 4 };
    let lines = wrapped(what, width.saturating_sub(indent), usize::MAX);
    let gap = if is_beside { "  ".to_owned() } else { format!("\n{:indent$}", "") };
    let _ = writeln!(text, "  {time}{gap}{}", lines.join(&format!("\n{:indent$}", "")));
}

/// What was asked for, except the checks.
fn contract(record: &Loop) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("task", run::task(record).into_owned()),
        ("done", line::done_when(record).trim_start_matches("done ").to_owned()),
        ("limits", limits::named(&record.contract.limits) + &gives_up(&record.contract.limits)),
        ("folder", record.place.folder.display().to_string()),
    ];
    rows.extend(record.place.branch.clone().map(|branch| ("branch", branch)));
    let protect = &record.contract.protect;
    rows.extend((!protect.is_empty()).then(|| ("protect", protect.join(", "))));
    rows.extend(record.contract.run.iter().flat_map(run::rows));
    rows
}

/// "; ends after 3 failures in a row or 5 iterations without progress".
fn gives_up(limits: &Limits) -> String {
    let reasons = [
        (limits.failure_threshold, "failure", "in a row"),
        (limits.stall, "iteration", "without progress"),
    ]
    .map(|(most, noun, how)| (most > 0).then(|| format!("{} {how}", count(most, noun))));
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    if reasons.is_empty() {
        String::new()
    } else {
        format!("; ends after {}", reasons.join(" or "))
    }
}

/// "session s-1, then process 99".
fn drivers(story: &Story) -> String {
    let names: Vec<String> = story.drivers.iter().map(who).collect();
    if names.is_empty() { "unknown".to_owned() } else { names.join(", then ") }
}

fn who(who: &Who) -> String {
    match (who.driver, &who.session_id) {
        (Driver::Session, Some(id)) => format!("session {id}"),
        (Driver::Session, None) => format!("session of process {}", who.pid),
        (Driver::Process, _) => format!("fresh processes of crew {}", who.pid),
    }
}

/// One event in one line.
fn chapter_line(chapter: &Chapter) -> String {
    let text = match &chapter.what {
        What::Started { by } => format!("started in {}", who(by)),
        What::Iteration(iteration) => iterated(iteration),
        What::Boundary { decision, why } => decided(decision, why.as_deref()),
        What::Changed { what, by, .. } => match by {
            Some(by) => format!("{what}; run by {} from here", who(by)),
            None => what.clone(),
        },
        What::Told { words } => format!("told by the user: {}", quoted(&clip(words, 300))),
        What::Noted { what } => format!("note: {what}"),
    };
    clip(&text, 300)
}

fn iterated(iteration: &Iteration) -> String {
    let evidence = &iteration.evidence;
    let mut parts = vec![format!("iteration {}", iteration.number), took(iteration.elapsed_ms)];
    parts.extend((evidence.status != IterationStatus::Completed).then(|| status(evidence)));
    parts.extend(evidence.agent.clone());
    parts.extend(findings(evidence));
    parts.extend(evidence.cost());
    parts.extend(evidence.context().map(|context| format!("context {context}")));
    parts.extend(after(iteration));
    parts.join(" · ")
}

/// "timed out".
fn status(evidence: &Evidence) -> String {
    word(&evidence.status).replace('_', " ")
}

/// The decision, unless the loop simply continued.
fn after(iteration: &Iteration) -> Option<String> {
    let Iteration { decision, why, .. } = iteration;
    (*decision != Choice::Continue).then(|| decided(decision, why.as_deref()))
}

fn decided(decision: &Choice, why: Option<&str>) -> String {
    let decided = match decision {
        Choice::Finish => "finished:",
        Choice::Hold => "stopped for now:",
        Choice::Wait => "waited:",
        Choice::Continue => "continue",
        Choice::Other(word) => word,
    };
    format!("{decided} {}", why.unwrap_or_default())
}

/// What a reader should know about the journal itself.
fn remarks(story: &Story) -> Vec<String> {
    let torn = (story.torn > 0)
        .then(|| format!("{} of the journal cannot be read", count(story.torn, "line")));
    let cut = story.cut.then(|| "the journal is very long: its beginning is not read".to_owned());
    torn.into_iter().chain(cut).collect()
}

/// One iteration with all its evidence, and the path of its log.
pub fn iteration(
    record: &Loop,
    iteration: &Iteration,
    log: Option<&Path>,
    offset: FixedOffset,
) -> String {
    let evidence = &iteration.evidence;
    let mut text = format!("loop {}: iteration {}\n", record.id, iteration.number);
    let began = evidence.started_at.map_or_else(String::new, |at| {
        format!(", from {}", at.with_timezone(&offset).format("%Y-%m-%d %H:%M:%S"))
    });
    row(&mut text, "time", &(took(iteration.elapsed_ms) + &began));
    let exit = evidence.exit.map_or_else(String::new, |code| format!(", exit status {code}"));
    row(&mut text, "status", &(status(evidence) + &exit));
    optional(&mut text, "agent", evidence.agent.clone());
    let (claim, why) = match &evidence.claim {
        ClaimResult::None => ("none", ""),
        ClaimResult::Accepted => ("accepted", ""),
        ClaimResult::Refused(why) => ("refused", why.as_str()),
        ClaimResult::Failure(why) => ("FAILURE", why.as_str()),
        ClaimResult::Blocked(why) => ("BLOCKED", why.as_str()),
        ClaimResult::NearMiss(why) => ("not heard", why.as_str()),
    };
    row(&mut text, "claim", &with_reason(claim, &clip(why, 300)));
    if let Some(failure) = &evidence.failure {
        row(&mut text, "failure", &clip(failure, 300));
        tail(&mut text, &evidence.errors);
    }
    optional(&mut text, "ended", evidence.unended());
    let progress = evidence.progress.worded(["made", "none", "unknown"]);
    row(&mut text, "progress", &with_reason(progress, &clip(&evidence.progress_why, 300)));
    let usage = evidence.usage.as_ref();
    optional(&mut text, "cost", usage.and_then(|usage| usage.text(false)));
    optional(&mut text, "context", evidence.context());
    let line = IterationLine::of(iteration, None);
    row(&mut text, "files", &line.files);
    if let LastWords::Agent(words) = &line.said {
        row(&mut text, "said", &quoted(words));
    }
    for words in &evidence.words {
        row(&mut text, "told", &format!("{} (for the next prompt)", quoted(&clip(words, 300))));
    }
    for check in &evidence.checks {
        let roles: Vec<&str> = check.roles.iter().map(|role| role.label()).collect();
        let time = took(check.elapsed_ms);
        let happened = format!("`{}` {} in {time}", clip(&check.run, 100), check.what_happened());
        row(&mut text, &roles.join(", "), &happened);
        tail(&mut text, &check.tail);
    }
    let after = after(iteration).unwrap_or_else(|| "the loop continued".to_owned());
    row(&mut text, "then", &clip(&after, 300));
    optional(&mut text, "log", log.map(|log| log.display().to_string()));
    text
}

/// The story for programs: at most the newest 10,000 lines of the journal, and how many came
/// before.
pub fn json(known: &StoryPage<'_>) -> Value {
    let StoryPage { view, story, page, .. } = known;
    json!({
        "schema": SCHEMA,
        "loop": view,
        "drivers": story.drivers.iter().collect::<Vec<_>>(),
        "story": story.chapters.iter().collect::<Vec<_>>(),
        "earlier": story.chapters.earlier,
        "torn_lines": story.torn,
        "cut": story.cut,
        "regressions": regressions(story),
        "spread_ms": view.record.spread(),
        "page": page,
    })
}

/// One iteration for programs.
pub fn iteration_json(record: &Loop, iteration: &Iteration, log: Option<&Path>) -> Value {
    json!({ "schema": SCHEMA, "loop": record.id, "iteration": iteration, "log": log })
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
