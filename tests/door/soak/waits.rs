//! Faults of the model's service. The process that waits is a child of the test, which is the
//! client.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Signal, kill_process};

use super::model::Standing;
use super::{Answer, Event, Soak};
use crate::sandbox::DEADLINE;
use crate::spawned::{Ran, Running};

/// How long a laptop was closed, in milliseconds.
const A_NIGHT_MS: &str = "28800000";

/// A wait that is long enough to send a request, even on a busy machine.
const SOON_S: u64 = 4;

/// How a wait ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Its reset arrives.
    Woken,
    /// Its reset arrives after the user has sent the agent a message or changed a limit.
    WokenAfterAnOrder,
    /// The waiting process is killed, and hours later the idle fallback takes over its ticket.
    Net,
    /// The waiting process is killed or ended, and the user continues.
    Orphaned(Signal),
    Prompt,
    Pause,
    Cancel,
    Clear,
    Compaction,
}

const ENDS: [End; 10] = [
    End::Woken,
    End::WokenAfterAnOrder,
    End::Net,
    End::Orphaned(Signal::KILL),
    End::Orphaned(Signal::TERM),
    End::Prompt,
    End::Pause,
    End::Cancel,
    End::Clear,
    End::Compaction,
];

fn epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn assert_quiet(ran: &Ran) {
    let said = (ran.code(), ran.stdout.as_str(), ran.stderr.as_str());
    assert_eq!(said, (0, "", ""));
}

impl Soak {
    fn failure(&self, kind: &str, message: &str) -> Event<'_> {
        self.event("StopFailure").with("error", kind).with("last_assistant_message", message)
    }

    pub(super) fn rate_limit(&mut self) {
        let end = match ENDS[usize::try_from(self.dice.below(ENDS.len() as u64)).unwrap()] {
            End::WokenAfterAnOrder if !self.chance(4) => End::Net,
            end => end,
        };
        let mut far = false;
        let message = match end {
            End::WokenAfterAnOrder | End::Woken => {
                format!("usage limit reached|{}", epoch() + SOON_S)
            }
            _ if self.chance(3) => {
                far = true;
                format!("usage limit reached|{}", epoch() + 2 * 3600)
            }
            _ => "slow down".to_owned(),
        };
        let waiter = self.failure("rate_limit", &message).start();
        self.model().wait(far);
        if self.model().is_over() {
            assert_quiet(&waiter.wait(DEADLINE));
            self.count("  with no wait");
            return;
        }
        self.end_wait(end, waiter);
        if !self.model().is_over() {
            self.assert_as_modelled();
            self.stop();
        }
    }

    fn end_wait(&mut self, end: End, waiter: Running) {
        if end == End::Woken {
            self.assert_wakes(&waiter.wait(DEADLINE));
            return self.count("  that ended in a wake");
        }
        self.await_ticket(&waiter);
        self.assert_as_modelled();
        match end {
            End::Woken => {}
            End::WokenAfterAnOrder => {
                if self.chance(2) {
                    self.word();
                } else {
                    self.raise();
                }
                self.assert_wakes(&waiter.wait(DEADLINE));
                self.count("  that ended in a wake, after an order");
            }
            End::Net => {
                kill_process(waiter.pid(), Signal::KILL).unwrap();
                drop(waiter);
                let idle = self.event("Notification").with("notification_type", "idle_prompt");
                let net = idle.env("CREW_CLOCK_OFFSET_MS", A_NIGHT_MS).start().wait(DEADLINE);
                self.assert_wakes(&net);
                self.count("  that the net ended, after a night");
            }
            End::Orphaned(signal) => {
                kill_process(waiter.pid(), signal).unwrap();
                drop(waiter);
                self.take_up();
            }
            End::Compaction => {
                self.assert_reminded();
                self.take_up();
                assert_quiet(&waiter.wait(DEADLINE));
            }
            End::Prompt => {
                self.take_up();
                assert_quiet(&waiter.wait(DEADLINE));
            }
            End::Pause => {
                self.prompt("crew pause").assert_lets_go_typed();
                assert_quiet(&waiter.wait(DEADLINE));
                self.model().standing = Standing::Paused;
                self.assert_as_modelled();
                self.resume();
            }
            End::Cancel => {
                let id = self.id();
                self.door.sandbox.crew(&["cancel", &id]).success();
                assert_quiet(&waiter.wait(DEADLINE));
                self.model().standing = Standing::Ended("cancelled");
            }
            End::Clear => {
                self.event("SessionEnd").with("reason", "clear").send().assert_silent();
                assert_quiet(&waiter.wait(DEADLINE));
                self.model().standing = Standing::Ended("interrupted");
                self.go_on_in_another_session();
            }
        }
    }

    /// Continues with the user's own prompt, which revokes the wake.
    fn take_up(&mut self) {
        self.prompt("the limit is lifted").assert_silent();
        self.model().standing = Standing::Running;
    }

    /// Asserts that the user's message is in the answer.
    pub(super) fn assert_reported(&mut self, answer: &Answer) {
        let shown = &self.model().words;
        assert!(shown.iter().all(|words| answer.context().contains(words)), "{answer:#?}");
    }

    /// Asserts that the agent is woken for the interrupted iteration, or for the next one.
    fn assert_wakes(&mut self, ran: &Ran) {
        self.model().standing = Standing::Running;
        let wakes = ran.code() == 2 && ran.stderr.starts_with(&self.model().marker());
        assert!(wakes, "no wake: {ran:#?}");
        // Messages sent during the wait go with the wake.
        let shown = std::mem::take(&mut self.model().words);
        assert!(shown.iter().all(|words| ran.stderr.contains(words)), "{shown:?}: {ran:#?}");
    }

    fn await_ticket(&mut self, waiter: &Running) {
        let folder = self.door.sandbox.crew_home().join("wakes").join(&self.session);
        let of_waiter = format!("{}-", waiter.pid().as_raw_nonzero());
        let has_ticket = || {
            std::fs::read_dir(&folder).into_iter().flatten().flatten().any(|entry| {
                let name = entry.file_name().into_string().unwrap();
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                name.starts_with(&of_waiter) && text.contains("\"due\"")
            })
        };
        let end = Instant::now() + DEADLINE;
        while !has_ticket() {
            assert!(Instant::now() < end, "no ticket of {of_waiter}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(super) fn refused_request(&mut self) {
        self.turn();
        // A limit that an ended loop met may still stand: this one would wait for its end.
        std::fs::remove_dir_all(self.door.sandbox.crew_home().join("accounts")).ok();
        let waiter = self.failure("invalid_request", "prompt is too long").start();
        let ran = waiter.wait(DEADLINE);
        self.model().refuse();
        if self.model().is_over() {
            return assert_quiet(&ran);
        }
        self.assert_wakes(&ran);
        self.model().continued += 1;
    }

    pub(super) fn shut_out(&mut self) {
        if self.chance(3) {
            let ran = self.failure("authentication_failed", "invalid key").start().wait(DEADLINE);
            assert_quiet(&ran);
            self.model().shut_out();
        } else {
            self.rate_limit();
        }
    }
}

impl Answer {
    /// Asserts that a request typed as a message is not passed on.
    fn assert_lets_go_typed(&self) {
        assert!(self.ran.code() == 0 && self.json["decision"] == "block", "{self:#?}");
    }
}
