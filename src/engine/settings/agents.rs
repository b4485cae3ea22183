//! What a settings file may say of an agent: its own command line, or what it changes of one that crew knows.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::engine::agent::{Dialect, Permissions, PromptDoor};

/// The agent where nobody names one.
pub const DEFAULT_AGENT: &str = "claude";

/// One `[agents.NAME]`; what it leaves out comes from the agent it is like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentEntry {
    /// The agent it starts from, one that crew knows or another entry; without it, the known one of its own
    /// name, if there is one.
    pub like: Option<String>,
    /// The program and its fixed arguments.
    pub command: Option<Vec<String>>,
    /// Stand behind the command's own.
    pub arguments: Vec<String>,
    pub prompt: Option<PromptDoor>,
    pub output: Option<Dialect>,
    pub permissions: BTreeMap<Permissions, Vec<String>>,
    pub max_turns: Option<String>,
    /// The option that names its model.
    pub model: Option<String>,
}

/// All of it on one line, as a file would write it: what is trusted. The command stands last.
impl fmt::Display for AgentEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut part = |key: &str, value: &dyn fmt::Debug| {
            let mut text = String::new();
            write!(text, "{key} = {value:?}").map(|()| parts.push(text))
        };
        if let Some(like) = &self.like {
            part("like", like)?;
        }
        if let Some(prompt) = self.prompt {
            part("prompt", &prompt.label())?;
        }
        if let Some(output) = self.output {
            part("output", &output.label())?;
        }
        for (kind, arguments) in &self.permissions {
            part(&format!("permissions.{}", kind.label()), arguments)?;
        }
        if let Some(option) = &self.max_turns {
            part("max_turns", option)?;
        }
        if let Some(option) = &self.model {
            part("model", option)?;
        }
        if !self.arguments.is_empty() {
            part("args", &self.arguments)?;
        }
        if let Some(command) = &self.command {
            part("command", command)?;
        }
        out.write_str(&parts.join(", "))
    }
}

/// `args` of `[agent]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentArguments {
    pub list: Vec<String>,
    /// The agent they are meant for: what one understands is an error to another. `None` is the agent in force
    /// in the tier that gives them.
    pub of: Option<String>,
}

/// `model` of `[agent]` or `[loop]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    pub name: String,
    /// The agent it is meant for, as with its arguments.
    pub of: Option<String>,
}
