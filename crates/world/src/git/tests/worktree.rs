//! Working trees beside the repository: created, found again, and refused with a reason.

use insta::assert_snapshot;

use super::Yard;
use crate::git::worktree::open_worktree;
use engine::git::Worktree;

/// The error text, without the path of this test's folder.
fn refused(yard: &Yard, name: &str) -> String {
    let fault =
        open_worktree(&yard.path("repo"), name, "HEAD").unwrap_err().to_failure().with_hint();
    fault.replace(&yard.path("").display().to_string(), "…/")
}

#[test]
fn a_working_tree_is_made_on_a_branch_of_its_name_and_found_again() {
    let yard = Yard::new();
    let path = yard.path("repo.worktrees/feat/auth");
    let made = open_worktree(&yard.path("repo"), "feat/auth", "HEAD");
    assert_eq!(made, Ok(Worktree { path: path.clone(), is_new: true }));
    assert_eq!(yard.git("repo.worktrees/feat/auth", &["branch", "--show-current"]), "feat/auth\n");
    yard.write("repo.worktrees/feat/auth/file", "work\n");
    let found = Ok(Worktree { path: path.clone(), is_new: false });
    assert_eq!(open_worktree(&yard.path("repo"), "feat/auth", "HEAD"), found);
    // Also from inside it: the path is beside the repository, not beside another working tree.
    assert_eq!(open_worktree(&path, "feat/auth", "HEAD"), found);
    assert_eq!(yard.read("repo.worktrees/feat/auth/file"), "work\n");
    let beside = open_worktree(&path, "other", "HEAD").unwrap().path;
    assert_eq!(beside, yard.path("repo.worktrees/other"));
}

#[test]
fn an_existing_branch_is_used_again_and_a_missing_folder_is_made_again() {
    let yard = Yard::new();
    yard.git("repo", &["switch", "-qc", "fix"]);
    yard.commit_file("repo", "file", "fixed\n");
    yard.git("repo", &["switch", "-q", "main"]);
    assert!(open_worktree(&yard.path("repo"), "fix", "HEAD").unwrap().is_new);
    assert_eq!(yard.read("repo.worktrees/fix/file"), "fixed\n");
    yard.sh(".", "rm -r repo.worktrees");
    assert!(open_worktree(&yard.path("repo"), "fix", "HEAD").unwrap().is_new);
    assert_eq!(yard.read("repo.worktrees/fix/file"), "fixed\n");
}

#[test]
fn an_invalid_branch_name_is_refused() {
    let yard = Yard::new();
    for name in ["", "..", "a..b", "../x", "/x", "-f", "@{-1}", ".git", "a b", "x.lock", "HEAD"] {
        let message = refused(&yard, name);
        assert!(message.contains("is not a valid branch name"), "{name:?}: {message}");
    }
    assert!(!yard.path("repo.worktrees").exists());
    assert_snapshot!(refused(&yard, "../x"), @r#"
    worktree failed: "../x" is not a valid branch name
    hint: use letters, digits, -, _ and /: --worktree feat/auth
    "#);
}

#[test]
fn an_error_names_a_branch_or_folder_that_is_in_use() {
    let yard = Yard::new();
    assert_snapshot!(refused(&yard, "main"), @"
    worktree failed: the branch main is checked out in …/repo
    hint: run crew there, or use another name
    ");
    open_worktree(&yard.path("repo"), "fix", "HEAD").unwrap();
    yard.git("repo.worktrees/fix", &["switch", "-qc", "else"]);
    assert_snapshot!(refused(&yard, "fix"), @"
    worktree failed: …/repo.worktrees/fix is on the branch else, not fix
    hint: git -C …/repo.worktrees/fix switch fix, or use another name
    ");
    yard.write("repo.worktrees/full/file", "x");
    assert_snapshot!(refused(&yard, "full"), @"
    worktree failed: …/repo.worktrees/full exists, and is not a working tree of this repository
    hint: move it away, or use another name
    ");
}

#[test]
fn no_working_tree_is_made_in_a_repository_without_commits() {
    let yard = Yard::new();
    yard.git("repo", &["switch", "-q", "--orphan", "empty"]);
    assert_snapshot!(refused(&yard, "fix"), @"
    worktree failed: there is no commit here yet
    hint: make a first commit
    ");
}
