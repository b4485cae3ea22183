//! A fallback's login, which is checked at the start and at a resume of a run.

use rustix::process::Signal;
use serde_json::json;

use super::claude::{answer, limited};
use super::fallback::{SETTINGS, count, world};
use crate::sandbox::{DEADLINE, poll_until};

#[test]
fn a_fallback_that_is_not_logged_in_is_refused_at_the_start() {
    let world = world(&[&answer("Hm.")], "exit 3");
    std::fs::write(world.note("second.state"), "echo Not logged in; exit 1").unwrap();
    let ran = world.crew(&["run", "Do it", "--fallback", "second"]);
    assert_eq!((ran.code(), world.calls(), world.loops().len()), (1, 0, 0), "{ran:#?}");
    insta::assert_snapshot!(ran.stderr, @"
    crew: fallback second: `second login status` failed (exit 1): Not logged in
    hint: log in with second, or leave second out; what it is asked is `login` under [agents.second] in your settings, [] for nothing
    ");
    // It is asked with the environment that it works with.
    std::fs::write(world.note("second.state"), "test \"$KEY\" = k").unwrap();
    world.settings(&format!("{SETTINGS}agents.second.environment.KEY = \"k\"\n"));
    world.crew(&["run", "Do it", "-n", "1", "--fallback", "second"]).code();
    assert_eq!(world.calls(), 1);
    std::fs::write(world.note("second.state"), "exit 1").unwrap();
    world.settings(&format!(
        "agents.fake.output = \"claude\"\n{}",
        SETTINGS.replace("[\"login\", \"status\"]", "[]")
    ));
    let asked = count(&world, "second.login");
    assert_eq!(world.crew(&["run", "Do it", "-n", "1", "--fallback", "second"]).code(), 10);
    assert_eq!((world.calls(), count(&world, "second.login")), (2, asked));
}

#[test]
fn ctrl_c_during_the_login_check_of_a_fallback_starts_nothing() {
    let world = world(&[&answer("Hm.")], "exit 3");
    let asks = format!("touch '{}'; sleep 600", world.note("asked").display());
    let interrupted = |arguments: &[&str]| {
        std::fs::write(world.note("second.state"), &asks).unwrap();
        std::fs::remove_file(world.note("asked")).ok();
        let running = world.sandbox.start_crew(arguments);
        poll_until("the login is asked for", || world.note("asked").exists());
        running.signal(Signal::INT);
        let ran = running.wait(DEADLINE);
        assert_eq!(
            (ran.code(), ran.stderr.as_str()),
            (130, "crew: interrupted; nothing was started\n")
        );
    };
    interrupted(&["run", "Do it", "--fallback", "second"]);
    assert_eq!(world.loops().len(), 0);
    assert_eq!(world.crew(&["run", "Do it", "-n", "1"]).code(), 10);
    interrupted(&["resume", "-n", "+1", "--fallback", "second"]);
    assert_eq!((world.calls(), &world.the_loop()["outcome"]), (1, &json!("exhausted")));
}

#[test]
fn a_slow_login_check_at_a_resume_does_not_block_other_commands() {
    let world = world(&[&limited(600), &answer("<promise>COMPLETE</promise>")], "exit 3");
    let running = world.sandbox.start_crew(&["run", "Do it"]);
    poll_until("the wait", || running.stdout().contains("Waiting until"));
    world.crew(&["pause"]).success();
    assert_eq!(running.wait(DEADLINE).code(), 130);
    world.sandbox.put_crew_on_the_path();
    std::fs::write(world.note("second.state"), "crew tell 'use the parser'").unwrap();
    let ran = world.crew(&["resume", "--fallback", "second"]);
    assert_eq!((ran.code(), count(&world, "second.login")), (0, 1), "{ran:#?}");
    assert!(world.prompt(2).contains("use the parser"), "{}", world.prompt(2));
}
