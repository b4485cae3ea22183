//! The runs of the checks without the work, and on the tests as the loop found them.

use super::*;
use crate::fixture::result;

/// "pass a", "fail a b", "compile", "none", "silent fail": a run in few words.
fn run(words: &str) -> CheckResult {
    let names = |status: TestStatus, names: &str| {
        let mut run = TestRun::default();
        for name in names.split_whitespace() {
            let total =
                if status == TestStatus::Failed { &mut run.failed } else { &mut run.passed };
            *total += 1;
            run.add_name(name, status);
        }
        Some(run)
    };
    let (verdict, test_run) = match words.split_once(' ') {
        Some(("pass", tests)) => (Verdict::Passed, names(TestStatus::Passed, tests)),
        Some(("count", _)) => (Verdict::Passed, Some(TestRun { passed: 2, ..TestRun::default() })),
        Some(("fail", tests)) => (Verdict::Failed, names(TestStatus::Failed, tests)),
        Some(("compile", _)) => {
            (Verdict::Failed, Some(TestRun { errors: 1, ..TestRun::default() }))
        }
        Some(("none", _)) => (Verdict::Passed, Some(TestRun::default())),
        Some(("silent", "pass")) => (Verdict::Passed, None),
        Some(("silent", "cut")) => (Verdict::TimedOut, None),
        _ => (Verdict::Failed, None),
    };
    let exit = Some(i32::from(verdict != Verdict::Passed));
    CheckResult { exit, test_run, ..result("t", verdict) }
}

#[test]
fn a_job_is_proven_when_a_test_that_passes_fails_without_it() {
    let mixed = ["src/tax.rs".to_owned()];
    let table: [(&str, &str, &str, &[String]); 14] = [
        ("pass a b", "fail b a", "pass a b", &[]),
        ("count 2", "fail b", "count 2", &[]),
        ("pass a b", "fail b", "fail a", &[]),
        ("pass a", "pass a", "", &[]),
        ("pass a", "compile it", "", &[]),
        ("pass a", "fail c", "", &[]),
        ("pass a", "silent fail", "", &[]),
        ("pass a", "silent cut", "", &[]),
        ("pass a", "none at all", "", &[]),
        ("silent pass", "silent fail", "", &[]),
        ("fail a", "", "", &[]),
        ("none at all", "", "", &[]),
        ("pass a", "pass a", "", &mixed),
        ("pass a b", "fail b", "pass a b", &mixed),
    ];
    let shown = table.map(|(control, without, again, mixed)| {
        let some = |words: &str| (!words.is_empty()).then(|| run(words));
        let (without, again) = (some(without), some(again));
        let tried = TriedCheck { control: run(control), without, again };
        format!("{:?}", judge_without_work(&[tried], mixed, false))
    });
    insta::assert_snapshot!(shown.join("\n"), @r#"
    Proven("`t` passes, and without the work it fails in a, b")
    Proven("`t` passes, and without the work it fails in b")
    Failed("`t` is flaky: it failed (exit 1)")
    Failed("`t` passes without the work too, as after a refactoring")
    Failed("`t` fails without the work before its tests run")
    Failed("`t` fails without the work in no test that passes with it")
    Failed("`t` fails without the work, and its output does not say in which test")
    Failed("`t` timed out after 1 s without the work")
    Failed("`t` runs no test without the work")
    Impossible("`t` fails without the work, and its output does not say in which test")
    Impossible("`t` failed (exit 1) in a scratch folder, which `setup` and .worktreeinclude prepare")
    Impossible("`t` runs no test in a scratch folder, which `setup` and .worktreeinclude prepare")
    Failed("tests and work cannot be separated: src/tax.rs")
    Proven("`t` passes, and without the work it fails in b")
    "#);
}

#[test]
fn a_check_failed_at_the_baseline_if_it_fails_twice_there_and_passes_in_between() {
    let table = [
        ("silent pass", "silent fail", "silent fail"),
        ("silent pass", "silent fail", "silent pass"),
        ("pass a", "fail a", "fail a"),
        ("silent pass", "", ""),
        ("silent pass", "silent cut", ""),
        ("silent fail", "silent fail", ""),
    ];
    let shown = table.map(|(control, found, again)| {
        let some = |words: &str| (!words.is_empty()).then(|| run(words));
        let (without, again) = (some(found), some(again));
        format!(
            "{:?}",
            BaselineResult::judge_checks(&[TriedCheck { control: run(control), without, again }])
        )
    });
    let [passes, fails] = ["silent pass", "silent fail"].map(run);
    let again = Some(fails.clone());
    let unable = TriedCheck { control: fails.clone(), without: again.clone(), again: None };
    let failed = TriedCheck { control: passes, without: Some(fails), again };
    assert_eq!(
        BaselineResult::judge_checks(&[unable.clone(), failed]),
        BaselineResult::Failed("t".to_owned())
    );
    let BaselineResult::Unknown(why) = BaselineResult::judge_checks(&[unable.clone(), unable])
    else {
        panic!()
    };
    assert_eq!(why.matches("`t` failed").count(), 2, "{why}");
    insta::assert_snapshot!(shown.join("\n"), @r#"
    Failed("t")
    Unknown("`t` is flaky: it passed")
    Failed("t")
    Passed
    Unknown("`t` timed out after 1 s on the tree as the loop found it")
    Unknown("`t` failed (exit 1) in a scratch folder, which `setup` and .worktreeinclude prepare")
    "#);
}

#[test]
fn a_check_that_did_not_run_is_named_with_the_reason() {
    let unknown = CheckResult { tail: String::new(), ..result("t", Verdict::Unknown) };
    let why = "was not run: the variable TERM is not as it was when the loop began";
    let control = CheckResult { incurable: Some(why.to_owned()), ..unknown.clone() };
    let why = format!("`t` {why}");
    let tried = |control| [TriedCheck { control, ..TriedCheck::default() }];
    assert_eq!(judge_without_work(&tried(control), &[], false), WithoutWork::Impossible(why));
    let why = "`t` did not finish; its result is unknown".to_owned();
    assert_eq!(judge_without_work(&tried(unknown), &[], false), WithoutWork::Impossible(why));
}

#[test]
fn a_pass_without_the_work_shows_nothing_where_folders_are_linked_in() {
    let tried = |without| TriedCheck {
        control: run("pass a"),
        without: Some(run(without)),
        again: Some(run("pass a")),
    };
    assert!(matches!(
        judge_without_work(&[tried("pass a")], &[], true),
        WithoutWork::Impossible(_)
    ));
    assert!(matches!(judge_without_work(&[tried("fail c")], &[], true), WithoutWork::Failed(_)));
    assert!(matches!(judge_without_work(&[tried("fail a")], &[], true), WithoutWork::Proven(_)));
}

#[test]
fn one_of_several_checks_is_enough_to_prove_the_work() {
    let tried = |control, without| TriedCheck {
        control: run(control),
        without: Some(run(without)),
        again: Some(run(control)),
    };
    let all = [tried("silent pass", "silent pass"), tried("fail a", ""), tried("pass a", "fail a")];
    insta::assert_snapshot!(format!("{:?}", judge_without_work(&all, &[], false)), @r#"Proven("`t` passes, and without the work it fails in a")"#);
    insta::assert_snapshot!(format!("{:?}", judge_without_work(&all[..2], &[], false)), @r#"Failed("`t` passes without the work too, as after a refactoring; `t` failed (exit 1) in a scratch folder, which `setup` and .worktreeinclude prepare")"#);
}
