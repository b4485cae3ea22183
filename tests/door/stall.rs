//! The stall rule outside git, after git broke during a loop, and without snapshots.

use super::Door;
use crate::sandbox::Sandbox;

/// Sends stops without a change until the agent may stop; returns how many iterations that took.
fn idle(door: &Door) -> usize {
    (1..20).find(|number| !door.stop(&format!("thinking, {number}")).goes_on()).unwrap()
}

#[track_caller]
fn assert_stalled(door: &Door, id: &str) {
    assert_eq!(door.record(id)["state"]["ending"]["outcome"], "stalled", "{}", door.record(id));
}

#[test]
fn outside_git_the_files_are_watched_and_the_start_says_how_many() {
    let door = Door::of(Sandbox::without_git());
    for file in ["a.txt", "src/.hidden", "src/b.txt", "target/out", "target/.gitignore"] {
        door.sandbox.write(file, "one");
    }
    door.sandbox.write(".gitignore", "target/\n");
    let start = door.command("\"go on\" -n 9 --stall 2").send();
    assert!(start.line().ends_with("\nno git: watching 4 files"), "{start:#?}");
    assert_eq!(idle(&door), 2);
    // A change anywhere is progress; what is ignored, and what crew writes, is not.
    let id = door.begin("\"go on\" -n 9 --stall 2");
    for change in ["src/.hidden", "src/new/c.txt"] {
        door.stop("thinking").assert_goes_on();
        door.sandbox.write(change, "another");
    }
    door.stop("changed one").assert_goes_on();
    door.sandbox.write("target/out", "built");
    assert_eq!(idle(&door), 2);
    assert_stalled(&door, &id);
    assert_eq!(door.record(&id)["state"]["completed"], 5);
}

#[test]
fn a_failing_git_does_not_disable_the_stall_rule() {
    for spoil in ["HEAD", "config"] {
        let door = Door::new();
        let id = door.begin("\"go on\" -n 9 --stall 2");
        door.stop("thinking").assert_goes_on();
        door.sandbox.write(&format!(".git/{spoil}"), "[spoiled\n");
        assert_eq!(idle(&door), 1, "{spoil}");
        assert_stalled(&door, &id);
    }
}

#[test]
fn without_snapshots_crew_reports_that_the_stall_rule_does_not_apply() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 5 --stall 2");
    door.stop("thinking").assert_goes_on();
    std::fs::remove_dir_all(door.sandbox.crew_home().join("trees")).unwrap();
    let answer = door.stop("snapshots are gone").assert_goes_on();
    assert!(answer.line().contains("no stall rule here"), "{answer:#?}");
    assert_eq!(idle(&door), 3);
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "exhausted");
}

#[test]
fn if_progress_cannot_be_measured_this_is_reported_once_and_journalled() {
    const TOLD: &str =
        "no stall rule here: there are no snapshots that show what an iteration changed";
    let many = |door: &Door| {
        let folder = door.sandbox.file("many");
        std::fs::create_dir(&folder).unwrap();
        (0..100_001).for_each(|name| drop(std::fs::File::create(folder.join(name.to_string()))));
    };
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 5 --stall 2");
    many(&door);
    let first = door.stop("one").assert_goes_on();
    assert!(first.line().ends_with(TOLD), "{first:#?}");
    for words in ["two", "three", "four"] {
        let next = door.stop(words).assert_goes_on();
        assert!(!next.line().contains("stall"), "{next:#?}");
    }
    door.stop("five").assert_lets_go();
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "exhausted");
    assert_eq!(door.remarks(&id).matches(TOLD).count(), 1, "{}", door.remarks(&id));
    let start = door.command("\"go on\" -n 5 --stall 2").send();
    let snapshots = "no snapshots here: there are more files than crew reads";
    assert!(start.line().ends_with(&format!("\n{TOLD}\n{snapshots}")), "{start:#?}");
    let next = door.stop("told already").assert_goes_on();
    assert!(!next.line().contains("stall"), "{next:#?}");
}

#[test]
fn a_boundary_with_the_defaults_starts_git_once() {
    let door = Door::new();
    let calls = door.sandbox.root().join("calls");
    let log = format!("echo \"$*\" >> '{}'\nPATH=/usr/bin:/bin exec git \"$@\"", calls.display());
    door.sandbox.program("git", &log);
    door.begin("\"go on\" -n 9");
    door.stop("one").assert_goes_on();
    std::fs::write(&calls, "").unwrap();
    door.stop("two").assert_goes_on();
    let calls = std::fs::read_to_string(&calls).unwrap();
    let asked: Vec<_> = calls.lines().filter_map(|call| call.split("--no-pager ").nth(1)).collect();
    assert_eq!(asked.len(), 1, "{calls}");
    assert!(asked[0].starts_with("status "), "{calls}");
}
