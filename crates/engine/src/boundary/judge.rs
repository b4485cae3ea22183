//! Judges and counts a boundary, whatever happens next: the claim and its result, the proof, the
//! failure, the progress. It does not choose what follows: `decide` does, from the loop as counted
//! here.

use super::belief::{find_cause, find_proof, find_tampering, list_doubts, remark_on_checks};
use super::facts::{AgentClosing, AgentOutcome, ApiError, Facts, ProcessEnd};
use crate::claim::Claim;
use crate::evidence::changes::Changes;
use crate::evidence::test_run::{TestReport, TestRun};
use crate::evidence::{
    CheckResult, ClaimResult, Evidence, IterationStatus, NoProofCause, Progress, TAIL_CHARS,
    Verdict,
};
use crate::record::{
    CheckMemory, Driver, EndReason, IncurableRefusal, IterationEnd, Loop, Proof, Role, Row,
    WeakProof,
};
use crate::test_changes::{TestChangesFinding, WithoutWork};
use crate::text::{count, format_period, tail_of, with_reason};
use derive_getters::Getters;

/// A judged boundary.
#[derive(Getters, Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The loop with updated counters; its status is still the old one.
    pub after: Loop,
    /// Whether this counts as an iteration. A pause, an error of the model's service, or a failure
    /// that removes a fallback agent does not.
    #[getter(copy)]
    counted: bool,
    /// The proof of a completion here; `None` if the loop is not proved done.
    #[getter(copy)]
    proved: Option<Proof>,
    /// The proof of a loop that only its limit can end: the iteration ran without a failure, and
    /// every check passes at this boundary.
    #[getter(copy)]
    sound: Option<Proof>,
    /// Why an end was refused for the second time in a row, where no agent can change the reason.
    incurable: Option<IncurableRefusal>,
    #[getter(copy)]
    progress: Progress,
    /// What the user should know about the checks if the loop completes here.
    remark: Option<String>,
    /// Whether something keeps the proof at `passing`, whatever the checks did; the remark says
    /// what.
    #[getter(copy)]
    is_lowered: bool,
}

/// Judges one boundary.
pub fn judge_boundary(before: &Loop, facts: &Facts) -> Judged {
    let mut after = before.clone();
    let is_one = !facts.seen.breaks_off() && facts.seen.ran_an_iteration();
    let counted = is_one && unfit_fallback(before, facts).is_none();
    let found = if counted { find_proof(before, facts) } else { None };
    let test_refusal = facts.test_changes.as_ref().and_then(TestChangesFinding::refusal_reason);
    let doubts = list_doubts(before, facts).join("; ");
    let why_not = why_not(&doubts, facts);
    let weak = found.and_then(|proof| proof.falls_short(before.contract.require, why_not));
    let short = match (found, &test_refusal) {
        (None, _) => None,
        (Some(_), Some(why)) => Some(why.clone()),
        (Some(_), None) => weak.as_ref().map(WeakProof::to_string),
    };
    let proof = if short.is_none() { found } else { None };
    let is_asked = counted && asks_for_the_end(before, facts);
    let proved = if is_asked { proof } else { None };
    let can_work = find_cause(before, facts).err().flatten().is_some_and(NoProofCause::is_curable);
    let needs_work = can_work || matches!(facts.without_work, Some(WithoutWork::Failed(_)));
    let weak = if needs_work || test_refusal.is_some() { None } else { weak };
    let (progress, progress_why) = judge_progress(before, facts);
    let failure = find_failure(before, facts, progress);
    let is_sound = failure.is_none() && skipped_agent(facts).is_none();
    let sound = if is_sound { proof } else { None };
    let since = facts.now.awake_ms.saturating_sub(before.state.time().began().awake_ms);
    let spent = since.saturating_sub(facts.seen.agent.missed_ms);

    after.count_use(u32::from(counted), facts.usage.as_ref());
    let state = &mut after.state;
    state.count_boundary(facts.now, spent);
    let mut incurable = None;
    if is_asked && proved.is_none() {
        let refusal = incurable_refusal(facts, weak);
        incurable = refusal.clone().filter(|why| state.end().incurable().as_ref() == Some(why));
        state.refuse_end(refusal, test_refusal.is_some());
        if incurable.is_none()
            && let Some(why) = test_refusal
        {
            incurable = refused_too_often(before, why, state.end().test_refusals());
        }
    }
    let is_transient = matches!(facts.seen.agent.error, Some(ApiError::Transient { .. }));
    state.count_transient_errors(if is_transient { Row::Extends } else { Row::Ends });
    if counted {
        let claim = claim_result(before, facts, proved, short);
        let why = (progress, progress_why);
        let mut evidence = collect_evidence(before, facts, claim, failure.as_ref(), why);
        evidence.words = state.take_messages(was_started(facts));
        after.end_iteration(IterationEnd {
            at: facts.now.wall,
            spent_ms: spent,
            failures: failures_in_a_row(&evidence),
            without_progress: without_progress_in_a_row(facts, progress),
            crashes: crashes_in_a_row(facts, progress),
            evidence,
        });
        remember_checks(&mut after, facts);
        after.state.remember_tree(facts.tree_checked.clone());
    }
    let (remark, is_lowered) = (remark_on_checks(before, facts), !doubts.is_empty());
    Judged { after, counted, proved, sound, incurable, progress, remark, is_lowered }
}

/// Whether an agent was started, which then got the messages of its prompt.
fn was_started(facts: &Facts) -> bool {
    let end = facts.seen.agent.process.as_ref();
    !matches!(end, Some(ProcessEnd::NotStarted(_) | ProcessEnd::Skipped(_)))
}

fn failures_in_a_row(evidence: &Evidence) -> Row {
    match (&evidence.failure, &evidence.skipped) {
        (Some(_), _) => Row::Extends,
        // An iteration that did not finish says nothing about consecutive failures.
        (None, Some(_)) => Row::Keeps,
        (None, None) => Row::Ends,
    }
}

fn without_progress_in_a_row(facts: &Facts, progress: Progress) -> Row {
    match progress {
        // It might still have made some.
        Progress::None if is_broken_off(facts) => Row::Keeps,
        Progress::None => Row::Extends,
        Progress::Made | Progress::Unknown => Row::Ends,
    }
}

fn remember_checks(after: &mut Loop, facts: &Facts) {
    // From here on, the output of failed checks is in the evidence.
    after.state.forget_output();
    for result in &facts.checks {
        if result.verdict == Verdict::Unknown || result.ran_no_test() {
            continue;
        }
        let before = after.state.seen().checks().get(&result.run);
        let mut memory = CheckMemory::from_result(result, after.state.counts().completed(), before);
        if facts.fails_on_baseline(&result.run) {
            memory.failed_with = Some(0);
        }
        after.state.remember_check(result.run.clone(), memory);
    }
    if facts.baseline.as_ref().is_some_and(|baseline| baseline.why_not().is_none()) {
        after.state.end_looks_at_the_start();
    }
}

/// Why the proof is not higher.
fn why_not<'a>(doubts: &'a str, facts: &'a Facts) -> Option<&'a str> {
    if !doubts.is_empty() {
        return Some(doubts);
    }
    let without_work = facts.without_work.as_ref().and_then(WithoutWork::why_not);
    without_work.or_else(|| facts.baseline.as_ref()?.why_not())
}

/// The reason with which a loop ends whose claims were refused too often for a change of tests.
fn refused_too_often(subject: &Loop, refusal: String, refusals: u32) -> Option<IncurableRefusal> {
    let threshold = subject.contract.limits.failure_threshold;
    if threshold == 0 || refusals < threshold {
        return None;
    }
    Some(IncurableRefusal::TestChanges { refusal, accept: subject.accept_test_changes() })
}

/// Whether the agent claims that the job is done, or every `until` check passes.
fn asks_for_the_end(subject: &Loop, facts: &Facts) -> bool {
    let contract = &subject.contract;
    let reached = contract.has_until() && facts.all_pass(contract, Role::Until);
    reached || *facts.seen.effective_claim() == Claim::Success
}

/// The reason for a refusal that no agent can change: a proof that is too weak, or else its checks.
fn incurable_refusal(facts: &Facts, weak: Option<WeakProof>) -> Option<IncurableRefusal> {
    if let Some(weak) = weak {
        return Some(IncurableRefusal::ProofTooWeak(weak));
    }
    let why = facts.checks.iter().filter_map(|check| match check.incurable_words() {
        None if check.test_run.as_ref().is_some_and(TestRun::has_failed) => None,
        words => words.or_else(|| facts.ran_nothing(check)),
    });
    let why: Vec<String> = why.collect();
    if why.is_empty() { None } else { Some(IncurableRefusal::Checks(why)) }
}

/// Why an iteration failed.
#[derive(Clone)]
enum IterationFailure {
    /// The agent's process ended badly, as described here.
    Process(String),
    /// The gate with this command failed.
    Gate(String),
    Other(String),
}

impl IterationFailure {
    fn reason_text(&self) -> String {
        match self {
            Self::Gate(run) => format!("gate `{run}` failed"),
            Self::Process(why) | Self::Other(why) => why.clone(),
        }
    }
}

/// Failed = agent exit ≠ 0 or a signal without a success claim, a closing event that reports an
/// error or is missing, a timeout without known changes, FAILURE, a failed gate, a changed
/// protected path, or a request that the model's service refused for its content. For an answer cut
/// by the token limit, neither the exit status nor the error it ended with is a failure.
fn find_failure(subject: &Loop, facts: &Facts, progress: Progress) -> Option<IterationFailure> {
    let agent = &facts.seen.agent;
    if let Claim::Failure { reason } = facts.seen.effective_claim() {
        let reason = reason.as_deref().unwrap_or_default();
        return Some(IterationFailure::Other(with_reason("the agent said FAILURE", reason)));
    }
    let refused = match &agent.error {
        Some(ApiError::Request { message }) => Some(format!("the request was refused: {message}")),
        _ => match &agent.closing {
            AgentClosing::Failed(how) => Some(how.clone()),
            AgentClosing::Plain | AgentClosing::Missing => None,
        },
    };
    let was_ended = matches!(agent.process, Some(ProcessEnd::TimedOut(_) | ProcessEnd::Silent(_)));
    let is_excused = agent.cut && !was_ended;
    if let (Some(refused), false) = (refused, is_excused) {
        return Some(IterationFailure::Other(refused));
    }
    if let (Some(end), false) =
        (process_failure(agent, facts.seen.effective_claim(), progress), is_excused)
    {
        return Some(IterationFailure::Process(end));
    }
    if let Some(why) = agent.failed_around.clone().or_else(|| find_tampering(subject, facts)) {
        return Some(IterationFailure::Other(why));
    }
    let failed_gate = subject.contract.of_role(Role::Gate).find(|gate| {
        matches!(facts.verdict_of(&gate.run), Some(Verdict::Failed | Verdict::TimedOut))
    })?;
    Some(IterationFailure::Gate(failed_gate.run.clone()))
}

fn process_failure(agent: &AgentOutcome, claim: &Claim, progress: Progress) -> Option<String> {
    let is_success = *claim == Claim::Success;
    match (ended_badly(agent), agent.process.as_ref()?) {
        (Some(why), ProcessEnd::NotStarted(_)) => Some(why),
        (Some(why), _) if !is_success => Some(why),
        (_, ProcessEnd::Exit(code)) if *code != 0 && !is_success => Some(exit_reason(*code)),
        (_, end) if progress != Progress::Made => timeout_reason(end),
        _ => None,
    }
}

/// Why an agent did not come to its own end.
fn ended_early(agent: &AgentOutcome) -> Option<String> {
    if agent.out_of_turns {
        return Some("the agent used up its turns (max_turns)".to_owned());
    }
    timeout_reason(agent.process.as_ref()?)
}

/// The result of a check as the evidence keeps it.
fn recorded_result(subject: &Loop, facts: &Facts, result: &CheckResult) -> CheckResult {
    let tail = match result.verdict {
        Verdict::Passed => String::new(),
        _ => tail_of(&result.tail, TAIL_CHARS),
    };
    let roles = subject.contract.roles_of(&result.run);
    let memory = facts.tests_before.get(&result.run);
    let tests = result.test_run.as_ref().map(|run| TestReport::from_run(memory, run));
    CheckResult { roles, tail, incurable: None, test_run: None, tests, ..result.clone() }
}

fn collect_evidence(
    before: &Loop,
    facts: &Facts,
    claim: ClaimResult,
    failure: Option<&IterationFailure>,
    (progress, progress_why): (Progress, String),
) -> Evidence {
    let results = facts.checks.iter().map(|result| recorded_result(before, facts, result));
    let checks: Vec<CheckResult> = results.collect();
    let newly_passing = checks.iter().filter(|check| {
        let memory = before.state.seen().checks().get(&check.run);
        check.verdict == Verdict::Passed && memory.is_some_and(|it| it.last() != Verdict::Passed)
    });
    let newly_passing = u32::try_from(newly_passing.count()).unwrap_or(u32::MAX);
    Evidence {
        iteration: before.state.counts().completed() + 1,
        agent: before.one_of_several().map(|agent| agent.name.clone()),
        claim,
        checks,
        status: match &facts.seen.agent.process {
            Some(ProcessEnd::Skipped(_)) => IterationStatus::Skipped,
            _ if skipped_agent(facts).is_some() => IterationStatus::Interrupted,
            Some(ProcessEnd::TimedOut(_) | ProcessEnd::Silent(_)) => IterationStatus::TimedOut,
            _ if failure.is_some() => IterationStatus::Failed,
            _ => IterationStatus::Completed,
        },
        started_at: Some(before.state.time().began().wall),
        exit: match facts.seen.agent.process {
            Some(ProcessEnd::Exit(code)) => Some(code),
            _ => None,
        },
        errors: match failure {
            Some(IterationFailure::Process(_)) => tail_of(&facts.seen.agent.errors, TAIL_CHARS),
            _ => String::new(),
        },
        ended: if failure.is_none() { ended_early(&facts.seen.agent) } else { None },
        failed_gate: match failure {
            Some(IterationFailure::Gate(run)) => Some(run.clone()),
            _ => None,
        },
        failure: failure.map(IterationFailure::reason_text),
        skipped: skipped_agent(facts),
        progress,
        progress_why,
        changes: facts.changes.clone(),
        newly_passing,
        usage: facts.usage.clone(),
        context_percent: facts.seen.agent.context_percent,
        context_tokens: facts.seen.agent.context_tokens,
        said: facts.seen.agent.said.clone(),
        cut: facts.seen.agent.cut,
        ..Evidence::default()
    }
}

fn is_broken_off(facts: &Facts) -> bool {
    matches!(facts.seen.agent.process, Some(ProcessEnd::BrokenOff(_)))
}

fn skipped_agent(facts: &Facts) -> Option<String> {
    match &facts.seen.agent.process {
        Some(ProcessEnd::Skipped(why)) => Some(why.clone()),
        Some(ProcessEnd::BrokenOff(_)) => Some("interrupted before it finished".to_owned()),
        Some(ProcessEnd::OutOfTime) => Some("ended when the loop's time was used up".to_owned()),
        _ => None,
    }
}

/// The result of the claim; `short` says why a proof did not suffice.
fn claim_result(
    subject: &Loop,
    facts: &Facts,
    proved: Option<Proof>,
    short: Option<String>,
) -> ClaimResult {
    match facts.seen.effective_claim() {
        Claim::Success if proved.is_some() => ClaimResult::Accepted,
        // It was not refused: its checks were interrupted.
        Claim::Success if is_broken_off(facts) => ClaimResult::None,
        Claim::None => ClaimResult::None,
        Claim::Success => ClaimResult::Refused(short.unwrap_or_else(|| {
            let failing = facts.checks.iter().filter(|check| check.verdict != Verdict::Passed);
            let against: Vec<String> = failing
                .map(|check| format!("`{}` {}", check.run, facts.what_happened(subject, check)))
                .chain(facts.checks.iter().filter_map(|check| facts.ran_nothing(check)))
                .chain(find_tampering(subject, facts))
                .collect();
            against.join("; ")
        })),
        Claim::Failure { reason } => ClaimResult::Failure(reason.clone().unwrap_or_default()),
        Claim::Blocked { reason } => ClaimResult::Blocked(reason.clone().unwrap_or_default()),
        Claim::NearMiss(miss) => ClaimResult::NearMiss(miss.to_string()),
    }
}

// How an agent's process failed. A crash is an agent that could not start, was killed by a signal
// crew did not send, ended without its closing event, or failed at once. An immediate retry mostly
// crashes again, so the next iteration waits, and so it does after a timeout. An agent that fails
// later has worked; a failure of the model's service has its own wait.

/// Seconds before the next iteration, by the number of crashes in a row; the last value applies to
/// all further crashes.
const NEVER_WORKED_S: [u64; 3] = [5, 30, 300];
/// Waits after a crash of an agent that has worked in this loop, in seconds: the cause is likely to
/// last longer.
const WORKED_S: [u64; 3] = [15, 120, 900];

/// An agent that fails within this many milliseconds of its start has done no work.
const AT_ONCE_MS: u64 = 2000;

/// Why the next iteration waits, in words; `None` if the end was neither a crash nor a timeout.
pub fn crash_reason(agent: &AgentOutcome) -> Option<String> {
    if agent.error.is_some() {
        return None;
    }
    let why = ended_badly(agent).or_else(|| failed_at_once(agent));
    why.or_else(|| timeout_reason(agent.process.as_ref()?))
}

/// Updates the count of consecutive crashes. An iteration that timed out while it made progress
/// starts a new count, because this agent was able to work.
fn crashes_in_a_row(facts: &Facts, progress: Progress) -> Row {
    let agent = &facts.seen.agent;
    let was_at_work = agent.process.as_ref().and_then(timeout_reason).is_some();
    match crash_reason(agent) {
        _ if skipped_agent(facts).is_some() => Row::Keeps,
        Some(_) if was_at_work && progress == Progress::Made => Row::Begins,
        Some(_) => Row::Extends,
        None => Row::Ends,
    }
}

fn failed_at_once(agent: &AgentOutcome) -> Option<String> {
    let is_at_once = agent.ran_ms.is_some_and(|ms| ms <= AT_ONCE_MS);
    match agent.process.as_ref()? {
        ProcessEnd::Exit(code) if *code != 0 && is_at_once => {
            Some(format!("{} within {} s of its start", exit_reason(*code), AT_ONCE_MS / 1000))
        }
        _ => None,
    }
}

/// How an agent crashed, whether or not the model's service failed, too.
fn ended_badly(agent: &AgentOutcome) -> Option<String> {
    match agent.process.as_ref()? {
        ProcessEnd::Signal(signal) => Some(format!("the agent was killed by signal {signal}")),
        ProcessEnd::NotStarted(why) => Some(format!("the agent could not be started: {why}")),
        ProcessEnd::Exit(_) if agent.closing == AgentClosing::Missing => {
            Some("the agent ended without its closing event".to_owned())
        }
        _ => None,
    }
}

/// Why crew ended the agent, if its time or its silence was the reason.
fn timeout_reason(end: &ProcessEnd) -> Option<String> {
    match end {
        ProcessEnd::TimedOut(limit) => {
            Some(format!("the iteration ran into its timeout of {}", format_period(*limit)))
        }
        ProcessEnd::Silent(limit) => {
            Some(format!("the agent printed nothing for {} and was ended", format_period(*limit)))
        }
        _ => None,
    }
}

/// The failure of an agent whose process exited with `code`.
pub fn exit_reason(code: i32) -> String {
    format!("the agent exited with status {code}")
}

/// Seconds that the next iteration waits; `subject` has already counted the crash.
pub fn wait_s(subject: &Loop) -> u64 {
    let state = &subject.state;
    let unended = state.counts().tally().skipped() + state.counts().tally().interrupted();
    let waits = if state.counts().completed() > state.counts().crashes().saturating_add(unended) {
        WORKED_S
    } else {
        NEVER_WORKED_S
    };
    let index = (state.counts().crashes().max(1) as usize - 1).min(waits.len() - 1);
    let delay = subject.contract.run.as_ref().map_or(0, |run| run.pace.delay_s);
    waits[index].max(delay)
}

// Failures that remove a fallback agent from its loop: only a person can fix them, and without the
// fallback the loop waits for the agent that it replaces. The loop's own agent is never removed.

/// Why the working fallback has to leave the loop, and what the user can do.
pub fn unfit_fallback(subject: &Loop, facts: &Facts) -> Option<String> {
    subject.working_fallback()?;
    let agent = &facts.seen.agent;
    match (&agent.error, &agent.process) {
        (Some(ApiError::Fatal { cause, hint }), _) => Some(format!("{cause}; {hint}")),
        (_, Some(ProcessEnd::NotStarted(why))) => Some(format!("it could not be started: {why}")),
        (Some(ApiError::Transient { .. }), _) => None,
        (None, Some(ProcessEnd::Exit(0)))
            if facts.usage.is_none() && subject.contract.limits.bound_usage() =>
        {
            Some("it does not report what it used, and the loop limits that".to_owned())
        }
        _ => Some(denied_end(subject, facts, judge_progress(subject, facts).0)?.to_string()),
    }
}

/// The end of a loop whose agent changed nothing because tools were denied.
pub(super) fn denied_end(subject: &Loop, facts: &Facts, progress: Progress) -> Option<EndReason> {
    let tools = &facts.seen.agent.denied;
    let is_denied = !tools.is_empty()
        && subject.driver() == Driver::Process
        && progress == Progress::None
        && *facts.seen.effective_claim() != Claim::Success;
    if is_denied { Some(EndReason::Denied(tools.clone())) } else { None }
}

// Whether an iteration changed anything that counts, and why. Returning to an earlier state of the
// tree, or changing white space, is not progress; a check that passes now is, and so is work that
// was only committed. If the tree was not checked, the answer is unknown.

/// Judges what an iteration changed since the last boundary, with the reason in a few words: "2
/// files changed, 1 commit", "only white space changed".
fn judge_progress(subject: &Loop, facts: &Facts) -> (Progress, String) {
    let [passing, failing] = changed_verdicts(subject, facts);
    let (progress, tree) = judge_tree(subject, facts);
    let tree = match progress {
        Progress::Made => Some(tree),
        // A check that only turns red is not progress.
        Progress::None if passing.is_some() => None,
        _ => return (progress, tree),
    };
    let why: Vec<String> = [passing, failing, tree].into_iter().flatten().collect();
    (Progress::Made, why.join(", "))
}

/// How the verdicts of checks changed: "1 check passing now", "1 check failing now".
fn changed_verdicts(subject: &Loop, facts: &Facts) -> [Option<String>; 2] {
    let changed = facts.checks.iter().filter(|result| {
        let before = subject.state.seen().checks().get(&result.run);
        result.verdict != Verdict::Unknown
            && before.is_some_and(|memory| memory.last() != result.verdict)
    });
    let (passing, failing): (Vec<_>, Vec<_>) =
        changed.partition(|result| result.verdict == Verdict::Passed);
    [(passing.len(), "passing"), (failing.len(), "failing")].map(|(checks, word)| match checks {
        0 => None,
        checks => Some(format!("{} {word} now", count(checks as u64, "check"))),
    })
}

fn judge_tree(subject: &Loop, facts: &Facts) -> (Progress, String) {
    if !facts.seen.judges_progress(&subject.contract) {
        return (Progress::Unknown, String::new());
    }
    let Some(tree) = &facts.tree else {
        return (Progress::Unknown, "the tree could not be examined".to_owned());
    };
    let (state, changes) = (&subject.state, facts.changes.as_ref());
    let words = changes.and_then(Changes::change_words);
    if changes.is_some_and(|changes| changes.elsewhere > 0) {
        return (Progress::Made, words.unwrap_or_default());
    }
    if state.seen().tree().as_ref() == Some(&tree.identity) {
        let head = changes.and_then(|changes| changes.head.as_ref());
        let is_committed = head.is_some_and(|head| head.commits > 0 && head.holds_work);
        return match words {
            Some(words) if is_committed => (Progress::Made, words),
            _ => (Progress::None, "nothing changed".to_owned()),
        };
    }
    if state.seen().tree().is_some()
        && state.seen().trees().snapshot().is_some() != tree.snapshot.is_some()
    {
        return (Progress::Unknown, "the tree was examined differently before".to_owned());
    }
    match state.seen().trees().seen_after(&tree.identity) {
        Some(0) => (Progress::None, "the tree is as it was before iteration 1".to_owned()),
        Some(after) => (Progress::None, format!("the tree is as it was after iteration {after}")),
        None if changes.is_some_and(|changes| changes.white_space) => {
            (Progress::None, "only white space changed".to_owned())
        }
        None => (Progress::Made, words.unwrap_or_else(|| "files changed".to_owned())),
    }
}

#[cfg(test)]
#[path = "judge_progress_tests.rs"]
mod progress_tests;
#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "judge_of_tests_tests.rs"]
mod tests_of_tests;

#[cfg(test)]
#[path = "failure_tests.rs"]
mod failure_tests;
