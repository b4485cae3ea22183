//! The only place where git is started: for a query, or for a step that changes a repository.
//! Settings that would make git run a program of the repository, or wait for a person, are switched
//! off.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Git;
use crate::clock::Deadline;
use crate::files::disk;
use crate::process::{Call, Capture, ExitCause, FinishedProcess};
use crate::{env, recorded_environment};
use engine::git::GitTrouble::{self, DiskFull, NoIdentity, Other};
use engine::git::{GitFault, GitStep};
use engine::text::{table_rows, variant_name};
use readers::parse::git::{find_error, taken_lock, zero_list};
use readers::parse::remote::classify_failure;

/// A git setting for one command: name and value.
pub type Setting = (String, String);

/// The arguments with which a tree is written. A partial clone lacks the objects outside its sparse
/// checkout.
pub const WRITE_TREE: &[&str] = &["write-tree", "--missing-ok"];
/// The name of the bare repository from which crew talks to a remote while an agent works.
pub(super) const ASIDE: &str = "aside.git";
/// The arguments of every push.
pub(super) const PUSH: &str = "push --porcelain --no-progress --no-verify --no-signed";
/// The arguments of every fetch: it brings no more than the objects and refs that are named.
pub(super) const FETCH: &str =
    "fetch --quiet --no-write-fetch-head --no-tags --no-recurse-submodules";
/// The longest time a query may take.
const LOOK: Duration = Duration::from_secs(20);
/// The longest time a step on this machine may take, such as a rebase of many commits or an `add`
/// of many files.
const STEP: Duration = Duration::from_secs(300);
/// Variables of every command. Without the second, a ref below refs/replace could substitute one
/// object for another.
const FIXED: [(&str, &str); 3] =
    [("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_REPLACE_OBJECTS", "1"), ("LC_ALL", "C")];
/// Variables of every offline command. Without them, git would fetch a missing object by a program
/// that the configuration names.
const OFFLINE: [(&str, &str); 2] = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// The commands that only read. If one of them is killed from outside, for example because memory
/// is short, it is run once more: without its answer a whole loop could end.
const READS: &str = "cat-file config diff diff-index diff-tree for-each-ref log ls-files ls-remote \
                     ls-tree merge-base rev-list rev-parse show status";
/// How long the detected version of git is trusted.
const VERSION_HOLDS: Duration = Duration::from_secs(60);

/// The hints for failures at a remote, by step, trouble and situation.
const HINTS: &str = include_str!("remote_hints.txt");
/// The settings of every step, one per line.
const SETTINGS: &str = include_str!("steps.conf");

impl<'a> Git<'a> {
    /// A query in this folder with this process's environment.
    pub(super) fn here(folder: &'a Path) -> Self {
        Self {
            folder,
            climbs: false,
            subject: None,
            settings: &[],
            without: &[],
            variables: &[],
            input: &[],
            online: false,
            within: None,
            stop: None,
        }
    }

    /// Runs a command until it exits.
    pub(super) fn start(self, arguments: &[&str]) -> io::Result<FinishedProcess> {
        let ended = self.run_once(arguments)?;
        let command = arguments.iter().find(|word| !word.starts_with('-'));
        if matches!(ended.cause(), ExitCause::Signal(_))
            && command.is_some_and(|command| READS.split(' ').any(|known| known == *command))
        {
            return self.run_once(arguments);
        }
        Ok(ended)
    }

    fn run_once(self, arguments: &[&str]) -> io::Result<FinishedProcess> {
        self.call(arguments).run(|| self.stop.is_some_and(|stop| stop()))
    }

    fn call(self, arguments: &[&str]) -> Call<'a> {
        let off = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
        let fixed = [&off[..], &["-c", "i18n.logOutputEncoding=UTF-8", "--no-pager"]].concat();
        let bare: &[&str] = if is_aside(self.folder) { &["--git-dir=."] } else { &[] };
        let plan = self.subject.map(recorded_environment::plan_environment).unwrap_or_default();
        let path = self.subject.and_then(|subject| subject.state.owner().search_path.clone());
        let without: Vec<&OsString> = plan.dropped.iter().chain(self.without).collect();
        // A query leaves the index as it is, unless its variables say otherwise.
        let mut variables = vec![("GIT_OPTIONAL_LOCKS", "0".to_owned())];
        variables.extend(plan.changed_variables());
        variables.extend(path.map(|path| ("PATH", path)));
        if self.online {
            variables.extend(ssh_command(self.folder).map(|command| ("GIT_SSH_COMMAND", command)));
        }
        variables.extend(self.variables.iter().cloned());
        let theirs = settings_before(&variables, &without);
        let offline = if self.online { &[] } else { &OFFLINE[..] };
        let fixed_values = FIXED.iter().chain(offline);
        variables.extend(fixed_values.map(|(name, value)| (*name, (*value).to_owned())));
        variables.push(("GIT_CONFIG_COUNT", (theirs + self.settings.len()).to_string()));
        if let (false, Some(above)) = (self.climbs, self.folder.parent()) {
            variables.push(("GIT_CEILING_DIRECTORIES", above.display().to_string()));
        }
        let named = (theirs..).zip(self.settings).flat_map(|(index, (name, value))| {
            [
                (format!("GIT_CONFIG_KEY_{index}"), name),
                (format!("GIT_CONFIG_VALUE_{index}"), value),
            ]
        });
        Call::of("git", self.folder)
            .args(fixed.iter().chain(bare).chain(arguments))
            .without(without)
            .envs(variables)
            .envs(named)
            .input(self.input)
            .within(self.within.unwrap_or(LOOK))
            .keep(Capture::ForParsing)
    }

    /// The output of a query, byte for byte; `None` if it failed.
    pub(super) fn printed(self, arguments: &[&str]) -> Option<Vec<u8>> {
        self.start(arguments).ok()?.whole_output(&[0])
    }

    /// The output of a query as text.
    pub(super) fn run(self, arguments: &[&str]) -> Option<String> {
        self.printed(arguments).map(disk::into_text)
    }

    /// The output of a query without its last line break.
    pub(super) fn line(self, arguments: &[&str]) -> Option<String> {
        Some(self.run(arguments)?.trim_end_matches('\n').to_owned())
    }

    /// The settings that disable the hooks named by the configuration itself, which is possible
    /// since git 2.54.
    fn disabled_hooks(self) -> Vec<Setting> {
        // crew's own configuration names no hook. Hooks of the global settings are not disabled. A
        // loop may have a different git on its path.
        if is_aside(self.folder) || (self.subject.is_none() && !may_be_2_54()) {
            return Vec::new();
        }
        let list = ["config", "-z", "--name-only", "--get-regexp", r"^hook\..*\.command$"];
        let named = Git::here(self.folder).run(&list).unwrap_or_default();
        let names = named.split('\0').filter_map(|name| name.strip_suffix(".command"));
        names.map(|name| (format!("{name}.enabled"), "false".to_owned())).collect()
    }

    /// Runs a step with the user's own helpers and filters, and without the hooks of its folder.
    pub(super) fn step(self, arguments: &[&str]) -> Result<FinishedProcess, Said> {
        let own = SETTINGS.lines().filter_map(|line| line.split_once(" = "));
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings: Vec<Setting> = own.chain(self.disabled_hooks()).collect();
        let within = self.within.unwrap_or(STEP);
        let git = Git { settings: &settings, within: Some(within), ..self };
        let text = match git.start(arguments) {
            Err(error) => format!("git cannot be started: {error}"),
            Ok(ended) => match ended.cause() {
                ExitCause::Exit(0) => return Ok(ended),
                ExitCause::Exit(code) => {
                    return Err(Said { exit: Some(code), text: all_words(&ended) });
                }
                ExitCause::TimedOut => format!("git did not answer within {} s", within.as_secs()),
                _ => "git was ended before it finished".to_owned(),
            },
        };
        Err(Said { exit: None, text })
    }

    /// Runs a step. Returns what git printed, whether the step succeeded or not.
    pub(super) fn said(self, arguments: &[&str]) -> Said {
        match self.step(arguments) {
            Ok(ended) => Said { exit: Some(0), text: all_words(&ended) },
            Err(said) => said,
        }
    }

    /// Runs a step of that kind, and returns its output.
    pub(super) fn well(self, step: GitStep, arguments: &[&str]) -> Result<String, GitFault> {
        self.step(arguments).map(|ended| ended.text()).map_err(|said| said.fault(step))
    }
}

/// Whether the git version on this machine may be 2.54 or later, whose configuration can name hooks
/// and a place for refs. The version is read again from time to time, because git may be updated
/// while this process runs.
pub(super) fn may_be_2_54() -> bool {
    static KNOWN: Mutex<Option<(Deadline, bool)>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match *known {
        Some((until, may)) if !until.passed() => may,
        _ => {
            let version = Git::here(Path::new("/")).run(&["--version"]);
            let may = version.is_none_or(|version| is_2_54(&version));
            *known = Some((Deadline::after(VERSION_HOLDS), may));
            may
        }
    }
}

/// Whether this may be version 2.54 or later. A build before the release of 2.54 calls itself 2.53.
fn is_2_54(version: &str) -> bool {
    let mut numbers = version.trim_start_matches("git version ").split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (2, 53),
        _ => true,
    }
}

/// How many settings git already gets from its environment.
fn settings_before(variables: &[(&str, String)], without: &[&OsString]) -> usize {
    const COUNT: &str = "GIT_CONFIG_COUNT";
    let given = variables.iter().rfind(|(name, _)| *name == COUNT);
    let is_passed = without.iter().all(|name| *name != COUNT);
    let count = match given {
        Some((_, count)) => Some(count.clone()),
        None if is_passed => env::text(COUNT),
        None => None,
    };
    count.and_then(|count| count.parse::<u16>().ok()).unwrap_or(0).into()
}

/// Whether a folder is the bare repository that must be passed to git by name: with
/// `safe.bareRepository` set, git discovers no bare repository by itself.
fn is_aside(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == ASIDE)
        && disk::is_file(&folder.join("HEAD"))
        && disk::is_missing(&folder.join(".git"))
}

/// All that git printed, its errors first.
pub(super) fn all_words(ended: &FinishedProcess) -> String {
    [&*String::from_utf8_lossy(ended.errors()), &ended.text()].concat()
}

/// The output of a step, and how git ended.
#[derive(Debug)]
pub(super) struct Said {
    /// Its exit status; `None` if it did not exit by itself.
    pub exit: Option<i32>,
    pub text: String,
}

impl Said {
    /// Whether the step succeeded.
    pub fn is_good(&self) -> bool {
        self.exit == Some(0)
    }

    /// An error if the step failed.
    pub fn check(&self, step: GitStep) -> Result<(), GitFault> {
        if self.is_good() { Ok(()) } else { Err(self.fault(step)) }
    }

    /// Classifies the failure of an exchange with a remote. A missing answer counts as a network
    /// failure.
    pub fn classify(&self) -> (GitTrouble, String) {
        match self.exit {
            Some(_) => classify_failure(&self.text),
            None => (GitTrouble::Network, self.text.clone()),
        }
    }

    /// Why an exchange with a remote failed. The hint may depend on the `situation`; `names` are
    /// its placeholders with their values.
    pub fn remote_fault(&self, step: GitStep, situation: &str, names: &[(&str, &str)]) -> GitFault {
        let (trouble, cause) = self.classify();
        let (of, word) = (variant_name(&step), variant_name(&trouble));
        let situation = if cause.contains("LFS") { "lfs" } else { situation };
        let keys = [format!("{of} {word} {situation}"), format!("{of} {word}"), of.to_owned()];
        let row = keys.iter().find_map(|key| table_rows(HINTS).find(|(row, _)| row == key));
        let hint = row.map(|(_, hint)| hint.to_owned()).unwrap_or_default();
        let hint = names.iter().fold(hint, |hint, (name, value)| hint.replace(name, value));
        GitFault::new(step, trouble, cause, hint)
    }

    /// Why the step failed, if the cause is on this machine.
    pub fn fault(&self, step: GitStep) -> GitFault {
        let text = &self.text;
        if text.contains("Please tell me who you are") || text.contains("empty ident") {
            let hint = "git config user.name NAME and git config user.email ADDRESS";
            return GitFault::new(step, NoIdentity, "git does not know who commits", hint);
        }
        if let Some(lock) = taken_lock(text) {
            return locked_fault(step, lock);
        }
        if text.contains("fsck error") {
            let hint = "remove it from the commits; git fsck names it";
            return GitFault::new(step, GitTrouble::Rejected, find_error(text), hint);
        }
        if is_disk_full(text) {
            return GitFault::new(step, DiskFull, find_error(text), "free some space on its disk");
        }
        let hint = "run the same git command by hand to see all of its output";
        GitFault::new(step, Other, find_error(text), hint)
    }
}

/// Whether git or the system reports that nothing more can be written.
pub(super) fn is_disk_full(text: &str) -> bool {
    ["No space left", "quota exceeded", "Read-only file system"]
        .iter()
        .any(|words| text.contains(words))
}

/// The fault when a lock blocks a step.
pub(super) fn locked_fault(step: GitStep, lock: &str) -> GitFault {
    let hint = format!("let the other git finish; if there is none, remove {lock}");
    let cause = "another git process is running here, or one crashed";
    GitFault::new(step, GitTrouble::Unfinished, cause, hint)
}

/// Paths to update in an index.
#[derive(Debug, Default)]
pub struct IndexPaths {
    gone: Vec<PathBuf>,
    there: Vec<PathBuf>,
}

impl IndexPaths {
    /// Adds a path that is missing from the working tree, or exists there.
    pub fn add(&mut self, path: PathBuf, is_gone: bool) {
        if is_gone { self.gone.push(path) } else { self.there.push(path) }
    }

    /// Whether there are no paths.
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

/// A setting of a repository; `None` if it is unset or empty.
pub(super) fn read_setting(folder: &Path, name: &str) -> Option<String> {
    let value = Git::here(folder).line(&["config", "--get", name]);
    value.filter(|value| !value.is_empty())
}

/// An ssh command that never prompts, unless the user has chosen one.
fn ssh_command(folder: &Path) -> Option<String> {
    let theirs = env::text("GIT_SSH_COMMAND").or_else(|| env::text("GIT_SSH"));
    match theirs.or_else(|| read_setting(folder, "core.sshCommand")) {
        Some(_) => None,
        None => Some("ssh -o BatchMode=yes".to_owned()),
    }
}

/// A setting in the form of a configuration file. Its value may be a secret, so it is never passed
/// as an argument.
pub(super) fn format_setting(name: &str, value: &str) -> String {
    let (section, rest) = name.split_once('.').unwrap_or((name, ""));
    let (subsection, key) = match rest.rsplit_once('.') {
        Some((subsection, key)) => (format!(" \"{}\"", quote_value(subsection)), key),
        None => (String::new(), rest),
    };
    format!("[{section}{subsection}]\n\t{key} = \"{}\"\n", quote_value(value))
}

fn quote_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Whether the user wants colours. `outside` is a folder outside any repository.
pub fn has_colour(outside: &Path) -> bool {
    let asked = ["config", "--get-colorbool", "color.diff", "true"];
    Git::here(outside).line(&asked).as_deref() != Some("false")
}

/// The user's pager; "cat" means none. Without `-p`, git reports no pager to a program that it
/// started with paging off.
pub fn find_pager(outside: &Path) -> String {
    Git::here(outside).line(&["-p", "var", "GIT_PAGER"]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_of_unknown_version_does_not_count_as_too_old() {
        let table = [
            ("git version 2.47.3\n", false),
            ("git version 2.39.3 (Apple Git-146)\n", false),
            ("git version 2.9.0.windows.1\n", false),
            ("git version 2.53.0.217.gabcdef\n", true),
            ("git version 2.54.0\n", true),
            ("git version 3.0.0\n", true),
            ("git version next\n", true),
            ("", true),
        ];
        for (version, expected) in table {
            assert_eq!(is_2_54(version), expected, "{version}");
        }
    }
}
