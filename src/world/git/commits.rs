//! The commits that a loop made, and those that its branch has lost. It changes nothing.

use super::{Git, head_by};
use crate::engine::evidence::commits::Commits;
use crate::engine::record::Loop;
use crate::engine::text::one_line;

/// The longest line of a commit, in characters.
const SUBJECT_CHARS: usize = 200;
/// How many of crew's own commits are searched on the branch that is checked out, the newest first.
const APART_MAX: usize = 30;

/// A commit that crew made.
#[derive(Debug)]
pub struct OwnCommit {
    pub id: String,
    /// Whether crew rebased later. It may then be on no branch without being lost.
    pub may_have_copy: bool,
}

/// The commits since a loop started, and those that its branch has lost; `None` if they are not
/// known. `by_crew` are those that crew made. What is uncommitted is another look,
/// [`uncommitted`](super::uncommitted).
pub fn commits_since(subject: &Loop, by_crew: &[OwnCommit]) -> Option<Commits> {
    let log = |of: &[&str]| {
        let most = format!("-{}", Commits::MOST);
        let form = ["log", "--no-show-signature", "--format=%h %s", &most];
        let text = Git::of(subject).run(&[&form[..], of].concat())?;
        Some(text.lines().map(|line| one_line(line, SUBJECT_CHARS)).collect::<Vec<_>>())
    };
    // One that was only rebased is not lost, nor is a merge, which a rebase leaves out. One that
    // was rebased with other lines cannot be told from a lost one.
    let missing = |branch: &str, commit: &str| {
        let apart = format!("{branch}...{commit}");
        log(&["--cherry-pick", "--right-only", "--no-merges", &apart])
    };
    let line = |of: &[&str]| Some(Git::of(subject).run(of)?.trim_end().to_owned());
    let (branch, commit) = head_by(line);
    let (made, lost) = match &subject.place.head {
        Some(start) => {
            let own = subject.place.branch.as_ref().map(|branch| format!("refs/heads/{branch}"));
            let lost = own.and_then(|own| missing(&own, start)).or_else(|| missing("HEAD", start));
            let since = [format!("{start}..HEAD")].into_iter().chain(brought(subject));
            let since: Vec<String> = since.collect();
            let since: Vec<&str> = since.iter().map(String::as_str).collect();
            (log(&since)?, lost.unwrap_or_default())
        }
        // The first commit came after the start.
        None => (log(&[commit.as_ref()?])?, Vec::new()),
    };
    let apart =
        apart(subject, by_crew).into_iter().filter_map(|OwnCommit { id, may_have_copy }| {
            let line = missing("HEAD", id)?.into_iter().next()?;
            let there = branch_with(subject, id).map(|branch| format!("on {branch}"));
            let there = there.or_else(|| (!may_have_copy).then(|| "on no branch".to_owned()))?;
            line.starts_with(id.get(..7)?).then(|| format!("{line} ({there})"))
        });
    let apart: Vec<String> = apart.collect();
    let is_own = branch.as_deref() == subject.branch();
    let switched_to = branch.or_else(|| Some(commit?.get(..12)?.to_owned()));
    let (made, switched_to) = (Some(made), switched_to.filter(|_| !is_own));
    Some(Commits { made, switched_to, lost, apart, ..Commits::default() })
}

/// The files of commits since a loop started that came from a remote and that somebody with another
/// address committed; empty where that is not known.
pub fn changed_by_others(subject: &Loop) -> Vec<String> {
    let git = Git::of(subject);
    let Some(start) = &subject.place.head else { return Vec::new() };
    let since = format!("{start}..HEAD");
    let changed = || {
        let own = git.run(&["config", "user.email"]).unwrap_or_default();
        let list = |more: &[&str]| {
            git.run(&[&["log", "--no-show-signature", "--format=%H %ce", &since], more].concat())
        };
        let only_here = list(&["--not", "--remotes"])?;
        let all = list(&[])?;
        let is_others = |line: &&str| {
            let address = line.split_once(' ').map_or("", |(_, address)| address);
            !only_here.lines().any(|here| here == *line) && address != own.trim()
        };
        let ids: Vec<&str> =
            all.lines().filter(is_others).filter_map(|line| line.get(..line.find(' ')?)).collect();
        if ids.is_empty() {
            return None;
        }
        let show = ["show", "--no-show-signature", "--format=", "--name-only", "-z"];
        git.run(&[&show[..], &ids].concat())
    };
    let changed = changed().unwrap_or_default();
    changed.split(['\0', '\n']).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Leaves out what a rebase has brought to the branch of a task. A run that a person typed may push
/// its own commits to what it is rebased onto.
fn brought(subject: &Loop) -> Option<String> {
    let run = subject.contract.run.as_ref().filter(|_| subject.fleet.is_some())?;
    Some(format!("^{}", Git::of(subject).commit(run.git.rebase.as_ref()?)?))
}

/// Those of crew's newest commits that are not among the ones of what is checked out.
fn apart<'a>(subject: &Loop, by_crew: &'a [OwnCommit]) -> Vec<&'a OwnCommit> {
    let newest = &by_crew[by_crew.len().saturating_sub(APART_MAX)..];
    if newest.is_empty() {
        return Vec::new();
    }
    let ids: Vec<&str> = newest.iter().map(|commit| commit.id.as_str()).collect();
    let list = [&["rev-list", "--ignore-missing"], &ids[..], &["--not", "HEAD"]].concat();
    let listed = Git::of(subject).run(&list).unwrap_or_default();
    let is_listed = |it: &&OwnCommit| listed.lines().any(|line| line.starts_with(it.id.as_str()));
    newest.iter().rev().filter(is_listed).collect()
}

/// A branch that has the commit.
fn branch_with(subject: &Loop, id: &str) -> Option<String> {
    let list = ["branch", "--list", "--format=%(refname:short)", "--contains", id];
    let named = Git::of(subject).run(&list)?;
    named.lines().find(|name| !name.starts_with('(')).map(str::to_owned)
}
