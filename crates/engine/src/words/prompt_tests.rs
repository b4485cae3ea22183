//! The prompts of a session: what each says, and that none is a claim.

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::boundary::judge::judge_boundary;
use crate::claim::promise::Promise;
use crate::claim::{Claim, read};
use crate::evidence::test_run::TestRun;
use crate::evidence::{CheckResult, Verdict};
use crate::fixture::{SetState, a_loop, a_loop_with, facts, result};
use crate::journal::story::ACCOUNT_CHARS;
use crate::record::Role;
use crate::text::one_line;
use crate::usage::Money;

fn ahead(subject: &Loop) -> String {
    render_template("ahead.j2", &rule_values(subject, PromptReader::Maker))
}

fn rules(subject: &Loop, reader: PromptReader) -> String {
    render_template("rules.j2", &rule_values(subject, reader))
}

fn crew() -> &'static Path {
    Path::new("/opt/my tools/crew")
}

#[test]
fn the_first_prompt_names_the_task_file_how_to_claim_and_how_to_say_it_is_blocked() {
    let subject = a_loop_with(&[("cargo test", Role::Verify)]);
    assert_snapshot!(start_prompt(&subject, crew()), @r#"
    crew loop haaaaaaa: iteration 1 of 10.

    Work on the task you were just given until all of it is done; its exact words are in /repo/.claude/branches/main/task.md. Treat this as unattended: decide what is yours to decide, and say in your message what you assumed. Each time you stop, crew looks at what you did.

    - Claim only when the whole task is done and you have run `cargo test` yourself, after your last edit, and seen it pass. Then end with <promise>COMPLETE</promise> on a line of its own, outside code blocks. crew runs it too, and believes only that.
    - Leave what the checks run as it is, and delete, skip or loosen no test: crew compares. If a check is wrong, say why and leave it.
    - If you need something that only a person can give, end with <promise>BLOCKED: what you need</promise> instead. That is a good ending.
    - If work is left and nothing blocks you, keep working; do not stop to report.
    - A page for whoever continues: '/opt/my tools/crew' handoff task "what is done, what is left".
    Start now.
    "#);
}

#[test]
fn a_refused_claim_comes_back_with_the_failing_command_and_its_tail() {
    let subject = a_loop_with(&[("cargo test", Role::Verify), ("cargo clippy", Role::Gate)]);
    let mut facts = facts(Claim::Success);
    facts.checks =
        vec![result("cargo clippy", Verdict::Passed), result("cargo test", Verdict::Failed)];
    facts.checks[1].tail = "test todo::lists ... FAILED\n1 failed; 3 passed".to_owned();
    assert_snapshot!(next_prompt(&judge_boundary(&subject, &facts).after), @"
    crew loop haaaaaaa: iteration 2 of 10. Your claim was not accepted.

    `cargo test` failed (exit 1).
      Its last lines:
        test todo::lists ... FAILED
        1 failed; 3 passed
    `cargo clippy` passed.

    Fix the cause of this first, and run `cargo test` before you claim again. If it passes when you run it, find what differs: crew runs it as `sh -c` in /repo with no input.

    The task:
    Build the todo API

    A claim is <promise>COMPLETE</promise> on the last line, alone; if only a person can help it is <promise>BLOCKED: what you need</promise> instead.
    Continue now.
    ");
}

#[test]
fn a_failure_is_reported_even_if_it_names_a_check_that_fails_too() {
    let subject = a_loop_with(&[("tests/run.sh", Role::Gate)]);
    let mut facts = facts(Claim::None);
    facts.checks = vec![result("tests/run.sh", Verdict::Failed)];
    let mut after = judge_boundary(&subject, &facts).after;
    assert!(!next_prompt(&after).contains("gate `"));
    let evidence = after.state.seen().evidence().clone().unwrap();
    assert_eq!(evidence.failed_gate.as_deref(), Some("tests/run.sh"));
    let broken = "protected paths were changed: `tests/run.sh`";
    after.state.set("evidence.failed_gate", None::<String>);
    after.state.set("evidence.failure", broken);
    assert!(next_prompt(&after).contains(broken));
}

#[test]
fn messages_that_waited_for_a_resume_are_in_its_prompt_even_before_the_first_boundary() {
    let mut subject = a_loop();
    subject.state.set("words", vec!["use tabs".to_owned(), "later".to_owned()]);
    subject.state.set("in_prompt", 1);
    let prompt = full_prompt(&subject, None, &[], crew());
    assert!(prompt.contains("The user says: use tabs\n") && !prompt.contains("later"), "{prompt}");
}

#[test]
fn the_prompt_after_an_iteration_says_what_changed_and_nudges_an_idle_agent() {
    let mut subject = a_loop();
    subject.state.set("still", 2);
    let mut idle = facts(Claim::None);
    idle.tree = Some("tree at the start".into());
    assert_snapshot!(next_prompt(&judge_boundary(&subject, &idle).after), @"
    crew loop haaaaaaa: iteration 2 of 10.

    You changed nothing.
    You made no claim.

    Nothing that counts has changed for 3 iterations; 5 end the loop. Before any edit write down two causes you have not tested, and test the cheaper one. If it is a person's decision, say BLOCKED.

    The task:
    Build the todo API

    A claim is <promise>COMPLETE</promise> on the last line, alone; if only a person can help it is <promise>BLOCKED: what you need</promise> instead.
    Continue now.
    ");
}

#[test]
fn a_long_task_is_shown_by_its_beginning_and_its_file() {
    let mut subject = a_loop();
    subject.contract.task = "Refactor. ".repeat(10_000);
    let prompt = next_prompt(&subject);
    assert!(prompt.contains("…\n(The whole task is in /repo/.claude/branches/main/task.md.)"));
    assert!(utf16_units(&prompt) < 1_000);
}

#[test]
fn without_a_promise_no_claim_is_asked_for() {
    let mut subject = a_loop_with(&[("test -e done", Role::Until)]);
    subject.contract.promise = None;
    let prompt = start_prompt(&subject, crew());
    let expected =
        "- The loop ends by itself when `test -e done` passes. No words of yours end it.\n";
    assert!(prompt.contains(expected), "{prompt}");
    assert!(
        next_prompt(&subject).contains("No words of yours end it. If only a person can help, end")
    );
    subject.contract.promise = Some(Promise::default());
    let expected = "ends by itself when `test -e done` passes; until then no claim ends it.\n";
    assert!(start_prompt(&subject, crew()).contains(expected));
    subject.contract.checks.clear();
    assert!(start_prompt(&subject, crew()).contains("- Nobody checks this work but you."));
}

/// The case, how a loop gets into it, and the expected text.
type Case = (&'static str, fn(&mut Loop), &'static str);

#[test]
fn the_prompt_announces_every_limit_that_is_near_and_failures_in_a_row() {
    let mut subject = a_loop();
    subject.state.set("completed", 4);
    let table: [Case; 7] = [
        ("nothing", |_| (), ""),
        ("the last", |it| it.state.set("completed", 9), "This is the last iteration."),
        (
            "no promise",
            |it| {
                it.state.set("completed", 9);
                it.contract.promise = None;
            },
            "This is the last iteration. Begin nothing that you cannot finish now. If it is not done,",
        ),
        (
            "money",
            |it| {
                it.contract.limits.max_cost_micros = 5_000_000;
                it.state.set("usage.cost", Money::from_micros(4_600_000));
            },
            "About $0.40 of $5.00 is left: treat this as the last iteration.",
        ),
        (
            "tokens",
            |it| {
                it.contract.limits.max_tokens = 1_000_000;
                it.state.set("usage.tokens.input", 900_000);
            },
            "About 100k of 1M tokens is left: treat this as the last iteration.",
        ),
        (
            "time",
            |it| {
                it.contract.limits.max_duration_s = 3600;
                it.state.set("awake_ms", 3_300_000);
                it.elapsed_ms = vec![750_000; 4];
            },
            "About 5 min of the loop's time is left: treat this as the last iteration.",
        ),
        (
            "failures",
            |it| {
                it.contract.limits.failure_threshold = 5;
                it.state.set("consecutive_failures", 4);
            },
            "4 iterations in a row have failed; 5 end the loop.",
        ),
    ];
    for (what, change, expected) in table {
        let mut subject = subject.clone();
        change(&mut subject);
        assert_ahead(&subject, what, expected);
    }
}

#[track_caller]
fn assert_ahead(subject: &Loop, what: &str, expected: &str) {
    let shown = ahead(subject);
    assert!(
        shown.starts_with(expected) && shown.is_empty() == expected.is_empty(),
        "{what}: {shown}"
    );
    assert!(next_prompt(subject).contains(&shown), "{what}");
    let goes_on = rules(subject, PromptReader::Next).contains("for the next iteration: done, left");
    let is_last = expected.contains("last iteration");
    assert_eq!(goes_on, !is_last, "{what}");
}

#[test]
fn a_wake_after_a_wait_says_why() {
    assert_snapshot!(woken_prompt(&a_loop(), Duration::from_secs(7_470)), @"
    crew loop haaaaaaa: iteration 1 of 10. Once more.

    This is not an error and not your doing. The model's service refused a request, and crew waited 2h 4m. Your last edit may be half done: look at `git status` and at the file you were in, then continue where you were. Counters and limits are as before; commands you left running may have ended.

    A claim is <promise>COMPLETE</promise> on the last line, alone; if only a person can help it is <promise>BLOCKED: what you need</promise> instead.
    Continue now.
    ");
    assert!(woken_prompt(&a_loop(), Duration::from_millis(6_400)).contains("crew waited 6s."));
}

#[test]
fn a_failed_gate_comes_first_and_the_last_iteration_writes_for_the_next_worker() {
    let mut subject = a_loop_with(&[("cargo clippy", Role::Gate), ("cargo test", Role::Verify)]);
    subject.contract.protect = vec!["tests/golden/**".to_owned()];
    subject.state.set("completed", 8);
    let mut facts = facts(Claim::None);
    let tests = TestRun { passed: 146, failed: 2, ..TestRun::default() };
    facts.checks = vec![CheckResult {
        tail: "error: unused variable: `ttl`".to_owned(),
        test_run: Some(tests),
        ..result("cargo clippy", Verdict::Failed)
    }];
    let after = judge_boundary(&subject, &facts).after;
    assert_snapshot!(next_prompt(&after), @"
    crew loop haaaaaaa: iteration 10 of 10. A gate failed: `cargo clippy`.

    `cargo clippy` failed (exit 1): 2 of 148 tests fail.
      Its last lines:
        error: unused variable: `ttl`

    The last iteration failed; 3 in a row end the loop.
    This is the last iteration. Begin nothing that you cannot finish now. If the whole task is done and you have seen `cargo clippy` and `cargo test` pass, claim it as always. If it is not done, leave the tree so that it builds and end with three short paragraphs: what works, what is left, and what you tried that failed and would not try again. They head the page for whoever continues. Make no claim then.

    Fix this before anything else: run `cargo clippy` until it passes, and turn no warning off to get there. A claim counts only when every gate passes.

    The task:
    Build the todo API

    A claim is <promise>COMPLETE</promise> on the last line, alone; if only a person can help it is <promise>BLOCKED: what you need</promise> instead.
    Continue now.
    ");
    assert_snapshot!(rules(&after, PromptReader::Next), @"
    - Claim only when the whole task is done and you have run `cargo clippy` and `cargo test` yourself, after your last edit, and seen all of them pass. Then end with <promise>COMPLETE</promise> on a line of its own, outside code blocks. crew runs all of them too, and believes only that.
    - Leave tests/golden/** as it is, and delete, skip or loosen no test: crew compares. If a check is wrong, say why and leave it.
    - If you need something that only a person can give, end with <promise>BLOCKED: what you need</promise> instead. That is a good ending.
    ");
}

proptest! {
    // Each case makes four prompts of up to thirty checks, and reads each once per line: a second.
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn every_prompt_fits_the_client_and_none_is_a_claim(
        task in "\\PC{0,3000}",
        runs in prop::collection::vec("\\PC{1,400}", 0..30),
        tail in "(\\PC|\n|😀){0,4000}",
        claimed: bool,
    ) {
        let checks: Vec<(&str, Role)> = runs.iter().map(|run| (run.as_str(), Role::Gate)).collect();
        let mut subject = a_loop_with(&checks);
        subject.contract.task = task;
        let mut facts = facts(if claimed { Claim::Success } else { Claim::None });
        for run in &runs {
            let mut failed = result(run, Verdict::Failed);
            failed.tail.clone_from(&tail);
            facts.checks.push(failed);
        }
        let after = judge_boundary(&subject, &facts).after;
        let account = IterationSummary { iteration: 1, words: one_line(&tail, ACCOUNT_CHARS) };
        let accounts = vec![account; 5];
        for prompt in [start_prompt(&subject, crew()), next_prompt(&after), full_prompt(&after, None, &accounts, crew()), woken_prompt(&after, MINUTE)] {
            prop_assert!(utf16_units(&prompt) < 9_000, "{} units", utf16_units(&prompt));
            prop_assert!(prompt.ends_with("now."));
            prop_assert_eq!(heard(&prompt, &subject), None);
        }
    }
}

/// The claim that would be heard if an agent's last message were this text, or broke off after one
/// of its lines.
fn heard(prompt: &str, subject: &Loop) -> Option<String> {
    let ends = prompt.match_indices('\n').map(|(end, _)| end).chain([prompt.len()]);
    let claims = ends.map(|end| read(&prompt[..end], subject.contract.promise.as_ref()));
    let mut heard = claims.filter(|claim| !matches!(claim, Claim::None | Claim::NearMiss(_)));
    heard.next().map(|claim| format!("{claim:?}"))
}

#[test]
fn an_agent_that_lost_its_context_reads_the_last_iterations() {
    let mut after = judge_boundary(&a_loop(), &facts(Claim::None)).after;
    after.contract.task = "Build it".to_owned();
    let account = |iteration, words: &str| IterationSummary { iteration, words: words.to_owned() };
    let accounts =
        [account(3, "2 files changed"), account(4, "claimed done, refused: 1 test fails")];
    let prompt = full_prompt(&after, None, &accounts, crew());
    assert_eq!(heard(&prompt, &after), None);
    let earlier = prompt.split("Results of the last iterations:\n").nth(1).unwrap();
    insta::assert_snapshot!(earlier.split("\n\n").next().unwrap(), @"
    - Iteration 3: 2 files changed.
    - Iteration 4: claimed done, refused: 1 test fails.
    ");
    let long = vec![account(7, &"x".repeat(500)); 5];
    let prompt = full_prompt(&after, None, &long, crew());
    assert_eq!(prompt.matches("- Iteration 7: ").count(), 3, "as many as fit, the newest");
}
