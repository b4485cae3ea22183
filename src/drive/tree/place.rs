//! Where a loop will work: the working tree, the folder of its checks, and the folder of its
//! branch; and what a run's git steps require of the repository, at its start and later. Refuses
//! what git cannot do there.

use std::path::Path;

use anyhow::{Error, Result};

use engine::doctor::shell_word;
use engine::failure::Failure;
use engine::git::{GitFault, GitStep, GitTrouble, name_files};
use engine::record::{GitSteps, Loop, Place};
use engine::refuse;
use engine::text::text_start;
use readers::parse::git::BRANCHES;
use readers::parse::settings::options::ProcessOptions;
use world::files::disk;
use world::git::commit::{ListedDrafts, drafts_are_listed, list_drafts};
use world::git::steps::{self, Steps};
use world::git::{self};
use world::process::Stop;
use world::store::{Home, hash, view};

/// The longest name of a branch folder, in bytes.
const NAME_BYTES: usize = 100;

/// Finds the place. `cwd` is where the agent is now; `project` is where its client was started,
/// which is where checks belong if both are in the same working tree.
pub fn find_place(cwd: &Path, project: Option<&Path>) -> std::io::Result<Place> {
    let cwd = disk::real_path(cwd)?;
    let project = project.and_then(|folder| disk::real_path(folder).ok());
    let top = git::find_top(&cwd);
    let (branch, head) = top.as_deref().map_or((None, None), git::read_head);
    let is_beside =
        project.as_ref().is_some_and(|project| top.is_some() && git::find_top(project) != top);
    let folder = if is_beside { cwd } else { project.unwrap_or(cwd) };
    let checkout = top.unwrap_or_else(|| folder.clone());
    let branch_dir = match (&branch, &head) {
        (Some(branch), _) => branch_dir(&checkout, branch),
        (None, Some(head)) => text_start(head, 12).to_owned(),
        (None, None) => "no-branch".to_owned(),
    };
    Ok(Place {
        checkout,
        folder,
        branch,
        branches: BRANCHES,
        branch_dir,
        repository: None,
        head,
        apart: None,
        is_clone: false,
    })
}

/// What is missing from a loop's place, in which no agent can work then. Nothing is recreated
/// unasked: a user who removed a working tree may have meant to.
pub fn missing_place(place: &Place) -> Option<Failure> {
    let Place { checkout, folder, branch, .. } = place;
    if disk::is_folder(folder) {
        return None;
    }
    let (checkout, folder) = (checkout.display().to_string(), folder.display().to_string());
    let main = checkout.split_once(".worktrees/").map(|(main, _)| main);
    let hint = match (main, branch) {
        _ if disk::is_folder(&place.checkout) => format!("mkdir -p {}", shell_word(&folder)),
        (Some(main), Some(branch)) if disk::is_folder(Path::new(main)) => {
            let words = [main, &checkout, branch].map(shell_word);
            format!("git -C {} worktree add --force {} {}", words[0], words[1], words[2])
        }
        _ => "put it back, or start a new loop elsewhere".to_owned(),
    };
    Some(Failure::new(format!("its folder {folder} no longer exists"), hint))
}

/// The branch with `/` as `-`, and with eight digits of its hash if another branch already has that
/// name.
fn branch_dir(checkout: &Path, branch: &str) -> String {
    let digits = &hash(branch.as_bytes())[..8];
    let name = branch.replace('/', "-");
    if name.len() > NAME_BYTES {
        return format!("{}-{digits}", text_start(&name, NAME_BYTES / 4));
    }
    let folder = checkout.join(BRANCHES).join(&name);
    match view::branch_of(&folder) {
        Some(owner) if owner != branch => format!("{name}-{digits}"),
        _ => name,
    }
}

/// Refuses typed git steps outside a git repository, and reports those from the settings.
pub fn without_git(
    options: &ProcessOptions,
    steps: &GitSteps,
    here: &Path,
) -> Result<Option<String>> {
    if *steps == GitSteps::default() || git::find_top(here).is_some() {
        return Ok(None);
    }
    let typed = [
        ("--commit", *options.commit()),
        ("--push", *options.push()),
        ("--rebase", options.rebase().is_some()),
    ];
    if let Some((option, _)) = typed.iter().find(|(_, is_typed)| *is_typed) {
        return Err(git_needed(option, here));
    }
    let why = git::find_refusal(here).map_or_else(
        || "this is not a git repository".to_owned(),
        |(cause, hint)| format!("{cause} ({hint})"),
    );
    Ok(Some(format!("{why}: nothing is committed, pushed or rebased")))
}

/// The error if something needs a git repository and git finds none, or refuses it.
pub fn git_needed(what: &str, here: &Path) -> Error {
    if let Some((cause, hint)) = git::find_refusal(here) {
        return Failure::new(format!("{what} needs git here: {cause}"), hint).into();
    }
    let or = if what.starts_with("--") {
        format!("or leave {what} out")
    } else {
        "and a first commit".to_owned()
    };
    let hint = format!("git init, {or}");
    Failure::new(format!("{what} needs a git repository, and there is none here"), hint).into()
}

/// Refuses to rebase onto a name that is not a commit, and any git step in a repository whose
/// settings git cannot list, unless they `are_known`.
pub fn refuse_impossible(steps: &GitSteps, folder: &Path, are_known: bool) -> Result<()> {
    let GitSteps { commit, push, rebase, .. } = steps;
    // A fleet asks this for each of its tasks, and git needs a process for each answer.
    if !commit && !push && rebase.is_none() {
        return Ok(());
    }
    let Some(checkout) = git::find_top(folder) else { return Ok(()) };
    if let Some(onto) = rebase.as_ref().filter(|onto| !git::is_a_commit(folder, onto)) {
        refuse!("--rebase {onto}: there is no branch {onto} here", "git branch --all lists them");
    }
    if !are_known && steps::read_trusted(&checkout).is_none() {
        refuse!(
            "git's settings cannot be listed here, and without them crew does not commit, push or rebase",
            "update git to 2.26 or newer, or leave out --commit, --push and --rebase"
        );
    }
    Ok(())
}

/// The fault of a checkout whose repository is not the one the loop began in.
pub fn lost_repository(place: &Place) -> Option<GitFault> {
    place.repository.as_ref()?;
    let fault = steps::read_head_state(place, GitStep::Commit).err();
    fault.filter(|fault| fault.trouble == GitTrouble::Repository)
}

/// Refuses a checkout whose repository is not the one the loop began in.
pub fn same_repository(place: &Place) -> Result<()> {
    match lost_repository(place) {
        Some(fault) => refuse!(fault.cause, fault.hint),
        None => Ok(()),
    }
}

/// The message if commits would be on no branch.
pub const NO_BRANCH: &str =
    "no branch is checked out: no branch holds the commits (git switch -c NEW makes one)";

/// The fault if the user's uncommitted files cannot be distinguished from the agent's work.
pub fn unlisted_fault(fault: GitFault) -> GitFault {
    let cause = format!("what you have not committed cannot be listed: {}", fault.cause);
    GitFault { cause, ..fault }
}

/// Lists the user's own files, unless they are listed already. Returns what to report about them.
pub fn drafts_of(home: &Home, record: &Loop, stop: Stop<'_>) -> Result<Vec<String>, GitFault> {
    let Some(trusted) = &record.trusted else { return Ok(Vec::new()) };
    if drafts_are_listed(home, &record.id) {
        return Ok(Vec::new());
    }
    let steps = Steps::new(&record.place, trusted, stop);
    let ListedDrafts { drafts, nested } = list_drafts(home, record, &steps)?;
    let left_out = [
        (drafts, "not committed here, and left out of crew's commits until the agent changes it: "),
        (nested, "a separate repository, left out of crew's commits: "),
    ];
    let left_out = left_out.into_iter().filter(|(files, _)| !files.is_empty());
    Ok(left_out.map(|(files, what)| format!("{what}{}", name_files(&files))).collect())
}

/// The message if a branch other than the loop's is checked out.
pub fn on_another_branch(own: Option<&str>, branch: Option<&str>) -> String {
    match (own, branch) {
        (Some(own), Some(branch)) => format!(
            "{branch} is checked out, and the loop's branch is {own}: commits go to {branch}, and nothing is pushed \
             from it (git switch {own}, or crew resume --push continues on {branch})"
        ),
        (Some(own), None) => format!(
            "no branch is checked out, and the loop's is {own}: no branch holds the commits (git switch {own})"
        ),
        (None, Some(branch)) => {
            format!("the loop began on no branch, and {branch} is checked out: commits go to it")
        }
        (None, None) => NO_BRANCH.to_owned(),
    }
}
