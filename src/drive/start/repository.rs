//! What a run's git steps require of the repository, at its start and later, and what is reported
//! of it. Refuses what git cannot do there.

use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};

use crate::engine::git::{GitFault, GitStep, GitTrouble, named};
use crate::engine::record::{GitSteps, Loop, Place};
use crate::parse::settings::options::ProcessOptions;
use crate::world::git::commit::{ListedDrafts, drafts_are_listed, list_drafts};
use crate::world::git::steps::Steps;
use crate::world::git::{self, steps};
use crate::world::process::Stop;
use crate::world::store::Home;

/// Refuses typed git steps where there is no git, and notes those of the settings.
pub fn without_git(
    options: &ProcessOptions,
    steps: &GitSteps,
    here: &Path,
) -> Result<Option<String>> {
    if *steps == GitSteps::default() || git::top(here).is_some() {
        return Ok(None);
    }
    let typed = [
        ("--commit", options.commit),
        ("--push", options.push),
        ("--rebase", options.rebase.is_some()),
    ];
    if let Some((option, _)) = typed.iter().find(|(_, is_typed)| *is_typed) {
        return Err(needed(option, here));
    }
    let why = git::refusal(here).map_or_else(
        || "this is not a git repository".to_owned(),
        |(cause, cure)| format!("{cause} ({cure})"),
    );
    Ok(Some(format!("{why}: nothing is committed, pushed or rebased")))
}

/// The error where something needs a git repository and git finds none, or refuses it.
pub fn needed(what: &str, here: &Path) -> Error {
    match git::refusal(here) {
        Some((cause, cure)) => anyhow!("{what} needs git here: {cause}\nhint: {cure}"),
        None => anyhow!(
            "{what} needs a git repository, and there is none here\nhint: git init, or leave {what} out"
        ),
    }
}

/// Refuses to rebase onto a name that is not a commit, and any git step in a repository whose
/// settings git cannot list, unless they `are_known`.
pub fn refuse_impossible(steps: &GitSteps, folder: &Path, are_known: bool) -> Result<()> {
    let GitSteps { commit, push, rebase, .. } = steps;
    let Some(checkout) = git::top(folder) else { return Ok(()) };
    if let Some(onto) = rebase.as_ref().filter(|onto| !git::is_a_commit(folder, onto)) {
        bail!("--rebase {onto}: there is no branch {onto} here\nhint: git branch --all lists them");
    }
    let is_asked = *commit || *push || rebase.is_some();
    if is_asked && !are_known && steps::trusted(&checkout).is_none() {
        bail!(
            "git's settings cannot be listed here, and without them crew does not commit, push or rebase\n\
             hint: update git to 2.26 or newer, or leave out --commit, --push and --rebase"
        );
    }
    Ok(())
}

/// The fault of a checkout whose repository is not the one the loop began in.
pub fn lost_repository(place: &Place) -> Option<GitFault> {
    place.repository.as_ref()?;
    let fault = steps::stand(place, GitStep::Commit).err();
    fault.filter(|fault| fault.trouble == GitTrouble::Repository)
}

/// Refuses such a checkout.
pub fn same_repository(place: &Place) -> Result<()> {
    match lost_repository(place) {
        Some(fault) => bail!("{}\nhint: {}", fault.cause, fault.cure),
        None => Ok(()),
    }
}

/// The message when commits would be on no branch.
pub const NO_BRANCH: &str =
    "no branch is checked out: no branch holds the commits (git switch -c NEW makes one)";

/// The error when the user's uncommitted files cannot be distinguished from the agent's work.
pub fn unlisted(fault: &GitFault) -> Error {
    let GitFault { cause, cure, .. } = fault;
    anyhow!("what you have not committed cannot be listed: {cause}\nhint: {cure}")
}

/// Lists the user's own files, if nobody has yet; returns what to report about them.
pub fn drafts_of(home: &Home, record: &Loop, stop: Stop<'_>) -> Result<Vec<String>, GitFault> {
    let Some(trusted) = record.trusted.as_ref().filter(|_| !drafts_are_listed(home, &record.id))
    else {
        return Ok(Vec::new());
    };
    let steps = Steps::new(&record.place, trusted, stop);
    let ListedDrafts { drafts, nested } = list_drafts(home, record, &steps)?;
    let left_out = [
        (drafts, "not committed here, and left out of crew's commits until the agent changes it: "),
        (nested, "a separate repository, left out of crew's commits: "),
    ];
    let left_out = left_out.into_iter().filter(|(files, _)| !files.is_empty());
    Ok(left_out.map(|(files, what)| format!("{what}{}", named(&files))).collect())
}

/// The message when a branch other than the loop's is checked out.
pub fn on_another_branch(own: Option<&str>, branch: Option<&str>) -> String {
    match (own, branch) {
        (Some(own), Some(branch)) => format!(
            "{branch} is checked out, and the loop's branch is {own}: commits go to {branch}, and nothing is pushed \
             from it (git switch {own}, or crew resume --push continues on {branch})"
        ),
        (Some(own), None) => format!(
            "no branch is checked out, and the loop's is {own}: no branch holds the commits (git switch {own})"
        ),
        (None, Some(branch)) => {
            format!("the loop began on no branch, and {branch} is checked out: commits go to it")
        }
        (None, None) => NO_BRANCH.to_owned(),
    }
}
