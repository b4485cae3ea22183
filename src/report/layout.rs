//! The layout of output for a terminal: rows in columns that fit, and lines that are wrapped,
//! folded or truncated. A narrow terminal loses the least important columns, and one column takes
//! the space that the others leave.

use super::colour;
use chrono::{DateTime, FixedOffset, Utc};
use engine::text::clean_text;
pub use engine::view::columns::{ALWAYS, CellColour, Column};
use unicode_truncate::UnicodeTruncateStr;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The minimum number of columns in which words are wrapped.
const WORDS_MIN: usize = 12;

/// One line for each row, at most `width` columns wide. Empty columns are left out.
pub fn align_rows<const N: usize>(
    columns: [Column; N],
    rows: impl IntoIterator<Item = [String; N]>,
    width: usize,
) -> Vec<String> {
    let rows = rows.into_iter().map(|row| row.map(|cell| clean_text(&cell)));
    let rows: Vec<[String; N]> = rows.collect();
    let mut used = Vec::new();
    for (index, column) in columns.into_iter().enumerate() {
        let widest = rows.iter().map(|row| row[index].width()).max().unwrap_or(0);
        if widest > 0 {
            used.push((index, Column { most: widest.min(column.most), ..column }));
        }
    }
    while width_of(&used) > width {
        let least = (0..used.len()).min_by_key(|at| used[*at].1.worth);
        let Some(least) = least.filter(|at| used[*at].1.worth < ALWAYS) else { break };
        used.remove(least);
    }
    let left = width.saturating_sub(width_of(&used));
    let lines = rows.iter().map(|row| {
        let mut line = String::new();
        for (at, (index, column)) in used.iter().enumerate() {
            let is_last = used[at + 1..].iter().all(|(later, _)| row[*later].is_empty());
            let room = match column.rest {
                Some(_) if is_last => width.saturating_sub(colour::visible_width(&line)),
                Some(least) => least + left,
                None => column.most,
            };
            let room = room.min(column.most);
            let cell = cut_cell(&row[*index], room);
            let cell = cell.unicode_pad(room, column.alignment, false);
            line += &match column.colour {
                CellColour::Plain => cell.into_owned(),
                CellColour::Quiet => colour::mark_quiet(&cell),
                CellColour::Words => colour::mark_words(&cell),
            };
            line += "  ";
        }
        fit_line(line.trim_end(), width)
    });
    lines.collect()
}

/// The width of a line with these columns.
fn width_of(columns: &[(usize, Column)]) -> usize {
    columns.iter().map(|(_, column)| column.room_needed() + 2).sum::<usize>().saturating_sub(2)
}

/// Truncates a cell to the available room; a quotation keeps both its marks.
fn cut_cell(cell: &str, columns: usize) -> String {
    match cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')) {
        Some(words) if cell.width() > columns && columns > 2 => {
            format!("\"{}\"", fit_line(words, columns - 2))
        }
        _ => fit_line(cell, columns),
    }
}

/// The beginning of a line that fits, with an ellipsis if it was truncated.
pub fn fit_line(line: &str, columns: usize) -> String {
    if colour::visible_width(line) <= columns {
        return line.to_owned();
    }
    let plain = colour::paint_marks(line, false);
    let (kept, _) = plain.unicode_truncate(columns.saturating_sub(1));
    format!("{}…", kept.trim_end())
}

/// How a page is read: the width, the time and the time zone.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The columns of the terminal.
    pub width: usize,
    pub now: DateTime<Utc>,
    /// The reader's time zone.
    pub offset: FixedOffset,
}

impl Reading {
    /// The time on the reader's clock.
    pub fn clock(&self) -> DateTime<FixedOffset> {
        self.now.with_timezone(&self.offset)
    }
}

/// Breaks a string between words into lines of at most `columns`, and truncates it after `most`
/// lines. A longer word is broken only in a script without spaces: a path must stay whole to be
/// copied.
pub fn wrap_text(text: &str, columns: usize, most: usize) -> Vec<String> {
    let columns = columns.max(WORDS_MIN);
    let mut lines = Vec::new();
    for paragraph in clean_text(text).lines() {
        let indent = paragraph.len() - paragraph.trim_start().len();
        let mut line = paragraph[..indent].to_owned();
        for word in paragraph.split_whitespace().flat_map(|word| break_word(word, columns)) {
            let gap = usize::from(!line.trim().is_empty());
            if gap == 1 && line.width() + gap + word.width() > columns {
                lines.push(std::mem::take(&mut line));
            } else if gap == 1 {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = fit_line(&format!("{last} …"), columns);
        }
    }
    lines
}

/// Breaks the long lines of one of crew's own pages between words. The pieces are indented to the
/// last column that begins in the first half of the screen, else to the beginning of the line.
pub fn fold_text(text: &str, columns: usize) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let own = line.len() - line.trim_start().len();
        let words = line.match_indices(|character| character != ' ').map(|(start, _)| start);
        let column = words.filter(|start| *start > own && line[..*start].ends_with("  "));
        let column = column.take_while(|start| line[..*start].width() <= columns / 2).last();
        let (head, rest) = line.split_at(column.unwrap_or(own));
        let hang = head.width() + if column.is_none() { 2 } else { 0 };
        if line.width() <= columns {
            folded += line;
        } else {
            let lines = wrap_text(rest, columns.saturating_sub(hang), usize::MAX);
            folded += head;
            folded += &lines.join(&format!("\n{:hang$}", ""));
        }
        folded.push('\n');
    }
    folded
}

/// A word, in pieces of at most `columns` if it has wide characters.
fn break_word(word: &str, columns: usize) -> Vec<&str> {
    let is_wide = word.chars().any(|character| character.width() == Some(2));
    if is_wide { split_line(word, columns) } else { vec![word] }
}

/// Splits a line into pieces of at most `columns`, wherever they end.
pub fn split_line(line: &str, columns: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    loop {
        let (piece, _) = rest.unicode_truncate(columns);
        if piece.is_empty() || piece.len() == rest.len() {
            pieces.push(rest);
            return pieces;
        }
        pieces.push(piece);
        rest = &rest[piece.len()..];
    }
}
