//! Where a loop will work: the working tree, the folder of its checks, and the folder of its
//! branch.

use std::path::{Path, PathBuf};

use crate::engine::doctor::shell_word;
use crate::engine::record::Place;
use crate::engine::text::start;
use crate::parse::git::BRANCHES;
use crate::world::files::disk;
use crate::world::git;
use crate::world::store::{hash, view};

/// The longest name of a branch folder, in bytes.
const NAME_BYTES: usize = 100;

/// Finds the place. `cwd` is where the agent is now; `project` is where its client was started,
/// which is where checks belong if both are in the same working tree.
pub fn place(cwd: &Path, project: Option<&Path>) -> std::io::Result<Place> {
    let cwd = disk::real_path(cwd)?;
    let project = project.and_then(|folder| disk::real_path(folder).ok());
    let top = git::top(&cwd);
    let (branch, head) = top.as_deref().map_or((None, None), git::head);
    let is_in_it = |folder: &PathBuf| top.is_none() || git::top(folder) == top;
    let folder = project.filter(is_in_it).unwrap_or(cwd);
    let checkout = top.unwrap_or_else(|| folder.clone());
    let branch_dir = match (&branch, &head) {
        (Some(branch), _) => branch_dir(&checkout, branch),
        (None, Some(head)) => start(head, 12).to_owned(),
        (None, None) => "no-branch".to_owned(),
    };
    let (branches, repository, apart) = (BRANCHES, None, None);
    Ok(Place { checkout, folder, branch, branches, branch_dir, repository, head, apart })
}

/// What is missing of a loop's place, with the way out; no agent can work in it then. Nothing is
/// made again unasked: a person who removed a working tree may have meant to.
pub fn gone(place: &Place) -> Option<String> {
    let Place { checkout, folder, branch, .. } = place;
    if disk::is_folder(folder) {
        return None;
    }
    let (checkout, folder) = (checkout.display().to_string(), folder.display().to_string());
    let main = checkout.split_once(".worktrees/").map(|(main, _)| main);
    let way_out = match (main, branch) {
        _ if disk::is_folder(&place.checkout) => format!("mkdir -p {}", shell_word(&folder)),
        (Some(main), Some(branch)) if disk::is_folder(Path::new(main)) => {
            let words = [main, &checkout, branch].map(shell_word);
            format!("git -C {} worktree add --force {} {}", words[0], words[1], words[2])
        }
        _ => "put it back, or start a new loop elsewhere".to_owned(),
    };
    Some(format!("its folder {folder} is gone\nhint: {way_out}"))
}

/// The branch with `/` as `-`, and with eight digits of its hash if another branch already has that
/// name.
fn branch_dir(checkout: &Path, branch: &str) -> String {
    let digits = &hash(branch.as_bytes())[..8];
    let name = branch.replace('/', "-");
    if name.len() > NAME_BYTES {
        return format!("{}-{digits}", start(&name, NAME_BYTES / 4));
    }
    let folder = checkout.join(BRANCHES).join(&name);
    match view::branch_of(&folder) {
        Some(owner) if owner != branch => format!("{name}-{digits}"),
        _ => name,
    }
}
