//! Searches for a better proof of a loop that nothing drives: by hand, or after the end of a
//! session whose checks take long. The result goes into the record; it never changes how the loop
//! ended.

use std::time::Duration;

use anyhow::{Error, Result, bail};

use crate::drive::checks::scratch::ScratchTerms;
use crate::drive::checks::test_changes;
use crate::drive::checks::trial::{look_as_found, run_trial};
use crate::drive::end;
use crate::drive::find::{own_process, owner_is};
use crate::drive::tree::place;
use engine::boundary::belief::{ProofRuns, end_after_runs};
use engine::record::{CheckMemory, Loop, LoopId, Outcome, Proof, Status};
use engine::refuse;
use engine::test_changes::{BaselineResult, WithoutWork};
use world::clock::{self, Deadline};
use world::git::snapshots::Snapshots;
use world::process::{Call, Stop};
use world::store::{self, Home, view};

/// How long the background process waits for the record to name it.
const NAMED_WITHIN: Duration = Duration::from_secs(10);

/// Tries the work of a loop as it was at the end of its last iteration. The checks get the
/// environment of this process, which is a person's: what a session recorded guards against its
/// agent, and differs from any other terminal's. Returns the trial and the proof of the loop, if it
/// is completed.
pub fn prove_by_hand(
    home: &Home,
    record: &Loop,
    stop: Stop<'_>,
) -> Result<(WithoutWork, Option<Proof>)> {
    let record = &Loop { environment: None, ..record.clone() };
    let id = &record.id;
    if matches!(record.state.status(), Status::Running | Status::Waiting) {
        refuse!(format!("loop {id} is {}", record.status_word()), "crew pause {id} first");
    }
    if let Some(gone) = place::missing_place(&record.place) {
        return Err(Error::new(gone).context(format!("loop {id} cannot be tried")));
    }
    if record.contract.checks.is_empty() {
        bail!("loop {id} has no check that could fail without its work");
    }
    let evidence = record.state.seen().evidence().as_ref();
    if let Some(check) = evidence.and_then(|evidence| evidence.failing().next()) {
        refuse!(
            format!("`{}` fails with the work, so there is nothing to prove", check.run),
            "crew show {id}"
        );
    }
    let last = last_snapshot(home, record);
    let mut left = test_changes::find_baseline(home, record, last.as_deref());
    let proof = record.state.end().ending().as_ref().and_then(|ending| ending.proof);
    if let (Ok(left), Some(found)) = (&mut left, record.state.seen().baseline())
        && matches!(proof, Some(Proof::Checked | Proof::Proven))
    {
        // They were compared at the end; what differs since then is a person's.
        left.hashes.clone_from(&found.hashes);
    }
    let tests = store::read_tests(home, id);
    let terms = proof_terms(home, record, last.as_deref(), stop);
    let finding = test_changes::find_changes(terms, left, (&[], None), &tests).unwrap_or_default();
    let doubts = Some(finding.doubts.join("; ")).filter(|doubts| !doubts.is_empty());
    let against = finding.refusal_reason().or(doubts);
    let trial = against.clone().map_or_else(|| run_trial(terms), WithoutWork::Failed);
    let as_found = if against.is_none() { look_back(terms, Some(&trial)) } else { None };
    let text = match &trial {
        WithoutWork::Proven(how) => format!("proven by hand: {how}"),
        WithoutWork::Failed(why) | WithoutWork::Impossible(why) => {
            format!("not proven by hand: {why}")
        }
    };
    if stop() {
        bail!("it was interrupted, and the proof of loop {id} is as it was");
    }
    store::note_in_journal(home, id, text)?;
    let runs = ProofRuns { without_work: Some(trial.clone()), baseline: as_found, against };
    Ok((trial, update_proof(home, id, &runs)?))
}

/// Starts a process that searches for the proof of a completed loop, and names it in the record. It
/// outlives the client. If it cannot be started, the proof stays as it is, and the journal has the
/// reason.
pub fn start_in_background(home: &Home, id: &LoopId) {
    let Ok(record) = store::load(home, id) else { return };
    if record.outcome() != Some(Outcome::Completed) {
        return;
    }
    if let Err(error) = start_prover(home, &record) {
        let what = format!("no better proof is searched for in the background: {error:#}");
        let _ = store::note_in_journal(home, id, what);
    }
}

fn start_prover(home: &Home, record: &Loop) -> Result<()> {
    let call = Call::crew(home, &record.place.folder)?.args(["drive", record.id.as_str()]);
    let process = call.detach(&home.loop_file(&record.id, "prove.log"))?;
    end::amend_record(
        home,
        &record.id,
        "a better proof is searched for in the background",
        |record| {
            record.state.begin_proof(process);
        },
    )
}

/// The loop for which this process was started, once the record names this process.
pub fn find_own_proof(home: &Home, id: &LoopId) -> Result<Option<Loop>> {
    let record = store::load(home, id)?;
    if record.is_live() {
        return Ok(None);
    }
    let me = own_process()?;
    Ok(Deadline::after(NAMED_WITHIN).poll(Duration::from_millis(20), || {
        let found = store::load(home, id).ok()?;
        let mut owner = me.clone();
        owner.process = found.state.end().prover().clone()?;
        owner_is(&owner, &me.process).then_some(found)
    }))
}

/// Searches for the proof of an ended session, and updates the record.
pub fn prove_in_background(home: &Home, record: &Loop, stop: Stop<'_>) -> Result<()> {
    let last = last_snapshot(home, record);
    let terms = proof_terms(home, record, last.as_deref(), stop);
    let trial = if record.contract.runs_without_work() { Some(run_trial(terms)) } else { None };
    let as_found = look_back(terms, trial.as_ref());
    if !stop() {
        update_proof(
            home,
            &record.id,
            &ProofRuns { without_work: trial, baseline: as_found, against: None },
        )?;
    }
    Ok(())
}

/// Runs the checks on the tree as found, if only a failure there can raise the proof above
/// `passing`.
fn look_back(terms: ScratchTerms<'_>, trial: Option<&WithoutWork>) -> Option<BaselineResult> {
    let record = terms.subject;
    let proof = record.state.end().ending().as_ref().and_then(|ending| ending.proof);
    let is_proven = matches!(trial, Some(WithoutWork::Proven(_)));
    let is_open = proof == Some(Proof::Passing) && !record.state.seen().checked_as_found();
    if is_open && !is_proven { Some(look_as_found(terms)) } else { None }
}

/// The snapshot that the last iteration left.
pub fn last_snapshot(home: &Home, record: &Loop) -> Option<String> {
    let last = Snapshots::of(home, record).at_the_end_of(&record.id, u32::MAX);
    last.map(|(_, commit)| commit)
}

/// The terms of all runs, with one limit that starts now.
pub fn proof_terms<'a>(
    home: &'a Home,
    subject: &'a Loop,
    now: Option<&'a str>,
    stop: Stop<'a>,
) -> ScratchTerms<'a> {
    let took = subject.state.seen().checks().values().map(CheckMemory::elapsed_ms).sum();
    ScratchTerms { home, subject, now, latest: None, shared: None, stop }.beginning_now(took)
}

/// Records the results of the runs of a completed loop, and returns its proof; `None` for any other
/// loop.
fn update_proof(home: &Home, id: &LoopId, runs: &ProofRuns) -> Result<Option<Proof>> {
    let record = store::load(home, id)?;
    let Some(proof) = end_after_runs(&record, runs).and_then(|ending| ending.proof) else {
        return Ok(None);
    };
    end::amend_record(
        home,
        id,
        &format!("its proof is `{}` after the end", proof.label()),
        |record| {
            let Some(ending) = end_after_runs(record, runs) else { return };
            let knows_the_start =
                runs.baseline.as_ref().is_some_and(|found| found.why_not().is_none());
            record.state.end_proof(ending, clock::now().wall, knows_the_start);
        },
    )?;
    let _ = view::write_view(&store::load(home, id)?);
    Ok(Some(proof))
}
