//! The settings of a fleet.toml for all tasks, and the report of its faults.

use super::options::FleetFile;
use super::tests::{FLEET, read_files};
use readers::parse::amounts::Amount;

/// The settings of a fleet.toml, or all of its faults.
fn read_fleet_file(text: &str) -> Result<FleetFile, String> {
    read_files(&[], Some(text)).map(|(file, _)| file)
}

#[test]
fn values_for_all_tasks_are_read() {
    let more = "setup-timeout = '5m'\nkeep_branches = true\n";
    let file = read_fleet_file(&(more.to_owned() + FLEET)).unwrap();
    let check = ["cargo test", "cargo fmt --check"].map(str::to_owned).to_vec();
    let expected = FleetFile {
        name: Some("spring".parse().unwrap()),
        base: Some("main".to_owned()),
        slots: Some(Amount(4)),
        max_cost: Some(Amount(50_500_000)),
        setup: Some("npm ci".to_owned()),
        setup_timeout: Some(Amount(300)),
        keep_branches: true,
        check,
        keep: vec!["target".to_owned()],
    };
    assert_eq!(file, expected);
    assert_eq!(read_fleet_file("").unwrap(), FleetFile::default());
    assert_eq!(read_fleet_file("[land]\ncheck = 'a'").unwrap().check, ["a"]);
}

#[test]
fn all_faults_in_fleet_toml_are_reported_together() {
    let text = r#"
name = "a b"
base = "-x"
slots = 0
max_cost = "lots"
max-cost = 5
setup = 2024-01-01
setup-timeout = 0
slot = 4
verify = "cargo test"
check = "cargo test"
hooks = 3
[task]
verfy = "cargo test"
slots = 4
touches = ["src"]
push = true
max-cost = "lots"
[land]
verify = "cargo test"
check = ["cargo test", "", true]
"#;
    let mut all = read_fleet_file(text).expect_err("faults");
    for broken in
        ["setup = true", "task = 3\nland = 3", "slots = \n", "[task\n", "slots = 1\nslots = 2\n"]
    {
        all = format!("{all}\n{}", read_fleet_file(broken).expect_err(broken));
    }
    insta::assert_snapshot!(all, @r#"
    fleet.toml:2: name = "a b": "a b" cannot be a part of a branch: only letters from a to z, digits, `-`, `_` and `.` are allowed in it
    fleet.toml:3: base = "-x": expected a branch
    fleet.toml:4: slots = 0: expected more than 0
    fleet.toml:5: max_cost = "lots": expected US dollars, such as 5.00
    fleet.toml:6: max-cost is given twice, also in line 5: keep one
    fleet.toml:7: setup = 2024-01-01: expected a string
    fleet.toml:8: setup-timeout = 0: expected more than 0
    fleet.toml:9: unknown key `slot`: did you mean `slots`?
    fleet.toml:10: `verify` belongs under [task] in fleet.toml, or in the front matter of a task
    fleet.toml:11: `check` belongs under [land] in fleet.toml
    fleet.toml:12: unknown key `hooks`: the keys are name, base, slots, max-cost, setup, setup-timeout, keep-branches
    fleet.toml:14: unknown key `verfy`: did you mean `verify`?
    fleet.toml:15: `slots` belongs above the first table of fleet.toml
    fleet.toml:16: `touches` belongs in the front matter of a task
    fleet.toml:17: `push` is not for a task to set: crew fleet run --push decides it for all tasks
    fleet.toml:18: max-cost = "lots": expected US dollars, such as 5.00
    fleet.toml:20: `verify` belongs under [task] in fleet.toml, or in the front matter of a task
    fleet.toml:21: check = ["cargo test", "", true]: expected a string that is not blank
    fleet.toml:1: setup = true: expected a string (as a string it needs quotes)
    fleet.toml:1: `task` belongs in fleet.toml, as a line [task] with its keys below
    fleet.toml:2: `land` belongs in fleet.toml, as a line [land] with its keys below
    fleet.toml:1: this is not TOML: string values must be quoted, expected literal string
    fleet.toml:1: this is not TOML: unclosed table, expected `]`
    fleet.toml:2: slots is given twice: keep one of them
    "#);
}

#[test]
fn a_task_adds_its_commands_to_those_of_the_fleet_and_replaces_the_rest() {
    let usual = r#"agent = "codex"|max-iterations = "20"|no-promise = true"#;
    let table = [
        ("", format!(r#"{usual}|verify = ["cargo test"]|words = ["--fast"]"#)),
        (
            "verify: npm test\nwords: [--slow]",
            format!(r#"{usual}|verify = ["cargo test", "npm test"]|words = ["--slow"]"#),
        ),
        (
            "agent-cmd: mine\nwords: []",
            format!(r#"agent-cmd = "mine"{}|verify = ["cargo test"]|words = []"#, &usual[15..]),
        ),
        (
            "no-promise: false\nn: 3",
            r#"agent = "codex"|max-iterations = "3"|no-promise = false|verify = ["cargo test"]|words = ["--fast"]"#.to_owned(),
        ),
        (
            "completion-promise: DONE",
            r#"agent = "codex"|completion-promise = "DONE"|max-iterations = "20"|verify = ["cargo test"]|words = ["--fast"]"#.to_owned(),
        ),
    ];
    for (yaml, expected) in table {
        let text = format!("---\n{yaml}\n---\ndo it");
        let (_, tasks) = read_files(&[("auth.md", &text)], Some(FLEET)).unwrap();
        assert_eq!(tasks[0].0.words.join("|"), expected, "{yaml}");
    }
    let read = read_files(
        &[("a.md", "---\nfallback: gemini\n---\ndo it")],
        Some("[task]\nfallback = 'codex'"),
    );
    assert_eq!(read.unwrap().1[0].0.words, [r#"fallback = ["gemini"]"#]);
}
