//! The one way git is started: with the settings that would make it run a program of the repository's,
//! or wait for a person, switched off.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::world::env;
use crate::world::process::{Capture, ExitCause, FinishedProcess, ProcessSpec, run};

/// A setting of git for one command: name and value.
pub type Setting = (String, String);

/// What points git at a repository whatever the folder: git sets it for its hooks, and crew may be started by one.
pub const OF_ANOTHER: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
];

/// One start of git.
#[derive(Debug)]
pub struct Command<'a> {
    pub folder: &'a Path,
    pub arguments: &'a [&'a str],
    /// They go by variables, because a name that holds a `=` cannot go by `-c`.
    pub settings: &'a [Setting],
    /// Variables of this process's that git is not given.
    pub without: &'a [OsString],
    pub variables: &'a [(&'a str, String)],
    /// Whether a repository above the folder will do where there is none.
    pub climbs: bool,
    /// What it reads.
    pub input: &'a [u8],
    /// Whether it may reach a remote.
    pub online: bool,
    /// Whether its words to a person are kept, among the rest.
    pub with_errors: bool,
    pub within: Duration,
}

impl Command<'_> {
    /// Runs it to its end.
    pub fn run(&self, stop: impl Fn() -> bool) -> io::Result<FinishedProcess> {
        let fixed = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager"];
        let arguments: Vec<&str> = fixed.iter().chain(self.arguments).copied().collect();
        let theirs = usize::from(self.settings_before());
        let mut named = Vec::new();
        for (index, (name, value)) in (theirs..).zip(self.settings) {
            named.push((format!("GIT_CONFIG_KEY_{index}"), name));
            named.push((format!("GIT_CONFIG_VALUE_{index}"), value));
        }
        let mut variables = self.variables.to_vec();
        variables.extend([
            ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("LC_ALL", "C".to_owned()),
            ("GIT_CONFIG_COUNT", (theirs + self.settings.len()).to_string()),
        ]);
        if let (false, Some(above)) = (self.climbs, self.folder.parent()) {
            variables.push(("GIT_CEILING_DIRECTORIES", above.display().to_string()));
        }
        if !self.online {
            // An object that is missing would be asked for by a program that the configuration names.
            variables.push(("GIT_NO_LAZY_FETCH", "1".to_owned()));
            variables.push(("GIT_ALLOW_PROTOCOL", "none".to_owned()));
        }
        variables.extend(named.iter().map(|(name, value)| (&**name, (*value).clone())));
        let without: Vec<OsString> =
            OF_ANOTHER.iter().map(OsString::from).chain(self.without.iter().cloned()).collect();
        let spec = ProcessSpec {
            program: "git",
            arguments: &arguments,
            folder: self.folder,
            without: &without,
            variables: &variables,
            input: Some(self.input).filter(|input| !input.is_empty()),
            within: Some(self.within),
        };
        let capture = if self.with_errors { Capture::ForReading } else { Capture::ForParsing };
        run(&spec, capture, None, stop)
    }

    /// How many settings the environment that git gets names already.
    fn settings_before(&self) -> u16 {
        const COUNT: &str = "GIT_CONFIG_COUNT";
        let given = self.variables.iter().find(|(name, _)| *name == COUNT);
        let is_passed = self.without.iter().all(|name| name != COUNT);
        let inherited = is_passed.then(|| env::text(COUNT)).flatten();
        given.map(|(_, count)| count.clone()).or(inherited).map_or(0, |it| it.parse().unwrap_or(0))
    }
}

/// What it printed, if it ended well and all of it was kept.
pub fn whole(ended: &FinishedProcess) -> Option<String> {
    let whole = ended.cause == ExitCause::Exit(0) && !ended.cut;
    whole.then(|| String::from_utf8_lossy(&ended.output).into_owned())
}
