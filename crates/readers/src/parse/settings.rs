//! Reads a settings file, as TOML text, into one layer of settings. An unknown key is a warning,
//! because a later crew may know it. A value that cannot be used is an error, because a limit that
//! is silently lost means an endless loop. Each message names the file, the line, the key and what
//! to write instead; all faults of a file are reported together.

pub mod merge;
pub mod options;
#[cfg(test)]
mod run_tests;
#[cfg(any(test, feature = "fixture"))]
pub mod schema_fixture;
#[cfg(test)]
mod tests;
pub mod trust;
#[cfg(test)]
mod trust_tests;

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

pub use self::merge::LogRetention;
use self::merge::{AgentEntry, ExecutorEntry, Layer, ProcedureSettings, Sourced, ValueOrigin};
use self::options::{KEYS, Key, LoopOptions};
use super::fragment::{IsThere, parse_fragment};
use super::spelling::{describe_expected, find_nearest, shorten_text};
use crate::parse::amounts::{Seconds, deserialize_texts};
use crate::parse::shell_command::check_placeholders;
use engine::protect;
use engine::record::{Check, Fragment, LoopMoment, Phase, Reaction, Role};
use engine::text::{is_word_of, words_of};

/// The content of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedSettings {
    pub layer: Layer,
    /// Keys that were ignored: one sentence each.
    pub warnings: Vec<String>,
}

/// The owner of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsOwner {
    /// crew itself.
    BuiltIn,
    /// The user.
    Users,
    /// A checkout: its paths stay inside the checkout, and it cannot set how much of all loops is
    /// kept.
    Projects,
}

/// Parses the settings file at `path`. `outputs` are the formats of an agent's output that can be
/// read; `is_there` says whether a path is an existing file. The error has one line for each fault.
pub fn parse_settings(
    text: &str,
    path: &Path,
    whose: SettingsOwner,
    outputs: &[&'static str],
    is_there: IsThere<'_>,
) -> Result<ParsedSettings, String> {
    let read = ParsedSettings::default();
    let mut reader = Reader { text, path, whose, outputs, is_there, read, faults: Vec::new() };
    match DeTable::parse(text) {
        Ok(table) => reader.read_root(table.get_ref()),
        Err(error) => {
            let (at, what) = locate_syntax_error(text, &error);
            reader.report_fault(&at, what);
        }
    }
    let Reader { read, faults, .. } = reader;
    if faults.is_empty() { Ok(read) } else { Err(faults.join("\n")) }
}

/// Where a file stops being valid TOML, and why.
pub fn locate_syntax_error(text: &str, error: &toml::de::Error) -> (Range<usize>, String) {
    let at = error.span().unwrap_or_default();
    let why: Vec<&str> = error.message().lines().map(str::trim).collect();
    let what = match why.join("; ").as_str() {
        "duplicate key" => {
            let key = shorten_text(text.get(at.clone()).unwrap_or_default());
            format!("{key} is given twice: keep one of them")
        }
        why => format!("this is not TOML: {why}"),
    };
    (at, what)
}

/// The number of the line at which a part of the file begins, counted from 1.
pub fn line_number(text: &str, at: &Range<usize>) -> usize {
    text.get(..at.start).unwrap_or(text).matches('\n').count() + 1
}

type KeyText<'text> = Spanned<Cow<'text, str>>;
type Value<'text> = Spanned<DeValue<'text>>;

/// A key and its value.
pub type Item<'text> = (&'text KeyText<'text>, &'text Value<'text>);

/// The items of a table as written in the file; the crate returns them sorted by key.
pub fn items_as_written<'text>(table: &'text DeTable<'text>) -> Vec<Item<'text>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The tables of a settings file.
pub const TABLES: [&str; 8] =
    ["loop", "check", "agents", "procedures", "on", "wait", "keep", "executor"];
/// The keys of a `[[check]]`.
pub const CHECK: &str = "run role timeout success-exit-code no-worse";
/// The keys of an `[agents.NAME]`.
pub const AGENT: &str = "like command args prompt output permissions max-turns model allow \
    environment usage-file login";
/// The keys of a reaction.
pub const REACTION: &str = "run timeout";
/// The keys of an `[executor.NAME]`.
pub const EXECUTOR: &str = "submit status cancel";
/// The keys of `[loop]`, and the options, that name a check by its command alone.
const CHECK_KEYS: [&str; 4] = ["no-worse", "verify", "gate", "until"];
const NO_CHECKS: &str = "check is a list of tables: write [[check]], in double brackets";
/// The timeout of a reaction in seconds, unless its table sets one.
const REACTION_TIMEOUT_S: u64 = 60;

/// One `[[check]]`, or what runs at a moment of a loop.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CommandEntry {
    run: String,
    role: Option<Role>,
    timeout: Option<Seconds>,
    #[serde(default, alias = "success_exit_code")]
    success_exit_code: i32,
    #[serde(default, alias = "no_worse")]
    no_worse: bool,
}

#[derive(Deserialize)]
struct Texts(#[serde(deserialize_with = "deserialize_texts")] Vec<String>);

struct Reader<'text> {
    text: &'text str,
    path: &'text Path,
    whose: SettingsOwner,
    outputs: &'text [&'static str],
    is_there: IsThere<'text>,
    read: ParsedSettings,
    faults: Vec<String>,
}

impl Reader<'_> {
    fn origin_at(&self, at: &Range<usize>) -> ValueOrigin {
        match self.whose {
            SettingsOwner::BuiltIn => ValueOrigin::BuiltIn,
            _ => ValueOrigin::File { path: self.path.to_owned(), line: line_number(self.text, at) },
        }
    }

    fn with_origin<T>(&self, at: &Range<usize>, value: T) -> Sourced<T> {
        Sourced { value, origin: self.origin_at(at) }
    }

    fn report_fault(&mut self, at: &Range<usize>, what: impl Display) {
        self.faults.push(format!("{}: {what}", self.origin_at(at)));
    }

    fn warn_at(&mut self, at: &Range<usize>, what: &str) {
        self.read.warnings.push(format!("{}: {what}", self.origin_at(at)));
    }

    /// Reports "LINE: WHY", with the line of the value.
    fn refuse_value(&mut self, at: &Range<usize>, why: &str) {
        let begin = self.text.get(..at.start).and_then(|before| before.rfind('\n'));
        let rest = self.text.get(begin.map_or(0, |end| end + 1)..).unwrap_or_default();
        let line = shorten_text(rest.lines().next().unwrap_or_default().trim());
        self.report_fault(at, format!("{line}: {why}"));
    }

    /// Reads a value; a wrong type is a fault, and keys that it does not take are warnings: `place`
    /// is its table, and `known` its keys.
    fn table_of<T: DeserializeOwned>(
        &mut self,
        value: &Value<'_>,
        (place, known): (&str, &'static str),
    ) -> Option<T> {
        let mut ignored = Vec::new();
        let source = ValueDeserializer::from(value.clone());
        let read = serde_ignored::deserialize(source, |path| ignored.push(path.to_string()));
        for name in ignored {
            let table = value.get_ref().as_table();
            let named = table.and_then(|table| table.get_key_value(name.as_str()));
            let at = named.map_or(value.span(), |(key, _)| key.span());
            self.warn_unknown(&at, &name, place, &words_of(known).collect::<Vec<_>>());
        }
        match read {
            Ok(read) => Some(read),
            Err(error) => {
                let at = error.span().unwrap_or_else(|| value.span());
                self.refuse_value(&at, &describe_expected(&error));
                None
            }
        }
    }

    /// Reads a value that is not a table with keys of its own.
    fn read_value<T: DeserializeOwned>(&mut self, value: &Value<'_>) -> Option<T> {
        self.table_of(value, ("", ""))
    }

    /// Warns of a key that is not one of `known`, and says where it may belong. An ignored check
    /// would let a loop end unchecked: it is a fault.
    fn warn_unknown(&mut self, at: &Range<usize>, key: &str, table: &str, known: &[&'static str]) {
        let (key, name) = (shorten_text(key), key.replace('_', "-"));
        let is_check = CHECK_KEYS.contains(&&*name);
        let home = match &*name {
            name if is_check || Key::find_in_table("loop", name).is_some() => "[loop]",
            name if is_word_of(CHECK, name) => "[[check]]",
            _ => table,
        };
        let guess = match find_nearest(&key, known) {
            _ if home != table => format!(": it belongs under {home}"),
            Some(near) => format!(": did you mean `{near}`?"),
            None => ", ignored".to_owned(),
        };
        let place = if table.is_empty() { String::new() } else { format!(" in {table}") };
        let what = format!("unknown key `{key}`{place}{guess}");
        if is_check && home != table {
            self.report_fault(at, what);
        } else {
            self.warn_at(at, &what);
        }
    }

    fn read_root(&mut self, root: &DeTable<'_>) {
        let mut layer = Layer::default();
        for (key, value) in items_as_written(root) {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("check", DeValue::Array(checks)) => {
                    for check in checks {
                        self.read_check(&mut layer, check);
                    }
                }
                ("check", _) => self.report_fault(&key.span(), NO_CHECKS),
                (name, DeValue::Table(table)) if TABLES.contains(&name) => {
                    self.read_table(&mut layer, name, table);
                }
                (name, _) if TABLES.contains(&name) => self.no_table(key, name),
                (name, _) => self.warn_unknown(&key.span(), name, "", &TABLES),
            }
        }
        self.read.layer = layer;
    }

    /// Reports that "NAME is a table".
    fn no_table(&mut self, key: &KeyText<'_>, name: &str) {
        let what = format!("{name} is a table: write its keys under a line [{name}]");
        self.report_fault(&key.span(), what);
    }

    fn read_table(&mut self, layer: &mut Layer, name: &str, table: &DeTable<'_>) {
        for (key, value) in items_as_written(table) {
            match name {
                // A project must not prune the logs of every loop on this machine, and not say
                // where jobs run.
                "keep" | "executor" if self.whose == SettingsOwner::Projects => {
                    let what =
                        format!("[{name}] counts only in your own settings file; ignored here");
                    return self.warn_at(&key.span(), &what);
                }
                "executor" => self.read_executor(layer, key, value),
                "agents" => self.read_agent(layer, key, value),
                "procedures" => self.read_procedure(layer, key, value),
                "on" => self.read_reactions(layer, key, value),
                _ if self.read_term(layer, name, (key, value)) => {}
                _ => {
                    let known = names_in(name);
                    self.warn_unknown(&key.span(), key.get_ref(), &format!("[{name}]"), &known);
                }
            }
        }
    }

    /// Reads a key of `table`; `false` if the table has no key of this name. A procedure has the
    /// keys of `[loop]`.
    fn read_term(&mut self, layer: &mut Layer, table: &str, (name, value): Item<'_>) -> bool {
        let (name, at) = (name.get_ref().replace('_', "-"), value.span());
        if table == "loop" && CHECK_KEYS.contains(&&*name) {
            for run in self.read_texts(value) {
                if self.is_command(value, &run) {
                    layer.checks.push(self.with_origin(&at, check_of(&name, &run)));
                }
            }
            return true;
        }
        let Some(key) = Key::find_in_table(table, &name) else { return false };
        if key.name() == "protect" {
            for glob in self.read_texts(value) {
                match protect::parse_glob(&glob) {
                    Ok(_) => layer.protect.push(self.with_origin(&at, glob)),
                    Err(wanted) => self.refuse_value(&value.span(), &format!("expected {wanted}")),
                }
            }
            return true;
        }
        let Some(read) = self.read_value::<toml::Value>(value) else { return true };
        if let toml::Value::String(text) = &read
            && (text.trim().is_empty() || text.contains('\0') || text.starts_with('-'))
        {
            self.refuse_value(
                &value.span(),
                "expected a string that is not blank and not an option",
            );
            return true;
        }
        let alone = toml::Table::from_iter([(key.name().to_owned(), read.clone())]);
        match LoopOptions::deserialize(alone) {
            Ok(_) => drop(layer.values.insert(key.name(), self.with_origin(&at, read))),
            Err(error) => self.refuse_value(&at, &describe_expected(&error)),
        }
        true
    }

    fn read_texts(&mut self, value: &Value<'_>) -> Vec<String> {
        self.read_value(value).map(|Texts(texts)| texts).unwrap_or_default()
    }

    /// Whether a string is a command that can be run; if not, reports a fault. Detection at every
    /// start would run commands that no person wrote down or trusted.
    fn is_command(&mut self, value: &Value<'_>, run: &str) -> bool {
        let why = match run {
            "auto" => "write the command, or let `crew init` do it",
            run if run.trim().is_empty() || run.contains('\0') => "expected a command",
            _ => return true,
        };
        self.refuse_value(&value.span(), why);
        false
    }

    fn read_check(&mut self, layer: &mut Layer, value: &Value<'_>) {
        let at = value.span();
        if value.get_ref().as_table().is_none() {
            return self.report_fault(&at, NO_CHECKS);
        }
        let Some(entry) = self.table_of::<CommandEntry>(value, ("[[check]]", CHECK)) else {
            return;
        };
        let role = entry.role.unwrap_or(Role::Verify);
        if entry.no_worse && role != Role::Verify {
            return self.report_fault(&at, "only a `verify` can be no-worse");
        }
        let mut check = Check::new(entry.run, role);
        check.timeout_s = entry.timeout.map_or(check.timeout_s, |time| time.0);
        if check.timeout_s == 0 || !(0..=255).contains(&entry.success_exit_code) {
            let what = "a timeout is at least a second, and an exit code is from 0 to 255";
            return self.report_fault(&at, what);
        }
        if self.is_command(value, &check.run) {
            check.success_exit_code = entry.success_exit_code;
            check.no_worse = entry.no_worse;
            layer.checks.push(self.with_origin(&at, check));
        }
    }

    fn read_reactions(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let Some(on) = LoopMoment::ALL.into_iter().find(|on| on.label() == name) else {
            let known = LoopMoment::ALL.map(LoopMoment::label);
            return self.warn_unknown(&key.span(), name, "[on]", &known);
        };
        match value.get_ref().as_array() {
            Some(list) => {
                for one in list {
                    self.read_reaction(layer, on, one);
                }
            }
            None => self.read_reaction(layer, on, value),
        }
    }

    /// Reads a command, or a table with a command and its timeout.
    fn read_reaction(&mut self, layer: &mut Layer, on: LoopMoment, value: &Value<'_>) {
        let entry = if value.get_ref().is_table() {
            self.table_of(value, (&format!("[on] {}", on.label()), REACTION))
        } else {
            self.read_value(value).map(|run| CommandEntry { run, ..CommandEntry::default() })
        };
        let Some(CommandEntry { run, timeout, .. }) = entry else { return };
        let timeout_s = timeout.map_or(REACTION_TIMEOUT_S, |time| time.0);
        if timeout_s == 0 {
            return self.refuse_value(&value.span(), "expected a timeout of at least a second");
        }
        if self.is_command(value, &run) {
            layer.reactions.push(self.with_origin(&value.span(), Reaction { on, run, timeout_s }));
        }
    }

    fn read_agent(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let place = format!("agents.{name}");
        if !is_one_word(name) {
            let what = "the name of an agent is one word: [agents.mine]";
            return self.report_fault(&key.span(), what);
        }
        if !value.get_ref().is_table() {
            return self.no_table(key, &place);
        }
        let table = format!("[{place}]");
        let Some(entry) = self.table_of::<AgentEntry>(value, (&table, AGENT)) else { return };
        let (allow, output) = (entry.allow().as_ref(), entry.output().as_ref());
        let program = entry.command().as_ref().map(|command| command.first());
        let why = if program.is_some_and(|program| program.is_none_or(String::is_empty)) {
            "command is a list that begins with a program: [\"claude\", \"-p\"]"
        } else if allow.is_some_and(|rule| !names_check(rule)) {
            "allow is an argument with {check} in it: \"--allow=Bash({check})\""
        } else if output.is_some_and(|output| !self.outputs.contains(&&*output.0)) {
            &format!("output is one of {}", self.outputs.join(", "))
        } else if entry.environment().keys().any(|name| name.is_empty() || name.contains('=')) {
            "environment names a variable without =: { LEVEL = \"1\" }"
        } else if entry.to_string().contains("\\u0000") {
            "a value contains a NUL character"
        } else {
            layer.agents.insert(name.to_owned(), self.with_origin(&key.span(), entry));
            return;
        };
        self.report_fault(&key.span(), format!("{place}: {why}"));
    }

    fn read_executor(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let place = format!("executor.{name}");
        // The other names mean what crew knows by itself.
        if !is_branch(name) || name == "local" || name.starts_with("slurm") || name.contains(':') {
            let what =
                "the name of an executor is one word, and not local or slurm: [executor.k8s]";
            return self.report_fault(&key.span(), what);
        }
        let Some(table) = value.get_ref().as_table() else { return self.no_table(key, &place) };
        let shown = format!("[{place}]");
        let Some(entry) = self.table_of::<ExecutorEntry>(value, (&shown, EXECUTOR)) else {
            return;
        };
        let before = self.faults.len();
        for (key, command, known) in [
            ("submit", &entry.submit, &["script", "name"][..]),
            ("status", &entry.status, &["job"]),
            ("cancel", &entry.cancel, &["job"]),
        ] {
            if let Err(why) = check_placeholders(command, known) {
                let at = table.get(key).map_or(value.span(), Spanned::span);
                self.refuse_value(&at, &why);
            }
        }
        if self.faults.len() == before {
            layer.executors.insert(name.to_owned(), self.with_origin(&key.span(), entry));
        }
    }

    fn read_procedure(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let place = format!("procedures.{name}");
        if !is_one_word(name) {
            let what = "the name of a procedure is one word: [procedures.nightly]";
            return self.report_fault(&key.span(), what);
        }
        let Some(table) = value.get_ref().as_table() else { return self.no_table(key, &place) };
        let mut procedure = ProcedureSettings::default();
        for (key, value) in items_as_written(table) {
            let name = key.get_ref().as_ref();
            if let Some(phase) = Phase::ALL.into_iter().find(|phase| phase.label() == name) {
                for text in self.read_texts(value) {
                    let fragment = self.read_fragment(value, &text);
                    procedure.recipe.0.entry(phase).or_default().extend(fragment);
                }
            } else if name == "description" {
                procedure.description = self.read_value(value);
            } else if !self.read_term(&mut procedure.terms, "loop", (key, value)) {
                let phases = Phase::ALL.map(Phase::label);
                let known = [&["description"], &phases[..], &names_in("loop")].concat();
                self.warn_unknown(&key.span(), name, &format!("[{place}]"), &known);
            }
        }
        layer.procedures.insert(name.to_owned(), self.with_origin(&key.span(), procedure));
    }

    fn read_fragment(&mut self, value: &Value<'_>, text: &str) -> Option<Fragment> {
        // Paths are relative to the file's folder. A project's is `.claude` in its checkout.
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let checkout = folder.parent().unwrap_or(Path::new(""));
        let is_projects = self.whose == SettingsOwner::Projects;
        let found = match parse_fragment(text, folder, self.is_there) {
            Ok(Fragment::File(file)) if is_projects && !file.starts_with(checkout) => {
                Err("a file of this checkout")
            }
            found => found,
        };
        match found {
            Ok(fragment) => Some(fragment),
            Err(wanted) => {
                self.refuse_value(&value.span(), &format!("expected {wanted}"));
                None
            }
        }
    }
}

/// Whether an argument has a place for the command of a check.
fn names_check(rule: &str) -> bool {
    rule.contains("{check}") || rule.contains("{words}")
}

/// The names of the keys of a table.
fn names_in(table: &str) -> Vec<&'static str> {
    let names = KEYS.iter().map(Key::split_name).filter(|(of, _)| *of == table);
    let mut names: Vec<&'static str> = names.map(|(_, name)| name).collect();
    if table == "loop" {
        names.extend(CHECK_KEYS);
    }
    names
}

/// The check that one of these keys names.
fn check_of(key: &str, run: &str) -> Check {
    let role = Role::ALL.into_iter().find(|role| role.label() == key).unwrap_or(Role::Verify);
    Check { no_worse: key == "no-worse", ..Check::new(run, role) }
}

/// Whether git could accept a string as a branch, and not as an option. Whether the branch exists
/// is checked at the start.
pub fn is_branch(text: &str) -> bool {
    is_one_word(text) && !text.starts_with('-')
}

fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}
