//! Other clones and working trees of a fleet's repository, and a main branch that somebody rewrites
//! meanwhile.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

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
fn a_clone_in_a_folder_of_another_name_is_told_of_the_fleet_that_its_remote_has() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--land"]).code(), 0);
    let clone = cloned(&world, "shop2");
    let told = run_in(&world, &clone, Some("second"), &["--land", "--dry-run"]);
    let expected = "crew: the fleet shop2 is new, and its remote has repo\n\
                    hint: name = \"repo\" in fleet.toml joins it, if these are its tasks\n";
    assert_eq!((told.code(), told.stderr.as_str()), (0, expected), "{told:#?}");
    std::fs::write(clone.join("tasks/fleet.toml"), "name = \"repo\"\n").unwrap();
    let joined = run_in(&world, &clone, Some("second"), &["--land"]);
    assert_eq!((joined.code(), world.begun("a")), (0, vec![1]), "{joined:#?}");
}

#[test]
fn a_clone_whose_tasks_are_older_changes_and_cancels_nothing() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let clone = cloned(&world, "second/repo");
    assert_eq!(run_in(&world, &clone, Some("home-2"), &["--push"]).code(), 0);
    let world = world.tasks(&["b"], "verify = [\"false\"]\nmax-iterations = 1").ready();
    assert_eq!(world.run(&["--push"]).code(), 10);
    let refused = run_in(&world, &clone, Some("home-2"), &["--push"]);
    let told = "crew: tasks/b.md has changed on the remote's main, and this clone lacks that\n\
                hint: git pull, or merge main\n";
    assert_eq!((refused.code(), refused.stderr.as_str()), (1, told), "{refused:#?}");
    assert_eq!(world.state("b"), "exhausted");
    world.sandbox.git(&["-C", &clone.display().to_string(), "pull", "--quiet"]);
    assert_eq!(run_in(&world, &clone, Some("home-2"), &["--push"]).code(), 10);
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
    let stale = run_in(&world, &main, None, &[]);
    assert!(stale.stderr.contains("tasks/b.md has changed on the remote's main"), "{stale:#?}");
    assert_eq!(world.state("b"), "completed");
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
fn the_slots_that_are_typed_on_one_machine_are_not_those_of_another() {
    let agent = format!(
        "touch $NOTES/began.$task
        case $task in a) wait_for go ;; b) wait_for began.c ;; c) wait_for began.b ;; esac; {ONE}"
    );
    let world = FleetWorld::new(&agent).tasks(&["a"], "").tasks(&["b", "c"], "after = 'a'");
    let world = world.shared().ready();
    let first = world.start(&["--push", "--slots", "2"]);
    world.until_noted("began.a");
    let clone = cloned(&world, "second/repo");
    for (home, more, typed) in
        [("m2", &["--slots", "1"][..], Value::from(1)), ("m3", &[], Value::Null)]
    {
        let joins = start_in(&world, &clone, Some(home), &[&["--push"], more].concat());
        let terms = world.sandbox.root().join(home).join("fleets/repo/fleet.json");
        world.until("it has joined", |_| terms.exists());
        // It may not hear signals yet.
        joins.signal(Signal::KILL);
        joins.wait(LONG);
        let terms = std::fs::read_to_string(terms).unwrap();
        let terms: Value = serde_json::from_str(&terms).unwrap();
        assert_eq!((home, &terms["typed"]["slots"]), (home, &typed));
    }
    // The first machine has tasks to start yet, and none of them in a folder of another.
    std::fs::remove_dir_all(clone).unwrap();
    world.allow("go");
    let ran = first.wait(LONG);
    assert_eq!((ran.code(), world.most_at_once()), (0, 2), "{ran:#?}");
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

#[test]
fn who_joins_a_fleet_takes_the_agent_that_it_was_started_with() {
    let world = FleetWorld::new(&format!("[ $task = b ] || wait_for go; {ONE}"))
        .tasks(&["a", "b"], "")
        .terms("slots = 1")
        .shared()
        .ready();
    let first = world.start(&["--push"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let clone = cloned(&world, "second/repo");
    let of_another = "loop.agent = \"other\"\nagents.other.command = [\"other\"]\n";
    std::fs::write(world.sandbox.home().join(".config/crew/config.toml"), of_another).unwrap();
    let completes = "cat > /dev/null; echo '<promise>COMPLETE</promise>'";
    let program = world.sandbox.program("other", completes);
    let joins = start_in(&world, &clone, Some("m2"), &["--push", "--slots", "1"]);
    let told = "crew: the agent that another machine has started them with works on: a (`agent`, \
                permissions accept-edits), b (`agent`, permissions accept-edits)\n";
    world.until("it is told", |_| joins.stderr().contains(told));
    world.until("b is done there", |world| world.state("b") == "completed");
    assert_eq!(world.begun("b"), [1], "by the agent of the fleet");
    for running in [joins, first] {
        running.signal(Signal::INT);
        running.wait(LONG);
    }
    std::fs::remove_file(program.with_file_name("agent")).unwrap();
    let ran = run_in(&world, &clone, Some("m2"), &["--push"]);
    let told = "crew: the agent of another machine is not here, so yours works on: a\n";
    assert!(ran.stderr.contains(told), "{ran:#?}");
    assert_eq!((ran.code(), world.state("a")), (0, "completed".into()), "{ran:#?}");
}

/// A start in a clone on another machine, where nobody answers.
fn unanswered(world: &FleetWorld, clone: &Path, more: &[&str]) -> Ran {
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["fleet", "run", "tasks"]).args(more).current_dir(clone);
    command.env("CREW_HOME", world.sandbox.root().join("m2"));
    let ran = Running::start(command, None).wait(LONG);
    assert_eq!(ran.code(), 2, "{ran:#?}");
    ran
}

/// The texts and agents that a start has asked about, without their fingerprints.
fn asked(ran: &Ran) -> Vec<String> {
    let parts = ran.stdout.lines().filter_map(|line| line.split_once(", fingerprint "));
    let text =
        |what: &str| what.find("[fleet ").map_or_else(String::new, |at| what[at..].to_owned());
    parts.map(|(what, rest)| format!("{}{}", text(what), &rest[12..])).collect()
}

/// The settings of a person who works with another agent.
fn another_agent(world: &FleetWorld) {
    let settings = "loop.agent = \"other\"\nagents.other.command = [\"other\"]\n";
    std::fs::write(world.sandbox.home().join(".config/crew/config.toml"), settings).unwrap();
    world.sandbox.program("other", "cat > /dev/null; echo '<promise>COMPLETE</promise>'");
}

/// What is asked about an agent of somebody else.
const OF_ANOTHER: &str =
    "[fleet repo] an agent of another machine, permissions accept-edits: agent";

#[test]
fn the_agent_of_another_machine_works_here_only_once_a_person_has_trusted_it() {
    let asks = "echo '<promise>BLOCKED: no</promise>'";
    let world = FleetWorld::new(asks).tasks(&["a", "b", "c"], "").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 13);
    let clone = cloned(&world, "second/repo");
    another_agent(&world);
    // What the folder says is trusted there, and nothing is tried again.
    assert_eq!(run_in(&world, &clone, Some("m2"), &["--push"]).code(), 13);
    std::fs::remove_file(clone.join("tasks/c.md")).unwrap();
    let refused = unanswered(&world, &clone, &["--retry"]);
    assert_eq!(asked(&refused), [OF_ANOTHER], "{refused:#?}");
    assert_eq!((world.begun("a"), world.state("c")), (vec![1], "blocked".into()), "no answer");
    let world = world.acts(ONE);
    let ran = run_in(&world, &clone, Some("m2"), &["--retry"]);
    let begun = ["a", "b", "c"].map(|task| world.begun(task));
    assert_eq!((ran.code(), begun), (10, [vec![1, 2], vec![1, 2], vec![1]]), "{ran:#?}");
    assert!(ran.stderr.contains("crew: c is cancelled: its file is gone\n"), "{ran:#?}");
}

#[test]
fn what_a_landing_may_send_back_to_the_agent_of_another_machine_is_asked_about_first() {
    let world = FleetWorld::new(ONE).settings("[on]\niteration_end = 'true'\n");
    let world = world.tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 0);
    let clone = cloned(&world, "second/repo");
    another_agent(&world);
    assert_eq!(run_in(&world, &clone, Some("m2"), &["--push"]).code(), 0);
    let ran = run_in(&world, &clone, Some("m2"), &["--land"]);
    assert_eq!((ran.code(), asked(&ran)), (0, vec![OF_ANOTHER.to_owned()]), "{ran:#?}");
    let reaction = "[fleet repo] a reaction of another machine, on iteration_end: true\n";
    assert!(ran.stdout.contains(reaction), "{ran:#?}");
    assert_eq!(world.shown("main", "work-a"), "1\n");
}

#[test]
fn what_runs_on_another_machine_is_asked_about_where_it_may_be_taken_up() {
    let world = FleetWorld::new("wait_for go; claim").tasks(&["a"], "").shared().ready();
    let clone = cloned(&world, "second/repo");
    let world = world.tasks(&["a"], "verify = 'true'");
    let running = world.start(&["--push"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let joins = start_in(&world, &clone, Some("m2"), &["--push"]);
    world.until("it joins", |_| joins.stderr().contains("has changed, but it runs"));
    world.allow("go");
    let (ran, joined) = (running.wait(LONG), joins.wait(LONG));
    assert_eq!((ran.code(), joined.code()), (0, 0), "{ran:#?}{joined:#?}");
    let asked = asked(&joined);
    assert_eq!(asked, ["[fleet repo] task a: ", "[fleet repo] task a: '--verify=true'"]);
}

#[test]
fn a_text_that_only_another_machine_has_runs_here_once_a_person_has_trusted_it() {
    let asks = "echo '<promise>BLOCKED: no</promise>'";
    let world = FleetWorld::new(asks).tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 13);
    let clone = cloned(&world, "second/repo");
    assert_eq!(run_in(&world, &clone, Some("m2"), &["--push"]).code(), 13);
    let world = world.tasks(&["a", "b"], "verify = 'true'");
    assert_eq!(world.run(&["--push", "--retry"]).code(), 13);
    let of = |task: &str| format!("[fleet repo] task {task}: '--verify=true'");
    let refused = unanswered(&world, &clone, &["--retry"]);
    assert_eq!(asked(&refused), [of("a")], "b has no file there: {refused:#?}");
    let world = world.acts(ONE);
    let ran = run_in(&world, &clone, Some("m2"), &["--retry"]);
    let begun = ["a", "b"].map(|task| world.begun(task));
    assert_eq!((ran.code(), begun), (13, [vec![1, 2, 3], vec![1]]), "{ran:#?}");
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
