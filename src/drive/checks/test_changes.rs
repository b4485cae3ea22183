//! Test changes: records at a loop's start what its tests and check configuration are. If the loop
//! would end `completed`, its checks run on the final tree with these restored.
//! `engine/test_changes` judges the result.

mod changes;
mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::drive::checks::scratch::ScratchTerms;
use engine::evidence::CheckResult;
use engine::evidence::test_run::{TestMemories, TestReport, TestRun, TestStatus};
use engine::record::{Loop, LoopId, TreeSeen};
use engine::test_changes::kind::{NamedPaths, ignored_patterns, is_test, may_be_secret};
use engine::test_changes::{Baseline, TestChangesFinding};
use engine::text::{is_word_of, join_first_names};
use readers::parse::test_changes::files::{names_files, words_of_settings};
use readers::parse::test_changes::{named_paths, path_below};
use world::files::{disk, tree};
use world::git::commit::DRAFTS;
use world::git::snapshots::checkout::is_output;
use world::git::snapshots::protect::PROTECTED;
use world::git::snapshots::{FILE_BYTES, FOUND, Snapshots};
use world::store::{Home, hash};

/// The name of the snapshot with the tests as the loop found them.
const BASELINE: &str = "test_changes";
/// The maximum number of files of a folder compared.
const FILES_MAX: usize = 2000;
/// The largest file that is compared by a hash, in bytes.
const HASHED_BYTES: u64 = 64 << 20;
/// The maximum number of names of a folder examined, and the most bytes of settings.
const FOLDER_NAMES_MAX: usize = 10_000;
const SETTINGS_BYTES: u64 = 256 << 10;
/// The maximum number of names in a doubt.
const NAMES_MAX: usize = 5;

/// The paths of tests, or of check configuration, that differ. Each is restored as a whole or, if
/// the rest of the file is work, replaced by this text.
type Originals = BTreeMap<String, Option<String>>;

/// The differences between the tree that a loop found and the tree that it left.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    tests: Originals,
    configuration: Originals,
    /// All other files, including those that are only in part a test or configuration.
    work: BTreeSet<String>,
    /// The scripts among both that a check names by path.
    scripts: BTreeSet<String>,
    /// Whether all tests and settings that differ are new, and are tests or parts of manifests.
    are_first_tests: bool,
    /// Reasons to lower the proof that need no run.
    doubts: Vec<String>,
}

/// Takes a snapshot as the tree whose tests and check configuration count as the original ones.
/// Returns notes for the user.
pub fn begin_baseline(home: &Home, record: &mut Loop, commit: Option<String>) -> Vec<String> {
    record.state.replace_baseline(None);
    let Some(commit) = commit else { return Vec::new() };
    if record.contract.checks.is_empty() {
        return Vec::new();
    }
    let snapshots = Snapshots::of(home, record);
    let (baseline, note) = match look_at(&snapshots, record, &commit) {
        Ok(baseline) => (baseline, None),
        Err(why) => {
            let note = format!("ignored check configuration is not recorded: {why}");
            (Baseline { commit, ..Baseline::default() }, Some(note))
        }
    };
    let _ = snapshots.name(&record.id, BASELINE, &baseline.commit);
    record.state.replace_baseline(Some(baseline));
    note.into_iter().collect()
}

/// Whether the store of this working tree has the snapshot of a baseline.
pub fn is_here(home: &Home, record: &Loop, baseline: &Baseline) -> bool {
    Snapshots::of(home, record).entries(&baseline.commit).is_ok()
}

/// Remembers the tree as it was `seen` after a time in which no agent worked, and applies the
/// changes made in that time, by crew itself (as in a rebase) or by a person, to the baseline and
/// to the tree as found. Earlier changes of the agent stay out of both, except where a person
/// changed the file again.
pub fn follow_tree(home: &Home, record: &mut Loop, seen: Option<TreeSeen>, is_by_person: bool) {
    let was = record.state.seen().trees().snapshot().clone();
    record.state.remember_tree(seen);
    let (Some(was), Some(now)) = (was, record.state.seen().trees().snapshot().clone()) else {
        return;
    };
    if was == now {
        return;
    }
    let snapshots = Snapshots::of(home, record);
    let id = &record.id;
    let change = TreeChange { snapshots, was, now, is_by_person };
    if let Some(mut drafts) = change.snapshots.named(id, DRAFTS) {
        change.move_named(id, DRAFTS, &mut drafts);
    }
    if let Some(mut found) = change.snapshots.as_found(id) {
        change.move_named(id, FOUND, &mut found);
    }
    if let (Some(protected), false) = (&mut record.protected, is_by_person) {
        change.move_named(id, PROTECTED, &mut protected.snapshot);
    }
    if let Some(mut baseline) = record.state.seen().baseline().clone() {
        change.move_named(id, BASELINE, &mut baseline.commit);
        record.state.replace_baseline(Some(baseline));
    }
}

/// A change of the tree while no agent was at work, from one snapshot to another.
struct TreeChange {
    snapshots: Snapshots,
    was: String,
    now: String,
    is_by_person: bool,
}

impl TreeChange {
    /// Moves a named snapshot to one with this change, if that can be made.
    fn move_named(&self, id: &LoopId, name: &str, snapshot: &mut String) {
        if let Ok(moved) = self.apply_to(snapshot)
            && self.snapshots.name(id, name, &moved).is_ok()
        {
            *snapshot = moved;
        }
    }

    /// The snapshot with this change, except in files that the agent had changed before.
    fn apply_to(&self, found: &str) -> Result<String, String> {
        let Self { snapshots, was, now, is_by_person } = self;
        let mut agents = snapshots.paths(found, was)?;
        if *is_by_person {
            let persons = snapshots.paths(was, now)?;
            agents.retain(|path| !persons.contains(path));
        }
        let agents: Vec<&str> = agents.iter().map(String::as_str).collect();
        snapshots.mixed(now, found, &agents)
    }
}

/// The tests and check configuration as the agent left them; `snapshot` is the snapshot of the
/// tree. They are read before the checks run, because a check could undo what the agent planted.
pub fn find_baseline(
    home: &Home,
    subject: &Loop,
    snapshot: Option<&str>,
) -> Result<Baseline, String> {
    let snapshots = Snapshots::of(home, subject);
    let commit = match snapshot {
        Some(commit) => commit.to_owned(),
        None => snapshots.take()?.commit,
    };
    look_at(&snapshots, subject, &commit)
}

/// Compares what the agent `left` with what the loop found and, if tests or check configuration
/// differ, runs the checks with the original ones. `results` are the results of the checks on the
/// final tree, `checked` is the snapshot after them, and `memories` are their remembered tests,
/// including the last run's after the end. `None` if there is nothing to compare with.
pub fn find_changes(
    terms: ScratchTerms<'_>,
    left: Result<Baseline, String>,
    (results, checked): (&[CheckResult], Option<&str>),
    memories: &TestMemories,
) -> Option<TestChangesFinding> {
    let subject = terms.subject;
    let baseline = subject.state.seen().baseline().as_ref()?;
    let snapshots = Snapshots::of(terms.home, subject);
    let compared = left.and_then(|left| {
        let mut changes = Changes::between(&snapshots, subject, baseline, &left)?;
        // A script of `setup` refuses nothing: work may need another one.
        changes.scripts = &changes.scripts - &setup_scripts(subject);
        Ok((left, changes))
    });
    let (left, changes) = match compared {
        Ok(compared) => compared,
        Err(why) => return Some(TestChangesFinding::unknown(&why)),
    };
    let now = results.iter().filter_map(|result| Some((&result.run, result.test_run.as_ref()?)));
    let then = memories.iter().map(|(run, memory)| (run, &memory.last));
    let last: BTreeMap<_, _> = if results.is_empty() { then.collect() } else { now.collect() };
    let mut finding = if changes.are_none() {
        TestChangesFinding { doubts: taken_away(&last, memories), ..TestChangesFinding::default() }
    } else {
        runs::run_originals(terms, &left, baseline, &changes, memories, &last)
    };
    let hashes = &baseline.hashes;
    let paths: BTreeSet<&String> = hashes.keys().chain(left.hashes.keys()).collect();
    let changed = paths.into_iter().filter(|path| hashes.get(*path) != left.hashes.get(*path));
    let others: Vec<String> = changed.cloned().collect();
    finding.doubts.extend(doubt_text("what checks run or read was changed", &others));
    finding.doubts.extend(changes.doubts);
    let changed = checked.map_or_else(Vec::new, |checked| {
        changed_by_checks(&snapshots, baseline, [terms.now.unwrap_or(checked), checked])
    });
    finding.doubts.extend(doubt_text("the tree changed while the checks ran", &changed));
    finding.also_passes &= finding.doubts.is_empty();
    Some(finding)
}

/// The files that changed while a check ran: the check then saw something other than what the loop
/// leaves. New files are the output of checks.
fn changed_by_checks(
    snapshots: &Snapshots,
    found: &Baseline,
    [left, checked]: [&str; 2],
) -> Vec<String> {
    if left == checked {
        return Vec::new();
    }
    let mut changed = snapshots.changed(left, checked).unwrap_or_default();
    changed.retain(|change| !change.is_new && !found.named.written.contains(&change.path));
    let paths = changed.into_iter().map(|change| change.path);
    paths.filter(|path| !is_report(snapshots, &found.commit, path)).collect()
}

/// Whether tools write this path anew each time: a lock file, output, or a report of tests that is
/// not itself one of the tests as `found`.
fn is_report(snapshots: &Snapshots, found: &str, path: &str) -> bool {
    const REPORTS: &str = "xml log html lcov info tap trs csv out txt";
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let is_lock = ["lock", "-lock.json", "-lock.yaml"].iter().any(|end| name.ends_with(end));
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_written_anew = path.split('/').any(is_output) || is_word_of(REPORTS, ending);
    is_lock || is_written_anew && !(is_test(path) && snapshots.texts(found, &[path]) != [""])
}

/// The tests that disappeared or are newly skipped although no test file changed: in a file with
/// both tests and work nothing else shows that.
fn taken_away(last: &BTreeMap<&String, &TestRun>, memories: &TestMemories) -> Vec<String> {
    let reports = last.iter().filter_map(|(check, run)| {
        let report = TestReport::from_run(memories.get(*check), run);
        let is_less = !report.gone().is_empty() || !report.newly_skipped().is_empty();
        if is_less { report.taken_away() } else { None }
    });
    reports.collect()
}

fn doubt_text(what: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        None
    } else {
        Some(format!("{what}: {}", join_first_names(names, NAMES_MAX)))
    }
}

fn is_gone(test: &str, run: &TestRun) -> bool {
    run.tests.get(test).map_or_else(|| run.names_all(), |status| *status == TestStatus::Skipped)
}

/// Everything relevant in the tree of the snapshot `commit`, including ignored files.
fn look_at(snapshots: &Snapshots, subject: &Loop, commit: &str) -> Result<Baseline, String> {
    let checkout = &subject.place.checkout;
    let entries = snapshots.entries(commit)?;
    let mut named = named_by(subject);
    let mut outside = linked_files(checkout, &entries, &mut named.tests);
    outside.retain(|path| was_there(subject, path));
    // The compiled files of Python count as well.
    let places = ignored_patterns().chain([":(glob)**/*.pyc".to_owned()]);
    let mut ignored = snapshots.ignored(&places.collect::<Vec<_>>())?;
    outside.extend(files_read_by_python(checkout, &ignored));
    ignored.retain(|path| !path.ends_with('/') && !path.ends_with("pyc"));
    let known: BTreeSet<&String> = entries.iter().map(|(_, path)| path).collect();
    for path in named.run.iter().chain(&named.tests).filter(|path| !known.contains(path)) {
        let is_put_back = !path.starts_with('/')
            && is_installed(&checkout.join(path), path)
            && snapshots.ignores(path)?;
        let paths = if is_put_back { &mut ignored } else { &mut outside };
        paths.push(path.clone());
    }
    let (secret, plain): (Vec<String>, Vec<String>) =
        ignored.into_iter().partition(|path| may_be_secret(path));
    let outside = outside.into_iter().chain(secret);
    let hashes = outside.map(|path| (path.clone(), hash_of(checkout, &path))).collect();
    let plain: Vec<String> =
        plain.into_iter().filter(|path| disk::exists(&checkout.join(path))).collect();
    Ok(Baseline { commit: snapshots.with_present(commit, &plain)?, named, hashes })
}

/// Whether an ignored file can be restored in the scratch folder. Build outputs are made again
/// there, and a link to an absolute path leads out of it.
fn is_installed(file: &Path, path: &str) -> bool {
    let is_made = path.split('/').any(|part| is_output(part) || part.ends_with("venv"));
    !is_made && !tree::is_absolute_link(file) && disk::size(file) <= FILE_BYTES
}

/// Whether a program or a repository existed when the loop began: a later one is something that the
/// loop lacked.
fn was_there(subject: &Loop, path: &String) -> bool {
    let found = subject.state.seen().baseline().as_ref();
    found.is_none_or(|found| found.named.run.contains(path) || found.hashes.contains_key(path))
}

/// The paths in the working tree that a command names.
fn named_in(subject: &Loop, run: &str) -> NamedPaths {
    let checkout = &subject.place.checkout;
    let below = subject.place.folder.strip_prefix(checkout).unwrap_or(Path::new(""));
    named_paths(run, &below.to_string_lossy(), &checkout.to_string_lossy(), &|path| {
        disk::is_file(&checkout.join(path))
    })
}

/// The scripts that `setup` runs; a list of packages to install is work.
fn setup_scripts(subject: &Loop) -> BTreeSet<String> {
    let setup = subject.contract.trial.setup.as_deref().unwrap_or_default();
    let mut scripts = named_in(subject, setup).run;
    scripts.retain(|path| path.ends_with("sh") || !path.contains('.'));
    scripts
}

/// The paths in the working tree that the commands of the checks and `setup` name; links are
/// followed.
fn named_by(subject: &Loop) -> NamedPaths {
    let checkout = &subject.place.checkout;
    let mut named = NamedPaths { run: setup_scripts(subject), ..NamedPaths::default() };
    for check in &subject.contract.checks {
        named.extend(named_in(subject, &check.run));
    }
    named.loaded = loaded_by_settings(checkout, &named);
    let installed = installed_programs(subject).into_iter();
    named.run.extend(installed.filter(|path| was_there(subject, path)));
    for paths in [&mut named.run, &mut named.compared, &mut named.tests, &mut named.loaded] {
        let targets: Vec<String> =
            paths.iter().filter_map(|path| link_target(checkout, path)).collect();
        paths.extend(targets);
    }
    named
}

/// The path in the checkout that a link points to; `None` for any other file.
fn link_target(checkout: &Path, path: &str) -> Option<String> {
    let real = disk::real_path(&checkout.join(path)).ok()?;
    let real = real.strip_prefix(disk::real_path(checkout).ok()?).ok()?.to_str()?.to_owned();
    (real != path).then_some(real)
}

/// The files that settings of runners name, where the checks run.
fn loaded_by_settings(checkout: &Path, named: &NamedPaths) -> BTreeSet<String> {
    let mut loaded = BTreeSet::new();
    for folder in &named.folders {
        let place = checkout.join(folder);
        let names = disk::names(&place, FOLDER_NAMES_MAX).into_iter();
        for name in names.filter(|name| names_files(name)) {
            let text = disk::read_text(&place.join(&name), SETTINGS_BYTES).ok().flatten();
            let words = text.map_or_else(Vec::new, |text| words_of_settings(&name, &text));
            // It may itself be a link to a file of any name.
            let paths = words.iter().chain([&name]).filter_map(|word| path_below(folder, word));
            loaded.extend(paths.filter(|path| disk::is_file(&checkout.join(path))));
        }
    }
    loaded
}

/// A hash of a file's content, of a large file's size and time, or of the tests in a folder; "gone"
/// for a missing one.
fn hash_of(checkout: &Path, path: &str) -> String {
    let file = checkout.join(path);
    match disk::read(&file, HASHED_BYTES) {
        Ok(Some(bytes)) => hash(&bytes),
        Ok(None) => "gone".to_owned(),
        Err(_) if disk::is_folder(&file) => {
            let files = tree::list_files(&file, FILES_MAX).into_iter();
            let files = files.map(|file| format!("{path}/{}", file.display()));
            let tests = files.filter(|file| {
                let mut parts = file.split('/');
                is_test(file)
                    && !parts
                        .any(|part| is_output(part) || part == ".git" || part == "node_modules")
            });
            let hashed = tests.map(|test| test.clone() + &hash_of(checkout, &test));
            hash(hashed.collect::<String>().as_bytes())
        }
        Err(_) => format!("{:?}", disk::stamp(&file)),
    }
}

// Finds what runs tests, or is one, where no snapshot or no name shows it: in folders that git
// ignores as a whole, in repositories inside, and behind links.

/// Folders of installed programs, below the root of a checkout or where its checks run.
const PROGRAMS: [&str; 4] = ["node_modules/.bin", "vendor/bin", ".venv/bin", "venv/bin"];
/// The maximum number of bytes in a `package.json`.
const PACKAGE_BYTES: u64 = 4 << 20;

/// The installed programs that a word of a check's command names, or of a script that a package
/// manager runs for it.
fn installed_programs(subject: &Loop) -> Vec<String> {
    let (checkout, folder) = (&subject.place.checkout, &subject.place.folder);
    let runs: Vec<&str> = subject.contract.checks.iter().map(|check| &*check.run).collect();
    let mut text = runs.join(" ");
    if ["npm", "yarn", "bun"].iter().any(|manager| text.contains(manager)) {
        let package = disk::read_text(&folder.join("package.json"), PACKAGE_BYTES).ok().flatten();
        let package = serde_json::from_slice::<Value>(package.unwrap_or_default().as_bytes());
        text += &package.unwrap_or_default()["scripts"].to_string();
    }
    let mut installed = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c)) {
        for place in [checkout, folder] {
            let programs = PROGRAMS.map(|below| place.join(below).join(word)).into_iter();
            installed.extend(programs.filter(|program| disk::is_file(program)).filter_map(
                |program| Some(program.strip_prefix(checkout).ok()?.to_str()?.to_owned()),
            ));
        }
    }
    installed
}

/// The repositories inside, and the links that have the name of a test and lead out of the
/// checkout; what other such links lead to is added to the `tests`. `entries` are the mode and the
/// path of everything in the snapshot.
fn linked_files(
    checkout: &Path,
    entries: &[(String, String)],
    tests: &mut BTreeSet<String>,
) -> Vec<String> {
    let top = disk::real_path(checkout).unwrap_or_default();
    let mut outside = Vec::new();
    for (mode, path) in entries {
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_test_link = mode == "120000" && (is_test(name) || is_test(&format!("{name}/a")));
        let real = if is_test_link { disk::real_path(&checkout.join(path)).ok() } else { None };
        if mode == "160000" && disk::exists(&checkout.join(path).join(".git"))
            || real.as_ref().is_some_and(|real| !real.starts_with(&top))
        {
            outside.push(path.clone());
        } else if let Some(real) = real.filter(|real| *real != top) {
            let paths = entries.iter().map(|(_, path)| path);
            tests.extend(paths.filter(|path| top.join(path).starts_with(&real)).cloned());
        }
    }
    outside
}

/// The ignored files that Python executes before any test, or in place of a source: modules that it
/// loads at its start, and compiled files that it does not compare with their source.
fn files_read_by_python(checkout: &Path, ignored: &[String]) -> Vec<String> {
    let folders = ignored.iter().filter(|path| path.ends_with('/')).cloned();
    let libs = folders.clone().map(|folder| folder + "lib/");
    let versions = libs.clone().flat_map(|folder| list_below(checkout, &folder));
    let versions = versions.map(|version| version + "/");
    let packages = versions.clone().map(|version| version + "site-packages/");
    let folders = folders.chain(libs).chain(versions).chain(packages);
    let mut executed: Vec<String> =
        folders.flat_map(|folder| list_below(checkout, &folder)).collect();
    executed.extend_from_slice(ignored);
    executed.retain(|path| {
        let is_compiled = path.ends_with("pyc") && !path.contains("/site-packages/");
        matches!(path.rsplit('/').next(), Some("sitecustomize.py" | "usercustomize.py"))
            || is_compiled && is_unchecked(&checkout.join(path))
    });
    executed
}

/// The paths of everything in a folder, whose path ends with `/`.
fn list_below(checkout: &Path, folder: &str) -> Vec<String> {
    let names = disk::names(&checkout.join(folder), FOLDER_NAMES_MAX).into_iter();
    names.map(|name| format!("{folder}{name}")).collect()
}

/// Whether Python uses a compiled file without checking its source.
fn is_unchecked(file: &Path) -> bool {
    let mut header = [0; 8];
    let file = disk::open_file(file).ok().flatten();
    file.is_some_and(|mut file| file.read_exact(&mut header).is_ok()) && header[4..] == [1, 0, 0, 0]
}
