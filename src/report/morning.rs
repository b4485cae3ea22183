//! What happened since yesterday evening, on one screen: the loops that need a person, with the
//! reason and the command for each, then those that ended, those that run, and the fleets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use super::colour::{STRONG, WARN, marked, words};
use super::history::ends;
use super::list::{self, ListReading};
use super::page::{Reading, wrapped};
use super::table::fitting;
use super::words::brief;
use crate::engine::page::Page;
use crate::engine::record::totals::Totals;
use crate::engine::record::{Loop, Outcome};
use crate::engine::text::{clean, clock_time};

/// The rows of the end of the page, and of the shell's prompt below it.
const ROWS_TAKEN: usize = 6;
/// The most lines of a reason.
const WHY_LINES: usize = 2;
/// The headings, from the top; a part of the page is known by its place here.
const HEADINGS: [&str; 4] = ["NEEDS YOU", "ENDED", "RUNNING", "FLEETS"];

/// A loop that worked since then.
#[derive(Debug)]
pub struct MorningLoop {
    pub record: Loop,
    /// Nobody drives it any more, or it waits at a dialog.
    pub is_held: bool,
    /// Its page, if that was read.
    pub page: Option<Page>,
}

impl MorningLoop {
    /// Which heading it belongs to. `is_replaced` says that a later loop works, or worked, in the
    /// same working tree.
    fn part(&self, is_replaced: bool) -> usize {
        let is_undone = self.record.outcome().is_some_and(Outcome::leaves_a_task_undone);
        let has_left = !self.record.is_live() && self.record.state.git.undone().is_some();
        match self.record.outcome() {
            None if !self.is_held => 2,
            Some(_) if is_replaced || !(is_undone || has_left) => 1,
            _ => 0,
        }
    }

    /// Why it needs a person, and the command; of any other, what one should know of its proof.
    fn lines(&self, part: usize, width: usize) -> Vec<String> {
        let (Some(page), 0) = (&self.page, part) else {
            return note(&self.record)
                .map(|it| fitting(&format!("    {}", clean(&it)), width))
                .into_iter()
                .collect();
        };
        let said = page.ending.first().map_or_else(String::new, |fact| fact.text.clone());
        let why = self.record.state.git.undone().unwrap_or(said);
        let mut lines = wrapped(&why, width.saturating_sub(4), WHY_LINES);
        lines.push(clean(&page.then.as_ref().unwrap_or(&page.next).command));
        lines.iter().map(|line| format!("    {line}")).collect()
    }
}

/// The page of these loops, the newest first, in at most so many rows of a terminal.
pub fn text(
    loops: &[MorningLoop],
    since: DateTime<Utc>,
    at: ListReading<'_>,
    rows: usize,
) -> String {
    let Reading { width, now, .. } = at.reading;
    let records: Vec<Loop> = loops.iter().map(|it| it.record.clone()).collect();
    let head = format!("since {}: {}", clock_time(since, at.reading.clock()), ended(&records));
    let mut text = words(&wrapped(&head, width, usize::MAX).join("\n")) + "\n";
    let mut room = rows.saturating_sub(ROWS_TAKEN + text.lines().count());
    let (mut shown, mut left_out) = (HEADINGS.len(), 0_usize);
    let (blocks, next) = blocks(loops, at);
    for (part, lines) in blocks {
        let takes = lines.len() + if part == shown { 0 } else { 2 };
        if left_out > 0 || takes > room {
            left_out += 1;
            continue;
        }
        if part != shown {
            let mark = if part == 0 { WARN } else { STRONG };
            text += &["\n", &marked(mark, HEADINGS[part]), "\n"].concat();
        }
        (room, shown) = (room - takes, part);
        text += &(lines.join("\n") + "\n");
    }
    if left_out > 0 {
        let since = brief((now - since).num_milliseconds().unsigned_abs()).replace(' ', "");
        let _ = writeln!(text, "\nand {left_out} more: crew history --all --since {since}");
    }
    text + &format!("\nnext  {}\n", marked(STRONG, &clean(&next)))
}

/// "3 loops: 2 completed, 1 stalled · $1.20", of those that have ended.
fn ended(loops: &[Loop]) -> String {
    let totals = Totals::of(loops);
    let cost = totals.usage.cost_text(false).map(|cost| format!(" · {cost}"));
    if totals.loops() == 0 {
        return "no loop has ended".to_owned();
    }
    ends(&totals) + &cost.unwrap_or_default()
}

/// The lines of every loop and fleet with their headings, and the command to type next.
fn blocks(loops: &[MorningLoop], at: ListReading<'_>) -> (Vec<(usize, Vec<String>)>, String) {
    let width = at.reading.width;
    let (mut alone, mut trees, mut fleets) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    for it in loops {
        match &it.record.fleet {
            Some(task) => fleets.entry(&task.name).or_insert_with(Vec::new).push(it.record.clone()),
            None => alone.push((it.part(!trees.insert(&it.record.place.checkout)), it)),
        }
    }
    alone.sort_by_key(|(part, _)| *part);
    let records: Vec<Loop> = alone.iter().map(|(_, it)| it.record.clone()).collect();
    let reading = Reading { width: width.saturating_sub(2), ..at.reading };
    let list = list::ended(&records, ListReading { reading, ..at }, true);
    let rows = alone.iter().zip(list.lines()).map(|((part, it), line)| {
        (*part, [vec![format!("  {line}")], it.lines(*part, width)].concat())
    });
    let of_fleets = fleets.iter().map(|(name, loops)| {
        let line = words(&fitting(&format!("  {name}  {}", ended(loops)), width));
        (3, vec![line, format!("    crew fleet status {name}")])
    });
    let next = match (alone.first(), fleets.keys().next()) {
        (Some((1 | 2, _)) | None, Some(name)) => format!("crew fleet status {name}"),
        (Some((_, MorningLoop { page: Some(page), .. })), _) => page.next.command.clone(),
        _ => "crew history --all".to_owned(),
    };
    (rows.chain(of_fleets).collect(), next)
}

/// What a person should know of the proof of a completed loop, such as tests that were rewritten.
fn note(record: &Loop) -> Option<String> {
    let ending = record.state.ending.as_ref()?;
    let reason = ending.reason();
    let rest = reason.strip_prefix(ending.proof?.meaning());
    let rest = rest.or_else(|| Some(reason.split_once(';')?.1))?.trim_start_matches([';', ' ']);
    (!rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
#[path = "morning_tests.rs"]
mod tests;
