//! Opens a pull request for the branch of a completed task, by the command line of the remote's
//! host. One that is open already, or was merged with all of the work, is found. A host that is
//! away is asked again.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::record::{FleetSetup, Landed, TaskRecord};
use engine::fleet::Refusal;
use engine::git::{GitFault, GitStep, GitTrouble};
use engine::text::{clean_text, one_line, tail_of, words_of};
use readers::parse::remote::{RequestState, find_unreached, parse_requests};
use world::clock::{self, RetryPolicy};
use world::git::remotes::with_remote;
use world::process::{Call, ExitCause, Stop};

/// The command line of the host.
pub const GH: &str = "gh";
/// How long a host that does not answer is asked again.
const PATIENCE: RetryPolicy = RetryPolicy {
    within: Some(Duration::from_secs(30 * 60)),
    first_pause: Duration::from_secs(1),
    longest_pause: Duration::from_secs(30),
};
/// The longest that one command may take.
const WITHIN: Duration = Duration::from_secs(120);
/// The most characters of its output that a refusal shows.
const TAIL_CHARS: usize = 300;
/// The most characters of an address.
const ADDRESS_CHARS: usize = 300;
/// Which requests of a branch are listed, and what of each.
const LISTED: &str = "--state all --json url,headRefOid,state,mergeCommit";
/// What is asked of each, for `parse::remote`.
const ASKED: &str =
    r#".[] | .url + " " + .headRefOid + " " + .state + " " + (.mergeCommit.oid // "")"#;

/// Opens the request of a branch, with this commit's message as its title and text, or finds the
/// one that there is. `program` is the host's command line, and understands the words of `gh`.
///
/// # Errors
/// If the host was away all the time, or `stop` came first.
pub fn open_request(
    program: &str,
    setup: &FleetSetup,
    record: &TaskRecord,
    (branch, message): (&str, &str),
    stop: Stop<'_>,
) -> Result<Result<Landed, Refusal>> {
    let remote = setup.remote.as_ref().context("a pull request needs a remote")?;
    // The only remote there is the fleet's: in a clone an agent could lead it elsewhere.
    let opened = with_remote(&remote.url, |folder| {
        let gh = Gh { program, folder, stop };
        let once = || match find_or_create(setup, record, (branch, message), &gh) {
            Err(NotDone::Away(fault)) => Err(fault),
            Err(NotDone::Refused(why)) => Ok(Err(why)),
            Ok(landed) => Ok(Ok(landed)),
        };
        clock::retry(PATIENCE, stop, once)
    })??;
    match opened {
        Err(_) if stop() => Err(anyhow!("the request was given up")),
        Err(why) => Ok(Err(Refusal::Request(one_line(&clean_text(&why), TAIL_CHARS * 2)))),
        Ok(landed) => Ok(Ok(landed)),
    }
}

/// Why no request is known.
enum NotDone {
    /// The host was not reached.
    Away(GitFault),
    Refused(String),
}

/// The request of a branch at its host, which is created if there is none.
fn find_or_create(
    setup: &FleetSetup,
    record: &TaskRecord,
    (branch, message): (&str, &str),
    gh: &Gh<'_>,
) -> Result<Landed, NotDone> {
    let base = setup.base.as_str();
    let own = ["pr", "list", "--head", branch, "--base", base, "--jq", ASKED];
    let list: Vec<&str> = own.into_iter().chain(words_of(LISTED)).collect();
    let found = parse_requests(&gh.run_gh(&list)?);
    if let Some(open) = found.iter().find(|one| one.state == RequestState::Open) {
        return Ok(Landed::Request(clean_address(&open.address)));
    }
    let merged = found.into_iter().find_map(|one| match one.state {
        RequestState::Merged(commit) if Some(&one.head) == record.commit.as_ref() => Some(commit),
        _ => None,
    });
    if let Some(commit) = merged {
        return Ok(Landed::Main(Some(commit)));
    }
    let (title, body) = message.split_once("\n\n").unwrap_or((message, ""));
    let create =
        ["pr", "create", "--head", branch, "--base", base, "--title", title, "--body", body];
    let output = gh.run_gh(&create)?;
    let named = output.lines().rev().find(|line| line.starts_with("http"));
    let unnamed = || format!("gh names no address: {}", tail_of(&output, TAIL_CHARS));
    named.map(|url| Landed::Request(clean_address(url))).ok_or_else(|| NotDone::Refused(unnamed()))
}

/// An address as one line without terminal codes.
fn clean_address(text: &str) -> String {
    one_line(&clean_text(text), ADDRESS_CHARS)
}

/// The host's command line.
struct Gh<'a> {
    program: &'a str,
    folder: &'a Path,
    stop: Stop<'a>,
}

impl Gh<'_> {
    fn run_gh(&self, arguments: &[&str]) -> Result<String, NotDone> {
        let call =
            Call::of(self.program, self.folder).args(arguments).envs([("GH_PROMPT_DISABLED", "1")]);
        let ended = call.within(WITHIN).run(self.stop).map_err(|error| {
            let hint = "install the GitHub CLI, and log in with gh auth login";
            NotDone::Refused(format!("gh cannot be started: {error}; {hint}"))
        })?;
        let text = ended.text().trim().to_owned();
        let away = match &ended.cause {
            ExitCause::Exit(0) => return Ok(text),
            ExitCause::TimedOut | ExitCause::Stopped => Some(ended.cause.to_string()),
            _ => find_unreached(&text).map(clean_text),
        };
        let what = format!("gh {}", arguments[..2].join(" "));
        let Some(why) = away else {
            let why = format!("{what} fails: {}", tail_of(&text, TAIL_CHARS));
            return Err(NotDone::Refused(why));
        };
        let (cause, hint) = (format!("{what}: {why}"), "see whether gh auth status answers here");
        Err(NotDone::Away(GitFault::new(GitStep::Request, GitTrouble::Network, cause, hint)))
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod requests_tests;
