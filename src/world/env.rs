//! The only reader of the environment.
#![expect(clippy::disallowed_methods, reason = "this is the one reader of the environment")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

/// A variable's text; absent when unset, empty, or no Unicode.
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A variable that names an absolute path.
pub fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Every variable; of two with one name the last, which is the one a child is given.
pub fn all() -> BTreeMap<OsString, OsString> {
    std::env::vars_os().collect()
}

/// Whether this process runs inside an agent: there crew only ever narrows.
pub fn inside_an_agent() -> bool {
    text("CLAUDECODE").is_some() || text("CREW_LOOP").is_some()
}

/// Whether a person sits before the client: not in `claude -p`, where no companion may sleep, because the
/// client waits for it at its end.
pub fn is_attended() -> bool {
    let said = text("CLAUDE_CODE_SESSION_ATTENDED");
    said.map_or_else(|| text("CLAUDE_CODE_ENTRYPOINT").as_deref() == Some("cli"), |it| it != "0")
}

/// The folder this process was started in.
pub fn current_folder() -> std::io::Result<PathBuf> {
    std::env::current_dir()
}

/// The folder for what need not stay.
pub fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// This very program's file.
pub fn program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// The folders programs are looked for in; one that is no absolute path is passed over.
pub fn search_path() -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).filter(|folder| folder.is_absolute()).collect()
}

/// The name this program was called by, and its first two arguments; empty where there are none.
pub fn call() -> (String, String, String) {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = PathBuf::from(words.next().unwrap_or_default());
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (name, words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

/// All words this program was called with.
pub fn words() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// A number nobody can guess from the last one; good for names, not for secrets.
pub fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
