//! `git status --porcelain=v2 --branch -z`: the commit, the branch, and the paths that differ, less
//! what crew itself writes.

/// What a status says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The commit; `None` before the first one.
    pub head: Option<String>,
    /// The branch; `None` when detached.
    pub branch: Option<String>,
    /// Each entry as git printed it, with the path whose size and time tell whether it moved again.
    pub entries: Vec<Entry>,
}

/// One path that differs from the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub line: String,
    pub path: String,
}

/// Where crew writes in a checkout; it never counts as the agent's progress.
const OURS: &str = ".claude/branches/";

/// Reads a status. Records it does not know are kept by their text alone.
pub fn status(text: &str) -> Status {
    let mut status = Status::default();
    let mut records = text.split('\0').filter(|record| !record.is_empty());
    while let Some(record) = records.next() {
        if let Some(header) = record.strip_prefix("# branch.") {
            match header.split_once(' ') {
                Some(("oid", oid)) if oid != "(initial)" => status.head = Some(oid.to_owned()),
                Some(("head", branch)) if branch != "(detached)" => {
                    status.branch = Some(branch.to_owned());
                }
                _ => {}
            }
            continue;
        }
        // Fields before the path: "1 XY sub mH mI mW hH hI path", "2 … Xscore path" with the old path as
        // a record of its own, "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path".
        let fields = match record.as_bytes().first() {
            Some(b'1') => 8,
            Some(b'2') => {
                records.next();
                9
            }
            Some(b'u') => 10,
            _ => 1,
        };
        let path = record.splitn(fields + 1, ' ').nth(fields).unwrap_or_default();
        if !path.starts_with(OURS) {
            status.entries.push(Entry { line: record.to_owned(), path: path.to_owned() });
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_gives_commit_branch_and_paths_and_leaves_out_what_crew_writes() {
        let text = "# branch.oid 1234\0# branch.head feat/auth\0# branch.upstream origin/x\0\
                    1 .M N... 100644 100644 100644 aa bb src/a file.rs\0\
                    2 R. N... 100644 100644 100644 aa aa R100 new name.rs\0old name.rs\0\
                    ? notes.md\0? .claude/branches/main/state.json\0";
        let status = status(text);
        assert_eq!(status.head.as_deref(), Some("1234"));
        assert_eq!(status.branch.as_deref(), Some("feat/auth"));
        let paths: Vec<&str> = status.entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["src/a file.rs", "new name.rs", "notes.md"]);
    }

    #[test]
    fn an_empty_repository_has_no_commit_and_a_detached_head_no_branch() {
        let status = status("# branch.oid (initial)\0# branch.head (detached)\0");
        assert_eq!(status, Status::default());
    }
}
