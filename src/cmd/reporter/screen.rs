//! The live line on a terminal, and above it a block of what the agent did last. Everything else is
//! printed above both: they are removed, the text is written, and they are drawn again below. They
//! are drawn by hand, because a library for it loads the mathematics library into every hook.

use std::collections::VecDeque;

use crate::cmd::print;
use crate::engine::events::RunEvent;
use crate::report::live::Live;
use crate::report::table::fitting;
use crate::world::clock::{self, Stopwatch};
use crate::world::terminal;

/// The shortest time between two frames, in milliseconds.
const BEAT_MS: u64 = 100;
/// The frames of the spinner.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The most lines of the block, and the rows of the terminal that it leaves to others.
const BLOCK_LINES: usize = 5;
const ROWS_LEFT: usize = 4;

/// The line and its state.
#[derive(Debug)]
pub struct Screen {
    live: Live,
    /// What the agent did last in this iteration.
    block: VecDeque<String>,
    /// Since the start of what it reports.
    since: Stopwatch,
    moved: Stopwatch,
}

impl Screen {
    /// An empty line on standard error. No colour: nothing needs it, and `NO_COLOR` is obeyed.
    pub fn new() -> Self {
        let (since, moved) = (Stopwatch::start(), Stopwatch::start());
        Self { live: Live::default(), block: VecDeque::new(), since, moved }
    }

    /// Applies an event to the line.
    pub fn on_event(&mut self, event: &RunEvent<'_>) {
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
            self.since = Stopwatch::start();
        }
        self.draw();
    }

    /// Updates the line to the current time.
    pub fn tick(&mut self) {
        if self.moved.elapsed_ms() >= BEAT_MS {
            self.moved = Stopwatch::start();
            self.draw();
        }
    }

    /// Prints above the line.
    pub fn above(&self, print: impl FnOnce()) {
        print::redraw(&[]);
        print();
        self.draw();
    }

    fn draw(&self) {
        let seconds = self.since.elapsed_ms() / 1000;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let beat = usize::try_from(self.since.elapsed_ms() / BEAT_MS).unwrap_or_default();
        let spinner = SPINNER[beat % SPINNER.len()];
        let said = self.live.line(clock::now().wall);
        let rows = usize::from(terminal::rows().unwrap_or(24));
        let skipped = self.block.len().saturating_sub(rows.saturating_sub(ROWS_LEFT));
        let mut lines: Vec<String> = self.block.iter().skip(skipped).cloned().collect();
        lines.push(format!("{spinner} {hours:02}:{minutes:02}:{:02} {said}", seconds % 60));
        let columns = terminal::columns().map_or(usize::MAX, usize::from);
        let lines: Vec<String> = lines.iter().map(|line| fitting(line, columns)).collect();
        print::redraw(&lines);
    }
}

/// Removes the line.
impl Drop for Screen {
    fn drop(&mut self) {
        print::redraw(&[]);
    }
}
