use super::*;

/// The paths under "run", "tests" and "compared".
fn named(run: &str) -> String {
    let files = [
        "check.sh",
        "a/check.sh",
        "b/check.sh",
        "scripts/gate.py",
        "vat.sh",
        "tax.py",
        "test_tax.py",
        "node_modules/.bin/jest",
        "bin/sh",
        "mk/test.mk",
        "jest.setup.js",
        "notes.txt",
        "tools/check.py",
        "conf/ci.ini",
        "/opt/ci/gate",
        "/dev/shm/gate",
        "/dev/fd/3",
    ];
    let found = named_paths(run, "", "/w/repo", &|path| files.contains(&path));
    let show = |name: &str, paths: &std::collections::BTreeSet<String>| {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        if paths.is_empty() { String::new() } else { format!("{name}: {} ", paths.join(" ")) }
    };
    let shown = [
        show("run", &found.run),
        show("tests", &found.tests),
        show("globs", &found.globs),
        show("compared", &found.compared),
    ];
    shown.concat().trim_end().to_owned()
}

#[test]
fn a_command_names_what_it_runs_at_any_position() {
    for (run, expected) in [
        ("sh check.sh", "run: check.sh"),
        ("./check.sh --fast", "run: check.sh"),
        ("/w/repo/check.sh", "run: check.sh"),
        ("\"$PWD/check.sh\"", "run: check.sh"),
        ("$(git rev-parse --show-toplevel)/check.sh", "run: check.sh"),
        ("bash -o pipefail -c 'sh check.sh'", "run: check.sh"),
        ("bash -euo pipefail -c 'cd a && sh check.sh'", "run: a/check.sh check.sh"),
        ("(cd a && sh check.sh) && (cd b && sh check.sh)", "run: a/check.sh b/check.sh check.sh"),
        ("nohup sh check.sh", "run: check.sh"),
        ("timeout -s KILL 5 ./check.sh", "run: check.sh"),
        ("env -u HOME A=1 sh check.sh", "run: check.sh"),
        ("flock /tmp/lock ./check.sh", "run: check.sh"),
        ("flock /opt/ci/gate sh check.sh", "run: check.sh"),
        ("setsid -w sh check.sh", "run: check.sh"),
        ("stdbuf -oL sh check.sh", "run: check.sh"),
        ("eval 'sh check.sh'", "run: check.sh"),
        ("C=check.sh; sh $C", "run: check.sh"),
        ("sh < check.sh", "run: check.sh"),
        ("cat check.sh | sh", "run: check.sh"),
        ("echo check.sh | xargs sh", "run: check.sh"),
        ("for f in check.sh; do sh $f; done", "run: check.sh"),
        ("pushd a && ./check.sh", "run: a/check.sh check.sh"),
        ("python3 scripts/gate.py tax.py", "run: scripts/gate.py"),
        ("python3 -m tools.check", "run: tools/check.py"),
        ("make -f mk/test.mk unit", "run: mk/test.mk"),
        ("make --file=mk/test.mk", "run: mk/test.mk"),
        ("make -Cb test && sh check.sh", "run: b/check.sh check.sh"),
        (
            "node_modules/.bin/jest --setupFiles=jest.setup.js",
            "run: jest.setup.js node_modules/.bin/jest",
        ),
        ("bin/sh check.sh", "run: bin/sh check.sh"),
        ("pytest -c conf/ci.ini test_tax.py::test_a", "run: conf/ci.ini tests: test_tax.py"),
        ("python3 -m unittest test_tax", "tests: test_tax.py"),
        ("node --test test_tax.py", "tests: test_tax.py"),
        ("python3 -m tools.check test_tax", "run: tools/check.py"),
        ("grep -q done notes.txt", ""),
        ("cargo test", ""),
        ("[ \"$(sh vat.sh)\" = 12 ]", "run: vat.sh compared: vat.sh"),
        ("sh vat.sh | grep -q 12", "run: vat.sh compared: vat.sh"),
        (". ./vat.sh && vat 10", "run: vat.sh compared: vat.sh"),
        ("mypy tax.py", ""),
        ("F=notes.txt; cat $F; ! grep -q x notes.txt", ""),
        ("! sh check.sh", "run: check.sh"),
        ("test -f notes.txt && [ -f notes.txt ]", ""),
    ] {
        assert_eq!(named(run), expected, "{run}");
    }
}

#[test]
fn a_command_runs_what_its_options_name_and_not_the_product_it_works_on() {
    for (run, expected) in [
        ("python3 -m py_compile tax.py && python3 -m unittest", ""),
        ("python3 -m json.tool notes.txt", ""),
        ("bash -n vat.sh && node --check tax.py", ""),
        ("python3 -m unittest && python3 tax.py", "run: tax.py compared: tax.py"),
        ("python3 scripts/gate.py && python3 -m unittest", "run: scripts/gate.py"),
        ("gcc -c tax.py && kubectl apply -f notes.txt", ""),
        ("psql < notes.txt", ""),
        ("jest --collectCoverageFrom=tax.py", ""),
        ("jest --findRelatedTests tax.py", ""),
        ("pytest --doctest-modules tax.py", ""),
        ("pytest tests tax.py", ""),
        ("python3 tax.py > out && diff out notes.txt", "run: tax.py compared: tax.py"),
        ("python3 tax.py | tail -1 | awk '$1 != 2'", "run: tax.py compared: tax.py"),
        ("python3 tax.py & curl -s localhost | grep -q x", "run: tax.py compared: tax.py"),
        ("pytest -pconf.x -cconf/ci.ini", "run: conf/ci.ini"),
        ("make -sf mk/test.mk", "run: mk/test.mk"),
        ("NODE_OPTIONS=--require=./jest.setup.js npm test", "run: jest.setup.js"),
        ("BASH_ENV=./notes.txt make", "run: notes.txt"),
        ("sh /opt/ci/gate", "run: /opt/ci/gate"),
        ("timeout 60 /opt/ci/gate", "run: /opt/ci/gate"),
        ("sh /dev/shm/gate", "run: /dev/shm/gate"),
        ("sh /dev/fd/3", ""),
        ("for f in gates/*.sh; do sh \"$f\"; done", "globs: gates/*.sh"),
        ("sh gates/*", "globs: gates/*"),
        ("sh check.sh src/*", "run: check.sh"),
        ("for f in src/*; do python3 -m py_compile $f; done", ""),
        ("python3 -m coverage run tax.py", "run: tax.py"),
        ("node --test 'quality/*.js'", "globs: quality/*.js"),
        ("python3 -m unittest discover -s quality -p '*_case.py'", "globs: **/*_case.py"),
    ] {
        assert_eq!(named(run), expected, "{run}");
    }
}
