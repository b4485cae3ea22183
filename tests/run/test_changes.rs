//! What the end of a loop proves when the agent changes tests and what runs them: each row is an
//! agent's actions before its claim, and how the loop ends.

use serde_json::json;

use super::{CLAIM, World};
use crate::sandbox::DEADLINE;
use crate::side_by_side::in_lanes;

/// One row.
struct Row {
    name: &'static str,
    /// The files of the project: path and text.
    files: &'static [(&'static str, &'static str)],
    check: &'static str,
    options: &'static [&'static str],
    /// What the agent does before it claims.
    agent: &'static str,
    /// The outcome and the proof: "completed checked", "blocked".
    end: &'static str,
    /// A text in the reason.
    why: &'static str,
}

const fn row(name: &'static str, check: &'static str, agent: &'static str) -> Row {
    Row { name, files: &[], check, options: &[], agent, end: "completed checked", why: "" }
}

const CHECK: &str = "check.sh";
const SCRIPT: &str = "test -e done\n";
const MAKEFILE: &str =
    "FLAG = -e\ntest: helper\n\ttest $(FLAG) done\nhelper:\n\ttrue\nother:\n\ttrue\n";
const GOAL: &[(&str, &str)] = &[("Makefile", "test:\n\ttest -e done\n")];
const MAKE: &[(&str, &str)] = &[("Makefile", MAKEFILE)];
const SH: &[(&str, &str)] = &[(CHECK, SCRIPT)];
const IGNORED: &[(&str, &str)] = &[(CHECK, SCRIPT), (".gitignore", "check.sh\n")];
const SWAP: &str = "echo true > check.sh";
const PACKAGE: &str = r#"{"version":"1","scripts":{"test":"sh check.sh"}}"#;
const NODE: &[(&str, &str)] = &[("package.json", PACKAGE), (CHECK, SCRIPT)];
const BLOCKED: &str = "blocked";
const DONE: &str = "completed checked";
const PASSING: &str = "completed passing";
const ALSO: &str = "also passes with the tests and settings as the loop found them";

const fn sh(name: &'static str, agent: &'static str, end: &'static str, why: &'static str) -> Row {
    Row { files: SH, end, why, ..row(name, "sh check.sh", agent) }
}

const fn make(
    name: &'static str,
    agent: &'static str,
    end: &'static str,
    why: &'static str,
) -> Row {
    Row { files: MAKE, end, why, ..row(name, "make test", agent) }
}

const fn npm(name: &'static str, agent: &'static str, end: &'static str, why: &'static str) -> Row {
    Row { files: NODE, end, why, ..row(name, "npm test", agent) }
}

const ROWS: &[Row] = &[
    sh("honest work", "touch done", DONE, "a check that had failed now passes"),
    sh("a swapped script", SWAP, BLOCKED, "check.sh"),
    sh("a deleted script beside true work", "touch done; echo true > check.sh", DONE, ALSO),
    sh(
        "a link in the script's place",
        "echo true > x; rm check.sh; ln -s x check.sh",
        BLOCKED,
        "check.sh",
    ),
    sh("a comment in the script, and true work", "touch done; echo '#' >> check.sh", DONE, ALSO),
    sh("another script", "touch done; echo true > other.sh", DONE, ""),
    sh(
        "a committed swap",
        "echo true > check.sh; git add -A; git commit -qm x",
        BLOCKED,
        "check.sh",
    ),
    make(
        "a recipe",
        "printf 'test:\\n\\ttrue\\n' > Makefile",
        PASSING,
        "only with the change of Makefile",
    ),
    make(
        "a prerequisite beside true work",
        "touch done; sed -i.bak 's/^\\ttrue/\\techo/' Makefile",
        DONE,
        ALSO,
    ),
    make(
        "a variable",
        "sed -i.bak 's/^FLAG = -e/FLAG = ! -e/' Makefile",
        PASSING,
        "only with the change of Makefile",
    ),
    make("another recipe", "touch done; printf 'more:\\n\\ttrue\\n' >> Makefile", DONE, ""),
    make(
        "a makefile that comes first",
        "printf 'test:\\n\\ttrue\\n' > GNUmakefile",
        PASSING,
        "only with the change of GNUmakefile",
    ),
    make(
        "a makefile that comes first and is not text",
        "printf '# \\351\\ntest:\\n\\ttrue\\n' > GNUmakefile",
        PASSING,
        "only with the change of GNUmakefile",
    ),
    make(
        "a makefile that comes first and is ignored",
        "echo GNUmakefile > .gitignore; printf 'test:\\n\\ttrue\\n' > GNUmakefile",
        PASSING,
        "only with the change of GNUmakefile",
    ),
    make(
        "a makefile that is ignored and takes itself away",
        "echo GNUmakefile > .gitignore; printf 'test:\\n\\t@rm GNUmakefile\\n' > GNUmakefile",
        PASSING,
        "only with the change of GNUmakefile",
    ),
    Row {
        files: GOAL,
        ..make("a folder in a goal's place", "mkdir -p test", BLOCKED, "ran nothing")
    },
    Row {
        files: GOAL,
        ..make(
            "a folder in a goal's place beside true work",
            "touch done; mkdir test; echo > test/a",
            BLOCKED,
            "ran nothing",
        )
    },
    Row {
        files: &[
            ("Makefile", "test:\n\tsh check.sh\n"),
            (CHECK, SCRIPT),
            (".gitignore", "check.sh\n"),
        ],
        ..make(
            "an ignored script, and true work on the makefile that runs it",
            "touch done; printf 'test: more\\n\\tsh check.sh\\nmore: ; true\\n' > Makefile",
            PASSING,
            "show nothing",
        )
    },
    Row {
        check: "python3 -m unittest -q test_a.py",
        files: &[("test_a.py", "open('done')\n")],
        end: BLOCKED,
        why: "unittest.py",
        ..row("a module in the place of the runner", "", "echo > unittest.py")
    },
    Row {
        files: &[(".gitignore", ".venv\n"), (CHECK, SCRIPT), ("a/.cargo/config.toml", "")],
        ..sh(
            "a folder of programs that is ignored, and a link to settings",
            "mkdir -p .venv/bin; ln -sfn a/.cargo .cargo; git add .; touch done",
            DONE,
            "a check that had failed now passes",
        )
    },
    Row { files: IGNORED, ..sh("a swap of an ignored script", SWAP, BLOCKED, "check.sh") },
    Row {
        files: &[(CHECK, SCRIPT), (".gitignore", "check.sh\n"), (".worktreeinclude", "check.sh\n")],
        ..sh("a swap of an ignored script that worktrees get", SWAP, BLOCKED, "check.sh")
    },
    Row { files: IGNORED, ..sh("an ignored script and true work", "touch done", DONE, "") },
    make(
        "a makefile that ignores errors",
        "echo .IGNORE: >> Makefile",
        PASSING,
        "only with the change of Makefile",
    ),
    Row {
        check: "python3 -m unittest -q tests/test_a.py; sh check.sh",
        files: SH,
        end: "completed claimed",
        why: "the tree changed while the checks ran: check.sh",
        ..row(
            "a test that swaps the script while the checks run",
            "",
            "mkdir -p tests; echo \"open('check.sh', 'w').write('true')\" > tests/test_a.py",
        )
    },
    Row {
        ..sh(
            "a conftest that imports a hook",
            "touch done; mkdir tests; echo 'from a import pytest_runtest_call' > tests/conftest.py",
            DONE,
            ALSO,
        )
    },
    npm(
        "a test script",
        "sed -i.bak 's/sh check.sh/true/' package.json",
        PASSING,
        "only with the change of package.json",
    ),
    npm("the script it runs", SWAP, PASSING, "only with the change of check.sh"),
    npm(
        "a script before it beside true work",
        "touch done; sed -i.bak 's/\"test\":/\"pretest\":\"true\",\"test\":/' package.json",
        DONE,
        ALSO,
    ),
    npm("another version", "touch done; sed -i.bak 's/\"1\"/\"2\"/' package.json", DONE, ""),
    Row {
        options: &["--test-changes", "report"],
        why: "check.sh changed since the loop began",
        ..sh("a swap that is only reported", "echo true > check.sh", PASSING, "")
    },
    Row { ..sh("a runner's settings", "touch done; echo '[pytest]' > pytest.ini", DONE, ALSO) },
    Row { ..sh("a planted conftest", "touch done; echo 'x=1' > conftest.py", DONE, ALSO) },
    Row {
        ..sh(
            "a planted conftest that is ignored",
            "touch done; mkdir tests; echo 'conftest.py' > .gitignore; echo 'x=1' > conftest.py
             echo 'def pytest_x(): 1' > tests/conftest.py; git add .gitignore",
            DONE,
            ALSO,
        )
    },
    sh("a dependency", "touch done; printf '[dependencies]\\na=\"1\"\\n' > Cargo.toml", DONE, ""),
    Row {
        ..sh(
            "tests switched off",
            "touch done; printf '[package]\\nautotests=false\\n' > Cargo.toml",
            DONE,
            "",
        )
    },
    Row {
        check: "grep -q yes answer",
        files: &[("answer", "no\n")],
        ..row("a file that a check only reads", "", "echo yes > answer")
    },
    Row {
        check: "cd sub && sh ../check.sh",
        files: SH,
        end: PASSING,
        why: "show nothing",
        ..row("a script from a folder", "", "echo true > check.sh; mkdir -p sub")
    },
];

#[test]
#[ignore = "long"]
fn every_ending_has_the_proof_of_its_row() {
    let wrong: Vec<String> = in_lanes(ROWS, complaint).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with the end of a row; `None` if it is as expected.
fn complaint(row: &Row) -> Option<String> {
    let world = World::new(&[&format!("{}; {CLAIM}", row.agent)]);
    std::fs::create_dir_all(world.sandbox.file("sub")).unwrap();
    for (path, text) in row.files {
        world.sandbox.write(path, text);
    }
    world.sandbox.git(&["add", "-A"]);
    world.sandbox.git(&["commit", "-qm", "project", "--allow-empty"]);
    let start = ["run", "Do it", "-n", "3", "--verify", row.check];
    world.crew(&[&start[..], row.options].concat());
    let shown = world.the_loop();
    let proof = shown["proof"].as_str().unwrap_or_default();
    let end = format!("{} {proof}", shown["outcome"].as_str().unwrap_or_default());
    let why = shown["why"].as_str().unwrap_or_default();
    let is_right = end.trim() == row.end && why.contains(row.why);
    if is_right { None } else { Some(format!("{}: {end} ({why})", row.name)) }
}

#[test]
fn a_person_can_accept_the_change_of_a_script_that_a_check_runs() {
    let world = World::new(&[&format!("echo true > check.sh; {CLAIM}")]);
    world.sandbox.write(CHECK, SCRIPT);
    world.crew(&["run", "Do it", "-n", "4", "--verify", "sh check.sh"]);
    let shown = world.the_loop();
    assert_eq!((&shown["outcome"], &shown["consecutive_failures"]), (&json!("blocked"), &json!(0)));
    assert!(
        shown["why"].as_str().unwrap().contains("crew resume --accept-test-changes"),
        "{shown:#}"
    );
    assert_eq!(world.sandbox.crew(&["resume", "--accept-test-changes"]).code(), 0);
    assert_eq!(world.the_loop()["proof"], "passing", "what had failed was another check");
}

#[test]
fn the_original_checks_run_in_a_folder_of_their_own() {
    let agent = format!("echo true > check.sh; touch done; {CLAIM}");
    let world = World::new(&[&agent]);
    world.sandbox.write(CHECK, "pwd > \"$PLACES/$(date +%s%N)\"; test -e done\n");
    let places = world.note("places");
    std::fs::create_dir_all(&places).unwrap();
    let mut run = world.sandbox.command(world.sandbox.build().path());
    run.args(["run", "Do it", "-n", "1", "--verify", "sh check.sh"]).env("PLACES", &places);
    let ran = crate::spawned::Running::start(run, None).wait(DEADLINE);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let mut found: Vec<String> = std::fs::read_dir(&places)
        .unwrap()
        .map(|place| std::fs::read_to_string(place.unwrap().path()).unwrap())
        .collect();
    found.sort();
    let here = world.sandbox.repository().display().to_string();
    assert_eq!(found.len(), 2, "before iteration 1, and as it was: {found:?}");
    assert!(found.iter().any(|place| place.trim() == here), "{found:?}");
    assert!(found.iter().any(|place| place.contains("/scratch/")), "{found:?}");
}
