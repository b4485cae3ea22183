//! The live line on a terminal. Everything else that is printed goes above it: it is taken away, the text
//! written, and drawn again below. Drawn by hand: a library for it loads the mathematics library into every hook.

use std::cell::Cell;

use crate::cmd::print;
use crate::engine::events::RunEvent;
use crate::engine::text::clean;
use crate::report::live::Live;
use crate::world::clock::{self, Stopwatch};
use crate::world::terminal;

/// How often the line moves, at most: milliseconds.
const BEAT_MS: u64 = 100;
/// What moves.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The width of a terminal that does not tell its own.
const COLUMNS: usize = 80;

/// The line and what it knows.
#[derive(Debug)]
pub struct Screen {
    live: Live,
    /// Since what it tells of began.
    since: Stopwatch,
    moved: Stopwatch,
    /// The characters that stand on the screen.
    drawn: Cell<usize>,
}

impl Screen {
    /// An empty line on standard error. No colour: nothing needs it, and `NO_COLOR` is obeyed.
    pub fn new() -> Self {
        let (since, moved) = (Stopwatch::start(), Stopwatch::start());
        Self { live: Live::default(), since, moved, drawn: Cell::new(0) }
    }

    /// Takes a moment to the line.
    pub fn hear(&mut self, news: &RunEvent<'_>) {
        if self.live.hear(news) {
            self.since = Stopwatch::start();
        }
        self.draw();
    }

    /// Brings the line up to the time it is.
    pub fn tick(&mut self) {
        if self.moved.elapsed_ms() >= BEAT_MS {
            self.moved = Stopwatch::start();
            self.draw();
        }
    }

    /// Prints above the line.
    pub fn above(&self, print: impl FnOnce()) {
        self.clear();
        print();
        self.draw();
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.drawn.get() > 0 {
            self.redraw("");
        }
    }

    fn draw(&self) {
        let seconds = self.since.elapsed_ms() / 1000;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let beat = usize::try_from(self.since.elapsed_ms() / BEAT_MS).unwrap_or_default();
        let spinner = SPINNER[beat % SPINNER.len()];
        let said = clean(&self.live.line(clock::now().wall)).replace('\n', " ");
        self.redraw(&format!("{spinner} {hours:02}:{minutes:02}:{:02} {said}", seconds % 60));
    }

    /// A terminal that became narrower has broken the last line into several: all of them are taken away.
    fn redraw(&self, line: &str) {
        let columns = terminal::columns().map_or(COLUMNS, usize::from);
        print::redraw(line, self.drawn.get().saturating_sub(1) / columns);
        self.drawn.set(line.chars().count().min(columns));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}
