//! What a loop gives to other programs: the variables of a reaction, and the view that tools and
//! people may read and edit.

use std::fmt::Write as _;

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::evidence::Verdict;
use crate::record::{Doing, LoopStep};
use crate::record::{Driver, Loop, LoopMoment, Status};
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

    /// One line about how a reaction ended, such as "finish `./notify` failed (exit 1): nobody is
    /// listening".
    pub fn end_line(&self) -> String {
        let what = match (self.verdict, self.exit) {
            (Verdict::Failed, None) => "could not be started".to_owned(),
            (Verdict::Unknown, _) => "did not finish".to_owned(),
            (verdict, exit) => verdict.what_happened(exit, self.elapsed_ms),
        };
        let mut line = format!("{} `{}` {what}", self.on.label(), clip_line(&self.run, 100));
        let last = tail_of(&self.tail, 200);
        if self.verdict != Verdict::Passed
            && let Some(last) = last.lines().last()
        {
            let _ = write!(line, ": {}", last.trim());
        }
        line
    }
}

/// The iteration that a moment belongs to. At a stall or a finish it is the last completed one.
fn moment_iteration(subject: &Loop, on: LoopMoment) -> u32 {
    match on {
        LoopMoment::Stall | LoopMoment::Finish => subject.state.counts().completed(),
        _ => subject.iteration(),
    }
}

/// Dollars, as a number that a script can compare; `None` while no use is known.
fn cost_dollars(subject: &Loop) -> Option<f64> {
    let usage = subject.state.work().usage();
    usage.is_reported().then(|| (usage.cost.dollars() * 1e6).round() / 1e6)
}

fn wait_or_end_reason(subject: &Loop) -> Option<String> {
    let (end, wait) = (subject.state.end(), subject.state.wait());
    match end.ending() {
        Some(ending) => Some(ending.full_reason()),
        None if wait.due().is_some() => wait.wait_reason().clone(),
        None => None,
    }
}

/// The variables of a reaction. Each one is set, so that none is inherited; one without meaning at
/// this moment is empty.
pub fn reaction_variables(subject: &Loop, on: LoopMoment) -> Vec<(&'static str, String)> {
    let state = &subject.state;
    let proof = state.end().ending().as_ref().and_then(|ending| ending.proof);
    let tokens = Some(state.work().usage().tokens.total()).filter(|tokens| *tokens > 0);
    let shown = |value: Option<String>| value.unwrap_or_default();
    let variables = vec![
        ("CREW_ON", on.label().to_owned()),
        ("CREW_LOOP", subject.id.to_string()),
        ("CREW_ITERATION", moment_iteration(subject, on).to_string()),
        ("CREW_MAX_ITERATIONS", subject.contract.limits.max_iterations.to_string()),
        ("CREW_STATUS", variant_name(&state.status()).to_owned()),
        ("CREW_OUTCOME", shown(subject.outcome().map(|outcome| outcome.label().to_owned()))),
        ("CREW_PROOF", shown(proof.map(|proof| proof.label().to_owned()))),
        ("CREW_WHY", shown(wait_or_end_reason(subject))),
        ("CREW_CHECKOUT", subject.place.checkout.display().to_string()),
        ("CREW_BRANCH", shown(subject.place.branch.clone())),
        ("CREW_COST", shown(cost_dollars(subject).map(|dollars| dollars.to_string()))),
        ("CREW_TOKENS", shown(tokens.map(|tokens| tokens.to_string()))),
        (
            "CREW_DUE",
            shown(state.wait().due().map(|due| due.format("%Y-%m-%dT%H:%M:%SZ").to_string())),
        ),
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

/// The version of the file's format.
pub const VERSION: u64 = 1;

/// The value of the view's `loop` key.
pub fn loop_values(subject: &Loop) -> Map<String, Value> {
    let contract = &subject.contract;
    let state = &subject.state;
    let times: Vec<String> = subject.elapsed_ms.iter().map(|ms| format_seconds(*ms)).collect();
    let value = json!({
        "id": subject.id,
        "active": subject.is_live(),
        "status": subject.status_word(),
        "iteration": subject.iteration(),
        "maxIterations": contract.limits.max_iterations,
        "completionPromise": contract.promise,
        "prompt": contract.task,
        "startedAt": format_time(subject.started_at),
        "lastIterationAt": state.time().last_iteration_at().map(format_time),
        "elapsedPerIteration": times,
        "consecutiveFailures": state.counts().consecutive_failures(),
        "failureThreshold": contract.limits.failure_threshold,
        "procedure": contract.run.as_ref().and_then(|run| run.procedure.as_ref()),
        "driver": subject.driver(),
        "sessionId": state.owner().session_id,
        "outcome": subject.outcome(),
        "proof": state.end().ending().as_ref().and_then(|ending| ending.proof),
    });
    serde_json::from_value(value).unwrap_or_default()
}

/// The step that a loop is in, if it is running: the one noted since its iteration began. A session
/// notes none while its agent is at work.
pub fn current_step(subject: &Loop, noted: Option<Doing>) -> Option<Doing> {
    if subject.state.status() != Status::Running {
        return None;
    }
    let since = subject.state.time().began().wall;
    let of_agent = Doing { step: LoopStep::Agent, run: String::new(), since };
    let is_session = subject.driver() == Driver::Session;
    noted.filter(|noted| noted.since >= since).or(is_session.then_some(of_agent))
}

/// The new content of the view's file; keys of other tools stay unchanged at every level. Without
/// `doing` the step that it names stays while it is current.
pub fn merge_view(
    subject: &Loop,
    existing: Option<&Map<String, Value>>,
    doing: Option<&Doing>,
) -> Map<String, Value> {
    let mut file = existing.cloned().unwrap_or_default();
    file.insert("version".to_owned(), VERSION.into());
    file.insert("branch".to_owned(), json!(subject.place.branch));
    let ours = file.remove("loop").and_then(|ours| serde_json::from_value(ours).ok());
    let mut ours: Map<String, Value> = ours.unwrap_or_default();
    let mut shown = loop_values(subject);
    // The iteration in which a loop was cancelled had begun, and so it stays.
    let begun = Value::from(subject.state.counts().completed() + 1);
    if ours.get("id") == shown.get("id") && ours.get("iteration") == Some(&begun) {
        shown.insert("iteration".to_owned(), begun);
    }
    ours.extend(shown);
    let before = ours.remove("doing").and_then(|it| serde_json::from_value(it).ok());
    ours.insert("doing".to_owned(), json!(current_step(subject, doing.cloned().or(before))));
    file.insert("loop".to_owned(), Value::Object(ours));
    file
}

/// The state of the view in the checkout, against what crew wrote for its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewState {
    AsWritten,
    Missing,
    /// A value of crew's differs; crew writes it again.
    Altered,
    /// `"active": false`: the loop ends. The only edit that crew acts on.
    Deactivated,
}

/// Compares the file with what crew wrote.
pub fn compare_view_file(subject: &Loop, file: &Map<String, Value>) -> ViewState {
    let Some(Value::Object(found)) = file.get("loop") else { return ViewState::Altered };
    let expected = loop_values(subject);
    // The view of an earlier loop also says `false`; it must not end this one.
    let about_this = found.get("id").is_none_or(|id| Some(id) == expected.get("id"));
    // So does the view from before a resume, if the new one could not be written.
    let outdated = found.get("outcome").is_some_and(|outcome| !outcome.is_null());
    let is_off = found.get("active") == Some(&Value::Bool(false)) && subject.is_live();
    if about_this && !outdated && is_off {
        return ViewState::Deactivated;
    }
    let same = expected.iter().all(|(key, value)| found.get(key) == Some(value));
    if same { ViewState::AsWritten } else { ViewState::Altered }
}

fn format_seconds(ms: u64) -> String {
    format!("{}.{}s", ms / 1000, ms % 1000 / 100)
}

fn format_time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod reaction_tests {
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

    fn reported(subject: &Loop, on: LoopMoment) -> String {
        let variables = reaction_variables(subject, on);
        variables.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = writeln!(text, "{name}={value}");
            text
        })
    }

    #[test]
    fn a_reaction_to_the_end_learns_how_the_loop_ended() {
        assert_snapshot!(reported(&finished(), LoopMoment::Finish), @"
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
    fn what_a_variable_cannot_contain_is_left_out() {
        let mut subject = finished();
        subject.state.set("ending.reason", EndReason::from("no\0thing"));
        let variables = reaction_variables(&subject, LoopMoment::Finish);
        assert!(variables.contains(&("CREW_WHY", "nothing".to_owned())));
    }

    #[test]
    fn a_reaction_to_a_wait_learns_when_it_ends_and_why() {
        let mut subject = a_loop();
        subject.state.set("status", Status::Waiting);
        subject.state.set("due", Some(at(3600).wall));
        subject.state.set("awaited", Some("rate limit".to_owned()));
        assert_snapshot!(reported(&subject, LoopMoment::Wait), @"
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
    fn the_document_is_the_status_of_the_loop_with_the_moment_and_its_iteration() {
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
    fn a_reaction_gets_the_iteration_that_its_moment_belongs_to() {
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
    fn the_end_of_a_reaction_is_described_in_one_line() {
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

#[cfg(test)]
mod view_tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::fixture::{SetState, a_loop, a_run};

    fn object(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_view_shows_the_loop_and_keeps_every_key_of_others() {
        let existing = object(r#"{"notes":{"a":[1]},"loop":{"id":"old","theirs":true}}"#);
        let mut subject = a_loop();
        subject.elapsed_ms = vec![45_230, 38_700];
        subject.state.set("completed", 2);
        let file = Value::Object(merge_view(&subject, Some(&existing), None));
        assert_snapshot!(serde_json::to_string_pretty(&file).unwrap(), @r#"
        {
          "branch": "main",
          "loop": {
            "active": true,
            "completionPromise": "COMPLETE",
            "consecutiveFailures": 0,
            "doing": {
              "since": "2026-11-18T11:06:40Z",
              "step": "agent"
            },
            "driver": "session",
            "elapsedPerIteration": [
              "45.2s",
              "38.7s"
            ],
            "failureThreshold": 3,
            "id": "haaaaaaa",
            "iteration": 3,
            "lastIterationAt": null,
            "maxIterations": 10,
            "outcome": null,
            "procedure": null,
            "prompt": "Build the todo API",
            "proof": null,
            "sessionId": "s-1",
            "startedAt": "2026-11-18T11:06:40Z",
            "status": "running",
            "theirs": true
          },
          "notes": {
            "a": [
              1
            ]
          },
          "version": 1
        }
        "#);
    }

    #[test]
    fn the_view_keeps_the_iteration_in_which_its_loop_was_cancelled() {
        let mut subject = a_loop();
        let running = merge_view(&subject, None, None);
        subject.state.set("status", Status::Finished);
        assert_eq!(merge_view(&subject, Some(&running), None)["loop"]["iteration"], 1);
        assert_eq!(merge_view(&subject, None, None)["loop"]["iteration"], 0);
        subject.state.set("completed", 1);
        subject.elapsed_ms = vec![1];
        assert_eq!(merge_view(&subject, Some(&running), None)["loop"]["iteration"], 1);
    }

    #[test]
    fn without_a_noted_step_only_a_session_is_shown_at_its_agent() {
        let (session, run) = (a_loop(), a_run(None));
        let agent = |it: Option<Doing>| it.map(|doing| doing.step);
        assert_eq!(agent(current_step(&session, None)), Some(LoopStep::Agent));
        assert_eq!(current_step(&run, None), None);
        let since = run.state.time().began().wall;
        let noted = Doing { step: LoopStep::Check, run: "cargo test".to_owned(), since };
        let before = Doing { since: since - chrono::TimeDelta::seconds(1), ..noted.clone() };
        assert_eq!(current_step(&run, Some(before)), None);
        assert_eq!(current_step(&run, Some(noted.clone())), Some(noted));
    }

    #[test]
    fn a_run_is_shown_with_its_procedure_its_driver_and_no_session() {
        let shown = loop_values(&a_run(Some("build")));
        let reported = ["procedure", "driver", "sessionId"].map(|key| &shown[key]);
        assert_eq!(reported, [&json!("build"), &json!("process"), &Value::Null]);
    }

    #[test]
    fn an_edit_is_seen_and_only_active_false_of_this_loop_ends_it() {
        let subject = a_loop();
        let untouched = merge_view(&subject, None, None);
        assert_eq!(compare_view_file(&subject, &untouched), ViewState::AsWritten);
        let edited = |key: &str, value: Value| {
            let mut file = untouched.clone();
            file.get_mut("loop").unwrap()[key] = value;
            compare_view_file(&subject, &file)
        };
        assert_eq!(edited("maxIterations", json!(1000)), ViewState::Altered);
        assert_eq!(edited("id", json!("k3v9abcd")), ViewState::Altered);
        assert_eq!(edited("theirs", json!(1)), ViewState::AsWritten);
        assert_eq!(edited("active", json!(false)), ViewState::Deactivated);
        assert_eq!(compare_view_file(&subject, &object("{}")), ViewState::Altered);
        let earlier = object(r#"{"loop":{"id":"k3v9abcd","active":false}}"#);
        assert_eq!(compare_view_file(&subject, &earlier), ViewState::Altered);
        let ended = format!(
            r#"{{"loop":{{"id":"{}","active":false,"outcome":"interrupted"}}}}"#,
            subject.id
        );
        assert_eq!(compare_view_file(&subject, &object(&ended)), ViewState::Altered);
        let bare = object(r#"{"loop":{"active":false}}"#);
        assert_eq!(compare_view_file(&subject, &bare), ViewState::Deactivated);
    }
}
