//! The only place that prints. Foreign text cannot control a terminal: all text is cleaned here,
//! and the only codes are those written here and the colours of `report/colour.rs`. If the reader
//! is gone, printing ends without an error.

use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::path::Path;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anyhow::bail;
use clap::ColorChoice as Typed;
use ratatui::crossterm::style::force_color_output;
use serde_json::Value;

use crate::report::colour::{self, BAD, QUIET, STRONG, mark_text};
use crate::report::events::STAMP;
use crate::report::layout::fold_text;
use engine::failure::Failure;
use engine::text;
use world::git::command;
use world::process::Call;
use world::process::signals::Signals;
use world::{clock, terminal};

/// Turns colours on or off from now on: `--color`. With `auto` a terminal has colours, subject to
/// `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and `TERM`.
pub fn set_colour(typed: Typed) {
    let choice = match typed {
        Typed::Auto => ColorChoice::Auto,
        Typed::Always => ColorChoice::Always,
        Typed::Never => ColorChoice::Never,
    };
    choice.write_global();
    force_color_output(has_colour(&stdout()));
}

/// Whether a stream has colours.
pub fn has_colour(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Prints a result on standard output.
pub fn out(text: &str) {
    offer(&end_line(text));
}

/// Prints a page of report code, whose marks become colours. Foreign text in it was cleaned of such
/// marks before.
pub fn page(text: &str) {
    offer_page(text);
}

/// Prints a line after the current time; `false` when the reader is gone.
pub fn stamped(line: &str) -> bool {
    let time = clock::local_time().format(STAMP);
    offer_page(&colour::mark_heads(&format!("{time} {line}"), str::to_owned))
}

/// Prints a page; `false` when the reader is gone.
fn offer_page(text: &str) -> bool {
    let page = text::clean_around_marks(&end_line(text));
    write_out(&colour::paint_marks(&page, has_colour(&stdout())))
}

fn end_line(text: &str) -> String {
    let line = if text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{line}")
}

/// Prints a page that was made for a wide terminal.
pub fn folded(page: &str) {
    out(&fold_page(page));
}

/// The same, with crew's words for states and results in colour.
pub fn folded_heads(text: &str) {
    page(&colour::mark_heads(text, fold_page));
}

/// Breaks the lines of a page between words where the terminal is narrower.
pub fn fold_page(page: &str) -> String {
    match terminal::count_columns() {
        Some(columns) => fold_text(page, columns.into()),
        None => page.to_owned(),
    }
}

/// Prints text without adding a line break; `false` when the reader is gone.
pub fn offer(text: &str) -> bool {
    write_out(&text::clean_text(text))
}

/// Shows a difference, on a terminal through the person's pager. It is cleaned for a terminal and
/// where it has colours. Git reads the person's settings in `outside`, a folder outside any
/// repository.
pub fn show_difference(diff: &str, outside: &Path) -> io::Result<()> {
    let is_coloured = has_colour(&stdout()) && command::has_colour(outside);
    if diff.is_empty() || !(is_coloured || stdout().is_terminal()) {
        bytes(diff.as_bytes());
        return Ok(());
    }
    let diff = colour::paint_marks(&colour::mark_difference(diff), is_coloured);
    // The pager handles Ctrl-C.
    let _signals = Signals::listen()?;
    let pager = if stdout().is_terminal() { command::find_pager(outside) } else { String::new() };
    let is_shown = !matches!(&*pager, "" | "cat")
        && Call::shell(&pager, Path::new(".")).show_in_pager(diff.as_bytes())?;
    if !is_shown {
        write_out(&diff);
    }
    Ok(())
}

/// Asks a person at the terminal to confirm what was listed, unless `yes` does. The error where
/// nobody can be asked, or the answer is no, says that nothing was `done` and that `command` asks
/// again.
pub fn confirm(yes: bool, question: &str, done: &str, command: &str) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !terminal::is_interactive() {
        let fault = format!("nobody can be asked here, so nothing was {done}");
        let hint = format!("read the list, then run {command} in a terminal, or with --yes");
        bail!(Failure::usage(fault, hint));
    }
    if !agrees(question)? {
        bail!(Failure::usage(format!("nothing was {done}"), format!("{command} asks again")));
    }
    Ok(())
}

/// Whether a person at the terminal answers yes.
pub fn agrees(question: &str) -> io::Result<bool> {
    offer(&format!("{question} [y/N] "));
    let answer = terminal::read_answer()?.unwrap_or_default().to_lowercase();
    Ok(["y", "yes"].contains(&answer.as_str()))
}

/// Prints a file's content: byte for byte, except that it is cleaned for a terminal.
pub fn bytes(content: &[u8]) {
    if stdout().is_terminal() {
        write_out(&text::clean_text(&String::from_utf8_lossy(content)));
    } else {
        let mut stream = stdout().lock();
        let _ = stream.write_all(content).and_then(|()| stream.flush());
    }
}

/// Prints a value on one line, for programs.
pub fn json(value: &Value) {
    write_out(&format!("{}\n", text::safe_json(value)));
}

/// Writes codes of a terminal to standard error, which the caller knows to be a terminal.
/// `report/line.rs` makes them of cleaned text.
pub fn write_codes(codes: &str) {
    let _ = stderr().lock().write_all(codes.as_bytes());
}

fn write_out(text: &str) -> bool {
    let mut stream = stdout().lock();
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_ok()
}

/// Prints a remark on standard error that may be skipped.
pub fn aside(text: &str) {
    write_err(&mark_text(QUIET, &text::clean_text(text)));
}

/// Prints on standard error.
pub fn err(text: &str) {
    write_err(&colour::mark_message(&text::clean_text(text), None, STRONG));
}

/// Prints a failure that ends this crew.
pub fn fatal(failure: &Failure) {
    write_failure(failure, BAD);
}

/// Prints a failure after which this crew continues.
pub fn failure(failure: &Failure) {
    write_failure(failure, STRONG);
}

fn write_failure(failure: &Failure, mark: char) {
    let text = format!("crew: {}", text::clean_text(&failure.text));
    let hint = failure.hint.as_deref().map(text::clean_text);
    write_err(&colour::mark_message(&text, hint.as_deref(), mark));
}

fn write_err(text: &str) {
    let mut stream = stderr().lock();
    let text = colour::paint_marks(&end_line(text), has_colour(&stream));
    let _ = stream.write_all(text.as_bytes());
}
