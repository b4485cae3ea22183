//! What people type where crew has another word. A word with one meaning becomes the verb it means;
//! one with two, or a task without a verb, becomes an error that names what to type. Nothing starts
//! a loop here, because a start is asked for in crew's own words.

use std::ffi::OsString;

use clap::Subcommand as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::fleet::FleetVerb;
use super::usage::UsageError;
use crate::engine::doctor::shell_word;
use crate::parse::spelling::{nearest, shown};

/// A command line in crew's own words.
#[derive(Debug, PartialEq, Eq)]
pub struct Meant {
    /// The program's name, the verb and what follows it.
    pub words: Vec<OsString>,
    /// "ls is crew status --all", where another word was typed than the verb's own.
    pub told: Option<String>,
}

/// The command line that was meant by the words crew was called with.
///
/// # Errors
/// When the first word could mean several verbs, or starts a loop without saying so.
pub fn meant(given: Vec<OsString>) -> Result<Meant, UsageError> {
    let words: Option<Vec<&str>> = given.iter().map(|word| word.to_str()).collect();
    let Some([program, typed, rest @ ..]) = words.as_deref() else {
        return Ok(Meant { words: given, told: None });
    };
    let verb: &[&str] = match *typed {
        "ls" | "list" | "ps" => &["status", "--all"],
        "log" | "logs" | "tail" => &["show", "--log", "-f"],
        "help" => return help(program, rest),
        "version" => return Ok(Meant { words: own(program, &["--version"], &[]), told: None }),
        "stop" | "kill" | "abort" | "end" | "quit" => return Err(stop(typed, rest)),
        "start" | "loop" => return Err(start(typed, rest)),
        task if task.contains(char::is_whitespace) && !task.starts_with('-') => {
            return Err(UsageError::new(
                format!("`{}` is a task, not a command", shown(task)),
                format!("crew run {}", line(&words.unwrap_or_default()[1..])),
            ));
        }
        _ => return Ok(Meant { words: given, told: None }),
    };
    let rest: Vec<&str> =
        rest.iter().copied().filter(|word| !verb.contains(word) && *word != "--follow").collect();
    let told = Some(format!("{typed} is crew {}", verb.join(" ")));
    Ok(Meant { words: own(program, verb, &rest), told })
}

/// Words of other tools, each with the verb that does the same.
const OTHERS_WORDS: [(&str, &str); 13] = [
    ("undo", "back"),
    ("rollback", "back"),
    ("restore", "back"),
    ("revert", "back"),
    ("rm", "clean"),
    ("remove", "clean"),
    ("delete", "clean"),
    ("prune", "clean"),
    ("monitor", "watch"),
    ("dashboard", "watch"),
    ("top", "watch"),
    ("settings", "config"),
    ("continue", "resume"),
];

/// Words of other tools for what crew has no verb for, however near one is in letters.
const NO_VERB: [&str; 2] = ["update", "upgrade"];

/// The only verb that has others below it.
const FLEET: &str = "fleet";

/// The error for a verb that does not exist; it may be one of crew's `procedures`.
pub fn unknown(error: &clap::Error, words: &[OsString], procedures: &[&str]) -> Option<UsageError> {
    let verb = words.get(1).filter(|_| error.kind() == ErrorKind::InvalidSubcommand)?;
    let rest: Vec<_> = words[1..].iter().map(|word| word.to_string_lossy()).collect();
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) if rest[0] == FLEET && typed != FLEET => {
            return Some(unknown_of_fleet(typed));
        }
        _ => {}
    }
    let near = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(near)) => near.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let hint = match OTHERS_WORDS.iter().find(|(word, _)| *word == rest[0]) {
        Some((_, meant)) => format!("did you mean crew {meant}? crew --help names all"),
        None if procedures.contains(&&*rest[0]) && rest.len() == 1 => {
            format!("crew run {} runs that procedure", rest[0])
        }
        None if !near.is_empty() && !NO_VERB.contains(&&*rest[0]) => {
            let meant = nearest(&rest[0], &near).unwrap_or(near[near.len() - 1]);
            format!("did you mean crew {meant}? crew --help names all")
        }
        // Several plain words are rather a task than a misspelt verb.
        _ if rest.len() > 1 && !rest[1].starts_with('-') => {
            let rest: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
            format!("crew run {}, if it is a task; crew --help names the commands", line(&rest))
        }
        _ => "crew --help names the commands".to_owned(),
    };
    Some(UsageError::new(format!("there is no command `{}`", shown(&verb.to_string_lossy())), hint))
}

/// The error for a verb that does not exist below `fleet`.
fn unknown_of_fleet(typed: &str) -> UsageError {
    let fleet = FleetVerb::augment_subcommands(clap::Command::new(FLEET));
    let verbs: Vec<&str> = fleet.get_subcommands().map(clap::Command::get_name).collect();
    let meant = match typed {
        "resume" | "continue" | "start" => Some("crew fleet run FOLDER".to_owned()),
        "stop" | "end" | "kill" => Some("crew fleet cancel".to_owned()),
        "clean" | "remove" | "delete" | "rm" => Some("crew fleet forget NAME".to_owned()),
        "tell" => Some("crew tell --fleet NAME \"MESSAGE\"".to_owned()),
        _ => nearest(typed, &verbs).map(|verb| format!("crew fleet {verb}")),
    };
    let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
    let hint = format!("{meant}the commands of fleets are {}", verbs.join(", "));
    UsageError::new(format!("there is no command `fleet {}`", shown(typed)), hint)
}

/// The error for a folder that stands where `--land` looks for its value.
pub fn swallowed(error: &clap::Error, words: &[OsString]) -> Option<UsageError> {
    let [argument, folder] =
        [ContextKind::InvalidArg, ContextKind::InvalidValue].map(|kind| match error.get(kind) {
            Some(ContextValue::String(text)) => text.as_str(),
            _ => "",
        });
    let follows = |two: &[OsString]| two[0] == "--land" && two[1] == folder;
    let is_it = argument.starts_with("--land ") && words.windows(2).any(follows);
    let folder = shown(folder);
    is_it.then(|| {
        UsageError::new(
            format!("`{folder}` follows --land, whose only value is pr"),
            format!("the folder stands before it: crew fleet run {} --land", shell_word(&folder)),
        )
    })
}

fn own(program: &str, verb: &[&str], rest: &[&str]) -> Vec<OsString> {
    [&[program], verb, rest].concat().into_iter().map(OsString::from).collect()
}

fn help(program: &str, rest: &[&str]) -> Result<Meant, UsageError> {
    let verb = rest.first().into_iter().map(|verb| OsString::from(*verb));
    let mut meant = meant([OsString::from(program)].into_iter().chain(verb).collect())?;
    meant.words.push("--help".into());
    Ok(meant)
}

fn stop(typed: &str, rest: &[&str]) -> UsageError {
    let named = rest.first().filter(|word| !word.starts_with('-'));
    let named = named.map(|word| format!(" {}", shell_word(word))).unwrap_or_default();
    UsageError::new(
        format!("{typed}: which?"),
        format!(
            "crew pause{named} (after this iteration, --now at once) or crew cancel{named} (ends it; can be resumed)"
        ),
    )
}

fn start(typed: &str, rest: &[&str]) -> UsageError {
    let task = |line: String| if line.is_empty() { "\"task\"".to_owned() } else { line };
    let quoted = |word: &&str| {
        if word.contains(char::is_whitespace) {
            format!("\"{}\"", word.replace('"', "\\\""))
        } else {
            (*word).to_owned()
        }
    };
    let (here, there) = (task(line(rest)), rest.iter().map(quoted).collect::<Vec<_>>().join(" "));
    UsageError::new(
        format!("{typed}: a terminal starts a loop with crew run"),
        format!("crew run {here}; or, in Claude Code: /crew:loop {}", task(there)),
    )
}

/// Words as a shell reads them.
fn line(words: &[&str]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Result<(String, Option<String>), String> {
        let words = shell_words::split(&format!("crew {line}")).unwrap();
        let meant = meant(words.into_iter().map(OsString::from).collect());
        let meant = meant.map_err(|error| error.to_string())?;
        let words: Vec<_> = meant.words[1..].iter().map(|it| it.to_str().unwrap()).collect();
        Ok((words.join(" "), meant.told))
    }

    #[test]
    fn a_word_of_another_tool_is_the_verb_it_means() {
        for (line, expected, told) in [
            ("ls", "status --all", Some("ls is crew status --all")),
            ("list --all --json", "status --all --json", Some("list is crew status --all")),
            ("logs", "show --log -f", Some("logs is crew show --log -f")),
            ("log k3v9 -f --raw", "show --log -f k3v9 --raw", Some("log is crew show --log -f")),
            ("help", "--help", None),
            ("help run", "run --help", None),
            ("help ls", "status --all --help", Some("ls is crew status --all")),
            ("version", "--version", None),
            ("status list", "status list", None),
            ("run 'do it'", "run do it", None),
            ("--help", "--help", None),
            ("", "", None),
        ] {
            let expected = Ok((expected.to_owned(), told.map(str::to_owned)));
            assert_eq!(typed(line), expected, "{line}");
        }
    }

    #[test]
    fn a_word_with_two_meanings_and_a_task_without_a_verb_name_what_to_type() {
        let lines = [
            "stop",
            "stop k3v9 --now",
            "help stop",
            "start",
            "loop 'build it' -n 5 --verify 'cargo test'",
            "'do it please' -n 5",
        ];
        let told: Vec<String> = lines.iter().map(|line| typed(line).unwrap_err()).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        stop: which?
        hint: crew pause (after this iteration, --now at once) or crew cancel (ends it; can be resumed)
        stop: which?
        hint: crew pause k3v9 (after this iteration, --now at once) or crew cancel k3v9 (ends it; can be resumed)
        stop: which?
        hint: crew pause (after this iteration, --now at once) or crew cancel (ends it; can be resumed)
        start: a terminal starts a loop with crew run
        hint: crew run "task"; or, in Claude Code: /crew:loop "task"
        loop: a terminal starts a loop with crew run
        hint: crew run 'build it' -n 5 --verify 'cargo test'; or, in Claude Code: /crew:loop "build it" -n 5 --verify "cargo test"
        `do it please` is a task, not a command
        hint: crew run 'do it please' -n 5
        "#);
    }
}
