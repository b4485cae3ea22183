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
use indicatif::{ProgressBar, ProgressStyle};
use readers::parse::arguments::OutputArgs;
use std::collections::VecDeque;
use std::io::{IsTerminal, stderr, stdout};
use world::{clock, env, terminal};

/// The most lines of the block above the live line.
const BLOCK_LINES: usize = 5;
/// The rows of the terminal that the block leaves free.
const ROWS_LEFT: usize = 4;

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
            events: output.json.then(Events::default),
            screen: is_live.then(Screen::new),
            wants_notices: false,
        }
    }

    fn print_line(&self, line: &ProgressLine) {
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

    fn print_err(&self, text: &str) {
        self.print_above(print::err, text);
    }

    /// Prints above the live line.
    fn print_above(&self, print: fn(&str), text: &str) {
        match &self.screen {
            Some(screen) => screen.bar.suspend(|| print(text)),
            None => print(text),
        }
    }

    fn print_end(&mut self, record: &Loop, page: &str) {
        self.screen = None;
        match self.output {
            OutputArgs { quiet: true, .. } => {}
            OutputArgs { json: true, .. } => self.print_err(page),
            _ => self.print_above(print::page, &format!("\n{page}")),
        }
        let proof = record.state.ending.as_ref().and_then(|ending| ending.proof);
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
            screen.tick();
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
/// printed above both.
#[derive(Debug)]
struct Screen {
    live: Live,
    /// What the agent did last in this iteration.
    block: VecDeque<String>,
    bar: ProgressBar,
}

impl Screen {
    /// An empty line on standard error. No colour: nothing needs it, and `NO_COLOR` is obeyed.
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{msg}{spinner} {elapsed_precise} {prefix}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { live: Live::default(), block: VecDeque::new(), bar }
    }

    /// Applies an event to the line.
    fn on_event(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Said(text) => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                self.block.extend(lines.map(|line| format!("  {line}")));
                self.block.drain(..self.block.len().saturating_sub(BLOCK_LINES));
            }
            RunEvent::IterationStarted(_) | RunEvent::IterationEnded { .. } => self.block.clear(),
            _ => {}
        }
        if self.live.on_event(event) {
            self.bar.reset_elapsed();
        }
        self.tick();
    }

    fn tick(&mut self) {
        let rows = usize::from(terminal::count_rows().unwrap_or(24));
        let skipped = self.block.len().saturating_sub(rows.saturating_sub(ROWS_LEFT));
        let columns = terminal::count_columns().map_or(usize::MAX, usize::from);
        let block =
            self.block.iter().skip(skipped).map(|line| fit_line(&clean_text(line), columns) + "\n");
        self.bar.set_message(block.collect::<String>());
        let line = self.live.line(clock::now().wall);
        self.bar.set_prefix(fit_line(&clean_text(&line), columns.saturating_sub(11)));
        self.bar.tick();
    }
}

/// Removes the line.
impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
