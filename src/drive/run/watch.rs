//! Reads an agent at work, and ends it on a signal of the person at the keyboard, a cancel, or a
//! pause that must take effect at once. It does not judge the agent.

use super::Runner;
use crate::agents::OutputReader;
use crate::drive::control::Cancels;
use crate::engine::events::RunEvent;
use crate::engine::text::plain;
use crate::world::process::{StopRequest, Stream, Watch};

/// One agent, watched.
pub struct Watcher<'a, 'runner> {
    runner: &'a Runner<'runner>,
    pub(super) reader: Box<dyn OutputReader>,
    cancels: Cancels<'a>,
    was_told: bool,
}

impl<'a, 'runner> Watcher<'a, 'runner> {
    pub(super) fn new(runner: &'a Runner<'runner>, reader: Box<dyn OutputReader>) -> Self {
        let cancels = Cancels::new(runner.home, &runner.ledger.record.id);
        Self { runner, reader, cancels, was_told: false }
    }
}

impl Watch for Watcher<'_, '_> {
    fn line(&mut self, stream: Stream, line: &str) {
        let words = if stream == Stream::Out { self.reader.line(line) } else { Some(plain(line)) };
        if let Some(words) = words {
            self.runner.tell(&RunEvent::Said(&words));
        }
    }

    fn tool_is_open(&self) -> bool {
        self.reader.tool_is_open()
    }

    fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    fn stop(&mut self) -> Option<StopRequest> {
        let is_signalled = self.runner.tick();
        if !is_signalled && !self.cancels.any() {
            return None;
        }
        if !self.was_told {
            self.was_told = true;
            self.runner.tell(&RunEvent::Stopping);
        }
        Some(if self.runner.signals.times() > 1 { StopRequest::Kill } else { StopRequest::Now })
    }
}
