//! The one place that prints. It lets no foreign text control a terminal: all text is cleaned here,
//! and the only codes are those written here. If the reader is gone, printing ends quietly without
//! an error.

use std::io::{IsTerminal, Write, stderr, stdout};

use serde_json::Value;

use crate::engine::text;
use crate::report;
use crate::world::env;
use crate::world::terminal;

/// Prints a result on standard output.
pub fn out(text: &str) {
    let line = if text.ends_with('\n') { "" } else { "\n" };
    offer(&format!("{text}{line}"));
}

/// Prints a page that was made for a wide terminal.
pub fn folded(page: &str) {
    out(&fold(page));
}

/// The page with its lines broken between words where the terminal is narrower than they are.
pub fn fold(page: &str) -> String {
    match terminal::columns() {
        Some(columns) => report::page::folded(page, columns.into()),
        None => page.to_owned(),
    }
}

/// Prints text without adding a line break; `false` when the reader is gone.
pub fn offer(text: &str) -> bool {
    write(&text::clean(text))
}

/// Prints a file's content: byte for byte, except that it is cleaned for a terminal.
pub fn bytes(content: &[u8]) {
    if stdout().is_terminal() {
        write(&text::clean(&String::from_utf8_lossy(content)));
    } else {
        let mut stream = stdout().lock();
        let _ = stream.write_all(content).and_then(|()| stream.flush());
    }
}

/// Prints a value on one line, for programs.
pub fn json(value: &Value) {
    write(&format!("{}\n", text::json(value)));
}

/// Draws lines over the last ones, on standard error. A long line is cut; none removes the last.
/// The cursor stays on the first character of the first one: if the terminal becomes narrower and
/// wraps the lines, the cursor is still above them. All of it is written at once, so that no change
/// of the window comes between its parts. The first row is cleared from its second column: tmux
/// takes a clearing from the corner for one of the whole screen, and keeps a copy of it.
pub fn redraw(lines: &[String]) {
    let up = match lines.len() {
        0 | 1 => String::new(),
        rows => format!("\x1b[{}A", rows - 1),
    };
    let clean: Vec<String> =
        lines.iter().map(|line| text::clean(line).replace('\n', " ")).collect();
    let drawn = format!("\r \x1b[J\r\x1b[?7l{}\x1b[?7h{up}\r", clean.join("\r\n"));
    let _ = stderr().lock().write_all(drawn.as_bytes());
}

/// Sends codes to the terminal on standard error: a notice, a title. They are made of cleaned text
/// by `report/attention.rs`, and the caller knows that it is a terminal.
pub fn codes(codes: &str) {
    let _ = stderr().lock().write_all(codes.as_bytes());
}

fn write(text: &str) -> bool {
    let mut stream = stdout().lock();
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_ok()
}

/// Prints a remark on standard error that may be skipped: dim on a terminal that shows it.
pub fn aside(text: &str) {
    let is_dimmed = stderr().is_terminal()
        && env::text("TERM").is_some_and(|term| term != "dumb")
        && env::text("NO_COLOR").is_none();
    let text = text::clean(text);
    let line = if is_dimmed { format!("\x1b[2m{text}\x1b[0m\n") } else { format!("{text}\n") };
    let _ = stderr().lock().write_all(line.as_bytes());
}

/// Prints on standard error.
pub fn err(text: &str) {
    let line = if text.ends_with('\n') { "" } else { "\n" };
    let _ = stderr().lock().write_all(text::clean(&format!("{text}{line}")).as_bytes());
}
