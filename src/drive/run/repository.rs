//! What a run's git steps require of the repository before anything is started. Refuses what git
//! cannot do there.

use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};

use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::engine::record::contract::Place;
use crate::engine::record::run::GitSteps;
use crate::parse::arguments::RunOptions;
use crate::world::git::{self, pin};

/// Refuses typed git steps where there is no git, and notes those of the settings.
pub fn without_git(options: &RunOptions, steps: &GitSteps, here: &Path) -> Result<Option<String>> {
    if *steps == GitSteps::default() || git::top(here).is_some() {
        return Ok(None);
    }
    let typed = [
        ("--commit", options.commit.is_some()),
        ("--push", options.push),
        ("--rebase", options.rebase.is_some()),
    ];
    if let Some((option, _)) = typed.iter().find(|(_, is_typed)| *is_typed) {
        bail!(
            "{option} needs a git repository, and there is none here\nhint: git init, or leave it out"
        );
    }
    Ok(Some("this is no git repository: nothing is committed, pushed or rebased".to_owned()))
}

/// Refuses git steps in a repository whose settings git cannot list.
pub fn some_settings(steps: &GitSteps, checkout: &Path) -> Result<()> {
    let is_asked = steps.commit || steps.push || steps.rebase.is_some();
    if is_asked && git::top(checkout).is_some() && git::steps::trusted(checkout).is_none() {
        bail!(
            "git's settings cannot be listed here, and crew takes no step of git without them\n\
             hint: update git to 2.26 or newer, or leave out --commit, --push and --rebase"
        );
    }
    Ok(())
}

/// The error when the user's uncommitted files cannot be told from the agent's work.
pub fn unlisted(fault: &GitFault) -> Error {
    let GitFault { cause, cure, .. } = fault;
    anyhow!("what you have not committed cannot be listed: {cause}\nhint: {cure}")
}

/// Refuses to rebase onto a name that is not a commit.
pub fn some_commit(steps: &GitSteps, folder: &Path) -> Result<()> {
    match &steps.rebase {
        Some(onto) if git::top(folder).is_some() && !git::is_a_commit(folder, onto) => {
            bail!(
                "--rebase {onto}: there is no branch {onto} here\nhint: git branch --all lists them"
            )
        }
        _ => Ok(()),
    }
}

/// Refuses a checkout whose repository is not the one the loop began in.
pub fn same_repository(place: &Place) -> Result<()> {
    let lost = place.repository.as_ref().and_then(|_| pin::stand(place, GitStep::Commit).err());
    match lost.filter(|fault| fault.trouble == GitTrouble::Repository) {
        Some(fault) => bail!("{}\nhint: {}", fault.cause, fault.cure),
        None => Ok(()),
    }
}
