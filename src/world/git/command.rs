//! The only place where git is started. Settings that would make it run a program of the
//! repository, or wait for a person, are switched off.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Git;
use crate::parse::git::zero_list;
use crate::world::env;
use crate::world::files::disk;
use crate::world::process::{Call, Capture, ExitCause, FinishedProcess, Stop};

/// A git setting for one command: name and value.
pub type Setting = (String, String);

/// A partial clone lacks what is outside its sparse checkout.
pub const WRITE_TREE: &[&str] = &["write-tree", "--missing-ok"];
/// The name of a fleet's own bare repository.
const HUB: &str = "hub.git";
/// The longest a look at the working tree may take.
const LOOK: Duration = Duration::from_secs(20);

/// One start of git.
#[derive(Clone, Copy, Default)]
pub struct Command<'a> {
    /// They are passed in variables, because `-c` cannot pass a name that contains `=`.
    pub settings: &'a [Setting],
    /// Variables of this process that git does not get.
    pub without: &'a [OsString],
    pub variables: &'a [(&'a str, String)],
    /// Whether a repository in a parent folder is accepted.
    pub climbs: bool,
    /// The standard input.
    pub input: &'a [u8],
    /// Whether it may reach a remote.
    pub online: bool,
    /// Whether its standard error is kept, mixed with the rest.
    pub with_errors: bool,
    /// `None` is the time of a look.
    pub within: Option<Duration>,
    /// Ends it early.
    pub stop: Option<Stop<'a>>,
}

impl Command<'_> {
    /// Runs the command to its end.
    pub fn run(&self, folder: &Path, arguments: &[&str]) -> io::Result<FinishedProcess> {
        let off = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
        let fixed = [&off[..], &["-c", "i18n.logOutputEncoding=UTF-8", "--no-pager"]].concat();
        let bare: &[&str] = if is_hub(folder) { &["--git-dir=."] } else { &[] };
        let theirs = usize::from(self.settings_before());
        let mut named = Vec::new();
        for (index, (name, value)) in (theirs..).zip(self.settings) {
            named.push((format!("GIT_CONFIG_KEY_{index}"), name));
            named.push((format!("GIT_CONFIG_VALUE_{index}"), value));
        }
        // A look leaves the index as it is, unless its variables say otherwise.
        let mut variables = vec![("GIT_OPTIONAL_LOCKS", "0".to_owned())];
        variables.extend(self.variables.iter().cloned());
        variables.extend([
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            // Otherwise a ref below refs/replace could substitute one object for another.
            ("GIT_NO_REPLACE_OBJECTS", "1".to_owned()),
            ("LC_ALL", "C".to_owned()),
            ("GIT_CONFIG_COUNT", (theirs + self.settings.len()).to_string()),
        ]);
        if let (false, Some(above)) = (self.climbs, folder.parent()) {
            variables.push(("GIT_CEILING_DIRECTORIES", above.display().to_string()));
        }
        if !self.online {
            // Otherwise a missing object would be fetched by a program that the configuration
            // names.
            variables.push(("GIT_NO_LAZY_FETCH", "1".to_owned()));
            variables.push(("GIT_ALLOW_PROTOCOL", "none".to_owned()));
        }
        variables.extend(named.iter().map(|(name, value)| (&**name, (*value).clone())));
        Call::of("git", folder)
            .args(fixed.iter().chain(bare).chain(arguments))
            .without(self.without)
            .envs(variables)
            .input(self.input)
            .within(self.within.unwrap_or(LOOK))
            .keep(if self.with_errors { Capture::ForReading } else { Capture::ForParsing })
            .run(|| self.stop.is_some_and(|stop| stop()))
    }

    /// How many settings the environment that git gets already contains.
    fn settings_before(&self) -> u16 {
        const COUNT: &str = "GIT_CONFIG_COUNT";
        let given = self.variables.iter().find(|(name, _)| *name == COUNT);
        let is_passed = self.without.iter().all(|name| name != COUNT);
        let inherited = is_passed.then(|| env::text(COUNT)).flatten();
        given.map(|(_, count)| count.clone()).or(inherited).map_or(0, |it| it.parse().unwrap_or(0))
    }
}

/// Whether git has to be told that a folder is a repository: where a person has set
/// `safe.bareRepository`, it takes no bare one that is not named.
fn is_hub(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == HUB)
        && disk::is_file(&folder.join("HEAD"))
        && disk::is_missing(&folder.join(".git"))
}

/// The output, if the command exited with 0 and all of its output was kept.
pub fn whole(ended: FinishedProcess) -> Option<Vec<u8>> {
    let whole = ended.cause == ExitCause::Exit(0) && !ended.cut;
    whole.then_some(ended.output)
}

/// Paths for an index.
#[derive(Debug, Default)]
pub struct IndexPaths {
    pub gone: Vec<PathBuf>,
    pub there: Vec<PathBuf>,
}

impl IndexPaths {
    /// Whether there is none.
    pub fn are_none(&self) -> bool {
        self.gone.is_empty() && self.there.is_empty()
    }

    /// Makes an index match the working tree at these paths. Deletions come first: a folder, or a
    /// link to one, may have replaced a file.
    pub fn update<T, E>(&self, git: impl Fn(&[&str], &[u8]) -> Result<T, E>) -> Result<(), E> {
        let lists: [(&[PathBuf], &[&str]); 2] = [
            (&self.gone, &["update-index", "--force-remove", "-z", "--stdin"]),
            (&self.there, &["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]),
        ];
        let mut lists = lists.into_iter().filter(|(list, _)| !list.is_empty());
        lists.try_for_each(|(list, arguments)| git(arguments, &zero_list(list)).map(drop))
    }
}

/// Whether a person wants colours. `outside` is a folder in no repository.
pub fn has_colour(outside: &Path) -> bool {
    let asked = ["config", "--get-colorbool", "color.diff", "true"];
    Git::here(outside).line(&asked).as_deref() != Some("false")
}

/// The person's pager, "cat" for none. Without `-p` git names none to a program that it has told
/// to use none.
pub fn pager(outside: &Path) -> String {
    Git::here(outside).line(&["-p", "var", "GIT_PAGER"]).unwrap_or_default()
}
