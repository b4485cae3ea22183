//! Tests that somebody other than the agent changed while a loop was at work: the end is not
//! refused.

use super::projects::{PY, PY_TESTS};
use super::{End, act, row};
use crate::run::proven::sandbox;
use crate::run::{CLAIM, WORK, World};
use crate::sandbox::{DEADLINE, poll_until};

/// A person decides between two iterations that a failing test expects something else.
#[test]
fn a_test_that_a_person_changed_between_two_iterations_is_part_of_the_baseline() {
    let world = World::of(sandbox(), &[WORK, CLAIM]);
    row("a person", &PY, &[], End::AtMostPassing).prepare(&world.sandbox);
    world.crew(&["run", "Do it", "-n", "1", "--verify", PY.check]);
    world.sandbox.write("tests/expected.json", "{\"power\": 10}\n");
    world.crew(&["resume", "-n", "+1"]);
    let ended = world.the_loop();
    assert_eq!(ended["outcome"], "completed", "{ended:#}");
}

/// A person makes the same decision while a run waits for its next iteration.
#[test]
fn a_test_that_a_person_changed_during_a_delay_is_part_of_the_baseline() {
    let world = World::of(sandbox(), &[WORK, CLAIM]);
    row("a person", &PY, &[], End::AtMostPassing).prepare(&world.sandbox);
    let options = ["run", "Do it", "-n", "2", "--delay", "5s", "--verify", PY.check];
    let running = world.sandbox.start_crew(&options);
    poll_until("the delay", || running.stdout().contains("Iteration 2 starts at"));
    world.sandbox.write("tests/expected.json", "{\"power\": 10}\n");
    running.wait(DEADLINE);
    let ended = world.the_loop();
    assert_eq!(ended["outcome"], "completed", "{ended:#}");
}

/// The agent pulls another person's commit that changes the failing test.
#[test]
fn a_test_that_came_with_a_pulled_commit_refuses_no_claim() {
    let world = World::of(sandbox(), &[&format!("git pull -q origin main; {CLAIM}")]);
    row("a commit", &PY, &[], End::AtMostPassing).prepare(&world.sandbox);
    let upstream = format!(
        "git init -q --bare -b main ../origin; git remote add origin ../origin; git push -q -u origin main; \
         git clone -q ../origin ../other; cd ../other; git config user.name B; git config user.email b@b; \
         sed 's/expected(\"power\")/10/' {PY_TESTS} > x; mv x {PY_TESTS}; \
         GIT_AUTHOR_EMAIL=b@b GIT_COMMITTER_EMAIL=b@b git commit -qam upstream; git push -q origin main"
    );
    act(&world.sandbox, &upstream);
    world.crew(&["run", "Do it", "-n", "1", "--verify", PY.check]);
    let ended = world.the_loop();
    assert_eq!(ended["outcome"], "completed", "{ended:#}");
}
