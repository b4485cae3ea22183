//! What the keys of a fleet's files mean. The options of a task are those of `crew run`, read by
//! the same type as settings are, one by one, so that each fault has its line. What the fleet
//! itself decides is refused, with the reason; so is a key that this place does not have.

use std::collections::BTreeMap;

use clap::Arg;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

use super::front_matter::{Faults, FileValue, KeyValue};
use crate::engine::fleet::TaskId;
use crate::engine::text::is_word_of;
use crate::parse::amounts::{Amount, Unit, texts};
use crate::parse::arguments::{LoopArgs, RecipeArgs, RunArgs, RunOptions, run_options};
use crate::parse::settings::is_branch;
use crate::parse::settings::options::LoopOptions;
use crate::parse::spelling::{nearest, shown};

/// The key of the agent's own words, which a command line has after `--`.
const AGENT_WORDS: &str = "words";
/// The options that hold a list: those of a task are added to the fleet's.
const ADDED: &str = "verify gate until no-worse may-change context observe orient decide act";
/// Options that cannot be given together.
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

/// The keys of a task that are not options of `crew run`.
pub(super) const TASK_KEYS: &[&str] = &["after", "priority", "touches"];
/// The keys of fleet.toml above its first table.
pub(super) const TOP_KEYS: &[&str] =
    &["name", "base", "slots", "max-cost", "setup", "setup-timeout", "keep-branches"];
/// The keys of `[land]`.
pub(super) const LAND_KEYS: &[&str] = &["check", "keep"];
/// Where every key belongs that is not an option.
const HOMES: [(&str, &[&str]); 5] = [
    ("in the front matter of a task", TASK_KEYS),
    ("above the first table of fleet.toml", TOP_KEYS),
    ("under [land] in fleet.toml", LAND_KEYS),
    ("in fleet.toml, as a line [task] with its keys below", &["task"]),
    ("in fleet.toml, as a line [land] with its keys below", &["land"]),
];
const HOME_OF_OPTIONS: &str = "under [task] in fleet.toml, or in the front matter of a task";

/// The options of a task, those of `[task]` included.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TaskOptions {
    #[serde(flatten)]
    options: LoopOptions,
    #[serde(flatten)]
    recipe: RecipeArgs,
    agent_cmd: Option<String>,
    words: Option<Vec<String>>,
}

/// What fleet.toml says above its tables and under `[land]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct FleetFile {
    /// The fleet's name, unless it is that of its folder.
    pub name: Option<TaskId>,
    /// The branch that tasks start from.
    #[serde(deserialize_with = "branch")]
    pub base: Option<String>,
    /// The most iterations at once.
    #[serde(deserialize_with = "above_zero")]
    pub slots: Option<Amount<{ Unit::Count as usize }>>,
    /// For all tasks together; 0 is no limit.
    pub max_cost: Option<Amount<{ Unit::Dollars as usize }>>,
    /// The command for `sh -c` that prepares a new clone.
    pub setup: Option<String>,
    #[serde(deserialize_with = "above_zero")]
    pub setup_timeout: Option<Amount<{ Unit::Seconds as usize }>>,
    pub keep_branches: bool,
    #[serde(skip)]
    pub land: LandTable,
}

/// `[land]` of fleet.toml.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LandTable {
    /// Commands for `sh -c` that must pass on the base before a task's work lands there.
    #[serde(deserialize_with = "texts")]
    pub check: Vec<String>,
    /// Ignored files that the clean checkout of a landing keeps, as patterns of git.
    #[serde(deserialize_with = "texts")]
    pub keep: Vec<String>,
}

fn branch<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(source)?;
    if is_branch(&name) { Ok(Some(name)) } else { Err(D::Error::custom("expected a branch")) }
}

fn above_zero<'de, D: Deserializer<'de>, const UNIT: usize>(
    source: D,
) -> Result<Option<Amount<UNIT>>, D::Error> {
    let amount = Amount::deserialize(source)?;
    if amount.0 > 0 { Ok(Some(amount)) } else { Err(D::Error::custom("expected more than 0")) }
}

/// The name of a key: people write `_` for `-`, and `n` as on the command line.
pub(super) fn key_name(written: &str) -> String {
    match written {
        "n" => "max-iterations".to_owned(),
        written => written.replace('_', "-"),
    }
}

/// Refuses a key that is given twice, whichever way it is written.
pub(super) fn refuse_repeats(entries: &[KeyValue], faults: &mut Faults) {
    let mut seen = BTreeMap::new();
    for entry in entries {
        let name = key_name(&entry.key);
        if let Some(line) = seen.insert(name, entry.line) {
            let what =
                format!("{} is given twice, also in line {line}: keep one", shown(&entry.key));
            faults.at(entry.line, what);
        }
    }
}

/// "KEY: EXPECTED, not VALUE".
pub(super) fn refuse(entry: &KeyValue, expected: &str, value: &FileValue, faults: &mut Faults) {
    let (key, found) = (shown(&entry.key), value.found());
    // `true` is a command, too.
    let is_bare = matches!(value, FileValue::Switch(_));
    let quotes = if is_bare { " (as a text it needs quotes)" } else { "" };
    faults.at(entry.line, format!("{key}: {expected}, not {found}{quotes}"));
}

/// Reads a key as a `T` does, and adds it to the table if it can be used.
pub(super) fn take<T: DeserializeOwned>(entry: &KeyValue, table: &mut Table, faults: &mut Faults) {
    let name = key_name(&entry.key);
    let read = match (name.as_str(), &entry.value) {
        ("prove", FileValue::Switch(on)) => Ok(if *on { "proven".into() } else { "off".into() }),
        _ => value_of(entry),
    };
    let value = match read {
        Ok(value) => value,
        Err(value) => return refuse(entry, "expected a text or a number", value, faults),
    };
    let alone = Table::from_iter([(name, value)]);
    match T::deserialize(alone.clone()) {
        Ok(_) => table.extend(alone),
        Err(error) => {
            let message = error.message().lines().next().unwrap_or_default();
            let Some(at) = message.find("expected ") else {
                return faults.at(entry.line, format!("{}: {message}", shown(&entry.key)));
            };
            let expected = message[at..].split(", not ").next().unwrap_or_default();
            let expected = expected.replace("a boolean", "true or false");
            let expected = expected.replace("a string", "a text").replace("a sequence", "a list");
            refuse(entry, &expected, &entry.value, faults);
        }
    }
}

/// The value for serde, a list where the key holds one. The error is the part that no key takes.
fn value_of(entry: &KeyValue) -> Result<Value, &FileValue> {
    let (name, value) = (key_name(&entry.key), &entry.value);
    let is_blank = |text: &str| text.trim().is_empty() || text.contains('\0');
    let is_unfit = |one: &&FileValue| {
        one.for_serde().is_none() || (name != AGENT_WORDS && one.text().is_some_and(is_blank))
    };
    if let Some(unfit) = value.each().iter().find(is_unfit) {
        return Err(unfit);
    }
    Ok(match value.for_serde().ok_or(value)? {
        // Names between commas, as on a command line.
        Value::String(names) if name == "fallback" => {
            Value::Array(names.split(',').map(|name| name.trim().into()).collect())
        }
        Value::Array(list) => Value::Array(list),
        one if is_word_of(ADDED, &name) => Value::Array(vec![one]),
        one => one,
    })
}

/// Refuses a key that is not one of the `keys` of this place of a file. `takes_options`: options of
/// `crew run` may stand there, too.
pub(super) fn refuse_key(
    entry: &KeyValue,
    keys: &[&'static str],
    takes_options: bool,
    faults: &mut Faults,
) {
    let (key, name) = (shown(&entry.key), key_name(&entry.key));
    let refused = REFUSED.iter().find(|(refused, _)| *refused == name);
    let home = HOMES.iter().find(|(_, keys)| keys.contains(&name.as_str()));
    let home = home.map(|(home, _)| *home).or(is_option(&name).then_some(HOME_OF_OPTIONS));
    let known: Vec<&str> =
        keys.iter().copied().chain(options().filter(|_| takes_options)).collect();
    let more =
        if takes_options { ", words, and the options that crew run --help lists" } else { "" };
    let what = match (refused, home, nearest(&name, &known)) {
        (Some((_, why)), ..) => format!("`{name}` is not for a task to set: {why}"),
        (None, Some(home), _) => format!("`{name}` belongs {home}"),
        (None, None, Some(meant)) => format!("unknown key `{key}`: did you mean `{meant}`?"),
        _ => format!("unknown key `{key}`: the keys are {}{more}", keys.join(", ")),
    };
    faults.at(entry.line, what);
}

/// Whether a file may set an option of this name.
pub(super) fn is_option(name: &str) -> bool {
    options().any(|known| known == name)
}

/// The options that a file may set.
pub(super) fn options() -> impl Iterator<Item = &'static str> {
    let longs = run_options().filter_map(Arg::get_long);
    longs.filter(|long| !REFUSED.iter().any(|(name, _)| name == long)).chain([AGENT_WORDS])
}

/// Refuses options that cannot be given together.
pub(super) fn refuse_exclusive(options: &Table, faults: &mut Faults) {
    for (one, other) in EXCLUSIVE {
        if is_on(options, one) && is_on(options, other) {
            faults.at(None, format!("{one} cannot be used with {other}: give one of the two"));
        }
    }
}

fn is_on(options: &Table, key: &str) -> bool {
    options.get(key).is_some_and(|value| *value != Value::Boolean(false))
}

/// A task's options over those of the fleet: commands and texts add up, any other option replaces
/// the fleet's, and so does one that cannot be given together with it.
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

/// These options as a file in TOML would have them, one a text.
pub(super) fn words(options: &Table) -> Vec<String> {
    options.iter().map(|(key, value)| format!("{key} = {value}")).collect()
}

impl TaskOptions {
    /// The arguments of `crew run` for a task with this prompt.
    pub fn run_args(self, prompt: &str) -> RunArgs {
        let Self { options: LoopOptions { limits, terms, process }, recipe, agent_cmd, words } =
            self;
        // One word would be the name of a procedure.
        let task = vec![format!("{prompt}\n")];
        let start = LoopArgs { task, terms, limits, ..LoopArgs::default() };
        let options = RunOptions { process, agent_cmd, words, ..RunOptions::default() };
        RunArgs { start, recipe, options, ..RunArgs::default() }
    }
}

/// A fix that names options of a command line, for a file.
pub(super) fn in_a_file(fix: &str) -> String {
    if !fix.contains("--") {
        return fix.to_owned();
    }
    format!("{fix} (here as a key without --, under [task] in fleet.toml or in the front matter)")
}
