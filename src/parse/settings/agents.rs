//! `[agents.NAME]`: the user's own agents. A value that cannot be used is refused with a working
//! line.

use toml::de::DeTable;

use super::values::Written;
use super::{Item, KeyText, Reader, Value, in_order};
use crate::engine::record::{Dialect, Permissions, PromptVia};
use crate::engine::settings::{AgentEntry, Layer};

const AGENTS: [&str; 12] = [
    "like",
    "command",
    "args",
    "prompt",
    "output",
    "permissions",
    "max_turns",
    "model",
    "allow",
    "environment",
    "usage_file",
    "login",
];
/// An argument that allows a command, for examples.
const ALLOW: &str = "\"--allow=Bash({check})\"";
/// A table of variables, for examples.
const ENVIRONMENT: &str = "{ LOG_LEVEL = \"error\" }";

impl Reader<'_> {
    pub(super) fn agents_entry(&mut self, layer: &mut Layer, key: &KeyText<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let place = format!("agents.{name}");
        let Some(table) = value.get_ref().as_table() else { return self.no_table(key, &place) };
        let mut entry = AgentEntry::default();
        let faults = self.faults.len();
        for item in in_order(table) {
            self.agents_key(&mut entry, &place, item);
        }
        if self.faults.len() == faults {
            layer.agents.insert(name.to_owned(), self.sourced(&key.span(), entry));
        }
    }

    fn agents_key(&mut self, entry: &mut AgentEntry, place: &str, (key, value): Item<'_>) {
        match key.get_ref().as_ref() {
            "like" => entry.like = self.read("like", "\"claude\"", value, Written::text),
            "command" => {
                let example = "[\"claude\", \"-p\"]";
                let words = self.read("command", example, value, Written::words);
                if words.as_ref().is_some_and(|words| words.first().is_none_or(String::is_empty)) {
                    self.refuse("command", "a list that begins with a program", value, example);
                }
                entry.command = words;
            }
            "args" => {
                let words = self.read("args", "[\"--effort\", \"high\"]", value, Written::words);
                entry.arguments = words.unwrap_or_default();
            }
            "prompt" => {
                entry.prompt = self.read("prompt", "\"stdin\"", value, |it| {
                    it.choice(&PromptVia::ALL, PromptVia::label)
                });
            }
            "output" => {
                let outputs = self.outputs;
                let choice = |it: Written<'_>| it.choice(outputs, |name| name);
                let found = self.read("output", "\"text\"", value, choice);
                entry.output = found.map(|name| Dialect(name.into()));
            }
            "permissions" => match value.get_ref().as_table() {
                Some(table) => self.permission_arguments(entry, place, table),
                None => self.refuse("permissions", "a table", value, "{ bypass = [\"--yolo\"] }"),
            },
            "max_turns" => {
                entry.max_turns = self.read("max_turns", "\"--max-turns\"", value, Written::text);
            }
            "model" => entry.model = self.read("model", "\"--model\"", value, Written::text),
            "allow" => {
                entry.allow = self.read("allow", ALLOW, value, Written::text);
                let is_whole = |it: &String| it.contains("{check}") || it.contains("{words}");
                if entry.allow.as_ref().is_some_and(|it| !is_whole(it)) {
                    self.refuse("allow", "an argument with {check} in it", value, ALLOW);
                }
            }
            "environment" => match value.get_ref().as_table() {
                Some(table) => self.variables(entry, table),
                None => self.refuse("environment", "a table", value, ENVIRONMENT),
            },
            "usage_file" => {
                entry.usage_file =
                    self.read("usage_file", "\"--usage-file\"", value, Written::text);
            }
            "login" => {
                entry.login = self.read("login", "[\"login\", \"status\"]", value, Written::words);
            }
            name => self.unknown(&key.span(), name, &format!("[{place}]"), &AGENTS),
        }
    }

    fn variables(&mut self, entry: &mut AgentEntry, table: &DeTable<'_>) {
        for (key, value) in in_order(table) {
            let name = key.get_ref().as_ref();
            let is_name = !name.is_empty() && !name.contains(['=', '\0']);
            match self.read(name, "\"1\"", value, Written::text) {
                Some(text) if is_name && !text.contains('\0') => {
                    entry.environment.insert(name.to_owned(), text);
                }
                Some(_) => self.refuse(name, "a variable without = or NUL", value, "\"1\""),
                None => {}
            }
        }
    }

    fn permission_arguments(&mut self, entry: &mut AgentEntry, place: &str, table: &DeTable<'_>) {
        for (key, value) in in_order(table) {
            let name = key.get_ref().as_ref();
            let Some(kind) = Permissions::ALL.into_iter().find(|kind| kind.label() == name) else {
                let known = Permissions::ALL.map(Permissions::label);
                self.unknown(&key.span(), name, &format!("[{place}.permissions]"), &known);
                continue;
            };
            if let Some(words) = self.read(name, "[\"--yolo\"]", value, Written::words) {
                entry.permissions.insert(kind, words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::parse::settings::{Whose, parse};

    /// The entry as the file would write it, or what is wrong.
    fn read(lines: &str) -> String {
        let file = format!("[agents.mine]\n{lines}");
        let read = parse(&file, Path::new("crew.toml"), Whose::Users, &["text"], &|_| true);
        read.map_or_else(
            |faults| format!("{faults:?}"),
            |read| read.layer.agents["mine"].value.to_string(),
        )
    }

    #[test]
    fn what_an_agent_needs_to_tell_what_it_does_is_part_of_what_a_person_trusts() {
        let lines = "command = [\"m\"]\nallow = \"--allow=Bash({check})\"\n\
                     usage_file = \"--used\"\nenvironment = { LEVEL = \"low\" }";
        assert_eq!(
            read(lines),
            "allow = \"--allow=Bash({check})\", usage_file = \"--used\", \
             environment.LEVEL = \"low\", command = [\"m\"]"
        );
    }

    #[test]
    fn a_rule_without_a_command_and_a_variable_that_cannot_be_one_are_refused() {
        for (line, expected) in [
            ("allow = \"--allow\"", "an argument with {check} in it"),
            ("environment = \"LEVEL=low\"", "a table"),
            ("environment = { \"A=B\" = \"x\" }", "a variable without = or NUL"),
            ("environment = { LEVEL = 1 }", "LEVEL takes a text in quotes"),
        ] {
            assert!(read(line).contains(expected), "{line}: {}", read(line));
        }
    }
}
