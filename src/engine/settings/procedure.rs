//! A procedure as one tier writes it: a recipe for the prompts of fresh processes, and its own
//! terms. A lower tier's version is never dropped whole: its other parts remain.

use super::{Layer, Sourced};
use crate::engine::record::Recipe;

/// One `[procedures.NAME]`; what it leaves out comes from the same procedure of a lower tier, and
/// then from the loops of its own tier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcedureSettings {
    /// Its purpose, in one line.
    pub description: Option<String>,
    /// Without empty phases: each replaces that of a lower tier.
    pub recipe: Recipe,
    /// Only keys that `[loop]` may hold.
    pub terms: Layer,
}

impl ProcedureSettings {
    /// Lays a procedure over that of a lower tier.
    pub(super) fn over(upper: &Sourced<Self>, lower: &Sourced<Self>) -> Sourced<Self> {
        let (own, theirs) = (&upper.value, &lower.value);
        let mut recipe = theirs.recipe.clone();
        recipe.0.extend(own.recipe.0.clone());
        let description = own.description.clone().or_else(|| theirs.description.clone());
        let terms = own.terms.over(&theirs.terms);
        let value = Self { description, recipe, terms };
        Sourced { value, origin: upper.origin.clone() }
    }
}
