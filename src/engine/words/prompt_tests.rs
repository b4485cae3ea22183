use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::engine::boundary::judge::judge;
use crate::engine::claim::promise::Promise;
use crate::engine::claim::{Claim, read};
use crate::engine::evidence::Verdict;
use crate::engine::fixture::{a_loop, a_loop_with, facts, result};
use crate::engine::journal::account::ACCOUNT_CHARS;
use crate::engine::text::one_line;
use crate::engine::usage::Money;

#[test]
fn the_start_names_the_task_file_the_rule_of_the_claim_and_the_way_to_be_honest() {
    let subject = a_loop_with(&[("cargo test", Role::Verify)]);
    assert_snapshot!(start(&subject, "/crew:loop"), @"
    crew loop haaaaaaa: iteration 1 of 10.
    The task is the text given to /crew:loop without its options; its exact words are in /repo/.claude/branches/main/task.md.
    When you stop, crew looks at what you did and gives you the task again, until it is done.
    How to finish:
    - When the whole task is done, and only then, let the last line of your final message be <promise>COMPLETE</promise> alone, outside code blocks and quotes. crew then runs `cargo test` itself and believes only that.
    - If only a person can help, let that line be <promise>BLOCKED: the reason</promise>; if this iteration failed, <promise>FAILURE: the reason</promise>. Both are honest; an untrue claim is not.
    Now go on with the task.
    ");
}

#[test]
fn a_refused_claim_comes_back_with_the_failing_command_and_its_tail() {
    let subject = a_loop_with(&[("cargo test", Role::Verify), ("cargo clippy", Role::Gate)]);
    let mut facts = facts(Claim::Success);
    facts.checks =
        vec![result("cargo clippy", Verdict::Passed), result("cargo test", Verdict::Failed)];
    facts.checks[1].tail = "test todo::lists ... FAILED\n1 failed; 3 passed".to_owned();
    assert_snapshot!(next(&judge(&subject, &facts).after), @"
    crew loop haaaaaaa: iteration 2 of 10.

    The task:
    Build the todo API

    What crew saw after iteration 1:
    - Your claim was refused.
    - 1 of 2 checks passed.
    - `cargo test` (verify) failed (exit 1).
      Its last lines:
        test todo::lists ... FAILED
        1 failed; 3 passed

    How to finish:
    - When the whole task is done, and only then, let the last line of your final message be <promise>COMPLETE</promise> alone, outside code blocks and quotes. crew then runs `cargo test`, `cargo clippy` itself and believes only that.
    - If only a person can help, let that line be <promise>BLOCKED: the reason</promise>; if this iteration failed, <promise>FAILURE: the reason</promise>. Both are honest; an untrue claim is not.
    Now go on with the task.
    ");
}

#[test]
fn an_iteration_without_a_claim_is_told_what_changed_and_a_still_one_is_nudged() {
    let mut subject = a_loop();
    subject.state.iterations_without_progress = 2;
    let mut idle = facts(Claim::None);
    idle.tree = Some("tree at the start".into());
    assert_snapshot!(next(&judge(&subject, &idle).after), @"
    crew loop haaaaaaa: iteration 2 of 10.

    The task:
    Build the todo API

    What crew saw after iteration 1:
    - No file and no commit changed; you made no claim.

    Nothing changed in the last 3 iterations; after 5 the loop ends as stalled. Try another approach, or say what blocks you.

    How to finish:
    - When the whole task is done, and only then, let the last line of your final message be <promise>COMPLETE</promise> alone, outside code blocks and quotes.
    - If only a person can help, let that line be <promise>BLOCKED: the reason</promise>; if this iteration failed, <promise>FAILURE: the reason</promise>. Both are honest; an untrue claim is not.
    Now go on with the task.
    ");
}

#[test]
fn a_long_task_is_given_by_its_beginning_and_its_file() {
    let mut subject = a_loop();
    subject.contract.task = "Refactor. ".repeat(10_000);
    let prompt = next(&subject);
    assert!(prompt.contains("…\n(The whole task is in /repo/.claude/branches/main/task.md.)"));
    assert!(units(&prompt) < 3_000);
}

#[test]
fn without_a_promise_no_claim_is_asked_for() {
    let mut subject = a_loop_with(&[("test -e done", Role::Until)]);
    subject.contract.promise = None;
    let prompt = next(&subject);
    assert!(prompt.contains("No claim of yours ends this loop"));
    assert!(prompt.contains("- The loop ends by itself when `test -e done` passes.\n"));
    subject.contract.promise = Some(Promise::default());
    let expected = "ends by itself when `test -e done` passes; until then no claim ends it.\n";
    assert!(next(&subject).contains(expected));
}

/// The case, how a loop gets into it, and the expected text.
type Case = (&'static str, fn(&mut Loop), &'static str);

#[test]
fn what_lies_ahead_is_said_for_every_limit_and_for_failures_in_a_row() {
    let mut subject = a_loop();
    subject.state.completed = 4;
    let table: [Case; 7] = [
        ("nothing", |_| (), ""),
        ("the last", |it| it.state.completed = 9, "This is the last iteration."),
        (
            "no promise",
            |it| {
                it.state.completed = 9;
                it.contract.promise = None;
            },
            "This is the last iteration. Write down where the work stands.",
        ),
        (
            "money",
            |it| {
                it.contract.limits.max_cost_micros = 5_000_000;
                it.state.usage.cost = Money::from_micros(4_600_000);
            },
            "About $0.40 of $5.00 is left: treat this as the last iteration.",
        ),
        (
            "tokens",
            |it| {
                it.contract.limits.max_tokens = 1_000_000;
                it.state.usage.tokens.input = 900_000;
            },
            "About 100k of 1M tokens is left: treat this as the last iteration.",
        ),
        (
            "time",
            |it| {
                it.contract.limits.max_duration_s = 3600;
                it.state.awake_ms = 3_300_000;
                it.elapsed_ms = vec![750_000; 4];
            },
            "About 5 min of the loop's time is left: treat this as the last iteration.",
        ),
        (
            "failures",
            |it| {
                it.contract.limits.failure_threshold = 5;
                it.state.consecutive_failures = 4;
            },
            "Failed iterations in a row: 4; 5 end the loop as aborted.",
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
    let told = ahead(subject);
    assert!(told.starts_with(expected) && told.is_empty() == expected.is_empty(), "{what}: {told}");
    assert!(next(subject).contains(&told), "{what}");
    let goes_on = rules(subject, PromptReader::Next).contains("the next iteration goes on");
    let is_last = expected.contains("last iteration");
    assert_eq!(goes_on, !is_last, "{what}");
}

#[test]
fn a_wake_after_a_wait_says_why_it_comes() {
    let prompt = woken(&a_loop(), Duration::from_secs(7_470));
    let expected = "crew loop haaaaaaa: iteration 1 of 10.\n\
        This is no error of yours. The model's service refused a request and crew waited 2h 4m. This is iteration 1 \
        again; look at what is already in the tree, then continue.\n\nThe task:\n";
    assert!(prompt.starts_with(expected), "{prompt}");
    assert!(woken(&a_loop(), Duration::from_millis(6_400)).contains("crew waited 6s."));
}

proptest! {
    // Each case makes prompts of up to thirty checks: a quarter of the usual number takes a few
    // seconds.
    #![proptest_config(ProptestConfig::with_cases(64))]
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
        let after = judge(&subject, &facts).after;
        let account = Account { iteration: 3, words: one_line(&tail, ACCOUNT_CHARS) };
        let accounts = vec![account; 5];
        for prompt in [start(&subject, "/crew:loop"), next(&after), again(&after, None, &accounts), woken(&after, MINUTE)] {
            prop_assert!(units(&prompt) < 9_000, "{} units", units(&prompt));
            prop_assert!(prompt.ends_with("Now go on with the task."));
            let claim = read(&prompt, subject.contract.promise.as_ref());
            let heard = !matches!(claim, Claim::None | Claim::NearMiss(_));
            prop_assert!(!heard, "{claim:?}");
        }
    }
}

#[test]
fn an_agent_that_lost_its_context_reads_the_last_iterations() {
    let mut after = judge(&a_loop(), &facts(Claim::None)).after;
    after.contract.task = "Build it".to_owned();
    let account = |iteration, words: &str| Account { iteration, words: words.to_owned() };
    let accounts =
        [account(3, "2 files changed"), account(4, "claimed done, refused: 1 test fails")];
    let prompt = again(&after, None, &accounts);
    let earlier = prompt.split("What the last iterations came to:\n").nth(1).unwrap();
    insta::assert_snapshot!(earlier.split("\n\n").next().unwrap(), @"
    - Iteration 3: 2 files changed.
    - Iteration 4: claimed done, refused: 1 test fails.
    ");
    let long = vec![account(7, &"x".repeat(500)); 5];
    let prompt = again(&after, None, &long);
    assert_eq!(prompt.matches("- Iteration 7: ").count(), 3, "as many as fit, the newest");
}
