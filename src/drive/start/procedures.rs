//! The procedures of a working tree: crew's own as the lowest tier of settings, and the merged ones
//! for lists.

use crate::engine::settings::merge::Settings;
use crate::engine::settings::{Key, Layer, ProcedureSettings, Sourced, Value, ValueOrigin};
use crate::prompts::procedures::{self, find, names};

/// The procedures built into crew.
pub fn built_in() -> Layer {
    let procedures = names().into_iter().filter_map(find).map(|found| {
        let mut terms = Layer::default();
        let iterations = found.iterations.map(|number| Value::Number(number.into()));
        let promise = (!found.claims).then_some(Value::Off);
        let values = [(Key::MaxIterations, iterations), (Key::Promise, promise)];
        let values = values.into_iter().filter_map(|(key, it)| Some((key, Sourced::built_in(it?))));
        terms.values = values.collect();
        let description = Some(found.about);
        let procedure = ProcedureSettings { description, recipe: found.recipe, terms };
        (found.name, Sourced::built_in(procedure))
    });
    Layer { procedures: procedures.collect(), ..Layer::default() }
}

/// The procedure of this name, merged from all tiers; `None` where no tier has it.
pub fn of(settings: &Settings, name: &str) -> Option<procedures::Procedure> {
    let procedure = &settings.layer.procedures.get(name)?.value;
    let terms = &procedure.terms;
    Some(procedures::Procedure {
        name: name.to_owned(),
        about: procedure.description.clone().unwrap_or_default(),
        recipe: procedure.recipe.clone(),
        iterations: terms
            .number(Key::MaxIterations)
            .map(|it| u32::try_from(it).unwrap_or(u32::MAX)),
        claims: terms.value(Key::Promise) != Some(&Value::Off),
    })
}

/// Those that a settings file adds or changes.
pub fn own(settings: &Settings) -> Vec<procedures::Procedure> {
    let own = settings.layer.procedures.iter().filter(|(_, it)| it.origin != ValueOrigin::BuiltIn);
    own.filter_map(|(name, _)| of(settings, name)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::agents::outputs;
    use crate::engine::record::{Fragment, Phase};
    use crate::engine::settings::merge::{Layers, merge};
    use crate::parse::settings::{Whose, parse};

    fn settings(procedure: &str, user: &str, project: &str) -> Settings {
        let user = parse(user, Path::new("/home/config.toml"), Whose::Users, &outputs(), &|_| true)
            .unwrap()
            .layer;
        let path = Path::new("/repo/.claude/crew.toml");
        let project = parse(project, path, Whose::Projects, &outputs(), &|_| true).unwrap().layer;
        let layers = Layers { built_in: built_in(), user, project, ..Layers::default() };
        merge(&layers, Some(procedure))
    }

    #[test]
    fn a_procedures_own_value_goes_before_that_of_all_loops() {
        let (loops, build) = ("[loop]\nmax_iterations = ", "[procedures.build]\nmax_iterations = ");
        let table = [
            (String::new(), String::new(), 5),
            (format!("{loops}20"), String::new(), 5),
            (format!("{loops}20\n{build}8"), String::new(), 8),
            (format!("{loops}20\n{build}8"), format!("{loops}7"), 8),
            (format!("{build}8"), format!("{loops}7\n{build}6"), 6),
        ];
        for (user, project, expected) in table {
            let settings = settings("build", &user, &project);
            assert_eq!(settings.number(Key::MaxIterations), expected, "{user} {project}");
        }
    }

    #[test]
    fn a_phase_that_a_file_gives_takes_the_place_of_crews_own_and_the_rest_stays() {
        let project = "[procedures.build]\nact = [\"prompts/act.md\", \"Be brief\"]\norient = []";
        let changed = settings("build", "", project);
        let act = [
            Fragment::File("/repo/.claude/prompts/act.md".into()),
            Fragment::Text("Be brief".to_owned()),
        ];
        assert_eq!(changed.recipe.of(Phase::Act), act);
        let crews = |phase: &str| [Fragment::BuiltIn(format!("build/{phase}"))];
        assert_eq!(changed.recipe.of(Phase::Observe), crews("observe"));
        assert_eq!(changed.recipe.of(Phase::Orient), crews("orient"), "an empty list says nothing");
        let listed = of(&changed, "build").unwrap();
        assert_eq!(listed.about, find("build").unwrap().about);
        assert_eq!(own(&changed), [listed]);
        assert_eq!(own(&settings("build", "", "")), []);
    }

    #[test]
    fn a_procedure_can_ask_for_no_claim() {
        let promise = |user: &str| settings("bootstrap", user, "").promise();
        assert_eq!(promise(""), None);
        let asked = promise("[procedures.bootstrap]\ncompletion_promise = \"DONE\"").unwrap();
        assert_eq!(asked.as_str(), "DONE");
        assert!(!of(&settings("bootstrap", "", ""), "bootstrap").unwrap().claims);
    }
}
