//! What a settings file may say about an agent: its own command line, or its changes to a known
//! agent. It resolves no names and starts nothing.

use std::collections::BTreeMap;
use std::fmt;

use crate::engine::record::{Dialect, Permissions, PromptVia};

/// One `[agents.NAME]`; what it leaves out comes from the agent it is like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentEntry {
    /// The agent it starts from: one that crew knows, or another entry. Without it, the known agent
    /// of the same name, if there is one.
    pub like: Option<String>,
    /// The program and its fixed arguments.
    pub command: Option<Vec<String>>,
    /// Placed after the command's own.
    pub arguments: Vec<String>,
    pub prompt: Option<PromptVia>,
    pub output: Option<Dialect>,
    pub permissions: BTreeMap<Permissions, Vec<String>>,
    pub max_turns: Option<String>,
    /// The option that names its model.
    pub model: Option<String>,
    /// The argument that allows a command.
    pub allow: Option<String>,
    /// Variables that it is started with.
    pub environment: BTreeMap<String, String>,
    /// The option that names the file in which it leaves what it used.
    pub usage_file: Option<String>,
    /// The arguments that ask whether it is logged in.
    pub login: Option<Vec<String>>,
}

/// All of it on one line, as a file would write it; this text is what a person trusts. The command
/// comes last.
impl fmt::Display for AgentEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |key: &str, value: &dyn fmt::Debug| format!("{key} = {value:?}");
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.like.as_ref().map(|like| part("like", like)));
        parts.extend(self.prompt.map(|prompt| part("prompt", &prompt.label())));
        parts.extend(self.output.as_ref().map(|output| part("output", &output.0)));
        for (kind, arguments) in &self.permissions {
            parts.push(part(&format!("permissions.{}", kind.label()), arguments));
        }
        parts.extend(self.max_turns.as_ref().map(|option| part("max_turns", option)));
        parts.extend(self.model.as_ref().map(|option| part("model", option)));
        parts.extend(self.allow.as_ref().map(|argument| part("allow", argument)));
        parts.extend(self.usage_file.as_ref().map(|option| part("usage_file", option)));
        let variables = self.environment.iter();
        parts.extend(variables.map(|(name, value)| part(&format!("environment.{name}"), value)));
        parts.extend(self.login.as_ref().map(|words| part("login", words)));
        let arguments = Some(&self.arguments).filter(|arguments| !arguments.is_empty());
        parts.extend(arguments.map(|arguments| part("args", arguments)));
        parts.extend(self.command.as_ref().map(|command| part("command", command)));
        out.write_str(&parts.join(", "))
    }
}
