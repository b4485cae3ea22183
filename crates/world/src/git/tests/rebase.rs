//! A rebase when the other branch moved, and how everything is restored when it fails.

use insta::assert_snapshot;

use super::Yard;
use crate::git::land::{commit_markers, merge_to_conflicts};
use crate::git::sync::rebase_branch;
use engine::git::{GitTrouble, Rebased};

/// `main` and `work` diverge after the first commit; `work` is checked out, and `main` changed
/// `file`.
fn parted(file: &str) -> Yard {
    let yard = Yard::new();
    yard.git("repo", &["branch", "work"]);
    yard.commit_file("repo", file, "main's\n");
    yard.git("repo", &["switch", "-q", "work"]);
    yard
}

#[test]
fn nothing_is_rebased_unless_the_other_branch_moved() {
    let yard = Yard::new();
    yard.git("repo", &["switch", "-qc", "work"]);
    yard.commit_file("repo", "file", "work's\n");
    let before = yard.shape();
    assert_eq!(yard.rebase("main"), Ok(Rebased::NothingNew));
    assert_eq!(yard.rebase("work"), Ok(Rebased::NothingNew));
    assert_eq!(yard.shape(), before);
}

#[test]
fn work_is_rebased_onto_a_branch_that_moved_whether_committed_or_not() {
    let yard = parted("other");
    yard.commit_file("repo", "file", "work's\n");
    yard.write("repo/file", "work's, and more\n");
    yard.write("repo/untracked", "x\n");
    assert_eq!(yard.rebase("main"), Ok(Rebased::Onto(1)));
    assert_eq!(yard.git("repo", &["log", "--format=%s"]), "change file\nchange other\nfirst\n");
    assert_eq!(yard.git("repo", &["status", "--porcelain"]), " M file\n?? untracked\n");
    assert_eq!(yard.git("repo", &["stash", "list"]), "");
    assert_eq!(yard.rebase("main"), Ok(Rebased::NothingNew));
}

#[test]
fn dropped_commits_are_left_out_only_of_a_branch_known_to_contain_them() {
    for is_known in [true, false] {
        let yard = Yard::new();
        yard.commit_file("repo", "secret", "key\n");
        let stood_on = yard.git("repo", &["rev-parse", "HEAD"]).trim_end().to_owned();
        yard.git("repo", &["switch", "-qc", "work"]);
        yard.commit_file("repo", "file", "work's\n");
        yard.git("repo", &["branch", "-qf", "main", "main~1"]);
        yard.git("repo", &["switch", "-q", "main"]);
        yard.commit_file("repo", "other", "main's\n");
        yard.git("repo", &["switch", "-q", "work"]);
        let place = yard.place();
        let trusted = yard.trusted();
        let steps = super::Steps::new(&place, &trusted, &|| false);
        let rebased = rebase_branch(&steps, Some("work"), "main", is_known.then_some(&*stood_on));
        assert_eq!(rebased, Ok(Rebased::Onto(1)));
        let log = yard.git("repo", &["log", "--format=%s"]);
        let own = if is_known { "" } else { "change secret\n" };
        assert_eq!(log, format!("change file\n{own}change other\nfirst\n"));
    }
}

#[test]
fn staged_changes_stay_staged_and_no_rebased_change_is_reverted() {
    for conflicts in [false, true] {
        let yard = parted(if conflicts { "file" } else { "other" });
        yard.commit_file("repo", "file", "work's\n");
        yard.sh(
            "repo",
            "for f in staged gone; do echo one > $f; done; git add .; git commit -qm More",
        );
        yard.sh(
            "repo",
            "echo two > staged; echo two > new; git add .; echo three > staged; echo three > new",
        );
        yard.sh("repo", "git rm -q gone");
        let staged = yard.git("repo", &["diff", "--cached", "--raw", "HEAD"]);
        assert_eq!(yard.rebase("main").is_err(), conflicts);
        assert_eq!(yard.git("repo", &["diff", "--cached", "--raw", "HEAD"]), staged);
        assert_eq!(yard.git("repo", &["status", "--porcelain"]), "D  gone\nAM new\nMM staged\n");
        assert_eq!(yard.read("repo/staged") + &yard.read("repo/new"), "three\nthree\n");
    }
    // The other branch changed the same file, so the staged version would revert that change.
    let yard = parted("file");
    yard.sh(
        "repo",
        "seq 9 > file; git add file; git commit -qm Lines; git branch -f main; git switch -q main",
    );
    yard.sh("repo", "sed -i 1s/1/theirs/ file; git commit -qam Theirs; git switch -q work");
    yard.sh("repo", "sed -i 9s/9/mine/ file; git add file");
    assert_eq!(yard.rebase("main"), Ok(Rebased::Onto(1)));
    assert_eq!(yard.git("repo", &["diff", "--cached", "--raw", "HEAD"]), "");
    assert_eq!(yard.git("repo", &["diff", "--numstat"]), "1\t1\tfile\n");
}

/// A repository with the submodule `lib` at the first of its commits; `work` is checked out.
fn with_a_submodule() -> (Yard, [String; 3]) {
    let yard = Yard::new();
    yard.sh(".", "git init -q lib");
    yard.identify("lib");
    let commits = ["1", "2", "3"].map(|text| {
        yard.commit_file("lib", "v", text);
        yard.git("lib", &["rev-parse", "HEAD"]).trim_end().to_owned()
    });
    yard.git("lib", &["reset", "-q", "--hard", &commits[0]]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "lib"];
    yard.git("repo", &add);
    yard.commit_file("repo", "more", "x\n");
    yard.git("lib", &["reset", "-q", "--hard", &commits[2]]);
    yard.git("repo/lib", &["-c", "protocol.file.allow=always", "fetch", "-q"]);
    yard.git("repo", &["switch", "-qc", "work"]);
    (yard, commits)
}

/// Makes `main` record another commit of the submodule.
fn bump(yard: &Yard, commit: &str) {
    let there = format!("160000,{commit},lib");
    yard.sh("repo", &format!(
        "git switch -q main; git update-index --cacheinfo {there}; git commit -qm Bump; git switch -q work"
    ));
}

#[test]
fn a_submodule_that_the_other_branch_moved_is_moved_back_only_on_purpose() {
    let (yard, [_, second, third]) = with_a_submodule();
    let recorded = || yard.git("repo", &["rev-parse", "HEAD:lib"]).trim_end().to_owned();
    for moved in [&second, &third] {
        bump(&yard, moved);
        yard.write("repo/file", moved);
        yard.commit("Before").unwrap().unwrap();
        assert_eq!(yard.rebase("main"), Ok(Rebased::Onto(1)));
        assert_eq!(yard.commit("None"), Ok(None), "it alone is not work");
        yard.write("repo/more", moved);
        yard.commit("Work").unwrap().unwrap();
        assert_eq!(&recorded(), moved);
    }
    yard.git("repo/lib", &["checkout", "-q", &second]);
    yard.commit("Moved").unwrap().unwrap();
    assert_eq!(recorded(), second);
}

#[test]
fn a_submodule_that_a_merge_moved_is_not_moved_back_even_after_a_conflict() {
    for text in ["work's\n", "one\n"] {
        let (yard, [_, second, _]) = with_a_submodule();
        yard.write("repo/file", text);
        yard.write("repo/own", "x\n");
        yard.commit("Work").unwrap().unwrap();
        bump(&yard, &second);
        yard.sh(
            "repo",
            "git switch -q main; echo main > file; git add file; git commit -qm M; git switch -q work",
        );
        let files = merge_to_conflicts(&yard.path("repo"), "main").unwrap();
        if !files.is_empty() {
            commit_markers(&yard.path("repo"), &files).unwrap();
        }
        yard.write("repo/own", "more\n");
        yard.commit("More").unwrap().unwrap();
        assert_eq!(yard.git("repo", &["rev-parse", "HEAD:lib"]).trim_end(), second);
    }
}

#[test]
fn a_conflict_leaves_everything_as_it_was_and_names_the_files() {
    let yard = parted("file");
    yard.commit_file("repo", "file", "work's\n");
    yard.commit_file("repo", "later", "x\n");
    yard.write("repo/later", "not committed\n");
    yard.write("repo/untracked", "x\n");
    let before = yard.shape();
    let fault = yard.rebase("main").unwrap_err();
    assert_eq!(fault.trouble, GitTrouble::Conflict);
    assert_snapshot!(fault.cause_and_hint(), @"rebase failed (conflict): this branch conflicts with main in file; run git rebase main yourself, resolve the conflict, then crew resume");
    assert_eq!(yard.shape(), before);
}

#[test]
fn uncommitted_changes_that_no_longer_fit_are_a_conflict_too_and_are_kept() {
    let yard = parted("file");
    yard.commit_file("repo", "later", "x\n");
    // An older stash is below and must stay.
    yard.write("repo/later", "for another day\n");
    yard.git("repo", &["stash", "-q"]);
    yard.write("repo/file", "not committed\n");
    yard.write("repo/added", "added\n");
    yard.git("repo", &["add", "added"]);
    let before = yard.shape();
    assert_snapshot!(yard.rebase("main").unwrap_err().to_failure().with_hint(), @"
    rebase failed: uncommitted changes in file conflict with main
    hint: commit it, then run git rebase main yourself, resolve the conflict, then crew resume
    ");
    assert_eq!(yard.shape(), before);
    assert_eq!(yard.read("repo/file"), "not committed\n");
}

#[test]
fn untracked_files_that_block_a_rebase_are_named_and_kept() {
    let yard = parted("new file");
    yard.write("repo/new file", "mine\n");
    yard.write("repo/file", "not committed\n");
    let before = yard.shape();
    assert_snapshot!(yard.rebase("main").unwrap_err().to_failure().with_hint(), @"
    rebase failed: main brings files that are untracked here: new file
    hint: move them away or commit them, then crew resume
    ");
    assert_eq!(yard.shape(), before);
    assert_eq!(yard.read("repo/new file"), "mine\n");
}

#[test]
fn a_missing_branch_and_a_repository_without_commits_are_reported() {
    let yard = Yard::new();
    assert_snapshot!(yard.rebase("trunk").unwrap_err().to_failure().with_hint(), @"
    rebase failed: there is no branch trunk
    hint: git branch --all lists them
    ");
    assert_snapshot!(yard.rebase("--exec=touch planted").unwrap_err().to_failure().with_hint(), @"
    rebase failed: there is no branch --exec=touch planted
    hint: git branch --all lists them
    ");
    yard.git("repo", &["switch", "-q", "--orphan", "empty"]);
    assert_snapshot!(yard.rebase("main").unwrap_err().to_failure().with_hint(), @"
    rebase failed: there is no commit here yet
    hint: make a first commit
    ");
}

#[test]
fn no_rebase_begins_in_the_middle_of_another() {
    let yard = parted("file");
    yard.commit_file("repo", "file", "work's\n");
    yard.sh("repo", "! git rebase main");
    let before = yard.sh("repo", "git status --porcelain; git rev-parse HEAD");
    assert_snapshot!(yard.rebase("main").unwrap_err().to_failure().with_hint(), @"
    rebase failed: a rebase is in progress
    hint: finish it, or git rebase --abort
    ");
    assert_eq!(yard.sh("repo", "git status --porcelain; git rev-parse HEAD"), before);
}

#[test]
fn a_rebase_runs_neither_hooks_nor_editors() {
    let yard = parted("other");
    yard.commit_file("repo", "file", "work's\n");
    for hook in ["pre-rebase", "post-checkout", "post-rewrite", "post-commit"] {
        yard.script(&format!("repo/.git/hooks/{hook}"), "#!/bin/sh\n: > \"$0.ran\"\nexit 1\n");
    }
    yard.git("repo", &["config", "rebase.autoSquash", "true"]);
    yard.git("repo", &["config", "core.editor", "false"]);
    assert_eq!(yard.rebase("main"), Ok(Rebased::Onto(1)));
    assert_eq!(yard.sh("repo", "ls .git/hooks | grep ran || true"), "");
}

#[test]
fn no_rebase_begins_where_a_lock_keeps_git_from_undoing_it() {
    for lock in ["index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/work.lock"] {
        let yard = parted("file");
        yard.commit_file("repo", "file", "work's\n");
        yard.write(&format!("repo/.git/{lock}"), "");
        let before = yard.shape();
        let fault = yard.rebase("main").unwrap_err();
        assert_eq!(fault.trouble, GitTrouble::Unfinished, "{lock}");
        assert!(fault.hint.contains(lock), "{}", fault.hint);
        assert_eq!(yard.shape(), before, "{lock}");
    }
}

#[test]
fn a_lock_that_appears_during_a_rebase_leaves_no_trace_of_a_cherry_pick() {
    let yard = parted("file");
    yard.commit_file("repo", "file", "work's\n");
    yard.write("repo/.git/info/attributes", "file filter=locks\n");
    yard.git("repo", &["config", "filter.locks.smudge", ": > .git/packed-refs.lock; cat"]);
    let before = yard.shape();
    assert_eq!(yard.rebase("main").unwrap_err().trouble, GitTrouble::Conflict);
    assert_eq!(yard.shape(), before);
    assert!(!yard.path("repo/.git/CHERRY_PICK_HEAD").exists());
    assert!(yard.commit("The next step begins").is_ok());
}

#[test]
fn a_rebase_is_undone_even_if_the_git_that_undoes_it_is_killed_too() {
    let yard = parted("file");
    yard.write("repo/.git/info/attributes", "file filter=killing\n");
    yard.commit_file("repo", "file", "work's\n");
    let smudge = "cat; echo >> .git/runs; test $(wc -l < .git/runs) -gt 2 || kill -9 $PPID";
    yard.git("repo", &["config", "filter.killing.smudge", smudge]);
    yard.write("repo/later", "not committed\n");
    let before = yard.shape();
    assert_eq!(yard.rebase("main").unwrap_err().trouble, GitTrouble::Other);
    assert_eq!(yard.read("repo/.git/runs").lines().count(), 3);
    assert_eq!(yard.shape(), before);
    assert!(!yard.path("repo/.git/crew-step").exists());
    assert!(yard.commit("The next step begins").is_ok());
}

#[test]
fn a_rebase_that_is_ended_early_is_undone() {
    let yard = parted("file");
    yard.write("repo/.git/info/attributes", "file filter=slow\n");
    yard.commit_file("repo", "later", "x\n");
    yard.commit_file("repo", "file", "work's\n");
    // It is slow only once, because it runs again when the rebase is undone.
    let smudge = "if [ -e .git/begun ]; then cat; else : > .git/begun; exec sleep 600; fi";
    yard.git("repo", &["config", "filter.slow.smudge", smudge]);
    yard.write("repo/later", "not committed\n");
    let before = yard.shape();
    let (trusted, begun) = (yard.trusted(), yard.path("repo/.git/begun"));
    let stop = || begun.exists();
    let place = yard.place();
    let steps = super::Steps::new(&place, &trusted, &stop);
    assert_snapshot!(rebase_branch(&steps, Some("work"), "main", None).unwrap_err().to_failure().with_hint(), @"
    rebase failed: git was ended before it finished
    hint: run the same git command by hand to see all of its output
    ");
    assert_eq!(yard.shape(), before);
}

#[test]
fn a_name_means_the_branch_even_if_a_tag_has_the_same_name() {
    let yard = Yard::new();
    yard.git("repo", &["switch", "-qc", "feature"]);
    yard.git("repo", &["tag", "main"]);
    yard.git("repo", &["switch", "-q", "main"]);
    yard.commit_file("repo", "other", "theirs\n");
    yard.git("repo", &["switch", "-q", "feature"]);
    assert_eq!(yard.rebase("main"), Ok(Rebased::Onto(1)));
}
