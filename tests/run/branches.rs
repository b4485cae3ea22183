//! The branch that a run commits to and pushes: the one it began on, unless the user decides
//! otherwise.

use insta::assert_snapshot;
use rustix::process::Signal;

use super::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, poll_until, write_executable};

impl World {
    fn rebasing(steps: &[&str]) -> Self {
        let world = Self::new(steps).with_origin();
        world.sandbox.git(&["switch", "--quiet", "--create", "feat"]);
        world
    }
}

/// Makes a commit on `main` with one more file, without leaving the branch.
const MAIN_MOVES: &str = "blob=$(echo moved | git hash-object -w --stdin); \
    tree=$( (git ls-tree main; printf '100644 blob %s\tmoved-%s\n' $blob $call) | git mktree); \
    git update-ref refs/heads/main $(git commit-tree $tree -p main -m Moved); echo \"call $call\" >> work.txt";

#[test]
fn a_run_without_git_steps_is_resumed_without_a_mention_of_branches() {
    let world = World::rebasing(&["git switch -q main", "true"]);
    assert_eq!(world.crew(&["run", "write lines", "-n", "1"]).code(), 10);
    let ran = world.crew(&["resume", "-n", "+1"]);
    assert_eq!(
        (ran.code(), world.complaints(&ran).contains("is checked out")),
        (10, false),
        "{ran:#?}"
    );
}

#[test]
fn commits_on_another_branch_are_reported_and_not_pushed_until_a_person_agrees() {
    let world = World::rebasing(&[WORK, "git switch -q main; echo x >> other.txt"]);
    let ran = world.crew(&["run", "write lines", "-n", "3", "--commit", "--push"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stdout.contains(" on feat: crew: iteration 1"), "{ran:#?}");
    assert!(ran.stdout.contains(" on main: crew: iteration 2"), "{ran:#?}");
    assert_snapshot!(world.complaints(&ran), @"crew: main is checked out, and the loop's branch is feat: commits go to main, and nothing is pushed from it (git switch feat, or crew resume --push continues on main)");
    assert_eq!(world.there("main"), "Begin");
    let pushes = "Push failed (branch): main is checked out, and the loop's is feat; git switch feat, or crew resume \
                  --push continues on main";
    assert_eq!(ran.stdout.matches(pushes).count(), 2, "{ran:#?}");
    let ran = world.crew(&["resume", "-n", "+1"]);
    assert!(
        world.complaints(&ran).contains("main is checked out, and the loop's branch is feat"),
        "{ran:#?}"
    );
    assert_eq!(world.there("main"), "Begin");
    let ran = world.crew(&["resume", "-n", "+1", "--push"]);
    assert!(ran.stdout.contains("Pushed main to origin"), "{ran:#?}");
    assert!(!world.complaints(&ran).contains("loop's branch"), "{ran:#?}");
    assert!(!ran.stdout.contains("not pushed"), "{ran:#?}");
    assert!(world.prompt(1).contains("Stay on the branch `feat`."), "{}", world.prompt(1));
}

#[test]
fn a_commit_on_another_branch_is_reported_even_after_a_rebase() {
    let world = World::rebasing(&[
        &format!("git switch -qc side; {WORK}"),
        &format!("git switch -q feat; {MAIN_MOVES}"),
        WORK,
    ]);
    let ran = world.crew(&["run", "write lines", "-n", "3", "--commit", "--rebase", "main"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stdout.contains("] Rebased onto main"), "{ran:#?}");
    assert!(ran.stdout.contains(" (on side)\n"), "{ran:#?}");
    assert!(!ran.stdout.contains("(on no branch)"), "{ran:#?}");
}

#[test]
fn a_rebase_does_not_make_changes_of_an_uncounted_attempt_part_of_the_baseline() {
    let half = format!("echo true > check.sh; {MAIN_MOVES}; {HANG}");
    let world = World::rebasing(&[&half, CLAIM, CLAIM]);
    world.sandbox.write("check.sh", "test -e done\n");
    let run = ["run", "Build it", "-n", "4", "--rebase", "main", "--verify", "sh check.sh"];
    let running = world.hanging(&run);
    running.signal(Signal::KILL);
    running.wait(DEADLINE);
    let ran = world.crew(&["resume"]);
    assert!(ran.stdout.contains("] Rebased onto main"), "{ran:#?}");
    assert_eq!(ran.code(), 13, "{ran:#?}");
    let changed =
        "check.sh changed since the loop began, when the check failed, and as it was then";
    assert!(ran.stdout.contains(changed), "{ran:#?}");
    let diff = world.crew(&["diff", "1"]).success();
    assert!(diff.contains("+true") && diff.contains("+call 1"), "{diff}");
    assert!(!diff.contains("moved"), "{diff}");
}

#[test]
fn another_branch_is_not_rebased() {
    let world = World::rebasing(&[&format!("git switch -qc release; {MAIN_MOVES}"), WORK]);
    let ran = world.crew(&["run", "write lines", "-n", "2", "--rebase", "main"]);
    assert_eq!((ran.code(), world.calls()), (10, 2), "{ran:#?}");
    assert_eq!(world.sandbox.git(&["log", "--format=%s", "release"]), "Begin");
    let shown =
        "rebase failed (branch): release is checked out, and the loop's is feat; git switch feat";
    assert!(world.complaints(&ran).contains(shown), "{ran:#?}");
}

#[test]
fn commits_on_no_branch_are_reported() {
    let world = World::new(&[WORK]);
    world.sandbox.git(&["switch", "--quiet", "--detach"]);
    let ran = world.crew(&["run", "write lines", "-n", "1", "--commit"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(world.complaints(&ran).contains("no branch holds the commits"), "{ran:#?}");
    assert!(ran.stdout.contains(" on no branch: crew: iteration 1"), "{ran:#?}");
}

#[test]
fn a_push_replaces_what_crew_pushed_earlier_and_not_what_others_pushed() {
    let world = World::rebasing(&[WORK, MAIN_MOVES, WORK]);
    let options = ["run", "write lines", "-n", "4", "--commit", "--push", "--rebase", "main"];
    let ran = world.crew(&options);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_eq!(ran.stdout.matches("] Pushed feat to origin").count(), 4, "{ran:#?}");
    assert_eq!(world.there("feat"), world.sandbox.git(&["log", "--format=%s", "feat"]));

    let world = World::rebasing(&[WORK, MAIN_MOVES, WORK]);
    let others = "o=\"$notes/../origin.git\"; git --git-dir \"$o\" update-ref refs/heads/feat \
                  $(git --git-dir \"$o\" commit-tree main^{tree} -p feat -m Theirs); ";
    world.steps(&[WORK, &format!("{others}{MAIN_MOVES}"), WORK]);
    let ran = world.crew(&options);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(world.there("feat").starts_with("Theirs\ncrew: iteration 1"), "{ran:#?}");
    assert!(ran.stdout.contains("someone else pushed to feat: git fetch origin"), "{ran:#?}");
    assert!(ran.stdout.contains("\n  git     not pushed, "), "{ran:#?}");
}

#[test]
fn a_branch_that_was_pushed_before_the_loop_is_replaced_too() {
    let world = World::rebasing(&[WORK]);
    let git = |words: &[&str]| world.sandbox.git(words);
    git(&["commit", "--quiet", "--allow-empty", "--message", "Ours"]);
    git(&["push", "--quiet", "--set-upstream", "origin", "feat"]);
    git(&["switch", "--quiet", "main"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "Moved"]);
    git(&["switch", "--quiet", "feat"]);
    let ran =
        world.crew(&["run", "write lines", "-n", "1", "--commit", "--push", "--rebase", "main"]);
    assert!(ran.stdout.contains("] Pushed feat to origin"), "{ran:#?}");
    assert!(world.there("feat").ends_with("Ours\nMoved\nBegin"), "{}", world.there("feat"));
}

#[test]
fn commits_that_rewrite_pushed_ones_are_not_pushed() {
    let world = World::rebasing(&[WORK, "git reset -q --hard main; echo x > other.txt"]);
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit", "--push"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stdout.contains("Push failed (non-fast-forward)"), "{ran:#?}");
    assert!(world.there("feat").contains("iteration 1"), "{ran:#?}");
}

#[test]
fn a_missing_branch_to_rebase_onto_refuses_the_start() {
    let world = World::new(&[WORK]);
    for words in
        [&["run", "write lines", "--rebase", "nosuch"][..], &["run", "write lines", "--rebase=-x"]]
    {
        let ran = world.crew(words);
        assert_eq!((ran.code(), world.calls()), (1, 0), "{ran:#?}");
        assert!(ran.stderr.contains("there is no branch"), "{ran:#?}");
    }
    assert_eq!(world.loops().len(), 0);
}

#[test]
fn the_first_ctrl_c_lets_a_push_finish_and_a_cancel_ends_it() {
    for is_cancelled in [false, true] {
        let world = World::new(&[WORK, HANG]).with_origin();
        let hook = world.sandbox.root().join("origin.git/hooks/pre-receive");
        let arrived = world.note("arrived");
        let go = world.note("go");
        let wait = format!(
            "#!/bin/sh\n: > '{}'\nwhile ! test -e '{}'; do sleep 0.05; done\n",
            arrived.display(),
            go.display()
        );
        write_executable(&hook, &wait);
        let running =
            world.sandbox.start_crew(&["run", "write lines", "-n", "2", "--commit", "--push"]);
        poll_until("the push", || arrived.exists());
        if is_cancelled {
            world.crew(&["cancel"]);
        } else {
            running.signal(Signal::INT);
            poll_until("a word", || {
                running.stderr().contains("a push is in progress: crew waits for it")
            });
            std::fs::write(&go, "").unwrap();
        }
        let ran = running.wait(DEADLINE);
        std::fs::write(&go, "").unwrap();
        assert_eq!(ran.code(), if is_cancelled { 14 } else { 130 }, "{ran:#?}");
        assert_eq!(ran.stdout.contains("] Pushed main"), !is_cancelled, "{ran:#?}");
    }
}
