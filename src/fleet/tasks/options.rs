//! The meaning of the keys in a fleet's files. A task has the options of `crew run`, read one by
//! one with the same type as settings, so that each fault has its line. Options that the fleet
//! itself decides are refused with the reason, and so are keys in the wrong place.

use std::collections::BTreeMap;
use std::slice;

use clap::Arg;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use super::front_matter::{Faults, KeyValue};
use engine::fleet::{MAX_PRIORITY, TaskId};
use engine::protect;
use engine::text::{is_word_of, words_of};
use readers::parse::amounts::{Amount, Unit, deserialize_texts};
use readers::parse::arguments::{LoopArgs, RecipeArgs, RunArgs, RunOptions, run_options};
use readers::parse::settings::is_branch;
use readers::parse::settings::options::{Key, LoopOptions};
use readers::parse::spelling::{describe_expected, find_nearest, shorten_text};

/// The fault of a YAML value that is missing, or lacks its quotes.
const NO_VALUE: &str = "expected a value; one that begins with `*`, `&` or `!` needs quotes";
/// The key for the agent's own arguments, which follow `--` on a command line.
const AGENT_WORDS: &str = "words";
/// The list options: a task's values are added to the fleet's.
const ADDED: &str = "verify gate until no-worse may-change context observe orient decide act";
/// Pairs of options that cannot be given together.
const EXCLUSIVE: [(&str, &str); 2] = [("agent", "agent-cmd"), ("no-promise", "completion-promise")];

/// The options that no file of a fleet may set, each with the reason.
const REFUSED: [(&str, &str); 13] = [
    ("detach", "a fleet runs each task in a process of its own"),
    ("json", "crew fleet status --json reports all tasks"),
    ("verbose", "crew show --log shows what the agent of a task does"),
    ("quiet", "a task prints nothing to the terminal"),
    ("dry-run", "crew fleet run --dry-run shows every task"),
    ("list", "it starts nothing"),
    ("worktree", "each task has a clone of its own"),
    ("replace", "nothing else runs in a task's clone"),
    ("commit", "the fleet commits what each iteration changed"),
    ("push", "crew fleet run --push decides it for all tasks"),
    ("rebase", "tasks are rebased onto the fleet's base, which fleet.toml names"),
    ("prompt-file", "the text of the task's own file is the prompt"),
    ("no-project", "the fleet decides for all tasks which settings count"),
];

/// The keys of a task's front matter. Options of `crew run` are allowed wherever `words` is.
pub(super) const FRONT_MATTER: &str = "after priority touches words";
/// The keys of `[task]` in fleet.toml.
pub(super) const TASK: &str = AGENT_WORDS;
/// The keys of `[land]` in fleet.toml.
pub(super) const LAND: &str = "check keep";
/// The keys of fleet.toml above its first table.
pub(super) const TOP: &str = "name base slots max-cost setup setup-timeout keep-branches";
/// Where each key belongs that is not an option.
const HOMES: [(&str, &str); 5] = [
    (FRONT_MATTER, "in the front matter of a task"),
    (TOP, "above the first table of fleet.toml"),
    (LAND, "under [land] in fleet.toml"),
    ("task", "in fleet.toml, as a line [task] with its keys below"),
    ("land", "in fleet.toml, as a line [land] with its keys below"),
];
const HOME_OF_OPTIONS: &str = "under [task] in fleet.toml, or in the front matter of a task";
const HOME_OF_SETTINGS: &str = "under [loop] in a settings file, for every loop";

/// The keys of a task's front matter, including the options of `[task]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TaskOptions {
    #[serde(flatten)]
    options: LoopOptions,
    #[serde(flatten)]
    recipe: RecipeArgs,
    agent_cmd: Option<String>,
    words: Option<Vec<String>>,
    #[serde(deserialize_with = "read_after")]
    pub(super) after: Vec<TaskId>,
    #[serde(deserialize_with = "read_touches")]
    pub(super) touches: Vec<String>,
    #[serde(deserialize_with = "read_priority")]
    pub(super) priority: Option<u8>,
}

/// The keys of fleet.toml, except `[task]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct FleetFile {
    /// The fleet's name, if it differs from its folder's.
    pub name: Option<TaskId>,
    /// The branch that tasks start from.
    #[serde(deserialize_with = "read_branch")]
    pub base: Option<String>,
    /// The maximum number of iterations at once.
    #[serde(deserialize_with = "above_zero")]
    pub slots: Option<Amount<{ Unit::Count as usize }>>,
    /// The cost limit of all tasks together; 0 sets no limit.
    pub max_cost: Option<Amount<{ Unit::Dollars as usize }>>,
    /// The command for `sh -c` that prepares a new clone.
    pub setup: Option<String>,
    #[serde(deserialize_with = "above_zero")]
    pub setup_timeout: Option<Amount<{ Unit::Seconds as usize }>>,
    pub keep_branches: bool,
    /// The commands for `sh -c` under `[land]` that must pass on the base before a task's work
    /// lands.
    #[serde(deserialize_with = "deserialize_texts")]
    pub check: Vec<String>,
    /// The ignored files under `[land]` that the clean checkout of a landing keeps, as patterns of
    /// git.
    #[serde(deserialize_with = "deserialize_texts")]
    pub keep: Vec<String>,
}

fn read_after<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<TaskId>, D::Error> {
    let names = deserialize_texts(source)?;
    let ids = names.iter().map(|name| name.parse()).collect::<Result<_, _>>();
    ids.map_err(|_| D::Error::custom("expected the name of a task or a list such as [a, b]"))
}

fn read_touches<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<String>, D::Error> {
    let globs = deserialize_texts(source)?;
    for glob in &globs {
        protect::parse_glob(glob).map_err(|form| D::Error::custom(format!("expected {form}")))?;
    }
    Ok(globs)
}

fn read_priority<'de, D: Deserializer<'de>>(source: D) -> Result<Option<u8>, D::Error> {
    let number = String::deserialize(source).ok().and_then(|text| text.parse::<u8>().ok());
    match number.filter(|number| *number <= MAX_PRIORITY) {
        Some(number) => Ok(Some(number)),
        None => Err(D::Error::custom("expected a whole number from 0 to 9, the most urgent")),
    }
}

fn read_branch<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(source)?;
    if is_branch(&name) { Ok(Some(name)) } else { Err(D::Error::custom("expected a branch")) }
}

fn above_zero<'de, D: Deserializer<'de>, const UNIT: usize>(
    source: D,
) -> Result<Option<Amount<UNIT>>, D::Error> {
    let amount = Amount::deserialize(source)?;
    if amount.0 > 0 { Ok(Some(amount)) } else { Err(D::Error::custom("expected more than 0")) }
}

/// Normalizes the name of a key: people write `_` for `-`, and `n` as on the command line.
fn key_name(written: &str) -> String {
    match written {
        "n" => "max-iterations".to_owned(),
        written => written.replace('_', "-"),
    }
}

/// Reads entries one by one into a `T`, so that each fault has its line. `keys` are the keys that
/// are valid here. Returns the usable entries.
pub(super) fn read_options<'entry, T: DeserializeOwned>(
    entries: impl IntoIterator<Item = &'entry KeyValue>,
    keys: &'static str,
    faults: &mut Faults,
) -> Table {
    let (mut taken, mut lines) = (Table::new(), BTreeMap::new());
    for KeyValue { key, line, value, .. } in entries {
        let (key, name) = (shorten_text(key), key_name(key));
        if let Some(before) = lines.insert(name.clone(), *line) {
            faults.add(*line, format!("{key} is given twice, also in line {before}: keep one"));
        }
        let is_known =
            is_word_of(keys, &name) || (is_word_of(keys, AGENT_WORDS) && is_option(&name));
        if !is_known {
            faults.add(*line, unknown_key(&key, &name, keys));
            continue;
        }
        match check_value::<T>(&name, value.as_ref()) {
            Ok(value) => drop(taken.insert(name, value)),
            Err(why) => faults.add_error(*line, &why),
        }
    }
    for (one, other) in EXCLUSIVE {
        if is_on(&taken, one) && is_on(&taken, other) {
            faults.add(None, format!("{one} cannot be used with {other}: give one of the two"));
        }
    }
    taken
}

/// Checks the value of a key by reading it as a `T`, as a list if the key needs one. An error says
/// why it is not accepted.
pub(super) fn check_value<T: DeserializeOwned>(
    name: &str,
    value: Option<&Value>,
) -> Result<Value, String> {
    let value = match value.ok_or(NO_VALUE)?.clone() {
        Value::Boolean(true) if name == "prove" => "proven".into(),
        Value::Boolean(false) if name == "prove" => "off".into(),
        // Names separated by commas, as on a command line.
        Value::String(names) if name == "fallback" => {
            names.split(',').map(str::trim).collect::<Vec<_>>().into()
        }
        one if !one.is_array() && is_word_of(ADDED, name) => vec![one].into(),
        value => value,
    };
    let parts = value.as_array().map_or(slice::from_ref(&value), Vec::as_slice);
    let mut texts = parts.iter().filter_map(Value::as_str);
    if name != AGENT_WORDS && texts.any(|text| text.trim().is_empty() || text.contains('\0')) {
        return Err("expected a string that is not blank".to_owned());
    }
    let alone = Table::from_iter([(name.to_owned(), value.clone())]);
    let Err(error) = T::deserialize(alone) else { return Ok(value) };
    // `true` is also a command.
    let is_bare = parts.iter().any(Value::is_bool);
    let quotes = if is_bare { " (as a string it needs quotes)" } else { "" };
    let expected = describe_expected(&error);
    // The message already shows the line.
    Err(expected.split(", not ").next().unwrap_or_default().to_owned() + quotes)
}

/// The fault for a key that is not valid here.
fn unknown_key(key: &str, name: &str, keys: &'static str) -> String {
    let takes_options = is_word_of(keys, AGENT_WORDS);
    let mut known: Vec<&str> = words_of(keys).collect();
    if takes_options {
        known.extend(option_keys());
    }
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        format!("`{name}` is not for a task to set: {why}")
    } else if is_option(name) {
        format!("`{name}` belongs {HOME_OF_OPTIONS}")
    } else if let Some((_, home)) = HOMES.iter().find(|(keys, _)| is_word_of(keys, name)) {
        format!("`{name}` belongs {home}")
    } else if Key::find_in_table("loop", name).is_some() {
        format!("`{name}` belongs {HOME_OF_SETTINGS}")
    } else if let Some(meant) = find_nearest(name, &known) {
        format!("unknown key `{key}`: did you mean `{meant}`?")
    } else {
        let more = if takes_options { ", and the options that crew run --help lists" } else { "" };
        format!("unknown key `{key}`: the keys are {}{more}", keys.replace(' ', ", "))
    }
}

/// Whether a file may set the option with this name.
fn is_option(name: &str) -> bool {
    option_keys().any(|known| known == name)
}

/// The options that a file may set.
pub(super) fn option_keys() -> impl Iterator<Item = &'static str> {
    let longs = run_options().filter_map(Arg::get_long);
    longs.filter(|long| !REFUSED.iter().any(|(name, _)| name == long)).chain([AGENT_WORDS])
}

fn is_on(options: &Table, key: &str) -> bool {
    options.get(key).is_some_and(|value| *value != Value::Boolean(false))
}

/// Overlays a task's options on the fleet's: commands and prompts add up; any other option replaces
/// the fleet's, and any that excludes it.
pub(super) fn laid_over(fleet: &Table, own: Table) -> Table {
    let mut all = fleet.clone();
    for (one, other) in EXCLUSIVE {
        for (mine, its) in [(one, other), (other, one)] {
            if is_on(&own, mine) {
                all.remove(its);
            }
        }
    }
    for (key, value) in own {
        match (all.get_mut(&key), value) {
            (Some(Value::Array(before)), Value::Array(more)) if is_word_of(ADDED, &key) => {
                before.extend(more);
            }
            (_, value) => drop(all.insert(key, value)),
        }
    }
    all
}

/// Renders the options of a task as in a TOML file, one string each.
pub(super) fn option_words(task: &Table) -> Vec<String> {
    let options = task.iter().filter(|(key, _)| is_option(key));
    options.map(|(key, value)| format!("{key} = {value}")).collect()
}

impl TaskOptions {
    /// The arguments of `crew run` for a task with this prompt.
    pub fn run_args(self, prompt: &str) -> RunArgs {
        let Self { options, recipe, agent_cmd, words, .. } = self;
        let LoopOptions { limits, terms, process, .. } = options;
        // A single word would be read as the name of a procedure.
        let task = vec![format!("{prompt}\n")];
        let start = LoopArgs { task, terms, limits, ..LoopArgs::default() };
        let options = RunOptions { process, agent_cmd, words, ..RunOptions::default() };
        RunArgs { start, recipe, options, ..RunArgs::default() }
    }
}
