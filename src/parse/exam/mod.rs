//! Finds what a check rests on, from its command: the script it runs, the recipe it names and what
//! that runs in turn. It runs nothing, and a command that it does not understand holds nothing. A
//! file that a command only reads, as `grep` does, may be the work itself and is not part of it.

mod command;
pub mod inline;
mod just;
mod make;
mod package;
pub mod settings;

use std::collections::{BTreeMap, BTreeSet};

pub use self::command::only_what_changed;
use self::command::{SimpleCommand, simple_commands};
use crate::engine::exam::ExamPart;

/// How far scripts and recipes that name others are followed.
const DEPTH_MAX: usize = 4;
/// The most parts one check rests on.
const PARTS_MAX: usize = 100;

/// The files of a working tree, by their path from its root.
pub trait SourceTree {
    /// The text of a file; `None` if there is none. Of one that cannot be read as text, something
    /// that differs as it does, after a zero byte.
    fn text(&self, path: &str) -> Option<String>;

    /// The folders of `PATH` that are inside the tree, from its root, in order.
    fn program_folders(&self) -> &[String] {
        &[]
    }
}

impl SourceTree for BTreeMap<String, String> {
    fn text(&self, path: &str) -> Option<String> {
        self.get(path).cloned()
    }
}

/// The parts that a command rests on, each with its text. `folder`, from the root of the tree, is
/// where the command runs.
pub fn rests_on(run: &str, folder: &str, tree: &dyn SourceTree) -> BTreeMap<ExamPart, String> {
    Search::of(run, folder, tree).found
}

/// The files, from the root of the tree, that a test runner is given in a command.
pub fn test_files(run: &str, folder: &str, tree: &dyn SourceTree) -> BTreeSet<String> {
    Search::of(run, folder, tree).tests
}

struct Search<'a> {
    tree: &'a dyn SourceTree,
    found: BTreeMap<ExamPart, String>,
    /// The files that test runners are given.
    tests: BTreeSet<String>,
    /// The commands already followed, each with its folder.
    seen: BTreeSet<(String, String)>,
}

impl<'a> Search<'a> {
    fn of(run: &str, folder: &str, tree: &'a dyn SourceTree) -> Self {
        let (found, tests, seen) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut search = Self { tree, found, tests, seen };
        search.commands(run, folder, 0);
        search
    }

    /// Follows every command of a text of `sh`.
    fn commands(&mut self, run: &str, folder: &str, depth: usize) {
        let is_new = self.seen.insert((run.to_owned(), folder.to_owned()));
        if depth > DEPTH_MAX || !is_new || self.found.len() >= PARTS_MAX {
            return;
        }
        let mut here = folder.to_owned();
        for command in simple_commands(run) {
            match command {
                SimpleCommand::Folder(to) => here = joined(&here, &to).unwrap_or(here),
                SimpleCommand::Shell(text) => self.commands(&text, &here, depth + 1),
                SimpleCommand::Script(file) => self.script(&here, &file),
                SimpleCommand::Make { folder, file, goals } => {
                    let Some(place) = joined(&here, &folder) else { continue };
                    self.make(&place, file.as_deref(), &goals, depth);
                }
                SimpleCommand::Just { recipes } => self.just(&here, &recipes, depth),
                SimpleCommand::Package { script } => self.package(&here, &script, depth),
                SimpleCommand::Program(name) => self.program(&name),
                SimpleCommand::Tests(files) => {
                    let files = files.iter().filter_map(|file| joined(&here, file));
                    self.tests.extend(files.filter(|file| self.tree.text(file).is_some()));
                }
            }
        }
    }

    fn script(&mut self, folder: &str, file: &str) {
        let Some(path) = joined(folder, file) else { return };
        if let Some(text) = self.tree.text(&path) {
            self.found.insert(ExamPart::whole(path), text);
        }
    }

    /// A program rests on its file in the tree, and on there being none in the folders before.
    fn program(&mut self, name: &str) {
        for folder in self.tree.program_folders() {
            let Some(path) = joined(folder, name) else { continue };
            let text = self.tree.text(&path);
            let is_there = text.is_some();
            self.found.insert(ExamPart::whole(path), text.unwrap_or_default());
            if is_there {
                return;
            }
        }
    }

    fn make(&mut self, folder: &str, file: Option<&str>, goals: &[String], depth: usize) {
        let usual = ["GNUmakefile", "makefile", "Makefile"];
        let names: Vec<&str> = file.map_or_else(|| usual.to_vec(), |file| vec![file]);
        let Some((path, text)) = self.first(folder, &names) else { return };
        let makefile = make::Makefile::read(&text);
        let first = makefile.first_goal();
        let goals: Vec<String> =
            if goals.is_empty() { first.into_iter().collect() } else { goals.to_vec() };
        for goal in goals {
            let Some(recipe) = makefile.recipe(&goal) else { continue };
            self.found.insert(ExamPart::entry(&path, goal), recipe.text);
            recipe.commands.iter().for_each(|run| self.commands(run, folder, depth + 1));
        }
    }

    fn just(&mut self, folder: &str, recipes: &[String], depth: usize) {
        let Some((path, text)) = self.first(folder, &["justfile", "Justfile", ".justfile"]) else {
            return;
        };
        let justfile = just::Justfile::read(&text);
        let first = justfile.first_recipe();
        let wanted: Vec<String> =
            if recipes.is_empty() { first.into_iter().collect() } else { recipes.to_vec() };
        for name in wanted {
            let Some(recipe) = justfile.recipe(&name) else { continue };
            self.found.insert(ExamPart::entry(&path, name), recipe.text);
            recipe.commands.iter().for_each(|run| self.commands(run, folder, depth + 1));
        }
    }

    fn package(&mut self, folder: &str, script: &str, depth: usize) {
        let Some((path, text)) = self.first(folder, &["package.json"]) else { return };
        let scripts = package::scripts(&text, script);
        if scripts.is_empty() {
            return;
        }
        let lines = scripts.iter().map(|(name, run)| format!("{name}: {run}"));
        let text = lines.collect::<Vec<_>>().join("\n");
        self.found.insert(ExamPart::entry(path, format!("scripts.{script}")), text);
        for (_, run) in &scripts {
            self.commands(run, folder, depth + 1);
        }
    }

    /// The first of these files that is there, with its text. One that is not text is a part as a
    /// whole: the program that reads it may understand it.
    fn first(&mut self, folder: &str, names: &[&str]) -> Option<(String, String)> {
        let found = names.iter().find_map(|name| {
            let path = joined(folder, name)?;
            let text = self.tree.text(&path)?;
            Some((path, text))
        });
        let (path, text) = found?;
        if text.starts_with('\0') {
            self.found.insert(ExamPart::whole(path), text);
            return None;
        }
        Some((path, text))
    }
}

/// A path below a folder, without `.` and `..`; `None` if it leads out of the tree.
fn joined(folder: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~']) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests;
