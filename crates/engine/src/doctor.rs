//! What the doctor reports: findings, each with its remedy, and what crew knows about a client on a
//! machine. Values only, without I/O.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A name that programs may rely on.
    pub code: String,
    pub severity: Severity,
    pub what: String,
    pub fix: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Loops do not run, or not correctly.
    Broken,
    /// The user should look into it.
    Warning,
    /// For information only.
    Note,
}

/// A machine or a cluster as it was examined.
#[derive(Debug)]
pub struct Examination {
    /// What was examined, and what was found.
    pub rows: Vec<(&'static str, String)>,
    /// The findings for programs, as a JSON object.
    pub facts: Value,
    pub findings: Vec<Finding>,
}

impl Examination {
    /// Whether something keeps loops from running.
    pub fn is_broken(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Broken)
    }
}

/// What crew reports of the compute node it runs on. Another version may leave fields out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeReport {
    /// The name that Slurm or else the machine itself gives it.
    pub node: String,
    /// The version of crew on that node.
    pub version: String,
    /// The agent's name.
    pub agent: String,
    /// Whether its model can be reached.
    pub model: String,
    /// How the remote treats crew's refs.
    pub remote: String,
    pub findings: Vec<Finding>,
}

/// The name of the plugin and of its marketplace.
pub const NAME: &str = "crew";
/// The plugin as the client names it.
pub const PLUGIN: &str = "crew@crew";

/// One word of a command to type, quoted for a shell.
pub fn shell_word(word: &str) -> String {
    let mut letters = word.chars();
    if !word.is_empty()
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "/._-@:=+,%".contains(letter))
    {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A client as its users know it.
#[derive(Debug, PartialEq, Eq)]
pub struct Product {
    pub name: &'static str,
    pub program: &'static str,
    /// The first version whose hooks can give the agent a prompt when it stops.
    pub oldest: Version,
    /// The newest version crew was tried with.
    pub newest_tried: Version,
    /// What older versions lack.
    pub older_lacks: &'static str,
    /// The client's data folder for a crew plugin that was passed to one session and never
    /// installed.
    pub given: &'static str,
}

/// A version of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl std::fmt::Display for Version {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A plugin that the client has installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginCheck {
    /// `name@marketplace`.
    pub id: String,
    /// `user`, `project` or `local`.
    pub scope: String,
    pub enabled: bool,
    /// The project that a `project` or `local` one belongs to.
    pub project: Option<PathBuf>,
    /// The client's copy.
    pub copy: Option<PathBuf>,
    /// Errors the client reports for it.
    pub errors: Vec<String>,
}

/// One settings file of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    pub path: PathBuf,
    pub disables_hooks: bool,
    pub managed_hooks_only: bool,
    /// Whether it enables crew's plugin; `None` if it does not say.
    pub enables: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_type_survives_spaces_and_quotes() {
        assert_eq!(shell_word("/home/me/.local"), "/home/me/.local");
        assert_eq!(shell_word("/a home/it's"), r"'/a home/it'\''s'");
    }
}
