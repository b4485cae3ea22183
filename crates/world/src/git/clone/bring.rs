//! Brings back from a clone what an agent made: a branch, and commits that would be lost with the
//! clone. git reads the clone's configuration but runs nothing of it. Only commits are fetched,
//! under full names, and every object is checked.

use std::collections::BTreeSet;
use std::convert::identity;
use std::path::Path;
use std::time::Duration;

use super::{OBJECTS_MAX, clone_fault, clone_refused};
use crate::clock::{self, RetryPolicy};
use crate::files::{disk, tree};
use crate::git::command::{FETCH, Said};
use crate::git::inside::listed_submodules;
use crate::git::steps::stays_inside;
use crate::git::{Git, count_lacking, find_commit, head, referred};
use engine::git::{GitFault, GitStep};
use engine::text::{join_first_names, words_of};
use readers::parse::git::{is_id, zero_ended};
use readers::parse::remote::is_disturbed;

/// The longest time a fetch may take.
const WITHIN: Duration = Duration::from_secs(10 * 60);
/// How long a fetch is tried again while another process is in the way, and the pause between
/// attempts.
const DISTURBED: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);
/// The program that reads the clone. Replace refs and grafts would make git show other commits than
/// there are.
const UPLOAD: &str = "GIT_GRAFT_FILE=/dev/null git --no-replace-objects \
    -c advice.graftFileDeprecated=false -c core.fsmonitor=false -c core.hooksPath=/dev/null \
    -c uploadpack.allowAnySHA1InWant=true upload-pack";
/// The command that combines the packs named on its input.
const COMBINE: &str = "pack-objects -q --stdin-packs --non-empty --delta-base-offset";
/// The settings of the fetch itself, whatever the user's configuration says.
const OWN: [&str; 3] =
    ["fetch.uriProtocols=", "fetch.writeCommitGraph=false", "protocol.version=2"];
/// The maximum number of bytes read from the end of a reflog.
const REFLOG_BYTES: u64 = 8 << 20;
/// The maximum number of commits kept from one clone, and the most submodules that an error names.
const KEPT_MAX: usize = 1000;
const NAMED_MAX: usize = 5;
/// How many small packs a repository may have, and the largest that counts as small, in bytes.
const PACKS_MAX: usize = 16;
const PACK_BYTES: u64 = 1 << 20;
/// The characters of a commit's id in the name of its ref.
const ID_CHARS: usize = 16;

/// Fetches a clone's branch as the ref `to`, and returns its commit; `None` if the clone has no
/// such branch. The ref may move to any commit.
pub fn bring_branch(
    repository: &Path,
    clone: &Path,
    branch: &str,
    to: &str,
) -> Result<Option<String>, GitFault> {
    stays_inside(clone, GitStep::Refs)?;
    match fetch_from_clone(repository, clone, &[format!("+refs/heads/{branch}:{to}")]) {
        Ok(()) => {
            combine_packs(repository);
            let brought = find_commit(repository, to);
            let (tip, without) = (brought.as_deref().unwrap_or(to), format!("--exclude={to}"));
            let added = [tip, "--not", &without, "--all"];
            referred::take_over(repository, clone, &added).map_err(clone_refused)?;
            Ok(brought)
        }
        Err(said) if said.text.contains("couldn't find remote ref") => Ok(None),
        Err(said) => Err(said.fault(GitStep::Refs)),
    }
}

/// Combines small packs once there are many. A fetch that checks objects keeps each pack, however
/// small; every git would open all of them, and every clone would link them. No object is dropped,
/// reachable or not, and loose objects stay. If this fails, the next call tries again.
fn combine_packs(repository: &Path) {
    let Some(folder) = head::git_folder(repository).map(|folder| head::common_folder(&folder))
    else {
        return;
    };
    let folder = folder.join("objects/pack");
    let names = disk::names(&folder, OBJECTS_MAX);
    if names.iter().any(|name| name.ends_with(".promisor")) {
        // git selects the packs of a partial clone by what it can fetch again, not by size.
        return;
    }
    let mut small: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(".pack")).collect();
    small.retain(|stem| {
        disk::size(&folder.join(format!("{stem}.pack"))) <= PACK_BYTES
            && !disk::exists(&folder.join(format!("{stem}.keep")))
    });
    if small.len() < PACKS_MAX {
        return;
    }
    let list: String = small.iter().flat_map(|stem| [stem, ".pack\n"]).collect();
    let git = Git { input: list.as_bytes(), within: Some(WITHIN), ..Git::here(repository) };
    let target = folder.join("pack");
    let words: Vec<_> = words_of(COMBINE).chain(target.to_str()).collect();
    let Some(made) = git.line(&words).map(|hash| format!("pack-{hash}")) else { return };
    if !["pack", "idx"].iter().all(|ending| disk::is_file(&folder.join(format!("{made}.{ending}"))))
    {
        return;
    }
    for stem in small.into_iter().filter(|stem| *stem != made) {
        for ending in ["idx", "rev", "pack"] {
            // A pack that stays is combined the next time.
            let _ = disk::remove(&folder.join(format!("{stem}.{ending}")));
        }
    }
}

/// Fetches the objects of a clone's commit, without creating a ref.
pub fn give_commit(repository: &Path, clone: &Path, commit: &str) -> Result<(), GitFault> {
    let given = fetch_from_clone(repository, clone, &[commit.to_owned()]);
    given.map_err(|said| said.fault(GitStep::Merge))
}

fn fetch_from_clone(repository: &Path, clone: &Path, refspecs: &[String]) -> Result<(), Said> {
    let from = clone.join(".git");
    // A file there would name another repository.
    if !tree::is_folder(&from) {
        let text = format!("fatal: {} is no longer a repository", clone.display());
        return Err(Said { exit: None, text });
    }
    let (upload, from) = (format!("--upload-pack={UPLOAD}"), from.display().to_string());
    // The check wants every object that a new one refers to, and a partial clone lacks some.
    let promisors = ["config", "--get-regexp", r"^remote\..*\.promisor$"];
    let is_partial = Git::here(repository).run(&promisors).is_some();
    let checks = format!("fetch.fsckObjects={}", !is_partial);
    let own = OWN.into_iter().chain([&*checks]);
    let mut arguments: Vec<&str> = own.flat_map(|setting| ["-c", setting]).collect();
    arguments.extend(words_of(FETCH));
    arguments.extend(["--no-prune", "--refmap=", &upload, "--", &from]);
    arguments.extend(refspecs.iter().map(String::as_str));
    let variables =
        [("GIT_ALLOW_PROTOCOL", "file".to_owned()), ("GIT_NO_LAZY_FETCH", "1".to_owned())];
    let git = Git { variables: &variables, within: Some(WITHIN), ..Git::lazily(repository) };
    let policy = RetryPolicy::every(PAUSE, DISTURBED);
    let fetched = clock::retry(
        policy,
        || false,
        || match git.step(&arguments) {
            Err(said) if !is_disturbed(&said.text) => Ok(Err(said)),
            fetched => fetched.map(Ok),
        },
    );
    fetched.and_then(identity).map(drop)
}

/// Keeps the commits of a clone that a repository lacks, each as a ref below `below`: those of
/// every ref, HEAD, each stash, and what was checked out before. Returns the refs.
///
/// # Errors
/// If git cannot read the clone or the clone leads elsewhere, or a submodule has commits that are
/// neither at its remote nor in the user's repository.
pub fn keep_strays(repository: &Path, clone: &Path, below: &str) -> Result<Vec<String>, GitFault> {
    stays_inside(clone, GitStep::Refs)?;
    let mut commits = unknown_to(repository, clone, &list_tips(clone)?)?;
    if commits.len() > 1 {
        // An ancestor of another commit needs no ref.
        let list = ["merge-base", "--independent"].into_iter();
        let list: Vec<&str> = list.chain(commits.iter().map(String::as_str)).collect();
        let independent = Git::here(clone).well(GitStep::Refs, &list)?;
        commits = independent.lines().map(str::to_owned).collect();
    }
    let mut submodules = Vec::new();
    let mut pending = listed_submodules(clone);
    while let Some(path) = pending.pop() {
        let (inside, theirs) = (clone.join(&path), repository.join(&path));
        let is_new = pending.len() + submodules.len() < KEPT_MAX;
        if !is_new || disk::is_missing(&inside.join(".git")) {
            continue;
        }
        let ids = unknown_to(&theirs, &inside, &list_tips(&inside)?)?;
        if ids.iter().any(|id| count_lacking(&inside, id, "--remotes") != Some(0)) {
            submodules.push(path.display().to_string());
        }
        pending.extend(listed_submodules(&inside).iter().map(|nested| path.join(nested)));
    }
    if !submodules.is_empty() {
        let names = join_first_names(&submodules, NAMED_MAX);
        let cause = format!("commits of the submodule {names} are at no remote and not here");
        return Err(clone_fault(cause, "push them there"));
    }
    let ids = commits.iter().map(|id| id.get(..ID_CHARS).unwrap_or(id));
    let names: Vec<String> = ids.map(|id| format!("{below}/{id}")).collect();
    let refspecs = commits.iter().zip(&names).map(|(id, name)| format!("+{id}:{name}"));
    if !commits.is_empty() {
        let fetched = fetch_from_clone(repository, clone, &refspecs.collect::<Vec<_>>());
        fetched.map_err(|said| said.fault(GitStep::Refs))?;
    }
    Ok(names)
}

/// The commits that refs point to in a working tree, or pointed to lately.
fn list_tips(tree: &Path) -> Result<BTreeSet<String>, GitFault> {
    let form = "--format=%(objectname)%00%(*objectname)%00";
    let listed = Git::here(tree).well(GitStep::Refs, &["for-each-ref", form])?;
    let names = zero_ended(listed.as_bytes()).map(|id| String::from_utf8_lossy(id).into_owned());
    let mut found: BTreeSet<String> = names.map(|id| id.trim().to_owned()).collect();
    found.extend(find_commit(tree, "HEAD"));
    // Each line of HEAD's reflog names the commit it leaves, each line of the stash's the one it
    // adds.
    for (name, commit_of) in [
        ("HEAD", left_behind as fn(&str) -> Option<&str>),
        ("refs/stash", |line| line.split(' ').nth(1)),
    ] {
        let logs = Git::here(tree).line(&["rev-parse", "--git-path", &format!("logs/{name}")]);
        let file = tree.join(logs.unwrap_or_default());
        if !disk::is_file(&file) {
            continue;
        }
        let read = disk::read_end(&file, 0, REFLOG_BYTES).map_err(clone_refused)?;
        found.extend(read.0.lines().filter_map(commit_of).map(str::to_owned));
    }
    found.retain(|id| is_id(id));
    Ok(found)
}

/// The commit that a line of a reflog leaves, unless it was amended or rebased.
fn left_behind(line: &str) -> Option<&str> {
    let (ids, what) = line.split_once('\t')?;
    if what.starts_with("commit (amend)") || what.starts_with("rebase") {
        return None;
    }
    ids.split(' ').next()
}

/// The ids, of these one per line, that are commits of a repository.
fn commits_among(folder: &Path, ids: &str) -> BTreeSet<String> {
    let git = Git { input: ids.as_bytes(), ..Git::here(folder) };
    let form = ["cat-file", "--batch-check=%(objecttype) %(objectname)"];
    let printed = git.run(&form).unwrap_or_default();
    let commits = printed.lines().filter_map(|line| line.strip_prefix("commit "));
    commits.map(str::to_owned).collect()
}

/// The commits of a working tree, of these, that a repository does not have.
fn unknown_to(
    repository: &Path,
    tree: &Path,
    ids: &BTreeSet<String>,
) -> Result<Vec<String>, GitFault> {
    let input: String = ids.iter().flat_map(|id| [id, "\n"]).collect();
    let [here, there] = [repository, tree].map(|folder| commits_among(folder, &input));
    let unknown: Vec<String> = there.difference(&here).cloned().collect();
    if unknown.len() > KEPT_MAX {
        let cause = format!("{} has more than {KEPT_MAX} commits of its own", tree.display());
        return Err(clone_fault(cause, "remove it by hand"));
    }
    Ok(unknown)
}
