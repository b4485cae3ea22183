//! The page that the user reads before a fleet starts, and with `--dry-run` in full: what the fleet
//! reads, which task starts when, who works on it, what it may cost, which commands it runs, what
//! it pushes, and which of that is new to this machine. Five tasks fit on a terminal of 24 lines.
//! Commands are shown whole, with nothing hidden, because a person trusts them here. The page asks
//! nothing.

use std::collections::BTreeSet;

use minijinja::{Environment, Value, context};

use crate::fleet::plan::find_overlap;
use crate::fleet::record::{FleetRecord, FleetTerms, LOCAL, TaskEnding, TaskRecord};
use crate::fleet::step::DescribedTask;
use crate::fleet::tasks::DescribedFleet;
use crate::fleet::tasks::trust::planted_commands;
use crate::report::colour;
use crate::report::layout::wrap_text;
use crate::report::layout::{self, ALWAYS, Column};
use crate::report::page::push_value;
use engine::fleet::{LandingMode, TaskId};
use engine::record::{Check, Permissions};
use engine::text::templates;
use engine::text::{EscapedLine, clean_text, is_word_of, join_first_names, one_line};
use engine::usage::Money;
use world::slots;

/// The template of the page.
const TEMPLATE: &str = include_str!("plan_page.j2");
/// How many tasks are listed unless all are, and how many names a row has.
const LISTED: usize = 8;
/// The maximum number of listed pairs of tasks that do not run at once.
const OVERLAPS_MAX: usize = 3;
/// The maximum number of new items that the last row names.
const NEW_MAX: usize = 6;
/// The column where the values of rows begin.
const INDENT: usize = 10;
/// The maximum width of a task's name in the list.
const TASK_COLUMNS: usize = 30;
/// The maximum number of characters of foreign text in a row; commands are shown whole.
const TEXT_CHARS: usize = 200;
/// The options with their own row.
const SHOWN_ELSEWHERE: &str =
    "verify gate until no-worse max-cost agent model permissions fallback";

/// Renders the page for a terminal with this many columns. `record` is that of an earlier start;
/// `is_dry` lists every task.
pub fn render_plan(
    described: &DescribedFleet,
    record: Option<&FleetRecord>,
    width: usize,
    is_dry: bool,
) -> String {
    let DescribedFleet { terms, tasks, .. } = described;
    let known = |task: &DescribedTask| record.and_then(|record| record.task(&task.task.id));
    let ending = |task: &&DescribedTask| known(task).and_then(TaskRecord::ending);
    let ended: Vec<&TaskEnding> = tasks.iter().filter_map(|task| ending(&task)).collect();
    let open = sort_by_start(tasks.iter().filter(|task| ending(task).is_none()).collect());
    let listed = if is_dry { open.len() } else { open.len().min(LISTED) };
    let starts = open[..listed].iter().enumerate().map(|(index, task)| {
        let after: Vec<&str> = task.task.after.iter().map(TaskId::as_str).collect();
        let runs =
            if known(task).is_some_and(TaskRecord::is_running) { "runs already  " } else { "" };
        let after =
            if after.is_empty() { String::new() } else { format!("after {}", after.join(", ")) };
        [(index + 1).to_string(), task.task.id.to_string(), format!("{runs}{after}")]
    });
    let columns = [
        Column::number(ALWAYS, usize::MAX),
        Column::text(ALWAYS, TASK_COLUMNS),
        Column::rest(ALWAYS, 0),
    ];
    let is_local = terms.executor == LOCAL;
    let counted = (is_local && terms.limits.slots == 0).then(slots::default_count);
    let base = show_text(&terms.base);
    let remote = terms.remote.as_ref().map(|remote| format!("{}/", remote.name));
    let values = context! {
        terms, is_dry,
        tasks => tasks.len(),
        executor => (!is_local).then_some(&terms.executor),
        slots => counted.as_ref().map_or(terms.limits.slots, |slots| slots.count),
        slots_why => counted.as_ref().map(|slots| &slots.why),
        most_names => LISTED,
        not_tasks => described.left_out.iter().map(|name| show_text(name)).collect::<Vec<_>>(),
        ended => ended.len(),
        undone => ended.iter().filter(|ending| !ending.is_completed()).count(),
        open => open.len(),
        starts => layout::align_rows(columns, starts, width.saturating_sub(INDENT)),
        overlaps => list_overlaps(&open),
        most_overlaps => OVERLAPS_MAX,
        rows => setup_rows(terms, tasks, width),
        include => terms.clones.include.as_deref().map(|text| EscapedLine(text.trim()).to_string().replace("\\n", ", ")),
        planted => planted_commands(terms, record.map(|record| &record.terms)),
        keeps => terms.land_keep.iter().map(|glob| show_text(glob)).collect::<Vec<_>>(),
        onto => remote.and_then(|remote| base.strip_prefix(&remote)).unwrap_or(&base),
        new => described.untrusted.iter().map(|request| show_text(&request.subject.to_string())).collect::<Vec<_>>(),
        most_new => NEW_MAX,
    };
    let template = template_environment(width);
    template.render_str(TEMPLATE, values).unwrap_or_else(|error| format!("{error:#}"))
}

/// Sorts the tasks, each after those that it waits for.
fn sort_by_start(mut open: Vec<&DescribedTask>) -> Vec<&DescribedTask> {
    let mut ids: BTreeSet<&TaskId> = open.iter().map(|task| &task.task.id).collect();
    let mut sorted = Vec::new();
    while !open.is_empty() {
        let starts = |task: &&DescribedTask| !task.task.after.iter().any(|id| ids.contains(id));
        // No task waits for itself, or a start would have refused it.
        let task = open.remove(open.iter().position(starts).unwrap_or_default());
        ids.remove(&task.task.id);
        sorted.push(task);
    }
    sorted
}

/// Builds the template environment with the page's filters.
fn template_environment(width: usize) -> Environment<'static> {
    let mut environment = templates::new_environment();
    environment.set_keep_trailing_newline(true);
    environment.add_filter("name", |name: &str| format!("{name:<7}"));
    environment.add_filter("shown", show_text);
    environment.add_filter("money", |micros: u64| Money::from_micros(micros).to_string());
    environment.add_filter("lines", move |text: &str, indent| indent_text(text, indent, width));
    environment.add_filter("row", move |text: &str, name: &str| render_row(name, text, width));
    environment
}

/// Renders foreign text on one line.
fn show_text(text: &str) -> String {
    one_line(&clean_text(text), TEXT_CHARS)
}

fn render_row(name: &str, text: &str, width: usize) -> String {
    let mut row = String::new();
    push_value(&mut row, name, &in_a_line(text), width);
    row
}

/// Wraps and indents a text.
fn indent_text(text: &str, indent: usize, width: usize) -> String {
    let lines = wrap_text(&in_a_line(text), width.saturating_sub(indent), usize::MAX);
    let lines = lines.iter().map(|line| format!("{:indent$}{line}", ""));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Joins the lines of a rendered template.
fn in_a_line(text: &str) -> String {
    text.trim_end().replace("\n;", ";").replace('\n', " ")
}

/// Lists the tasks that do not run at once, with the globs that overlap; one more than is shown.
fn list_overlaps(open: &[&DescribedTask]) -> Vec<Value> {
    let touching: Vec<_> = open.iter().filter(|task| !task.task.touches.is_empty()).collect();
    let pairs = touching.iter().enumerate().flat_map(|(at, one)| {
        touching[at + 1..].iter().filter_map(|other| {
            let globs = find_overlap(&one.task, &other.task)?;
            Some(context! { one => one.task.id, other => other.task.id, globs })
        })
    });
    pairs.take(OVERLAPS_MAX + 1).collect()
}

/// A row's name and its text.
type Row = (&'static str, String);

/// The agents of the tasks, with their options and commands. Each item appears once, with its tasks
/// unless it applies to all. Ended tasks are included, because the user may resume them, and
/// nothing asks for trust then.
fn setup_rows(terms: &FleetTerms, tasks: &[DescribedTask], width: usize) -> Vec<String> {
    let mut rows: Vec<(Row, Vec<String>)> = Vec::new();
    for task in tasks {
        let id = task.task.id.to_string();
        for row in rows_of(terms, task) {
            match rows.iter_mut().find(|(known, _)| *known == row) {
                // A task may have the same check twice.
                Some((_, of)) if of.last() == Some(&id) => {}
                Some((_, of)) => of.push(id.clone()),
                None => rows.push((row, vec![id.clone()])),
            }
        }
    }
    rows.sort_by_key(|((name, _), _)| match *name {
        "agent" => 0,
        "options" => 1,
        "land" => 3,
        _ => 2,
    });
    rows.iter().map(|(row, of)| row_of(row, of, of.len() == tasks.len(), width)).collect()
}

fn rows_of(terms: &FleetTerms, task: &DescribedTask) -> Vec<Row> {
    let checks = &task.contract.checks;
    let mut rows = vec![("agent", describe_agent(task)), ("options", other_options(task))];
    rows.extend(
        terms
            .clones
            .setup
            .iter()
            .map(|run| ("setup", format!("`{}` in each new clone", EscapedLine(run)))),
    );
    rows.extend(checks.iter().map(|check| {
        let remark = if check.no_worse { " gets no worse" } else { "" };
        (check.role.label(), format!("`{}`{remark}", EscapedLine(&check.run)))
    }));
    if checks.is_empty() {
        rows.push(("checks", "none: only its agent says when a task is done".to_owned()));
    }
    let land: &[Check] = if terms.landing == LandingMode::No { &[] } else { &terms.land_checks };
    rows.extend(
        land.iter()
            .map(|check| ("land", format!("`{}` on main as it will be", EscapedLine(&check.run)))),
    );
    rows.retain(|(_, text)| !text.is_empty());
    rows
}

/// Renders a row with the tasks that it applies to, on the same line if there is room. The text is
/// never broken.
fn row_of((name, text): &Row, of: &[String], is_of_all: bool, width: usize) -> String {
    let line = format!("  {name:<7} {text}");
    if is_of_all {
        return line + "\n";
    }
    let names = format!("for {}", join_first_names(of, LISTED));
    if colour::visible_width(&line) + 2 + colour::visible_width(&names) <= width {
        return format!("{line}  {names}\n");
    }
    format!("{line}\n{}", indent_text(&names, INDENT + 2, width))
}

/// Renders the agents of a task: "claude, model opus, permissions bypass, at most $5.00; then
/// codex".
fn describe_agent(task: &DescribedTask) -> String {
    let Some(run) = &task.contract.run else { return String::new() };
    let cost = Money::from_micros(task.contract.limits.max_cost_micros);
    let mut text = show_text(&run.agent.name);
    if let Some(model) = &run.model {
        text.extend([", model ", &show_text(model)]);
    }
    if run.permissions != Permissions::default() {
        text.extend([", permissions ", run.permissions.label()]);
    }
    if cost != Money::default() {
        text.extend([", at most ", &cost.to_string()]);
    }
    for (at, agent) in run.fallback.iter().enumerate() {
        text += if at == 0 { "; then " } else { ", " };
        text += &show_text(&agent.name);
    }
    text
}

/// The options of a task without their own row, word for word.
fn other_options(task: &DescribedTask) -> String {
    let words = task.task.words.iter().map(String::as_str);
    let words = words.filter(|word| {
        let name = word.split(" = ").next().unwrap_or_default();
        !is_word_of(SHOWN_ELSEWHERE, name)
    });
    EscapedLine(&words.collect::<Vec<_>>().join(", ")).to_string()
}

#[cfg(test)]
#[path = "plan_page_tests.rs"]
mod tests;
