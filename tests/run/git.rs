//! git around the iterations, against repositories on this disk: what is committed and pushed, and
//! what is reported when that fails. Only a conflict ends a run.

use insta::assert_snapshot;

use super::{HANG, WORK, World};
use crate::sandbox::{Sandbox, write_executable};
use crate::spawned::Ran;

const IDLE: &str = "echo Thinking.";

impl World {
    /// Gives the repository a remote `origin`, to which `main` was pushed.
    pub(super) fn with_origin(self) -> Self {
        let path = self.sandbox.root().join("origin.git").display().to_string();
        self.sandbox.git(&["init", "--quiet", "--bare", "--initial-branch=main", &path]);
        self.sandbox.git(&["remote", "add", "origin", &path]);
        self.sandbox.git(&["push", "--quiet", "--set-upstream", "origin", "main"]);
        self
    }

    /// The subjects of a remote branch, newest first.
    #[track_caller]
    pub(super) fn there(&self, branch: &str) -> String {
        let path = self.sandbox.root().join("origin.git").display().to_string();
        self.sandbox.git(&["--git-dir", &path, "log", "--format=%s", branch])
    }

    /// Pushes a commit of another person.
    fn somebody_pushes(&self) {
        let root = self.sandbox.root();
        let other = root.join("other").display().to_string();
        let origin = root.join("origin.git").display().to_string();
        self.sandbox.git(&["clone", "--quiet", &origin, &other]);
        std::fs::write(root.join("other/theirs"), "").unwrap();
        self.sandbox.git(&["-C", &other, "add", "."]);
        self.sandbox.git(&["-C", &other, "commit", "--quiet", "--message", "Theirs"]);
        self.sandbox.git(&["-C", &other, "push", "--quiet"]);
    }

    /// The warnings of a run.
    fn warnings(&self, ran: &Ran) -> String {
        let lines = ran.stdout.lines().filter(|line| line.contains(" WARNING: "));
        self.same(&lines.collect::<Vec<_>>().join("\n"))
    }
}

#[test]
fn every_iteration_that_changed_something_is_committed_and_pushed() {
    let world = World::new(&[WORK, IDLE, WORK]).with_origin();
    let ran = world.crew(&["run", "write lines", "-n", "3", "--commit", "--push"]);
    assert_eq!((ran.code(), world.calls()), (10, 3), "{ran:#?}");
    assert_eq!(world.there("main").lines().count(), 3, "{}", world.there("main"));
    let committed = world.sandbox.git(&["log", "--format=", "--name-only", "HEAD~2..HEAD"]);
    assert_eq!(committed.split_whitespace().collect::<Vec<_>>(), ["work.txt", "work.txt"]);
    assert_eq!(world.sandbox.git(&["status", "--porcelain"]), "");
    let git: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.contains("] Committed ") || line.contains("] Pushed "))
        .collect();
    assert_eq!(git.len(), 4, "{}", ran.stdout);
    assert!(git[1].ends_with("Pushed main to origin"), "{}", git[1]);
}

#[test]
fn crews_own_files_are_never_committed_even_if_they_are_tracked() {
    let world =
        World::new(&["echo more >> .claude/branches/main/task.md; git add -f .claude", WORK]);
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit", "--stall", "0"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let committed = world.sandbox.git(&["log", "--format=", "--name-only", "--all"]);
    assert!(!committed.contains(".claude/branches"), "{committed}");
    assert!(committed.contains("work.txt"), "{committed}");
}

#[test]
fn a_branch_behind_its_remote_is_reported_and_the_run_continues() {
    let world = World::new(&[WORK]).with_origin();
    world.somebody_pushes();
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit", "--push"]);
    assert_eq!((ran.code(), world.calls()), (10, 2), "{ran:#?}");
    assert_snapshot!(world.warnings(&ran), @"
    [10:00:00] WARNING: Push failed (non-fast-forward): the branch on the remote has commits that this one lacks; git pull --rebase origin main, then git push origin main
    [10:00:00] WARNING: Push failed (non-fast-forward): the branch on the remote has commits that this one lacks; git pull --rebase origin main, then git push origin main
    ");
    assert_eq!(world.there("main"), "Theirs\nBegin");
}

#[test]
fn an_unreachable_remote_is_reported_and_the_run_continues() {
    let world = World::new(&[WORK]).with_origin();
    // The port was free a moment ago, and nobody listens there now.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("git://{closed}/r.git");
    world.sandbox.git(&["remote", "set-url", "origin", &address]);
    let ran = world.crew(&["run", "write lines", "-n", "1", "--commit", "--push"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let shown = world.warnings(&ran);
    assert!(shown.contains("Push failed (network): "), "{shown}");
}

#[test]
fn a_branch_without_an_upstream_gets_one() {
    let world = World::new(&[WORK]).with_origin();
    world.sandbox.git(&["switch", "--quiet", "--create", "feat/lines"]);
    let ran = world.crew(&["run", "write lines", "-n", "1", "--commit", "--push"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stdout.contains("Pushed feat/lines to origin"), "{ran:#?}");
    assert_eq!(world.there("feat/lines").lines().count(), 2);
    let upstream = world.sandbox.git(&["rev-parse", "--abbrev-ref", "feat/lines@{upstream}"]);
    assert_eq!(upstream, "origin/feat/lines");
}

#[test]
fn a_remote_that_refuses_the_user_is_distinguished_from_one_that_refuses_the_push() {
    for (said, class) in [
        ("Permission denied: tester may not push", "auth"),
        ("the subject has no ticket number", "rejected"),
    ] {
        let world = World::new(&[WORK]).with_origin();
        let hook = world.sandbox.root().join("origin.git/hooks/pre-receive");
        write_executable(&hook, &format!("#!/bin/sh\necho '{said}' >&2\nexit 1\n"));
        let ran = world.crew(&["run", "write lines", "-n", "2", "--commit", "--push"]);
        assert_eq!((ran.code(), world.calls()), (10, 2), "{ran:#?}");
        let shown = world.warnings(&ran);
        assert_eq!(shown.matches(&format!("Push failed ({class}): ")).count(), 2, "{shown}");
        assert!(shown.contains(said), "{shown}");
    }
}

#[test]
fn nothing_is_pushed_to_a_remote_that_an_agent_planted() {
    let plant = "git init --quiet --bare .git/evil; \
                 printf '#!/bin/sh\n: > \"%s\"\n' \"$notes/planted\" > .git/evil/hooks/post-receive; \
                 chmod +x .git/evil/hooks/post-receive; \
                 git config branch.main.pushRemote .git/evil; echo more >> work.txt";
    let world = World::new(&[WORK, plant]).with_origin();
    world.sandbox.git(&["config", "--unset", "branch.main.merge"]);
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit", "--push"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_snapshot!(world.warnings(&ran), @"[10:00:00] WARNING: Push failed (changed): the setting branch.main.pushremote changed during this run; look at git config --list --show-origin; a new run accepts it");
    assert_eq!(world.there("main").lines().count(), 2);
    assert!(!world.note("planted").exists());
}

#[test]
fn settings_written_by_crews_push_do_not_count_as_changed_even_after_a_resume() {
    let world = World::new(&[WORK]).with_origin();
    world.sandbox.git(&["switch", "--quiet", "--create", "feat/lines"]);
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit", "--push"]);
    assert_eq!((ran.code(), &*world.warnings(&ran)), (10, ""), "{ran:#?}");
    let ran = world.crew(&["resume", "-n", "+1"]);
    assert_eq!((ran.code(), &*world.warnings(&ran)), (10, ""), "{ran:#?}");
    assert_eq!(world.there("feat/lines").lines().count(), 4);
}

#[test]
fn a_resumed_run_does_not_trust_a_planted_program() {
    let plant = format!(
        "git config filter.x.clean 'touch planted; cat'; echo '* filter=x' > .gitattributes; {HANG}"
    );
    let world = World::new(&[&plant, WORK]);
    world.interrupted(&["run", "write lines", "--commit"]);
    let ran = world.crew(&["resume", "-n", "2"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let shown = world.warnings(&ran);
    assert!(shown.contains("the setting filter.x.clean changed during this run"), "{shown}");
    assert!(!world.sandbox.file("planted").exists());
}

#[test]
fn a_missing_remote_is_reported_and_without_git_nothing_is_started() {
    let world = World::new(&[WORK]);
    let ran = world.crew(&["run", "write lines", "-n", "1", "--commit", "--push"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_snapshot!(world.warnings(&ran), @"[10:00:00] WARNING: Push failed (no-remote): this repository has no remote; git remote add origin ADDRESS");
    let world = World::of(Sandbox::without_git(), &[WORK]);
    for option in [&["--commit"][..], &["--push"], &["--rebase", "main"]] {
        let ran = world.crew(&[&["run", "write lines", "-n", "1"], option].concat());
        assert_eq!((ran.code(), world.calls()), (1, 0), "{ran:#?}");
        let expected = format!("{} needs a git repository", option[0]);
        assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
    }
    world.settings("loop.commit = true\n");
    let ran = world.crew(&["run", "write lines", "-n", "1"]);
    assert_eq!((ran.code(), world.calls()), (10, 1), "{ran:#?}");
    assert!(ran.stderr.contains("this is not a git repository: nothing is committed"), "{ran:#?}");
}

#[test]
fn work_is_rebased_onto_a_branch_that_moved_before_the_iteration() {
    let world = World::new(&[WORK]).with_origin();
    world.sandbox.git(&["switch", "--quiet", "--create", "feat"]);
    world.sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "Ours"]);
    world.somebody_pushes();
    world.sandbox.git(&["fetch", "--quiet"]);
    let ran = world.crew(&["run", "write lines", "-n", "1", "--rebase", "origin/main"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stdout.contains("] Rebased onto origin/main\n"), "{ran:#?}");
    assert_eq!(world.sandbox.git(&["log", "--format=%s"]), "Ours\nTheirs\nBegin");
}

#[test]
fn a_rebase_conflict_ends_the_run_as_blocked_and_leaves_the_tree_as_it_was() {
    let world = World::new(&[WORK]);
    world.sandbox.git(&["switch", "--quiet", "--create", "feat"]);
    world.sandbox.write("README", "ours\n");
    world.sandbox.git(&["commit", "--quiet", "--all", "--message", "Ours"]);
    world.sandbox.git(&["switch", "--quiet", "main"]);
    world.sandbox.write("README", "theirs\n");
    world.sandbox.git(&["commit", "--quiet", "--all", "--message", "Theirs"]);
    world.sandbox.git(&["switch", "--quiet", "feat"]);
    world.sandbox.write("draft", "not committed\n");
    let before = world.sandbox.git(&["rev-parse", "HEAD"]);
    let ran = world.crew(&["run", "write lines", "--rebase", "main"]);
    assert_eq!((ran.code(), world.calls()), (13, 0), "{ran:#?}");
    assert_snapshot!(world.lines(&ran), @r#"
    [10:00:00] Starting: "write lines" (max 10 iterations)
    [10:00:00] ERROR: Blocked: rebase failed (conflict): this branch conflicts with main in README; run git rebase main yourself, resolve the conflict, then crew resume (0 iterations completed, total: 1.0s)
    "#);
    assert_eq!(world.sandbox.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(world.sandbox.git(&["status", "--porcelain", "--branch"]), "## feat\n?? draft");
    assert_eq!(std::fs::read_to_string(world.sandbox.file("README")).unwrap(), "ours\n");
}
