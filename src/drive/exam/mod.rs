//! The exam of a loop: notes at its start what its checks rest on, and where the loop would end
//! `completed` looks for what differs. If a part that is held does, the checks as they were run on
//! the final tree in a scratch folder. It judges nothing.

mod present;

use std::collections::BTreeSet;
use std::time::Duration;

use self::present::{HeldParts, parts};
pub use self::present::{Present, files};
use crate::drive::boundary::check::Within;
use crate::drive::scratch::ScratchFolder;
use crate::engine::evidence::Verdict;
use crate::engine::evidence::test_report::{TestMemories, is_no_worse};
use crate::engine::exam::finding::{ExamFinding, OldExam};
use crate::engine::exam::trial::passed;
use crate::engine::exam::{ExamMode, ExamPart, NAMED_MAX};
use crate::engine::record::Loop;
use crate::engine::text::named;
use crate::parse::exam::settings::{may_be_settings, runner_part};
use crate::world::clock::Deadline;
use crate::world::git::snapshots::Snapshots;
use crate::world::process::Stop;
use crate::world::store::Home;

/// The longest that the checks as they were may take.
const OLD_EXAM: Duration = Duration::from_secs(15 * 60);
/// The most changed files that are read for settings of test runners.
const SETTINGS_READ: usize = 200;
/// The name among the snapshots of a loop of the tree that holds the exam.
const EXAM: &str = "exam";

/// Holds the exam to what it is in a snapshot. Returns what the user should know of it.
pub fn begin(home: &Home, record: &mut Loop, commit: Option<String>) -> Vec<String> {
    record.state.exam = None;
    let Some(commit) = commit.filter(|_| !record.contract.checks.is_empty()) else {
        return Vec::new();
    };
    let snapshots = Snapshots::of(home, record);
    let (present, mut notes) = match Present::look(&snapshots, record, &commit) {
        Ok(present) => (present, Vec::new()),
        Err(why) => {
            let note = format!(
                "what the checks rest on is not fully held, because git cannot list it: {why}"
            );
            let parts = parts(&snapshots, record, &commit).unwrap_or_default();
            (Present { commit, parts }, vec![note])
        }
    };
    let there = present.parts.iter().filter(|(_, text)| !text.is_empty());
    let names: Vec<String> = there.map(|(part, _)| part.name()).collect();
    if record.contract.exam == ExamMode::Hold && !names.is_empty() {
        let names = named(&names, NAMED_MAX);
        notes.push(format!(
            "what the checks rest on is held until the loop ends: {names} \
             (if it changes, the checks as they are now decide whether the work is done)"
        ));
    }
    let _ = snapshots.name(&record.id, EXAM, &present.commit);
    record.state.exam = Some(present.commit);
    notes
}

/// Whether the snapshot is in this working tree's store.
pub fn is_here(home: &Home, record: &Loop, commit: &str) -> bool {
    let snapshots = Snapshots::of(home, record);
    // A check that names no file asks for none.
    snapshots.holds(commit, ".").is_ok() && parts(&snapshots, record, commit).is_ok()
}

/// Lets the exam, and the tree as found, follow what crew itself did to the tree since the last
/// boundary, as by a rebase.
/// What had differed before stays as it was held.
pub fn follow(home: &Home, before: &Loop, record: &mut Loop) {
    let Some(was) = &before.state.trees.snapshot else { return };
    let Some(now) = record.state.trees.snapshot.clone().filter(|now| now != was) else { return };
    let snapshots = Snapshots::of(home, before);
    let _ = snapshots.follow(&before.id, was, &now);
    let Some(exam) = &before.state.exam else { return };
    let held = || {
        let [held, then] = [exam, was].map(|commit| parts(&snapshots, before, commit));
        let mut files = differing(&held?, &then?).files;
        files.extend(changed_settings(&snapshots, exam, was)?);
        let held = snapshots.with_files_of(&now, exam, &files)?;
        snapshots.name(&before.id, EXAM, &held)?;
        Ok::<_, String>(held)
    };
    if let Ok(held) = held() {
        record.state.exam = Some(held);
    }
}

/// What the checks rest on in the tree as the agent left it; `snapshot` is that of the tree. It is
/// looked at before the checks run, because they could take back what the agent planted.
pub fn left(home: &Home, subject: &Loop, snapshot: Option<&str>) -> Result<Present, String> {
    let snapshots = Snapshots::of(home, subject);
    let commit = snapshot.map_or_else(|| Ok(snapshots.take()?.commit), |it| Ok(it.to_owned()));
    commit.and_then(|commit| Present::look(&snapshots, subject, &commit))
}

/// Looks for what differs in the exam; `None` where there is none to compare with. `left` is what
/// the agent left, and `checked` the snapshot of what the checks made of it; `tests` is what is
/// remembered of the tests. `latest` is when the boundary has to be over, and `stop` ends a check
/// early; then the exam as it was did not pass.
pub fn look(
    home: &Home,
    subject: &Loop,
    left: Result<Present, String>,
    checked: Option<&str>,
    tests: &TestMemories,
    latest: Option<Deadline>,
    stop: Stop<'_>,
) -> Option<ExamFinding> {
    let exam = subject.state.exam.as_ref()?;
    let compared = || {
        let (snapshots, left) = (Snapshots::of(home, subject), left?);
        let held = parts(&snapshots, subject, exam)?;
        let (mut finding, mut files) = (ExamFinding::default(), BTreeSet::new());
        let checked = checked.map(|now| Present::look(&snapshots, subject, now)).transpose()?;
        let checked = checked.map(|checked| checked.with_places_of(&left));
        for now in std::iter::once(&left).chain(&checked) {
            finding.settings.extend(changed_settings(&snapshots, exam, &now.commit)?);
            let differing = differing(&held, &now.parts);
            finding.changed.extend(differing.parts.iter().map(ExamPart::name));
            files.extend(differing.files);
        }
        for names in [&mut finding.settings, &mut finding.changed] {
            names.sort();
            names.dedup();
        }
        if !finding.changed.is_empty() && subject.contract.exam == ExamMode::Hold {
            let tree = snapshots.with_files_of(&left.commit, exam, &files)?;
            finding.old = Some(old_exam(home, subject, &tree, tests, latest, stop));
        }
        Ok::<_, String>(finding)
    };
    Some(compared().unwrap_or_else(|why| unseen(home, subject, exam, why)))
}

/// The finding where the trees could not be compared, as on a full disk: a refusal, unless the
/// checks are known to have rested on nothing.
fn unseen(home: &Home, subject: &Loop, exam: &str, why: String) -> ExamFinding {
    let held = parts(&Snapshots::of(home, subject), subject, exam);
    let is_free = held.is_ok_and(|held| held.values().all(String::is_empty));
    let is_held = subject.contract.exam == ExamMode::Hold && !is_free;
    let old = is_held.then(|| OldExam::Unseen(why.clone()));
    ExamFinding { old, uncompared: Some(why), ..ExamFinding::default() }
}

/// A tree with what the checks rest on as the loop found it, where that differs.
pub fn as_held(snapshots: &Snapshots, subject: &Loop, now: &str) -> Result<String, String> {
    let Some(exam) = &subject.state.exam else { return Ok(now.to_owned()) };
    let [held, present] = [&**exam, now].map(|commit| parts(snapshots, subject, commit));
    let Differing { parts, files } = differing(&held?, &present?);
    if parts.is_empty() { Ok(now.to_owned()) } else { snapshots.with_files_of(now, exam, &files) }
}

/// The files whose part that test runners obey differs.
fn changed_settings(snapshots: &Snapshots, exam: &str, now: &str) -> Result<Vec<String>, String> {
    let mut paths = snapshots.paths(exam, now)?;
    paths.retain(|path| may_be_settings(path));
    // Of very many nobody would read which: all of them count.
    if paths.len() > SETTINGS_READ {
        return Ok(paths);
    }
    let part = |commit: &str, path: &str| {
        let text = snapshots.content(commit, path)?;
        Ok::<_, String>(text.and_then(|text| runner_part(path, &text)))
    };
    let mut changed = Vec::new();
    for path in paths {
        if part(exam, &path)? != part(now, &path)? {
            changed.push(path);
        }
    }
    Ok(changed)
}

/// What differs in what the checks rest on.
struct Differing {
    /// The held parts with another text.
    parts: Vec<ExamPart>,
    /// Their files, and those that came in their place: a makefile that is read before the other.
    files: BTreeSet<String>,
}

fn differing(before: &HeldParts, after: &HeldParts) -> Differing {
    let differs = |part: &&ExamPart| before.get(*part) != after.get(*part);
    let held: Vec<ExamPart> = before.keys().filter(differs).cloned().collect();
    let either = before.keys().chain(after.keys()).filter(differs);
    Differing { files: either.map(|part| part.file.clone()).collect(), parts: held }
}

/// Runs the checks on a tree in which they are as they were.
fn old_exam(
    home: &Home,
    subject: &Loop,
    tree: &str,
    tests: &TestMemories,
    latest: Option<Deadline>,
    stop: Stop<'_>,
) -> OldExam {
    let time = latest.map_or(OLD_EXAM, |latest| OLD_EXAM.min(latest.left()));
    let within = Within::at_most(time, "the checks as they were took too long");
    let laid_out = || {
        let mut scratch = ScratchFolder::open(home, subject, within, stop)?;
        scratch.lay_out(tree)?;
        Ok::<_, String>(scratch)
    };
    let scratch = match laid_out() {
        Ok(scratch) => scratch,
        Err(why) => return OldExam::NotRun(why),
    };
    for check in &subject.contract.checks {
        let result = match scratch.run(check) {
            Ok(result) => result,
            Err(why) => return OldExam::NotRun(why),
        };
        let how = format!("`{}` {}", check.run, result.what_happened());
        match result.verdict {
            Verdict::Passed if passed(&result) => {}
            Verdict::Passed => return OldExam::Failed(format!("{how} without a passing test")),
            Verdict::Failed if check.no_worse && is_no_worse(tests, &result) => {}
            Verdict::Failed | Verdict::TimedOut => return OldExam::Failed(how),
            Verdict::Unknown => return OldExam::NotRun(how),
        }
    }
    OldExam::Passed
}
