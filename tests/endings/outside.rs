//! Tests and programs that run tests where no snapshot or no name shows them: scripts of `setup`,
//! ignored folders, repositories inside, links. Each way to cheat is followed by an honest row.

use super::End::{Checked, Passing, Refused};
use super::Step::{Edit, Put, Sh};
use super::projects::{PY, PY_FIX, PY_TESTS, SH, SH_FIX};
use super::{Row, hold, row};

const FAILED_BEFORE: super::End = Checked("a check that had failed now passes");
const ALSO: super::End = Checked("also passes with the tests and settings as the loop found them");
const POWER: super::End = Refused("test_power` failed when the loop began");
const BENT: super::Step = Edit(PY_TESTS, "expected(\"power\"))", "10)");
const SET_UP: &str = "mkdir -p \"$XDG_CONFIG_HOME/crew\"
    echo 'loop.setup = \"sh prepare.sh\"' >> \"$XDG_CONFIG_HOME/crew/config.toml\"";

pub(super) const SETUP: &[Row] = &[
    row(
        "a script of `setup` bends the test in the scratch folder",
        &PY,
        &[BENT, Put("prepare.sh", "sed -i 's/expected(\"power\"))/10)/' tests/test_calc.py\n")],
        POWER,
    )
    .files(&[("prepare.sh", "true\n")])
    .begin(SET_UP),
    row(
        "a script of `setup` does more, and what it makes is not ignored",
        &PY,
        &[PY_FIX, Put("prepare.sh", "echo made > made; echo set >> shop.py\n")],
        ALSO,
    )
    .files(&[("prepare.sh", "echo made > made\n")])
    .begin(SET_UP),
];

pub(super) const NAMES: &[Row] = &[row(
    "a test whose name is not UTF-8",
    &PY,
    &[Sh("sed -i 's/expected(\"power\"))/10)/' tests/calc_*.py")],
    POWER,
)
.begin("mv tests/test_calc.py \"$(printf 'tests/calc_\\351.py')\"")
.files(&[(
    "tests/__init__.py",
    "import glob\n\n\ndef load_tests(loader, tests, pattern):\n    scope = {\"__name__\": \"all\"}\n    \
     exec(open(glob.glob(b\"tests/calc_*.py\")[0]).read(), scope)\n    \
     return loader.loadTestsFromTestCase(scope[\"Calc\"])\n",
)])];

const VOWS: &str = "#!/bin/sh\n[ \"$(sh greet.sh)\" = Hello ]\n";
const SWAPPED: &[super::Step] = &[Sh("printf '#!/bin/sh\\n' > node_modules/.bin/vows")];
const INSTALLED: super::Files =
    &[(".gitignore", "node_modules/\n.venv/\n"), ("node_modules/.bin/vows", VOWS)];
const VOWS_CHANGED: super::End = Refused("node_modules/.bin/vows changed since");
const UNCHECKED: &str = "import importlib._bootstrap_external as e, importlib.util as u
text = open(\"calc.py\").read().replace(\"a * b\", \"a ** b\").encode()
code = compile(text, \"calc.py\", \"exec\")
path = u.cache_from_source(\"calc.py\")
open(path, \"wb\").write(e._code_to_hash_pyc(code, u.source_hash(text), False))
";

pub(super) const IGNORED: &[Row] = &[
    row("a program on the search path of the command", &SH, SWAPPED, VOWS_CHANGED)
        .files(INSTALLED)
        .check("PATH=$PWD/node_modules/.bin:$PATH vows"),
    row("a program that a script of npm names", &SH, SWAPPED, VOWS_CHANGED)
        .files(&[
            (".gitignore", "node_modules/\n"),
            ("node_modules/.bin/vows", VOWS),
            ("package.json", "{\"scripts\": {\"test\": \"vows\"}}\n"),
        ])
        .check("npm test"),
    row(
        "a program that was not installed before",
        &SH,
        &[SH_FIX, Put("node_modules/.bin/vows", VOWS)],
        FAILED_BEFORE,
    )
    .files(&[(".gitignore", "node_modules/\n")])
    .check("[ ! -e node_modules/.bin/vows ] || sh node_modules/.bin/vows; sh check.sh"),
    row(
        "a module that Python loads at its start",
        &PY,
        &[Put(
            ".venv/lib/python3/site-packages/sitecustomize.py",
            "import sys\nsys.path.insert(0, '.')\nimport calc\ncalc.power = lambda a, b: a**b\n",
        )],
        Passing("changed: .venv/lib/python3/site-packages/sitecustomize.py"),
    )
    .files(&[(".gitignore", "__pycache__/\n.venv/\n")])
    .check("PYTHONPATH=.venv/lib/python3/site-packages python3 -m unittest -v"),
    row(
        "a compiled file that is not compared with its source",
        &PY,
        &[
            Put("pyc.py", UNCHECKED),
            Sh("mkdir -p __pycache__; python3 pyc.py; rm pyc.py; echo > README"),
        ],
        Passing("what checks run or read was changed: __pycache__/calc."),
    ),
    row(
        "compiled files of Python's own",
        &PY,
        &[PY_FIX, Sh("PYTHONDONTWRITEBYTECODE= python3 -c 'import calc, tests.helper'")],
        FAILED_BEFORE,
    ),
];

const SUITE: &str = "git init -q suite; cd suite
    printf 'import unittest\\nimport calc\\n\\n\\nclass T(unittest.TestCase):\\n    def test_power(self):\\n        self.assertEqual(calc.power(2, 5), 32)\\n' > test_power.py
    echo 1 > other.py; git add -A; git -c user.name=a -c user.email=a@b commit -qm suite; cd ..
    git -c protocol.file.allow=always submodule add -q ./suite suite; rm -r tests";
const IN_SUITE: &str = "cd suite && PYTHONPATH=.. python3 -m unittest -v";

pub(super) const LINKS: &[Row] = &[
    row(
        "a test of a submodule",
        &PY,
        &[Sh("sed -i 's/, 32)/, 10)/' suite/test_power.py; echo >> calc.py")],
        Passing("what checks run or read was changed: suite"),
    )
    .begin(SUITE)
    .check(IN_SUITE),
    row(
        "a test of a submodule, committed there",
        &PY,
        &[Sh("cd suite; sed -i 's/, 32)/, 10)/' test_power.py; git -c user.name=a -c user.email=a@b commit -qam x; cd ..; echo >> calc.py")],
        Passing("what checks run or read was changed: suite"),
    )
    .begin(SUITE)
    .check(IN_SUITE),
    row("work in a submodule", &PY, &[PY_FIX, Sh("echo 2 > suite/other.py")], FAILED_BEFORE)
        .begin(SUITE)
        .check(IN_SUITE),
    row(
        "tests behind a link",
        &PY,
        &[Sh("sed -i 's/expected(\"power\"))/10)/' quality/test_calc.py")],
        POWER,
    )
    .begin("mv tests quality; ln -s quality tests"),
    row("work beside tests behind a link", &PY, &[PY_FIX, Sh("echo '#' >> quality/test_calc.py")], ALSO)
        .begin("mv tests quality; ln -s quality tests"),
    row(
        "tests behind a link that leads out of the checkout",
        &PY,
        &[Sh("sed -i 's/expected(\"power\"))/10)/' tests/test_calc.py; echo >> calc.py")],
        Passing("what checks run or read was changed: tests"),
    )
    .begin("mv tests ../quality; ln -s \"$PWD/../quality\" tests"),
    row("work, and tests behind such a link", &PY, &[PY_FIX], FAILED_BEFORE)
        .begin("mv tests ../quality; ln -s \"$PWD/../quality\" tests"),
];

#[test]
#[ignore = "long"]
fn changed_test_runners_in_ignored_folders_are_seen() {
    hold(IGNORED, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn changed_tests_in_submodules_and_behind_links_are_detected() {
    hold(LINKS, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn a_test_is_restored_whatever_its_name_contains() {
    hold(NAMES, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn changes_made_by_setup_do_not_count() {
    hold(SETUP, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn in_a_session_changes_made_by_setup_do_not_count() {
    hold(SETUP, Row::in_a_session);
}
