//! Reads and checks a recipe's fragments: every include expanded, every name known. Files are read
//! by the caller's `Files`, and no template is filled in here.

use std::collections::BTreeSet;

use handlebars::Template;

use super::source::{Files, Source};
use super::templates::TemplateReader;
use super::variables::Variable;
use crate::engine::record::run::{Fragment, Recipe};

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

    /// Its heading in a prompt.
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

/// A piece of a prompt, ready to be filled in.
#[derive(Debug, Clone)]
pub enum PromptPiece {
    /// Inserted unchanged.
    Literal(String),
    /// Filled in with the values of its variables.
    Template { origin: Source, template: Template },
}

/// A recipe, read and checked.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    phases: Vec<(Phase, Vec<PromptPiece>)>,
    wanted: BTreeSet<Variable>,
}

impl Parts {
    /// The variables that its templates use: no other needs to be looked up.
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
/// The first fault, with its file and line: an unreadable file, a template's syntax, an unknown
/// name, a circle of includes.
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
                Fragment::File(path) => Source::File(path.clone()),
                Fragment::BuiltIn(name) => Source::BuiltIn(name.clone()),
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
