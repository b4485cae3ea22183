//! Small projects with one job to do: one test of each fails until it is done.

use super::Files;
use super::Step::{self, Edit};

/// A project of one language.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) check: &'static str,
    pub(super) files: Files,
}

/// The path of each project's tests for its job.
pub(super) const PY_TESTS: &str = "tests/test_calc.py";
pub(super) const JS_TESTS: &str = "test/calc.test.js";
pub(super) const RUST_TESTS: &str = "tests/calc.rs";
pub(super) const TAP_TESTS: &str = "tests/run.sh";

/// The steps that do each job.
pub(super) const PY_FIX: Step = Edit("calc.py", "a * b", "a ** b");
pub(super) const JS_FIX: Step = Edit("calc.js", "a * b", "a ** b");
pub(super) const RUST_FIX: Step = Edit("src/lib.rs", "a * b", "a.pow(b)");
pub(super) const SH_FIX: Step = Edit("greet.sh", "Hi", "Hello");
pub(super) const TAP_FIX: Step = Edit("twice", "$1", "$(($1 * 2))");

pub(super) const PY: Project = Project {
    check: "python3 -m unittest -v",
    files: &[
        (".gitignore", "__pycache__/\n"),
        ("calc.py", "def add(a, b):\n    return a + b\n\n\ndef power(a, b):\n    return a * b\n"),
        ("shop.py", "def total(prices):\n    return sum(prices)\n"),
        ("tests/__init__.py", ""),
        (
            "tests/helper.py",
            "import json\nimport pathlib\n\n\ndef expected(name):\n    \
             file = pathlib.Path(__file__).parent / \"expected.json\"\n    \
             return json.loads(file.read_text())[name]\n",
        ),
        ("tests/expected.json", "{\"power\": 32}\n"),
        (
            PY_TESTS,
            "import unittest\n\nimport calc\nfrom tests.helper import expected\n\n\n\
             class Calc(unittest.TestCase):\n    def test_add(self):\n        \
             self.assertEqual(calc.add(1, 2), 3)\n\n    def test_power(self):\n        \
             self.assertEqual(calc.power(2, 5), expected(\"power\"))\n",
        ),
        (
            "tests/test_shop.py",
            "import unittest\n\nimport shop\n\n\nclass Shop(unittest.TestCase):\n    \
             def test_total(self):\n        self.assertEqual(shop.total([1, 2]), 3)\n",
        ),
    ],
};

pub(super) const JS: Project = Project {
    check: "node --test --test-reporter=tap",
    files: &[
        (
            "package.json",
            "{\n  \"name\": \"calc\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\n    \
             \"test\": \"node --test --test-reporter=tap\"\n  }\n}\n",
        ),
        ("calc.js", "exports.add = (a, b) => a + b;\nexports.power = (a, b) => a * b;\n"),
        ("shop.js", "exports.total = (prices) => prices.reduce((a, b) => a + b, 0);\n"),
        (
            JS_TESTS,
            "const test = require('node:test');\nconst assert = require('node:assert');\n\
             const calc = require('../calc');\n\ntest('add', () => {\n  \
             assert.equal(calc.add(1, 2), 3);\n});\n\ntest('power', () => {\n  \
             assert.equal(calc.power(2, 5), 32);\n});\n",
        ),
        (
            "test/shop.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\n\
             const shop = require('../shop');\n\ntest('total', () => {\n  \
             assert.equal(shop.total([1, 2]), 3);\n});\n",
        ),
    ],
};

pub(super) const RUST: Project = Project {
    check: "cargo test --offline",
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\n\
             doctest = false\n",
        ),
        ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"calc\"\nversion = \"0.1.0\"\n"),
        (".gitignore", "target\n"),
        (
            "src/lib.rs",
            "pub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n\npub fn \
             power(a: u32, b: u32) -> u32 {\n    a * b\n}\n\n#[cfg(test)]\nmod tests {\n    \
             use super::*;\n\n    #[test]\n    fn cubes() {\n        \
             assert_eq!(power(3, 3), 27);\n    }\n}\n",
        ),
        (
            RUST_TESTS,
            "#[test]\nfn adds() {\n    assert_eq!(calc::add(1, 2), 3);\n}\n\n#[test]\nfn \
             powers() {\n    assert_eq!(calc::power(2, 5), 32);\n}\n",
        ),
    ],
};

/// A script that compares the output of another.
pub(super) const SH: Project = Project {
    check: "sh check.sh",
    files: &[
        ("greet.sh", "echo Hi\n"),
        ("check.sh", "[ \"$(sh greet.sh)\" = Hello ]\n"),
        ("Makefile", "test:\n\tsh check.sh\n"),
    ],
};

/// Tests in shell that report their names.
pub(super) const TAP: Project = Project {
    check: "sh tests/run.sh",
    files: &[
        ("twice", "echo $1\n"),
        ("tests/expected", "4\n"),
        (
            TAP_TESTS,
            "echo 1..2; failed=0\nis() { [ \"$2\" = \"$3\" ] && echo \"ok $1 - $4\" || \
             { echo \"not ok $1 - $4\"; failed=1; }; }\nis 1 \"$(sh twice 0)\" 0 none\n\
             is 2 \"$(sh twice 2)\" \"$(cat tests/expected)\" two\nexit $failed\n",
        ),
    ],
};
