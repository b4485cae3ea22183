//! The demo: a whole loop in a scratch repository, with a scripted agent in place of the model and
//! crew's real hooks where the client has them. It shows what a person would see there, and reports
//! an error when the loop did not end well. The agent's script fixes a shell library with two
//! faults in three iterations and claims too early once. `fleet` is the same for many loops at
//! once.

pub mod fleet;
mod scratch;

use std::cell::Cell;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::scratch::Scratch;
use crate::world::{fault, terminal};

/// What the user types after `/crew:loop`.
pub const COMMAND: &str =
    r#""Make every test in test.sh pass" --verify "sh test.sh" --max-iterations 5"#;

/// The name of the library.
pub const LIBRARY: &str = "numbers.sh";
/// The library as the agent finds it.
pub const BROKEN: &str = include_str!("scripts/numbers.sh");

/// The name of the tests.
pub const TESTS: &str = "test.sh";
/// The tests, which the agent never touches.
pub const TESTS_TEXT: &str = include_str!("scripts/test.sh");

/// One iteration of the agent.
#[derive(Debug)]
pub struct Turn {
    /// What it does, as its client would show it.
    pub does: &'static str,
    /// The edit: this text of the library becomes that one.
    pub from: &'static str,
    pub to: &'static str,
    /// Whether it commits its work.
    pub commits: bool,
    /// Its final message.
    pub says: &'static str,
}

/// The whole script.
pub const TURNS: [Turn; 3] = [
    Turn {
        does: "edits numbers.sh: sum adds instead of subtracting",
        from: "total - number",
        to: "total + number",
        commits: false,
        says: "sum is right now. Next I will look at largest.",
    },
    Turn {
        does: "edits numbers.sh: largest compares the right way round",
        from: "-lt",
        to: "-gt",
        commits: false,
        says: "That was the last fault; everything passes.\n\n<promise>COMPLETE</promise>",
    },
    Turn {
        does: "edits numbers.sh: largest begins with the first number, not with 0; runs the tests; commits",
        from: "best=0",
        to: "best=$1",
        commits: true,
        says: "The test for negative numbers did fail. All three pass now.\n\n<promise>COMPLETE</promise>",
    },
];

/// The library as the agent leaves it.
pub fn fixed() -> String {
    let fix = |library: String, turn: &Turn| library.replace(turn.from, turn.to);
    TURNS.iter().fold(BROKEN.to_owned(), fix)
}

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
}

/// Plays the demo; `print` gets each line of a scene when it has happened. The scratch folder is
/// removed, whatever happens in it. False if somebody asked it to stop.
pub fn play(is_fleet: bool, has_pauses: bool, print: impl Fn(&str)) -> Result<bool> {
    let is_hurried = Cell::new(!has_pauses);
    let show = |scene: &str| show_slowly(scene, &is_hurried, &print);
    let scratch = Scratch::make()?;
    let played = if is_fleet { fleet::perform(&scratch, &show) } else { perform(&scratch, &show) };
    let interrupted = scratch.interrupted();
    scratch.remove()?;
    if interrupted {
        return Ok(false);
    }
    played?;
    show(if is_fleet { fleet::CLOSING } else { CLOSING });
    Ok(true)
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

/// How long a line with these words stays, in milliseconds; the first that it has counts.
const STAYS: [(&str, u64); 6] = [
    ("> /crew:loop ", 1500),
    ("* iteration ", 1000),
    ("claim refused", 2500),
    ("FAIL ", 2000),
    ("completed after", 2000),
    ("", 100),
];

/// How long the line stays before the next one comes.
fn stays(line: &str) -> Duration {
    let known = STAYS.iter().find(|(words, _)| line.contains(words));
    Duration::from_millis(known.map_or(0, |(_, ms)| *ms))
}

/// Shows the lines of a scene, with pauses unless a person hurries.
fn show_slowly(scene: &str, is_hurried: &Cell<bool>, print: &impl Fn(&str)) {
    for line in scene.strip_suffix('\n').unwrap_or(scene).split('\n') {
        print(line);
        if !is_hurried.get() {
            is_hurried.set(terminal::key_within(fault::wait("CREW_STAY_MS", stays(line))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn every_edit_finds_its_text_once() {
        let mut library = BROKEN.to_owned();
        for turn in &TURNS {
            assert_eq!(library.matches(turn.from).count(), 1, "{}", turn.does);
            library = library.replace(turn.from, turn.to);
        }
    }

    #[test]
    fn every_line_is_shown_also_an_empty_one() {
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
    const SHOWN: &str = include_str!("scripts/shown.txt");

    #[test]
    fn the_demo_takes_about_fifteen_seconds_most_of_them_at_what_matters() {
        let of = |lines: &mut dyn Iterator<Item = &str>| lines.map(stays).sum::<Duration>();
        let all = of(&mut SHOWN.lines());
        assert!((13..=16).contains(&all.as_secs()), "{all:?}");
        let (_, refused) = SHOWN.split_once("claim refused").unwrap();
        let (refused, _) = refused.split_once("* iteration 3").unwrap();
        assert!(of(&mut format!("claim refused{refused}").lines()).as_secs() >= 5);
    }
}
