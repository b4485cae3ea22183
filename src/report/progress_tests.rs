//! Tests of the lines of progress and of the live line.

use chrono::TimeDelta;
use insta::assert_snapshot;

use super::*;
use engine::boundary::decide::{Decision, apply_decision, decide_next};
use engine::boundary::facts::{ApiError, Facts, ProcessEnd};
use engine::boundary::judge::judge_boundary;
use engine::claim::Claim;
use engine::fixture::{SetState, a_loop, a_loop_with, a_page, a_run, at, facts, result};
use engine::journal::story::Story;
use engine::record::LoopStep;
use engine::record::{
    Actor, CompletionBasis, EndReason, EndSignal, Ending, LoopMoment, Outcome, Proof, Role, Status,
};
use engine::usage::{Money, Tokens, Usage};

/// A run as a pipe shows it. It starts at ten o'clock local time.
struct PipedRun {
    record: Loop,
    ms: i64,
    text: String,
}

impl PipedRun {
    fn of(record: Loop) -> Self {
        Self { record, ms: 0, text: String::new() }
    }

    fn on_event(&mut self, event: &RunEvent<'_>) {
        let ten = DateTime::parse_from_rfc3339("2026-11-18T10:00:00+02:00").unwrap();
        for line in progress_lines(event, ten + TimeDelta::milliseconds(self.ms)) {
            self.text.push_str(&line.text);
            self.text.push('\n');
        }
    }

    fn start(mut self) -> Self {
        self.on_event(&RunEvent::Started(&self.record.clone()));
        self
    }

    fn resume(mut self) -> Self {
        self.on_event(&RunEvent::Resumed(&self.record.clone()));
        self
    }

    /// An iteration of `ms` milliseconds whose agent exits with `exit`, up to the boundary's
    /// decision.
    fn iterate(&mut self, ms: u32, exit: i32, change: impl FnOnce(&mut Facts)) {
        self.on_event(&RunEvent::IterationStarted(&self.record.clone()));
        let mut facts = facts(Claim::None);
        facts.now = self.record.state.time().began();
        facts.now.awake_ms += u64::from(ms);
        facts.tree =
            Some(format!("tree {}", self.record.state.counts().completed()).as_str().into());
        facts.seen.agent.process = Some(ProcessEnd::Exit(exit));
        change(&mut facts);
        let judged = judge_boundary(&self.record, &facts);
        let decision = decide_next(&judged, &facts);
        let counted = judged.counted();
        self.record = apply_decision(judged, &decision);
        self.ms += i64::from(ms);
        let after = self.record.clone();
        if counted {
            let exit = match facts.seen.agent.process {
                Some(ProcessEnd::Exit(code)) => Some(code),
                _ => None,
            };
            self.on_event(&RunEvent::IterationEnded { after: &after, exit, ends: after.outcome() });
        }
        if let Decision::Wait { .. } = decision {
            self.on_event(&RunEvent::Waiting(&after));
        }
        if !after.is_live() {
            self.finish();
        }
    }

    /// Ctrl-C after `ms` milliseconds of an iteration, which counts.
    fn interrupt(&mut self, ms: u32) {
        self.on_event(&RunEvent::IterationStarted(&self.record.clone()));
        self.on_event(&RunEvent::Stopping);
        let mut facts = facts(Claim::None);
        facts.now = self.record.state.time().began();
        facts.now.awake_ms += u64::from(ms);
        facts.seen.agent.process = Some(ProcessEnd::BrokenOff(Some(EndSignal::Keyboard)));
        let judged = judge_boundary(&self.record, &facts);
        self.record = judged.after;
        self.ms += i64::from(ms);
        let after = self.record.clone();
        let ends = Some(Outcome::Interrupted);
        self.on_event(&RunEvent::IterationEnded { after: &after, exit: None, ends });
        self.end(Outcome::Interrupted, "interrupted at the keyboard");
    }

    fn finish(&mut self) {
        let record = self.record.clone();
        let page = a_page(&record, &Story::with_pick(None));
        let finished = RunEvent::Finished { record: &record, page: &page, saved: true };
        self.on_event(&finished);
    }

    fn end(&mut self, outcome: Outcome, why: &str) {
        self.record.state.finish(Ending::new(outcome, why), 0);
        self.finish();
    }
}

fn build(max: u32) -> Loop {
    let mut record = a_run(Some("build"));
    record.contract.limits.max_iterations = max;
    record
}

#[test]
fn a_run_to_its_limit_reports_each_iteration_and_the_limit() {
    let mut record = build(3);
    record.contract.promise = None;
    let mut run = PipedRun::of(record).start();
    for ms in [45_200, 38_700, 52_100] {
        run.iterate(ms, 0, |_| ());
    }
    assert_snapshot!(run.text, @"
    [10:00:00] Starting procedure: build (max 3 iterations)
    [10:00:00] Iteration 1/3 starting...
    [10:00:45] Iteration 1/3 completed in 45.2s
    [10:00:45] Iteration 2/3 starting...
    [10:01:23] Iteration 2/3 completed in 38.7s
    [10:01:23] Iteration 3/3 starting...
    [10:02:16] Iteration 3/3 completed in 52.1s
    [10:02:16] Reached max iterations: 3 (total: 2m16s)
    ");
}

#[test]
fn three_failures_in_a_row_abort_and_the_last_iteration_is_not_shown_as_completed() {
    let mut run = PipedRun::of(build(10)).start();
    for (ms, exit) in [(42_000, 0), (36_000, 0), (37_000, 0), (15_000, 1), (12_000, 1), (13_000, 1)]
    {
        run.iterate(ms, exit, |_| ());
    }
    assert_snapshot!(run.text, @"
    [10:00:00] Starting procedure: build (max 10 iterations)
    [10:00:00] Iteration 1/10 starting...
    [10:00:42] Iteration 1/10 completed in 42.0s
    [10:00:42] Iteration 2/10 starting...
    [10:01:18] Iteration 2/10 completed in 36.0s
    [10:01:18] Iteration 3/10 starting...
    [10:01:55] Iteration 3/10 completed in 37.0s
    [10:01:55] Iteration 4/10 starting...
    [10:02:10] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3
    [10:02:10] Iteration 4/10 completed in 15.0s
    [10:02:10] Iteration 5/10 starting...
    [10:02:22] WARNING: AI CLI failed (exit 1), consecutive failures: 2/3
    [10:02:22] Iteration 5/10 completed in 12.0s
    [10:02:22] Iteration 6/10 starting...
    [10:02:35] WARNING: AI CLI failed (exit 1), consecutive failures: 3/3
    [10:02:35] ERROR: Aborting after 3 consecutive failures (6 iterations completed, total: 2m35s)
    ");
}

#[test]
fn an_interrupted_run_shows_how_to_resume_it_and_a_resumed_one_its_past() {
    let mut run = PipedRun::of(build(10)).start();
    for _ in 0..4 {
        run.iterate(64_500, 0, |_| ());
    }
    run.text.clear();
    run.interrupt(12_000);
    run.record.state.set("status", Status::Running);
    run.record.state.set("ending", None::<String>);
    let mut run = run.resume();
    run.on_event(&RunEvent::IterationStarted(&run.record.clone()));
    assert_snapshot!(run.text, @"
    [10:04:18] Iteration 5/10 starting...
    [10:04:30] Interrupted. State saved. Resume with: crew resume build
    [10:04:30] Resuming procedure: build from iteration 5 (max 10)
    [10:04:30] Previous session: 5 iterations completed in 4m30s
    [10:04:30] Iteration 6/10 starting...
    ");
}

#[test]
fn without_a_limit_iterations_have_no_total_and_a_success_forgives_failures() {
    let mut run = PipedRun::of(build(0)).start();
    run.iterate(15_000, 1, |_| ());
    run.iterate(42_000, 0, |_| ());
    assert_snapshot!(run.text, @"
    [10:00:00] Starting procedure: build (unlimited iterations, up to 12h, 3 failures in a row abort, 5 iterations without progress stall)
    [10:00:00] Iteration 1 starting...
    [10:00:15] WARNING: AI CLI failed (exit 1), consecutive failures: 1/3
    [10:00:15] Iteration 1 completed in 15.0s
    [10:00:15] Iteration 2 starting...
    [10:00:57] Iteration 2 completed in 42.0s
    ");
}

#[test]
fn a_task_is_named_by_its_beginning() {
    let mut record = a_run(None);
    record.contract.task = "fix the failing\ntests of the parser, and then ".repeat(4);
    let run = PipedRun::of(record).start().resume();
    assert_snapshot!(run.text, @r#"
    [10:00:00] Starting: "fix the failing…" (max 10 iterations)
    [10:00:00] Resuming: "fix the failing…" from iteration 1 (max 10)
    [10:00:00] Previous session: 0 iterations completed in 0.0s
    "#);
}

#[test]
fn claims_checks_and_gates_are_reported_as_they_happen() {
    let mut record = a_loop_with(&[("cargo test", Role::Verify), ("cargo fmt", Role::Gate)]);
    record.contract.run = build(5).contract.run;
    let mut run = PipedRun::of(record);
    run.on_event(&RunEvent::CheckEnded(&result("cargo test", Verdict::Failed)));
    run.on_event(&RunEvent::CheckEnded(&result("cargo fmt", Verdict::Passed)));
    run.on_event(&RunEvent::CheckEnded(&result("make", Verdict::TimedOut)));
    run.on_event(&RunEvent::CheckEnded(&result("make", Verdict::Unknown)));
    let checks = |test, fmt| vec![result("cargo test", test), result("cargo fmt", fmt)];
    run.iterate(1000, 0, |facts| {
        facts.seen.claim = Claim::Success;
        facts.checks = checks(Verdict::Failed, Verdict::Passed);
    });
    run.iterate(1000, 0, |facts| facts.checks = checks(Verdict::Passed, Verdict::Failed));
    run.iterate(1000, 0, |facts| {
        facts.seen.claim = Claim::Success;
        facts.checks = checks(Verdict::Passed, Verdict::Passed);
    });
    assert_snapshot!(run.text, @"
    [10:00:00] Check failed: `cargo test` (exit 1) in 1.2s
    [10:00:00]   | output of cargo test
    [10:00:00] Check passed: `cargo fmt` in 1.2s
    [10:00:00] Check timed out: `make` after 1.2s
    [10:00:00]   | output of make
    [10:00:00] WARNING: Check did not finish: `make`: output of make
    [10:00:00] Iteration 1/10 starting...
    [10:00:01] Claim refused: `cargo test` failed (exit 1)
    [10:00:01] Iteration 1/10 completed in 1.0s
    [10:00:01] Iteration 2/10 starting...
    [10:00:02] WARNING: gate `cargo fmt` failed, consecutive failures: 1/3
    [10:00:02] Iteration 2/10 completed in 1.0s
    [10:00:02] Iteration 3/10 starting...
    [10:00:03] Iteration 3/10 completed in 1.0s
    [10:00:03] Completed, checked: a check that had failed now passes (3 iterations completed, total: 3.0s)
    ");
}

#[test]
fn a_wait_shows_its_end_and_the_iteration_that_is_repeated() {
    let mut run = PipedRun::of(build(10));
    let reset = at(0).wall + TimeDelta::hours(2);
    run.iterate(1000, 1, |facts| {
        let message = "rate limit".to_owned();
        facts.seen.agent.error =
            Some(ApiError::Transient { message, reset: Some(reset), is_limit: true });
    });
    assert_snapshot!(run.text, @"
    [10:00:00] Iteration 1/10 starting...
    [10:00:01] Waiting until 15:06 (rate limit), then iteration 1 again
    ");
}

#[test]
fn each_event_around_an_iteration_has_one_line() {
    let record = build(10);
    let mut run = PipedRun::of(record.clone());
    let until = at(30).wall;
    for event in [
        RunEvent::Noted("nothing is checked"),
        RunEvent::OverBudget { tokens: 120_000, budget: 100_000 },
        RunEvent::Skipped { record: &record, why: "`make ready` exited\nwith status 1" },
        RunEvent::Delayed { record: &record, until },
        RunEvent::Paused(&record),
        RunEvent::ReactionFailed {
            on: LoopMoment::Finish,
            run: "notify-send done",
            why: "finish `notify-send done` failed (exit 1)",
            is_reported: false,
        },
        RunEvent::ReactionFailed {
            on: LoopMoment::IterationStart,
            run: "make ready",
            why: "iteration_start `make ready` failed (exit 1)",
            is_reported: true,
        },
        RunEvent::Committed {
            commit: "1a2b3c4d5e6f7a8b9c0d",
            branch: Some("main"),
            subject: "Mend the parser",
        },
        RunEvent::CommitFailed {
            why: "commit failed (unfinished): a merge is in progress; finish it",
        },
        RunEvent::Pushed { branch: "feat/auth", remote: "origin" },
        RunEvent::PushFailed { why: "push failed (auth): no key; add one" },
        RunEvent::Rebased { onto: "main" },
        RunEvent::Unsaved { why: "no space left on device" },
        RunEvent::Said("never a line of crew's"),
        RunEvent::CheckStarted("cargo test"),
    ] {
        run.on_event(&event);
    }
    assert_snapshot!(run.text, @"
    [10:00:00] WARNING: Prompt exceeds its budget: about 120k of 100k tokens; sent all the same
    [10:00:00] WARNING: Iteration 1/10 skipped: `make ready` exited…
    [10:00:00] Iteration 1 starts at 13:07:10
    [10:00:00] Paused before iteration 1/10. Resume with: crew resume build
    [10:00:00] WARNING: Reaction to finish `notify-send done` failed (exit 1)
    [10:00:00] Committed 1a2b3c4d5e6f on main: Mend the parser
    [10:00:00] WARNING: Commit failed (unfinished): a merge is in progress; finish it
    [10:00:00] Pushed feat/auth to origin
    [10:00:00] WARNING: Push failed (auth): no key; add one
    [10:00:00] Rebased onto main
    [10:00:00] ERROR: State cannot be written: no space left on device. The run continues within its limits; this is reported only once
    ");
}

#[test]
fn every_outcome_has_its_line() {
    let endings = [
        (
            Outcome::Completed,
            Some(Proof::Checked),
            Ending::completed(Proof::Checked, CompletionBasis::Proof(Proof::Checked)).reason,
        ),
        (
            Outcome::Completed,
            Some(Proof::Claimed),
            "the time limit of 4h is reached; nothing was checked".into(),
        ),
        (
            Outcome::Exhausted,
            None,
            EndReason::LimitReached("the time limit of 4h is reached".into()),
        ),
        (Outcome::Stalled, None, "nothing changed in the last 5 iterations".into()),
        (Outcome::Blocked, None, EndReason::AgentBlocked("no key".into())),
        (Outcome::Cancelled, None, Ending::cancelled(Actor::User, None).reason),
        (Outcome::Error, None, "the agent could not be started".into()),
    ];
    let mut run = PipedRun::of(build(10));
    run.record.state.set("awake_ms", 136_000);
    run.record.state.set("completed", 3);
    for (outcome, proof, reason) in endings {
        run.record.state.set("ending", Some(Ending { proof, ..Ending::new(outcome, reason) }));
        run.finish();
    }
    run.end(Outcome::Interrupted, "SIGTERM");
    let record = run.record.clone();
    let page = a_page(&record, &Story::with_pick(None));
    run.on_event(&RunEvent::Finished { record: &record, page: &page, saved: false });
    assert_snapshot!(run.text, @"
    [10:00:00] Completed, checked: a check that had failed now passes (3 iterations completed, total: 2m16s)
    [10:00:00] Completed, claimed: the time limit of 4h is reached; nothing was checked (3 iterations completed, total: 2m16s)
    [10:00:00] Exhausted: the time limit of 4h is reached (3 iterations completed, total: 2m16s)
    [10:00:00] WARNING: Stalled: nothing changed in the last 5 iterations (3 iterations completed, total: 2m16s)
    [10:00:00] ERROR: Blocked: the agent said BLOCKED: no key (3 iterations completed, total: 2m16s)
    [10:00:00] Cancelled: cancelled by the user (3 iterations completed, total: 2m16s)
    [10:00:00] ERROR: the agent could not be started (3 iterations completed, total: 2m16s)
    [10:00:00] Interrupted. State saved. Resume with: crew resume build
    [10:00:00] WARNING: Interrupted. State could not be saved
    ");
}

#[test]
fn the_live_line_shows_the_progress_and_what_the_run_waits_for() {
    let mut record = a_loop();
    let mut live = Live::default();
    live.on_event(&RunEvent::Started(&record));
    assert_snapshot!(live.line(at(0).wall), @"starting");
    assert!(live.on_event(&RunEvent::IterationStarted(&record)), "its time counts from zero");
    assert_snapshot!(live.line(at(0).wall), @"iteration 1/10");
    assert!(!live.on_event(&RunEvent::CheckStarted("cargo test")));
    assert_snapshot!(live.line(at(0).wall), @"iteration 1/10 · checking `cargo test`");
    live.on_event(&RunEvent::CheckEnded(&result("cargo test", Verdict::Failed)));
    assert!(!live.on_event(&RunEvent::StepStarted(LoopStep::PostHook, "make clean")));
    assert_snapshot!(live.line(at(0).wall), @"iteration 1/10 · post-hook `make clean` · `cargo test` failed (exit 1)");
    live.on_event(&RunEvent::StepStarted(LoopStep::Commit, ""));
    assert_snapshot!(live.line(at(0).wall), @"iteration 1/10 · commit · `cargo test` failed (exit 1)");
    let (exit, ends) = (Some(0), None);
    live.on_event(&RunEvent::IterationEnded { after: &record, exit, ends });
    assert_snapshot!(live.line(at(0).wall), @"iteration 1/10 · `cargo test` failed (exit 1)");
    record.state.set("completed", 1);
    let tokens = Tokens { input: 1_840_000, ..Tokens::default() };
    record
        .state
        .set("usage", Usage { tokens, cost: Money::from_micros(1_840_000), ..Usage::default() });
    live.on_event(&RunEvent::IterationStarted(&record));
    assert_snapshot!(live.line(at(0).wall), @"iteration 2/10 · $1.84 · `cargo test` failed (exit 1)");
    record.state.set("due", Some(at(750).wall));
    record.state.set("awaited", Some("rate limit".to_owned()));
    live.on_event(&RunEvent::Waiting(&record));
    assert_snapshot!(live.line(at(2).wall), @"iteration 2/10 · waiting (rate limit), 12m 28s left · $1.84 · `cargo test` failed (exit 1)");
    assert_snapshot!(live.line(at(900).wall), @"iteration 2/10 · waiting (rate limit), 0s left · $1.84 · `cargo test` failed (exit 1)");
    record.state.set("completed", 2);
    live.on_event(&RunEvent::IterationStarted(&record));
    assert_snapshot!(live.line(at(900).wall), @"iteration 3/10 · $1.84");
    live.on_event(&RunEvent::Stopping);
    assert_snapshot!(live.line(at(900).wall), @"iteration 3/10 · ending the agent, Ctrl-C again kills it · $1.84");
}

#[test]
fn the_terms_of_a_run_name_its_agent_when_it_is_done_and_how_to_stop_it() {
    assert_snapshot!(terms_line(&a_run(None)), @"loop haaaaaaa · claude on main · up to 10 iterations, 12h · done when the agent says COMPLETE; nothing checks it · stop: Ctrl-C, or anywhere: crew cancel haaaaaaa");
    let mut record = a_run(None);
    record.contract.checks = a_loop_with(&[("cargo test", Role::Verify)]).contract.checks;
    assert_snapshot!(terms_line(&record), @"loop haaaaaaa · claude on main · up to 10 iterations, 12h · done when the agent says COMPLETE and `cargo test` passes · stop: Ctrl-C, or anywhere: crew cancel haaaaaaa");
}
