//! What each tier says, and what is in force when all are merged: built-in, the user's file, the
//! project's file, the requested procedure, `$CREW_ACCOUNT`, what was typed. A value of a higher
//! tier replaces the lower one's. Of two files the checks do so role by role and the reactions
//! moment by moment. Typed checks are added to those of the files, so that none is dropped in
//! silence. An empty list of checks says nothing, so no file can remove the user's own checks
//! without naming others. Protected paths add up, because they only narrow. `$CREW_MAX_COST` is
//! above all of them, and can only lower the cost.

use derive_getters::Getters;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Value;

use super::options::{KEYS, Key, LoopOptions};
use super::{CHECK_KEYS, SettingsOwner, check_of, parse_settings};
use crate::parse::amounts::{Amount, OrOff, Unit, text_of};
use crate::parse::spelling::shorten_text;
use engine::boundary::limits::{LimitChange, LimitName};
use engine::claim::promise::Promise;
use engine::failure::{Failure, FailureKind};
use engine::record::{
    Check, Dialect, Limits, LoopMoment, Permissions, PromptVia, Reaction, Recipe, Role,
};
use engine::text::variant_name;

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ValueOrigin {
    /// Built into crew.
    BuiltIn,
    /// The user's own file or the project's; lines count from 1.
    File { path: PathBuf, line: usize },
    /// The variable of this name.
    Environment { variable: &'static str },
    /// The command line that started the loop.
    Typed,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => out.write_str("built-in"),
            Self::File { path, line } => write!(out, "{}:{line}", path.display()),
            Self::Environment { variable } => write!(out, "${variable}"),
            Self::Typed => out.write_str("typed"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: ValueOrigin,
}

impl<T> Sourced<T> {
    /// A value of the command that starts the loop.
    pub fn from_options(value: T) -> Self {
        Self { value, origin: ValueOrigin::Typed }
    }
}

/// What one tier says. Anything it leaves out is unset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layer {
    /// Values by the name of the key, each as a file writes it, and valid.
    pub values: BTreeMap<&'static str, Sourced<Value>>,
    /// Checks in the given order.
    pub checks: Vec<Sourced<Check>>,
    /// Globs of paths that the agent must not change.
    pub protect: Vec<Sourced<String>>,
    /// Reactions in the given order.
    pub reactions: Vec<Sourced<Reaction>>,
    /// Agents by name.
    pub agents: BTreeMap<String, Sourced<AgentEntry>>,
    /// Procedures by name.
    pub procedures: BTreeMap<String, Sourced<ProcedureSettings>>,
    /// Executors by name; only the user's own file has them.
    pub executors: BTreeMap<String, Sourced<ExecutorEntry>>,
}

/// One `[agents.NAME]`; what it leaves out comes from the agent it is like.
#[derive(Getters, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct AgentEntry {
    /// The agent it starts from: one that crew knows, or another entry. Without it, the known agent
    /// of the same name, if there is one.
    like: Option<String>,
    prompt: Option<PromptVia>,
    output: Option<Dialect>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    permissions: BTreeMap<Permissions, Vec<String>>,
    #[serde(alias = "max_turns")]
    max_turns: Option<String>,
    /// The option that names its model.
    model: Option<String>,
    /// The argument that allows a command.
    allow: Option<String>,
    /// The option that names the file in which it leaves what it used.
    #[serde(alias = "usage_file")]
    usage_file: Option<String>,
    /// Variables that it is started with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<String, String>,
    /// The arguments that ask whether it is logged in.
    login: Option<Vec<String>>,
    /// Arguments placed after those of the command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    /// The program and its fixed arguments.
    command: Option<Vec<String>>,
}

/// The whole entry as a file would write it; this text is what the user trusts.
impl fmt::Display for AgentEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::try_from(self).map_err(|_| fmt::Error)?.fmt(out)
    }
}

/// One `[executor.NAME]`: three shell commands that hand the jobs of a fleet to another
/// system. [`crate::parse::shell_command`] has been checked in each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorEntry {
    /// The command that submits a job. It contains `{script}` and `{name}`, and prints the id of
    /// the new job.
    pub submit: String,
    /// The command that reports a job's state. It contains `{job}`, and prints the state as one
    /// word.
    pub status: String,
    /// The command that ends the job `{job}`.
    pub cancel: String,
}

/// One `[procedures.NAME]`: a recipe for the prompts of fresh processes, and its own terms. What it
/// leaves out comes from the same procedure of a lower tier, and then from the loops of its own
/// tier.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcedureSettings {
    /// Its purpose, in one line.
    pub description: Option<String>,
    /// The phases that are not empty; each replaces a lower tier's phase.
    pub recipe: Recipe,
    /// The procedure's own terms, with only those keys that `[loop]` may have.
    pub terms: Layer,
}

/// The tiers, from the lowest to the highest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layers {
    pub user: Layer,
    /// The project's tier. The caller must make sure that everything in it that needs trust is
    /// trusted.
    pub project: Layer,
    /// The environment variables; their cost is a ceiling.
    pub environment: Layer,
    pub typed: Layer,
}

/// The settings in force.
#[derive(Getters, Debug, Clone, PartialEq)]
pub struct Settings {
    /// All tiers in one, with a value for every key that has a default. Checks are ordered by role:
    /// verify, gate, until; reactions as they occur in a loop. The model and the arguments
    /// are present only if they belong to the agent in force.
    layer: Layer,
    /// The values as options.
    options: LoopOptions,
    /// The recipe of the requested procedure; empty without one.
    recipe: Recipe,
    /// What was typed but ignored, in one sentence each.
    notes: Vec<String>,
}

/// How much of the iteration logs of all loops is kept, and of the snapshots of all working trees;
/// 0 means no limit.
#[derive(Getters, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogRetention {
    bytes: u64,
    /// The limit on snapshots, in bytes.
    snapshots: u64,
    /// The number of days for both.
    days: u64,
}

impl Settings {
    /// The limits of a contract.
    pub fn limits(&self) -> Limits {
        let set = self.options.limits.limit_changes();
        Limits::from_settings(|limit| match (limit, set.get(&limit)) {
            (LimitName::MaxWait, _) => amount_or_zero(*self.options.file_terms.max_wait()),
            (_, Some(LimitChange::To(number) | LimitChange::By(number))) => *number,
            (_, None) => 0,
        })
    }

    /// How much of the logs and snapshots is kept.
    pub fn log_retention(&self) -> LogRetention {
        let terms = &self.options.file_terms;
        LogRetention {
            bytes: amount_or_zero(*terms.keep_logs()),
            snapshots: amount_or_zero(*terms.keep_snapshots()),
            days: amount_or_zero(*terms.keep_days()),
        }
    }

    /// The promise of a task that does not name one; `None` if no claim is needed.
    pub fn default_promise(&self) -> Option<Promise> {
        match &self.options.terms.completion_promise {
            Some(OrOff::On(promise)) => Some(promise.clone()),
            _ => None,
        }
    }

    /// The checks of a contract.
    pub fn checks(&self) -> Vec<Check> {
        self.layer.checks.iter().map(|check| check.value.clone()).collect()
    }
}

/// The number of an amount; 0 if there is none.
pub fn amount_or_zero<const UNIT: usize>(amount: Option<Amount<UNIT>>) -> u64 {
    amount.map_or(0, |amount| amount.0)
}

/// The number, at most `u32::MAX`.
pub fn clamp_to_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The lowest tier: crew's own values and procedures.
///
/// # Errors
/// If crew's own file is broken.
pub fn built_in() -> Result<Layer, String> {
    let values = KEYS.iter().filter(|key| !key.built_in().is_empty()).map(|key| {
        let (table, name) = key.split_name();
        format!("{table}.{name} = {}\n", key.built_in())
    });
    let text = values.collect::<String>() + include_str!("procedures.toml");
    Ok(parse_settings(&text, Path::new("procedures.toml"), SettingsOwner::BuiltIn, &[], &|_| true)?
        .layer)
}

/// Reads the variables that are settings; `get` returns the text of one that is set.
///
/// # Errors
/// One line, with a value that works.
pub fn parse_variables(get: &dyn Fn(&str) -> Option<String>) -> Result<Layer, String> {
    let mut layer = Layer::default();
    for (key, variable) in [("account", "CREW_ACCOUNT"), ("max-cost", "CREW_MAX_COST")] {
        let Some(text) = get(variable).map(|text| text.trim().to_owned()) else { continue };
        if key == "max-cost" {
            let read = Unit::Dollars.parse_text(&text);
            let found = shorten_text(&text);
            read.map_err(|wanted| format!("{variable} takes {wanted}, not `{found}`"))?;
        }
        let origin = ValueOrigin::Environment { variable };
        layer.values.insert(key, Sourced { value: Value::String(text), origin });
    }
    Ok(layer)
}

/// Merges the tiers. The procedure's own terms take precedence over those of all loops.
///
/// # Errors
/// If values that are valid one by one cannot be read together.
pub fn merge_layers(layers: &Layers, procedure: Option<&str>) -> Result<Settings, String> {
    let mut laid = Layer::default();
    let mut agents = BTreeMap::new();
    for layer in [&built_in()?, &layers.user, &layers.project] {
        lay_tier(&mut laid, layer, &mut agents);
    }
    if let Some(procedure) = procedure.and_then(|name| laid.procedures.get(name)).cloned() {
        lay_tier(&mut laid, &procedure.value.terms, &mut agents);
    }
    let mut environment = layers.environment.clone();
    let ceiling = environment.values.remove("max-cost");
    lay_tier(&mut laid, &environment, &mut agents);
    let of_files = std::mem::take(&mut laid.checks);
    lay_tier(&mut laid, &layers.typed, &mut agents);
    laid.checks = merge_checks(&layers.typed.checks, of_files);
    let mut notes = Vec::new();
    if let Some(ceiling) = ceiling
        && laid.value("max-cost").is_some_and(|cost| exceeds_ceiling(cost, &ceiling.value))
    {
        if let Some(typed) = layers.typed.value("max-cost") {
            let [typed, most] = [typed, &ceiling.value].map(text_of);
            notes.push(format!(
                "--max-cost {typed} is ignored: CREW_MAX_COST={most} is the highest cost of a loop here"
            ));
        }
        laid.values.insert("max-cost", ceiling);
    }
    let agent = laid.value("agent").cloned();
    laid.values.retain(|key, _| agents.get(key).is_none_or(|of| *of == agent));
    let procedure = procedure.and_then(|name| laid.procedures.get(name));
    let recipe = procedure.map(|own| own.value.recipe.clone()).unwrap_or_default();
    let all = laid.values.iter().map(|(key, own)| ((*key).to_owned(), own.value.clone()));
    let options = LoopOptions::deserialize(all.collect::<toml::Table>());
    let options = options.map_err(|error| error.message().to_owned())?;
    Ok(Settings { layer: laid, options, recipe, notes })
}

/// Lays a tier over the lower ones. A model, an account or arguments for one agent are an error for
/// another: `agents` has the agent in force in the tier that gives them.
fn lay_tier(laid: &mut Layer, tier: &Layer, agents: &mut BTreeMap<&'static str, Option<Value>>) {
    *laid = tier.lay_over(laid);
    for key in ["model", "account", "args"] {
        if tier.values.contains_key(&key) {
            agents.insert(key, laid.value("agent").cloned());
        }
    }
}

/// Whether a cost is above a ceiling; 0 is none.
fn exceeds_ceiling(cost: &Value, ceiling: &Value) -> bool {
    let [cost, ceiling] =
        [cost, ceiling].map(|amount| Unit::Dollars.parse_value(amount).unwrap_or_default());
    ceiling != 0 && (cost == 0 || cost > ceiling)
}

impl Layer {
    /// What was typed, as the highest tier.
    ///
    /// # Errors
    /// If a limit adds to a value that a new loop does not have.
    pub fn from_options(options: &LoopOptions) -> Result<Self, Failure> {
        let changes = options.limits.limit_changes();
        let added = changes.iter().find(|(_, change)| matches!(change, LimitChange::By(_)));
        if let Some((limit, _)) = added {
            let limit = variant_name(limit);
            return Err(Failure::new(
                "`+` adds to the limit of a loop that exists",
                format!("to start a loop, give the limit itself: --{limit}"),
            ));
        }
        let all = toml::Table::try_from(options)
            .map_err(|error| Failure::without_hint(FailureKind::Error, error.to_string()))?;
        let mut layer = Self::default();
        for key in KEYS.iter() {
            if let Some(value) = all.get(key.name()) {
                layer.values.insert(key.name(), Sourced::from_options(value.clone()));
            }
        }
        if options.terms.no_promise {
            layer.values.insert("completion-promise", Sourced::from_options(Value::Boolean(false)));
        }
        for key in CHECK_KEYS {
            let commands = all.get(key).and_then(Value::as_array).into_iter().flatten();
            let checks = commands.filter_map(Value::as_str).map(|run| check_of(key, run));
            layer.checks.extend(checks.map(Sourced::from_options));
        }
        Ok(layer)
    }

    /// This tier's value of a setting.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.values.get(key).map(|sourced| &sourced.value)
    }

    /// This tier's values, as `crew config` lists them.
    pub fn values_as_listed(&self) -> impl Iterator<Item = (&'static Key, &Sourced<Value>)> {
        KEYS.iter().filter_map(|key| Some((key, self.values.get(key.name())?)))
    }

    /// Lays this tier over all lower ones.
    fn lay_over(&self, lower: &Self) -> Self {
        let mut kept = lower.protect.clone();
        kept.retain(|glob| self.protect.iter().all(|own| own.value != glob.value));
        let mut procedures = merge_maps(&lower.procedures, &self.procedures);
        for (name, own) in &self.procedures {
            if let Some(theirs) = lower.procedures.get(name) {
                procedures.insert(name.clone(), own.lay_over(theirs));
            }
        }
        Self {
            values: merge_maps(&lower.values, &self.values),
            checks: by_kind(&Role::ALL, &self.checks, &lower.checks, |check| check.role),
            protect: [self.protect.clone(), kept].concat(),
            reactions: by_kind(&LoopMoment::ALL, &self.reactions, &lower.reactions, |own| own.on),
            agents: merge_maps(&lower.agents, &self.agents),
            procedures,
            executors: merge_maps(&lower.executors, &self.executors),
        }
    }
}

impl Sourced<ProcedureSettings> {
    /// Overlays a procedure on the one of a lower tier, which is never dropped as a whole.
    fn lay_over(&self, lower: &Self) -> Self {
        let (own, theirs) = (&self.value, &lower.value);
        let recipe = Recipe(merge_maps(&theirs.recipe.0, &own.recipe.0));
        let description = own.description.clone().or_else(|| theirs.description.clone());
        let terms = own.terms.lay_over(&theirs.terms);
        let value = ProcedureSettings { description, recipe, terms };
        Self { value, origin: self.origin.clone() }
    }
}

fn merge_maps<K: Ord + Clone, V: Clone>(
    base: &BTreeMap<K, V>,
    upper: &BTreeMap<K, V>,
) -> BTreeMap<K, V> {
    let both = base.iter().chain(upper);
    both.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns, for each kind, the items of the upper list, or of the lower list if the upper has none.
fn by_kind<K: PartialEq, V: Clone>(
    kinds: &[K],
    upper: &[Sourced<V>],
    lower: &[Sourced<V>],
    kind_of: fn(&V) -> K,
) -> Vec<Sourced<V>> {
    let mut chosen = Vec::new();
    for kind in kinds {
        let has_own = upper.iter().any(|item| kind_of(&item.value) == *kind);
        let list = if has_own { upper } else { lower };
        chosen.extend(list.iter().filter(|item| kind_of(&item.value) == *kind).cloned());
    }
    chosen
}

/// Merges typed checks with checks from files, by role; a check in both is kept as typed.
fn merge_checks(typed: &[Sourced<Check>], of_files: Vec<Sourced<Check>>) -> Vec<Sourced<Check>> {
    let more = of_files.into_iter().filter(|check| {
        let (role, run) = (check.value.role, &check.value.run);
        !typed.iter().any(|own| own.value.role == role && own.value.run == *run)
    });
    let mut all: Vec<_> = typed.iter().cloned().chain(more).collect();
    all.sort_by_key(|check| check.value.role);
    all
}
