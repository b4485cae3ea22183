//! What a loop changed, by its kind: tests, check configuration and work; and the trees in which
//! the one or the other is as the loop found it.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::boundary::protect::Cover;
use crate::engine::record::Loop;
use crate::engine::test_changes::Baseline;
use crate::engine::test_changes::kind::{ChangedPath, KindRules, NamedPaths, PathKind};
use crate::parse::test_changes::inline::{acts_otherwise_in_tests, with_old_test_module};
use crate::parse::test_changes::manifest::{put_running_parts_back, same_running_parts};
use crate::world::git::snapshots::Snapshots;

/// The rules for the kinds of paths of a loop.
fn rules(subject: &Loop, named: NamedPaths) -> KindRules {
    let contract = &subject.contract;
    KindRules {
        may_change: Cover::of(&contract.trial.may_change),
        tests: [
            Cover::of(&contract.trial.tests),
            Cover::of(&contract.protect),
            Cover::of(&named.globs.iter().collect::<Vec<_>>()),
        ],
        named,
    }
}

/// What differs between the tree that a loop found and the one that it left.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Files that are tests as a whole.
    pub tests: BTreeSet<String>,
    /// Files that are check configuration as a whole.
    pub configuration: BTreeSet<String>,
    /// Everything else, with manifests of which only other parts changed.
    pub work: BTreeSet<String>,
    /// Files of work with the old tests in them, by path.
    pub old_modules: BTreeMap<String, String>,
    /// Manifests with the old running parts in them, by path.
    pub old_parts: BTreeMap<String, String>,
    /// The scripts among both that a check names by path.
    pub scripts: BTreeSet<String>,
    /// Whether all tests and settings that differ are new, and are tests or parts of manifests.
    pub are_first_tests: bool,
    /// What takes belief away without a run.
    pub doubts: Vec<String>,
}

impl Changes {
    /// Sorts what differs by its kind.
    pub fn between(
        snapshots: &Snapshots,
        subject: &Loop,
        found: &Baseline,
        left: &Baseline,
    ) -> Result<Self, String> {
        let mut named = found.named.clone();
        named.extend(left.named.clone());
        let rules = rules(subject, named);
        let mut changes = Self { are_first_tests: true, ..Self::default() };
        let (mut manifests, mut sources) = (Vec::new(), Vec::new());
        for changed in snapshots.changed(&found.commit, &left.commit)? {
            let kind = rules.kind(&changed);
            let ChangedPath { path, is_new, .. } = changed;
            let is_run = rules.named.run.contains(&path) && !rules.named.compared.contains(&path);
            // A new script is what the task asks for; a new module named as a runner's part is not.
            let is_replaced = !is_new || rules.shadows_a_module(&path);
            if is_run && is_replaced && matches!(kind, PathKind::Test | PathKind::Configuration) {
                changes.scripts.insert(path.clone());
            }
            changes.are_first_tests &= match kind {
                PathKind::Test | PathKind::Manifest => is_new,
                PathKind::Configuration => false,
                PathKind::Work => true,
            };
            match kind {
                // A new test that the command names is what the task asked for.
                PathKind::Test if is_new && (is_run || rules.named.tests.contains(&path)) => {}
                PathKind::Test => drop(changes.tests.insert(path)),
                PathKind::Configuration => drop(changes.configuration.insert(path)),
                // The scripts of a new package run only where something old calls them.
                PathKind::Manifest if is_new && path.ends_with("json") => {
                    changes.work.insert(path);
                }
                PathKind::Manifest => manifests.push(path),
                PathKind::Work => {
                    let is_rust = matches!(path.rsplit_once('.'), Some((_, "rs")));
                    if is_rust && !is_new && !rules.may_change.covers(&path) {
                        sources.push(path.clone());
                    }
                    changes.work.insert(path);
                }
            }
        }
        changes.read_manifests(snapshots, found, left, manifests);
        changes.read_sources(snapshots, found, left, &sources);
        Ok(changes)
    }

    fn read_manifests(
        &mut self,
        snapshots: &Snapshots,
        found: &Baseline,
        left: &Baseline,
        manifests: Vec<String>,
    ) {
        let [then, now] = texts(snapshots, found, left, &manifests);
        for (path, (then, now)) in manifests.into_iter().zip(then.iter().zip(&now)) {
            self.work.insert(path.clone());
            if same_running_parts(&path, then, now) {
                continue;
            }
            match put_running_parts_back(&path, now, then) {
                Some(text) => drop(self.old_parts.insert(path, text)),
                None => drop(self.configuration.insert(path)),
            }
        }
    }

    fn read_sources(
        &mut self,
        snapshots: &Snapshots,
        found: &Baseline,
        left: &Baseline,
        sources: &[String],
    ) {
        let [then, now] = texts(snapshots, found, left, sources);
        for (path, (then, now)) in sources.iter().zip(then.iter().zip(&now)) {
            if !now.is_empty()
                && let Some(text) = with_old_test_module(now, then)
            {
                self.old_modules.insert(path.clone(), text);
                self.are_first_tests = false;
            }
            if acts_otherwise_in_tests(now, then) {
                self.doubts.push(format!("{path} has other `cfg(test)` code"));
            }
        }
    }

    /// Whether a path is among the tests or the configuration that differ.
    pub fn holds(&self, path: &str) -> bool {
        [&self.tests, &self.configuration].iter().any(|it| it.contains(path))
            || [&self.old_modules, &self.old_parts].iter().any(|it| it.contains_key(path))
    }

    /// Whether no test and no check configuration differs.
    pub fn are_none(&self) -> bool {
        !self.have_tests() && !self.have_configuration()
    }

    pub fn have_tests(&self) -> bool {
        !self.tests.is_empty() || !self.old_modules.is_empty()
    }

    pub fn have_configuration(&self) -> bool {
        !self.configuration.is_empty() || !self.old_parts.is_empty()
    }

    /// The same without these paths, which then stay as they are now.
    pub fn without(&self, others: &[String]) -> Self {
        let mut rest = self.clone();
        for path in others {
            for paths in [&mut rest.tests, &mut rest.configuration, &mut rest.scripts] {
                paths.remove(path);
            }
            for texts in [&mut rest.old_modules, &mut rest.old_parts] {
                texts.remove(path);
            }
        }
        rest
    }

    /// The paths of the configuration that differs.
    pub fn configuration_paths(&self) -> Vec<String> {
        self.configuration.iter().chain(self.old_parts.keys()).cloned().collect()
    }

    /// The paths of the tests that differ.
    pub fn test_paths(&self) -> Vec<String> {
        self.tests.iter().chain(self.old_modules.keys()).cloned().collect()
    }

    /// The tree that the agent left with tests, configuration or both as the loop found them.
    pub fn original(
        &self,
        snapshots: &Snapshots,
        found: &str,
        left: &str,
        (tests, configuration): (bool, bool),
    ) -> Result<String, String> {
        let mut files: Vec<&str> = Vec::new();
        let mut contents: Vec<(&str, &str)> = Vec::new();
        let with = |map: &'_ BTreeMap<String, String>| -> Vec<(String, String)> {
            map.iter().map(|(path, text)| (path.clone(), text.clone())).collect()
        };
        let (modules, parts) = (with(&self.old_modules), with(&self.old_parts));
        if tests {
            files.extend(self.tests.iter().map(String::as_str));
            contents.extend(modules.iter().map(|(path, text)| (&**path, &**text)));
        }
        if configuration {
            files.extend(self.configuration.iter().map(String::as_str));
            contents.extend(parts.iter().map(|(path, text)| (&**path, &**text)));
        }
        let tree = snapshots.mixed(left, found, &files)?;
        snapshots.with_contents(&tree, &contents)
    }
}

/// The texts of files in both trees.
fn texts(
    snapshots: &Snapshots,
    found: &Baseline,
    left: &Baseline,
    paths: &[String],
) -> [Vec<String>; 2] {
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    [found, left].map(|tree| snapshots.texts(&tree.commit, &paths))
}
