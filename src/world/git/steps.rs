//! What the steps that change a repository (commit, push, rebase) share. They do what the user
//! asked for with an option, with the user's own helpers and filters. They run no hook, ask nobody,
//! and start no program that was planted in the repository's configuration since the run began. A
//! failed step leaves the working tree as it was.

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{Command, Setting};
use super::git;
use super::pin::{repository, stand};
use crate::engine::git::{GitBaseline, GitFault, GitSetting, GitStep, GitTrouble};
use crate::engine::record::Place;
use crate::parse::git::{Stand, complaint, scoped, taken_lock};
use crate::parse::git_push::without_secrets;
use crate::world::files::disk;
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
    pub(super) fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, Command::default())
    }

    /// The same, on other terms.
    pub(super) fn run_with(&self, arguments: &[&str], terms: Command<'_>) -> Said {
        said(self.checkout(), arguments, self.hooks(), terms, self.stop)
    }

    fn hooks(&self) -> &[Setting] {
        self.hooks.get_or_init(|| hooks(self.checkout()))
    }

    /// What git printed, if it succeeded.
    pub(super) fn well(&self, step: GitStep, arguments: &[&str]) -> Result<String, GitFault> {
        self.run(arguments).well(step)
    }

    /// The same for a commit, with input.
    pub(super) fn fed(&self, arguments: &[&str], input: &[u8]) -> Result<String, GitFault> {
        let terms = Command { input, ..Command::default() };
        self.run_with(arguments, terms).well(GitStep::Commit)
    }

    /// All that git printed, byte for byte.
    pub(super) fn printed(&self, step: GitStep, arguments: &[&str]) -> Result<Vec<u8>, GitFault> {
        self.printed_with(step, arguments, Command::default())
    }

    /// The same, on other terms.
    pub(super) fn printed_with(
        &self,
        step: GitStep,
        arguments: &[&str],
        terms: Command<'_>,
    ) -> Result<Vec<u8>, GitFault> {
        match start(self.checkout(), arguments, self.hooks(), terms, self.stop) {
            Ok(FinishedProcess { cause: ExitCause::Exit(0), output, cut: false, .. }) => Ok(output),
            Ok(FinishedProcess { cause: ExitCause::Exit(0), .. }) => {
                let cause = "more paths differ than crew lists";
                let cure = "have .gitignore leave out what is generated";
                Err(GitFault::new(step, GitTrouble::Other, cause, cure))
            }
            // The error text is read from a second run, of which only a part of the output is kept.
            _ => Err(self.run_with(arguments, terms).fault(step)),
        }
    }

    /// Whether one commit is an ancestor of another, or the same commit.
    pub fn holds(&self, older: &str, newer: &str) -> bool {
        self.run(&["merge-base", "--is-ancestor", older, newer]).exit == Some(0)
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
        return Err(GitFault::new(step, GitTrouble::Other, cause, "try git config --list here"));
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

/// Runs git with the settings of all steps and keeps its complaints with the rest.
pub(super) fn said(
    folder: &Path,
    arguments: &[&str],
    hooks: &[Setting],
    terms: Command<'_>,
    stop: impl Fn() -> bool,
) -> Said {
    let within = terms.within.unwrap_or(WITHIN);
    let terms = Command { with_errors: true, within: Some(within), ..terms };
    let text = match start(folder, arguments, hooks, terms, stop) {
        Err(error) => format!("git cannot be started: {error}"),
        Ok(ended) => match ended.cause {
            ExitCause::Exit(code) => return Said { exit: Some(code), text: ended.text() },
            ExitCause::TimedOut => format!("git gave no answer within {} s", within.as_secs()),
            _ => "git was ended before it was done".to_owned(),
        },
    };
    Said { exit: None, text }
}

/// Runs git with the settings of all steps; its complaints are kept only on these terms.
pub(super) fn start(
    folder: &Path,
    arguments: &[&str],
    hooks: &[Setting],
    terms: Command<'_>,
    stop: impl Fn() -> bool,
) -> io::Result<FinishedProcess> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings: Vec<Setting> = SETTINGS.iter().map(own).chain(hooks.iter().cloned()).collect();
    let within = terms.within.or(Some(WITHIN));
    Command { settings: &settings, within, ..terms }.run(folder, arguments, stop)
}

/// An unresolved conflict that was already there.
pub(super) fn unmerged(step: GitStep, path: &str) -> GitFault {
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
            (GitTrouble::Other, complaint(&self.text), cure)
        };
        GitFault::new(step, trouble, cause, cure)
    }
}
