//! The effects of each event on a task in each state.

use super::*;
use crate::fleet::fixture::{
    Bench, a_commit, a_described, a_report, a_running_task, a_task, an_ended_task, an_ending, id,
};
use crate::fleet::record::{RefusedLanding, TaskInput};
use engine::fleet::Carried;
use engine::record::{EndReason, IncurableRefusal, Proof};

/// An effect in a few words.
pub(super) fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Save => "save".to_owned(),
        Effect::Start { number, continues, .. } => {
            format!("start {number}{}", if *continues { " again" } else { "" })
        }
        Effect::Pass { request, .. } => match request {
            FleetRequest::Task(request) if request.ending().is_some() => "pass cancel".to_owned(),
            FleetRequest::Task(_) => "pass pause".to_owned(),
            FleetRequest::Resume { .. } => "pass resume".to_owned(),
            FleetRequest::Tell { words, .. } => format!("pass \"{words}\""),
        },
        Effect::End { .. } => "TERM".to_owned(),
        Effect::Fetch { .. } => "fetch".to_owned(),
        Effect::Land { .. } => "land".to_owned(),
        Effect::OpenPull { .. } => "open request".to_owned(),
        Effect::Remove { .. } => "remove".to_owned(),
        Effect::Say(_) => String::new(),
        Effect::Finish => "finish".to_owned(),
    }
}

pub(super) fn state(task: &TaskRecord) -> String {
    let request = match &task.asked.request {
        None => "",
        Some(TaskRequest::Pause { .. }) => ", to pause",
        Some(TaskRequest::Cancel { .. }) => ", to cancel",
    };
    let state = match &task.state {
        TaskState::Waiting => "waits".to_owned(),
        TaskState::Running { .. } => format!("runs {}", task.attempt),
        TaskState::Landing { .. } => "lands".to_owned(),
        TaskState::Ended(ending) => match &ending.landed {
            Some(_) => "landed".to_owned(),
            None => format!("{} ({:?})", ending.outcome.label(), ending.reason.kind()),
        },
    };
    let messages = match task.asked.messages.len() {
        0 => String::new(),
        number => format!(", {number} message"),
    };
    format!("{state}{request}{messages}")
}

pub(super) fn all_states() -> Vec<(&'static str, TaskRecord)> {
    let landing = TaskState::Landing(an_ending(Outcome::Completed));
    let landing = TaskRecord { state: landing, attempt: 1, ..a_task() };
    let paused = Some(TaskRequest::Pause { now: false });
    let mut landed = an_ended_task(Outcome::Completed);
    if let TaskState::Ended(ending) = &mut landed.state {
        ending.landed = Some(Landed::Main(Some(a_commit(1))));
    }
    let mut refused = an_ended_task(Outcome::Blocked);
    if let TaskState::Ended(ending) = &mut refused.state {
        let refusal = Refusal::Red { run: "make".to_owned(), output: String::new() };
        ending.proof = Some(Proof::Checked);
        ending.reason = TaskReason::Refused { refusal, unsettled: None };
    }
    let mut changed_tests = an_ended_task(Outcome::Blocked);
    if let TaskState::Ended(ending) = &mut changed_tests.state {
        let (refusal, accept) = ("a test was changed".to_owned(), "crew resume".to_owned());
        let reason = EndReason::Refused(IncurableRefusal::TestChanges { refusal, accept });
        ending.reason = TaskReason::Loop { reason, notes: Vec::new() };
    }
    let mut exhausted = an_ended_task(Outcome::Exhausted);
    exhausted.carried = Carried { completed: 10, ..Carried::default() };
    vec![
        ("waits", TaskRecord { attempt: 1, ..a_task() }),
        (
            "waits, paused",
            TaskRecord {
                attempt: 1,
                asked: TaskInput { request: paused.clone(), ..a_task().asked },
                ..a_task()
            },
        ),
        ("runs", a_running_task()),
        (
            "runs, sent back",
            TaskRecord {
                refused: RefusedLanding {
                    sent_back: Some(a_conflict()),
                    ..a_running_task().refused
                },
                ..a_running_task()
            },
        ),
        ("lands", landing.clone()),
        (
            "lands, paused",
            TaskRecord { asked: TaskInput { request: paused, ..landing.asked }, ..landing },
        ),
        ("completed", an_ended_task(Outcome::Completed)),
        ("landed", landed),
        ("blocked", an_ended_task(Outcome::Blocked)),
        ("test changes", changed_tests),
        ("refused", refused),
        ("exhausted", exhausted),
        ("cancelled", an_ended_task(Outcome::Cancelled)),
    ]
}

pub(super) fn a_conflict() -> Refusal {
    Refusal::Conflict(vec!["a.rs".to_owned()])
}

fn a_cancel(now: bool) -> TaskRequest {
    TaskRequest::Cancel { now, by_agent: false, reason: None }
}

fn task_requests() -> Vec<(&'static str, FleetRequest)> {
    let tell = |by_agent| FleetRequest::Tell { words: "hi".to_owned(), by_agent };
    vec![
        ("pause", FleetRequest::Task(TaskRequest::Pause { now: false })),
        ("pause now", FleetRequest::Task(TaskRequest::Pause { now: true })),
        ("cancel", FleetRequest::Task(a_cancel(false))),
        ("cancel now", FleetRequest::Task(a_cancel(true))),
        ("resume", FleetRequest::Resume { accepts_test_changes: false }),
        ("accept", FleetRequest::Resume { accepts_test_changes: true }),
        ("tell", tell(false)),
        ("agent tells", tell(true)),
    ]
}

fn all_events() -> Vec<(String, FleetEvent)> {
    let mut events: Vec<(String, FleetEvent)> = Vec::new();
    for (name, request) in task_requests() {
        let one = FleetEvent::Requested(Some(id("a")), request.clone());
        events.push((name.to_owned(), one));
        events.push((format!("{name} all"), FleetEvent::Requested(None, request)));
    }
    let mut changed = a_described("a");
    changed.task.revision = "r2".to_owned();
    let failed = |needs_person| AttemptEnd::Failed {
        reason: TaskReason::Failed("setup".to_owned()),
        needs_person,
    };
    let ends = [
        ("iteration", None),
        ("completes", Some(AttemptEnd::Ended(an_ending(Outcome::Completed)))),
        ("stalls", Some(AttemptEnd::Ended(an_ending(Outcome::Stalled)))),
        ("is cancelled", Some(AttemptEnd::Ended(an_ending(Outcome::Cancelled)))),
        ("is paused", Some(AttemptEnd::Paused)),
        ("interrupted", Some(AttemptEnd::Interrupted)),
        ("fails", Some(failed(false))),
        ("fails for good", Some(failed(true))),
    ];
    for (name, end) in ends {
        let report = FleetEvent::Reported(id("a"), a_report(1, 1, end));
        events.push((name.to_owned(), report));
    }
    let (task, why) = (id("a"), "why".to_owned());
    let landing_failed = |needs_person| FleetEvent::LandingFailed {
        task: id("a"),
        why: "why".to_owned(),
        needs_person,
    };
    let folder = Refusal::Folder("tasks/a.md".to_owned());
    let more = vec![
        ("same file", FleetEvent::Described(vec![a_described("a")])),
        ("new file", FleetEvent::Described(vec![a_described("a"), a_described("b")])),
        ("changed file", FleetEvent::Described(vec![changed])),
        ("no file", FleetEvent::Described(Vec::new())),
        ("old report", FleetEvent::Reported(id("a"), a_report(9, 1, Some(AttemptEnd::Paused)))),
        ("taken", FleetEvent::Started { task: id("a"), number: 1, job: "8".to_owned() }),
        ("fetched", FleetEvent::Fetched { task: id("a"), commit: a_commit(1) }),
        ("gone", FleetEvent::Gone { task: id("a"), number: 1, why: why.clone() }),
        ("old one gone", FleetEvent::Gone { task: id("a"), number: 9, why: why.clone() }),
        ("not started", FleetEvent::NotStarted { task, why: why.clone() }),
        ("landed", FleetEvent::Landed(id("a"), Landed::Main(Some(a_commit(1))))),
        ("requested", FleetEvent::Landed(id("a"), Landed::Request("https://h/1".to_owned()))),
        ("conflict", FleetEvent::Refused(id("a"), a_conflict())),
        ("folder", FleetEvent::Refused(id("a"), folder)),
        ("landing failed", landing_failed(false)),
        ("landing failed for good", landing_failed(true)),
        ("trouble", FleetEvent::Trouble { of: "push", why: Some(why) }),
        ("restored", FleetEvent::Trouble { of: "push", why: None }),
        ("signal", FleetEvent::Signal { times: 1, is_hangup: false }),
        ("signals", FleetEvent::Signal { times: 2, is_hangup: false }),
        ("hangup", FleetEvent::Signal { times: 1, is_hangup: true }),
        ("tick", FleetEvent::Tick),
    ];
    events.extend(more.into_iter().map(|(name, event)| (name.to_owned(), event)));
    events
}

/// The effects of each event on a task in each state: `events: effects → state`.
#[test]
fn every_event_has_an_effect_in_every_state() {
    let mut rows = Vec::new();
    for (name, task) in all_states() {
        let mut groups: Vec<(String, Vec<String>)> = vec![("nothing".to_owned(), Vec::new())];
        for (event_name, event) in all_events() {
            let mut bench = Bench::new(LandingMode::Main, vec![("a", task.clone())]);
            match name {
                "lands" => bench.coordination.landing = Some(id("a")),
                "waits" => bench.coordination.slots = 0,
                _ => {}
            }
            let shown: Vec<String> = bench.step(event).iter().map(effect).collect();
            let shown = shown.iter().filter(|text| !text.is_empty()).map(String::as_str);
            let shown = shown.collect::<Vec<_>>().join(", ");
            let (before, after) = (state(&task), state(bench.task("a")));
            let is_same = after == before;
            let result = match &*shown {
                "" | "finish" | "save" | "save, finish" if is_same => "nothing".to_owned(),
                _ if is_same => shown,
                _ => format!("{shown} → {after}"),
            };
            match groups.iter_mut().find(|(known, _)| *known == result) {
                Some((_, names)) => names.push(event_name),
                None => groups.push((result, vec![event_name])),
            }
        }
        groups.rotate_left(1);
        rows.push(format!("# {name}"));
        rows.extend(
            groups.iter().map(|(result, names)| format!("{}: {result}", names.join(" · "))),
        );
    }
    insta::assert_snapshot!("every_event_has_an_effect_in_every_state", rows.join("\n"));
}
