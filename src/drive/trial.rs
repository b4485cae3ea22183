//! The trial of a finished job: runs its checks in a scratch folder on the final tree, then with
//! the work taken away, then on the final tree once more. It judges nothing, and never touches the
//! working tree of the user.

use anyhow::{Result, bail};

use super::exam;
use super::scratch::ScratchTerms;
use super::start::place;
use crate::engine::boundary::protect::Cover;
use crate::engine::evidence::CheckResult;
use crate::engine::exam::test_path::is_test;
use crate::engine::exam::trial::{Trial, cannot_be_told_apart, failing_test, judge};
use crate::engine::record::{Check, Loop, Role, Status};
use crate::parse::exam::inline::inline_tests;
use crate::world::clock;
use crate::world::git::snapshots::Snapshots;
use crate::world::process::Stop;
use crate::world::store::{self, Home, LOCK_WAIT, test_memory};

/// Tries the work of a loop. What ends a check early leaves it unproven.
pub fn run(terms: ScratchTerms<'_>) -> Trial {
    tried(terms).unwrap_or_else(|unable| unable)
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
    let refused = finding.as_ref().and_then(|it| it.refusal(&record.accept_exam()));
    let doubts = finding.map_or_else(Vec::new, |finding| finding.doubts());
    let against = refused.or_else(|| (!doubts.is_empty()).then(|| doubts.join("; ")));
    let (subject, now) = (record, last.as_deref());
    let terms = ScratchTerms { home, subject, now, latest: None, stop };
    let trial = against.map_or_else(|| run(terms), Trial::Failed);
    let text = match &trial {
        Trial::Proven(how) => format!("proven by hand: {how}"),
        Trial::Failed(why) | Trial::Impossible(why) => format!("not proven by hand: {why}"),
    };
    let held = store::hold(home, id, LOCK_WAIT)?;
    held.note(&held.load()?, clock::now(), text)?;
    Ok(trial)
}

fn tried(terms: ScratchTerms<'_>) -> std::result::Result<Trial, Trial> {
    let (found, now) = terms.trees().map_err(Trial::Impossible)?;
    let ScratchTerms { home, subject, .. } = terms;
    let snapshots = Snapshots::of(home, subject);
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
    let fails = |with: &CheckResult, without: &CheckResult| failing_test(with, without).is_ok();
    let runs = terms
        .open()
        .and_then(|mut scratch| scratch.try_each(&checks(subject), now, &without, fails));
    Ok(judge(&runs.map_err(Trial::Impossible)?, &mixed))
}

/// The checks that are tried: those a claim needs, else all.
fn checks(subject: &Loop) -> Vec<Check> {
    let of = |role| subject.contract.of_role(role).cloned().collect::<Vec<_>>();
    let verify = of(Role::Verify);
    if verify.is_empty() { subject.contract.checks.clone() } else { verify }
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
