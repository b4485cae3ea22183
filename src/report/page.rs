//! The page of a loop as text, for a terminal of any width and for a file. Where it is narrow the
//! columns of least use go first; only the last column grows with the width.

use std::fmt::Write as _;

use chrono::{DateTime, FixedOffset, Utc};
use unicode_truncate::UnicodeTruncateStr;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::colour::{self, STRONG, marked};
use super::table::{self, ALWAYS, CellColour, Column, fitting};
use engine::text::{ago, brief, clean, clock_time, count, quoted};
use engine::view::{Fact, IterationLine, LastWords, Page, Step};

/// Where the values of the rows begin.
const INDENT: usize = 10;
/// The most columns and lines of the task.
const TASK_COLUMNS: usize = 100;
const TASK_LINES: usize = 3;
/// The widest column of files.
const FILES: usize = 22;
/// Below this width times and costs are left out.
const NARROW: usize = 60;
/// The fewest columns that are worth an agent's words.
const SAID: usize = 12;
/// An end that is older than this, in milliseconds, says how long ago it was.
const RECENT_MS: i64 = 3_600_000;

/// When and where a page is read.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Columns of the terminal.
    pub width: usize,
    pub now: DateTime<Utc>,
    /// The reader's time zone.
    pub offset: FixedOffset,
}

impl Reading {
    /// The time on the reader's clock.
    pub fn clock(&self) -> DateTime<FixedOffset> {
        self.now.with_timezone(&self.offset)
    }
}

/// The page.
pub fn text(page: &Page, reading: Reading) -> String {
    let mut first = format!("loop {} · {}", page.id, page.verdict);
    first.extend(page.remark.iter().flat_map(|remark| [" · ", remark]));
    let first = colour::words(&wrapped(&first, reading.width, usize::MAX).join("\n"));
    let name = format!("loop {}", page.id);
    let mut text = first.replacen(&name, &marked(STRONG, &name), 1) + "\n\n";
    for line in wrapped(&page.task, reading.width.min(TASK_COLUMNS).saturating_sub(2), TASK_LINES) {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    page.ending.iter().for_each(|fact| told(&mut text, fact, reading.width));
    value(&mut text, "time", &time(page, reading), reading.width);
    if !page.iterations.is_empty() {
        text.push('\n');
        if page.earlier > 0 {
            let _ = writeln!(text, "  ({} before these)", count(page.earlier, "iteration"));
        }
        for line in table(&page.iterations, reading.width) {
            let _ = writeln!(text, "{line}");
        }
    }
    if !page.results.is_empty() || page.handoff.is_some() {
        text.push('\n');
        page.results.iter().for_each(|fact| told(&mut text, fact, reading.width));
        if let Some(file) = &page.handoff {
            row(&mut text, "handoff", file);
        }
    }
    text.push('\n');
    if let Some(stop) = &page.stop {
        row(&mut text, "stop", stop);
    }
    step(&mut text, "next", &page.next, reading.width);
    page.then.iter().for_each(|then| step(&mut text, "then", then, reading.width));
    text
}

/// "38m, from 22:31 to 23:09 · $3.42 of $8.00".
pub fn time(page: &Page, reading: Reading) -> String {
    let clock = |at| clock_time(at, reading.clock());
    let took = brief(page.awake_ms);
    let mut text = match page.ended_at {
        None => format!("{took}, since {}", clock(page.started_at)),
        Some(ended) => {
            let since = (reading.now - ended).num_milliseconds();
            let ago = if since > RECENT_MS { format!(", {}", ago(since)) } else { String::new() };
            format!("{took}, from {} to {}{ago}", clock(page.started_at), clock(ended))
        }
    };
    text.extend(page.cost.iter().flat_map(|cost| [" · ", cost]));
    text
}

fn told(text: &mut String, fact: &Fact, width: usize) {
    value(text, &fact.name, &fact.text, width);
    fact.detail.iter().for_each(|line| value(text, "", line, width));
}

/// A row whose value is wrapped below itself; without a name it continues the one before.
pub fn value(text: &mut String, name: &str, value: &str, width: usize) {
    let lines = wrapped(value, width.saturating_sub(INDENT), usize::MAX);
    for (index, line) in lines.iter().enumerate() {
        row(text, if index == 0 { name } else { "" }, line);
    }
}

/// A command is never wrapped, and has its line to itself: it must be possible to copy it.
pub fn step(text: &mut String, name: &str, step: &Step, width: usize) {
    labelled(text, name, &marked(STRONG, &clean(&step.command)));
    value(text, "", &step.what, width);
}

/// A column of the lines of iterations, on the page and in the story in HTML.
#[derive(Debug, Clone, Copy)]
pub struct IterationColumn {
    /// Its heading in HTML.
    pub heading: &'static str,
    /// Whether a narrow terminal has no room for it, and HTML only where a line has it.
    pub is_extra: bool,
    pub cell: fn(&IterationLine) -> String,
    column: Column,
}

const fn column(
    heading: &'static str,
    column: Column,
    cell: fn(&IterationLine) -> String,
) -> IterationColumn {
    IterationColumn { heading, is_extra: false, cell, column }
}

const fn extra(
    heading: &'static str,
    form: Column,
    cell: fn(&IterationLine) -> String,
) -> IterationColumn {
    IterationColumn { is_extra: true, ..column(heading, form, cell) }
}

/// The columns of the lines of iterations.
pub const COLUMNS: [IterationColumn; 7] = [
    column("n", Column::number(ALWAYS, usize::MAX), |line| line.number.to_string()),
    extra("time", Column::number(ALWAYS, usize::MAX), |line| brief(line.elapsed_ms)),
    extra("cost", Column::number(ALWAYS, usize::MAX), |line| line.cost.clone().unwrap_or_default()),
    extra("agent", Column::text(ALWAYS, 12), |line| line.agent.clone().unwrap_or_default()),
    column("changed", Column::text(ALWAYS, FILES), |line| file_name(&line.files)),
    column("checks", Column::text(ALWAYS, 18).coloured(CellColour::Words), |line| {
        line.checks.clone()
    }),
    column("said", Column::rest(0, SAID).coloured(CellColour::Words), said),
];

/// The lines of iterations, in columns of one width.
pub fn table(iterations: &[IterationLine], width: usize) -> Vec<String> {
    let cell = |it: IterationColumn, line| {
        if width < NARROW && it.is_extra { String::new() } else { (it.cell)(line) }
    };
    let rows = iterations.iter().map(|line| COLUMNS.map(|it| cell(it, line)));
    let columns = COLUMNS.map(|it| it.column);
    let lines = table::lines(columns, rows, width.saturating_sub(2));
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

/// A path that is too long for its column is shown by its name.
fn file_name(files: &str) -> String {
    let name = files.rsplit('/').next().unwrap_or(files);
    if files.width() > FILES { name.to_owned() } else { files.to_owned() }
}

fn said(line: &IterationLine) -> String {
    match &line.said {
        LastWords::Crew(words) => words.clone(),
        LastWords::Agent(words) => quoted(words),
        LastWords::Nothing => String::new(),
    }
}

/// A text in lines of at most `columns`, broken between words; past `most` lines it is cut. A word
/// that is longer is broken only where its writing has no blanks between words: a path must stay
/// whole to be copied.
pub fn wrapped(text: &str, columns: usize, most: usize) -> Vec<String> {
    let columns = columns.max(SAID);
    let mut lines = Vec::new();
    for paragraph in clean(text).lines() {
        let indent = paragraph.len() - paragraph.trim_start().len();
        let mut line = paragraph[..indent].to_owned();
        for word in paragraph.split_whitespace().flat_map(|word| broken(word, columns)) {
            let gap = usize::from(!line.trim().is_empty());
            if gap == 1 && line.width() + gap + word.width() > columns {
                lines.push(std::mem::take(&mut line));
            } else if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = fitting(&format!("{last} …"), columns);
        }
    }
    lines
}

/// A text of crew's own whose long lines are broken between words. What follows stands below the
/// last column that begins in the first half of the screen, else below the line's own beginning.
pub fn folded(text: &str, columns: usize) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let own = line.len() - line.trim_start().len();
        let words = line.match_indices(|it| it != ' ').map(|(start, _)| start);
        let column = words.filter(|start| *start > own && line[..*start].ends_with("  "));
        let column = column.take_while(|start| line[..*start].width() <= columns / 2).last();
        let (head, rest) = line.split_at(column.unwrap_or(own));
        let hang = head.width() + if column.is_none() { 2 } else { 0 };
        if line.width() <= columns {
            folded += line;
        } else {
            let lines = wrapped(rest, columns.saturating_sub(hang), usize::MAX);
            folded += head;
            folded += &lines.join(&format!("\n{:hang$}", ""));
        }
        folded.push('\n');
    }
    folded
}

/// The word, in pieces of at most `columns` if it is of wide characters.
fn broken(word: &str, columns: usize) -> Vec<&str> {
    let is_wide = word.chars().any(|it| it.width() == Some(2));
    if is_wide { pieces(word, columns) } else { vec![word] }
}

/// A line in pieces of at most `columns`, wherever they end.
pub fn pieces(line: &str, columns: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    loop {
        let (piece, _) = rest.unicode_truncate(columns);
        if piece.is_empty() || piece.len() == rest.len() {
            pieces.push(rest);
            return pieces;
        }
        pieces.push(piece);
        rest = &rest[piece.len()..];
    }
}

/// One row of a page: a name and its value.
pub fn row(text: &mut String, name: &str, value: &str) {
    let value = clean(value);
    let is_of_a_check = matches!(name, "verify" | "gate" | "until" | "fails" | "tests");
    labelled(text, name, &if is_of_a_check { colour::words(&value) } else { value });
}

/// One whose value may have marks.
fn labelled(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {} {value}", colour::quiet(&format!("{name:<7}")));
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
