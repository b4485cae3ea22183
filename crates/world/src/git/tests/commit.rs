//! What a commit includes, what it leaves out, and when none is made.

use std::path::PathBuf;

use insta::assert_snapshot;

use super::{Steps, Yard, place_of};
use crate::git::commit::{Drafts, commit_changes};
use crate::git::land::{LandTree, Squashed, merge_branch};
use engine::git::GitTrouble;

#[test]
fn a_commit_includes_every_change_and_returns_its_short_id() {
    let yard = Yard::new();
    yard.write("repo/file", "two\n");
    yard.write("repo/folder/new file", "new\n");
    yard.write("repo/staged", "staged\n");
    yard.git("repo", &["add", "staged"]);
    let id = yard.commit("crew: iteration 3 of loop haaaaaaa\n\nBuild it\n").unwrap().unwrap();
    assert_eq!(yard.git("repo", &["rev-parse", "--short", "HEAD"]).trim(), id);
    assert_eq!(yard.git("repo", &["status", "--porcelain"]), "");
    assert_snapshot!(yard.git("repo", &["show", "--stat", "--format=%an%n%B", "HEAD"]), @"
    Somebody
    crew: iteration 3 of loop haaaaaaa

    Build it


     file            | 2 +-
     folder/new file | 1 +
     staged          | 1 +
     3 files changed, 3 insertions(+), 1 deletion(-)
    ");
}

#[test]
fn nothing_to_commit_makes_no_commit() {
    let yard = Yard::new();
    let before = yard.shape();
    assert_eq!(yard.commit("message"), Ok(None));
    assert_eq!(yard.shape(), before);
}

#[test]
fn crews_own_files_are_never_committed_staged_or_not() {
    let yard = Yard::new();
    yard.write("repo/.claude/branches/main/state.json", "{}");
    assert_eq!(yard.commit("message"), Ok(None));
    yard.git("repo", &["add", "--all"]);
    assert_eq!(yard.commit("message"), Ok(None));
    yard.write("repo/.claude/settings.json", "{}");
    assert!(yard.commit("message").unwrap().is_some());
    let files = yard.git("repo", &["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, ".claude/settings.json\n");
}

#[test]
fn tracked_files_of_crew_stay_as_they_were_committed() {
    let yard = Yard::new();
    yard.commit_file("repo", ".claude/branches/main/state.json", "{}");
    yard.write("repo/.claude/branches/main/state.json", "{\"version\":1}");
    assert_eq!(yard.commit("message"), Ok(None));
}

#[test]
fn crews_ignored_files_do_no_harm() {
    let yard = Yard::new();
    yard.write("repo/.gitignore", ".claude/\nbuilt/\n");
    yard.write("repo/.claude/branches/main/state.json", "{}");
    yard.write("repo/built/it", "x");
    assert!(yard.commit("message").unwrap().is_some());
    assert_eq!(yard.git("repo", &["show", "--name-only", "--format=", "HEAD"]), ".gitignore\n");
}

#[test]
fn the_first_commit_of_a_repository_can_be_crews() {
    let yard = Yard::new();
    yard.sh("repo", "rm -rf .git && git init -q -b main");
    yard.identify("repo");
    assert!(yard.commit("message").unwrap().is_some());
    assert_eq!(yard.git("repo", &["rev-list", "--count", "HEAD"]), "1\n");
}

#[test]
fn nothing_is_committed_in_the_middle_of_a_merge_or_a_rebase() {
    for (verb, expected) in [
        ("merge other", "a merge is in progress"),
        ("rebase other", "a rebase is in progress"),
        ("cherry-pick other", "a cherry-pick is in progress"),
        ("stash pop", "file has an unresolved conflict"),
    ] {
        let yard = Yard::new();
        if verb == "stash pop" {
            yard.write("repo/file", "mine\n");
            yard.git("repo", &["stash", "-q"]);
            yard.commit_file("repo", "file", "theirs\n");
        } else {
            yard.git("repo", &["switch", "-qc", "other"]);
            yard.commit_file("repo", "file", "theirs\n");
            yard.git("repo", &["switch", "-q", "main"]);
            yard.commit_file("repo", "file", "mine\n");
        }
        yard.sh("repo", &format!("! git {verb}"));
        let before = yard.shape();
        let fault = yard.commit("message").unwrap_err();
        assert_eq!((fault.trouble, &*fault.cause), (GitTrouble::Unfinished, expected), "{verb}");
        assert_eq!(yard.shape(), before, "{verb}");
    }
}

#[test]
fn neither_hooks_nor_signing_keep_a_commit_from_being_made() {
    let yard = Yard::new();
    for hook in ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"] {
        yard.script(&format!("repo/.git/hooks/{hook}"), "#!/bin/sh\n: > \"$0.ran\"\nexit 1\n");
    }
    yard.git("repo", &["config", "commit.gpgSign", "true"]);
    yard.git("repo", &["config", "gpg.program", "false"]);
    yard.write("repo/file", "two\n");
    assert!(yard.commit("message").unwrap().is_some());
    assert_eq!(yard.sh("repo", "ls .git/hooks | grep ran || true"), "");
}

#[test]
fn an_unknown_author_is_reported_with_a_hint() {
    let yard = Yard::new();
    yard.git("repo", &["config", "user.name", ""]);
    yard.git("repo", &["config", "user.email", ""]);
    yard.write("repo/file", "two\n");
    assert_snapshot!(yard.commit("message").unwrap_err().to_failure().with_hint(), @"
    commit failed: git does not know who commits
    hint: git config user.name NAME and git config user.email ADDRESS
    ");
}

#[test]
fn the_users_own_filters_run_and_one_that_was_planted_does_not() {
    let yard = Yard::new();
    yard.write("repo/.gitattributes", "*.big filter=big\n");
    yard.git("repo", &["config", "filter.big.clean", "sed s/content/pointer/"]);
    let trusted = yard.trusted();
    yard.write("repo/a.big", "content\n");
    let place = yard.place();
    let commit = |message: &str| {
        commit_changes(&Steps::new(&place, &trusted, &|| false), message, &Drafts::default())
            .map(|kept| kept.commit)
    };
    assert!(commit("with the filter").unwrap().is_some());
    assert_eq!(yard.git("repo", &["show", "HEAD:a.big"]), "pointer\n");

    yard.git("repo", &["config", "filter.big.clean", "touch planted; cat"]);
    yard.write("repo/a.big", "content again\n");
    assert_snapshot!(commit("planted").unwrap_err().to_failure().with_hint(), @"
    commit failed: the setting filter.big.clean changed during this run
    hint: look at git config --list --show-origin; a new run accepts it
    ");
    assert!(!yard.path("repo/planted").exists());

    // Without the filter, a secret would be committed unfiltered.
    yard.git("repo", &["config", "--remove-section", "filter.big"]);
    let fault = commit("taken away").unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Changed);
    // Adding a remote does not add a program.
    yard.git("repo", &["config", "filter.big.clean", "sed s/content/pointer/"]);
    yard.git("repo", &["remote", "add", "origin", "file:///r.git"]);
    assert!(commit("with a remote").unwrap().is_some());
}

#[test]
fn a_lock_left_by_another_git_process_is_named() {
    let yard = Yard::new();
    yard.git("repo", &["worktree", "add", "-q", "../tree"]);
    for (tree, lock) in [("repo", "index.lock"), ("tree", "worktrees/tree/index.lock")] {
        yard.write(&format!("{tree}/file"), "two\n");
        yard.write(&format!("repo/.git/{lock}"), "");
        let place = place_of(&yard.path(tree));
        let kept = commit_changes(
            &Steps::new(&place, &yard.trusted(), &|| false),
            "message",
            &Drafts::default(),
        );
        let message = kept
            .unwrap_err()
            .to_failure()
            .with_hint()
            .replace(&yard.path("").display().to_string(), "");
        let expected = format!(
            "commit failed: another git process is running here, or one crashed\n\
             hint: let the other git finish; if there is none, remove repo/.git/{lock}"
        );
        assert_eq!(message, expected);
    }
}

#[test]
fn a_commit_that_git_refuses_leaves_branch_and_index_as_they_were() {
    for lock in ["refs/heads/main.lock", "index.lock"] {
        let yard = Yard::new();
        yard.write("repo/file", "two\n");
        yard.write("repo/new", "new\n");
        let before = yard.shape();
        yard.write(&format!("repo/.git/{lock}"), "");
        assert!(yard.commit("message").is_err(), "{lock}");
        yard.sh("repo", &format!("rm .git/{lock}"));
        assert_eq!(yard.shape(), before, "{lock}");
    }
}

#[test]
fn more_paths_than_crew_lists_are_reported_with_a_hint() {
    let yard = Yard::new();
    let name = "d".repeat(200);
    let deep = [&*name; 17].join("/");
    yard.sh("repo", &format!("mkdir -p {deep} && cd {deep} && seq 10500 | xargs touch"));
    assert_snapshot!(yard.commit("message").unwrap_err().to_failure().with_hint(), @"
    commit failed: more paths differ than crew lists
    hint: add generated files to .gitignore
    ");
}

#[test]
fn the_index_of_another_crew_process_is_left_alone_while_it_runs() {
    let yard = Yard::new();
    for name in ["crew.index.1", "crew.index.999999999", "crew.index.999999999.lock"] {
        yard.write(&format!("repo/.git/{name}"), "");
    }
    yard.write("repo/file", "two\n");
    assert!(yard.commit("message").unwrap().is_some());
    assert_eq!(yard.sh("repo", "ls .git | grep crew"), "crew.index.1\n");
}

#[test]
fn a_commit_in_a_linked_working_tree_leaves_the_other_trees_alone() {
    let yard = Yard::new();
    yard.git("repo", &["worktree", "add", "-q", "-b", "other", "../tree"]);
    yard.write("tree/file", "two\n");
    let tree = yard.path("tree");
    let trusted = super::read_trusted(&tree).unwrap();
    let place = place_of(&tree);
    assert!(
        commit_changes(&Steps::new(&place, &trusted, &|| false), "message", &Drafts::default())
            .unwrap()
            .commit
            .is_some()
    );
    assert_eq!(yard.git("repo", &["log", "--format=%s", "main..other"]), "message\n");
}

/// A clone without the contents of files that it does not show.
fn partial(yard: &Yard) -> Yard {
    let address = format!("file://{}", yard.path("repo").display());
    yard.git("repo", &["config", "uploadpack.allowFilter", "true"]);
    yard.git("repo", &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let part = Yard { root: testkit::folder(), checkout: PathBuf::new() };
    let part = Yard { checkout: part.path("repo"), ..part };
    part.git(".", &["clone", "-q", "--filter=blob:none", "--sparse", &address, "repo"]);
    part.identify("repo");
    part
}

#[test]
fn a_sparse_partial_clone_commits_without_what_it_lacks_and_merges_with_it() {
    let yard = Yard::new();
    yard.commit_file("repo", "deep/other", "one\n");
    let part = partial(&yard);
    part.write("repo/file", "two\n");
    assert!(part.commit("message").unwrap().is_some());
    yard.commit_file("repo", "more", "new\n");
    part.git("repo", &["fetch", "-q"]);
    let merged = merge_branch(&part.checkout, "origin/main");
    assert_eq!((merged, part.read("repo/more")), (Ok(Vec::new()), "new\n".to_owned()));
    let land = part.path("land");
    part.git("repo", &["worktree", "add", "-q", "--detach", "../land", "origin/main"]);
    let squashed = LandTree { folder: &land, stop: &|| false }.squash("main", "Do it");
    assert!(matches!(squashed, Ok(Squashed::Commit(_))), "{squashed:?}");
    assert_eq!(part.read("land/file"), "two\n");
}

#[test]
fn a_message_is_in_utf_8_whatever_the_settings_say() {
    let yard = Yard::new();
    yard.git("repo", &["config", "i18n.commitEncoding", "ISO-8859-1"]);
    yard.write("repo/file", "two\n");
    yard.commit("Prüfe €").unwrap();
    let read = ["-c", "i18n.logOutputEncoding=UTF-8", "log", "-1", "--format=%s"];
    assert_eq!(yard.git("repo", &read), "Prüfe €\n");
}
