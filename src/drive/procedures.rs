//! The procedures of a working tree: crew's own as the lowest tier of settings, and all of them as they are
//! listed.

use crate::engine::settings::merge::Settings;
use crate::engine::settings::{Layer, Limit, Origin, Procedure, Sourced};
use crate::prompts::procedures::{self, find, names};

/// crew's own procedures.
pub fn built_in() -> Layer {
    let procedures = names().into_iter().filter_map(find).map(|found| {
        let mut terms = Layer::default();
        if let Some(iterations) = found.iterations {
            terms.limits.insert(Limit::MaxIterations, Sourced::built_in(iterations.into()));
        }
        let description = Some(found.about);
        let procedure = Procedure { description, recipe: found.recipe, terms };
        (found.name, Sourced::built_in(procedure))
    });
    Layer { procedures: procedures.collect(), ..Layer::default() }
}

/// The procedure of this name, all tiers in one; `None` where no tier has it.
pub fn of(settings: &Settings, name: &str) -> Option<procedures::Procedure> {
    let procedure = &settings.procedures.get(name)?.value;
    let terms = &procedure.terms;
    let iterations = terms.limits.get(&Limit::MaxIterations);
    Some(procedures::Procedure {
        name: name.to_owned(),
        about: procedure.description.clone().unwrap_or_default(),
        recipe: procedure.recipe.clone(),
        iterations: iterations.map(|it| u32::try_from(it.value).unwrap_or(u32::MAX)),
        claims: true,
    })
}

/// Those that a settings file adds or changes.
pub fn own(settings: &Settings) -> Vec<procedures::Procedure> {
    let own = settings.procedures.iter().filter(|(_, it)| it.origin != Origin::BuiltIn);
    own.filter_map(|(name, _)| of(settings, name)).collect()
}
