//! Reads what `git diff-tree` prints about two trees: the kind of each change, then the lines. It
//! leaves out what it does not understand.

use std::collections::BTreeMap;

use crate::engine::evidence::changes::{ChangeKind, ChangedFile, Changes};

/// Reads `git diff-tree -r -M --raw --numstat -z`: first ":mode mode id id status" with its path or
/// two, then "added TAB removed TAB path", where a rename leaves the path empty and two follow.
pub fn tree_changes(text: &[u8]) -> Changes {
    let mut parts = text.split(|byte| *byte == 0);
    let mut part = || parts.next().filter(|part| !part.is_empty());
    let mut files = Vec::new();
    let mut lines = BTreeMap::new();
    while let Some(record) = part() {
        if record.starts_with(b":") {
            let status = record.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let Some(path) = part() else { break };
            let (path, kind) = match status.first() {
                Some(b'A') => (path, ChangeKind::Created),
                Some(b'D') => (path, ChangeKind::Deleted),
                Some(b'R' | b'C') => match part() {
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
        let path = if path.is_empty() { part().and_then(|_| part()) } else { Some(path) };
        if let (Some(path), Some(added), Some(removed)) = (path, number(added), number(removed)) {
            lines.insert(path, (added, removed));
        }
    }
    Changes::of(files.into_iter().map(|(path, kind)| {
        let lines = lines.get(path).copied();
        ChangedFile { path: text_of(path), kind, lines, yours: false }
    }))
}

fn text_of(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_has_its_kind_and_its_lines() {
        let text = b":100644 100755 f2 5f M\0c.txt\0:000000 100644 00 5f A\0new \xff\0\
            :100644 100644 61 61 R100\0b\0bb\0:100644 000000 61 00 D\0old\0\
            :100644 100644 61 62 M\0image\0\
            3\t1\tc.txt\x002\t0\tnew \xff\0\
            0\t0\t\0b\0bb\0\
            0\t9\told\0-\t-\timage\0";
        let changes = tree_changes(text);
        let told: Vec<String> = changes
            .files
            .iter()
            .map(|file| format!("{} {:?} {:?}", file.path, file.kind, file.lines))
            .collect();
        assert_eq!(
            told,
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
