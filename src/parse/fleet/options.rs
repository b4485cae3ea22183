//! The options of `crew run` among the keys of a file, as the words that a person would type. What
//! the fleet itself decides is refused, with the reason; so is a value that `crew run` would not
//! take.

use std::collections::BTreeMap;
use std::slice;

use super::faults::Faults;
use super::front_matter::{FileValue, KeyValue};
use crate::parse::arguments::task::{NamedOption, of_task};
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
pub(super) fn refuse_repeats<'entry>(
    entries: impl Iterator<Item = &'entry KeyValue>,
    faults: &mut Faults<'_>,
) {
    let mut seen = BTreeMap::new();
    for entry in entries {
        let name = key_name(&entry.key);
        let is_list = takes_a_list(&name);
        if let Some(line) = seen.insert(name, entry.line) {
            let key = shown(&entry.key);
            let way = if is_list { ", which may be a list such as [a, b]" } else { "" };
            let what = format!("{key} is given twice, also in line {line}: keep one{way}");
            faults.at(entry.line, what);
        }
    }
}

/// Whether a key takes several values.
fn takes_a_list(name: &str) -> bool {
    let option = NamedOption::all().find(|option| option.long() == name);
    option.map_or([AGENTS_WORDS, "after", "touches"].contains(&name), NamedOption::repeats)
}

/// "KEY takes WANTED, not VALUE", which is the entry's value or one of its list.
pub(super) fn refuse(entry: &KeyValue, wanted: &str, value: &FileValue, faults: &mut Faults<'_>) {
    let (key, found) = (shown(&entry.key), value.found());
    // `true` is a command, too.
    let is_bare = matches!(value, FileValue::Switch(_)) && [COMMAND, TEXTS].contains(&wanted);
    let way_out = if is_bare { " (as a text it needs quotes)" } else { "" };
    faults.at(entry.line, format!("{key} takes {wanted}, not {found}{way_out}"));
}

/// Each text of a list that `read` takes; any other is told.
pub(super) fn each<T>(
    entry: &KeyValue,
    faults: &mut Faults<'_>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Vec<T> {
    let list = match &entry.value {
        FileValue::List(list) => list.as_slice(),
        one => slice::from_ref(one),
    };
    let mut taken = Vec::new();
    for value in list {
        match value.text().map_err(|_| TEXTS.to_owned()).and_then(&read) {
            Ok(read) => taken.push(read),
            Err(wanted) => refuse(entry, &wanted, value, faults),
        }
    }
    taken
}

/// Whether a file may set an option of this name.
pub(super) fn is_option(name: &str) -> bool {
    options().any(|known| known == name)
}

/// The keys that a file may set.
fn options() -> impl Iterator<Item = &'static str> {
    let longs = NamedOption::all().map(NamedOption::long);
    longs.filter(|long| !REFUSED.iter().any(|(name, _)| name == long)).chain([AGENTS_WORDS])
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
    /// Takes a key that is an option. `others` are the keys that this place of the file may have
    /// besides.
    pub(super) fn take(
        &mut self,
        entry: &KeyValue,
        others: &[&'static str],
        faults: &mut Faults<'_>,
    ) {
        let name = key_name(&entry.key);
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return faults.at(entry.line, format!("`{name}` is not for a task to set: {why}"));
        }
        let Some(key) = options().find(|known| *known == name) else {
            let known: Vec<&str> = others.iter().copied().chain(options()).collect();
            let own = [others, &[AGENTS_WORDS]].concat().join(", ");
            let guess = match nearest(&name, &known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the keys are {own}, and the options that crew run --help lists"),
            };
            return faults.at(entry.line, format!("unknown key `{}`: {guess}", shown(&entry.key)));
        };
        match words(key, &entry.value) {
            Ok(words) => self.0.push(Setting { key, line: entry.line, words }),
            Err((wanted, value)) => refuse(entry, wanted, value, faults),
        }
    }

    /// Lets `crew run` read the words, and tells which keys it does not take.
    pub(super) fn check(&self, faults: &mut Faults<'_>) {
        let Err(together) = of_task(&self.words(), "task") else { return };
        let alone = |setting: &Setting| {
            let words = Self(vec![setting.clone()]).words();
            of_task(&words, "task").err().map(|error| (setting.line, error.line()))
        };
        let wrong: Vec<_> = self.0.iter().filter_map(alone).collect();
        if wrong.is_empty() {
            faults.whole(together.line());
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
    fn replaces(&self, other: &Self) -> bool {
        let option = |key| NamedOption::all().find(|option| option.long() == key);
        match (option(self.key), option(other.key)) {
            (Some(own), Some(its)) if self.key != other.key => {
                !self.words.is_empty() && own.excludes(its)
            }
            (Some(own), Some(_)) => !own.adds_up(),
            _ => self.key == other.key,
        }
    }
}

/// The words of a key, or what it takes, and what stands there instead.
fn words<'value>(
    key: &str,
    value: &'value FileValue,
) -> Result<Vec<String>, (&'static str, &'value FileValue)> {
    let option = NamedOption::all().find(|option| option.long() == key);
    let is_list = matches!(value, FileValue::List(_));
    let (is_fit, wanted) = match (option, value) {
        (Some(option), FileValue::Switch(on)) if option.is_switch() => {
            return Ok(on.then(|| format!("--{key}")).into_iter().collect());
        }
        (Some(option), _) if option.is_switch() => (false, "true or false"),
        (Some(option), _) if option.repeats() => (true, TEXTS),
        (Some(_), _) => (!is_list, "one text or number"),
        (None, _) => (is_list, "a list of words"),
    };
    if !is_fit {
        return Err((wanted, value));
    }
    let texts = value.texts().map_err(|value| (wanted, value))?;
    if texts.iter().any(|text| text.contains('\0')) {
        return Err(("no NUL character", value));
    }
    let word = |text| match option {
        Some(_) => format!("--{key}={text}"),
        None => String::from(text),
    };
    Ok(texts.into_iter().map(word).collect())
}
