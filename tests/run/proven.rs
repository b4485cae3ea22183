//! The results of `--prove`: a row is a project, an agent and the end. The test runners are real.

use std::path::Path;

use rustix::process::{Pid, Signal, test_kill_process};

use super::{CLAIM, World};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};

type Files = &'static [(&'static str, &'static str)];

/// A project in one language: its tests fail for the job that is not done.
struct Project {
    check: &'static str,
    files: Files,
}

const CARGO: &str = "[package]\nname = \"tax\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const LOCK: &str = "version = 3\n\n[[package]]\nname = \"tax\"\nversion = \"0.1.0\"\n";
const RUST: Project = Project {
    check: "cargo test --offline",
    files: &[
        ("Cargo.toml", CARGO),
        ("Cargo.lock", LOCK),
        (".gitignore", "target\n"),
        ("src/lib.rs", "pub fn twice(n: u32) -> u32 {\n    n\n}\n"),
        (
            "tests/tax.rs",
            "#[test]\nfn none() {\n    assert_eq!(tax::twice(0), 0);\n}\n#[test]\nfn two() {\n    \
             assert_eq!(tax::twice(2), 4);\n}\n",
        ),
    ],
};
const PYTHON: Project = Project {
    check: "python3 -m unittest discover -v -s tests -t .",
    files: &[
        (".gitignore", "__pycache__\n"),
        ("tax.py", "def twice(n):\n    return n\n"),
        ("tests/__init__.py", ""),
        (
            "tests/test_tax.py",
            "import unittest, tax\nclass Tax(unittest.TestCase):\n    def test_none(self):\n        \
             self.assertEqual(tax.twice(0), 0)\n    def test_two(self):\n        \
             self.assertEqual(tax.twice(2), 4)\n",
        ),
    ],
};
const SCRIPT: Project = Project {
    check: "node --test --test-reporter=tap",
    files: &[
        ("package.json", "{\"type\":\"module\"}\n"),
        ("tax.js", "export const twice = (n) => n\n"),
        (
            "test/tax.test.js",
            "import test from 'node:test'\nimport assert from 'node:assert'\nimport { twice } from \
             '../tax.js'\ntest('none', () => assert.equal(twice(0), 0))\ntest('two', () => \
             assert.equal(twice(2), 4))\n",
        ),
    ],
};
const C: Project = Project {
    check: "make -s test",
    files: &[
        (".gitignore", "check\n"),
        ("Makefile", "test: check\n\t./check\ncheck: tax.c tests/check.c\n\tcc -o check $^\n"),
        ("tax.c", "int twice(int n) { return n; }\n"),
        (
            "tests/check.c",
            "#include <stdio.h>\nint twice(int);\nstatic int failed;\nstatic void is(int n, int ok, \
             const char *name) {\n  printf(\"%s %d - %s\\n\", ok ? \"ok\" : \"not ok\", n, name);\n  \
             failed |= !ok;\n}\nint main(void) {\n  puts(\"1..2\");\n  is(1, twice(0) == 0, \
             \"none\");\n  is(2, twice(2) == 4, \"two\");\n  return failed;\n}\n",
        ),
    ],
};
const SHELL: Project = Project {
    check: "sh tests/run.sh",
    files: &[
        ("twice", "echo \"$1\"\n"),
        (
            "tests/run.sh",
            "echo 1..2; failed=0\nis() { [ \"$2\" = \"$3\" ] && echo \"ok $1 - $4\" || { echo \"not \
             ok $1 - $4\"; failed=1; }; }\nis 1 \"$(sh twice 0)\" 0 none\nis 2 \"$(sh twice 2)\" 4 \
             two\nexit $failed\n",
        ),
    ],
};

/// One ending.
struct Row {
    name: &'static str,
    project: &'static Project,
    /// What the agent does before it claims.
    agent: &'static str,
    /// The outcome and the proof, such as "completed proven".
    end: &'static str,
    /// A text in the reason.
    why: &'static str,
}

const fn proven(
    name: &'static str,
    project: &'static Project,
    agent: &'static str,
    why: &'static str,
) -> Row {
    Row { name, project, agent, end: "completed proven", why }
}

const fn checked(
    name: &'static str,
    project: &'static Project,
    agent: &'static str,
    why: &'static str,
) -> Row {
    Row { name, project, agent, end: "completed checked", why }
}

const RUST_WORK: &str = "printf 'pub fn twice(n: u32) -> u32 {\\n    n * 2\\n}\\n' > src/lib.rs";
const PYTHON_WORK: &str = "printf 'def twice(n):\\n    return n * 2\\n' > tax.py";
const SCRIPT_WORK: &str = "echo 'export const twice = (n) => n * 2' > tax.js";
const C_WORK: &str = "echo 'int twice(int n) { return n * 2; }' > tax.c";
const SHELL_WORK: &str = "echo 'echo $(($1 * 2))' > twice";

/// Ten real jobs in five languages, the second of each with a test of its own.
const TRUE_ONES: &[Row] = &[
    proven("Rust", &RUST, RUST_WORK, "two"),
    proven(
        "Rust with a test",
        &RUST,
        "printf 'pub fn twice(n: u32) -> u32 {\\n    n * 2\\n}\\n' > src/lib.rs; printf \
         '#[test]\\nfn three() {\\n    assert_eq!(tax::twice(3), 6);\\n}\\n' > tests/three.rs",
        "it fails in",
    ),
    proven("Python", &PYTHON, PYTHON_WORK, "it fails in tests.test_tax.Tax.test_two"),
    proven(
        "Python with a test",
        &PYTHON,
        "printf 'def twice(n):\\n    return n * 2\\n' > tax.py; sed 's/twice(2), 4/twice(3), 6/' \
         tests/test_tax.py > tests/test_three.py; git add -A; git commit -qm work",
        "it fails in",
    ),
    proven("JavaScript", &SCRIPT, SCRIPT_WORK, "two"),
    proven(
        "JavaScript with a test",
        &SCRIPT,
        "echo 'export const twice = (n) => n + n' > tax.js; sed 's/two/three/; s/twice(2), \
         4/twice(3), 6/' test/tax.test.js > test/three.test.js",
        "it fails in",
    ),
    proven("C", &C, C_WORK, "two"),
    checked(
        "C with a test of a new function, which does not link without it",
        &C,
        "echo 'int twice(int n) { return n * 2; } int thrice(int n) { return n * 3; }' > tax.c; sed -i.bak \
         's/^int twice(int);/int twice(int); int thrice(int);/; s/twice(2) == 4/thrice(2) == 6/' \
         tests/check.c; rm tests/*.bak",
        "fails without the work",
    ),
    proven("shell", &SHELL, SHELL_WORK, "two"),
    proven(
        "a new file in place of an old one",
        &SHELL,
        "rm twice; echo 'expr $1 + $1' > twice",
        "two",
    ),
];

/// A part of the Python project's tests, which passes from the start.
const PASSING: Project =
    Project { check: "python3 -m unittest -v tests.test_tax.Tax.test_none", files: PYTHON.files };

/// Work that is not proven, with the reason.
const OTHERS: &[Row] = &[
    Row {
        end: "exhausted",
        ..checked(
            "a failing test that is adapted to the work",
            &PYTHON,
            "sed -i.bak 's/twice(2), 4/twice(2), 2 * 1/' tests/test_tax.py; rm tests/*.bak; echo '# done' >> tax.py",
            "the limit",
        )
    },
    Row {
        end: "exhausted",
        ..checked(
            "a failing test alone",
            &PYTHON,
            "sed -i.bak 's/twice(2), 4/twice(2), 2 * 1/' tests/test_tax.py; rm tests/*.bak",
            "the limit",
        )
    },
    checked(
        "a new function, which a test cannot import without the work",
        &PYTHON,
        "printf 'def twice(n):\\n    return n * 2\\ndef thrice(n):\\n    return n * 3\\n' > tax.py; sed \
         -i.bak 's/import unittest, tax/import unittest, tax\\nfrom tax import thrice/' \
         tests/test_tax.py; rm tests/*.bak",
        "before its tests run",
    ),
    checked(
        "tests in the file of the work",
        &RUST,
        "printf 'pub fn twice(n: u32) -> u32 {\\n    n * 2\\n}\\n#[test]\\nfn two() {\\n    \
         assert_eq!(twice(2), 4);\\n}\\n' > src/lib.rs",
        "tests and work cannot be separated: src/lib.rs",
    ),
    proven(
        "a deleted test beside true work",
        &PYTHON,
        "printf 'def twice(n):\\n    return n * 2\\n' > tax.py; sed -i.bak '3,4d' tests/test_tax.py; rm \
         tests/*.bak",
        "tests 2 → 1 (1 gone: tests.test_tax.Tax.test_none)",
    ),
    proven(
        "a skipped test beside true work",
        &PYTHON,
        "printf 'def twice(n):\\n    return n * 2\\n' > tax.py; sed -i.bak '3i\\    @unittest.skip(\"\")' \
         tests/test_tax.py; rm tests/*.bak",
        "1 newly skipped: tests.test_tax.Tax.test_none",
    ),
    Row {
        end: "completed passing",
        ..checked(
            "a refactoring",
            &PASSING,
            "printf 'def twice(number):\\n    return number\\n' > tax.py",
            "passes without the work too, as after a refactoring",
        )
    },
    Row {
        end: "completed proven",
        ..checked(
            "true work beside a conftest that it does not need",
            &PYTHON,
            "printf 'def twice(n):\\n    return n * 2\\n' > tax.py; echo 'x = 1' > conftest.py",
            "also passes with the tests and settings as the loop found them",
        )
    },
];

/// A sandbox with the programs of this machine and the toolchain that built the tests.
pub(crate) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let toolchain = Path::new(env!("CARGO")).parent().unwrap().display().to_string();
    let programs = std::env::var("PATH").unwrap();
    let own = sandbox.root().join("bin").display().to_string();
    sandbox.env("PATH", &format!("{own}:{toolchain}:{programs}"))
}

fn world(project: &Project, agent: &str) -> World {
    let world = World::of(sandbox(), &[&format!("{agent}\n{CLAIM}")]);
    for (path, text) in project.files {
        world.sandbox.write(path, text);
    }
    world.sandbox.git(&["add", "-A"]);
    world.sandbox.git(&["commit", "-qm", "project"]);
    world
}

#[track_caller]
fn hold(rows: &[Row]) {
    let mut wrong = Vec::new();
    for row in rows {
        let world = world(row.project, row.agent);
        world.crew(&["run", "Do it", "-n", "2", "--prove", "--verify", row.project.check]);
        let shown = world.the_loop();
        let text = |key: &str| shown[key].as_str().unwrap_or_default();
        let (end, why) = (format!("{} {}", text("outcome"), text("proof")), text("why"));
        if end.trim() != row.end || !why.contains(row.why) {
            wrong.push(format!("{}: {end} ({why})", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "long"]
fn real_work_is_proven_in_five_languages() {
    hold(TRUE_ONES);
}

#[test]
#[ignore = "long"]
fn checks_that_pass_without_the_work_are_not_proven_and_the_reason_says_why() {
    hold(OTHERS);
}

/// The check of the Python project, without the compiled files that it writes.
const NO_TRACE: &str = "python3 -B -m unittest discover -v -s tests -t .";
/// Every file of the repository and of git's own folder, except crew's.
const HASHES: &str = "find . -path ./.claude -prune -o -type f -print | sort | xargs sha256sum";

#[test]
fn a_proof_run_leaves_the_working_tree_and_git_unchanged() {
    let agent = format!(
        "{PYTHON_WORK}; echo new > new.txt; git stash list > /dev/null; echo x > x; git add x; git stash -q; \
         {PYTHON_WORK}; git add tax.py; {HASHES} > \"$notes/before\"; git worktree list >> \"$notes/before\""
    );
    let world = world(&PYTHON, &agent);
    let ran = world.crew(&["run", "Do it", "-n", "1", "--prove", "--verify", NO_TRACE]);
    assert!(ran.stdout.contains("Completed, proven"), "{ran:#?}");
    let again = world.crew(&["prove"]);
    assert_eq!(again.code(), 0, "{again:#?}");
    assert!(again.stdout.contains("proven: `python3"), "{again:#?}");
    let mut after = world.sandbox.command("sh");
    after.args(["-c", &format!("{HASHES}; git worktree list")]);
    let after = crate::spawned::Running::start(after, None).wait(DEADLINE).success();
    let before = std::fs::read_to_string(world.note("before")).unwrap();
    assert!(before.contains("./.git/index") && before.contains("stash"), "{before}");
    let differing: Vec<&str> = after.lines().filter(|line| !before.contains(line)).collect();
    assert_eq!((differing, after.lines().count()), (Vec::new(), before.lines().count()));
}

#[test]
fn a_killed_proof_run_leaves_no_process_and_the_next_one_succeeds() {
    let world = world(&PYTHON, PYTHON_WORK);
    let pid = world.note("pid");
    let stuck = format!(
        "case $PWD in */scratch/*) test -e {0} || {{ echo $$ > {0}; exec sleep 600; }};; esac; {1}",
        pid.display(),
        PYTHON.check
    );
    let run = world.sandbox.start_crew(&["run", "Do it", "-n", "3", "--prove", "--verify", &stuck]);
    poll_until("the trial", || std::fs::read_to_string(&pid).is_ok_and(|it| it.ends_with('\n')));
    let left: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    run.signal(Signal::KILL);
    drop(run);
    let ran = world.crew(&["resume"]);
    assert!(ran.stdout.contains("Completed, proven"), "{ran:#?}");
    let left = || test_kill_process(Pid::from_raw(left).unwrap());
    poll_until("the end of what was left", || left().is_err());
}

#[test]
fn the_work_is_proven_even_without_a_stall_limit() {
    let world = world(&SHELL, SHELL_WORK);
    let start =
        ["run", "Do it", "-n", "1", "--stall", "0", "--timeout", "0", "--idle-timeout", "0"];
    world.crew(&[&start[..], &["--prove", "--verify", SHELL.check]].concat());
    assert_eq!(world.the_loop()["proof"], "proven");
    assert_eq!(world.crew(&["prove"]).code(), 0);
}

#[test]
fn crew_prove_proves_nothing_by_changed_checks() {
    let world = world(&SHELL, "echo 'echo $(($1 * 2))' > twice; echo '# note' >> tests/run.sh");
    let start = ["run", "Do it", "-n", "1", "--test-changes", "report", "--verify"];
    world.crew(&[&start[..], &[SHELL.check]].concat());
    assert_eq!(world.the_loop()["proof"], "checked");
    let shown = world.crew(&["prove"]);
    assert!(
        shown.code() == 0 && shown.stdout.contains("it fails in two"),
        "as they were: {shown:#?}"
    );
    let swap = format!("echo 'echo ok 1 - a; echo 1..1' > tests/run.sh\n{CLAIM}");
    world.steps(&[&swap]);
    world.crew(&[&start[..], &["sh tests/run.sh"]].concat());
    let shown = world.crew(&["prove"]);
    assert!(shown.code() == 1 && shown.stdout.contains("not proven"), "{shown:#?}");
}

#[test]
fn a_required_proof_refuses_a_claim_until_the_tests_are_restored() {
    let lazy = "sed -i.bak 's/twice(2), 4/twice(2), 2 * 1/' tests/test_tax.py; rm tests/*.bak; echo '# a' >> tax.py";
    let honest = format!("git checkout -q tests; {PYTHON_WORK}");
    let world = world(&PYTHON, lazy);
    let claim = |work: &str| format!("{work}\n{CLAIM}");
    world.steps(&[&claim(lazy), &claim("echo '# b' >> tax.py"), &claim(&honest)]);
    let start = ["run", "Do it", "-n", "5", "--require", "proven", "--verify", PYTHON.check];
    let ran = world.crew(&start);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let shown = world.the_loop();
    assert!(shown["completed_iterations"] == 3 && shown["proof"] == "proven", "{shown:#}");
    assert!(world.prompt(2).contains("as it was then, still fails"), "{}", world.prompt(2));
}

#[test]
fn the_scratch_folder_is_set_up_once_and_gets_the_files_that_it_needs() {
    let project = Project {
        check: "test -e .env && test -e installed && python3 -m unittest discover -v -s tests -t .",
        files: PYTHON.files,
    };
    let world = world(&project, PYTHON_WORK);
    world.sandbox.write(".gitignore", "__pycache__\n.env\ninstalled\n");
    world.sandbox.write(".worktreeinclude", ".env\n");
    world.sandbox.git(&["add", "-A"]);
    world.sandbox.git(&["commit", "-qm", "settings"]);
    world.sandbox.write(".env", "PASSWORD=none\n");
    world.sandbox.write("installed", "");
    let start = ["run", "Do it", "-n", "1", "--prove", "--verify", project.check];
    world.crew(&start);
    let shown = world.the_loop();
    assert_eq!(shown["proof"], "checked", "{shown:#}");
    let why = shown["why"].as_str().unwrap();
    assert!(why.contains("in a scratch folder, which `setup`"), "{shown:#}");
    let count = world.note("setups");
    let setup = format!("touch installed; echo . >> {}", count.display());
    world.settings(&format!("loop.setup = {setup:?}\n"));
    world.sandbox.git(&["checkout", "-q", "tax.py"]);
    let ran = world.crew(&start);
    assert!(ran.stdout.contains("Completed, proven"), "{ran:#?}");
    assert_eq!(world.crew(&["prove"]).code(), 0);
    assert_eq!(std::fs::read_to_string(count).unwrap(), ".\n");
}
