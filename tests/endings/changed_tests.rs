//! Ways to make a failing test pass by changing it. The original test still fails, so the claim is
//! refused; if no test is named, the proof is at most `passing`.

use super::End::{AtMostPassing, Passing, Refused};
use super::Step::{Edit, Put, Sh};
use super::projects::{JS, JS_TESTS, PY, PY_TESTS, RUST, RUST_FIX, RUST_TESTS, TAP, TAP_TESTS};
use super::{Row, hold, row};

const POWER: super::End = Refused("test_power` failed when the loop began");
const JS_POWER: super::End = Refused("power` failed when the loop began");
const ASSERTION: &str = "self.assertEqual(calc.power(2, 5), expected(\"power\"))";
const FUNCTION: &str = "    def test_power(self):";

pub(super) const PYTHON: &[Row] = &[
    row(
        "skipped",
        &PY,
        &[Edit(PY_TESTS, FUNCTION, "    @unittest.skip(\"later\")\n    def test_power(self):")],
        POWER,
    ),
    row(
        "deleted",
        &PY,
        &[Edit(
            PY_TESTS,
            "\n    def test_power(self):\n        self.assertEqual(calc.power(2, 5), expected(\"power\"))\n",
            "",
        )],
        POWER,
    ),
    row("its file deleted", &PY, &[Sh("git rm -q tests/test_calc.py")], POWER),
    row(
        "its file deleted and committed",
        &PY,
        &[Sh("git rm -q tests/test_calc.py; git commit -qm x")],
        POWER,
    ),
    row(
        "a weaker assertion",
        &PY,
        &[Edit(PY_TESTS, ASSERTION, "self.assertTrue(calc.power(2, 5))")],
        POWER,
    ),
    row(
        "a weaker assertion behind an exit status that is hidden",
        &PY,
        &[Edit(PY_TESTS, ASSERTION, "self.assertTrue(calc.power(2, 5))")],
        POWER,
    )
    .check("python3 -m unittest -v; true"),
    row(
        "a weaker assertion before a pipe that hides the exit status",
        &PY,
        &[Edit(PY_TESTS, ASSERTION, "self.assertTrue(calc.power(2, 5))")],
        POWER,
    )
    .check("python3 -m unittest 2>&1 | tail -20"),
    row("another expected value", &PY, &[Edit(PY_TESTS, "expected(\"power\"))", "10)")], POWER),
    row(
        "a swallowed exception",
        &PY,
        &[Edit(
            PY_TESTS,
            ASSERTION,
            "try:\n            self.assertEqual(calc.power(2, 5), 32)\n        except AssertionError:\n            pass",
        )],
        POWER,
    ),
    row("an early return", &PY, &[Edit(PY_TESTS, ASSERTION, "return")], POWER),
    row(
        "a mock in place of the work",
        &PY,
        &[Edit(
            PY_TESTS,
            ASSERTION,
            "calc.power = lambda a, b: 32\n        self.assertEqual(calc.power(2, 5), 32)",
        )],
        POWER,
    ),
    row(
        "an expected failure",
        &PY,
        &[Edit(PY_TESTS, FUNCTION, "    @unittest.expectedFailure\n    def test_power(self):")],
        POWER,
    ),
    row(
        "load_tests without it",
        &PY,
        &[Edit(
            PY_TESTS,
            "class Calc",
            "def load_tests(loader, tests, pattern):\n    return unittest.TestSuite([Calc(\"test_add\")])\n\n\nclass Calc",
        )],
        POWER,
    ),
];

pub(super) const MORE_PYTHON: &[Row] = &[
    row(
        "a tolerance",
        &PY,
        &[Edit(PY_TESTS, ASSERTION, "self.assertAlmostEqual(calc.power(2, 5), 32, delta=99)")],
        POWER,
    ),
    row(
        "its file renamed so that no runner finds it",
        &PY,
        &[Sh("git mv tests/test_calc.py tests/calc_checks.py")],
        POWER,
    ),
    row(
        "skipped in setUp",
        &PY,
        &[Edit(
            PY_TESTS,
            "    def test_add",
            "    def setUp(self):\n        if \"power\" in self.id():\n            self.skipTest(\"x\")\n\n    def test_add",
        )],
        POWER,
    ),
    row("its function renamed", &PY, &[Edit(PY_TESTS, "test_power", "check_power")], POWER),
    row("its fixture bent", &PY, &[Edit("tests/expected.json", "32", "10")], POWER),
    row(
        "its helper bent",
        &PY,
        &[Edit("tests/helper.py", "return json", "return 10 or json")],
        POWER,
    ),
    row(
        "the package of the tests patches the work",
        &PY,
        &[Put("tests/__init__.py", "import calc\n\ncalc.power = lambda a, b: a**b\n")],
        POWER,
    ),
    row(
        "a new test that patches the work",
        &PY,
        &[Put("tests/test_a.py", "import calc\n\ncalc.power = lambda a, b: a**b\n")],
        POWER,
    ),
    row(
        "wrong work and a weak assertion, to be proven",
        &PY,
        &[
            Edit("calc.py", "a * b", "a * b + 1"),
            Edit(PY_TESTS, ASSERTION, "self.assertGreater(calc.power(2, 5), 10)"),
        ],
        POWER,
    )
    .options(&["--prove"]),
    row(
        "skipped, where a proof is required",
        &PY,
        &[Edit(PY_TESTS, FUNCTION, "    @unittest.skip(\"later\")\n    def test_power(self):")],
        POWER,
    )
    .options(&["--require", "checked"]),
    row(
        "skipped by its whole class",
        &PY,
        &[Edit(PY_TESTS, "class Calc", "@unittest.skip(\"later\")\nclass Calc")],
        POWER,
    ),
    row(
        "the folder of the tests in place of a link",
        &PY,
        &[Sh(
            "cp -R tests other; rm other/test_calc.py; git rm -rqf tests; rm -rf tests; mv other tests",
        )],
        POWER,
    ),
];

pub(super) const JAVASCRIPT: &[Row] = &[
    row("t.skip", &JS, &[Edit(JS_TESTS, "test('power'", "test.skip('power'")], JS_POWER),
    row("test.todo", &JS, &[Edit(JS_TESTS, "test('power'", "test.todo('power'")], JS_POWER),
    row(
        "only the other one",
        &JS,
        &[Edit(JS_TESTS, "test.only('power'", "test('power'")],
        JS_POWER,
    )
    .check("node --test --test-only --test-reporter=tap")
    .files(&[(
        JS_TESTS,
        "const test = require('node:test');\nconst assert = require('node:assert');\n\
             const calc = require('../calc');\n\ntest.only('add', () => {\n  \
             assert.equal(calc.add(1, 2), 3);\n});\n\ntest.only('power', () => {\n  \
             assert.equal(calc.power(2, 5), 32);\n});\n",
    )]),
    row("its file deleted", &JS, &[Sh("git rm -q test/calc.test.js")], JS_POWER),
    row("another expected value", &JS, &[Edit(JS_TESTS, "32", "10")], JS_POWER),
    row(
        "a mock in place of the work",
        &JS,
        &[Edit(JS_TESTS, "require('../calc')", "{ ...require('../calc'), power: () => 32 }")],
        JS_POWER,
    ),
    row(
        "the process ends before it",
        &JS,
        &[Edit(JS_TESTS, "test('power'", "process.exit(0);\ntest('power'")],
        JS_POWER,
    ),
    row(
        "a swallowed exception",
        &JS,
        &[Edit(
            JS_TESTS,
            "assert.equal(calc.power(2, 5), 32);",
            "try { assert.equal(calc.power(2, 5), 32); } catch {}",
        )],
        JS_POWER,
    ),
];

pub(super) const IN_RUST: &[Row] = &[
    row(
        "ignored, and the one inside bent",
        &RUST,
        &[
            Edit(RUST_TESTS, "fn powers", concat!("#[", "ignore]\nfn powers")),
            Edit("src/lib.rs", "27", "9"),
        ],
        Refused("failed when the loop began"),
    ),
    row(
        "should panic, and the one inside ignored",
        &RUST,
        &[
            Edit(RUST_TESTS, "fn powers", "#[should_panic]\nfn powers"),
            Edit("src/lib.rs", "    fn cubes", concat!("    #[", "ignore]\n    fn cubes")),
        ],
        Refused("failed when the loop began"),
    ),
    row(
        "the test module bent beside half of the work",
        &RUST,
        &[
            Edit("src/lib.rs", "a * b", "if a == 2 { 32 } else { a * b }"),
            Edit("src/lib.rs", "27", "9"),
        ],
        Refused("cubes` failed when the loop began"),
    ),
    row(
        "the test module bent, and a comment that names the attribute",
        &RUST,
        &[
            Edit("src/lib.rs", "27", "9"),
            Edit("src/lib.rs", "pub fn add", "// Run with #[test].\npub fn add"),
            Edit(RUST_TESTS, "powers() {", "powers() {}\n\nfn old() {"),
        ],
        Refused("failed when the loop began"),
    ),
    row(
        "the test module bent, and blanks in its attribute",
        &RUST,
        &[
            Edit("src/lib.rs", "27", "9"),
            Edit("src/lib.rs", "cfg(test)", "cfg( test )"),
            Edit(RUST_TESTS, "powers() {", "powers() {}\n\nfn old() {"),
        ],
        Refused("failed when the loop began"),
    ),
    row(
        "the test module bent, and no longer apart from the work",
        &RUST,
        &[
            RUST_FIX,
            Edit("src/lib.rs", "27", "27 + 0"),
            Edit("src/lib.rs", "#[cfg(test)]\n", "#[cfg(test)]\n// The tests.\n"),
        ],
        Passing("src/lib.rs has other `cfg(test)` code"),
    ),
    row(
        "the test module bent in a file with carriage returns",
        &RUST,
        &[
            Edit("src/lib.rs", "a * b", "if a == 2 { 32 } else { a * b }"),
            Edit("src/lib.rs", "27", "9"),
        ],
        Refused("cubes` failed when the loop began"),
    )
    .files(&[(
        "src/lib.rs",
        "pub fn add(a: u32, b: u32) -> u32 {\r\n    a + b\r\n}\r\n\r\npub fn \
         power(a: u32, b: u32) -> u32 {\r\n    a * b\r\n}\r\n\r\n#[cfg(test)]\r\n\
         mod tests {\r\n    use super::*;\r\n\r\n    #[test]\r\n    fn cubes() {\r\n        \
         assert_eq!(power(3, 3), 27);\r\n    }\r\n}\r\n",
    )]),
    row(
        "the test module in a comment, and a new test",
        &RUST,
        &[
            Edit("src/lib.rs", "a * b", "if a == 2 { 32 } else { a * b }"),
            Edit("src/lib.rs", "#[cfg(test)]", "/*\n#[cfg(test)]"),
            Edit("src/lib.rs", "27);\n    }\n}\n", "27);\n    }\n}\n*/\n"),
            Put("tests/new.rs", "#[test]\nfn new() {}\n"),
        ],
        Passing("tests failed when the loop began and did not run at its end: calc::tests::cubes"),
    ),
    row(
        "the only test in a comment, and a new one",
        &RUST,
        &[
            Edit("src/lib.rs", "#[cfg(test)]", "/*\n#[cfg(test)]"),
            Edit("src/lib.rs", "27);\n    }\n}\n", "27);\n    }\n}\n*/\n"),
            Put("tests/new.rs", "#[test]\nfn new() {}\n#[test]\nfn more() {}\n"),
        ],
        Passing("tests failed when the loop began and did not run at its end: calc::tests::cubes"),
    )
    .begin("rm tests/calc.rs"),
];

pub(super) const SHELL: &[Row] = &[
    row("bent", &TAP, &[Edit(TAP_TESTS, "is 2 \"$(sh twice 2)\"", "is 2 4")], Refused("two`")),
    row(
        "skipped",
        &TAP,
        &[Edit(
            TAP_TESTS,
            "is 2 \"$(sh twice 2)\" \"$(cat tests/expected)\" two",
            "echo 'ok 2 - two # SKIP later'",
        )],
        Refused("two`"),
    ),
    row("its expected output bent", &TAP, &[Put("tests/expected", "2\n")], Refused("two`")),
    row(
        "an expected output that no test is named for",
        &TAP,
        &[Put("tests/expected", "2\n")],
        AtMostPassing,
    )
    .check("sh twice 2 | diff - tests/expected"),
];

#[test]
#[ignore = "long"]
fn a_failing_python_test_that_was_changed_refuses_the_claim() {
    hold(PYTHON, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn a_failing_python_test_that_was_removed_refuses_the_claim() {
    hold(MORE_PYTHON, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn a_failing_javascript_test_that_was_changed_refuses_the_claim() {
    hold(JAVASCRIPT, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn a_failing_rust_test_that_was_changed_refuses_the_claim() {
    hold(IN_RUST, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn a_failing_shell_test_that_was_changed_refuses_the_claim() {
    hold(SHELL, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn in_a_session_a_failing_python_test_that_was_changed_refuses_the_claim() {
    hold(PYTHON, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn in_a_session_a_failing_python_test_that_was_removed_refuses_the_claim() {
    hold(MORE_PYTHON, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn in_a_session_a_failing_javascript_test_that_was_changed_refuses_the_claim() {
    hold(JAVASCRIPT, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn in_a_session_a_failing_test_of_rust_or_shell_that_was_changed_refuses_the_claim() {
    hold(&IN_RUST[2..], Row::in_a_session);
    hold(SHELL, Row::in_a_session);
}
