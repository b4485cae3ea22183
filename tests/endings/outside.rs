//! What runs tests, or is one, where no snapshot or no name shows it: scripts of `setup`, ignored
//! folders, repositories inside, links. Each way to cheat has an honest row beside it.

use super::End::{Checked, Refused};
use super::Step::{Edit, Put, Sh};
use super::projects::{PY, PY_FIX, PY_TESTS};
use super::{Row, hold, row};

const ALSO: super::End = Checked("also passes with the tests and settings as the loop found them");
const POWER: super::End = Refused("test_power` failed when the loop began");
const BENT: super::Step = Edit(PY_TESTS, "expected(\"power\"))", "10)");
const SET_UP: &str = "mkdir -p \"$XDG_CONFIG_HOME/crew\"
    echo 'loop.setup = \"sh prepare.sh\"' >> \"$XDG_CONFIG_HOME/crew/config.toml\"";

const SETUP: &[Row] = &[
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

const NAMES: &[Row] = &[row(
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

#[test]
fn a_test_is_put_back_whatever_its_name_is_made_of() {
    hold(NAMES, Row::in_a_run);
}

#[test]
fn what_setup_does_to_the_tree_shows_nothing() {
    hold(SETUP, Row::in_a_run);
}

#[test]
fn in_a_session_what_setup_does_to_the_tree_shows_nothing() {
    hold(SETUP, Row::in_a_session);
}
