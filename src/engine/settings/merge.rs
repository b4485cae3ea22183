//! Merges the tiers: built-in, the user's file, the project's file, the requested procedure,
//! `$CREW_ACCOUNT`, what was typed. A value of a higher tier replaces the lower one's. Of two files
//! the checks do so role by role and the reactions moment by moment. Typed checks are added to
//! those of the files, so that none is dropped in silence. An empty list says nothing, so no file
//! can remove the user's own checks without naming others. Protected paths add up, because they
//! only narrow. `$CREW_MAX_COST` is above all of them, and can only lower the cost.

use std::collections::BTreeMap;

use super::{Key, Layer, ProcedureSettings, Sourced, Value};
use crate::engine::record::{Check, IterationTimes, Limits, LoopMoment, Recipe, Role};

/// The tiers, from the lowest to the highest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// The procedures that crew brings and the default agent; every other built-in value is in its
    /// row.
    pub built_in: Layer,
    pub user: Layer,
    /// The caller must have made sure that what needs trust in it is trusted.
    pub project: Layer,
    /// The variables; their cost is a ceiling.
    pub environment: Layer,
    pub typed: Layer,
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// All tiers in one, with a value for every key that has a default. Checks are ordered by role:
    /// verify, gate, until; reactions in the order of a loop's life. The model and the arguments
    /// are present only if they are meant for the agent in force.
    pub layer: Layer,
    /// The recipe of the requested procedure; empty without one.
    pub recipe: Recipe,
    /// What was typed and is not obeyed, in one sentence each.
    pub notes: Vec<String>,
}

/// Merges the tiers. The procedure's own terms take precedence over those of all loops.
pub fn merge(layers: &Layers, procedure: Option<&str>) -> Settings {
    let built_in = Key::all().filter_map(|key| Some((key, Sourced::built_in(key.built_in()?))));
    let mut laid = Layer { values: built_in.collect(), ..Layer::default() };
    // A model, an account or arguments for one agent are an error for another: they are meant for
    // the agent in force in the tier that gives them.
    let mut meant_for = BTreeMap::new();
    let mut lay = |laid: &mut Layer, tier: &Layer| {
        *laid = tier.over(laid);
        for key in [Key::Model, Key::Account, Key::Arguments] {
            if tier.values.contains_key(&key) {
                meant_for.insert(key, laid.value(Key::Agent).cloned());
            }
        }
    };
    for layer in [&layers.built_in, &layers.user, &layers.project] {
        lay(&mut laid, layer);
    }
    if let Some(procedure) = procedure.and_then(|name| laid.procedures.get(name)).cloned() {
        lay(&mut laid, &procedure.value.terms);
    }
    let mut environment = layers.environment.clone();
    let ceiling = environment.values.remove(&Key::MaxCost);
    lay(&mut laid, &environment);
    let of_files = std::mem::take(&mut laid.checks);
    lay(&mut laid, &layers.typed);
    laid.checks = added(&layers.typed.checks, of_files);
    let mut notes = Vec::new();
    if let Some(ceiling) = ceiling
        && laid
            .value(Key::MaxCost)
            .is_some_and(|it| Key::MaxCost.is_wider(it, Some(&ceiling.value)))
    {
        if let Some(typed) = layers.typed.value(Key::MaxCost) {
            notes.push(not_obeyed(typed, &ceiling.value));
        }
        laid.values.insert(Key::MaxCost, ceiling);
    }
    let agent = laid.value(Key::Agent).cloned();
    laid.values.retain(|key, _| meant_for.get(key).is_none_or(|of| *of == agent));
    let recipe = procedure.and_then(|name| laid.procedures.get(name));
    let recipe = recipe.map(|it| it.value.recipe.clone()).unwrap_or_default();
    Settings { layer: laid, recipe, notes }
}

/// The settings in force if nobody sets any.
pub fn built_in() -> Settings {
    merge(&Layers::default(), None)
}

impl Layer {
    /// Lays this tier over all lower ones.
    pub(super) fn over(&self, lower: &Self) -> Self {
        let is_new = |glob: &&Sourced<_>| self.protect.iter().all(|own| own.value != glob.value);
        let kept = lower.protect.iter().filter(is_new);
        let mut procedures = with(&lower.procedures, &self.procedures);
        for (name, own) in &self.procedures {
            if let Some(theirs) = lower.procedures.get(name) {
                procedures.insert(name.clone(), ProcedureSettings::over(own, theirs));
            }
        }
        Self {
            values: with(&lower.values, &self.values),
            checks: by_kind(&Role::ALL, &self.checks, &lower.checks, |check| check.role),
            protect: self.protect.iter().chain(kept).cloned().collect(),
            reactions: by_kind(&LoopMoment::ALL, &self.reactions, &lower.reactions, |it| it.on),
            agents: with(&lower.agents, &self.agents),
            procedures,
        }
    }
}

fn with<K: Ord + Clone, V: Clone>(base: &BTreeMap<K, V>, upper: &BTreeMap<K, V>) -> BTreeMap<K, V> {
    let both = base.iter().chain(upper);
    both.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// For each kind the upper list's items if it has any, else the lower list's.
fn by_kind<K: PartialEq, V: Clone>(
    kinds: &[K],
    upper: &[Sourced<V>],
    lower: &[Sourced<V>],
    kind_of: fn(&V) -> K,
) -> Vec<Sourced<V>> {
    let of = |list: &[Sourced<V>], kind: &K| -> Vec<Sourced<V>> {
        list.iter().filter(|it| kind_of(&it.value) == *kind).cloned().collect()
    };
    let chosen = kinds.iter().flat_map(|kind| {
        let own = of(upper, kind);
        if own.is_empty() { of(lower, kind) } else { own }
    });
    chosen.collect()
}

/// Typed checks and those of the files, in the order of roles; one that both name is kept as typed.
fn added(typed: &[Sourced<Check>], of_files: Vec<Sourced<Check>>) -> Vec<Sourced<Check>> {
    let key = |check: &Sourced<Check>| (check.value.role, check.value.run.clone());
    let more = of_files.into_iter().filter(|it| typed.iter().all(|own| key(own) != key(it)));
    let mut all: Vec<_> = typed.iter().cloned().chain(more).collect();
    all.sort_by_key(|check| check.value.role);
    all
}

fn not_obeyed(typed: &Value, ceiling: &Value) -> String {
    let [typed, ceiling] = [typed, ceiling].map(|cost| cost.written(Key::MaxCost.row().kind));
    format!(
        "--max-cost {typed} is ignored: CREW_MAX_COST={ceiling} is the most a loop may cost here"
    )
}

impl Default for Limits {
    fn default() -> Self {
        built_in().limits()
    }
}

impl Default for IterationTimes {
    fn default() -> Self {
        built_in().pace()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::record::Check;

    fn layer(key: Key, value: u64) -> Layer {
        let mut layer = Layer::default();
        layer.type_in([(key, Some(Value::Number(value)))]);
        layer
    }

    fn checks(checks: &[(&str, Role)]) -> Layer {
        let checks = checks.iter().map(|(run, role)| Check::new(*run, *role));
        let checks = checks.map(Sourced::typed).collect();
        Layer { checks, ..Layer::default() }
    }

    #[test]
    fn a_higher_tier_wins_and_a_variable_is_a_ceiling() {
        // User, project, environment, typed; the value in force, and whether a note is expected.
        let table: [([Option<u64>; 4], u64, bool); 10] = [
            ([None, None, None, None], 0, false),
            ([Some(20), None, None, None], 20, false),
            ([Some(20), Some(15), None, None], 15, false),
            ([Some(20), Some(30), None, None], 30, false),
            ([None, None, Some(5), None], 5, false),
            ([Some(4), None, Some(5), None], 4, false),
            ([Some(20), Some(0), Some(5), None], 5, false),
            ([None, None, Some(5), Some(4)], 4, false),
            ([None, None, Some(5), Some(0)], 5, true),
            ([None, None, Some(0), Some(6)], 6, false),
        ];
        for (given, expected, noted) in table {
            let [user, project, environment, typed] =
                given.map(|value| value.map(|it| layer(Key::MaxCost, it)).unwrap_or_default());
            let settings =
                merge(&Layers { user, project, environment, typed, ..Layers::default() }, None);
            let found = settings.number(Key::MaxCost);
            assert_eq!((found, settings.notes.len()), (expected, usize::from(noted)), "{given:?}");
        }
    }

    #[test]
    fn checks_of_files_replace_each_other_role_by_role_and_typed_ones_are_added() {
        let user = checks(&[("mine", Role::Verify), ("mine too", Role::Gate)]);
        let project = checks(&[("lint", Role::Gate), ("a", Role::Verify), ("b", Role::Verify)]);
        let typed = checks(&[("typed", Role::Verify)]);
        let layers = Layers { user, project, ..Layers::default() };
        let runs = |layers: &Layers| -> Vec<String> {
            merge(layers, None).contract_checks().into_iter().map(|check| check.run).collect()
        };
        assert_eq!(runs(&layers), ["a", "b", "lint"]);
        assert_eq!(runs(&Layers { typed, ..layers.clone() }), ["typed", "a", "b", "lint"]);
        let typed = checks(&[("b", Role::Verify), ("lint", Role::Until)]);
        assert_eq!(runs(&Layers { typed, ..layers }), ["b", "a", "lint", "lint"]);
        assert_eq!(runs(&Layers::default()), Vec::<String>::new());
    }

    #[test]
    fn a_procedures_own_limit_wins_over_one_for_all_loops_and_a_typed_one_over_both() {
        let procedure = ProcedureSettings {
            terms: layer(Key::MaxIterations, 7),
            ..ProcedureSettings::default()
        };
        let procedures = [("p".to_owned(), Sourced::built_in(procedure))].into();
        let mut layers = Layers {
            built_in: Layer { procedures, ..Layer::default() },
            user: layer(Key::MaxIterations, 20),
            project: layer(Key::MaxIterations, 30),
            ..Layers::default()
        };
        let max = |layers: &Layers, name| merge(layers, name).number(Key::MaxIterations);
        assert_eq!((max(&layers, None), max(&layers, Some("p"))), (30, 7));
        layers.typed = layer(Key::MaxIterations, 9);
        assert_eq!(max(&layers, Some("p")), 9);
    }

    #[test]
    fn a_typed_cost_above_the_ceiling_is_reported() {
        let environment = layer(Key::MaxCost, 5_000_000);
        let typed = layer(Key::MaxCost, 7_500_000);
        let layers = Layers { environment, typed, ..Layers::default() };
        insta::assert_snapshot!(merge(&layers, None).notes.join("\n"), @"--max-cost 7.50 is ignored: CREW_MAX_COST=5.00 is the most a loop may cost here");
    }
}
