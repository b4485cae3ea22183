//! The live line on a terminal. Everything else that is printed goes above it: it is taken away, the text
//! written, and drawn again below.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::engine::news::News;
use crate::engine::text::clean;
use crate::report::live::Live;
use crate::world::clock;

/// How often the line moves by itself.
const BEAT: Duration = Duration::from_millis(120);

/// The line and what it knows.
#[derive(Debug)]
pub struct Screen {
    bar: ProgressBar,
    live: Live,
}

impl Screen {
    /// An empty line on standard error. No colour: nothing needs it, and `NO_COLOR` is obeyed.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {elapsed_precise} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, live: Live::default() }
    }

    /// Takes a moment to the line.
    pub fn hear(&mut self, news: &News<'_>) {
        if self.live.hear(news) {
            self.bar.reset_elapsed();
            self.bar.enable_steady_tick(BEAT);
        }
        self.tick();
    }

    /// Brings the line up to the time it is.
    pub fn tick(&mut self) {
        self.bar.set_message(clean(&self.live.line(clock::now().wall)).replace('\n', " "));
    }

    /// Prints above the line.
    pub fn above(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}
