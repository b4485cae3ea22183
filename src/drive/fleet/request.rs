//! A pull request for a task's branch, by the host's own command line. One that is open already is
//! found, so that a second attempt opens no second one.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::engine::fleet::lease::Lease;
use crate::engine::fleet::manifest::Fleet;
use crate::engine::text::tail_of;
use crate::world::git::hub;
use crate::world::process::{self, Capture, ExitCause, ProcessSpec, Stop};

/// The longest that the command may take.
const WITHIN: Duration = Duration::from_secs(120);
/// The most characters of its output that an error shows.
const TAIL_CHARS: usize = 300;

/// What has become of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestState {
    Open,
    /// As this commit of its base.
    Merged(String),
    Closed,
}

/// Asks what has become of the request at this address.
pub fn state(hub: &Path, address: &str, stop: Stop<'_>) -> Result<RequestState> {
    let asked = r#".state + " " + (.mergeCommit.oid // "")"#;
    let told =
        gh(&["pr", "view", address, "--json", "state,mergeCommit", "--jq", asked], hub, stop)?;
    match told.split_once(' ').unwrap_or((&told, "")) {
        ("OPEN", _) => Ok(RequestState::Open),
        ("MERGED", commit) => Ok(RequestState::Merged(commit.to_owned())),
        ("CLOSED", _) => Ok(RequestState::Closed),
        _ => bail!("gh names no state of {address}: {told}"),
    }
}

/// Opens the request and returns its address.
///
/// The command runs in the fleet's own repository: in the task's tree an agent could lead it to
/// another address.
pub fn open(fleet: &Fleet, lease: &Lease, hub: &Path, stop: Stop<'_>) -> Result<String> {
    let remote = fleet.remote.as_ref().context("a request needs a remote")?;
    hub::name_remote(hub, &remote.url)?;
    let (branch, base) = (lease.branch.as_str(), fleet.base.as_str());
    let list = [
        "pr", "list", "--head", branch, "--base", base, "--state", "open", "--json", "url", "--jq",
        ".[0].url",
    ];
    let found = gh(&list, hub, stop)?;
    if found.starts_with("http") {
        return Ok(found);
    }
    let message = lease.landing_message();
    let (title, body) = message.split_once("\n\n").unwrap_or((&message, ""));
    let create =
        ["pr", "create", "--head", branch, "--base", base, "--title", title, "--body", body];
    let told = gh(&create, hub, stop)?;
    let address = told.lines().rev().find(|line| line.starts_with("http"));
    address.map(str::to_owned).with_context(|| format!("gh names no address: {told}"))
}

fn gh(arguments: &[&str], hub: &Path, stop: Stop<'_>) -> Result<String> {
    let variables = [("GH_PROMPT_DISABLED", "1".to_owned())];
    let spec = ProcessSpec {
        variables: &variables,
        within: Some(WITHIN),
        ..ProcessSpec::of("gh", arguments, hub)
    };
    let ended = process::run(&spec, Capture::ForReading, None, stop)
        .context("gh cannot be started: install the GitHub CLI, and log in with gh auth login")?;
    let text = ended.text().trim().to_owned();
    if ended.cause != ExitCause::Exit(0) {
        bail!("gh {} fails: {}", arguments[..2].join(" "), tail_of(&text, TAIL_CHARS));
    }
    Ok(text)
}
