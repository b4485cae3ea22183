//! The tables of a settings file, and the keys of the small ones.

use toml::de::{DeTable, DeValue};

use super::checks::CHECK;
use super::terms::LOOP;
use super::{Key, Reader, Value, Whose, in_order};
use crate::engine::settings::{Layer, Limit, Sourced};

const TABLES: [&str; 8] = ["loop", "check", "agent", "agents", "procedures", "on", "wait", "keep"];
const WAIT: [&str; 1] = ["max"];
const KEEP: [&str; 2] = ["logs", "days"];

/// The table, as a file writes it, that holds a key.
pub(super) fn table_of(key: &str) -> Option<&'static str> {
    let tables = [("[loop]", &LOOP[..]), ("[[check]]", &CHECK[..])];
    tables.iter().find(|(_, keys)| keys.contains(&key)).map(|(table, _)| *table)
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
    pub(super) fn no_table(&mut self, key: &Key<'_>, name: &str) {
        let what = format!("{name} is a table: write its keys under a line [{name}]");
        self.fault(&key.span(), what);
    }

    fn table(&mut self, layer: &mut Layer, name: &str, table: &DeTable<'_>) {
        match name {
            "agent" => return self.agent(layer, table),
            "keep" if self.whose == Whose::Projects => return self.is_not_the_projects(table),
            _ => {}
        }
        for (key, value) in in_order(table) {
            match name {
                "loop" => {
                    if !self.term(layer, key, value) {
                        self.unknown(&key.span(), key.get_ref(), "[loop]", &LOOP);
                    }
                }
                "agents" => self.agents_entry(layer, key, value),
                "procedures" => self.procedure(layer, key, value),
                "on" => self.reactions(layer, key, value),
                "wait" => self.limits_of(layer, ("wait", &WAIT), key, value),
                _ => self.limits_of(layer, ("keep", &KEEP), key, value),
            }
        }
    }

    /// A table that holds nothing but limits.
    fn limits_of(
        &mut self,
        layer: &mut Layer,
        (table, known): (&str, &[&'static str]),
        key: &Key<'_>,
        value: &Value<'_>,
    ) {
        let name = key.get_ref().as_ref();
        match Limit::ALL.into_iter().find(|limit| limit.key() == (table, name)) {
            Some(limit) => self.limit(layer, limit, value),
            None => self.unknown(&key.span(), name, &format!("[{table}]"), known),
        }
    }

    /// The logs of every loop of this machine are not a project's to prune.
    fn is_not_the_projects(&mut self, table: &DeTable<'_>) {
        if let Some((key, _)) = in_order(table).first() {
            let origin = self.origin(&key.span());
            let what = "[keep] counts only in your own settings file, ignored";
            self.warnings.push(format!("{origin}: {what}"));
        }
    }

    /// Two keys of one setting in one file.
    pub(super) fn once<T>(
        &mut self,
        known: Option<&Sourced<T>>,
        key: &Key<'_>,
        other: &str,
    ) -> bool {
        let Some(known) = known else { return true };
        let what = format!(
            "{} says the same as {other} ({}): keep one of them",
            key.get_ref(),
            known.origin
        );
        self.fault(&key.span(), what);
        false
    }
}
