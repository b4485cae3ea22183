//! The client's own commands, each with a deadline: how crew asks it about plugins and registers with it.
//! Nothing here writes the client's files or understands what it says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::env;
use super::files::tree;
use super::process::{Capture, ExitCause, ProcessSpec, run};

/// How long a question may take.
const QUESTION: Duration = Duration::from_secs(30);
/// How long a change may take: a marketplace may have to be fetched.
const CHANGE: Duration = Duration::from_secs(180);

/// The client: the one that was named, else the first `program` on `PATH`.
pub fn find(named: Option<&Path>, program: &str) -> Option<PathBuf> {
    match named {
        Some(named) => Some(named.to_owned()),
        None => on_path(program).into_iter().next(),
    }
}

/// Every program of a name on `PATH`, in its order.
pub fn on_path(name: &str) -> Vec<PathBuf> {
    let folders = env::search_path();
    folders.into_iter().map(|folder| folder.join(name)).filter(|it| tree::is_program(it)).collect()
}

/// What a terminal calls this very program by where no `name` is on `PATH`: its path, the home as `~`.
pub fn off_path(name: &str) -> Option<String> {
    if !on_path(name).is_empty() {
        return None;
    }
    let program = env::program().ok()?;
    let below =
        env::path("HOME").and_then(|home| Some(program.strip_prefix(home).ok()?.to_owned()));
    Some(match below {
        Some(below) => format!("~/{}", below.display()),
        None => program.display().to_string(),
    })
}

/// What a program prints when it is asked, if it ends well.
pub fn ask(program: &Path, arguments: &[&str], folder: &Path) -> Result<String> {
    told(program, arguments, folder, QUESTION, false)
}

/// Has the client change something. The error holds what it said.
pub fn change(client: &Path, arguments: &[&str], folder: &Path) -> Result<()> {
    told(client, arguments, folder, CHANGE, true).map(drop)
}

fn told(
    program: &Path,
    arguments: &[&str],
    folder: &Path,
    within: Duration,
    with_errors: bool,
) -> Result<String> {
    // A question must not be what sets off an update of the client.
    let variables = [("DISABLE_AUTOUPDATER", "1".to_owned())];
    let name = program.display().to_string();
    let spec = ProcessSpec {
        program: &name,
        arguments,
        folder,
        without: &[],
        variables: &variables,
        input: None,
        within: Some(within),
    };
    let line = || format!("`{name} {}`", arguments.join(" "));
    let capture = if with_errors { Capture::ForReading } else { Capture::ForParsing };
    let ended = match run(&spec, capture, None, || false) {
        Ok(ended) => ended,
        Err(error) => bail!("{} cannot be started: {error}", line()),
    };
    let said = String::from_utf8_lossy(&ended.output).trim().to_owned();
    match ended.cause {
        ExitCause::Exit(0) => Ok(said),
        ExitCause::Exit(code) => bail!("{} ended with {code}: {said}", line()),
        ExitCause::TimedOut => bail!("{} gave no answer within {} s", line(), within.as_secs()),
        _ => bail!("{} was ended by a signal", line()),
    }
}
