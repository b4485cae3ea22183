//! Finds out with one small job whether a cluster could run a fleet of the current repository. The
//! job changes nothing but a ref of the remote, which is deleted again.

use std::path::Path;

use anyhow::Result;

use super::node;
use crate::drive::fleet::engines::step::NodeStep;
use crate::engine::doctor::node::{ClusterFacts, NamedRemote, NodeFault};
use crate::parse::git_push::without_secrets;
use crate::parse::node_report;
use crate::world::process::Stop;
use crate::world::store::Home;
use crate::world::{env, git};

/// Waits for a place in the cluster `engine` and returns what the node reported. `stop` ends the
/// wait early.
pub fn ask(
    home: &Home,
    here: &Path,
    engine: &str,
    named: Option<&str>,
    stop: Stop<'_>,
) -> Result<ClusterFacts> {
    let agent = node::agent(home, here, named)?.name;
    let host = engine.strip_prefix("slurm:");
    // As for the jobs of a fleet: elsewhere PATH must lead to it.
    let crew = if host.is_some() { "crew".into() } else { env::program()? };
    let top = git::top(here);
    let remote = named_remote(top.as_deref().and_then(git::remotes::of).map(|(_, url)| url));
    let mut words = vec!["doctor", "--node", "--json", "--agent", &agent];
    if let NamedRemote::Url(url) = &remote {
        words.extend(["--remote", url]);
    }
    let step = NodeStep { host, crew: &crew, folder: here, name: "doctor" };
    let answer = step.run(&words, stop, node_report::read).map_err(|error| {
        let text = format!("{error:#}");
        let (what, fix) = text.split_once("\nhint: ").unwrap_or((&text, "sinfo shows the nodes"));
        NodeFault { what: what.to_owned(), fix: fix.to_owned() }
    });
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(ClusterFacts { engine: engine.to_owned(), version, remote, answer })
}

fn named_remote(url: Option<String>) -> NamedRemote {
    match url {
        None => NamedRemote::Absent,
        // The user before the host of ssh is no secret.
        Some(url) if url.starts_with("http") && without_secrets(&url) != url => NamedRemote::Secret,
        Some(url) => NamedRemote::Url(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_password_becomes_no_word_of_a_command() {
        for (url, is_named) in [
            ("https://example.org/a.git", true),
            ("ssh://git@example.org/a.git", true),
            ("git@example.org:a.git", true),
            ("/srv/a.git", true),
            ("https://me:word@example.org/a.git", false),
            ("https://token@example.org/a.git", false),
        ] {
            let named = named_remote(Some(url.to_owned()));
            assert_eq!(named == NamedRemote::Url(url.to_owned()), is_named, "{url}");
        }
    }
}
