//! Starts this very program again, in a session of its own, so that it outlives the terminal it was started
//! from: no hangup reaches it, and nothing it says is lost.
#![expect(clippy::disallowed_methods, reason = "a child that must outlive this process")]

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{disk, env, unix};
use crate::engine::owner::ProcessIdentity;

/// Starts this program with `arguments` in `folder`, with `variables` beside its environment. What it prints
/// is added to the file `output`, for this user only; it reads nothing. Gives who it is; that it began well
/// is for its record to say.
pub fn start(
    arguments: &[String],
    folder: &Path,
    variables: &[(&str, String)],
    output: &Path,
) -> io::Result<ProcessIdentity> {
    let output = disk::open_to_append(output)?;
    let mut command = Command::new(env::program()?);
    command.args(arguments).current_dir(folder);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    unix::leave_the_terminal(&mut command);
    let child = command.spawn()?;
    // Not reaped: until this process is over even one that ended at once can be told by its id.
    let identity = unix::identity(child.id().cast_signed());
    identity.ok_or_else(|| io::Error::other("it was started and is gone"))
}
