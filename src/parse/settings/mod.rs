//! Parses a settings file, as TOML text, into one layer of settings. An unknown key is a warning,
//! because a later crew may know it. A value that cannot be used is an error, because a limit that
//! is silently lost means an endless loop. Each message names the file, the line, the key and what
//! to write instead; all faults of a file are reported together.

mod agents;
#[cfg(test)]
mod run_tests;
mod tables;
#[cfg(test)]
mod tests;
mod values;
mod variables;

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) use self::values::is_branch;
pub use self::variables::variables;
use super::fragment::IsThere;
use super::spelling::{nearest, shown};
use crate::engine::record::Role;
use crate::engine::settings::{Layer, Sourced, ValueOrigin};

/// The content of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    pub layer: Layer,
    /// Keys that were ignored: one sentence each.
    pub warnings: Vec<String>,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The user's own.
    Users,
    /// A checkout's: its paths stay inside the checkout, and it cannot set what is kept of all
    /// loops.
    Projects,
}

/// Parses the settings file at `path`. `outputs` are the formats of an agent's output that can be
/// read; `is_there` says whether a path is an existing file. The error has one line for each fault.
pub fn parse(
    text: &str,
    path: &Path,
    whose: Whose,
    outputs: &[&'static str],
    is_there: IsThere<'_>,
) -> Result<Read, String> {
    let (warnings, faults) = (Vec::new(), Vec::new());
    let mut reader = Reader { text, path, whose, outputs, is_there, warnings, faults };
    let mut layer = Layer::default();
    match DeTable::parse(text) {
        Ok(table) => reader.root(&mut layer, table.get_ref()),
        Err(error) => {
            let (at, what) = broken(text, &error);
            reader.fault(&at, what);
        }
    }
    let Reader { warnings, faults, .. } = reader;
    if faults.is_empty() { Ok(Read { layer, warnings }) } else { Err(faults.join("\n")) }
}

/// Where a text stops being TOML, and why.
pub(super) fn broken(text: &str, error: &toml::de::Error) -> (Range<usize>, String) {
    let at = error.span().unwrap_or_default();
    let why: Vec<&str> = error.message().lines().map(str::trim).collect();
    let what = match why.join("; ").as_str() {
        "duplicate key" => {
            let key = shown(text.get(at.clone()).unwrap_or_default());
            format!("{key} is given twice: keep one of them")
        }
        why => format!("this is not TOML: {why}"),
    };
    (at, what)
}

/// The number of the line at which a part of a text begins, counted from 1.
pub(super) fn line(text: &str, at: &Range<usize>) -> usize {
    text.get(..at.start).unwrap_or(text).matches('\n').count() + 1
}

type KeyText<'text> = Spanned<Cow<'text, str>>;
type Value<'text> = Spanned<DeValue<'text>>;

/// A key and its value.
pub(super) type Item<'text> = (&'text KeyText<'text>, &'text Value<'text>);

/// The items of a table in the order of the file; the crate returns them sorted by key.
pub(super) fn in_order<'text>(table: &'text DeTable<'text>) -> Vec<Item<'text>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

struct Reader<'text> {
    text: &'text str,
    path: &'text Path,
    whose: Whose,
    outputs: &'text [&'static str],
    is_there: IsThere<'text>,
    warnings: Vec<String>,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn line(&self, at: &Range<usize>) -> usize {
        line(self.text, at)
    }

    fn origin(&self, at: &Range<usize>) -> ValueOrigin {
        ValueOrigin::File { path: self.path.to_owned(), line: self.line(at) }
    }

    /// The folder to which the file's paths are relative.
    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The checkout of a project's file, which is its `.claude/crew.toml`.
    fn checkout(&self) -> Option<PathBuf> {
        let is_projects = self.whose == Whose::Projects;
        is_projects.then(|| self.folder().parent().unwrap_or(Path::new("")).to_owned())
    }

    fn sourced<T>(&self, at: &Range<usize>, value: T) -> Sourced<T> {
        Sourced { value, origin: self.origin(at) }
    }

    fn fault(&mut self, at: &Range<usize>, what: impl Display) {
        let fault = format!("{}: {what}", self.origin(at));
        self.faults.push(fault);
    }

    /// Warns of a key that is not one of `known`, and says where it may belong.
    fn unknown(&mut self, at: &Range<usize>, key: &str, table: &str, known: &[&'static str]) {
        let key = shown(key);
        let place = if table.is_empty() { String::new() } else { format!(" in {table}") };
        let home = tables::table_of(&key).filter(|home| *home != table);
        let guess = match (nearest(&key, known), home) {
            (_, Some(home)) => format!(": it belongs under {home}"),
            (Some(meant), None) => format!(": did you mean `{meant}`?"),
            (None, None) => ", ignored".to_owned(),
        };
        // A check that is passed over would let a loop end unchecked.
        let is_check = home.is_some() && Role::ALL.iter().any(|role| role.label() == key);
        let what = format!("unknown key `{key}`{place}{guess}");
        if is_check {
            self.fault(at, what);
        } else {
            self.warnings.push(format!("{}: {what}", self.origin(at)));
        }
    }
}
