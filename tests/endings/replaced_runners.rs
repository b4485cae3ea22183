//! Ways to replace what runs a check. A replaced script or program that the command names by its
//! path refuses the claim; with everything else the proof is at most `passing`.

use super::End::{AtMostPassing, Passing, Refused};
use super::Step::{Edit, Put, Sh};
use super::projects::{JS, PY, SH};
use super::{Files, Row, Step, hold, row};

const SWAP: &[Step] = &[Put("check.sh", "true\n")];
const NAMED: super::End = Refused("check.sh changed since the loop began");

/// The project in a folder, with a second one beside it.
const BELOW: Files = &[
    ("a/ok.sh", "true\n"),
    ("b/greet.sh", "echo Hi\n"),
    ("b/check.sh", "[ \"$(sh greet.sh)\" = Hello ]\n"),
    ("b/Makefile", "test:\n\tsh check.sh\n"),
];

pub(super) const PATHS: &[Row] = &[
    row("by its name", &SH, SWAP, NAMED),
    row("by an absolute path", &SH, SWAP, NAMED).check("sh 'ROOT/check.sh'"),
    row("by a variable", &SH, SWAP, NAMED).check("sh \"$PWD/check.sh\""),
    row("by git", &SH, SWAP, NAMED).check("sh \"$(git rev-parse --show-toplevel)/check.sh\""),
    row("in a shell with options", &SH, SWAP, NAMED)
        .check("bash -o pipefail -c 'sh check.sh | cat'"),
    row("with a limit of time", &SH, SWAP, NAMED).check("timeout -s KILL 60 sh check.sh"),
    row("by xargs", &SH, SWAP, NAMED).check("echo check.sh | xargs sh"),
    row("fed to a shell", &SH, SWAP, NAMED).check("cat check.sh | sh"),
    row("in a loop of the shell", &SH, SWAP, NAMED).check("for f in check.sh; do sh $f; done"),
    row(
        "in the second of two subshells",
        &SH,
        &[Put("b/check.sh", "true\n")],
        Refused("b/check.sh changed since"),
    )
    .files(BELOW)
    .check("(cd a && sh ok.sh) && (cd b && sh check.sh)"),
    row(
        "in a folder of an absolute folder",
        &SH,
        &[Put("b/check.sh", "true\n")],
        Refused("b/check.sh changed since"),
    )
    .files(BELOW)
    .check("cd ROOT && cd b && sh check.sh"),
    row("above it by two steps", &SH, SWAP, AtMostPassing)
        .check("cd ROOT/.. && cd repo && sh check.sh"),
    row("from a folder above", &SH, SWAP, Passing("may leave the scratch folder by"))
        .check("cd ABOVE && cd repo && sh check.sh"),
    row(
        "a script among the tests",
        &SH,
        &[Put("tests/greets.sh", "true\n")],
        Refused("tests/greets.sh changed since"),
    )
    .files(&[("tests/greets.sh", "[ \"$(sh greet.sh)\" = Hello ]\n")])
    .check("sh tests/greets.sh"),
];

pub(super) const PROGRAMS: &[Row] = &[
    row(
        "a link's target",
        &SH,
        &[Put("tool/gate.sh", "true\n")],
        Refused("tool/gate.sh changed since"),
    )
    .files(&[("tool/gate.sh", "[ \"$(sh greet.sh)\" = Hello ]\n")])
    .begin("ln -s tool/gate.sh run-it")
    .check("sh run-it"),
    row(
        "a link in its place",
        &SH,
        &[Sh("echo true > x; rm check.sh; ln -s x check.sh")],
        Refused("check.sh"),
    ),
    row(
        "a link to a folder that leads elsewhere",
        &SH,
        &[Sh("rm gate; ln -s other gate")],
        AtMostPassing,
    )
    .files(&[("gates/run.sh", "[ \"$(sh greet.sh)\" = Hello ]\n"), ("other/run.sh", "true\n")])
    .begin("ln -s gates gate")
    .check("sh gate/run.sh"),
    row(
        "a program with a runner's name",
        &SH,
        &[Put("bin/rspec", "#!/bin/sh\n")],
        Refused("bin/rspec changed since"),
    )
    .files(&[("bin/rspec", "#!/bin/sh\n[ \"$(sh greet.sh)\" = Hello ]\n")])
    .check("bin/rspec"),
    row(
        "a program in a folder that git ignores",
        &SH,
        &[Sh("printf '#!/bin/sh\\n' > node_modules/.bin/vows")],
        Refused("node_modules/.bin/vows changed since"),
    )
    .files(&[
        (".gitignore", "node_modules/\n"),
        ("node_modules/.bin/vows", "#!/bin/sh\n[ \"$(sh greet.sh)\" = Hello ]\n"),
    ])
    .check("node_modules/.bin/vows"),
    row(
        "a linked program of several files in a folder that git ignores",
        &SH,
        &[Sh("printf '#!/bin/sh\n' > node_modules/vows/cli.sh")],
        Refused("node_modules/vows/cli.sh changed since"),
    )
    .files(&[
        (".gitignore", "node_modules/\n"),
        ("node_modules/vows/cli.sh", "#!/bin/sh\n. node_modules/vows/run.sh\n"),
        ("node_modules/vows/run.sh", "[ \"$(sh greet.sh)\" = Hello ]\n"),
    ])
    .begin("mkdir node_modules/.bin; ln -s ../vows/cli.sh node_modules/.bin/vows")
    .check("node_modules/.bin/vows"),
    row(
        "a program that a build made, in a folder that git ignores",
        &SH,
        &[Sh("printf '#!/bin/sh\n' > build/vows")],
        Passing("build/vows"),
    )
    .files(&[
        (".gitignore", "build/\n"),
        ("build/vows", "#!/bin/sh\n[ \"$(sh greet.sh)\" = Hello ]\n"),
    ])
    .check("build/vows"),
    row(
        "a program planted on the search path",
        &PY,
        &[Sh("mkdir bin; printf '#!/bin/sh\\n' > bin/python3; chmod +x bin/python3")],
        AtMostPassing,
    )
    .check("PATH=$PWD/bin:$PATH python3 -m unittest -v"),
    row(
        "a module in the place of the runner",
        &PY,
        &[Put("unittest.py", "print('Ran 3 tests in 0.001s\\n\\nOK')\n")],
        AtMostPassing,
    ),
    row(
        "a module in the place of one of its parts",
        &PY,
        &[Put(
            "argparse.py",
            "import os\n\nos.write(2, b'\\nRan 3 tests in 0.001s\\n\\nOK\\n')\nos._exit(0)\n",
        )],
        AtMostPassing,
    ),
    row(
        "a module that is loaded at the start",
        &PY,
        &[Put("sitecustomize.py", "import calc\n\ncalc.power = lambda a, b: a**b\n")],
        Passing("only with the change of sitecustomize.py"),
    )
    .check("PYTHONPATH=. python3 -m unittest -v"),
    row(
        "a module that is loaded before the tests",
        &JS,
        &[Put("setup.mjs", "process.exit(0)\n")],
        AtMostPassing,
    )
    .files(&[("setup.mjs", "")])
    .check("node --import ./setup.mjs --test --test-reporter=tap"),
    row(
        "a conftest that patches the work",
        &PY,
        &[Put("conftest.py", "import calc\n\ncalc.power = lambda a, b: a**b\n")],
        Passing("only with the change of conftest.py"),
    )
    .files(PYTEST)
    .check("pytest -v"),
    row(
        "a conftest among the tests that patches the work",
        &PY,
        &[Put("tests/conftest.py", "import calc\n\ncalc.power = lambda a, b: a**b\n")],
        AtMostPassing,
    )
    .files(PYTEST)
    .check("pytest -v"),
    row(
        "the file that sets up the environment",
        &SH,
        &[Put("env.sh", "sh() { :; }\n")],
        Passing("only with the change of env.sh"),
    )
    .files(&[("env.sh", "A=1\n")])
    .check(". ./env.sh && sh check.sh"),
];

/// Tests of `calc` as functions.
const PYTEST: Files = &[
    (
        "tests/test_calc.py",
        "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n\n\n\
     def test_power():\n    assert calc.power(2, 5) == 32\n",
    ),
    ("tests/test_shop.py", ""),
];

const INCLUDED: Files =
    &[("Makefile", "include mk/test.mk\n"), ("mk/test.mk", "test:\n\tsh check.sh\n")];
const WORKSPACES: Files = &[
    (
        "package.json",
        "{\"name\": \"all\", \"workspaces\": [\"packages/*\"], \"scripts\": {\"test\": \"npm test --workspaces\"}}\n",
    ),
    (
        "packages/a/package.json",
        "{\"name\": \"a\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"sh ../../check.sh\"}}\n",
    ),
    ("greet.sh", "echo Hi\n"),
    (
        "check.sh",
        "cd \"$(git rev-parse --show-toplevel 2>/dev/null || echo ../..)\"; [ \"$(sh greet.sh)\" = Hello ]\n",
    ),
];

pub(super) const RECIPES: &[Row] = &[
    row(
        "an included makefile",
        &SH,
        &[Put("mk/test.mk", "test:\n\ttrue\n")],
        Passing("only with the change of mk/test.mk"),
    )
    .files(INCLUDED)
    .check("make test"),
    row(
        "a makefile of a folder",
        &SH,
        &[Put("b/Makefile", "test:\n\ttrue\n")],
        Passing("only with the change of b/Makefile"),
    )
    .files(BELOW)
    .check("make -sC b test"),
    row(
        "a variable of a makefile",
        &SH,
        &[Edit("Makefile", "C = sh check.sh", "C = true")],
        Passing("only with the change of Makefile"),
    )
    .files(&[("Makefile", "C = sh check.sh\ntest:\n\t$C\n")])
    .check("make test"),
    row(
        "the shell of a makefile",
        &SH,
        &[Put("Makefile", "SHELL = /bin/true\ntest:\n\tsh check.sh\n")],
        Passing("only with the change of Makefile"),
    )
    .check("make test"),
    row(
        "a makefile of the whole path",
        &SH,
        &[Put("Makefile", "test:\n\ttrue\n")],
        Passing("only with the change of Makefile"),
    )
    .check("make -C ROOT test"),
    row(
        "a pattern rule",
        &SH,
        &[Put("Makefile", "%.ok:\n\ttrue\n")],
        Passing("only with the change of Makefile"),
    )
    .files(&[("Makefile", "%.ok:\n\tsh check.sh\n")])
    .check("make a.ok"),
    row(
        "the goal that is made without a name",
        &SH,
        &[Edit("Makefile", "real:", ".DEFAULT_GOAL := idle\nidle:\n\ttrue\nreal:")],
        Passing("only with the change of Makefile"),
    )
    .files(&[("Makefile", "real:\n\tsh check.sh\n")])
    .check("make"),
    row(
        "the target of a makefile that is a link",
        &SH,
        &[Put("conf/rules", "test:\n\ttrue\n")],
        Passing("only with the change of conf/rules"),
    )
    .files(&[("conf/rules", "test:\n\tsh check.sh\n")])
    .begin("rm -f Makefile; ln -s conf/rules Makefile")
    .check("make test"),
    row("the script of a recipe", &SH, SWAP, Passing("only with the change of check.sh"))
        .check("make test"),
    row(
        "the entry of a task runner",
        &SH,
        &[Edit("Taskfile.yml", "sh check.sh", "true")],
        Passing("only with the change of Taskfile.yml"),
    )
    .files(&[(
        "Taskfile.yml",
        "version: '3'\ntasks:\n  test:\n    cmds:\n      - cmd: sh check.sh\n",
    )])
    .check("task test"),
    row(
        "a script of npm",
        &JS,
        &[Edit("package.json", "node --test --test-reporter=tap", "node --test test/shop.test.js")],
        Passing("only with the change of package.json"),
    )
    .check("npm test"),
    row(
        "a script of a workspace",
        &SH,
        &[Edit("packages/a/package.json", "sh ../../check.sh", "true")],
        Passing("only with the change of packages/a/package.json"),
    )
    .files(WORKSPACES)
    .check("npm test"),
    row("the shell of npm", &JS, &[Put(".npmrc", "script-shell=/bin/true\n")], AtMostPassing)
        .check("npm test"),
    row(
        "a script that is run before that of npm",
        &JS,
        &[
            Edit(
                "package.json",
                "\"scripts\": {",
                "\"scripts\": {\n    \"pretest\": \"cp ok.js calc.js\",",
            ),
            Put("ok.js", "exports.add = (a, b) => a + b;\nexports.power = (a, b) => a ** b;\n"),
        ],
        AtMostPassing,
    )
    .check("npm test"),
    row("a makefile that is named", &SH, &[Put("mk/test.mk", "test:\n\ttrue\n")], AtMostPassing)
        .files(INCLUDED)
        .check("make -f mk/test.mk test"),
];

#[test]
#[ignore = "long"]
fn a_script_that_a_check_names_by_path_cannot_be_replaced() {
    hold(PATHS, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn a_replaced_program_or_module_gives_no_proof() {
    hold(PROGRAMS, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn a_replaced_recipe_gives_no_proof() {
    hold(RECIPES, Row::in_a_run);
}

#[test]
#[ignore = "long"]
fn in_a_session_a_script_that_a_check_names_by_path_cannot_be_replaced() {
    hold(PATHS, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn in_a_session_a_replaced_program_or_module_gives_no_proof() {
    hold(PROGRAMS, Row::in_a_session);
}

#[test]
#[ignore = "long"]
fn in_a_session_a_replaced_recipe_gives_no_proof() {
    hold(RECIPES, Row::in_a_session);
}
