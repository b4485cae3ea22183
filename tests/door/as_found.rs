//! A session, where nothing runs before the first turn: whether a check failed at the start is
//! determined at the end, in a scratch folder, and a failure counts only if the work can have fixed
//! it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::tested::{BOTH_FAIL, ONE_FAILS, SOME_PASS};
use super::{Answer, Door};
use crate::run::{self, World};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};

const CLAIM: &str = "All is well.\n\n<promise>COMPLETE</promise>";
const CHANGED: &str =
    "check.sh changed since the loop began, when the check failed, and as it was then";
const SHORT: &str = "the proof would be `passing` and this loop requires `checked`: ";

fn begin(door: &Door, check: &str) -> String {
    begin_with(door, &format!("--verify '{check}'"))
}

fn begin_without(door: &Door, check: &str) -> String {
    door.begin(&format!("Build it --stall 0 --verify '{check}'"))
}

fn begin_with(door: &Door, terms: &str) -> String {
    door.begin(&format!("Build it --require checked --stall 0 {terms}"))
}

impl Door {
    /// The end of the loop according to the record.
    fn ending(&self, id: &str, what: &str) -> Value {
        self.record(id)["state"]["ending"][what].clone()
    }

    /// A file outside the checkout, to which a check adds a byte at each run.
    fn runs(&self) -> PathBuf {
        self.sandbox.crew_home().parent().unwrap().join("runs")
    }
}

#[test]
fn a_check_that_fails_at_the_baseline_and_passes_on_the_final_tree_had_failed() {
    let door = Door::new();
    let id = begin(&door, "test -e done");
    door.sandbox.write("done", "");
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(door.ending(&id, "proof"), "checked");
}

#[test]
fn a_correct_first_claim_is_checked_at_the_baseline_unless_the_settings_forbid_it() {
    for (settings, proof) in [("", "checked"), ("loop.prove = \"off\"\n", "passing")] {
        let door = Door::new();
        let file = door.sandbox.home().join(".config/crew/config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, settings).unwrap();
        let id = door.begin("Build it --verify 'test -e done'");
        door.sandbox.write("done", "");
        door.stop(CLAIM).assert_lets_go();
        assert_eq!(door.ending(&id, "proof"), proof);
    }
}

type Files<'a> = &'a [(&'a str, &'a str)];

/// A check that fails once, in the first place where it runs.
fn flaky(door: &Door) -> String {
    let runs = door.runs().display().to_string();
    format!("test -e {runs} || {{ echo >> {runs}; false; }}")
}

#[test]
fn a_baseline_failure_that_the_work_cannot_have_fixed_does_not_count() {
    let skipped = SOME_PASS
        .replace("rounds ... ok", "rounds ... ignored")
        .replace("2 passed; 0 failed; 0 ignored", "1 passed; 0 failed; 1 ignored");
    let tests = "cat out; ! grep -q FAILED out";
    let table: [(Option<&str>, Files, Files, &str); 6] = [
        // The check (a flaky one), the tree as found, what is done, and why the end is `passing`.
        (None, &[], &[], "nothing was changed"),
        (Some("true"), &[], &[], "nothing was changed"),
        (
            Some("sh dist/check"),
            &[(".gitignore", "dist\n"), ("dist/check", "exit 1\n")],
            &[("dist/check", "exit 0\n")],
            "nothing was changed",
        ),
        (
            Some("sh -c '. ./bin; it_runs'"),
            &[("bin", "")],
            &[("bin", "it_runs() { :; }\n")],
            "the program was missing",
        ),
        (Some(tests), &[("out", ONE_FAILS)], &[("out", &skipped)], "as many tests pass as before"),
        (
            Some(tests),
            &[("out", ONE_FAILS)],
            &[("out", &skipped.replace("1 ignored", "0 ignored"))],
            "as many tests pass as before",
        ),
    ];
    for (check, found, work, why) in table {
        let door = Door::new();
        let write = |files: Files| {
            for (name, text) in files {
                door.sandbox.write(name, text);
            }
        };
        write(found);
        let check = check.map_or_else(|| flaky(&door), str::to_owned);
        let id = door.begin(&format!("Build it --stall 0 --verify \"{check}\""));
        write(work);
        if door.stop(CLAIM).goes_on() {
            door.stop(&format!("Again. {CLAIM}")).assert_lets_go();
        }
        assert_eq!(door.ending(&id, "proof"), "passing", "{check}");
        let shown = door.ending(&id, "why").to_string();
        assert!(shown.contains(why), "{check}: {shown}");
    }
}

#[test]
#[ignore = "long"]
fn the_proof_of_checks_that_take_over_a_minute_follows_the_end() {
    let door = Door::new();
    let slow = "case $PWD in *scratch*) ;; *) sleep 61;; esac; test -e done";
    let id = begin_without(&door, slow);
    door.sandbox.write("done", "");
    let stopping = door.stopping(CLAIM).start();
    let answer = Answer::of(stopping.wait(2 * DEADLINE)).assert_lets_go();
    let later = "searching for a better proof in the background";
    assert!(answer.line().contains("proof: passing"), "{answer:#?}");
    assert_eq!(door.ending(&id, "proof_notes"), json!([later]), "{answer:#?}");
    poll_until("the proof", || door.record(&id)["state"]["proved_at"].is_string());
    assert_eq!(door.ending(&id, "proof"), "checked");
    assert_eq!(door.ending(&id, "why"), "a check that had failed now passes");
    let page = door.sandbox.crew(&["status"]).success();
    assert!(page.contains("proof: checked") && page.contains("  proved  after the end"), "{page}");
    let list = door.sandbox.crew(&["history"]).success();
    assert!(list.contains("completed, checked at "), "{list}");
}

#[test]
fn a_check_that_passes_at_the_baseline_counts_as_never_failed_and_runs_there_only_once() {
    let door = Door::new();
    let runs = door.runs();
    let id = begin(&door, &format!("echo >> {}", runs.display()));
    door.sandbox.write("done", "");
    let refused = door.stop(CLAIM).assert_goes_on();
    assert!(refused.context().contains(SHORT), "{refused:#?}");
    assert_eq!(door.record(&id)["state"]["checked_as_found"], true);
    let ran = || std::fs::read(&runs).unwrap().len();
    assert_eq!(ran(), 2, "here, and on the tree as found");
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(ran(), 3);
    assert_eq!(door.ending(&id, "outcome"), "blocked");
}

#[test]
fn a_check_that_always_fails_in_the_scratch_folder_shows_nothing() {
    let door = Door::new();
    let id = begin(&door, "! pwd | grep -q scratch");
    door.sandbox.write("done", "");
    let refused = door.stop(CLAIM).assert_goes_on();
    let why = "failed (exit 1) in a scratch folder, which `setup` and .worktreeinclude prepare";
    assert!(refused.context().contains(why), "{refused:#?}");
    assert_eq!(door.record(&id)["state"]["checked_as_found"], json!(false));
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(door.ending(&id, "outcome"), "blocked");
}

#[test]
fn a_script_that_a_check_runs_cannot_be_changed_to_make_it_pass() {
    let door = Door::new();
    door.sandbox.write("check.sh", "test -e never\n");
    let id = begin(&door, "sh check.sh");
    door.sandbox.write("check.sh", "true\n");
    let refused = door.stop(CLAIM).assert_goes_on();
    assert!(refused.context().contains(CHANGED), "{refused:#?}");
    door.stop(CLAIM).assert_goes_on();
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(door.ending(&id, "outcome"), "blocked");
}

#[test]
fn a_check_that_git_ignores_is_the_same_on_each_tree() {
    // What .worktreeinclude has, how a change of it counts, the check, what is done, and whether a
    // check had failed.
    type Work = [(&'static str, &'static str)];
    let table: [(&str, &str, &str, &Work, bool); 4] = [
        ("", "refuse", "test -e done\n", &[("done", "")], true),
        ("", "report", "test -e done\n", &[("done", "")], true),
        ("", "refuse", "true\n", &[(".gitignore", "")], false),
        ("check.sh\n", "refuse", "true\n", &[("check.sh", "test -e done\n"), ("done", "")], false),
    ];
    for (included, changes, check, work, had_failed) in table {
        let door = Door::new();
        door.sandbox.write(".gitignore", "check.sh\n");
        door.sandbox.write(".worktreeinclude", included);
        door.sandbox.write("check.sh", check);
        let id = begin_with(&door, &format!("--verify 'sh check.sh' --test-changes {changes}"));
        for (name, text) in work {
            door.sandbox.write(name, text);
        }
        let answer = door.stop(CLAIM);
        if had_failed {
            answer.assert_lets_go();
            assert_eq!(door.ending(&id, "proof"), "checked");
        } else {
            let refused = answer.assert_goes_on();
            assert!(refused.context().contains(SHORT), "{refused:#?}");
        }
    }
}

#[test]
fn a_changed_check_that_is_only_reported_lowers_the_proof() {
    let door = Door::new();
    door.sandbox.write("check.sh", "test -e never\n");
    let id = door.begin("Build it --stall 0 --verify 'sh check.sh' --test-changes report");
    door.sandbox.write("check.sh", "test -e done\n");
    door.sandbox.write("done", "");
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(door.ending(&id, "proof"), "passing");
}

#[test]
fn the_baseline_is_not_checked_if_a_proof_run_proves_the_work() {
    let door = Door::new();
    let runs = door.runs();
    door.sandbox.write("out", ONE_FAILS);
    let check = format!("echo >> {}; cat out; ! grep -q FAILED out", runs.display());
    let id = begin_with(&door, &format!("--verify '{check}' --prove"));
    door.sandbox.write("out", SOME_PASS);
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(door.ending(&id, "proof"), "proven");
    assert_eq!(std::fs::read(&runs).unwrap().len(), 4, "here, and thrice in the trial");
}

#[test]
fn work_in_folders_with_ignored_files_is_proven_like_any_other() {
    let door = Door::new();
    door.sandbox.write(".gitignore", "*.o\nnode_modules/\n");
    door.sandbox.write("lib/a.o", "");
    door.sandbox.write("packages/one/node_modules/b", "");
    door.sandbox.write("out", SOME_PASS);
    let check =
        "test -e lib/a && test -e packages/one/c && F=out || F=lacking; cat $F; test $F = out";
    door.sandbox.write("lacking", BOTH_FAIL);
    let id = begin_with(&door, &format!("--verify '{check}' --prove"));
    door.sandbox.write("lib/a", "");
    door.sandbox.write("packages/one/c", "");
    door.stop(CLAIM).assert_lets_go();
    assert_eq!(door.ending(&id, "proof"), "proven");
}

/// A check that needs the ignored file `local`: without it, it reports that all tests fail.
const NEEDS_LOCAL: &str = "test -e local && F=out || F=lacking; cat $F; ! grep -q FAILED $F";

fn with_an_ignored_file() -> Door {
    let door = Door::new();
    for (name, text) in
        [(".gitignore", "local\n"), ("local", ""), ("out", SOME_PASS), ("lacking", BOTH_FAIL)]
    {
        door.sandbox.write(name, text);
    }
    door
}

#[test]
fn a_removed_ignore_rule_does_not_make_a_check_fail_at_the_baseline() {
    for (rules, terms, proof) in [
        (".gitignore", "--require checked", None),
        (".gitignore", "--prove", Some("passing")),
        (".git/info/exclude", "--require checked", None),
    ] {
        let door = with_an_ignored_file();
        door.sandbox.write(".gitignore", "");
        door.sandbox.write(rules, "local\n");
        let id = door.begin(&format!("Build it --stall 0 {terms} --verify '{NEEDS_LOCAL}'"));
        door.sandbox.write(rules, "");
        door.sandbox.write("done", "");
        let answer = door.stop(CLAIM);
        match proof {
            None => assert!(answer.assert_goes_on().context().contains(SHORT)),
            Some(proof) => {
                answer.assert_lets_go();
                assert_eq!(door.ending(&id, "proof"), proof);
            }
        }
    }
}

#[test]
fn a_test_that_lacks_something_in_the_scratch_folder_had_not_failed_there() {
    // What is in .worktreeinclude, the tests as found and as left, and whether these are refused.
    let table = [
        ("", SOME_PASS, ONE_FAILS, true),
        ("", SOME_PASS, BOTH_FAIL, true),
        ("local\n", SOME_PASS, ONE_FAILS, true),
        ("local\n", ONE_FAILS, ONE_FAILS, false),
    ];
    for (include, found, left, is_refused) in table {
        let door = with_an_ignored_file();
        door.sandbox.write(".worktreeinclude", include);
        door.sandbox.write("out", found);
        door.begin(&format!("Build it --stall 0 --no-worse '{NEEDS_LOCAL}'"));
        door.sandbox.write("out", left);
        door.sandbox.write("done", "");
        let answer = door.stop(CLAIM);
        assert_eq!(answer.goes_on(), is_refused, "{include}: {answer:#?}");
    }
}

/// A loop whose session ended in its first turn, after this work.
fn cut_off(terms: &str, work: &[(&str, &str)]) -> (Door, String) {
    let door = Door::of(World::of(Sandbox::new(), &[run::CLAIM, run::CLAIM]).sandbox);
    door.sandbox.write("check.sh", "test -e never\n");
    door.sandbox.write("out", ONE_FAILS);
    let id = door.begin(&format!("Build it --stall 0 {terms}"));
    for (name, text) in work {
        door.sandbox.write(name, text);
    }
    door.event("SessionEnd").with("reason", "other").send().assert_silent();
    (door, id)
}

#[test]
fn changes_of_a_sessions_first_turn_are_not_part_of_the_baseline() {
    let work = [("check.sh", "true\n"), ("half", "work\n")];
    let (door, id) = cut_off("--require checked --verify 'sh check.sh'", &work);
    let ran = door.sandbox.crew(&["resume", &id]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    assert!(!ran.stderr.contains("every check passes already"), "{ran:#?}");
    let why = door.ending(&id, "why").to_string();
    assert!(why.contains(CHANGED), "{why}");
    let diff = door.sandbox.crew(&["diff", &id, "1"]).success();
    assert!(diff.contains("+work") && diff.contains("-test -e never"), "{diff}");
}

#[test]
fn a_person_may_accept_the_checks_that_a_session_left_in_its_first_turn() {
    let (door, id) = cut_off("--verify 'sh check.sh'", &[("check.sh", "true\n")]);
    let ran = door.sandbox.crew(&["resume", &id, "--accept-test-changes"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let diff = door.sandbox.crew(&["diff", &id, "1"]).success();
    assert!(diff.contains("-test -e never"), "{diff}");
}

#[test]
fn after_an_interrupted_first_turn_a_no_worse_check_is_compared_with_the_baseline() {
    let check = "--no-worse 'cat out; ! grep -q FAILED out'";
    for (out, more, code) in [
        (ONE_FAILS, "-q", 0),
        (BOTH_FAIL, "-q", 10),
        (ONE_FAILS, "--accept-test-changes", 0),
        (BOTH_FAIL, "--accept-test-changes", 10),
    ] {
        let (door, id) = cut_off(check, &[("out", out), ("half", "work\n")]);
        let ran = door.sandbox.crew(&["resume", &id, "-n", "2", more]);
        assert_eq!(ran.code(), code, "{more}: {ran:#?}");
    }
}
