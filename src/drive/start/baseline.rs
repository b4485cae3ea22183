//! Runs the checks before the first iteration: the proof at the end depends on their result before
//! it. It judges nothing and ends nothing.

use anyhow::Result;

use crate::drive::boundary::{gather, remember_tests};
use crate::drive::checks::test_changes;
use crate::drive::find::is_ours;
use crate::drive::tree;
use engine::evidence::test_run::{TestMemories, mark_as_found, ran_nothing, update_memories};
use engine::evidence::{CheckResult, TAIL_CHARS, Verdict};
use engine::record::{CheckMemory, Loop, Proof, Status};
use engine::text::tail_of;
use engine::view::events::{EventSink, RunEvent};
use world::clock;
use world::process::signals::Signals;
use world::store::{self, Home, view};

/// Runs every check except the gates once before the first iteration; at a resume only those
/// without a known result. Changes that others make to the record are kept. `was_begun`:
/// an attempt may have left work.
pub fn run_baseline(
    home: &Home,
    record: Loop,
    was_begun: bool,
    signals: &Signals,
    sink: &mut dyn EventSink,
) -> Result<Loop> {
    if record.state.counts().completed() > 0
        || record
            .contract
            .before_the_first()
            .all(|check| record.state.seen().checks().contains_key(&check.run))
    {
        return Ok(record);
    }
    let (sink, id) = (std::cell::RefCell::new(sink), record.id.clone());
    let stop = || {
        sink.borrow_mut().on_tick();
        signals.times() > 0 || store::breaks_off(home, &id)
    };
    let tell = |event: &RunEvent<'_>| {
        view::record_step(home, &record, event);
        sink.borrow_mut().on_event(event);
    };
    // The work of an interrupted attempt is the agent's, and never part of what the loop found.
    let is_remembered = !was_begun || tree::is_remembered(home, &record);
    let is_as_found = is_remembered && tree::is_as_found(home, &record);
    let results = gather::run_checks(home, &record, &stop, &tell);
    for note in baseline_notes(&record, &results) {
        tell(&RunEvent::Noted(&note));
    }
    let tree = if is_remembered && record.watches_the_tree() {
        tree::look_again(home, &record, record.state.seen().trees().snapshot().as_deref())
    } else {
        None
    };
    let held = store::hold_loop(home, &id, store::LOCK_WAIT)?;
    let found = held.load()?;
    if !found.is_live() || !is_ours(&found) {
        return Ok(found);
    }
    remember_tests(home, &id, baseline_tests(store::read_tests(home, &id), &results, is_as_found));
    let found = held.change(&found, "checked before the first iteration", |found| {
        remember_results(found, &results);
        // A pause that came during the checks has already counted its time.
        if found.state.status() == Status::Running {
            found.state.begin_iteration(clock::now());
        }
        // A gate alone has not run.
        let is_complete = found
            .contract
            .unique_checks()
            .all(|check| found.state.seen().checks().contains_key(&check.run));
        if is_as_found && is_complete {
            found.state.end_looks_at_the_start();
        }
        if is_remembered {
            test_changes::follow_tree(home, found, tree, false);
        } else {
            found.state.note_work_before_the_first();
        }
    })?;
    if let Some(note) = note_on_green(&found) {
        tell(&RunEvent::Noted(&note));
    }
    Ok(found)
}

/// The note about a loop whose checks all pass before its first iteration.
fn note_on_green(found: &Loop) -> Option<String> {
    let all_pass = found.contract.before_the_first().all(|check| {
        found
            .state
            .seen()
            .checks()
            .get(&check.run)
            .is_some_and(|memory| memory.last() == Verdict::Passed)
    });
    if !found.state.seen().checked_as_found() || !all_pass {
        return None;
    }
    let more = match found.contract.require {
        Some(Proof::Checked) if !found.contract.runs_without_work() => {
            ": this loop requires `checked`, and no claim is believed unless a check fails first"
        }
        _ => ", or accept the proof `passing`",
    };
    Some(format!(
        "every check passes already, so none can show that the work was done; add one that fails \
         now, such as a test of the task{more}"
    ))
}

/// What is remembered of the tests after these results, in addition to what was `known`.
fn baseline_tests(
    known: TestMemories,
    results: &[CheckResult],
    are_as_found: bool,
) -> Option<TestMemories> {
    if are_as_found {
        mark_as_found(results).map(|found| known.into_iter().chain(found).collect())
    } else {
        update_memories(&known, results)
    }
}

/// Notes for the user about checks that cannot run, or show little.
fn baseline_notes(record: &Loop, results: &[CheckResult]) -> Vec<String> {
    let mut notes: Vec<String> = results
        .iter()
        .filter_map(|result| result.incurable_words().or_else(|| doubt_of_pass(result)))
        .collect();
    let names_none = results.iter().all(|result| result.test_run.is_none());
    if record.contract.runs_without_work() && names_none && !results.is_empty() {
        notes.push("no check names its tests: only one that does can prove the work".to_owned());
    }
    notes
}

/// The note about a check that passed although its output shows little.
fn doubt_of_pass(result: &CheckResult) -> Option<String> {
    if result.verdict != Verdict::Passed {
        return None;
    }
    let run = result.test_run.as_ref()?;
    let why = match ran_nothing(run, false) {
        Some(why) => format!("`{}` {why}: a claim that needs it is refused", result.run),
        None if !run.ran_any() => format!("`{}` ran no test: so far it proves nothing", result.run),
        None => return None,
    };
    Some(why)
}

fn remember_results(record: &mut Loop, results: &[CheckResult]) {
    for result in results {
        if result.verdict == Verdict::Unknown || result.ran_no_test() {
            continue;
        }
        let mut memory = CheckMemory::from_result(result, 0, None);
        if result.verdict != Verdict::Passed {
            memory.tail = tail_of(&result.tail, TAIL_CHARS);
        }
        record.state.remember_check(result.run.clone(), memory);
    }
}
