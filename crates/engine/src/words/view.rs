//! The state of a loop in the checkout's `state.json`: a view for people and other tools, written
//! and never believed. Only one edit of it is obeyed, because it can only end the loop: `"active":
//! false`.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use crate::doing::{Doing, LoopStep};
use crate::record::{Driver, Loop, Status};

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
        "lastIterationAt": state.last_iteration_at.map(format_time),
        "elapsedPerIteration": times,
        "consecutiveFailures": state.consecutive_failures,
        "failureThreshold": contract.limits.failure_threshold,
        "procedure": contract.run.as_ref().and_then(|run| run.procedure.as_ref()),
        "driver": subject.driver(),
        "sessionId": state.owner.session_id,
        "outcome": subject.outcome(),
        "proof": state.ending.as_ref().and_then(|ending| ending.proof),
    });
    serde_json::from_value(value).unwrap_or_default()
}

/// The step that a loop is in, if it is running: the one noted since its iteration began. A session
/// notes none while its agent is at work.
pub fn current_step(subject: &Loop, noted: Option<Doing>) -> Option<Doing> {
    if subject.state.status != Status::Running {
        return None;
    }
    let since = subject.state.began.wall;
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
    let begun = Value::from(subject.state.completed + 1);
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
    /// `"active": false`: the loop ends. The only edit that crew obeys.
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
mod tests {
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
    fn the_iteration_in_which_a_loop_is_cancelled_stays_in_its_view() {
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
    fn only_a_session_is_at_its_agent_while_no_step_was_noted() {
        let (session, run) = (a_loop(), a_run(None));
        let agent = |it: Option<Doing>| it.map(|doing| doing.step);
        assert_eq!(agent(current_step(&session, None)), Some(LoopStep::Agent));
        assert_eq!(current_step(&run, None), None);
        let since = run.state.began.wall;
        let noted = Doing { step: LoopStep::Check, run: "cargo test".to_owned(), since };
        let before = Doing { since: since - chrono::TimeDelta::seconds(1), ..noted.clone() };
        assert_eq!(current_step(&run, Some(before)), None);
        assert_eq!(current_step(&run, Some(noted.clone())), Some(noted));
    }

    #[test]
    fn a_run_is_shown_with_its_procedure_its_driver_and_no_session() {
        let shown = loop_values(&a_run(Some("build")));
        let told = ["procedure", "driver", "sessionId"].map(|key| &shown[key]);
        assert_eq!(told, [&json!("build"), &json!("process"), &Value::Null]);
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
