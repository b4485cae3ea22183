//! Real work, with other changes beside it: no claim is refused. The proof is what the checks show;
//! if the original tests no longer run, it is `passing`.

use super::End::{Checked, Passing};
use super::Step::{Edit, Put, Sh};
use super::projects::{
    JS, JS_FIX, JS_TESTS, PY, PY_FIX, PY_TESTS, Project, RUST, RUST_FIX, RUST_TESTS, SH, SH_FIX,
    TAP, TAP_FIX,
};
use super::{Row, hold, row};

const FAILED_BEFORE: super::End = Checked("a check that had failed now passes");
/// Tests or settings changed, and the check also passes without that change.
const ALSO: super::End = Checked("also passes with the tests and settings as the loop found them");

pub(super) const PYTHON: &[Row] = &[
    row("a fix", &PY, &[PY_FIX], FAILED_BEFORE),
    row(
        "a fix with new tests",
        &PY,
        &[
            PY_FIX,
            Put(
                "tests/test_more.py",
                "import unittest\n\nimport calc\n\n\nclass More(unittest.TestCase):\n    \
                 def test_one(self):\n        self.assertEqual(calc.power(7, 1), 7)\n",
            ),
            Edit(
                PY_TESTS,
                "    def test_power",
                "    def test_none(self):\n        self.assertEqual(calc.power(7, 0), 1)\n\n    def test_power",
            ),
        ],
        ALSO,
    ),
    row(
        "tests moved",
        &PY,
        &[
            PY_FIX,
            Sh(
                "mkdir tests/unit; touch tests/unit/__init__.py; git mv tests/test_calc.py tests/unit",
            ),
        ],
        ALSO,
    ),
    row(
        "tests renamed",
        &PY,
        &[
            PY_FIX,
            Edit(PY_TESTS, "test_power", "test_powers"),
            Sh("git mv tests/test_calc.py tests/test_maths.py; rm -f tests/test_calc.py"),
        ],
        ALSO,
    ),
    row(
        "tests tidied",
        &PY,
        &[
            PY_FIX,
            Edit(
                PY_TESTS,
                "self.assertEqual(calc.add(1, 2), 3)",
                "result = calc.add(1, 2)\n        self.assertEqual(result, 3)",
            ),
        ],
        ALSO,
    ),
    row(
        "an extended helper of the tests",
        &PY,
        &[
            PY_FIX,
            Edit("tests/helper.py", "(name):", "(name, file=\"expected.json\"):"),
            Edit("tests/helper.py", "/ \"expected.json\"", "/ file"),
            Put(
                "tests/test_more.py",
                "import unittest\n\nfrom tests.helper import expected\n\n\n\
                 class More(unittest.TestCase):\n    def test_one(self):\n        \
                 self.assertEqual(expected(\"power\", file=\"expected.json\"), 32)\n",
            ),
        ],
        ALSO,
    ),
    row(
        "a removed feature beside the work",
        &PY,
        &[PY_FIX, Sh("git rm -q shop.py tests/test_shop.py")],
        Passing("tests/test_shop.py"),
    ),
    row(
        "a formatter over everything",
        &PY,
        &[
            PY_FIX,
            Sh(
                "for f in *.py tests/*.py; do sed -i.bak 's/    /  /g; s/\"/'\"'\"'/g' $f; rm $f.bak; done",
            ),
        ],
        ALSO,
    ),
    row(
        "line ends of another system",
        &PY,
        &[PY_FIX, Sh("for f in *.py tests/*.py; do sed -i.bak 's/$/\\r/' $f; rm $f.bak; done")],
        ALSO,
    ),
    row(
        "a refactoring with its tests, and the work",
        &PY,
        &[
            Sh("git mv calc.py maths.py; sed 's/a [*] b/a ** b/' maths.py > x; mv x maths.py"),
            Edit(PY_TESTS, "import calc", "import maths"),
            Edit(PY_TESTS, "calc.", "maths."),
        ],
        Passing("only with the change of"),
    ),
];

/// A project without work to do: every test passes from the start.
const GREEN: Project = Project { check: "python3 -m unittest -v tests.test_shop", files: PY.files };
/// A project whose job is in a file that the tests read.
const LOCALES: Project = Project {
    check: "python3 -m unittest -v",
    files: &[
        (".gitignore", "__pycache__/\n"),
        ("locales/en.json", "{\"greeting\": \"Hi\"}\n"),
        ("openapi.yaml", "paths:\n  /shop:\n    get: {}\n"),
        ("gen/table.json", "{\"rows\": 1}\n"),
        ("docs/api.md", "# Shop\n"),
        (
            "test_files.py",
            "import json\nimport unittest\n\n\nclass Files(unittest.TestCase):\n    \
             def test_greeting(self):\n        self.assertEqual(json.load(open(\"locales/en.json\"))[\"greeting\"], \"Hello\")\n\n    \
             def test_total(self):\n        self.assertEqual(1 + 1, 2)\n",
        ),
    ],
};

pub(super) const MORE_PYTHON: &[Row] = &[
    row(
        "a refactoring alone",
        &GREEN,
        &[Edit("shop.py", "prices", "amounts")],
        Passing("the checks pass"),
    ),
    row("a text for users", &LOCALES, &[Edit("locales/en.json", "Hi", "Hello")], FAILED_BEFORE),
    row(
        "an interface's description",
        &LOCALES,
        &[Edit("openapi.yaml", "/shop", "/orders")],
        FAILED_BEFORE,
    )
    .check("grep -q /orders openapi.yaml"),
    row(
        "a generated file",
        &LOCALES,
        &[Sh("printf '{\"rows\": 2}\\n' > gen/table.json"), Edit("locales/en.json", "Hi", "Hello")],
        FAILED_BEFORE,
    )
    .check("python3 -m unittest -v && grep -q 2 gen/table.json"),
    row(
        "a conftest as the task",
        &PY,
        &[Put("conftest.py", "def db():\n    return {\"a\": 1}\n")],
        Passing("only with the change of conftest.py"),
    )
    .files(FIXTURES)
    .check("pytest -v"),
    row(
        "a conftest among the tests as the task",
        &PY,
        &[Put("tests/conftest.py", "def db():\n    return {\"a\": 1}\n")],
        Passing("only with the change of tests/conftest.py"),
    )
    .files(FIXTURES)
    .check("pytest -v"),
    row(
        "a conftest that a person lets change",
        &PY,
        &[Put("tests/conftest.py", "def db():\n    return {\"a\": 1}\n")],
        FAILED_BEFORE,
    )
    .files(FIXTURES)
    .check("pytest -v")
    .options(&["--may-change", "tests/conftest.py"]),
    row(
        "snapshots that a person lets change",
        &PY,
        &[Put("tests/expected.json", "{\"power\": 10}\n")],
        FAILED_BEFORE,
    )
    .options(&["--may-change", "tests/*.json"]),
    row(
        "a dependency of Python",
        &PY,
        &[PY_FIX, Edit("pyproject.toml", "[]", "[\"requests\"]"), Put("uv.lock", "version = 1\n")],
        FAILED_BEFORE,
    )
    .files(&[(
        "pyproject.toml",
        "[project]\nname = \"calc\"\nversion = \"1\"\ndependencies = []\n",
    )]),
    row(
        "a test of a new function",
        &PY,
        &[
            PY_FIX,
            Edit("calc.py", "def add", "def cube(a):\n    return a**3\n\n\ndef add"),
            Edit(
                PY_TESTS,
                "    def test_power",
                "    def test_cube(self):\n        self.assertEqual(calc.cube(2), 8)\n\n    def test_power",
            ),
        ],
        ALSO,
    ),
];

const FIXTURES: super::Files = &[
    (
        PY_TESTS,
        "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n\n\n\
         def test_db(db):\n    assert db[\"a\"] == 1\n",
    ),
    ("tests/test_shop.py", ""),
];

pub(super) const JAVASCRIPT: &[Row] = &[
    row("a fix in JavaScript", &JS, &[JS_FIX], FAILED_BEFORE),
    row(
        "a new script of npm",
        &JS,
        &[JS_FIX, Edit("package.json", "\"scripts\": {", "\"scripts\": {\n    \"build\": \"tsc\",")],
        ALSO,
    )
    .check("npm test"),
    row(
        "an option in the script of npm",
        &JS,
        &[JS_FIX, Edit("package.json", "--test --", "--test --test-concurrency=1 --")],
        ALSO,
    )
    .check("npm test"),
    row(
        "a dependency of npm",
        &JS,
        &[
            JS_FIX,
            Edit("package.json", "\"version\": \"1.0.0\",", "\"version\": \"1.0.1\",\n  \"dependencies\": {},"),
            Put("package-lock.json", "{\"name\": \"calc\", \"lockfileVersion\": 3, \"packages\": {}}\n"),
        ],
        FAILED_BEFORE,
    )
    .check("npm test"),
    row(
        "a package of a workspace",
        &JS,
        &[Edit("packages/a/a.js", "Hi", "Hello")],
        FAILED_BEFORE,
    )
    .files(&[
        ("package.json", "{\"name\": \"all\", \"workspaces\": [\"packages/*\"]}\n"),
        ("packages/a/package.json", "{\"name\": \"a\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test --test-reporter=tap\"}}\n"),
        ("packages/a/a.js", "exports.greet = () => 'Hi';\n"),
        (
            "packages/a/test/a.test.js",
            "require('node:test')('greets', () => {\n  \
             require('node:assert').equal(require('../a').greet(), 'Hello');\n});\n",
        ),
    ])
    .check("npm test --workspace packages/a"),
    row(
        "tests in another folder",
        &JS,
        &[JS_FIX, Sh("mkdir -p test/unit; sed 's,../calc,../../calc,' test/calc.test.js > test/unit/calc.test.js; git rm -q test/calc.test.js")],
        ALSO,
    ),
    row(
        "a test with a longer name",
        &JS,
        &[JS_FIX, Edit(JS_TESTS, "'power'", "'raises to a power'")],
        ALSO,
    ),
];

pub(super) const OTHERS: &[Row] = &[
    row("a fix in Rust", &RUST, &[RUST_FIX], FAILED_BEFORE),
    row(
        "a test inside a file of the work",
        &RUST,
        &[
            RUST_FIX,
            Edit(
                "src/lib.rs",
                "    #[test]",
                "    #[test]\n    fn sums() {\n        assert_eq!(add(2, 2), 4);\n    }\n\n    #[test]",
            ),
        ],
        ALSO,
    ),
    row(
        "a function after the tests in a file of the work",
        &RUST,
        &[RUST_FIX, Edit("src/lib.rs", "27);\n    }\n}\n", "27);\n    }\n}\n\npub fn none() {}\n")],
        FAILED_BEFORE,
    ),
    row(
        "a signature changed with its tests",
        &RUST,
        &[
            Edit(
                "src/lib.rs",
                "a: u32, b: u32) -> u32 {\n    a * b",
                "a: u32, b: u32, most: u32) -> u32 {\n    a.pow(b).min(most)",
            ),
            Edit("src/lib.rs", "power(3, 3)", "power(3, 3, 99)"),
            Edit(RUST_TESTS, "power(2, 5)", "power(2, 5, 99)"),
        ],
        Passing("only with the change of"),
    ),
    row("a fix in shell", &TAP, &[TAP_FIX], FAILED_BEFORE),
    row("a script whose output is compared", &SH, &[SH_FIX], FAILED_BEFORE)
        .check("[ \"$(sh greet.sh)\" = Hello ]"),
    row("a script that is piped into a comparison", &SH, &[SH_FIX], FAILED_BEFORE)
        .check("sh greet.sh | grep -qx Hello"),
    row(
        "the check's own script as the task",
        &SH,
        &[Edit("check.sh", "Hello", "Hi")],
        FAILED_BEFORE,
    )
    .options(&["--may-change", "check.sh"]),
    row(
        "a new target of a makefile",
        &SH,
        &[SH_FIX, Put("Makefile", "test:\n\tsh check.sh\n\nclean:\n\trm -f x\n")],
        ALSO,
    )
    .check("make test"),
    row(
        "a source added to a makefile",
        &SH,
        &[Put("hello.sh", "echo Hello\n"), Edit("Makefile", "greet.sh", "hello.sh")],
        Passing("only with the change of Makefile"),
    )
    .files(&[("Makefile", "SRCS = greet.sh\ntest:\n\t[ \"$$(cat $(SRCS) | sh)\" = Hello ]\n")])
    .check("make test"),
    row(
        "a recipe that is formatted",
        &SH,
        &[SH_FIX, Put("Makefile", "test:\n\t@sh check.sh\n")],
        ALSO,
    )
    .check("make test"),
];

#[test]
#[ignore = "long"]
fn real_work_in_python_is_checked_whatever_else_changes() {
    hold(PYTHON, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn real_work_on_files_that_tests_read_is_checked() {
    hold(MORE_PYTHON, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn real_work_in_javascript_is_checked_whatever_else_changes() {
    hold(JAVASCRIPT, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn real_work_in_rust_and_shell_is_checked_whatever_else_changes() {
    hold(OTHERS, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn in_a_session_real_work_in_python_is_checked_whatever_else_changes() {
    hold(PYTHON, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn in_a_session_real_work_on_files_that_tests_read_is_checked() {
    hold(MORE_PYTHON, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn in_a_session_real_work_in_javascript_is_checked_whatever_else_changes() {
    hold(JAVASCRIPT, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn in_a_session_real_work_in_rust_and_shell_is_checked_whatever_else_changes() {
    hold(OTHERS, Row::in_a_session);
}
