//! Reads and checks a recipe's fragments: every include expanded, every name known. Files are read
//! by the caller's `Files`, and no template is filled in here.

use std::collections::BTreeSet;

use minijinja::Environment;

use super::source::{Files, Source};
use super::templates::{TemplateReader, explain};
use super::values::Values;
use super::variables::Variable;
use crate::engine::record::{Fragment, Phase, Recipe};

/// A piece of a prompt, ready to be filled in.
#[derive(Debug, Clone)]
pub enum PromptPiece {
    /// Inserted unchanged.
    Literal(String),
    /// Filled in with the values of its variables; by its name.
    Template(String),
}

/// A recipe, read and checked.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    phases: Vec<(Phase, Vec<PromptPiece>)>,
    wanted: BTreeSet<Variable>,
    environment: Environment<'static>,
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

    /// The text of a piece, with these values in it.
    ///
    /// # Errors
    /// When its template cannot be filled in; the error has its name and line.
    pub fn fill(&self, piece: &PromptPiece, values: &Values) -> Result<String, String> {
        match piece {
            PromptPiece::Literal(text) => Ok(text.clone()),
            PromptPiece::Template(name) => {
                let template = self.environment.get_template(name);
                let filled = template.and_then(|template| template.render(values));
                filled.map(|text| text.trim_end().to_owned()).map_err(explain)
            }
        }
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
        for fragment in recipe.of(phase) {
            let origin = match fragment {
                Fragment::Text(text) => {
                    pieces.push(PromptPiece::Literal(text.clone()));
                    continue;
                }
                Fragment::File(path) => Source::File(path.clone()),
                Fragment::BuiltIn(name) => Source::BuiltIn(name.clone()),
            };
            pieces.push(if origin.is_template() {
                PromptPiece::Template(reading.read(&origin)?)
            } else {
                PromptPiece::Literal(origin.text(files, None)?)
            });
        }
        phases.push((phase, pieces));
    }
    Ok(Parts { phases, wanted: reading.wanted, environment: reading.environment })
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
