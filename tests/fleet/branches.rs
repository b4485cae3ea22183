//! Branches: an agent that leaves another one checked out, a main that moves again while a task
//! goes back to its loop, and completed work that another machine lands.

use super::{FleetWorld, LONG, ONE, TWO};
use crate::child::Running;

#[test]
fn a_branch_that_an_agent_makes_is_taken_in_and_the_next_task_builds_on_it() {
    let agent = "[ $task = b ] || [ $call -gt 1 ] || git checkout --quiet -b feature
        task=$(basename $PWD); ls > $NOTES/seen-$task; echo x > work-$task; claim";
    let world = FleetWorld::new(agent)
        .tasks(&["a"], "")
        .file("tasks/b.md", "+++\nafter = [\"a\"]\n+++\nDo b.\n")
        .ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.work("a", "work-a")), (0, "x\n".into()), "{ran:#?}");
    assert!(world.noted("seen-b").contains("work-a"), "{}", world.noted("seen-b"));
}

#[test]
fn a_conflict_between_tasks_that_come_before_another_names_them() {
    let world = FleetWorld::new("echo $task > same; claim").file("same", "base\n");
    let world = world.tasks(&["a", "b"], "").tasks(&["c"], "after = [\"a\", \"b\"]").ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("c")), (13, "blocked".into()), "{ran:#?}");
    let why = "conflict: b, which comes before, and main or a change the same lines: same";
    assert_eq!(world.why("c"), why);
}

#[test]
fn a_tree_that_is_left_on_an_older_commit_takes_nothing_from_the_pushed_branch() {
    let agent = "echo x > work-$iteration
        case $iteration in 2) git checkout --quiet HEAD~1 ;; 3) claim ;; esac";
    let world = FleetWorld::new(agent)
        .tasks(&["a"], "max-iterations = 5\nverify = [\"test -e work-3\"]")
        .shared()
        .ready();
    let ran = world.run(&["--push"]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    let why =
        "its branch lacks its work: no branch is checked out, without all commits of fleet/repo/a";
    assert_eq!((world.why("a").as_str(), world.work("a", "work-1")), (why, "x\n".into()));
    let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/a").display().to_string();
    let beside = world.sandbox.git(&["-C", &tree, "rev-parse", "HEAD"]);
    world.sandbox.git(&["-C", &tree, "switch", "--quiet", "fleet/repo/a"]);
    let early = world.run(&["--push", "--retry"]);
    assert_eq!((early.code(), world.state("a")), (13, "blocked".into()), "{early:#?}");
    assert_eq!(world.why("a"), "its branch lacks its work: `test -e work-3` fails on it");
    world.sandbox.git(&["-C", &tree, "cherry-pick", &format!("fleet/repo/a..{beside}")]);
    let again = world.run(&["--push", "--retry"]);
    assert_eq!((again.code(), world.work("a", "work-3")), (0, "x\n".into()), "{again:#?}");
    assert_eq!(world.noted("calls").lines().count(), 3, "no agent ran again");
}

/// Pushes a commit to main, once, as a person does meanwhile.
const MOVES: &str = "if mkdir $NOTES/moved 2>/dev/null; then
git clone --quiet $HUB $NOTES/person; cd $NOTES/person; echo person > same
git commit --quiet --all --message Person; git push --quiet origin main; exit 1; fi";

#[test]
fn conflicts_that_come_with_a_red_check_are_told_and_no_marker_lands() {
    let agent = "case $call in 1) echo task > same ;; 3) echo both > same ;; esac; claim";
    let world =
        FleetWorld::new(agent).file("same", "base\n").tasks(&["a"], "max-iterations = 4").shared();
    let moves = MOVES.replace("$HUB", &world.hub().display().to_string());
    world.sandbox.write("moves.sh", &moves);
    let world = world.terms("[land]\ncheck = [\"sh moves.sh\"]").ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.shown("main", "same")), (0, "both\n".into()), "{ran:#?}");
    assert!(world.prompt("a", 2).contains("have conflicts, committed with their markers"));
    assert_eq!(world.noted("calls").lines().count(), 3);
}

#[test]
fn a_conflict_that_a_person_has_merged_and_settled_is_found_on_main_and_no_agent_touches_it() {
    let agent = "[ $task = a ] || wait_for go; [ $task.$call != b.2 ] || exit 0
        echo $task > same; claim";
    let world = FleetWorld::new(agent)
        .file("same", "base\n")
        .tasks(&["a", "b"], "max-iterations = 2\nverify = [\"test -e same\"]")
        .terms("slots = 2")
        .shared()
        .ready();
    let running = world.start(&["--land"]);
    world.until("a is on main", |world| world.shown("main", "same") == "a\n");
    world.allow("go");
    assert_eq!((running.wait(LONG).code(), world.state("b")), (13, "blocked".into()));
    let begun = world.begun("b").len();
    world.sandbox.git(&["pull", "--quiet", "origin", "main"]);
    world.sandbox.git(&["fetch", "--quiet", "origin"]);
    world.sandbox.git(&["merge", "--quiet", "--no-edit", "origin/fleet/repo/b"]);
    let world = world.file("same", "both\n");
    world.sandbox.git(&["commit", "--quiet", "--all", "--message", "Settled"]);
    world.sandbox.git(&["push", "--quiet", "origin", "main"]);
    let ran = world.run(&["--land", "--retry"]);
    assert_eq!((ran.code(), world.shown("main", "same")), (0, "both\n".into()), "{ran:#?}");
    let told = "landed: main has its work already";
    assert!(ran.stdout.contains(told) && !ran.stdout.contains("landed as"), "{ran:#?}");
    let status = world.crew(&["fleet", "status"]).success();
    assert!(status.contains("  landed    b, a    main\n"), "{status}");
    assert_eq!(world.begun("b").len(), begun);
}

#[test]
fn a_task_whose_setup_failed_begins_in_the_same_working_tree_once_it_is_fixed() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").terms("setup = \"false\"").shared().ready();
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (10, "error".into()));
    let world = world.terms("setup = \"true\"");
    let ran = world.run(&["--land", "--retry"]);
    assert_eq!((ran.code(), world.shown("main", "work-a")), (0, "1\n".into()), "{ran:#?}");
    let trees = world.sandbox.git(&["worktree", "list"]);
    assert!(!trees.contains("fleet/repo/a"), "{trees}");
}

#[test]
fn work_whose_landing_was_cut_off_lands_from_another_machine_without_an_agent() {
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "max-iterations = 1")
        .terms("[land]\ncheck = [\"until test -e $NOTES/free; do sleep 0.1; done\"]")
        .by_hand(&["--land"]);
    let first = world.on("m1").job("a");
    world.until("it lands", |world| world.phase("a") == "lands");
    first.signal(rustix::process::Signal::TERM);
    let first = first.wait(LONG);
    assert_eq!((first.code(), world.state("a")), (143, "waiting".into()), "{first:#?}");
    world.allow("free");
    let second = world.on("m2").job("a").wait(LONG);
    assert_eq!((second.code(), world.begun("a")), (0, vec![1]), "{second:#?}");
    assert_eq!(world.shown("main", "work-a"), "1\n");
    assert!(world.lease("a")["state"]["proof"].is_string(), "{:#}", world.lease("a"));
}

#[test]
fn a_fleet_keeps_its_base_whatever_is_checked_out_at_a_later_start() {
    let world =
        FleetWorld::new(ONE).tasks(&["a"], "verify = [\"false\"]\nmax-iterations = 1").ready();
    assert_eq!(world.run(&[]).code(), 10);
    world.sandbox.git(&["switch", "--quiet", "--create", "wip"]);
    let world = world.file("draft", "wip\n").tasks(&["b"], "").ready();
    let ran = world.run(&[]);
    let told = "crew: the tasks start from main, as the fleet was started, and not from wip\n\
                hint: base = \"wip\" in fleet.toml changes that\n";
    assert!(ran.code() == 10 && ran.stderr.starts_with(told), "{ran:#?}");
    assert_eq!([world.work("b", "work-b"), world.work("b", "draft")], ["1\n", ""]);
    let world = world.terms("base = \"wip\"").tasks(&["c"], "").ready();
    assert_eq!(world.run(&[]).code(), 10);
    assert_eq!(world.work("c", "draft"), "wip\n");
    world.sandbox.git(&["switch", "--quiet", "main"]);
    let world = world.terms("");
    world.sandbox.git(&["branch", "--quiet", "--force", "--delete", "wip"]);
    let refused = world.run(&[]);
    let told = "crew: the tasks start from wip, as the fleet was started, and that is no branch here any more\n\
                hint: base = \"main\" in fleet.toml changes that\n";
    assert_eq!((refused.code(), refused.stderr.as_str()), (1, told), "{refused:#?}");
    world.crew(&["fleet", "cancel", "a"]).success();
    let world = world.tasks(&["d"], "").ready();
    assert_eq!(world.run(&[]).code(), 10, "it is over, and begins anew");
    assert_eq!(world.work("d", "work-d"), "1\n");
}

#[test]
fn finished_work_lands_where_it_began_and_not_on_the_branch_of_the_day() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 0);
    world.sandbox.git(&["switch", "--quiet", "--create", "feature"]);
    world.sandbox.git(&["push", "--quiet", "origin", "feature"]);
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.shown("main", "work-a")), (0, "1\n".into()), "{ran:#?}");
    assert_eq!(world.shown("feature", "work-a"), "");
}

#[test]
fn commits_of_a_person_that_are_not_pushed_do_not_land_with_a_task() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let world = world.file("draft", "unpushed\n");
    world.sandbox.git(&["add", "draft"]);
    world.sandbox.git(&["commit", "--quiet", "--message", "Draft"]);
    assert_eq!(world.crew(&["fleet", "run", "tasks", "--yes", "--slots", "1"]).code(), 0);
    let refused = world.run(&["--land"]);
    let told = "crew: fleet/repo/a began on commits that origin/main lacks, and would land them too\n\
                hint: git push origin main\n";
    assert_eq!((refused.code(), refused.stderr.as_str()), (1, told), "{refused:#?}");
    world.sandbox.git(&["push", "--quiet", "origin", "main"]);
    assert_eq!(world.run(&["--land"]).code(), 0);
    assert_eq!(world.git_there(&["log", "--format=%s", "main"]), "Do task a.\nDraft\nTasks\nBegin");
}

#[test]
fn a_task_that_is_tried_again_has_its_checks_run_with_its_slot_and_once() {
    let check = "echo x >> $NOTES/checks; test -n \\\"$CREW_SLOT\\\" && grep -q 2 work-a";
    let terms = |most| format!("verify = [\"{check}\"]\nmax-iterations = {most}");
    let world = FleetWorld::new(TWO).tasks(&["a"], &terms(1)).ready();
    assert_eq!(world.run(&[]).code(), 10);
    let before = world.noted("checks").lines().count();
    let world = world.tasks(&["a"], &terms(3));
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(world.noted("checks").lines().count(), before + 1);
}

#[test]
fn completed_work_lands_by_its_branch_though_its_working_tree_is_gone() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "max-iterations = 1").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/a").display().to_string();
    world.sandbox.git(&["worktree", "remove", &tree]);
    let world = world.shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
    assert_eq!(world.shown("main", "work-a"), "1\n");
}

#[test]
fn what_setup_makes_in_a_new_working_tree_is_nobodys_work() {
    let agent = "echo x > work-$iteration; [ $call -lt 2 ] || claim";
    let world = FleetWorld::new(agent)
        .tasks(&["a"], "max-iterations = 1")
        .terms("setup = \"date +%N > made-by-setup\"")
        .ready();
    assert_eq!(world.run(&[]).code(), 10);
    let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/a").display().to_string();
    world.sandbox.git(&["worktree", "remove", "--force", &tree]);
    let world = world.tasks(&["a"], "max-iterations = 3");
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    let files = ["work-1", "work-2", "made-by-setup"].map(|file| world.work("a", file));
    assert_eq!(files, ["x\n", "x\n", ""]);
}

#[test]
fn a_shallow_clone_starts_no_fleet_that_pushes() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let (hub, clone) = (world.hub().display().to_string(), world.sandbox.root().join("shallow"));
    let from = format!("file://{hub}");
    world.sandbox.git(&["clone", "--quiet", "--depth=1", &from, &clone.display().to_string()]);
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["fleet", "run", "tasks", "--land", "--yes"]).current_dir(&clone);
    let ran = Running::start(command, None).wait(LONG);
    let told = "crew: this clone is shallow, and a fleet that pushes needs all of it\n\
                hint: git fetch --unshallow\n";
    assert_eq!((ran.code(), ran.stderr.as_str()), (1, told), "{ran:#?}");
}
