//! The trial of a finished job: runs its checks in a scratch folder on the final tree, then with
//! the work taken away, then on the final tree once more. It judges nothing, and never touches the
//! working tree of the user.

use std::time::Duration;

use anyhow::{Result, bail};

use super::boundary::check::Within;
use super::exam;
use super::scratch::ScratchFolder;
use super::start::place;
use crate::engine::boundary::protect::Cover;
use crate::engine::evidence::CheckResult;
use crate::engine::exam::finding::ExamFinding;
use crate::engine::exam::test_path::is_test;
use crate::engine::exam::trial::{
    Trial, TriedCheck, cannot_be_told_apart, failing_test, judge, passed,
};
use crate::engine::record::{Check, Loop, Role, Status};
use crate::engine::text::period;
use crate::parse::exam::inline::inline_tests;
use crate::world::clock::{self, Deadline};
use crate::world::git::snapshots::Snapshots;
use crate::world::process::Stop;
use crate::world::store::{self, Home, LOCK_WAIT, test_memory};

/// Why nothing can be laid out in the scratch folder.
pub const NO_SNAPSHOTS: &str = "there are no snapshots here";

/// Tries the work of a loop. `now` is the snapshot of what the agent left; `latest` is when the
/// boundary has to be over, and `stop` ends a check early: then the work is not proven.
pub fn run(
    home: &Home,
    subject: &Loop,
    now: Option<&str>,
    latest: Option<Deadline>,
    stop: Stop<'_>,
) -> Trial {
    let Some(now) = now else { return Trial::Impossible(NO_SNAPSHOTS.to_owned()) };
    tried(home, subject, now, latest, stop).unwrap_or_else(|unable| unable)
}

/// Tries the work of a loop that nothing drives, as it was at the end of its last iteration, and
/// journals the result. The checks get the environment of this process, which is a person's: what a
/// session recorded guards against its agent, and differs from any other terminal's.
pub fn by_hand(home: &Home, record: &Loop, stop: Stop<'_>) -> Result<Trial> {
    let record = &Loop { environment: None, ..record.clone() };
    let id = &record.id;
    if matches!(record.state.status, Status::Running | Status::Waiting) {
        bail!("loop {id} is {}\nhint: crew pause {id} first", record.status_word());
    }
    if let Some(gone) = place::gone(&record.place) {
        bail!("loop {id} cannot be tried: {gone}");
    }
    if record.contract.checks.is_empty() {
        bail!("loop {id} has no check that could fail without its work");
    }
    let evidence = record.state.evidence.as_ref();
    if let Some(check) = evidence.and_then(|evidence| evidence.failing().next()) {
        bail!(
            "`{}` fails with the work, so there is nothing to prove\nhint: crew show {id}",
            check.run
        );
    }
    let snapshots = Snapshots::of(home, record);
    let last = snapshots.at_the_end_of(id, u32::MAX).map(|(_, commit)| commit);
    let left = exam::left(home, record, last.as_deref());
    let tests = test_memory::read(home, id);
    let finding = exam::look(home, record, left, None, &tests, None, stop);
    let refused = finding.as_ref().and_then(ExamFinding::refusal);
    let lowered = finding.filter(ExamFinding::lowers_the_proof);
    let against = refused.or_else(|| lowered.and_then(|finding| finding.remark()));
    let trial = match against {
        Some(why) => Trial::Failed(why),
        None => run(home, record, last.as_deref(), None, stop),
    };
    let text = match &trial {
        Trial::Proven(how) => format!("proven by hand: {how}"),
        Trial::Failed(why) | Trial::Impossible(why) => format!("not proven by hand: {why}"),
    };
    let held = store::hold(home, id, LOCK_WAIT)?;
    held.note(&held.load()?, clock::now(), text)?;
    Ok(trial)
}

fn tried(
    home: &Home,
    subject: &Loop,
    now: &str,
    latest: Option<Deadline>,
    stop: Stop<'_>,
) -> std::result::Result<Trial, Trial> {
    let snapshots = Snapshots::of(home, subject);
    let found = tree_as_found(&snapshots, subject).map_err(Trial::Impossible)?;
    let Work { files, mixed } =
        work(&snapshots, subject, &found, now).map_err(Trial::Impossible)?;
    if files.is_empty() {
        return Err(Trial::Failed(match &mixed[..] {
            [] => "nothing but tests was changed".to_owned(),
            mixed => cannot_be_told_apart(mixed),
        }));
    }
    let now = &exam::as_held(&snapshots, subject, now).map_err(Trial::Impossible)?;
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let without = snapshots.mixed(now, &found, &files).map_err(Trial::Impossible)?;
    let within = within(subject.contract.trial.timeout_s, latest);
    let mut scratch =
        ScratchFolder::open(home, subject, within, stop).map_err(Trial::Impossible)?;
    let fails = |with: &CheckResult, without: &CheckResult| failing_test(with, without).is_ok();
    let runs = all_runs(&mut scratch, &checks(subject), now, &without, fails);
    Ok(judge(&runs.map_err(Trial::Impossible)?, &mixed))
}

/// The checks that are tried: those a claim needs, else all.
fn checks(subject: &Loop) -> Vec<Check> {
    let of = |role| subject.contract.of_role(role).cloned().collect::<Vec<_>>();
    let verify = of(Role::Verify);
    if verify.is_empty() { subject.contract.checks.clone() } else { verify }
}

/// The snapshot of the tree as a loop found it.
pub fn tree_as_found(snapshots: &Snapshots, subject: &Loop) -> std::result::Result<String, String> {
    let found = snapshots.as_found(&subject.id);
    found.ok_or_else(|| "the tree as the loop found it is not known".to_owned())
}

/// The time for all runs in the scratch folder: `timeout_s`, 0 for no limit of their own, but no
/// more than is left until `latest`.
pub fn within(timeout_s: u64, latest: Option<Deadline>) -> Within {
    let own = Some(timeout_s).filter(|own| *own > 0).map(Duration::from_secs);
    let left = latest.map(Deadline::left);
    let (time, why) = match (own, left) {
        (Some(own), left) if left.is_none_or(|left| own <= left) => {
            (own, format!("the trial took {}", period(timeout_s)))
        }
        (_, left) => (
            left.unwrap_or(UNLIMITED),
            "the checks of this iteration used up their time".to_owned(),
        ),
    };
    Within::at_most(time, &why)
}

/// In place of a limit that is switched off. Each check still has its own.
const UNLIMITED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Runs every check on the final tree, those that pass on the tree without the work, and the first
/// that `fails` there on the final tree again.
pub fn all_runs(
    scratch: &mut ScratchFolder<'_>,
    checks: &[Check],
    now: &str,
    without: &str,
    fails: fn(&CheckResult, &CheckResult) -> bool,
) -> std::result::Result<Vec<TriedCheck>, String> {
    scratch.lay_out(now)?;
    let mut runs = controls(scratch, checks)?;
    let none_passes = |runs: &[TriedCheck]| !runs.iter().any(|it| passed(&it.control));
    if none_passes(&runs) && scratch.set_up_again()? {
        runs = controls(scratch, checks)?;
    }
    if none_passes(&runs) {
        return Ok(runs);
    }
    scratch.lay_out(without)?;
    let mut failing = None;
    for (at, check) in checks.iter().enumerate() {
        if !passed(&runs[at].control) {
            continue;
        }
        let result = scratch.run(check)?;
        let is_found = fails(&runs[at].control, &result);
        runs[at].without = Some(result);
        if is_found {
            failing = Some(at);
            break;
        }
    }
    if let Some(at) = failing {
        scratch.lay_out(now)?;
        runs[at].again = Some(scratch.run(&checks[at])?);
    }
    Ok(runs)
}

fn controls(
    scratch: &ScratchFolder<'_>,
    checks: &[Check],
) -> std::result::Result<Vec<TriedCheck>, String> {
    let control = |check| Ok(TriedCheck { control: scratch.run(check)?, ..TriedCheck::default() });
    checks.iter().map(control).collect()
}

/// What a loop changed outside the tests, outside what its checks rest on, and outside what was
/// ignored when it began.
struct Work {
    /// What can be taken away.
    files: Vec<String>,
    /// What holds tests that changed, too, and so stays.
    mixed: Vec<String>,
}

fn work(
    snapshots: &Snapshots,
    subject: &Loop,
    found: &str,
    now: &str,
) -> std::result::Result<Work, String> {
    let globs = &subject.contract.trial.tests;
    let (tests, protected) = (Cover::of(globs), Cover::of(&subject.contract.protect));
    let mut stay = snapshots.revealed(&subject.id, found, now)?;
    for commit in [found, now] {
        stay.extend(exam::files(snapshots, subject, commit)?);
    }
    let mut files = snapshots.paths(found, now)?;
    files.retain(|path| {
        let is_other = is_test(path) || stay.contains(path);
        !is_other && !tests.covers(path) && !protected.covers(path) && !path.contains('\u{fffd}')
    });
    let inline = |commit: &str| -> Vec<String> {
        let paths: Vec<&str> = files.iter().map(String::as_str).collect();
        let texts = snapshots.texts(commit, &paths);
        paths.iter().zip(&texts).map(|(path, text)| inline_tests(path, text)).collect()
    };
    let differ: Vec<bool> = inline(found).iter().zip(inline(now)).map(|(a, b)| *a != b).collect();
    let mut differ = differ.into_iter();
    let (mixed, files) = files.into_iter().partition(|_| differ.next().unwrap_or(false));
    Ok(Work { files, mixed })
}
