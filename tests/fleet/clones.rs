//! Other clones and working trees of a fleet's repository, and a main branch that somebody rewrites
//! meanwhile.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE, TWO};
use crate::child::{Ran, Running};

/// Runs the fleet from another folder; with a `$CREW_HOME` of its own it is another machine.
#[track_caller]
pub(super) fn run_in(world: &FleetWorld, folder: &Path, home: Option<&str>, more: &[&str]) -> Ran {
    start_in(world, folder, home, more).wait(LONG)
}

fn start_in(world: &FleetWorld, folder: &Path, home: Option<&str>, more: &[&str]) -> Running {
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["fleet", "run", "tasks", "--yes"]).args(more).current_dir(folder);
    command.envs(home.map(|home| ("CREW_HOME", world.sandbox.root().join(home))));
    Running::start(command, None)
}

/// A clone of the remote, in a folder of this name.
pub(super) fn cloned(world: &FleetWorld, path: &str) -> PathBuf {
    let clone = world.sandbox.root().join(path);
    world.sandbox.git(&[
        "clone",
        "--quiet",
        &world.hub().display().to_string(),
        &clone.display().to_string(),
    ]);
    clone
}

/// Takes `secret` out of the newest commit of main, as if it had never been there.
fn rewrite(world: &FleetWorld) {
    let clone = cloned(world, "person").display().to_string();
    let git = |arguments: &[&str]| world.sandbox.git(&[&["-C", &clone], arguments].concat());
    git(&["rm", "--quiet", "secret"]);
    git(&["commit", "--quiet", "--amend", "--no-edit"]);
    git(&["push", "--quiet", "--force"]);
}

fn with_secret(agent: &str) -> FleetWorld {
    let world = FleetWorld::new(agent).tasks(&["a"], "").file("other", "one\n").shared().ready();
    world.file("secret", "key\n").file("other", "two\n").ready()
}

#[test]
fn what_a_person_took_out_of_main_meanwhile_does_not_come_back_with_a_task() {
    let world = with_secret(&format!("[ $call -gt 1 ] || wait_for go; {TWO}"));
    let running = world.start(&["--land"]);
    world.until("a works", |world| world.begun("a") == [1]);
    rewrite(&world);
    world.allow("go");
    let ran = running.wait(LONG);
    assert_eq!((ran.code(), world.shown("main", "work-a")), (0, "1\n2\n".into()), "{ran:#?}");
    assert_eq!(world.shown("main", "secret"), "");
}

#[test]
fn a_branch_that_stands_on_what_main_has_no_longer_needs_a_person() {
    let world = with_secret(&format!("wait_for go; {ONE}"));
    let before = world.git_there(&["rev-parse", "--short=7", "main"]);
    let running = world.start(&["--land"]);
    world.until("a works", |world| world.begun("a") == [1]);
    rewrite(&world);
    world.allow("go");
    assert_eq!((running.wait(LONG).code(), world.state("a")), (13, "blocked".into()));
    let why = format!("moved: main was rewritten: it lacks {before}, which this branch holds");
    assert_eq!((world.why("a"), world.shown("main", "secret")), (why, String::new()));
    let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/a").display().to_string();
    world.sandbox.git(&["-C", &tree, "fetch", "--quiet", "origin"]);
    world.sandbox.git(&["-C", &tree, "rebase", "--quiet", "--onto", "origin/main", &before]);
    let again = world.run(&["--land", "--retry"]);
    assert_eq!((again.code(), world.shown("main", "work-a")), (0, "1\n".into()), "{again:#?}");
    assert_eq!((world.shown("main", "secret"), world.begun("a")), (String::new(), vec![1]));
}

#[test]
fn every_working_tree_of_a_repository_has_the_same_fleet() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let tree = world.sandbox.root().join("other-tree");
    world.sandbox.git(&["worktree", "add", "--quiet", "-b", "wip", &tree.display().to_string()]);
    let ran = run_in(&world, &tree, None, &[]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
}

#[test]
fn another_machine_is_refused_until_the_leases_are_removed_and_then_continues_from_the_branches() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 0);
    let refs = || world.git_there(&["for-each-ref"]);
    let (clone, before) = (cloned(&world, "second/repo"), refs());
    let refused = run_in(&world, &clone, Some("m2"), &["--push"]);
    let told = "crew: another machine started the fleet repo, or it was forgotten here: its leases are at origin\n\
                hint: run it there, or name = \"NAME\" in tasks/fleet.toml makes this one of its own; \
                if nobody runs it any more, ";
    assert!(refused.code() == 1 && refused.stderr.starts_with(told), "{refused:#?}");
    assert_eq!((refs(), world.begun("a")), (before, vec![1]));
    let (_, frees) = refused.stderr.split_once("any more, ").unwrap();
    let mut command = world.sandbox.command("sh");
    command.args(["-c", frees.split_once(" lets it begin here").unwrap().0]).current_dir(&clone);
    Running::start(command, None).wait(LONG).success();
    let ran = run_in(&world, &clone, Some("m2"), &["--push"]);
    assert_eq!((ran.code(), world.work("a", "work-a")), (0, "1\n1\n".into()), "{ran:#?}");
    let again = world.run(&["--push"]);
    assert_eq!((again.code(), again.stderr.starts_with(told)), (1, true), "{again:#?}");
}

#[test]
fn of_two_machines_that_start_a_fleet_at_once_the_loser_keeps_nothing_of_it() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let waits = "#!/bin/sh\ncase $1 in refs/crew/repo/_fleet)\n\
                 mkdir $NOTES/first || exit 0; until test -e $NOTES/go; do sleep 0.05; done ;; esac\n";
    crate::sandbox::write_executable(&world.hub().join("hooks/update"), waits);
    let clone = cloned(&world, "second/repo");
    let late = start_in(&world, &clone, Some("m2"), &["--push"]);
    world.until("first", |world| world.note("first").exists());
    let won = world.run(&["--push"]);
    world.allow("go");
    let late = late.wait(LONG);
    assert_eq!((won.code(), late.code()), (0, 1), "{won:#?} {late:#?}");
    assert!(late.stderr.contains("another machine started the fleet repo"), "{late:#?}");
    assert!(!world.sandbox.root().join("m2/fleets/repo/fleet.json").exists());
}

#[test]
fn a_repository_that_was_cloned_anew_in_its_place_lands_and_burns_no_iteration_in_an_old_tree() {
    let world = FleetWorld::new(TWO)
        .tasks(&["a"], "verify = [\"grep -q 2 work-a\"]")
        .tasks(&["b"], "verify = [\"grep -q 2 work-b\"]\nmax-iterations = 1")
        .shared()
        .ready();
    assert_eq!((world.run(&["--land"]).code(), world.state("b")), (10, "exhausted".into()));
    let repository = world.sandbox.repository();
    let clone = cloned(&world, "clone");
    std::fs::remove_dir_all(&repository).unwrap();
    std::fs::rename(clone, &repository).unwrap();
    let world = world.tasks(&["b", "c"], "verify = [\"grep -q 2 work-*\"]").ready();
    let ran = world.run(&["--land", "--retry"]);
    assert_eq!(
        (world.state("c"), world.state("b")),
        ("completed".into(), "error".into()),
        "{ran:#?}"
    );
    let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/b");
    let why = format!(
        "{} is no working tree of {} any more: move it away, run git worktree prune, then --retry",
        tree.display(),
        repository.display()
    );
    assert_eq!((world.why("b"), world.begun("b")), (why, vec![1]));
    std::fs::rename(&tree, world.sandbox.root().join("aside")).unwrap();
    let again = world.run(&["--land", "--retry"]);
    assert_eq!((again.code(), world.begun("b")), (0, vec![1, 2]), "{again:#?}");
    assert_eq!(["work-b", "work-c"].map(|it| world.shown("main", it)), ["1\n2\n"; 2]);
}

#[test]
fn the_tasks_of_the_working_tree_count_in_which_the_fleet_is_started() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").terms("base = \"main\"").shared().ready();
    let (tree, main) = (world.sandbox.root().join("tree"), world.sandbox.repository());
    assert_eq!(world.run(&["--push"]).code(), 0);
    world.sandbox.git(&["switch", "--quiet", "--create", "feature"]);
    world.sandbox.git(&["worktree", "add", "--quiet", &tree.display().to_string(), "main"]);
    let git = |arguments: &[&str]| {
        world.sandbox.git(&[&["-C", &*tree.display().to_string()], arguments].concat())
    };
    std::fs::write(tree.join("tasks/b.md"), "Do task b.\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "B"]);
    git(&["push", "--quiet", "origin", "main"]);
    let ran = run_in(&world, &tree, None, &[]);
    assert_eq!((ran.code(), world.state("b")), (0, "completed".into()), "{ran:#?}");
    let without = run_in(&world, &main, None, &[]);
    assert_eq!((without.code(), world.state("b")), (0, "completed".into()), "{without:#?}");
}

#[test]
fn a_fleet_goes_on_from_another_working_tree_once_the_one_of_its_start_is_removed() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let tree = world.sandbox.root().join("tree");
    let there = tree.display().to_string();
    world.sandbox.git(&["worktree", "add", "--quiet", "-b", "wip", &there]);
    let world = world.terms("base = \"main\"").ready();
    world.sandbox.git(&["-C", &there, "merge", "--quiet", "main"]);
    assert_eq!(run_in(&world, &tree, None, &["--push"]).code(), 0);
    world.sandbox.git(&["worktree", "remove", "--force", &there]);
    let ran = world.run(&["--push"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
}

#[test]
fn a_start_in_another_working_tree_gives_up_no_task_whose_file_is_where_the_fleet_began() {
    let agent = format!("[ $task != b ] || test -e $NOTES/go || exit 0; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "max-iterations = 2").ready();
    let tree = world.sandbox.root().join("tree");
    let there = tree.display().to_string();
    world.sandbox.git(&["worktree", "add", "--quiet", "-b", "wip", &there]);
    world.sandbox.git(&["-C", &there, "mv", "tasks/b.md", "tasks/x.md"]);
    let running = world.start(&["--slots", "1"]);
    world.until("a is done", |world| world.state("a") == "completed");
    running.signal(Signal::INT);
    running.wait(LONG);
    world.allow("go");
    let ran = run_in(&world, &tree, None, &[]);
    let done = ["a", "b", "x"].map(|task| world.state(task));
    assert_eq!((ran.code(), done), (0, ["completed"; 3].map(str::to_owned)), "{ran:#?}");
    let mut again = world.sandbox.command(world.sandbox.build().path());
    again.args(["fleet", "run", "tasks"]).current_dir(&tree);
    let again = Running::start(again, None).wait(LONG);
    assert_eq!(again.code(), 0, "what was trusted there is trusted: {again:#?}");
}

/// The settings of a person who works with another agent.
fn another_agent(world: &FleetWorld) {
    let settings = "loop.agent = \"other\"\nagents.other.command = [\"other\"]\n";
    std::fs::write(world.sandbox.home().join(".config/crew/config.toml"), settings).unwrap();
    world.sandbox.program("other", "cat > /dev/null; echo '<promise>COMPLETE</promise>'");
}

#[test]
fn an_agent_that_a_person_changes_counts_from_the_next_start_on_that_can_take_it() {
    let world = FleetWorld::new("wait_for never").tasks(&["a"], "").shared().ready();
    let running = world.start(&["--push"]);
    world.until("a works", |world| world.begun("a") == [1]);
    world.crew(&["fleet", "cancel", "a", "--now"]).success();
    running.wait(LONG);
    another_agent(&world);
    assert_ne!(world.run(&["--push"]).code(), 0, "it stays cancelled");
    let ran = world.run(&["--push", "--retry"]);
    assert!(!ran.stderr.contains("another machine"), "{ran:#?}");
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
}
