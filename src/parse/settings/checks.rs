//! `[[check]]`: a command that crew runs, with its name, role and terms. A value that cannot be
//! used is refused with a working line.

use super::values::Written;
use super::{Item, KeyText, Reader, Value, in_order};
use crate::engine::record::{Check, Role};
use crate::engine::settings::{Layer, NamedCheck};

pub(super) const CHECK: [&str; 6] =
    ["name", "run", "role", "timeout", "success_exit_code", "no_worse"];

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
        let mut named = NamedCheck::from(Check::new("", Role::Verify));
        let faults = self.faults.len();
        for (key, value) in in_order(table) {
            self.check_key(layer, &mut named, (key, value));
        }
        if self.faults.len() > faults {
            return;
        }
        if named.check.run.is_empty() {
            self.fault(&at, "this [[check]] has no command: run = \"cargo test\"");
            return;
        }
        layer.checks.push(self.sourced(&at, named));
    }

    fn check_key(&mut self, layer: &Layer, named: &mut NamedCheck, (key, value): Item<'_>) {
        let check = &mut named.check;
        match key.get_ref().as_ref() {
            "name" => named.name = self.name(layer, value),
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

    fn name(&mut self, layer: &Layer, value: &Value<'_>) -> Option<String> {
        let name = self.read("name", "\"tests\"", value, Written::text)?;
        if layer.checks.iter().any(|check| check.value.name.as_ref() == Some(&name)) {
            self.fault(&value.span(), format!("two checks have the name `{name}`: rename one"));
            return None;
        }
        Some(name)
    }
}
