//! The states of a working tree over time: the changes of a loop and of each iteration, and the way
//! back to any state. The user's repository is never touched.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;

use super::World;
use crate::sandbox::DEADLINE;

/// Three iterations: the first adds a file, the second edits and deletes, the third changes a mode
/// and makes a link.
const STEPS: [&str; 3] = [
    "echo one > new.txt; mkdir -p deep; echo two > deep/two.txt; chmod +x deep/two.txt",
    "echo more >> new.txt; rm -r deep; rm kept.txt",
    "ln -s new.txt link; chmod +x new.txt; echo '<promise>COMPLETE</promise>'",
];

fn ran() -> World {
    let world = World::new(&STEPS);
    world.sandbox.write("kept.txt", "kept\n");
    world.crew(&["run", "Do it", "-n", "3"]).success();
    world
}

/// Every file of the working tree: its path, mode and content, or its target.
fn tree(world: &World) -> String {
    let list = "find . -path ./.git -prune -o -path ./.claude -prune -o ! -type d -print | sort | while read -r f; do \
        if [ -L \"$f\" ]; then echo \"$f -> $(readlink \"$f\")\"; else \
        if [ -x \"$f\" ]; then m=x; else m=-; fi; echo \"$f $m $(cat \"$f\")\"; fi; done";
    shell(&world.sandbox.repository(), list)
}

fn shell(folder: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(folder);
    crate::spawned::Running::start(command, None).wait(DEADLINE).success()
}

#[test]
fn each_iteration_and_the_whole_loop_have_a_difference_with_untracked_files() {
    let world = ran();
    let diff = |arguments: &[&str]| world.crew(&[&["diff"], arguments].concat()).success();
    let first = diff(&["1"]);
    assert!(first.contains("+++ b/deep/two.txt") && first.contains("+one"), "{first}");
    assert!(!first.contains("kept"), "{first}");
    let second = diff(&["2"]);
    assert!(second.contains("\n--- a/kept.txt\n+++ /dev/null"), "{second}");
    assert!(second.contains("+more") && !second.contains("+one"), "{second}");
    let whole = diff(&[]);
    assert!(whole.contains("new file mode 120000") && whole.contains("-kept"), "{whole}");
    assert!(!whole.contains("deep/two.txt"), "it came and went: {whole}");
    assert_eq!(diff(&["0..3"]), whole);
    assert_eq!(diff(&["3..3"]), "");
    let refused = world.crew(&["diff", "x", "y"]);
    assert_eq!(refused.code(), 2, "{refused:#?}");
    assert!(refused.stderr.contains("hint: crew diff LOOP 4"), "{refused:#?}");
    for words in [&["diff", "4"][..], &["diff", "2..4"], &["diff", "9..10"], &["back", "9"]] {
        let refused = world.crew(words);
        assert_eq!(refused.code(), 1, "{refused:#?}");
        assert!(refused.stderr.contains(": 3 ended\nhint: crew show "), "{refused:#?}");
    }
}

#[test]
fn a_tree_is_restored_exactly_and_the_undo_command_is_named() {
    let world = ran();
    let at_the_end = tree(&world);
    let shown = world.crew(&["back", "1"]).success();
    assert!(shown.contains("HEAD and the branch are as they were"), "{shown}");
    assert_snapshot!(shown.replace(&world.id(), "LOOP"), @"
    back at 1; HEAD and the branch are as they were
      written  3 files: deep/two.txt, kept.txt, new.txt
      removed  1 file: link
      undo     crew back LOOP back-1
    ");
    let first = tree(&world);
    assert!(first.contains("./deep/two.txt x two"), "{first}");
    assert!(first.contains("./kept.txt - kept") && !first.contains("link"), "{first}");
    world.crew(&["back", "0"]).success();
    assert!(!tree(&world).contains("new.txt"), "{}", tree(&world));
    world.crew(&["back", "1"]).success();
    assert_eq!(tree(&world), first);
    world.crew(&["back", "back-1"]).success();
    assert_eq!(tree(&world), at_the_end);
    let missing = world.crew(&["back", "soon"]);
    assert_eq!(missing.code(), 2, "{missing:#?}");
    let without = world.crew(&["back"]);
    assert_eq!(without.stderr.trim(), "crew: back needs an iteration\nhint: crew back 3");
    let missing = world.crew(&["back", "back-9"]);
    assert!(missing.stderr.contains(" has no back-9\nhint: each crew back prints"), "{missing:#?}");
}

#[test]
fn a_tree_is_not_restored_while_the_loop_runs_or_by_an_agent() {
    let world = World::new(&[
        "crew back 0 > \"$notes/inside\" 2>&1; env -u CLAUDECODE -u CREW_LOOP crew back 0 > \"$notes/running\" 2>&1; true",
    ]);
    world.sandbox.put_crew_on_the_path();
    world.crew(&["run", "Do it", "-n", "1"]);
    let note = |name: &str| std::fs::read_to_string(world.note(name)).unwrap();
    assert!(
        note("inside").contains("an agent cannot bring the working tree back"),
        "{}",
        note("inside")
    );
    assert!(note("running").contains("hint: crew pause"), "{}", note("running"));
}

#[test]
fn snapshots_leave_the_repository_alone_and_survive_its_branches_and_cleaning() {
    let world = World::new(&["echo work >> work.txt"]);
    let state =
        "cat .git/HEAD .git/index | cksum; git for-each-ref; git stash list; git worktree list";
    world.sandbox.write("staged.txt", "staged\n");
    world.sandbox.git(&["add", "staged.txt"]);
    let before = shell(&world.sandbox.repository(), state);
    world.crew(&["run", "Do it", "-n", "2"]);
    assert_eq!(shell(&world.sandbox.repository(), state), before);
    world.sandbox.git(&["checkout", "-q", "-b", "side"]);
    world.sandbox.git(&["commit", "-qam", "side"]);
    world.sandbox.git(&["checkout", "-q", "main"]);
    world.sandbox.git(&["branch", "-qD", "side"]);
    world.sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
    world.sandbox.git(&["gc", "-q", "--prune=now", "--aggressive"]);
    let diff = world.crew(&["diff", "2"]).success();
    assert!(diff.contains("+work"), "{diff}");
    world.crew(&["back", "1"]).success();
    let file = world.sandbox.file("work.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "work\n");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o111, 0);
}

#[test]
fn the_story_names_the_iteration_and_the_files_that_broke_a_check() {
    let world = World::new(&["echo a > a.txt", "echo b > b.txt; touch broken", "echo c > c.txt"]);
    world.crew(&["run", "Do it", "-n", "3", "--gate", "! test -e broken"]);
    let shown = world.crew(&["show"]).stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let red = "red `! test -e broken` passed after iteration 1 and has failed since iteration 2, which changed \
               b.txt, broken";
    assert!(shown.contains(red), "{shown}");
}

#[test]
fn a_file_too_large_for_a_snapshot_is_progress_and_is_named() {
    let world = World::new(&["truncate -s 51M model.bin", "truncate -s 52M model.bin"]);
    world.crew(&["run", "Do it", "-n", "2"]);
    for iteration in ["1", "2"] {
        let shown = world.crew(&["show", "--iteration", iteration, "--json"]).stdout;
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let evidence = &shown["iteration"]["evidence"];
        let why = "model.bin, too large for snapshots";
        assert_eq!(
            (&evidence["progress"], &evidence["progress_why"]),
            (&"made".into(), &why.into())
        );
    }
}
