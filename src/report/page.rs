//! The page of a loop as text, for a terminal of any width and for a file, and that of a dry run:
//! the agents that would get the prompt, its size, and the prompt itself, byte for byte.

use super::colour::{self, STRONG, mark_text};
use super::layout::{self, ALWAYS, CellColour, Column, Reading, wrap_text};
use super::words::group_digits;
use engine::doctor::shell_word;
use engine::evidence::said::PromptSize;
use engine::record::Loop;
use engine::text::{
    clean_text, clip_line, clock_time, count, format_age, format_briefly, quote_words,
};
use engine::view::{Fact, IterationLine, LastWords, NextStep, Page};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The column at which the values of the rows begin.
const INDENT: usize = 10;
/// The maximum number of columns of the task.
const TASK_COLUMNS: usize = 100;
/// The maximum number of lines in the task.
const TASK_LINES: usize = 3;
/// The widest column of files.
const FILES: usize = 22;
/// Below this width times and costs are left out.
const NARROW: usize = 60;
/// The fewest columns in which an agent's words are shown.
const SAID: usize = 12;
/// The age from which an end says how long ago it was, in milliseconds.
const RECENT_MS: i64 = 3_600_000;

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
    let lines = layout::align_rows(columns, rows, width.saturating_sub(2));
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

/// The maximum number of characters of a task on its line.
const TASK_CHARS_MAX: usize = 80;

/// Renders the page. `commands` are the program and the arguments of each agent, the loop's own
/// first; an argument that is the prompt itself is shown as `PROMPT`.
pub fn dry_run_page(
    subject: &Loop,
    commands: &[(&str, &[String])],
    prompt: &str,
    budget: u64,
) -> String {
    let what = match subject.procedure() {
        Some(name) => format!("Procedure: {name}"),
        None => format!("Task: {}", clip_line(&subject.contract.task, TASK_CHARS_MAX)),
    };
    let size = PromptSize::of_prompt(prompt, budget);
    let count = if size.budget == 0 {
        format!("about {}, no budget", group_digits(size.tokens))
    } else {
        let over = if size.is_over() { " (over the budget)" } else { "" };
        format!("{} / {} budget{over}", group_digits(size.tokens), group_digits(size.budget))
    };
    let mut text = format!("[DRY RUN] {what}\n");
    for (place, (program, arguments)) in commands.iter().enumerate() {
        let when = if place == 0 { "Would execute with" } else { "While that is at a limit" };
        let _ = writeln!(text, "[DRY RUN] {when}: {}", command_line(program, arguments, prompt));
    }
    let _ = write!(text, "[DRY RUN] Token count: {count}\n\n{prompt}\n");
    text
}

/// A command line, quoted for a shell.
fn command_line(program: &str, arguments: &[String], prompt: &str) -> String {
    let mut words = vec![shell_word(program)];
    for argument in arguments {
        words.push(if argument == prompt { "PROMPT".to_owned() } else { shell_word(argument) });
    }
    words.join(" ")
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;

#[cfg(test)]
mod dry_run_tests {
    use insta::assert_snapshot;

    use super::*;
    use engine::fixture::a_loop;

    #[test]
    fn a_dry_run_shows_the_agents_the_size_and_the_prompt() {
        let arguments = ["-p", "--output-format", "stream-json", "two words"].map(str::to_owned);
        let prompt = format!("# Loop Iteration\n\n{}", "word".repeat(4230));
        let codex = ["exec".to_owned()];
        let commands = [("claude", &arguments[..]), ("codex", &codex)];
        let shown = dry_run_page(&a_loop(), &commands, &prompt, 100_000);
        assert_snapshot!(shown.replace(&"word".repeat(4230), "…"), @"
        [DRY RUN] Task: Build the todo API
        [DRY RUN] Would execute with: claude -p --output-format stream-json 'two words'
        [DRY RUN] While that is at a limit: codex exec
        [DRY RUN] Token count: 4,235 / 100,000 budget

        # Loop Iteration

        …
        ");
        let asked = ["exec".to_owned(), prompt.clone()];
        let shown = dry_run_page(&a_loop(), &[("co'dex", &asked)], &prompt, 1000);
        assert!(shown.contains("[DRY RUN] Would execute with: 'co'\\''dex' exec PROMPT\n"));
        assert!(
            shown.contains("[DRY RUN] Token count: 4,235 / 1,000 budget (over the budget)\n\n# ")
        );
        assert!(shown.ends_with(&format!("\n\n{prompt}\n")));
    }
}
