//! A pull request for a task's branch, by the host's own command line. One that is open already, or
//! was merged meanwhile, is found, so that a second attempt opens no second one.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::attempt::{DoneWork, Job, JobEnd};
use crate::drive::error_text::git_trouble;
use crate::engine::fleet::{Fleet, Landed, Lease, TaskEnding};
use crate::engine::git::{GitFault, GitStep, GitTrouble};
use crate::engine::record::{Ending, Outcome};
use crate::engine::text::tail_of;
use crate::parse::gh::{RequestState, request_state, requests, unreached};
use crate::world::git::hub;
use crate::world::process::{Call, ExitCause, Stop};

/// The longest that the command may take.
const WITHIN: Duration = Duration::from_secs(120);
/// The most characters of its output that an error shows.
const TAIL_CHARS: usize = 300;

/// What is asked of a request's state, for `parse::gh`.
const STATE: &str = r#".state + " " + (.mergeCommit.oid // "")"#;

impl Job<'_> {
    /// How a task stays that has a pull request; `None` where that is open still, and lands.
    pub(super) fn requested(
        &self,
        ending: &TaskEnding,
        address: &str,
    ) -> Result<Option<TaskEnding>> {
        let stop = || self.signals.times() > 0;
        let hub = self.memory.hub().context("a request needs a remote")?;
        Ok(match self.memory.patiently(|| state(hub, address, &stop))? {
            RequestState::Open => None,
            RequestState::Merged(commit) => {
                Some(TaskEnding { landed: Some(Landed::Main(Some(commit))), ..ending.clone() })
            }
            // What a person has turned down does not land.
            RequestState::Closed => Some(ending.clone()),
        })
    }

    pub(super) fn request(&self, ending: &TaskEnding, work: DoneWork<'_>) -> Result<JobEnd> {
        let Some(kept) = self.lands(ending, work)? else { return Ok(JobEnd::Fenced) };
        let stop = || self.signals.times() > 0;
        let hub = self.memory.hub().context("a request needs a remote")?;
        let opened = self.memory.patiently(|| {
            // The host may have been away for long.
            if self.is_cancelled() {
                bail!("it is cancelled");
            }
            open(self.fleet, &kept.value, hub, &stop)
        });
        match opened {
            Ok(landed) => {
                self.close(work.record, TaskEnding { landed: Some(landed), ..ending.clone() })
            }
            Err(_) if stop() || self.is_cancelled() => self.leave(JobEnd::Interrupted, work.record),
            Err(error) if git_trouble(&error) == Some(GitTrouble::Network) => Err(error),
            Err(error) => {
                let why = format!("pull request: {error:#}");
                self.ended(Ending::new(Outcome::Blocked, why), work.record)
            }
        }
    }
}

/// Asks what has become of the request at this address.
fn state(hub: &Path, address: &str, stop: Stop<'_>) -> Result<RequestState> {
    let view = ["pr", "view", address, "--json", "state,mergeCommit", "--jq", STATE];
    let told = gh(&view, hub, stop)?;
    request_state(&told).with_context(|| format!("gh names no state of {address}: {told}"))
}

/// Opens the request, or finds the one that is open, or that was merged with all of the work before
/// the lease could name it.
///
/// The command runs in the fleet's own repository: in the task's tree an agent could lead it to
/// another address.
fn open(fleet: &Fleet, lease: &Lease, hub: &Path, stop: Stop<'_>) -> Result<Landed> {
    let remote = fleet.remote.as_ref().context("a request needs a remote")?;
    hub::name_remote(hub, &remote.url)?;
    let (branch, base) = (lease.branch.as_str(), fleet.base.as_str());
    let asked = format!(r#".[] | .url + " " + .headRefOid + " " + {STATE}"#);
    let list = [
        "pr",
        "list",
        "--head",
        branch,
        "--base",
        base,
        "--state",
        "all",
        "--json",
        "url,headRefOid,state,mergeCommit",
        "--jq",
        &asked,
    ];
    let found = requests(&gh(&list, hub, stop)?);
    if let Some(open) = found.iter().find(|it| it.state == RequestState::Open) {
        return Ok(Landed::Request(open.address.clone()));
    }
    let merged = found.into_iter().find_map(|it| match it.state {
        RequestState::Merged(commit) if Some(&it.head) == lease.commit.as_ref() => Some(commit),
        _ => None,
    });
    if let Some(commit) = merged {
        return Ok(Landed::Main(Some(commit)));
    }
    let message = lease.landing_message();
    let (title, body) = message.split_once("\n\n").unwrap_or((&message, ""));
    let create =
        ["pr", "create", "--head", branch, "--base", base, "--title", title, "--body", body];
    let told = gh(&create, hub, stop)?;
    let address = told.lines().rev().find(|line| line.starts_with("http"));
    let address = address.with_context(|| format!("gh names no address: {told}"))?;
    Ok(Landed::Request(address.to_owned()))
}

fn gh(arguments: &[&str], hub: &Path, stop: Stop<'_>) -> Result<String> {
    let call = Call::of("gh", hub).args(arguments).envs([("GH_PROMPT_DISABLED", "1")]);
    let ended = call
        .within(WITHIN)
        .run(stop)
        .context("gh cannot be started: install the GitHub CLI, and log in with gh auth login")?;
    let text = ended.text().trim().to_owned();
    let away = match &ended.cause {
        ExitCause::Exit(0) => return Ok(text),
        ExitCause::TimedOut => Some(ended.cause.to_string()),
        _ => unreached(&text).map(str::to_owned),
    };
    let what = format!("gh {}", arguments[..2].join(" "));
    match away {
        Some(why) => bail!(GitFault::new(
            GitStep::Request,
            GitTrouble::Network,
            format!("{what}: {why}"),
            "see whether gh auth status answers here",
        )),
        None => bail!("{what} fails: {}", tail_of(&text, TAIL_CHARS)),
    }
}
