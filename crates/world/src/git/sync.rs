//! Rebases a loop's branch onto another branch that moved, and pushes it. A conflict that needs a
//! person is undone, so that the working tree is as it was. A push always names one local and one
//! remote branch, whatever `push.default` says.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use shell_words::quote;

use super::command::{PUSH, Said, locked_fault, read_setting};
use super::inside::note_submodules;
use super::referred::LfsPush;
use super::steps::{Steps, Underway, another_branch, conflict_fault, held_lock, undo_rebase};
use super::{Git, count_lacking, run_git, unmerged_files};
use crate::clock::Deadline;
use engine::git::{GitFault, GitStep, GitTrouble, Pushed, Rebased, name_files};
use engine::record::Sent;
use engine::text::words_of;
use readers::parse::git::{HeadState, IndexEntry, in_the_way, parse_raw_diff};
use readers::parse::remote::{submodules_on_no_remote, was_up_to_date};

const REBASE: &str =
    "rebase --no-verify --no-gpg-sign --no-autosquash --no-update-refs --autostash";
/// How long crew keeps trying to undo a failed rebase.
const UNDO_AGAIN: Duration = Duration::from_secs(5);
/// What git prints, with exit status 0, when uncommitted changes no longer apply.
const UNFIT: &str = "Applying autostash resulted in conflicts";

/// Rebases onto `onto`, a branch or any other name of a commit, if that has commits that this
/// branch lacks, and if `branch` is checked out. Nothing is fetched. Uncommitted changes are set
/// aside and restored, and a conflict undoes everything. `earlier_base` is the commit of `onto`
/// that the branch was based on before, if known.
pub fn rebase_branch(
    steps: &Steps<'_>,
    branch: Option<&str>,
    onto: &str,
    earlier_base: Option<&str>,
) -> Result<Rebased, GitFault> {
    let state = steps.begin(GitStep::Rebase)?;
    if state.branch.as_deref() != branch {
        return Err(another_branch(GitStep::Rebase, state.branch.as_deref(), branch));
    }
    match unmerged_files(steps.checkout()).first() {
        Some(path) => Err(conflict_fault(GitStep::Rebase, path)),
        None => rebase_onto(steps, branch, onto, earlier_base),
    }
}

fn rebase_onto(
    steps: &Steps<'_>,
    branch: Option<&str>,
    onto: &str,
    earlier_base: Option<&str>,
) -> Result<Rebased, GitFault> {
    let Some(tip) = Git::here(steps.checkout()).commit(onto) else {
        let (cause, hint) = (format!("there is no branch {onto}"), "git branch --all lists them");
        return Err(GitFault::new(GitStep::Rebase, GitTrouble::Other, cause, hint));
    };
    let lacking = count_lacking(steps.checkout(), &tip, "HEAD");
    let (Some(lacking), Some(head)) = (lacking, Git::here(steps.checkout()).commit("HEAD")) else {
        let (cause, hint) = ("there is no commit here yet", "make a first commit");
        return Err(GitFault::new(GitStep::Rebase, GitTrouble::Other, cause, hint));
    };
    if lacking == 0 {
        return Ok(Rebased::NothingNew);
    }
    if let Some(lock) = held_lock(&steps.folder(), branch) {
        return Err(locked_fault(GitStep::Rebase, &lock.display().to_string()));
    }
    let form = ["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", &head];
    let staged = parse_raw_diff(&steps.printed(GitStep::Rebase, &form, &[])?);
    let underway = Underway::begin(steps, GitStep::Rebase, &head);
    let before = find_rewritten(steps.checkout(), earlier_base, &tip);
    let rebased = apply_rebase(steps, &underway, onto, (&tip, before), &head);
    if rebased.is_ok() {
        note_submodules(steps.checkout(), &head);
    }
    if !matches!(&rebased, Err(fault) if fault.trouble == GitTrouble::Unfinished) {
        stage_again(steps, staged, &head)?;
    }
    rebased.map(|()| Rebased::Onto(lacking))
}

/// Rebases what came after the commit `before` onto the commit `tip`, or restores everything except
/// the index.
fn apply_rebase(
    steps: &Steps<'_>,
    underway: &Underway<'_>,
    onto: &str,
    (tip, before): (&str, Option<&str>),
    head: &str,
) -> Result<(), GitFault> {
    let mut arguments: Vec<&str> = words_of(REBASE).collect();
    match before {
        Some(before) => arguments.extend(["--onto", tip, before]),
        None => arguments.push(tip),
    }
    let said = Git { online: true, ..steps.git() }.said(&arguments);
    if said.is_good() && !said.text.contains(UNFIT) {
        return Ok(());
    }
    let fault = explain_rebase(steps, &said, onto);
    undo_failed(steps, underway, head, said.is_good())?;
    Err(fault)
}

/// The commit where this branch left the other one, if that was rewritten since: what the other
/// branch had then is not this branch's work.
fn find_rewritten<'a>(
    checkout: &Path,
    earlier_base: Option<&'a str>,
    tip: &str,
) -> Option<&'a str> {
    let before = earlier_base?;
    let is_rewritten = count_lacking(checkout, before, "HEAD") == Some(0)
        && count_lacking(checkout, before, tip) != Some(0);
    if is_rewritten { Some(before) } else { None }
}

/// Finds the cause of the failure in the working tree as git left it.
fn explain_rebase(steps: &Steps<'_>, said: &Said, onto: &str) -> GitFault {
    if said.exit.is_none() {
        return said.fault(GitStep::Rebase);
    }
    let files = unmerged_files(steps.checkout());
    let in_the_way = in_the_way(&said.text);
    let by_hand = format!("run git rebase {onto} yourself, resolve the conflict, then crew resume");
    let (cause, hint) = if said.text.contains(UNFIT) {
        let files = if files.is_empty() { "files".to_owned() } else { name_files(&files) };
        let cause = format!("uncommitted changes in {files} conflict with {onto}");
        (cause, format!("commit it, then {by_hand}"))
    } else if !files.is_empty() {
        (format!("this branch conflicts with {onto} in {}", name_files(&files)), by_hand)
    } else if !in_the_way.is_empty() {
        let cause =
            format!("{onto} brings files that are untracked here: {}", name_files(&in_the_way));
        (cause, "move them away or commit them, then crew resume".to_owned())
    } else {
        return said.fault(GitStep::Rebase);
    };
    GitFault::new(GitStep::Rebase, GitTrouble::Conflict, cause, hint)
}

/// Restores the branch, the files and the uncommitted changes.
fn undo_failed(
    steps: &Steps<'_>,
    underway: &Underway<'_>,
    head: &str,
    is_finished: bool,
) -> Result<(), GitFault> {
    // This must finish, because it restores the user's state.
    let steps = &steps.to_the_end();
    if !is_finished {
        // This git may be killed too.
        let again = Deadline::after(UNDO_AGAIN);
        let undone = loop {
            underway.clear_locks();
            let undone = undo_rebase(steps.git(), &steps.folder(), head);
            if undone.is_ok() || again.passed() {
                break undone;
            }
        };
        if let Err(fault) = undone {
            return Err(not_undone(head, &format!(": {}", fault.cause)));
        }
    } else if let Some((place, stash)) = set_aside(steps, head) {
        steps.well(GitStep::Rebase, &["reset", "-q", "--hard", head])?;
        steps.well(GitStep::Rebase, &["stash", "apply", "-q", "--index", &stash])?;
        steps.well(GitStep::Rebase, &["stash", "drop", "-q", &format!("stash@{{{place}}}")])?;
    }
    if Git::here(steps.checkout()).commit("HEAD").as_deref() == Some(head) {
        return Ok(());
    }
    Err(not_undone(head, ""))
}

fn not_undone(head: &str, why: &str) -> GitFault {
    let cause = format!("it failed and could not be undone{why}");
    let hint = format!("git status shows its state; the branch was at {head}");
    GitFault::new(GitStep::Rebase, GitTrouble::Unfinished, cause, hint)
}

/// git's stash of the uncommitted changes on top of `head`: its index in the list, and its commit.
/// All working trees of a repository share the list, so others may be above it.
fn set_aside(steps: &Steps<'_>, head: &str) -> Option<(usize, String)> {
    let list = run_git(steps.checkout(), &["stash", "list", "--format=%H %P"])?;
    for (place, line) in list.lines().enumerate() {
        if let Some((stash, parents)) = line.split_once(' ')
            && parents.starts_with(head)
        {
            return Some((place, stash.to_owned()));
        }
    }
    None
}

/// Stages these entries again, except paths that differ between `before` and HEAD, where they would
/// revert the other branch's changes.
fn stage_again(
    steps: &Steps<'_>,
    mut staged: Vec<IndexEntry>,
    before: &str,
) -> Result<(), GitFault> {
    if staged.is_empty() {
        return Ok(());
    }
    // This must finish, because nothing else remembers what was staged.
    let steps = &steps.to_the_end();
    let form = ["diff-tree", "-r", "--raw", "--no-renames", "--no-abbrev", "-z", before, "HEAD"];
    let moved = parse_raw_diff(&steps.printed(GitStep::Rebase, &form, &[])?);
    let moved: BTreeSet<Vec<u8>> = moved.into_iter().map(|entry| entry.path).collect();
    staged.retain(|entry| !moved.contains(&entry.path));
    let input: Vec<u8> = staged.iter().flat_map(IndexEntry::index_info).collect();
    steps.printed(GitStep::Rebase, &["update-index", "-z", "--index-info"], &input).map(drop)
}

/// The longest time a push may take. The next push sends what is missing.
const PUSH_WITHIN: Duration = Duration::from_secs(120);

/// The target of a push.
struct PushTarget {
    remote: String,
    branch: String,
    target: String,
    has_upstream: bool,
}

/// Pushes the current branch, if it is the loop's `own`. Without an upstream it goes to the branch
/// of its name at the only remote, or at `origin`, which becomes its upstream. Commits that crew
/// `sent` before and has rebased since are replaced there, unless another person has pushed. If the
/// loop `rebases`, the hint does not propose a rebase back.
pub fn push_branch(
    steps: &Steps<'_>,
    own: Option<&str>,
    sent: Option<&Sent>,
    rebases: bool,
) -> Result<Pushed, GitFault> {
    let state = steps.head_state(GitStep::Push)?;
    steps.check_unchanged(GitStep::Push, &state)?;
    if let Some(branch) = state.branch.as_deref().filter(|branch| Some(*branch) != own) {
        let mut fault = another_branch(GitStep::Push, Some(branch), own);
        let back = own.map(|_| fault.hint + ", or ").unwrap_or_default();
        fault.hint = format!("{back}crew resume --push continues on {branch}");
        return Err(fault);
    }
    let to = find_target(steps, &state)?;
    let commit = state.head.clone().unwrap_or_default();
    send_lfs(steps, &to.remote, &to.branch)?;
    let refspec = format!("refs/heads/{}:refs/heads/{}", to.branch, to.target);
    let of_submodules = of_submodules(steps.checkout());
    // A mirror would have to send every ref.
    let no_mirror = format!("remote.{}.mirror=false", to.remote);
    let mut arguments: Vec<&str> = ["-c", &no_mirror].into_iter().chain(words_of(PUSH)).collect();
    arguments.push(of_submodules);
    if !to.has_upstream {
        arguments.push("--set-upstream");
    }
    let lease = lease_option(steps, &to, &commit, sent);
    arguments.extend(lease.as_deref());
    arguments.extend(["--", &to.remote, &refspec]);
    let _underway = Underway::begin(steps, GitStep::Push, &commit);
    let git = Git { online: true, within: Some(PUSH_WITHIN), ..steps.git() };
    let said = git.said(&arguments);
    if !said.is_good() {
        return Err(explain_push(&said, &to, lease.is_some(), rebases));
    }
    Ok(Pushed {
        was_up_to_date: was_up_to_date(&said.text).unwrap_or(false),
        upstream_was_set: !to.has_upstream,
        remote: to.remote,
        branch: to.target,
        commit,
    })
}

/// Sends the files of git LFS that a branch has and the remote may lack. Fails if they are not all
/// there afterwards, or if that is unknown.
pub fn send_lfs(steps: &Steps<'_>, remote: &str, branch: &str) -> Result<(), GitFault> {
    let mut urls = ["pushurl", "url"].iter();
    let url =
        urls.find_map(|key| read_setting(steps.checkout(), &format!("remote.{remote}.{key}")));
    let address = url.unwrap_or_else(|| remote.to_owned());
    let git = Git { online: true, ..steps.git() };
    let (repository, address) = (steps.checkout(), &*address);
    let push = LfsPush { git, remote, address, repository, clones: &[], branch: Some(branch) };
    let (own, seen) = (format!("refs/heads/{branch}"), format!("--remotes={remote}"));
    push.send(&[&own, "--not", &seen])
}

/// The last known state of the current branch at its remote, if nothing of that is missing here.
pub fn seen_at_remote(steps: &Steps<'_>) -> Option<Sent> {
    let state = steps.head_state(GitStep::Push).ok()?;
    let PushTarget { remote, target: branch, .. } = find_target(steps, &state).ok()?;
    let commit = Git::here(steps.checkout()).commit(&format!("refs/remotes/{remote}/{branch}"))?;
    if !steps.holds(&commit, state.head.as_deref()?) {
        return None;
    }
    Some(Sent { remote, branch, commit, rebased: None })
}

/// The option that lets a push replace commits, but only those that crew pushed and has rebased
/// since.
fn lease_option(
    steps: &Steps<'_>,
    to: &PushTarget,
    commit: &str,
    sent: Option<&Sent>,
) -> Option<String> {
    let sent = sent?;
    if (&sent.remote, &sent.branch) != (&to.remote, &to.target)
        || !steps.holds(sent.rebased.as_ref()?, commit)
        || steps.holds(&sent.commit, commit)
    {
        return None;
    }
    Some(format!("--force-with-lease=refs/heads/{}:{}", to.target, sent.commit))
}

/// The option for submodule commits that a push refers to: as the user's setting says; without one,
/// the push is refused if they are on no remote.
fn of_submodules(folder: &Path) -> &'static str {
    match read_setting(folder, "push.recurseSubmodules").as_deref() {
        Some("no" | "false" | "off" | "0") => "--recurse-submodules=no",
        Some("on-demand" | "only") => "--recurse-submodules=on-demand",
        _ => "--recurse-submodules=check",
    }
}

/// The target of a push: the branch of the same name. A branch made from `origin/main` has that as
/// its upstream and must not be pushed there.
fn find_target(steps: &Steps<'_>, state: &HeadState) -> Result<PushTarget, GitFault> {
    let Some(branch) = state.branch.clone() else {
        let hint = "git switch BRANCH, or git switch -c NEW".to_owned();
        return Err(push_fault(GitTrouble::Other, "no branch is checked out".to_owned(), hint));
    };
    let checkout = steps.checkout();
    let upstream = read_setting(checkout, &format!("branch.{branch}.remote"));
    let merge = read_setting(checkout, &format!("branch.{branch}.merge"));
    let has_upstream = upstream.is_some() && merge.is_some();
    let named = read_setting(checkout, &format!("branch.{branch}.pushRemote"))
        .or_else(|| read_setting(checkout, "remote.pushDefault"))
        .or_else(|| upstream.clone().filter(|name| name != "."));
    let remote = match named {
        Some(remote) => remote,
        None => only_remote(steps, &branch)?,
    };
    let default = read_setting(checkout, "push.default");
    let to_upstream = matches!(default.as_deref(), Some("upstream" | "tracking"));
    let target = match merge.as_deref().and_then(|merge| merge.strip_prefix("refs/heads/")) {
        Some(merge) if to_upstream && upstream.as_ref() == Some(&remote) => merge.to_owned(),
        _ => branch.clone(),
    };
    Ok(PushTarget { remote, branch, target, has_upstream })
}

/// The remote when no setting names one: the only remote, else `origin`.
fn only_remote(steps: &Steps<'_>, branch: &str) -> Result<String, GitFault> {
    let remotes = run_git(steps.checkout(), &["remote"]).unwrap_or_default();
    let remotes: Vec<&str> = remotes.lines().collect();
    let (cause, hint) = match remotes[..] {
        [only] => return Ok(only.to_owned()),
        _ if remotes.contains(&"origin") => return Ok("origin".to_owned()),
        [] => {
            let cause = "this repository has no remote".to_owned();
            (cause, "git remote add origin ADDRESS".to_owned())
        }
        _ => {
            let cause = format!("none of the remotes {} is this branch's", remotes.join(", "));
            (cause, format!("git push -u REMOTE {branch}, once"))
        }
    };
    Err(push_fault(GitTrouble::NoRemote, cause, hint))
}

fn explain_push(said: &Said, to: &PushTarget, leased: bool, rebases: bool) -> GitFault {
    let PushTarget { remote, branch, target, .. } = to;
    let lacking = submodules_on_no_remote(&said.text);
    if let Some(first) = lacking.first() {
        let cause = format!("commits of submodules are on no remote: {}", name_files(&lacking));
        let hint = format!("push them first: git -C {} push origin HEAD:BRANCH", quote(first));
        return push_fault(GitTrouble::Incomplete, cause, hint);
    }
    let situation = match (leased, rebases) {
        (true, _) => "leased",
        (_, true) => "rebases",
        _ => "",
    };
    let names = [("{remote}", &**remote), ("{branch}", branch), ("{target}", target)];
    said.remote_fault(GitStep::Push, situation, &names)
}

pub(super) fn push_fault(trouble: GitTrouble, cause: String, hint: String) -> GitFault {
    GitFault { step: GitStep::Push, trouble, cause, hint }
}
