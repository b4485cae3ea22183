//! What a person reads before a fleet starts, and with `--dry-run` in full: what it reads, in which
//! order it starts, who works on it, what it may cost, which commands it runs and what it pushes. A
//! command stands whole and with nothing hidden in it, as a person trusts it here. It asks nothing.

use minijinja::{Environment, Value, context};

use super::shown;
use crate::engine::fleet::{Fleet, LandingMode, Lease, SlotCount, TaskId, overlap};
use crate::engine::record::{Check, Outcome, Permissions, Run};
use crate::engine::text::{Shown, distinct, named};
use crate::engine::usage::Money;
use crate::engine::words::templates;
use crate::report::page::{value, wrapped};
use crate::report::table::{self, ALWAYS, Column};

/// The words of the page.
const TEMPLATE: &str = include_str!("before.j2");
/// How many tasks, overlaps and names are listed unless all are.
const LISTED: usize = 8;
/// Where the values of rows begin.
const INDENT: usize = 10;
/// The widest name of a task in the order.
const TASK_COLUMNS: usize = 30;

/// A fleet that is about to start.
#[derive(Debug, Clone, Copy)]
pub struct FleetStart<'a> {
    pub fleet: &'a Fleet,
    /// In the order in which they start.
    pub leases: &'a [Lease],
    /// The files of the folder that are not tasks.
    pub not_tasks: &'a [String],
    /// The slots of this machine for which nobody named a number; `None` where somebody did, or
    /// where another executor gives the places.
    pub slots: Option<&'a SlotCount>,
    /// Everything is listed, however long.
    pub is_dry: bool,
}

/// The page, for a terminal of so many columns.
pub fn page(start: &FleetStart<'_>, width: usize) -> String {
    let FleetStart { fleet, leases, is_dry, .. } = *start;
    let most = if is_dry { usize::MAX } else { LISTED };
    let open: Vec<&Lease> = leases.iter().filter(|it| it.ending().is_none()).collect();
    let names = |holds: &dyn Fn(&Lease) -> bool| -> Vec<String> {
        open.iter().filter(|it| holds(it)).map(|lease| lease.id().to_string()).collect()
    };
    let agent_of = |lease: &Lease| lease.contract.run.as_ref().map(agent).unwrap_or_default();
    let agents = distinct(open.iter().map(|lease| agent_of(lease))).into_iter().map(|words| {
        context! { tasks => names(&|lease| agent_of(lease) == words), words }
    });
    let mut checks: Vec<&Check> = Vec::new();
    for check in open.iter().flat_map(|lease| &lease.contract.checks) {
        if !checks.iter().any(|known| kind(known) == kind(check)) {
            checks.push(check);
        }
    }
    let setup = fleet.setup.iter().map(|run| {
        let (name, remark) = ("setup", " in each new working tree");
        context! { name, run, remark, tasks => names(&|_| true) }
    });
    let checks = checks.iter().map(|check| {
        let is_its = |lease: &Lease| lease.contract.checks.iter().any(|it| kind(it) == kind(check));
        let remark = if check.no_worse { " gets no worse" } else { "" };
        context! { name => check.role.label(), run => check.run, remark, tasks => names(&is_its) }
    });
    let ended: Vec<Outcome> = leases.iter().filter_map(Lease::outcome).collect();
    let lease = |name: &str| fleet.remote.as_ref().map(|_| fleet.lease(name));
    let turn = if fleet.landing == LandingMode::Main { lease("_land") } else { None };
    let overlaps = overlaps(&open);
    let base = shown(&fleet.base);
    let remote = fleet.remote.as_ref().map(|remote| format!("{}/", remote.name));
    let onto = remote.and_then(|remote| base.strip_prefix(&remote)).unwrap_or(&base);
    let values = context! {
        fleet, is_dry, onto,
        tasks => leases.len(),
        open => open.len(),
        max_cost => fleet.max_cost_micros,
        engine => (!fleet.is_local()).then_some(&fleet.engine),
        slots => start.slots,
        not_tasks => start.not_tasks.iter().map(|name| shown(name)).collect::<Vec<_>>(),
        ended => ended.len(),
        undone => ended.iter().filter(|outcome| **outcome != Outcome::Completed).count(),
        order => order(fleet, &open[..most.min(open.len())], &limits(fleet, &open), width),
        listed => overlaps.len().min(most),
        overlaps,
        agents => agents.collect::<Vec<_>>(),
        limits => limits(fleet, &open),
        checks => setup.chain(checks).collect::<Vec<_>>(),
        unchecked => names(&|lease| lease.contract.checks.is_empty()),
        branches => open.iter().map(|lease| &lease.branch).collect::<Vec<_>>(),
        leases => leases.iter().filter_map(|task| lease(task.id().as_str())).collect::<Vec<_>>(),
        terms => Vec::from_iter(lease("_fleet")),
        turn => Vec::from_iter(turn),
    };
    let template = environment(most, open.len(), width);
    template.render_str(TEMPLATE, values).unwrap_or_else(|error| format!("{error:#}"))
}

/// The filters of the page: at most so many names are listed, and of what holds for all tasks, of
/// which there are so many, nothing is said.
fn environment(most: usize, tasks: usize, width: usize) -> Environment<'static> {
    let mut environment = templates::environment();
    environment.set_keep_trailing_newline(true);
    environment.add_filter("name", |name: &str| format!("{name:<7}"));
    environment.add_filter("shown", |text: &str| shown(text));
    environment.add_filter("whole", |run: &str| Shown(run).to_string());
    environment.add_filter("money", |micros: u64| Money::from_micros(micros).to_string());
    environment.add_filter("some", move |names: Vec<String>| named(&names, most));
    environment.add_filter("folders", folders);
    environment.add_filter("for_tasks", move |names: Vec<String>| match names.len() {
        all if all == tasks => String::new(),
        _ => indented(&format!("for {}", named(&names, most)), INDENT + 2, width),
    });
    environment.add_filter("lines", move |text: &str, indent| indented(text, indent, width));
    environment.add_filter("row", move |text: &str, name: &str| {
        let mut row = String::new();
        value(&mut row, name, &in_a_line(text), width);
        row
    });
    environment
}

/// A text in lines that fit.
fn indented(text: &str, indent: usize, width: usize) -> String {
    let lines = wrapped(&in_a_line(text), width.saturating_sub(indent), usize::MAX);
    let lines = lines.iter().map(|line| format!("{:indent$}{line}", ""));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// The lines of a template's text as one.
fn in_a_line(text: &str) -> String {
    text.trim_end().replace('\n', " ")
}

/// The tasks in the order in which they start, each with what comes before it.
fn order(fleet: &Fleet, open: &[&Lease], limits: &[String], width: usize) -> Vec<String> {
    let columns = [
        Column::number(ALWAYS, usize::MAX),
        Column::text(ALWAYS, TASK_COLUMNS),
        Column::number(ALWAYS, usize::MAX),
        Column::rest(ALWAYS, 0),
    ];
    let rows = open.iter().enumerate().map(|(index, lease)| {
        let own = if limits.len() > 1 { limit(fleet, lease) } else { String::new() };
        let runs = lease.attempt().map(|_| "runs already".to_owned());
        let after: Vec<&str> = lease.task.after.iter().map(TaskId::as_str).collect();
        let after = (!after.is_empty()).then(|| format!("after {}", after.join(", ")));
        let more = runs.into_iter().chain(after).collect::<Vec<_>>().join("  ");
        [(index + 1).to_string(), lease.id().to_string(), own, more]
    });
    table::lines(columns, rows, width.saturating_sub(INDENT))
}

/// The tasks that do not run at once, and the globs by which they meet.
fn overlaps(open: &[&Lease]) -> Vec<Value> {
    let pairs = open.iter().enumerate().flat_map(|(at, one)| {
        open[at + 1..].iter().filter_map(move |other| {
            let globs = overlap(&one.task, &other.task)?;
            Some(context! { one => one.id(), other => other.id(), globs })
        })
    });
    pairs.collect()
}

/// "claude, model opus, permissions bypass; at a limit codex".
fn agent(run: &Run) -> String {
    let model = run.model.as_ref().map(|model| format!(", model {}", shown(model)));
    let permissions = (run.permissions != Permissions::default())
        .then(|| format!(", permissions {}", run.permissions.label()));
    let others: Vec<String> = run.fallback.iter().map(|agent| shown(&agent.name)).collect();
    let others = (!others.is_empty()).then(|| format!("; at a limit {}", others.join(", ")));
    let parts = [Some(shown(&run.agent.name)), model, permissions, others];
    parts.into_iter().flatten().collect()
}

/// The different limits on the cost of single tasks.
fn limits(fleet: &Fleet, open: &[&Lease]) -> Vec<String> {
    distinct(open.iter().map(|lease| limit(fleet, lease)))
}

/// "$5.00", "a share" of the fleet's money, "no limit".
fn limit(fleet: &Fleet, lease: &Lease) -> String {
    match lease.contract.limits.max_cost_micros {
        0 if fleet.max_cost_micros > 0 => "a share".to_owned(),
        0 => "no limit".to_owned(),
        micros => Money::from_micros(micros).to_string(),
    }
}

fn kind(check: &Check) -> (&str, &str, bool) {
    (&check.run, check.role.label(), check.no_worse)
}

/// The folders of these names: "refs/crew/billing-cleanup/*".
fn folders(names: Vec<String>) -> Vec<String> {
    let folder = |name: String| name.rsplit_once('/').map(|(folder, _)| format!("{folder}/*"));
    distinct(names.into_iter().map(|name| folder(name.clone()).unwrap_or(name)))
}

#[cfg(test)]
#[path = "before_tests.rs"]
mod tests;
