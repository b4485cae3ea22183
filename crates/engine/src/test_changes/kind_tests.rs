use super::PathKind::{Configuration, Manifest, Test, Work};
use super::*;

fn rules() -> KindRules {
    let set = |paths: &[&str]| paths.iter().map(|it| (*it).to_owned()).collect();
    KindRules {
        may_change: GlobCover::from_globs(&["tests/golden/**"]),
        tests: [
            GlobCover::from_globs(&["acceptance/**"]),
            GlobCover::from_globs(&["contract.txt"]),
            GlobCover::from_globs(&["quality/*.js"]),
        ],
        named: NamedPaths {
            run: set(&["tool/gate.py", "vat.sh", "greet"]),
            compared: set(&["vat.sh", "greet"]),
            tests: set(&["tax_rules.py"]),
            globs: set(&["quality/*.js"]),
            folders: set(&["", "lib"]),
            loaded: set(&["q.js"]),
            written: set(&[]),
            programs: set(&["mytool"]),
        },
    }
}

fn path(path: &str) -> ChangedPath {
    ChangedPath { path: path.to_owned(), ..ChangedPath::default() }
}

#[test]
fn each_path_has_one_kind_and_counts_as_work_in_case_of_doubt() {
    for (name, expected) in [
        ("tests/tax.py", Test),
        ("tests/conftest.py", Configuration),
        ("tests/Makefile", Configuration),
        ("tests/fixtures/conftest.py", Test),
        ("tests/jest.test.js", Test),
        ("env.sh", Configuration),
        ("tests/golden/page.html", Work),
        ("acceptance/login.txt", Test),
        ("contract.txt", Test),
        ("tax_rules.py", Test),
        ("quality/tax.js", Test),
        ("tasks.py", Configuration),
        ("q.js", Configuration),
        ("app/tasks.py", Work),
        ("src/app/karma.py", Work),
        ("validate.js", Work),
        ("Makefile", Configuration),
        ("mk/rules.mk", Configuration),
        ("pytest.ini", Configuration),
        ("web/jest.config.ts", Configuration),
        (".github/workflows/ci.yml", Configuration),
        (".cargo/config.toml", Configuration),
        ("tsconfig.json", Configuration),
        ("package.json", Manifest),
        ("crates/a/Cargo.toml", Manifest),
        ("tool/gate.py", Configuration),
        ("vat.sh", Work),
        ("scripts/check.py", Configuration),
        ("ci/run.sh", Configuration),
        ("check.sh", Configuration),
        ("src/check.py", Work),
        ("src/shop/verify.ts", Work),
        ("src/tax.py", Work),
        ("locales/en.json", Work),
        ("openapi.yaml", Work),
        ("Cargo.lock", Work),
        ("docs/test.md", Work),
        ("requirements.txt", Work),
        ("src/types.ts", Work),
    ] {
        assert_eq!(rules().kind_of(&path(name)), expected, "{name}");
    }
}

#[test]
fn programs_and_new_modules_that_shadow_a_runner_are_configuration() {
    let program = |name, is_new| ChangedPath { is_executable: true, is_new, ..path(name) };
    for (changed, expected) in [
        (program("bin/rspec", true), Configuration),
        (program("bin/rspec", false), Configuration),
        (program("bin/mytool", true), Configuration),
        (program("bin/greet", true), Work),
        (program("bin/serve", false), Configuration),
        (program("greet", false), Work),
        (ChangedPath { is_new: true, ..path("tool/gate.py") }, Work),
        (program("src/main.py", false), Work),
        (ChangedPath { is_new: true, ..path("pluggy.py") }, Configuration),
        (ChangedPath { is_new: true, ..path("lib/json.py") }, Configuration),
        (ChangedPath { is_new: true, ..path("x.dist-info/entry_points.txt") }, Configuration),
        (ChangedPath { is_new: true, ..path("x.egg-info/entry_points.txt") }, Configuration),
        (ChangedPath { is_new: true, ..path("src/shop/json.py") }, Work),
        (ChangedPath { is_new: true, ..path("app/types.py") }, Work),
        (ChangedPath { is_new: true, ..path("packages/web/src/token.js") }, Work),
        (ChangedPath { is_new: true, ..path("src/unittest.py") }, Configuration),
        (ChangedPath { is_new: true, ..path("json/__init__.py") }, Configuration),
        (path("json.py"), Work),
        (ChangedPath { is_new: true, ..path("tax.py") }, Work),
        (ChangedPath { is_link: true, ..path("tests") }, Test),
    ] {
        assert_eq!(rules().kind_of(&changed), expected, "{changed:?}");
    }
}
