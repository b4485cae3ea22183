//! A usage limit that reaches a run only as text, on the real clock.

use super::World;
use super::claude::{answer, failed_with};
use super::client::{assert_repeated, client};
use crate::client::{Api, Installed, Reply, with_client};
use crate::sandbox::{Sandbox, poll_within};
use crate::side_by_side::side_by_side;
use crate::words::{OVER_WITHIN, assert_waits_for, limit_in_words, soon};

#[test]
#[ignore = "long"]
fn the_reset_in_the_words_is_waited_for_and_the_same_iteration_is_repeated() {
    let scenarios: [fn(); 3] = [
        || with_client("2.1.330", by_the_real_client),
        || with_client("2.1.197", by_the_real_client),
        by_an_agent_that_speaks_like_it,
    ];
    side_by_side(scenarios);
}

fn by_the_real_client(installed: &Installed) {
    let sandbox = Sandbox::new();
    let reset = soon();
    let mut asked = 0;
    let api = Api::answering(move |_| {
        asked += 1;
        Some(if asked == 2 { limit_in_words(reset) } else { Reply::text("Working on it.") })
    });
    let client = client(installed, &sandbox, &api).env("TZ", "UTC");
    let running = client.start_crew(&["run", "Build it", "-n3"]);
    poll_within(OVER_WITHIN, "the wait", || running.stdout().contains("Waiting until"));
    assert_waits_for(&sandbox, reset, &running.stdout());
    assert_repeated(&sandbox, &running.wait(OVER_WITHIN), &api);
}

fn by_an_agent_that_speaks_like_it() {
    let reset = soon();
    let words = reset.format("your session limit · resets %-I:%M%P").to_string();
    let limit = failed_with("rate_limit", 429, &words);
    let world = World::claude(&[&limit, &answer("Working on it.")], "");
    let running = world.sandbox.start_crew(&["run", "Build it", "-n2"]);
    poll_within(OVER_WITHIN, "the wait", || running.stdout().contains("Waiting until"));
    assert_waits_for(&world.sandbox, reset, &running.stdout());
    let ran = running.wait(OVER_WITHIN);
    assert_eq!((ran.code(), world.calls()), (10, 3), "{ran:#?}");
    assert_eq!(world.prompt(1), world.prompt(2));
    assert_eq!(world.the_loop()["completed_iterations"], 2);
}
