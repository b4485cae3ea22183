//! Landings: whatever many machines land at once, each commit of the main branch passes its checks,
//! and no task is forgotten.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::kills::{HOLD, holder_is_gone};
use super::{FleetWorld, LONG, ONE};
use crate::lanes::side_by_side;

/// Tasks that change the same line (`c`), that are right alone and wrong together (`r`), of which
/// only the first can ever land (`x`), and the others (`w`).
const TASKS: [&str; 20] = [
    "c1", "c2", "r1", "r2", "x1", "x2", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9",
    "w10", "w11", "w12", "w13", "w14",
];
/// Two files in `limit` or `hard` are one too many; an agent cures the first alone. The first four
/// all begin before any of them is done.
const PLANTED: &str = r#"touch $NOTES/began.$task
case $task in c*|r*) for other in c1 c2 r1 r2; do wait_for began.$other; done ;; esac
case $task in
c*) if grep -q '<<<<<<<' same; then echo "settled by $task" > same; else echo $task > same; fi ;;
r*) if [ $call -gt 1 ]; then git rm -q -r limit; mkdir limit; fi; echo $task > limit/$task ;;
x*) echo $task > hard/$task ;;
*) echo $task > work-$task ;;
esac
claim"#;
const CHECK: &str = "[ $(ls limit | wc -l) -le 1 ] && [ $(ls hard | wc -l) -le 1 ]";

fn planted() -> FleetWorld {
    FleetWorld::new(PLANTED)
        .file("same", "one\n")
        .file("limit/.keep", "")
        .file("hard/.keep", "")
        .tasks(&TASKS, "max-iterations = 2")
        .terms(&format!("[land]\ncheck = ['{CHECK}']"))
        .by_hand(&["--land"])
}

#[test]
fn twenty_branches_landed_by_two_machines_leave_every_commit_of_main_green_and_none_forgotten() {
    let world = planted();
    let line: Mutex<VecDeque<&str>> = Mutex::new(TASKS.into());
    let lander = |name: &'static str| {
        while let Some(task) = { line.lock().unwrap().pop_front() } {
            let ran = world.on(name).job(task).wait(LONG);
            assert!([0, 13].contains(&ran.code()), "{task}: {ran:#?}");
        }
    };
    side_by_side(["home", "home", "other", "other"].map(|name| move || lander(name)));

    for commit in world.git_there(&["rev-list", "--grep=of fleet repo", "main"]).lines() {
        for folder in ["limit", "hard"] {
            let found = world.git_there(&["ls-tree", "--name-only", &format!("{commit}:{folder}")]);
            assert!(
                found.lines().filter(|name| *name != ".keep").count() <= 1,
                "{commit}: {found}"
            );
        }
        assert!(!world.shown(commit, "same").contains("<<<<"), "{commit}");
    }
    let landed = TASKS.map(|task| (task, world.state(task)));
    let blocked: Vec<&str> =
        landed.iter().filter(|(_, state)| state == "blocked").map(|(task, _)| *task).collect();
    assert!([["x1"], ["x2"]].iter().any(|one| *one == *blocked), "{landed:?}");
    let why = world.why(blocked[0]);
    assert!(why.starts_with("red: ") && why.contains("ls hard"), "{why}");
    let subjects = world.git_there(&["log", "--format=%s", "main"]);
    for (task, state) in landed.iter().filter(|(task, _)| *task != blocked[0]) {
        assert_eq!(state, "completed", "{task}: {}", world.lease(task));
        let commits = subjects.lines().filter(|line| *line == format!("Do task {task}.")).count();
        assert_eq!((task, commits), (task, 1));
    }
    assert_eq!(world.git_there(&["for-each-ref", "refs/crew/repo/_land"]), "", "nobody lands");
    for (kind, times) in [("c", 1), ("r", 1), ("x", 1)] {
        let back = TASKS.iter().filter(|task| task.starts_with(kind));
        let back = back.filter(|task| world.begun(task).len() == 2).count();
        assert_eq!((kind, back), (kind, times), "all but the first go back, and once");
    }
    let both = [world.sandbox.crew_home(), world.sandbox.root().join("other")];
    for home in both {
        assert!(home.join("fleets/repo/land").exists(), "both machines have landed something");
    }
}

#[test]
fn a_landing_killed_in_its_checks_or_its_setup_is_done_again_and_once() {
    let is_landing = format!("case $PWD in */land) {HOLD} ;; esac");
    let worlds = [format!("[land]\ncheck = ['''{HOLD}''']"), format!("setup = '''{is_landing}'''")];
    side_by_side(worlds.map(|terms| {
        move || {
            let world =
                FleetWorld::new(ONE).file("same", "one\n").tasks(&["a", "b"], "").terms(&terms);
            let world = world.shared().ready();
            let running = world.start(&["--land"]);
            world.until("it is held", |world| world.noted("holder").ends_with('\n'));
            let lands = ["a", "b"].into_iter().find(|task| {
                let holder = world.git_there(&["log", "-1", "--format=%s", "refs/crew/repo/_land"]);
                holder.split(' ').next() == Some(*task)
            });
            world.kill_job(lands.unwrap());
            let ran = running.wait(LONG);
            assert_eq!(ran.code(), 0, "{ran:#?}");
            let subjects = world.git_there(&["log", "--format=%s", "main"]);
            let mut lines: Vec<&str> = subjects.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, ["Begin", "Do task a.", "Do task b.", "Tasks"]);
            assert_eq!((world.begun("a"), world.begun("b")), (vec![1], vec![1]));
            assert_eq!(world.git_there(&["for-each-ref", "refs/crew/repo/_land"]), "");
            holder_is_gone(&terms, &world);
        }
    }));
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_check_of_a_landing_leaves_running_is_ended() {
    let check = "setsid sleep 600 > /dev/null 2>&1 & echo $! >> $NOTES/left";
    let world = FleetWorld::new(ONE).file("same", "one\n").tasks(&["a"], "");
    let world = world.terms(&format!("[land]\ncheck = [\"{check}\"]")).shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let left = world.noted("left");
    let command = |id: &str| std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    assert_ne!(left, "");
    assert_eq!(left.lines().find(|id| command(id) == b"sleep\x00600\x00"), None);
}

#[test]
fn the_loop_of_a_task_that_has_landed_stays_in_the_history_of_its_repository() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let history = world.crew(&["history"]).success();
    assert!(history.contains("Do task a."), "{history}");
}

#[test]
fn a_landing_refused_after_the_last_iteration_names_the_limit_and_sends_back_once_that_is_raised() {
    let agent = r#"touch "$NOTES/began.$task"; wait_for began.a; wait_for began.b; echo "by $task" > same; claim"#;
    let world = FleetWorld::new(agent).file("same", "one\n").terms("slots = 2");
    let world = world.tasks(&["a", "b"], "max-iterations = 1").shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    let task = ["a", "b"].into_iter().find(|task| world.state(task) == "blocked").unwrap();
    let why = "conflict: same changed on main too; the limit of 1 iteration is reached: raise it, then --retry";
    assert_eq!(world.why(task), why);
    assert!(!ran.stdout.contains("sent back"), "{ran:#?}");

    let again = world.run(&["--land", "--retry"]);
    let told = "has no iteration left: its max-iterations is used up";
    assert!(again.stderr.contains(told), "{again:#?}");
    assert_eq!((again.code(), world.begun(task)), (13, vec![1]), "{again:#?}");

    let world = world.tasks(&["a", "b"], "max-iterations = 2");
    let raised = world.run(&["--land", "--retry"]);
    assert!(raised.stdout.contains("sent back to its loop: conflict: same"), "{raised:#?}");
    assert_eq!((raised.code(), world.begun(task)), (0, vec![1, 2]), "{raised:#?}");
}

#[test]
fn a_landing_whose_check_has_no_program_here_starts_nothing_and_without_a_landing_here_none_is_needed()
 {
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "")
        .terms("[land]\ncheck = ['nosuch -x', 'sh later.sh']")
        .shared()
        .ready();
    let look = |more: &[&str]| world.run(&[&["--dry-run"], more].concat());
    let refused = look(&["--land"]);
    let row = "\n  fleet.toml: [land] check: nosuch is not on PATH: `nosuch -x` (verify) cannot run; \
               install it, or name another command\n";
    assert!(refused.code() == 2 && refused.stderr.contains(row), "{refused:#?}");
    for more in [&["--push"][..], &["--land", "--on", "slurm"]] {
        assert_eq!((look(more).code(), look(more).stderr), (0, String::new()), "{more:?}");
    }
    let world = world.terms("[land]\ncheck = ['sh later.sh']");
    let told = world.run(&["--land", "--dry-run"]);
    assert_eq!(told.stderr, "crew: later.sh does not exist yet: the agent may create it\n");
}

#[test]
fn a_file_of_worktreeinclude_that_is_committed_refuses_the_landing_in_words() {
    let adds = "echo $task > $task.local; git add -f $task.local; git commit -qm mine; claim";
    let world = FleetWorld::new(adds)
        .tasks(&["a"], "")
        .file(".gitignore", "*.local\n")
        .file(".worktreeinclude", "*.local\n")
        .shared()
        .ready()
        .file("a.local", "secret\n");
    let ran = world.run(&["--land"]);
    assert_eq!((ran.code(), world.state("a")), (13, "blocked".into()), "{ran:#?}");
    let why = "red: what .worktreeinclude names replaces files that are committed: a.local";
    assert!(world.why("a").contains(why), "{}", world.why("a"));
}
