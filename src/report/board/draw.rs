//! The board as the lines of a screen, for any size. What has no room is left out from the right
//! and from below; a colour never says anything that no word says.

use std::fmt::Write as _;

use chrono::{DateTime, FixedOffset};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{Board, BoardGroup, BoardOrder, BoardRow, OpenText, TextKind, Typing};
use crate::engine::record::LoopId;
use crate::engine::text::count;
use crate::engine::usage::Money;
use crate::report::page::{fitting, padded};

/// The screen that is drawn on.
#[derive(Debug, Clone, Copy)]
pub struct BoardScreen {
    pub width: usize,
    pub height: usize,
    pub now: DateTime<FixedOffset>,
    /// Only ASCII can be shown.
    pub is_ascii: bool,
}

/// Below this width there is no cost, and a folder is short.
const NARROW: usize = 60;
/// From this height on there is room between the parts, and for the chosen loop.
const TALL: usize = 18;
/// The widest folder, and the same where it is narrow.
const FOLDER: usize = 20;
const FOLDER_NARROW: usize = 8;
/// The fewest columns that are worth a loop's news.
const NEWS: usize = 8;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const RED: Style = Style::new().fg(Color::Red);
const GREEN: Style = Style::new().fg(Color::Green);

/// What a board without a loop says.
const NO_LOOPS: [&str; 3] =
    ["No loop in the last 24 hours.", "crew run \"…\" starts one,", "crew demo shows one."];

/// All keys, with what each does, and the headings: what matters most first, and short enough for
/// the smallest screen.
const KEYS: [(&str, &str); 14] = [
    ("↑ ↓  j k", "choose a loop, scroll a text"),
    ("⏎", "how it stands, or ended"),
    ("l", "what its agent does"),
    ("d", "what it changed"),
    ("t", "send its agent a message"),
    ("p", "pause after this iteration"),
    ("r", "resume in its own process"),
    ("c", "cancel it"),
    ("Esc", "back to the list"),
    ("q", "leave; every loop continues"),
    ("PgUp PgDn", "scroll by a screen; Home and End go to the ends"),
    ("", ""),
    ("NEEDS YOU", "blocked, at a dialog, or nobody drives it any more"),
    ("ENDED", "in the last 24 hours; crew history has the others"),
];

/// The lines of the screen, as many as it has.
pub fn lines(board: &Board, screen: BoardScreen) -> Vec<Line<'static>> {
    let room = screen.height.saturating_sub(2);
    let (head, mut body) = match &board.open {
        _ if board.shows_keys => (plain("crew watch: keys"), keys()),
        Some(open) => (open_head(board, open), open_lines(open, room)),
        None => (list_head(board, screen), list(board, screen, room)),
    };
    body.resize(room, Line::default());
    let mut lines = vec![head];
    lines.extend(body);
    lines.push(foot(board, screen));
    lines.truncate(screen.height);
    if screen.is_ascii {
        let spans = lines.iter_mut().flat_map(|line| &mut line.spans);
        spans.for_each(|span| span.content = ascii(&span.content).into());
    }
    lines
}

fn plain(text: impl Into<String>) -> Line<'static> {
    Line::from(text.into())
}

fn styled(text: impl Into<String>, style: Style) -> Line<'static> {
    Line::from(Span::styled(text.into(), style))
}

/// "crew watch   6 loops   1 needs you   3 running   $31.40   07:02".
fn list_head(board: &Board, screen: BoardScreen) -> Line<'static> {
    let many = |group| board.rows.iter().filter(|row| row.group == group).count();
    let needs = many(BoardGroup::NeedsYou);
    let mut left = vec![plain(count(board.rows.len() as u64, "loop"))];
    if screen.width >= NARROW {
        left.insert(0, styled("crew watch", BOLD));
    }
    if needs > 0 {
        left.push(styled(format!("{needs} need{} you", if needs == 1 { "s" } else { "" }), RED));
    }
    for (group, word) in [(BoardGroup::Running, "running"), (BoardGroup::Waiting, "waiting")] {
        let number = many(group);
        if number > 0 && (screen.width >= NARROW || left.len() < 3) {
            left.push(plain(format!("{number} {word}")));
        }
    }
    if board.unreadable > 0 && screen.width >= NARROW {
        left.push(styled(format!("{} unreadable", board.unreadable), RED));
    }
    let micros: u64 = board.rows.iter().map(|row| row.cost_micros).sum();
    let clock = screen.now.format("%H:%M").to_string();
    let right = match Money::from_micros(micros) {
        cost if micros > 0 && screen.width >= NARROW => format!("{cost}   {clock}"),
        _ => clock,
    };
    let gap = if screen.width >= NARROW { "   " } else { " · " };
    let mut spans: Vec<Span<'static>> = Vec::new();
    for part in left {
        if !spans.is_empty() {
            spans.push(Span::raw(gap));
        }
        spans.extend(part.spans);
    }
    let taken = Line::from(spans.clone()).width() + right.width();
    spans.push(Span::raw(" ".repeat(screen.width.saturating_sub(taken).max(1))));
    spans.push(Span::raw(right));
    Line::from(spans)
}

/// The list, scrolled to the chosen loop, and what is known of that loop.
fn list(board: &Board, screen: BoardScreen, room: usize) -> Vec<Line<'static>> {
    if board.rows.is_empty() {
        let said = NO_LOOPS.iter().map(|line| plain(format!(" {line}")));
        return std::iter::once(Line::default()).chain(said).collect();
    }
    let is_tall = screen.height >= TALL;
    let (rows, chosen) = rows(board, screen.width);
    let gap = usize::from(is_tall);
    let left = room.saturating_sub(gap + rows.len() + 1).max((room / 2).saturating_sub(1));
    let detail = if is_tall { detail(board, screen.width, left) } else { Vec::new() };
    let taken = if detail.is_empty() { 0 } else { detail.len() + 1 };
    let for_rows = room.saturating_sub(gap + taken);
    let top = (chosen + 1).saturating_sub(for_rows);
    let mut lines = vec![Line::default(); gap];
    lines.extend(rows.into_iter().skip(top).take(for_rows));
    if !detail.is_empty() {
        lines.push(Line::default());
        lines.extend(detail);
    }
    lines.truncate(room);
    lines
}

/// The lines of all groups, and which of them is the chosen loop's.
fn rows(board: &Board, width: usize) -> (Vec<Line<'static>>, usize) {
    let widest = |of: fn(&BoardRow) -> &str| {
        board.rows.iter().map(|row| of(row).width()).max().unwrap_or_default()
    };
    let is_narrow = width < NARROW;
    let folder = widest(|row| &row.folder).min(if is_narrow { FOLDER_NARROW } else { FOLDER });
    let when_of: fn(&BoardRow) -> &str = if is_narrow { brief_when } else { |row| &row.when };
    let (count, when) = (widest(|row| &row.count), widest(when_of));
    let cost = if is_narrow { 0 } else { widest(|row| &row.cost) };
    let (mut lines, mut chosen, mut group) = (Vec::new(), 0, None);
    for row in &board.rows {
        if group.replace(row.place.0) != Some(row.place.0) {
            lines.push(head(row.place.0));
        }
        let is_chosen = board.chosen.as_ref() == Some(&row.id);
        if is_chosen {
            chosen = lines.len();
        }
        let id = short(board, &row.id);
        let mut text =
            format!("{}{id}  {}", if is_chosen { ">" } else { " " }, folder_in(row, folder));
        let _ = write!(text, "  {:>count$}  {:>when$}", row.count, when_of(row));
        if cost > 0 {
            let _ = write!(text, "  {:>cost$}", row.cost);
        }
        let news = width.saturating_sub(text.width() + 2);
        let text = fitting(&text, width);
        let mut spans = vec![Span::styled(text, if is_chosen { BOLD } else { Style::new() })];
        if news >= NEWS {
            spans.push(Span::styled(format!("  {}", fitting(&row.news, news)), news_style(row)));
        }
        lines.push(Line::from(spans));
    }
    (lines, chosen)
}

/// The time alone: what it means is clear from the heading.
fn brief_when(row: &BoardRow) -> &str {
    row.when.trim_start_matches("until ").trim_end_matches(" ago")
}

fn head(group: BoardGroup) -> Line<'static> {
    match group {
        BoardGroup::NeedsYou => styled(" NEEDS YOU", RED.add_modifier(Modifier::BOLD)),
        BoardGroup::Running => styled(" RUNNING", DIM),
        BoardGroup::Waiting => styled(" WAITING", DIM),
        BoardGroup::Ended => styled(" ENDED", DIM),
    }
}

fn news_style(row: &BoardRow) -> Style {
    match row.group {
        BoardGroup::NeedsYou => RED,
        BoardGroup::Ended if row.news.starts_with("completed") => GREEN,
        BoardGroup::Waiting | BoardGroup::Ended => DIM,
        BoardGroup::Running => Style::new(),
    }
}

/// A folder of exactly this many columns; of a longer one the end is shown.
fn folder_in(row: &BoardRow, columns: usize) -> String {
    let mut end = row.folder.as_str();
    while end.width() + 1 > columns && row.folder.width() > columns {
        let mut rest = end.chars();
        if rest.next().is_none() {
            break;
        }
        end = rest.as_str();
    }
    let cut = if end.len() < row.folder.len() { "…" } else { "" };
    padded(&format!("{cut}{end}"), columns)
}

/// The task of the chosen loop, its last iterations and what its agent did last, in so many lines.
fn detail(board: &Board, width: usize, most: usize) -> Vec<Line<'static>> {
    let chosen = board.rows.iter().find(|row| Some(&row.id) == board.chosen.as_ref());
    let Some(row) = chosen else { return Vec::new() };
    let title = format!(" {}  {}", short(board, &row.id), row.task);
    let mut lines = vec![styled(fitting(&title, width), BOLD)];
    let (iterations, activity) = (&board.detail.iterations, &board.detail.activity);
    let steps = activity.len().min((most / 2).max(most.saturating_sub(iterations.len() + 1)));
    let before = iterations.len().min(most.saturating_sub(steps + 1));
    let iterations = &iterations[iterations.len() - before..];
    lines.extend(iterations.iter().map(|line| plain(fitting(line, width))));
    let activity = &activity[activity.len() - steps..];
    lines.extend(activity.iter().map(|line| styled(fitting(&format!("     {line}"), width), DIM)));
    lines
}

fn short(board: &Board, id: &LoopId) -> String {
    id.as_str().chars().take(board.id_chars).collect()
}

fn open_head(board: &Board, open: &OpenText) -> Line<'static> {
    let what = match open.kind {
        TextKind::Page => "page",
        TextKind::Log => "log",
        TextKind::Diff => "diff",
    };
    styled(format!("{} · {what}", short(board, &open.id)), BOLD)
}

fn open_lines(open: &OpenText, room: usize) -> Vec<Line<'static>> {
    let last = open.lines.len().saturating_sub(room);
    let top = if open.is_at_end { last } else { open.top.min(last) };
    let shown = open.lines.iter().skip(top).take(room);
    shown.map(|line| Line::from(Span::styled(line.clone(), line_style(open.kind, line)))).collect()
}

fn line_style(kind: TextKind, line: &str) -> Style {
    match (kind, line.bytes().next()) {
        (TextKind::Diff, Some(b'+')) => GREEN,
        (TextKind::Diff, Some(b'-')) => RED,
        (TextKind::Diff, Some(b'@')) => DIM,
        _ => Style::new(),
    }
}

fn keys() -> Vec<Line<'static>> {
    let line = |(keys, what): &(&str, &str)| plain(format!(" {}  {what}", padded(keys, 9)));
    KEYS.iter().map(line).collect()
}

/// What is typed, what the last order came to, or what can be typed.
fn foot(board: &Board, screen: BoardScreen) -> Line<'static> {
    let width = screen.width;
    let named = |id: &LoopId| short(board, id);
    match (&board.typing, &board.notice) {
        (Some(Typing::Answer(BoardOrder::Resume(id, words))), _) => {
            let with = if words.is_some() { " with that message" } else { "" };
            let what = format!(" resume {}{with}? y/n", named(id));
            styled(fitting(&what, width), BOLD)
        }
        (Some(Typing::Answer(BoardOrder::Cancel(id))), _) => {
            styled(fitting(&format!(" cancel {}? y/n", named(id)), width), BOLD)
        }
        (Some(Typing::Answer(_)), _) => Line::default(),
        (Some(Typing::Message(id, text)), _) => {
            let before = format!(" tell {}: ", named(id));
            let room = width.saturating_sub(before.width() + 1);
            let mut end = text.as_str();
            while end.width() > room {
                end = &end[end.chars().next().map_or(0, char::len_utf8)..];
            }
            styled(format!("{before}{end}_"), BOLD)
        }
        (None, Some(notice)) => styled(fitting(&format!(" {notice}"), width), BOLD),
        (None, None) => {
            let all = if board.shows_keys {
                [" any key goes back", ""]
            } else if board.open.is_some() {
                [
                    " ↑↓ scroll  esc back  ⏎ page  l log  d diff  t tell  ? keys  q quit",
                    " esc back  ? keys  q quit",
                ]
            } else if board.rows.is_empty() {
                [" ? keys  q quit", ""]
            } else {
                [
                    " ⏎ open  l log  d diff  t tell  p pause  r resume  c cancel  ? keys  q quit",
                    " ⏎ open  t tell  p pause  ? keys  q quit",
                ]
            };
            let fits = all.iter().find(|line| line.width() <= width).unwrap_or(&all[0]);
            styled(fitting(fits, width), DIM)
        }
    }
}

/// A text for a terminal that shows only ASCII.
fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{20}'..='\u{7e}' => plain.push(character),
            '…' => plain.push_str(".."),
            '·' | '−' | '–' => plain.push('-'),
            '→' => plain.push_str("->"),
            '↑' => plain.push('^'),
            '↓' => plain.push('v'),
            '⏎' => plain.push_str("enter"),
            _ => plain.push('?'),
        }
    }
    plain
}
