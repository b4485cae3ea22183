//! The state of crew on this machine: the facts (here), and the conclusions (`rules`). Values
//! in, values out, without I/O. An absent `Option` was not there or was not reported.

pub mod node;
#[cfg(test)]
mod node_tests;
mod rules;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::Serialize;

pub use self::rules::findings;
use super::record::LoopId;
use super::text::word;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A name that programs may rely on.
    pub code: &'static str,
    pub severity: Severity,
    pub what: String,
    pub fix: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Loops do not run, or not correctly.
    Broken,
    /// A person should look into it.
    Warning,
    /// For information only.
    Note,
}

impl Severity {
    /// The word used on the page and in JSON.
    pub fn label(self) -> &'static str {
        word(&self)
    }
}

/// The name of the plugin and of its marketplace.
pub const NAME: &str = "crew";
/// The plugin as the client names it.
pub const PLUGIN: &str = "crew@crew";

/// One word of a command to type, quoted for a shell.
pub fn shell_word(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "/._-@:=+".contains(it);
    if word.chars().all(plain) {
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
    /// The client's data folder for a crew plugin that one session was given and nobody installed.
    pub given: &'static str,
}

/// Everything a doctor looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorFacts {
    pub product: &'static Product,
    /// The version of the crew that runs the check.
    pub version: String,
    pub client: ClientCheck,
    /// The plugins the client reports for the current folder; `None` if it reported none that can
    /// be read.
    pub plugins: Option<Vec<PluginCheck>>,
    /// The folder the client reads crew's plugin from.
    pub folder: Option<Folder>,
    pub settings: Vec<ClientSettings>,
    /// The state of crew's own settings files for the current folder.
    pub own: Own,
    /// A check of the newest loop here that fails in the scratch folder.
    pub scratch: Option<ScratchCheck>,
    pub home: HomeCheck,
    pub git: bool,
    /// Every different `crew` on `PATH`, in its order.
    pub crews: Vec<PathBuf>,
    pub loops: Vec<LoopFact>,
    /// Loops that the hooks of a live session are to judge, with their checkouts.
    pub in_sessions: Vec<(LoopId, PathBuf)>,
    /// Records that cannot be read, with the reason.
    pub unreadable: Vec<(LoopId, String)>,
}

/// The client's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCheck {
    /// It was not found.
    Absent,
    /// It exists but does not report its version; the text says why.
    Silent(String),
    /// It exists and reports its version.
    Present { program: PathBuf, version: Version },
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

/// The folder of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    /// The version in its `plugin.json`; `None` if that file is missing or not crew's.
    pub version: Option<String>,
    pub hooks: bool,
    pub program: PathBuf,
    pub runs: Program,
}

/// The binary behind a plugin's hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Absent,
    NotExecutable,
    /// It runs but reports no version.
    Silent,
    Version(String),
}

/// One settings file of the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientSettings {
    pub path: PathBuf,
    /// Why it cannot be parsed.
    pub broken: Option<String>,
    pub disables_hooks: bool,
    pub managed_hooks_only: bool,
    /// Whether it enables crew's plugin; `None` if it does not say.
    pub enables: Option<bool>,
}

/// crew's own settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// What cannot be read of them, each with its place.
    pub faults: Vec<String>,
    /// crew's variables that have invalid values.
    pub variables: Vec<String>,
    /// Keys that were ignored, each with its place.
    pub unknown: Vec<String>,
    /// The parts of the project's file that nobody has trusted on this machine.
    pub untrusted: Vec<String>,
    /// The agent they name for `crew run`, if it is not the built-in one and its program exists.
    pub agent: Option<String>,
    /// Messages that its program, if it is not the built-in one, and a fallback's are missing.
    pub agents_missing: Vec<String>,
    /// A message that a check's program is missing.
    pub check_missing: Option<String>,
}

/// A check that passed in the working tree and does not pass in the scratch folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchCheck {
    /// What happens there.
    pub why: String,
    /// What git ignores in the working tree and the scratch folder does not have.
    pub lacks: Vec<String>,
}

/// `$CREW_HOME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeCheck {
    pub root: PathBuf,
    /// Why nothing can be stored there.
    pub unusable: Option<String>,
    /// `None` if it does not exist yet.
    pub mode: Option<u32>,
    /// The file that pins the home for hooks, and that home.
    pub settled: Vec<(PathBuf, PathBuf)>,
}

/// A live loop whose client or crew process is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopFact {
    pub id: LoopId,
    pub checkout: PathBuf,
    /// The command that resumes it with its current driver.
    pub going_on: String,
}
