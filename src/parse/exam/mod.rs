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
/// Goals that name what is done and not a file. `make` does nothing where one is there.
const ACTIONS: [&str; 9] =
    ["test", "tests", "check", "checks", "lint", "verify", "ci", "unit", "e2e"];
/// The most parts one check rests on.
const PARTS_MAX: usize = 100;

/// The files of a working tree, by their path from its root.
pub trait SourceTree {
    /// The text of a file; `None` if there is none. Of one that cannot be read as text, something
    /// that differs as it does, after a zero byte.
    fn text(&self, path: &str) -> Option<String>;

    /// Whether there is a file or a folder.
    fn is_there(&self, path: &str) -> bool {
        self.text(path).is_some()
    }

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

/// What a command rests on.
#[derive(Debug, Default)]
pub struct RestsOn {
    /// The parts, each with its text; of what must not be there, an empty one.
    pub parts: BTreeMap<ExamPart, String>,
    /// The paths at which a file would belong to it, and there is none.
    pub missed: BTreeSet<String>,
}

/// What a command rests on. `folder`, from the root of the tree, is where the command runs.
pub fn rests_on(run: &str, folder: &str, tree: &dyn SourceTree) -> RestsOn {
    let Search { found, missed, .. } = Search::of(run, folder, tree);
    RestsOn { parts: found, missed }
}

/// The files, from the root of the tree, that a test runner is given in a command.
pub fn test_files(run: &str, folder: &str, tree: &dyn SourceTree) -> BTreeSet<String> {
    Search::of(run, folder, tree).tests
}

struct Search<'a> {
    tree: &'a dyn SourceTree,
    found: BTreeMap<ExamPart, String>,
    missed: BTreeSet<String>,
    /// The files that test runners are given.
    tests: BTreeSet<String>,
    /// The commands already followed, each with its folder.
    seen: BTreeSet<(String, String)>,
}

impl<'a> Search<'a> {
    fn of(run: &str, folder: &str, tree: &'a dyn SourceTree) -> Self {
        let (found, missed) = (BTreeMap::new(), BTreeSet::new());
        let (tests, seen) = (BTreeSet::new(), BTreeSet::new());
        let mut search = Self { tree, found, missed, tests, seen };
        search.commands(run, folder, 0);
        search
    }

    fn text(&mut self, path: &str) -> Option<String> {
        let text = self.tree.text(path);
        if text.is_none() {
            self.missed.insert(path.to_owned());
        }
        text
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
                SimpleCommand::Module { name, tests } => {
                    self.module(&here, &name);
                    self.given(&here, &tests);
                }
                SimpleCommand::Tests(files) => self.given(&here, &files),
            }
        }
    }

    fn script(&mut self, folder: &str, file: &str) {
        let Some(path) = joined(folder, file) else { return };
        if let Some(text) = self.text(&path) {
            self.found.insert(ExamPart::whole(path), text);
        }
    }

    /// A program rests on its file in the tree, and on there being none in the folders before.
    fn program(&mut self, name: &str) {
        let tree = self.tree;
        for folder in tree.program_folders() {
            let Some(path) = joined(folder, name) else { continue };
            let text = self.text(&path);
            let is_there = text.is_some();
            self.found.insert(ExamPart::whole(path), text.unwrap_or_default());
            if is_there {
                return;
            }
        }
    }

    fn given(&mut self, folder: &str, files: &[String]) {
        let files = files.iter().filter_map(|file| joined(folder, file));
        self.tests.extend(files.filter(|file| self.tree.text(file).is_some()));
    }

    /// A module of Python rests on its file in the folder, and on none that comes before it.
    fn module(&mut self, folder: &str, name: &str) {
        let Some(path) = joined(folder, &name.replace('.', "/")) else { return };
        for file in [format!("{path}/__main__.py"), format!("{path}.py")] {
            let text = self.text(&file).unwrap_or_default();
            self.found.insert(ExamPart::whole(file), text);
        }
        // What is in a package's own file may be the work.
        let package = format!("{path}/__init__.py");
        if self.text(&package).is_none() {
            self.found.insert(ExamPart::whole(package), String::new());
        }
    }

    fn make(&mut self, folder: &str, file: Option<&str>, goals: &[String], depth: usize) {
        let usual = ["GNUmakefile", "makefile", "Makefile"];
        let names: Vec<&str> = file.map_or_else(|| usual.to_vec(), |file| vec![file]);
        let Some((path, text)) = self.first(folder, &names) else { return };
        let text = text.replace("\\\n", " ");
        let makefile = make::Makefile::read(&text);
        let first = makefile.first_goal();
        let goals: Vec<String> =
            if goals.is_empty() { first.into_iter().collect() } else { goals.to_vec() };
        for goal in goals {
            let Some(recipe) = makefile.recipe(&goal) else { continue };
            for goal in ACTIONS {
                let Some(file) = joined(folder, goal) else { continue };
                let is_taken =
                    recipe.files.iter().any(|it| it == goal) && self.tree.is_there(&file);
                let text = if is_taken { "there" } else { "" };
                self.found.insert(ExamPart::place(file), text.to_owned());
            }
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
            let text = self.text(&path)?;
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
