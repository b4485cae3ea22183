//! The only place that prints: text, the events of a run, and whole screens. Foreign text cannot
//! control a terminal: all text is cleaned here, and the only codes are those written here, those
//! of `ratatui` and the colours of `report/colour.rs`. If the reader is gone, printing ends without
//! an error.
//!
//! The events of a run are the same lines on a pipe and on a terminal, which also has a live line
//! below them; JSON for programs; hardly anything with `-q`. Their text comes from `report`.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::path::Path;
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use std::{io, thread};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anyhow::bail;
use clap::ColorChoice as Typed;
use ratatui::crossterm::event;
use ratatui::crossterm::event::{KeyEvent, KeyEventKind};
use ratatui::crossterm::style::force_color_output;
use ratatui::{DefaultTerminal, Frame};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::terminal_reading;
use crate::report::colour::{BAD, QUIET, STRONG, mark_text};
use crate::report::events::{Events, Live, ProgressLine, STAMP, Tone, progress_lines, terms_line};
use crate::report::layout::{fit_line, fold_text};
use crate::report::line::{event_notice, terminal_notice};
use crate::report::{colour, page};
use engine::failure::Failure;
use engine::record::{Loop, Proof};
use engine::text;
use engine::text::clean_text;
use engine::view::events::{EventSink, RunEvent};
use readers::parse::arguments::OutputArgs;
use world::clock::Stopwatch;
use world::git::command;
use world::process::Call;
use world::process::signals::Signals;
use world::{clock, env, terminal};

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
    write_out(&clean_text(text))
}

/// Shows a difference, on a terminal through the user's pager. It is cleaned for a terminal and
/// where it has colours. Git reads the user's settings in `outside`, a folder outside any
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
        let fault = format!("no question can be asked here, so nothing was {done}");
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
        write_out(&clean_text(&String::from_utf8_lossy(content)));
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
    write_err(&mark_text(QUIET, &clean_text(text)));
}

/// Prints on standard error.
pub fn err(text: &str) {
    write_err(&colour::mark_message(&clean_text(text), None, STRONG));
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
    let text = format!("crew: {}", clean_text(&failure.text));
    let hint = failure.hint.as_deref().map(clean_text);
    write_err(&colour::mark_message(&text, hint.as_deref(), mark));
}

fn write_err(text: &str) {
    let mut stream = stderr().lock();
    let text = colour::paint_marks(&end_line(text), has_colour(&stream));
    let _ = stream.write_all(text.as_bytes());
}

/// The maximum number of lines in the block above the live line.
const BLOCK_LINES: usize = 5;
/// The rows of the terminal that the block leaves free.
const ROWS_LEFT: usize = 4;
/// The marks before the live line, which follow each other while crew works.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The time that each of them is shown, in milliseconds.
const SPINNER_MS: u64 = 100;

/// Prints a run's events.
#[derive(Debug)]
pub struct Reporter {
    output: OutputArgs,
    events: Option<Events>,
    screen: Option<Screen>,
    /// Whether the loop's user wants notices at a terminal.
    wants_notices: bool,
}

impl Reporter {
    /// The reporter that fits this process's output and the environment.
    pub fn new(output: OutputArgs) -> Self {
        let is_live = !output.json && !output.quiet && has_a_screen();
        Self {
            output,
            events: if output.json { Some(Events::default()) } else { None },
            screen: if is_live { Some(Screen::new()) } else { None },
            wants_notices: false,
        }
    }

    fn print_line(&mut self, line: &ProgressLine) {
        let OutputArgs { json, quiet, .. } = self.output;
        if quiet && line.tone == Tone::Plain {
            return;
        }
        if quiet || json {
            self.print_err(&fold_page(&line.text));
        } else {
            self.print_above(page, &colour::mark_heads(&line.text, fold_page));
        }
    }

    fn print_err(&mut self, text: &str) {
        self.print_above(err, text);
    }

    /// Prints above the live line.
    fn print_above(&mut self, print: fn(&str), text: &str) {
        let Some(screen) = &mut self.screen else { return print(text) };
        write_codes(&screen.take_drawn());
        print(text);
        screen.draw();
    }

    fn print_end(&mut self, record: &Loop, text: &str) {
        self.screen = None;
        match self.output {
            OutputArgs { quiet: true, .. } => {}
            OutputArgs { json: true, .. } => self.print_err(text),
            _ => self.print_above(page, &format!("\n{text}")),
        }
        let proof = record.state.end().ending().as_ref().and_then(|ending| ending.proof);
        if proof == Some(Proof::Claimed) {
            let whose = match record.contract.promise {
                Some(_) => "on the agent's word alone",
                None => "at its limit",
            };
            self.print_err(&format!("crew: completed {whose}: nothing was checked"));
        }
    }
}

impl EventSink for Reporter {
    fn on_event(&mut self, event: &RunEvent<'_>) {
        let is_shown_whole = self.output.verbose && matches!(event, RunEvent::Said(_));
        if !is_shown_whole && let Some(screen) = &mut self.screen {
            screen.on_event(event);
        }
        if matches!(event, RunEvent::Said(_)) && !self.output.verbose {
            return;
        }
        // Nothing is shown before the loop's own settings are known.
        if let RunEvent::Started(record) | RunEvent::Resumed(record) = event {
            self.wants_notices = self.screen.is_some() && !record.contract.silent;
            if self.screen.is_some() {
                self.print_above(folded_heads, &terms_line(record));
            }
        }
        if self.wants_notices
            && let Some(text) = event_notice(event, clock::local_time())
            && let Some(codes) = terminal_notice(&text, &env::text)
        {
            write_codes(&codes);
        }
        if let Some(events) = &mut self.events {
            json(&events.render_event(event, clock::now().wall));
        }
        match event {
            RunEvent::Said(text) if !self.output.json => self.print_above(out, text),
            RunEvent::Noted(text) if !self.output.quiet => self.print_err(&format!("crew: {text}")),
            RunEvent::Said(_) | RunEvent::Noted(_) => {}
            _ => {
                for line in progress_lines(event, clock::local_time()) {
                    self.print_line(&line);
                }
            }
        }
        if let RunEvent::Finished { record, page, .. } = event {
            self.print_end(record, &page::render_page(page, terminal_reading()));
        }
    }

    fn on_tick(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.draw();
        }
    }
}

/// Whether a line can be redrawn: both streams are a terminal that can move its cursor, and nobody
/// keeps its output as a log.
pub fn has_a_screen() -> bool {
    let is_smart = env::text("TERM").is_some_and(|term| term != "dumb");
    stdout().is_terminal() && stderr().is_terminal() && is_smart && env::text("CI").is_none()
}

/// The live line on a terminal, below a block with what the agent did last. Everything else is
/// printed above both. No colour: nothing needs it, and `NO_COLOR` is obeyed.
#[derive(Debug)]
struct Screen {
    live: Live,
    /// What the agent did last in this iteration.
    block: VecDeque<String>,
    /// The time since the current activity began.
    activity: Stopwatch,
    /// The lines that are drawn now.
    drawn: Vec<String>,
}

impl Screen {
    fn new() -> Self {
        let (live, activity) = (Live::default(), Stopwatch::start());
        Self { live, block: VecDeque::new(), activity, drawn: Vec::new() }
    }

    /// Applies an event. What the agent says is drawn at the next tick: it may say much at once.
    fn on_event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Said(text) => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                self.block.extend(lines.map(|line| format!("  {line}")));
                self.block.drain(..self.block.len().saturating_sub(BLOCK_LINES));
                return;
            }
            RunEvent::IterationStarted(_) | RunEvent::IterationEnded { .. } => self.block.clear(),
            _ => {}
        }
        if self.live.on_event(event) {
            self.activity = Stopwatch::start();
        }
        self.draw();
    }

    /// Draws the block and the line again if they have changed.
    fn draw(&mut self) {
        let rows = usize::from(terminal::count_rows().unwrap_or(24));
        let skipped = self.block.len().saturating_sub(rows.saturating_sub(ROWS_LEFT));
        let columns = terminal::count_columns().map_or(usize::MAX, usize::from);
        let elapsed_ms = self.activity.elapsed_ms();
        let spinner = SPINNER[(elapsed_ms / SPINNER_MS) as usize % SPINNER.len()];
        let (minutes, seconds) = (elapsed_ms / 60_000, elapsed_ms / 1000 % 60);
        let line = self.live.line(clock::now().wall);
        let line = format!("{spinner} {:02}:{:02}:{seconds:02} {line}", minutes / 60, minutes % 60);
        let lines = self.block.iter().skip(skipped).chain([&line]);
        // How wide a tab is depends on where it begins.
        let lines = lines.map(|line| clean_text(line).replace('\t', "    "));
        let lines: Vec<String> = lines.map(|line| fit_line(&line, columns)).collect();
        if lines != self.drawn {
            write_codes(&(self.take_drawn() + &lines.join("\r\n")));
            self.drawn = lines;
        }
    }

    /// The codes that remove what is drawn, in as many rows as a narrower terminal wraps it into.
    fn take_drawn(&mut self) -> String {
        let columns = terminal::count_columns().map_or(usize::MAX, usize::from);
        let rows = self.drawn.drain(..).map(|line| line.width().div_ceil(columns).max(1));
        match rows.sum::<usize>() {
            0 => String::new(),
            rows => format!("\r\x1b[2K{}", "\x1b[A\x1b[2K".repeat(rows - 1)),
        }
    }
}

/// Removes the line.
impl Drop for Screen {
    fn drop(&mut self) {
        write_codes(&self.take_drawn());
    }
}

/// A whole terminal and its keys.
#[derive(Debug)]
pub struct FullScreen {
    terminal: DefaultTerminal,
    keys: Receiver<KeyEvent>,
}

impl FullScreen {
    /// Whether there is a terminal that can be used as a whole.
    pub fn is_possible() -> bool {
        let is_smart = env::text("TERM").is_some_and(|term| term != "dumb");
        stdin().is_terminal() && stdout().is_terminal() && is_smart
    }

    /// Takes the terminal. A panic restores it before its message is printed.
    pub fn open() -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()?, keys: read_keys() })
    }

    /// Its columns and rows.
    pub fn size(&self) -> io::Result<(usize, usize)> {
        let size = self.terminal.size()?;
        Ok((size.width.into(), size.height.into()))
    }

    /// Draws a frame; only what changed is written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// The next key within `wait`; `None` without one.
    pub fn next_key(&self, wait: Duration) -> io::Result<Option<KeyEvent>> {
        match self.keys.recv_timeout(wait) {
            Ok(key) => Ok(Some(key)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the terminal was closed")),
        }
    }
}

/// Reads the keys in a separate thread, which ends with the process: the library never returns from
/// reading a terminal that is gone, and the board must.
fn read_keys() -> Receiver<KeyEvent> {
    let (sender, keys) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            let key = event.as_key_event().filter(|key| key.kind != KeyEventKind::Release);
            if key.is_some_and(|key| sender.send(key).is_err()) {
                return;
            }
        }
    });
    keys
}

/// Restores the terminal. A panic has done that already, and a second time would move the cursor
/// into its message.
impl Drop for FullScreen {
    fn drop(&mut self) {
        if !thread::panicking() {
            ratatui::restore();
        }
    }
}
