//! A wait as long as a real one. It takes twelve minutes, so it runs only with `CREW_LONG_WAIT=1`.

use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use super::waits::limit;
use super::{await_loop, newest, said};
use crate::client::{Api, Client, Installed, say, with_terminal};
use crate::sandbox::Sandbox;

/// How far ahead the limit's reset is.
const WAIT: Duration = Duration::from_secs(11 * 60);
/// The maximum that may be added to it: the spread of many loops, and a slow machine.
const SLACK: Duration = Duration::from_secs(90);

#[test]
fn the_same_iteration_is_repeated_after_a_wait_of_eleven_minutes_on_2_1_330() {
    if std::env::var("CREW_LONG_WAIT").as_deref() == Ok("1") {
        with_terminal("2.1.330", eleven_minutes_are_waited_for_and_the_same_iteration_is_repeated);
    } else {
        say("skipped: a wait of eleven minutes; CREW_LONG_WAIT=1 runs it");
    }
}

fn tell(begun: Instant, what: &str) {
    let clock = humantime::format_rfc3339_seconds(SystemTime::now());
    say(&format!("{clock} +{:>5.1} s  {what}", begun.elapsed().as_secs_f64()));
}

fn first(page: &str) -> &str {
    page.lines().next().unwrap_or_default()
}

fn eleven_minutes_are_waited_for_and_the_same_iteration_is_repeated(installed: &Installed) {
    let sandbox = Sandbox::new();
    let begun = Instant::now();
    let (sender, requests) = mpsc::channel();
    let mut asked = 0;
    let api = Api::answering(move |request| {
        asked += 1;
        sender.send((asked, request.newest())).ok();
        Some(if asked == 2 { limit(WAIT.as_secs()) } else { said(asked) })
    });
    let terminal = Client::new(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" --stall 0 -n 4");
    terminal.enter();
    tell(begun, "the loop is typed");
    await_loop(&sandbox, "the loop waits", |it| it["status"] == "waiting");
    let waiting = Instant::now();
    let mut shown = sandbox.crew(&["status"]).success();
    tell(begun, first(&shown));
    assert!(
        shown.contains("waiting until") && shown.contains("then iteration 2 of 4 again"),
        "{shown}"
    );
    let mut asked = Vec::new();
    while newest(&sandbox)["outcome"].is_null() {
        let late = waiting.elapsed() > WAIT + SLACK;
        assert!(!late, "no wake: {:#}\n{}", newest(&sandbox), terminal.screen());
        std::thread::sleep(Duration::from_millis(500));
        for (number, newest) in requests.try_iter() {
            let line =
                newest.lines().find(|line| line.contains("iteration")).unwrap_or("its start");
            tell(begun, &format!("request {number}: {line}"));
            asked.push((number, waiting.elapsed(), line.to_owned()));
        }
        let now = sandbox.crew(&["status"]).success();
        if first(&now) != first(&shown) {
            tell(begun, first(&now));
            shown = now;
        }
    }
    let ended = newest(&sandbox);
    tell(
        begun,
        &format!("{} after {} iterations", ended["outcome"], ended["completed_iterations"]),
    );
    assert_eq!(
        (&ended["outcome"], &ended["completed_iterations"]),
        (&"exhausted".into(), &4.into())
    );
    assert_eq!(api.main_requests().len(), 5);
    assert!(first(&sandbox.crew(&["status"]).success()).contains("exhausted"));
    let (_, woken, line) = asked.iter().find(|(number, ..)| *number == 3).unwrap();
    assert!(*woken + Duration::from_secs(5) > WAIT, "woken early, after {woken:?}");
    assert!(line.contains("iteration 2 of 4"), "{line}");
}
