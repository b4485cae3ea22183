//! The scenarios, as data: the model service's replies, crew's options, and disturbances.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use rustix::process::Signal;

use crate::client::{Refusal, Reply};

pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// The replies to consecutive requests; the last one is repeated. The path is that of the file
    /// the check expects.
    pub(super) replies: fn(&Path) -> Vec<Reply>,
    pub(super) arguments: &'static [&'static str],
    /// The signal that the agent gets while the first request is open.
    pub(super) signal: Option<Signal>,
    /// Whether a wait runs to its end; otherwise the run is cancelled once it waits.
    pub(super) is_patient: bool,
}

pub(super) const CLAIM: &str = "All is done.\n\n<promise>COMPLETE</promise>";
const CHECK: [&str; 2] = ["--verify", "test -e made.txt"];
const ONCE: &[&str] = &["-n", "1"];
const CHECKED: &[&str] = &[CHECK[0], CHECK[1], "-n", "3"];
/// How long a request stays open in which the agent is ended.
const OPEN: Duration = Duration::from_secs(600);

/// When the limit of a plan ends, to the minute: its text names no seconds.
pub(super) fn reset() -> DateTime<Utc> {
    (Utc::now() + TimeDelta::minutes(70)).duration_trunc(TimeDelta::minutes(1)).unwrap()
}

const fn plain(name: &'static str, replies: fn(&Path) -> Vec<Reply>) -> Scenario {
    Scenario { name, replies, arguments: CHECKED, signal: None, is_patient: false }
}

fn made(path: &Path) -> Reply {
    used(Reply::text("I write.").and_write(path, "made"))
}

fn claim() -> Reply {
    used(Reply::text(CLAIM))
}

/// A reply with usage numbers of which no two sums are equal.
fn used(reply: Reply) -> Reply {
    reply.usage(1_001, 53).used("cache_read_input_tokens", 807)
}

pub(super) const SCENARIOS: [Scenario; 16] = [
    Scenario {
        arguments: ONCE,
        ..plain("plain", |_| vec![used(Reply::text("Hello from the script.\nSecond line."))])
    },
    Scenario {
        arguments: ONCE,
        ..plain("tool", |_| {
            let call = Reply::text("I look.").and_bash("echo out-of-tool; echo ran > tool.txt");
            vec![used(call), used(Reply::text("The tool ran."))]
        })
    },
    plain("claim", |path| vec![made(path), claim()]),
    plain("false claim", |path| vec![claim(), made(path), claim()]),
    // An agent that gives up at once is given a break first.
    Scenario {
        arguments: &[CHECK[0], CHECK[1], "-n", "2"],
        is_patient: true,
        ..plain("cut", |_| vec![claim().stop_reason("max_tokens")])
    },
    plain("empty", |_| vec![used(Reply::nothing())]),
    plain("broken stream", |_| vec![claim().dropped()]),
    plain("401", |_| vec![Reply::refusal(Refusal::Key)]),
    plain("quota", |_| vec![Reply::refusal(Refusal::Credit)]),
    Scenario {
        is_patient: true,
        ..plain("429 short", |path| {
            vec![Reply::refusal(Refusal::Busy { seconds: 2 }), made(path), claim()]
        })
    },
    plain("429 an hour", |_| vec![Reply::refusal(Refusal::Busy { seconds: 3600 })]),
    plain("limit in words", |_| vec![Reply::refusal(Refusal::Limit { reset: reset() })]),
    plain("500", |_| vec![Reply::refusal(Refusal::Outage)]),
    Scenario {
        arguments: &["-n", "2", "--permissions", "default"],
        ..plain("denied", |_| {
            let call = Reply::text("I try.").and_bash("touch denied.txt");
            vec![used(call), used(Reply::text("I could not."))]
        })
    },
    Scenario {
        is_patient: true,
        signal: Some(Signal::TERM),
        ..plain("ended by TERM", |path| vec![claim().after(OPEN), made(path), claim()])
    },
    Scenario {
        is_patient: true,
        signal: Some(Signal::KILL),
        ..plain("ended by KILL", |path| vec![claim().after(OPEN), made(path), claim()])
    },
];
