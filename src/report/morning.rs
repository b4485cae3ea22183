//! The page of `crew status --since`: what happened overnight, on one screen. The loops that need a
//! person, with the reason and the command for each, then those that ended or run, and the fleets.

use super::colour::{STRONG, WARN, mark_text, mark_words};
use super::layout::fit_line;
use super::layout::{Reading, wrap_text};
use super::list::{self, ListReading, totals_line};
use chrono::{DateTime, Utc};
use engine::record::{Loop, Totals};
use engine::text::{clean_text, clock_time};
use engine::view::{BoardGroup, LoopView, Page};
use std::fmt::Write as _;

/// The rows taken by the last part of the page, and by the shell's prompt below it.
const ROWS_TAKEN: usize = 6;
/// The maximum number of lines in a reason.
const WHY_LINES: usize = 2;
/// The maximum number of loops whose pages are read: each compares a working tree.
const PAGES: usize = 20;
/// The headings, from the top; the index of one identifies its part of the page.
const HEADINGS: [&str; 5] = ["NEEDS YOU", "ENDED", "RUNNING", "WAITING", "FLEETS"];

/// The group of each heading but the last. What ended comes early: it is the news of a morning.
const PLACES: [BoardGroup; 4] =
    [BoardGroup::NeedsYou, BoardGroup::Ended, BoardGroup::Running, BoardGroup::Waiting];

/// A loop that worked since then.
struct MorningLoop<'a> {
    record: &'a Loop,
    /// Its fleet, if this machine keeps that, and the index of its heading.
    place: (Option<&'a str>, usize),
    /// Its page, if that was read.
    page: Option<Page>,
}

impl MorningLoop<'_> {
    /// The reason why it needs a person, and the command; for other loops, a note on the proof.
    fn detail_lines(&self, width: usize) -> Vec<String> {
        let (Some(page), 0) = (&self.page, self.place.1) else {
            return proof_note(self.record).iter().map(|note| fit_line(note, width)).collect();
        };
        let said = page.ending.first().map_or_else(String::new, |fact| fact.text.clone());
        let why = self.record.state.git().describe_undone().unwrap_or(said);
        let mut lines = wrap_text(&why, width.saturating_sub(4), WHY_LINES);
        lines.push(clean_text(&page.then.as_ref().unwrap_or(&page.next).command));
        lines.iter().map(|line| format!("    {line}")).collect()
    }
}

/// Renders the page in at most `rows` rows of a terminal. The newest loop comes first; `read` reads
/// the page of one.
pub fn render_morning(
    facts: &[LoopView<'_>],
    read: &dyn Fn(&Loop) -> Page,
    since: DateTime<Utc>,
    at: ListReading<'_>,
    rows: usize,
) -> String {
    let loops = sort_loops(facts, read);
    let head = ended_totals(&loops);
    let head = format!("since {}: {head}", clock_time(since, at.reading.clock()));
    let mut text = mark_words(&wrap_text(&head, at.reading.width, usize::MAX).join("\n")) + "\n";
    let mut room = rows.saturating_sub(ROWS_TAKEN + text.lines().count());
    let (mut shown, mut left_out) = (HEADINGS.len(), 0_usize);
    let blocks = page_blocks(&loops, at);
    let next = blocks.first().map_or("crew history --all", |(.., next)| next);
    for &(part, ref lines, _) in &blocks {
        let takes = lines.len() + if part == shown { 0 } else { 2 };
        if left_out > 0 || takes > room {
            left_out += 1;
            continue;
        }
        if part != shown {
            let mark = if part == 0 { WARN } else { STRONG };
            text += &["\n", &mark_text(mark, HEADINGS[part]), "\n"].concat();
        }
        (room, shown) = (room - takes, part);
        text += &(lines.join("\n") + "\n");
    }
    if left_out > 0 {
        let _ = writeln!(text, "\nand {left_out} more: crew status --all");
    }
    text + &format!("\nnext  {}\n", mark_text(STRONG, &clean_text(next)))
}

/// Sorts the loops by their places: a fleet's loops together, after all others. Reads the pages of
/// those that need a person, and the page of the first loop, which has the next command.
fn sort_loops<'a>(facts: &[LoopView<'a>], read: &dyn Fn(&Loop) -> Page) -> Vec<MorningLoop<'a>> {
    let loops = facts.iter().map(|view| {
        let part = PLACES.iter().position(|group| *group == view.board_group()).unwrap_or_default();
        let place = (view.task.map(|task| task.name.as_str()), part);
        MorningLoop { record: view.record, place, page: None }
    });
    let mut loops: Vec<MorningLoop<'a>> = loops.collect();
    loops.sort_by_key(|subject| subject.place);
    let needing = loops.iter().filter(|subject| subject.place == (None, 0)).count();
    for subject in loops.iter_mut().take(needing.clamp(1, PAGES)) {
        subject.page = Some(read(subject.record));
    }
    loops
}

/// "3 loops: 2 completed, 1 stalled · $1.20", of those that have ended.
fn ended_totals(loops: &[MorningLoop<'_>]) -> String {
    let totals = Totals::from_loops(loops.iter().map(|subject| subject.record));
    if totals.loop_count() == 0 {
        "no loop has ended".to_owned()
    } else {
        totals_line(&totals, false)
    }
}

/// The lines of every loop and fleet with their headings, and the command for each.
fn page_blocks(
    loops: &[MorningLoop<'_>],
    at: ListReading<'_>,
) -> Vec<(usize, Vec<String>, String)> {
    let width = at.reading.width;
    let chunks = loops.chunk_by(|one, other| one.place.0 == other.place.0);
    let of_fleets = chunks.filter_map(|loops| {
        let (name, first) = (loops[0].place.0?, loops[0].place.1);
        let line = mark_words(&fit_line(&format!("  {name}  {}", ended_totals(loops)), width));
        let next = format!("crew fleet status {name}");
        let lines = vec![line, format!("    {next}")];
        Some((if first == 0 { 0 } else { PLACES.len() }, lines, next))
    });
    let alone = loops.iter().filter(|subject| subject.place.0.is_none());
    let reading = Reading { width: width.saturating_sub(2), ..at.reading };
    let views = alone.clone().map(|subject| LoopView::from_record(subject.record, reading.clock()));
    let views: Vec<LoopView<'_>> = views.collect();
    let list = list::render_list(list::ENDED_EVERYWHERE, &views, ListReading { reading, ..at });
    let of_loops = alone.zip(list.lines()).map(|(subject, line)| {
        let page = subject.page.as_ref();
        let next = page.map_or_else(String::new, |page| page.next.command.clone());
        (subject.place.1, [vec![format!("  {line}")], subject.detail_lines(width)].concat(), next)
    });
    let mut blocks: Vec<(usize, Vec<String>, String)> = of_fleets.chain(of_loops).collect();
    blocks.sort_by_key(|(part, ..)| *part);
    blocks
}

/// A note on the proof of a completed loop, such as that tests were rewritten.
fn proof_note(record: &Loop) -> Option<String> {
    let remarks = record.state.end().ending().as_ref()?.remarks();
    if remarks.is_empty() { None } else { Some(format!("    {}", clean_text(&remarks.join("; ")))) }
}

#[cfg(test)]
#[path = "morning_tests.rs"]
mod tests;
