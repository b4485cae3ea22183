//! A scratch folder that holds a snapshot, with a git dir of its own. The second time it only
//! changes what differs, so that what a build left there is still of use. The working tree of the
//! user is not touched.

use std::path::Path;

use super::fill::ATTRIBUTES;
use super::{Snapshots, write};
use crate::world::clock::Deadline;
use crate::world::files::{disk, tree};

/// The longest that writing a snapshot may take.
const WITHIN: std::time::Duration = std::time::Duration::from_secs(120);
/// Settings of the folder's own repository: a check may run git in it.
const CONFIG: &str =
    "[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n\tautocrlf = false\n[gc]\n\tauto = 0";

impl Snapshots {
    /// Makes a folder hold exactly a snapshot and what its ignore rules name. A folder that cannot
    /// be brought up to date is made anew.
    pub fn check_out(&self, commit: &str, folder: &Path) -> Result<(), String> {
        let scratch = Self {
            folder: folder.join(".git"),
            checkout: folder.to_owned(),
            deadline: Some(Deadline::after(WITHIN)),
            ..self.clone()
        };
        let _ = disk::remove(&scratch.folder.join("index.lock"));
        if scratch.reset(commit).is_ok() {
            return Ok(());
        }
        tree::remove(folder).map_err(|error| error.to_string())?;
        for name in ["objects/info", "refs/heads", "info"] {
            let made = disk::make_private_folder(&scratch.folder.join(name));
            made.map_err(|error| error.to_string())?;
        }
        let objects = self.folder.join("objects").display().to_string();
        write(&scratch.folder.join("config"), CONFIG)?;
        write(&scratch.folder.join("info/attributes"), ATTRIBUTES)?;
        write(&scratch.folder.join("objects/info/alternates"), &objects)?;
        write(&scratch.folder.join("HEAD"), "ref: refs/heads/scratch")?;
        scratch.reset(commit)
    }

    /// A snapshot with these files as they are in another one.
    pub fn mixed(&self, commit: &str, other: &str, files: &[&str]) -> Result<String, String> {
        let index = self.folder.join(format!("index.{}", std::process::id()));
        let made = || {
            let run = |arguments: &[&str], input: &[u8]| {
                self.printed_in(&self.checkout, arguments, input, Some(&index))
            };
            run(&["read-tree", commit], &[])?;
            for file in files {
                let listed = run(&["ls-tree", "-z", other, "--", file], &[])?;
                let gone = format!("0 {}\t{file}\0", "0".repeat(commit.len()));
                let entry = if listed.is_empty() { gone.into_bytes() } else { listed };
                run(&["update-index", "-z", "--index-info"], &entry)?;
            }
            let tree = run(&["write-tree", "--missing-ok"], &[])?;
            let tree = String::from_utf8_lossy(&tree).trim_end().to_owned();
            self.id(&["commit-tree", "-m", "snapshot", &tree])
        };
        let made = made();
        let _ = disk::remove(&index);
        made
    }

    fn reset(&self, commit: &str) -> Result<(), String> {
        if !disk::exists(&self.folder.join("HEAD")) {
            return Err("there is no git dir".to_owned());
        }
        self.printed(&["reset", "--hard", "-q", commit], &[])?;
        self.printed(&["clean", "-fdq"], &[]).map(drop)
    }
}
