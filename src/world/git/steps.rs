//! What the steps that change a repository (commit, push, rebase) share. They do what the user
//! asked for with an option, with the user's own helpers and filters. They run no hook, ask nobody,
//! and start no program that was planted in the repository's configuration since the run began.
//! They refuse where git no longer finds the repository in which the loop started. A failed step
//! leaves the working tree as it was, and what a step of a killed crew left is put back.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{Command, Setting, whole};
use super::{Git, git, head};
use crate::engine::git::GitTrouble::{self, Other, Repository};
use crate::engine::git::{GitBaseline, GitFault, GitSetting, GitStep};
use crate::engine::record::Place;
use crate::engine::text::word;
use crate::parse::git::{Stand, complaint, scoped, stand as read, taken_lock};
use crate::parse::git_push::without_secrets;
use crate::world::clock::Deadline;
use crate::world::files::disk::{self, Durability};
use crate::world::files::tree;
#[cfg(not(target_os = "linux"))]
use crate::world::process;
#[cfg(target_os = "linux")]
use crate::world::process::identity;
use crate::world::process::{ExitCause, FinishedProcess, Stop};
use crate::world::store::hash;

/// The longest a step on this machine may take: a rebase of many commits, an `add` of many files.
const WITHIN: Duration = Duration::from_secs(300);

/// Settings of every step. Nobody can type a passphrase or edit a message, and background work of
/// git would be ended with the step.
const SETTINGS: [(&str, &str); 14] = [
    ("commit.gpgSign", "false"),
    ("push.gpgSign", "false"),
    // A push names what it sends, and the messages of commits are in UTF-8.
    ("push.followTags", "false"),
    ("i18n.commitEncoding", "UTF-8"),
    ("user.useConfigOnly", "true"),
    // Each merge says itself what becomes of it, and the commits of agents have no signature.
    ("merge.ff", "true"),
    ("merge.verifySignatures", "false"),
    ("core.editor", "true"),
    ("sequence.editor", "true"),
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
    ("submodule.recurse", "false"),
    // A submodule's own configuration would apply inside it.
    ("diff.ignoreSubmodules", "dirty"),
    ("advice.addEmbeddedRepo", "false"),
];

/// The programs and places that the repository's configuration names now; `None` outside git and
/// with a git older than 2.26. git-lfs and git-crypt depend on them, so steps must allow them.
pub fn trusted(checkout: &Path) -> Option<GitBaseline> {
    let listed = git(checkout, &["config", "--list", "--show-scope", "-z"])?;
    let mut found = scoped(&listed);
    found.retain(|setting| setting.names_a_program() || setting.names_a_place());
    Some(GitBaseline(found.into_iter().map(without_value).collect()))
}

/// A setting as it is kept: a hash in place of its value, and no password in its name.
pub(super) fn without_value(GitSetting { name, value }: GitSetting) -> GitSetting {
    let clean = without_secrets(&name);
    let kept = if clean == name { value } else { format!("{name}\n{value}") };
    GitSetting { name: clean, value: hash(kept.as_bytes()) }
}

/// The same after one of crew's pushes set the upstream of `branch` to its name at `remote`.
pub fn following(trusted: &GitBaseline, branch: &str, remote: &str) -> GitBaseline {
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
    /// Ends a running step early.
    pub stop: Stop<'a>,
    hooks: OnceCell<Vec<Setting>>,
}

impl<'a> Steps<'a> {
    /// Steps at a loop's place, restricted to the repository and the settings it began with.
    pub fn new(place: &'a Place, trusted: &'a GitBaseline, stop: Stop<'a>) -> Self {
        Self { place, trusted, stop, hooks: OnceCell::new() }
    }

    /// The same steps, which nothing ends early.
    pub(super) fn to_the_end(&self) -> Self {
        Self::new(self.place, self.trusted, &|| false)
    }

    /// The working tree's root.
    pub(super) fn checkout(&self) -> &'a Path {
        &self.place.checkout
    }

    /// What is checked out, if this is still the repository the loop began in.
    pub fn stand(&self, step: GitStep) -> Result<Stand, GitFault> {
        stand(self.place, step)
    }

    /// Checks that no operation is in progress and no program was planted.
    pub(super) fn begin(&self, step: GitStep) -> Result<Stand, GitFault> {
        let stand = self.stand(step)?;
        self.unchanged(step, &stand)?;
        let folder = self.folder();
        for (file, what) in UNFINISHED {
            if disk::exists(&folder.join(file)) {
                let cause = format!("a {what} is under way");
                let cure = format!("finish it, or git {what} --abort");
                return Err(GitFault::new(step, GitTrouble::Unfinished, cause, cure));
            }
        }
        Ok(stand)
    }

    /// git's folder; a linked working tree has a separate one inside the repository's.
    pub(super) fn folder(&self) -> PathBuf {
        let found = || repository(self.checkout()).unwrap_or_default();
        self.place.repository.clone().unwrap_or_else(found)
    }

    /// Fails if a setting changed since the run began. Where a push goes only matters to a push.
    pub(super) fn unchanged(&self, step: GitStep, stand: &Stand) -> Result<(), GitFault> {
        let branch = stand.branch.as_deref().unwrap_or_default();
        let is_used =
            |setting: &GitSetting| step == GitStep::Push && !setting.is_of_another_branch(branch);
        settled(self.checkout(), self.trusted, step, is_used)
    }

    /// Runs git and returns its result, whatever that is.
    pub(super) fn run(&self, arguments: &[&str], terms: Command<'_>) -> Said {
        said(self.checkout(), arguments, self.hooks(), Command { stop: Some(self.stop), ..terms })
    }

    fn hooks(&self) -> &[Setting] {
        self.hooks.get_or_init(|| hooks(self.checkout()))
    }

    /// What git printed, if it succeeded.
    pub(super) fn well(&self, step: GitStep, arguments: &[&str]) -> Result<String, GitFault> {
        self.run(arguments, Command::default()).well(step)
    }

    /// The same for a commit, with input.
    pub(super) fn fed(&self, arguments: &[&str], input: &[u8]) -> Result<String, GitFault> {
        self.run(arguments, Command { input, ..Command::default() }).well(GitStep::Commit)
    }

    /// All that git printed of this input, byte for byte.
    pub(super) fn printed(
        &self,
        step: GitStep,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, GitFault> {
        let terms = Command { input, stop: Some(self.stop), ..Command::default() };
        let ended = printed(self.checkout(), arguments, self.hooks(), terms);
        let ended = ended.map_err(|said| said.fault(step))?;
        whole(ended).ok_or_else(|| {
            let cause = "more paths differ than crew lists";
            GitFault::new(step, Other, cause, "have .gitignore leave out what is generated")
        })
    }

    /// Whether one commit is an ancestor of another, or the same commit.
    pub fn holds(&self, older: &str, newer: &str) -> bool {
        let arguments = ["merge-base", "--is-ancestor", older, newer];
        self.run(&arguments, Command::default()).exit == Some(0)
    }
}

/// Fails if the configuration in `folder` names another program than it did before.
pub fn unplanted(folder: &Path, before: &GitBaseline, step: GitStep) -> Result<(), GitFault> {
    settled(folder, before, step, |_| false)
}

/// Fails if a setting changed that names a program or is used.
fn settled(
    folder: &Path,
    before: &GitBaseline,
    step: GitStep,
    is_used: impl Fn(&GitSetting) -> bool,
) -> Result<(), GitFault> {
    let Some(now) = trusted(folder) else {
        let cause = "git does not list the settings of the repository";
        return Err(GitFault::new(step, Other, cause, "try git config --list here"));
    };
    let concerns = |setting: &&GitSetting| is_used(setting) || setting.names_a_program();
    let Some(changed) = now.changed_since(before).find(concerns) else { return Ok(()) };
    let cause = format!("the setting {} changed during this run", changed.name);
    let cure = "look at git config --list --show-origin; a new run takes it as it then is";
    Err(GitFault::new(step, GitTrouble::Changed, cause, cure))
}

/// The files in git's folder that show an operation in progress, each with its verb.
const UNFINISHED: [(&str, &str); 5] = [
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
];

/// Whether git is in the middle of something in a working tree.
pub(super) fn is_unfinished(checkout: &Path) -> bool {
    let folder = repository(checkout).unwrap_or_else(|| checkout.join(".git"));
    UNFINISHED.iter().any(|(file, _)| disk::exists(&folder.join(file)))
}

/// What git printed, and how it ended.
#[derive(Debug)]
pub(super) struct Said {
    /// `None` where it did not exit by itself.
    pub exit: Option<i32>,
    pub text: String,
}

/// Switches off the hooks that the configuration itself names, as it can since git 2.54.
pub(super) fn hooks(folder: &Path) -> Vec<Setting> {
    let named =
        git(folder, &["config", "-z", "--name-only", "--get-regexp", r"^hook\..*\.command$"]);
    let named = named.unwrap_or_default();
    let names = named.split('\0').filter_map(|name| name.strip_suffix(".command"));
    names.map(|name| (format!("{name}.enabled"), "false".to_owned())).collect()
}

/// Runs a step outside the loop's own ones, without the hooks that the folder names.
pub(super) fn run(folder: &Path, arguments: &[&str], terms: Command<'_>) -> Said {
    said(folder, arguments, &hooks(folder), terms)
}

/// The terms of a step that a partial clone may need its remote for: it fetches the files it lacks.
pub(super) fn lazily<'a>() -> Command<'a> {
    Command { online: true, ..Command::default() }
}

/// Runs git with the settings of all steps and keeps its complaints with the rest.
pub(super) fn said(
    folder: &Path,
    arguments: &[&str],
    hooks: &[Setting],
    terms: Command<'_>,
) -> Said {
    match start(folder, arguments, hooks, Command { with_errors: true, ..terms }) {
        Ok(ended) => Said { exit: Some(0), text: ended.text() },
        Err(said) => said,
    }
}

/// The same without its complaints if it succeeded: those are read from a second run.
pub(super) fn printed(
    folder: &Path,
    arguments: &[&str],
    hooks: &[Setting],
    terms: Command<'_>,
) -> Result<FinishedProcess, Said> {
    start(folder, arguments, hooks, terms).map_err(|failed| match failed.exit {
        Some(_) => said(folder, arguments, hooks, terms),
        None => failed,
    })
}

fn start(
    folder: &Path,
    arguments: &[&str],
    hooks: &[Setting],
    terms: Command<'_>,
) -> Result<FinishedProcess, Said> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings: Vec<Setting> = SETTINGS.iter().map(own).chain(hooks.iter().cloned()).collect();
    let within = terms.within.unwrap_or(WITHIN);
    let terms = Command { settings: &settings, within: Some(within), ..terms };
    let text = match terms.run(folder, arguments) {
        Err(error) => format!("git cannot be started: {error}"),
        Ok(ended) => match ended.cause {
            ExitCause::Exit(0) => return Ok(ended),
            ExitCause::Exit(code) => return Err(Said { exit: Some(code), text: ended.text() }),
            ExitCause::TimedOut => format!("git gave no answer within {} s", within.as_secs()),
            _ => "git was ended before it was done".to_owned(),
        },
    };
    Err(Said { exit: None, text })
}

/// The error when a branch other than the loop's, `own`, is checked out: crew must not rewrite it.
pub(super) fn another(step: GitStep, branch: Option<&str>, own: Option<&str>) -> GitFault {
    let branch = branch.map_or_else(
        || "no branch is checked out".to_owned(),
        |branch| format!("{branch} is checked out"),
    );
    let (own, cure) = match own {
        Some(own) => (format!("the loop's is {own}"), format!("git switch {own}")),
        None => ("the loop began on none".to_owned(), "git switch --detach".to_owned()),
    };
    let cause = format!("{branch}, and {own}");
    GitFault::new(step, GitTrouble::Branch, cause, cure)
}

/// An unresolved conflict that was already there.
pub(super) fn conflicting(step: GitStep, path: &str) -> GitFault {
    let cause = format!("{path} has an unresolved conflict");
    GitFault::new(step, GitTrouble::Unfinished, cause, "resolve it, then git add the file")
}

impl Said {
    /// What it printed, if it succeeded.
    pub fn well(self, step: GitStep) -> Result<String, GitFault> {
        if self.exit == Some(0) { Ok(self.text) } else { Err(self.fault(step)) }
    }

    /// What went wrong on this machine.
    pub fn fault(&self, step: GitStep) -> GitFault {
        let has = |words: &str| self.text.contains(words);
        let (trouble, cause, cure) = if has("Please tell me who you are") || has("empty ident") {
            let cure = "git config user.name NAME and git config user.email ADDRESS".to_owned();
            (GitTrouble::NoIdentity, "git does not know who commits".to_owned(), cure)
        } else if let Some(lock) = taken_lock(&self.text) {
            let cure = format!("let the other git finish; if there is none, remove {lock}");
            (GitTrouble::Unfinished, "another git is running here, or one crashed".to_owned(), cure)
        } else {
            let cure = "run the same with git by hand to see all of it".to_owned();
            (Other, complaint(&self.text), cure)
        };
        GitFault::new(step, trouble, cause, cure)
    }
}

/// git's own folder of a working tree, with the path that git prints.
pub fn repository(top: &Path) -> Option<PathBuf> {
    Some(Git::here(top).line(&["rev-parse", "--absolute-git-dir"])?.into())
}

/// Whether the repository seems to be there, without starting git: for iterations in which crew
/// changes nothing.
pub fn seems_there(place: &Place) -> bool {
    let Some(repository) = &place.repository else { return true };
    disk::exists(&place.checkout.join(".git")) && disk::size(&repository.join("HEAD")) > 0
}

/// What is checked out, if the repository is the one in which the loop started.
pub fn stand(place: &Place, step: GitStep) -> Result<Stand, GitFault> {
    let start = place.head.as_ref().map(|head| format!("{head}^{{commit}}"));
    let mut arguments = vec!["rev-parse", "--show-toplevel"];
    arguments.extend(place.repository.is_some().then_some("--absolute-git-dir"));
    arguments.extend(start.as_deref());
    arguments.extend(["HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"]);
    let ended = Command::default().run(&place.checkout, &arguments).map_err(|error| {
        let cause = format!("git cannot be started: {error}");
        GitFault::new(step, Other, cause, "make sure that git is on PATH")
    })?;
    let ExitCause::Exit(code) = ended.cause else {
        return Err(GitFault::new(step, Other, "git gave no answer", "try git status here"));
    };
    let text = ended.text();
    let lost = |cause: String| GitFault::new(step, Repository, cause, way_back(place));
    let is_next = |text, path: &PathBuf| str::strip_prefix(text, &format!("{}\n", path.display()));
    let mut pinned = [&place.checkout].into_iter().chain(&place.repository);
    let Some(rest) = pinned.try_fold(&*text, is_next) else {
        return Err(lost(other(place, &text)));
    };
    let mut lines = rest.lines();
    if let Some(start) = &place.head
        && lines.next() != Some(start)
    {
        let start = start.get(..12).unwrap_or(start);
        let cause = format!("{} does not hold {start}, where this loop began", named(place));
        return Err(lost(cause));
    }
    if code == 0 {
        return Ok(read(lines));
    }
    let branch = head(&place.checkout).0;
    if place.head.is_none() {
        return Ok(Stand { branch, ..Stand::default() });
    }
    let branch = branch.map_or_else(|| "HEAD".to_owned(), |branch| format!("the branch {branch}"));
    Err(lost(format!("{branch} no longer has a commit")))
}

/// The hint when a repository cannot be found. Of a working tree that shares one, git itself makes
/// the lost link anew, from the shared one alone without a complaint.
fn way_back(place: &Place) -> String {
    let is_lost = disk::is_missing(&place.checkout.join(".git"));
    let trees = place.repository.as_ref().and_then(|own| own.parent()).filter(|_| is_lost);
    let shared = trees.filter(|trees| trees.ends_with("worktrees")).and_then(Path::parent);
    let back = shared.map_or("put it back as it was".to_owned(), |shared| {
        let shared = shared.to_string_lossy();
        format!("git -C {} worktree repair puts it back", shell_words::quote(&shared))
    });
    format!("{back}, then crew resume")
}

fn named(place: &Place) -> String {
    let usual = place.checkout.join(".git");
    place.repository.as_ref().unwrap_or(&usual).display().to_string()
}

/// The reason why git does not find it.
fn other(place: &Place, found: &str) -> String {
    let link = place.checkout.join(".git");
    if disk::is_missing(&link) {
        return format!("{} is gone", link.display());
    }
    if let Some(found) = found.lines().nth(1) {
        return format!("git finds another repository here, {found}, not {}", named(place));
    }
    let said = Command { with_errors: true, ..Command::default() };
    let said = said.run(&place.checkout, &["rev-parse", "--git-dir"]);
    let said = said.map_or_else(|error| error.to_string(), |ended| complaint(&ended.text()));
    format!("{} cannot be read: {said}", named(place))
}

/// Its name, and the most that is read of it, in bytes.
const MARK: &str = "crew-step";
const MARK_BYTES: u64 = 4096;
/// The most names of a folder, or of all refs, that are searched for locks.
const LOCKS_MAX: usize = 10_000;
/// Longer than a program holds a lock that is no git; the longest wait for a git; and between two
/// looks.
const LOCK_HELD: Duration = Duration::from_secs(1);
const GIT_ENDS: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

/// The mark. When this is dropped it is removed, and so are the locks that a git of the step left
/// because it was killed.
#[derive(Debug)]
#[must_use]
pub(super) struct Underway<'a> {
    checkout: &'a Path,
    folder: PathBuf,
    /// The locks that were there before: they are somebody else's.
    before: Vec<PathBuf>,
}

impl<'a> Underway<'a> {
    /// Marks that a step begins, with the commit that is checked out.
    pub fn begin(steps: &Steps<'a>, step: GitStep, head: &str) -> Self {
        let (checkout, folder) = (steps.checkout(), steps.folder());
        let before = locks(&folder);
        let theirs = before.iter().map(|it| it.display().to_string());
        let lines: Vec<String> =
            [format!("{} {head}", word(&step))].into_iter().chain(theirs).collect();
        let text = lines.join("\n");
        let _ = disk::write(&folder.join(MARK), text.as_bytes(), Durability::Remade);
        Self { checkout, folder, before }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        remove_locks(self.checkout, &self.folder, &self.before);
        let _ = disk::remove(&self.folder.join(MARK));
    }
}

/// Puts back what a step of a killed crew left in a working tree: its locks, a rebase in progress,
/// a commit that the index lacks. The caller sees to it that no crew works there now. Nothing is
/// done without a mark.
///
/// # Errors
/// If a git works there that may have made a lock, or git cannot put it back; the mark then stays.
pub fn put_back(checkout: &Path) -> Result<(), GitFault> {
    let Some(folder) = repository(checkout) else { return Ok(()) };
    let mark = folder.join(MARK);
    let Some(text) = disk::read_text(&mark, MARK_BYTES).ok().flatten() else { return Ok(()) };
    let mut lines = text.lines();
    let step = lines.next().unwrap_or_default();
    if !remove_locks(checkout, &folder, &lines.map(PathBuf::from).collect::<Vec<_>>()) {
        let (cause, cure) = ("another git holds a lock here", "let it finish");
        return Err(GitFault::new(GitStep::Commit, GitTrouble::Unfinished, cause, cure));
    }
    match step.split_once(' ') {
        Some(("rebase", head)) => undo_rebase(checkout, &folder, head)?,
        Some(("commit", head)) => {
            let list = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", head, "HEAD"];
            let paths = git(checkout, &list).unwrap_or_default();
            let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            let terms = Command { input: paths.as_bytes(), ..Command::default() };
            run(checkout, &update, terms).well(GitStep::Commit)?;
        }
        _ => {}
    }
    let _ = disk::remove(&mark);
    Ok(())
}

/// Removes the locks that were not there before, once no git works in the repository. False if one
/// still does. Another program than git holds a lock for less than is waited here.
fn remove_locks(checkout: &Path, folder: &Path, before: &[PathBuf]) -> bool {
    let mut left = locks(folder);
    left.retain(|lock| !before.contains(lock));
    let trees = if left.is_empty() { Vec::new() } else { head::roots(checkout) };
    let held = Deadline::after(LOCK_HELD);
    let is_quiet = || {
        left.retain(|lock| disk::exists(lock));
        (left.is_empty() || (held.passed() && !git_works(&trees))).then_some(())
    };
    let is_quiet = Deadline::after(GIT_ENDS).poll(LOOK, is_quiet).is_some();
    for lock in left.iter().filter(|_| is_quiet) {
        let _ = disk::remove(lock);
    }
    is_quiet
}

/// The locks of git now: in the folder of a working tree, in that of the repository, and of refs.
fn locks(folder: &Path) -> Vec<PathBuf> {
    let shared = disk::read_text(&folder.join("commondir"), MARK_BYTES).ok().flatten();
    let shared = shared.map_or_else(|| folder.to_owned(), |path| folder.join(path.trim_end()));
    let refs = tree::files(&shared.join("refs"), LOCKS_MAX);
    let mut found: Vec<PathBuf> = refs.iter().map(|name| shared.join("refs").join(name)).collect();
    for folder in [folder, &shared] {
        // The index of each crew has its own lock.
        let names = disk::names(folder, LOCKS_MAX).into_iter().filter(|it| !it.starts_with("crew"));
        found.extend(names.map(|name| folder.join(name)));
    }
    found.retain(|path| path.extension().is_some_and(|it| it == "lock"));
    found
}

/// Whether a git lives that works in one of these trees, whoever started it.
#[cfg(target_os = "linux")]
fn git_works(trees: &[PathBuf]) -> bool {
    let is_git = |pid| {
        let command = identity::command(pid);
        let name = command.split(' ').next().and_then(|program| program.rsplit('/').next());
        name.is_some_and(|name| name == "git" || name.starts_with("git-"))
    };
    let works = |pid| is_git(pid) && trees.iter().any(|tree| identity::works_in(pid, tree));
    identity::table().into_iter().any(|(pid, row)| !row.has_ended && works(pid))
}

#[cfg(not(target_os = "linux"))]
fn git_works(_: &[PathBuf]) -> bool {
    process::output_of("pgrep", &["-x", "git"]).is_some()
}

fn undo_rebase(checkout: &Path, folder: &Path, head: &str) -> Result<(), GitFault> {
    let begun = ["rebase-merge", "rebase-apply"].map(|name| folder.join(name));
    let Some(begun) = begun.iter().find(|folder| disk::exists(folder)) else { return Ok(()) };
    let stash = disk::read_text(&begun.join("autostash"), MARK_BYTES).ok().flatten();
    let step =
        |arguments: &[&str]| run(checkout, arguments, Command::default()).well(GitStep::Rebase);
    let Some(stash) = stash.filter(|_| disk::is_missing(&begun.join("head-name"))) else {
        return step(&["rebase", "--abort"]).map(drop);
    };
    // git had only set aside what is not committed, and cannot undo that itself.
    step(&["reset", "-q", "--hard", head])?;
    step(&["stash", "apply", "-q", "--index", stash.trim_end()])?;
    let _ = tree::remove(begun);
    Ok(())
}
