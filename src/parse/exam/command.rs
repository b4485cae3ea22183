//! Cuts a text of `sh` into its commands that rest on a file. Quotes are obeyed. Variables and
//! substitutions are not expanded, so a word with one names no file.

use crate::parse::program::INTERPRETERS;

/// One command, by what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimpleCommand {
    /// `cd`: where the following commands run.
    Folder(String),
    /// `sh -c TEXT`.
    Shell(String),
    /// A program or script with a path of its own.
    Script(String),
    Make {
        folder: String,
        file: Option<String>,
        goals: Vec<String>,
    },
    Just {
        recipes: Vec<String>,
    },
    /// A script of `package.json`.
    Package {
        script: String,
    },
    /// A test runner, with the files that it was given.
    Tests(Vec<String>),
    /// A module of Python, found in the folder before anywhere else, with the files that it was
    /// given if it runs tests.
    Module {
        name: String,
        tests: Vec<String>,
    },
    /// A program without a path, found on `PATH`; what it is given follows.
    Program(String),
}

/// Words before a command that run it; a number after one is its argument.
const WRAPPERS: [&str; 16] = [
    "env", "time", "timeout", "nice", "exec", "command", "sudo", "xvfb-run", "npx", "bunx", "!",
    "if", "then", "do", "else", "while",
];
/// Programs that run the rest of their words after `run` or `exec`.
const RUNNERS: [&str; 8] = ["uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle", "mise"];
/// Programs that run tests, and modules of Python that do.
const TEST_RUNNERS: [&str; 14] = [
    "pytest", "py.test", "unittest", "nose2", "jest", "vitest", "mocha", "ava", "tap", "rspec",
    "phpunit", "bats", "prove", "minitest",
];
/// Options of interpreters that take the next word.
const WITH_VALUE: [&str; 5] = ["-r", "--require", "-W", "-X", "--import"];

/// The commands of a text that rest on a file, in order.
pub fn simple_commands(run: &str) -> Vec<SimpleCommand> {
    let mut commands = Vec::new();
    for piece in pieces(run) {
        let Ok(mut words) = shell_words::split(&piece) else { continue };
        unwrap(&mut words);
        let program = words.first().filter(|word| !word.contains('/'));
        commands.extend(program.cloned().map(SimpleCommand::Program));
        commands.extend(read(&words));
    }
    commands
}

/// The word of a command that limits its tests to what changed: `--onlyChanged`, `nx affected`.
pub fn only_what_changed(run: &str) -> Option<String> {
    const OPTIONS: [&str; 9] = [
        "--changed",
        "--changedSince",
        "--onlyChanged",
        "--only-changed",
        "--last-failed",
        "--lf",
        "--testmon",
        "--affected",
        "--findRelatedTests",
    ];
    let words = pieces(run).into_iter().filter_map(|piece| shell_words::split(&piece).ok());
    let is_such = |word: &String| OPTIONS.contains(&word.split('=').next().unwrap_or_default());
    words.into_iter().find_map(|words| {
        let is_nx = words.iter().any(|word| word == "nx");
        let affected = words.iter().find(|word| is_nx && word.starts_with("affected"));
        words.iter().find(|word| is_such(word)).or(affected).cloned()
    })
}

/// The text between unquoted operators.
fn pieces(run: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut quote = None;
    let mut is_escaped = false;
    for letter in run.chars() {
        let is_operator = quote.is_none() && !is_escaped && ";&|\n(){}".contains(letter);
        if is_operator {
            pieces.push(String::new());
            continue;
        }
        match (quote, letter) {
            _ if is_escaped => {}
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped && quote != Some('\'');
        if let Some(piece) = pieces.last_mut() {
            piece.push(letter);
        }
    }
    pieces
}

fn read(words: &[String]) -> Option<SimpleCommand> {
    let program = words.first()?.clone();
    let rest = &words[1..];
    let plain = |word: &&String| !word.starts_with('-') && !word.contains('=');
    Some(match program.rsplit('/').next().unwrap_or_default() {
        "cd" => SimpleCommand::Folder(rest.iter().find(plain)?.clone()),
        "." | "source" => SimpleCommand::Script(rest.first()?.clone()),
        "make" | "gmake" => make(rest),
        "just" => SimpleCommand::Just { recipes: rest.iter().filter(plain).cloned().collect() },
        "npm" | "pnpm" | "yarn" | "bun" => {
            SimpleCommand::Package { script: script(&program, rest)? }
        }
        "sh" | "bash" | "dash" | "zsh" | "ksh" if has_text(rest) => {
            SimpleCommand::Shell(rest.iter().find(plain)?.clone())
        }
        name if TEST_RUNNERS.contains(&name) => SimpleCommand::Tests(files(rest)),
        name if INTERPRETERS.contains(&name) => interpreted(rest)?,
        _ if program.contains('/') => SimpleCommand::Script(program),
        _ => return None,
    })
}

/// Takes away assignments, and programs that only run another one.
fn unwrap(words: &mut Vec<String>) {
    let mut is_wrapped = false;
    while let Some(first) = words.first() {
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        });
        let runs = |word: &String| word == "run" || word == "exec";
        let is_argument = is_wrapped
            && (first.starts_with('-') || first.starts_with(|it: char| it.is_ascii_digit()));
        let taken = if RUNNERS.contains(&first.as_str()) && words.get(1).is_some_and(runs) {
            2
        } else if is_assignment || is_argument || WRAPPERS.contains(&first.as_str()) {
            1
        } else {
            return;
        };
        is_wrapped = true;
        words.drain(..taken);
    }
}

/// Whether a shell is given its commands as a text: `-c`, `-ec`.
fn has_text(words: &[String]) -> bool {
    words.iter().take_while(|word| word.starts_with('-')).any(|word| word.ends_with('c'))
}

/// What an interpreter runs: a script, the module after `-m`, or tests.
fn interpreted(words: &[String]) -> Option<SimpleCommand> {
    if words.iter().any(|word| word == "--test") {
        return Some(SimpleCommand::Tests(files(words)));
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "-m" {
            let name = words.next()?.clone();
            let is_runner = TEST_RUNNERS.contains(&name.as_str());
            let tests = if is_runner { files(words.as_slice()) } else { Vec::new() };
            return Some(SimpleCommand::Module { name, tests });
        }
        if WITH_VALUE.contains(&word.as_str()) {
            words.next()?;
        } else if !word.starts_with('-') {
            return Some(SimpleCommand::Script(word.clone()));
        }
    }
    None
}

/// The words of a test runner that may be files: `test_tax.py::test_round` names one.
fn files(words: &[String]) -> Vec<String> {
    let files = words.iter().filter(|word| !word.starts_with('-'));
    files.map(|word| word.split("::").next().unwrap_or_default().to_owned()).collect()
}

fn make(words: &[String]) -> SimpleCommand {
    let (mut folder, mut file, mut goals) = (String::new(), None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-C" | "--directory" => folder = words.next().cloned().unwrap_or_default(),
            "-f" | "--file" => file = words.next().cloned(),
            word if word.starts_with('-') || word.contains('=') => {}
            word if word.starts_with(|it: char| it.is_ascii_digit()) => {}
            goal => goals.push(goal.to_owned()),
        }
    }
    SimpleCommand::Make { folder, file, goals }
}

/// The script that a package manager runs; `None` for its own commands.
fn script(program: &str, words: &[String]) -> Option<String> {
    let mut words = words.iter().filter(|word| !word.starts_with('-'));
    let first = words.next()?;
    match first.as_str() {
        "run" | "run-script" => words.next().cloned(),
        "test" | "t" if program == "bun" => None,
        "test" | "t" | "tst" => Some("test".to_owned()),
        "start" | "stop" => Some(first.clone()),
        "exec" | "install" | "ci" | "add" | "x" | "dlx" => None,
        _ if program == "npm" || program == "bun" => None,
        name => Some(name.to_owned()),
    }
}
