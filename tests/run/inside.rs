//! Repositories inside the working tree, and what cannot be recorded at the start.

use super::{WORK, World};
use crate::sandbox::DEADLINE;
use crate::spawned::Running;

/// A submodule `lib` of a repository beside the world's own.
fn add_a_submodule(world: &World) {
    let other = world.sandbox.root().join("other").display().to_string();
    world.sandbox.git(&["init", "--quiet", "--initial-branch=main", &other]);
    std::fs::write(world.sandbox.root().join("other/f"), "one\n").unwrap();
    world.sandbox.git(&["-C", &other, "add", "."]);
    world.sandbox.git(&["-C", &other, "commit", "--quiet", "--message", "Other"]);
    let allowed = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    world.sandbox.git(&[&allowed[..], &[&other, "lib"]].concat());
    world.sandbox.git(&["commit", "--quiet", "--message", "Add lib"]);
}

#[test]
fn work_in_a_nested_repository_or_on_another_branch_is_progress() {
    let elsewhere =
        "git worktree add -q \"$notes/tree$call\" -b \"b$call\"; cd \"$notes/tree$call\"
                     echo $call > x; git add x; git commit -qm more";
    for (step, seen) in [
        ("echo x >> lib/f", "work in lib"),
        ("echo x >> own/f", "work in own"),
        ("git -C own commit -q --allow-empty -m more", "work in own"),
        (elsewhere, "1 commit elsewhere"),
    ] {
        let world = World::new(&[step]);
        add_a_submodule(&world);
        let own = world.sandbox.file("own").display().to_string();
        world.sandbox.git(&["init", "--quiet", &own]);
        world.sandbox.git(&["-C", &own, "commit", "--quiet", "--allow-empty", "--message", "Own"]);
        let ran = world.crew(&["run", "write lines", "-n", "4", "--stall", "2"]);
        assert_eq!(ran.code(), 10, "{step}: {ran:#?}");
        assert!(ran.stdout.contains(seen), "{step}: {ran:#?}");
    }
}

#[test]
fn an_idle_agent_beside_uncommitted_work_in_a_submodule_stalls() {
    let world = World::new(&["echo thinking"]);
    add_a_submodule(&world);
    world.sandbox.write("lib/f", "two\n");
    let ran = world.crew(&["run", "write lines", "-n", "9", "--stall", "2"]);
    assert!(ran.stdout.contains("stalled"), "{ran:#?}");
    assert_eq!(world.calls(), 2);
}

#[test]
fn work_in_a_submodule_that_a_commit_leaves_out_is_named() {
    let world = World::new(&["echo x >> lib/f"]);
    add_a_submodule(&world);
    let ran = world.crew(&["run", "write lines", "-n", "2", "--commit"]);
    let shown = world.complaints(&ran);
    let named = "lib is a nested repository with work that is not committed there: no commit and no \
                 push of this loop has it (git -C lib commit)";
    assert_eq!(shown.matches(named).count(), 1, "{ran:#?}");
    assert!(ran.stdout.contains("lib (not committed there)"), "{ran:#?}");
}

#[test]
fn a_refusal_of_git_is_quoted_and_allows_at_most_passing() {
    let done = format!("{WORK}; echo '<promise>COMPLETE</promise>'");
    let world = World::new(&[&done]);
    world.sandbox.write(".git/config", "[core\n");
    let refused = "git refuses ROOT/repo: bad config line 1 in file .git/config";
    let root = world.sandbox.root().display().to_string();
    for options in [&["--commit"][..], &["--worktree", "other"]] {
        let ran = world.crew(&[&["run", "write lines"], options].concat());
        let stderr = ran.stderr.replace(&root, "ROOT");
        assert!(ran.code() != 0 && stderr.contains(refused), "{ran:#?}");
        assert!(!stderr.contains("git init"), "{ran:#?}");
    }
    world.settings("loop.protect = [\"tests\"]\n");
    let ran = world.crew(&["run", "write lines"]);
    let stderr = ran.stderr.replace(&root, "ROOT");
    assert!(stderr.contains("what `protect` names cannot be recorded: git refuses"), "{ran:#?}");
    assert_eq!(world.calls(), 0);
    world.settings("");
    let ran = world.crew(&["run", "write lines", "--verify", "test -f work.txt"]);
    let shown = format!("{}{}", ran.stdout, ran.stderr).replace(&root, "ROOT");
    assert!(shown.contains("so an end of this loop proves `passing` at most"), "{ran:#?}");
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let result = world.sandbox.crew(&["show", "--json"]).success();
    assert!(result.contains("passing") && !result.contains("\"checked\""), "{result}");
}

#[test]
fn a_tree_that_git_cannot_read_at_the_start_allows_at_most_passing() {
    let done = format!("{WORK}; echo '<promise>COMPLETE</promise>'");
    for (spoil, named) in [
        (": > .git/HEAD", "git refuses"),
        ("git config core.repositoryFormatVersion 99", "git refuses"),
        ("rm -r .git; echo 'gitdir: /nowhere' > .git", "git refuses"),
    ] {
        let world = World::new(&[&done]);
        let mut command = world.sandbox.command("sh");
        command.args(["-c", spoil]);
        Running::start(command, None).wait(DEADLINE).success();
        let ran = world.crew(&["run", "write lines", "--verify", "test -f work.txt"]);
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code(), 0, "{spoil}: {ran:#?}");
        assert!(shown.contains(named) && !shown.contains("git init"), "{spoil}: {ran:#?}");
        assert!(shown.contains("proves `passing` at most"), "{spoil}: {ran:#?}");
        assert!(shown.contains("Completed, passing"), "{spoil}: {ran:#?}");
    }
}

#[test]
fn a_conflict_at_the_start_is_recorded_and_its_tests_are_protected() {
    let weakens = "printf 'exit 0\\n' > tests.sh; git add -A; echo '<promise>COMPLETE</promise>'";
    let world = World::new(&[weakens]);
    world.sandbox.write("tests.sh", "test -f done\n");
    world.sandbox.write("f", "one\n");
    let script = "git add -A; git commit -qm one; git checkout -qb other; echo two > f; git commit -qam two; \
                  git checkout -q main; echo three > f; git commit -qam three; git merge other; true";
    let mut command = world.sandbox.command("sh");
    command.args(["-c", script]);
    Running::start(command, None).wait(DEADLINE).success();
    world.crew(&["run", "resolve the conflict", "-n", "1", "--verify", "sh tests.sh"]);
    let ended = world.the_loop();
    assert_eq!(ended["outcome"], "exhausted", "{ended:#}");
    let refused = ended["evidence"]["claim"]["because"].as_str().unwrap_or_default();
    assert!(refused.contains("tests.sh changed since the loop began"), "{ended:#}");
}
