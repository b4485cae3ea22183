//! The repository that a run began in: what crew does when the agent loses it, damages it or
//! replaces it, with a repository around it that must stay as it is.

use std::collections::BTreeMap;
use std::path::Path;

use super::{WORK, World};
use crate::sandbox::Sandbox;

/// A world whose repository is inside another one, as in a home folder under version control.
fn nested(steps: &[&str]) -> World {
    let world = World::new(steps);
    let root = world.sandbox.root().display().to_string();
    std::fs::write(world.sandbox.root().join("outer"), "of the outer repository\n").unwrap();
    for arguments in [
        &["init", "--quiet", "--initial-branch=outer"][..],
        &["config", "user.name", "Outer"],
        &["config", "user.email", "outer@example.invalid"],
        &["add", "outer"],
        &["commit", "--quiet", "--message", "Outer"],
    ] {
        world.sandbox.git(&[&["-C", &root], arguments].concat());
    }
    world
}

/// Every file of a folder with its content; of a link, its target.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_symlink() {
                let to = std::fs::read_link(&path).unwrap();
                found.insert(name, to.into_os_string().into_encoded_bytes());
            } else if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

const LOSSES: [(&str, &str); 5] = [
    ("rm -rf .git", "ROOT/repo/.git is gone"),
    (
        ": > .git/HEAD",
        "ROOT/repo/.git cannot be read: not a git repository (or any of the parent directories): .git",
    ),
    (
        "rm -rf .git; git init -q -b main",
        "ROOT/repo/.git does not hold COMMIT, where this loop began",
    ),
    (
        "rm -rf .git; git init -q --separate-git-dir \"$notes/other\"",
        "git finds another repository here, ROOT/notes/other, not ROOT/repo/.git",
    ),
    ("git update-ref -d HEAD", "the branch main no longer has a commit"),
];

#[test]
fn a_run_that_lost_its_repository_ends_blocked_and_leaves_a_parent_one_alone() {
    for (loss, why) in LOSSES {
        let world = nested(&[&format!("{loss}; echo more >> work.txt")]);
        let outer = world.sandbox.root().join(".git");
        let before = contents(&outer);
        let start = world.sandbox.git(&["rev-parse", "--short=12", "HEAD"]);
        let ran = world.crew(&["run", "write lines", "-n", "3", "--commit", "--push"]);
        assert_eq!((ran.code(), world.calls()), (13, 1), "{loss}: {ran:#?}");
        let lines = world.lines(&ran).replace(&start, "COMMIT");
        assert!(lines.contains(&format!("Blocked: {why}; ")), "{loss}: {lines}");
        assert_eq!(contents(&outer), before, "{loss}");
        let ran = world.crew(&["resume", &world.id(), "-n", "+1"]);
        assert_eq!((ran.code(), world.calls()), (1, 1), "{loss}: {ran:#?}");
        let shown = world.same(&ran.stderr).replace(&start, "COMMIT");
        assert!(shown.contains(why) && shown.contains("hint: "), "{loss}: {shown}");
    }
}

#[test]
fn a_run_without_git_steps_also_ends_blocked_if_its_repository_is_gone() {
    for (loss, why) in &LOSSES[..2] {
        let world = nested(&[&format!("{loss}; echo more >> work.txt")]);
        let ran = world.crew(&["run", "write lines", "-n", "3"]);
        assert_eq!((ran.code(), world.calls()), (13, 1), "{loss}: {ran:#?}");
        let lines = world.lines(&ran);
        assert!(lines.contains(&format!("Blocked: {why}; ")), "{loss}: {lines}");
    }
}

#[test]
fn a_claim_completes_no_run_that_lost_its_repository() {
    let world = World::new(&["rm -rf .git; echo '<promise>COMPLETE</promise>'"]);
    let ran = world.crew(&["run", "write lines", "-n", "3", "--commit"]);
    assert_eq!((ran.code(), world.calls()), (13, 1), "{ran:#?}");
    let lines = world.lines(&ran);
    assert!(
        lines.contains("Blocked: ROOT/repo/.git is gone; put it back as it was, then crew resume"),
        "{lines}"
    );
    let folder = world.sandbox.repository().join(".claude/branches/main/handoffs");
    let pages = || std::fs::read_dir(&folder).unwrap().count();
    let before = pages();
    world.crew(&["status"]);
    assert_eq!(pages(), before, "the end was wound up twice");
}

#[test]
fn a_crew_started_by_a_hook_of_another_repository_works_in_its_own() {
    let world = nested(&[WORK]);
    let outer = world.sandbox.root().join(".git");
    let before = contents(&outer);
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command
        .args(["run", "write lines", "-n", "1", "--commit"])
        .current_dir(world.sandbox.repository())
        .env("GIT_DIR", &outer)
        .env("GIT_WORK_TREE", world.sandbox.root())
        .env("GIT_INDEX_FILE", outer.join("index"));
    let ran = crate::spawned::Running::start(command, None).wait(crate::sandbox::DEADLINE);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_eq!(world.committed(), ["work.txt"]);
    assert_eq!(contents(&outer), before);
}

/// Runs a shell line before each git process, with its arguments.
fn before_each_git(world: &World, line: &str) {
    let real = world.sandbox.root().join("real-git");
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|folder| folder.join("git"));
    std::os::unix::fs::symlink(git.into_iter().find(|git| git.exists()).unwrap(), &real).unwrap();
    let _ = std::fs::remove_file(world.sandbox.root().join("bin/git"));
    world.sandbox.program("git", &format!("{line}; exec '{}' \"$@\"", real.display()));
}

#[test]
fn a_start_fails_if_git_cannot_list_its_settings_or_files() {
    for (fails, shown) in [
        ("--show-scope", "git's settings cannot be listed here"),
        ("status", "what you have not committed cannot be listed: "),
    ] {
        let world = World::new(&[WORK]);
        before_each_git(
            &world,
            &format!("for word; do test \"$word\" != {fails} || exit 129; done"),
        );
        let ran = world.crew(&["run", "write lines", "-n", "1", "--commit", "--stall", "0"]);
        assert_eq!((ran.code(), world.calls()), (1, 0), "{fails}: {ran:#?}");
        assert_eq!(ran.stderr.matches(shown).count(), 1, "{fails}: {ran:#?}");
        assert!(ran.stderr.contains("hint: "), "{fails}: {ran:#?}");
    }
}

#[test]
fn a_killed_git_command_that_only_reads_is_retried() {
    for killed in ["--show-scope", "status", "rev-parse", "ls-files"] {
        let world = World::new(&[WORK]);
        let mark = world.sandbox.root().join("killed");
        let kill = format!("{{ test -e '{0}' || {{ : > '{0}'; kill -9 $$; }}; }}", mark.display());
        let line = format!("for word; do test \"$word\" != {killed} || {kill}; done");
        before_each_git(&world, &line);
        let ran = world.crew(&["run", "write lines", "-n", "1", "--commit"]);
        assert_eq!((ran.code(), mark.exists()), (10, true), "{killed}: {ran:#?}");
        assert_eq!(world.committed(), ["work.txt"], "{killed}: {ran:#?}");
        assert!(!ran.stderr.contains("error"), "{killed}: {ran:#?}");
    }
}

#[test]
fn a_commit_counts_if_git_is_killed_after_moving_the_branch() {
    let world = World::new(&[WORK]);
    let real = world.sandbox.root().join("real-git");
    let line = format!(
        "case \" $* \" in *' update-ref -m '*) '{}' \"$@\"; kill -9 $$ ;; esac",
        real.display()
    );
    before_each_git(&world, &line);
    let ran = world.crew(&["run", "write lines", "-n", "1", "--commit"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert_eq!(world.committed(), ["work.txt"], "{ran:#?}");
    assert_eq!(world.sandbox.git(&["status", "--porcelain"]), "", "the index has it, too");
    assert!(!ran.stdout.contains("not committed"), "{ran:#?}");
}

#[test]
fn a_parent_repository_is_not_read_in_place_of_a_missing_one() {
    let world = nested(&["rm -rf .git; echo more >> ../outer; echo more >> work.txt"]);
    let ran = world.crew(&["run", "write lines", "-n", "1"]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    assert!(!ran.stdout.contains("outer"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("  commits"), "{}", ran.stdout);
}

#[test]
fn linked_working_trees_and_submodules_are_checkouts_like_any_other() {
    let world = World::new(&[WORK]);
    let root = world.sandbox.root();
    let tree = root.join("tree");
    world.sandbox.git(&["worktree", "add", "--quiet", "-b", "tree", "../tree"]);
    let repository = world.sandbox.repository().display().to_string();
    let above = root.join("above").display().to_string();
    world.sandbox.git(&["init", "--quiet", &above]);
    world.sandbox.git(&[
        "-C",
        &above,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &repository,
        "sub",
    ]);
    for folder in [tree, root.join("above/sub")] {
        let mut command = world.sandbox.command(world.sandbox.build().path());
        command.args(["run", "write lines", "-n", "2", "--commit"]).current_dir(&folder);
        let ran = crate::spawned::Running::start(command, None).wait(crate::sandbox::DEADLINE);
        assert_eq!(ran.code(), 10, "{ran:#?}");
        let folder = folder.display().to_string();
        let log = world.sandbox.git(&["-C", &folder, "log", "--format=%s"]);
        assert_eq!(log.matches("crew: iteration").count(), 2, "{log}");
    }
}

/// A sequence of numbers that is the same in each run.
pub(super) struct Row(pub(super) u64);

impl Row {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn ten_runs_that_damage_their_repositories_leave_the_parent_unchanged() {
    let world = World::of(Sandbox::new(), &[WORK]);
    let outer = world.sandbox.repository();
    world.sandbox.write(".gitignore", "inner.worktrees/\n");
    world.sandbox.write("precious", "of the outer repository\n");
    world.sandbox.write("not-committed", "mine\n");
    let inner = outer.join("inner");
    let inner = inner.display().to_string();
    let git = |folder: &str, arguments: &[&str]| {
        world.sandbox.git(&[&["-C", folder], arguments].concat())
    };
    world.sandbox.git(&["init", "--quiet", "-b", "main", &inner]);
    git(&inner, &["commit", "--quiet", "--allow-empty", "--message", "Inner"]);
    let spoils = [
        "rm -rf .git",
        "mv .git gone",
        "echo nonsense > .git",
        "rm -rf .git; git init -q -b main .",
        "git update-ref -d HEAD",
        ": > \"$(git rev-parse --git-dir)/HEAD\"",
    ];
    let mut row = Row(20_261_122);
    let trees: Vec<(String, usize)> = (1..=10)
        .map(|number| {
            let tree = format!("{}/inner.worktrees/t{number}", outer.display());
            if number % 2 == 0 {
                git(&inner, &["clone", "--quiet", ".", &tree]);
            } else {
                let branch = format!("t{number}");
                git(&inner, &["worktree", "add", "--quiet", "-b", &branch, &tree]);
            }
            let when = 1 + usize::try_from(row.below(4)).unwrap();
            let spoil = spoils[usize::try_from(row.below(6)).unwrap()];
            let agent = format!(
                "cat > /dev/null; echo $CREW_ITERATION >> work.txt; test $CREW_ITERATION != {when} || {{ {spoil}; }}"
            );
            let agent = world.sandbox.program(&format!("agent{number}"), &agent);
            (agent.display().to_string(), when)
        })
        .collect();
    // The agents may change their own files; nothing else in the outer repository may change.
    let of_the_outer = || {
        let mut all = contents(&outer);
        all.retain(|name, _| !name.starts_with("inner"));
        all
    };
    let before = of_the_outer();
    let runs: Vec<_> = (1..=10)
        .zip(&trees)
        .map(|(number, (agent, _))| {
            let mut command = world.sandbox.command(world.sandbox.build().path());
            let tree = format!("inner.worktrees/t{number}");
            command
                .args(["run", "write lines", "-n", "3", "--commit", "--agent-cmd", agent])
                .current_dir(outer.join(tree));
            crate::spawned::Running::start(command, None)
        })
        .collect();
    for (run, (_, when)) in runs.into_iter().zip(&trees) {
        let ran = run.wait(crate::sandbox::DEADLINE);
        // Damaged by the last iteration, the run is still blocked; damaged later, it ends at its
        // limit.
        let expected = if *when <= 3 { 13 } else { 10 };
        assert_eq!(ran.code(), expected, "{when}: {ran:#?}");
        let commits = ran.stdout.matches("] Committed ").count();
        assert_eq!(commits, (when - 1).min(3), "{when}: {ran:#?}");
        assert!(!ran.stdout.contains("WARNING: Commit failed"), "{ran:#?}");
    }
    assert!(of_the_outer() == before, "the outer repository is another than it was");
}
