//! What a person reads before a fleet starts, and with `--dry-run` in full: what it reads, in which
//! order it starts, who works on it, what it may cost, which commands it runs, what it pushes, and
//! what of that is new to this machine. Five tasks fit a terminal of 24 lines. A command is whole
//! and with nothing hidden in it, because a person trusts it here. It asks nothing.

use minijinja::{Environment, Value, context};

use super::plan::overlap;
use super::record::{FleetRecord, FleetSetup, TaskRecord, TaskState};
use super::step::DescribedTask;
use super::tasks::DescribedFleet;
use crate::engine::fleet::task::LOCAL;
use crate::engine::fleet::{LandingMode, TaskId};
use crate::engine::record::{Check, Outcome, Permissions};
use crate::engine::text::{Shown, clean, distinct, named, one_line};
use crate::engine::usage::Money;
use crate::engine::words::templates;
use crate::parse::settings::trust::TrustRequest;
use crate::report::colour;
use crate::report::page::{value, wrapped};
use crate::report::table::{self, ALWAYS, Column};
use crate::world::slots;

/// The words of the page.
const TEMPLATE: &str = include_str!("plan_page.j2");
/// How many tasks are listed unless all are, and how many names in a row.
const LISTED: usize = 8;
/// How many pairs of tasks are listed that do not run at once.
const OVERLAPS_MAX: usize = 3;
/// How many new things the last row names.
const NEW_MAX: usize = 6;
/// Where the values of rows begin.
const INDENT: usize = 10;
/// The widest name of a task in the order.
const TASK_COLUMNS: usize = 30;
/// The most characters of foreign text in a row; a command is whole.
const TEXT_CHARS: usize = 200;
/// The options that have a row of their own.
const SHOWN_ELSEWHERE: [&str; 9] = [
    "verify",
    "gate",
    "until",
    "no-worse",
    "max-cost",
    "agent",
    "model",
    "permissions",
    "fallback",
];

/// The page, for a terminal of so many columns. `record` is what is known of an earlier start;
/// `is_dry`: every task is listed.
pub fn page(
    described: &DescribedFleet,
    record: Option<&FleetRecord>,
    width: usize,
    is_dry: bool,
) -> String {
    let DescribedFleet { setup, tasks, .. } = described;
    let known = |task: &DescribedTask| record.and_then(|record| record.tasks.get(&task.task.id));
    let ended: Vec<Outcome> = tasks.iter().filter_map(|task| outcome(known(task)?)).collect();
    let open: Vec<&DescribedTask> =
        tasks.iter().filter(|task| known(task).and_then(outcome).is_none()).collect();
    let listed = if is_dry { open.len() } else { open.len().min(LISTED) };
    let rows = Rows { setup, open: &open, width };
    let order = open[..listed].iter().enumerate().map(|(index, task)| {
        let runs = known(task).is_some_and(|task| matches!(task.state, TaskState::Running { .. }));
        let after: Vec<&str> = task.task.after.iter().map(TaskId::as_str).collect();
        let after = (!after.is_empty()).then(|| format!("after {}", after.join(", ")));
        let more = runs.then(|| "runs already".to_owned()).into_iter().chain(after);
        let more = more.collect::<Vec<_>>().join("  ");
        [(index + 1).to_string(), task.task.id.to_string(), more]
    });
    let columns = [
        Column::number(ALWAYS, usize::MAX),
        Column::text(ALWAYS, TASK_COLUMNS),
        Column::rest(ALWAYS, 0),
    ];
    let is_local = setup.executor == LOCAL;
    let counted = (is_local && setup.slots == 0).then(slots::default_count);
    let base = shown(&setup.base);
    let remote = setup.remote.as_ref().map(|remote| format!("{}/", remote.name));
    let values = context! {
        setup, is_dry,
        tasks => tasks.len(),
        executor => (!is_local).then_some(&setup.executor),
        slots => counted.as_ref().map_or(setup.slots, |slots| slots.count),
        slots_why => counted.as_ref().map(|slots| &slots.why),
        not_tasks => described.left_out.iter().map(|name| shown(name)).collect::<Vec<_>>(),
        ended => ended.len(),
        undone => ended.iter().filter(|outcome| **outcome != Outcome::Completed).count(),
        open => open.len(),
        order => table::lines(columns, order, width.saturating_sub(INDENT)),
        overlaps => overlaps(&open),
        most_overlaps => OVERLAPS_MAX,
        agents => rows.agents(),
        commands => rows.commands(),
        include => setup.include.as_deref().map(|it| Shown(it.trim()).to_string().replace("\\n", ", ")),
        onto => remote.and_then(|remote| base.strip_prefix(&remote)).unwrap_or(&base),
        trust => trust(&described.untrusted),
    };
    let template = environment(width);
    template.render_str(TEMPLATE, values).unwrap_or_else(|error| format!("{error:#}"))
}

fn outcome(task: &TaskRecord) -> Option<Outcome> {
    match &task.state {
        TaskState::Ended(ending) => Some(ending.outcome),
        _ => None,
    }
}

/// The filters of the page.
fn environment(width: usize) -> Environment<'static> {
    let mut environment = templates::environment();
    environment.set_keep_trailing_newline(true);
    environment.add_filter("name", |name: &str| format!("{name:<7}"));
    environment.add_filter("shown", shown);
    environment.add_filter("money", |micros: u64| Money::from_micros(micros).to_string());
    environment.add_filter("some", |names: Vec<String>| named(&names, LISTED));
    environment.add_filter("lines", move |text: &str, indent| indented(text, indent, width));
    environment.add_filter("row", move |text: &str, name: &str| row(name, text, width));
    environment
}

/// Foreign text on one line.
fn shown(text: &str) -> String {
    one_line(&clean(text), TEXT_CHARS)
}

fn row(name: &str, text: &str, width: usize) -> String {
    let mut row = String::new();
    value(&mut row, name, &in_a_line(text), width);
    row
}

/// A text in lines that fit.
fn indented(text: &str, indent: usize, width: usize) -> String {
    let lines = wrapped(&in_a_line(text), width.saturating_sub(indent), usize::MAX);
    let lines = lines.iter().map(|line| format!("{:indent$}{line}", ""));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// The lines of a template's text as one.
fn in_a_line(text: &str) -> String {
    text.trim_end().replace("\n;", ";").replace('\n', " ")
}

/// The tasks that do not run at once, and the globs by which they meet; one more than is listed.
fn overlaps(open: &[&DescribedTask]) -> Vec<Value> {
    let touching: Vec<_> = open.iter().filter(|task| !task.task.touches.is_empty()).collect();
    let pairs = touching.iter().enumerate().flat_map(|(at, one)| {
        touching[at + 1..].iter().filter_map(|other| {
            let globs = overlap(&one.task, &other.task)?;
            Some(context! { one => one.task.id, other => other.task.id, globs })
        })
    });
    pairs.take(OVERLAPS_MAX + 1).collect()
}

/// What of the fleet nobody has trusted yet, by its names.
fn trust(untrusted: &[TrustRequest]) -> String {
    if untrusted.is_empty() {
        return "nothing is new: it starts without asking".to_owned();
    }
    let name = |request: &TrustRequest| {
        let what = request.text.split_once("] ").map_or(&*request.text, |(_, what)| what);
        let what = what.split([':', ',', '(']).next().unwrap_or_default();
        shown(what.strip_prefix("task ").unwrap_or(what))
    };
    let names: Vec<String> = untrusted.iter().map(name).collect();
    format!("new, and asked about once: {}", named(&names, NEW_MAX))
}

/// The rows about the tasks that are not over.
struct Rows<'a> {
    setup: &'a FleetSetup,
    open: &'a [&'a DescribedTask],
    width: usize,
}

impl Rows<'_> {
    /// Who works, and the options that have no row of their own.
    fn agents(&self) -> Vec<String> {
        [self.grouped("agent", describe_agent), self.grouped("options", other_options)].concat()
    }

    /// One row for each text, with the tasks that it is of.
    fn grouped(&self, name: &str, text_of: impl Fn(&DescribedTask) -> String) -> Vec<String> {
        let texts: Vec<(String, &DescribedTask)> =
            self.open.iter().map(|task| (text_of(task), *task)).collect();
        let different = distinct(texts.iter().map(|(text, _)| text.clone())).into_iter();
        let rows = different.filter(|text| !text.is_empty()).map(|text| {
            let of = texts.iter().filter(|(its, _)| *its == text).map(|(_, task)| *task);
            self.row(name, &text, &of.collect::<Vec<_>>())
        });
        rows.collect()
    }

    /// Every command that runs, each once.
    fn commands(&self) -> Vec<String> {
        let mut rows = Vec::new();
        for run in &self.setup.setup {
            rows.push(self.row("setup", &format!("`{}` in each new clone", Shown(run)), self.open));
        }
        let mut checks: Vec<(String, &str, Vec<&DescribedTask>)> = Vec::new();
        for task in self.open {
            for check in &task.contract.checks {
                let remark = if check.no_worse { " gets no worse" } else { "" };
                let text = format!("`{}`{remark}", Shown(&check.run));
                let role = check.role.label();
                match checks.iter_mut().find(|(its, of, _)| (&**its, *of) == (&*text, role)) {
                    Some((.., tasks)) => tasks.push(task),
                    None => checks.push((text, role, vec![task])),
                }
            }
        }
        rows.extend(checks.iter().map(|(text, role, tasks)| self.row(role, text, tasks)));
        let unchecked = self.open.iter().filter(|task| task.contract.checks.is_empty());
        let unchecked: Vec<_> = unchecked.copied().collect();
        if !unchecked.is_empty() {
            let what = "none: only its agent says when a task is done";
            rows.push(self.row("checks", what, &unchecked));
        }
        let checks =
            self.setup.land_checks.iter().filter(|_| self.setup.landing != LandingMode::No);
        for check in checks {
            let text = format!("`{}` on main as it will be", Shown(&check.run));
            rows.push(self.row("land", &text, self.open));
        }
        rows
    }

    /// A row with the tasks that it is of, unless it is of all: in its line if that has the room.
    /// The text is never broken.
    fn row(&self, name: &str, text: &str, of: &[&DescribedTask]) -> String {
        let line = format!("  {name:<7} {text}");
        if of.len() == self.open.len() {
            return line + "\n";
        }
        let names: Vec<String> = of.iter().map(|task| task.task.id.to_string()).collect();
        let names = format!("for {}", named(&names, LISTED));
        if colour::width(&line) + 2 + colour::width(&names) <= self.width {
            return format!("{line}  {names}\n");
        }
        format!("{line}\n{}", indented(&names, INDENT + 2, self.width))
    }
}

/// "claude, model opus, permissions bypass, at most $5.00; then codex".
fn describe_agent(task: &DescribedTask) -> String {
    let Some(run) = &task.contract.run else { return String::new() };
    let mut text = shown(&run.agent.name);
    if let Some(model) = &run.model {
        text += &format!(", model {}", shown(model));
    }
    if run.permissions != Permissions::default() {
        text += &format!(", permissions {}", run.permissions.label());
    }
    if task.contract.limits.max_cost_micros > 0 {
        text += &format!(", at most {}", Money::from_micros(task.contract.limits.max_cost_micros));
    }
    let others: Vec<String> = run.fallback.iter().map(|agent| shown(&agent.name)).collect();
    if others.is_empty() { text } else { format!("{text}; then {}", others.join(", ")) }
}

/// The options of a task that have no row of their own, word for word.
fn other_options(task: &DescribedTask) -> String {
    let is_other = |word: &&String| {
        let name = word.split(" = ").next().unwrap_or_default();
        !SHOWN_ELSEWHERE.contains(&name)
    };
    let words: Vec<String> = task.task.words.iter().filter(is_other).cloned().collect();
    Shown(&words.join(", ")).to_string()
}

#[cfg(test)]
#[path = "plan_page_tests.rs"]
mod tests;
