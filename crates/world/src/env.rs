//! The only reader of the environment. It never sets a variable.
#![expect(clippy::disallowed_methods, reason = "this is the one reader of the environment")]

use engine::failure::{Failure, FailureKind};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

/// A variable's text; `None` when it is unset, empty, or not Unicode.
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A variable's value; `None` when it is unset or empty.
pub fn raw(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A variable that names an absolute path.
pub fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folder that a variable names, otherwise this one in the home folder.
pub fn find_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    path(variable).or_else(|| Some(path("HOME")?.join(in_home)))
}

/// All variables. If two have the same name the last one counts, because a child gets that one.
pub fn all_variables() -> BTreeMap<OsString, OsString> {
    std::env::vars_os().collect()
}

/// The folder this process was started in.
pub fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::new("the current folder no longer exists", "cd into one that exists")
        }
        _ => Failure::without_hint(FailureKind::Error, error.to_string()),
    })
}

/// The folder for temporary files.
pub fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// The path of this program's file.
pub fn program_path() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// The folders of `PATH`; relative ones are left out.
pub fn search_path() -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).collect()
}

/// The name with which this program was called, and its first two arguments; missing ones are
/// empty.
pub fn program_call() -> (String, String, String) {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = PathBuf::from(words.next().unwrap_or_default());
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (name, words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

/// All arguments of this program, starting with its name.
pub fn program_words() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// A random number, good enough for names but not for secrets.
pub fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
