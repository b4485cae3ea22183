//! Makes the private git dir once, aside, and moves it into place. Of the repository's settings it
//! copies those that say how the disk behaves, and none that runs a program or alters content. The
//! objects come as second names of its files, which never change; as copies where the disk cannot;
//! and those that the repository borrows, too.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{FILE_BYTES, LINKS, Snapshots, make_folder, remove, write};
use crate::engine::record::{Driver, Loop};
use crate::parse::git::{BRANCHES, paths, zero_ended, zero_list};
use crate::world::clock::{Deadline, Stopwatch};
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree::{self, Shared};
use crate::world::git::command::IndexPaths;
use crate::world::git::{Git, exclude_files, refusal};
use crate::world::store::removal::LISTS;

/// The longest that filling may take, and the longest in a client's hook, which the client ends
/// after 30 s.
const FILL: Duration = Duration::from_secs(120);
const FILL_IN_A_HOOK: Duration = Duration::from_secs(15);
/// The most bytes of one file of ignore rules.
const EXCLUDES_BYTES: u64 = 1 << 20;
/// The names in git's folder that are searched for a shared index.
const NAMES_MAX: usize = 10_000;
/// The most files of an old git dir that a new one takes over.
const FILES_MAX: usize = 1_000_000;
/// What is taken over from the user's repository.
struct Theirs {
    objects: PathBuf,
    index: PathBuf,
    is_sha256: bool,
    /// The lines of the section `core` that say how the disk behaves.
    core: String,
    converts_all: bool,
}

impl Snapshots {
    /// Makes the private git dir, unless there is one that works.
    pub fn fill(&self, subject: &Loop) -> Result<Filled, String> {
        let parent = self.folder.parent().unwrap_or(Path::new("/"));
        make_folder(parent)?;
        let _lock = self.hold()?;
        let is_in_git = disk::exists(&self.checkout.join(".git"));
        let watched = |taken: &str| {
            if is_in_git { None } else { self.entries(taken).ok().map(|entries| entries.len()) }
        };
        if self.are_kept()
            && self.set_up(subject).is_ok()
            && let Ok(taken) = self.taken()
        {
            return Ok(Filled { watched: watched(&taken.commit), ..Filled::default() });
        }
        let within = match subject.driver() {
            Driver::Session => FILL_IN_A_HOOK,
            Driver::Process => FILL,
        };
        let (watch, deadline) = (Stopwatch::start(), Deadline::after(within));
        let aside = Self {
            folder: self.folder.with_extension("new"),
            deadline: Some(deadline),
            ..self.clone()
        };
        let made = aside.make(subject, deadline).and_then(|filled| {
            self.carry_over(&aside, deadline);
            tree::exchange(&aside.folder, &self.folder).map_err(|error| error.to_string())?;
            Ok(filled)
        });
        let _ = tree::remove(&aside.folder);
        let made = made?;
        let watched = self.last().and_then(|taken| watched(&taken));
        Ok(Filled { is_new: true, elapsed_ms: watch.elapsed_ms(), watched, ..made })
    }

    /// Gives a new git dir the snapshots of the old one, as far as they can be read: that one look
    /// failed is no reason to lose them.
    fn carry_over(&self, new: &Self, deadline: Deadline) {
        for folder in ["objects", "refs/crew"].iter().chain(&LISTS) {
            let (from, to) = (self.folder.join(folder), new.folder.join(folder));
            for file in tree::files(&from, FILES_MAX) {
                let to = to.join(&file);
                let made = make_folder(to.parent().unwrap_or(&to));
                let _ = made.map(|()| tree::share(&from.join(&file), &to, deadline));
            }
        }
    }

    fn make(&self, subject: &Loop, deadline: Deadline) -> Result<Filled, String> {
        remove(&self.folder)?;
        for folder in ["objects/pack", "objects/info", "refs/heads"] {
            make_folder(&self.folder.join(folder))?;
        }
        write(&self.folder.join("HEAD"), "ref: refs/heads/none")?;
        let filled = match self.set_up(subject)? {
            Some(theirs) => {
                let filled = link_objects(&theirs.objects, &self.folder.join("objects"), deadline)?;
                if self.seed(subject, &theirs).is_err() {
                    let _ = disk::remove(&self.folder.join("index"));
                }
                filled
            }
            None => Filled::default(),
        };
        self.commit()?;
        self.taken()?;
        Ok(filled)
    }

    /// Writes the configuration, the attributes and the ignore rules.
    fn set_up(&self, subject: &Loop) -> Result<Option<Theirs>, String> {
        let theirs = self.theirs(subject)?;
        let core = theirs.as_ref().map(|theirs| &*theirs.core).unwrap_or_default();
        let (version, extensions) = match &theirs {
            Some(theirs) if theirs.is_sha256 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
            _ => (0, ""),
        };
        let config = format!(
            "[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n{CORE}{core}{extensions}{OTHERS}"
        );
        write(&self.folder.join("config"), &config)?;
        write(&self.folder.join("info/attributes"), ATTRIBUTES)?;
        let mut excludes = String::new();
        let files = if theirs.is_some() { exclude_files(subject) } else { Vec::new() };
        for file in files {
            let text = disk::read_text(&file, EXCLUDES_BYTES).map_err(|error| error.to_string())?;
            excludes.push_str(&text.unwrap_or_default());
            excludes.push('\n');
        }
        write(&self.folder.join("info/exclude"), &format!("{excludes}/{BRANCHES}/"))?;
        Ok(theirs)
    }

    /// What the user's git says of the repository; `None` if there is none.
    fn theirs(&self, subject: &Loop) -> Result<Option<Theirs>, String> {
        if !disk::exists(&self.checkout.join(".git")) {
            return Ok(None);
        }
        let git = Git::of(subject);
        let places = ["--git-path", "objects", "--git-path", "index", "--show-object-format"];
        let places = git.run(&[&["rev-parse"], &places[..]].concat());
        let refused = || match refusal(&self.checkout) {
            Some((cause, cure)) => format!("{cause} ({cure})"),
            None => "git gave no answer".to_owned(),
        };
        let places = places.ok_or_else(refused)?;
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
        let [objects, index] = [objects, index].map(|path| self.checkout.join(path));
        Ok(Some(Theirs { objects, index, is_sha256: format == "sha256", core, converts_all }))
    }

    /// Begins with the user's index, so that unchanged files are not read. What it stores in
    /// another form than the file has, and what it would not look at, is taken anew.
    fn seed(&self, subject: &Loop, theirs: &Theirs) -> Result<(), String> {
        let folder = theirs.index.parent().unwrap_or(Path::new("/"));
        let is_split = |name: &String| name.starts_with("sharedindex.");
        if disk::names(folder, NAMES_MAX).iter().any(is_split) {
            return Err("the index is split".to_owned());
        }
        tree::copy_with_time(&theirs.index, &self.folder.join("index"))
            .map_err(|error| error.to_string())?;
        let converted = if theirs.converts_all { Some(Vec::new()) } else { converted(subject) };
        let converted = converted.ok_or("git does not say what it converts")?;
        let converted: BTreeSet<&Path> = paths(&converted).collect();
        let listed = self.printed(&["ls-files", "-s", "-v", "-z"], &[])?;
        let (mut anew, mut links) = (IndexPaths::default(), Vec::new());
        for record in zero_ended(&listed) {
            let Some(tab) = record.iter().position(|byte| *byte == b'\t') else { continue };
            let (about, path) = (&record[..tab], Path::new(OsStr::from_bytes(&record[tab + 1..])));
            let is_link = about[2..].starts_with(b"160000");
            links.extend(is_link.then_some(path));
            let is_converted = theirs.converts_all || converted.contains(path);
            // Also unmerged: with such an entry no tree can be written.
            let is_hidden = about[0] != b'H';
            let is_ours = path.starts_with(BRANCHES);
            if is_ours || ((is_hidden || is_converted) && !is_link) {
                anew.gone.push(path.to_owned());
                let file = self.checkout.join(path);
                let fits = disk::stamp(&file).is_some_and(|(size, _)| size <= FILE_BYTES);
                if fits && !is_ours && !tree::is_folder(&file) && tree::is_readable(&file) {
                    anew.there.push(path.to_owned());
                }
            }
        }
        if !links.is_empty() {
            let _ = disk::write(&self.folder.join(LINKS), &zero_list(links), Durability::Remade);
        }
        anew.update(|arguments, input| self.printed(arguments, input))
    }
}

/// The tracked paths whose content git may store in another form, each followed by a zero byte.
fn converted(subject: &Loop) -> Option<Vec<u8>> {
    let plain = ":(exclude,attr:!filter !text !eol !crlf !ident !working-tree-encoding)";
    Git::of(subject).printed(&["ls-files", "-z", "--", ".", plain], &[])
}

const CORE: &str = "\tsharedRepository = 0600
\tlogAllRefUpdates = false
\tfsmonitor = false
\thooksPath = /dev/null
\tuntrackedCache = true
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tautocrlf = false
\tfsyncMethod = batch
";
/// `skipHash`: three commands of a snapshot write the index, and each would add up all its bytes.
const OTHERS: &str = "[index]
\tversion = 4
\tskipHash = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
[status]
\tshowUntrackedFiles = all
";
/// Files are kept byte for byte.
pub(super) const ATTRIBUTES: &str = "* -text -filter -ident -working-tree-encoding -eol -crlf";

/// How many repositories may borrow from each other.
const DEPTH_MAX: u8 = 5;
/// The most names in one folder of objects.
const OBJECTS_MAX: usize = 1_000_000;
/// The most bytes of a list of the repositories from which one borrows.
const ALTERNATES_BYTES: u64 = 64 << 10;
/// How often the objects are listed again because some were packed meanwhile.
const ATTEMPTS: u8 = 3;

/// What takes longer than this, in milliseconds, or is larger, in bytes, is reported.
const WORTH_A_WORD: (u64, u64) = (1000, 100_000_000);

/// The result of filling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filled {
    /// Whether it was made now; otherwise there was one that works.
    pub is_new: bool,
    /// Bytes of objects that are also the repository's.
    pub linked_bytes: u64,
    /// Bytes of objects that had to be copied.
    pub copied_bytes: u64,
    /// Files linked and copied.
    pub files: u64,
    pub elapsed_ms: u64,
    /// How many files there are, where there is no repository.
    pub watched: Option<usize>,
}

impl Filled {
    /// "snapshots: 1.2 GB linked in 3 s", if it took long or much.
    pub fn words(&self) -> Option<String> {
        let is_worth_it = self.elapsed_ms > WORTH_A_WORD.0
            || self.linked_bytes + self.copied_bytes > WORTH_A_WORD.1;
        let size = |bytes: u64, how: &str| {
            let (whole, tenth) = (bytes / 1_000_000_000, bytes / 100_000_000 % 10);
            let mega = bytes.div_ceil(1_000_000);
            let size = if whole > 0 { format!("{whole}.{tenth} GB") } else { format!("{mega} MB") };
            (bytes > 0).then(|| format!("{size} {how}"))
        };
        let sizes = [size(self.linked_bytes, "linked"), size(self.copied_bytes, "copied")];
        let sizes: Vec<String> = sizes.into_iter().flatten().collect();
        let sizes = if sizes.is_empty() { "filled".to_owned() } else { sizes.join(", ") };
        is_worth_it.then(|| format!("snapshots: {sizes} in {} s", self.elapsed_ms.div_ceil(1000)))
    }
}

/// Links all objects of the folder `from`, and of those it names, into the folder `to`.
pub(super) fn link_objects(from: &Path, to: &Path, deadline: Deadline) -> Result<Filled, String> {
    let mut filled = Filled::default();
    for attempt in 1.. {
        match link_all(from, to, deadline, &mut filled, DEPTH_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound && attempt < ATTEMPTS => {}
            result => return result.map(|()| filled).map_err(|error| error.to_string()),
        }
    }
    Ok(filled)
}

fn link_all(
    from: &Path,
    to: &Path,
    deadline: Deadline,
    filled: &mut Filled,
    depth: u8,
) -> std::io::Result<()> {
    let is_of_objects = |name: &String| {
        name == "pack" || (name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    for folder in disk::names(from, OBJECTS_MAX).into_iter().filter(is_of_objects) {
        let names = disk::names(&from.join(&folder), OBJECTS_MAX);
        // An index over several packs may name packs that are not there.
        let wanted = |name: &String| !name.starts_with("tmp_") && !name.starts_with("multi-pack");
        disk::make_private_folder(&to.join(&folder))?;
        for name in names.into_iter().filter(wanted) {
            if deadline.passed() {
                return Err(ErrorKind::TimedOut.into());
            }
            let file = from.join(&folder).join(&name);
            let bytes = disk::size(&file);
            match tree::share(&file, &to.join(&folder).join(&name), deadline)? {
                Shared::Linked => filled.linked_bytes += bytes,
                Shared::Copied => filled.copied_bytes += bytes,
                Shared::Known => continue,
            }
            filled.files += 1;
        }
    }
    let lenders = disk::read_text(&from.join("info/alternates"), ALTERNATES_BYTES)?;
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    for lender in lenders.unwrap_or_default().lines() {
        if !lender.is_empty() && !lender.starts_with('#') {
            link_all(&from.join(lender), to, deadline, filled, depth)?;
        }
    }
    Ok(())
}
