//! What a fleet needs beyond its folder, looked at before a person is asked anything: the branch
//! that it starts from at its remote, and the host's command line for pull requests. It writes
//! nothing.

use anyhow::{Result, bail};

use super::engines::LOCAL;
use crate::engine::fleet::manifest::{Fleet, LandingMode, Remote};
use crate::engine::text::count;
use crate::world::client::on_path;
use crate::world::files::disk;
use crate::world::git;
use crate::world::git::refs::Refs;
use crate::world::store::Home;

/// Returns what the user should know: commits that the remote does not have.
///
/// # Errors
/// If the remote has no such branch or does not answer, or if requests cannot be opened from here.
pub fn reach(home: &Home, fleet: &Fleet) -> Result<Option<String>> {
    let Fleet { repository, base, remote, landing, engine, .. } = fleet;
    let Some(Remote { name, url, .. }) = remote else { return Ok(None) };
    // Another engine's jobs run it on machines of their own.
    if *landing == LandingMode::Pr && engine == LOCAL && on_path("gh").is_empty() {
        bail!(
            "--land pr opens pull requests with gh, which is not on PATH\n\
             hint: install the GitHub CLI, and log in with gh auth login"
        );
    }
    let branch = format!("refs/heads/{base}");
    // An agent may have written into the repository since the fleet was started.
    let hub = home.fleet(&fleet.name).join("hub.git");
    let folder = if disk::exists(&hub) { &hub } else { repository };
    let refs = Refs { folder, remote: url, stop: &|| false, patience: None };
    let there = refs.list(&[&branch])?;
    let Some(tip) = there.into_iter().find(|it| it.name == branch) else {
        bail!("{name} has no branch {base}\nhint: git push {name} {base}");
    };
    // The tip is not here if others pushed since the last fetch.
    let tracked = format!("refs/remotes/{name}/{base}");
    let ahead = git::lacking(repository, &branch, &tip.id)
        .or_else(|| git::lacking(repository, &branch, &tracked));
    Ok(ahead.filter(|ahead| *ahead > 0).map(|ahead| {
        let commits = count(ahead, "commit");
        let them = if ahead == 1 { "it" } else { "them" };
        format!(
            "{base} here is {commits} ahead of {name}/{base}: the tasks start without {them}\n\
             hint: git push {name} {base}"
        )
    }))
}
