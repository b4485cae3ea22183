//! What a person does between two starts of a fleet: another remote, work that is turned down, a
//! branch that is removed, a check that is added.

use super::{FleetWorld, LONG, ONE, TWO};

/// The fleet as its remote has it.
fn fleet(world: &FleetWorld) -> String {
    world.git_there(&["log", "-1", "--format=%B", "refs/crew/repo/_fleet"])
}

#[test]
fn a_fleet_stays_at_its_remote_though_the_branch_that_is_checked_out_follows_another() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").tasks(&["b"], "max-iterations = 1").ready();
    let world = world.shared().ready();
    let upstream = world.sandbox.root().join("upstream.git").display().to_string();
    world.sandbox.git(&[
        "clone",
        "--quiet",
        "--bare",
        &world.hub().display().to_string(),
        &upstream,
    ]);
    world.sandbox.git(&["remote", "add", "upstream", &upstream]);
    world.sandbox.git(&["fetch", "--quiet", "upstream"]);
    let world = world.acts(&format!("[ $task = b ] || {{ {ONE}; }}"));
    assert_eq!(world.run(&["--land"]).code(), 10);
    world.sandbox.git(&["checkout", "--quiet", "-b", "wip", "upstream/main"]);
    let ran = world.run(&["--land"]);
    assert_eq!(
        (ran.code(), world.begun("a"), world.begun("b")),
        (10, vec![1], vec![1]),
        "{ran:#?}"
    );
    assert_eq!(world.sandbox.git(&["-C", &upstream, "for-each-ref", "refs/crew"]), "");
}

#[test]
fn a_remote_that_moved_without_the_leases_is_refused_and_with_them_is_the_same_fleet() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    assert_eq!(world.run(&["--land"]).code(), 0);
    let (old, new) = (world.hub(), world.sandbox.root().join("new.git").display().to_string());
    let old = old.display().to_string();
    world.sandbox.git(&["init", "--quiet", "--bare", "--initial-branch=main", &new]);
    world.sandbox.git(&["-C", &old, "push", "--quiet", &new, "refs/heads/*:refs/heads/*"]);
    world.sandbox.git(&["remote", "set-url", "origin", &new]);
    world.sandbox.git(&["pull", "--quiet", "origin", "main"]);
    let stays = world.run(&[]);
    let told = format!(
        "crew: the fleet stays at {old}, which is the address of no remote here any more\n\
         hint: --push or --land goes to the one that there is\n"
    );
    assert!(stays.code() == 0 && stays.stderr.contains(&told), "{stays:#?}");
    std::fs::rename(&old, format!("{old}.away")).unwrap();
    let unreached = world.run(&[]);
    std::fs::rename(format!("{old}.away"), &old).unwrap();
    let told = "; --push or --land goes to the address that there is now\n";
    assert!(unreached.code() == 1 && unreached.stderr.ends_with(told), "{unreached:#?}");
    let refused = world.run(&["--land"]);
    let told = format!(
        "crew: the leases of the fleet repo are at {old}, and origin has none of them\n\
         hint: push refs/crew/repo/* to origin, or crew fleet forget repo to begin anew there\n"
    );
    assert_eq!((refused.code(), refused.stderr), (1, told));
    world.sandbox.git(&["-C", &old, "push", "--quiet", &new, "refs/crew/*:refs/crew/*"]);
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
}

#[test]
fn completed_work_that_a_person_turns_down_does_not_land_later() {
    let world = FleetWorld::new(ONE).tasks(&["a", "b", "c"], "").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 0);
    world.crew(&["fleet", "cancel", "b"]).success();
    world.sandbox.git(&["rm", "--quiet", "tasks/a.md"]);
    let world = world.ready();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    assert!(ran.stderr.contains("crew: a is cancelled: its file is gone\n"), "{ran:#?}");
    let ends = world.states(&["a", "b", "c"]);
    let expected = [("a", "cancelled"), ("b", "cancelled"), ("c", "completed")];
    assert_eq!(ends, expected.map(|(task, end)| (task, end.to_owned())));
    let on_main = ["work-a", "work-b", "work-c"].map(|file| world.shown("main", file));
    assert_eq!(on_main, ["", "", "1\n"]);
    let again = world.run(&["--land", "--retry"]);
    assert_eq!((again.code(), world.shown("main", "work-b")), (10, "1\n".into()), "{again:#?}");
    assert_eq!(world.begun("b"), [1], "its work was completed before");
}

#[test]
fn a_task_that_ended_undone_is_given_up_once_its_file_is_removed() {
    let world = FleetWorld::new("true").tasks(&["a"], "max-iterations = 1").ready();
    assert_eq!((world.run(&[]).code(), world.state("a")), (10, "exhausted".into()));
    world.sandbox.git(&["mv", "tasks/a.md", "tasks/b.md"]);
    let world = world.acts(ONE).ready();
    let ran = world.run(&[]);
    let told = "crew: a is cancelled: its file is gone\n";
    assert!(ran.stderr.contains(told), "{ran:#?}");
    let ends = ["a", "b"].map(|task| world.state(task));
    assert_eq!(ends, ["cancelled", "completed"].map(str::to_owned));
}

#[test]
fn a_landing_check_that_is_added_holds_for_the_tasks_that_run() {
    let agent = format!("wait_for go; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "max-iterations = 1").shared().ready();
    let running = world.start(&["--land"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let world = world.terms("[land]\ncheck = [\"test -e never\"]").ready();
    let joined = world.start(&["--land"]);
    world.until("the new terms are recorded", |world| fleet(world).contains("never"));
    world.allow("go");
    assert_eq!((running.wait(LONG).code(), joined.wait(LONG).code()), (13, 13));
    let red = "red: `test -e never` fails on main with this work";
    assert!(world.why("a").starts_with(red), "{}", world.why("a"));
    assert_eq!(world.shown("main", "work-a"), "");
}

#[test]
fn a_loop_that_is_sent_back_is_held_to_a_landing_check_that_was_added_meanwhile() {
    let agent = format!("wait_for go; [ $iteration -lt 3 ] || touch extra; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").shared().ready();
    let running = world.start(&["--land"]);
    world.until("a works", |world| world.begun("a") == [1]);
    let world = world.terms("[land]\ncheck = [\"test -e extra\"]").ready();
    let joined = world.start(&["--land"]);
    world.until("the new terms are recorded", |world| fleet(world).contains("extra"));
    world.allow("go");
    assert_eq!((running.wait(LONG).code(), joined.wait(LONG).code()), (0, 0));
    assert_eq!(
        (world.begun("a"), world.shown("main", "work-a")),
        (vec![1, 2, 3], "1\n2\n3\n".into())
    );
}

/// A landing's check that waits for the note `go`.
fn waits(then: &str) -> String {
    let waits = "touch $NOTES/lands; until test -e $NOTES/go; do sleep 0.05; done";
    format!("[land]\ncheck = [\"{waits}; {then}\"]")
}

#[test]
fn a_red_check_that_a_person_corrects_while_it_runs_sends_nothing_back() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").terms(&waits("false")).shared().ready();
    let running = world.start(&["--land"]);
    world.until_noted("lands");
    let world = world.terms("[land]\ncheck = [\"test -e work-a\"]").ready();
    let joined = world.start(&["--land"]);
    world.until("the new terms are recorded", |world| fleet(world).contains("work-a"));
    world.allow("go");
    assert_eq!((running.wait(LONG).code(), joined.wait(LONG).code()), (0, 0));
    assert_eq!((world.begun("a"), world.shown("main", "work-a")), (vec![1], "1\n".into()));
}

#[test]
fn a_branch_that_is_being_landed_becomes_a_request_once_a_person_wants_that() {
    let world = FleetWorld::new(ONE).tasks(&["a", "b"], "").terms(&waits("true")).shared().ready();
    world
        .sandbox
        .program("gh", "[ \"$1 $2\" != 'pr create' ] || echo \"https://example.invalid/$4\"");
    let running = world.start(&["--land"]);
    world.until_noted("lands");
    let joined = world.start(&["--land", "pr"]);
    world.until("requests are wanted", |world| fleet(world).contains("\"pr\""));
    world.allow("go");
    assert_eq!((running.wait(LONG).code(), joined.wait(LONG).code()), (0, 0));
    for task in ["a", "b"] {
        let address = format!("https://example.invalid/fleet/repo/{task}");
        assert_eq!(world.lease(task)["state"]["landed"]["request"], address);
    }
    assert_eq!(world.git_there(&["log", "--format=%s", "main"]), "Tasks\nBegin");
}

#[test]
fn a_landing_check_that_a_person_corrects_holds_for_the_task_that_it_sent_back() {
    let agent =
        format!("[ $call != 2 ] || {{ echo '<promise>BLOCKED: no</promise>'; exit; }}\n{ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "");
    let world = world.terms("[land]\ncheck = [\"test -e never\"]").shared().ready();
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (13, "blocked".into()));
    let world = world.terms("[land]\ncheck = [\"test -e work-a\"]").ready();
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.shown("main", "work-a")), (0, "1\n3\n".into()), "{ran:#?}");
}

#[test]
fn work_in_the_fleets_folder_that_a_person_squashed_onto_main_is_found_there() {
    let agent = format!("echo more >> tasks/note; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "").file("tasks/note", "one\n");
    let world = world.shared().ready();
    assert_eq!((world.run(&["--land"]).code(), world.state("a")), (13, "blocked".into()));
    world.sandbox.git(&["fetch", "--quiet", "origin"]);
    world.sandbox.git(&["merge", "--quiet", "--squash", "origin/fleet/repo/a"]);
    let world = world.ready();
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "{ran:#?}");
}

#[test]
fn a_landing_does_not_depend_on_how_a_person_likes_their_merges() {
    for (name, value) in
        [("merge.ff", "false"), ("merge.ff", "only"), ("merge.verifySignatures", "true")]
    {
        let world = FleetWorld::new(ONE).tasks(&["a", "b"], "").shared().ready();
        world.sandbox.git(&["config", name, value]);
        let ran = world.run(&["--land"]);
        assert_eq!(ran.code(), 0, "{name}={value}: {ran:#?}");
    }
}

#[test]
fn a_task_builds_on_one_whose_branch_was_merged_and_deleted() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/a").display().to_string();
    world.sandbox.git(&["merge", "--quiet", "fleet/repo/a"]);
    world.sandbox.git(&["worktree", "remove", "--force", &tree]);
    world.sandbox.git(&["branch", "--quiet", "--delete", "fleet/repo/a"]);
    let world = world.tasks(&["b"], "after = [\"a\"]\nverify = [\"test -e work-a\"]").ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.state("b")), (0, "completed".into()), "{ran:#?}");
}

#[test]
fn a_task_that_is_begun_anew_builds_again_on_those_before_it() {
    let agent = format!("[ $task = a ] || test -e $NOTES/go || exit 0; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a"], "");
    let terms = "after = [\"a\"]\nverify = [\"test -e work-a\"]\nmax-iterations = ";
    let world = world.tasks(&["b"], &format!("{terms}1")).ready();
    assert_eq!(world.run(&[]).code(), 10);
    let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/b").display().to_string();
    world.sandbox.git(&["worktree", "remove", "--force", &tree]);
    world.sandbox.git(&["branch", "--quiet", "-D", "fleet/repo/b"]);
    world.allow("go");
    let world = world.tasks(&["b"], &format!("{terms}2")).ready();
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.state("b")), (0, "completed".into()), "{ran:#?}");
}

#[test]
fn what_a_local_fleet_kept_goes_to_the_remote_before_a_node_may_take_it() {
    let agent = format!("[ $task = b ] && {{ {ONE}; exit 0; }}; {TWO}");
    let world = FleetWorld::new(&agent).tasks(&["b"], "").tasks(&["a"], "max-iterations = 1");
    let world = world.ready();
    assert_eq!(world.run(&[]).code(), 10);
    let world = world.tasks(&["a"], "max-iterations = 2").by_hand(&["--retry"]);
    for task in ["a", "b"] {
        let ran = world.on("second").job(task).wait(LONG);
        assert_eq!(ran.code(), 0, "{task}: {ran:#?}");
    }
    assert_eq!((world.begun("a"), world.begun("b")), (vec![1, 2], vec![1]));
    assert_eq!(
        (world.work("a", "work-a"), world.work("b", "work-b")),
        ("1\n2\n".into(), "1\n".into())
    );
}

#[test]
fn a_changed_task_takes_its_new_text_also_after_a_start_that_did_not_retry_it() {
    for more in [None, Some("--push")] {
        let world = FleetWorld::new(TWO).tasks(&["a"], "max-iterations = 1").shared().ready();
        let run =
            |with: &[&str]| world.run(&with.iter().copied().chain(more).collect::<Vec<_>>()).code();
        assert_eq!(run(&[]), 10);
        world.sandbox.write("tasks/a.md", "+++\nmax-iterations = 2\n+++\nDo it in the new way.\n");
        assert_eq!(run(&[]), 10);
        assert_eq!(run(&["--retry"]), 0);
        assert!(world.prompt("a", 2).contains("in the new way"), "{more:?}");
    }
}

#[test]
fn a_retry_leaves_what_has_landed_though_its_file_was_changed_before_it_did() {
    let agent = format!("[ $task = a ] || exit 0; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "max-iterations = 1").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 10);
    let world = world.tasks(&["a"], "max-iterations = 2").ready();
    assert_eq!(world.run(&["--land"]).code(), 10);
    let landed = world.git_there(&["rev-parse", "main"]);
    let again = world.run(&["--land", "--retry"]);
    assert_eq!((again.code(), world.begun("a")), (10, vec![1]), "{again:#?}");
    assert!(!again.stdout.contains("a              starts"), "{again:#?}");
    assert_eq!(world.git_there(&["rev-parse", "main"]), landed);
}

#[test]
fn what_was_completed_before_the_whole_fleet_was_cancelled_may_land() {
    let agent = format!("[ $task = a ] || wait_for never; {ONE}");
    let world = FleetWorld::new(&agent).tasks(&["a", "b"], "").terms("slots = 2").shared().ready();
    let running = world.start(&["--push"]);
    world.until("a is completed and b works", |world| {
        world.state("a") == "completed" && world.begun("b") == [1]
    });
    world.crew(&["fleet", "cancel", "--now"]).success();
    running.wait(LONG);
    let ran = world.run(&["--land"]);
    assert_eq!(world.shown("main", "work-a"), "1\n", "{ran:#?}");
    assert_eq!(world.states(&["a", "b"])[1].1, "cancelled");
}

#[test]
fn work_of_a_local_fleet_that_a_person_has_merged_and_deleted_is_not_done_again_for_a_remote() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/a").display().to_string();
    world.sandbox.git(&["merge", "--quiet", "--squash", "fleet/repo/a"]);
    world.sandbox.git(&["commit", "--quiet", "--message", "Take a"]);
    world.sandbox.git(&["worktree", "remove", "--force", &tree]);
    world.sandbox.git(&["branch", "--quiet", "-D", "fleet/repo/a"]);
    let world = world.tasks(&["b"], "").shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.begun("a"), world.begun("b")), (0, vec![1], vec![1]), "{ran:#?}");
    let on_main = ["work-a", "work-b"].map(|file| world.shown("main", file));
    assert_eq!(on_main, ["1\n", "1\n"]);
}
