//! What the steps that change a repository (commit, push, rebase) share. They do what the user
//! asked for, with the user's own helpers and filters. They run no hook, ask no question, and start
//! no program that was planted in the repository's configuration since the run began. They refuse
//! to work if git no longer finds the repository in which the loop started. A failed step leaves
//! the working tree as it was, and the leftovers of a killed crew process's step are cleaned up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{all_words, may_be_2_54};
use super::{Git, head, read_head, run_git};
use crate::clock::Deadline;
use crate::files::disk::{self, Durability};
use crate::files::tree;
#[cfg(not(target_os = "linux"))]
use crate::process;
#[cfg(target_os = "linux")]
use crate::process::identity;
use crate::process::{ExitCause, Stop};
use crate::store::hash;
use engine::git::GitTrouble::{self, Other, Repository};
use engine::git::{GitBaseline, GitFault, GitSetting, GitStep};
use engine::record::Place;
use engine::text::variant_name;
use readers::parse::git::{HeadState, find_error, is_id, parse_head, parse_repository_settings};
use readers::parse::remote::without_secrets;

/// The programs and places that the repository's configuration currently names; `None` outside git
/// and with a git version older than 2.26. git-lfs and git-crypt depend on such settings, so steps
/// must allow them.
pub fn read_trusted(checkout: &Path) -> Option<GitBaseline> {
    let listed = run_git(checkout, &["config", "--list", "--show-scope", "-z"])?;
    let mut found = parse_repository_settings(&listed);
    found.retain(|setting| setting.names_a_program() || setting.names_a_place());
    Some(GitBaseline(found.into_iter().map(without_value).collect()))
}

/// A setting as it is recorded: with a hash in place of its value, and no password in its name.
pub(super) fn without_value(GitSetting { name, value }: GitSetting) -> GitSetting {
    let clean = without_secrets(&name);
    let kept = if clean == name { value } else { format!("{name}\n{value}") };
    GitSetting { name: clean, value: hash(kept.as_bytes()) }
}

/// The recorded settings, after one of crew's pushes set the upstream of `branch` to its name at
/// `remote`.
pub fn trusted_following(trusted: &GitBaseline, branch: &str, remote: &str) -> GitBaseline {
    let [whose, which] = ["remote", "merge"].map(|key| format!("branch.{branch}.{key}"));
    let mut settings = trusted.0.clone();
    settings.retain(|setting| ![&whose, &which].contains(&&setting.name));
    let target = format!("refs/heads/{branch}");
    for (name, value) in [(whose, remote), (which, &*target)] {
        settings.push(GitSetting { name, value: hash(value.as_bytes()) });
    }
    GitBaseline(settings)
}

/// The git steps in one checkout.
pub struct Steps<'a> {
    pub place: &'a Place,
    /// The settings as they were when the loop began.
    trusted: &'a GitBaseline,
    /// The condition that ends a running step early.
    stop: Stop<'a>,
}

impl<'a> Steps<'a> {
    /// Steps at a loop's place, limited to the repository and the settings it began with.
    pub fn new(place: &'a Place, trusted: &'a GitBaseline, stop: Stop<'a>) -> Self {
        Self { place, trusted, stop }
    }

    /// The same steps without a condition that ends them early.
    pub(super) fn to_the_end(&self) -> Self {
        Self::new(self.place, self.trusted, &|| false)
    }

    /// The root of the working tree.
    pub(super) fn checkout(&self) -> &'a Path {
        &self.place.checkout
    }

    /// A call of git in the checkout that the condition can end early.
    pub(super) fn git(&self) -> Git<'a> {
        Git { stop: Some(self.stop), ..Git::here(self.checkout()) }
    }

    /// What is checked out, if this is still the repository the loop began in.
    pub fn head_state(&self, step: GitStep) -> Result<HeadState, GitFault> {
        read_head_state(self.place, step)
    }

    /// Checks that no operation is in progress and no program was planted.
    pub(super) fn begin(&self, step: GitStep) -> Result<HeadState, GitFault> {
        let state = self.head_state(step)?;
        self.check_unchanged(step, &state)?;
        let Some(what) = find_unfinished(&self.folder()) else { return Ok(state) };
        let (cause, hint) = (format!("a {what} is in progress"), format!("git {what} --abort"));
        Err(GitFault::new(step, GitTrouble::Unfinished, cause, format!("finish it, or {hint}")))
    }

    /// git's folder; a linked working tree has a separate one inside the repository's.
    pub(super) fn folder(&self) -> PathBuf {
        let known = self.place.repository.clone();
        known.or_else(|| repository_folder(self.checkout())).unwrap_or_default()
    }

    /// Fails if a setting changed since the run began. Settings for the target of a push matter
    /// only to a push.
    pub(super) fn check_unchanged(&self, step: GitStep, state: &HeadState) -> Result<(), GitFault> {
        let branch = state.branch.as_deref().unwrap_or_default();
        let pushed = if step == GitStep::Push { Some(branch) } else { None };
        check_unplanted(self.checkout(), self.trusted, step, pushed)
    }

    /// Runs a step and returns its output.
    pub(super) fn well(&self, step: GitStep, arguments: &[&str]) -> Result<String, GitFault> {
        self.git().well(step, arguments)
    }

    /// Runs a step with this input and returns its output, byte for byte.
    pub(super) fn printed(
        &self,
        step: GitStep,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, GitFault> {
        let ended = Git { input, ..self.git() }.step(arguments).map_err(|said| said.fault(step))?;
        ended.whole_output(&[0]).ok_or_else(|| {
            let cause = "more paths differ than crew lists";
            GitFault::new(step, Other, cause, "add generated files to .gitignore")
        })
    }

    /// Whether one commit is an ancestor of another, or the same commit.
    pub fn holds(&self, older: &str, newer: &str) -> bool {
        self.git().said(&["merge-base", "--is-ancestor", older, newer]).is_good()
    }
}

/// Fails if a setting in `folder` changed that names a program or affects a push of this branch.
pub fn check_unplanted(
    folder: &Path,
    before: &GitBaseline,
    step: GitStep,
    pushed: Option<&str>,
) -> Result<(), GitFault> {
    let Some(now) = read_trusted(folder) else {
        let cause = "git does not list the settings of the repository";
        return Err(GitFault::new(step, Other, cause, "try git config --list here"));
    };
    let changed = now.changed_since(before).find(|setting| {
        setting.names_a_program() || pushed.is_some_and(|own| !setting.is_of_another_branch(own))
    });
    let Some(changed) = changed else { return Ok(()) };
    let cause = format!("the setting {} changed during this run", changed.name);
    let hint = "look at git config --list --show-origin; a new run accepts it";
    Err(GitFault::new(step, GitTrouble::Changed, cause, hint))
}

/// The files in git's folder that show an operation in progress, each with the operation's name.
const UNFINISHED: [(&str, &str); 5] = [
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
];

/// The operation that is in progress, according to git's folder of a working tree.
fn find_unfinished(folder: &Path) -> Option<&'static str> {
    let found = UNFINISHED.iter().find(|(file, _)| disk::exists(&folder.join(file)))?;
    Some(found.1)
}

/// Whether an operation of git is in progress in a working tree.
pub(super) fn is_unfinished(checkout: &Path) -> bool {
    find_unfinished(&repository_folder(checkout).unwrap_or_else(|| checkout.join(".git"))).is_some()
}

/// The fault when a branch other than the loop's, `own`, is checked out: crew must not rewrite it.
pub(super) fn another_branch(step: GitStep, branch: Option<&str>, own: Option<&str>) -> GitFault {
    let branch = match branch {
        Some(branch) => format!("{branch} is checked out"),
        None => "no branch is checked out".to_owned(),
    };
    let (own, hint) = match own {
        Some(own) => (format!("the loop's is {own}"), format!("git switch {own}")),
        None => ("the loop began on none".to_owned(), "git switch --detach".to_owned()),
    };
    let cause = format!("{branch}, and {own}");
    GitFault::new(step, GitTrouble::Branch, cause, hint)
}

/// The fault when there already is an unresolved conflict.
pub(super) fn conflict_fault(step: GitStep, path: &str) -> GitFault {
    let cause = format!("{path} has an unresolved conflict");
    GitFault::new(step, GitTrouble::Unfinished, cause, "resolve it, then git add the file")
}

/// git's folder of a working tree, as git prints its path.
pub fn repository_folder(top: &Path) -> Option<PathBuf> {
    Some(Git::here(top).line(&["rev-parse", "--absolute-git-dir"])?.into())
}

/// Whether the repository seems to exist, without starting git: for iterations in which crew
/// changes nothing.
pub fn seems_there(place: &Place) -> bool {
    let Some(repository) = &place.repository else { return true };
    disk::exists(&place.checkout.join(".git")) && disk::size(&repository.join("HEAD")) > 0
}

/// The maximum number of names in git's folder of a clone examined.
const CLONE_NAMES: usize = 1_000_000;
/// The folders in it where no step of crew overwrites a file.
const UNSEEN: [&str; 4] = ["hooks", "lfs", "modules", "objects"];

/// Fails if git would work outside the clone's own `.git`. An agent may have replaced it with a
/// file or a link, or planted in it what leads to the files, the refs or the index of another
/// repository, which a step would then change.
pub fn stays_inside(clone: &Path, step: GitStep) -> Result<(), GitFault> {
    let clone = &disk::real_path(clone).unwrap_or_else(|_| clone.to_owned());
    let form = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir"];
    let found = Git::here(clone).line(&[&form[..], &["--git-common-dir"]].concat());
    let own = clone.join(".git");
    let is_own = found == Some(format!("{}\n{1}\n{1}", clone.display(), own.display()));
    refuse_outside(clone, is_own, step)
}

/// Fails for a clone that [`leads_outside`].
fn refuse_outside(clone: &Path, is_own: bool, step: GitStep) -> Result<(), GitFault> {
    let Some(cause) = leads_outside(clone, is_own) else { return Ok(()) };
    let hint = "move the clone away: the task then gets a new one when it is resumed";
    Err(GitFault::new(step, Repository, cause, hint))
}

/// Why git would work outside the folder `.git` of a clone; `None` if it would not. `is_own` says
/// whether git itself named that folder.
fn leads_outside(clone: &Path, is_own: bool) -> Option<String> {
    let own = clone.join(".git");
    if !is_own || !tree::is_folder(&own) || keeps_refs_elsewhere(clone) {
        return Some(format!("{} is no longer a repository of its own", clone.display()));
    }
    let names = tree::files_within(&own, CLONE_NAMES, |below| {
        !UNSEEN.iter().any(|name| below == Path::new(name))
    });
    if names.len() == CLONE_NAMES {
        return Some(format!("{} has more than a million files", own.display()));
    }
    let mut links = names.iter().filter(|name| tree::kind(&own.join(name)) == "link");
    let link = links.find(|name| name.as_path() != Path::new("hooks"))?;
    Some(format!("{} leads elsewhere", own.join(link).display()))
}

/// Whether a setting moves a clone's refs to another place, which git 2.54 supports.
fn keeps_refs_elsewhere(clone: &Path) -> bool {
    let storage = ["config", "--get", "extensions.refStorage"];
    may_be_2_54() && Git::here(clone).line(&storage).is_some_and(|storage| storage.contains(':'))
}

/// What is checked out, if the repository is the one in which the loop started.
pub fn read_head_state(place: &Place, step: GitStep) -> Result<HeadState, GitFault> {
    let start = place.head.as_ref().map(|head| format!("{head}^{{commit}}"));
    let mut arguments = vec!["rev-parse", "--show-toplevel"];
    if place.repository.is_some() {
        arguments.push("--absolute-git-dir");
    }
    if place.is_clone {
        arguments.extend(["--path-format=absolute", "--git-dir", "--git-common-dir"]);
    }
    arguments.extend(start.as_deref());
    arguments.extend(["HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"]);
    let ended = Git::here(&place.checkout).start(&arguments).map_err(|error| {
        let cause = format!("git cannot be started: {error}");
        GitFault::new(step, Other, cause, "make sure that git is on PATH")
    })?;
    let ExitCause::Exit(code) = ended.cause() else {
        return Err(GitFault::new(step, Other, "git did not answer", "try git status here"));
    };
    let text = ended.text();
    if place.is_clone {
        refuse_outside(&place.checkout, skip_places(place, &text).is_some(), step)?;
    }
    parse_head_state(place, &text, code == 0).map_err(|cause| {
        let hint = format!("{}, then crew resume", hint_at_repair(place));
        GitFault::new(step, Repository, cause, hint)
    })
}

/// The rest of git's output after its folders, if they match those of the place. In a clone, git
/// must work in the clone's own `.git`.
fn skip_places<'text>(place: &Place, text: &'text str) -> Option<&'text str> {
    let own = if place.is_clone { vec![place.checkout.join(".git"); 2] } else { Vec::new() };
    let mut places = [&place.checkout].into_iter().chain(&place.repository).chain(&own);
    places.try_fold(text, |rest, path| rest.strip_prefix(&format!("{}\n", path.display())))
}

/// What is checked out, according to git's output; the error says why this is another repository.
fn parse_head_state(place: &Place, text: &str, is_whole: bool) -> Result<HeadState, String> {
    let Some(rest) = skip_places(place, text) else { return Err(explain_missing(place, text)) };
    let mut lines = rest.lines();
    if let Some(start) = &place.head
        && lines.next() != Some(start)
    {
        let start = start.get(..12).unwrap_or(start);
        return Err(format!(
            "{} does not hold {start}, where this loop began",
            repository_name(place)
        ));
    }
    if is_whole {
        return Ok(parse_head(lines));
    }
    match read_head(&place.checkout).0 {
        branch if place.head.is_none() => Ok(HeadState { branch, ..HeadState::default() }),
        Some(branch) => Err(format!("the branch {branch} no longer has a commit")),
        None => Err("HEAD no longer has a commit".to_owned()),
    }
}

/// The hint when a repository cannot be found. For a working tree that shares one, git can restore
/// the lost link, without a complaint only from the shared one.
fn hint_at_repair(place: &Place) -> String {
    if let Some(own) = &place.repository
        && let Some(trees) = own.parent().filter(|trees| trees.ends_with("worktrees"))
        && let Some(shared) = trees.parent()
        && disk::is_missing(&place.checkout.join(".git"))
    {
        let shared = shared.to_string_lossy();
        return format!("git -C {} worktree repair puts it back", shell_words::quote(&shared));
    }
    "put it back as it was".to_owned()
}

fn repository_name(place: &Place) -> String {
    let usual = place.checkout.join(".git");
    place.repository.as_ref().unwrap_or(&usual).display().to_string()
}

/// Why git does not find the repository.
fn explain_missing(place: &Place, found: &str) -> String {
    let link = place.checkout.join(".git");
    if disk::is_missing(&link) {
        return format!("{} is gone", link.display());
    }
    if let Some(found) = found.lines().nth(1) {
        return format!(
            "git finds another repository here, {found}, not {}",
            repository_name(place)
        );
    }
    let said = Git::here(&place.checkout).start(&["rev-parse", "--git-dir"]);
    let said = said.map_or_else(|error| error.to_string(), |ended| find_error(&all_words(&ended)));
    format!("{} cannot be read: {said}", repository_name(place))
}

/// The name of the file that marks a step in progress, and its largest size in bytes.
const MARK: &str = "crew-step";
const MARK_BYTES: u64 = 4096;
/// The maximum number of names of a folder, or of all refs, searched for locks.
const LOCKS_MAX: usize = 10_000;
/// How long any other program may hold a lock, how long a lock may block a step, the longest wait
/// for a git process to end, and the time between two polls.
const LOCK_HELD: Duration = Duration::from_secs(1);
const LOCK_GOES: Duration = Duration::from_secs(2);
const GIT_ENDS: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

/// The mark of a step in progress. Dropping it removes the mark, and any locks left by a git
/// process of the step that was killed.
#[derive(Debug)]
#[must_use]
pub(super) struct Underway<'a> {
    checkout: &'a Path,
    folder: PathBuf,
    /// The locks from before the step, which belong to others.
    before: Vec<PathBuf>,
}

impl<'a> Underway<'a> {
    /// Marks the beginning of a step, with the commit that is checked out.
    pub fn begin(steps: &Steps<'a>, step: GitStep, head: &str) -> Self {
        let (checkout, folder) = (steps.checkout(), steps.folder());
        let before = list_locks(&folder);
        let text = format!("{} {head}", variant_name(&step));
        let _ = disk::write(&folder.join(MARK), text.as_bytes(), Durability::Remade);
        Self { checkout, folder, before }
    }

    /// Removes the locks left by a git process of the step that was killed.
    pub fn clear_locks(&self) {
        remove_locks(self.checkout, &self.folder, |lock| !self.before.contains(lock));
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.clear_locks();
        let _ = disk::remove(&self.folder.join(MARK));
    }
}

/// Cleans up after a step of a killed crew in a working tree: its locks, a rebase in progress, a
/// commit that the index lacks. The caller makes sure that no crew works there now. Without a mark
/// nothing is done.
///
/// # Errors
/// If a git works there that may have made a lock, or git cannot put it back; the mark then stays.
pub fn put_back(checkout: &Path) -> Result<(), GitFault> {
    let Some(folder) = repository_folder(checkout) else { return Ok(()) };
    let mark = folder.join(MARK);
    let Some(step) = disk::read_text(&mark, MARK_BYTES).ok().flatten() else { return Ok(()) };
    // A lock that is older than the mark belongs to another program. Times are all that is left to
    // tell by; a clock that was set back leaves such a lock to the user.
    let begun = disk::stamp(&mark).map(|(_, written)| written);
    if !remove_locks(checkout, &folder, |lock| disk::stamp(lock).map(|(_, made)| made) >= begun) {
        let (cause, hint) = ("another git process holds a lock here", "let it finish");
        return Err(GitFault::new(GitStep::Commit, GitTrouble::Unfinished, cause, hint));
    }
    match step.split_once(' ') {
        Some(("rebase", head)) => undo_rebase(Git::here(checkout), &folder, head)?,
        Some(("commit", head)) => {
            let list = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", head, "HEAD"];
            let paths = run_git(checkout, &list).unwrap_or_default();
            let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            let git = Git { input: paths.as_bytes(), ..Git::here(checkout) };
            git.well(GitStep::Commit, &update)?;
        }
        _ => {}
    }
    let _ = disk::remove(&mark);
    Ok(())
}

/// Cleans up after a step of a killed crew where a loop works.
pub fn put_back_in(place: &Place) -> Result<(), GitFault> {
    if place.is_clone {
        stays_inside(&place.checkout, GitStep::Commit)?;
    }
    put_back(&place.checkout)
}

/// Removes every lock that killed git processes left in a clone where no other process works. False
/// if a git process is still running there.
pub fn clear_locks(clone: &Path) -> bool {
    repository_folder(clone).is_none_or(|folder| remove_locks(clone, &folder, |_| true))
}

/// Removes the step's locks, once no git process works in the repository; false if one still does.
/// Other programs hold a lock for less time than this waits.
fn remove_locks(checkout: &Path, folder: &Path, is_ours: impl Fn(&PathBuf) -> bool) -> bool {
    let mut left = list_locks(folder);
    left.retain(is_ours);
    let trees = if left.is_empty() { Vec::new() } else { head::list_roots(checkout) };
    let held = Deadline::after(LOCK_HELD);
    let quiet = Deadline::after(GIT_ENDS).poll(LOOK, || {
        left.retain(|lock| disk::exists(lock));
        let is_quiet = left.is_empty() || (held.passed() && !git_works(&trees));
        if is_quiet { Some(()) } else { None }
    });
    if quiet.is_none() {
        return false;
    }
    for lock in left {
        let _ = disk::remove(&lock);
    }
    true
}

/// A lock that blocks a branch and does not go away soon. With such a lock, a failed rebase is
/// undone only in part: the files may stay as the other branch has them.
pub(super) fn held_lock(folder: &Path, branch: Option<&str>) -> Option<PathBuf> {
    let shared = head::common_folder(folder);
    let own = ["index.lock", "HEAD.lock"].map(|name| folder.join(name));
    let refs = branch.map(|branch| shared.join(format!("refs/heads/{branch}.lock")));
    let mut locks: Vec<PathBuf> = own.into_iter().chain(refs).collect();
    locks.push(shared.join("packed-refs.lock"));
    held_locks(locks).pop()
}

/// The locks among these that do not go away soon: left by a killed git, or held by one that hangs.
pub(super) fn held_locks(mut locks: Vec<PathBuf>) -> Vec<PathBuf> {
    Deadline::after(LOCK_GOES).poll(LOOK, || {
        locks.retain(|lock| disk::exists(lock));
        if locks.is_empty() { Some(()) } else { None }
    });
    locks
}

/// The current locks of git: in the folder of a working tree, in the repository's, and of refs.
fn list_locks(folder: &Path) -> Vec<PathBuf> {
    let shared = head::common_folder(folder);
    let refs = tree::list_files(&shared.join("refs"), LOCKS_MAX);
    let mut found: Vec<PathBuf> = refs.iter().map(|name| shared.join("refs").join(name)).collect();
    for folder in [folder, &shared] {
        // crew's separate indexes have locks of their own.
        let mut names = disk::names(folder, LOCKS_MAX);
        names.retain(|name| !name.starts_with("crew"));
        found.extend(names.iter().map(|name| folder.join(name)));
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "lock"));
    found
}

/// Whether a git process is running in one of these trees, whoever started it.
#[cfg(target_os = "linux")]
fn git_works(trees: &[PathBuf]) -> bool {
    identity::read_table().into_iter().any(|(pid, row)| {
        !row.has_ended && is_git(pid) && trees.iter().any(|tree| identity::works_in(pid, tree))
    })
}

#[cfg(target_os = "linux")]
fn is_git(pid: i32) -> bool {
    let command = identity::read_command(pid);
    let name = command.split(' ').next().and_then(|program| program.rsplit('/').next());
    name.is_some_and(|name| name == "git" || name.starts_with("git-"))
}

#[cfg(not(target_os = "linux"))]
fn git_works(_: &[PathBuf]) -> bool {
    process::output_of("pgrep", &["-x", "git"]).is_some()
}

/// Undoes a rebase in progress that began at `head`.
pub(super) fn undo_rebase(git: Git<'_>, folder: &Path, head: &str) -> Result<(), GitFault> {
    let begun = ["rebase-merge", "rebase-apply"].map(|name| folder.join(name));
    let Some(begun) = begun.iter().find(|folder| disk::exists(folder)) else { return Ok(()) };
    if ["head-name", "onto", "orig-head"].iter().all(|name| disk::exists(&begun.join(name))) {
        let aborted = git.well(GitStep::Rebase, &["rebase", "--abort"]).map(drop);
        // If a lock keeps git from deleting a ref, git leaves the mark of a cherry-pick in
        // progress, and every later step would be refused because of it.
        if find_unfinished(folder) == Some("cherry-pick") {
            let _ = disk::remove(&folder.join("CHERRY_PICK_HEAD"));
        }
        return aborted;
    }
    // git had at most set aside the uncommitted changes, and cannot undo this itself.
    let stash = disk::read_text(&begun.join("autostash"), MARK_BYTES).map_err(|error| {
        let cause = format!("what it had set aside cannot be read: {error}");
        GitFault::new(GitStep::Rebase, Other, cause, "see its file autostash in git's folder")
    })?;
    // git records the stash before it touches the files.
    if let Some(stash) = stash.as_deref().map(str::trim_end).filter(|stash| is_id(stash)) {
        git.well(GitStep::Rebase, &["reset", "-q", "--hard", head])?;
        git.well(GitStep::Rebase, &["stash", "apply", "-q", "--index", stash])?;
    }
    let _ = tree::remove_folder(begun);
    Ok(())
}
