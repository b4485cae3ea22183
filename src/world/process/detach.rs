//! Starts this program again in a separate session, so that it outlives the terminal it was started
//! from: no hangup reaches it, and its output is kept in a file.
#![expect(clippy::disallowed_methods, reason = "a child that must outlive this process")]

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{children, identity, spawn};
use crate::engine::record::ProcessIdentity;
use crate::world::env;
use crate::world::files::disk;

/// Starts this program with `arguments` in `folder`, with `variables` added to its environment. Its
/// output is appended to the file `output`, readable by this user only; it gets no input. Returns
/// its identity; whether it started well is read from the record.
pub fn start(
    arguments: &[&str],
    folder: &Path,
    variables: &[(&str, String)],
    output: &Path,
) -> io::Result<ProcessIdentity> {
    let output = disk::open_to_append(output)?;
    let mut command = Command::new(env::program()?);
    command.args(arguments).current_dir(folder);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    spawn::leave_the_terminal(&mut command);
    let child = command.spawn()?;
    // It is not reaped, so even a child that ended at once can still be identified.
    let identity = identity::identity(child.id().cast_signed());
    identity.ok_or_else(|| io::Error::other("it was started and is gone"))
}

/// Reaps a process that was started here and has ended.
pub fn reap(process: &ProcessIdentity) {
    children::reap(process.pid);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::world::clock::Deadline;

    #[test]
    fn what_is_detached_leads_a_session_and_says_all_in_its_file() {
        let test = "world::process::detach::tests::what_is_detached_leads_a_session_and_says_all_in_its_file";
        if env::text("CREW_TEST_DETACHED").is_some() {
            let me = identity::myself().unwrap();
            println!("here {} leads {}", me.pid, identity::leads_its_session());
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("detached.log");
        let arguments = ["--exact", test, "--nocapture"];
        let variables = [("CREW_TEST_DETACHED", "1".to_owned())];
        let started = start(&arguments, folder.path(), &variables, &output).unwrap();
        let expected = format!("here {} leads true", started.pid);
        let found =
            Deadline::after(Duration::from_secs(20)).poll(Duration::from_millis(20), || {
                let text = disk::read_text(&output, 1 << 20).unwrap().unwrap_or_default();
                text.contains(&expected).then_some(())
            });
        assert!(found.is_some(), "{:?}", disk::read_text(&output, 1 << 20));
    }
}
