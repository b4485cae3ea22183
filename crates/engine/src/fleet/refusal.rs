//! Why the branch of a completed task may not land, what its loop learns of that, and what no task
//! may change.

use minijinja::context;
use serde::{Deserialize, Serialize};

use crate::record::{Check, Role};
use crate::templates::render_template;
use crate::text::join_first_names;

/// The most files that a sentence names.
const NAMED_MAX: usize = 5;
/// Names the ignored files that new working trees get: a landing may not change it.
pub const INCLUDE: &str = ".worktreeinclude";

/// Why a branch may not land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refusal {
    /// These files changed on the main branch too.
    Conflict(Vec<String>),
    /// A check fails on the main branch as it would be. Where `run` is empty no command did, and
    /// `output` is a sentence.
    Red { run: String, output: String },
    /// It changes this path, which only a person may.
    Folder(String),
    /// The main branch moved again and again, or lost commits that this branch still holds.
    Moved(String),
    /// What it refers to, a commit of a submodule or a file of git LFS, is not on its remote.
    Incomplete(String),
    /// The host of the remote does not open a pull request.
    Request(String),
}

impl Refusal {
    /// Whether the task's own loop may settle it.
    pub fn can_be_settled(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Red { .. })
    }

    /// The reason in one line, which begins with its kind.
    pub fn full_reason(&self) -> String {
        let kind = match self {
            Self::Conflict(_) => "conflict",
            Self::Red { .. } => "red",
            Self::Folder(_) => "tasks folder",
            Self::Moved(_) => "moved",
            Self::Incomplete(_) => "incomplete",
            Self::Request(_) => "pull request",
        };
        format!("{kind}: {}", self.reason_text())
    }

    /// The same without its kind.
    pub fn reason_text(&self) -> String {
        match self {
            Self::Conflict(files) => {
                format!("{} changed on main too", join_first_names(files, NAMED_MAX))
            }
            Self::Red { run, output } if run.is_empty() => output.clone(),
            Self::Red { run, .. } => format!("`{run}` fails on main with this work"),
            Self::Folder(path) => format!("it changes {path}, which only a person may land"),
            Self::Moved(why) | Self::Incomplete(why) | Self::Request(why) => why.clone(),
        }
    }

    /// The same without what a command printed, which its sentence does not have.
    pub fn without_output(&self) -> Self {
        match self {
            Self::Red { run, .. } if !run.is_empty() => {
                Self::Red { run: run.clone(), output: String::new() }
            }
            refusal => refusal.clone(),
        }
    }
}

/// The first path that belongs to the fleet itself or to crew: the folder of tasks and what is
/// above it, the list of files for new working trees, and the folder where crew keeps its own.
/// Letters that differ only in case are the same, as on the disks of many people.
pub fn touches_the_fleet<'a>([folder, own]: [&str; 2], changed: &'a [String]) -> Option<&'a str> {
    let folder = folder.to_lowercase();
    let first = changed.iter().find(|path| {
        let path = path.to_lowercase();
        let is_on = [&*folder, own].iter().any(|top| is_below(&path, top) || is_below(top, &path));
        is_on || path == INCLUDE
    });
    first.map(String::as_str)
}

fn is_below(path: &str, top: &str) -> bool {
    let rest = path.strip_prefix(top);
    !top.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The message to the loop about a landing that was refused, once the main branch is merged into
/// its own, with these files in conflict.
pub fn refusal_evidence(refusal: &Refusal, conflicts: &[String]) -> String {
    render_template("sent_back.j2", &context! { refusal, conflicts })
}

/// The check that the loop of a conflict gets: none of these files may keep a marker.
pub fn without_markers(files: &[String]) -> Option<Check> {
    if files.is_empty() {
        return None;
    }
    let files: Vec<String> =
        files.iter().map(|file| format!("'{}'", file.replace('\'', r"'\''"))).collect();
    let run = format!("! grep -nEs '^(<{{7,}}|>{{7,}}) ' -- {}", files.join(" "));
    Some(Check::new(run, Role::Verify))
}

#[cfg(test)]
mod landing_tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_fleet_itself_is_its_folder_and_the_list_of_files() {
        let changed = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let table: [(&str, &[&str], Option<&str>); 12] = [
            ("tasks", &["src/a.rs", "tasks/b.md"], Some("tasks/b.md")),
            ("tasks", &["tasks/deep/b.md"], Some("tasks/deep/b.md")),
            ("tasks", &["tasks"], Some("tasks")),
            ("tasks", &["tasks2/b.md", "src/tasks/b.md"], None),
            ("plans/tasks", &["plans/b.md"], None),
            ("tasks", &[".worktreeinclude"], Some(".worktreeinclude")),
            ("", &["a.md"], None),
            ("tasks", &["TASKS/a.md"], Some("TASKS/a.md")),
            ("plans/Tasks", &["plans/tasks/b.md"], Some("plans/tasks/b.md")),
            ("plans/tasks", &["plans"], Some("plans")),
            ("tasks", &[".WorktreeInclude"], Some(".WorktreeInclude")),
            ("tasks", &["own/settings.json", "own/branches"], Some("own/branches")),
        ];
        for (folder, paths, expected) in table {
            let paths: Vec<String> = changed(paths);
            assert_eq!(
                touches_the_fleet([folder, "own/branches"], &paths),
                expected,
                "{folder} {paths:?}"
            );
        }
    }

    #[test]
    fn the_loop_of_a_conflict_is_told_its_files_and_gets_a_check_for_their_markers() {
        let files = vec!["it's.rs".to_owned(), "b.rs".to_owned()];
        let check = without_markers(&files).unwrap();
        assert_eq!(check.run, r"! grep -nEs '^(<{7,}|>{7,}) ' -- 'it'\''s.rs' 'b.rs'");
        insta::assert_snapshot!(refusal_evidence(&Refusal::Conflict(files.clone()), &files), @"
        Your work was complete on its own branch. The main branch has moved since, and is now merged into this branch.

        These files have conflicts: it's.rs, b.rs. The merge is committed with their markers (<<<<<<<, =======, >>>>>>>). A binary file, a link, or a file that one side deleted has no markers: your version of it is in the tree, and git show HEAD^2:FILE shows the other. Resolve each file so that both changes hold, remove every marker, and commit the change on top of the merge. A file that no later commit changes counts as not resolved.

        Fix what no longer holds, and change nothing else.
        ");
    }

    #[test]
    fn a_refusal_says_its_kind_first_and_only_a_conflict_and_a_red_go_back() {
        let red = Refusal::Red { run: "cargo test".to_owned(), output: "1 failed".to_owned() };
        let files = ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
        let refusals = [
            Refusal::Conflict(files),
            red,
            Refusal::Folder("tasks/a.md".to_owned()),
            Refusal::Moved("main moved 8 times".to_owned()),
            Refusal::Incomplete("a commit of lib is on no remote".to_owned()),
            Refusal::Request("gh pr create fails".to_owned()),
        ];
        let without_a_command =
            Refusal::Red { run: String::new(), output: "f is another".to_owned() };
        assert_eq!(without_a_command.full_reason(), "red: f is another");
        let told_its_loop = "\n\nWith both, it is not accepted: f is another.\n\n";
        assert!(refusal_evidence(&without_a_command, &[]).contains(told_its_loop));
        let told = refusals.map(|it| format!("{} {}", it.can_be_settled(), it.full_reason()));
        insta::assert_snapshot!(told.join("\n"), @"
        true conflict: a, b, c, d, e and 1 more changed on main too
        true red: `cargo test` fails on main with this work
        false tasks folder: it changes tasks/a.md, which only a person may land
        false moved: main moved 8 times
        false incomplete: a commit of lib is on no remote
        false pull request: gh pr create fails
        ");
    }
}
