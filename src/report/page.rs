//! The page of a loop as text, for a terminal of any width and for a file. A narrow one loses the
//! least useful columns first; only the last column grows with the width.

use std::fmt::Write as _;

use chrono::{DateTime, FixedOffset, Utc};
use unicode_truncate::UnicodeTruncateStr;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::colour::{self, STRONG, mark_text};
use super::table::{self, ALWAYS, CellColour, Column, fit_line};
use engine::text::{clean_text, clock_time, count, format_age, format_briefly, quote_words};
use engine::view::{Fact, IterationLine, LastWords, NextStep, Page};

/// The column at which the values of the rows begin.
const INDENT: usize = 10;
/// The most columns of the task.
const TASK_COLUMNS: usize = 100;
/// The most lines of the task.
const TASK_LINES: usize = 3;
/// The widest column of files.
const FILES: usize = 22;
/// Below this width times and costs are left out.
const NARROW: usize = 60;
/// The fewest columns in which an agent's words are shown.
const SAID: usize = 12;
/// The age from which an end says how long ago it was, in milliseconds.
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

/// Renders the page.
pub fn render_page(page: &Page, reading: Reading) -> String {
    let mut first = format!("loop {} · {}", page.id, page.verdict);
    first.extend(page.remark.iter().flat_map(|remark| [" · ", remark]));
    let first = colour::mark_words(&wrap_text(&first, reading.width, usize::MAX).join("\n"));
    let name = format!("loop {}", page.id);
    let mut text = first.replacen(&name, &mark_text(STRONG, &name), 1) + "\n\n";
    for line in wrap_text(&page.task, reading.width.min(TASK_COLUMNS).saturating_sub(2), TASK_LINES)
    {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    for fact in &page.ending {
        push_fact(&mut text, fact, reading.width);
    }
    push_value(&mut text, "time", &time_text(page, reading), reading.width);
    if !page.iterations.is_empty() {
        text.push('\n');
        if page.earlier > 0 {
            let _ = writeln!(text, "  ({} before these)", count(page.earlier, "iteration"));
        }
        for line in iteration_table(&page.iterations, reading.width) {
            let _ = writeln!(text, "{line}");
        }
    }
    if !page.results.is_empty() || page.handoff.is_some() {
        text.push('\n');
        for fact in &page.results {
            push_fact(&mut text, fact, reading.width);
        }
        if let Some(file) = &page.handoff {
            push_row(&mut text, "handoff", file);
        }
    }
    text.push('\n');
    if let Some(stop) = &page.stop {
        push_row(&mut text, "stop", stop);
    }
    push_step(&mut text, "next", &page.next, reading.width);
    if let Some(then) = &page.then {
        push_step(&mut text, "then", then, reading.width);
    }
    text
}

/// "38m, from 22:31 to 23:09 · $3.42 of $8.00".
pub fn time_text(page: &Page, reading: Reading) -> String {
    let (took, started) =
        (format_briefly(page.awake_ms), clock_time(page.started_at, reading.clock()));
    let mut text = match page.ended_at {
        None => format!("{took}, since {started}"),
        Some(ended) => {
            let since = (reading.now - ended).num_milliseconds();
            let ago =
                if since > RECENT_MS { format!(", {}", format_age(since)) } else { String::new() };
            format!("{took}, from {started} to {}{ago}", clock_time(ended, reading.clock()))
        }
    };
    text.extend(page.cost.iter().flat_map(|cost| [" · ", cost]));
    text
}

fn push_fact(text: &mut String, fact: &Fact, width: usize) {
    push_value(text, &fact.name, &fact.text, width);
    for line in &fact.detail {
        push_value(text, "", line, width);
    }
}

/// Adds a row whose value is wrapped below itself; without a name it continues the row before.
pub fn push_value(text: &mut String, name: &str, value: &str, width: usize) {
    let lines = wrap_text(value, width.saturating_sub(INDENT), usize::MAX);
    for (index, line) in lines.iter().enumerate() {
        push_row(text, if index == 0 { name } else { "" }, line);
    }
}

/// Adds a step. Its command has a line of its own and is never wrapped, so that it can be copied.
pub fn push_step(text: &mut String, name: &str, step: &NextStep, width: usize) {
    push_labelled(text, name, &mark_text(STRONG, &clean_text(&step.command)));
    push_value(text, "", &step.what, width);
}

/// A column of the lines of iterations, on the page and in the story in HTML.
#[derive(Debug, Clone, Copy)]
pub struct IterationColumn {
    /// Its heading in HTML.
    pub heading: &'static str,
    /// Whether a narrow terminal leaves it out, and HTML too unless a line has it.
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

const fn extra_column(
    heading: &'static str,
    form: Column,
    cell: fn(&IterationLine) -> String,
) -> IterationColumn {
    IterationColumn { is_extra: true, ..column(heading, form, cell) }
}

/// The columns of the lines of iterations.
pub const COLUMNS: [IterationColumn; 7] = [
    column("n", Column::number(ALWAYS, usize::MAX), |line| line.number.to_string()),
    extra_column("time", Column::number(ALWAYS, usize::MAX), |line| {
        format_briefly(line.elapsed_ms)
    }),
    extra_column("cost", Column::number(ALWAYS, usize::MAX), |line| {
        line.cost.clone().unwrap_or_default()
    }),
    extra_column("agent", Column::text(ALWAYS, 12), |line| line.agent.clone().unwrap_or_default()),
    column("changed", Column::text(ALWAYS, FILES), |line| file_name(&line.files)),
    column("checks", Column::text(ALWAYS, 18).with_colour(CellColour::Words), |line| {
        line.checks.clone()
    }),
    column("said", Column::rest(0, SAID).with_colour(CellColour::Words), said_cell),
];

/// The lines of iterations, in columns of one width.
pub fn iteration_table(iterations: &[IterationLine], width: usize) -> Vec<String> {
    let rows = iterations.iter().map(|line| {
        COLUMNS.map(
            |IterationColumn { is_extra, cell, .. }| {
                if is_extra && width < NARROW { String::new() } else { cell(line) }
            },
        )
    });
    let columns = COLUMNS.map(|column| column.column);
    let lines = table::align_rows(columns, rows, width.saturating_sub(2));
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

/// The files of an iteration; a path that is too long for the column is shown by its name.
fn file_name(files: &str) -> String {
    let name = files.rsplit('/').next().unwrap_or(files);
    if files.width() > FILES { name.to_owned() } else { files.to_owned() }
}

fn said_cell(line: &IterationLine) -> String {
    match &line.said {
        LastWords::Crew(words) => words.clone(),
        LastWords::Agent(words) => quote_words(words),
        LastWords::Nothing => String::new(),
    }
}

/// Breaks a text between words into lines of at most `columns`, and cuts it after `most` lines. A
/// longer word is broken only in a script without spaces: a path must stay whole to be copied.
pub fn wrap_text(text: &str, columns: usize, most: usize) -> Vec<String> {
    let columns = columns.max(SAID);
    let mut lines = Vec::new();
    for paragraph in clean_text(text).lines() {
        let indent = paragraph.len() - paragraph.trim_start().len();
        let mut line = paragraph[..indent].to_owned();
        for word in paragraph.split_whitespace().flat_map(|word| break_word(word, columns)) {
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
            *last = fit_line(&format!("{last} …"), columns);
        }
    }
    lines
}

/// Breaks the long lines of a text of crew's own between words. The pieces are indented to the last
/// column that begins in the first half of the screen, else to the beginning of the line.
pub fn fold_text(text: &str, columns: usize) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let own = line.len() - line.trim_start().len();
        let words = line.match_indices(|character| character != ' ').map(|(start, _)| start);
        let column = words.filter(|start| *start > own && line[..*start].ends_with("  "));
        let column = column.take_while(|start| line[..*start].width() <= columns / 2).last();
        let (head, rest) = line.split_at(column.unwrap_or(own));
        let hang = head.width() + if column.is_none() { 2 } else { 0 };
        if line.width() <= columns {
            folded += line;
        } else {
            let lines = wrap_text(rest, columns.saturating_sub(hang), usize::MAX);
            folded += head;
            folded += &lines.join(&format!("\n{:hang$}", ""));
        }
        folded.push('\n');
    }
    folded
}

/// A word, in pieces of at most `columns` if it has wide characters.
fn break_word(word: &str, columns: usize) -> Vec<&str> {
    let is_wide = word.chars().any(|character| character.width() == Some(2));
    if is_wide { split_line(word, columns) } else { vec![word] }
}

/// Splits a line into pieces of at most `columns`, wherever they end.
pub fn split_line(line: &str, columns: usize) -> Vec<&str> {
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

/// Adds a row: a name and its value.
pub fn push_row(text: &mut String, name: &str, value: &str) {
    let value = clean_text(value);
    let is_of_a_check = matches!(name, "verify" | "gate" | "until" | "fails" | "tests");
    push_labelled(text, name, &if is_of_a_check { colour::mark_words(&value) } else { value });
}

/// Adds a row whose value may have marks.
fn push_labelled(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {} {value}", colour::mark_quiet(&format!("{name:<7}")));
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
