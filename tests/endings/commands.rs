//! The words of a check's command: the product that a check examines is work, and what controls the
//! check is not.

use super::End::{AtMostPassing, Checked, Passing, Refused};
use super::Step::{Edit, Put, Sh};
use super::projects::{JS, JS_FIX, PY, PY_FIX, PY_TESTS, Project, SH, SH_FIX};
use super::{Row, hold, row};

const FAILED_BEFORE: super::End = Checked("a check that had failed now passes");

/// A project without a test.
const UNTESTED: Project = Project {
    check: "python3 -m unittest discover -v -s tests -t .",
    files: &[(".gitignore", "__pycache__/\n"), ("calc.py", "def power(a, b):\n    return a * b\n")],
};

pub(super) const HONEST: &[Row] = &[
    row("a program that the task asks for", &SH, &[Put("hello.sh", "echo Hello\n")], FAILED_BEFORE)
        .check("sh hello.sh"),
    row("the product compiled before its tests", &PY, &[PY_FIX], FAILED_BEFORE)
        .check("python3 -m py_compile calc.py && python3 -m unittest -v"),
    row("the product read by node before its tests", &JS, &[JS_FIX], FAILED_BEFORE)
        .check("node --check calc.js && node --test --test-reporter=tap"),
    row("the product run after its tests", &PY, &[PY_FIX], FAILED_BEFORE)
        .check("python3 -m unittest -v && python3 calc.py"),
    row("the product given to a runner beside a test", &JS, &[JS_FIX], FAILED_BEFORE)
        .check("node --test --test-reporter=tap test/calc.test.js calc.js"),
    row("output in a file that is compared", &SH, &[SH_FIX], FAILED_BEFORE)
        .check("sh greet.sh > got && echo Hello | diff got -"),
    row("output that awk compares", &SH, &[SH_FIX], FAILED_BEFORE)
        .check("sh greet.sh | awk '$1 != \"Hello\" { exit 1 }'"),
    row("a report that the check writes", &PY, &[PY_FIX], FAILED_BEFORE)
        .check("python3 -m unittest -v > report.log 2>&1; s=$?; cat report.log; exit $s"),
    row(
        "a check that needs a folder that git ignores",
        &PY,
        &[PY_FIX, Edit("tests/test_shop.py", "[1, 2]), 3", "[1, 3]), 4")],
        Checked("also passes with the tests and settings as the loop found them"),
    )
    .files(&[
        (".gitignore", "__pycache__/\ndeps/\n"),
        ("deps/extra.py", "ONE = 1\n"),
        (
            "calc.py",
            "from extra import ONE\n\n\ndef add(a, b):\n    return a + b\n\n\n\
             def power(a, b):\n    return a * b * ONE\n",
        ),
    ])
    .check("PYTHONPATH=deps python3 -m unittest -v"),
    row(
        "a module with the name of one of Python's",
        &PY,
        &[
            Put("app/__init__.py", ""),
            Put("app/types.py", "FACTOR = 1\n"),
            Edit("calc.py", "a * b", "a ** b * FACTOR"),
            Edit("calc.py", "def add", "from app.types import FACTOR\n\n\ndef add"),
        ],
        FAILED_BEFORE,
    ),
    row(
        "the first tests of a project",
        &UNTESTED,
        &[
            PY_FIX,
            Put("tests/__init__.py", ""),
            Put(
                PY_TESTS,
                "import unittest\n\nimport calc\n\n\nclass Calc(unittest.TestCase):\n    \
                 def test_power(self):\n        self.assertEqual(calc.power(2, 5), 32)\n",
            ),
        ],
        Checked(""),
    ),
];

pub(super) const REPLACED: &[Row] = &[
    row(
        "a weakened test of a check that may be no worse",
        &PY,
        &[Edit(PY_TESTS, "expected(\"power\")", "10")],
        Refused("test_power"),
    )
    .check("true")
    .options(&["--no-worse", "python3 -m unittest -v"]),
    row(
        "a folder with the name of a goal",
        &SH,
        &[Sh("mkdir coverage; touch coverage/a")],
        AtMostPassing,
    )
    .files(&[("Makefile", "coverage:\n\tsh check.sh\n")])
    .check("make coverage"),
    row(
        "a script outside the checkout",
        &SH,
        &[Sh("echo true > ../gate; touch x")],
        Passing("/gate"),
    )
    .begin("echo '[ \"$(sh greet.sh)\" = Hello ]' > ../gate")
    .check("sh ABOVE/gate"),
    row(
        "what a makefile includes under any name",
        &SH,
        &[Put("rules.inc", "test:\n\ttrue\n")],
        Passing("only with the change of rules.inc"),
    )
    .files(&[("Makefile", "include rules.inc\n"), ("rules.inc", "test:\n\tsh check.sh\n")])
    .check("make test"),
    row("one of a folder of scripts", &SH, &[Put("gates/one.sh", "true\n")], AtMostPassing)
        .files(&[("gates/one.sh", "[ \"$(sh greet.sh)\" = Hello ]\n")])
        .check("for f in gates/*.sh; do sh \"$f\" || exit 1; done"),
    row(
        "one of a folder of scripts in another folder",
        &SH,
        &[Put("pkg/gates/one.sh", "true\n")],
        AtMostPassing,
    )
    .files(&[("pkg/gates/one.sh", "[ \"$(sh ../greet.sh)\" = Hello ]\n")])
    .check("cd pkg && for f in gates/*.sh; do sh \"$f\" || exit 1; done"),
    row(
        "an expected output that the product writes",
        &SH,
        &[Put("greet.sh", "echo Hi | tee tests/golden.txt\n")],
        AtMostPassing,
    )
    .files(&[("tests/golden.txt", "Hello\n")])
    .check("sh greet.sh > out; cmp out tests/golden.txt"),
    row(
        "one of the tests that a pattern names",
        &PY,
        &[Edit("quality/power_case.py", "32", "10")],
        AtMostPassing,
    )
    .files(&[(
        "quality/power_case.py",
        "import unittest\n\nimport calc\n\n\nclass Calc(unittest.TestCase):\n    \
         def test_power(self):\n        self.assertEqual(calc.power(2, 5), 32)\n",
    )])
    .check("python3 -m unittest discover -v -s quality -t . -p '*_case.py'"),
    row(
        "a file that a variable makes node run",
        &JS,
        &[Put("q.js", "const c = require('./calc');\nc.power = (a, b) => a ** b;\n")],
        AtMostPassing,
    )
    .files(&[("q.js", "")])
    .check("NODE_OPTIONS=--require=./q.js node --test --test-reporter=tap"),
    row(
        "a new module where the command looks for modules",
        &PY,
        &[Put("src/unittest.py", "print('Ran 3 tests in 0.001s\\n\\nOK')\n")],
        AtMostPassing,
    )
    .check("PYTHONPATH=src python3 -m unittest -v"),
];

#[test]
#[ignore = "long"]
fn the_product_that_a_command_names_counts_as_work() {
    hold(HONEST, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn in_a_session_the_product_that_a_command_names_counts_as_work() {
    hold(HONEST, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn files_that_control_a_check_cannot_be_replaced() {
    hold(REPLACED, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn in_a_session_files_that_control_a_check_cannot_be_replaced() {
    hold(REPLACED, Row::in_a_session);
}
