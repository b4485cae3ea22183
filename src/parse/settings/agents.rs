//! `[agent]`, the agent that fresh processes run, and `[agents.NAME]`, agents of the user's own.

use toml::de::DeTable;

use super::{Key, Reader, Value, in_order};
use crate::engine::agent::{Dialect, Permissions, PromptDoor};
use crate::engine::settings::{AgentArguments, AgentEntry, Layer};

pub(super) const AGENT: [&str; 4] = ["name", "model", "args", "permissions"];
pub(super) const AGENTS: [&str; 8] =
    ["like", "command", "args", "prompt", "output", "permissions", "max_turns", "model"];
const WORDS: &str = "a list of words, each in quotes";

impl Reader<'_> {
    pub(super) fn agent(&mut self, layer: &mut Layer, table: &DeTable<'_>) {
        for (key, value) in in_order(table) {
            let at = value.span();
            match key.get_ref().as_ref() {
                "name" => {
                    let name = self.text("name", "\"claude\"", value);
                    if let Some(name) = name
                        && self.once(layer.agent.as_ref(), key, "[loop] agent")
                    {
                        layer.agent = Some(self.sourced(&at, name));
                    }
                }
                "model" => self.model(layer, key, "[loop] model", value),
                "args" => {
                    if let Some(list) = self.words("args", "[\"--effort\", \"high\"]", value) {
                        let arguments = AgentArguments { list, of: None };
                        layer.agent_arguments = Some(self.sourced(&at, arguments));
                    }
                }
                "permissions" => {
                    let kind = self.permissions(value);
                    if let Some(kind) = kind
                        && self.once(layer.permissions.as_ref(), key, "[loop] permissions")
                    {
                        layer.permissions = Some(self.sourced(&at, kind));
                    }
                }
                name => self.unknown(&key.span(), name, "[agent]", &AGENT),
            }
        }
    }

    pub(super) fn agents_entry(&mut self, layer: &mut Layer, key: &Key<'_>, value: &Value<'_>) {
        let name = key.get_ref().as_ref();
        let place = format!("agents.{name}");
        let Some(table) = value.get_ref().as_table() else { return self.no_table(key, &place) };
        let mut entry = AgentEntry::default();
        let faults = self.faults.len();
        for (key, value) in in_order(table) {
            self.agents_key(&mut entry, &place, key, value);
        }
        if self.faults.len() == faults {
            layer.agents.insert(name.to_owned(), self.sourced(&key.span(), entry));
        }
    }

    fn agents_key(
        &mut self,
        entry: &mut AgentEntry,
        place: &str,
        key: &Key<'_>,
        value: &Value<'_>,
    ) {
        match key.get_ref().as_ref() {
            "like" => entry.like = self.text("like", "\"claude\"", value),
            "command" => {
                let example = "[\"claude\", \"-p\"]";
                let words = self.words("command", example, value);
                if words.as_ref().is_some_and(|words| words.first().is_none_or(String::is_empty)) {
                    self.refuse("command", "a list that begins with a program", value, example);
                }
                entry.command = words;
            }
            "args" => {
                let words = self.words("args", "[\"--effort\", \"high\"]", value);
                entry.arguments = words.unwrap_or_default();
            }
            "prompt" => {
                let doors = PromptDoor::ALL.map(|door| (door.label(), door));
                entry.prompt = self.choice("prompt", &doors, "stdin", value);
            }
            "output" => {
                let dialects = Dialect::ALL.map(|dialect| (dialect.label(), dialect));
                entry.output = self.choice("output", &dialects, "text", value);
            }
            "permissions" => match value.get_ref().as_table() {
                Some(table) => self.permission_arguments(entry, place, table),
                None => self.refuse("permissions", "a table", value, "{ bypass = [\"--yolo\"] }"),
            },
            "max_turns" => entry.max_turns = self.text("max_turns", "\"--max-turns\"", value),
            "model" => entry.model = self.text("model", "\"--model\"", value),
            name => self.unknown(&key.span(), name, &format!("[{place}]"), &AGENTS),
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
            if let Some(words) = self.words(name, "[\"--yolo\"]", value) {
                entry.permissions.insert(kind, words);
            }
        }
    }

    /// A list of arguments.
    fn words(&mut self, key: &str, example: &str, value: &Value<'_>) -> Option<Vec<String>> {
        let words = value.get_ref().as_array().and_then(|list| {
            let words = list.iter().map(|word| word.get_ref().as_str().map(str::to_owned));
            words.collect::<Option<Vec<String>>>()
        });
        let words = words.filter(|words| !words.iter().any(|word| word.contains('\0')));
        if words.is_none() {
            self.refuse(key, WORDS, value, example);
        }
        words
    }
}
