//! The changes that a loop made, by kind: tests, check configuration and work; and the trees in
//! which one kind is as the loop found it.

use std::collections::BTreeSet;

use super::Changes;
use engine::protect::GlobCover;
use engine::record::{Check, Loop};
use engine::test_changes::Baseline;
use engine::test_changes::kind::{ChangedPath, KindRules, NamedPaths, PathKind};
use readers::parse::test_changes::files::{
    acts_otherwise_in_tests, put_running_parts_back, same_running_parts, with_old_test_module,
};
use readers::parse::test_changes::is_static;
use world::git::snapshots::Snapshots;

/// The rules for the kinds of paths of a loop.
fn kind_rules(subject: &Loop, named: NamedPaths) -> KindRules {
    let contract = &subject.contract;
    KindRules {
        may_change: GlobCover::from_globs(&contract.trial.may_change),
        tests: [
            GlobCover::from_globs(&contract.trial.tests),
            GlobCover::from_globs(&contract.protect),
            GlobCover::from_globs(&named.globs.iter().collect::<Vec<_>>()),
        ],
        named,
    }
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
        let rules = kind_rules(subject, named);
        let mut changes = Self { are_first_tests: true, ..Self::default() };
        let mut in_parts = Vec::new();
        for changed in snapshots.changed(&found.commit, &left.commit)? {
            let kind = rules.kind_of(&changed);
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
                PathKind::Test => drop(changes.tests.insert(path, None)),
                PathKind::Configuration => drop(changes.configuration.insert(path, None)),
                PathKind::Manifest | PathKind::Work => {
                    let is_in_parts = if kind == PathKind::Manifest {
                        // The scripts of a new package run only where something old calls them.
                        !is_new || !path.ends_with("json")
                    } else {
                        let is_rust = matches!(path.rsplit_once('.'), Some((_, "rs")));
                        is_rust && !is_new && !rules.may_change.covers(&path)
                    };
                    if is_in_parts {
                        in_parts.push((kind, path.clone()));
                    }
                    changes.work.insert(path);
                }
            }
        }
        changes.read_parts(snapshots, [found, left], in_parts);
        Ok(changes)
    }

    /// Reads the files of which only a part is a test or configures checks.
    fn read_parts(
        &mut self,
        snapshots: &Snapshots,
        trees: [&Baseline; 2],
        in_parts: Vec<(PathKind, String)>,
    ) {
        let paths: Vec<&str> = in_parts.iter().map(|(_, path)| path.as_str()).collect();
        let [then, now] = trees.map(|tree| snapshots.texts(&tree.commit, &paths));
        for ((kind, path), (then, now)) in in_parts.into_iter().zip(then.iter().zip(&now)) {
            if kind == PathKind::Manifest {
                if !same_running_parts(&path, then, now) {
                    let text = put_running_parts_back(&path, now, then);
                    self.configuration.insert(path, text);
                }
                continue;
            }
            if acts_otherwise_in_tests(now, then) {
                self.doubts.push(format!("{path} has other `cfg(test)` code"));
            }
            if !now.is_empty()
                && let Some(text) = with_old_test_module(now, then)
            {
                self.tests.insert(path, Some(text));
                self.are_first_tests = false;
            }
        }
    }

    /// The changed files of work.
    pub fn into_work(self) -> BTreeSet<String> {
        self.work
    }

    /// Whether a path is among the changed tests or configuration.
    pub fn holds(&self, path: &str) -> bool {
        self.tests.contains_key(path) || self.configuration.contains_key(path)
    }

    /// Whether no test and no check configuration changed.
    pub fn are_none(&self) -> bool {
        self.tests.is_empty() && self.configuration.is_empty()
    }

    /// Whether changed tests concern a check.
    pub fn have_tests_for(&self, check: &Check) -> bool {
        !self.tests.is_empty() && !is_static(&check.run)
    }

    /// Whether any change concerns a check.
    pub fn concern_check(&self, check: &Check) -> bool {
        !self.configuration.is_empty() || self.have_tests_for(check)
    }

    /// The same changes without these paths, which then stay as they are now.
    pub fn without(&self, others: &[String]) -> Self {
        let mut rest = self.clone();
        rest.tests.retain(|path, _| !others.contains(path));
        rest.configuration.retain(|path, _| !others.contains(path));
        rest.scripts.retain(|path| !others.contains(path));
        rest
    }

    /// The tree that the agent left with tests, configuration or both as the loop found them.
    pub fn original_texts(
        &self,
        snapshots: &Snapshots,
        found: &str,
        left: &str,
        (tests, configuration): (bool, bool),
    ) -> Result<String, String> {
        let (mut files, mut contents) = (Vec::new(), Vec::new());
        let kinds = [(tests, &self.tests), (configuration, &self.configuration)];
        let wanted = kinds.into_iter().filter(|(is_wanted, _)| *is_wanted);
        for (path, text) in wanted.flat_map(|(_, originals)| originals) {
            match text {
                Some(text) => contents.push((path.as_str(), text.as_str())),
                None => files.push(path.as_str()),
            }
        }
        let tree = snapshots.mixed(left, found, &files)?;
        snapshots.with_contents(&tree, &contents)
    }
}
