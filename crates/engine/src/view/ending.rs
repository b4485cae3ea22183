//! The state or the end of a loop: the first line of a page, and the rows that explain it.

use chrono::{DateTime, FixedOffset, Utc};
use minijinja::{Value, context};
use serde::Serialize;

use crate::boundary::limits;
use crate::evidence::{ClaimResult, Evidence, Verdict};
use crate::journal::story::{Regression, find_regressions};
use crate::record::{
    CheckMemory, CompletionBasis, Dialog, EndReason, Ending, IncurableRefusal, Loop, Outcome,
    Proof, Role, Run, Status, TaskOfFleet,
};
use crate::test_changes::ACCEPT;
use crate::text::templates;
use crate::text::{clip_line, clock_time, count};
use crate::view::{ChangesFrom, Fact, PageInputs};

/// The longest command of a check, in characters.
const RUN_CHARS: usize = 60;

/// The verdict seen at `now`: "completed after 4 iterations", "blocked in iteration 3", "running,
/// iteration 4 of 15".
pub fn verdict_text(record: &Loop, now: DateTime<FixedOffset>) -> String {
    let (state, word) = (&record.state, record.status_word());
    let max = record.contract.limits.max_iterations;
    let of = if max > 0 { format!(" of {max}") } else { String::new() };
    let done = count(state.counts().completed(), "iteration");
    match state.status() {
        Status::Finished if asked_for_help(record).is_some() => {
            format!("{word} in iteration {}", record.iteration())
        }
        Status::Finished => format!("{word} after {done}"),
        Status::Waiting => {
            let again = if state.counts().transient_errors() > 0 { " again" } else { "" };
            let due = state.wait().due().map(|due| format!(" until {}", clock_time(due, now)));
            let why = state
                .wait()
                .wait_reason()
                .as_deref()
                .map(|why| format!(" ({})", clip_line(why, RUN_CHARS)));
            let until = due.unwrap_or_default() + &why.unwrap_or_default();
            format!("waiting{until}, then iteration {}{of}{again}", record.iteration())
        }
        Status::Paused => format!("paused after {done}"),
        Status::Running => format!("running, iteration {}{of}", record.iteration()),
    }
}

/// The remark that follows the verdict on the first line.
pub fn verdict_remark(inputs: &PageInputs<'_>) -> Option<String> {
    let record = inputs.view.record;
    let ending = record.state.end().ending().as_ref();
    match ending.map(|ending| (ending.outcome, ending.proof)) {
        Some((Outcome::Completed, Some(Proof::Claimed))) => {
            Some("proof: claimed, nothing checked it".to_owned())
        }
        Some((Outcome::Completed, proof)) => proof.map(|it| format!("proof: {}", it.label())),
        Some((Outcome::Blocked, _)) => Some("needs you".to_owned()),
        Some((Outcome::Error, _)) => None,
        Some(_) => state_of_the_checks(record),
        None if inputs.view.owner_is_gone => Some("no longer driven by any process".to_owned()),
        None => inputs.view.dialog.map(|_| "needs you".to_owned()),
    }
}

/// The state of the checks: "2 of 148 tests fail", "its last claim was refused", or "but `npm test`
/// passes: 148 tests".
pub fn state_of_the_checks(record: &Loop) -> Option<String> {
    let evidence = record.state.seen().evidence().as_ref()?;
    if let Some(failing) = evidence.failing().next() {
        let tests = failing.tests.as_ref().filter(|tests| tests.failed() > 0);
        return match tests {
            Some(tests) => {
                let of = count(tests.total(), "test");
                Some(format!("{} of {of} {}", tests.failed(), tests.verb()))
            }
            None if failing.verdict == Verdict::Unknown => None,
            None => Some(format!("{} fails", quote_command(&failing.run))),
        };
    }
    let ran = |run: &str| evidence.checks.iter().any(|check| check.run == run);
    let all_ran = record.contract.checks.iter().all(|check| ran(&check.run));
    // A loop is blocked although its checks pass where that does not count.
    let all_ran = all_ran && record.outcome() != Some(Outcome::Blocked);
    if !all_ran || evidence.checks.is_empty() {
        return None;
    }
    // The agent changed the tests, for example: then it is not good news that they pass.
    if matches!(evidence.claim, ClaimResult::Refused(_)) {
        return Some("its last claim was refused".to_owned());
    }
    Some(format!("but {}", describe_passing(evidence)))
}

/// The checks that pass: "`npm test` passes: 148 tests", "`a` and `b` pass", "all 4 checks pass".
fn describe_passing(evidence: &Evidence) -> String {
    let reports = evidence.checks.iter().filter_map(|it| it.tests.as_ref());
    let passed: u64 = reports.map(|tests| u64::from(tests.passed())).sum();
    let tests = if passed > 0 { format!(": {}", count(passed, "test")) } else { String::new() };
    match &evidence.checks[..] {
        [check] => format!("{} passes{tests}", quote_command(&check.run)),
        [one, other] => {
            format!("{} and {} pass{tests}", quote_command(&one.run), quote_command(&other.run))
        }
        all => format!("all {} checks pass{tests}", all.len()),
    }
}

fn quote_command(run: &str) -> String {
    format!("`{}`", clip_line(run, RUN_CHARS))
}

/// What the agent asked the user for, in its own words; `None` if it did not ask.
pub fn asked_for_help(record: &Loop) -> Option<&str> {
    match &record.state.end().ending().as_ref()?.reason {
        EndReason::AgentBlocked(needs) => Some(needs),
        _ => None,
    }
}

/// When it ended; `None` while it is live.
pub fn end_time(inputs: &PageInputs<'_>) -> Option<DateTime<Utc>> {
    let shown = inputs.story.ended_at();
    (!inputs.view.record.is_live()).then(|| shown.unwrap_or_else(|| inputs.view.record.last_at()))
}

/// The rows of a page: what is needed and why, and the best result; for a live loop what it waits
/// for and who works.
pub fn ending_facts(inputs: &PageInputs<'_>) -> Vec<Fact> {
    let PageInputs { view, story, .. } = inputs;
    let (record, state) = (view.record, &view.record.state);
    let asks = |run: &Run| !run.agent.permissions.is_empty();
    let doing = view.doing.as_ref();
    let values = context! {
        program => record.driver().program(),
        needs => asked_for_help(record),
        refusals => list_refusals(inputs),
        proved => state.end().proved_at().map(|at| clock_time(at, view.now)),
        red => find_regressions(story).first().map(Regression::regression_words),
        does => doing.map(|it| format!("{}, since {}", it.doing_words(), clock_time(it.since, view.now))),
        waits_at => view.dialog.map(|it| at_dialog(it, view.now)),
        fallback_until => record.fallback_until(view.now),
        asks_permissions => record.contract.run.as_ref().is_some_and(asks),
        named_limits => limits::describe_limits(&record.contract.limits),
        ..proof_values(inputs),
    };
    templates::template_rows("ending.j2", &context! { ..values, ..Value::from_serialize(view) })
}

/// Why claims were refused; empty for a completed loop, and if the reason of its end already says
/// so.
fn list_refusals<'a>(inputs: &PageInputs<'a>) -> Vec<&'a str> {
    let ending = inputs.view.record.state.end().ending().as_ref();
    if let Some(EndReason::Completed { .. } | EndReason::Refused(_)) = ending.map(|it| &it.reason) {
        return Vec::new();
    }
    let claims = inputs.story.iterations().map(|it| &it.evidence.claim);
    let refusals = claims.filter_map(|claim| match claim {
        ClaimResult::Refused(why) => Some(why.as_str()),
        _ => None,
    });
    refusals.collect()
}

/// What a proof is based on: its checks and their history. `rest` is what the reason says beyond
/// the meaning of the proof; `None` if that is not all, or if no check ran.
fn proof_values(inputs: &PageInputs<'_>) -> Value {
    let state = &inputs.view.record.state;
    let (Some(ending), Some(evidence)) = (state.end().ending(), state.seen().evidence()) else {
        return context! { rest => None::<String> };
    };
    let first = evidence.checks.first();
    let runs = || evidence.checks.iter().map(|check| &check.run);
    let was_red =
        runs().find(|run| state.seen().checks().get(*run).is_some_and(CheckMemory::ever_failed));
    let found = was_red.and_then(|run| inputs.tests.get(run)).filter(|memory| memory.as_found);
    let found = found.map(|memory| &memory.first).filter(|run| run.failed > 0);
    context! {
        rest => first.and_then(|_| proof_condition(ending)),
        passing => describe_passing(evidence),
        was_green => first.is_some_and(|it| inputs.story.green_before().contains(&it.run)),
        was_red,
        red_tests => found.map(|run| (run.failed, run.total())),
    }
}

/// "; it passes only with the change of mk/test.mk": what a reason says beyond the meaning of the
/// proof. `None` of one that says something else.
fn proof_condition(ending: &Ending) -> Option<String> {
    let EndReason::Completed { basis: CompletionBasis::Proof(_), .. } = &ending.reason else {
        return None;
    };
    Some([vec![""], ending.remarks()].concat().join("; "))
}

/// The dialog at which it waits, seen at `at`: "waiting at a permission dialog since 02:10: Bash".
pub fn at_dialog(dialog: &Dialog, at: DateTime<FixedOffset>) -> String {
    let since = clock_time(dialog.since, at);
    match &dialog.tool {
        _ if dialog.is_question => format!("waiting since {since} for your answer to a question"),
        Some(tool) => {
            format!("waiting at a permission dialog since {since}: {}", clip_line(tool, 60))
        }
        None => format!("waiting at a permission dialog since {since}"),
    }
}

/// A command and what it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NextStep {
    pub command: String,
    /// What the command does, in a few words; empty where that is obvious.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub what: String,
}

/// The next command, and the one after it. A message to the agent of an ended loop resumes the
/// loop; in a fleet it is only kept for the next attempt.
pub fn next_steps(inputs: &PageInputs<'_>) -> (NextStep, Option<NextStep>) {
    let record = inputs.view.record;
    let fleet = record.fleet.as_ref();
    let mut failing = record.state.seen().evidence().iter().flat_map(Evidence::failing);
    let gate = failing.find(|it| it.roles.contains(&Role::Gate)).map(|it| &it.run);
    let values = context! {
        resume => inputs.resume,
        is_at_rest => record.is_live() && is_at_rest(inputs),
        can_resume => can_resume(inputs),
        needs => asked_for_help(record),
        tell => fleet.map(TaskOfFleet::tell_command),
        accept => accept_command(inputs),
        own_branch => record.branch(),
        gate,
        changed_something => changed_something(inputs),
        regression => shown_regression(inputs),
    };
    let view = Value::from_serialize(&inputs.view);
    let rows = templates::template_rows("next.j2", &context! { ..values, ..view });
    let mut steps =
        rows.into_iter().map(|row| NextStep { command: row.text, what: row.detail.concat() });
    (steps.next().unwrap_or_default(), steps.next())
}

/// The command that accepts the changed tests for which claims were refused.
fn accept_command(inputs: &PageInputs<'_>) -> Option<String> {
    let record = inputs.view.record;
    if !record.state.end().ending().as_ref()?.reason.is_of_test_changes() {
        return None;
    }
    let own = || format!("{} {ACCEPT}", inputs.resume);
    Some(record.fleet.as_ref().map_or_else(own, TaskOfFleet::accept_test_changes))
}

/// Whether resuming the loop leads anywhere.
pub fn can_resume(inputs: &PageInputs<'_>) -> bool {
    match inputs.view.record.outcome() {
        // The command does what is pending; it does not continue the loop.
        Some(Outcome::Completed) => {
            inputs.view.record.fleet.is_none()
                && !inputs.view.record.state.git().pending_steps().is_empty()
        }
        // Only a new loop can require less.
        Some(Outcome::Blocked) => {
            asked_for_help(inputs.view.record).is_some() || !never_failed(inputs)
        }
        _ => true,
    }
}

/// Whether the proof falls short because no check has ever failed, which cannot be fixed. A person
/// can fix the other causes: a changed check, or something that a run in the scratch folder lacks.
fn never_failed(inputs: &PageInputs<'_>) -> bool {
    let record = inputs.view.record;
    let reason = record.state.end().ending().as_ref().map(|ending| &ending.reason);
    let is_too_weak = matches!(reason, Some(EndReason::Refused(IncurableRefusal::ProofTooWeak(_))));
    is_too_weak
        && record.contract.require == Some(Proof::Checked)
        && (record.state.seen().checked_as_found()
            || record.contract.before_the_first().next().is_none())
        && !record.state.seen().checks().values().any(CheckMemory::ever_failed)
}

/// Whether `crew diff` and `crew back` have something to show.
fn changed_something(inputs: &PageInputs<'_>) -> bool {
    inputs.changes_from != ChangesFrom::Git && inputs.changes.is_some_and(|it| it.file_count() > 0)
}

/// The first check that turned red, if the difference that did it can be shown.
fn shown_regression(inputs: &PageInputs<'_>) -> Option<Regression> {
    let is_completed = inputs.view.record.outcome() == Some(Outcome::Completed);
    if is_completed || !changed_something(inputs) {
        return None;
    }
    let first = find_regressions(inputs.story).into_iter().next()?;
    (!first.files().is_empty()).then_some(first)
}

fn is_at_rest(inputs: &PageInputs<'_>) -> bool {
    inputs.view.owner_is_gone || inputs.view.record.state.status() == Status::Paused
}

/// How a running loop is stopped; `None` for a loop that has ended or is paused.
pub fn stop_command(inputs: &PageInputs<'_>) -> Option<String> {
    let is_running = inputs.view.record.is_live() && !is_at_rest(inputs);
    is_running.then(|| inputs.stop.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Verdict;
    use crate::fixture::{SetState, a_loop_with, a_run, result};
    use crate::record::Role;

    #[test]
    fn passing_checks_are_not_good_news_after_a_refused_claim() {
        let mut record = a_run(None);
        record.contract.checks = a_loop_with(&[("npm test", Role::Verify)]).contract.checks;
        let evidence = Evidence {
            checks: vec![result("npm test", Verdict::Passed)],
            claim: ClaimResult::Refused("a test was changed".to_owned()),
            ..Evidence::default()
        };
        record.state.set("evidence", evidence);
        let state = state_of_the_checks(&record);
        assert_eq!(state.as_deref(), Some("its last claim was refused"));
    }
}

#[cfg(test)]
mod live_tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::fixture::at;

    #[test]
    fn a_dialog_is_shown_with_its_time_and_its_tool() {
        let shown = |tool: Option<&str>, is_question| {
            let tool = tool.map(str::to_owned);
            let it = Dialog {
                since: at(0).wall,
                tool,
                call: None,
                is_question,
                transcript: "/t".into(),
                transcript_bytes: 0,
            };
            at_dialog(&it, at(0).wall.fixed_offset())
        };
        assert_snapshot!(shown(Some("Bash"), false), @"waiting at a permission dialog since 11:06: Bash");
        assert_snapshot!(shown(None, false), @"waiting at a permission dialog since 11:06");
        assert_snapshot!(shown(None, true), @"waiting since 11:06 for your answer to a question");
    }
}
