use super::*;
use crate::boundary::facts::{AgentClosing, ControlRequest, ProcessEnd};
use crate::fixture::{SetState, a_loop, a_loop_with, at, facts, result};
use crate::protect::Protected;
use crate::record::{Actor, EndSignal};

const TEST: [(&str, Role); 1] = [("cargo test", Role::Verify)];

#[test]
fn a_claim_without_checks_is_accepted_on_the_agents_word_alone() {
    let judged = judge_boundary(&a_loop(), &facts(Claim::Success));
    assert_eq!(judged.proved, Some(Proof::Claimed));
    assert_eq!(judged.after.state.seen().evidence().as_ref().unwrap().claim, ClaimResult::Accepted);
}

#[test]
fn a_claim_with_checks_never_seen_to_fail_is_passing() {
    let mut facts = facts(Claim::Success);
    facts.checks = vec![result("cargo test", Verdict::Passed)];
    assert_eq!(judge_boundary(&a_loop_with(&TEST), &facts).proved, Some(Proof::Passing));
}

#[test]
fn a_check_that_failed_before_and_passes_now_is_the_proof() {
    let mut first = facts(Claim::Success);
    first.checks = vec![result("cargo test", Verdict::Failed)];
    let refused = judge_boundary(&a_loop_with(&TEST), &first);
    assert_eq!(refused.proved, None);
    let mut second = facts(Claim::Success);
    second.checks = vec![result("cargo test", Verdict::Passed)];
    let accepted = judge_boundary(&refused.after, &second);
    assert_eq!(accepted.proved, Some(Proof::Checked));
    assert_eq!(accepted.after.state.seen().evidence().as_ref().unwrap().newly_passing, 1);
}

#[test]
fn a_proof_below_the_required_one_refuses_the_claim_and_no_agent_can_change_that() {
    let mut subject = a_loop_with(&TEST);
    subject.contract.require = Some(Proof::Checked);
    let short = "the proof would be `passing` and this loop requires `checked`: the checks pass; nothing shows \
                 that the work made them pass; start it without --require, or with a check that fails now";
    let mut green = facts(Claim::Success);
    green.checks = vec![result("cargo test", Verdict::Passed)];
    let once = judge_boundary(&subject, &green);
    let claim = once.after.state.seen().evidence().as_ref().unwrap().claim.clone();
    assert_eq!(
        (once.proved, once.sound, claim),
        (None, None, ClaimResult::Refused(short.to_owned()))
    );
    assert_eq!(once.incurable, None);
    let twice = judge_boundary(&once.after, &green).incurable;
    assert_eq!(twice.map(|refusal| refusal.to_string()).as_deref(), Some(short));
    let mut red = facts(Claim::None);
    red.checks = vec![result("cargo test", Verdict::Failed)];
    assert_eq!(
        judge_boundary(&judge_boundary(&once.after, &red).after, &green).proved,
        Some(Proof::Checked)
    );
}

#[test]
fn a_refused_claim_is_not_a_failure_and_names_the_check_that_refused_it() {
    let mut facts = facts(Claim::Success);
    facts.checks = vec![result("cargo test", Verdict::Failed)];
    let judged = judge_boundary(&a_loop_with(&TEST), &facts);
    assert_eq!(judged.after.state.counts().consecutive_failures(), 0);
    let expected = ClaimResult::Refused("`cargo test` failed (exit 1)".to_owned());
    assert_eq!(judged.after.state.seen().evidence().as_ref().unwrap().claim, expected);
}

#[test]
fn a_claim_with_green_verify_and_red_gate_is_not_proved() {
    let checks = [("cargo test", Role::Verify), ("lint", Role::Gate)];
    let mut facts = facts(Claim::Success);
    facts.checks = vec![result("lint", Verdict::Failed), result("cargo test", Verdict::Passed)];
    let judged = judge_boundary(&a_loop_with(&checks), &facts);
    assert_eq!(judged.proved, None);
    assert_eq!(judged.after.state.counts().consecutive_failures(), 1);
}

#[test]
fn until_needs_no_claim_but_verify_and_gate_and_no_claim_is_proved_without_until() {
    let checks = [("deployed", Role::Until), ("cargo test", Role::Verify)];
    let mut facts = facts(Claim::None);
    facts.checks = vec![result("deployed", Verdict::Passed)];
    assert_eq!(judge_boundary(&a_loop_with(&checks), &facts).proved, None);
    facts.checks.push(result("cargo test", Verdict::Passed));
    assert_eq!(judge_boundary(&a_loop_with(&checks), &facts).proved, Some(Proof::Passing));
    facts.seen.claim = Claim::Success;
    facts.checks[0] = result("deployed", Verdict::Failed);
    let judged = judge_boundary(&a_loop_with(&checks), &facts);
    assert_eq!(judged.proved, None);
    let expected = ClaimResult::Refused("`deployed` failed (exit 1)".to_owned());
    assert_eq!(judged.after.state.seen().evidence().as_ref().unwrap().claim, expected);
}

#[test]
fn failures_in_a_row_are_counted_and_any_other_iteration_resets_them() {
    let subject = a_loop_with(&[("lint", Role::Gate)]);
    let with_gate = |claim: Claim, verdict: Verdict| {
        let mut facts = facts(claim);
        facts.checks = vec![result("lint", verdict)];
        facts
    };
    let mut timed_out = with_gate(Claim::None, Verdict::Passed);
    timed_out.seen.agent.process = Some(ProcessEnd::TimedOut(1800));
    timed_out.tree = subject.state.seen().tree().as_deref().map(Into::into);
    let mut exited = with_gate(Claim::None, Verdict::Passed);
    exited.seen.agent.process = Some(ProcessEnd::Exit(2));
    let mut exited_with_success = with_gate(Claim::Success, Verdict::Passed);
    exited_with_success.seen.agent.process = Some(ProcessEnd::Exit(2));
    let mut too_long = with_gate(Claim::None, Verdict::Passed);
    too_long.seen.agent.error = Some(ApiError::Request { message: "prompt too long".to_owned() });
    let ended = |end: ProcessEnd| {
        let mut facts = with_gate(Claim::None, Verdict::Passed);
        facts.seen.agent.process = Some(end);
        facts
    };
    let mut around = ended(ProcessEnd::Exit(0));
    around.seen.agent.failed_around = Some("reaction `fmt` failed (exit 1)".to_owned());
    let said = Claim::Failure { reason: Some("no network".to_owned()) };
    let table = vec![
        (timed_out, Some("the iteration ran into its timeout of 30m")),
        (ended(ProcessEnd::Signal(9)), Some("the agent was killed by signal 9")),
        (
            ended(ProcessEnd::NotStarted("no such file".to_owned())),
            Some("the agent could not be started: no such file"),
        ),
        (ended(ProcessEnd::Exit(0)), None),
        (ended(ProcessEnd::BrokenOff(Some(EndSignal::Keyboard))), None),
        (ended(ProcessEnd::Skipped("reaction `true` failed".to_owned())), None),
        (around, Some("reaction `fmt` failed (exit 1)")),
        (exited, Some("the agent exited with status 2")),
        (exited_with_success, None),
        (too_long, Some("the request was refused: prompt too long")),
        (with_gate(said, Verdict::Passed), Some("the agent said FAILURE: no network")),
        (with_gate(Claim::None, Verdict::Failed), Some("gate `lint` failed")),
        (with_gate(Claim::None, Verdict::TimedOut), Some("gate `lint` failed")),
        (with_gate(Claim::None, Verdict::Unknown), None),
        (with_gate(Claim::Blocked { reason: None }, Verdict::Passed), None),
        (with_gate(Claim::None, Verdict::Passed), None),
    ];
    for (facts, expected) in table {
        let mut subject = subject.clone();
        subject.state.set("consecutive_failures", 2);
        let state = judge_boundary(&subject, &facts).after.state;
        let evidence = state.seen().evidence().as_ref().unwrap();
        assert_eq!(evidence.failure.as_deref(), expected);
        // An iteration that did not run to its end says nothing about failures in a row.
        let unmoved = if evidence.skipped.is_some() { 2 } else { 0 };
        assert_eq!(
            state.counts().consecutive_failures(),
            if expected.is_some() { 3 } else { unmoved }
        );
    }
}

#[test]
fn an_overdue_agent_that_changed_nothing_or_an_error_in_the_closing_event_is_a_failure() {
    let ended = |end: ProcessEnd, tree: Option<&str>, claim: Claim, closing: AgentClosing| {
        let mut facts = facts(claim);
        facts.seen.agent.process = Some(end);
        facts.seen.agent.closing = closing;
        facts.tree = tree.map(Into::into);
        facts
    };
    let subject = a_loop();
    let same = subject.state.seen().tree().as_deref();
    let overdue = |end, tree| ended(end, tree, Claim::None, AgentClosing::Missing);
    let said = "the agent's closing event says error: x";
    let error =
        ended(ProcessEnd::Exit(0), same, Claim::None, AgentClosing::Failed(said.to_owned()));
    let missing = |claim| ended(ProcessEnd::Exit(0), same, claim, AgentClosing::Missing);
    let killed = |claim| ended(ProcessEnd::Signal(9), same, claim, AgentClosing::Plain);
    let late = "the iteration ran into its timeout of 30m";
    let silent = "the agent printed nothing for 15m and was ended";
    let table = [
        (overdue(ProcessEnd::TimedOut(1800), same), Some(late), None),
        (overdue(ProcessEnd::TimedOut(1800), None), Some(late), None),
        (overdue(ProcessEnd::TimedOut(1800), Some("another")), None, Some(late)),
        (overdue(ProcessEnd::Silent(900), same), Some(silent), None),
        (overdue(ProcessEnd::Silent(900), Some("another")), None, Some(silent)),
        (error, Some(said), None),
        (missing(Claim::None), Some("the agent ended without its closing event"), None),
        (killed(Claim::None), Some("the agent was killed by signal 9"), None),
        (killed(Claim::Success), None, None),
    ];
    for (facts, failure, ended) in table {
        let evidence =
            judge_boundary(&subject, &facts).after.state.seen().evidence().clone().unwrap();
        let found = (evidence.failure.as_deref(), evidence.ended.as_deref());
        assert_eq!(found, (failure, ended), "{facts:?}");
    }
}

#[test]
fn consecutive_crashes_are_counted_until_another_iteration() {
    let row_in = |tree: &str, end: ProcessEnd, crashes: u32| {
        let mut subject = a_loop();
        subject.state.set("crashes", crashes);
        let mut facts = facts(Claim::None);
        facts.tree = Some(tree.into());
        facts.seen.agent.process = Some(end);
        judge_boundary(&subject, &facts).after.state.counts().crashes()
    };
    let row = |end, crashes| row_in("tree at the start", end, crashes);
    assert_eq!(row(ProcessEnd::Signal(9), 0), 1);
    assert_eq!(row(ProcessEnd::TimedOut(60), 2), 3);
    assert_eq!(row_in("changed", ProcessEnd::TimedOut(60), 2), 1, "it was at work");
    assert_eq!(row(ProcessEnd::NotStarted(String::new()), 2), 3);
    assert_eq!(row(ProcessEnd::Exit(1), 2), 0);
    assert_eq!(row(ProcessEnd::Skipped(String::new()), 2), 2);
}

#[test]
fn a_check_that_a_foreign_signal_killed_is_forgotten_and_has_not_failed() {
    let mut facts = facts(Claim::Success);
    facts.checks = vec![result("cargo test", Verdict::Unknown)];
    let judged = judge_boundary(&a_loop_with(&TEST), &facts);
    assert_eq!(judged.proved, None);
    assert!(judged.after.state.seen().checks().is_empty());
}

#[test]
fn service_errors_holds_and_requests_count_as_neither_iterations_nor_failures() {
    let mut transient = facts(Claim::None);
    transient.seen.agent.error = Some(ApiError::Transient {
        message: "overloaded".to_owned(),
        reset: None,
        is_limit: false,
    });
    let mut fatal = facts(Claim::None);
    fatal.seen.agent.error = Some(ApiError::Fatal {
        cause: "the key was refused".to_owned(),
        hint: "log in".to_owned(),
    });
    let mut held = facts(Claim::None);
    held.seen.agent.background = Some("a subagent".to_owned());
    let mut cancelled = facts(Claim::None);
    cancelled.seen.request = Some(ControlRequest::Cancel { by: Actor::User, reason: None });
    for facts in [transient, fatal, held, cancelled] {
        let judged = judge_boundary(&a_loop(), &facts);
        let state = &judged.after.state;
        assert!(!judged.counted, "{facts:?}");
        assert_eq!(
            (
                state.counts().completed(),
                state.counts().consecutive_failures(),
                state.counts().iterations_without_progress()
            ),
            (0, 0, 0)
        );
        assert_eq!((state.counts().boundaries(), state.time().awake_ms()), (1, 60_000));
    }
}

#[test]
fn a_claim_is_judged_even_while_background_work_runs() {
    let mut held = facts(Claim::Success);
    held.seen.agent.background = Some("a subagent".to_owned());
    assert!(judge_boundary(&a_loop(), &held).counted);
}

#[test]
fn iterations_without_progress_are_counted_and_unknown_progress_never_stalls() {
    let mut subject = a_loop();
    subject.state.set("still", 3);
    let mut idle = facts(Claim::None);
    idle.tree = Some("tree at the start".into());
    assert_eq!(
        judge_boundary(&subject, &idle).after.state.counts().iterations_without_progress(),
        4
    );
    idle.seen.agent.process = Some(ProcessEnd::BrokenOff(Some(EndSignal::Keyboard)));
    assert_eq!(
        judge_boundary(&subject, &idle).after.state.counts().iterations_without_progress(),
        3
    );
    let mut outside_git = facts(Claim::None);
    outside_git.tree = None;
    assert_eq!(
        judge_boundary(&subject, &outside_git).after.state.counts().iterations_without_progress(),
        0
    );
    assert_eq!(
        judge_boundary(&subject, &facts(Claim::None))
            .after
            .state
            .counts()
            .iterations_without_progress(),
        0
    );
}

#[test]
fn awake_time_is_summed_and_a_clock_that_fell_back_adds_nothing() {
    let mut subject = a_loop();
    let first = judge_boundary(&subject, &facts(Claim::None)).after;
    assert_eq!((first.state.time().awake_ms(), first.elapsed_ms.clone()), (60_000, vec![60_000]));
    subject.state.set("began", at(3600));
    let rebooted = judge_boundary(&subject, &facts(Claim::None)).after;
    assert_eq!(rebooted.elapsed_ms, [0]);
}

#[test]
fn what_the_checks_themselves_change_does_not_count_as_progress() {
    let mut subject = a_loop();
    let mut facts = facts(Claim::None);
    facts.tree = Some("tree at the start".into());
    facts.tree_checked = Some("with the checks' own files".into());
    subject = judge_boundary(&subject, &facts).after;
    assert_eq!(subject.state.counts().iterations_without_progress(), 1);
    facts.tree = Some("with the checks' own files".into());
    facts.tree_checked = Some("with other files of the checks".into());
    assert_eq!(
        judge_boundary(&subject, &facts).after.state.counts().iterations_without_progress(),
        2
    );
}

#[test]
fn an_answer_truncated_by_the_token_limit_is_an_iteration_but_neither_a_claim_nor_a_failure() {
    let mut subject = a_loop_with(&[("lint", Role::Gate)]);
    subject.state.set("consecutive_failures", 2);
    let refused = || Some(ApiError::Request { message: "output cut".to_owned() });
    let said = [
        Claim::Success,
        Claim::Failure { reason: None },
        Claim::Blocked { reason: None },
        Claim::None,
    ];
    for claim in said {
        let mut cut = facts(claim);
        cut.seen.agent.cut = true;
        cut.seen.agent.process = Some(ProcessEnd::Exit(1));
        cut.seen.agent.error = refused();
        cut.checks = vec![result("lint", Verdict::Passed)];
        let judged = judge_boundary(&subject, &cut);
        assert!(judged.counted);
        assert_eq!(judged.proved, None);
        assert_eq!(judged.after.state.counts().consecutive_failures(), 0);
        let evidence = judged.after.state.seen().evidence().as_ref().unwrap();
        assert_eq!((evidence.claim.clone(), evidence.failure.clone()), (ClaimResult::None, None));
        assert!(evidence.cut);
    }
    let mut red = facts(Claim::None);
    red.seen.agent.cut = true;
    red.checks = vec![result("lint", Verdict::Failed)];
    assert_eq!(judge_boundary(&subject, &red).after.state.counts().consecutive_failures(), 3);
}

#[test]
fn a_changed_protected_path_fails_the_iteration_and_refuses_the_claim() {
    let mut subject = a_loop();
    subject.contract.protect = vec!["tests".to_owned()];
    subject.protected = Some(Protected::default());
    for named in [None, Some("tests/a.rs")] {
        let mut facts = facts(Claim::Success);
        facts.protected = Some(Ok(named.map(str::to_owned).into_iter().collect()));
        let judged = judge_boundary(&subject, &facts);
        let evidence = judged.after.state.seen().evidence().as_ref().unwrap();
        let complaint = named.map(|path| {
            format!("protected paths were changed: `{path}`; restore them as the loop found them")
        });
        let claim = complaint.clone().map_or(ClaimResult::Accepted, ClaimResult::Refused);
        assert_eq!((evidence.failure.clone(), evidence.claim.clone()), (complaint, claim));
        assert_eq!(judged.proved.is_none(), named.is_some());
    }
}

#[test]
fn a_claim_is_refused_if_protected_paths_can_no_longer_be_compared() {
    for (began, refused) in [(Some(Protected::default()), true), (None, false)] {
        let mut subject = a_loop();
        subject.contract.protect = vec!["tests".to_owned()];
        subject.protected = began;
        let mut facts = facts(Claim::Success);
        facts.protected = Some(Err("there is no snapshot".to_owned()));
        let judged = judge_boundary(&subject, &facts);
        let evidence = judged.after.state.seen().evidence().as_ref().unwrap();
        let complaint = "the protected paths cannot be compared: there is no snapshot".to_owned();
        assert_eq!(evidence.failure, refused.then(|| complaint.clone()));
        let refusal = ClaimResult::Refused(complaint);
        assert_eq!(evidence.claim, if refused { refusal } else { ClaimResult::Accepted });
        assert_eq!(judged.proved.is_none(), refused);
    }
    // An iteration that does not count was not looked at either.
    let mut subject = a_loop();
    subject.contract.protect = vec!["tests".to_owned()];
    subject.protected = Some(Protected::default());
    let mut facts = facts(Claim::None);
    facts.seen.agent.process = Some(ProcessEnd::Skipped("nothing to do".to_owned()));
    assert_eq!(
        judge_boundary(&subject, &facts).after.state.seen().evidence().clone().unwrap().failure,
        None
    );
}

#[test]
fn messages_that_reached_an_agent_are_not_delivered_again() {
    let table = [
        (1, ProcessEnd::Exit(0), &["since"][..]),
        (1, ProcessEnd::Exit(1), &["since"]),
        (0, ProcessEnd::Exit(0), &["before", "since"]),
        (9, ProcessEnd::BrokenOff(Some(EndSignal::Keyboard)), &[]),
        (1, ProcessEnd::NotStarted("no program".to_owned()), &["left", "before", "since"]),
        (0, ProcessEnd::Skipped("not now".to_owned()), &["left", "before", "since"]),
    ];
    for (shown, process, left) in table {
        let mut subject = a_loop();
        subject.state.set("words", vec!["before".to_owned(), "since".to_owned()]);
        subject.state.set("in_prompt", shown);
        let words = vec!["left".to_owned()];
        subject.state.set("evidence", Some(Evidence { words, ..Evidence::default() }));
        let mut facts = facts(Claim::None);
        facts.seen.agent.process = Some(process);
        let after = judge_boundary(&subject, &facts).after.state;
        assert_eq!(
            after.seen().evidence().as_ref().unwrap().words,
            left,
            "{shown} {:?}",
            facts.seen.agent.process
        );
        assert_eq!((after.exchange().messages().len(), after.exchange().in_prompt()), (0, 0));
    }
}
