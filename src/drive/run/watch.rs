//! Reads an agent at work, and ends it on a signal of the person at the keyboard, a cancel, a pause
//! that must take effect at once, or once it only waits for the model's service: crew can do that
//! without a process. It does not judge the agent.

use std::time::Duration;

use super::Runner;
use crate::agents::service::ServiceWait;
use crate::agents::{OutputReader, Report};
use crate::drive::control::Cancels;
use crate::engine::events::RunEvent;
use crate::engine::text::plain;
use crate::world::clock::{self, Watched};
use crate::world::process::{StopRequest, Stream, Watch};

/// One agent, watched.
pub struct Watcher<'a, 'runner> {
    runner: &'a Runner<'runner>,
    pub(super) reader: Box<dyn OutputReader>,
    cancels: Cancels<'a>,
    was_told: bool,
    time: Watched,
    wait: Option<Waiting>,
    /// What it reported when it had only waited for long enough.
    pub(super) had_waited: Option<Report>,
}

/// The agent waits for the service.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    told: ServiceWait,
    /// When it told so first, and when last.
    since: Duration,
    last: Duration,
}

impl<'a, 'runner> Watcher<'a, 'runner> {
    pub(super) fn new(runner: &'a Runner<'runner>, reader: Box<dyn OutputReader>) -> Self {
        let cancels = Cancels::new(runner.home, &runner.ledger.record.id);
        Self {
            runner,
            reader,
            cancels,
            was_told: false,
            time: Watched::start(),
            wait: None,
            had_waited: None,
        }
    }

    /// Notes whether the agent waits, as its last line said.
    fn note_a_wait(&mut self) {
        let Some(told) = self.reader.waits(clock::local()) else {
            self.wait = None;
            return;
        };
        let now = self.time.look();
        let before = self.wait.filter(|before| before.told.tries <= told.tries);
        let same = before.filter(|before| before.told.tries == told.tries);
        let last = same.map_or(now, |before| before.last);
        let since = before.map_or(now, |before| before.since);
        self.wait = Some(Waiting { told, since, last });
    }

    /// Whether the agent only waits, and has for long enough.
    fn only_waits(&mut self) -> bool {
        let now = self.time.look();
        let is_enough = self.wait.is_some_and(|Waiting { told, since, last }| {
            told.is_enough(now.saturating_sub(since), now.saturating_sub(last))
        });
        if is_enough && self.had_waited.is_none() {
            self.had_waited = Some(self.reader.report(clock::local()));
            self.runner.tell(&RunEvent::Noted(
                "the agent only waits for the model's service: crew ends it",
            ));
        }
        self.had_waited.is_some()
    }
}

impl Watch for Watcher<'_, '_> {
    fn line(&mut self, stream: Stream, line: &str) {
        let words = match stream {
            Stream::Out => self.reader.line(line),
            Stream::Errors => {
                self.reader.read_error(line);
                Some(plain(line))
            }
        };
        self.note_a_wait();
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
            return self.only_waits().then_some(StopRequest::Now);
        }
        // What a person asked for counts, whatever else ends the agent.
        self.had_waited = None;
        if !self.was_told {
            self.was_told = true;
            self.runner.tell(&RunEvent::Stopping);
        }
        Some(if self.runner.signals.times() > 1 { StopRequest::Kill } else { StopRequest::Now })
    }
}
