//! Reads single files of a snapshot, and which paths differ between two. It writes nothing.

use std::path::Path;

use super::{FILE_BYTES, STATUS, Snapshots};
use crate::engine::test_changes::kind::ChangedPath;
use crate::parse::git_changes::ignored as all_ignored;
use crate::parse::test_changes::path_below;
use crate::world::files::disk;

/// The largest file that is read, in bytes.
const TEXT_BYTES: usize = 1 << 20;
/// How many files are read by one process.
const TEXTS_AT_ONCE: usize = 100;
/// A pattern of git that no path matches. Where all patterns begin with an ignored folder, git 2.47
/// dies of "directory entry not superset of prefix".
const NO_PLACE: &str = ":(glob)[/]";
/// How many links in a row are followed.
const LINKS_MAX: usize = 4;

impl Snapshots {
    /// Every path that differs between two snapshots; a renamed file is two.
    pub fn paths(&self, from: &str, to: &str) -> Result<Vec<String>, String> {
        Ok(self.changed(from, to)?.into_iter().map(|changed| changed.path).collect())
    }

    /// The same with what tells the kind of each path: whether it is new, a program or a link.
    pub fn changed(&self, from: &str, to: &str) -> Result<Vec<ChangedPath>, String> {
        let listed =
            self.printed(&["diff-tree", "-r", "--no-renames", "--raw", "-z", from, to], &[])?;
        let fields: Vec<String> = names(&listed).collect();
        let read = |pair: &[String]| {
            let [about, path] = pair else { return None };
            let mut about = about.trim_start_matches(':').split(' ');
            let modes = [about.next()?, about.next()?];
            Some(ChangedPath {
                path: path.clone(),
                is_new: modes[0] == "000000",
                is_executable: modes.contains(&"100755"),
                is_link: modes.contains(&"120000"),
            })
        };
        Ok(fields.chunks(2).filter_map(read).collect())
    }

    /// Mode and path of everything in a snapshot.
    pub fn entries(&self, commit: &str) -> Result<Vec<(String, String)>, String> {
        let listed = self.printed(&["ls-tree", "-r", "-z", "--full-tree", commit], &[])?;
        let mode_and_path = |entry: String| {
            let (about, path) = entry.split_once('\t')?;
            Some((about.split(' ').next()?.to_owned(), path.to_owned()))
        };
        Ok(names(&listed).filter_map(mode_and_path).collect())
    }

    /// The files that ignore rules keep out of every snapshot, at these places: patterns of git. A
    /// folder that is ignored as a whole ends with a slash, and what is in it is left out.
    pub fn ignored(&self, places: &[String]) -> Result<Vec<String>, String> {
        let list = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory", "--"];
        let places = places.iter().map(String::as_str).chain([NO_PLACE]);
        let listed = self.printed(&list.into_iter().chain(places).collect::<Vec<_>>(), &[])?;
        Ok(names(&listed).collect())
    }

    /// Whether ignore rules keep a file out of every snapshot, also in a folder that is ignored as
    /// a whole.
    pub fn ignores(&self, file: &str) -> Result<bool, String> {
        let literal = format!(":(top,literal){file}");
        let list = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--", &literal, NO_PLACE];
        Ok(names(&self.printed(&list, &[])?).any(|path| path == file))
    }

    /// All files, and folders as a whole, that ignore rules keep out of every snapshot. A folder
    /// that only holds ignored files does not count; `ls-files --directory` would list it.
    pub(super) fn all_ignored(&self) -> Result<Vec<String>, String> {
        // Another process may be taking a snapshot, so the index must not be written.
        let list = [&["--no-optional-locks"], &STATUS[..], &["--ignored=matching"]].concat();
        let listed = self.printed(&list, &[])?;
        let paths = all_ignored(&listed).into_iter();
        Ok(paths.map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// A snapshot with these files of the working tree as they are now, ignored or not.
    pub fn with_present(&self, commit: &str, files: &[String]) -> Result<String, String> {
        if files.is_empty() {
            return Ok(commit.to_owned());
        }
        let is_large = |file: &&String| disk::size(&self.checkout.join(file)) > FILE_BYTES;
        if let Some(large) = files.iter().find(is_large) {
            return Err(format!("{large} is too large"));
        }
        let list: Vec<u8> =
            files.iter().flat_map(|file| [file.as_bytes(), b"\0"].concat()).collect();
        self.updated(commit, &["update-index", "--add", "--replace", "-z", "--stdin"], &list)
    }

    /// The texts of files in a snapshot, in this order, by one process for many of them; empty for
    /// what is not there, is large or is not text. Links are not followed.
    pub fn texts(&self, commit: &str, paths: &[&str]) -> Vec<String> {
        let mut texts = Vec::new();
        for paths in paths.chunks(TEXTS_AT_ONCE) {
            let named: Vec<String> =
                paths.iter().map(|path| format!("{commit}:{path}\n")).collect();
            let printed = self.printed(&["cat-file", "--batch"], named.concat().as_bytes());
            let read = printed.ok().and_then(|printed| batch(&printed, paths.len()));
            // Together they were too much, or a name has a line break.
            let one = |path: &&str| self.file(commit, path).ok().flatten().unwrap_or_default();
            texts.extend(read.unwrap_or_else(|| paths.iter().map(one).collect()));
        }
        texts
    }

    /// The text of a file in a snapshot; a link within the tree is followed. `None` if there is no
    /// such file, or it is large or not text.
    pub fn file(&self, commit: &str, path: &str) -> Result<Option<String>, String> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let listed = self.printed(&["ls-tree", "-l", "-z", commit, "--", &path], &[])?;
            let listed = String::from_utf8_lossy(&listed).into_owned();
            let entry = listed.split_once('\t').map(|(entry, _)| entry);
            let entry: Vec<&str> = entry.unwrap_or_default().split_whitespace().collect();
            let [mode, _, id, size] = entry[..] else { return Ok(None) };
            // A folder has no size.
            if size.parse::<usize>().is_ok_and(|size| size > TEXT_BYTES) || size == "-" {
                return Ok(None);
            }
            let text = String::from_utf8(self.printed(&["cat-file", "blob", id], &[])?);
            let Ok(text) = text else { return Ok(None) };
            if mode != "120000" {
                return Ok(Some(text));
            }
            let Some(target) = beside(&path, &text) else { return Ok(None) };
            path = target;
        }
        Ok(None)
    }
}

/// The paths of a list that a zero byte ends.
fn names(listed: &[u8]) -> impl Iterator<Item = String> {
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| String::from_utf8_lossy(path).into_owned())
}

/// The contents that `git cat-file --batch` printed; `None` unless they are as many as were asked
/// for.
fn batch(mut printed: &[u8], wanted: usize) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    while !printed.is_empty() {
        let end = printed.iter().position(|byte| *byte == b'\n')?;
        let heading = String::from_utf8_lossy(&printed[..end]).into_owned();
        printed = &printed[end + 1..];
        if heading.ends_with(" missing") {
            texts.push(String::new());
            continue;
        }
        let size: usize = heading.rsplit(' ').next()?.parse().ok()?;
        let content = printed.get(..size)?;
        let text =
            Some(content).filter(|_| size <= TEXT_BYTES).and_then(|it| str::from_utf8(it).ok());
        texts.push(text.unwrap_or_default().to_owned());
        printed = printed.get(size + 1..)?;
    }
    (texts.len() == wanted).then_some(texts)
}

/// The path that a link leads to; `None` out of the tree.
fn beside(link: &str, target: &str) -> Option<String> {
    let folder = Path::new(link).parent()?.to_str()?;
    path_below(folder, target).filter(|_| !target.starts_with('/'))
}
