//! The story of one loop: the page of `crew show`, the page of one iteration, and both as JSON.

pub mod html;

use std::fmt::Write as _;
use std::path::Path;

use chrono::{DateTime, FixedOffset, Utc};
use minijinja::{Value, context};
use serde_json::json;

use super::events::SCHEMA;
use super::layout::{Reading, wrap_text};
use super::page::{self, push_row, push_value};
use super::{line, words};
use engine::boundary::limits;
use engine::evidence::{Evidence, list_findings};
use engine::journal::Choice;
use engine::journal::story::{
    Iteration, Regression, Story, StoryDriver, StoryEvent, find_regressions,
};
use engine::record::{Driver, Loop};
use engine::text::{clip_line, count};
use engine::view::columns::task_text;
use engine::view::{Fact, IterationLine, LoopView, Page};

/// The width below which an event is shown below its time, not beside it.
const NARROW: usize = 60;
/// The maximum number of chapters on a page for people; the newest are shown.
const CHAPTERS_MAX: usize = 200;

/// The contents of the story page.
#[derive(Debug, Clone)]
pub struct StoryPage<'a> {
    pub view: LoopView<'a>,
    pub story: &'a Story,
    pub page: &'a Page,
    /// When and where it is read; the story in HTML uses only the time zone.
    pub reading: Reading,
}

/// Renders the page: the loop's status or end, its contract, and everything that happened.
pub fn story_page(known: &StoryPage<'_>) -> String {
    let story = known.story;
    let mut text = page::render_page(known.page, known.reading);
    text.push_str("\nsettings of this loop\n");
    let width = known.reading.width;
    for row in contract_rows(&known.view) {
        push_value(&mut text, &row.name, &clip_line(&row.text, 160), width);
    }
    push_value(&mut text, "run by", &driver_names(story), width);
    for words in find_regressions(story).iter().map(Regression::regression_words) {
        if known.page.ending.iter().all(|row| row.text != words) {
            push_value(&mut text, "red", &clip_line(&words, 300), width);
        }
    }
    text.push_str("\nstory\n");
    text + &story_lines(story, known.reading)
}

/// What happened, a line each; only the newest if there are many.
pub fn story_lines(story: &Story, reading: Reading) -> String {
    let mut text = String::new();
    let skipped = story.chapters().iter().len().saturating_sub(CHAPTERS_MAX);
    let earlier = story.chapters().earlier() + skipped as u64;
    if earlier > 0 {
        let _ = writeln!(text, "  ({} before these)", count(earlier, "line"));
    }
    for chapter in story.chapters().iter().skip(skipped) {
        let time = date_and_time(chapter.at(), reading.offset);
        push_line(&mut text, &time, &event_line(chapter.what()), reading.width);
    }
    for remark in journal_remarks(story) {
        let _ = writeln!(text, "  ({remark})");
    }
    text
}

fn date_and_time(at: DateTime<Utc>, offset: FixedOffset) -> String {
    at.with_timezone(&offset).format("%Y-%m-%d %H:%M:%S").to_string()
}

/// Adds a line of the story, wrapped beside its time or, where that leaves little room, below it.
fn push_line(text: &mut String, time: &str, what: &str, width: usize) {
    let is_beside = width >= NARROW;
    let indent = if is_beside { time.len() + 4 } else { 4 };
    let lines = wrap_text(what, width.saturating_sub(indent), usize::MAX);
    let gap = if is_beside { "  ".to_owned() } else { format!("\n{:indent$}", "") };
    let _ = writeln!(text, "  {time}{gap}{}", lines.join(&format!("\n{:indent$}", "")));
}

/// The terms of the loop, except the checks.
fn contract_rows(view: &LoopView<'_>) -> Vec<Fact> {
    let contract = &view.record.contract;
    let run = contract.run.as_ref();
    let values = context! {
        asked_for => task_text(view.record),
        done_when => line::done_when(view.record).trim_start_matches("done "),
        named_limits => limits::describe_limits(&contract.limits),
        protect => contract.protect,
        asks_permissions => run.is_some_and(|run| !run.agent.permissions.is_empty()),
        max_turns => run.map(|run| run.max_turns),
    };
    words::render_rows("contract.j2", &context! { ..values, ..Value::from_serialize(view) })
}

/// The drivers in order: "session s-1, then process 99".
fn driver_names(story: &Story) -> String {
    let names: Vec<String> = story.drivers().iter().map(driver_name).collect();
    if names.is_empty() { "unknown".to_owned() } else { names.join(", then ") }
}

fn driver_name(who: &StoryDriver) -> String {
    match (who.driver(), who.session_id()) {
        (Driver::Session, Some(id)) => format!("session {id}"),
        (Driver::Session, None) => format!("session of process {}", who.pid()),
        (Driver::Process, _) => format!("fresh processes of crew {}", who.pid()),
    }
}

/// An event on one line.
fn event_line(what: &StoryEvent) -> String {
    let (by, evidence) = match what {
        StoryEvent::Started { by } => (Some(by), None),
        StoryEvent::Changed { by, .. } => (by.as_ref(), None),
        StoryEvent::Iteration(iteration) => (None, Some(&iteration.evidence)),
        _ => (None, None),
    };
    let values = context! {
        who => by.map(driver_name),
        findings => evidence.map(list_findings),
        cost => evidence.and_then(Evidence::cost),
        context => evidence.and_then(Evidence::context),
        ..Value::from_serialize(what)
    };
    clip_line(&words::render_row("chapter.j2", &values), 300)
}

/// Remarks about the journal itself.
fn journal_remarks(story: &Story) -> Vec<String> {
    let mut remarks = Vec::new();
    if story.torn > 0 {
        remarks.push(format!("{} of the journal cannot be read", count(story.torn, "line")));
    }
    if story.cut() {
        remarks.push("the journal is very long: its beginning is not read".to_owned());
    }
    remarks
}

/// Renders one iteration with all its evidence, and the path of its log.
pub fn iteration_page(
    record: &Loop,
    iteration: &Iteration,
    log: Option<&Path>,
    offset: FixedOffset,
) -> String {
    let Iteration { evidence, decision, why, .. } = iteration;
    let decided = match decision {
        Choice::Continue => None,
        _ => Some(StoryEvent::Boundary { decision: decision.clone(), why: why.clone() }),
    };
    let values = context! {
        began => evidence.started_at.map(|began| date_and_time(began, offset)),
        used => evidence.usage.as_ref().and_then(|usage| usage.usage_text(false)),
        context => evidence.context(),
        line => IterationLine::from_iteration(iteration, None),
        checks => check_values(evidence),
        decided => decided.as_ref().map(event_line),
        log,
        ..Value::from_serialize(iteration)
    };
    let mut text = format!("loop {}: iteration {}\n", record.id, iteration.number);
    for fact in words::render_rows("iteration.j2", &values) {
        push_row(&mut text, &fact.name, &fact.text);
        for line in &fact.detail {
            push_row(&mut text, "", line);
        }
    }
    text
}

/// The results of the checks, each with a description of what happened.
fn check_values(evidence: &Evidence) -> Vec<Value> {
    let checks = evidence.checks.iter().map(|check| {
        context! { happened => check.what_happened(), ..Value::from_serialize(check) }
    });
    checks.collect()
}

/// The story as JSON: at most the newest 10,000 lines of the journal, and how many came before.
pub fn story_json(known: &StoryPage<'_>) -> serde_json::Value {
    let StoryPage { view, story, page, .. } = known;
    json!({
        "schema": SCHEMA,
        "loop": view,
        "drivers": story.drivers().iter().collect::<Vec<_>>(),
        "story": story.chapters().iter().collect::<Vec<_>>(),
        "earlier": story.chapters().earlier(),
        "torn_lines": story.torn,
        "cut": story.cut(),
        "regressions": find_regressions(story),
        "spread_ms": view.record.time_spread(),
        "page": page,
    })
}

/// One iteration as JSON.
pub fn iteration_json(
    record: &Loop,
    iteration: &Iteration,
    log: Option<&Path>,
) -> serde_json::Value {
    json!({ "schema": SCHEMA, "loop": record.id, "iteration": iteration, "log": log })
}

#[cfg(test)]
mod tests;
