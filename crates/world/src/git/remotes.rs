//! The remotes of a checkout, and refs of a remote as memory shared by many machines: a ref is
//! moved only from the value that was read before, and several move together or not at all. The
//! remote itself compares, so only one of many writers wins. No ref and no `FETCH_HEAD` is written
//! here, because several processes share the repository, and nothing is forced.
//!
//! The repository's configuration decides where a name leads and which programs the transport runs.
//! In a checkout that an agent can write, `Steps` must have found it unchanged.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{ASIDE, FETCH, PUSH, Said, read_setting};
use super::{Git, read_head, readiness, run_git};
use crate::clock::{self, Deadline, RetryPolicy};
use crate::env;
use crate::files::{disk, tree};
use crate::process::signals::Signals;
use crate::process::{FinishedProcess, Stop};
use engine::git::{GitFault, GitStep, GitTrouble, RefUpdate, RemoteRef, SwapResult, swap_result};
use engine::text::words_of;
use readers::parse::git::is_id;
use readers::parse::remote::{self, MESSAGE_BYTES, classify_failure, is_ref_name, without_secrets};

/// The longest that one exchange with the remote may take.
pub const WITHIN: Duration = Duration::from_secs(120);
/// The pauses between attempts to reach a remote.
const PAUSES: RetryPolicy = RetryPolicy::growing(Duration::from_secs(1), Duration::from_secs(30));
/// The longest that an exchange may take after a signal.
const WITHIN_AT_THE_END: Duration = Duration::from_secs(15);
/// How often a swap is tried if the remote cannot lock a ref. The remote itself also waits for a
/// lock.
const SWAPS_MAX: usize = 3;
/// An id that no object has.
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";
/// The author and committer of crew's own commits.
const CREW: &str = "crew <crew@localhost>";

/// How long an unreachable remote is tried again. A signal ends the attempts, and soon after that
/// the running git.
#[derive(Debug, Clone)]
pub struct Patience {
    pub signals: Signals,
    pub within: Duration,
    /// The longest that one exchange may take.
    pub talk: Duration,
}

/// A local repository, and the remote whose refs are shared.
pub struct Refs<'a> {
    /// A working tree's root or a bare repository, for the objects.
    pub folder: &'a Path,
    /// A name or an address. It must push to where it fetches from.
    pub remote: &'a str,
    /// The condition that ends a running git process early.
    pub stop: Stop<'a>,
    /// How long an unreachable remote is tried again; `None` tries once.
    pub patience: Option<&'a Patience>,
}

impl Refs<'_> {
    /// The remote's refs with these names; `*` at the end of a name matches any rest. git transfers
    /// the list of all refs, at most 32 MiB.
    pub fn list_refs(&self, patterns: &[&str]) -> Result<Vec<RemoteRef>, GitFault> {
        if patterns.is_empty() {
            // git would list everything.
            return Ok(Vec::new());
        }
        let arguments = [&["ls-remote", "--refs", "--quiet", "--", self.remote], patterns].concat();
        let ended = self
            .talk_to_remote(&arguments, &[])
            .map_err(|said| explain_failure(self.remote, &said))?;
        if ended.cut() {
            let hint = "use a remote of the fleets' own";
            return Err(refs_fault("the remote has more refs than crew reads", hint));
        }
        Ok(remote::parse_refs(&ended.text(), patterns))
    }

    /// Fetches the objects of these refs, with everything they build on, but creates no ref. Refs
    /// that the remote no longer has are left out. `known` names objects from an earlier fetch: no
    /// ref here points to them, so without them git would fetch the whole chain again.
    pub fn fetch_objects(&self, names: &[&str], known: &[&str]) -> Result<(), GitFault> {
        names.iter().try_for_each(|name| check_name(name))?;
        known.iter().try_for_each(|id| check_id(id))?;
        let mut brought = self.bring_objects(names, known);
        if brought.as_ref().is_err_and(|said| remote::is_gone(&said.text)) {
            let there = self.list_refs(names)?;
            let there: Vec<&str> = there.iter().map(|found| found.name.as_str()).collect();
            brought = self.bring_objects(&there, &[]);
        }
        brought.map_err(|said| explain_failure(self.remote, &said))
    }

    fn bring_objects(&self, names: &[&str], known: &[&str]) -> Result<(), Said> {
        if names.is_empty() {
            // git would fetch what the configuration names.
            return Ok(());
        }
        let tips: Vec<String> = known.iter().map(|id| format!("--negotiation-tip={id}")).collect();
        let mut arguments: Vec<&str> = words_of(FETCH).collect();
        arguments.extend(["--refmap=", "--no-prune", "--stdin"]);
        arguments.extend(tips.iter().map(String::as_str));
        arguments.extend(["--", self.remote]);
        self.talk_to_remote(&arguments, names.join("\n").as_bytes()).map(drop)
    }

    /// Whether the remote has a commit that is not here. It is requested by its id; if the remote
    /// does not allow that, all branches and tags are fetched.
    pub fn has_commit(&self, id: &str) -> Result<bool, GitFault> {
        check_id(id)?;
        if let Err(said) = self.fetch_only(&["--depth=1", "--", self.remote, id]) {
            if classify_failure(&said.text).0 != GitTrouble::Other {
                return Err(explain_failure(self.remote, &said));
            }
            let all = ["+refs/heads/*:refs/found/heads/*", "+refs/tags/*:refs/found/tags/*"];
            self.fetch_only(&[&["--", self.remote][..], &all].concat())
                .map_err(|said| explain_failure(self.remote, &said))?;
        }
        Ok(Git::here(self.folder).commit(id).is_some())
    }

    fn fetch_only(&self, what: &[&str]) -> Result<(), Said> {
        let arguments: Vec<&str> =
            words_of(FETCH).chain(["--refmap="]).chain(what.iter().copied()).collect();
        self.talk_to_remote(&arguments, &[]).map(drop)
    }

    /// The message of a local commit, of at most 8 MiB, byte for byte. Bytes that are not UTF-8 are
    /// replaced.
    pub fn read_message(&self, id: &str) -> Result<String, GitFault> {
        let read = self.read_messages(&[id.to_owned()])?.pop().flatten();
        read.ok_or_else(|| {
            let cause = format!("{id} is not a commit here with a message of at most 8 MiB");
            refs_fault(cause, "fetch its ref; if that does not help, crew did not write it")
        })
    }

    /// The messages of these commits, in the same order; `None` where [`Self::read_message`] would
    /// fail. One git reads up to 32 MiB of them.
    pub fn read_messages(&self, ids: &[String]) -> Result<Vec<Option<String>>, GitFault> {
        let mut messages = Vec::new();
        while let Some(rest) = ids.get(messages.len()..).filter(|rest| !rest.is_empty()) {
            let asked = rest.iter().map(|id| if is_id(id) { id } else { NO_OBJECT });
            let input = asked.collect::<Vec<_>>().join("\n");
            let arguments = ["cat-file", "--batch"];
            let stop = self.end_condition();
            let input = input.as_bytes();
            let git = Git { input, stop: Some(&stop), ..Git::here(self.folder) };
            let read = git.step(&arguments).map_err(|said| said.fault(GitStep::Refs))?;
            let read = remote::parse_messages(read.output());
            if read.is_empty() {
                // The next message alone is longer than the limit.
                messages.push(None);
            }
            messages.extend(read.into_iter().take(rest.len()));
        }
        Ok(messages)
    }

    /// Creates a commit of the empty tree. The message is kept byte for byte: no line is stripped
    /// or added. `parent` must exist here, or no remote accepts the commit. Every commit is unique,
    /// even with the same message, so of two writers of one ref, one is refused.
    pub fn make_commit(&self, message: &str, parent: Option<&str>) -> Result<String, GitFault> {
        if message.contains('\0') || message.len() > MESSAGE_BYTES {
            let cause =
                "git cannot keep this message: it is longer than 8 MiB or contains a NUL byte";
            return Err(refs_fault(cause, "shorten it, and remove the NUL byte"));
        }
        parent.map_or(Ok(()), check_id)?;
        let tree = self.store_object("tree", "")?;
        let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
        let who = format!("{CREW} {} +0000", clock::now().wall.timestamp());
        let header = format!(
            "tree {tree}\n{parent}author {who}\ncommitter {who}\ncrew-unique {:016x}\n",
            env::random_number()
        );
        // `git commit-tree` would replace characters that Unicode leaves unassigned.
        self.store_object("commit", &format!("{header}\n{message}"))
    }

    /// Moves these refs together or not at all, each only if it still points to what it did before.
    ///
    /// - A ref that is already as it should be counts as moved. After a fault, which can mean that
    ///   the answer was lost, the same swap again is therefore right.
    /// - Where `old` and `new` are the same, the ref is compared when the push begins, but is not
    ///   part of the atomic change. It does not exclude other writers.
    /// - A branch may go back to an older commit, if the remote's rules let it.
    pub fn swap(&self, updates: &[RefUpdate]) -> Result<SwapResult, GitFault> {
        if updates.is_empty() {
            // git would push what the configuration names.
            return Ok(SwapResult::Done);
        }
        let names: Vec<&str> = updates.iter().map(|update| update.name.as_str()).collect();
        let deletes = updates.iter().any(|update| update.new.is_none());
        let mut swaps_left = SWAPS_MAX;
        loop {
            swaps_left -= 1;
            let Err(said) = self.push_updates(updates)? else { return Ok(SwapResult::Done) };
            let is_stale = remote::is_stale(&said.text);
            // git also calls a ref stale that is to be deleted and is already gone.
            if is_stale && !deletes {
                return Ok(SwapResult::Refused);
            }
            let seen = self.list_refs(&names).ok();
            if let Some(result) = seen.and_then(|seen| swap_result(updates, &seen)) {
                return Ok(result);
            }
            if is_stale {
                return Ok(SwapResult::Refused);
            }
            if swaps_left == 0 || !remote::is_contended(&said.text) {
                return Err(explain_failure(self.remote, &said));
            }
        }
    }

    /// Whether the remote accepts a ref of this name, tested with a similar name, which is deleted
    /// again. If deleting is forbidden, the test ref stays.
    pub fn takes_ref(&self, name: &str) -> Result<bool, GitFault> {
        let name = format!("{name}-probe-{:016x}", env::random_number());
        let id = self.make_commit("Whether this remote takes a ref of this name\n", None)?;
        let create = RefUpdate { name: name.clone(), old: None, new: Some(id.clone()) };
        let Err(said) = self.push_updates(&[create])? else {
            let _ = self.swap(&[RefUpdate { name, old: Some(id), new: None }]);
            return Ok(true);
        };
        if remote::is_rejected(&said.text) {
            Ok(false)
        } else {
            Err(explain_failure(self.remote, &said))
        }
    }

    fn push_updates(&self, updates: &[RefUpdate]) -> Result<Result<(), Said>, GitFault> {
        let arguments = push_arguments(self.remote, updates)?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Ok(self.talk_to_remote(&arguments, &[]).map(drop))
    }

    /// Runs a git command that contacts the remote, and tries again while the remote is
    /// unreachable.
    fn talk_to_remote(&self, arguments: &[&str], input: &[u8]) -> Result<FinishedProcess, Said> {
        let most = if self.count_signals() > 0 { WITHIN_AT_THE_END } else { WITHIN };
        let within = self.patience.map_or(most, |patience| patience.talk.min(most));
        let git = Git { input, ..Git::lazily(self.folder) };
        self.ask_patiently(
            || {
                let stop = self.end_condition();
                Git { within: Some(within), stop: Some(&stop), ..git }.step(arguments)
            },
            |answer| answer.as_ref().is_err_and(is_out_of_reach),
        )
    }

    /// How many signals have arrived.
    fn count_signals(&self) -> u32 {
        self.patience.map_or(0, |patience| patience.signals.times())
    }

    /// Whether a git process that starts now must end: some time after a first signal, at once
    /// after a second.
    fn end_condition(&self) -> impl Fn() -> bool {
        let (before, since) = (self.count_signals(), OnceCell::<Deadline>::new());
        move || {
            let is_late = match self.count_signals() - before {
                0 => false,
                1 => since.get_or_init(|| Deadline::after(WITHIN_AT_THE_END)).passed(),
                _ => true,
            };
            is_late || (self.stop)()
        }
    }

    /// Repeats a request while the remote is unreachable.
    pub fn ask_patiently<T>(&self, ask: impl Fn() -> T, is_out_of_reach: impl Fn(&T) -> bool) -> T {
        let Some(Patience { signals, within, .. }) = self.patience else { return ask() };
        let policy = PAUSES.within(*within);
        let answer = clock::retry(
            policy,
            || signals.times() > 0,
            || {
                let answer = ask();
                if is_out_of_reach(&answer) { Err(answer) } else { Ok(answer) }
            },
        );
        match answer {
            Ok(answer) | Err(answer) => answer,
        }
    }

    /// Stores an object and returns its id.
    fn store_object(&self, kind: &str, content: &str) -> Result<String, GitFault> {
        let (input, stop) = (content.as_bytes(), self.end_condition());
        let git = Git { input, stop: Some(&stop), ..Git::here(self.folder) };
        let hash = ["hash-object", "-t", kind, "-w", "--stdin"];
        let id = git.well(GitStep::Refs, &hash)?.trim_end().to_owned();
        check_id(&id).map(|()| id)
    }
}

/// Why an exchange with a remote failed.
pub(super) fn explain_failure(remote: &str, said: &Said) -> GitFault {
    said.remote_fault(GitStep::Refs, "", &[("{remote}", &without_secrets(remote))])
}

/// Whether the remote was not reached, or took too long.
fn is_out_of_reach(said: &Said) -> bool {
    said.classify().0 == GitTrouble::Network
}

/// The arguments of the push that moves these refs. No refspec begins with `+` and nothing is
/// forced: git would then ignore the expected values.
pub(super) fn push_arguments(remote: &str, updates: &[RefUpdate]) -> Result<Vec<String>, GitFault> {
    let together = ["--atomic", "--no-follow-tags", "--no-recurse-submodules"];
    let mut arguments: Vec<String> = words_of(PUSH).chain(together).map(str::to_owned).collect();
    let mut refspecs = Vec::new();
    for RefUpdate { name, old, new } in updates {
        check_name(name)?;
        old.iter().chain(new).try_for_each(|id| check_id(id))?;
        let [old, new] = [old, new].map(|id| id.as_deref().unwrap_or_default());
        arguments.push(format!("--force-with-lease={name}:{old}"));
        refspecs.push(format!("{new}:{name}"));
    }
    arguments.extend(["--".to_owned(), remote.to_owned()]);
    arguments.extend(refspecs);
    Ok(arguments)
}

fn check_name(name: &str) -> Result<(), GitFault> {
    if is_ref_name(name) {
        return Ok(());
    }
    Err(refs_fault(format!("{name:?} is not the name of a ref"), "use a full name: refs/crew/a"))
}

fn check_id(id: &str) -> Result<(), GitFault> {
    if is_id(id) {
        return Ok(());
    }
    Err(refs_fault(format!("{id:?} is not the id of an object"), "use the whole id"))
}

fn refs_fault(cause: impl Into<String>, hint: &str) -> GitFault {
    GitFault::new(GitStep::Refs, GitTrouble::Other, cause, hint)
}

/// Points a ref to a local commit. A symbolic ref becomes an ordinary one.
pub fn point_ref(folder: &Path, name: &str, id: &str) -> Result<(), GitFault> {
    check_name(name)?;
    check_id(id)?;
    let arguments = ["update-ref", "--no-deref", name, id];
    Git::here(folder).well(GitStep::Refs, &arguments).map(drop)
}

/// Creates a bare repository in a folder, from which crew talks to a remote while an agent works:
/// nothing that the agent writes to its own configuration applies there. Returns its path.
pub fn make_aside(folder: &Path) -> Result<PathBuf, GitFault> {
    let repository = folder.join(ASIDE);
    if !disk::is_file(&repository.join("HEAD")) {
        disk::make_private_folder(folder)
            .map_err(|error| refs_fault(error.to_string(), "free some space on its disk"))?;
        Git::climbing(folder).well(GitStep::Refs, &["init", "--quiet", "--bare", ASIDE])?;
    }
    Ok(repository)
}

/// Checks that git knows who commits on this machine, by the same rules as for crew's commits.
pub fn check_identity() -> Result<(), GitFault> {
    in_a_new_repository(readiness::check_identity)
}

/// Whether the remote at this address accepts a ref of this name; see [`Refs::takes_ref`].
pub fn remote_takes(url: &str, name: &str, stop: Stop<'_>) -> Result<bool, GitFault> {
    in_a_new_repository(|folder| Refs { folder, remote: url, stop, patience: None }.takes_ref(name))
}

/// Runs `work` in an empty repository whose only remote, `origin`, has this address.
pub fn with_remote<T>(url: &str, work: impl Fn(&Path) -> T) -> Result<T, GitFault> {
    in_a_new_repository(|folder| {
        Git::here(folder).well(GitStep::Request, &["config", "remote.origin.url", url])?;
        Ok(work(folder))
    })
}

/// Runs `ask` in a temporary empty repository, so that no other configuration is read.
pub(super) fn in_a_new_repository<T>(
    ask: impl Fn(&Path) -> Result<T, GitFault>,
) -> Result<T, GitFault> {
    let folder = disk::make_scratch_folder(&env::temporary_folder(), env::random_number());
    let folder = folder.map_err(|error| {
        refs_fault(error.to_string(), "set TMPDIR to a folder that can be written")
    })?;
    let init = ["init", "--quiet", "--bare", "."];
    let made = Git::climbing(&folder).well(GitStep::Refs, &init);
    let answer = made.and_then(|_| ask(&folder));
    // If this fails, one small temporary folder remains.
    let _ = tree::remove_scratch_folder(&folder);
    answer
}

/// The name and address of the remote that a working tree pushes to: its branch's remote, else
/// `origin`, else the only one. A path becomes absolute.
pub fn remote_of(top: &Path) -> Option<(String, String)> {
    let names = remote_names(top);
    let of_branch =
        read_head(top).0.and_then(|branch| read_setting(top, &format!("branch.{branch}.remote")));
    let mut preferred = of_branch.into_iter().chain(["origin".to_owned()]);
    let name = match preferred.find(|name| names.contains(name)) {
        Some(name) => name,
        None if names.len() == 1 => names[0].clone(),
        None => return None,
    };
    let address = push_address(top, &name)?;
    Some((name, address))
}

/// The name of the remote that pushes to an address; `before` is the preferred name.
pub fn remote_at(top: &Path, url: &str, before: &str) -> Option<String> {
    let mut names = remote_names(top);
    names.sort_by_key(|name| name != before);
    names.into_iter().find(|name| push_address(top, name).as_deref() == Some(url))
}

fn remote_names(top: &Path) -> Vec<String> {
    run_git(top, &["remote"]).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn push_address(top: &Path, name: &str) -> Option<String> {
    let url = Git::here(top).line(&["remote", "get-url", "--push", name])?;
    let is_path = !url.contains("://") && (!url.contains(':') || url.starts_with(['/', '.']));
    match disk::real_path(&top.join(&url)) {
        Ok(path) if is_path => Some(path.display().to_string()),
        _ => Some(url),
    }
}
