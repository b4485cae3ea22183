//! How a fleet stands, as a page or as a board that fits a screen: the whole in the first lines,
//! then what needs a person, what runs, what waits and for what, and what is over. What has no room
//! is left out from below, and is counted.

use minijinja::context;
use unicode_width::UnicodeWidthStr;

use super::{COMMIT_CHARS, counted, render, rests, shown};
use crate::engine::fleet::{
    Attempt, FleetRequest, Landed, Lease, Standing, StandingCounts, StandingGroup, StandingNews,
    StandingRow, WaitsFor,
};
use crate::engine::record::Proof;
use crate::engine::text::{ago, brief, clean, start, with_reason};
use crate::engine::usage::{Money, Usage};
use crate::report::colour::{self, STRONG, marked, quiet, words};
use crate::report::page::{Reading, wrapped};
use crate::report::table::{self, ALWAYS, CellColour, Column, fitting};

/// The most lines of a group on a page.
const ROWS_MAX: usize = 20;
/// The columns of the reason for which a task was cancelled.
const REASON_COLUMNS: usize = 40;
/// The widest column of tasks.
const TASK_COLUMNS: usize = 24;
/// The fewest columns that are worth a task's news.
const NEWS: usize = 8;
/// Below this width there is no time, cost or place.
const NARROW: usize = 60;
/// Time that is left is told in steps of ten minutes from an hour on, else of one, in milliseconds.
const HOUR_MS: u64 = 3_600_000;
const LONG_STEP_MS: u64 = 600_000;
const STEP_MS: u64 = 60_000;

/// When and where a fleet is looked at.
#[derive(Debug, Clone, Copy)]
pub struct FleetReading<'a> {
    pub reading: Reading,
    /// This machine, which no row names.
    pub host: &'a str,
}

/// The page.
pub fn page(standing: &Standing<'_>, at: FleetReading<'_>) -> String {
    lines(standing, at, ROWS_MAX, usize::MAX).join("\n") + "\n"
}

/// A screen of at most `rows` lines, none wider than the terminal. `unseen`: why it is that of an
/// earlier look.
pub fn board(
    standing: &Standing<'_>,
    at: FleetReading<'_>,
    rows: usize,
    unseen: Option<&str>,
) -> Vec<String> {
    let unseen =
        unseen.map(|why| labelled("unseen", &format!("{}; it is asked again", shown(why))));
    let room = rows.saturating_sub(usize::from(unseen.is_some()));
    let mut lines = lines(standing, at, room, room);
    lines.truncate(room);
    lines.extend(unseen.filter(|_| rows > 0));
    lines.into_iter().map(|line| fitting(&line, at.reading.width)).collect()
}

/// All lines; a group has at most `most`, and all of them together, if they can, `rows`.
fn lines(standing: &Standing<'_>, at: FleetReading<'_>, most: usize, rows: usize) -> Vec<String> {
    let mut lines = head(standing, at.reading.width);
    let next = standing.next.as_ref().map(|command| labelled("next", command));
    let below = if next.is_some() { 2 } else { 0 };
    for group in StandingGroup::ALL {
        let room = rows.saturating_sub(lines.len() + 1 + below);
        let block = block(standing, group, at, most.min(room));
        if !block.is_empty() {
            lines.push(String::new());
            lines.extend(block);
        }
    }
    lines.extend(next.into_iter().flat_map(|next| [String::new(), next]));
    lines
}

/// How a task that has not ended stands, in one line: "waits: after vat", "runs on node7: first
/// iteration".
pub fn stands(standing: &Standing<'_>, row: &StandingRow<'_>, at: FleetReading<'_>) -> String {
    let word = match row.lease.and_then(Lease::attempt) {
        None => row.what.to_owned(),
        Some(Attempt { host, .. }) if host == at.host => "runs".to_owned(),
        Some(Attempt { host, .. }) => format!("runs on {}", shown(host)),
    };
    with_reason(&word, &news(standing, row, at))
}

fn labelled(name: &str, value: &str) -> String {
    format!("  {} {}", quiet(&format!("{name:<9}")), clean(value))
}

/// The counts beside the name, and the money and the time below them; all below the name where the
/// terminal is narrow.
fn head(standing: &Standing<'_>, width: usize) -> Vec<String> {
    let order = match standing.order {
        Some(FleetRequest::Pause) => ", paused",
        Some(FleetRequest::Cancel) => ", cancelled",
        None => "",
    };
    let name = format!("fleet {}{order}", shown(&standing.name));
    if standing.counts.total == 0 {
        return vec![fitting(&format!("{name}    no tasks"), width)];
    }
    let left = standing.left_ms.map(|ms| format!("about {} left", brief(rounded(ms))));
    // Nights between two runs count, so it is no time of work.
    let elapsed = match (brief(standing.elapsed_ms), &standing.counts) {
        (all, StandingCounts { running: 0, waiting: 0, .. }) => all,
        (so_far, _) => format!("begun {so_far} ago"),
    };
    let used = [cost(standing), Some(elapsed), left];
    let used = used.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let counts = counts(standing);
    let column = name.width() + 4;
    let beside = counts.join("    ");
    if column + beside.width().max(used.width()) <= width {
        let name = marked(STRONG, &name);
        return vec![format!("{name}    {}", words(&beside)), format!("{:column$}{used}", "")];
    }
    let mut lines = vec![marked(STRONG, &fitting(&name, width))];
    for text in [counts.join(" · "), used] {
        let below = wrapped(&text, width.saturating_sub(2), usize::MAX);
        lines.extend(below.iter().map(|line| format!("  {}", words(line))));
    }
    lines
}

/// "12 of 20 landed", "4 run", "2 wait", "1 needs you".
fn counts(standing: &Standing<'_>) -> Vec<String> {
    let values = context! { counts => standing.counts, landing => standing.landing };
    render("counts.j2", &values).lines().map(str::to_owned).collect()
}

/// "$18.20 of $50.00", "unknown of $50.00"; `None` where nothing is known and nothing limits it.
fn cost(standing: &Standing<'_>) -> Option<String> {
    let is_limited = standing.max_cost > Money::default();
    let spent = standing.spent.cost_text(is_limited);
    if !is_limited {
        return spent;
    }
    let is_unknown = standing.spent.is_lower_bound();
    let none = || if is_unknown { "unknown".to_owned() } else { Money::default().to_string() };
    Some(format!("{} of {}", spent.unwrap_or_else(none), standing.max_cost))
}

fn rounded(ms: u64) -> u64 {
    let step = if ms < HOUR_MS { STEP_MS } else { LONG_STEP_MS };
    ms.div_ceil(step).saturating_mul(step)
}

/// The lines of a group, at most `most` of them.
fn block(
    standing: &Standing<'_>,
    group: StandingGroup,
    at: FleetReading<'_>,
    most: usize,
) -> Vec<String> {
    let rows: Vec<&StandingRow<'_>> =
        standing.rows.iter().filter(|row| row.group == group).collect();
    if matches!(group, StandingGroup::Done | StandingGroup::Cancelled) {
        let words = ["landed", "requested", "completed", "cancelled"];
        let lines = words.map(|word| over(standing, &rows, word, at.reading.width));
        return lines.into_iter().flatten().take(most).collect();
    }
    if most == 0 {
        return Vec::new();
    }
    let kept = if rows.len() > most { most - 1 } else { rows.len() };
    let mut lines = table(standing, &rows[..kept], at);
    if kept < rows.len() {
        lines.push(format!("  … {} more", rows.len() - kept));
    }
    lines
}

/// "landed    user-model, addresses, … 8 more    main 4f2c9d1": what ended so, and where the newest
/// of it is. `None` if nothing did.
fn over(
    standing: &Standing<'_>,
    rows: &[&StandingRow<'_>],
    word: &str,
    width: usize,
) -> Option<String> {
    let of_it = rows.iter().filter(|row| row.what == word);
    let rows: Vec<_> = of_it.filter_map(|row| Some((row, row.lease?))).collect();
    let (_, first) = rows.first()?;
    let base = shown(&standing.base);
    let place = match first.landed() {
        Some(Landed::Main(Some(commit))) => {
            format!("{base} {}", start(&shown(commit), COMMIT_CHARS))
        }
        Some(Landed::Main(None)) => base,
        // Without an iteration it may have no branch.
        _ if word == "cancelled" && rows.iter().all(|(row, _)| row.iteration == 0) => String::new(),
        _ => {
            let folder = first.branch.rsplit_once('/').map(|(folder, _)| folder);
            folder.map_or_else(String::new, |folder| format!("on {}/*", shown(folder)))
        }
    };
    let name = |(row, lease): &(&&StandingRow<'_>, &Lease)| {
        let reason = match &row.news {
            Some(StandingNews::Why(why)) => why.split_once(": ").map(|(_, reason)| reason),
            _ => None,
        };
        let proof = lease.ending().and_then(|ending| ending.proof);
        let claimed = if proof == Some(Proof::Claimed) { " (claimed)" } else { "" };
        match reason {
            Some(reason) => format!("{} ({})", row.task, fitting(&shown(reason), REASON_COLUMNS)),
            None => format!("{}{claimed}", row.task),
        }
    };
    let line = |kept: usize| {
        let names = rows[..kept].iter().map(name);
        let more = (kept < rows.len()).then(|| format!("… {} more", rows.len() - kept));
        let names = names.chain(more).collect::<Vec<_>>().join(", ");
        format!("  {} {names}    {place}", words(&format!("{word:<9}")))
    };
    let most = rows.len().min(width);
    let kept = (0..=most).rev().find(|kept| colour::width(&line(*kept)) <= width);
    Some(fitting(line(kept.unwrap_or_default()).trim_end(), width))
}

/// Rows in columns; the news take the room that the others leave.
fn table(standing: &Standing<'_>, rows: &[&StandingRow<'_>], at: FleetReading<'_>) -> Vec<String> {
    let width = at.reading.width;
    let tasks = standing.rows.iter().map(|row| row.task.to_string().width());
    let task = tasks.max().unwrap_or_default().min(TASK_COLUMNS).min(width / 3);
    let is_running = rows.first().is_some_and(|row| row.group == StandingGroup::Running);
    let column = if is_running { Column::number } else { Column::text };
    let columns = [
        Column::text(ALWAYS, task),
        column(ALWAYS, 11).coloured(CellColour::Words),
        column(ALWAYS, 8),
        column(ALWAYS, 8),
        Column::rest(ALWAYS, NEWS),
        Column::text(0, 20),
    ];
    let rows = rows.iter().map(|row| {
        let mut cells = cells(standing, row, at);
        cells[0] = format!("{:<task$}", cells[0]);
        cells
    });
    let lines = table::lines(columns, rows, width.saturating_sub(2));
    lines.into_iter().map(|line| format!("  {line}")).collect()
}

fn cells(standing: &Standing<'_>, row: &StandingRow<'_>, at: FleetReading<'_>) -> [String; 6] {
    let since = row.since.map(|since| (at.reading.now - since).num_milliseconds());
    let mut cells = [row.what.to_owned(), String::new(), String::new(), String::new()];
    if let Some((lease, attempt)) = row.lease.and_then(|lease| Some((lease, lease.attempt()?))) {
        let took = since.and_then(|ms| u64::try_from(ms).ok()).map(brief).unwrap_or_default();
        let mark = counted(row.iteration, lease.contract.limits.max_iterations);
        cells = [mark, took, money(&lease.carried.usage), place(attempt, at.host)];
    } else if row.group == StandingGroup::NeedsYou {
        cells[3] = since.map(ago).unwrap_or_default();
    }
    if at.reading.width < NARROW {
        cells[1..].fill(String::new());
    }
    let [mark, when, cost, place] = cells;
    [row.task.to_string(), mark, when, cost, news(standing, row, at), place]
}

/// "$1.10", with a plus where more was used than is known.
fn money(usage: &Usage) -> String {
    let is_more = usage.is_lower_bound() || !usage.unpriced_models.is_empty();
    match usage.cost {
        Money(0) => String::new(),
        cost => format!("{cost}{}", if is_more { "+" } else { "" }),
    }
}

/// "slot 1", "node7, slot 1".
fn place(attempt: &Attempt, here: &str) -> String {
    let host = Some(&attempt.host).filter(|host| *host != here).map(|host| shown(host));
    let slot = attempt.slot().map(|slot| format!("slot {slot}"));
    host.into_iter().chain(slot).collect::<Vec<_>>().join(", ")
}

fn news(standing: &Standing<'_>, row: &StandingRow<'_>, at: FleetReading<'_>) -> String {
    let (mut until, mut before) = (String::new(), None);
    match &row.news {
        Some(StandingNews::Rests { until: time, why }) => {
            until = rests(*time, why, at.reading.clock());
        }
        Some(StandingNews::Waits(WaitsFor::Ended { task })) => {
            before = standing.row_of(task).map(|row| row.group);
        }
        _ => {}
    }
    let values = context! {
        before,
        news => row.news,
        rests => until,
        what => row.what,
        is_first => row.iteration <= 1,
        last => row.lease.map_or("", |lease| &lease.carried.last),
        was_sent_back => row.lease.is_some_and(|lease| lease.sent_back.is_some()),
        is_running => standing.counts.running > 0,
        has_money => standing.spent.cost_at_most() < standing.max_cost,
    };
    render("news.j2", &values)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
