//! fleet.toml and the folder as a whole, and what a task comes to.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::folder::read_terms;
use super::front_matter::{Faults, FleetFault};
use super::tests::told;
use super::*;
use crate::engine::fleet::FleetTerms;
use crate::engine::record::Proof;

/// Not the product's, but one that differs when the bytes do.
fn hash(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// What a fleet.toml says, or all that is wrong in it, by line.
pub(super) fn read_fleet_file(text: &str) -> Result<FleetTerms, Vec<FleetFault>> {
    let mut faults = Faults { file: FLEET_FILE.to_owned(), found: Vec::new() };
    let (terms, _) = read_terms(text, &mut faults);
    faults.found.sort();
    if faults.found.is_empty() { Ok(terms) } else { Err(faults.found) }
}

fn read(
    files: &[(&str, &str)],
    fleet_toml: Option<&str>,
) -> Result<(FleetTerms, Vec<FleetTask>), String> {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    let fleet_toml = fleet_toml.map(str::as_bytes);
    folder(files.collect(), fleet_toml, hash).map_err(|faults| faults.join("\n"))
}

const FLEET: &str = r#"
name  = "spring"
base  = "main"
slots = 4
max-cost = 50.5
setup = "npm ci"
[task]
verify = "cargo test"
n = 20
agent = "codex"
no-promise = true
words = ["--fast"]
[land]
check = ["cargo test", "cargo fmt --check"]
"#;

#[test]
fn what_holds_for_all_is_read() {
    let terms = read_fleet_file(FLEET).unwrap();
    let words = [
        "--verify=cargo test",
        "--max-iterations=20",
        "--agent=codex",
        "--no-promise",
        "--",
        "--fast",
    ];
    let expected = FleetTerms {
        name: Some("spring".to_owned()),
        base: Some("main".to_owned()),
        slots: Some(4),
        max_cost_micros: Some(50_500_000),
        setup: Some("npm ci".to_owned()),
        words: words.map(str::to_owned).to_vec(),
        land_check: vec!["cargo test".to_owned(), "cargo fmt --check".to_owned()],
    };
    assert_eq!(terms, expected);
    assert_eq!(read_fleet_file("").unwrap(), FleetTerms::default());
    assert_eq!(read_fleet_file("[land]\ncheck = 'a'").unwrap().land_check, ["a"]);
}

#[test]
fn what_is_wrong_in_fleet_toml_is_told_together() {
    let text = r#"
name = "a b"
base = "-x"
slots = 0
max_cost = "lots"
max-cost = 5
setup = 2024-01-01
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
    let mut all = told(&read_fleet_file(text).expect_err("faults"));
    for broken in
        ["setup = true", "task = 3\nland = 3", "slots = \n", "[task\n", "slots = 1\nslots = 2\n"]
    {
        all = format!("{all}\n{}", told(&read_fleet_file(broken).expect_err(broken)));
    }
    insta::assert_snapshot!(all, @r#"
    fleet.toml:2: name takes a name fit for a branch, not `a b`
    fleet.toml:3: base takes a branch, not `-x`
    fleet.toml:4: slots takes a whole number from 1, not `0`
    fleet.toml:5: max_cost takes an amount in US dollars, not `lots`
    fleet.toml:6: max-cost is given twice, also in line 5: keep one
    fleet.toml:7: setup takes a command, not a date
    fleet.toml:8: unknown key `slot`: did you mean `slots`?
    fleet.toml:9: `verify` belongs under [task] in fleet.toml, or in the front matter of a task
    fleet.toml:10: `check` belongs under [land] in fleet.toml
    fleet.toml:11: unknown key `hooks`: the keys are name, base, slots, max-cost, setup
    fleet.toml:13: unknown key `verfy`: did you mean `verify`?
    fleet.toml:14: `slots` belongs above the first table of fleet.toml
    fleet.toml:15: `touches` belongs in the front matter of a task
    fleet.toml:16: `push` is not for a task to set: crew fleet run --push decides it for all tasks
    fleet.toml:17: invalid value `lots` for `--max-cost <USD>`: US dollars, such as 5.00
    fleet.toml:19: `verify` belongs under [task] in fleet.toml, or in the front matter of a task
    fleet.toml:20: check takes a command, not ``
    fleet.toml:20: check takes a text or a list of texts, not `true` (as a text it needs quotes)
    fleet.toml:1: setup takes a command, not `true` (as a text it needs quotes)
    fleet.toml:1: `task` belongs in fleet.toml, as a line [task] with its keys below
    fleet.toml:2: `land` belongs in fleet.toml, as a line [land] with its keys below
    fleet.toml:1: this is not TOML: string values must be quoted, expected literal string
    fleet.toml:1: this is not TOML: unclosed table, expected `]`
    fleet.toml:2: slots is given twice: keep one of them
    "#);
}

#[test]
fn a_task_adds_its_commands_to_those_of_the_fleet_and_replaces_the_rest() {
    let table = [
        ("", "--verify=cargo test|--max-iterations=20|--agent=codex|--no-promise|--|--fast"),
        (
            "verify: npm test\nmax_iterations: 3",
            "--verify=cargo test|--agent=codex|--no-promise|--verify=npm test|--max-iterations=3|--|--fast",
        ),
        (
            "agent-cmd: mine",
            "--verify=cargo test|--max-iterations=20|--no-promise|--agent-cmd=mine|--|--fast",
        ),
        ("no-promise: false", "--verify=cargo test|--max-iterations=20|--agent=codex|--|--fast"),
        (
            "completion-promise: DONE",
            "--verify=cargo test|--max-iterations=20|--agent=codex|--completion-promise=DONE|--|--fast",
        ),
        (
            "words: [--slow]",
            "--verify=cargo test|--max-iterations=20|--agent=codex|--no-promise|--|--slow",
        ),
        ("words: []", "--verify=cargo test|--max-iterations=20|--agent=codex|--no-promise"),
    ];
    for (yaml, expected) in table {
        let text = format!("---\n{yaml}\n---\ndo it");
        let (_, tasks) = read(&[("auth.md", &text)], Some(FLEET)).unwrap();
        assert_eq!(tasks[0].words.join("|"), expected, "{yaml}");
    }
    let read =
        read(&[("a.md", "---\nfallback: gemini\n---\ndo it")], Some("[task]\nfallback = 'codex'"));
    assert_eq!(read.unwrap().1[0].words, ["--fallback=gemini"]);
}

#[test]
fn tasks_come_by_priority_and_then_by_name() {
    let files = [
        ("c.md", "do c"),
        ("b.md", "---\npriority: 9\n---\ndo b"),
        ("d.md", "---\npriority: 0\n---\ndo d"),
        ("a.md", "---\nafter: d\n---\ndo a"),
        ("t10.md", "do t10"),
        ("t2.md", "do t2"),
    ];
    let (terms, tasks) = read(&files, None).unwrap();
    let ids: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
    assert_eq!((ids.join(" ").as_str(), terms), ("b a c t2 t10 d", FleetTerms::default()));
    assert_eq!(read(&[], None).unwrap().1, []);
}

#[test]
fn a_revision_changes_with_all_that_runs_and_with_nothing_else() {
    let revision = |text: &str, fleet: &str| {
        read(&[("auth.md", text)], Some(fleet)).unwrap().1[0].revision.clone()
    };
    let usual = revision("do it", "");
    assert!(usual.len() == 12 && usual.bytes().all(|byte| byte.is_ascii_hexdigit()), "{usual}");
    assert_eq!(usual, revision("---\npriority: 9\ntouches: src\n---\ndo it\n", "slots = 2"));
    let others = [
        revision("do it now", ""),
        revision("---\nn: 3\n---\ndo it", ""),
        revision("do it", "[task]\nn = 3\nverify = 'a'"),
        revision("do it", "setup = 'a'"),
    ];
    assert!(!others.contains(&usual));
    assert_eq!(others[1], revision("do it", "[task]\nn = 3"));
}

#[test]
fn what_is_wrong_between_the_files_of_a_folder_is_told_together() {
    let files = [
        ("Auth.md", "do it"),
        ("auth.md", "do it"),
        ("a.md", "---\nafter: [auht, b]\n---\ndo it"),
        ("b.md", "---\nn: 3\nafter: a\n---\ndo it"),
        ("c.md", "---\nafter: c\n---\ndo it"),
        ("d.md", "---\nafter: [c, nobody]\n---\ndo it"),
        ("e.md", "---\nafter: g\n---\ndo it"),
        ("f.md", "---\nafter: [d, e]\n---\ndo it"),
        ("g.md", "---\nafter: [h, f]\n---\ndo it"),
        ("h.md", "---\nafter: auth.md\n---\ndo it"),
        ("i.md", "---\nverfy: x\nafter: [nobdoy, j]\n---\n"),
        ("j.md", "---\nafter: i\n---\ndo it"),
    ];
    insta::assert_snapshot!(read(&files, Some("slot = 4")).unwrap_err(), @r#"
    fleet.toml:1: unknown key `slot`: did you mean `slots`?
    a.md:2: there is no task `auht`: did you mean `Auth`?
    a.md:2: these tasks wait for each other: a → b → a
    auth.md: its name differs from Auth.md only in case, and branches on some machines ignore that: rename one
    c.md:2: these tasks wait for each other: c → c
    d.md:2: there is no task `nobody`: after names files of this folder, without .md
    e.md:2: these tasks wait for each other: e → g → f → e
    h.md:2: there is no task `auth.md`: did you mean `Auth`?
    i.md: there is no prompt: write what is to be done under the front matter
    i.md:2: unknown key `verfy`: did you mean `verify`?
    i.md:3: there is no task `nobdoy`: after names files of this folder, without .md
    i.md:3: these tasks wait for each other: i → j → i
    "#);
}

#[test]
fn what_is_not_utf_8_is_refused_by_name_together_with_every_other_fault() {
    let files = [
        ("latin.md", &b"---\nn: 3\n---\nna\xefve\n"[..]),
        ("typo.md", b"---\nverfy: x\n---\ndo it"),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes.to_vec()));
    let faults = folder(files.to_vec(), Some(b"slots = 2\nname = '\xff'"), hash).unwrap_err();
    insta::assert_snapshot!(faults.join("\n"), @r#"
    fleet.toml:2: this is not UTF-8: save the file as UTF-8
    latin.md:4: this is not UTF-8: save the file as UTF-8
    typo.md:2: unknown key `verfy`: did you mean `verify`?
    "#);
}

#[test]
fn a_task_becomes_the_arguments_of_a_run_with_its_prompt_as_it_is() {
    for prompt in
        ["build", "--verify x", "-- x", "a \"quote --verify", "  two\nlines", "é\u{a0}—push"]
    {
        let text = format!("---\nverify: --x\nrequire: checked\nwords: [-n, '9']\n---\n{prompt}\n");
        let (_, tasks) = read(&[("auth.md", &text)], None).unwrap();
        let run = run_args(&tasks[0]).unwrap();
        assert_eq!(run.start.task().as_deref(), Some(prompt));
        assert_eq!(
            (run.start.terms.verify, run.start.terms.require),
            (vec!["--x".to_owned()], Some(Proof::Checked))
        );
        assert_eq!(run.options.words, Some(vec!["-n".to_owned(), "9".to_owned()]));
    }
}

#[test]
fn a_recorded_task_that_this_crew_cannot_run_is_named() {
    let (_, mut tasks) = read(&[("auth.md", "do it")], None).unwrap();
    let mut told = Vec::new();
    for word in ["--frobnicate", "--max-cost=lots"] {
        tasks[0].words = vec![word.to_owned()];
        told.push(run_args(&tasks[0]).unwrap_err().to_string());
    }
    insta::assert_snapshot!(told.join("\n"), @"
    auth: unknown option `--frobnicate`
    hint: crew run --help
    auth: invalid value `lots` for `--max-cost <USD>`
    hint: US dollars, such as 5.00
    ");
}
