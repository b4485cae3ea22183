//! Rows in columns that fit the terminal. A narrow one leaves out the columns of least worth, and
//! one column takes the room that the others leave.

use unicode_truncate::UnicodeTruncateStr;
use unicode_width::UnicodeWidthStr;

use super::colour;
use engine::text::clean_text;
pub use engine::view::columns::{ALWAYS, CellColour, Column};

/// One line for each row, none wider than `width`. Columns without a text are left out.
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

/// Cuts a cell to the room there is; a quotation keeps both its marks.
fn cut_cell(cell: &str, columns: usize) -> String {
    match cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')) {
        Some(words) if cell.width() > columns && columns > 2 => {
            format!("\"{}\"", fit_line(words, columns - 2))
        }
        _ => fit_line(cell, columns),
    }
}

/// The beginning of a line that fits, with an ellipsis if it was cut.
pub fn fit_line(line: &str, columns: usize) -> String {
    if colour::visible_width(line) <= columns {
        return line.to_owned();
    }
    let plain = colour::paint_marks(line, false);
    let (kept, _) = plain.unicode_truncate(columns.saturating_sub(1));
    format!("{}…", kept.trim_end())
}
