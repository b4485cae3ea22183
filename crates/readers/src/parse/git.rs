//! Reads what git prints about a repository: its status (the commit, the branch, and the paths that
//! differ, without what crew itself writes), its settings, its working trees, what changed between
//! two trees, and its error messages. What it does not understand is left out.

use derive_getters::Getters;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use engine::evidence::changes::{ChangeKind, ChangedFile, Changes};
use engine::git::GitSetting;
use engine::text::text_start;

/// The folder of all branches, relative to a checkout: what crew writes there never counts as the
/// agent's progress.
pub const BRANCHES: &str = ".claude/branches";

/// The entries of a list in which each ends with a zero byte.
pub fn zero_ended(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

/// Splits a list of zero-terminated names into paths.
pub fn zero_ended_paths(list: &[u8]) -> impl Iterator<Item = &Path> {
    zero_ended(list).map(|path| Path::new(OsStr::from_bytes(path)))
}

/// Splits a list of zero-terminated names into strings, for people and for comparisons.
pub fn zero_ended_names(list: &[u8]) -> impl Iterator<Item = String> {
    zero_ended(list).map(|name| String::from_utf8_lossy(name).into_owned())
}

/// A list in which each entry ends with a zero byte.
pub fn zero_list(entries: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Vec<u8> {
    let mut list = Vec::new();
    for entry in entries {
        list.extend_from_slice(entry.as_ref().as_bytes());
        list.push(0);
    }
    list
}

/// Reads `git config --list --show-scope -z`: the settings made by the repository itself.
pub fn parse_repository_settings(text: &str) -> Vec<GitSetting> {
    let mut records = text.split('\0');
    let mut settings = Vec::new();
    while let (Some(scope), Some(record)) = (records.next(), records.next()) {
        if ["local", "worktree"].contains(&scope) {
            let (name, value) = record.split_once('\n').unwrap_or((record, ""));
            settings.push(GitSetting { name: name.to_owned(), value: value.to_owned() });
        }
    }
    settings
}

/// The commit and branch that are checked out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadState {
    /// The branch; `None` on a detached head.
    pub branch: Option<String>,
    /// The commit; `None` before the first one.
    pub head: Option<String>,
    /// The tree of that commit.
    pub tree: Option<String>,
}

/// Reads `git rev-parse HEAD HEAD^{tree} --symbolic-full-name HEAD`.
pub fn parse_head<'a>(mut lines: impl Iterator<Item = &'a str>) -> HeadState {
    let [head, tree, name] = [(); 3].map(|()| lines.next().map(str::to_owned));
    let branch = name.and_then(|name| Some(name.strip_prefix("refs/heads/")?.to_owned()));
    HeadState { branch, head, tree }
}

/// A working tree of a repository.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkingTree {
    path: PathBuf,
    /// The branch; `None` on a detached head.
    branch: Option<String>,
}

/// Reads `git worktree list --porcelain`. The main working tree comes first.
pub fn parse_worktrees(text: &str) -> Vec<WorkingTree> {
    let mut trees: Vec<WorkingTree> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("worktree ") {
            trees.push(WorkingTree { path: path.into(), ..WorkingTree::default() });
        } else if let Some(tree) = trees.last_mut() {
            let branch = line.strip_prefix("branch refs/heads/").map(str::to_owned);
            tree.branch = branch.or_else(|| tree.branch.take());
        }
    }
    trees
}

/// The maximum number of characters kept of an error message.
const ERROR_CHARS: usize = 300;

/// The line that best describes what went wrong.
pub fn find_error(text: &str) -> String {
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
    let line = line.or_else(|| text.lines().find(|line| !line.trim().is_empty()));
    text_start(strip_severity(line.unwrap_or("git said nothing")), ERROR_CHARS).to_owned()
}

/// The index lock that git found taken, except that of a linked working tree.
pub fn taken_lock(text: &str) -> Option<&str> {
    let (before, _) = text.split_once("': File exists")?;
    let (_, path) = before.rsplit_once("Unable to create '")?;
    if path.ends_with("index.lock") { Some(path) } else { None }
}

/// Whether a string is a full object id.
pub fn is_id(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A line without a prefix such as `fatal: `.
pub fn strip_severity(line: &str) -> &str {
    let mut line = line.trim();
    for prefix in ["remote: ", "fatal: ", "error: ", "ERROR: "] {
        line = line.strip_prefix(prefix).unwrap_or(line).trim();
    }
    line
}

/// The untracked files that would have been overwritten, as git lists them.
pub fn in_the_way(text: &str) -> Vec<String> {
    let start = "untracked working tree files would be";
    let lines = text.lines().skip_while(|line| !line.contains(start)).skip(1);
    lines.map_while(|line| line.strip_prefix('\t')).map(str::to_owned).collect()
}

/// A path that differs from the commit. One path may appear twice: deleted from the index, and
/// present again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    pub kind: FileChangeKind,
    /// The whole entry that git printed: modes, ids and the path.
    pub record: Vec<u8>,
}

/// How it differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// It exists in the working tree.
    There,
    /// It was tracked, and is missing from the working tree.
    Gone,
    /// A separate repository that was not added.
    Repository,
    /// A separate repository that was added and is not in the commit.
    Added,
    /// An unresolved conflict, such as two sides of a merge.
    Unmerged,
}

const LINK: &[u8] = b"160000";

/// What differs from the commit, with every untracked file. Inside a submodule git would apply the
/// submodule's own configuration; a change of its commit is still seen.
pub const STATUS: [&str; 6] =
    ["status", "--porcelain=v2", "-z", "-uall", "--no-renames", "--ignore-submodules=dirty"];

/// Reads what [`STATUS`] prints, except what crew itself writes.
pub fn parse_status(text: &[u8]) -> Vec<FileChange> {
    let changes = text.split(|byte| *byte == 0).filter_map(parse_change);
    changes.filter(|change| !change.path.starts_with(BRANCHES)).collect()
}

/// Reads the ignored paths from the same output with `--ignored=matching`: "! path"; a folder ends
/// with a slash.
pub fn parse_ignored(text: &[u8]) -> Vec<PathBuf> {
    let records = text.split(|byte| *byte == 0);
    let paths = records.filter_map(|record| record.strip_prefix(b"! "));
    paths.map(|path| OsString::from_vec(path.to_vec()).into()).collect()
}

/// Parses an entry: "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path".
fn parse_change(record: &[u8]) -> Option<FileChange> {
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
    Some(FileChange {
        path: OsString::from_vec(path.to_vec()).into(),
        kind,
        record: record.to_vec(),
    })
}

/// One side of a comparison, for one path: the index, or the newer commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    pub path: Vec<u8>,
    /// "mode id"; zeros where the path does not exist.
    pub what: Vec<u8>,
    /// The mode on the other side; zeros where that does not have the path.
    before: Vec<u8>,
}

impl IndexEntry {
    /// Whether the other side does not have the path.
    pub fn is_new(&self) -> bool {
        self.before == b"000000"
    }

    /// Whether this side does not have the path.
    pub fn is_gone(&self) -> bool {
        self.what.starts_with(b"000000")
    }

    /// Whether it has this mode on either side.
    pub fn has_mode(&self, mode: &[u8]) -> bool {
        self.before == mode || self.what.starts_with(mode)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// The entry in the format of `git update-index -z --index-info`.
    pub fn index_info(&self) -> Vec<u8> {
        [&*self.what, b"\t", &self.path, b"\0"].concat()
    }
}

/// Reads `git diff-index` or `git diff-tree` with `--raw -z --no-renames --no-abbrev`: ":mode mode
/// id id status" and the path, alternating.
pub fn parse_raw_diff(text: &[u8]) -> Vec<IndexEntry> {
    let mut parts = text.split(|byte| *byte == 0);
    let mut entries = Vec::new();
    while let (Some(header), Some(path)) = (parts.next(), parts.next()) {
        let fields: Vec<&[u8]> = header.split(|byte| *byte == b' ').collect();
        if let [before, mode, _, id, _] = fields[..] {
            let before = before.strip_prefix(b":").unwrap_or(before).to_vec();
            let (path, what) = (path.to_vec(), [mode, b" ", id].concat());
            entries.push(IndexEntry { path, what, before });
        }
    }
    entries
}

/// Reads `git diff-tree -r -M --raw --numstat -z`: first ":mode mode id id status" with its path or
/// two, then "added TAB removed TAB path", where a rename leaves the path empty and two follow.
pub fn tree_changes(text: &[u8]) -> Changes {
    let mut parts = text.split(|byte| *byte == 0);
    let mut files = Vec::new();
    let mut lines = BTreeMap::new();
    while let Some(record) = next_part(&mut parts) {
        if record.starts_with(b":") {
            let status = record.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let Some(path) = next_part(&mut parts) else { break };
            let (path, kind) = match status.first() {
                Some(b'A') => (path, ChangeKind::Created),
                Some(b'D') => (path, ChangeKind::Deleted),
                Some(b'R' | b'C') => match next_part(&mut parts) {
                    Some(to) => (to, ChangeKind::Renamed { from: text_of(path) }),
                    None => break,
                },
                _ => (path, ChangeKind::Modified),
            };
            files.push((path, kind));
            continue;
        }
        let mut fields = record.splitn(3, |byte| *byte == b'\t');
        let [added, removed, path] = [(); 3].map(|()| fields.next().unwrap_or_default());
        let is_rename = path.is_empty();
        let path = if is_rename { parts.by_ref().nth(1) } else { Some(path) };
        if let (Some(path), Some(added), Some(removed)) =
            (path, parse_number(added), parse_number(removed))
        {
            lines.insert(path, (added, removed));
        }
    }
    Changes::from_files(files.into_iter().map(|(path, kind)| {
        let lines = lines.get(path).copied();
        ChangedFile { path: text_of(path), kind, lines, yours: false }
    }))
}

/// The next part, if it is not empty.
fn next_part<'p>(parts: &mut impl Iterator<Item = &'p [u8]>) -> Option<&'p [u8]> {
    parts.next().filter(|part| !part.is_empty())
}

fn text_of(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn parse_number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether a patch with whole files as context changes only white space (empty lines included) and
/// no mode.
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
        let text: Vec<u8> =
            text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        for (side, own) in [(0, b'-'), (1, b'+')] {
            if !text.is_empty() && [b' ', own].contains(sign) {
                ahead[side].push_back(text.clone());
            }
        }
        while let [Some(old), Some(new)] = [ahead[0].front(), ahead[1].front()] {
            if old != new {
                return false;
            }
            for lines in &mut ahead {
                lines.pop_front();
            }
        }
    }
    ahead.iter().all(VecDeque::is_empty)
}

/// Reads `git cat-file --batch`: the kind and the content of each object in turn; `None` for one
/// that is missing. Where the output ends or is not understood, the list ends.
pub fn parse_objects(mut output: &[u8]) -> Vec<Option<(String, &[u8])>> {
    let mut objects = Vec::new();
    while let Some(end) = output.iter().position(|byte| *byte == b'\n') {
        let (header, rest) = (String::from_utf8_lossy(&output[..end]), &output[end + 1..]);
        if header.ends_with(" missing") {
            objects.push(None);
            output = rest;
            continue;
        }
        let mut words = header.rsplit(' ');
        let size = words.next().and_then(|size| size.parse::<usize>().ok());
        let (Some(size), Some(kind)) = (size, words.next()) else { break };
        let (Some(content), Some(b'\n')) = (rest.get(..size), rest.get(size)) else { break };
        objects.push(Some((kind.to_owned(), content)));
        output = &rest[size + 1..];
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_the_repository_that_may_run_a_program_count() {
        let text = "system\0core.editor\nvi\0global\0filter.lfs.clean\ngit-lfs clean\0\
                    local\0core.bare\nfalse\0local\0filter.a.b.clean\nsh -c x\0\
                    local\0remote.origin.url\nfile:///r\0worktree\0core.sshcommand\nssh -v\0\
                    local\0branch.main.remote\norigin\0command\0credential.helper\nx\0\
                    local\0remote.o.x.receivepack\nevil\0local\0credential.helper\0\
                    local\0lfs.customtransfer.x.path\nevil\0local\0lfs.locksverify\ntrue\0\
                    local\0branch.a.b.pushremote\n.git/evil\0local\0branch.main.rebase\ntrue\0\
                    local\0remote.pushdefault\n.git/evil\0local\0push.default\nupstream\0\
                    local\0branch.main.merge\nrefs/heads/main\0local\0push.followtags\ntrue\0\
                    local\0url.file:///evil.insteadof\nfile:///r\0local\0http.proxy\nevil\0\
                    local\0http.https://a.b/.sslverify\nfalse\0local\0remote.o.proxy\nevil\0";
        let mut settings = parse_repository_settings(text);
        settings.retain(GitSetting::names_a_program);
        let names: Vec<&str> = settings.iter().map(|setting| &*setting.name).collect();
        let expected = [
            "filter.a.b.clean",
            "core.sshcommand",
            "remote.o.x.receivepack",
            "credential.helper",
            "lfs.customtransfer.x.path",
        ];
        assert_eq!(names, expected);
        assert_eq!(settings[0].value, "sh -c x");
        let mut settings = parse_repository_settings(text);
        settings.retain(GitSetting::names_a_place);
        assert_eq!(settings[0].value, "file:///r");
        let names: Vec<&str> = settings.iter().map(|setting| &*setting.name).collect();
        let expected = [
            "remote.origin.url",
            "branch.main.remote",
            "branch.a.b.pushremote",
            "remote.pushdefault",
            "push.default",
            "branch.main.merge",
            "url.file:///evil.insteadof",
            "http.proxy",
            "http.https://a.b/.sslverify",
            "remote.o.proxy",
        ];
        assert_eq!(names, expected);
        settings.retain(GitSetting::leads_a_remote);
        let names: Vec<&str> = settings.iter().map(|setting| &*setting.name).collect();
        assert_eq!(names, [&expected[..1], &expected[6..]].concat());
    }

    #[test]
    fn working_trees_are_read_with_their_branches() {
        let text = "worktree /r a\nHEAD 12\nbranch refs/heads/main\n\nworktree /w\nHEAD 12\ndetached\n\n\
                    worktree /x\nHEAD 12\nbranch refs/heads/feat/x\nprunable gone\n\n\
                    worktree /y\nHEAD 12\nbranch refs/heads/y\nlocked initializing\n";
        let tree = |path: &str, branch: Option<&str>| WorkingTree {
            path: path.into(),
            branch: branch.map(str::to_owned),
        };
        let known =
            [("/r a", Some("main")), ("/w", None), ("/x", Some("feat/x")), ("/y", Some("y"))];
        let expected = known.map(|(path, branch)| tree(path, branch));
        assert_eq!(parse_worktrees(text), expected);
    }

    #[test]
    fn the_error_is_the_line_that_says_most() {
        let table = [
            (
                "Rebasing (1/1)\nerror: could not apply f3b61c0... 3\nhint: Resolve",
                "could not apply f3b61c0... 3",
            ),
            ("\nsomething odd\n", "something odd"),
            ("", "git said nothing"),
        ];
        for (text, expected) in table {
            assert_eq!(find_error(text), expected, "{text}");
        }
        let text = "error: The following untracked working tree files would be overwritten by checkout:\n\
                    \tu\n\ta file\nPlease move or remove them before you switch branches.\nAborting\n";
        assert_eq!(in_the_way(text), ["u", "a file"]);
        assert_eq!(in_the_way("nothing of the kind"), [""; 0]);
        let text = "fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git\n";
        assert_eq!(taken_lock(text), Some("/r/.git/index.lock"));
        assert_eq!(taken_lock(&text.replace("index", "HEAD")), None);
    }
}

#[cfg(test)]
mod git_changes_tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn each_path_is_read_as_bytes_with_its_kind_of_change() {
        let text = b"# branch.head main\0\
            1 .M N... 100644 100644 100644 aa bb a file\0\
            1 AD N... 000000 100644 000000 00 bb staged, then removed\0\
            1 D. N... 100644 000000 000000 aa 00 back\0? back\0? sub/\0? :(top)-\xff\n\0\
            1 A. S... 000000 160000 160000 00 cc module\0\
            1 .M SC.. 160000 160000 160000 aa aa old module\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both\0";
        let changes: Vec<String> = parse_status(text)
            .iter()
            .map(|change| {
                format!("{:?} {}", change.kind, change.path.as_os_str().as_bytes().escape_ascii())
            })
            .collect();
        assert_eq!(
            changes,
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
    fn a_patch_whose_lines_are_equal_without_white_space_changes_white_space_only() {
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

    #[test]
    fn each_path_has_its_kind_and_its_lines() {
        let text = b":100644 100755 f2 5f M\0c.txt\0:000000 100644 00 5f A\0new \xff\0\
            :100644 100644 61 61 R100\0b\0bb\0:100644 000000 61 00 D\0old\0\
            :100644 100644 61 62 M\0image\0\
            3\t1\tc.txt\x002\t0\tnew \xff\0\
            0\t0\t\0b\0bb\0\
            0\t9\told\0-\t-\timage\0";
        let changes = tree_changes(text);
        let lines: Vec<String> = changes
            .files
            .iter()
            .map(|file| format!("{} {:?} {:?}", file.path, file.kind, file.lines))
            .collect();
        assert_eq!(
            lines,
            [
                "c.txt Modified Some((3, 1))",
                "new \u{fffd} Created Some((2, 0))",
                "bb Renamed { from: \"b\" } Some((0, 0))",
                "old Deleted Some((0, 9))",
                "image Modified None",
            ]
        );
        assert_eq!((changes.added, changes.removed), (5, 10));
        assert_eq!(tree_changes(b":100644 100644 a b R100\0only one"), Changes::default());
    }
}
