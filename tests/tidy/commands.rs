//! Commands that occur in several places: the short names, the script of CI, the hosted workflows
//! and the pages give the same ones. It runs none of them.

use std::process::Command;

use super::{LONG, between, found, product_source, read, source, tree};

/// The commands of a recipe, one a line.
fn recipe(name: &str) -> Vec<String> {
    let recipes = format!("{}\n\n", read("justfile"));
    let (_, rest) = recipes.split_once(&format!("\n{name}:")).expect(name);
    let body = rest.split_once('\n').unwrap().1.split_once("\n\n").unwrap().0;
    body.lines().map(|line| line.trim().trim_start_matches('@').to_owned()).collect()
}

/// The command that a step of a hosted workflow runs, if it runs one.
fn steps(workflow: &str) -> Vec<String> {
    let text = read(&format!(".github/workflows/{workflow}"));
    found(r"(?m)- run: (.+)$", &text).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_check_before_a_commit_is_in_ci_and_in_the_page_for_contributors() {
    let (script, page) = (read(".ci/run"), read("CONTRIBUTING.md"));
    let checks = recipe("check");
    assert!(checks.len() >= 3, "{checks:?}");
    for check in checks {
        assert!(page.contains(&format!("`{check}`")), "CONTRIBUTING.md does not name {check}");
        let is_in_script = script.contains(&format!("\nstep {check}\n"));
        assert!(is_in_script || check == "cargo test --test it tidy", ".ci/run: no step {check}");
    }
}

#[test]
fn a_recipe_runs_what_its_page_says() {
    let bench = read("BENCHMARKS.md");
    let bench: Vec<_> = between(&bench, "```\n", "\n```").lines().collect();
    assert_eq!(recipe("bench"), bench, "justfile (left) and BENCHMARKS.md (right) differ");
}

#[test]
fn the_test_command_of_the_readme_is_what_ci_runs_with_no_variable_set() {
    let (readme, script) = (read("README.md"), read(".ci/run"));
    let promised = found(r"(?m)^(cargo test[^\n]*)$", &readme);
    let promised: Vec<_> = promised.into_iter().collect();
    assert_eq!(promised, ["cargo test"], "README.md");
    assert_eq!(recipe("test"), promised, "justfile");
    assert!(script.contains("\ntests=$(readme \"cargo test\")\n"), ".ci/run has another command");
    let step = "\nstep without_variables bash -c \"$tests\"\nstep without_variables .ci/long\n";
    assert!(script.contains(step), ".ci/run has no step{step}");
    assert_eq!(recipe("all"), [".ci/long"], "justfile");
    let passed = between(&script, "env -i ", " \"$@\"");
    let passed: Vec<_> = found(r#"([A-Z_]+)=""#, passed).into_iter().collect();
    assert_eq!(passed, ["CARGO_HOME", "HOME", "PATH", "RUSTUP_HOME"], ".ci/run sets variables");
}

#[test]
fn the_release_binary_is_tested_by_the_same_suites_everywhere() {
    let script = read(".ci/run");
    let picked = |text: &str| {
        let (_, names) = text.split_once("--test it --").expect("the tests are picked by name");
        names.split_whitespace().filter(|word| *word != "\\").map(str::to_owned).collect::<Vec<_>>()
    };
    let in_script = picked(between(&script, "\nshipped() {\n", "\n}\n"));
    assert!(in_script.len() >= 8, "{in_script:?}");
    assert_eq!(in_script, picked(&recipe("shipped").join(" ")), ".ci/run and justfile differ");
    assert!(script.contains("\nstep shipped\n"), ".ci/run has no step shipped");
}

#[test]
fn every_ignored_test_is_in_exactly_one_long_suite() {
    let mut list = Command::new(std::env::current_exe().unwrap());
    let list = list.args(["--ignored", "--list", "--format", "terse"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let mut long: Vec<String> =
        list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
    let of_crates = product_source().into_iter().filter(|file| file.text.contains(LONG));
    long.extend(of_crates.flat_map(|file| {
        let (_, path) = file.path.rsplit_once("src/").unwrap();
        let module = path.trim_end_matches(".rs").replace('/', "::");
        let marked = file.text.split(LONG).skip(1).map(|rest| between(rest, "fn ", "("));
        marked.map(|name| format!("{module}::{name}")).collect::<Vec<_>>()
    }));
    let script = read(".ci/long");
    let suites: Vec<Vec<&str>> = found(r"(?m)^suite [a-z]+ (.+)$", &script)
        .into_iter()
        .map(|filters| filters.split(' ').collect())
        .collect();
    for filter in suites.concat() {
        assert!(long.iter().any(|test| test.contains(filter)), ".ci/long: no test has {filter}");
    }
    for test in long {
        let has = |suite: &&Vec<&str>| suite.iter().any(|filter| test.contains(filter));
        let count = suites.iter().filter(has).count();
        assert_eq!(count, 1, ".ci/long: {test} is in so many suites");
    }
}

#[test]
fn every_test_that_a_recipe_or_a_profile_names_exists() {
    let tests: String = source("tests/").into_iter().map(|file| file.text).collect();
    let recipes = ["slow", "client", "agents", "slurm", "shipped"].map(recipe).concat().join("\n");
    let mut picked = found(r"(?m)--test it (?:-- )?(.+)$", &recipes);
    let profiles = read(".config/nextest.toml");
    picked.extend(found(r"test\(/([^/]+)/\)", &profiles));
    assert!(picked.len() >= 4, "{picked:?}");
    let names = picked.iter().flat_map(|names| names.split([' ', '|', '^']));
    for name in names.filter(|name| !name.starts_with("--")) {
        let module = name.strip_suffix("::").and_then(|path| path.rsplit("::").next());
        let opening = module.map_or(format!("fn {name}"), |module| format!("mod {module};"));
        assert!(tests.contains(&opening), "there is no test {name}");
    }
}

#[test]
fn the_oldest_supported_rust_is_the_same_everywhere() {
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    let readme = read("README.md");
    assert!(readme.contains(&format!("Rust {oldest} or later")), "README.md: not {oldest}");
    let steps = steps("ci.yml");
    for step in [
        format!("rustup toolchain install {oldest} --profile minimal"),
        format!("cargo +{oldest} check --locked"),
    ] {
        assert!(steps.contains(&step), "ci.yml has no step `{step}`: {steps:#?}");
    }
}

#[test]
fn every_hosted_ci_step_can_be_run_locally() {
    let script = read(".ci/run");
    let nightly = steps("ci.yml");
    let step = |start: &str| {
        let step = nightly.iter().find(|step| step.starts_with(start));
        step.unwrap_or_else(|| panic!("ci.yml has no step that begins with {start}")).as_str()
    };
    assert_eq!(step(".ci/run"), ".ci/run");
    assert!(script.contains(&format!(" {}\n", step("cargo doc"))), ".ci/run has another cargo doc");
    assert_eq!(recipe("deny"), [step("cargo deny")]);
    assert!(recipe("release").contains(&step("cargo package").to_owned()));
    let mut on_a_push = steps("quick.yml");
    on_a_push.retain(|step| !step.starts_with("rustup"));
    let mut quick = [recipe("check"), recipe("quick")].concat();
    quick.retain(|command| command != "cargo test --test it tidy");
    quick.push("cargo test --test it tidy".to_owned());
    quick.sort();
    assert_eq!(on_a_push, quick, "quick.yml (left) and justfile (right) differ");
}

#[test]
fn the_crates_are_checked_for_the_platforms_that_are_released() {
    let (workflow, deny) = (read(".github/workflows/release.yml"), read("deny.toml"));
    let released = found(r"platform: ([a-z0-9_-]+)", &workflow);
    let checked = found(r#"(?m)^  "([a-z0-9_-]+)",$"#, between(&deny, "targets = [", "]"));
    assert_eq!(released, checked, "release.yml (left) and deny.toml (right) differ");
    let count = format!("-eq {}\n", released.len() + 1);
    let counts = workflow.matches(&count).count();
    assert_eq!(counts, 3, "release.yml: another number of archives, checksums or npm packages");
}

#[test]
fn the_manifest_and_the_installers_have_the_same_public_address() {
    let address = env!("CARGO_PKG_REPOSITORY").trim_start_matches("https://");
    let named = tree().into_iter().filter(|file| file.text.contains(address));
    // A built page reaches what is outside the book only by its address; tidy/book.rs holds it.
    let named: Vec<_> =
        named.map(|file| file.path).filter(|path| !path.starts_with("docs/")).collect();
    let expected = ["Cargo.toml", "book.toml", "install.sh"];
    assert_eq!(named, expected, "elsewhere take it from CARGO_PKG_REPOSITORY, or link relatively");
}

#[test]
fn each_installer_looks_for_the_archives_under_their_real_names() {
    let version = env!("CARGO_PKG_VERSION");
    let (manifest, script, release) = (read("Cargo.toml"), read("install.sh"), read(".ci/release"));
    assert!(script.contains(&format!("\nversion={version}\n")), "install.sh: not {version}");
    assert!(release.contains(r#"pack "crew-$version-$1.tar.gz" "crew-$version-$1""#));
    assert!(script.contains("name=crew-$version-$platform\n") && script.contains("/$name.tar.gz"));
    let binstall = "/v{ version }/crew-{ version }-{ target }.tar.gz\"\nbin-dir = \"crew-{ version }-{ target }/";
    assert!(manifest.contains(binstall), "Cargo.toml: another archive for cargo binstall");
    let workflow = read(".github/workflows/release.yml");
    let formula = read("packaging/crew.rb");
    for platform in found(r"platform: ([a-z0-9_-]+)", &workflow) {
        assert!(release.contains(&format!("\n    {platform}) ")), "no npm package for {platform}");
        let url = format!("/v@VERSION@/crew-@VERSION@-{platform}.tar.gz\"");
        assert!(formula.contains(&url), "packaging/crew.rb: nothing for {platform}");
    }
}
