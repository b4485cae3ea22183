use std::fmt::Write as _;

use super::*;
use crate::boundary::judge::judge_boundary;
use crate::claim::Claim;
use crate::evidence::changes::{ChangeKind, ChangedFile};
use crate::evidence::test_run::{TestMemory, TestRun, TestStatus};
use crate::evidence::{CheckResult, ClaimResult, Evidence, Verdict};
use crate::fixture::{SetState, a_loop, a_loop_with, a_run, a_task, at, facts, result};
use crate::journal::{Choice, Event, JournalEntry, SCHEMA};
use crate::record::{
    Actor, Check, CheckMemory, CompletionBasis, Driver, EndReason, Ending, IncurableRefusal, Role,
    Status, TaskOfFleet,
};

fn changed(paths: &str) -> Changes {
    let file = |path: &str| ChangedFile {
        path: path.trim_start_matches('+').to_owned(),
        kind: if path.starts_with('+') { ChangeKind::Created } else { ChangeKind::Modified },
        lines: None,
        yours: false,
    };
    Changes::from_files(paths.split_whitespace().map(file))
}

/// A story of iterations: what each changed, how its check ended, and what it claimed or said.
fn story(record: &mut Loop, steps: &[(&str, Option<Verdict>, ClaimResult)]) -> Story {
    let mut story = Story::with_pick(None);
    for (paths, verdict, claim) in steps {
        record.state.set("completed", record.state.counts().completed() + 1);
        record.state.set("generation", record.state.generation() + 1);
        let evidence = Evidence {
            iteration: record.state.counts().completed(),
            changes: Some(changed(paths)),
            checks: verdict.iter().map(|verdict| result("npm test", *verdict)).collect(),
            claim: claim.clone(),
            said: Some(format!("Said in {}.", record.state.counts().completed())),
            ..Evidence::default()
        };
        record.state.set("evidence", evidence);
        let state = Box::new(record.state.clone());
        let event =
            Event::Boundary { decision: Choice::Continue, why: None, elapsed_ms: Some(1), state };
        let generation = record.state.generation();
        story.add_entry(JournalEntry { schema: SCHEMA, at: at(60).wall, generation, event });
    }
    story
}

fn ended(record: &mut Loop, outcome: Outcome, proof: Option<Proof>, reason: impl Into<EndReason>) {
    record.state.finish(Ending { proof, ..Ending::new(outcome, reason) }, 0);
}

pub fn page(record: &Loop, story: &Story, changes: &Changes, tests: &TestMemories) -> Page {
    Page::from_inputs(&inputs(record, story, changes, tests))
}

fn inputs<'a>(
    record: &'a Loop,
    story: &'a Story,
    changes: &'a Changes,
    tests: &'a TestMemories,
) -> PageInputs<'a> {
    const NO_COMMITS: &Commits = &Commits {
        made: Some(Vec::new()),
        switched_to: None,
        lost: Vec::new(),
        apart: Vec::new(),
        uncommitted: None,
        ignored: std::collections::BTreeMap::new(),
    };
    PageInputs {
        view: LoopView::from_record(record, at(3600).wall.fixed_offset()),
        story,
        changes: Some(changes),
        changes_from: ChangesFrom::Snapshots,
        commits: NO_COMMITS,
        tests,
        resume: "crew resume haaaaaaa",
        stop: "crew pause haaaaaaa",
    }
}

/// The lines of a page that a reader in a hurry reads: the first, the reasons, and what to do.
fn shown(page: &Page) -> String {
    let mut lines = vec![format!("{} · {}", page.verdict, page.remark.as_deref().unwrap_or("-"))];
    lines.extend(page.ending.iter().map(|fact| format!("{}: {}", fact.name, fact.text)));
    let steps = std::iter::once(&page.next).chain(&page.then);
    lines.extend(steps.map(|step| format!("$ {} {}", step.command, step.what).trim().to_owned()));
    lines.join("\n") + "\n"
}

/// What each iteration changed, how its check ended, and what it claimed.
type Steps = Vec<(&'static str, Option<Verdict>, ClaimResult)>;

/// Ends of loops: their iterations, outcome, proof and recorded reason.
fn ends() -> Vec<(Steps, Outcome, Option<Proof>, EndReason)> {
    use Verdict::{Failed, Passed};
    let refused = || ClaimResult::Refused("`npm test` failed".to_owned());
    let none = || ClaimResult::None;
    let gave_up = || ClaimResult::Failure("no network".to_owned());
    let blocked = || ClaimResult::Blocked("the password of backup_ro".to_owned());
    let checked = Some(Proof::Checked);
    vec![
        (
            vec![("+a", Some(Failed), refused()), ("a", Some(Passed), ClaimResult::Accepted)],
            Outcome::Completed,
            checked,
            Ending::completed(Proof::Checked, CompletionBasis::Proof(Proof::Checked)).reason,
        ),
        (
            vec![("+a", Some(Passed), none()), ("b", Some(Failed), refused())],
            Outcome::Exhausted,
            None,
            "the limit of 2 iterations is reached".into(),
        ),
        (
            vec![("+a", Some(Passed), none())],
            Outcome::Exhausted,
            None,
            "the limit of 1 iteration is reached".into(),
        ),
        (
            vec![("+a", Some(Passed), ClaimResult::Accepted)],
            Outcome::Completed,
            Some(Proof::Claimed),
            Ending::completed(Proof::Claimed, CompletionBasis::Proof(Proof::Claimed)).reason,
        ),
        (
            vec![("+a", None, blocked())],
            Outcome::Blocked,
            None,
            EndReason::AgentBlocked("the password of backup_ro".to_owned()),
        ),
        (
            vec![("+a", None, ClaimResult::Blocked(String::new()))],
            Outcome::Blocked,
            None,
            EndReason::AgentBlocked(String::new()),
        ),
        (
            vec![("", None, none())],
            Outcome::Stalled,
            None,
            "nothing changed in the last iteration".into(),
        ),
        (
            vec![],
            Outcome::Cancelled,
            None,
            Ending::cancelled(Actor::User, Some("wrong branch")).reason,
        ),
        (vec![("a", None, gave_up())], Outcome::Aborted, None, "3 failures in a row".into()),
        (vec![("", None, none())], Outcome::Aborted, None, "3 failures in a row".into()),
    ]
}

/// What the pages of all ends say: of loops of their own, or of the loops of a task.
fn describe_ends(fleet: Option<&TaskOfFleet>) -> String {
    let mut text = String::new();
    for (steps, outcome, proof, why) in ends() {
        let mut record = Loop { fleet: fleet.cloned(), ..a_run(None) };
        record.contract.checks = a_loop_with(&[("npm test", Role::Verify)]).contract.checks;
        let story = story(&mut record, &steps);
        if record
            .state
            .seen()
            .evidence()
            .as_ref()
            .is_some_and(|evidence| !evidence.checks.is_empty())
        {
            let memory = CheckMemory::from_result(&result("npm test", Verdict::Failed), 1, None);
            record.state.remember_check("npm test".to_owned(), memory);
        }
        ended(&mut record, outcome, proof, why);
        let all: Vec<&str> = steps.iter().map(|(paths, ..)| *paths).collect();
        let changes = changed(&all.join(" "));
        let resume = record.fleet_resume().unwrap_or_else(|| "crew resume haaaaaaa".to_owned());
        let tests = TestMemories::new();
        let inputs = inputs(&record, &story, &changes, &tests);
        text += &(shown(&Page::from_inputs(&PageInputs { resume: &resume, ..inputs })) + "\n");
    }
    text
}

#[test]
fn every_end_names_its_verdict_its_reason_and_a_command_that_shows_something() {
    insta::assert_snapshot!(describe_ends(None), @r#"
    completed after 2 iterations · proof: checked
    why: `npm test` passes; it had failed before
    $ crew diff haaaaaaa

    exhausted after 2 iterations · `npm test` fails
    why: the limit of 2 iterations is reached; 1 claim was refused: `npm test` failed
    red: `npm test` passed after iteration 1 and has failed since iteration 2, which changed b
    $ crew diff haaaaaaa 1..2 what turned `npm test` red
    $ crew back haaaaaaa 1 brings back what passed, and can be undone; crew resume haaaaaaa continues

    exhausted after 1 iteration · but `npm test` passes
    why: the limit of 1 iteration is reached
    $ crew diff haaaaaaa
    $ crew resume haaaaaaa continues; --tell "..." answers or advises the agent

    completed after 1 iteration · proof: claimed, nothing checked it
    why: `npm test` passes
    $ crew diff haaaaaaa

    blocked in iteration 1 · needs you
    needs: "the password of backup_ro"
    $ crew resume haaaaaaa --tell "your answer" no secrets in it: the agent reads it, and its log keeps it

    blocked in iteration 1 · needs you
    needs: ""
    $ crew resume haaaaaaa --tell "your answer" no secrets in it: the agent reads it, and its log keeps it

    stalled after 1 iteration · -
    why: nothing changed in the last iteration
    $ crew show haaaaaaa
    $ crew resume haaaaaaa --tell "what to try instead"

    cancelled after 0 iterations · -
    why: cancelled by the user: wrong branch
    $ crew show haaaaaaa
    $ crew resume haaaaaaa continues on main

    aborted after 1 iteration · -
    why: 3 failures in a row
    $ crew diff haaaaaaa
    $ crew resume haaaaaaa --tell "what to try instead"

    aborted after 1 iteration · -
    why: 3 failures in a row
    $ crew show haaaaaaa
    $ crew resume haaaaaaa once the cause is dealt with
    "#);
}

#[test]
fn the_loop_of_a_task_is_answered_and_resumed_by_its_fleet() {
    let ends = describe_ends(Some(&a_task("vat")));
    let steps: Vec<&str> =
        ends.lines().filter(|line| line.is_empty() || line.starts_with('$')).collect();
    insta::assert_snapshot!(steps.join("\n"), @r#"
    $ crew diff haaaaaaa

    $ crew diff haaaaaaa 1..2 what turned `npm test` red
    $ crew back haaaaaaa 1 brings back what passed, and can be undone; crew resume billing-cleanup/vat continues

    $ crew diff haaaaaaa
    $ crew resume billing-cleanup/vat continues once its limit is raised; crew tell billing-cleanup/vat "..." advises the agent

    $ crew diff haaaaaaa

    $ crew tell billing-cleanup/vat "your answer" no secrets in it: the agent reads it, and its log keeps it
    $ crew resume billing-cleanup/vat tries it again with your answer

    $ crew tell billing-cleanup/vat "your answer" no secrets in it: the agent reads it, and its log keeps it
    $ crew resume billing-cleanup/vat tries it again with your answer

    $ crew show haaaaaaa
    $ crew tell billing-cleanup/vat "what to try instead" kept; crew resume billing-cleanup/vat tries it again with this

    $ crew show haaaaaaa
    $ crew resume billing-cleanup/vat continues on main

    $ crew diff haaaaaaa
    $ crew tell billing-cleanup/vat "what to try instead" kept; crew resume billing-cleanup/vat tries it again with this

    $ crew show haaaaaaa
    $ crew resume billing-cleanup/vat once the cause is dealt with
    "#);
}

#[test]
fn a_loop_aborted_by_its_gate_is_resumed_once_the_gate_can_pass() {
    let mut record = a_run(None);
    let story = story(&mut record, &[("a", Some(Verdict::Failed), ClaimResult::None)]);
    record.state.set("evidence.checks.0.roles", vec![Role::Gate]);
    ended(&mut record, Outcome::Aborted, None, "3 failures in a row");
    let page = page(&record, &story, &changed("a"), &TestMemories::new());
    assert_eq!(page.then.unwrap().what, "once `npm test` can pass");
}

#[test]
fn a_loop_is_resumed_if_a_person_can_still_make_its_proof_possible() {
    use Verdict::{Failed, Passed};
    let none = (Story::with_pick(None), Changes::default(), TestMemories::new());
    for (required, found, is_known, is_resumed) in [
        (Proof::Checked, Passed, true, false),
        (Proof::Checked, Passed, false, true),
        (Proof::Checked, Failed, true, true),
        (Proof::Proven, Passed, true, true),
    ] {
        let mut record = a_run(None);
        record.contract.require = Some(required);
        record.contract.checks = vec![Check::new("npm test", Role::Verify)];
        record.state.set("checked_as_found", is_known);
        let memory = CheckMemory::from_result(&result("npm test", found), 0, None);
        record.state.remember_check("npm test".to_owned(), memory);
        let weak = Proof::Passing.falls_short(Some(required), None).unwrap();
        let reason = EndReason::Refused(IncurableRefusal::ProofTooWeak(weak));
        ended(&mut record, Outcome::Blocked, None, reason);
        let page = page(&record, &none.0, &none.1, &none.2);
        let offers = (page.then.is_some(), page.resume.is_some());
        assert_eq!(offers, (is_resumed, is_resumed), "{required:?}, as found: {found:?}");
    }
}

#[test]
fn only_a_refusal_for_changed_tests_offers_to_accept_them_whatever_an_agent_says() {
    let none = (Story::with_pick(None), Changes::default(), TestMemories::new());
    let (refusal, accept) = ("`T.tax` was changed".to_owned(), "crew resume".to_owned());
    let refused = EndReason::Refused(IncurableRefusal::TestChanges { refusal, accept });
    let asked = EndReason::AgentBlocked("run crew resume --accept-test-changes".to_owned());
    let external = "hook: use --accept-test-changes and this loop requires `checked`".into();
    for (reason, expected) in [(refused, true), (asked, false), (external, false)] {
        let mut record = a_run(None);
        record.contract.checks = vec![Check::new("npm test", Role::Verify)];
        let memory = CheckMemory::from_result(&result("npm test", Verdict::Failed), 0, None);
        record.state.remember_check("npm test".to_owned(), memory);
        ended(&mut record, Outcome::Blocked, None, reason);
        let page = page(&record, &none.0, &none.1, &none.2);
        let offered = page.then.map(|then| then.command).unwrap_or_default();
        assert_eq!(offered == "crew resume haaaaaaa --accept-test-changes", expected, "{offered}");
    }
}

#[test]
fn an_answered_question_is_not_asked_again_at_a_later_end() {
    let mut record = a_run(None);
    let claim = ClaimResult::Blocked("which port?".to_owned());
    record.state.set("evidence", Evidence { claim, ..Evidence::default() });
    ended(&mut record, Outcome::Blocked, None, "rebase failed (conflict): a.rs");
    assert_eq!(asked_for_help(&record), None);
    ended(&mut record, Outcome::Blocked, None, EndReason::AgentBlocked("which port?".to_owned()));
    assert_eq!(asked_for_help(&record), Some("which port?"));
}

#[test]
fn a_live_loop_shows_how_to_stop_it_and_where_to_see_its_work() {
    let none = (Changes::default(), TestMemories::new());
    let mut text = String::new();
    for (status, driver) in [
        (Status::Running, Driver::Process),
        (Status::Running, Driver::Session),
        (Status::Paused, Driver::Process),
    ] {
        let mut record = if driver == Driver::Process { a_run(None) } else { a_loop() };
        record.state.set("status", status);
        let page = page(&record, &Story::with_pick(None), &none.0, &none.1);
        text.push_str(&shown(&page));
        let _ = write!(text, "stop {:?}\n\n", page.stop);
    }
    insta::assert_snapshot!(text, @r#"
    running, iteration 1 of 10 · -
    agent: claude, accept-edits · process 42
    limits: up to 10 iterations, 12h
    folder: /repo
    $ crew show haaaaaaa --log -f
    stop Some("crew pause haaaaaaa")

    running, iteration 1 of 10 · -
    limits: up to 10 iterations, 12h
    folder: /repo
    $ crew show haaaaaaa
    stop Some("crew pause haaaaaaa")

    paused after 0 iterations · -
    agent: claude, accept-edits
    limits: up to 10 iterations, 12h
    folder: /repo
    $ crew resume haaaaaaa
    stop None
    "#);
}

#[test]
fn only_the_newest_of_many_iterations_are_shown() {
    let mut record = a_run(None);
    let story = story(&mut record, &vec![("a", Some(Verdict::Failed), ClaimResult::None); 40]);
    let page = page(&record, &story, &Changes::default(), &TestMemories::new());
    let numbers: Vec<u32> = page.iterations.iter().map(|line| line.number).collect();
    assert_eq!((numbers, page.earlier), ((29..=40).collect(), 28));
}

#[test]
fn the_results_of_the_tests_are_shown_from_the_first_run_to_the_last() {
    let run = |names: &str| {
        let mut run = TestRun::default();
        for name in names.split_whitespace() {
            let (status, count) = match name.as_bytes()[0] {
                b'!' => (TestStatus::Failed, &mut run.failed),
                b'~' => (TestStatus::Skipped, &mut run.skipped),
                _ => (TestStatus::Passed, &mut run.passed),
            };
            *count += 1;
            run.add_name(name.trim_start_matches(['!', '~']), status);
        }
        run
    };
    let table = [("a b !c", "a b c d"), ("a b c d", "a !b ~c"), ("a b", "a b"), ("", "a")];
    let lines = table.map(|(first, last)| {
        let memory =
            TestMemory::after_run(Some(&TestMemory::after_run(None, &run(first))), &run(last));
        let tests = TestMemories::from([("npm test".to_owned(), memory)]);
        let record = a_loop();
        let page = page(&record, &Story::with_pick(None), &Changes::default(), &tests);
        let shown = page.results.iter().find(|fact| fact.name == "tests");
        shown.map_or_else(|| "no news".to_owned(), |fact| fact.text.clone())
    });
    insta::assert_snapshot!(lines.join("\n"), @"
    3 → 4: 1 new, 1 fixed
    4 → 3: 1 broken (b), 1 gone (d), 1 skipped now (c)
    no news
    0 → 1: 1 new
    ");
}

#[test]
fn the_failing_check_is_shown_with_its_tests_and_the_end_of_its_output() {
    let record = a_loop_with(&[("npm test", Role::Verify), ("lint", Role::Gate)]);
    let mut facts = facts(Claim::Success);
    let failing = CheckResult {
        test_run: Some(TestRun { failed: 1, passed: 2, ..TestRun::default() }),
        ..result("npm test", Verdict::Failed)
    };
    facts.checks = vec![result("lint", Verdict::Passed), failing];
    let record = judge_boundary(&record, &facts).after;
    let page = page(
        &record,
        &Story::with_pick(None),
        &changed("src/a.rs +src/b.rs"),
        &TestMemories::new(),
    );
    let rows =
        page.results.iter().map(|fact| format!("{}: {} {:?}", fact.name, fact.text, fact.detail));
    insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"), @r#"
    fails: `npm test` failed (exit 1) ["output of npm test"]
    gate: `lint` passed []
    files: 1 file changed, 1 new ["changed: src/a.rs", "new: src/b.rs"]
    "#);
}

#[test]
fn a_wait_is_shown_in_local_time_and_with_its_date_if_it_is_far_off() {
    let mut record = a_loop();
    record.state.set("status", Status::Waiting);
    for (hours, expected) in [
        (5, "waiting until 01:06, then iteration 1 of 10"),
        (72, "waiting until 2026-11-21 20:06, then iteration 1 of 10"),
    ] {
        record.state.set("due", Some(at(hours * 3600).wall));
        let tokyo = FixedOffset::east_opt(9 * 3600).unwrap();
        assert_eq!(verdict_text(&record, at(0).wall.with_timezone(&tokyo)), expected);
    }
}

#[test]
fn commits_are_shown_with_their_branch_and_with_uncommitted_and_lost_work() {
    let lines = |made: &[&str]| made.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let of = |made: &[&str], switched_to: Option<&str>, lost: &[&str], uncommitted| Commits {
        made: Some(lines(made)),
        switched_to: switched_to.map(str::to_owned),
        lost: lines(lost),
        uncommitted,
        ..Commits::default()
    };
    let mut text = String::new();
    for commits in [
        of(&["1a Add b", "2b Add a"], None, &[], Some(0)),
        of(&["1a Add b"], Some("feature"), &[], Some(1)),
        of(&[], None, &[], Some(2)),
        of(&[], None, &[], Some(1)),
        of(&[], None, &["0c Mine"], None),
        Commits::default(),
    ] {
        let mut record = a_run(None);
        let story = story(&mut record, &[("a b", None, ClaimResult::None)]);
        ended(&mut record, Outcome::Exhausted, None, "the limit of 1 iteration is reached");
        let (changes, tests) = (changed("a b"), TestMemories::new());
        let inputs = PageInputs { commits: &commits, ..inputs(&record, &story, &changes, &tests) };
        for fact in Page::from_inputs(&inputs).results.iter().filter(|fact| fact.name != "files") {
            let _ = writeln!(text, "{}: {} {:?}", fact.name, fact.text, fact.detail);
        }
    }
    insta::assert_snapshot!(text, @r#"
    commits: 2 on main ["1a Add b", "2b Add a"]
    commits: 1 on feature (the loop's branch is main); 1 file uncommitted ["1a Add b"]
    commits: none; the files are uncommitted []
    commits: none; 1 file uncommitted []
    lost: 1 commit from before the loop, no longer on main ["0c Mine"]
    "#);
}
