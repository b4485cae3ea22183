//! The keys with one value, and the lists of `[loop]`. The engine's table of keys says what a table
//! may hold.

use super::values::{Written, example};
use super::{Item, Reader, Value};
use crate::engine::boundary::protect;
use crate::engine::record::{Check, Role};
use crate::engine::settings::{Key, Kind, Layer, NamedCheck};

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
            _ => self.scalar(layer, key, table, item),
        }
        true
    }

    fn scalar(&mut self, layer: &mut Layer, key: Key, table: &str, (name, value): Item<'_>) {
        let row = key.row();
        let read = self.read(name.get_ref(), example(row), value, |it| it.read(row.kind));
        let Some(read) = read else { return };
        let Some(known) = layer.values.get(&key) else {
            layer.values.insert(key, self.sourced(&value.span(), read));
            return;
        };
        // One file sets the same setting with two keys.
        let other = if table == "loop" { key.table() } else { "loop" };
        let what = format!(
            "{} says the same as [{other}] {} ({}): keep one of them",
            name.get_ref(),
            key.name_in(other).unwrap_or_default(),
            known.origin
        );
        self.fault(&name.span(), what);
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
                let check = NamedCheck::from(Check::new(run, role));
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
