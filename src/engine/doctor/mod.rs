//! The state of crew on this machine: what was looked at (here), and what to make of it (`findings`).
//! Values in, values out; an `Option` that is absent was not there or not told.

mod findings;
mod own;
mod rules;
/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A name that a program may rely on.
    pub code: &'static str,
    pub severity: Severity,
    pub what: String,
    pub fix: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Loops do not run, or not as they should.
    Broken,
    /// Something a person should see to.
    Warning,
    /// Good to know.
    Note,
}

impl Severity {
    /// The word used on the page and in JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use super::record::LoopId;

pub use self::findings::findings;

/// The name of the plugin and of its marketplace.
pub const NAME: &str = "crew";
/// The plugin as the client names it.
pub const PLUGIN: &str = "crew@crew";

/// A word of a command to type, as a shell takes it.
pub fn shell_word(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "/._-@:=+".contains(it);
    if word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A client as its user knows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Product {
    pub name: &'static str,
    pub program: &'static str,
    /// The first version whose hooks can give the agent words when it stops.
    pub oldest: Version,
    /// The newest version crew was tried with.
    pub newest_tried: Version,
    /// What older ones lack.
    pub older_lacks: &'static str,
    /// The variable that moves its cap on tool-less continuations in a row, and the one it has by
    /// itself.
    pub cap: &'static str,
    pub usual_cap: i64,
    /// Its folder for a plugin of crew's name that a session was given and nobody installed.
    pub given: &'static str,
}

/// Everything a doctor looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorFacts {
    pub product: &'static Product,
    /// Of the crew that looks.
    pub version: String,
    pub client: ClientCheck,
    /// The plugins the client tells of, for the folder looked from; `None` when it told nothing.
    pub plugins: Option<Vec<PluginCheck>>,
    /// The folder the client reads crew's plugin from.
    pub folder: Option<Folder>,
    pub settings: Vec<ClientSettings>,
    /// What crew's own settings files come to in the folder looked from.
    pub own: Own,
    /// The cap in the environment.
    pub cap: Option<String>,
    pub home: HomeCheck,
    pub git: bool,
    /// Every different `crew` on `PATH`, in its order.
    pub crews: Vec<PathBuf>,
    pub loops: Vec<LoopFact>,
    /// Records that cannot be read, with the reason.
    pub unreadable: Vec<(LoopId, String)>,
    /// Temporary files of writes that a crash cut off.
    pub leftovers: Vec<PathBuf>,
}

/// The client's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCheck {
    Absent,
    /// It is there and does not say its version.
    Silent(String),
    Present {
        program: PathBuf,
        version: Version,
    },
}

/// A version as three numbers.
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
    /// Where a `project` or `local` one belongs to.
    pub project: Option<PathBuf>,
    /// The client's copy.
    pub copy: Option<PathBuf>,
    /// What the client has against it.
    pub errors: Vec<String>,
}

/// The folder of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    /// The version its `plugin.json` gives; `None` when that is missing or no crew's.
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
    /// It runs and names no version.
    Silent,
    Version(String),
}

/// One settings file of the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientSettings {
    pub path: PathBuf,
    /// Why it cannot be understood.
    pub broken: Option<String>,
    pub disables_hooks: bool,
    pub managed_hooks_only: bool,
    /// What it says of crew's plugin.
    pub enables: Option<bool>,
    /// The cap in its environment for hooks.
    pub cap: Option<String>,
}

/// crew's own settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// What cannot be read of them, each with its place.
    pub faults: Vec<String>,
    /// Variables of crew's that cannot be used.
    pub variables: Vec<String>,
    /// Keys that were passed over, each with its place.
    pub unknown: Vec<String>,
    /// What of the project's file nobody has trusted here.
    pub untrusted: Vec<String>,
    /// The agent they name for `crew run`, if it is not the built-in one and its program is there.
    pub agent: Option<String>,
    /// That its program is not there, where it is not the built-in one.
    pub agent_missing: Option<String>,
    /// That a check's program is not there.
    pub check_missing: Option<String>,
}

/// `$CREW_HOME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeCheck {
    pub root: PathBuf,
    /// Why nothing can be kept there.
    pub unusable: Option<String>,
    /// `None` where it is not made yet.
    pub mode: Option<u32>,
    /// The homes that hooks were told to use, by the file that tells them.
    pub settled: Vec<(PathBuf, PathBuf)>,
}

/// A loop that a person should know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopFact {
    pub id: LoopId,
    pub checkout: PathBuf,
    /// The command that goes on with it, in the driver it has.
    pub going_on: String,
    pub trouble: LoopTrouble,
}

/// What is the matter with a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopTrouble {
    /// It is live, and its client or crew is gone.
    OwnerGone,
    /// It is running, and no boundary was reached for so many hours.
    Quiet {
        hours: i64,
    },
    Interrupted,
}
