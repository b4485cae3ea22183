//! The real client, driven against a scripted Messages API on the loopback interface. A scenario
//! is a function of an installed client and is run for both pinned versions, as two tests; where
//! one is not installed it says so and passes, unless `CREW_REQUIRE_CLIENT=1`.

use std::io::Write;
use std::path::PathBuf;

use crate::sandbox::checkout;

mod api;
mod harness;
mod http;
mod plugin;
mod probe;
mod refusal;
mod reply;
mod request;
mod run;
mod shapes;
mod terminal;

pub(crate) use api::{Api, OVERRUN, ReportedUse};
pub(crate) use refusal::Refusal;
pub(crate) use reply::{Reply, Tokens};
pub(crate) use request::{Kind, Request};
pub(crate) use run::{Client, Session, environment};
pub(crate) use terminal::{Terminal, installed};

/// An installed client.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) version: &'static str,
    pub(crate) program: PathBuf,
}

/// Makes two tests of each scenario, a `fn(&Installed)`: one for each pinned client.
macro_rules! on_both_clients {
    ($($scenario:ident),+ $(,)?) => { $(
        mod $scenario {
            #[test]
            fn on_2_1_330() {
                crate::client::with_client("2.1.330", super::$scenario);
            }
            #[test]
            fn on_2_1_197() {
                crate::client::with_client("2.1.197", super::$scenario);
            }
        }
    )+ };
}

/// Makes two tests of each scenario in a terminal, which also needs tmux.
macro_rules! on_both_terminals {
    ($($scenario:ident),+ $(,)?) => { $(
        mod $scenario {
            #[test]
            fn on_2_1_330() {
                crate::client::with_terminal("2.1.330", super::$scenario);
            }
            #[test]
            fn on_2_1_197() {
                crate::client::with_terminal("2.1.197", super::$scenario);
            }
        }
    )+ };
}

pub(crate) use {on_both_clients, on_both_terminals};

pub(crate) fn with_client(version: &'static str, scenario: impl Fn(&Installed)) {
    let folder = checkout().join("target/clients").join(version);
    let program = folder.join("node_modules/@anthropic-ai/claude-code/bin/claude.exe");
    if program.is_file() {
        scenario(&Installed { version, program });
    } else {
        skip(&format!("client {version} is not installed; run tests/client/install"));
    }
}

pub(crate) fn with_terminal(version: &'static str, scenario: impl Fn(&Installed)) {
    in_a_terminal(|| with_client(version, scenario));
}

/// Runs a scenario in a terminal with any program.
pub(crate) fn in_a_terminal(scenario: impl FnOnce()) {
    if installed("tmux").is_some() {
        scenario();
    } else {
        skip("tmux is not installed");
    }
}

pub(crate) fn skip(reason: &str) {
    assert!(
        std::env::var("CREW_REQUIRE_CLIENT").as_deref() != Ok("1"),
        "CREW_REQUIRE_CLIENT=1, but {reason}"
    );
    say(&format!("skipped: {reason}"));
}

/// Prints a line even for a test that passes.
pub(crate) fn say(line: &str) {
    // Not by a macro: the test runner would keep the line of a passing test to itself.
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}
