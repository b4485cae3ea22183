//! Prepares the landing of a task's branch: one commit on the remote's base, in a clean checkout,
//! on which the checks of the task and of the fleet run. The coordinator pushes it, and moves the
//! base and the record together. A refusal is a value with its reason; an error comes from the
//! machine, and another try may help.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::attempt::clones::{self, FleetCommands};
use super::files::FleetFiles;
use super::record::{FleetTerms, Landed, TaskRecord};
use engine::fleet::{MAX_PRIORITY, Refusal, TaskId, touches_the_fleet};
use engine::git::{GitFault, GitStep, GitTrouble};
use engine::record::{Check, Contract};
use engine::text::{clean_text, clip_at_word, join_first_names, one_line, tail_of, words_of};
use readers::parse::git::BRANCHES;
use readers::parse::remote::{RequestState, find_unreached, parse_requests};
use world::clock::RetryPolicy;
use world::files::tree;
use world::git::clone::{CloneSource, CloneTerms};
use world::git::land::{LandTree, Squashed};
use world::git::referred::Referred;
use world::git::remotes::with_remote;
use world::git::{clone, land, steps};
use world::process::{Call, ExitCause, Stop};
use world::slots::{Slot, SlotQueue};
use world::store::Home;
use world::{clock, git, slots};

/// The maximum number of characters in a commit's subject.
const SUBJECT_CHARS: usize = 72;
/// The maximum number of characters in a task's first line.
const FIRST_CHARS: usize = 1000;
/// The maximum number of files that a refusal names.
const NAMED_MAX: usize = 5;
/// The pause between two polls of the queue for a slot.
const SLOT_LOOK: Duration = Duration::from_millis(200);
/// A landing to be prepared.
#[derive(Clone, Copy)]
pub struct Landing<'a> {
    pub home: &'a Home,
    pub terms: &'a FleetTerms,
    pub task: &'a TaskId,
    pub record: &'a TaskRecord,
    /// The task's contract, whose checks run.
    pub contract: &'a Contract,
    /// The commit message, from [`landing_message`].
    pub message: &'a str,
    /// The condition that ends the landing early.
    pub stop: Stop<'a>,
    /// Adds a line to the task's log.
    pub note: &'a dyn Fn(&str),
}

/// The result of preparing a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreparedLanding {
    /// The checked `commit`, on the base commit `main`; its objects are in the fleet's repository.
    /// Both are the same if the base already has all of the work.
    Ready {
        main: String,
        commit: String,
    },
    Refused(Refusal),
    /// The landing was ended early.
    Stopped,
}

/// The message of the commit that lands: the task's first line, also in full if it is too long for
/// a subject, and where the commit comes from.
pub fn landing_message(fleet: &str, task: &TaskId, prompt: &str, branch: &str) -> String {
    let prompt = clean_text(prompt);
    let prompt = prompt.trim_start_matches(['#', ' ', '\n', '\t']);
    let first = one_line(prompt.lines().next().unwrap_or_default(), FIRST_CHARS);
    let subject = clip_at_word(&first, SUBJECT_CHARS);
    let whole = if subject == first { String::new() } else { format!("{first}\n\n") };
    let subject = if first.is_empty() { task.to_string() } else { subject };
    format!("{subject}\n\n{whole}Task {task} of fleet {fleet}, branch {branch}.\n")
}

/// Prepares a landing. Only one may run at a time, because all use the same clone.
///
/// # Errors
/// A fault of git, the remote or the disk, or a setup that fails.
pub fn prepare_landing(landing: &Landing<'_>) -> Result<PreparedLanding> {
    let Landing { home, terms, task, record, stop, note, .. } = *landing;
    let files = FleetFiles::new(home, &terms.name);
    let groups = files.root.join("land.groups");
    clones::end_leftovers(&groups, true);
    let mut note = note;
    let commands = &FleetCommands::new(groups, stop, &mut note);
    let remote = terms.remote.as_ref().context("landing needs a remote")?;
    let tip = record.work.commit.as_deref().context("no commit of its branch was fetched")?;
    let branch = task.branch_name(&terms.name, record.attempt);
    let (land, clone) = (files.land(), files.clone_of(task, record.attempt));
    let attempted =
        Attempted { landing: *landing, commands, land, clone, branch, url: &remote.url, tip };
    let prepared = attempted.prepare_commit();
    // A process killed by a signal is not the task's fault.
    if stop() { Ok(PreparedLanding::Stopped) } else { prepared }
}

/// A landing in progress, with the values that it uses most.
struct Attempted<'a> {
    landing: Landing<'a>,
    commands: &'a FleetCommands<'a>,
    land: PathBuf,
    clone: PathBuf,
    branch: String,
    url: &'a str,
    tip: &'a str,
}

impl Attempted<'_> {
    fn land_tree(&self) -> LandTree<'_> {
        LandTree { folder: &self.land, stop: self.landing.stop }
    }

    /// Resets the clone to the task's branch and fetches the base, whose commit it returns.
    fn begin_landing(&self) -> Result<String> {
        let Landing { terms, stop, .. } = self.landing;
        let (checkout, base) = (terms.repository.as_path(), terms.base.as_str());
        if git::find_commit(checkout, self.tip).is_none() {
            bail!("the commit {} of the task is not in {}", self.tip, checkout.display());
        }
        let trusted = terms.clones.trusted.as_ref();
        let source = CloneSource { checkout, url: Some(self.url), trusted };
        let branch = CloneTerms { base, branch: &self.branch, start: Some(self.tip), stop };
        clone::renew_clone(&source, &branch, &self.land)?;
        clone::fetch_base(&self.land, base, stop)?;
        let main = git::find_commit(&self.land, &format!("refs/remotes/origin/{base}"));
        main.with_context(|| format!("the remote has no branch {base}"))
    }

    fn prepare_commit(&self) -> Result<PreparedLanding> {
        let Landing { terms, stop, .. } = self.landing;
        let tree = self.land_tree();
        if let Some(before) = &terms.clones.trusted {
            steps::check_unplanted(&terms.repository, before, GitStep::Merge, None)?;
        }
        let main = self.begin_landing()?;
        if let Some(refusal) = self.find_refusal(&main)? {
            return Ok(PreparedLanding::Refused(refusal));
        }
        if tree.lay_out(&main, &terms.land_keep).is_err() && !stop() {
            // Files left by an earlier landing block it.
            tree::remove_stubborn(&self.land)?;
            self.begin_landing()?;
            tree.lay_out(&main, &terms.land_keep)?;
        }
        let (repository, clone, branch) = (&terms.repository, &self.clone, &self.branch);
        let referred = Referred { tree, repository, url: self.url, clone, branch };
        if let Err(fault) = referred.send_lfs(&main, self.tip) {
            return incomplete_landing(fault);
        }
        let commit = match tree.squash(self.tip, &self.commit_message(&main))? {
            Squashed::Commit(commit) => commit,
            // The base may already have the work; the checks must pass all the same.
            Squashed::Nothing => main.clone(),
            Squashed::Conflict(files) => {
                let own = touches_the_fleet([&terms.folder, BRANCHES], &files).map(str::to_owned);
                let refusal = own.map_or(Refusal::Conflict(files), Refusal::Folder);
                return Ok(PreparedLanding::Refused(refusal));
            }
        };
        // Compare the commit, not the branch: a person may have brought some of it to the base, and
        // the merge may have moved files to where the branch had none.
        let changed = land::changed_paths(&self.land, &main, &commit);
        let changed = changed.context("git cannot compare the commit with the base")?;
        if let Some(path) = touches_the_fleet([&terms.folder, BRANCHES], &changed) {
            return Ok(PreparedLanding::Refused(Refusal::Folder(path.to_owned())));
        }
        if let Err(fault) = referred.have_submodules(&main, &commit) {
            return incomplete_landing(fault);
        }
        if let Some(refusal) = self.run_checks(&commit)? {
            return Ok(PreparedLanding::Refused(refusal));
        }
        clone::give_commit(&terms.repository, &self.land, &commit)?;
        Ok(PreparedLanding::Ready { main, commit })
    }

    /// Why the branch may not land, judged by its history.
    fn find_refusal(&self, main: &str) -> Result<Option<Refusal>> {
        let Landing { terms, record, .. } = self.landing;
        if let Some(before) = &record.work.stands_on
            && git::count_lacking(&self.land, before, main) != Some(0)
        {
            let (base, before) = (&terms.base, before.get(..7).unwrap_or(before));
            let why = format!("{base} was rewritten: it lacks {before}, which this branch holds");
            return Ok(Some(Refusal::Moved(why)));
        }
        let left = self.land_tree().unresolved_files(main, self.tip, &record.refused.conflicts)?;
        Ok(if left.is_empty() { None } else { Some(Refusal::Conflict(left)) })
    }

    /// The commit message, with the branch's co-authors.
    fn commit_message(&self, main: &str) -> String {
        let authors = self.land_tree().co_authors(main, self.tip);
        let authors: String = authors.iter().map(|author| clean_text(author) + "\n").collect();
        let parting = if authors.is_empty() { "" } else { "\n" };
        format!("{}\n{parting}{authors}", self.landing.message.trim_end())
    }

    /// Finds what fails on this commit: the setup if it changes committed files, or a check.
    fn run_checks(&self, commit: &str) -> Result<Option<Refusal>> {
        let Landing { terms, contract, stop, .. } = self.landing;
        let tree = self.land_tree();
        let _slot = self.take_slot()?;
        let lacking = clone::fill_submodules(&terms.repository, &self.land, stop)?;
        if let Some(why) = lacking.first() {
            bail!("{why}");
        }
        let from = Some(terms.repository.as_path());
        clones::set_up(&terms.clones, from, &self.land, true, self.commands)?;
        let altered = self.altered_files(commit)?;
        if !altered.is_empty() {
            return Ok(Some(altered_by(terms, &join_first_names(&altered, NAMED_MAX))));
        }
        let mut has_run: Vec<&Check> = Vec::new();
        for check in contract.checks.iter().chain(&terms.land_checks) {
            if has_run.contains(&check) || stop() {
                continue;
            }
            has_run.push(check);
            let run = check.run.clone();
            if let Some(output) = self.commands.find_failure(check, &self.land)? {
                return Ok(Some(Refusal::Red { run, output }));
            }
            if !tree.is_at(commit) {
                let output = "it checked out another commit, or a branch".to_owned();
                return Ok(Some(Refusal::Red { run, output }));
            }
            // The next check must run on the commit, without this check's changes.
            if !self.altered_files(commit)?.is_empty() {
                tree.put_back(commit)?;
            }
        }
        Ok(None)
    }

    fn altered_files(&self, commit: &str) -> Result<Vec<String>> {
        let altered = self.land_tree().altered_files(commit);
        altered.context("git cannot compare the files of the landing with its commit")
    }

    /// Takes a slot of this machine for the checks, ahead of all waiting tasks. `None` if the tasks
    /// run elsewhere, or the landing was ended early.
    fn take_slot(&self) -> Result<Option<Slot>> {
        let Landing { terms, home, stop, .. } = self.landing;
        if terms.executor != "local" {
            return Ok(None);
        }
        let count =
            if terms.limits.slots == 0 { slots::default_count().count } else { terms.limits.slots };
        let mut queue = SlotQueue::join(home, MAX_PRIORITY, count)?;
        loop {
            let slot = queue.poll()?;
            if slot.is_some() || stop() {
                return Ok(slot);
            }
            clock::sleep(SLOT_LOOK);
        }
    }
}

/// Refuses the landing if the fault is that its remote lacks objects. Any other fault is the
/// machine's.
fn incomplete_landing(fault: GitFault) -> Result<PreparedLanding> {
    if fault.trouble != GitTrouble::Incomplete {
        return Err(fault.into());
    }
    Ok(PreparedLanding::Refused(Refusal::Incomplete(format!("{}; {}", fault.cause, fault.hint))))
}

/// The refusal if committed files differ before any check has run.
fn altered_by(terms: &FleetTerms, files: &str) -> Refusal {
    let (run, what) = match (&terms.clones.setup, &terms.clones.include) {
        (Some(setup), _) => (setup.clone(), "it changed files that are committed"),
        (None, Some(_)) => {
            (String::new(), "what .worktreeinclude names replaces files that are committed")
        }
        (None, None) => (String::new(), "git checks out files that differ from their commit"),
    };
    Refusal::Red { run, output: format!("{what}: {files}") }
}

// Pull requests.

/// The host's command-line program.
pub const GH: &str = "gh";
/// How long a host that does not answer is retried.
const PATIENCE: RetryPolicy = RetryPolicy::growing(Duration::from_secs(1), Duration::from_secs(30))
    .within(Duration::from_secs(30 * 60));
/// The time limit of one command.
const WITHIN: Duration = Duration::from_secs(120);
/// The maximum number of characters of a command's output that a refusal shows.
const TAIL_CHARS: usize = 300;
/// The maximum number of characters in an address.
const ADDRESS_CHARS: usize = 300;
/// The arguments that select the pull requests of a branch, and the fields of each.
const LISTED: &str = "--state all --json url,headRefOid,state,mergeCommit";
/// The format of the line for each pull request, which `parse::remote` reads.
const ASKED: &str =
    r#".[] | .url + " " + .headRefOid + " " + .state + " " + (.mergeCommit.oid // "")"#;

/// Opens the pull request of a branch, with this commit message as its title and text, or finds the
/// existing one. `program` is the host's command-line program, compatible with `gh`.
///
/// # Errors
/// If the host was unreachable all the time, or `stop` came first.
pub fn open_pull(
    program: &str,
    terms: &FleetTerms,
    record: &TaskRecord,
    (branch, message): (&str, &str),
    stop: Stop<'_>,
) -> Result<Result<Landed, Refusal>> {
    let remote = terms.remote.as_ref().context("a pull request needs a remote")?;
    // This folder has only the fleet's remote; in a clone an agent could have changed it.
    let opened = with_remote(&remote.url, |folder| {
        let gh = Gh { program, folder, stop };
        clock::retry(PATIENCE, stop, || {
            match find_or_create(terms, record, (branch, message), &gh) {
                Err(NotDone::Away(fault)) => Err(fault),
                Err(NotDone::Refused(why)) => Ok(Err(why)),
                Ok(landed) => Ok(Ok(landed)),
            }
        })
    })??;
    match opened {
        Err(_) if stop() => Err(anyhow!("the request was given up")),
        Err(why) => Ok(Err(Refusal::Request(one_line(&clean_text(&why), TAIL_CHARS * 2)))),
        Ok(landed) => Ok(Ok(landed)),
    }
}

/// Why there is no pull request.
enum NotDone {
    /// The host could not be reached.
    Away(GitFault),
    Refused(String),
}

/// Finds the pull request of a branch at its host, or creates one.
fn find_or_create(
    terms: &FleetTerms,
    record: &TaskRecord,
    (branch, message): (&str, &str),
    gh: &Gh<'_>,
) -> Result<Landed, NotDone> {
    let base = terms.base.as_str();
    let own = ["pr", "list", "--head", branch, "--base", base, "--jq", ASKED];
    let list: Vec<&str> = own.into_iter().chain(words_of(LISTED)).collect();
    let found = parse_requests(&gh.run_gh(&list)?);
    if let Some(open) = found.iter().find(|one| *one.state() == RequestState::Open) {
        return Ok(Landed::Request(clean_address(open.address())));
    }
    let merged = found.iter().find_map(|one| match one.state() {
        RequestState::Merged(commit) if Some(one.head()) == record.work.commit.as_ref() => {
            Some(commit)
        }
        _ => None,
    });
    if let Some(commit) = merged {
        return Ok(Landed::Main(Some(commit.clone())));
    }
    let (title, body) = message.split_once("\n\n").unwrap_or((message, ""));
    let create =
        ["pr", "create", "--head", branch, "--base", base, "--title", title, "--body", body];
    let output = gh.run_gh(&create)?;
    let named = output.lines().rev().find(|line| line.starts_with("http"));
    let tail = tail_of(&output, TAIL_CHARS);
    let named = named.ok_or_else(|| NotDone::Refused(format!("gh names no address: {tail}")))?;
    Ok(Landed::Request(clean_address(named)))
}

/// Cleans an address of terminal codes and line breaks.
fn clean_address(text: &str) -> String {
    one_line(&clean_text(text), ADDRESS_CHARS)
}

/// The host's command-line program in a folder.
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
        let away = match ended.cause() {
            ExitCause::Exit(0) => return Ok(text),
            ExitCause::TimedOut | ExitCause::Stopped => Some(ended.cause().to_string()),
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
#[path = "landing_tests.rs"]
mod landing_tests;

#[cfg(test)]
#[path = "landing_pull_tests.rs"]
mod requests_tests;
