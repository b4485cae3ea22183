//! The leftovers of a killed crew's step in a working tree: the step's mark lets crew undo them,
//! and an agent's leftovers without a mark stay.

use super::{Steps, Yard};
use crate::git::steps::{Underway, put_back};
use engine::git::GitStep;

/// A branch `work` with uncommitted changes in `loose`, and a conflict with `main` in `file`.
fn yard() -> Yard {
    let yard = Yard::new();
    yard.commit_file("repo", "loose", "one\n");
    yard.git("repo", &["switch", "-q", "-c", "work"]);
    yard.commit_file("repo", "file", "work\n");
    yard.git("repo", &["switch", "-q", "main"]);
    yard.commit_file("repo", "file", "main\n");
    yard.git("repo", &["switch", "-q", "work"]);
    yard.write("repo/loose", "two\n");
    yard
}

/// A working tree as a crew killed in that step left it: its mark, and the locks that git made
/// after it.
fn killed_in(yard: &Yard, step: &str, head: &str) {
    yard.write("repo/.git/crew-step", &format!("{step} {head}"));
    for lock in ["index.lock", "HEAD.lock", "refs/heads/work.lock"] {
        yard.write(&format!("repo/.git/{lock}"), "");
    }
}

#[track_caller]
fn is_put_back(yard: &Yard, head: &str) {
    put_back(&yard.checkout).unwrap();
    assert_eq!(yard.git("repo", &["rev-parse", "work"]).trim(), head);
    assert_eq!(yard.git("repo", &["status", "--porcelain", "--branch"]), "## work\n M loose\n");
    assert_eq!(
        (yard.read("repo/file"), yard.read("repo/loose")),
        ("work\n".into(), "two\n".into())
    );
    yard.git("repo", &["commit", "-qam", "without a lock"]);
    assert!(!yard.path("repo/.git/crew-step").exists());
}

#[test]
fn a_rebase_is_undone_only_if_the_mark_of_its_step_exists() {
    let yard = yard();
    let head = yard.git("repo", &["rev-parse", "HEAD"]).trim().to_owned();
    yard.sh("repo", "! git rebase -q --autostash main");
    yard.write("repo/.git/index.lock", "");
    put_back(&yard.checkout).unwrap();
    let stays =
        ["rebase-merge", "index.lock"].map(|name| yard.path("repo/.git").join(name).exists());
    assert_eq!(stays, [true, true]);
    killed_in(&yard, "rebase", &head);
    is_put_back(&yard, &head);
}

#[test]
fn a_rebase_that_had_only_stashed_uncommitted_changes_restores_them() {
    let yard = yard();
    let head = yard.git("repo", &["rev-parse", "HEAD"]).trim().to_owned();
    let stash = yard.git("repo", &["stash", "create"]);
    yard.git("repo", &["reset", "-q", "--hard"]);
    yard.write("repo/.git/rebase-merge/autostash", &stash);
    killed_in(&yard, "rebase", &head);
    is_put_back(&yard, &head);
}

#[test]
fn a_rebase_with_an_incomplete_state_folder_is_removed() {
    let states: [&[&str]; 4] = [&[], &["interactive"], &["head-name"], &["head-name", "onto"]];
    for state in states {
        let yard = yard();
        let head = yard.git("repo", &["rev-parse", "HEAD"]).trim().to_owned();
        std::fs::create_dir(yard.path("repo/.git/rebase-merge")).unwrap();
        for name in state {
            yard.write(&format!("repo/.git/rebase-merge/{name}"), "refs/heads/work\n");
        }
        killed_in(&yard, "rebase", &head);
        is_put_back(&yard, &head);
        assert!(!yard.path("repo/.git/rebase-merge").exists(), "{state:?}");
    }
}

#[test]
fn after_a_killed_commit_the_index_matches_the_branch() {
    let yard = yard();
    let before = yard.git("repo", &["rev-parse", "HEAD^"]).trim().to_owned();
    let head = yard.git("repo", &["rev-parse", "HEAD"]).trim().to_owned();
    yard.git("repo", &["reset", "-q", "HEAD^"]);
    yard.git("repo", &["update-ref", "HEAD", &head]);
    killed_in(&yard, "commit", &before);
    is_put_back(&yard, &head);

    let yard = self::yard();
    let head = yard.git("repo", &["rev-parse", "HEAD"]).trim().to_owned();
    killed_in(&yard, "commit", &head);
    is_put_back(&yard, &head);
}

#[test]
fn a_step_that_ends_leaves_no_mark() {
    let yard = yard();
    assert!(yard.rebase("main").is_err());
    assert!(yard.commit("loose").is_ok());
    assert!(!yard.path("repo/.git/crew-step").exists());
    yard.write("repo/.git/index.lock", "");
    yard.write("repo/loose", "three\n");
    assert!(yard.commit("the lock is somebody else's").is_err());
    assert!(yard.path("repo/.git/index.lock").exists());
}

#[test]
fn a_lock_from_before_the_step_stays() {
    let yard = yard();
    let head = yard.git("repo", &["rev-parse", "HEAD"]).trim().to_owned();
    killed_in(&yard, "push", &head);
    yard.sh("repo", "touch -t 202001010000 .git/HEAD.lock");
    put_back(&yard.checkout).unwrap();
    let stays = ["HEAD.lock", "index.lock", "refs/heads/work.lock", "crew-step"]
        .map(|name| yard.path("repo/.git").join(name).exists());
    assert_eq!(stays, [true, false, false, false]);
}

#[test]
fn without_a_mark_locks_that_are_newer_than_the_step_are_removed() {
    let yard = yard();
    yard.write("repo/.git/crew-step/in-the-way", "");
    yard.write("repo/.git/HEAD.lock", "");
    let (place, trusted) = (yard.place(), yard.trusted());
    let steps = Steps::new(&place, &trusted, &|| false);
    let underway = Underway::begin(&steps, GitStep::Push, "");
    yard.write("repo/.git/index.lock", "");
    drop(underway);
    let stays = ["HEAD.lock", "index.lock"].map(|name| yard.path("repo/.git").join(name).exists());
    assert_eq!(stays, [true, false]);
}
