//! The tables of a settings file, and the keys of the small tables. In a project's file `[keep]` is
//! ignored with a warning.

use toml::de::{DeTable, DeValue};

use super::checks::CHECK;
use super::terms::names_in;
use super::{KeyText, Reader, Whose, in_order};
use crate::engine::settings::Layer;

const TABLES: [&str; 8] = ["loop", "check", "agent", "agents", "procedures", "on", "wait", "keep"];

/// The table that holds a key, as a file writes it; what `[loop]` may hold, too, has its own.
pub(super) fn table_of(key: &str) -> Option<&'static str> {
    let tables = [
        ("[agent]", names_in("agent")),
        ("[loop]", names_in("loop")),
        ("[[check]]", CHECK.to_vec()),
    ];
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
