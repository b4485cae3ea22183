//! The work of an attempt that was interrupted by a kill of crew, an immediate pause or a signal.
//! It is the loop's work, it is reported, and the iteration that runs again is credited with it.

use rustix::process::Signal;

use super::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox, crew, poll_until};
use crate::spawned::Running;

/// Adds one file, deletes another, and then hangs.
fn half() -> String {
    format!("echo half > half.txt; rm seed.txt; {HANG}")
}

fn world(steps: &[&str]) -> World {
    let sandbox = Sandbox::new();
    sandbox.write("seed.txt", "seed\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Seed"]);
    World::of(sandbox, steps)
}

/// A loop whose crew was killed in its second iteration.
fn killed() -> World {
    let world = world(&[WORK, &half()]);
    let running = world.hanging(&["run", "Build it", "-n", "5", "-q"]);
    running.signal(Signal::KILL);
    running.wait(DEADLINE);
    world
}

#[test]
fn a_resume_names_an_unreadable_loop_of_the_working_tree() {
    let world = World::of(Sandbox::new(), &[WORK]);
    world.crew(&["run", "First of two", "-n", "1"]);
    let first = world.id();
    world.crew(&["run", "Second of two", "-n", "1"]);
    let newest = world.loops()[0]["id"].clone();
    let second = newest.as_str().unwrap();
    for file in ["loop.json", "journal.jsonl"] {
        let folder = world.sandbox.crew_home().join("loops").join(second);
        std::fs::write(folder.join(file), "junk").unwrap();
    }
    let ran = world.crew(&["resume", &first, "-n", "2"]);
    let shown = " · read its journal there, or remove that folder";
    assert_eq!((ran.code(), ran.stderr.matches(shown).count()), (10, 1), "{ran:#?}");
}

#[test]
fn the_work_of_a_killed_crew_is_on_the_closing_page_and_in_the_handoff() {
    let world = killed();
    world.crew(&["cancel"]).success();
    let page = world.crew(&["status"]).success();
    assert!(page.contains("half.txt") && page.contains("gone: seed.txt"), "{page}");
    let note = "note    everything that changed in the tree until now counts as the loop's: its crew was gone";
    assert!(page.contains(note), "{page}");
    let diff = world.crew(&["diff"]).success();
    assert!(diff.contains("+half") && diff.contains("-seed"), "{diff}");
    let handoff = page.lines().find_map(|line| line.trim().strip_prefix("handoff ")).unwrap();
    let handoff = std::fs::read_to_string(handoff).unwrap();
    assert!(handoff.contains("new half.txt") && handoff.contains("deleted seed.txt"), "{handoff}");
}

#[test]
fn the_work_of_a_killed_attempt_counts_for_the_repeated_iteration() {
    let world = killed();
    world.steps(&["echo rest > rest.txt", CLAIM]);
    world.crew(&["resume", "-q"]).success();
    let prompt = world.prompt(3);
    assert!(prompt.contains("new half.txt") && prompt.contains("deleted seed.txt"), "{prompt}");
    assert!(!prompt.contains("Nothing was done yet"), "{prompt}");
    let diff = world.crew(&["diff", "2"]).success();
    for part in ["+half", "-seed", "+rest"] {
        assert!(diff.contains(part), "{part} in {diff}");
    }
    let page = world.crew(&["status"]).success();
    assert!(page.contains("3 files, 2 new, 1 gone"), "{page}");
}

#[test]
fn a_persons_changes_during_a_pause_are_not_attributed_to_the_iteration() {
    let world = world(&[WORK, &half()]);
    let running = world.hanging(&["run", "Build it", "-n", "5", "-q"]);
    world.crew(&["pause", "--now"]).success();
    running.wait(DEADLINE);
    world.sandbox.write("mine.txt", "mine\n");
    world.steps(&["echo rest > rest.txt", CLAIM]);
    world.crew(&["resume", "-q"]).success();
    let diff = world.crew(&["diff", "2"]).success();
    assert!(diff.contains("+half") && diff.contains("+rest"), "{diff}");
    assert!(!diff.contains("mine"), "{diff}");
}

#[test]
fn an_immediate_pause_during_a_check_keeps_the_agents_work() {
    let world = World::new(&["echo work > work.txt"]);
    let note = world.note("checks");
    let check = format!("test -e {0} || {{ touch {0}; sleep 60; }}", note.display());
    let running = world.sandbox.start_crew(&["run", "Build it", "-n", "3", "-q", "--gate", &check]);
    poll_until("the check", || note.exists());
    world.crew(&["pause", "--now"]).success();
    running.wait(DEADLINE);
    let page = world.crew(&["status"]).success();
    assert!(page.contains("work.txt"), "{page}");
    assert!(world.crew(&["diff"]).success().contains("+work"));
    world.steps(&["echo rest > rest.txt", CLAIM]);
    world.crew(&["resume", "-q", "-n", "1", "--failure-threshold", "0"]);
    let diff = world.crew(&["diff", "1"]).success();
    assert!(diff.contains("+work") && diff.contains("+rest"), "{diff}");
}

#[test]
fn an_immediate_pause_followed_by_a_cancel_keeps_the_agents_work() {
    let slow = format!("trap '' TERM; {}", half());
    let world = world(&[WORK, &slow]);
    let running = world.hanging(&["run", "Build it", "-n", "5", "-q"]);
    world.crew(&["pause", "--now"]).success();
    world.crew(&["cancel"]).success();
    running.wait(DEADLINE);
    let diff = world.crew(&["diff"]).success();
    assert!(diff.contains("+half") && diff.contains("-seed"), "{diff}");
}

#[test]
fn a_claim_whose_check_was_interrupted_was_not_refused() {
    let world = World::new(&[CLAIM]);
    let check = "if test -e begun; then touch checks; sleep 60; fi; touch begun; false";
    let running =
        world.sandbox.start_crew(&["run", "Build it", "-n", "3", "-q", "--verify", check]);
    poll_until("the check", || world.sandbox.file("checks").exists());
    running.signal(Signal::INT);
    running.wait(DEADLINE);
    let page = world.crew(&["status"]).success();
    assert!(!page.contains("refused") && page.contains("interrupted before it finished"), "{page}");
}

#[test]
fn after_a_return_the_next_worker_reads_which_tree_is_restored() {
    let world = World::new(&["echo 1 > part1.txt", "echo 2 > part2.txt"]);
    world.crew(&["run", "Build it", "-n", "2", "-q"]);
    world.crew(&["back", "1"]).success();
    world.steps(&[CLAIM]);
    world.crew(&["resume", "-n", "+1", "-q"]).success();
    let prompt = world.prompt(3);
    assert!(prompt.contains("restored the tree to the end of iteration 1"), "{prompt}");
    let (_, files) = prompt.split_once("### Files changed").unwrap();
    let (files, _) = files.split_once("After iteration 2").unwrap();
    assert!(files.contains("new part1.txt") && !files.contains("part2.txt"), "{files}");
    assert!(!prompt.contains("undo: crew back"), "{prompt}");
}

#[test]
fn the_next_worker_of_a_blocked_loop_is_not_asked_to_wait() {
    let world = World::new(&["printf '<promise>BLOCKED: the password</promise>\\n'", CLAIM]);
    world.crew(&["run", "Build it", "-n", "3", "-q"]);
    world.crew(&["resume", "-q", "--tell", "it is in .env"]).success();
    let prompt = world.prompt(2);
    assert!(prompt.contains("If the loop was resumed since, they have: continue"), "{prompt}");
}

#[test]
fn a_commit_of_crew_on_no_branch_is_named_at_the_end() {
    let world = world(&["git checkout -q --detach; echo 1 > one.txt", "git switch -q main"]);
    world.crew(&["run", "Build it", "-n", "2", "-q", "--commit"]);
    let page = world.crew(&["status"]).success();
    assert!(
        page.contains("apart   1 commit made by crew, not in the history that is checked out"),
        "{page}"
    );
    assert!(page.contains("(on no branch)"), "{page}");
}

#[test]
fn the_first_commits_of_a_repository_are_reported() {
    let sandbox = Sandbox::without_git();
    sandbox.git(&["init", "-q", "-b", "main"]);
    let world = World::of(sandbox, &["echo 1 > one.txt"]);
    world.crew(&["run", "Build it", "-n", "1", "-q", "--commit"]);
    let page = world.crew(&["status"]).success();
    assert!(page.contains("commits 1 on main"), "{page}");
}

#[test]
fn a_large_file_is_named_even_if_no_snapshot_has_it() {
    let world = World::new(&["head -c 60000000 /dev/zero > model.bin"]);
    world.crew(&["run", "Build it", "-n", "1", "-q"]);
    let page = world.crew(&["status"]).success();
    assert!(page.contains("  1  "), "{page}");
    assert!(page.contains("too large for snapshots: model.bin"), "{page}");
    assert!(!page.contains("nothing"), "{page}");
}

#[test]
fn a_missing_folder_is_named_and_its_difference_is_still_shown() {
    let world = World::new(&[WORK]);
    world.crew(&["run", "Build it", "-n", "1", "-q"]);
    let id = world.id();
    std::fs::remove_dir_all(world.sandbox.repository()).unwrap();
    let elsewhere = |arguments: &[&str]| {
        let mut command = world.sandbox.command(crew());
        command.args(arguments).current_dir(world.sandbox.home());
        Running::start(command, None).wait(DEADLINE)
    };
    assert!(elsewhere(&["diff", &id]).stdout.contains("diff --git"));
    let back = elsewhere(&["back", &id, "1"]);
    assert!(back.stderr.contains("cannot go back: its folder "), "{back:?}");
}

#[test]
fn every_page_says_that_an_iteration_timed_out() {
    let world = World::new(&["echo one > one.txt; sleep 600", CLAIM]);
    world.crew(&["run", "Build it", "-n", "2", "-q", "--timeout", "1s"]);
    let cut = "the iteration ran into its timeout of 1s";
    for page in [&["show"][..], &["show", "--iteration", "1"], &["status"]] {
        let shown = world.crew(page).success();
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(cut), "{page:?}: {shown}");
    }
}

#[test]
fn a_loop_that_is_blocked_by_a_changed_check_does_not_say_that_it_passes() {
    let sandbox = Sandbox::new();
    sandbox.write("check.sh", "exit 1\n");
    let cheat = format!("echo 'exit 0' > check.sh; {CLAIM}");
    let world = World::of(sandbox, &[&cheat]);
    let checks = ["--verify", "sh check.sh", "--gate", "true"];
    let ran = world.crew(&[&["run", "Build it", "-n", "9", "-q"][..], &checks].concat());
    assert_eq!(ran.code(), 13, "{ran:?}");
    let page = world.crew(&["status"]).success();
    assert!(page.lines().next().unwrap().contains(" · blocked "), "{page}");
    assert!(!page.lines().next().unwrap().contains("pass"), "{page}");
    let verify = "verify  `sh check.sh` passed as it is now, which does not count";
    assert!(page.contains(verify), "{page}");
    assert!(page.contains("gate    `true` passed\n"), "{page}");
}

#[test]
fn the_result_of_a_check_is_shown_whatever_the_reason_of_a_cancel_says() {
    let world = World::new(&[WORK, HANG]);
    let running = world.hanging(&["run", "Build it", "-n", "3", "-q", "--gate", "true"]);
    world.crew(&["cancel", "--reason", "`true` needs --accept-test-changes"]).success();
    running.wait(DEADLINE);
    let page = world.crew(&["status"]).success();
    assert!(page.contains("gate    `true` passed\n"), "{page}");
}
