//! The demo: a whole loop in a scratch repository, with a scripted agent in place of the model and
//! crew's real hooks where the client has them. It shows what a person would see there, and reports
//! an error when the loop did not end well. `fleet` below it is the same for many loops at once.

mod agent;
pub mod fleet;
mod pace;
mod scratch;

use std::cell::Cell;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::agent::{BROKEN, COMMAND, LIBRARY, TESTS, TESTS_TEXT, TURNS};
use self::scratch::Scratch;

/// One line, because what shows it breaks lines where the terminal ends.
const OPENING: &str = "\
A shell library with two faults, its tests, and an agent that follows a script instead of a model. \
Everything else is real: the hooks, the checks, the loop. All of it lives in a temporary folder that \
is removed at the end.

";

const CLOSING: &str = "\
The temporary folder is gone. What to type next:
  crew install                                   once; then, in Claude Code:
  /crew:loop \"task\" --verify \"your test command\"
  crew run \"task\" --verify \"your test command\"   the same without a session
";

/// `crew demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Watch a fleet of six tasks instead, until all are on main
    #[arg(long)]
    pub fleet: bool,
    /// Leave out the pauses that a terminal gets
    #[arg(long)]
    pub fast: bool,
    /// Be the scripted agent of that fleet
    #[arg(long, hide = true, num_args = 2, value_names = ["FOLDER", "TASK"])]
    pub agent: Vec<String>,
}

/// How a demo ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    ToTheEnd,
    /// Somebody asked it to stop.
    Interrupted,
}

/// Plays the demo; `print` gets each line of a scene when it has happened. The scratch folder is
/// removed, whatever happens in it.
pub fn play(is_fleet: bool, has_pauses: bool, print: impl Fn(&str)) -> Result<Played> {
    let is_hurried = Cell::new(!has_pauses);
    let show = |scene: &str| pace::show(scene, &is_hurried, &print);
    let scratch = Scratch::make()?;
    let played = if is_fleet { fleet::perform(&scratch, &show) } else { perform(&scratch, &show) };
    let interrupted = scratch.interrupted();
    scratch.remove()?;
    if interrupted {
        return Ok(Played::Interrupted);
    }
    played?;
    show(if is_fleet { fleet::CLOSING } else { CLOSING });
    Ok(Played::ToTheEnd)
}

fn perform(scratch: &Scratch, show: &impl Fn(&str)) -> Result<()> {
    scratch.furnish(&[(LIBRARY, BROKEN), (TESTS, TESTS_TEXT)])?;
    show(OPENING);
    show(&format!("> /crew:loop {COMMAND}\n\n"));
    let typed = json!({ "command_name": "crew:loop", "command_args": COMMAND });
    let begun = scratch.hook("UserPromptExpansion", typed)?;
    if let Some(reason) = begun["reason"].as_str() {
        bail!("the loop did not start: {reason}");
    }
    show(&shown(&begun)?);
    let mut page = None;
    for (iteration, turn) in (1..).zip(&TURNS) {
        scratch.act(turn)?;
        let says = indented(turn.says, "    ");
        show(&format!("* iteration {iteration}: {}\n{says}\n", turn.does));
        let stop = json!({ "last_assistant_message": turn.says, "stop_hook_active": false });
        let answer = scratch.hook("Stop", stop)?;
        show(&shown(&answer)?);
        let Some(prompt) = answer["hookSpecificOutput"]["additionalContext"].as_str() else {
            page = answer["systemMessage"].as_str().map(str::to_owned);
            break;
        };
        if let Some(refusal) = refusal(prompt) {
            show(&format!("  what the agent reads:\n{}\n\n", indented(refusal, "    | ")));
        }
    }
    if !page.is_some_and(|page| page.contains("proof: checked")) {
        bail!("the loop did not end as completed and checked");
    }
    Ok(())
}

/// An answer's words for the person, as the client shows them: below the agent's.
fn shown(answer: &Value) -> Result<String> {
    let words = answer["systemMessage"].as_str().context("the hook said nothing")?;
    // The folder that the next command would show is gone by then.
    let words = words.split("\n  next ").next().unwrap_or(words);
    Ok(indented(words.trim_end(), "  ") + "\n\n")
}

/// The part of a prompt that reports a refused claim.
fn refusal(prompt: &str) -> Option<&str> {
    let (verdict, reason) = prompt.split_once("\n\n")?;
    verdict.contains("not accepted").then(|| reason.split("\n\n").next()).flatten()
}

fn indented(text: &str, margin: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| format!("{margin}{line}").trim_end().to_owned()).collect();
    lines.join("\n")
}
