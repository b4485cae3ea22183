//! The exam of a loop: notes at its start what its checks rest on, and where the loop would end
//! `completed` looks for what differs. If a part that is held does, the checks as they were run on
//! the final tree in a scratch folder. It judges nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::drive::boundary::check::Within;
use crate::drive::scratch::ScratchFolder;
use crate::engine::evidence::Verdict;
use crate::engine::evidence::test_report::is_no_worse;
use crate::engine::exam::finding::{ExamFinding, OldExam};
use crate::engine::exam::trial::passed;
use crate::engine::exam::{ExamMode, ExamPart, NAMED_MAX};
use crate::engine::record::Loop;
use crate::engine::text::named;
use crate::parse::exam::settings::{self, may_be_settings, runner_part};
use crate::parse::exam::{SourceTree, rests_on, test_files};
use crate::world::clock::Deadline;
use crate::world::env;
use crate::world::git::snapshots::Snapshots;
use crate::world::process::Stop;
use crate::world::store::{Home, test_memory};

/// The longest that the checks as they were may take.
const OLD_EXAM: Duration = Duration::from_secs(15 * 60);

/// The most changed files that are read for settings of test runners.
const SETTINGS_READ: usize = 200;

/// The name among the snapshots of a loop of the tree that holds the exam.
const EXAM: &str = "exam";
/// How often ignored files are looked for that others lead to.
const IGNORED_IN_A_ROW: usize = 4;

/// What the checks rest on, with its text.
type Parts = BTreeMap<ExamPart, String>;

/// The files of one snapshot.
struct OfSnapshot<'a> {
    snapshots: &'a Snapshots,
    commit: &'a str,
    program_folders: Vec<String>,
    /// The paths at which there was none.
    missed: RefCell<Vec<String>>,
}

impl<'a> OfSnapshot<'a> {
    fn new(snapshots: &'a Snapshots, subject: &Loop, commit: &'a str) -> Self {
        let path = subject.state.owner.search_path.clone().or_else(|| env::text("PATH"));
        let checkout = &subject.place.checkout;
        let inside = |folder: &str| {
            let folder = Path::new(folder);
            let inside = if folder.is_absolute() {
                folder.strip_prefix(checkout).ok()?.to_owned()
            } else {
                Path::new(&below(subject)).join(folder)
            };
            inside.to_str().map(str::to_owned)
        };
        let program_folders = path.unwrap_or_default().split(':').filter_map(inside).collect();
        Self { snapshots, commit, program_folders, missed: RefCell::default() }
    }
}

impl SourceTree for OfSnapshot<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let text = self.snapshots.content(self.commit, path);
        if text.is_none() {
            self.missed.borrow_mut().push(path.to_owned());
        }
        text
    }

    fn program_folders(&self) -> &[String] {
        &self.program_folders
    }
}

/// Holds the exam to what it is in the last snapshot. Returns what the user should know of it.
pub fn begin(home: &Home, record: &mut Loop) -> Option<String> {
    record.state.exam = None;
    let commit = record.state.trees.snapshot.clone();
    let commit = commit.filter(|_| !record.contract.checks.is_empty())?;
    let snapshots = Snapshots::of(home, record);
    let (exam, parts) = with_ignored(&snapshots, record, &commit)
        .unwrap_or_else(|_| (commit.clone(), parts(&snapshots, record, &commit)));
    let _ = snapshots.name(&record.id, EXAM, &exam);
    record.state.exam = Some(exam);
    let there = parts.iter().filter(|(_, text)| !text.is_empty());
    let names: Vec<String> = there.map(|(part, _)| part.name()).collect();
    let is_held = record.contract.exam == ExamMode::Hold && !names.is_empty();
    is_held.then(|| {
        format!(
            "held: {} (where they change, the checks as they were decide)",
            named(&names, NAMED_MAX)
        )
    })
}

/// Lets the exam follow what crew itself did to the tree since the last boundary, as by a rebase.
/// What had differed before stays as it was held.
pub fn follow(home: &Home, before: &Loop, record: &mut Loop) {
    let (Some(exam), Some(was)) = (&before.state.exam, &before.state.trees.snapshot) else {
        return;
    };
    let Some(now) = record.state.trees.snapshot.clone().filter(|now| now != was) else { return };
    let snapshots = Snapshots::of(home, before);
    let _ = snapshots.follow(&before.id, was, &now);
    let [held, then] = [exam, was].map(|commit| parts(&snapshots, before, commit));
    let mut files = differing(&held, &then).files;
    files.extend(changed_settings(&snapshots, exam, was).unwrap_or_default());
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let held = snapshots.mixed(&now, exam, &files);
    if let Ok(held) = held {
        let _ = snapshots.name(&before.id, EXAM, &held);
        record.state.exam = Some(held);
    }
}

/// What all checks rest on in a snapshot.
fn parts(snapshots: &Snapshots, subject: &Loop, commit: &str) -> Parts {
    parts_of(&OfSnapshot::new(snapshots, subject, commit), subject)
}

fn parts_of(tree: &OfSnapshot<'_>, subject: &Loop) -> Parts {
    let (folder, checks) = (below(subject), subject.contract.checks.iter());
    checks.flat_map(|check| rests_on(&check.run, &folder, tree)).collect()
}

/// A snapshot of the present tree with the ignored files that checks and test runners obey, and
/// what the checks rest on in it: an ignore rule that the agent adds must hide none of them.
fn with_ignored(
    snapshots: &Snapshots,
    subject: &Loop,
    commit: &str,
) -> Result<(String, Parts), String> {
    let mut commit = commit.to_owned();
    for _ in 0..IGNORED_IN_A_ROW {
        let tree = OfSnapshot::new(snapshots, subject, &commit);
        let parts = parts_of(&tree, subject);
        let missed = tree.missed.take().into_iter().map(|path| format!(":(literal){path}"));
        let places: Vec<String> = missed.chain(settings::patterns()).collect();
        let with = snapshots.with_ignored(&commit, &places)?;
        if with == commit {
            return Ok((with, parts));
        }
        commit = with;
    }
    let parts = parts(snapshots, subject, &commit);
    Ok((commit, parts))
}

/// The files that the checks rest on, or are given as tests, in a snapshot.
pub fn files(snapshots: &Snapshots, subject: &Loop, commit: &str) -> BTreeSet<String> {
    let (tree, folder) = (OfSnapshot::new(snapshots, subject, commit), below(subject));
    let checks = subject.contract.checks.iter();
    let given = checks.flat_map(|check| test_files(&check.run, &folder, &tree));
    let held = parts(snapshots, subject, commit).into_keys().map(|part| part.file);
    given.chain(held).collect()
}

/// The folder of the checks, from the root of the checkout.
fn below(subject: &Loop) -> String {
    let folder = subject.place.folder.strip_prefix(&subject.place.checkout);
    folder.unwrap_or(Path::new("")).to_string_lossy().into_owned()
}

/// Looks for what differs in the exam; `None` where there is none to compare with. `left` is the
/// snapshot of what the agent left, and `checked` that of what the checks made of it. `latest` is
/// when the boundary has to be over, and `stop` ends a check early; then the exam as it was did not
/// pass.
pub fn look(
    home: &Home,
    subject: &Loop,
    [left, checked]: [Option<&str>; 2],
    latest: Option<Deadline>,
    stop: Stop<'_>,
) -> Option<ExamFinding> {
    let exam = subject.state.exam.as_ref()?;
    let compared = || {
        let snapshots = Snapshots::of(home, subject);
        let left = match left {
            Some(left) => left.to_owned(),
            None => snapshots.take()?.commit,
        };
        let (mut finding, mut files) = (ExamFinding::default(), BTreeSet::new());
        let held = parts(&snapshots, subject, exam);
        for now in [Some(&*left), checked.filter(|it| *it != left)].into_iter().flatten() {
            let (now, parts) = with_ignored(&snapshots, subject, now)?;
            finding.settings.extend(changed_settings(&snapshots, exam, &now)?);
            let differing = differing(&held, &parts);
            finding.changed.extend(differing.parts.iter().map(ExamPart::name));
            files.extend(differing.files);
        }
        for names in [&mut finding.settings, &mut finding.changed] {
            names.sort();
            names.dedup();
        }
        if !finding.changed.is_empty() && subject.contract.exam == ExamMode::Hold {
            let tree = snapshots.with_files_of(&left, exam, &files)?;
            finding.old = Some(old_exam(home, subject, &tree, latest, stop));
        }
        Ok::<_, String>(finding)
    };
    Some(compared().unwrap_or_else(|why| unseen(home, subject, exam, why)))
}

/// The finding where the trees could not be compared, as on a full disk: a refusal, unless the
/// checks are known to have rested on nothing.
fn unseen(home: &Home, subject: &Loop, exam: &str, why: String) -> ExamFinding {
    let snapshots = Snapshots::of(home, subject);
    let is_known = snapshots.paths(exam, exam).is_ok();
    let is_free = is_known && parts(&snapshots, subject, exam).is_empty();
    let is_held = subject.contract.exam == ExamMode::Hold && !is_free;
    let old = is_held.then(|| OldExam::Unseen(why.clone()));
    ExamFinding { old, uncompared: Some(why), ..ExamFinding::default() }
}

/// A tree with what the checks rest on as the loop found it, where that differs.
pub fn as_held(snapshots: &Snapshots, subject: &Loop, now: &str) -> Result<String, String> {
    let Some(exam) = &subject.state.exam else { return Ok(now.to_owned()) };
    let [held, present] = [&**exam, now].map(|commit| parts(snapshots, subject, commit));
    let Differing { parts, files } = differing(&held, &present);
    if parts.is_empty() { Ok(now.to_owned()) } else { snapshots.with_files_of(now, exam, &files) }
}

/// The files whose part that test runners obey differs.
fn changed_settings(snapshots: &Snapshots, exam: &str, now: &str) -> Result<Vec<String>, String> {
    let mut paths = snapshots.paths(exam, now)?;
    let part = |commit: &str, path: &str| runner_part(path, &snapshots.content(commit, path)?);
    paths.retain(|path| may_be_settings(path));
    // Of very many nobody would read which: all of them count.
    if paths.len() <= SETTINGS_READ {
        paths.retain(|path| part(exam, path) != part(now, path));
    }
    Ok(paths)
}

/// What differs in what the checks rest on.
struct Differing {
    /// The held parts with another text.
    parts: Vec<ExamPart>,
    /// Their files, and those that came in their place: a makefile that is read before the other.
    files: BTreeSet<String>,
}

fn differing(before: &Parts, after: &Parts) -> Differing {
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
    let memories = test_memory::read(home, &subject.id);
    for check in &subject.contract.checks {
        let result = match scratch.run(check) {
            Ok(result) => result,
            Err(why) => return OldExam::NotRun(why),
        };
        let how = format!("`{}` {}", check.run, result.what_happened());
        match result.verdict {
            Verdict::Passed if passed(&result) => {}
            Verdict::Passed => return OldExam::Failed(format!("{how} without a passing test")),
            Verdict::Failed if check.no_worse && is_no_worse(&memories, &result) => {}
            Verdict::Failed | Verdict::TimedOut => return OldExam::Failed(how),
            Verdict::Unknown => return OldExam::NotRun(how),
        }
    }
    OldExam::Passed
}
