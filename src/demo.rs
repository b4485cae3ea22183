//! The demo: a whole loop in a scratch repository, with a scripted agent in place of the model and
//! crew's real hooks. It shows what a user would see, and fails when the loop does not end well.
//! The agent fixes a shell library with two faults in three iterations and once claims too early.
//!
//! The demo of a fleet has six tasks, two at once, and a remote beside the repository. Its agent is
//! a shell script; the verb, the loops and the landings are real. The tasks are made to collide:
//! two write in the same place, two break each other, two meet a limit. The demo shows the run's
//! own lines and fails unless everything landed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use engine::failure::Failure;
use world::files::disk::Durability;
use world::files::{disk, tree};
use world::process::{Call, ExitCause, descendants, signals};
use world::{env, fault, terminal};

/// The name of the library.
const LIBRARY: &str = "numbers.sh";
/// The library as the agent finds it.
const BROKEN: &str = include_str!("demo/scripts/numbers.sh");

/// The name of the tests.
const TESTS: &str = "test.sh";
/// The tests, which the agent never touches.
const TESTS_TEXT: &str = include_str!("demo/scripts/test.sh");

/// The script of the demo: what is shown, and what the agent does.
#[derive(Debug, Default, Deserialize)]
struct Script {
    command: String,
    opening: String,
    closing: String,
    stays: Vec<(String, u64)>,
    environment: BTreeMap<String, String>,
    turns: Vec<Turn>,
    fleet: FleetScript,
}

/// One iteration of the agent.
#[derive(Debug, Deserialize)]
struct Turn {
    does: String,
    from: String,
    to: String,
    commits: bool,
    says: String,
}

/// The script, which is part of the program. The tests read it too.
static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| toml::from_str(include_str!("demo/scripts/demo.toml")).unwrap_or_default());

/// The library as the agent leaves it.
fn fixed_library() -> String {
    let mut library = BROKEN.to_owned();
    for turn in &SCRIPT.turns {
        library = library.replace(&turn.from, &turn.to);
    }
    library
}

/// `crew demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Watch a fleet of six tasks instead, until all are on main
    #[arg(long)]
    pub fleet: bool,
    /// Leave out the pauses that a terminal gets
    #[arg(long)]
    pub fast: bool,
}

/// Plays the demo; `print` gets each line of a scene when it has happened. The scratch folder is
/// always removed. Returns `false` if the user stopped it.
pub fn play_demo(is_fleet: bool, has_pauses: bool, print: impl Fn(&str)) -> Result<bool> {
    let is_hurried = Cell::new(!has_pauses);
    let show = |scene: &str| show_slowly(scene, &is_hurried, &print);
    let scratch = Scratch::make()?;
    let played = if is_fleet { play_fleet(&scratch, &show) } else { play_loop(&scratch, &show) };
    let interrupted = scratch.is_interrupted();
    scratch.remove()?;
    if interrupted {
        return Ok(false);
    }
    played?;
    show(if is_fleet { &SCRIPT.fleet.closing } else { &SCRIPT.closing });
    Ok(true)
}

fn play_loop(scratch: &Scratch, show: &impl Fn(&str)) -> Result<()> {
    scratch.make_repository(&[(LIBRARY, BROKEN), (TESTS, TESTS_TEXT)])?;
    let Script { command, opening, turns, .. } = &*SCRIPT;
    show(opening);
    show(&format!("> /crew:loop {command}\n\n"));
    let typed = json!({ "command_name": "crew:loop", "command_args": command });
    let begun = scratch.send_event("UserPromptExpansion", typed)?;
    if let Some(reason) = begun["reason"].as_str() {
        bail!("the loop did not start: {reason}");
    }
    show(&words_shown(&begun)?);
    let mut page = None;
    for (iteration, turn) in (1..).zip(turns) {
        scratch.edit_library(turn)?;
        let says = indent_lines(&turn.says, "    ");
        show(&format!("* iteration {iteration}: {}\n{says}\n", turn.does));
        let stop = json!({ "last_assistant_message": turn.says, "stop_hook_active": false });
        let answer = scratch.send_event("Stop", stop)?;
        show(&words_shown(&answer)?);
        let Some(prompt) = answer["hookSpecificOutput"]["additionalContext"].as_str() else {
            page = answer["systemMessage"].as_str().map(str::to_owned);
            break;
        };
        if let Some(refusal) = refusal_in(prompt) {
            show(&format!("  what the agent reads:\n{}\n\n", indent_lines(refusal, "    | ")));
        }
    }
    if !page.is_some_and(|page| page.contains("proof: checked")) {
        bail!("the loop did not end as completed and checked");
    }
    Ok(())
}

/// The message of an answer for the user, as the client shows it, below the agent's.
fn words_shown(answer: &Value) -> Result<String> {
    let words = answer["systemMessage"].as_str().context("the hook said nothing")?;
    // The folder that the next command would show is gone by then.
    let words = words.split("\n  next ").next().unwrap_or(words);
    Ok(indent_lines(words.trim_end(), "  ") + "\n\n")
}

/// The part of a prompt that reports a refused claim.
fn refusal_in(prompt: &str) -> Option<&str> {
    let (verdict, reason) = prompt.split_once("\n\n")?;
    if verdict.contains("not accepted") { reason.split("\n\n").next() } else { None }
}

fn indent_lines(text: &str, margin: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| format!("{margin}{line}").trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The pause after a line.
fn pause_after(line: &str) -> Duration {
    let known = SCRIPT.stays.iter().find(|(words, _)| line.contains(words));
    Duration::from_millis(known.map_or(0, |(_, ms)| *ms))
}

/// Shows the lines of a scene, with pauses unless a person hurries.
fn show_slowly(scene: &str, is_hurried: &Cell<bool>, print: &impl Fn(&str)) {
    for line in scene.strip_suffix('\n').unwrap_or(scene).split('\n') {
        print(line);
        if !is_hurried.get() {
            is_hurried
                .set(terminal::key_within(fault::wait_time("CREW_STAY_MS", pause_after(line))));
        }
    }
}

/// The texts around the lines of the run.
#[derive(Debug, Default, Deserialize)]
struct FleetScript {
    opening: String,
    left_out: String,
    /// The reason why a loop waits although it did not reach a limit itself.
    why_it_waits: String,
    closing: String,
}

/// The command that the user types.
const RUN: [&str; 5] = ["fleet", "run", "tasks", "--land", "--yes"];
/// The command of git that shows main at the end.
const LOG: [&str; 4] = ["log", "--oneline", "--graph", "main"];
/// Words in the line of a loop that waits for the limit of another loop.
const LIMIT_OF_ANOTHER: &str = "limit met by loop";
/// The folder of the remote in the scratch folder.
const REMOTE: &str = "remote.git";

/// Plays the fleet in a new scratch folder.
fn play_fleet(scratch: &Scratch, show: &impl Fn(&str)) -> Result<()> {
    let remote = path_text(&scratch.root().join(REMOTE))?;
    let git_dir = format!("--git-dir={remote}");
    make_fleet(scratch)?;
    scratch.run_git(&["init", "--quiet", "--bare", "--template=", &remote])?;
    scratch.run_git(&["remote", "add", "origin", &remote])?;
    scratch.run_git(&["push", "--quiet", "origin", "main"])?;
    let FleetScript { opening, left_out, why_it_waits, .. } = &SCRIPT.fleet;
    show(opening);
    show(&format!("> crew {}\n", RUN.join(" ")));
    show(left_out);
    let (mut list, mut has_begun, mut why) = (Vec::new(), false, Some(why_it_waits.as_str()));
    let cause = scratch.watch_verb(&RUN, &mut |line| {
        // Every event begins with its time.
        has_begun |= line.starts_with('[');
        if !has_begun {
            return list.push(line.to_owned());
        }
        show(line);
        if line.contains(LIMIT_OF_ANOTHER) {
            why.take().map(show);
        }
    })?;
    if cause == ExitCause::Stopped {
        bail!("the fleet was interrupted");
    }
    if !has_begun {
        show(&list.join("\n"));
    }
    show(&format!("\n> git {}\n", LOG.join(" ")));
    let log: Vec<&str> = [git_dir.as_str()].into_iter().chain(LOG).collect();
    show(&format!("{}\n", scratch.run_git(&log)?));
    if cause != ExitCause::Exit(0) {
        bail!(Failure::new(
            format!("the fleet did not land everything: {cause}"),
            "the lines above say why"
        ));
    }
    Ok(())
}

/// Creates the repository, and the agent beside it.
fn make_fleet(scratch: &Scratch) -> Result<()> {
    let script = scratch.root().join("agent.sh");
    let agent =
        shell_words::join(["sh", &path_text(&script)?, &path_text(&scratch.root().join("tmp"))?]);
    // A text in JSON is one in TOML, too.
    let terms = TERMS.replace("AGENT", &Value::from(agent).to_string());
    let library = fixed_library();
    let mut files = vec![(LIBRARY, &*library), TEST, ("tasks/fleet.toml", &terms)];
    files.extend(TASKS);
    scratch.make_repository(&files)?;
    Ok(disk::write(&script, AGENT.as_bytes(), Durability::Process)?)
}

/// The agent's script, for all tasks.
const AGENT: &str = include_str!("demo/scripts/agent.sh");
/// The terms of the fleet, without the agent's command.
const TERMS: &str = include_str!("demo/scripts/tasks/fleet.toml");
/// The test that exists from the start.
const TEST: (&str, &str) = ("test-largest.sh", ". ./numbers.sh\n[ \"$(largest 4 9 2)\" = 9 ]\n");
/// The tasks. The names of a pair do not matter: both begin before either lands.
const TASKS: [(&str, &str); 6] = [
    ("tasks/smallest.md", include_str!("demo/scripts/tasks/smallest.md")),
    ("tasks/count.md", include_str!("demo/scripts/tasks/count.md")),
    ("tasks/total.md", include_str!("demo/scripts/tasks/total.md")),
    ("tasks/average.md", include_str!("demo/scripts/tasks/average.md")),
    ("tasks/guide.md", include_str!("demo/scripts/tasks/guide.md")),
    ("tasks/changes.md", include_str!("demo/scripts/tasks/changes.md")),
];

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
struct Scratch {
    root: PathBuf,
    variables: Vec<Variable>,
    crew: String,
    ended: Arc<AtomicBool>,
}

impl Scratch {
    /// Creates the folder.
    fn make() -> Result<Self> {
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
    fn make_repository(&self, files: &[(&str, &str)]) -> Result<()> {
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

    /// The path of the folder.
    fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the user asked the demo to end.
    fn is_interrupted(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Removes the folder and reports a failure; a drop removes it too, but cannot report one.
    fn remove(self) -> Result<()> {
        Ok(tree::remove_scratch_folder(&self.root)?)
    }

    /// Does the work of the agent in an iteration.
    fn edit_library(&self, turn: &Turn) -> Result<()> {
        let library = disk::read_text(&self.repository().join(LIBRARY), LIBRARY_BYTES)?;
        let library = library.with_context(|| format!("{LIBRARY} is gone"))?;
        self.write_file(LIBRARY, &library.replace(&turn.from, &turn.to))?;
        if turn.commits {
            self.run_git(&["commit", "--quiet", "--all", "--message", "Fix sum and largest"])?;
        }
        Ok(())
    }

    /// Sends one event of the client through `crew hook` and returns its answer.
    fn send_event(&self, event: &str, mut fields: Value) -> Result<Value> {
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
    fn watch_verb(&self, arguments: &[&str], each: &mut dyn FnMut(&str)) -> Result<ExitCause> {
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
    fn run_git(&self, arguments: &[&str]) -> Result<String> {
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
fn path_text(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not Unicode", path.display()))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_text_of_every_edit_occurs_once() {
        let mut library = BROKEN.to_owned();
        for turn in &SCRIPT.turns {
            assert_eq!(library.matches(&turn.from).count(), 1, "{}", turn.does);
            library = library.replace(&turn.from, &turn.to);
        }
    }

    #[test]
    fn every_line_is_shown_even_an_empty_one() {
        for (scene, expected) in [
            ("", &[""][..]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\n\n", &["a", ""]),
            ("\na\n\nb\n", &["", "a", "", "b"]),
        ] {
            let shown = RefCell::new(Vec::new());
            show_slowly(scene, &Cell::new(true), &|line| shown.borrow_mut().push(line.to_owned()));
            assert_eq!(shown.into_inner(), expected, "{scene:?}");
        }
    }

    /// The recorded output of a demo.
    const SHOWN: &str = include_str!("demo/scripts/shown.txt");

    #[test]
    fn the_demo_takes_about_fifteen_seconds_most_of_them_at_what_matters() {
        let of = |lines: &mut dyn Iterator<Item = &str>| lines.map(pause_after).sum::<Duration>();
        let all = of(&mut SHOWN.lines());
        assert!((13..=16).contains(&all.as_secs()), "{all:?}");
        let (_, refused) = SHOWN.split_once("claim refused").unwrap();
        let (refused, _) = refused.split_once("* iteration 3").unwrap();
        assert!(of(&mut format!("claim refused{refused}").lines()).as_secs() >= 5);
    }

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
