//! The push: its target and its result. It always names one local and one remote branch, whatever
//! `push.default` says.

use std::path::Path;
use std::time::Duration;

use shell_words::quote;

use super::command::Said;
use super::lfs::LfsPush;
use super::steps::{Steps, Underway, another_branch};
use super::{Git, run_git};
use crate::env;
use engine::git::{GitFault, GitStep, GitTrouble, Pushed, name_files};
use engine::record::Sent;
use engine::text::words_of;
use readers::parse::git::HeadState;
use readers::parse::remote::{classify_failure, submodules_on_no_remote, was_up_to_date};

/// The longest a push may take. What is missing is sent by the next push.
const WITHIN: Duration = Duration::from_secs(120);

/// The words of every push of crew.
pub(super) const PUSH: &str = "push --porcelain --no-progress --no-verify --no-signed";

/// The target of a push.
struct PushTarget {
    remote: String,
    branch: String,
    target: String,
    has_upstream: bool,
}

/// Pushes the branch that is checked out, if it is the loop's `own`. Without an upstream it
/// goes to the branch of its name at the only remote, or at `origin`, and follows that one from
/// now on. What crew `sent` before and has rebased since is replaced there, unless somebody
/// else has pushed. Where the loop `rebases`, the hint does not propose a rebase back.
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
        let back = own.map(|_| fault.cure + ", or ").unwrap_or_default();
        fault.cure = format!("{back}crew resume --push continues on {branch}");
        return Err(fault);
    }
    let to = find_target(steps, &state)?;
    let commit = state.head.clone().unwrap_or_default();
    send_lfs(steps, &to.remote, &to.branch)?;
    let refspec = format!("refs/heads/{}:refs/heads/{}", to.branch, to.target);
    let of_submodules = of_submodules(steps.checkout());
    // With it a push would have to send every ref.
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
    let said = talk_to_remote(steps, WITHIN, &arguments);
    if !said.is_good() {
        return Err(explain_failure(&said, &to, lease.is_some(), rebases));
    }
    Ok(Pushed {
        was_up_to_date: was_up_to_date(&said.text).unwrap_or(false),
        upstream_was_set: !to.has_upstream,
        remote: to.remote,
        branch: to.target,
        commit,
    })
}

/// Sends the files of git LFS that a branch has and the remote may lack. Fails if they are not
/// all there afterwards, or if that cannot be known.
pub fn send_lfs(steps: &Steps<'_>, remote: &str, branch: &str) -> Result<(), GitFault> {
    let mut urls = ["pushurl", "url"].iter();
    let url =
        urls.find_map(|key| read_setting(steps.checkout(), &format!("remote.{remote}.{key}")));
    let address = url.unwrap_or_else(|| remote.to_owned());
    let variables = ssh_variables(steps.checkout());
    let git = Git { variables: &variables, online: true, ..steps.git() };
    let (repository, address) = (steps.checkout(), &*address);
    let push = LfsPush { git, remote, address, repository, clones: &[], branch: Some(branch) };
    let (own, seen) = (format!("refs/heads/{branch}"), format!("--remotes={remote}"));
    push.send(&[&own, "--not", &seen])
}

/// Runs a git that talks to the remote.
fn talk_to_remote(steps: &Steps<'_>, within: Duration, arguments: &[&str]) -> Said {
    let (variables, within) = (ssh_variables(steps.checkout()), Some(within));
    Git { variables: &variables, online: true, within, ..steps.git() }.said(arguments)
}

/// What its remote was last seen to have of the branch that is checked out, if nothing of that
/// is missing here.
pub fn seen_at_remote(steps: &Steps<'_>) -> Option<Sent> {
    let state = steps.head_state(GitStep::Push).ok()?;
    let PushTarget { remote, target: branch, .. } = find_target(steps, &state).ok()?;
    let commit = Git::here(steps.checkout()).commit(&format!("refs/remotes/{remote}/{branch}"))?;
    if !steps.holds(&commit, state.head.as_deref()?) {
        return None;
    }
    Some(Sent { remote, branch, commit, rebased: None })
}

/// Allows a push to replace only commits that crew itself pushed and has rebased since.
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

/// What becomes of the commits of submodules that a push refers to: as the user's setting says, and
/// without one it is refused where they are on no remote.
fn of_submodules(folder: &Path) -> &'static str {
    match read_setting(folder, "push.recurseSubmodules").as_deref() {
        Some("no" | "false" | "off" | "0") => "--recurse-submodules=no",
        Some("on-demand" | "only") => "--recurse-submodules=on-demand",
        _ => "--recurse-submodules=check",
    }
}

/// An ssh command that never prompts, unless the user has chosen one.
pub(super) fn ssh_variables(folder: &Path) -> Vec<(&'static str, String)> {
    let theirs = env::text("GIT_SSH_COMMAND").or_else(|| env::text("GIT_SSH"));
    match theirs.or_else(|| read_setting(folder, "core.sshCommand")) {
        Some(_) => Vec::new(),
        None => vec![("GIT_SSH_COMMAND", "ssh -o BatchMode=yes".to_owned())],
    }
}

/// The branch of the same name at the remote. A branch made from `origin/main` has that as its
/// upstream and must not be pushed there.
fn find_target(steps: &Steps<'_>, state: &HeadState) -> Result<PushTarget, GitFault> {
    let Some(branch) = state.branch.clone() else {
        let cure = "git switch BRANCH, or git switch -c NEW".to_owned();
        return Err(push_fault(GitTrouble::Other, "no branch is checked out".to_owned(), cure));
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

/// The remote if no setting names one: the only remote, else `origin`.
fn only_remote(steps: &Steps<'_>, branch: &str) -> Result<String, GitFault> {
    let remotes = run_git(steps.checkout(), &["remote"]).unwrap_or_default();
    let remotes: Vec<&str> = remotes.lines().collect();
    let (cause, cure) = match remotes[..] {
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
    Err(push_fault(GitTrouble::NoRemote, cause, cure))
}

pub(super) fn read_setting(folder: &Path, name: &str) -> Option<String> {
    let value = Git::here(folder).line(&["config", "--get", name]);
    value.filter(|value| !value.is_empty())
}

fn explain_failure(said: &Said, to: &PushTarget, leased: bool, rebases: bool) -> GitFault {
    let PushTarget { remote, branch, target, .. } = to;
    let lacking = submodules_on_no_remote(&said.text);
    if let Some(first) = lacking.first() {
        let cause = format!("commits of submodules are on no remote: {}", name_files(&lacking));
        let cure = format!("push them first: git -C {} push origin HEAD:BRANCH", quote(first));
        return push_fault(GitTrouble::Incomplete, cause, cure);
    }
    let (trouble, cause) = match said.exit {
        Some(_) => classify_failure(&said.text),
        None => (GitTrouble::Network, said.text.clone()),
    };
    let cure = match trouble {
        GitTrouble::Auth => format!(
            "make git push {remote} {branch} work without a question here: a key, a credential helper, \
             the right to push"
        ),
        GitTrouble::Network => {
            format!("the next push brings it; by hand: git push {remote} {branch}")
        }
        GitTrouble::NonFastForward if leased => format!(
            "somebody else pushed to {target}: git fetch {remote}, then git log HEAD..{remote}/{target} shows it"
        ),
        GitTrouble::NonFastForward if rebases => format!(
            "git fetch {remote}, then git log HEAD..{remote}/{target} shows what it has; \
             git push --force-with-lease {remote} {branch} puts this in its place"
        ),
        GitTrouble::NonFastForward => {
            format!("git pull --rebase {remote} {target}, then git push {remote} {branch}")
        }
        GitTrouble::NoRemote => {
            format!("look at git remote -v, then git remote set-url {remote} ADDRESS")
        }
        GitTrouble::Rejected if cause.contains("LFS") => format!("git lfs push {remote} {branch}"),
        GitTrouble::Rejected => {
            format!("do what the remote asks for, or push another branch than {target}")
        }
        _ => format!("git push {remote} {branch} by hand shows all of it"),
    };
    push_fault(trouble, cause, cure)
}

pub(super) fn push_fault(trouble: GitTrouble, cause: String, cure: String) -> GitFault {
    GitFault { step: GitStep::Push, trouble, cause, cure }
}
