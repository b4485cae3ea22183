//! Creates the private git dir, under another name at first, and removes what is too old or too
//! much later. It copies the repository's settings about how the disk behaves, and none that runs a
//! program or alters content. Objects are hard links to the repository's files, which never change,
//! including those it borrows, or copies if the disk has no hard links.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{FILE_BYTES, LINKS, LOCK_WAIT, Snapshots, make_folder, remove_folder, write_file};
use crate::clock::{Deadline, Stopwatch};
use crate::files::disk::{self, Durability};
use crate::files::tree;
use crate::git::clone::{Ends, share_objects};
use crate::git::command::IndexPaths;
use crate::git::{Git, exclude_files, find_refusal};
use crate::logs::oldest_kept;
use crate::store::removal::{LISTS, bytes_below};
use crate::store::{self, Home, StoreError};
use engine::record::{Driver, Loop};
use readers::parse::git::{BRANCHES, zero_ended, zero_ended_paths, zero_list};

/// The longest time that filling may take, in general and in a client's hook, which the client ends
/// after 30 s.
const FILL: Duration = Duration::from_secs(120);
const FILL_IN_A_HOOK: Duration = Duration::from_secs(15);
/// The largest file of ignore rules, in bytes.
const EXCLUDES_BYTES: u64 = 1 << 20;
/// The maximum number of files that a new git dir takes over from an old one.
const FILES_MAX: usize = 1_000_000;
/// The data taken over from the user's repository.
struct Theirs {
    objects: PathBuf,
    index: PathBuf,
    is_sha256: bool,
    /// The lines of the section `core` about how the disk behaves.
    core: String,
    converts_all: bool,
}

/// Creates the private git dir, unless a working one exists.
pub fn fill_git_dir(snapshots: &Snapshots, subject: &Loop) -> Result<Filled, String> {
    let parent = snapshots.folder.parent().unwrap_or(Path::new("/"));
    make_folder(parent)?;
    let _lock = snapshots.hold()?;
    if snapshots.are_kept()
        && set_up(snapshots, subject).is_ok()
        && let Ok(taken) = snapshots.taken()
    {
        return Ok(Filled { note: None, watched: count_watched(snapshots, &taken.commit) });
    }
    let within = match subject.driver() {
        Driver::Session => FILL_IN_A_HOOK,
        Driver::Process => FILL,
    };
    let (watch, deadline) = (Stopwatch::start(), Deadline::after(within));
    let aside = Snapshots {
        folder: snapshots.folder.with_extension("new"),
        deadline: Some(deadline),
        ..snapshots.clone()
    };
    let made = make_git_dir(&aside, subject, deadline).and_then(|bytes| {
        carry_over(snapshots, &aside, deadline);
        tree::exchange_folders(&aside.folder, &snapshots.folder)
            .map_err(|error| error.to_string())?;
        Ok(bytes)
    });
    let _ = tree::remove_folder(&aside.folder);
    let (bytes, elapsed_ms) = (made?, watch.elapsed_ms());
    let note = if elapsed_ms > LONG_MS || bytes > MUCH_BYTES {
        let (megabytes, seconds) = (bytes.div_ceil(1_000_000), elapsed_ms.div_ceil(1000));
        let what =
            if bytes > 0 { format!("{megabytes} MB taken over") } else { "filled".to_owned() };
        Some(format!("snapshots: {what} in {seconds} s"))
    } else {
        None
    };
    Ok(Filled {
        note,
        watched: snapshots.last().and_then(|taken| count_watched(snapshots, &taken)),
    })
}

/// The number of files in a snapshot, for a folder without a repository.
fn count_watched(snapshots: &Snapshots, taken: &str) -> Option<usize> {
    if disk::exists(&snapshots.checkout.join(".git")) {
        return None;
    }
    Some(snapshots.entries(taken).ok()?.len())
}

/// Copies the snapshots of the old git dir to a new one, as far as they can be read, so that one
/// failure does not lose them.
fn carry_over(snapshots: &Snapshots, new: &Snapshots, deadline: Deadline) {
    for folder in ["objects", "refs/crew"].iter().chain(&LISTS) {
        let (from, to) = (snapshots.folder.join(folder), new.folder.join(folder));
        for file in tree::list_files(&from, FILES_MAX) {
            let to = to.join(&file);
            let made = make_folder(to.parent().unwrap_or(&to));
            let _ = made.map(|()| tree::share_file(&from.join(&file), &to, deadline));
        }
    }
}

/// Creates the git dir. Returns the bytes of the objects that it takes over.
fn make_git_dir(snapshots: &Snapshots, subject: &Loop, deadline: Deadline) -> Result<u64, String> {
    remove_folder(&snapshots.folder)?;
    for folder in ["objects/pack", "objects/info", "refs/heads"] {
        make_folder(&snapshots.folder.join(folder))?;
    }
    write_file(&snapshots.folder.join("HEAD"), "ref: refs/heads/none")?;
    let mut bytes = 0;
    if let Some(theirs) = set_up(snapshots, subject)? {
        let (own, ends) = (snapshots.folder.join("objects"), Ends { deadline, stop: &|| false });
        bytes = share_objects(&theirs.objects, &own, ends).map_err(|error| error.to_string())?;
        if seed_index(snapshots, subject, &theirs).is_err() {
            let _ = disk::remove(&snapshots.folder.join("index"));
        }
    }
    snapshots.commit()?;
    snapshots.taken()?;
    Ok(bytes)
}

/// Writes the configuration, the attributes and the ignore rules.
fn set_up(snapshots: &Snapshots, subject: &Loop) -> Result<Option<Theirs>, String> {
    let theirs = read_theirs(snapshots, subject)?;
    let core = theirs.as_ref().map(|theirs| &*theirs.core).unwrap_or_default();
    let (version, extensions) = match &theirs {
        Some(theirs) if theirs.is_sha256 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        _ => (0, ""),
    };
    let version = format!("[core]\n\trepositoryFormatVersion = {version}\n");
    let config = [CONFIG, &version, core, extensions].concat();
    write_file(&snapshots.folder.join("config"), &config)?;
    write_file(&snapshots.folder.join("info/attributes"), ATTRIBUTES)?;
    let mut excludes = String::new();
    let files = if theirs.is_some() { exclude_files(subject) } else { Vec::new() };
    for file in files {
        let text = disk::read_text(&file, EXCLUDES_BYTES).map_err(|error| error.to_string())?;
        excludes.push_str(&text.unwrap_or_default());
        excludes.push('\n');
    }
    write_file(&snapshots.folder.join("info/exclude"), &format!("{excludes}/{BRANCHES}/"))?;
    Ok(theirs)
}

/// What the user's git reports about the repository; `None` if there is none.
fn read_theirs(snapshots: &Snapshots, subject: &Loop) -> Result<Option<Theirs>, String> {
    if !disk::exists(&snapshots.checkout.join(".git")) {
        return Ok(None);
    }
    let git = Git::of(subject);
    let places = ["--git-path", "objects", "--git-path", "index", "--show-object-format"];
    let places = git.run(&[&["rev-parse"], &places[..]].concat());
    let Some(places) = places else {
        return Err(match find_refusal(&snapshots.checkout) {
            Some((cause, hint)) => format!("{cause} ({hint})"),
            None => "git did not answer".to_owned(),
        });
    };
    let [objects, index, format] = places.lines().collect::<Vec<_>>()[..] else {
        return Err("git is too old".to_owned());
    };
    let pattern = r"^core\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf)$";
    let set = git.run(&["config", "-z", "--get-regexp", pattern]).unwrap_or_default();
    let (mut core, mut converts_all) = (String::new(), false);
    for (name, value) in set.split('\0').filter_map(|record| record.split_once('\n')) {
        if name == "core.autocrlf" {
            converts_all = value != "false";
        } else if ["true", "false"].contains(&value) {
            let _ = writeln!(core, "\t{} = {value}", &name["core.".len()..]);
        }
    }
    let [objects, index] = [objects, index].map(|path| snapshots.checkout.join(path));
    Ok(Some(Theirs { objects, index, is_sha256: format == "sha256", core, converts_all }))
}

/// Starts with the user's index, so that unchanged files are not read. Files that it stores in
/// another form or does not watch are added again. An index that is split into two files cannot be
/// read alone.
fn seed_index(snapshots: &Snapshots, subject: &Loop, theirs: &Theirs) -> Result<(), String> {
    tree::copy_with_time(&theirs.index, &snapshots.folder.join("index"))
        .map_err(|error| error.to_string())?;
    // The files that git may store in another form.
    let plain = ":(exclude,attr:!filter !text !eol !crlf !ident !working-tree-encoding)";
    let converted = if theirs.converts_all {
        Some(Vec::new())
    } else {
        Git::of(subject).printed(&["ls-files", "-z", "--", ".", plain])
    };
    let converted = converted.ok_or("git does not say what it converts")?;
    let converted: BTreeSet<&Path> = zero_ended_paths(&converted).collect();
    let listed = snapshots.printed(&["ls-files", "-s", "-v", "-z"], &[])?;
    let (mut anew, mut links) = (IndexPaths::default(), Vec::new());
    for record in zero_ended(&listed) {
        let Some(tab) = record.iter().position(|byte| *byte == b'\t') else { continue };
        let (about, path) = (&record[..tab], Path::new(OsStr::from_bytes(&record[tab + 1..])));
        let is_link = about[2..].starts_with(b"160000");
        if is_link {
            links.push(path);
        }
        let is_converted = theirs.converts_all || converted.contains(path);
        // Unmerged entries too: with one, no tree can be written.
        let is_hidden = about[0] != b'H';
        let is_ours = path.starts_with(BRANCHES);
        if is_ours || ((is_hidden || is_converted) && !is_link) {
            anew.add(path.to_owned(), true);
            let file = snapshots.checkout.join(path);
            let fits = disk::stamp(&file).is_some_and(|(size, _)| size <= FILE_BYTES);
            if fits && !is_ours && !tree::is_folder(&file) && tree::is_readable(&file) {
                anew.add(path.to_owned(), false);
            }
        }
    }
    if !links.is_empty() {
        let _ = disk::write(&snapshots.folder.join(LINKS), &zero_list(links), Durability::Remade);
    }
    anew.update(|arguments, input| snapshots.printed(arguments, input))
}

/// The fixed part of the configuration.
const CONFIG: &str = include_str!("private.conf");
/// The attributes that keep files byte for byte.
pub(super) const ATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding -eol -crlf";

/// Filling is reported if it takes longer than this, in milliseconds, or takes over more bytes than
/// this.
const LONG_MS: u64 = 1000;
const MUCH_BYTES: u64 = 100_000_000;

/// The result of filling a git dir.
#[derive(Debug)]
pub struct Filled {
    /// A note for the user, if filling took long or took over much.
    pub note: Option<String>,
    /// The number of files, for a folder without a repository.
    pub watched: Option<usize>,
}

// Removes snapshots that are too old or too much: the git dirs of working trees that no loop has
// used for long, and the oldest names in the others. No working tree is touched.

/// A bound greater than the number of working trees of a home, and of files in a git dir.
const ENTRIES_MAX: usize = 1_000_000;

/// Keeps the newest `most` bytes of snapshots and none older than `days`; 0 means no limit. The git
/// dir of `current` is only thinned out, and those of loops that have not ended stay. Bytes shared
/// with the repository do not count.
pub fn prune_snapshots(home: &Home, current: &Snapshots, most: u64, days: u64) {
    let oldest = oldest_kept(days);
    let mut kept = bytes_below(&current.folder);
    let mut others: Vec<(i128, PathBuf)> =
        other_folders(&current.folder).map(|folder| (last_used(&folder), folder)).collect();
    others.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
    for (used, folder) in others {
        let bytes = bytes_below(&folder);
        let is_unwanted = used < oldest || (most > 0 && kept + bytes > most);
        if is_unwanted {
            remove_unless(&folder, || is_needed(home, &folder));
        } else {
            kept += bytes;
        }
    }
    thin_out(current, home, oldest);
    // Scratch folders that were last used long ago.
    for folder in other_folders(&home.scratch_folder(&current.checkout)) {
        if last_used(&folder.join(".git")) < oldest {
            remove_unless(&folder, || false);
        }
    }
}

/// The other folders in the parent of a folder.
fn other_folders(own: &Path) -> impl Iterator<Item = PathBuf> {
    let parent = own.parent().unwrap_or(own);
    let names = disk::names(parent, ENTRIES_MAX).into_iter().filter(|name| !name.contains('.'));
    names.map(|name| parent.join(name)).filter(move |folder| folder != own)
}

/// Removes a folder that no process has locked and nothing needs.
fn remove_unless(folder: &Path, is_needed: impl Fn() -> bool) {
    let lock = disk::take_lock(&folder.with_extension("lock"), Duration::ZERO);
    if matches!(lock, Ok(Some(_))) && !is_needed() {
        let _ = tree::remove_folder(folder);
    }
}

/// Whether a git dir has snapshots of a loop that has not ended.
fn is_needed(home: &Home, folder: &Path) -> bool {
    disk::names(&folder.join("refs/crew"), ENTRIES_MAX).iter().any(|name| is_live(home, name))
}

/// Whether a loop of that name may still continue; one whose record cannot be read may.
fn is_live(home: &Home, name: &str) -> bool {
    let Ok(id) = name.parse() else { return false };
    match store::load(home, &id) {
        Ok(record) => record.is_live(),
        Err(StoreError::Absent(_)) => false,
        Err(StoreError::Newer { is_over, .. }) => !is_over,
        Err(_) => true,
    }
}

/// Removes the names that are older than `oldest`, and then what no name refers to.
fn thin_out(snapshots: &Snapshots, home: &Home, oldest: i128) {
    let loops = snapshots.folder.join("refs/crew");
    let mut gone = 0;
    for name in tree::list_files(&loops, ENTRIES_MAX) {
        let file = loops.join(&name);
        let id = name.parent().unwrap_or(&name).to_string_lossy();
        let is_due = disk::stamp(&file).is_some_and(|(_, written)| written < oldest);
        if is_due && !is_live(home, &id) {
            gone += usize::from(disk::remove(&file).is_ok());
        }
    }
    if gone > 0 {
        forget_unnamed(snapshots);
    }
}

/// Removes what no name refers to, or the whole git dir if no name is left. What another process
/// has locked, or cannot be removed, is left for later.
pub fn forget_unnamed(snapshots: &Snapshots) {
    let lock = disk::take_lock(&snapshots.folder.with_extension("lock"), LOCK_WAIT);
    if !matches!(lock, Ok(Some(_))) || !snapshots.are_kept() {
        return;
    }
    let _ = if disk::names(&snapshots.folder.join("refs/crew"), 1).is_empty() {
        tree::remove_folder(&snapshots.folder).map_err(|error| error.to_string())
    } else {
        snapshots.printed(&["prune", "--expire=now"], &[]).map(drop)
    };
}

/// The bytes that these snapshots alone occupy.
pub fn count_bytes(snapshots: &Snapshots) -> u64 {
    bytes_below(&snapshots.folder)
}

/// When a git dir was last used: a snapshot writes its HEAD, and a look its index.
fn last_used(folder: &Path) -> i128 {
    let stamps = ["HEAD", "index"].map(|name| disk::stamp(&folder.join(name)));
    stamps.into_iter().flatten().map(|(_, written)| written).max().unwrap_or(0)
}
