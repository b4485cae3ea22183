//! What a changed path means to the checks: a test, a part of what configures or runs the checks,
//! or the work. One table of names; a path in doubt is work.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use globset::{GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use crate::protect::{GlobCover, parse_glob};
use crate::text::{is_word_of, words_of};

/// What a changed path means to the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathKind {
    Test,
    /// It makes or runs the checks, or a runner of tests reads it.
    Configuration,
    /// A manifest, of which some parts are configuration and the rest is work.
    Manifest,
    Work,
}

/// A path that differs between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedPath {
    /// From the root of the checkout.
    pub path: String,
    /// Whether the first snapshot lacks it.
    pub is_new: bool,
    /// Whether it is a program in one of both.
    pub is_executable: bool,
    /// Whether it is a link in one of both.
    pub is_link: bool,
}

/// What the commands of the checks name, by paths from the root of the checkout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPaths {
    /// Scripts, programs and settings that a command runs or passes to a runner.
    pub run: BTreeSet<String>,
    /// Those of `run` whose output a command compares, and files that it sources: the thing tested.
    pub compared: BTreeSet<String>,
    /// Files that a runner of tests is given.
    pub tests: BTreeSet<String>,
    /// Globs of files that a runner of tests is given.
    pub globs: BTreeSet<String>,
    /// Files that settings of a runner name.
    pub loaded: BTreeSet<String>,
    /// Files that a command writes its output to.
    pub written: BTreeSet<String>,
    /// Folders that are searched for modules and programs.
    pub folders: BTreeSet<String>,
    /// Programs that a command names without a path.
    pub programs: BTreeSet<String>,
}

impl NamedPaths {
    /// Adds the paths that another command names.
    pub fn extend(&mut self, other: Self) {
        self.run.extend(other.run);
        self.compared.extend(other.compared);
        self.tests.extend(other.tests);
        self.globs.extend(other.globs);
        self.loaded.extend(other.loaded);
        self.written.extend(other.written);
        self.folders.extend(other.folders);
        self.programs.extend(other.programs);
    }
}

/// What the kind of a path depends on.
#[derive(Debug)]
pub struct KindRules {
    /// Globs of paths that the user declared to be part of the task.
    pub may_change: GlobCover,
    /// Globs of tests: the settings' own, the protected paths, and those that a check names.
    pub tests: [GlobCover; 3],
    pub named: NamedPaths,
}

/// Globs of files that make, task runners, CI, runners of tests or their tools read, in lower case.
const SETTINGS: &str = include_str!("names/settings.txt");
static SETTINGS_SET: LazyLock<GlobSet> = LazyLock::new(|| compile_globs(SETTINGS));
/// Globs of tests, of what they read and of what they expect, in lower case.
static TESTS: LazyLock<GlobSet> = LazyLock::new(|| compile_globs(include_str!("names/tests.txt")));
/// Globs of tests in languages whose tests end in a capitalised word: `TaxTest.java`,
/// `TaxTests.cs`.
static CAPITALISED: LazyLock<GlobSet> = LazyLock::new(|| {
    compile_globs("**/*{Test,Tests,Spec,IT}.{java,kt,cs,fs,scala,groovy,php,swift}")
});
/// Globs of tests that may begin with such a word: `TestTax.java`, in any script's capitals.
static TEST_FIRST: LazyLock<GlobSet> =
    LazyLock::new(|| compile_globs("**/Test*.{java,kt,cs,fs,scala,groovy,php,swift}"));
/// Folders of test data, in lower case; a file there is not a settings file.
const DATA_FOLDERS: &str = "data testdata test_data fixtures __fixtures__ snapshots __snapshots__ __mocks__ golden \
    expected";
/// Names of manifests, in lower case.
const MANIFESTS: &str =
    "package.json pyproject.toml setup.cfg cargo.toml deno.json deno.jsonc composer.json";
/// Words in the name or folder of a script that mark it as a check.
const CHECKS: &str = "check checks test tests verify lint ci";
/// Folders of scripts, in addition to the root of the checkout.
pub const SCRIPT_FOLDERS: &str = "script scripts bin tools tool ci .ci hack dev build etc";
/// Extensions of scripts that are never a product's module.
const SHELLS: &str = "sh bash zsh ksh fish ps1 bat cmd";
/// Extensions of source files: an executable file without one is a program.
const SOURCES: &str = include_str!("names/source_endings.txt");
/// Runners of tests and their parts: a new module of such a name may come before theirs.
const RUNNER_MODULES: &str = "pytest _pytest pluggy iniconfig exceptiongroup unittest nose2 tox nox jest vitest mocha minitest";
/// Other modules that runners load. Products have such names, too, so a new one counts only in a
/// folder in which a check looks for modules.
const LOADED_MODULES: &str = include_str!("names/loaded_modules.txt");
/// Programs of a search path that run checks, or that checks are written in.
const PROGRAMS: &str = include_str!("names/programs.txt");

impl KindRules {
    /// The kind of a path that changed.
    pub fn kind_of(&self, changed: &ChangedPath) -> PathKind {
        let ChangedPath { path, is_new, .. } = changed;
        if self.may_change.covers(path) {
            return PathKind::Work;
        }
        let is_given = self.named.tests.contains(path);
        let is_linked = || changed.is_link && is_test(&format!("{path}/file"));
        let lower = path.to_lowercase();
        let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let is_settings = SETTINGS_SET.is_match(&lower);
        let lies_among_data = || folder.split('/').any(|part| is_word_of(DATA_FOLDERS, part));
        let is_test =
            |path| is_test(path) && !(is_settings && !is_test(name) && !lies_among_data());
        if is_given || self.tests.iter().any(|it| it.covers(path)) || is_test(path) || is_linked() {
            return PathKind::Test;
        }
        if is_word_of(MANIFESTS, name) {
            return PathKind::Manifest;
        }
        let says_that_it_checks = says_that_it_checks(folder, name);
        let is_compared = self.named.compared.contains(path) && !says_that_it_checks;
        let is_named = self.named.run.contains(path) || self.named.loaded.contains(path);
        let is_run = is_named && !is_new || says_that_it_checks && is_script(changed);
        let is_program = changed.is_executable
            && if *is_new {
                self.shadows_program(name)
            } else {
                !is_word_of(SOURCES, file_ending(name))
            };
        let is_configuration = is_settings
            || !is_compared && (is_run || is_program)
            || *is_new && self.shadows_a_module(path);
        if is_configuration { PathKind::Configuration } else { PathKind::Work }
    }

    /// Whether a command runs a new program of that name in place of another one.
    fn shadows_program(&self, name: &str) -> bool {
        is_word_of(PROGRAMS, name) || self.named.programs.iter().any(|it| it.to_lowercase() == name)
    }

    /// Whether a module, or the package that it is the beginning of, may be loaded in place of a
    /// part of a runner.
    pub fn shadows_a_module(&self, path: &str) -> bool {
        let lower = path.to_lowercase();
        let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let stem = name.split('.').next().unwrap_or_default();
        let (folder, module) = match stem {
            "__init__" | "index" => folder.rsplit_once('/').unwrap_or(("", folder)),
            _ => (folder, stem),
        };
        let is_module =
            ["py", "pyi", "so", "js", "mjs", "cjs", "ts", "rb"].contains(&file_ending(name));
        let is_looked_in =
            || folder.is_empty() || self.named.folders.iter().any(|it| it.to_lowercase() == folder);
        is_module
            && (is_word_of(RUNNER_MODULES, module)
                || is_word_of(LOADED_MODULES, module) && is_looked_in())
    }
}

/// A list of globs over whole paths.
fn compile_globs(list: &str) -> GlobSet {
    let mut globs = GlobSetBuilder::new();
    for glob in words_of(list).filter_map(|text| parse_glob(text).ok()) {
        globs.add(glob.glob().clone());
    }
    globs.build().unwrap_or_default()
}

fn file_ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Whether a name, or its folder, contains a word of [`CHECKS`].
fn says_that_it_checks(folder: &str, name: &str) -> bool {
    let last = folder.rsplit('/').next().unwrap_or_default();
    let words = |text: &str| {
        text.split(|letter: char| !letter.is_alphanumeric()).any(|word| is_word_of(CHECKS, word))
    };
    words(name) || words(last)
}

/// Whether a file is run as it is, rather than being a module of a product.
fn is_script(changed: &ChangedPath) -> bool {
    let lower = changed.path.to_lowercase();
    let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let top = folder.rsplit('/').next().unwrap_or_default();
    let is_among_scripts = folder.is_empty() || is_word_of(SCRIPT_FOLDERS, top);
    let is_code =
        ["py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua"].contains(&file_ending(name));
    changed.is_executable || is_word_of(SHELLS, file_ending(name)) || is_code && is_among_scripts
}

/// Whether a file of that name may hold a secret: it is compared by a hash, and never copied.
pub fn may_be_secret(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let is_environment = name == ".env" || name.starts_with(".env.") || name == ".envrc";
    is_environment || [".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".netrc"].contains(&&*name)
}

/// Patterns of git for files of configuration that ignore rules may keep out of snapshots.
pub fn ignored_patterns() -> impl Iterator<Item = String> {
    let names = words_of(SETTINGS).filter_map(|glob| glob.strip_prefix("**/"));
    let names = names.filter(|name| !name.contains('/')).chain(words_of(MANIFESTS));
    names.map(|name| format!(":(glob,icase)**/{name}"))
}

/// Whether a path, from the root of the checkout, is a test, a part of one or a snapshot of one.
/// Upper and lower case are the same, as on some disks.
pub fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_capital = name.chars().nth("Test".len()).is_some_and(char::is_uppercase);
    CAPITALISED.is_match(path)
        || is_capital && TEST_FIRST.is_match(path)
        || TESTS.is_match(path.to_lowercase())
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;

#[cfg(test)]
mod test_path_tests {
    use super::*;

    #[test]
    fn a_test_is_known_by_its_folder_or_its_name() {
        let tests = [
            "tests/tax.rs",
            "test/tax.js",
            "pkg/tests/data/a.json",
            "src/__tests__/tax.tsx",
            "src/__mocks__/api.ts",
            "spec/tax.rb",
            "test_tax.py",
            "Test_Tax.PY",
            "pkg/tax_test.go",
            "src/tax.test.ts",
            "src/tax.spec.js",
            "tax_spec.rb",
            "src/snapshots/page.snap",
            "pkg/testdata/page.html",
            "src/tax/tests.rs",
            "src/tax_tests.rs",
            "src/test/java/com/x/TaxTest.java",
            "app/TaxTest.java",
            "app/TestTax.java",
            "app/TestÜbersicht.java",
            "Shop.Tests/TaxTests.cs",
            "Tests/ShopTests/Tax.swift",
            "fixtures/order.json",
            "e2e/login.ts",
            "features/tax.feature",
            "golden/page.html",
            "out/page.approved.txt",
        ];
        let others = [
            "src/tax.rs",
            "src/testing.rs",
            "test",
            "latest.py",
            "contest/tax.py",
            "tests.md",
            "src/attests/a.rs",
            "Cargo.toml",
            "app/Latest.java",
            "app/Testament.java",
            "src/inspector.ts",
        ];
        let globs_of = |list: &str| words_of(list).filter(|text| parse_glob(text).is_ok()).count();
        for list in [SETTINGS, include_str!("names/tests.txt")] {
            assert_eq!(globs_of(list), words_of(list).count(), "each is a glob");
        }
        assert_eq!(tests.map(is_test), [true; 27], "{tests:?}");
        assert_eq!(others.map(is_test), [false; 11], "{others:?}");
    }
}
