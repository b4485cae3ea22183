//! Runs the client's own commands, each with a deadline: to query its plugins and to register crew.
//! It never writes the client's files and never interprets what the client prints.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::env;
use super::files::tree;
use super::process::{Call, Capture, ExitCause};
use engine::failure::Failure;
use engine::text::with_reason;

/// How long a query may take.
const QUESTION: Duration = Duration::from_secs(30);
/// How long a change may take: the client may have to fetch a marketplace.
const CHANGE: Duration = Duration::from_secs(180);

/// The client's program: the named one, otherwise the first `program` on `PATH`.
pub fn find_program(named: Option<&Path>, program: &str) -> Option<PathBuf> {
    match named {
        Some(named) => Some(named.to_owned()),
        None => on_path(program).into_iter().next(),
    }
}

/// Every program with this name on `PATH`, in the order of its folders.
pub fn on_path(name: &str) -> Vec<PathBuf> {
    let files = env::search_path().into_iter().map(|folder| folder.join(name));
    files.filter(|file| tree::is_program(file)).collect()
}

/// The command with which a terminal can start this program if `name` is not on `PATH`: its path,
/// with the home folder as `~`.
pub fn off_path(name: &str) -> Option<String> {
    if !on_path(name).is_empty() {
        return None;
    }
    let program = env::program_path().ok()?;
    if let Some(home) = env::path("HOME")
        && let Ok(below) = program.strip_prefix(home)
    {
        return Some(format!("~/{}", below.display()));
    }
    Some(program.display().to_string())
}

/// What a program prints for these arguments, if it exits with 0.
pub fn read_output(program: &Path, arguments: &[&str], folder: &Path) -> Result<String> {
    capture_output(program, arguments, folder, QUESTION, Capture::ForParsing)
}

/// Runs a command of the client that changes something. The error contains what the client printed.
pub fn run_change(client: &Path, arguments: &[&str], folder: &Path) -> Result<()> {
    capture_output(client, arguments, folder, CHANGE, Capture::ForReading).map(drop)
}

fn capture_output(
    program: &Path,
    arguments: &[&str],
    folder: &Path,
    within: Duration,
    capture: Capture,
) -> Result<String> {
    // A query must not trigger an update of the client.
    let call = Call::of(program, folder).args(arguments).envs([("DISABLE_AUTOUPDATER", "1")]);
    let line = format!("`{} {}`", program.display(), arguments.join(" "));
    let ended = call.within(within).keep(capture).run(|| false).map_err(|error| {
        Failure::new(
            format!("{line} cannot be started: {error}"),
            "--client PATH names another program",
        )
    })?;
    let said = ended.text().trim().to_owned();
    match ended.cause() {
        ExitCause::Exit(0) => Ok(said),
        ExitCause::Exit(code) => {
            bail!("{line} {}", with_reason(&format!("ended with {code}"), &said))
        }
        ExitCause::TimedOut => bail!("{line} did not answer within {} s", within.as_secs()),
        _ => bail!("{line} was killed by a signal"),
    }
}
