//! The one place that prints, and the door behind which no foreign text steers a terminal: every text is
//! cleaned on its way, and the only codes are those written here. A reader that went away is a quiet end, not
//! an error.

use std::io::{IsTerminal, Write, stderr, stdout};

use serde_json::Value;

use crate::engine::text;

/// For whoever reads the result.
pub fn out(text: &str) {
    let line = if text.ends_with('\n') { "" } else { "\n" };
    offer(&format!("{text}{line}"));
}

/// The text without a line break of its own; `false` when nobody reads any more.
pub fn offer(text: &str) -> bool {
    write(&text::clean(text))
}

/// A file's content: byte for byte, but for a terminal cleaned like any text.
pub fn bytes(content: &[u8]) {
    if stdout().is_terminal() {
        write(&text::clean(&String::from_utf8_lossy(content)));
    } else {
        let mut stream = stdout().lock();
        let _ = stream.write_all(content).and_then(|()| stream.flush());
    }
}

/// For programs: the value as it is, on a line.
pub fn json(value: &Value) {
    write(&format!("{}\n", text::json(value)));
}

/// Draws the first rows of a page over the last one, without a flicker; `false` when nobody reads any more.
/// What is too long is cut, not wrapped; the line break of the last row would scroll and is left out.
pub fn draw(page: &str, rows: usize) -> bool {
    let page = text::clean(page);
    let rows: Vec<&str> = page.lines().take(rows).collect();
    write(&format!("\x1b[?7l\x1b[H{}\x1b[K\x1b[J\x1b[?7h", rows.join("\x1b[K\r\n")))
}

/// Takes a page that was drawn away.
pub fn wipe() {
    write("\x1b[H\x1b[J");
}

/// Draws one line over the last one, which stands on standard error and `rows` more above it. What is too long is
/// cut; an empty one takes the last away.
pub fn redraw(line: &str, rows: usize) {
    let up = if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
    let line = text::clean(line);
    let _ = write!(stderr().lock(), "\r{up}\x1b[J\x1b[?7l{line}\x1b[?7h");
}

fn write(text: &str) -> bool {
    let mut stream = stdout().lock();
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_ok()
}

/// For whoever watches.
pub fn err(text: &str) {
    let line = if text.ends_with('\n') { "" } else { "\n" };
    let _ = stderr().lock().write_all(text::clean(&format!("{text}{line}")).as_bytes());
}
