//! The scratch folder of a demo, with a repository, a home and the client's data, and the calls to
//! git, to crew's own hooks and to its verbs. Of the user's environment they get only `PATH`. The
//! folder is removed when the value is dropped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{LIBRARY, SCRIPT, Turn};
use engine::failure::Failure;
use world::env;
use world::files::disk::{self, Durability};
use world::files::tree;
use world::process::{Call, ExitCause, descendants, signals};

/// The time limit of a child of the demo; each needs some milliseconds.
const WITHIN: Duration = Duration::from_secs(60);
/// The time limit of a verb that is watched; a fleet needs less than a minute.
const WATCHED_WITHIN: Duration = Duration::from_secs(10 * 60);
/// The search path when `PATH` is not set.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The largest library that the agent can have written, in bytes.
const LIBRARY_BYTES: u64 = 64 << 10;

/// A variable of a child: its name and its value.
type Variable = (&'static str, String);

/// The scratch folder, and the environment of what runs in it.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    variables: Vec<Variable>,
    crew: String,
    ended: Arc<AtomicBool>,
}

impl Scratch {
    /// Creates the folder.
    pub fn make() -> Result<Self> {
        // Before the folder exists, so that a signal cannot leave it behind.
        let ended = signals::end_requested()?;
        let crew = path_text(&env::program_path().context("cannot find crew's own program")?)?;
        let parent = env::temporary_folder();
        let root = disk::make_scratch_folder(&parent, env::random_number())?;
        let mut scratch = Self { root, variables: Vec::new(), crew, ended };
        scratch.variables = child_variables(&scratch.root)?;
        Ok(scratch)
    }

    /// Creates the repository, with one commit of these files.
    pub fn make_repository(&self, files: &[(&str, &str)]) -> Result<()> {
        for folder in ["home", "tmp", "client", "numbers"] {
            disk::make_private_folder(&self.root.join(folder))?;
        }
        for (name, text) in files {
            self.write_file(name, text)?;
        }
        self.run_git(&["init", "--quiet", "--template="])?;
        // Not `init --initial-branch`, which git before 2.28 does not know.
        self.run_git(&["symbolic-ref", "HEAD", "refs/heads/main"])?;
        self.run_git(&["add", "--all"])?;
        self.run_git(&["commit", "--quiet", "--message", "Begin"]).map(drop)
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether somebody has asked the demo to end.
    pub fn is_interrupted(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Removes the folder and reports a failure; a drop removes it too, but cannot report one.
    pub fn remove(self) -> Result<()> {
        Ok(tree::remove_scratch_folder(&self.root)?)
    }

    /// Does the work of the agent in an iteration.
    pub(super) fn edit_library(&self, turn: &Turn) -> Result<()> {
        let library = disk::read_text(&self.repository().join(LIBRARY), LIBRARY_BYTES)?;
        let library = library.with_context(|| format!("{LIBRARY} is gone"))?;
        self.write_file(LIBRARY, &library.replace(&turn.from, &turn.to))?;
        if turn.commits {
            self.run_git(&["commit", "--quiet", "--all", "--message", "Fix sum and largest"])?;
        }
        Ok(())
    }

    /// Sends one event of the client through `crew hook` and returns its answer.
    pub fn send_event(&self, event: &str, mut fields: Value) -> Result<Value> {
        let repository = path_text(&self.repository())?;
        fields["hook_event_name"] = json!(event);
        fields["session_id"] = json!("00000000-0000-4000-8000-0000000000de");
        fields["prompt_id"] = json!("the-demos-prompt");
        fields["transcript_path"] = json!(self.root.join("client/transcript.jsonl"));
        fields["permission_mode"] = json!("default");
        fields["cwd"] = json!(&repository);
        let call = self.child_call(&self.crew, &["hook"], WITHIN).envs([
            ("CLAUDECODE", "1".to_owned()),
            ("CLAUDE_PLUGIN_DATA", path_text(&self.root.join("client"))?),
            ("CLAUDE_PROJECT_DIR", repository),
        ]);
        let answer =
            self.run_call(&self.crew, "hook", call.input(fields.to_string().as_bytes()))?;
        serde_json::from_slice(answer.as_bytes())
            .with_context(|| format!("the {event} hook did not answer in JSON: {}", answer.trim()))
    }

    /// Runs a verb of crew in the repository, as a person would in a terminal, and passes on its
    /// lines as they come. Everything it started has ended when this returns; where only process
    /// groups can be ended, a job may need another moment.
    pub fn watch_verb(&self, arguments: &[&str], each: &mut dyn FnMut(&str)) -> Result<ExitCause> {
        // Otherwise jobs, which have sessions of their own, outlive a coordinator that was ended.
        let _ = descendants::adopt_orphans();
        let call = self.child_call(&self.crew, arguments, WATCHED_WITHIN);
        let ended = call.each_line(each).run(|| self.is_interrupted());
        descendants::end_all();
        Ok(ended.with_context(|| format!("cannot run {}", self.crew))?.cause())
    }

    /// A child in the repository, with the demo's variables and no others.
    fn child_call(&self, program: &str, arguments: &[&str], within: Duration) -> Call<'_> {
        let call = Call::of(program, &self.repository()).without_environment().args(arguments);
        call.envs(self.variables.iter().map(|(name, value)| (name, value))).within(within)
    }

    fn repository(&self) -> PathBuf {
        self.root.join("numbers")
    }

    fn write_file(&self, name: &str, text: &str) -> Result<()> {
        let path = self.repository().join(name);
        disk::make_private_folder(path.parent().unwrap_or(&self.root))?;
        Ok(disk::write(&path, text.as_bytes(), Durability::Process)?)
    }

    /// Runs git in the repository, and returns what it printed.
    pub fn run_git(&self, arguments: &[&str]) -> Result<String> {
        self.run_call("git", &arguments.join(" "), self.child_call("git", arguments, WITHIN))
    }

    fn run_call(&self, program: &str, arguments: &str, call: Call<'_>) -> Result<String> {
        let line = format!("{program} {arguments}");
        let ended = match call.run(|| self.is_interrupted()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                bail!(Failure::new(
                    format!("cannot find {program}"),
                    "the demo needs git and sh on the PATH"
                ))
            }
            other => other.with_context(|| format!("cannot run {line}"))?,
        };
        let output = ended.text();
        match ended.cause() {
            ExitCause::Exit(0) => Ok(output),
            how => bail!("{line}: {how:?}: {}", output.trim()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = tree::remove_scratch_folder(&self.root);
    }
}

/// The complete environment of a child, with a git that knows neither the user nor the machine.
fn child_variables(root: &Path) -> Result<Vec<Variable>> {
    let root = path_text(root)?;
    let path = env::text("PATH").unwrap_or_else(|| PATH.to_owned());
    let own = SCRIPT.environment.iter();
    let own = own.map(|(name, value)| (name.as_str(), value.replace("{root}", &root)));
    Ok(own.chain([("PATH", path)]).collect())
}

/// A path as text.
pub fn path_text(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not Unicode", path.display()))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_whole_path_even_if_that_has_spaces() {
        let root = testkit::folder().keep();
        let (variables, crew) = (Vec::new(), "/no such folder/crew".to_owned());
        let scratch = Scratch { root, variables, crew, ended: Arc::default() };
        disk::make_private_folder(&scratch.repository()).unwrap();
        let call = scratch.child_call(&scratch.crew, &["hook"], WITHIN);
        let error = scratch.run_call(&scratch.crew, "hook", call).unwrap_err().to_string();
        assert_eq!(error, "cannot find /no such folder/crew");
    }
}
