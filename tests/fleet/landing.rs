//! Landings: whatever collides, and whatever is killed or stopped, each commit of the main branch
//! passes its checks, and no task is forgotten.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::{FleetWorld, LONG, ONE};
use crate::sandbox::poll_until;
use crate::side_by_side::side_by_side;

/// Waits here the first time, until the test ends.
const HOLD: &str = "if mkdir $NOTES/here 2>/dev/null; then
while test -d $NOTES; do sleep 0.1; done & echo $! > $NOTES/holder; wait; fi";
/// Tasks that change the same line (`c`), that are right alone and wrong together (`r`), of which
/// only the first can ever land (`x`), and the others (`w`).
const TASKS: [&str; 10] = ["c1", "c2", "r1", "r2", "x1", "x2", "w1", "w2", "w3", "w4"];
/// Two files in `limit` or `hard` are one too many; an agent settles the first alone. The first
/// four all begin before any of them is done.
const COLLIDING: &str = r#"touch $NOTES/began.$task
case $task in c*|r*) for other in c1 c2 r1 r2; do wait_for began.$other; done ;; esac
case $task in
c*) if grep -q '<<<<<<<' same; then echo "settled by $task" > same; else echo $task > same; fi ;;
r*) if [ $call -gt 1 ]; then git rm -q -r limit; mkdir limit; fi; echo $task > limit/$task ;;
x*) echo $task > hard/$task ;;
*) echo $task > work-$task ;;
esac
claim"#;
const CHECK: &str = "[ $(ls limit | wc -l) -le 1 ] && [ $(ls hard | wc -l) -le 1 ]";

#[test]
#[ignore = "long"]
fn no_colliding_task_breaks_a_commit_of_main_or_is_forgotten() {
    let world = FleetWorld::new(COLLIDING)
        .file("same", "one\n")
        .file("limit/.keep", "")
        .file("hard/.keep", "")
        .tasks(&TASKS, "max-iterations = 2")
        .terms(&format!("slots = 4\n[land]\ncheck = ['{CHECK}']"))
        .shared()
        .ready();
    // A landing does not depend on how a person likes their merges.
    for (name, value) in [("merge.ff", "only"), ("merge.verifySignatures", "true")] {
        world.sandbox.git(&["config", name, value]);
    }
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 13, "{ran:#?}");

    for commit in world.git_there(&["rev-list", "--grep=of fleet repo", "main"]).lines() {
        for folder in ["limit", "hard"] {
            let found = world.git_there(&["ls-tree", "--name-only", &format!("{commit}:{folder}")]);
            let files = found.lines().filter(|name| *name != ".keep").count();
            assert!(files <= 1, "{commit}: {found}");
        }
        assert!(!world.shown(commit, "same").contains("<<<<"), "{commit}");
    }
    let states = world.states(&TASKS);
    let blocked: Vec<&str> =
        states.iter().filter(|(_, state)| state == "blocked").map(|(task, _)| *task).collect();
    assert!(blocked == ["x1"] || blocked == ["x2"], "{states:?}");
    let why = world.why(blocked[0]);
    assert!(why.starts_with("red: ") && why.contains("ls hard"), "{why}");
    assert_eq!(why.matches("red: ").count(), 1, "{why}");
    let subjects = world.git_there(&["log", "--format=%s", "main"]);
    for (task, state) in states.iter().filter(|(task, _)| *task != blocked[0]) {
        assert_eq!(state, "completed", "{task}: {:#}", world.task(task));
        let commits = subjects.lines().filter(|line| *line == format!("Do task {task}.")).count();
        assert_eq!((*task, commits), (*task, 1));
    }
    for kind in ["c", "r", "x"] {
        let back = TASKS.iter().filter(|task| task.starts_with(kind));
        let back = back.filter(|task| world.begun(task).len() == 2).count();
        assert_eq!((kind, back), (kind, 1), "all but the first go back, and once");
    }
    // The clones are gone, and the loops stay in the history.
    let left = |task: &&&str| world.clone_of(task).exists();
    assert_eq!(TASKS.iter().filter(left).collect::<Vec<_>>(), [&blocked[0]]);
    let history = world.crew(&["history"]).success();
    assert!(history.contains("Do task w1."), "{history}");
}

#[test]
fn a_landing_killed_during_its_checks_or_its_setup_is_repeated_once() {
    let is_landing = format!("case $PWD in */land) {HOLD} ;; esac");
    let worlds = [format!("[land]\ncheck = ['''{HOLD}''']"), format!("setup = '''{is_landing}'''")];
    side_by_side(worlds.map(|terms| {
        move || {
            let world =
                FleetWorld::new(ONE).file("same", "one\n").tasks(&["a", "b"], "").terms(&terms);
            let world = world.shared().ready();
            let running = world.start(&["--land"]);
            world.until("it is held", |world| world.noted("holder").ends_with('\n'));
            running.signal(Signal::KILL);
            running.wait(LONG);
            let ran = world.run(&["--land"]);
            assert_eq!(ran.code(), 0, "{ran:#?}");
            let subjects = world.git_there(&["log", "--format=%s", "main"]);
            let mut lines: Vec<&str> = subjects.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, ["Begin", "Do task a.", "Do task b.", "Tasks"]);
            assert_eq!((world.begun("a"), world.begun("b")), (vec![1], vec![1]));
            let holder = format!("/proc/{}", world.noted("holder").trim());
            poll_until("what the killed landing left is gone", || !Path::new(&holder).exists());
        }
    }));
}

#[test]
fn a_signal_lets_a_landing_finish_and_a_second_one_abandons_it_until_the_next_start() {
    let check = "touch $NOTES/lands; until test -e $NOTES/free; do sleep 0.05; done";
    let world = FleetWorld::new(ONE)
        .tasks(&["a"], "max-iterations = 1")
        .tasks(&["b"], "after = \"a\"")
        .terms(&format!("[land]\ncheck = [\"{check}\"]"))
        .shared()
        .ready();
    let signalled = |times: usize| {
        let running = world.start(&["--land"]);
        world.until_noted("lands");
        for time in 1..=times {
            // Signals in quick succession count as one.
            std::thread::sleep(Duration::from_millis(600));
            running.signal(Signal::TERM);
            let heard = ["no more tasks start", "each agent is stopped"][time - 1];
            world.until(heard, |_| running.stdout().contains(heard));
        }
        running
    };
    let twice = signalled(2).wait(LONG);
    assert_eq!((twice.code(), world.state("a")), (143, "landing".into()), "{twice:#?}");
    assert_eq!(world.shown("main", "work-a"), "");
    std::fs::remove_file(world.note("lands")).unwrap();

    let once = signalled(1);
    world.allow("free");
    let once = once.wait(LONG);
    assert_eq!((once.code(), world.shown("main", "work-a")), (143, "1\n".into()), "{once:#?}");
    assert_eq!(world.begun("b"), [0; 0], "nothing starts");
    let last = world.run(&["--land"]);
    assert_eq!((last.code(), world.begun("a"), world.begun("b")), (0, vec![1], vec![1]));
}

#[test]
fn work_refused_after_its_last_iteration_is_sent_back_once_the_limit_is_raised() {
    let agent = r#"touch "$NOTES/began.$task"; wait_for began.a; wait_for began.b; echo "by $task" > same; claim"#;
    let world = FleetWorld::new(agent).file("same", "one\n").terms("slots = 2");
    let world = world.tasks(&["a", "b"], "max-iterations = 1").shared().ready();
    let ran = world.run(&["--land"]);
    assert_eq!(ran.code(), 13, "{ran:#?}");
    let task = ["a", "b"].into_iter().find(|task| world.state(task) == "blocked").unwrap();
    let named = format!("repo/{task}");
    let why = format!(
        "conflict: same changed on main too; its max-iterations is used up: raise it, then crew resume {named}"
    );
    assert_eq!(world.why(task), why);

    let world = world.tasks(&["a", "b"], "max-iterations = 2");
    world.crew(&["resume", &named]).success();
    let raised = world.run(&["--land"]);
    assert_eq!((raised.code(), world.begun(task)), (0, vec![1, 2]), "{raised:#?}");
    assert!(world.prompt(task, 2).contains("have conflicts"), "{}", world.prompt(task, 2));
    assert_eq!(world.shown("main", "same"), format!("by {task}\n"));
}

#[test]
fn a_landing_check_without_its_program_refuses_the_start_only_if_the_fleet_lands() {
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
    let pushes = look(&["--push"]);
    assert_eq!((pushes.code(), &*pushes.stderr), (0, ""), "{pushes:#?}");
    let world = world.terms("[land]\ncheck = ['sh later.sh']");
    let noted = world.run(&["--land", "--dry-run"]);
    assert_eq!(noted.stderr, "crew: later.sh does not exist yet: the agent may create it\n");
}

#[test]
fn a_committed_file_of_worktreeinclude_refuses_the_landing_with_a_message() {
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
