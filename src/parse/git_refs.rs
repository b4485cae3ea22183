//! Reads what git says about the refs of a remote: its list, the objects they point to, and how a
//! push of several of them ended. Whoever can push there wrote names and objects, so a name that
//! git itself would refuse is left out: as a refspec it could mean something else.

use super::git::is_id;
use super::git_push;
use crate::engine::git::{GitTrouble, RemoteRef};

/// The longest message of a commit that is read, in bytes.
pub const MESSAGE_BYTES: usize = 1 << 20;

/// Whether git accepts this as the full name of a ref.
pub fn is_ref_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("refs/") else { return false };
    let is_part = |part: &str| {
        let is_lock = part.strip_suffix(".lock").is_some();
        !part.is_empty() && !part.starts_with('.') && !is_lock
    };
    let is_wrong = |mark: char| mark.is_ascii_control() || " ~^:?*[\\".contains(mark);
    rest.split('/').all(is_part)
        && !name.contains(is_wrong)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
}

/// Reads `git ls-remote`: the refs that one of the patterns names, each a full name, or the
/// beginning of one with `*` after it. git itself also finds them at the end of longer names.
pub fn refs(text: &str, patterns: &[&str]) -> Vec<RemoteRef> {
    let is_named = |name: &str| {
        let fits = |pattern: &&str| match pattern.split_once('*') {
            Some((begins, ends)) => {
                name.strip_prefix(begins).is_some_and(|rest| rest.ends_with(ends))
            }
            None => name == *pattern,
        };
        patterns.iter().any(fits)
    };
    let one = |line: &str| {
        let (id, name) = line.split_once('\t')?;
        let is_good = is_id(id) && is_ref_name(name) && is_named(name);
        is_good.then(|| RemoteRef { name: name.to_owned(), id: id.to_owned() })
    };
    text.lines().filter_map(one).collect()
}

/// Reads `git cat-file --batch`: the message of each object, in order; `None` for one that is
/// missing, is not a commit or has a message longer than [`MESSAGE_BYTES`]. Where the output ends
/// or is not understood, the list ends.
pub fn messages(mut output: &[u8]) -> Vec<Option<String>> {
    let mut messages = Vec::new();
    while let Some(end) = output.iter().position(|byte| *byte == b'\n') {
        let (header, rest) = (String::from_utf8_lossy(&output[..end]), &output[end + 1..]);
        let words: Vec<&str> = header.split(' ').collect();
        match words[..] {
            [_, kind, size] => {
                let Ok(size) = size.parse::<usize>() else { break };
                let (Some(object), Some(b'\n')) = (rest.get(..size), rest.get(size)) else { break };
                messages.push((kind == "commit").then(|| message(object)).flatten());
                output = &rest[size + 1..];
            }
            [_, "missing"] => {
                messages.push(None);
                output = rest;
            }
            _ => break,
        }
    }
    messages
}

/// The message of a commit, byte for byte: all that follows the first empty line.
fn message(commit: &[u8]) -> Option<String> {
    let start = commit.windows(2).position(|two| two == b"\n\n")? + 2;
    let message = &commit[start..];
    (message.len() <= MESSAGE_BYTES).then(|| String::from_utf8_lossy(message).into_owned())
}

/// The summaries of the refs that were not moved.
fn refusals(push: &str) -> impl Iterator<Item = &str> {
    let refused = push.lines().filter(|line| line.starts_with("!\t"));
    refused.map(|line| line.splitn(3, '\t').nth(2).unwrap_or_default())
}

/// Whether a ref was found elsewhere than expected when the push began.
pub fn is_stale(push: &str) -> bool {
    refusals(push).any(|summary| summary.starts_with("[rejected] (stale info)"))
}

/// Whether the remote was reached and did not take a ref.
pub fn is_rejected(push: &str) -> bool {
    refusals(push).any(|summary| summary.starts_with("[remote rejected]"))
}

/// Whether the remote failed to lock a ref or to move several at once, as it does while somebody
/// else moves one of them.
pub fn is_contended(push: &str) -> bool {
    let words = ["cannot lock ref", "failed to update ref", "failed to lock", "transaction"];
    is_rejected(push) && words.iter().any(|words| push.contains(words))
}

/// Whether a fetch failed because a ref, or an object that was named as known, is gone.
pub fn is_gone(fetch: &str) -> bool {
    fetch.contains("couldn't find remote ref") || fetch.contains("does not exist")
}

/// Whether a fetch failed because of what another process does here at this moment: it moves the
/// ref that was to be moved, or makes a working tree, whose head names no commit at first.
pub fn is_disturbed(fetch: &str) -> bool {
    let words = ["cannot lock ref", "unable to update local ref", "bad object worktrees/"];
    words.iter().any(|words| fetch.contains(words))
}

/// Why a push or a fetch failed, and the message about it. Of refs that were refused only because
/// another one was, nothing can be learned.
pub fn trouble(text: &str) -> (GitTrouble, String) {
    let follows = |line: &&str| {
        line.starts_with("!\t")
            && (line.ends_with("(atomic push failure)") || line.ends_with("(atomic push failed)"))
    };
    let lines = text.lines().filter(|line| !follows(line));
    git_push::trouble(&lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";

    /// Reads a list and shows the names.
    fn names(text: &str, patterns: &[&str]) -> String {
        let refs = refs(text, patterns);
        refs.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_list_has_the_refs_that_were_asked_for_and_no_other() {
        let lines = ["refs/crew/a", "refs/crew/ab", "refs/crew/b/c", "refs/heads/refs/crew/a"];
        let text = lines.map(|name| format!("{ONE}\t{name}\n")).concat();
        let table: [(&[&str], &str); 6] = [
            (&["refs/crew/a"], "refs/crew/a"),
            (&["refs/crew/a*"], "refs/crew/a refs/crew/ab"),
            (&["refs/crew/b/*", "refs/crew/a"], "refs/crew/a refs/crew/b/c"),
            (&["refs/*"], "refs/crew/a refs/crew/ab refs/crew/b/c refs/heads/refs/crew/a"),
            (&["crew/a"], ""),
            (&[], ""),
        ];
        for (patterns, expected) in table {
            assert_eq!(names(&text, patterns), expected, "{patterns:?}");
        }
    }

    #[test]
    fn what_is_no_ref_is_left_out_of_a_list() {
        let junk = [
            format!("{ONE}\trefs/crew/a:refs/heads/main"),
            format!("{ONE}\t+refs/crew/a"),
            format!("{ONE}\tHEAD"),
            format!("{ONE} refs/crew/a"),
            "1111\trefs/crew/a".to_owned(),
            "ref: refs/heads/main\tHEAD".to_owned(),
            "warning: something\trefs/crew/a".to_owned(),
        ];
        for line in junk {
            assert_eq!(names(&line, &["*"]), "", "{line}");
        }
    }

    #[test]
    fn each_object_gives_the_message_of_its_commit_or_none() {
        let commit = "tree 1\nauthor a\n\nwords\n\nand \u{e9}\n";
        let size = commit.len();
        let text = format!(
            "{ONE} commit {size}\n{commit}\n{ONE} missing\n{ONE} blob 3\na\n\n\n\
             {ONE} commit 9\ntree 1\n\n\u{1}\n{ONE} commit 6\ntree 1\n{ONE} commit 90\ntree 1\n\nwo"
        );
        let expected = [Some("words\n\nand \u{e9}\n"), None, None, Some("\u{1}"), None];
        assert_eq!(messages(text.as_bytes()), expected.map(|it| it.map(str::to_owned)));
        let long = format!("\n\n{}", "x".repeat(MESSAGE_BYTES));
        for (more, is_read) in [("", true), ("x", false)] {
            let text = format!("{ONE} commit {}\n{long}{more}\n", long.len() + more.len());
            let read = messages(text.as_bytes());
            assert_eq!(read.iter().map(Option::is_some).collect::<Vec<_>>(), [is_read]);
        }
    }

    #[test]
    fn a_push_of_several_refs_is_sorted_by_what_git_printed() {
        // Output of git 2.47, and the wording of JGit.
        let stale = "error: atomic push failed for ref refs/crew/a. status: 7\n\
                     fatal: the remote end hung up unexpectedly\nTo r\n\
                     !\t1:refs/crew/a\t[rejected] (stale info)\n\
                     !\t2:refs/heads/b\t[rejected] (atomic push failed)\nDone\n";
        let locked = "remote: error: cannot lock ref 'refs/crew/a': reference already exists        \n\
                      To r\n!\t1:refs/crew/a\t[remote rejected] (atomic transaction failed)\nDone\n";
        let jgit = "To r\n!\t1:refs/crew/a\t[remote rejected] (failed to lock)\nDone\n";
        let hook = "remote: no branches today        \n\
                    remote: error: hook declined to update refs/heads/b        \nTo r\n\
                    !\t1:refs/crew/a\t[remote rejected] (atomic push failure)\n\
                    !\t2:refs/heads/b\t[remote rejected] (hook declined)\nDone\n";
        let cut = "fatal: the remote end hung up unexpectedly\n";
        let table = [
            (stale, [true, false, false]),
            (locked, [false, true, true]),
            (jgit, [false, true, true]),
            (hook, [false, true, false]),
            (cut, [false, false, false]),
            ("", [false, false, false]),
        ];
        for (text, expected) in table {
            let sorted = [is_stale(text), is_rejected(text), is_contended(text)];
            assert_eq!(sorted, expected, "stale, rejected, contended: {text}");
        }
        let declined = "[remote rejected] (hook declined): no branches today";
        assert_eq!(trouble(hook), (GitTrouble::Rejected, declined.to_owned()));
        assert_eq!(trouble(cut).0, GitTrouble::Network);
    }

    proptest! {
        #[test]
        fn no_reader_panics_on_junk(
            text in "([!\t0-9a-f ]|commit|refs/|missing|\\[remote rejected\\]|\n|.){0,80}",
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            size in any::<u64>(),
        ) {
            refs(&text, &["*", ""]);
            is_stale(&text);
            is_contended(&text);
            trouble(&text);
            let header = format!("{ONE} commit {size}\n").into_bytes();
            prop_assert!(messages(&[header, bytes].concat()).len() < 80);
        }
    }
}
