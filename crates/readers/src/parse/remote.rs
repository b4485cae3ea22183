//! Reads what a remote and its host answer: what `git push --porcelain` printed, mixed with
//! messages of the remote and the transport, and what the GitHub CLI prints about pull requests.
//! Where git has no code, its wording decides (`LC_ALL=C`). Nothing is taken from a page or from a
//! title.

use super::git::{find_error, is_id, parse_objects, strip_severity};
use derive_getters::Getters;
use engine::git::{GitTrouble, RemoteRef};
use engine::text::text_start;

/// The maximum number of characters kept of a cause.
const CAUSE_CHARS: usize = 300;

/// Whether the remote already had everything; `None` if no line mentions a branch.
pub fn was_up_to_date(text: &str) -> Option<bool> {
    let line = text.lines().find(|line| line.contains("\trefs/heads/"))?;
    Some(line.starts_with('='))
}

/// The paths of submodules whose pushed commit is not on any remote.
pub fn submodules_on_no_remote(text: &str) -> Vec<String> {
    const HEADING: &str = "The following submodule paths contain changes";
    let mut lines = text.lines().skip_while(|line| !line.starts_with(HEADING));
    let paths = lines.by_ref().skip(1).map_while(|line| match line {
        "not be found on any remote:" => Some(None),
        line => Some(Some(line.strip_prefix("  ")?.to_owned())),
    });
    paths.flatten().collect()
}

/// A file of git LFS, as its pointer describes it: the hash of its content, and its size.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LfsFile {
    pub id: String,
    pub bytes: u64,
}

/// The files of git LFS whose pointers are among what `git cat-file --batch` printed.
pub fn lfs_pointers(batch: &[u8]) -> Vec<LfsFile> {
    let blobs = parse_objects(batch).into_iter().flatten().filter(|(kind, _)| kind == "blob");
    let mut files: Vec<LfsFile> =
        blobs.filter_map(|(_, content)| parse_lfs_pointer(content)).collect();
    files.sort_unstable();
    files.dedup();
    files
}

fn parse_lfs_pointer(content: &[u8]) -> Option<LfsFile> {
    let pointer = str::from_utf8(content).ok()?;
    let mut lines = pointer.strip_prefix("version https://git-lfs.github.com/spec/v1\n")?.lines();
    // Lines of extensions may come first.
    let id = lines.find_map(|line| line.strip_prefix("oid sha256:"))?;
    let bytes = lines.find_map(|line| line.strip_prefix("size "))?.parse().ok()?;
    if is_id(id) { Some(LfsFile { id: id.to_owned(), bytes }) } else { None }
}

/// Why a push or a fetch failed, and the message about it. Skips refs that were refused only
/// because another ref was.
pub fn classify_failure(text: &str) -> (GitTrouble, String) {
    let lines = text.lines();
    let lines =
        lines.filter(|line| !(line.starts_with("!\t") && line.contains("(atomic push fail")));
    let text = lines.collect::<Vec<_>>().join("\n");
    let (trouble, cause) = find_rejection(&text).unwrap_or_else(|| classify_transport(&text));
    (trouble, text_start(&without_secrets(&cause), CAUSE_CHARS).to_owned())
}

/// Git's own line about the branch: `!`, from and to, and `[rejected] (fetch first)`.
fn find_rejection(text: &str) -> Option<(GitTrouble, String)> {
    let line = text.lines().find(|line| line.starts_with("!\t"))?;
    let summary = line.splitn(3, '\t').nth(2).unwrap_or_default();
    let behind = ["(fetch first)", "(non-fast-forward)", "(stale info)", "but expected"];
    if summary.starts_with("[remote rejected] (non-fast-forward)") {
        let cause =
            "the remote rejects rewritten branches: receive.denyNonFastForwards is set there";
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
    let said = strip_severity(line.strip_prefix("remote: ")?);
    let is_counting = said.contains("objects:") || said.contains("deltas:");
    if said.is_empty() || is_counting { None } else { Some(said) }
}

/// Why a push failed where no line mentions a branch: the remote was not reached or refused access.
fn classify_transport(text: &str) -> (GitTrouble, String) {
    if text.contains("does not support --atomic") {
        let cause = "the remote does not accept several refs in one atomic push: \
                     receive.advertiseAtomic is off there, or its git is older than 2.4";
        return (GitTrouble::Rejected, cause.to_owned());
    }
    let kinds: [(GitTrouble, &str); 3] = [
        (GitTrouble::Auth, DENIED),
        (GitTrouble::NoRemote, ABSENT),
        (GitTrouble::Network, UNREACHED),
    ];
    for (trouble, words) in kinds {
        if let Some(line) = text.lines().find(|line| contains_any(line, words)) {
            return (trouble, strip_severity(line).to_owned());
        }
    }
    (GitTrouble::Other, find_error(text))
}

/// Phrases, in lower case, for a user who is unknown to the remote or not allowed.
const DENIED: &str = include_str!("git_words/denied.txt");

/// Phrases for an address at which nothing exists.
const ABSENT: &str = include_str!("git_words/absent.txt");

/// Phrases of git and gh for a connection that failed, or a host that is broken or too busy.
pub(super) const UNREACHED: &str = include_str!("git_words/unreached.txt");

pub(super) fn contains_any(line: &str, words: &str) -> bool {
    let line = line.to_lowercase();
    words.lines().any(|words| line.contains(words))
}

/// Removes the user part of addresses, which may contain a password.
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

/// The longest message of a commit that is read, in bytes.
pub const MESSAGE_BYTES: usize = 8 << 20;

/// Whether git accepts this as the full name of a ref.
pub fn is_ref_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("refs/") else { return false };
    let has_bad_part = rest.split('/').any(|part| {
        part.is_empty() || part.starts_with('.') || part.strip_suffix(".lock").is_some()
    });
    !has_bad_part
        && !name.contains(|mark: char| mark.is_ascii_control() || " ~^:?*[\\".contains(mark))
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
}

/// Reads `git ls-remote`: the refs that one of the patterns names, each a full name, or the
/// beginning of one with `*` after it. git itself also finds them at the end of longer names.
pub fn parse_refs(text: &str, patterns: &[&str]) -> Vec<RemoteRef> {
    let refs = text.lines().filter_map(|line| line.split_once('\t')).filter(|(id, name)| {
        is_id(id)
            && is_ref_name(name)
            && patterns.iter().any(|pattern| matches_pattern(name, pattern))
    });
    refs.map(|(id, name)| RemoteRef { name: name.to_owned(), id: id.to_owned() }).collect()
}

fn matches_pattern(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        Some((begins, ends)) => name.strip_prefix(begins).is_some_and(|rest| rest.ends_with(ends)),
        None => name == pattern,
    }
}

/// The message of each object of `git cat-file --batch` in turn; `None` for one that is missing, is
/// not a commit or has a message longer than [`MESSAGE_BYTES`].
pub fn parse_messages(output: &[u8]) -> Vec<Option<String>> {
    let messages = parse_objects(output).into_iter().map(|object| match object {
        Some((kind, content)) if kind == "commit" => commit_message(content),
        _ => None,
    });
    messages.collect()
}

/// The message of a commit, byte for byte: all that follows the first empty line.
fn commit_message(commit: &[u8]) -> Option<String> {
    let start = commit.windows(2).position(|two| two == b"\n\n")? + 2;
    let message = &commit[start..];
    let is_short = message.len() <= MESSAGE_BYTES;
    if is_short { Some(String::from_utf8_lossy(message).into_owned()) } else { None }
}

/// The summaries of the refs that were not moved.
fn refused_summaries(push: &str) -> impl Iterator<Item = &str> {
    let refused = push.lines().filter(|line| line.starts_with("!\t"));
    refused.map(|line| line.splitn(3, '\t').nth(2).unwrap_or_default())
}

/// Whether a ref had moved when the push began.
pub fn is_stale(push: &str) -> bool {
    refused_summaries(push).any(|summary| summary.starts_with("[rejected] (stale info)"))
}

/// Whether the remote was reached but rejected a ref.
pub fn is_rejected(push: &str) -> bool {
    refused_summaries(push).any(|summary| summary.starts_with("[remote rejected]"))
}

/// Whether the remote failed to lock a ref or to move several at once, as it does while another
/// process moves one of them.
pub fn is_contended(push: &str) -> bool {
    let words = ["cannot lock ref", "failed to update ref", "failed to lock", "transaction"];
    is_rejected(push) && words.iter().any(|words| push.contains(words))
}

/// Whether a fetch failed because a ref, or an object that was named as known, is gone.
pub fn is_gone(fetch: &str) -> bool {
    fetch.contains("couldn't find remote ref") || fetch.contains("does not exist")
}

/// Whether a fetch failed because another process is moving the same ref, or is making a working
/// tree, whose head does not name a commit at first.
pub fn is_disturbed(fetch: &str) -> bool {
    let words = ["cannot lock ref", "unable to update local ref", "bad object worktrees/"];
    words.iter().any(|words| fetch.contains(words))
}

/// The state of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestState {
    Open,
    /// Merged as this commit of its base.
    Merged(String),
    Closed,
}

/// A pull request of a branch.
#[derive(Getters, Debug, Clone, PartialEq, Eq)]
pub struct ListedRequest {
    address: String,
    /// The newest commit of its branch.
    head: String,
    state: RequestState,
}

/// Reads `OPEN`, `CLOSED`, or `MERGED` and the commit.
fn parse_state(text: &str) -> Option<RequestState> {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("OPEN", _) => Some(RequestState::Open),
        ("MERGED", commit) => Some(RequestState::Merged(commit.to_owned())),
        ("CLOSED", _) => Some(RequestState::Closed),
        _ => None,
    }
}

/// Reads a pull request on each line: its address, its head and its state. Any other line is left
/// out.
pub fn parse_requests(text: &str) -> Vec<ListedRequest> {
    text.lines().filter(|line| line.starts_with("http")).filter_map(parse_listed).collect()
}

fn parse_listed(line: &str) -> Option<ListedRequest> {
    let (address, rest) = line.split_once(' ')?;
    let (head, state) = rest.split_once(' ')?;
    let state = parse_state(state)?;
    Some(ListedRequest { address: address.to_owned(), head: head.to_owned(), state })
}

/// The line of a failed command that says that its host was not reached, or is too busy.
pub fn find_unreached(text: &str) -> Option<&str> {
    text.lines().find(|line| contains_any(line, UNREACHED))
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod push_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_requests_are_read_with_their_state_and_other_lines_are_left_out() {
        let text = "https://h/1 aaa CLOSED \nhttps://h/2 bbb MERGED 0123abc\nhttps://h/3 ccc OPEN\n\
                    https://h/4 ddd DRAFT\nno request\n\n";
        let expected = [
            ("https://h/1", "aaa", RequestState::Closed),
            ("https://h/2", "bbb", RequestState::Merged("0123abc".to_owned())),
            ("https://h/3", "ccc", RequestState::Open),
        ];
        let expected = expected.map(|(address, head, state)| ListedRequest {
            address: address.to_owned(),
            head: head.to_owned(),
            state,
        });
        assert_eq!(parse_requests(text), expected);
    }

    #[test]
    fn an_unreachable_host_differs_from_one_that_refuses() {
        let table = [
            ("error connecting to api.github.com\ncheck your internet connection", true),
            (
                "Post \"https://api.github.com/graphql\": dial tcp: lookup api.github.com: no such host",
                true,
            ),
            ("Post \"https://api.github.com/graphql\": net/http: TLS handshake timeout", true),
            ("HTTP 502: Bad Gateway (https://api.github.com/graphql)", true),
            ("non-200 OK status code: 503 Service Unavailable", true),
            ("HTTP 401: Bad credentials (https://api.github.com/graphql)", false),
            (
                "pull request create failed: GraphQL: No commits between main and fleet/repo/a",
                false,
            ),
            ("HTTP 404: Not Found", false),
            ("", false),
        ];
        for (text, expected) in table {
            let line = if expected { text.lines().next() } else { None };
            assert_eq!(find_unreached(text), line, "{text}");
        }
    }
}
