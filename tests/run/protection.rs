//! Protected paths in a run: an agent that hides changes from git cannot hide them from crew.

use super::World;

/// Runs an agent that changes a protected file, hides that in `a_way`, and claims; returns the
/// status of its first iteration.
#[track_caller]
fn claim_after(a_way: &str) -> String {
    let cheat = format!("echo cheat > tests/a; {a_way}; echo '<promise>COMPLETE</promise>'");
    let world = World::new(&[&cheat]);
    world.settings("loop.protect = [\"tests\"]\n");
    world.sandbox.write("tests/a", "honest\n");
    world.sandbox.git(&["add", "."]);
    world.sandbox.git(&["commit", "--quiet", "--message", "A test"]);
    let ran = world.crew(&["run", "make it", "-n", "1"]);
    assert_ne!(ran.code(), 0, "{a_way}: {ran:#?}");
    ran.stdout
}

#[test]
fn a_claim_in_a_recreated_repository_is_not_believed() {
    let elsewhere = "mkdir -p .git/copy/tests; echo honest > .git/copy/tests/a; \
                     git config core.worktree \"$PWD/.git/copy\"";
    for way in ["rm -rf .git; git init --quiet", "rm -rf .git", elsewhere] {
        let shown = claim_after(way);
        assert!(shown.contains("protected paths were changed: `tests/a`"), "{shown}");
    }
}

#[test]
fn a_replaced_start_commit_is_not_believed() {
    let shown =
        claim_after("was=$(git rev-parse HEAD); git commit -qam cheat; git replace \"$was\" HEAD");
    assert!(shown.contains("protected paths were changed: `tests/a`"), "{shown}");
}

#[test]
fn a_file_that_git_is_configured_to_skip_is_read() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let shown = claim_after(&format!("git update-index {flag} tests/a"));
        assert!(shown.contains("protected paths were changed: `tests/a`"), "{shown}");
    }
}

#[test]
fn protected_content_that_crews_rebase_brings_is_recorded_and_kept() {
    let forget = "for file in \"$CREW_HOME\"/loops/*/loop.json; do echo '{' > \"$file\"; done";
    let claim = "echo '<promise>COMPLETE</promise>'";
    let world = World::new(&[
        &format!("{forget}; echo cheat > tests/new; {claim}"),
        &format!("{forget}; echo theirs > tests/new; {claim}"),
    ]);
    let sandbox = &world.sandbox;
    world.settings("loop.protect = [\"tests\"]\n");
    let commit = |words: &str| {
        sandbox.git(&["add", "."]);
        sandbox.git(&["commit", "--quiet", "--message", words]);
    };
    sandbox.write("tests/a", "honest\n");
    commit("A test");
    sandbox.git(&["switch", "--quiet", "--create", "feat"]);
    sandbox.git(&["commit", "--quiet", "--allow-empty", "--message", "Ours"]);
    sandbox.git(&["switch", "--quiet", "main"]);
    sandbox.write("tests/a", "theirs\n");
    sandbox.write("tests/new", "theirs\n");
    commit("Theirs");
    sandbox.git(&["switch", "--quiet", "feat"]);
    let ran = world.crew(&["run", "make it", "-n", "2", "--rebase", "main"]);
    assert_eq!((ran.code(), world.calls()), (0, 2), "{ran:#?}");
    assert!(world.prompt(2).contains("protected paths were changed: `tests/new`;"), "{ran:#?}");
}
