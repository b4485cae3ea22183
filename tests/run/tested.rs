//! What a run learns from the tests of its checks: the start says what a check is worth, and with
//! `--no-worse` tests that failed before may fail.

use serde_json::json;

use super::{CLAIM, WORK, World};

const RESULT: &str = "0 ignored; 0 measured; 0 filtered out; finished in 0.00s";

/// The output of `cargo test` for tests that pass and fail.
fn printed(passed: &[&str], failed: &[&str]) -> String {
    let line = |end: &'static str| move |name: &&str| format!("test {name} ... {end}\n");
    let tests: String =
        passed.iter().map(line("ok")).chain(failed.iter().map(line("FAILED"))).collect();
    format!("{tests}test result: x. {} passed; {} failed; {RESULT}\n", passed.len(), failed.len())
}

#[test]
fn the_start_says_what_the_command_of_a_check_is_worth() {
    for (out, check, expected) in [
        (printed(&[], &[]), "cat out", "`cat out` ran no test: so far it proves nothing"),
        (
            printed(&[], &[]).replace("0 filtered", "57 filtered"),
            "cat out",
            "`cat out` ran 0 tests (57 filtered out): a claim that needs it is refused",
        ),
        (
            printed(&["adds"], &["rounds"]),
            "cat out",
            "`cat out` reports failing tests, and its exit status hides them: a claim that needs it is refused",
        ),
    ] {
        let world = World::new(&[CLAIM]);
        world.sandbox.write("out", &out);
        let ran = world.crew(&["run", "Do it", "-n", "1", "--verify", check]);
        assert!(ran.stderr.contains(expected), "{ran:#?}");
    }
}

#[test]
fn with_no_worse_only_tests_that_failed_before_may_fail() {
    let check = "cat out; ! grep -q FAILED out";
    let before = printed(&["adds", "counts"], &["rounds"]);
    for (after, outcome, proof) in [
        (printed(&["adds", "counts"], &["rounds"]), "completed", "passing"),
        (printed(&["adds", "counts", "rounds"], &[]), "completed", "checked"),
        (printed(&["counts"], &["adds", "rounds"]), "exhausted", "null"),
        (printed(&["adds", "counts"], &["rounds", "new"]), "exhausted", "null"),
        ("error: could not compile `shop`\nFAILED\n".to_owned(), "exhausted", "null"),
    ] {
        let world = World::new(&[&format!("printf '{after}' > out; {CLAIM}")]);
        world.sandbox.write("out", &before);
        world.crew(&["run", "Do it", "-n", "1", "--no-worse", check]);
        let shown = world.the_loop();
        assert_eq!(shown["outcome"], outcome, "{after} {shown:#}");
        assert_eq!(shown["proof"].to_string().trim_matches('"'), proof, "{after}");
    }
}

#[test]
fn with_no_worse_the_prompt_names_what_may_fail_and_what_got_worse() {
    let check = "cat out; ! grep -q FAILED out";
    let worse = printed(&["counts"], &["adds", "rounds"]);
    let world = World::new(&[&format!("printf '{worse}' > out; {CLAIM}"), CLAIM]);
    world.sandbox.write("out", &printed(&["adds", "counts"], &["rounds"]));
    let ran = world.crew(&["run", "Do it", "-n", "2", "--no-worse", check]);
    let may_fail = format!("Tests of `{check}` that failed before the loop may still fail.");
    assert!(world.prompt(1).contains(&may_fail), "{}", world.prompt(1));
    let refused = "Claim refused: `cat out; ! grep -q FAILED out` failed (exit 1), worse than before the loop in adds";
    assert!(ran.stdout.contains(refused), "{ran:#?}");
}

#[test]
fn an_impossible_proof_is_reported_at_the_start_and_blocks_the_second_claim() {
    let world = World::new(&[&format!("touch done; {CLAIM}"), CLAIM]);
    let start = ["run", "Do it", "-n", "5", "--require", "proven", "--verify", "test -e done"];
    let ran = world.crew(&start);
    assert!(
        ran.stderr.contains("no check names its tests: only one that does can prove the work"),
        "{ran:#?}"
    );
    let shown = world.the_loop();
    assert_eq!(
        (&shown["outcome"], shown["completed_iterations"].as_u64()),
        (&"blocked".into(), Some(2)),
        "{shown:#}"
    );
    assert!(shown["why"].as_str().unwrap().contains("does not say in which test"), "{shown:#}");
}

#[test]
fn a_commit_and_the_next_prompt_have_the_test_results() {
    let check = "cat out; ! grep -q FAILED out";
    let done = printed(&["adds", "rounds"], &[]);
    let world = World::new(&[WORK, &format!("printf '{done}' > out")]);
    world.sandbox.write("out", &printed(&["adds"], &["rounds"]));
    let limits = ["-n", "2", "--failure-threshold", "0"];
    world.crew(&[&["run", "Do it", "--gate", check, "--commit"], &limits[..]].concat());
    let log = world.sandbox.git(&["log", "-1", "--format=%B"]);
    assert!(log.contains("- 1 test fixed"), "{log}");
    assert!(world.prompt(2).contains("1 of 2 tests fails.\n    rounds\n"), "{}", world.prompt(2));
}

#[test]
fn a_proof_by_crew_prove_is_in_the_record_on_the_page_and_in_the_list() {
    let world = World::new(&[&format!("echo 'echo $(($1 * 2))' > twice; {CLAIM}")]);
    world.sandbox.write("twice", "echo $1\n");
    let test = "echo 1..1; [ \"$(sh twice 2)\" = 4 ] && echo ok 1 - two || { echo not ok 1 - two; exit 1; }";
    world.sandbox.write("tests/run.sh", test);
    world.crew(&["run", "Do it", "-n", "1", "-q", "--verify", "sh tests/run.sh"]);
    let before = world.the_loop();
    assert_eq!((&before["proof"], &before["proved_at"]), (&json!("checked"), &json!(null)));
    assert_eq!(world.crew(&["prove"]).code(), 0);
    let shown = world.the_loop();
    assert_eq!((&shown["proof"], shown["proved_at"].is_string()), (&json!("proven"), true));
    assert!(shown["why"].as_str().unwrap().contains("it fails in two"), "{shown:#}");
    let page = world.crew(&["status"]).success();
    assert!(page.contains("proof: proven") && page.contains("  proved  after the end"), "{page}");
    let list = world.crew(&["history"]).success();
    assert!(list.contains("completed, proven at "), "{list}");
    let page = world.crew(&["show", "--json"]).success();
    assert!(page.contains("\"proved_at\":\""), "{page}");
    world.sandbox.write("twice", "exit 1\n");
    assert_eq!(world.crew(&["prove"]).code(), 0, "the work is that of the loop's end");
}
