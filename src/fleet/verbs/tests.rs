use insta::assert_snapshot;

use super::*;
use crate::fleet::fixture::{a_carried, a_record, a_running_task, a_task, an_ended_task, id};
use engine::fleet::LandingMode;

fn a_record_of_each_state() -> FleetRecord {
    let mut record = a_record(LandingMode::No);
    let ended = [Outcome::Blocked, Outcome::Completed, Outcome::Cancelled].map(an_ended_task);
    let [blocked, completed, cancelled] = ended;
    let exhausted = TaskRecord { carried: a_carried(10, 1), ..an_ended_task(Outcome::Exhausted) };
    for (name, task) in [
        ("runs", a_running_task()),
        ("waits", a_task()),
        ("blocked", blocked),
        ("completed", completed),
        ("cancelled", cancelled),
        ("exhausted", exhausted),
    ] {
        record.tasks.insert(id(name), task);
    }
    record
}

#[test]
fn each_request_to_a_task_or_a_fleet_is_answered_in_a_line_or_refused_with_a_hint() {
    let mut named = Named { record: a_record_of_each_state(), task: None };
    let pause = |now| FleetRequest::Task(TaskRequest::Pause { now });
    let cancel = TaskRequest::Cancel { now: true, by_agent: false, reason: None };
    let tell = FleetRequest::Tell { words: "x".to_owned(), by_agent: false };
    let requests = [
        ("pause", pause(false)),
        ("pause --now", pause(true)),
        ("cancel", FleetRequest::Task(cancel)),
        ("resume", FleetRequest::Resume { accepts_test_changes: false }),
        ("tell", tell),
    ];
    let mut lines = Vec::new();
    for task in ["", "runs", "waits", "blocked", "completed", "cancelled", "exhausted"] {
        named.task = task.parse().ok();
        for (verb, request) in &requests {
            let takes = |task: &(&TaskId, &TaskRecord)| named.accepts_request(task.1, request);
            let tasks: Vec<_> = named.named_tasks().filter(takes).collect();
            let answer = if tasks.is_empty() {
                named.refuse_request(request).join_with(" | hint: ")
            } else {
                named.render_answer(request, &tasks, task != "waits")
            };
            lines.push(format!("{verb} {}: {answer}", named.full_name()));
        }
    }
    assert_snapshot!(lines.join("\n"), @"
    pause shop: fleet shop: 2 tasks are paused after this iteration · crew resume shop resumes it
    pause --now shop: fleet shop: 2 tasks are paused · crew resume shop resumes it
    cancel shop: fleet shop: 2 tasks are cancelled · crew resume shop resumes it
    resume shop: fleet shop: 5 tasks are resumed · crew fleet status shop
    tell shop: fleet shop: 3 tasks get the message with the next prompt · crew fleet status shop
    pause shop/runs: shop/runs is paused after this iteration · crew resume shop/runs resumes it
    pause --now shop/runs: shop/runs is paused · crew resume shop/runs resumes it
    cancel shop/runs: shop/runs is cancelled · crew resume shop/runs resumes it
    resume shop/runs: shop/runs is resumed · crew fleet status shop
    tell shop/runs: shop/runs gets the message with the next prompt · crew fleet status shop
    pause shop/waits: shop/waits is paused · crew fleet run tasks resumes it
    pause --now shop/waits: shop/waits is paused · crew fleet run tasks resumes it
    cancel shop/waits: shop/waits is cancelled · crew fleet run tasks takes note
    resume shop/waits: shop/waits is resumed by the next start · now type: crew fleet run tasks
    tell shop/waits: shop/waits gets the message with the next prompt · crew fleet status shop
    pause shop/blocked: task shop/blocked is blocked | hint: crew status shop/blocked says why
    pause --now shop/blocked: task shop/blocked is blocked | hint: crew status shop/blocked says why
    cancel shop/blocked: shop/blocked is cancelled · crew resume shop/blocked resumes it
    resume shop/blocked: shop/blocked is resumed · crew fleet status shop
    tell shop/blocked: shop/blocked gets the message with the next prompt · crew resume shop/blocked tries it again
    pause shop/completed: task shop/completed is completed | hint: crew status shop/completed says why
    pause --now shop/completed: task shop/completed is completed | hint: crew status shop/completed says why
    cancel shop/completed: shop/completed is cancelled · crew resume shop/completed resumes it
    resume shop/completed: task shop/completed is completed | hint: what is still to do is a task of its own
    tell shop/completed: task shop/completed is completed: no agent would read the message | hint: what is still to do is a task of its own
    pause shop/cancelled: task shop/cancelled is cancelled | hint: crew status shop/cancelled says why
    pause --now shop/cancelled: task shop/cancelled is cancelled | hint: crew status shop/cancelled says why
    cancel shop/cancelled: task shop/cancelled is cancelled | hint: crew status shop/cancelled says why
    resume shop/cancelled: shop/cancelled is resumed · crew fleet status shop
    tell shop/cancelled: task shop/cancelled is cancelled: no agent would read the message | hint: crew resume shop/cancelled first: it was cancelled
    pause shop/exhausted: task shop/exhausted is exhausted | hint: crew status shop/exhausted says why
    pause --now shop/exhausted: task shop/exhausted is exhausted | hint: crew status shop/exhausted says why
    cancel shop/exhausted: shop/exhausted is cancelled · crew resume shop/exhausted resumes it
    resume shop/exhausted: shop/exhausted is resumed, if its max-iterations was raised: it is used up · crew fleet status shop
    tell shop/exhausted: shop/exhausted gets the message with the next prompt · crew resume shop/exhausted tries it again
    ");
}

#[test]
fn requests_for_the_next_coordinator_are_shown_in_advance() {
    let resume = || FleetRequest::Resume { accepts_test_changes: false };
    let cancel =
        || FleetRequest::Task(TaskRequest::Cancel { now: true, by_agent: false, reason: None });
    let pause = || FleetRequest::Task(TaskRequest::Pause { now: false });
    let tell = || FleetRequest::Tell { words: "x".to_owned(), by_agent: false };
    let seen = |asked: Vec<(&str, FleetRequest)>| {
        let asked = asked.into_iter().map(|(task, request)| (task.parse().ok(), request));
        let record = asked.fold(a_record_of_each_state(), with_request);
        let task = |(id, task): (&TaskId, &TaskRecord)| {
            let state = task.ending().map_or("open", |ending| ending.outcome.label());
            let request = record.request_of(id).map_or("", |_| ", to be cancelled");
            let messages = if task.asked.messages.is_empty() { "" } else { ", has a message" };
            format!("{id} {state}{request}{messages}")
        };
        let before = a_record_of_each_state();
        let changed = record
            .tasks
            .iter()
            .filter(|(id, task)| before.task(id) != Some(task) || record.request_of(id).is_some());
        changed.map(task).collect::<Vec<_>>().join(", ")
    };
    for (asked, expected) in [
        (vec![("blocked", tell()), ("blocked", resume())], "blocked open, has a message"),
        (vec![("blocked", tell())], "blocked blocked, has a message"),
        (vec![("waits", cancel())], "waits open, to be cancelled"),
        (vec![("waits", cancel()), ("waits", resume())], ""),
        (vec![("completed", resume()), ("completed", tell())], ""),
        (vec![("blocked", cancel())], "blocked cancelled"),
        (vec![("waits", cancel()), ("waits", pause())], "waits open, to be cancelled"),
        (vec![("", resume())], "blocked open, cancelled open, exhausted open"),
        (vec![("cancelled", resume())], "cancelled open"),
    ] {
        assert_eq!(seen(asked.clone()), expected, "{asked:?}");
    }
}
