//! Faults at a boundary of a loop. Each finds the loop running and leaves it running or ended.

use std::io::Write as _;
use std::time::Duration;

use rustix::process::{Signal, kill_process_group};
use serde_json::Value;

use super::Soak;
use super::model::Standing;
use crate::door::OTHER_SESSION;
use crate::door::crashes::points;
use crate::sandbox::DEADLINE;
use crate::spawned::Running;

type Fault = (&'static str, fn(&mut Soak));

/// Every fault, the more frequent ones several times.
pub(super) const FAULTS: [Fault; 28] = [
    ("kill -9 of the hook", Soak::kill),
    ("kill -9 of the hook", Soak::kill),
    ("kill -9 of the hook", Soak::kill),
    ("Esc, then a question", Soak::escape),
    ("Esc, then a question", Soak::escape),
    ("Esc in the hook", Soak::escape_in_the_hook),
    ("a failed write", Soak::fail_a_write),
    ("a failed write", Soak::fail_a_write),
    ("a failed write", Soak::fail_a_write),
    ("a rate limit", Soak::rate_limit),
    ("a rate limit", Soak::rate_limit),
    ("a rate limit", Soak::rate_limit),
    ("a refused request", Soak::refused_request),
    ("an account shut out", Soak::shut_out),
    ("/clear", Soak::clear),
    ("/clear", Soak::clear),
    ("a compaction", Soak::compact),
    ("a compaction", Soak::compact),
    ("a clock eight hours ahead", Soak::clock_ahead),
    ("a clock eight hours back", Soak::clock_back),
    ("a cancel beside the hook", Soak::cancel_beside),
    ("a view deleted", Soak::delete_view),
    ("a view altered", Soak::alter_view),
    ("a view that says inactive", Soak::deactivate),
    ("crew pause typed", Soak::pause),
    ("new limits", Soak::limits),
    ("crew tell", Soak::tell),
    ("the stops of others", Soak::others),
];

const EIGHT_HOURS_MS: i64 = 8 * 3_600_000;
/// The longest time, in microseconds, that a hook runs before it is killed: most take less.
const MOMENT_US: u64 = 20_000;

/// Kills a process and its group some microseconds from now.
pub(super) fn kill_after(hook: &Running, wait_us: u64) {
    std::thread::sleep(Duration::from_micros(wait_us));
    kill_process_group(hook.pid(), Signal::KILL).ok();
}

impl Soak {
    fn moment(&mut self) -> Duration {
        Duration::from_micros(self.dice.below(MOMENT_US))
    }

    fn signal_a_hook(&mut self, signal: Signal) {
        let turn = self.turn();
        let moment = self.moment();
        let hook = self.stopping(turn).start();
        std::thread::sleep(moment);
        kill_process_group(hook.pid(), signal).ok();
        let ran = hook.wait(DEADLINE);
        self.adopt(turn, &ran);
    }

    fn kill(&mut self) {
        self.signal_a_hook(Signal::KILL);
    }

    fn escape_in_the_hook(&mut self) {
        self.signal_a_hook(Signal::TERM);
        if !self.model().is_over() {
            self.escape();
        }
    }

    fn escape(&mut self) {
        let mark = r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
        let mut options = std::fs::OpenOptions::new();
        let mut transcript = options.create(true).append(true).open(self.transcript()).unwrap();
        writeln!(transcript, "{mark}").unwrap();
        let answer = self.prompt("how far are you?");
        assert!(answer.line().contains("because you interrupted it"), "{answer:#?}");
        self.model().standing = Standing::Paused;
        self.assert_as_modelled();
        let turn = self.turn();
        self.stopping(turn).send().assert_silent();
        self.resume();
        self.stop();
    }

    fn fail_a_write(&mut self) {
        let points = points();
        let point = points[usize::try_from(self.dice.below(points.len() as u64)).unwrap()];
        let error = ["28", "5", "30"][usize::try_from(self.dice.below(3)).unwrap()];
        let fault = format!("{point}#{}={error}", 1 + self.dice.below(3));
        let turn = self.turn();
        let ran = self.stopping(turn).env("CREW_FAULT", &fault).start().wait(DEADLINE);
        assert!(ran.code() == 0 && ran.stderr.lines().count() <= 1, "{fault}: {ran:#?}");
        self.adopt(turn, &ran);
    }

    fn clear(&mut self) {
        self.event("SessionEnd").with("reason", "clear").send().assert_silent();
        self.model().standing = Standing::Ended("interrupted");
        self.assert_as_modelled();
        self.go_on_in_another_session();
        self.stop();
    }

    /// Ends the session and so interrupts its loop: the next session is told once and may take over
    /// the loop.
    pub(super) fn go_on_in_another_session(&mut self) {
        let turn = self.turn();
        self.stopping(turn).send().assert_silent();
        self.new_session();
        let shown = self.event("SessionStart").with("source", "clear").send();
        assert!(shown.line().contains(&self.id()) && !shown.goes_on(), "{shown:#?}");
        self.event("SessionStart").with("source", "clear").send().assert_silent();
        self.stopping(turn).send().assert_silent();
        self.resume();
    }

    fn compact(&mut self) {
        self.assert_reminded();
        self.stop();
    }

    pub(super) fn assert_reminded(&mut self) {
        let answer = self.event("SessionStart").with("source", "compact").send();
        let context = answer.context();
        assert!(context.starts_with(&self.model().marker()), "{answer:#?}");
        assert!(context.contains("Continue now."), "{answer:#?}");
    }

    fn clock_ahead(&mut self) {
        self.stop_by(EIGHT_HOURS_MS);
    }

    fn clock_back(&mut self) {
        self.stop_by(-EIGHT_HOURS_MS);
    }

    fn cancel_beside(&mut self) {
        let id = self.id();
        let turn = self.turn();
        let moment = self.moment();
        let hook = self.stopping(turn).start();
        std::thread::sleep(moment);
        self.door.sandbox.crew(&["cancel", &id]).success();
        let answer = super::Answer::of(hook.wait(DEADLINE));
        assert!(answer.ran.code() == 0 && answer.ran.stderr.is_empty(), "{answer:#?}");
        let state = &self.door.record(&id)["state"];
        let (boundaries, completed) = (self.model().boundaries, self.model().completed);
        if state["completed"] != completed {
            self.model().iterate(turn);
            let goes_on = answer.goes_on();
            assert!(!goes_on || !self.model().is_over(), "{answer:#?}");
            self.model().continued += u64::from(goes_on);
        } else if state["boundaries"] != boundaries {
            self.model().follow_request(Standing::Ended("cancelled"));
        }
        if !self.model().is_over() {
            self.model().standing = Standing::Ended("cancelled");
        }
        self.stopping(turn).send().assert_lets_go_after_a_cancel();
        self.stopping(turn).send().assert_silent();
    }

    fn delete_view(&mut self) {
        std::fs::remove_file(self.door.view_file()).unwrap();
        self.stop();
        assert!(self.door.remarks(&self.id()).contains("state.json was deleted"));
        assert_eq!(self.door.view()["loop"]["id"], *self.id());
    }

    fn edit_view(&mut self, key: &str, value: impl Into<Value>) {
        let mut view = self.door.view();
        view["loop"][key] = value.into();
        std::fs::write(self.door.view_file(), view.to_string()).unwrap();
    }

    fn alter_view(&mut self) {
        self.edit_view("maxIterations", 9999);
        self.stop();
        assert!(self.door.remarks(&self.id()).contains("state.json was altered"));
        assert_eq!(self.door.view()["loop"]["maxIterations"], self.model().terms.max);
    }

    fn deactivate(&mut self) {
        // A resume that was killed before it wrote the view: what the file says is of the end.
        if !self.door.view()["loop"]["outcome"].is_null() {
            return self.stop();
        }
        self.edit_view("active", false);
        let turn = self.turn();
        let answer = self.stopping(turn).send().assert_lets_go();
        self.model().follow_request(Standing::Ended("cancelled"));
        assert!(answer.line().contains("cancelled"), "{answer:#?}");
    }

    fn pause(&mut self) {
        let answer = self.prompt("crew pause");
        assert!(answer.refusal().contains("pauses when its turn ends"), "{answer:#?}");
        let turn = self.turn();
        let answer = self.stopping(turn).send().assert_lets_go();
        self.model().follow_request(Standing::Paused);
        assert!(answer.line().contains("/crew:resume resumes it"), "{answer:#?}");
        self.assert_as_modelled();
        self.stopping(turn).send().assert_silent();
        self.resume();
        self.stop();
    }

    fn limits(&mut self) {
        let id = self.id();
        match self.dice.below(3) {
            0 => {
                let max = self.model().completed + 1 + self.dice.below(3);
                self.door.sandbox.crew(&["set", &id, "-n", &max.to_string()]).success();
                self.model().limit(max);
                self.stop();
            }
            1 => {
                self.raise();
                self.stop();
            }
            _ => self.raise_beside(),
        }
    }

    pub(super) fn raise(&mut self) {
        let id = self.id();
        self.door.sandbox.crew(&["set", &id, "-n", "+1"]).success();
        self.raised();
    }

    /// A limit of one more iteration, counted from the completed ones if there was no limit.
    fn raised(&mut self) {
        let max = match self.model().terms.max {
            0 => self.model().completed,
            max => max,
        };
        self.model().limit(max + 1);
    }

    /// Raises the limit beside a boundary: either the new limit applies to it, or the old one has
    /// ended the loop.
    fn raise_beside(&mut self) {
        let turn = self.turn();
        let moment = self.moment();
        let hook = self.stopping(turn).start();
        std::thread::sleep(moment);
        let set = self.door.sandbox.crew(&["set", &self.id(), "-n", "+1"]);
        let ran = hook.wait(DEADLINE);
        assert!(ran.code() == 0 && ran.stderr.is_empty(), "{ran:#?}");
        // Without a limit before, the new one counts from what was completed before this boundary
        // or after it.
        let record = self.door.record(&self.id());
        let counted_before = self.model().terms.max == 0
            && record["contract"]["limits"]["max_iterations"] == self.model().completed + 2;
        if set.code() == 0 && !counted_before {
            self.raised();
        }
        self.adopt(turn, &ran);
        if counted_before {
            self.raised();
        }
        assert!(set.code() == 0 || self.model().is_over(), "{set:#?}");
    }

    pub(super) fn word(&mut self) {
        let words = format!("mind {:x}", self.dice.0);
        if self.model().words.len() < 5 {
            let id = self.id();
            self.door.sandbox.crew(&["tell", "--loop", &id, &words]).success();
            self.model().words.push(words);
        }
    }

    fn tell(&mut self) {
        self.word();
        self.stop();
    }

    fn others(&mut self) {
        let turn = self.turn();
        self.stopping(turn).with("session_id", OTHER_SESSION).send().assert_silent();
        self.stopping(turn).with("agent_id", "a1").send().assert_silent();
        let second = self.typed("loop", "\"another\"").with("session_id", OTHER_SESSION).send();
        assert!(second.refusal().contains(&self.id()), "{second:#?}");
        self.assert_as_modelled();
        self.stop();
    }
}
