//! The tables and keys of a settings file, and what each is good for.

use toml::de::{DeTable, DeValue};

use super::{Key, Reader, Value, in_order};
use crate::engine::contract::{Check, Role};
use crate::engine::promise::Promise;
use crate::engine::settings::merge::ROLES;
use crate::engine::settings::{Limit, NamedCheck, Unit};
use crate::parse::spelling::nearest;

const TABLES: [&str; 3] = ["loop", "check", "wait"];
const LOOP: [&str; 10] = [
    "max_iterations",
    "max_duration",
    "max_cost",
    "max_tokens",
    "completion_promise",
    "failure_threshold",
    "stall",
    "verify",
    "gate",
    "until",
];
const CHECK: [&str; 5] = ["name", "run", "role", "timeout", "success_exit_code"];
const WAIT: [&str; 1] = ["max"];

/// The table, as a file writes it, that holds a key.
pub(super) fn table_of(key: &str) -> Option<&'static str> {
    let tables = [("[loop]", &LOOP[..]), ("[[check]]", &CHECK[..])];
    tables.iter().find(|(_, keys)| keys.contains(&key)).map(|(table, _)| *table)
}

impl Reader<'_> {
    pub(super) fn root(&mut self, root: &DeTable<'_>) {
        for (key, value) in in_order(root) {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("loop", DeValue::Table(table)) => self.loop_table(table),
                ("wait", DeValue::Table(table)) => self.wait_table(table),
                (name @ ("loop" | "wait"), _) => {
                    let what = format!("{name} is a table: write its keys under a line [{name}]");
                    self.fault(&key.span(), what);
                }
                ("check", DeValue::Array(checks)) => checks.iter().for_each(|it| self.check(it)),
                ("check", _) => {
                    let what = "check is a list of tables: write [[check]], in double brackets";
                    self.fault(&key.span(), what);
                }
                (name, _) => self.unknown(&key.span(), name, "", &TABLES),
            }
        }
    }

    fn loop_table(&mut self, table: &DeTable<'_>) {
        for (key, value) in in_order(table) {
            let name = key.get_ref().as_ref();
            if let Some(limit) = Limit::ALL.into_iter().find(|it| it.key() == ("loop", name)) {
                self.limit(limit, value);
            } else if let Some(role) = ROLES.into_iter().find(|role| role.label() == name) {
                self.commands(role, value);
            } else if name == "completion_promise" {
                self.promise(value);
            } else {
                self.unknown(&key.span(), name, "[loop]", &LOOP);
            }
        }
    }

    fn wait_table(&mut self, table: &DeTable<'_>) {
        for (key, value) in in_order(table) {
            match key.get_ref().as_ref() {
                "max" => self.limit(Limit::MaxWait, value),
                name => self.unknown(&key.span(), name, "[wait]", &WAIT),
            }
        }
    }

    fn limit(&mut self, limit: Limit, value: &Value<'_>) {
        let (_, key) = limit.key();
        let number = match limit.unit() {
            Unit::Iterations => self.count(key, value),
            Unit::Seconds => self.seconds(key, value),
            Unit::Micros => self.micros(key, value),
            Unit::Tokens => self.tokens(key, value),
        };
        if let Some(number) = number {
            let sourced = self.sourced(&value.span(), number);
            self.read.layer.limits.insert(limit, sourced);
        }
    }

    fn promise(&mut self, value: &Value<'_>) {
        let Some(text) = self.text("completion_promise", "\"ALL DONE\"", value) else { return };
        match Promise::new(&text) {
            Ok(promise) => self.read.layer.promise = Some(self.sourced(&value.span(), promise)),
            Err(error) => self.fault(&value.span(), format!("completion_promise: {error}")),
        }
    }

    fn commands(&mut self, role: Role, list: &Value<'_>) {
        let key = role.label();
        let Some(commands) = list.get_ref().as_array() else {
            self.refuse(key, "a list of commands", list, "[\"cargo test\"]");
            return;
        };
        for command in commands {
            if let Some(run) = self.command(key, "[\"cargo test\"]", command) {
                let check = NamedCheck::from(Check::new(run, role));
                let check = self.sourced(&command.span(), check);
                self.read.layer.checks.push(check);
            }
        }
    }

    fn check(&mut self, value: &Value<'_>) {
        let at = value.span();
        let Some(table) = value.get_ref().as_table() else {
            self.fault(&at, "check is a list of tables: write [[check]], in double brackets");
            return;
        };
        let mut named = NamedCheck::from(Check::new("", Role::Verify));
        let faults = self.faults.len();
        for (key, value) in in_order(table) {
            self.check_key(&mut named, key, value);
        }
        if self.faults.len() > faults {
            return;
        }
        if named.check.run.is_empty() {
            self.fault(&at, "this [[check]] has no command: run = \"cargo test\"");
            return;
        }
        let sourced = self.sourced(&at, named);
        self.read.layer.checks.push(sourced);
    }

    fn check_key(&mut self, named: &mut NamedCheck, key: &Key<'_>, value: &Value<'_>) {
        let check = &mut named.check;
        match key.get_ref().as_ref() {
            "name" => named.name = self.name(value),
            "run" => check.run = self.command("run", "\"cargo test\"", value).unwrap_or_default(),
            "role" => check.role = self.role(value).unwrap_or(Role::Verify),
            "timeout" => match self.seconds("timeout", value) {
                Some(0) => self.refuse("timeout", "a time of at least a second", value, "\"10m\""),
                Some(seconds) => check.timeout_s = seconds,
                None => {}
            },
            name @ "success_exit_code" => {
                let code = value.get_ref().as_integer().and_then(|it| it.as_str().parse().ok());
                match code.filter(|code| (0..=255).contains(code)) {
                    Some(code) => check.success_exit_code = code,
                    None => self.refuse(name, "an exit status from 0 to 255", value, "0"),
                }
            }
            name => self.unknown(&key.span(), name, "[[check]]", &CHECK),
        }
    }

    fn name(&mut self, value: &Value<'_>) -> Option<String> {
        let name = self.text("name", "\"tests\"", value)?;
        let checks = &self.read.layer.checks;
        if checks.iter().any(|check| check.value.name.as_ref() == Some(&name)) {
            self.fault(&value.span(), format!("two checks have the name `{name}`: rename one"));
            return None;
        }
        Some(name)
    }

    fn role(&mut self, value: &Value<'_>) -> Option<Role> {
        let text = value.get_ref().as_str().unwrap_or_default();
        let role = ROLES.into_iter().find(|role| role.label() == text);
        if role.is_none() {
            let meant = nearest(text, &ROLES.map(Role::label)).unwrap_or("verify");
            self.refuse("role", "verify, gate or until", value, &format!("\"{meant}\""));
        }
        role
    }
}
