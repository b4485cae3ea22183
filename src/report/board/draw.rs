//! Draws the board on a screen of any size. Whatever does not fit is left out, from the right and
//! from below. Every colour is also expressed by a word.

use chrono::{DateTime, FixedOffset};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{HighlightSpacing, List, ListItem, ListState, Paragraph};
use unicode_truncate::UnicodeTruncateStr;
use unicode_width::UnicodeWidthStr;

use super::{Board, BoardGroup, BoardRow, OpenText, TextKind, Typing};
use crate::report::colour;
use crate::report::layout::{self, ALWAYS, Column, fit_line};
use crate::report::page;
use engine::text::count;
use engine::usage::Money;

/// The height from which there is room between the parts, and for the chosen loop.
const TALL: u16 = 18;
/// The maximum number of columns of a folder.
const FOLDER: usize = 20;
/// The number of columns for each of which a folder may take one.
const FOLDER_PART: usize = 5;
/// The width from which a row shows the beginning of its task.
const WIDE: usize = 99;
/// The columns that a row takes without its task and its news.
const WITHOUT_TASK: usize = 56;
/// The maximum number of lines in the chosen loop's task, and of its news.
const DETAIL_LINES: usize = 3;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const RED: Style = Style::new().fg(Color::Red);
const GREEN: Style = Style::new().fg(Color::Green);
const YELLOW: Style = Style::new().fg(Color::Yellow);

/// The text of a board without loops.
const NO_LOOPS: &str = "
 No loop in the last 24 hours.
 crew run \"…\" starts one,
 crew demo shows one.";

/// All keys and headings with their meanings, the most important first; short enough for the
/// smallest screen.
const KEYS: &str = include_str!("keys.txt");

/// Draws the board on the whole frame.
pub fn draw_board(board: &Board, frame: &mut Frame<'_>, now: DateTime<FixedOffset>) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    match &board.open {
        _ if board.shows_keys => {
            frame.render_widget(Line::from("crew watch: keys"), head);
            frame.render_widget(Paragraph::new(KEYS), body);
        }
        Some(open) => {
            frame.render_widget(open_head(board, open), head);
            frame.render_widget(open_text(open, body.height), body);
        }
        None => {
            draw_head(board, frame, head, now);
            draw_list(board, frame, body);
        }
    }
    frame.render_widget(foot_line(board, foot.width.into()), foot);
}

/// Draws the head: "crew watch · 6 loops · 1 needs you · 3 running · $31.40   07:02".
fn draw_head(board: &Board, frame: &mut Frame<'_>, area: Rect, now: DateTime<FixedOffset>) {
    let loops = count(board.rows.len() as u64, "loop");
    let mut parts = vec![Span::raw(format!("crew watch · {loops}"))];
    let [needs, running, waiting] =
        [BoardGroup::NeedsYou, BoardGroup::Running, BoardGroup::Waiting]
            .map(|group| board.rows.iter().filter(|row| row.group == group).count() as u64);
    let unreadable = board.unreadable;
    let verb = if needs == 1 { "needs" } else { "need" };
    let micros: u64 = board.rows.iter().map(|row| row.usage.cost.micros()).sum();
    for (number, text, style) in [
        (needs, format!("{needs} {verb} you"), YELLOW),
        (running, format!("{running} running"), Style::new()),
        (waiting, format!("{waiting} waiting"), Style::new()),
        (unreadable, format!("{unreadable} unreadable"), RED),
        (micros, Money::from_micros(micros).to_string(), Style::new()),
    ] {
        if number > 0 {
            parts.extend([Span::raw(" · "), Span::styled(text, style)]);
        }
    }
    let clock = now.format(" %H:%M").to_string();
    let room = usize::from(area.width).saturating_sub(clock.width());
    while parts.iter().map(Span::width).sum::<usize>() > room {
        parts.truncate(parts.len().saturating_sub(2));
    }
    frame.render_widget(Line::from(parts), area);
    frame.render_widget(Line::from(clock).right_aligned(), area);
}

/// Draws the list, scrolled to the chosen loop, and the details of that loop.
fn draw_list(board: &Board, frame: &mut Frame<'_>, area: Rect) {
    if board.rows.is_empty() {
        frame.render_widget(Paragraph::new(NO_LOOPS), area);
        return;
    }
    let (items, chosen) = list_items(board, area.width.saturating_sub(1).into());
    let rows = u16::try_from(items.len()).unwrap_or(u16::MAX);
    let is_tall = frame.area().height >= TALL;
    let gap = u16::from(is_tall);
    let most = area.height.saturating_sub(gap).saturating_sub(rows).max(area.height / 2);
    let detail =
        if is_tall { detail_lines(board, area.width.into(), most.into()) } else { Vec::new() };
    let taken = u16::try_from(detail.len()).unwrap_or(most);
    let parts = [Constraint::Length(gap), Constraint::Max(rows), Constraint::Length(taken)];
    let [_, list, below, _] =
        Layout::vertical(parts.into_iter().chain([Constraint::Fill(1)])).areas(area);
    let shown = List::new(items)
        .highlight_symbol(">")
        .highlight_style(BOLD.remove_modifier(Modifier::DIM))
        .highlight_spacing(HighlightSpacing::Always);
    frame.render_stateful_widget(shown, list, &mut ListState::default().with_selected(chosen));
    frame.render_widget(Paragraph::new(detail), below);
}

/// All rows below their headings, and the index of the chosen loop's.
fn list_items(board: &Board, width: usize) -> (Vec<ListItem<'static>>, Option<usize>) {
    let folder = FOLDER.min(width / FOLDER_PART);
    let columns = [
        Column::text(ALWAYS, usize::MAX),
        Column::text(ALWAYS, folder),
        Column::text(0, width.saturating_sub(WITHOUT_TASK) / 2),
        Column::number(2, usize::MAX),
        Column::number(ALWAYS, usize::MAX),
        Column::number(1, usize::MAX),
        Column::rest(3, 8),
    ];
    let rows = board.rows.iter().map(|row| {
        [
            board.short_id(&row.id).to_owned(),
            end_of(&row.folder, folder),
            if width < WIDE { String::new() } else { row.task.clone() },
            row.count.clone(),
            row.when.clone(),
            row.usage.cost_text(false).unwrap_or_default(),
            row.news.clone(),
        ]
    });
    let lines = layout::align_rows(columns, rows, width);
    let (mut items, mut chosen, mut group, mut fleet) = (Vec::new(), None, None, None);
    for (row, line) in board.rows.iter().zip(lines) {
        if group.replace(row.place.0) != Some(row.place.0) {
            items.push(group_heading(row.place.0));
            fleet = None;
        }
        if fleet != row.fleet
            && let Some(name) = &row.fleet
        {
            items.push(ListItem::new(format!("fleet {name}")).style(DIM));
        }
        fleet.clone_from(&row.fleet);
        if board.chosen.as_ref() == Some(&row.id) {
            chosen = Some(items.len());
        }
        items.push(ListItem::new(line).style(row_style(row)));
    }
    (items, chosen)
}

fn group_heading(group: BoardGroup) -> ListItem<'static> {
    match group {
        BoardGroup::NeedsYou => ListItem::new("NEEDS YOU").style(YELLOW.patch(BOLD)),
        BoardGroup::Running => ListItem::new("RUNNING").style(DIM),
        BoardGroup::Waiting => ListItem::new("WAITING").style(DIM),
        BoardGroup::Ended => ListItem::new("ENDED").style(DIM),
    }
}

fn row_style(row: &BoardRow) -> Style {
    match row.group {
        BoardGroup::NeedsYou => YELLOW,
        BoardGroup::Ended if row.is_completed => GREEN,
        BoardGroup::Waiting | BoardGroup::Ended => DIM,
        BoardGroup::Running => Style::new(),
    }
}

/// The end of a folder's path, the part that distinguishes it from others.
fn end_of(folder: &str, columns: usize) -> String {
    if folder.width() <= columns {
        return folder.to_owned();
    }
    format!("…{}", folder.unicode_truncate_start(columns.saturating_sub(1)).0)
}

/// An empty line, then the chosen loop's task, its news, its last iterations and its agent's last
/// activity, in at most `most` lines.
fn detail_lines(board: &Board, width: usize, most: usize) -> Vec<Line<'static>> {
    let row = match board.rows.iter().find(|row| Some(&row.id) == board.chosen.as_ref()) {
        Some(row) if most > 1 => row,
        _ => return Vec::new(),
    };
    let mut texts = vec![(format!("{} · {}", board.short_id(&row.id), row.task), BOLD)];
    if row.news.width() > width.saturating_sub(WITHOUT_TASK) / 2 {
        texts.push((row.news.clone(), row_style(row)));
    }
    let mut lines = vec![Line::default()];
    for (text, style) in texts {
        let wrapped = layout::wrap_text(&text, width.saturating_sub(2), DETAIL_LINES);
        lines.extend(wrapped.iter().map(|line| Line::styled(format!(" {line}"), style)));
    }
    lines.truncate(most);
    let iterations = page::iteration_table(&board.iterations, width);
    let mut below: Vec<Line<'static>> =
        iterations.iter().map(|line| colour::board_spans(&fit_line(line, width))).collect();
    let steps = board.activity.iter().map(|line| fit_line(&format!("     {line}"), width));
    below.extend(steps.map(|line| Line::styled(line, DIM)));
    lines.extend(below.split_off(below.len().saturating_sub(most - lines.len())));
    lines
}

fn open_head(board: &Board, open: &OpenText) -> Line<'static> {
    let what = match open.kind {
        TextKind::Page => "page",
        TextKind::Log => "log",
        TextKind::Diff => "diff",
    };
    Line::styled(format!("{} · {what}", board.short_id(&open.id)), BOLD)
}

fn open_text(open: &OpenText, height: u16) -> Paragraph<'_> {
    let last = open.lines.len().saturating_sub(height.into());
    let shown = open.lines.iter().skip(open.top.unwrap_or(last).min(last)).take(height.into());
    let styled = shown.map(|line| Line::styled(line.as_str(), line_style(open.kind, line)));
    Paragraph::new(styled.collect::<Vec<_>>())
}

fn line_style(kind: TextKind, line: &str) -> Style {
    match (kind, line.bytes().next()) {
        (TextKind::Diff, Some(b'+')) => GREEN,
        (TextKind::Diff, Some(b'-')) => RED,
        (TextKind::Diff, Some(b'@')) => DIM,
        _ => Style::new(),
    }
}

/// The last line: the question or the text being typed, the last notice, or the keys.
fn foot_line(board: &Board, width: usize) -> Line<'static> {
    let text = match (&board.typing, &board.notice) {
        (Some(Typing::Answer(question, _)), _) => format!(" {question}"),
        (Some(Typing::Message(id, text)), _) => {
            let before = format!(" tell {}: ", board.short_id(id));
            let room = width.saturating_sub(before.width() + 1);
            format!("{before}{}_", text.unicode_truncate_start(room).0)
        }
        (None, Some(notice)) => format!(" {notice}"),
        (None, None) => return Line::styled(keys_now(board), DIM),
    };
    Line::styled(fit_line(&text, width), BOLD)
}

/// The keys that work now, the most important first: a narrow screen shows the beginning.
fn keys_now(board: &Board) -> &'static str {
    if board.shows_keys {
        " any key goes back"
    } else if board.open.is_some() {
        " q quit  ? keys  esc back  ↑↓ scroll  ⏎ page  l log  d diff  t tell"
    } else if board.rows.is_empty() {
        " q quit  ? keys"
    } else {
        " q quit  ? keys  ⏎ open  t tell  p pause  l log  d diff  r resume  c cancel"
    }
}
