//! The message of the commit that keeps an iteration's work.

use std::fmt::Write as _;

use crate::engine::evidence::{ClaimResult, Evidence, Progress, Verdict};
use crate::engine::record::Loop;
use crate::engine::text::{clean, clip, with_reason};

/// The most of the task that the message quotes, in characters.
const TASK_CHARS: usize = 72;
/// The most of any other line, in characters.
const LINE_CHARS: usize = 200;

/// The message of the commit after the iteration that the loop's evidence is about.
pub fn commit_message(subject: &Loop) -> String {
    let evidence = subject.state.evidence.as_ref();
    let iteration = evidence.map_or(subject.state.completed, |evidence| evidence.iteration);
    let mut text = format!("crew: iteration {iteration} of loop {}\n", subject.id);
    let mut lines = Vec::new();
    let task = subject.contract.task.trim_start();
    if !task.is_empty() {
        lines.push(clip(task, TASK_CHARS));
    } else if let Some(procedure) = subject.procedure() {
        lines.push(format!("Procedure {procedure}"));
    }
    if let Some(evidence) = evidence {
        lines.push(String::new());
        lines.extend(findings(evidence));
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    for line in lines {
        let _ = write!(text, "\n{line}");
    }
    // `git log` prints it as it is, and an agent's reason may hold what no argument can.
    format!("{}\n", clean(&text).trim_end())
}

fn findings(evidence: &Evidence) -> Vec<String> {
    let mut lines = Vec::new();
    for check in &evidence.checks {
        lines.push(format!("`{}` {}", clip(&check.run, LINE_CHARS), check.what_happened()));
    }
    lines.extend(match &evidence.claim {
        ClaimResult::None => None,
        ClaimResult::Accepted => Some("claim accepted".to_owned()),
        ClaimResult::Refused(why) => Some(with_reason("claim refused", why)),
        ClaimResult::Failure(why) => Some(with_reason("the agent failed", why)),
        ClaimResult::Blocked(why) => Some(with_reason("the agent is blocked", why)),
        ClaimResult::NearMiss(why) => Some(with_reason("no claim", why)),
    });
    if let Some(failure) = &evidence.failure {
        lines.push(format!("failed: {failure}"));
    }
    if evidence.newly_passing > 0 {
        lines.push(format!("checks fixed: {}", evidence.newly_passing));
    }
    lines.extend(evidence.test_news());
    let unchecked = evidence.checks.iter().all(|check| check.verdict == Verdict::Unknown);
    if unchecked && evidence.progress == Progress::Made {
        lines.push("nothing was checked".to_owned());
    }
    lines.iter().map(|line| clip(&format!("- {line}"), LINE_CHARS)).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::boundary::judge::judge;
    use crate::engine::claim::Claim;
    use crate::engine::fixture::{a_loop, a_loop_with, facts, result};
    use crate::engine::record::Role;

    #[test]
    fn the_message_says_which_iteration_of_which_task_and_what_was_seen() {
        let mut subject = a_loop_with(&[("cargo test", Role::Gate), ("cargo fmt", Role::Verify)]);
        subject.contract.task = "\nBuild the todo API\n\nwith a list endpoint".to_owned();
        let mut ended = facts(Claim::Success);
        ended.checks =
            vec![result("cargo test", Verdict::Failed), result("cargo fmt", Verdict::Passed)];
        let subject = judge(&subject, &ended).after;
        assert_snapshot!(commit_message(&subject), @"
        crew: iteration 1 of loop haaaaaaa

        Build the todo API…

        - `cargo test` failed (exit 1)
        - `cargo fmt` passed
        - claim refused: `cargo test` failed (exit 1)
        - failed: gate `cargo test` failed
        ");
    }

    #[test]
    fn a_loop_without_evidence_has_a_message_too() {
        assert_snapshot!(commit_message(&a_loop()), @"
        crew: iteration 0 of loop haaaaaaa

        Build the todo API
        ");
    }
}
