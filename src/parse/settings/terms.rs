//! The terms of a loop: what `[loop]` may hold, and a procedure for itself.

use super::{Key, Reader, Value};
use crate::engine::agent::Permissions;
use crate::engine::contract::{Check, Role};
use crate::engine::promise::Promise;
use crate::engine::protect;
use crate::engine::settings::merge::ROLES;
use crate::engine::settings::{Layer, Limit, NamedCheck, Unit};

pub(super) const LOOP: [&str; 22] = [
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
    "timeout",
    "idle_timeout",
    "delay",
    "max_turns",
    "token_budget",
    "agent",
    "permissions",
    "commit",
    "push",
    "rebase",
    "awake",
    "protect",
];

impl Reader<'_> {
    /// Reads one of the terms; `false` when the key is none.
    pub(super) fn term(&mut self, layer: &mut Layer, key: &Key<'_>, value: &Value<'_>) -> bool {
        let at = value.span();
        let name = key.get_ref().as_ref();
        if let Some(limit) = Limit::ALL.into_iter().find(|it| it.key() == ("loop", name)) {
            self.limit(layer, limit, value);
            return true;
        }
        if let Some(role) = ROLES.into_iter().find(|role| role.label() == name) {
            self.commands(layer, role, value);
            return true;
        }
        match name {
            "completion_promise" => self.promise(layer, value),
            "agent" => {
                let name = self.text("agent", "\"claude\"", value);
                if let Some(name) = name
                    && self.once(layer.agent.as_ref(), key, "[agent] name")
                {
                    layer.agent = Some(self.sourced(&at, name));
                }
            }
            "permissions" => {
                let kind = self.permissions(value);
                if let Some(kind) = kind
                    && self.once(layer.permissions.as_ref(), key, "[agent] permissions")
                {
                    layer.permissions = Some(self.sourced(&at, kind));
                }
            }
            "commit" => layer.commit = self.switch("commit", value).map(|it| self.sourced(&at, it)),
            "push" => layer.push = self.switch("push", value).map(|it| self.sourced(&at, it)),
            "rebase" => self.rebase(layer, value),
            "awake" => layer.awake = self.switch("awake", value).map(|it| self.sourced(&at, it)),
            "protect" => self.protect(layer, value),
            _ => return false,
        }
        true
    }

    pub(super) fn limit(&mut self, layer: &mut Layer, limit: Limit, value: &Value<'_>) {
        let (_, key) = limit.key();
        let number = match limit.unit() {
            Unit::Iterations | Unit::Turns | Unit::Days => self.count(key, value),
            Unit::Seconds => self.seconds(key, value),
            Unit::Micros => self.micros(key, value),
            Unit::Tokens => self.tokens(key, value),
            Unit::Bytes => self.bytes(key, value),
        };
        if let Some(number) = number {
            layer.limits.insert(limit, self.sourced(&value.span(), number));
        }
    }

    pub(super) fn permissions(&mut self, value: &Value<'_>) -> Option<Permissions> {
        let kinds = Permissions::ALL.map(|kind| (kind.label(), kind));
        self.choice("permissions", &kinds, "accept-edits", value)
    }

    fn promise(&mut self, layer: &mut Layer, value: &Value<'_>) {
        if value.get_ref().as_bool() == Some(false) {
            layer.promise = Some(self.sourced(&value.span(), None));
            return;
        }
        let Some(text) = self.text("completion_promise", "\"ALL DONE\"", value) else { return };
        match Promise::new(&text) {
            Ok(promise) => layer.promise = Some(self.sourced(&value.span(), Some(promise))),
            Err(error) => self.fault(&value.span(), format!("completion_promise: {error}")),
        }
    }

    fn commands(&mut self, layer: &mut Layer, role: Role, list: &Value<'_>) {
        let key = role.label();
        let Some(commands) = list.get_ref().as_array() else {
            self.refuse(key, "a list of commands", list, "[\"cargo test\"]");
            return;
        };
        for command in commands {
            if let Some(run) = self.command(key, "[\"cargo test\"]", command) {
                let check = NamedCheck::from(Check::new(run, role));
                layer.checks.push(self.sourced(&command.span(), check));
            }
        }
    }

    fn rebase(&mut self, layer: &mut Layer, value: &Value<'_>) {
        let branch = match value.get_ref().as_bool() {
            Some(false) => None,
            // What begins with a hyphen would be an option of git's.
            _ => match value.get_ref().as_str() {
                Some(branch) if is_branch(branch) => Some(branch.to_owned()),
                _ => {
                    return self.refuse(
                        "rebase",
                        "a branch in quotes, or false",
                        value,
                        "\"main\"",
                    );
                }
            },
        };
        layer.rebase = Some(self.sourced(&value.span(), branch));
    }

    fn protect(&mut self, layer: &mut Layer, list: &Value<'_>) {
        const EXAMPLE: &str = "[\"Cargo.lock\", \"tests/**\"]";
        let Some(globs) = list.get_ref().as_array() else {
            return self.refuse("protect", "a list of paths", list, EXAMPLE);
        };
        for glob in globs {
            let Some(text) = self.text("protect", EXAMPLE, glob) else { continue };
            match protect::glob(&text) {
                Ok(_) => layer.protect.push(self.sourced(&glob.span(), text)),
                Err(wanted) => self.refuse("protect", &wanted, glob, EXAMPLE),
            }
        }
    }
}

/// Whether git could take a text for a branch; whether there is one of this name is seen at the start.
pub(super) fn is_branch(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}
