//! Reads from `git status` what differs from the commit, path by path: in bytes, because a file
//! name need not be valid text.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A path that differs from the commit. One path may appear twice: deleted from the index, and
/// present again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    pub kind: FileChangeKind,
}

/// How it differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// It is in the working tree.
    There,
    /// It was tracked and is no longer in the working tree.
    Gone,
    /// A separate repository that was not added.
    Repository,
    /// A separate repository that was added and is not in the commit.
    Added,
    /// An unresolved conflict, such as two sides of a merge.
    Unmerged,
}

const LINK: &[u8] = b"160000";

/// Reads `git status --porcelain=v2 -z --no-renames --untracked-files=all`.
pub fn changes(text: &[u8]) -> Vec<FileChange> {
    text.split(|byte| *byte == 0).filter_map(change).collect()
}

/// Reads the ignored paths from the same with `--ignored=matching`: "! path"; a folder ends with a
/// slash.
pub fn ignored(text: &[u8]) -> Vec<PathBuf> {
    let records = text.split(|byte| *byte == 0);
    let paths = records.filter_map(|record| record.strip_prefix(b"! "));
    paths.map(|path| OsString::from_vec(path.to_vec()).into()).collect()
}

/// "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path".
fn change(record: &[u8]) -> Option<FileChange> {
    let before_the_path = match record.first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' => 1,
        _ => return None,
    };
    let fields: Vec<&[u8]> = record.splitn(before_the_path + 1, |byte| *byte == b' ').collect();
    let (path, fields) = fields.split_last()?;
    if fields.len() < before_the_path {
        return None;
    }
    let kind = match record[0] {
        b'u' => FileChangeKind::Unmerged,
        b'?' if path.ends_with(b"/") => FileChangeKind::Repository,
        b'?' => FileChangeKind::There,
        _ if fields[1].contains(&b'D') => FileChangeKind::Gone,
        _ if fields[4] == LINK && fields[3] != LINK => FileChangeKind::Added,
        _ => FileChangeKind::There,
    };
    Some(FileChange { path: OsString::from_vec(path.to_vec()).into(), kind })
}

/// One side of a comparison, for one path: the index, or the newer commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    pub path: Vec<u8>,
    /// "mode id"; zeros where the path does not exist.
    pub what: Vec<u8>,
    /// Whether the other side does not have the path.
    pub is_new: bool,
}

impl IndexEntry {
    /// The entry in the format of `git update-index -z --index-info`.
    pub fn line(&self) -> Vec<u8> {
        [&*self.what, b"\t", &self.path, b"\0"].concat()
    }
}

/// Reads `git diff-index` or `git diff-tree` with `--raw -z --no-renames --no-abbrev`: ":mode mode
/// id id status" and the path, alternating.
pub fn entries(text: &[u8]) -> Vec<IndexEntry> {
    let mut parts = text.split(|byte| *byte == 0);
    let mut entries = Vec::new();
    while let (Some(header), Some(path)) = (parts.next(), parts.next()) {
        let fields: Vec<&[u8]> = header.split(|byte| *byte == b' ').collect();
        if let [before, mode, _, id, _] = fields[..] {
            let (path, what) = (path.to_vec(), [mode, b" ", id].concat());
            entries.push(IndexEntry { path, what, is_new: before == b":000000" });
        }
    }
    entries
}

/// Whether a patch with the whole files as context changes white space alone: also lines that are
/// empty, and no mode.
pub fn changes_white_space_alone(patch: &[u8]) -> bool {
    let mut ahead: [VecDeque<Vec<u8>>; 2] = Default::default();
    let mut is_in_hunk = false;
    for line in patch.split(|byte| *byte == b'\n') {
        let ends_a_file = line.starts_with(b"diff --git ");
        let is_opaque = line.starts_with(b"old mode ") || line.starts_with(b"Binary files ");
        let is_ahead = ahead.iter().any(|lines| !lines.is_empty());
        if (ends_a_file && is_ahead) || (!is_in_hunk && is_opaque) {
            return false;
        }
        is_in_hunk = !ends_a_file && (is_in_hunk || line.starts_with(b"@@"));
        let (true, Some((sign, text))) = (is_in_hunk, line.split_first()) else { continue };
        let text: Vec<u8> = text.iter().copied().filter(|it| !it.is_ascii_whitespace()).collect();
        for (side, own) in [(0, b'-'), (1, b'+')] {
            if !text.is_empty() && [b' ', own].contains(sign) {
                ahead[side].push_back(text.clone());
            }
        }
        while let [Some(old), Some(new)] = [ahead[0].front(), ahead[1].front()] {
            if old != new {
                return false;
            }
            ahead.iter_mut().for_each(|lines| drop(lines.pop_front()));
        }
    }
    ahead.iter().all(VecDeque::is_empty)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn each_path_is_told_in_its_bytes_with_how_it_differs() {
        let text = b"# branch.head main\0\
            1 .M N... 100644 100644 100644 aa bb a file\0\
            1 AD N... 000000 100644 000000 00 bb staged, then removed\0\
            1 D. N... 100644 000000 000000 aa 00 back\0? back\0? sub/\0? :(top)-\xff\n\0\
            1 A. S... 000000 160000 160000 00 cc module\0\
            1 .M SC.. 160000 160000 160000 aa aa old module\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both\0";
        let told: Vec<String> = changes(text)
            .iter()
            .map(|change| {
                format!("{:?} {}", change.kind, change.path.as_os_str().as_bytes().escape_ascii())
            })
            .collect();
        assert_eq!(
            told,
            [
                "There a file",
                "Gone staged, then removed",
                "Gone back",
                "There back",
                "Repository sub/",
                "There :(top)-\\xff\\n",
                "Added module",
                "There old module",
                "Unmerged both",
            ]
        );
    }

    #[test]
    fn a_patch_changes_white_space_alone_where_its_lines_are_equal_without_it() {
        let head = "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n";
        let mode = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n";
        for (patch, expected) in [
            (format!("{head}-a b\n+  ab\n c\n"), true),
            (format!("{head}+\n a\n-  \n"), true),
            (format!("{head}-if {{\n+  if {{\n+    }}\n   }}\n-}}\n"), true),
            (format!("{head}-a\n b\n+a\n"), false),
            (format!("{head}-a\n{head}+a\n"), false),
            (format!("{head}-a\n+b\n"), false),
            (mode.to_owned(), false),
            ("diff --git a/f b/f\nBinary files a/f and b/f differ\n".to_owned(), false),
        ] {
            assert_eq!(changes_white_space_alone(patch.as_bytes()), expected, "{patch}");
        }
    }
}
