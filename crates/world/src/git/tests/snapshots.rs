//! Snapshots of real working trees: what they report, what a return restores, and that none of the
//! user's files is run or altered.

mod apart;
mod situations;

use std::path::Path;

use super::{Yard, start};
use crate::git::snapshots::{Snapshots, fill_git_dir};
use crate::store::Home;
use engine::evidence::changes::{ChangeKind, Changes};
use engine::fixture::a_loop;
use engine::record::Loop;

/// A working tree and its snapshots.
struct Kept {
    yard: Yard,
    subject: Loop,
    snapshots: Snapshots,
}

impl Kept {
    /// Snapshots of a repository with one commit, after these commands.
    fn after(script: &str) -> Self {
        let yard = Yard::new();
        // git keeps of a mode only whether a file is a program.
        yard.sh("repo", &format!("set -e\nchmod 644 file\n{script}"));
        Self::of(yard, "repo")
    }

    /// Snapshots of a folder with one file and without git, after these commands.
    fn outside(script: &str) -> Self {
        let yard = Yard::new();
        yard.write("plain/file", "one\n");
        yard.sh("plain", &format!("set -e\nchmod 644 file\n{script}"));
        Self::of(yard, "plain")
    }

    fn of(yard: Yard, folder: &str) -> Self {
        let mut subject = a_loop();
        subject.place.checkout = yard.path(folder);
        let snapshots = Snapshots::of(&Home::at(&yard.path("home")), &subject);
        fill_git_dir(&snapshots, &subject).unwrap();
        Self { yard, subject, snapshots }
    }

    fn sh(&self, script: &str) {
        let folder = self.subject.place.checkout.file_name().unwrap().to_str().unwrap();
        self.yard.sh(folder, &format!("set -e\n{script}"));
    }

    fn commit(&self) -> String {
        self.snapshots.take().unwrap().commit
    }

    /// The changes made by a script, on one line.
    fn changed_by(&self, script: &str) -> String {
        let before = self.commit();
        self.sh(script);
        let after = self.snapshots.take().unwrap();
        let changes = self.snapshots.compare(&before, &after.commit).unwrap();
        let left = after.left_out.iter().map(|left| format!("left out {}", left.path.display()));
        summarize(&changes).into_iter().chain(left).collect::<Vec<_>>().join(", ")
    }
}

fn summarize(changes: &Changes) -> Vec<String> {
    let word = |kind: &ChangeKind| match kind {
        ChangeKind::Created => "A".to_owned(),
        ChangeKind::Modified => "M".to_owned(),
        ChangeKind::Deleted => "D".to_owned(),
        ChangeKind::Renamed { from } => format!("R {from} →"),
    };
    changes.files.iter().map(|file| format!("{} {}", word(&file.kind), file.path)).collect()
}

/// What git and other programs can see of a folder: every path with its kind, mode and content.
fn everything(folder: &Path) -> String {
    let list = "find . -path ./.git -prune -o -print0 | sort -z | xargs -0 stat -c '%n %F %a %N' --; \
                find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum --";
    start(folder, "sh", &["-c", list])
}
