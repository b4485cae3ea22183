//! The demo: a whole loop in a scratch repository, with a scripted agent in place of the model and
//! crew's real hooks. It shows what a person would see, and fails when the loop does not end well.
//! The agent fixes a shell library with two faults in three iterations and once claims too early.
//!
//! The demo of a fleet has six tasks, two at once, and a remote beside the repository. Its agent is
//! a shell script; the verb, the loops and the landings are real. The tasks are made to collide:
//! two write in the same place, two break each other, two meet a limit. The demo shows the run's
//! own lines and fails unless everything landed.

mod scratch;

use self::scratch::{Scratch, path_text};
use anyhow::{Context, Result, bail};
use engine::failure::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;
use world::files::disk::{self, Durability};
use world::process::ExitCause;
use world::{fault, terminal};

/// The name of the library.
pub const LIBRARY: &str = "numbers.sh";
/// The library as the agent finds it.
pub const BROKEN: &str = include_str!("demo/scripts/numbers.sh");

/// The name of the tests.
pub const TESTS: &str = "test.sh";
/// The tests, which the agent never touches.
pub const TESTS_TEXT: &str = include_str!("demo/scripts/test.sh");

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
pub fn fixed_library() -> String {
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
/// always removed. Returns `false` if somebody asked it to stop.
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

/// An answer's words for the person, as the client shows them, below the agent's.
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
pub(super) struct FleetScript {
    opening: String,
    left_out: String,
    /// The reason why a loop waits that met no limit itself.
    why_it_waits: String,
    pub(super) closing: String,
}

/// The command that the person types.
const RUN: [&str; 5] = ["fleet", "run", "tasks", "--land", "--yes"];
/// The command of git that shows main at the end.
const LOG: [&str; 4] = ["log", "--oneline", "--graph", "main"];
/// Words in the line of a loop that waits for the limit of another one.
const LIMIT_OF_ANOTHER: &str = "limit met by loop";
/// The folder of the remote in the scratch folder.
const REMOTE: &str = "remote.git";

/// Plays the fleet in a new scratch folder.
pub fn play_fleet(scratch: &Scratch, show: &impl Fn(&str)) -> Result<()> {
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

    /// A demo as it was shown once.
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
}
