//! Lays the tiers over each other: built-in, the user's file, the project's file, the environment, what
//! was typed. A value of a higher tier replaces the lower one's; checks do so role by role and reactions
//! moment by moment, so that a typed `--verify` leaves the project's gates in place, and an empty list says
//! nothing, so that no file can take the user's own checks away without naming others. Protected paths add
//! up: they only narrow. Where Claude Code runs the hook that starts a loop, the project's own settings can
//! plant variables: there the environment may only narrow.

use std::collections::BTreeMap;

use super::{
    AgentArguments, AgentEntry, DEFAULT_AGENT, Layer, Limit, NamedCheck, Procedure, Sourced,
};
use crate::engine::agent::Permissions;
use crate::engine::contract::{Check, Role};
use crate::engine::limits::Limits;
use crate::engine::promise::Promise;
use crate::engine::run::{On, Reaction, Recipe};

/// The tiers, from the lowest to the highest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// The procedures that crew brings; every other value that is built in stands where it belongs.
    pub built_in: Layer,
    pub user: Layer,
    /// What in it needs trust has been trusted; that is the caller's to see to.
    pub project: Layer,
    pub environment: Layer,
    pub typed: Layer,
}

/// Whose work the variables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Perhaps a project's, or an agent's: what would widen anything is not obeyed.
    OnlyNarrows,
    /// The user's own, in a terminal or a pipeline: all of it is obeyed.
    IsTheUsers,
}

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    limits: BTreeMap<Limit, Sourced<u64>>,
    /// `None` leaves it to the task, and then to the built-in word; a `None` inside asks for no claim at all.
    pub promise: Option<Sourced<Option<Promise>>>,
    /// By role: verify, gate, until; within a role in the order given.
    pub checks: Vec<Sourced<NamedCheck>>,
    /// The name of the agent that fresh processes run.
    pub agent: Sourced<String>,
    /// Only what is meant for that agent.
    pub agent_arguments: Option<Sourced<AgentArguments>>,
    pub permissions: Sourced<Permissions>,
    pub commit: Sourced<bool>,
    pub push: Sourced<bool>,
    pub rebase: Sourced<Option<String>>,
    pub awake: Sourced<bool>,
    pub protect: Vec<Sourced<String>>,
    /// In the order of a loop's life; at a moment in the order given.
    pub reactions: Vec<Sourced<Reaction>>,
    /// By name.
    pub agents: BTreeMap<String, Sourced<AgentEntry>>,
    /// By name, all tiers in one.
    pub procedures: BTreeMap<String, Sourced<Procedure>>,
    /// That of the procedure that was asked for; empty without one.
    pub recipe: Recipe,
    /// Variables that were not obeyed: one sentence each.
    pub notes: Vec<String>,
}

/// Every role, in the order contracts list checks.
pub const ROLES: [Role; 3] = [Role::Verify, Role::Gate, Role::Until];

/// Lays the tiers over each other. A procedure's own value goes before the loop's of its tier.
pub fn merge(layers: &Layers, environment: Environment, procedure: Option<&str>) -> Settings {
    let mut laid = Layer::default();
    for layer in [&layers.built_in, &layers.user, &layers.project] {
        laid = layer.over(&laid);
        if let Some(procedure) = procedure.and_then(|name| layer.procedures.get(name)) {
            laid = procedure.value.terms.over(&laid);
        }
    }
    let mut notes = Vec::new();
    laid = match environment {
        Environment::IsTheUsers => layers.environment.over(&laid),
        Environment::OnlyNarrows => {
            notes = not_obeyed(&layers.environment, &laid, &layers.typed);
            narrowing(&layers.environment, &laid).over(&laid)
        }
    };
    let laid = layers.typed.over(&laid);
    let recipe = procedure.and_then(|name| laid.procedures.get(name));
    let recipe = recipe.map(|it| it.value.recipe.clone()).unwrap_or_default();
    let agent = laid.agent.unwrap_or_else(|| Sourced::built_in(DEFAULT_AGENT.to_owned()));
    let fits = |arguments: &Sourced<AgentArguments>| {
        arguments.value.of.as_deref().unwrap_or(DEFAULT_AGENT) == agent.value
    };
    Settings {
        limits: laid.limits,
        promise: laid.promise,
        checks: laid.checks,
        agent_arguments: laid.agent_arguments.filter(fits),
        agent,
        permissions: laid.permissions.unwrap_or_else(|| Sourced::built_in(Permissions::default())),
        commit: laid.commit.unwrap_or_else(|| Sourced::built_in(false)),
        push: laid.push.unwrap_or_else(|| Sourced::built_in(false)),
        rebase: laid.rebase.unwrap_or_else(|| Sourced::built_in(None)),
        awake: laid.awake.unwrap_or_else(|| Sourced::built_in(true)),
        protect: laid.protect,
        reactions: laid.reactions,
        agents: laid.agents,
        procedures: laid.procedures,
        recipe,
        notes,
    }
}

impl Layer {
    /// Lays this tier over all that is lower.
    pub(super) fn over(&self, lower: &Self) -> Self {
        let agent = self.agent.clone().or_else(|| lower.agent.clone());
        let meant = |arguments: &Sourced<AgentArguments>| {
            let mut arguments = arguments.clone();
            let named = agent.as_ref().map(|agent| agent.value.clone());
            arguments.value.of = arguments.value.of.or(named);
            arguments
        };
        let own = self.agent_arguments.as_ref().map(meant);
        let kept = lower
            .protect
            .iter()
            .filter(|glob| self.protect.iter().all(|own| own.value != glob.value));
        let mut procedures = with(&lower.procedures, &self.procedures);
        for (name, procedure) in &mut procedures {
            if let (Some(own), Some(theirs)) =
                (self.procedures.get(name), lower.procedures.get(name))
            {
                *procedure = Procedure::over(own, theirs);
            }
        }
        Self {
            limits: with(&lower.limits, &self.limits),
            promise: self.promise.clone().or_else(|| lower.promise.clone()),
            checks: by(&ROLES, &self.checks, &lower.checks, |named| named.check.role),
            agent,
            agent_arguments: own.or_else(|| lower.agent_arguments.clone()),
            permissions: self.permissions.clone().or_else(|| lower.permissions.clone()),
            commit: self.commit.clone().or_else(|| lower.commit.clone()),
            push: self.push.clone().or_else(|| lower.push.clone()),
            rebase: self.rebase.clone().or_else(|| lower.rebase.clone()),
            awake: self.awake.clone().or_else(|| lower.awake.clone()),
            protect: self.protect.iter().chain(kept).cloned().collect(),
            reactions: by(&On::ALL, &self.reactions, &lower.reactions, |reaction| reaction.on),
            agents: with(&lower.agents, &self.agents),
            procedures,
        }
    }
}

fn with<K: Ord + Clone, V: Clone>(
    lower: &BTreeMap<K, V>,
    upper: &BTreeMap<K, V>,
) -> BTreeMap<K, V> {
    let both = lower.iter().chain(upper);
    both.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// For each kind the upper's, if it has any, else the lower's.
fn by<K: PartialEq, V: Clone>(
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

fn below(laid: &Layer, limit: Limit) -> u64 {
    laid.limits.get(&limit).map_or(limit.built_in(), |sourced| sourced.value)
}

/// The part of planted variables that narrows what the files say.
fn narrowing(planted: &Layer, laid: &Layer) -> Layer {
    let limits = planted.limits.iter();
    let limits = limits.filter(|(limit, own)| limit.is_wider(below(laid, **limit), own.value));
    let granted = laid.permissions.as_ref().map_or(Permissions::default(), |it| it.value);
    Layer {
        limits: limits.map(|(limit, sourced)| (*limit, sourced.clone())).collect(),
        permissions: planted.permissions.clone().filter(|own| own.value < granted),
        commit: planted.commit.clone().filter(|own| !own.value),
        push: planted.push.clone().filter(|own| !own.value),
        rebase: planted.rebase.clone().filter(|own| own.value.is_none()),
        awake: planted.awake.clone().filter(|own| !own.value),
        ..Layer::default()
    }
}

/// What is told of the variables that would widen a limit; those that are nothing to a session are not worth
/// a word there.
fn not_obeyed(planted: &Layer, laid: &Layer, typed: &Layer) -> Vec<String> {
    let limits = planted.limits.iter();
    let told =
        limits.filter(|(limit, _)| !limit.is_for_processes() && !typed.limits.contains_key(*limit));
    let wider = told.filter(|(limit, own)| limit.is_wider(own.value, below(laid, **limit)));
    wider.map(|(limit, own)| is_not_obeyed(*limit, own.value, below(laid, *limit))).collect()
}

fn is_not_obeyed(limit: Limit, value: u64, below: u64) -> String {
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
        let built_in = || Sourced::built_in(limit.built_in());
        self.limits.get(&limit).cloned().unwrap_or_else(built_in)
    }

    /// The limits of a contract.
    pub fn limits(&self) -> Limits {
        let value = |limit| self.limit(limit).value;
        Limits {
            max_iterations: self.count(Limit::MaxIterations),
            failure_threshold: self.count(Limit::FailureThreshold),
            stall: self.count(Limit::Stall),
            max_duration_s: value(Limit::MaxDuration),
            max_wait_s: value(Limit::MaxWait),
            max_cost_micros: value(Limit::MaxCost),
            max_tokens: value(Limit::MaxTokens),
        }
    }

    /// A limit that counts things by the dozen.
    pub(super) fn count(&self, limit: Limit) -> u32 {
        u32::try_from(self.limit(limit).value).unwrap_or(u32::MAX)
    }

    /// The checks of a contract.
    pub fn contract_checks(&self) -> Vec<Check> {
        self.checks.iter().map(|check| check.value.check.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROWS: Environment = Environment::OnlyNarrows;

    fn limit(value: u64) -> Layer {
        let mut layer = Layer::default();
        layer.limits.insert(Limit::MaxIterations, Sourced::typed(value));
        layer
    }

    fn checks(checks: &[(&str, Role)]) -> Layer {
        let checks = checks.iter().map(|(run, role)| Check::new(*run, *role).into());
        let checks = checks.map(Sourced::typed).collect();
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
            let settings = merge(
                &Layers { user, project, environment, typed, ..Layers::default() },
                NARROWS,
                None,
            );
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
        let layers = Layers { environment: limit(50), ..Layers::default() };
        insta::assert_snapshot!(merge(&layers, NARROWS, None).notes.join("\n"), @"CREW_MAX_ITERATIONS=50 is not obeyed: a variable may only lower the limit of 10, because a project can set variables for Claude Code; set max_iterations under [loop] in your own settings file instead");
    }
}
