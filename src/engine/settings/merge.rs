//! Merges the tiers: built-in, the user's file, the project's file, the environment, what was
//! typed. A value of a higher tier replaces the lower one's. Checks do so role by role and
//! reactions moment by moment, so a typed `--verify` keeps the project's gates. An empty list says
//! nothing, so no file can remove the user's own checks without naming others. Protected paths add
//! up, because they only narrow. Where a client runs the hook that starts a loop, the project's own
//! settings can plant variables: there the environment may only narrow.

use std::collections::BTreeMap;

use super::{Key, Layer, ProcedureSettings, Sourced, Value};
use crate::engine::record::{IterationTimes, Limits, LoopMoment, Recipe, Role};

/// The tiers, from the lowest to the highest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// The name of the client that a project can set variables for.
    pub client: &'static str,
    /// The procedures that crew brings and the default agent; every other built-in value is in its
    /// row.
    pub built_in: Layer,
    pub user: Layer,
    /// The caller must have made sure that what needs trust in it is trusted.
    pub project: Layer,
    pub environment: Layer,
    pub typed: Layer,
}

/// Who may have set the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableTrust {
    /// Perhaps a project or an agent: values that would widen a setting are not obeyed.
    OnlyNarrows,
    /// The user, in a terminal or a pipeline: all values are obeyed.
    IsTheUsers,
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
    /// The variables that were not obeyed, in one sentence each.
    pub notes: Vec<String>,
}

/// Merges the tiers. A procedure's value takes precedence over the loop's in the same tier.
pub fn merge(layers: &Layers, environment: VariableTrust, procedure: Option<&str>) -> Settings {
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
        if let Some(procedure) = procedure.and_then(|name| layer.procedures.get(name)) {
            lay(&mut laid, &procedure.value.terms);
        }
    }
    let mut notes = Vec::new();
    match environment {
        VariableTrust::IsTheUsers => lay(&mut laid, &layers.environment),
        VariableTrust::OnlyNarrows => {
            notes = not_obeyed(layers, &laid);
            let narrowing = narrowing(&layers.environment, &laid);
            lay(&mut laid, &narrowing);
        }
    }
    lay(&mut laid, &layers.typed);
    let agent = laid.value(Key::Agent).cloned();
    laid.values.retain(|key, _| meant_for.get(key).is_none_or(|of| *of == agent));
    let recipe = procedure.and_then(|name| laid.procedures.get(name));
    let recipe = recipe.map(|it| it.value.recipe.clone()).unwrap_or_default();
    Settings { layer: laid, recipe, notes }
}

/// The settings in force if nobody sets any.
pub fn built_in() -> Settings {
    merge(&Layers::default(), VariableTrust::IsTheUsers, None)
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
            checks: by_kind(&Role::ALL, &self.checks, &lower.checks, |named| named.check.role),
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

/// The planted variables that narrow what the files say.
fn narrowing(planted: &Layer, laid: &Layer) -> Layer {
    let values = planted.values.iter();
    let narrower = values.filter(|(key, own)| key.is_narrower(&own.value, laid.value(**key)));
    let values = narrower.map(|(key, own)| (*key, own.clone())).collect();
    Layer { values, ..Layer::default() }
}

/// The notes on variables that would widen a limit. Settings without effect on a session get none.
fn not_obeyed(layers: &Layers, laid: &Layer) -> Vec<String> {
    let (typed, client) = (&layers.typed, layers.client);
    let in_sessions = layers.environment.values.iter().filter(|(key, own)| {
        !key.is_for_processes()
            && !typed.values.contains_key(*key)
            && key.is_wider(&own.value, laid.value(**key))
    });
    let notes = in_sessions.filter_map(|(key, own)| {
        Some(is_not_obeyed(client, *key, key.row().variable?, &own.value, laid.value(*key)?))
    });
    notes.collect()
}

fn is_not_obeyed(client: &str, key: Key, variable: &str, value: &Value, below: &Value) -> String {
    let [value, below] = [value, below].map(|value| value.written(key.row().kind));
    format!(
        "{variable}={} is ignored: a variable may only lower the limit of {}, because a project can \
         set variables for {client}; set {} under [{}] in your own settings file instead",
        value.trim_matches('"'),
        below.trim_matches('"'),
        key.row().name,
        key.table(),
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

    const NARROWS: VariableTrust = VariableTrust::OnlyNarrows;

    fn limit(value: u64) -> Layer {
        let mut layer = Layer::default();
        layer.type_in([(Key::MaxIterations, Some(Value::Number(value)))]);
        layer
    }

    fn checks(checks: &[(&str, Role)]) -> Layer {
        let checks = checks.iter().map(|(run, role)| Check::new(*run, *role).into());
        let checks = checks.map(Sourced::typed).collect();
        Layer { checks, ..Layer::default() }
    }

    #[test]
    fn a_higher_tier_wins_and_the_environment_only_narrows() {
        // User, project, environment, typed; the value in force, and whether a note is expected.
        let table: [([Option<u64>; 4], u64, bool); 12] = [
            ([None, None, None, None], 10, false),
            ([Some(20), None, None, None], 20, false),
            ([Some(20), Some(15), None, None], 15, false),
            ([Some(20), Some(30), None, None], 30, false),
            ([None, None, Some(5), None], 5, false),
            ([None, None, Some(10), None], 10, false),
            ([None, None, Some(50), None], 10, true),
            ([None, None, Some(0), None], 10, true),
            ([Some(0), None, Some(50), None], 50, false),
            ([Some(0), None, Some(0), None], 0, false),
            ([None, Some(4), Some(5), None], 4, true),
            ([None, Some(4), Some(0), Some(0)], 0, false),
        ];
        for (given, expected, noted) in table {
            let [user, project, environment, typed] =
                given.map(|value| value.map(limit).unwrap_or_default());
            let settings = merge(
                &Layers { user, project, environment, typed, ..Layers::default() },
                NARROWS,
                None,
            );
            let found = settings.number(Key::MaxIterations);
            assert_eq!((found, settings.notes.len()), (expected, usize::from(noted)), "{given:?}");
        }
    }

    #[test]
    fn checks_replace_each_other_role_by_role() {
        let user = checks(&[("mine", Role::Verify), ("mine too", Role::Gate)]);
        let project = checks(&[("lint", Role::Gate), ("a", Role::Verify), ("b", Role::Verify)]);
        let typed = checks(&[("typed", Role::Verify)]);
        let layers = Layers { user, project, ..Layers::default() };
        let runs = |layers: &Layers| -> Vec<String> {
            merge(layers, NARROWS, None)
                .contract_checks()
                .into_iter()
                .map(|check| check.run)
                .collect()
        };
        assert_eq!(runs(&layers), ["a", "b", "lint"]);
        assert_eq!(runs(&Layers { typed, ..layers }), ["typed", "lint"]);
        assert_eq!(runs(&Layers::default()), Vec::<String>::new());
    }

    #[test]
    fn a_variable_that_is_not_obeyed_is_told_with_the_way_to_do_it() {
        let layers = Layers { client: "Claude Code", environment: limit(50), ..Layers::default() };
        insta::assert_snapshot!(merge(&layers, NARROWS, None).notes.join("\n"), @"CREW_MAX_ITERATIONS=50 is ignored: a variable may only lower the limit of 10, because a project can set variables for Claude Code; set max_iterations under [loop] in your own settings file instead");
    }
}
