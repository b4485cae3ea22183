//! What the checks rest on in one state of the working tree: the files of a snapshot, and those
//! that ignore rules keep out of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::engine::exam::ExamPart;
use crate::engine::fleet::landing::INCLUDE;
use crate::engine::record::Loop;
use crate::parse::exam::settings::{self, may_be_settings};
use crate::parse::exam::{SourceTree, rests_on, test_files};
use crate::world::env;
use crate::world::files::{disk, tree};
use crate::world::git::snapshots::Snapshots;

/// How often ignored files are looked for that others lead to.
const IGNORED_IN_A_ROW: usize = 4;

/// What the checks rest on, with its text.
pub type HeldParts = BTreeMap<ExamPart, String>;

/// What the checks rest on in the working tree as it is now.
#[derive(Debug, Clone)]
pub struct Present {
    /// The snapshot with the ignored files that checks and test runners obey.
    pub commit: String,
    pub parts: HeldParts,
}

/// The files of one snapshot.
struct OfSnapshot<'a> {
    snapshots: &'a Snapshots,
    commit: &'a str,
    program_folders: Vec<String>,
    /// The working tree, if the snapshot is of its present state: no snapshot has empty folders.
    checkout: Option<&'a Path>,
    /// Why git could not be asked, which does not mean that there is no such file.
    failed: RefCell<Option<String>>,
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
        Self { snapshots, commit, program_folders, checkout: None, failed: RefCell::default() }
    }

    fn known<T: Default>(&self, asked: Result<T, String>) -> T {
        asked.unwrap_or_else(|why| {
            *self.failed.borrow_mut() = Some(why);
            T::default()
        })
    }

    /// What the checks rest on, and the paths at which something of it could be.
    fn parts(&self, subject: &Loop) -> Result<(HeldParts, BTreeSet<String>), String> {
        let (folder, mut parts, mut missed) = (below(subject), HeldParts::new(), BTreeSet::new());
        for check in &subject.contract.checks {
            let found = rests_on(&check.run, &folder, self);
            parts.extend(found.parts);
            missed.extend(found.missed);
        }
        self.failed.take().map_or(Ok((parts, missed)), Err)
    }
}

impl SourceTree for OfSnapshot<'_> {
    fn text(&self, path: &str) -> Option<String> {
        if path.is_empty() { None } else { self.known(self.snapshots.content(self.commit, path)) }
    }

    fn is_there(&self, path: &str) -> bool {
        let is_on_disk = self.checkout.is_some_and(|checkout| disk::exists(&checkout.join(path)));
        is_on_disk || !path.is_empty() && self.known(self.snapshots.holds(self.commit, path))
    }

    fn program_folders(&self) -> &[String] {
        &self.program_folders
    }
}

impl Present {
    /// The present state, of which `commit` is the snapshot. No ignore rule that the agent adds may
    /// hide what counts.
    pub fn look(snapshots: &Snapshots, subject: &Loop, commit: &str) -> Result<Self, String> {
        let mut commit = commit.to_owned();
        let places = settings::patterns().chain([format!(":(top,literal){INCLUDE}")]);
        let ignored = snapshots.ignored(&places.collect::<Vec<_>>())?;
        let checkout = &subject.place.checkout;
        let counts = |path: &String| may_be_settings(path) || path == INCLUDE;
        let mut files: BTreeSet<String> = ignored.into_iter().filter(counts).collect();
        for file in fixed(subject).filter(|file| is_in(checkout, file)) {
            if !snapshots.holds(&commit, &file)? {
                files.insert(file);
            }
        }
        let mut known = BTreeSet::new();
        for _ in 0..IGNORED_IN_A_ROW {
            let there: Vec<String> =
                files.iter().filter(|file| is_in(checkout, file)).cloned().collect();
            commit = snapshots.with_present(&commit, &there)?;
            known.extend(std::mem::take(&mut files));
            let mut tree = OfSnapshot::new(snapshots, subject, &commit);
            tree.checkout = Some(checkout);
            let (parts, missed) = tree.parts(subject)?;
            let missed = missed.into_iter().filter(|it| !it.is_empty() && !known.contains(it));
            let places: Vec<String> = missed.map(|path| format!(":(literal){path}")).collect();
            let ignored =
                if places.is_empty() { Vec::new() } else { snapshots.ignored(&places)? };
            let is_asked_for = |path: &String| places.contains(&format!(":(literal){path}"));
            files.extend(ignored.into_iter().filter(is_asked_for));
            if files.is_empty() {
                return Ok(Self { commit, parts });
            }
        }
        Err("ignored files link to others without end".to_owned())
    }

    /// Takes the places of files as they are in another state: the checks may fill them.
    pub fn with_places_of(mut self, other: &Self) -> Self {
        let places = other.parts.iter().filter(|(part, _)| part.is_place());
        self.parts.extend(places.map(|(part, text)| (part.clone(), text.clone())));
        self
    }
}

/// Whether there is a file, or a link, that no link above it leads out of its folder.
fn is_in(checkout: &Path, file: &str) -> bool {
    let kind = |path: &Path| tree::kind(&checkout.join(path));
    let mut above = Path::new(file).ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
    matches!(kind(Path::new(file)), "file" | "program" | "link")
        && above.all(|it| kind(it) == "folder")
}

/// Where folders that are ignored as a whole may hold settings of test runners.
fn fixed(subject: &Loop) -> impl Iterator<Item = String> {
    let below = below(subject);
    let above: Vec<String> =
        Path::new(&below).ancestors().map(|it| it.to_string_lossy().into_owned()).collect();
    above.into_iter().flat_map(|folder| {
        let joined = |name: &str| Path::new(&folder).join(name).to_string_lossy().into_owned();
        settings::IN_OWN_FOLDERS.map(joined)
    })
}

/// What the checks rest on in a snapshot.
pub fn parts(snapshots: &Snapshots, subject: &Loop, commit: &str) -> Result<HeldParts, String> {
    Ok(OfSnapshot::new(snapshots, subject, commit).parts(subject)?.0)
}

/// The files that the checks rest on, or are given as tests, in a snapshot.
pub fn files(
    snapshots: &Snapshots,
    subject: &Loop,
    commit: &str,
) -> Result<BTreeSet<String>, String> {
    let (tree, folder) = (OfSnapshot::new(snapshots, subject, commit), below(subject));
    let checks = subject.contract.checks.iter();
    let given: BTreeSet<String> =
        checks.flat_map(|check| test_files(&check.run, &folder, &tree)).collect();
    let (held, _) = tree.parts(subject)?;
    let held = held.into_iter().filter(|(_, text)| !text.is_empty()).map(|(part, _)| part.file);
    Ok(given.into_iter().chain(held).collect())
}

/// The folder of the checks, from the root of the checkout.
fn below(subject: &Loop) -> String {
    let folder = subject.place.folder.strip_prefix(&subject.place.checkout);
    folder.unwrap_or(Path::new("")).to_string_lossy().into_owned()
}
