//! What a person reads before a fleet starts, and with `--dry-run` in full: what it reads, in which
//! order it starts, who works on it, what it may cost, which commands it runs and what it pushes. A
//! command stands whole and with nothing hidden in it, as a person trusts it here. It asks nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::shown;
use crate::engine::fleet::{Fleet, LandingMode, Lease, Remote, SlotCount, TaskId};
use crate::engine::record::{Check, Outcome, Permissions, Run};
use crate::engine::text::{Shown, count, distinct, named};
use crate::engine::usage::Money;
use crate::report::page::{value, wrapped};
use crate::report::table::fitting;

/// How many tasks, overlaps and names are listed unless all are.
const LISTED: usize = 8;
/// Where the values of rows begin, and what belongs to a value.
const INDENT: usize = 10;
const DEEPER: usize = INDENT + 2;
/// The widest name of a task in the order.
const TASK_COLUMNS: usize = 30;

/// Two tasks that do not run at once, and the globs by which they meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetOverlap {
    pub one: TaskId,
    pub other: TaskId,
    pub globs: (String, String),
}

/// A fleet that is about to start.
#[derive(Debug, Clone, Copy)]
pub struct FleetStart<'a> {
    pub fleet: &'a Fleet,
    /// In the order in which they start.
    pub leases: &'a [Lease],
    /// The files of the folder that are not tasks.
    pub not_tasks: &'a [String],
    pub overlaps: &'a [FleetOverlap],
    /// What runs the jobs, as it was typed; `None` for this machine.
    pub engine: Option<&'a str>,
    /// The slots of this machine for which nobody named a number; `None` where somebody did, or
    /// where another engine gives the places.
    pub slots: Option<&'a SlotCount>,
    /// The commands that nobody has trusted yet.
    pub new: &'a BTreeSet<String>,
    /// The refs that are pushed besides the tasks' branches, in full.
    pub refs: &'a [String],
    /// Everything is listed, however long.
    pub is_dry: bool,
}

/// The page, for a terminal of so many columns.
pub fn page(start: &FleetStart<'_>, width: usize) -> String {
    let open = start.leases.iter().filter(|it| it.ending().is_none()).collect();
    let mut page = Page { start, open, width, text: String::new() };
    page.text = wrapped(&terms(start), width, usize::MAX).join("\n") + "\n";
    page.row("reads", &reads(start));
    if let Some(stays) = stays(start) {
        page.row("stays", &stays);
    }
    page.order();
    page.overlaps();
    if let Some(slots) = start.slots {
        page.row("slots", &format!("{}; --slots N sets another number", slots.why));
    }
    page.agents();
    page.row("budget", &budget(start.fleet, &page.open));
    page.commands();
    page.pushes();
    page.text
}

/// The page as far as it is written.
struct Page<'a> {
    start: &'a FleetStart<'a>,
    /// The tasks that are not over, in the order in which they start.
    open: Vec<&'a Lease>,
    width: usize,
    text: String,
}

impl Page<'_> {
    fn row(&mut self, name: &str, said: &str) {
        value(&mut self.text, name, said, self.width);
    }

    fn line(&mut self, indent: usize, said: &str) {
        let _ = writeln!(self.text, "{:indent$}{said}", "");
    }

    /// How many of so many are listed.
    fn kept(&self, all: usize) -> usize {
        if self.start.is_dry { all } else { all.min(LISTED) }
    }

    fn more(&mut self, more: usize) {
        if more > 0 {
            self.line(INDENT, &format!("… {more} more, all with --dry-run"));
        }
    }

    /// The open tasks, each with what comes before it.
    fn order(&mut self) {
        let kept = self.kept(self.open.len());
        let names = self.open.iter().map(|lease| lease.id().to_string().width());
        let columns = names.max().unwrap_or_default().min(TASK_COLUMNS);
        let digits = kept.to_string().len();
        let has_own_limits = limits(&self.open).len() > 1;
        for (index, lease) in self.open[..kept].iter().enumerate() {
            let mut parts =
                vec![format!("{:<columns$}", fitting(&lease.id().to_string(), columns))];
            if has_own_limits {
                parts.push(format!("{:>8}", limit(self.start.fleet, lease)));
            }
            if lease.attempt().is_some() {
                parts.push("runs already".to_owned());
            }
            let after: Vec<&str> = lease.task.after.iter().map(TaskId::as_str).collect();
            if !after.is_empty() {
                parts.push(format!("after {}", after.join(", ")));
            }
            let name = if index == 0 { "order" } else { "" };
            let line = format!("  {name:<7} {:>digits$}  {}", index + 1, parts.join("  "));
            let _ = writeln!(self.text, "{}", fitting(line.trim_end(), self.width));
        }
        self.more(self.open.len() - kept);
    }

    fn overlaps(&mut self) {
        let all = self.start.overlaps;
        let kept = self.kept(all.len());
        for it in &all[..kept] {
            let (one, other) = (shown(&it.globs.0), shown(&it.globs.1));
            let both = if one == other {
                format!("both touch {one}")
            } else {
                format!("{one} and {other}")
            };
            self.row("overlap", &format!("{}, {}: {both}, so one by one", it.one, it.other));
        }
        self.more(all.len() - kept);
    }

    /// Each agent that will run, with the tasks that are its.
    fn agents(&mut self) {
        let of = |lease: &Lease| lease.contract.run.as_ref().map(agent).unwrap_or_default();
        for agent in distinct(self.open.iter().map(|lease| of(lease))) {
            self.row("agent", &agent);
            self.for_tasks(|lease| of(lease) == agent);
        }
    }

    /// Every command that will run, with the tasks whose check it is. A command is never cut and
    /// never wrapped.
    fn commands(&mut self) {
        let fleet = self.start.fleet;
        if let Some(setup) = &fleet.setup {
            self.command("setup", setup, " in each new working tree");
        }
        let mut known: Vec<&Check> = Vec::new();
        for check in self.open.iter().flat_map(|lease| &lease.contract.checks) {
            if !known.iter().any(|it| kind(it) == kind(check)) {
                known.push(check);
            }
        }
        for check in known {
            let lenient = if check.no_worse { " gets no worse" } else { "" };
            self.command(check.role.label(), &check.run, lenient);
            self.for_tasks(|it| it.contract.checks.iter().any(|it| kind(it) == kind(check)));
        }
        let is_bare = |lease: &Lease| lease.contract.checks.is_empty();
        if self.open.iter().any(|lease| is_bare(lease)) {
            self.row("checks", "none: only its agent says when a task is done");
            self.for_tasks(is_bare);
        }
        for check in fleet.land_checks.iter().filter(|_| fleet.landing != LandingMode::No) {
            self.command("land", &check.run, " on main as it will be");
        }
    }

    fn command(&mut self, name: &str, run: &str, remark: &str) {
        let new = if self.start.new.contains(run) { ", not trusted yet" } else { "" };
        let _ = writeln!(self.text, "  {name:<7} `{}`{remark}{new}", Shown(run));
    }

    /// The tasks for which something holds, unless it holds for all.
    fn for_tasks(&mut self, holds: impl Fn(&Lease) -> bool) {
        let tasks = self.open.iter().filter(|lease| holds(lease));
        let tasks: Vec<String> = tasks.map(|lease| lease.id().to_string()).collect();
        if tasks.len() < self.open.len() {
            let said = format!("for {}", some(self.start, &tasks));
            for line in wrapped(&said, self.width.saturating_sub(DEEPER), usize::MAX) {
                self.line(DEEPER, &line);
            }
        }
    }

    /// Every branch and ref that will be pushed: by pattern, or in full for a dry run.
    fn pushes(&mut self) {
        let FleetStart { fleet, refs, is_dry, .. } = *self.start;
        let Some(remote) = &fleet.remote else {
            return self.row("pushes", "nothing. Branches stay here; --push or --land sends them");
        };
        let (name, url) = (shown(&remote.name), shown(&remote.url));
        self.row("pushes", &format!("to {name} ({url}), each iteration:"));
        let branches: Vec<String> = self.open.iter().map(|lease| lease.branch.clone()).collect();
        let mut kinds = vec![(branches, "branches of tasks; your CI runs unless it skips these:")];
        // The pattern of the leases names the others, too.
        for what in if is_dry { &[LEASE, TERMS, TURN][..] } else { &[LEASE] } {
            let refs = refs.iter().filter(|name| memory_in(name) == *what);
            kinds.push((refs.cloned().collect(), what));
        }
        for (names, what) in kinds.into_iter().filter(|(names, _)| !names.is_empty()) {
            self.line(INDENT, what);
            for name in if is_dry { names } else { folders(names) } {
                self.line(DEEPER, &shown(&name));
            }
        }
        if let Some(lands) = lands(fleet, remote) {
            self.line(INDENT, &lands);
        }
    }
}

/// "fleet billing-cleanup: 20 tasks, on this machine, 4 at once, at most $50.00".
fn terms(start: &FleetStart<'_>) -> String {
    let fleet = start.fleet;
    let tasks = count(start.leases.len() as u64, "task");
    let engine = start.engine.map_or_else(|| "this machine".to_owned(), shown);
    let slots = match (fleet.slots, start.slots) {
        (0, Some(slots)) => format!("{} at once", slots.count),
        (0, None) => "as many at once as there are places".to_owned(),
        (slots, _) => format!("{slots} at once"),
    };
    let most = match fleet.max_cost_micros {
        0 => "no limit on its cost".to_owned(),
        micros => format!("at most {}", Money::from_micros(micros)),
    };
    format!("fleet {}: {tasks}, on {engine}, {slots}, {most}", shown(&fleet.name))
}

/// "tasks/*.md (README.md and _notes.md are not tasks)".
fn reads(start: &FleetStart<'_>) -> String {
    let files = format!("{}/*.md", shown(&start.fleet.folder));
    let names: Vec<String> = start.not_tasks.iter().map(|name| shown(name)).collect();
    match &names[..] {
        [] => files,
        [one] => format!("{files} ({one} is not a task)"),
        [one, other] => format!("{files} ({one} and {other} are not tasks)"),
        _ => format!("{files} ({} are not tasks)", some(start, &names)),
    }
}

fn some(start: &FleetStart<'_>, names: &[String]) -> String {
    named(names, if start.is_dry { usize::MAX } else { LISTED })
}

/// What the start leaves alone.
fn stays(start: &FleetStart<'_>) -> Option<String> {
    let ends = || start.leases.iter().filter_map(Lease::ending);
    let undone = ends().filter(|ending| ending.outcome != Outcome::Completed).count();
    let retry = match undone {
        0 => String::new(),
        undone => format!("; --retry takes up the {undone} that did not complete"),
    };
    let ended = ends().count() as u64;
    (ended > 0).then(|| format!("{} that ended already{retry}", count(ended, "task")))
}

/// "claude, model opus, permissions bypass; at a limit codex".
fn agent(run: &Run) -> String {
    let mut said = shown(&run.agent.name);
    if let Some(model) = &run.model {
        let _ = write!(said, ", model {}", shown(model));
    }
    if run.permissions != Permissions::default() {
        let _ = write!(said, ", permissions {}", run.permissions.label());
    }
    if !run.fallback.is_empty() {
        let others: Vec<String> = run.fallback.iter().map(|agent| shown(&agent.name)).collect();
        let _ = write!(said, "; at a limit {}", others.join(", "));
    }
    said
}

/// The different limits on the cost of single tasks.
fn limits(open: &[&Lease]) -> BTreeSet<u64> {
    open.iter().map(|lease| lease.contract.limits.max_cost_micros).collect()
}

/// "$5.00", "a share" of the fleet's money, "no limit".
fn limit(fleet: &Fleet, lease: &Lease) -> String {
    match lease.contract.limits.max_cost_micros {
        0 if fleet.max_cost_micros > 0 => "a share".to_owned(),
        0 => "no limit".to_owned(),
        micros => Money::from_micros(micros).to_string(),
    }
}

fn budget(fleet: &Fleet, open: &[&Lease]) -> String {
    let all = match fleet.max_cost_micros {
        0 => "no limit for all tasks together".to_owned(),
        micros => format!("at most {} for all tasks", Money::from_micros(micros)),
    };
    let each = match (open.first(), limits(open).len()) {
        (None, _) => return all,
        (Some(lease), 1) => match limit(fleet, lease).as_str() {
            "a share" => "an equal share of what is left for each".to_owned(),
            limit => format!("{limit} for each"),
        },
        _ => "each task its own, listed above".to_owned(),
    };
    format!("{all}; {each}")
}

fn kind(check: &Check) -> (&str, &str, bool) {
    (&check.run, check.role.label(), check.no_worse)
}

const LEASE: &str = "leases: who works on what, and how far it is:";
const TERMS: &str = "the fleet's terms and your orders:";
const TURN: &str = "whose turn it is to land:";

/// What a ref is for; no task's name begins with `_`.
fn memory_in(name: &str) -> &'static str {
    match name.rsplit('/').next() {
        Some("_fleet") => TERMS,
        Some("_land") => TURN,
        _ => LEASE,
    }
}

/// The folders of these names: "refs/crew/billing-cleanup/*".
fn folders(names: Vec<String>) -> Vec<String> {
    let folder = |name: String| name.rsplit_once('/').map(|(folder, _)| format!("{folder}/*"));
    distinct(names.into_iter().map(|name| folder(name.clone()).unwrap_or(name)))
}

fn lands(fleet: &Fleet, remote: &Remote) -> Option<String> {
    let base = shown(&fleet.base);
    let base = base.strip_prefix(&format!("{}/", remote.name)).unwrap_or(&base);
    match fleet.landing {
        LandingMode::No => None,
        LandingMode::Main => Some(format!("{base}, when a task's checks pass on it (--land)")),
        LandingMode::Pr => Some(format!("a pull request to {base} for each completed task")),
    }
}

#[cfg(test)]
#[path = "before_tests.rs"]
mod tests;
