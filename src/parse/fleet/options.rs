//! The options of `crew run` among the keys of a file, as the words that a person would type. What
//! the fleet itself decides is refused, with the reason; so is a value that `crew run` would not
//! take.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction};

use super::front_matter::{Faults, FileValue, KeyValue};
use crate::parse::arguments::{exclude_each_other, run_of, run_options, takes_value};
use crate::parse::spelling::{nearest, shown};

/// The key of the agent's own words, which a command line has after `--`.
const AGENTS_WORDS: &str = "words";
/// What a key takes that may be given several times.
const TEXTS: &str = "a text or a list of texts";
/// What a key takes that names one program.
pub(super) const COMMAND: &str = "a command";
/// Words behind it are the agent's.
const END_OF_OPTIONS: &str = "--";

/// The options that no file of a fleet may set, each with the reason.
const REFUSED: [(&str, &str); 13] = [
    ("detach", "a fleet runs each task in a process of its own"),
    ("json", "crew fleet status --json tells of all tasks"),
    ("verbose", "crew show --log shows what the agent of a task does"),
    ("quiet", "a task prints nothing to the terminal"),
    ("dry-run", "crew fleet run --dry-run shows every task"),
    ("list", "it starts nothing"),
    ("worktree", "each task has a working tree of its own, named after it"),
    ("replace", "nothing else runs in a task's working tree"),
    ("commit", "the fleet commits what each iteration changed"),
    ("push", "crew fleet run --push decides it for all tasks"),
    ("rebase", "tasks are rebased onto the fleet's base, which stands in fleet.toml"),
    ("prompt-file", "the text of the task's own file is the prompt"),
    ("no-project", "the fleet decides for all tasks which settings count"),
];

/// The keys of a task that are not options of `crew run`.
pub(super) const TASK_KEYS: [&str; 3] = ["after", "priority", "touches"];
/// The keys of fleet.toml above its first table.
pub(super) const TOP_KEYS: [&str; 5] = ["name", "base", "slots", "max-cost", "setup"];
/// The only key of `[land]`.
pub(super) const LAND_KEYS: [&str; 1] = ["check"];
/// The keys that are not options and take a list.
const LISTS: [&str; 3] = [AGENTS_WORDS, "after", "touches"];
/// Where every key belongs that is not an option.
const HOMES: [(&str, &[&str]); 5] = [
    ("in the front matter of a task", &TASK_KEYS),
    ("above the first table of fleet.toml", &TOP_KEYS),
    ("under [land] in fleet.toml", &LAND_KEYS),
    ("in fleet.toml, as a line [task] with its keys below", &["task"]),
    ("in fleet.toml, as a line [land] with its keys below", &["land"]),
];
const HOME_OF_OPTIONS: &str = "under [task] in fleet.toml, or in the front matter of a task";

/// The options that a file sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked(Vec<Setting>);

/// One key and what it comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    key: &'static str,
    line: usize,
    /// None for a switch that is off and for an empty list.
    words: Vec<String>,
}

/// The name of a key: people write `_` for `-`, and `n` as on the command line.
pub(super) fn key_name(written: &str) -> String {
    match written {
        "n" => "max-iterations".to_owned(),
        written => written.replace('_', "-"),
    }
}

/// Refuses a key that is there twice, whichever way it is written.
pub(super) fn refuse_repeats(entries: &[KeyValue], faults: &mut Faults) {
    let mut seen = BTreeMap::new();
    for entry in entries {
        let name = key_name(&entry.key);
        let is_list = option(&name).map_or(LISTS.contains(&name.as_str()), repeats);
        if let Some(line) = seen.insert(name, entry.line) {
            let key = shown(&entry.key);
            let way = if is_list { ", which may be a list such as [a, b]" } else { "" };
            let what = format!("{key} is given twice, also in line {line}: keep one{way}");
            faults.at(entry.line, what);
        }
    }
}

/// "KEY takes WANTED, not VALUE", which is the entry's value or one of its list.
pub(super) fn refuse(entry: &KeyValue, wanted: &str, value: &FileValue, faults: &mut Faults) {
    let (key, found) = (shown(&entry.key), value.found());
    // `true` is a command, too.
    let is_bare = matches!(value, FileValue::Switch(_)) && [COMMAND, TEXTS].contains(&wanted);
    let way_out = if is_bare { " (as a text it needs quotes)" } else { "" };
    faults.at(entry.line, format!("{key} takes {wanted}, not {found}{way_out}"));
}

/// Refuses a key that is not of this place of a file. `known` are the keys that the place has,
/// beside options of `crew run` if it takes those.
pub(super) fn refuse_key(
    entry: &KeyValue,
    known: &[&'static str],
    takes_options: bool,
    faults: &mut Faults,
) {
    let (key, name) = (shown(&entry.key), key_name(&entry.key));
    let refused = REFUSED.iter().find(|(refused, _)| *refused == name);
    let home = HOMES.iter().find(|(_, keys)| keys.contains(&name.as_str()));
    let home = home.map(|(home, _)| *home).or(is_option(&name).then_some(HOME_OF_OPTIONS));
    let options = options().filter(|_| takes_options);
    let meant = nearest(&name, &known.iter().copied().chain(options).collect::<Vec<_>>());
    let more = if takes_options { ", and the options that crew run --help lists" } else { "" };
    let what = match (refused, home, meant) {
        (Some((_, why)), ..) => format!("`{name}` is not for a task to set: {why}"),
        (None, Some(home), _) => format!("`{name}` belongs {home}"),
        (None, None, Some(meant)) => format!("unknown key `{key}`: did you mean `{meant}`?"),
        _ => format!("unknown key `{key}`: the keys are {}{more}", known.join(", ")),
    };
    faults.at(entry.line, what);
}

/// Each text of a list that `read` takes; any other is told.
pub(super) fn each<T>(
    entry: &KeyValue,
    faults: &mut Faults,
    read: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    let mut taken = Vec::new();
    for value in entry.value.each() {
        match value.text().map_err(|_| TEXTS.to_owned()).and_then(&read) {
            Ok(read) => taken.push(read),
            Err(wanted) => refuse(entry, &wanted, value, faults),
        }
    }
    taken
}

/// Whether a file may set an option of this name.
fn is_option(name: &str) -> bool {
    options().any(|known| known == name)
}

/// The keys that a file may set.
fn options() -> impl Iterator<Item = &'static str> {
    let longs = run_options().filter_map(Arg::get_long);
    longs.filter(|long| !REFUSED.iter().any(|(name, _)| name == long)).chain([AGENTS_WORDS])
}

/// The option of this name; the agent's own words are none.
fn option(name: &str) -> Option<&'static Arg> {
    run_options().find(|option| option.get_long() == Some(name))
}

/// Whether an option may be given more than once.
fn repeats(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Append)
}

/// A way out that names options, such as `--agent NAME`, as one that names keys of a file:
/// `agent = "NAME"`.
pub fn as_keys(way_out: &str) -> String {
    let (mut told, mut follows_a_key): (Vec<String>, _) = (Vec::new(), false);
    for word in way_out.split(' ') {
        let bare = word.trim_end_matches([',', ';']);
        let mark = &word[bare.len()..];
        let key = bare.strip_prefix("--").filter(|name| is_option(name));
        let is_text = bare == "none" || bare.starts_with(|first: char| first.is_ascii_uppercase());
        told.push(match key {
            Some(key) => format!("{key}{mark}"),
            None if follows_a_key && is_text => format!("= \"{bare}\"{mark}"),
            None if follows_a_key && bare.starts_with(['"', '0']) => format!("= {word}"),
            None => word.to_owned(),
        });
        follows_a_key = key.is_some();
    }
    let told = told.join(" ");
    if told == way_out {
        return told;
    }
    format!("{told} (under [task] in fleet.toml, or in the front matter)")
}

impl Asked {
    /// Takes a key that is an option. `others` are the keys that this place of the file has
    /// besides.
    pub(super) fn take(&mut self, entry: &KeyValue, others: &[&'static str], faults: &mut Faults) {
        let name = key_name(&entry.key);
        let Some(key) = options().find(|known| *known == name) else {
            return refuse_key(entry, &[others, &[AGENTS_WORDS]].concat(), true, faults);
        };
        match words(key, &entry.value) {
            Ok(words) => self.0.push(Setting { key, line: entry.line, words }),
            Err((wanted, value)) => refuse(entry, wanted, value, faults),
        }
    }

    /// Lets `crew run` read the words, and tells which keys it does not take.
    pub(super) fn check(&self, faults: &mut Faults) {
        let Err(together) = run_of(&self.words(), "task") else { return };
        let alone = |setting: &Setting| {
            let words = Self(vec![setting.clone()]).words();
            run_of(&words, "task").err().map(|error| (setting.line, error.line()))
        };
        let wrong: Vec<_> = self.0.iter().filter_map(alone).collect();
        if wrong.is_empty() {
            faults.at(None, together.line());
        }
        for (line, what) in wrong {
            faults.at(line, what);
        }
    }

    /// The words of these options; the agent's own come last.
    pub(super) fn words(&self) -> Vec<String> {
        let (agents, options): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|setting| setting.key == AGENTS_WORDS);
        let all = |settings: Vec<&Setting>| {
            settings.into_iter().flat_map(|it| it.words.clone()).collect::<Vec<_>>()
        };
        let (mut words, agents) = (all(options), all(agents));
        if !agents.is_empty() {
            words.push(END_OF_OPTIONS.to_owned());
            words.extend(agents);
        }
        words
    }

    /// These options over those of the fleet: commands and texts add up, any other option of a task
    /// replaces the fleet's, and so does one that cannot stand beside it.
    pub(super) fn over(&self, fleet: &Self) -> Self {
        let kept = fleet.0.iter().filter(|setting| !self.0.iter().any(|own| own.replaces(setting)));
        Self(kept.chain(&self.0).cloned().collect())
    }
}

impl Setting {
    /// Whether another option cannot stand beside it. A list between commas is one value, which
    /// another list replaces; any other that may be repeated adds up.
    fn replaces(&self, other: &Self) -> bool {
        match (option(self.key), option(other.key)) {
            (Some(own), _) if self.key == other.key => {
                !repeats(own) || own.get_value_delimiter().is_some()
            }
            (Some(own), Some(its)) => !self.words.is_empty() && exclude_each_other(own, its),
            _ => self.key == other.key,
        }
    }
}

/// The words of a key, or what it takes, and what stands there instead.
fn words<'value>(
    key: &str,
    value: &'value FileValue,
) -> Result<Vec<String>, (&'static str, &'value FileValue)> {
    let option = option(key);
    let is_list = matches!(value, FileValue::List(_));
    let (is_fit, wanted) = match (option, value) {
        (Some(option), FileValue::Switch(on)) if !takes_value(option) => {
            return Ok(on.then(|| format!("--{key}")).into_iter().collect());
        }
        (Some(option), _) if !takes_value(option) => (false, "true or false"),
        (Some(option), _) if repeats(option) => (true, TEXTS),
        (Some(_), _) => (!is_list, "one text or number"),
        (None, _) => (is_list, "a list of words"),
    };
    if !is_fit {
        return Err((wanted, value));
    }
    let word = |value: &'value FileValue| match (value.text(), option) {
        (Err(found), _) => Err((wanted, found)),
        (Ok(text), _) if text.contains('\0') => Err(("no NUL character", value)),
        (Ok(text), Some(_)) => Ok(format!("--{key}={text}")),
        (Ok(text), None) => Ok(text.to_owned()),
    };
    value.each().iter().map(word).collect()
}
