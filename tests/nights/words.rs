//! A usage limit that reaches a session only as text, on the real clock: a hook gets the text that
//! the client shows, and no field with the end of the limit.

use chrono::{DateTime, Utc};

use super::{newest, said};
use crate::client::{Api, Client, Installed, Reply, with_terminal};
use crate::sandbox::{Sandbox, poll_within};
use crate::side_by_side::side_by_side;
use crate::words::{OVER_WITHIN, assert_waits_for, limit_in_words, soon};

/// How the service reports the limit to the client, and the account to which it is reported.
type WordedLimit = (fn(DateTime<Utc>) -> Reply, &'static [(&'static str, &'static str)]);

const IN_ITS_OWN_WORDS: WordedLimit = (limit_in_words, &[]);
/// A limit in headers, which the client describes in its own words.
const IN_HEADERS: WordedLimit =
    (Reply::usage_limit, &[("ANTHROPIC_API_KEY", ""), ("CLAUDE_CODE_OAUTH_TOKEN", "fake")]);

#[test]
fn the_reset_in_the_words_is_waited_for_and_the_same_iteration_is_repeated() {
    let scenarios = ["2.1.330", "2.1.197"]
        .into_iter()
        .flat_map(|version| [IN_ITS_OWN_WORDS, IN_HEADERS].map(|shown| (version, shown)));
    side_by_side(scenarios.map(|(version, shown)| {
        move || with_terminal(version, |installed| assert_waited_for(installed, shown))
    }));
}

fn assert_waited_for(installed: &Installed, (limit, account): WordedLimit) {
    let sandbox = Sandbox::new();
    let reset = soon();
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(if asked == 2 { limit(reset) } else { said(asked) })
    });
    let client = Client::new(installed, &sandbox, &api).env("TZ", "UTC");
    let client = account.iter().fold(client, |client, (name, value)| client.env(name, value));
    let terminal = client.open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 3");
    terminal.enter();
    poll_within(OVER_WITHIN, "the wait", || newest(&sandbox)["status"] == "waiting");
    assert_waits_for(&sandbox, reset, &terminal.screen());
    if installed.version == "2.1.197" && !account.is_empty() {
        // The older client asks a subscriber what to do, and takes no wake before it is answered.
        terminal.wait_for_text("What do you want to do?");
        terminal.enter();
    }
    poll_within(OVER_WITHIN, "the end of the loop", || newest(&sandbox)["outcome"] == "exhausted");
    assert_eq!(newest(&sandbox)["completed_iterations"], 3);
    let requests = api.main_requests();
    assert_eq!(requests.len(), 4);
    assert!(requests[2].newest().contains("iteration 2 of 3"), "{}", requests[2].newest());
}
