//! A recipe's fragments, read and checked: every include in its place, every name known. Files are read
//! through a door that the caller gives, and nothing of a template is filled in here.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use handlebars::Template;

use super::built_in;
use super::templates::TemplateReader;
use super::variables::Variable;
use crate::engine::record::run::{Fragment, Recipe};

/// The door to the files of fragments and includes.
pub trait Files {
    /// The text of a file, bounded, that the file `named_by` includes, or that is a fragment and named by
    /// itself. The error names the file and the cause.
    fn read(&self, path: &Path, named_by: &Path) -> Result<String, String>;
}

/// The phases of a prompt, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Context,
    Observe,
    Orient,
    Decide,
    Act,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Self; 5] =
        [Self::Context, Self::Observe, Self::Orient, Self::Decide, Self::Act];

    /// The word over it in a prompt.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Context => "CONTEXT",
            Self::Observe => "OBSERVE",
            Self::Orient => "ORIENT",
            Self::Decide => "DECIDE",
            Self::Act => "ACT",
        }
    }

    /// Its fragments in a recipe, in the order given.
    pub fn of(self, recipe: &Recipe) -> &[Fragment] {
        match self {
            Self::Context => &recipe.context,
            Self::Observe => &recipe.observe,
            Self::Orient => &recipe.orient,
            Self::Decide => &recipe.decide,
            Self::Act => &recipe.act,
        }
    }
}

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// One of crew's own, by name.
    BuiltIn(String),
    File(PathBuf),
}

impl Origin {
    /// Whether its text is a template; any other is literal.
    pub fn is_template(&self) -> bool {
        match self {
            Self::BuiltIn(_) => true,
            Self::File(path) => path.extension() == Some("hbs".as_ref()),
        }
    }

    /// What a template here means by including `name`: `crew/NAME.hbs` is one of crew's own; any other is a
    /// file, seen from the folder of the file that names it.
    pub fn include(&self, name: &str) -> Result<Self, String> {
        if let Some(own) = name.strip_prefix("crew/").and_then(|own| own.strip_suffix(".hbs")) {
            return Ok(Self::BuiltIn(own.to_owned()));
        }
        match self {
            Self::BuiltIn(_) => Err(format!("`{name}` is none of crew's own templates")),
            Self::File(path) => Ok(Self::File(plain(&path.with_file_name(name)))),
        }
    }

    /// Its text, as `includer` may have it; a fragment has none.
    pub fn text(&self, files: &dyn Files, includer: Option<&Self>) -> Result<String, String> {
        match self {
            Self::BuiltIn(name) => built_in::template(name).map(str::to_owned),
            Self::File(path) => match includer {
                Some(Self::File(includer)) => files.read(path, includer),
                _ => files.read(path, path),
            },
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(out, "crew/{name}.hbs"),
            Self::File(path) => path.display().fmt(out),
        }
    }
}

/// The path without `.` and with `..` taken literally, so that one file has one name.
fn plain(path: &Path) -> PathBuf {
    use std::path::Component::{CurDir, Normal, ParentDir};
    let mut plain = PathBuf::new();
    for part in path.components() {
        let can_climb = matches!(plain.components().next_back(), Some(Normal(_)));
        match part {
            CurDir => {}
            ParentDir if can_climb => {
                plain.pop();
            }
            _ => plain.push(part),
        }
    }
    plain
}

/// A piece of a prompt, ready to be filled in.
#[derive(Debug, Clone)]
pub enum PromptPiece {
    /// Goes in as it is.
    Literal(String),
    Template {
        origin: Origin,
        template: Template,
    },
}

/// A recipe, read and checked.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    phases: Vec<(Phase, Vec<PromptPiece>)>,
    wanted: BTreeSet<Variable>,
}

impl Parts {
    /// The variables that its templates name: what nobody names need not be looked at.
    pub fn wanted(&self) -> &BTreeSet<Variable> {
        &self.wanted
    }

    /// The pieces of a phase, in their order.
    pub fn of(&self, phase: Phase) -> &[PromptPiece] {
        let found = self.phases.iter().find(|(other, _)| *other == phase);
        found.map_or(&[], |(_, pieces)| pieces)
    }
}

/// Reads and checks every fragment of a recipe.
///
/// # Errors
/// The first thing that is wrong, with its file and line: a file that cannot be read, a template's syntax, a
/// name that is none, a circle of includes.
pub fn read(recipe: &Recipe, files: &dyn Files) -> Result<Parts, String> {
    let mut reading = TemplateReader::new(files);
    let mut phases = Vec::new();
    for phase in Phase::ALL {
        let mut pieces = Vec::new();
        for fragment in phase.of(recipe) {
            let origin = match fragment {
                Fragment::Text(text) => {
                    pieces.push(PromptPiece::Literal(text.clone()));
                    continue;
                }
                Fragment::File(path) => Origin::File(path.clone()),
                Fragment::BuiltIn(name) => Origin::BuiltIn(name.clone()),
            };
            pieces.push(if origin.is_template() {
                let template = reading.template(&origin)?;
                PromptPiece::Template { origin, template }
            } else {
                PromptPiece::Literal(origin.text(files, None)?)
            });
        }
        phases.push((phase, pieces));
    }
    Ok(Parts { phases, wanted: reading.wanted })
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
