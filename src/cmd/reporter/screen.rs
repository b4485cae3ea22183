//! The live line on a terminal. Everything else is printed above it: the line is removed, the text
//! is written, and the line is drawn again below. It is drawn by hand, because a library for it
//! loads the mathematics library into every hook.

use crate::cmd::print;
use crate::engine::events::RunEvent;
use crate::engine::text::clean;
use crate::report::live::Live;
use crate::world::clock::{self, Stopwatch};

/// The shortest time between two frames, in milliseconds.
const BEAT_MS: u64 = 100;
/// The frames of the spinner.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The line and its state.
#[derive(Debug)]
pub struct Screen {
    live: Live,
    /// Since the start of what it reports.
    since: Stopwatch,
    moved: Stopwatch,
}

impl Screen {
    /// An empty line on standard error. No colour: nothing needs it, and `NO_COLOR` is obeyed.
    pub fn new() -> Self {
        let (since, moved) = (Stopwatch::start(), Stopwatch::start());
        Self { live: Live::default(), since, moved }
    }

    /// Applies an event to the line.
    pub fn on_event(&mut self, event: &RunEvent<'_>) {
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
        print::redraw("");
        print();
        self.draw();
    }

    fn draw(&self) {
        let seconds = self.since.elapsed_ms() / 1000;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let beat = usize::try_from(self.since.elapsed_ms() / BEAT_MS).unwrap_or_default();
        let spinner = SPINNER[beat % SPINNER.len()];
        let said = clean(&self.live.line(clock::now().wall)).replace('\n', " ");
        print::redraw(&format!("{spinner} {hours:02}:{minutes:02}:{:02} {said}", seconds % 60));
    }
}

/// Removes the line.
impl Drop for Screen {
    fn drop(&mut self) {
        print::redraw("");
    }
}
