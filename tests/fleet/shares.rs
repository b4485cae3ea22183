//! Ten tasks that change one file: those that say so run one by one and land, the others meet at
//! the landing. Nobody's work is lost.

use std::time::Duration;

use super::FleetWorld;

const SAID: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];
const UNSAID: [&str; 5] = ["u1", "u2", "u3", "u4", "u5"];
/// Adds its line, or keeps both sides of a conflict. Those that do not say what they touch begin
/// together, once the others have landed.
const AGENT: &str = r"touch $NOTES/began.$task
case $task in u*) for other in u1 u2 u3 u4 u5; do wait_for began.$other; done ;; esac
if grep -q '<<<<<<<' shared; then
    sed -i '/^<<<<<<<\|^=======\|^>>>>>>>/d' shared
else
    echo $task >> shared
fi
claim";

fn ten() -> FleetWorld {
    let mut world = FleetWorld::new(AGENT).file("shared", "the first line\n");
    for task in SAID {
        let terms = format!("touches = ['shared']\nverify = ['grep -qx {task} shared']");
        world = world.tasks(&[task], &terms);
    }
    for task in UNSAID {
        let terms = format!("after = {SAID:?}\nverify = ['grep -qx {task} shared']");
        world = world.tasks(&[task], &terms);
    }
    world.terms("slots = 5").shared().ready()
}

#[test]
fn of_ten_tasks_that_share_a_file_those_that_say_so_all_land_and_every_other_end_is_named() {
    let world = ten();
    let dry = world.crew(&["fleet", "run", "tasks", "--land", "--dry-run"]).success();
    assert_eq!(dry.matches("both touch shared, so one by one").count(), 10, "{dry}");
    for said in ["overlap s1, s2: both touch", "overlap s4, s5: both touch"] {
        assert!(dry.contains(said), "{said}: {dry}");
    }
    let ran = world.start(&["--land"]).wait(Duration::from_secs(300));
    for task in SAID {
        assert_eq!((task, world.state(task)), (task, "completed".into()), "{}", world.lease(task));
        assert_eq!((task, world.begun(task)), (task, vec![1]), "nothing to settle");
    }
    let subjects = world.git_there(&["log", "--format=%s", "main"]);
    let main = world.shown("main", "shared");
    let blocked: Vec<&str> =
        UNSAID.into_iter().filter(|task| world.state(task) == "blocked").collect();
    assert!(blocked.len() < UNSAID.len(), "the first of them lands");
    for task in SAID.iter().chain(&UNSAID).filter(|task| !blocked.contains(task)) {
        let commits = subjects.lines().filter(|line| *line == format!("Do task {task}.")).count();
        let lines = main.lines().filter(|line| line == task).count();
        assert_eq!((task, commits, lines), (task, 1, 1), "{main}");
    }
    for task in &blocked {
        assert!(world.why(task).starts_with("conflict: shared"), "{task}: {}", world.why(task));
        assert!(world.work(task, "shared").lines().any(|line| line == *task), "its branch has it");
        assert_eq!(world.begun(task), [1, 2], "{task} was sent back once");
    }
    let expected = if blocked.is_empty() { 0 } else { 13 };
    assert_eq!((ran.code(), main.matches("<<<<").count()), (expected, 0), "{ran:#?}");
}
