//! A fleet's own repository on this machine: bare, below `$CREW_HOME`, with the objects of a
//! checkout. What talks to the remote starts here, because the configuration of a checkout can be
//! an agent's work. Only a person's start copies settings into it.

use std::path::Path;
use std::time::Duration;

use super::command::Command;
use super::git;
use super::steps::{hooks, said};
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::parse::git_refs::has_moved;
use crate::world::files::disk::{self, Durability};

/// The longest that bringing commits into a checkout may take.
const WITHIN: Duration = Duration::from_secs(300);
/// How often they are brought again while another process moves the same ref.
const TRIES: u32 = 20;
/// Settings of a checkout's own configuration that a remote may need.
const NEEDED: &str = r"^(credential|http|url|ssh|protocol)\.|^core\.sshcommand$";

/// Makes the repository if it is not there. `checkout` lends its objects and, where a person starts
/// the fleet, the settings that its remote needs.
pub fn make(hub: &Path, checkout: &Path, copies_settings: bool) -> Result<(), GitFault> {
    let fault = |why: String| GitFault::new(GitStep::Lease, GitTrouble::Other, why, "try again");
    if !disk::is_file(&hub.join("HEAD")) {
        let parent = hub.parent().unwrap_or(hub);
        disk::make_private_folder(parent).map_err(|error| fault(error.to_string()))?;
        let there = hub.display().to_string();
        let arguments = ["init", "--quiet", "--bare", &there];
        let terms = Command { climbs: true, ..Command::default() };
        said(parent, &arguments, &[], terms, || false).well(GitStep::Lease)?;
        // A checkout asks for commits that no ref of the hub names.
        git(hub, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    }
    let lent = git(checkout, &["rev-parse", "--path-format=absolute", "--git-path", "objects"]);
    let lent = lent.ok_or_else(|| fault(format!("{} is no repository", checkout.display())))?;
    disk::write(&hub.join("objects/info/alternates"), lent.as_bytes(), Durability::Process)
        .map_err(|error| fault(error.to_string()))?;
    if copies_settings {
        let listed = git(checkout, &["config", "--local", "-z", "--get-regexp", NEEDED]);
        for setting in listed.unwrap_or_default().split('\0') {
            let Some((name, value)) = setting.split_once('\n') else { continue };
            git(hub, &["config", "--replace-all", name, value]);
        }
    }
    Ok(())
}

/// Brings a commit of the hub into a checkout, as the ref `name`. Nothing that the checkout's
/// configuration names is run.
pub fn give(hub: &Path, checkout: &Path, commit: &str, name: &str) -> Result<(), GitFault> {
    let from = hub.display().to_string();
    let refspec = format!("+{commit}:{name}");
    let arguments = [
        "fetch",
        "--quiet",
        "--no-write-fetch-head",
        "--no-tags",
        "--no-recurse-submodules",
        "--",
        &from,
        &refspec,
    ];
    let variables = [("GIT_ALLOW_PROTOCOL", "file".to_owned())];
    let terms =
        Command { variables: &variables, online: true, within: Some(WITHIN), ..Command::default() };
    let hooks = hooks(checkout);
    let fetch = || said(checkout, &arguments, &hooks, terms, || false);
    let mut fetched = fetch();
    for _ in 0..TRIES {
        // Another job of this machine has moved the ref meanwhile.
        if fetched.exit == Some(0) || !has_moved(&fetched.text) {
            break;
        }
        fetched = fetch();
    }
    fetched.well(GitStep::Lease).map(drop)
}
