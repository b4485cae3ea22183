//! The tables of a settings file, and the keys of the small tables. In a project's file `[keep]` is
//! ignored with a warning.

use toml::de::{DeTable, DeValue};

use super::values::{Written, example};
use super::{Item, KeyText, Reader, Value, Whose, in_order};
use crate::engine::boundary::protect;
use crate::engine::record::{Check, Fragment, LoopMoment, Phase, Reaction, Role};
use crate::engine::settings::{Key, Kind, Layer, ProcedureSettings};
use crate::parse::fragment::fragment;

const TABLES: [&str; 7] = ["loop", "check", "agents", "procedures", "on", "wait", "keep"];

/// The table that holds a key, as a file writes it.
pub(super) fn table_of(key: &str) -> Option<&'static str> {
    let tables = [("[loop]", names_in("loop")), ("[[check]]", CHECK.to_vec())];
    tables.into_iter().find_map(|(table, keys)| keys.contains(&key).then_some(table))
}

impl Reader<'_> {
    pub(super) fn root(&mut self, layer: &mut Layer, root: &DeTable<'_>) {
        for (key, value) in in_order(root) {
            match key.get_ref().as_ref() {
                "check" => self.checks(layer, key, value),
                name if TABLES.contains(&name) => match value.get_ref() {
                    DeValue::Table(table) => self.table(layer, name, table),
                    _ => self.no_table(key, name),
                },
                name => self.unknown(&key.span(), name, "", &TABLES),
            }
        }
    }

    /// "NAME is a table".
    pub(super) fn no_table(&mut self, key: &KeyText<'_>, name: &str) {
        let what = format!("{name} is a table: write its keys under a line [{name}]");
        self.fault(&key.span(), what);
    }

    fn table(&mut self, layer: &mut Layer, name: &str, table: &DeTable<'_>) {
        if name == "keep" && self.whose == Whose::Projects {
            return self.is_not_the_projects(table);
        }
        for (key, value) in in_order(table) {
            match name {
                "agents" => self.agents_entry(layer, key, value),
                "procedures" => self.procedure(layer, key, value),
                "on" => self.reactions(layer, key, value),
                _ if self.term(layer, name, (key, value)) => {}
                _ => {
                    let known = names_in(name);
                    self.unknown(&key.span(), key.get_ref(), &format!("[{name}]"), &known);
                }
            }
        }
    }

    /// A project must not prune the logs of every loop on this machine.
    fn is_not_the_projects(&mut self, table: &DeTable<'_>) {
        if let Some((key, _)) = in_order(table).first() {
            let origin = self.origin(&key.span());
            let what = "[keep] counts only in your own settings file; ignored here";
            self.warnings.push(format!("{origin}: {what}"));
        }
    }
}

// The keys with one value, and the lists of `[loop]`. The engine's table of keys says what a table
// may hold.

/// The names of the keys that a table may hold.
pub(super) fn names_in(table: &str) -> Vec<&'static str> {
    Key::all().filter_map(|key| key.name_in(table)).collect()
}

impl Reader<'_> {
    /// Reads a key of `table`; `false` if the table has no key of this name. A procedure holds what
    /// `[loop]` holds.
    pub(super) fn term(&mut self, layer: &mut Layer, table: &str, item: Item<'_>) -> bool {
        let (name, value) = item;
        let found = Key::all().find(|key| key.name_in(table) == Some(name.get_ref().as_ref()));
        let Some(key) = found else { return false };
        match key.row().kind {
            Kind::Commands(role) => self.commands(layer, role, value),
            Kind::Globs => self.protect(layer, value),
            _ => self.scalar(layer, key, item),
        }
        true
    }

    fn scalar(&mut self, layer: &mut Layer, key: Key, (name, value): Item<'_>) {
        let row = key.row();
        let read = self.read(name.get_ref(), example(row), value, |it| it.read(row.kind));
        if let Some(read) = read {
            layer.values.insert(key, self.sourced(&value.span(), read));
        }
    }

    fn commands(&mut self, layer: &mut Layer, role: Role, list: &Value<'_>) {
        let key = role.label();
        let Some(commands) = list.get_ref().as_array() else {
            self.refuse(key, "a list of commands", list, "[\"cargo test\"]");
            return;
        };
        for command in commands {
            let run = self.read(key, "[\"cargo test\"]", command, Written::command);
            if let Some(run) = run {
                let check = Check::new(run, role);
                layer.checks.push(self.sourced(&command.span(), check));
            }
        }
    }

    fn protect(&mut self, layer: &mut Layer, list: &Value<'_>) {
        const EXAMPLE: &str = "[\"Cargo.lock\", \"tests/**\"]";
        let Some(globs) = list.get_ref().as_array() else {
            return self.refuse("protect", "a list of paths", list, EXAMPLE);
        };
        for glob in globs {
            let text = self.read("protect", EXAMPLE, glob, Written::text);
            let Some(text) = text else { continue };
            match protect::glob(&text) {
                Ok(_) => layer.protect.push(self.sourced(&glob.span(), text)),
                Err(wanted) => self.refuse("protect", &wanted, glob, EXAMPLE),
            }
        }
    }
}

// `[[check]]`: a command that crew runs, with its role and terms. A value that cannot be
// used is refused with a working line.

pub(super) const CHECK: [&str; 5] = ["run", "role", "timeout", "success_exit_code", "no_worse"];

impl Reader<'_> {
    pub(super) fn checks(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        match value.get_ref().as_array() {
            Some(checks) => checks.iter().for_each(|it| self.check(layer, it)),
            None => self.no_list(&key.span()),
        }
    }

    fn no_list(&mut self, at: &std::ops::Range<usize>) {
        self.fault(at, "check is a list of tables: write [[check]], in double brackets");
    }

    fn check(&mut self, layer: &mut Layer, value: &Value<'_>) {
        let at = value.span();
        let Some(table) = value.get_ref().as_table() else { return self.no_list(&at) };
        let mut check = Check::new("", Role::Verify);
        let faults = self.faults.len();
        for (key, value) in in_order(table) {
            self.check_key(&mut check, (key, value));
        }
        if self.faults.len() > faults {
            return;
        }
        if check.run.is_empty() {
            self.fault(&at, "this [[check]] has no command: run = \"cargo test\"");
            return;
        }
        layer.checks.push(self.sourced(&at, check));
    }

    fn check_key(&mut self, check: &mut Check, (key, value): Item<'_>) {
        match key.get_ref().as_ref() {
            "run" => {
                let run = self.read("run", "\"cargo test\"", value, Written::command);
                check.run = run.unwrap_or_default();
            }
            "role" => {
                let role = |it: Written<'_>| it.choice(&Role::ALL, Role::label);
                check.role = self.read("role", "\"verify\"", value, role).unwrap_or(Role::Verify);
            }
            "timeout" => {
                let seconds = self.read("timeout", "\"10m\"", value, Written::some_seconds);
                check.timeout_s = seconds.unwrap_or(check.timeout_s);
            }
            name @ "success_exit_code" => {
                let code = value.get_ref().as_integer().and_then(|it| it.as_str().parse().ok());
                match code.filter(|code| (0..=255).contains(code)) {
                    Some(code) => check.success_exit_code = code,
                    None => self.refuse(name, "an exit status from 0 to 255", value, "0"),
                }
            }
            name @ "no_worse" => {
                let switch = value.get_ref().as_bool();
                check.no_worse = switch.unwrap_or_default();
                if switch.is_none() {
                    self.refuse(name, "true or false", value, "true");
                } else if check.no_worse && check.role != Role::Verify {
                    self.fault(&key.span(), "only a `verify` can be no_worse");
                }
            }
            name => self.unknown(&key.span(), name, "[[check]]", &CHECK),
        }
    }
}

// `[on]`: the user's commands for the moments of a loop. A value that cannot be used is refused
// with a working line.

const REACTION: [&str; 2] = ["run", "timeout"];
/// The timeout of a reaction in seconds, unless its table sets one.
const TIMEOUT_S: u64 = 60;
const EXAMPLE: &str = "\"notify-send done\"";

impl Reader<'_> {
    pub(super) fn reactions(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let Some(on) = LoopMoment::ALL.into_iter().find(|on| on.label() == name) else {
            let known = LoopMoment::ALL.map(LoopMoment::label);
            return self.unknown(&key.span(), name, "[on]", &known);
        };
        match value.get_ref().as_array() {
            Some(list) => list.iter().for_each(|it| self.reaction(layer, on, it)),
            None => self.reaction(layer, on, value),
        }
    }

    /// A command, or a table with a command and its timeout.
    fn reaction(&mut self, layer: &mut Layer, on: LoopMoment, value: &Value<'_>) {
        let at = value.span();
        let Some(table) = value.get_ref().as_table() else {
            if let Some(run) = self.read(on.label(), EXAMPLE, value, Written::command) {
                let reaction = Reaction { on, run, timeout_s: TIMEOUT_S };
                layer.reactions.push(self.sourced(&at, reaction));
            }
            return;
        };
        let (mut run, mut timeout_s) = (None, TIMEOUT_S);
        let faults = self.faults.len();
        for (key, value) in in_order(table) {
            match key.get_ref().as_ref() {
                "run" => run = self.read("run", EXAMPLE, value, Written::command),
                "timeout" => {
                    let seconds = self.read("timeout", "\"10m\"", value, Written::some_seconds);
                    timeout_s = seconds.unwrap_or(timeout_s);
                }
                name => self.unknown(&key.span(), name, &format!("[on] {}", on.label()), &REACTION),
            }
        }
        match run {
            Some(run) => {
                layer.reactions.push(self.sourced(&at, Reaction { on, run, timeout_s }));
            }
            None if self.faults.len() > faults => {}
            None => self.fault(&at, format!("{} has no command: run = {EXAMPLE}", on.label())),
        }
    }
}

// `[procedures.NAME]`: the recipe of a procedure, piece by piece, and its own terms. A value that
// cannot be used is refused with a working line.

const PROCEDURE: [&str; 6] = ["description", "context", "observe", "orient", "decide", "act"];

impl Reader<'_> {
    pub(super) fn procedure(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let place = format!("procedures.{name}");
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let what = "the name of a procedure is one word: [procedures.nightly]";
            return self.fault(&key.span(), what);
        }
        let Some(table) = value.get_ref().as_table() else { return self.no_table(key, &place) };
        let mut procedure = ProcedureSettings::default();
        for item in in_order(table) {
            self.procedure_key(&mut procedure, &place, item);
        }
        layer.procedures.insert(name.to_owned(), self.sourced(&key.span(), procedure));
    }

    fn procedure_key(&mut self, procedure: &mut ProcedureSettings, place: &str, item: Item<'_>) {
        let (key, value) = item;
        let name = key.get_ref().as_ref();
        let phase = Phase::ALL.into_iter().find(|phase| phase.label() == name);
        if let Some(phase) = phase {
            let alone = std::slice::from_ref(value);
            let texts = value.get_ref().as_array().map_or(alone, |list| list);
            for text in texts {
                let fragment = self.fragment(name, text);
                procedure.recipe.0.entry(phase).or_default().extend(fragment);
            }
        } else if name == "description" {
            procedure.description = self.read(name, "\"Fix what is broken\"", value, Written::text);
        } else if !self.term(&mut procedure.terms, "loop", item) {
            let known = [&PROCEDURE[..], &names_in("loop")].concat();
            self.unknown(&key.span(), name, &format!("[{place}]"), &known);
        }
    }

    fn fragment(&mut self, key: &str, value: &Value<'_>) -> Option<Fragment> {
        const EXAMPLE: &str = "\"prompts/look.md\"";
        let text = self.read(key, EXAMPLE, value, Written::text)?;
        let fragment = match fragment(&text, self.folder(), self.is_there) {
            Ok(fragment) => fragment,
            Err(wanted) => {
                self.refuse(key, wanted, value, EXAMPLE);
                return None;
            }
        };
        if let (Fragment::File(file), Some(checkout)) = (&fragment, self.checkout())
            && !file.starts_with(&checkout)
        {
            self.refuse(key, "a file of this checkout", value, EXAMPLE);
            return None;
        }
        Some(fragment)
    }
}
