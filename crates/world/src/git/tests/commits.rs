//! What happened to a loop's commits, and to those it found.

use super::Yard;
use crate::env;
use crate::git::{Git, commits_since, count_uncommitted};
use engine::evidence::changes::Commits;
use engine::evidence::changes::{ChangeKind, ChangedFile, Changes};
use engine::fixture::a_loop;
use engine::record::Loop;

/// The subjects of the commits made and lost by a script in `repo`, and what it checked out.
fn after(script: &str) -> (Vec<String>, Option<String>, Vec<String>) {
    let yard = Yard::new();
    yard.commit_file("repo", "mine", "before the loop\n");
    let record = Loop { place: yard.place(), ..a_loop() };
    yard.sh("repo", script);
    let Commits { made, switched_to, lost, .. } = commits_since(&record, &[]).unwrap();
    (subjects(&made.unwrap()), switched_to, subjects(&lost))
}

fn subjects(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn one_git_process_reads_what_is_checked_out_except_in_rare_cases() {
    let yard = Yard::new();
    yard.script(
        "bin/git",
        "#!/bin/sh\necho start >> \"$0.log\"\nPATH=${PATH#*:} exec git \"$@\"\n",
    );
    let path = format!("{}:{}", yard.path("bin").display(), env::text("PATH").unwrap());
    let (variables, repository) = ([("PATH", path)], yard.path("repo"));
    let commit = yard.git("repo", &["rev-parse", "HEAD"]).trim().to_owned();
    let table = [
        ("true", Some("main"), true, 1),
        ("git tag HEAD", Some("main"), true, 3),
        ("git tag -d HEAD; git checkout -q --detach", None, true, 1),
        ("git checkout -q --orphan new", Some("new"), false, 3),
    ];
    for (script, branch, has_commit, starts) in table {
        yard.sh("repo", script);
        yard.write("bin/git.log", "");
        let head = Git { variables: &variables, ..Git::here(&repository) }.head();
        let expected =
            (branch.map(str::to_owned), if has_commit { Some(commit.clone()) } else { None });
        assert_eq!(head, expected, "{script}");
        assert_eq!(yard.read("bin/git.log").lines().count(), starts, "{script}");
    }
}

/// A script, and the commits made, checked out instead and lost by it.
type Case = (&'static str, &'static [&'static str], Option<&'static str>, &'static [&'static str]);

#[test]
fn commits_are_reported_with_their_branch_and_so_are_lost_ones() {
    let table: [Case; 8] = [
        ("true", &[], None, &[]),
        ("git commit -qm more --allow-empty", &["more"], None, &[]),
        (
            "git switch -qc feature; git commit -qm more --allow-empty",
            &["more"],
            Some("feature"),
            &[],
        ),
        ("git reset -q --hard HEAD~1", &[], None, &["change mine"]),
        (
            "echo more >> mine; git commit -qa --amend -m amended",
            &["amended"],
            None,
            &["change mine"],
        ),
        (
            "git switch -q --detach HEAD~1; echo x > other; git add other; git commit -qm below; \
             git switch -q main; git rebase -q HEAD@{1}",
            &["change mine", "below"],
            None,
            &[],
        ),
        ("git branch -m renamed", &[], Some("renamed"), &[]),
        ("git refs migrate --ref-format=reftable 2>/dev/null || true", &[], None, &[]),
    ];
    for (script, made, switched_to, lost) in table {
        let (is_made, is_on, is_lost) = after(script);
        assert_eq!(is_made, made, "{script}");
        assert_eq!(is_on.as_deref(), switched_to, "{script}");
        assert_eq!(is_lost, lost, "{script}");
    }
}

#[test]
fn a_merge_that_a_rebase_left_out_is_not_lost() {
    let yard = Yard::new();
    yard.sh(
        "repo",
        "git switch -qc side; echo s > side; git add side; git commit -qm side; git switch -q main
         git commit -qm main --allow-empty; git merge -q --no-edit side",
    );
    let record = Loop { place: yard.place(), ..a_loop() };
    yard.sh(
        "repo",
        "git switch -q --detach HEAD~2; echo b > base; git add base; git commit -qm base
         git switch -q main; git rebase -q HEAD@{1}",
    );
    let commits = commits_since(&record, &[]).unwrap();
    assert!(!subjects(commits.known_commits()).is_empty());
    assert_eq!(subjects(&commits.lost), Vec::<String>::new());
}

#[test]
fn of_many_files_crew_reports_only_whether_all_are_uncommitted() {
    let yard = Yard::new();
    let record = Loop { place: yard.place(), ..a_loop() };
    let names: Vec<String> = (0..130).map(|number| format!("file{number:03}")).collect();
    for name in &names {
        yard.write(&format!("repo/{name}"), "x\n");
    }
    let file = |path: &String| ChangedFile {
        path: path.to_owned(),
        kind: ChangeKind::Created,
        lines: None,
        yours: false,
    };
    let changes = Changes::from_files(names.iter().map(file));
    assert_eq!(count_uncommitted(&record, &changes), Some(130));
    yard.sh("repo", "git add .; git commit -qm all; echo y > mine; echo y > yours; echo y > other");
    assert_eq!(count_uncommitted(&record, &changes), None);
}

#[test]
fn a_subject_of_any_length_is_truncated() {
    let yard = Yard::new();
    let record = Loop { place: yard.place(), ..a_loop() };
    yard.sh("repo", "yes word | head -c 2000000 | git commit -q --allow-empty -F -");
    assert!(commits_since(&record, &[]).unwrap().known_commits()[0].chars().count() <= 200);
}

#[test]
fn only_the_loops_own_files_are_counted_as_uncommitted() {
    let yard = Yard::new();
    let record = Loop { place: yard.place(), ..a_loop() };
    for name in ["kept", "loose", "yours"] {
        yard.write(&format!("repo/{name}"), "x\n");
    }
    yard.sh("repo", "git add kept; git commit -qm Kept");
    let file = |path: &str| ChangedFile {
        path: path.to_owned(),
        kind: ChangeKind::Created,
        lines: None,
        yours: false,
    };
    assert_eq!(
        count_uncommitted(&record, &Changes::from_files(["kept", "loose"].map(file))),
        Some(1)
    );
}
