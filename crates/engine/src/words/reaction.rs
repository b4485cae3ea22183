//! What a user's command for a moment of a loop receives, by variables and as JSON, and how it
//! ended. The driver decides what that means for the iteration.

use std::fmt::Write as _;

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::evidence::Verdict;
use crate::record::{Ending, Loop, LoopMoment};
use crate::text::{clip_line, tail_of, variant_name};
use crate::view::LoopView;

/// The version of the data that a reaction reads.
pub const SCHEMA: u32 = 2;

/// A finished reaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionEnd {
    pub on: LoopMoment,
    pub run: String,
    /// `Unknown` if it died by a signal crew did not send, or was ended with the run.
    pub verdict: Verdict,
    /// `None` if it did not exit by itself.
    pub exit: Option<i32>,
    pub elapsed_ms: u64,
    /// The end of its output, bounded.
    pub tail: String,
}

impl ReactionEnd {
    /// Whether it failed; an unknown result is not a failure.
    pub fn has_failed(&self) -> bool {
        matches!(self.verdict, Verdict::Failed | Verdict::TimedOut)
    }

    /// "finish `./notify` failed (exit 1): nobody is listening".
    pub fn end_line(&self) -> String {
        let what = match (self.verdict, self.exit) {
            (Verdict::Failed, None) => "could not be started".to_owned(),
            (Verdict::Unknown, _) => "did not finish".to_owned(),
            (verdict, exit) => verdict.what_happened(exit, self.elapsed_ms),
        };
        let mut line = format!("{} `{}` {what}", self.on.label(), clip_line(&self.run, 100));
        let last = tail_of(&self.tail, 200);
        if let Some(last) = last.lines().last().filter(|_| self.verdict != Verdict::Passed) {
            let _ = write!(line, ": {}", last.trim());
        }
        line
    }
}

/// The iteration that a moment belongs to. At a stall or a finish it is the last completed one.
fn moment_iteration(subject: &Loop, on: LoopMoment) -> u32 {
    match on {
        LoopMoment::Stall | LoopMoment::Finish => subject.state.completed,
        _ => subject.iteration(),
    }
}

/// Dollars, as a number that a script can compare; `None` while no use is known.
fn cost_dollars(subject: &Loop) -> Option<f64> {
    let usage = &subject.state.usage;
    usage.is_reported().then(|| (usage.cost.dollars() * 1e6).round() / 1e6)
}

fn wait_or_end_reason(subject: &Loop) -> Option<String> {
    let awaited = subject.state.wait_reason.clone().filter(|_| subject.state.due.is_some());
    subject.state.ending.as_ref().map(Ending::full_reason).or(awaited)
}

/// The variables of a reaction. Each one is set, so that none is inherited; one without meaning at
/// this moment is empty.
pub fn reaction_variables(subject: &Loop, on: LoopMoment) -> Vec<(&'static str, String)> {
    let state = &subject.state;
    let proof = state.ending.as_ref().and_then(|ending| ending.proof);
    let tokens = Some(state.usage.tokens.total()).filter(|tokens| *tokens > 0);
    let shown = |value: Option<String>| value.unwrap_or_default();
    let variables = vec![
        ("CREW_ON", on.label().to_owned()),
        ("CREW_LOOP", subject.id.to_string()),
        ("CREW_ITERATION", moment_iteration(subject, on).to_string()),
        ("CREW_MAX_ITERATIONS", subject.contract.limits.max_iterations.to_string()),
        ("CREW_STATUS", variant_name(&state.status).to_owned()),
        ("CREW_OUTCOME", shown(subject.outcome().map(|outcome| outcome.label().to_owned()))),
        ("CREW_PROOF", shown(proof.map(|proof| proof.label().to_owned()))),
        ("CREW_WHY", shown(wait_or_end_reason(subject))),
        ("CREW_CHECKOUT", subject.place.checkout.display().to_string()),
        ("CREW_BRANCH", shown(subject.place.branch.clone())),
        ("CREW_COST", shown(cost_dollars(subject).map(|dollars| dollars.to_string()))),
        ("CREW_TOKENS", shown(tokens.map(|tokens| tokens.to_string()))),
        ("CREW_DUE", shown(state.due.map(|due| due.format("%Y-%m-%dT%H:%M:%SZ").to_string()))),
    ];
    // An agent's reason may hold a NUL, which no variable can.
    variables.into_iter().map(|(name, value)| (name, value.replace('\0', ""))).collect()
}

/// The loop as one JSON object, as `crew status --json` has it, with the moment and its iteration.
pub fn loop_document(subject: &Loop, on: LoopMoment, now: DateTime<FixedOffset>) -> Value {
    let mut document = json!(LoopView::from_record(subject, now));
    document["schema"] = SCHEMA.into();
    document["on"] = on.label().into();
    document["iteration"] = moment_iteration(subject, on).into();
    document
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::boundary::decide::{apply_decision, decide_next};
    use crate::boundary::judge::judge_boundary;
    use crate::claim::Claim;
    use crate::fixture::{SetState, a_loop, a_loop_with, at, facts, result};
    use crate::record::{EndReason, Role, Status};
    use crate::usage::Money;

    fn finished() -> Loop {
        let mut subject = a_loop_with(&[("cargo test", Role::Verify)]);
        subject.state.set("usage.tokens.input", 1200);
        subject.state.set("usage.cost", Money::from_micros(1_840_000));
        let mut passed = facts(Claim::Success);
        passed.checks = vec![result("cargo test", Verdict::Passed)];
        let judged = judge_boundary(&subject, &passed);
        let decision = decide_next(&judged, &passed);
        apply_decision(judged, &decision)
    }

    fn told(subject: &Loop, on: LoopMoment) -> String {
        let variables = reaction_variables(subject, on);
        variables.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = writeln!(text, "{name}={value}");
            text
        })
    }

    #[test]
    fn a_reaction_to_the_end_is_told_how_it_came_to_that() {
        assert_snapshot!(told(&finished(), LoopMoment::Finish), @"
        CREW_ON=finish
        CREW_LOOP=haaaaaaa
        CREW_ITERATION=1
        CREW_MAX_ITERATIONS=10
        CREW_STATUS=finished
        CREW_OUTCOME=completed
        CREW_PROOF=passing
        CREW_WHY=the checks pass; nothing shows that the work made them pass
        CREW_CHECKOUT=/repo
        CREW_BRANCH=main
        CREW_COST=1.84
        CREW_TOKENS=1200
        CREW_DUE=
        ");
    }

    #[test]
    fn what_no_variable_can_hold_is_left_out() {
        let mut subject = finished();
        subject.state.set("ending.reason", EndReason::from("no\0thing"));
        let variables = reaction_variables(&subject, LoopMoment::Finish);
        assert!(variables.contains(&("CREW_WHY", "nothing".to_owned())));
    }

    #[test]
    fn a_reaction_to_a_wait_is_told_until_when_and_for_what() {
        let mut subject = a_loop();
        subject.state.set("status", Status::Waiting);
        subject.state.set("due", Some(at(3600).wall));
        subject.state.set("awaited", Some("rate limit".to_owned()));
        assert_snapshot!(told(&subject, LoopMoment::Wait), @"
        CREW_ON=wait
        CREW_LOOP=haaaaaaa
        CREW_ITERATION=1
        CREW_MAX_ITERATIONS=10
        CREW_STATUS=waiting
        CREW_OUTCOME=
        CREW_PROOF=
        CREW_WHY=rate limit
        CREW_CHECKOUT=/repo
        CREW_BRANCH=main
        CREW_COST=
        CREW_TOKENS=
        CREW_DUE=2026-11-18T12:06:40Z
        ");
    }

    #[test]
    fn the_document_is_the_loop_as_the_status_has_it_with_the_moment_and_its_iteration() {
        let (subject, now) = (finished(), at(0).wall.fixed_offset());
        let mut expected = json!(LoopView::from_record(&subject, now));
        assert_eq!(
            (&expected["task"], &expected["folder"]),
            (&"Build the todo API".into(), &"/repo".into())
        );
        expected["schema"] = 2.into();
        expected["on"] = "finish".into();
        expected["iteration"] = 1.into();
        assert_eq!(loop_document(&subject, LoopMoment::Finish, now), expected);
    }

    #[test]
    fn the_iteration_is_the_one_the_moment_belongs_to() {
        let mut subject = a_loop();
        subject.state.set("completed", 4);
        for (on, expected) in [
            (LoopMoment::IterationStart, 5),
            (LoopMoment::IterationEnd, 5),
            (LoopMoment::Wait, 5),
            (LoopMoment::Stall, 4),
            (LoopMoment::Finish, 4),
        ] {
            assert_eq!(moment_iteration(&subject, on), expected, "{on:?}");
        }
    }

    #[test]
    fn the_end_of_a_reaction_is_one_line() {
        let end = |verdict, exit, tail: &str| ReactionEnd {
            on: LoopMoment::IterationStart,
            run: "./ready".to_owned(),
            verdict,
            exit,
            elapsed_ms: 60_000,
            tail: tail.to_owned(),
        };
        let lines = [
            end(Verdict::Passed, Some(0), "fine\n"),
            end(Verdict::Failed, Some(1), "asking\nthe database is down\n"),
            end(Verdict::Failed, None, "no such folder"),
            end(Verdict::TimedOut, None, ""),
            end(Verdict::Unknown, None, ""),
        ];
        let text: Vec<String> = lines.iter().map(ReactionEnd::end_line).collect();
        assert_snapshot!(text.join("\n"), @"
        iteration_start `./ready` passed
        iteration_start `./ready` failed (exit 1): the database is down
        iteration_start `./ready` could not be started: no such folder
        iteration_start `./ready` timed out after 60 s
        iteration_start `./ready` did not finish
        ");
    }
}
