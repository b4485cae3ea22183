//! Lays the tiers over each other: built-in, the user's file, the project's file, the environment, what
//! was typed. A value of a higher tier replaces the lower one's; checks do so role by role, so that a
//! typed `--verify` leaves the project's gates in place, and an empty list says nothing, so that no file
//! can take the user's own checks away without naming others. The environment alone may only narrow a limit:
//! where Claude Code runs the hook that starts a loop, the project's own settings can plant variables.

use std::collections::BTreeMap;

use super::{Layer, Limit, NamedCheck, Origin, Sourced, is_wider};
use crate::engine::contract::{Check, Role};
use crate::engine::limits::Limits;
use crate::engine::promise::Promise;

/// The tiers above the built-in one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    pub user: Layer,
    /// Its checks and wider limits have been trusted; that is the caller's to see to.
    pub project: Layer,
    /// Limits only.
    pub environment: Layer,
    pub typed: Layer,
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    limits: BTreeMap<Limit, Sourced<u64>>,
    /// `None` leaves it to the task, and then to the built-in word.
    pub promise: Option<Sourced<Promise>>,
    /// By role: verify, gate, until; within a role in the order given.
    pub checks: Vec<Sourced<NamedCheck>>,
    /// Variables that were not obeyed: one sentence each.
    pub notes: Vec<String>,
}

/// Every role, in the order contracts list checks.
pub const ROLES: [Role; 3] = [Role::Verify, Role::Gate, Role::Until];

/// Lays the tiers over each other.
pub fn merge(layers: &Layers) -> Settings {
    let mut limits = BTreeMap::new();
    let mut notes = Vec::new();
    for limit in Limit::ALL {
        let built_in = Sourced { value: limit.built_in(), origin: Origin::BuiltIn };
        let files = [&layers.project, &layers.user];
        let below = files.iter().find_map(|layer| layer.limits.get(&limit)).unwrap_or(&built_in);
        let planted = layers.environment.limits.get(&limit);
        let narrower = planted.filter(|planted| is_wider(below.value, planted.value));
        let typed = layers.typed.limits.get(&limit);
        if let (Some(planted), None) = (planted, typed)
            && is_wider(planted.value, below.value)
        {
            notes.push(not_obeyed(limit, planted.value, below.value));
        }
        limits.insert(limit, typed.or(narrower).unwrap_or(below).clone());
    }
    let down = [&layers.typed, &layers.environment, &layers.project, &layers.user];
    let checks = ROLES.iter().flat_map(|role| {
        let of_role = |layer: &&Layer| -> Vec<Sourced<NamedCheck>> {
            let checks = layer.checks.iter();
            checks.filter(|check| check.value.check.role == *role).cloned().collect()
        };
        down.iter().map(of_role).find(|checks| !checks.is_empty()).unwrap_or_default()
    });
    Settings {
        limits,
        promise: down.iter().find_map(|layer| layer.promise.clone()),
        checks: checks.collect(),
        notes,
    }
}

fn not_obeyed(limit: Limit, value: u64, below: u64) -> String {
    let variable = limit.variable();
    let (table, key) = limit.key();
    format!(
        "{variable}={} is not obeyed: a variable may only lower the limit of {}, because a project can \
         set variables for Claude Code; set {key} under [{table}] in your own settings file instead",
        limit.written(value).trim_matches('"'),
        limit.written(below).trim_matches('"'),
    )
}

impl Settings {
    /// A limit and where it came from.
    pub fn limit(&self, limit: Limit) -> Sourced<u64> {
        let built_in = || Sourced { value: limit.built_in(), origin: Origin::BuiltIn };
        self.limits.get(&limit).cloned().unwrap_or_else(built_in)
    }

    /// The limits of a contract.
    pub fn limits(&self) -> Limits {
        let value = |limit| self.limit(limit).value;
        let count = |limit| u32::try_from(value(limit)).unwrap_or(u32::MAX);
        Limits {
            max_iterations: count(Limit::MaxIterations),
            failure_threshold: count(Limit::FailureThreshold),
            stall: count(Limit::Stall),
            max_duration_s: value(Limit::MaxDuration),
            max_wait_s: value(Limit::MaxWait),
            max_cost_micros: value(Limit::MaxCost),
            max_tokens: value(Limit::MaxTokens),
        }
    }

    /// The checks of a contract.
    pub fn contract_checks(&self) -> Vec<Check> {
        self.checks.iter().map(|check| check.value.check.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(value: u64) -> Layer {
        let mut layer = Layer::default();
        let value = Sourced { value, origin: Origin::Typed };
        layer.limits.insert(Limit::MaxIterations, value);
        layer
    }

    fn checks(checks: &[(&str, Role)]) -> Layer {
        let checks = checks.iter().map(|(run, role)| Check::new(*run, *role).into());
        let checks = checks.map(|value| Sourced { value, origin: Origin::Typed }).collect();
        Layer { checks, ..Layer::default() }
    }

    #[test]
    fn a_higher_tier_wins_and_the_environment_only_narrows() {
        // User, project, environment, typed; what is in force, and whether a note is due.
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
            let settings = merge(&Layers { user, project, environment, typed });
            let found = settings.limit(Limit::MaxIterations).value;
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
            merge(layers).contract_checks().into_iter().map(|check| check.run).collect()
        };
        assert_eq!(runs(&layers), ["a", "b", "lint"]);
        assert_eq!(runs(&Layers { typed, ..layers }), ["typed", "lint"]);
        assert_eq!(runs(&Layers::default()), Vec::<String>::new());
    }

    #[test]
    fn a_variable_that_is_not_obeyed_is_told_with_the_way_to_do_it() {
        let layers = Layers { environment: limit(50), ..Layers::default() };
        insta::assert_snapshot!(merge(&layers).notes.join("\n"), @"CREW_MAX_ITERATIONS=50 is not obeyed: a variable may only lower the limit of 10, because a project can set variables for Claude Code; set max_iterations under [loop] in your own settings file instead");
    }
}
