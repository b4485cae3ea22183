//! Reads what `git push --porcelain` printed, mixed with messages of the remote and the transport:
//! the result for the branch, or why the push failed. Where git has no code, its wording decides
//! (`LC_ALL=C`).

use super::git::{complaint, is_id, plain};
use crate::engine::git::GitTrouble;
use crate::engine::text::start;

/// The most characters of a cause that are kept.
const CAUSE_CHARS: usize = 300;

/// Whether the remote already had everything; `None` if no line mentions a branch.
pub fn was_up_to_date(text: &str) -> Option<bool> {
    let line = text.lines().find(|line| line.contains("\trefs/heads/"))?;
    Some(line.starts_with('='))
}

/// The submodules that have a commit which is pushed as theirs and is on no remote, by path.
pub fn submodules_on_no_remote(text: &str) -> Vec<String> {
    let heading = |line: &&str| !line.starts_with("The following submodule paths contain changes");
    let mut lines = text.lines().skip_while(heading);
    let paths = lines.by_ref().skip(1).map_while(|line| match line {
        "not be found on any remote:" => Some(None),
        line => Some(Some(line.strip_prefix("  ")?.to_owned())),
    });
    paths.flatten().collect()
}

/// The files of git LFS whose pointers are among what `git cat-file --batch` printed, by the hash
/// of their contents.
pub fn lfs_pointers(batch: &[u8]) -> Vec<String> {
    let mut files = Vec::new();
    let mut lines = batch.split(|byte| *byte == b'\n');
    while let Some(line) = lines.next() {
        let mut words = line.split(|byte| *byte == b' ');
        let is_blob = words.nth(1) == Some(b"blob");
        if !is_blob || lines.next() != Some(b"version https://git-lfs.github.com/spec/v1") {
            continue;
        }
        let id = |line: &[u8]| {
            let id = str::from_utf8(line.strip_prefix(b"oid sha256:")?).ok()?;
            is_id(id).then(|| id.to_owned())
        };
        // Lines of extensions may come first.
        files.extend(lines.by_ref().take_while(|line| !line.starts_with(b"size ")).find_map(id));
    }
    files.sort_unstable();
    files.dedup();
    files
}

/// Why a push failed, and the message about it.
pub fn trouble(text: &str) -> (GitTrouble, String) {
    let (trouble, cause) = rejection(text).unwrap_or_else(|| transport(text));
    (trouble, start(&without_secrets(&cause), CAUSE_CHARS).to_owned())
}

/// Git's own line about the branch: `!`, from and to, and `[rejected] (fetch first)`.
fn rejection(text: &str) -> Option<(GitTrouble, String)> {
    let line = text.lines().find(|line| line.starts_with("!\t"))?;
    let summary = line.splitn(3, '\t').nth(2).unwrap_or_default();
    let behind = ["(fetch first)", "(non-fast-forward)", "(stale info)", "but expected"];
    if summary.starts_with("[remote rejected] (non-fast-forward)") {
        let cause =
            "the remote takes no rewritten branch: receive.denyNonFastForwards is set there";
        return Some((GitTrouble::Rejected, cause.to_owned()));
    }
    if behind.iter().any(|words| summary.contains(words)) {
        let cause = "the branch on the remote has commits that this one lacks".to_owned();
        return Some((GitTrouble::NonFastForward, cause));
    }
    let said: Vec<&str> = text.lines().filter_map(of_the_remote).collect();
    let denied = said.iter().find(|line| contains_any(line, DENIED));
    let trouble = if denied.is_some() { GitTrouble::Auth } else { GitTrouble::Rejected };
    let cause = match denied.or(said.first()) {
        Some(said) => format!("{summary}: {said}"),
        None => summary.to_owned(),
    };
    Some((trouble, cause))
}

/// A message of the remote's hooks and rules, without its error prefix.
fn of_the_remote(line: &str) -> Option<&str> {
    let said = plain(line.strip_prefix("remote: ")?);
    let is_counting = said.contains("objects:") || said.contains("deltas:");
    (!said.is_empty() && !is_counting).then_some(said)
}

/// No line mentions a branch: the remote was not reached, or refused access.
fn transport(text: &str) -> (GitTrouble, String) {
    let kinds: [(GitTrouble, &str); 3] = [
        (GitTrouble::Auth, DENIED),
        (GitTrouble::NoRemote, ABSENT),
        (GitTrouble::Network, UNREACHED),
    ];
    for (trouble, words) in kinds {
        if let Some(line) = text.lines().find(|line| contains_any(line, words)) {
            return (trouble, plain(line).to_owned());
        }
    }
    (GitTrouble::Other, complaint(text))
}

/// In lower case: the user is unknown to the remote, or not allowed.
const DENIED: &str = include_str!("git_words/denied.txt");

/// Nothing exists at the address.
const ABSENT: &str = include_str!("git_words/absent.txt");

/// The connection failed, or the host is at fault or too busy: the words of git and of gh.
pub(super) const UNREACHED: &str = include_str!("git_words/unreached.txt");

pub(super) fn contains_any(line: &str, words: &str) -> bool {
    let line = line.to_lowercase();
    words.lines().any(|words| line.contains(words))
}

/// An address may contain a password: the user part of every address is left out.
pub fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        clean.push_str(before);
        clean.push_str("://");
        let host = after.find(['/', ' ', '\'', '"']).unwrap_or(after.len());
        rest = after[..host].rfind('@').map_or(after, |at| &after[at + 1..]);
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of git 2.47 and OpenSSH 9.2, and the wording of hosts from their own pages.
    const TABLE: &[(&str, GitTrouble, &str)] = &[
        (
            "error: failed to push some refs to 'file:///r.git'\nhint: Updates were rejected because the remote contains work that you do not\nTo file:///r.git\n!\trefs/heads/main:refs/heads/main\t[rejected] (fetch first)\nDone\n",
            GitTrouble::NonFastForward,
            "the branch on the remote has commits that this one lacks",
        ),
        (
            "To file:///r.git\n!\trefs/heads/main:refs/heads/main\t[rejected] (non-fast-forward)\nDone\n",
            GitTrouble::NonFastForward,
            "the branch on the remote has commits that this one lacks",
        ),
        (
            "remote: error: denying non-fast-forward refs/heads/a (you should pull first)        \nTo file:///r.git\n!\trefs/heads/a:refs/heads/a\t[remote rejected] (non-fast-forward)\nDone\n",
            GitTrouble::Rejected,
            "the remote takes no rewritten branch: receive.denyNonFastForwards is set there",
        ),
        (
            "remote: Resolving deltas: 100% (1/1), done.        \nremote: error: GH006: Protected branch update failed for refs/heads/main.        \nremote: error: Changes must be made through a pull request.        \nTo https://host/r.git\n!\trefs/heads/main:refs/heads/main\t[remote rejected] (protected branch hook declined)\nDone\n",
            GitTrouble::Rejected,
            "[remote rejected] (protected branch hook declined): GH006: Protected branch update failed for refs/heads/main.",
        ),
        (
            "remote: GitLab: You are not allowed to push code to protected branches on this project.        \n!\trefs/heads/main:refs/heads/main\t[remote rejected] (pre-receive hook declined)\nDone\n",
            GitTrouble::Auth,
            "[remote rejected] (pre-receive hook declined): GitLab: You are not allowed to push code to protected branches on this project.",
        ),
        (
            "remote: error: refusing to update checked out branch: refs/heads/main        \nremote: is denied, because it will make the index and work tree inconsistent        \n!\trefs/heads/main:refs/heads/main\t[remote rejected] (branch is currently checked out)\nDone\n",
            GitTrouble::Rejected,
            "[remote rejected] (branch is currently checked out): refusing to update checked out branch: refs/heads/main",
        ),
        (
            "remote: error: GH008: Your push referenced at least 1 unknown Git LFS object:        \nremote:     0c3f        \n!\trefs/heads/main:refs/heads/main\t[remote rejected] (pre-receive hook declined)\nDone\n",
            GitTrouble::Rejected,
            "[remote rejected] (pre-receive hook declined): GH008: Your push referenced at least 1 unknown Git LFS object:",
        ),
        (
            "git@host: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
            GitTrouble::Auth,
            "git@host: Permission denied (publickey).",
        ),
        (
            "Host key verification failed.\nfatal: Could not read from remote repository.\n",
            GitTrouble::Auth,
            "Host key verification failed.",
        ),
        (
            "fatal: Authentication failed for 'http://u:secret@127.0.0.1:20401/x.git/'\n",
            GitTrouble::Auth,
            "Authentication failed for 'http://127.0.0.1:20401/x.git/'",
        ),
        (
            "fatal: could not read Username for 'http://127.0.0.1:20501': terminal prompts disabled\n",
            GitTrouble::Auth,
            "could not read Username for 'http://127.0.0.1:20501': terminal prompts disabled",
        ),
        (
            "remote: Permission to o/r.git denied to u.\nfatal: unable to access 'https://host/o/r.git/': The requested URL returned error: 403\n",
            GitTrouble::Auth,
            "Permission to o/r.git denied to u.",
        ),
        (
            "fatal: '/nonexist/x.git' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
            GitTrouble::NoRemote,
            "'/nonexist/x.git' does not appear to be a git repository",
        ),
        (
            "ERROR: Repository not found.\nfatal: Could not read from remote repository.\n",
            GitTrouble::NoRemote,
            "Repository not found.",
        ),
        (
            "fatal: repository 'http://127.0.0.1:20404/x.git/' not found\n",
            GitTrouble::NoRemote,
            "repository 'http://127.0.0.1:20404/x.git/' not found",
        ),
        (
            "fatal: unable to access 'http://127.0.0.1:1/x.git/': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server\n",
            GitTrouble::Network,
            "unable to access 'http://127.0.0.1:1/x.git/': Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server",
        ),
        (
            "ssh: Could not resolve hostname no.such.invalid: Name or service not known\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
            GitTrouble::Network,
            "ssh: Could not resolve hostname no.such.invalid: Name or service not known",
        ),
        (
            "ssh: connect to host 127.0.0.1 port 1: Connection refused\nfatal: Could not read from remote repository.\n",
            GitTrouble::Network,
            "ssh: connect to host 127.0.0.1 port 1: Connection refused",
        ),
        (
            "fatal: unable to access 'http://127.0.0.1:20500/x.git/': The requested URL returned error: 500\n",
            GitTrouble::Network,
            "unable to access 'http://127.0.0.1:20500/x.git/': The requested URL returned error: 500",
        ),
        (
            "error: src refspec x does not match any\n",
            GitTrouble::Other,
            "src refspec x does not match any",
        ),
        ("", GitTrouble::Other, "git said nothing"),
    ];

    #[test]
    fn each_failed_push_is_told_apart_by_what_git_printed() {
        for (text, expected, cause) in TABLE {
            assert_eq!(trouble(text), (*expected, (*cause).to_owned()), "{text}");
        }
    }

    #[test]
    fn submodules_that_must_be_pushed_first_are_named() {
        let text = "The following submodule paths contain changes that can\n\
            not be found on any remote:\n  lib\n  third party/x\n\nPlease try\n\n\
            \tgit push --recurse-submodules=on-demand\n\nfatal: Aborting.\n";
        assert_eq!(submodules_on_no_remote(text), ["lib", "third party/x"]);
        assert_eq!(submodules_on_no_remote("Everything up-to-date\n"), [""; 0]);
    }

    #[test]
    fn a_pointer_of_git_lfs_is_a_small_file_that_begins_as_one() {
        let id = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let version = "version https://git-lfs.github.com/spec/v1";
        let batch = format!(
            "c0 commit 9\na\n\nsubject\n\nb1 blob 130\n{version}\noid sha256:{id}\nsize 12\n\n\
             b2 blob 160\n{version}\next-0-foo sha256:00\noid sha256:{id}\nsize 1\n\n\
             b3 blob 99\nquoted:\n{version}\noid sha256:{id}\nsize 12\n\n"
        );
        assert_eq!(lfs_pointers(batch.as_bytes()), [id]);
        assert_eq!(lfs_pointers(b"b3 blob 3\nabc\n"), [""; 0]);
    }

    #[test]
    fn a_push_says_whether_anything_was_new() {
        let table = [
            ("To r\n*\trefs/heads/a:refs/heads/a\t[new branch]\nDone\n", Some(false)),
            ("To r\n \trefs/heads/a:refs/heads/a\te5eb5da..8192e1a\nDone\n", Some(false)),
            ("To r\n=\trefs/heads/a:refs/heads/a\t[up to date]\nDone\n", Some(true)),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(was_up_to_date(text), expected, "{text}");
        }
    }

    #[test]
    fn no_address_in_a_cause_holds_a_password() {
        let table = [
            ("to https://u:p@h/x and https://t@g/y", "to https://h/x and https://g/y"),
            ("ssh://git@h:22/x@y", "ssh://h:22/x@y"),
            ("no address", "no address"),
        ];
        for (text, expected) in table {
            assert_eq!(without_secrets(text), expected);
        }
    }
}
