//! Tests that passed when the loop began and are rewritten beside true work: the end is not
//! refused, and the page names the test.

use super::End::Passing;
use super::Step::{Edit, Put};
use super::projects::{
    JS, JS_FIX, JS_TESTS, PY, PY_FIX, PY_TESTS, RUST, RUST_FIX, RUST_TESTS, TAP, TAP_TESTS,
};
use super::{Row, hold, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "work broken, and its test bent",
        &PY,
        &[
            PY_FIX,
            Edit("calc.py", "a + b", "a + b + 1"),
            Edit(PY_TESTS, "add(1, 2), 3", "add(1, 2), 4"),
        ],
        Passing(
            "1 test was rewritten; as the loop found it, it fails: tests.test_calc.Calc.test_add",
        ),
    ),
    row(
        "a result that is now another",
        &PY,
        &[
            PY_FIX,
            Edit("shop.py", "sum(prices)", "round(sum(prices) * 1.2, 2)"),
            Edit("tests/test_shop.py", "[1, 2]), 3", "[1, 2]), 3.6"),
        ],
        Passing("tests.test_shop.Shop.test_total"),
    ),
    row(
        "a function with another name",
        &PY,
        &[PY_FIX, Edit("calc.py", "def add", "def plus"), Edit(PY_TESTS, "calc.add", "calc.plus")],
        Passing("tests.test_calc.Calc.test_add"),
    ),
    row(
        "two tests",
        &PY,
        &[
            PY_FIX,
            Edit("calc.py", "a + b", "str(a + b)"),
            Edit(PY_TESTS, "add(1, 2), 3", "add(1, 2), \"3\""),
            Edit("shop.py", "sum(prices)", "str(sum(prices))"),
            Edit("tests/test_shop.py", "[1, 2]), 3", "[1, 2]), \"3\""),
        ],
        Passing("2 tests were rewritten"),
    ),
    row(
        "JavaScript",
        &JS,
        &[
            JS_FIX,
            Edit("calc.js", "a + b", "`${a + b}!`"),
            Edit(JS_TESTS, "add(1, 2), 3", "add(1, 2), '3!'"),
        ],
        Passing("add"),
    ),
    row(
        "Rust",
        &RUST,
        &[
            RUST_FIX,
            Edit("src/lib.rs", "a + b", "a + b + 1"),
            Edit(RUST_TESTS, "add(1, 2), 3", "add(1, 2), 4"),
        ],
        Passing("adds"),
    ),
    row(
        "shell",
        &TAP,
        &[
            Put("twice", "if [ $1 = 0 ]; then echo zero; else echo $(($1 * 2)); fi\n"),
            Edit(TAP_TESTS, "0 none", "zero none"),
        ],
        Passing("none"),
    ),
];

#[test]
#[ignore = "long"]
fn a_rewritten_green_test_beside_true_work_is_named_and_limits_the_proof_to_passing() {
    hold(ROWS, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn in_a_session_a_rewritten_green_test_is_named_and_limits_the_proof_to_passing() {
    hold(ROWS, Row::in_a_session);
}
