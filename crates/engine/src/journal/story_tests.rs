use super::*;
use crate::boundary::decide::{apply_decision, decide_next};
use crate::boundary::judge::judge_boundary;
use crate::claim::Claim;
use crate::evidence::Verdict;
use crate::fixture::{SetState, a_loop_with, at, facts, result};
use crate::journal::{Choice, SCHEMA};
use crate::record::{Actor, CheckMemory, Loop, Role};

fn entry(generation: u64, event: Event) -> JournalEntry {
    JournalEntry { schema: SCHEMA, at: at(0).wall, generation, event }
}

fn started() -> (Loop, JournalEntry) {
    let record = a_loop_with(&[("cargo test", Role::Gate)]);
    (record.clone(), entry(0, Event::Started { record: Box::new(record) }))
}

fn iterate(before: &Loop) -> (Loop, JournalEntry) {
    let mut facts = facts(Claim::None);
    facts.tree = Some(format!("tree {}", before.state.counts().completed()).as_str().into());
    facts.checks = vec![result("cargo test", Verdict::Failed)];
    let judged = judge_boundary(before, &facts);
    let decision = decide_next(&judged, &facts);
    let mut after = apply_decision(judged, &decision);
    after.state.set("generation", after.state.generation() + 1);
    let event = Event::Boundary {
        decision: Choice::Continue,
        why: None,
        elapsed_ms: after.elapsed_ms.last().copied(),
        state: Box::new(after.state.clone()),
    };
    let entry = entry(after.state.generation(), event);
    (after, entry)
}

fn moved(mut record: Loop) -> (Loop, JournalEntry) {
    record.state.set("generation", record.state.generation() + 1);
    record.state.set("owner.driver", Driver::Process);
    record.state.set("owner.session_id", None::<String>);
    record.state.set("owner.process.pid", 99);
    let event = Event::from_change(NoteKind::ResumedInRun, &record, &record);
    let entry = entry(record.state.generation(), event);
    (record, entry)
}

#[test]
fn checks_that_passed_on_an_interrupted_attempts_work_were_not_green_before() {
    for checked_after_work in [true, false] {
        let (mut record, start) = started();
        let memory = CheckMemory::from_result(&result("t", Verdict::Passed), 0, None);
        record.state.remember_check("t".to_owned(), memory);
        record.state.set("checked_after_work", checked_after_work);
        record.state.set("generation", record.state.generation() + 1);
        let event = Event::from_change("checked before the first iteration", &record, &record);
        let mut story = Story::with_pick(None);
        story.add_entry(start);
        story.add_entry(entry(record.state.generation(), event));
        assert_eq!(story.green_before.contains("t"), !checked_after_work);
    }
}

#[test]
fn a_handoff_is_unread_until_another_worker_has_been_through_an_iteration_with_it() {
    // Somebody wrote it, an iteration ended, a run took the loop, the next process got it.
    let table = [
        ("", false),
        ("wrote", true),
        ("wrote ended", true),
        ("wrote took", true),
        ("wrote took ended", false),
        ("wrote got", true),
        ("wrote ended got ended", false),
        ("wrote took ended wrote", true),
    ];
    for (events, expected) in table {
        let (mut record, start) = started();
        let mut story = Story::with_pick(None);
        story.add_entry(start);
        for event in events.split_whitespace() {
            let noted = |kind: NoteKind| entry(record.state.generation(), Event::from_note(kind));
            let (next, entry) = match event {
                "wrote" => (record.clone(), noted(NoteKind::HandedOff(Actor::User))),
                "got" => (record.clone(), noted(NoteKind::HandedOn)),
                "took" => moved(record),
                _ => iterate(&record),
            };
            story.add_entry(entry);
            record = next;
        }
        assert_eq!(story.has_unread_handoff(), expected, "{events}");
    }
}

#[test]
fn a_story_covers_every_iteration_and_both_drivers() {
    let (record, start) = started();
    let (record, first) = iterate(&record);
    let (record, change) = moved(record);
    let (_, second) = iterate(&record);
    let mut story = Story::with_pick(Some(1));
    for entry in [start, first, change, second] {
        story.add_entry(entry);
    }
    let numbers: Vec<u32> = story.iterations().map(|it| it.number).collect();
    assert_eq!(numbers, [1, 2]);
    let drivers: Vec<_> = story.drivers.iter().map(|who| (who.driver, who.pid)).collect();
    assert_eq!(drivers, [(Driver::Session, 42), (Driver::Process, 99)]);
    let picked = story.picked().unwrap();
    assert_eq!(picked.evidence.checks[0].tail, "output of cargo test");
    assert!(story.iterations().all(|it| it.evidence.checks[0].tail.is_empty()));
}

#[test]
fn a_journal_line_that_never_reached_the_record_is_shown_once() {
    let (record, start) = started();
    let (record, first) = iterate(&record);
    let (_, change) = moved(record);
    let note = entry(1, Event::from_note("asleep 7h"));
    let mut story = Story::with_pick(None);
    for entry in [start, first.clone(), note, first, change.clone(), change] {
        story.add_entry(entry);
    }
    assert_eq!(story.iterations().count(), 1);
    assert_eq!(story.drivers.iter().len(), 2);
    assert_eq!(story.chapters.iter().len(), 4, "{:#?}", story.chapters);
}

#[test]
fn an_iteration_that_never_reached_the_record_is_not_picked() {
    let (record, start) = started();
    let (record, first) = iterate(&record);
    let (_, lost) = iterate(&record);
    let (_, change) = moved(record);
    let picked = |number: u32, entries: &[&JournalEntry]| {
        let mut story = Story::with_pick(Some(number));
        for entry in entries {
            story.add_entry((*entry).clone());
        }
        story.picked().map(|it| it.number)
    };
    assert_eq!(picked(2, &[&start, &first, &lost]), Some(2));
    assert_eq!(picked(2, &[&start, &first, &lost, &change]), None);
    assert_eq!(picked(1, &[&start, &first, &lost, &change]), Some(1));
}

#[test]
fn a_very_long_story_keeps_its_newest_chapters_and_counts_the_others() {
    let mut story = Story::with_pick(None);
    for number in 0..CHAPTERS_MAX as u64 + 7 {
        story.add_entry(entry(number, Event::from_note(number.to_string())));
    }
    assert_eq!((story.chapters.iter().len(), story.chapters.earlier), (CHAPTERS_MAX, 7));
    assert_eq!(story.chapters.iter().next().unwrap().generation, 7);
}
