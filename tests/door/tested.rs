//! The output of a check about its tests: a check that ran none is not believed, and the agent is
//! told which tests fail. The check prints what a real `cargo test` would.

use serde_json::json;

use super::Door;

const CLAIM: &str = "All is well.\n\n<promise>COMPLETE</promise>";
/// A check that prints the file `out` and fails if it says so.
const CHECK: &str = "--verify 'cat out; ! grep -q FAILED out' --stall 0";
pub(crate) const SOME_PASS: &str = "test adds ... ok\ntest rounds ... ok\n\
    test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
pub(crate) const ONE_FAILS: &str = "test adds ... ok\ntest rounds ... FAILED\n\
    test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
pub(super) const BOTH_FAIL: &str = "test adds ... FAILED\ntest rounds ... FAILED\n\
    test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
const FILTERED: &str = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 57 filtered out; finished in 0.00s\n";
const NONE: &str = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

#[test]
fn a_check_that_ran_no_test_is_refused_and_needs_a_person_the_second_time() {
    let door = Door::new();
    door.sandbox.write("out", FILTERED);
    let id = door.begin(&format!("Build it {CHECK}"));
    let refused = door.stop(CLAIM).assert_goes_on();
    let because = "ran 0 tests (57 filtered out)";
    assert!(refused.context().contains(because), "{refused:#?}");
    assert!(refused.line().contains(because), "{refused:#?}");
    door.stop(CLAIM).assert_lets_go();
    let ending = &door.record(&id)["state"]["ending"];
    assert_eq!(ending["outcome"], "blocked", "{ending:#}");
    assert!(ending["why"].as_str().unwrap().contains(because), "{ending:#}");
}

#[test]
fn tests_that_no_longer_run_refuse_a_claim_unless_there_never_were_any() {
    let door = Door::new();
    door.sandbox.write("out", ONE_FAILS);
    let id = door.begin(&format!("Build it {CHECK}"));
    door.stop(CLAIM).assert_goes_on();
    door.sandbox.write("out", NONE);
    let refused = door.stop(CLAIM).assert_goes_on();
    assert!(refused.context().contains("ran 0 tests (it ran tests before)"), "{refused:#?}");
    door.sandbox.write("out", SOME_PASS);
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(door.record(&id)["state"]["ending"]["proof"], "checked");
    door.sandbox.write("out", NONE);
    let id = door.begin(&format!("Build another {CHECK}"));
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(door.record(&id)["state"]["ending"]["proof"], "claimed");
}

#[test]
fn the_agent_learns_which_tests_fail_and_that_nothing_it_tried_helped() {
    let door = Door::new();
    door.sandbox.write("out", ONE_FAILS);
    let id = door.begin(&format!("Build it {CHECK}"));
    let first = door.stop(CLAIM).assert_goes_on();
    assert!(
        first.context().contains("failed (exit 1): 1 of 2 tests fails.\n    rounds\n"),
        "{first:#?}"
    );
    assert!(!first.context().contains("The same tests failed"), "{first:#?}");
    door.stop(CLAIM).assert_goes_on();
    let third = door.stop(CLAIM).assert_goes_on();
    let stuck = "  The same tests failed in each of the last 3 runs: what was tried did not help";
    assert!(third.context().contains(stuck), "{third:#?}");
    door.sandbox.write("out", &SOME_PASS.replace("test adds ... ok\n", ""));
    let done = door.stop(CLAIM).assert_lets_go();
    assert!(
        door.record(&id)["state"]["evidence"]["checks"][0]["tests"]["fixed"]["first"]
            == json!(["rounds"]),
        "{done:#?}"
    );
}

#[test]
fn a_log_of_many_megabytes_is_read_to_its_end() {
    let door = Door::new();
    let noise = "x".repeat(199) + "\n";
    door.sandbox.write("out", &format!("{ONE_FAILS}{}{SOME_PASS}", noise.repeat(20_000)));
    let id = door.begin(&format!("Build it {CHECK}"));
    door.stop(CLAIM).assert_goes_on();
    let tests = &door.record(&id)["state"]["evidence"]["checks"][0]["tests"];
    assert_eq!((&tests["passed"], &tests["failed"]), (&json!(3), &json!(1)), "{tests:#}");
}

#[test]
fn in_a_session_no_worse_compares_with_the_baseline() {
    let check = "--no-worse 'cat out; ! grep -q FAILED out' --stall 0";
    for (now, ends) in [(ONE_FAILS, true), (BOTH_FAIL, false)] {
        let door = Door::new();
        door.sandbox.write("out", ONE_FAILS);
        let id = door.begin(&format!("Build it {check}"));
        door.sandbox.write("out", now);
        door.sandbox.write("work.txt", "done\n");
        let answer = door.stop(CLAIM);
        if ends {
            answer.assert_lets_go();
            assert_eq!(door.record(&id)["state"]["ending"]["proof"], "passing");
        } else {
            answer.assert_goes_on();
        }
    }
}
