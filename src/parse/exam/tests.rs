use super::settings::{may_be_settings, runner_part};
use super::*;

fn tree(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn named(run: &str, folder: &str, files: &BTreeMap<String, String>) -> Vec<String> {
    let parts = rests_on(run, folder, files).parts;
    parts.keys().filter(|part| !part.is_place()).map(ExamPart::name).collect()
}

const MAKEFILE: &str = "\
.PHONY: test build
PYTHON ?= python3
FLAGS = -q $(EXTRA)
EXTRA = -x
UNUSED = 1
all: build
build:
\tcc -o tax tax.c
test: build fixtures
\t@$(PYTHON) scripts/check.py $(FLAGS)
\t-sh run.sh
fixtures: ; ./make_fixtures
lint:
\tsh lint.sh
";

const JUSTFILE: &str = "\
set shell := [\"bash\", \"-c\"]
level := \"3\"
alias t := test
test level=level: build
    sh run.sh {{level}}
build:
    @sh build.sh
other:
    sh other.sh
";

#[test]
fn a_check_rests_on_the_script_or_entry_it_names_and_on_what_that_runs() {
    let package = r#"{"scripts":{"test":"node run.js && npm run lint","lint":"sh lint.sh",
        "pretest":"./make_fixtures","build":"sh build.sh"}}"#;
    let scripts = ["run.sh", "run.js", "lint.sh", "build.sh", "make_fixtures", "scripts/check.py"];
    let mut files =
        tree(&[("Makefile", MAKEFILE), ("justfile", JUSTFILE), ("package.json", package)]);
    files.extend(scripts.map(|path| (path.to_owned(), String::new())));
    files.insert("sub/Makefile".to_owned(), "test:\n\tsh ../run.sh\n".to_owned());
    let table: [(&str, &str, &[&str]); 25] = [
        ("sh run.sh", "", &["run.sh"]),
        ("./run.sh --fast", "", &["run.sh"]),
        ("bash -eu run.sh", "", &["run.sh"]),
        ("A=1 timeout 60 sh ./run.sh", "", &["run.sh"]),
        ("sh ../run.sh", "sub", &["run.sh"]),
        ("cd sub && sh ../run.sh | tee log", "", &["run.sh"]),
        ("cd sub && make test", "", &["run.sh", "`test` in sub/Makefile"]),
        ("make -C sub test", "", &["run.sh", "`test` in sub/Makefile"]),
        ("sh -ec 'cd sub; sh ../run.sh'", "", &["run.sh"]),
        (". ./run.sh", "", &["run.sh"]),
        ("uv run python scripts/check.py", "", &["scripts/check.py"]),
        (
            "python3 -m scripts.check",
            "",
            &["scripts/check.py", "scripts/check/__init__.py", "scripts/check/__main__.py"],
        ),
        (
            "python3 -B -m unittest a.py",
            "",
            &["unittest.py", "unittest/__init__.py", "unittest/__main__.py"],
        ),
        ("node -r dotenv run.js", "", &["run.js"]),
        ("make test", "", &["`test` in Makefile", "make_fixtures", "run.sh", "scripts/check.py"]),
        ("make", "", &["`all` in Makefile"]),
        ("just t", "", &["build.sh", "run.sh", "`t` in justfile"]),
        (
            "npm test",
            "",
            &[
                "lint.sh",
                "make_fixtures",
                "`scripts.lint` in package.json",
                "`scripts.test` in package.json",
                "run.js",
            ],
        ),
        ("yarn lint --fix", "", &["lint.sh", "`scripts.lint` in package.json"]),
        ("cargo test && sh run.sh", "", &["run.sh"]),
        ("grep -q done run.sh", "", &[]),
        ("cargo test > run.sh", "", &[]),
        ("echo 'sh run.sh; sh lint.sh'", "", &[]),
        ("sh /etc/run.sh; sh ~/run.sh; sh ../../run.sh; sh $X/run.sh", "", &[]),
        ("sh 'unclosed", "", &[]),
    ];
    for (run, folder, expected) in table {
        let mut found = named(run, folder, &files);
        let mut expected = expected.to_vec();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{run}");
    }
}

#[test]
fn a_file_that_a_test_runner_is_given_is_a_test_and_not_held() {
    let files = ["check_tax.py", "sub/check.js"].map(|path| (path.to_owned(), String::new()));
    let mut files = BTreeMap::from(files);
    files.insert("Makefile".to_owned(), "test:\n\tcd sub && node --test check.js\n".to_owned());
    for (run, expected) in [
        ("pytest -q check_tax.py::test_round", "check_tax.py"),
        ("python3 -m pytest check_tax.py -k round", "check_tax.py"),
        ("uv run pytest check_tax.py missing.py .", "check_tax.py"),
        ("python3 -m unittest check_tax.py", "check_tax.py"),
        ("npx vitest run sub/check.js", "sub/check.js"),
        ("make test", "sub/check.js"),
        ("python3 check_tax.py", ""),
    ] {
        let found: Vec<String> = test_files(run, "", &files).into_iter().collect();
        assert_eq!(found.join(" "), expected, "{run}");
        let held = named(run, "", &files);
        assert!(expected.is_empty() || !held.iter().any(|it| it == expected), "{run}: {held:?}");
    }
}

/// A tree with folders of programs in it.
struct WithPrograms(BTreeMap<String, String>, Vec<String>);

impl SourceTree for WithPrograms {
    fn text(&self, path: &str) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn program_folders(&self) -> &[String] {
        &self.1
    }
}

#[test]
fn a_program_that_is_found_in_the_tree_is_held_by_content_and_place() {
    let files = tree(&[("tools/check", "exit 1"), ("late/check", "")]);
    let tree = WithPrograms(files, ["bin", "tools", "late"].map(str::to_owned).to_vec());
    let held = |run: &str| {
        let found = rests_on(run, "", &tree).parts.into_iter();
        found.map(|(part, text)| format!("{}={text}", part.name())).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(held("A=1 check --fast"), "bin/check= tools/check=exit 1");
    assert_eq!(held("cargo test"), "bin/cargo= late/cargo= tools/cargo=");
}

#[test]
fn a_command_that_runs_only_what_changed_is_known() {
    for (run, expected) in [
        ("npx jest --onlyChanged", Some("--onlyChanged")),
        ("npx vitest run --changed=HEAD~1", Some("--changed=HEAD~1")),
        ("make lint; npx nx affected -t test", Some("affected")),
        ("pytest --lf -q", Some("--lf")),
        ("cargo test changed", None),
        ("echo affected", None),
    ] {
        assert_eq!(only_what_changed(run).as_deref(), expected, "{run}");
    }
}

#[test]
fn an_entry_is_its_rule_with_those_it_needs_and_the_variables_they_use() {
    let files = tree(&[("Makefile", MAKEFILE), ("justfile", JUSTFILE)]);
    let text = |run: &str| rests_on(run, "", &files).parts.into_values().next().unwrap();
    insta::assert_snapshot!(text("make test"), @"
    test: build fixtures
    	@$(PYTHON) scripts/check.py $(FLAGS)
    	-sh run.sh
    build: 
    	cc -o tax tax.c
    fixtures: 
    	./make_fixtures
    PYTHON ?= python3
    FLAGS = -q $(EXTRA)
    EXTRA = -x
    ");
    insta::assert_snapshot!(text("just test"), @r#"
    test level=level: build
    sh run.sh {{level}}
    build:
    @sh build.sh
    set shell := ["bash", "-c"]
    level := "3"
    "#);
}

#[test]
fn what_changes_every_recipe_belongs_to_each_entry() {
    let text = |more: &str| {
        let file = format!("{more}\ntest:\n\tcargo test\n");
        let found = rests_on("make test", "", &tree(&[("Makefile", &file)])).parts;
        found.into_values().next().unwrap()
    };
    for more in [
        ".IGNORE:",
        " .IGNORE:",
        " include evil",
        "sinclude evil",
        "ifdef NOPE",
        "%: SHELL=/bin/true",
        "define SHELL\n/bin/true\nendef",
        "export define SHELL\n/bin/true\nendef",
        "$(T): ; true",
        "$(X) := SHELL",
        "private SHELL := /bin/true",
        "# define variables\nSHELL = /bin/true",
        ".DEFAULT_GOAL := other",
        ".RECIPEPREFIX = >",
        "vpath %.c src",
        "export PATH := bin",
        "unexport CARGO",
        "GNUMAKEFLAGS = -i",
        "-include other.mk",
        "export PYTEST_ADDOPTS=-k x",
    ] {
        assert_ne!(text(""), text(more), "{more}");
    }
    for more in [
        "# define variables",
        "other:\n\t@# define x",
        ".PHONY: test",
        "UNUSED = 1",
        "other:\n\ttrue",
        "# a: b",
        "x.o: x.c y.h \\\n z.h",
    ] {
        assert_eq!(text(""), text(more), "{more}");
    }
    let recipe = |more: &str| {
        let file = format!("{more}test:\n    cargo test\n");
        let found = rests_on("just test", "", &tree(&[("justfile", &file)])).parts;
        found.into_values().next().unwrap()
    };
    for more in
        ["export PATH := 'bin'\n", "[script('true')]\n", "import 'other'\n", "set fallback\n"]
    {
        assert_ne!(recipe(""), recipe(more), "{more}");
    }
    for more in ["unused := '1'\n", "other:\n    true\n", "[private]\nother:\n    true\n"] {
        assert_eq!(recipe(""), recipe(more), "{more}");
    }
}

#[test]
fn a_file_in_the_place_of_a_goal_counts_unless_the_goal_is_phony() {
    let there = |phony: &str, file: &str| {
        let makefile = format!("{phony}test: build lint\n\tcargo test\nlint:\n\ttrue\n");
        let files = tree(&[("Makefile", &makefile), (file, "")]);
        rests_on("make test", "", &files).parts[&ExamPart::place("test")].clone()
    };
    assert_eq!([there("", "other"), there("", "test")], ["", "there"]);
    assert_eq!([there(".PHONY: all test\n", "test"), there(".PHONY: a\n", "test")], ["", "there"]);
    let files = tree(&[("Makefile", "all: lint\nlint:\n\ttrue\n"), ("lint", ""), ("all", "")]);
    let parts = rests_on("make all", "", &files).parts;
    assert_eq!(parts[&ExamPart::place("lint")], "there", "a goal that another one needs");
}

#[test]
fn a_module_of_python_is_held_with_what_would_come_before_it() {
    let held = |files: &[&str]| {
        let files = tree(&files.iter().map(|path| (*path, "x")).collect::<Vec<_>>());
        let found = rests_on("python3 -m checks.all", "", &files).parts.into_iter();
        found.map(|(part, text)| format!("{}={text}", part.name())).collect::<Vec<_>>().join(" ")
    };
    let file = held(&["checks/all.py"]);
    assert_eq!(file, "checks/all.py=x checks/all/__init__.py= checks/all/__main__.py=");
    let package = held(&["checks/all/__init__.py", "checks/all/__main__.py"]);
    assert_eq!(package, "checks/all.py= checks/all/__main__.py=x");
}

#[test]
fn recipes_that_name_each_other_come_to_an_end() {
    let files = tree(&[
        ("Makefile", "a: b\n\tmake b\nb: a\n\tmake a\n"),
        ("package.json", r#"{"scripts":{"a":"npm run b","b":"npm run a"}}"#),
    ]);
    assert_eq!(named("make a", "", &files), ["`a` in Makefile", "`b` in Makefile"]);
    assert_eq!(named("npm run a", "", &files).len(), 2);
}

#[test]
fn of_a_file_with_other_uses_only_the_runners_part_counts() {
    let part = |path: &str, text: &str| runner_part(path, text).unwrap_or_default();
    for (path, one, other, is_same) in [
        ("pytest.ini", "[pytest]\n", "[pytest]\naddopts = -k x\n", false),
        ("deep/jest.config.js", "a", "b", false),
        (".cargo/config.toml", "", "[alias]\ntest = \"version\"\n", false),
        ("conftest.py", "", "import x\n", false),
        ("tests/conftest.py", "\x00100644 blob a", "\x00100644 blob b", false),
        ("package.json", "{}", "\x00100644 blob b", false),
        (".npmrc", "", "script-shell=/bin/true", false),
        ("tests/conftest.py", "", "def pytest_runtest_makereport(): pass\n", false),
        ("tests/conftest.py", "", "import pytest\n@pytest.fixture\ndef a(): pass\n", true),
        ("tests/conftest.py", "", "from helper import pytest_runtest_makereport\n", false),
        ("pyproject.toml", "[project]\nname='a'\n", "[project]\nname='b'\n", true),
        ("pyproject.toml", "[project]\n", "[tool.pytest.ini_options]\naddopts='-k x'\n", false),
        ("setup.cfg", "[a]\n[tool:pytest]\nx=1\n[b]\n", "[tool:pytest]\nx=1\n[b]\nc=1\n", true),
        ("setup.cfg", "[tool:pytest]\nx=1\n", "[tool:pytest]\nx=2\n", false),
        ("setup.cfg", "", "[tool:pytest] # more\nx=2\n", false),
        ("Cargo.toml", "[dependencies]\n", "[dependencies]\na='1'\n", true),
        ("Cargo.toml", "[package]\nname='a'\n", "[package]\nname='a'\nautotests=false\n", false),
        ("package.json", r#"{"version":"1"}"#, r#"{"version":"2"}"#, true),
        ("package.json", "{}", r#"{"jest":{"testMatch":[]}}"#, false),
        ("src/lib.rs", "a", "b", true),
        ("vite.config.ts", "base", "base2", true),
    ] {
        assert_eq!(part(path, one) == part(path, other), is_same, "{path} {other}");
        assert!(may_be_settings(path) || is_same, "{path}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_strange(run in "\\PC*", text in "(\\PC|\n|\t|:|=|#){0,200}") {
        let names = ["Makefile", "justfile", "package.json"];
        let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, &*text)).collect();
        let files = tree(&files);
        for run in [run.as_str(), "make a", "just a", "npm test"] {
            rests_on(run, "", &files);
        }
        runner_part("pyproject.toml", &text);
    }
}
