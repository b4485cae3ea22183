//! Prints the events of a run: the same lines on a pipe and on a terminal, which also has a live
//! line below them; JSON for programs; hardly anything with `-q`. The text comes from `report`.

use super::{print, terminal_reading};
use crate::report::events::Events;
use crate::report::events::{Live, ProgressLine, Tone, progress_lines, terms_line};
use crate::report::layout::fit_line;
use crate::report::line::{event_notice, terminal_notice};
use crate::report::{colour, page};
use engine::events::{EventSink, RunEvent};
use engine::record::{Loop, Proof};
use engine::text::clean_text;
use readers::parse::arguments::OutputArgs;
use std::collections::VecDeque;
use std::io::{IsTerminal, stderr, stdout};
use unicode_width::UnicodeWidthStr;
use world::clock::{self, Stopwatch};
use world::{env, terminal};

/// The most lines of the block above the live line.
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
            self.print_err(&print::fold_page(&line.text));
        } else {
            self.print_above(print::page, &colour::mark_heads(&line.text, print::fold_page));
        }
    }

    fn print_err(&mut self, text: &str) {
        self.print_above(print::err, text);
    }

    /// Prints above the live line.
    fn print_above(&mut self, print: fn(&str), text: &str) {
        let Some(screen) = &mut self.screen else { return print(text) };
        print::write_codes(&screen.take_drawn());
        print(text);
        screen.draw();
    }

    fn print_end(&mut self, record: &Loop, page: &str) {
        self.screen = None;
        match self.output {
            OutputArgs { quiet: true, .. } => {}
            OutputArgs { json: true, .. } => self.print_err(page),
            _ => self.print_above(print::page, &format!("\n{page}")),
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
                self.print_above(print::folded_heads, &terms_line(record));
            }
        }
        if self.wants_notices
            && let Some(text) = event_notice(event, clock::local_time())
            && let Some(codes) = terminal_notice(&text, &env::text)
        {
            print::write_codes(&codes);
        }
        if let Some(events) = &mut self.events {
            print::json(&events.render_event(event, clock::now().wall));
        }
        match event {
            RunEvent::Said(text) if !self.output.json => self.print_above(print::out, text),
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
            print::write_codes(&(self.take_drawn() + &lines.join("\r\n")));
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
        print::write_codes(&self.take_drawn());
    }
}
