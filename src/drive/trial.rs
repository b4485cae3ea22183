//! The trial of a finished job: runs its checks in a scratch folder on the final tree, then with
//! the work taken away, then on the final tree once more. It judges nothing, and never touches the
//! working tree of the user.

use anyhow::{Result, bail};

use super::scratch::ScratchTerms;
use super::start::place;
use super::test_changes::{self, Changes};
use crate::engine::evidence::CheckResult;
use crate::engine::record::{Check, Loop, Role, Status};
use crate::engine::test_changes::Baseline;
use crate::engine::test_changes::trial::{Trial, cannot_be_told_apart, failing_test, judge};
use crate::parse::test_changes::inline::inline_tests;
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
    let left = test_changes::left(home, record, last.as_deref());
    let tests = test_memory::read(home, id);
    let (subject, now) = (record, last.as_deref());
    let terms = ScratchTerms { home, subject, now, latest: None, stop };
    let finding = test_changes::look(terms, left, (&[], None), &tests).unwrap_or_default();
    let doubts = Some(finding.doubts.join("; ")).filter(|doubts| !doubts.is_empty());
    let against = finding.refusal.or(doubts);
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
            [] if snapshots.paths(&found, now).is_ok_and(|paths| paths.is_empty()) => {
                "nothing was changed".to_owned()
            }
            [] => "nothing but tests was changed".to_owned(),
            mixed => cannot_be_told_apart(mixed),
        }));
    }
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

/// What a loop changed that is neither a test nor check configuration, and outside what was
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
    let revealed = snapshots.revealed(&subject.id, found, now)?;
    let [before, after] = [found, now].map(|commit| Baseline {
        commit: commit.to_owned(),
        ..subject.state.baseline.clone().unwrap_or_default()
    });
    let changes = Changes::between(snapshots, subject, &before, &after)?;
    let is_work = |path: &String| !revealed.contains(path) && !path.contains('\u{fffd}');
    let files: Vec<String> = changes.work.into_iter().filter(is_work).collect();
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
