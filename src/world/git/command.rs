//! The one way git is started: with the settings that would make it run a program of the repository's,
//! or wait for a person, switched off.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::world::env;
use crate::world::process::{End, Ended, FOR_PARSING, FOR_READING, Order, run};

/// A setting of git for one command: name and value.
pub type Setting = (String, String);

/// One start of git.
#[derive(Debug)]
pub struct Command<'a> {
    pub folder: &'a Path,
    pub arguments: &'a [&'a str],
    /// They go by variables, because a name that holds a `=` cannot go by `-c`.
    pub settings: &'a [Setting],
    pub variables: &'a [(&'static str, String)],
    /// Whether it may reach a remote.
    pub online: bool,
    /// Whether its words to a person are kept, among the rest.
    pub with_errors: bool,
    pub within: Duration,
}

impl Command<'_> {
    /// Runs it to its end.
    pub fn run(&self, stop: impl Fn() -> bool) -> io::Result<Ended> {
        let fixed = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager"];
        let arguments: Vec<&str> = fixed.iter().chain(self.arguments).copied().collect();
        let theirs = env::text("GIT_CONFIG_COUNT").and_then(|count| count.parse::<u16>().ok());
        let theirs = usize::from(theirs.unwrap_or(0));
        let mut named = Vec::new();
        for (index, (name, value)) in (theirs..).zip(self.settings) {
            named.push((format!("GIT_CONFIG_KEY_{index}"), name));
            named.push((format!("GIT_CONFIG_VALUE_{index}"), value));
        }
        let mut variables = vec![
            ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("LC_ALL", "C".to_owned()),
            ("GIT_CONFIG_COUNT", (theirs + self.settings.len()).to_string()),
        ];
        if !self.online {
            // An object that is missing would be asked for by a program that the configuration names.
            variables.push(("GIT_NO_LAZY_FETCH", "1".to_owned()));
            variables.push(("GIT_ALLOW_PROTOCOL", "none".to_owned()));
        }
        variables.extend(self.variables.iter().cloned());
        variables.extend(named.iter().map(|(name, value)| (&**name, (*value).clone())));
        let order = Order {
            program: "git",
            arguments: &arguments,
            folder: self.folder,
            variables: &variables,
            within: self.within,
            keep: if self.with_errors { FOR_READING } else { FOR_PARSING },
            with_errors: self.with_errors,
        };
        run(&order, None, stop)
    }
}

/// What it printed, if it ended well and all of it was kept.
pub fn whole(ended: &Ended) -> Option<String> {
    let whole = ended.end == End::Exit(0) && !ended.cut;
    whole.then(|| String::from_utf8_lossy(&ended.output).into_owned())
}
