//! What `crew fleet forget` removes, what it leaves, and when it refuses.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use super::answers::ASKS;
use super::{FleetWorld, LONG, ONE};
use crate::child::{Ran, Running};

/// Runs the verb on the machine with this home, with more variables.
#[track_caller]
fn forget_on(world: &FleetWorld, home: &Path, name: &str, variables: &[(&str, &str)]) -> Ran {
    let mut command = world.sandbox.command(world.sandbox.build().path());
    command.args(["fleet", "forget", name]).env("CREW_HOME", home);
    command.envs(variables.iter().copied());
    Running::start(command, None).wait(LONG)
}

#[track_caller]
fn forget(world: &FleetWorld, name: &str) -> Ran {
    forget_on(world, &world.sandbox.crew_home(), name, &[])
}

/// The names in the folder of all fleets, but for locks.
fn kept(world: &FleetWorld) -> Vec<String> {
    let names = fs::read_dir(world.sandbox.crew_home().join("fleets")).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    let is_lock = |name: &String| Path::new(name).extension() == Some("lock".as_ref());
    names.filter(|name| !is_lock(name)).collect()
}

#[test]
fn a_repository_made_again_at_its_path_runs_its_fleet_from_the_start_once_that_is_forgotten() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    fs::remove_dir_all(world.sandbox.repository().join(".git")).unwrap();
    fs::remove_dir_all(world.sandbox.root().join("repo.worktrees")).unwrap();
    world.sandbox.git(&["init", "--quiet", "--initial-branch=main"]);
    for (key, value) in [("user.name", "A Tester"), ("user.email", "tester@example.invalid")] {
        world.sandbox.git(&["config", key, value]);
    }
    let world = world.ready();
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1]), "its old lease holds: {ran:#?}");

    let expected = format!(
        "fleet repo is forgotten on this machine\n\
         its branches and working trees stay, with their work, in {}:\n  \
           git worktree list; git worktree remove PATH removes one\n  \
           git branch --list 'fleet/repo/*'; git branch -D BRANCH removes one\n",
        world.sandbox.repository().display()
    );
    assert_eq!(forget(&world, "repo").success(), expected);
    assert!(kept(&world).is_empty(), "{:?}", kept(&world));
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 1]), "{ran:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n");
}

#[test]
fn nothing_is_forgotten_by_an_agent_by_a_wrong_name_or_while_somebody_works_on_it() {
    let world = FleetWorld::new(&format!("wait_for go; {ONE}")).tasks(&["a"], "").ready();
    let running = world.start(&[]);
    world.until("its agent works", |world| world.begun("a") == [1]);
    let refused = forget(&world, "repo");
    let expected = "crew: task a of the fleet repo runs here\n\
                    hint: wait for it, or crew fleet pause --fleet repo --now ends its iteration\n";
    assert_eq!((refused.code(), &*refused.stderr), (1, expected));
    world.allow("go");
    assert_eq!(running.wait(LONG).code(), 0);

    let home = world.sandbox.crew_home();
    let run = fs::File::open(home.join("fleets/repo/run.lock")).unwrap();
    run.lock().unwrap();
    let refused = forget(&world, "repo");
    let expected =
        "crew: a crew runs the fleet repo\nhint: crew fleet pause --fleet repo ends it\n";
    assert_eq!((refused.code(), &*refused.stderr), (1, expected));
    drop(run);
    let refused = forget_on(&world, &home, "repo", &[("CLAUDECODE", "1")]);
    let expected =
        "crew: an agent cannot have a fleet forgotten\nhint: a person can, in a terminal\n";
    assert_eq!((refused.code(), &*refused.stderr), (1, expected));
    for name in ["rep", "..", ".", "repo/tasks", "../fleets/repo"] {
        let refused = forget(&world, name);
        let expected = format!(
            "crew: there is no fleet {name} on this machine\nhint: name one of these: repo\n"
        );
        assert_eq!((refused.code(), refused.stderr), (1, expected));
    }
    assert_eq!((kept(&world), world.state("a")), (vec!["repo".into()], "completed".into()));
}

#[test]
fn terms_and_leases_that_cannot_be_read_are_forgotten_too() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let folder = world.sandbox.crew_home().join("fleets/repo");
    for file in ["fleet.json", "tasks/a.json"] {
        fs::write(folder.join(file), "{\"schema\": 99,").unwrap();
    }
    assert_eq!(world.run(&[]).code(), 1, "nothing else gets past it");
    let forgotten = forget(&world, "repo");
    let told = "its terms could not be read: git branch --list 'fleet/repo/*' in its repository lists what stays of it\n";
    assert!(forgotten.code() == 0 && forgotten.stdout.ends_with(told), "{forgotten:#?}");
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 1]), "{ran:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n1\n", "it goes on from the branch that stayed");
}

#[test]
fn branches_working_trees_and_the_remote_stay_and_only_the_tree_of_landings_leaves_the_list() {
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "")
        .tasks(&["b"], "verify = [\"false\"]\nmax-iterations = 1")
        .shared()
        .ready();
    let away = world.sandbox.root().join("away").display().to_string();
    world.sandbox.git(&["worktree", "add", "--quiet", "--detach", &away]);
    fs::remove_dir_all(&away).unwrap();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    // The job that has landed tidies up after its end is written.
    world.until("nobody lands", |world| {
        let tree = world.sandbox.root().join("repo.worktrees/fleet/repo/a");
        world.git_there(&["for-each-ref", "refs/crew/repo/_land"]).is_empty() && !tree.exists()
    });
    let (refs, there) = (world.sandbox.git(&["for-each-ref"]), world.git_there(&["for-each-ref"]));
    let listed = || {
        let trees = world.sandbox.git(&["worktree", "list", "--porcelain"]);
        let paths = trees.lines().filter_map(|line| line.strip_prefix("worktree "));
        paths.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut trees = listed();
    let land = world.sandbox.crew_home().join("fleets/repo/land").display().to_string();
    assert!(trees.contains(&land) && trees.contains(&away), "{trees:?}");

    let told = forget(&world, "repo").success();
    assert!(kept(&world).is_empty(), "{:?}", kept(&world));
    assert_eq!(world.sandbox.git(&["for-each-ref"]), refs);
    assert_eq!(world.git_there(&["for-each-ref"]), there);
    trees.retain(|tree| *tree != land);
    assert_eq!(listed(), trees);
    let work = world.sandbox.root().join("repo.worktrees/fleet/repo/b/work-b");
    assert_eq!(fs::read_to_string(work).unwrap(), "1\n");

    for line in told.lines().filter(|line| line.contains("--delete")) {
        let mut command = world.sandbox.command("sh");
        command.args(["-c", line]);
        Running::start(command, None).wait(LONG).success();
    }
    let left = world.git_there(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(left, "refs/heads/main", "{told}");
}

#[test]
fn a_clone_of_crews_own_is_removed_by_a_person_alone_for_it_may_hold_work() {
    let world =
        FleetWorld::new(ONE).tasks(&["a"], "verify = [\"false\"]\nmax-iterations = 1").by_hand(&[]);
    assert_eq!(world.on("other").job("a").wait(LONG).code(), 10);
    let home = world.sandbox.root().join("other");
    let clone = home.join("fleets/repo/clone");
    let work = home.join("fleets/repo/clone.worktrees/fleet/repo/a/work-a");
    let refused = forget_on(&world, &home, "repo", &[]);
    let expected = format!(
        "crew: {0} may hold work that was not pushed\n\
         hint: look at it with git -C {0} worktree list, remove {0} and {0}.worktrees, and forget the fleet then\n",
        clone.display()
    );
    assert_eq!((refused.code(), refused.stderr, work.exists()), (1, expected, true));
    fs::remove_dir_all(&clone).unwrap();
    fs::remove_dir_all(home.join("fleets/repo/clone.worktrees")).unwrap();
    let forgotten = forget_on(&world, &home, "repo", &[]);
    let hub = world.hub().display().to_string();
    let expected = format!(
        "fleet repo is forgotten on this machine\n\
         its leases and branches stay on {hub}: a new run begins once the leases are removed, and continues from the branches:\n  \
           git ls-remote {hub} 'refs/crew/repo/*' | cut -f2 | xargs git push {hub} --delete\n  \
           git ls-remote {hub} 'refs/heads/fleet/repo/*' | cut -f2 | xargs git push {hub} --delete\n"
    );
    assert_eq!((forgotten.success(), home.join("fleets/repo").exists()), (expected, false));
    assert_eq!(world.work("a", "work-a"), "1\n");
}

#[test]
fn a_branch_that_the_remote_keeps_without_its_lease_is_continued_from_with_what_comes_before_it() {
    let world =
        FleetWorld::new(ONE).tasks(&["a"], "").tasks(&["b"], "after = [\"a\"]").shared().ready();
    assert_eq!(world.run(&["--push"]).code(), 0);
    for name in ["_fleet", "a", "b"] {
        world.git_there(&["update-ref", "-d", &format!("refs/crew/repo/{name}")]);
    }
    assert_eq!(forget(&world, "repo").code(), 0);
    let ran = world.run(&["--push"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    assert!(ran.stderr.contains("a continues from the remote's branch fleet/repo/a"), "{ran:#?}");
    let works = [("a", "work-a"), ("b", "work-a"), ("b", "work-b")];
    assert_eq!(works.map(|(task, file)| world.work(task, file)), ["1\n1\n"; 3]);
}

#[test]
fn a_task_that_lacks_what_its_branch_on_the_remote_holds_costs_nothing_until_a_person_decides() {
    let world = FleetWorld::new(ASKS).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 13);
    let world = world.shared().ready();
    world.sandbox.git(&["push", "--quiet", "origin", "main:fleet/repo/a"]);
    let refused = world.run(&["--push"]);
    assert_eq!(refused.code(), 1, "{refused:#?}");
    let expected = "crew: the remote's branch fleet/repo/a holds work that a lacks here\n\
                    hint: move it to another branch there, or merge it into fleet/repo/a here\n";
    assert!(refused.stderr.ends_with(expected), "{refused:#?}");
    assert_eq!(world.begun("a"), [1]);
    let as_before = world.crew(&["fleet", "status", "--json"]).success();
    assert!(as_before.contains("\"blocked\""), "{as_before}");

    world.sandbox.git(&["push", "--quiet", "--force", "origin", "fleet/repo/a"]);
    let pushed = world.run(&["--push"]);
    assert_eq!((pushed.code(), world.state("a")), (13, "blocked".into()), "{pushed:#?}");
    let ran = world.run(&["--retry"]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 2]), "{ran:#?}");
    assert_eq!(world.work("a", "work-a"), "1\n2\n");
}

#[test]
fn a_kill_in_the_middle_leaves_no_fleet_and_what_is_left_of_it_goes_with_the_next_start() {
    let world = FleetWorld::with_faults(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let home = world.sandbox.crew_home();
    let killed = forget_on(&world, &home, "repo", &[("CREW_FAULT", "remove.taken=kill")]);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&killed.status),
        Some(Signal::KILL.as_raw())
    );
    assert_eq!(kept(&world), [".removed-repo"]);
    let status = world.crew(&["fleet", "status"]);
    assert_eq!(
        (status.code(), &*status.stderr),
        (1, "crew: there is no fleet on this machine\nhint: crew fleet run FOLDER starts one\n")
    );
    let ran = world.run(&[]);
    assert_eq!((ran.code(), world.begun("a")), (0, vec![1, 1]), "{ran:#?}");
    assert_eq!(kept(&world), ["repo"]);
}
