//! The trial of a finished job: runs its checks in a scratch folder on the final tree, then with
//! the work taken away, then on the final tree once more. It judges nothing, and never touches the
//! working tree of the user.

use super::scratch::ScratchTerms;
use super::test_changes::Changes;
use crate::engine::record::{Check, Loop, Role};
use crate::engine::test_changes::Baseline;
use crate::engine::test_changes::trial::{Trial, cannot_be_told_apart, judge};
use crate::parse::test_changes::inline::inline_tests;
use crate::world::git::snapshots::Snapshots;

/// Tries the work of a loop. What ends a check early leaves it unproven.
pub fn run(terms: ScratchTerms<'_>) -> Trial {
    tried(terms).unwrap_or_else(|unable| unable)
}

fn tried(terms: ScratchTerms<'_>) -> Result<Trial, Trial> {
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
    let runs = terms.open().and_then(|mut scratch| {
        Ok((scratch.try_each(&checks(subject), now, &without)?, scratch.is_linked()))
    });
    let (runs, is_linked) = runs.map_err(Trial::Impossible)?;
    Ok(judge(&runs, &mixed, is_linked))
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

fn work(snapshots: &Snapshots, subject: &Loop, found: &str, now: &str) -> Result<Work, String> {
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
