//! The agents: the command line of each one, and what its output says. Pure: it turns options into
//! arguments, and lines of output into a report. `world` starts and reads the process. An option
//! that the agent does not have is refused, never silently dropped.
//!
//! **To add an agent**, describe it in `agents.toml`. **For one with events of its own**, also
//! write a file beside `codex.rs` with an [`AgentEvents`] in it, and list it in [`WITH_EVENTS`].

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use chrono::{DateTime, FixedOffset};
use serde::Deserialize;

use crate::parse::service::find_limit;
use crate::parse::spelling::{find_nearest, shorten_text};
use engine::boundary::facts::{ApiError, ProcessEnd};
use engine::failure::Failure;
use engine::record::{Agent, Check, Dialect, Permissions, PromptVia, Run};

pub mod activity;
mod claude;
mod codex;
mod copilot;
mod events;
mod gemini;
#[cfg(test)]
mod mutations_tests;
mod opencode;
mod qwen;
#[cfg(test)]
mod recordings_tests;
pub mod service;
#[cfg(test)]
mod tests;
mod turn;

pub use self::events::OutputReader;
use self::events::{AgentEvents, Text};
use self::service::Service;
pub use self::turn::Report;

/// Creates the reader of a dialect's events.
type NewEvents = fn() -> Box<dyn AgentEvents>;

/// The agents with their own event format, by name. The name is also the dialect of other agents
/// that print the same format. The first agent is the default.
const WITH_EVENTS: [(&str, NewEvents); 6] = [
    ("claude", || Box::<claude::Claude>::default()),
    ("codex", || Box::new(codex::Codex)),
    ("copilot", || Box::<copilot::Copilot>::default()),
    ("gemini", || Box::<gemini::Gemini>::default()),
    ("opencode", || Box::<opencode::OpenCode>::default()),
    ("qwen", || Box::<qwen::Qwen>::default()),
];

/// The agent used when none is named.
pub const DEFAULT: &str = WITH_EVENTS[0].0;

/// The longest prompt given as an argument, in bytes: Linux accepts one argument of less than 128
/// KiB.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024 - 1;

/// The placeholder for the command of a check in the argument that allows it.
const COMMAND: &str = "{check}";
/// The same placeholder in a rule that accepts only commands of plain words.
const WORDS: &str = "{words}";

/// The service of an agent that prints this dialect, if crew knows it.
pub fn service_of(dialect: &Dialect) -> Option<&'static Service> {
    if dialect.0 == DEFAULT { Some(&claude::SERVICE) } else { None }
}

/// The program to start, its arguments, its variables and its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub program: String,
    pub arguments: Vec<String>,
    /// Added to its environment.
    pub variables: BTreeMap<String, String>,
    /// Written to its standard input, which is then closed.
    pub input: String,
}

/// The reader for an agent's output.
pub fn create_reader(agent: &Agent) -> OutputReader {
    let events = match WITH_EVENTS.iter().find(|(name, _)| *name == agent.dialect.0) {
        Some((_, new)) => new(),
        None => Box::new(Text::with_mark(agent.answer_mark.clone())),
    };
    OutputReader::new(&agent.name, events)
}

/// Whether the agent prints events instead of plain text.
pub fn has_events(agent: &Agent) -> bool {
    WITH_EVENTS.iter().any(|(name, _)| *name == agent.dialect.0)
}

/// The words for the formats of output that crew can read.
pub fn output_formats() -> Vec<&'static str> {
    iter::once(Dialect::PLAIN).chain(WITH_EVENTS.map(|(name, _)| name)).collect()
}

/// A limit of the model's service that an agent without events, or one before its first event,
/// reported on its standard error. `None` unless the agent exited with an error.
pub fn reported_limit(
    agent: &Agent,
    report: &Report,
    process: &ProcessEnd,
    errors: &str,
    now: DateTime<FixedOffset>,
) -> Option<ApiError> {
    let is_failed = matches!(process, ProcessEnd::Exit(code) if *code != 0);
    let has_no_events = agent.dialect == Dialect::TEXT || report.is_without_events();
    if is_failed && has_no_events { find_limit(errors, now) } else { None }
}

/// Builds the command line of an iteration of this run. Under `AcceptEdits` the agent may run the
/// `checks`, too. An agent that can leaves what it used in `usage_file`. The error names the option
/// that the agent does not have, and calls the agent `role`.
pub fn build_launch(
    run: &Run,
    role: &str,
    prompt: &str,
    checks: &[Check],
    usage_file: &str,
) -> Result<Launch, Failure> {
    let Run { agent, permissions: asked, .. } = run;
    let who = format!("{role} {}", agent.name);
    let (program, fixed) = match agent.command.split_first() {
        Some((program, fixed)) if !program.is_empty() => (program, fixed),
        _ => {
            let fault = format!("{who} has no command");
            return Err(Failure::usage(fault, "write `command = [\"program\", …]`"));
        }
    };
    let mut arguments = fixed.to_vec();
    arguments.extend(permission_rules(run, checks).0);
    arguments.extend_from_slice(permission_arguments(agent, &who, *asked)?);
    if let Some(option) = &agent.usage_file {
        arguments.extend([option.clone(), usage_file.to_owned()]);
    }
    if run.max_turns > 0 {
        let Some(option) = &agent.max_turns else {
            return Err(Failure::usage(
                format!("{who} has no limit on turns"),
                "remove max_turns from the settings, or use --timeout as the limit",
            ));
        };
        arguments.extend([option.clone(), run.max_turns.to_string()]);
    }
    if let Some(model) = &run.model {
        let Some(option) = &agent.model else {
            return Err(Failure::usage(
                format!("{who} does not accept --model"),
                format!("give it its own option after `--`, as in -- --model {model}"),
            ));
        };
        arguments.extend([option.clone(), model.clone()]);
    }
    arguments.extend_from_slice(&run.words);
    let mut input = String::new();
    match agent.prompt {
        PromptVia::Stdin => prompt.clone_into(&mut input),
        PromptVia::Argument => arguments.push(check_argument(&who, prompt)?),
    }
    let variables = agent.environment.clone();
    Ok(Launch { program: program.clone(), arguments, variables, input })
}

/// The arguments that allow the checks, each once, and the commands that no rule can name.
fn permission_rules<'checks>(
    run: &Run,
    checks: &'checks [Check],
) -> (Vec<String>, Vec<&'checks str>) {
    let (mut rules, mut unnamed) = (Vec::new(), Vec::new());
    let template = match &run.agent.allow {
        Some(template) if run.permissions == Permissions::AcceptEdits => template,
        _ => return (rules, unnamed),
    };
    let takes_words_only = template.contains(WORDS);
    for check in checks {
        let run = check.run.trim();
        let is_named = if takes_words_only {
            run.chars().all(|c| c.is_ascii_alphanumeric() || " -_./=+@%".contains(c))
        } else {
            // In a rule a star is a wildcard, parentheses delimit it, and a backslash escapes.
            !run.contains(|c: char| "*()\\".contains(c) || c.is_control())
        };
        if !is_named {
            unnamed.push(run);
            continue;
        }
        let rule = template.replace(if takes_words_only { WORDS } else { COMMAND }, run);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    (rules, unnamed)
}

/// The checks that an agent under `AcceptEdits` may not run, because no rule can match exactly that
/// command.
pub fn not_allowed<'checks>(run: &Run, checks: &'checks [Check]) -> Vec<&'checks str> {
    permission_rules(run, checks).1
}

/// The arguments that request these permissions. A command without listed permissions, such as one
/// from `--agent-cmd`, has its own: only more than `AcceptEdits` is refused for it.
fn permission_arguments<'a>(
    agent: &'a Agent,
    who: &str,
    asked: Permissions,
) -> Result<&'a [String], Failure> {
    if let Some(arguments) = agent.permissions.get(&asked) {
        return Ok(arguments);
    }
    if agent.permissions.is_empty() {
        if asked <= Permissions::AcceptEdits {
            return Ok(&[]);
        }
        return Err(Failure::usage(
            format!("{who} does not accept --permissions {}", asked.label()),
            "put the agent's own option into its command",
        ));
    }
    let known: Vec<&str> = agent.permissions.keys().map(|kind| kind.label()).collect();
    Err(Failure::usage(
        format!("{who} does not support --permissions {}", asked.label()),
        format!("choose --permissions {}", known.join(" or ")),
    ))
}

/// Checks that the system can pass the prompt as an argument; the error says why it cannot.
fn check_argument(who: &str, prompt: &str) -> Result<String, Failure> {
    if prompt.len() > ARGUMENT_BYTES_MAX {
        let fault = format!(
            "the prompt has {} bytes, and {who} accepts it only as an argument of at most \
             {ARGUMENT_BYTES_MAX}",
            prompt.len()
        );
        return Err(Failure::usage(fault, "shorten the task or its context"));
    }
    if prompt.contains('\0') {
        let fault = format!(
            "the prompt contains a NUL character, and {who} accepts it only as an argument"
        );
        return Err(Failure::usage(fault, "remove the NUL character"));
    }
    Ok(prompt.to_owned())
}

// The agents crew knows by name: the entries of a compiled-in file. An unknown name is never
// guessed; the nearest known one is suggested. A command given as one text (`--agent-cmd`) is an
// agent, too: split into words as a shell splits it, but never run by one, so nothing in it is
// expanded. The prompt goes to its standard input.

/// The file with crew's own agents, by name.
const AGENTS: &str = include_str!("agents/agents.toml");

/// An agent in that file.
#[derive(Debug, Deserialize)]
struct FileEntry {
    /// Whether crew was tried with the real program.
    #[serde(default)]
    tried: bool,
    #[serde(flatten)]
    agent: Agent,
}

/// The agent of this name; `None` if crew does not know it.
pub fn find_agent(name: &str) -> Option<Agent> {
    Some(Agent { name: name.to_owned(), ..parse_agents().remove(name)?.agent })
}

/// The names that [`find_agent`] knows, the agents with events first.
pub fn known_names() -> Vec<String> {
    let with_events = WITH_EVENTS.map(|(name, _)| name);
    // Every page of help asks: the headings are enough, and the file is not parsed.
    let headings = AGENTS.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let others: BTreeSet<&str> = headings.filter(|name| !with_events.contains(name)).collect();
    with_events.into_iter().chain(others).map(str::to_owned).collect()
}

/// Whether crew was tried with the real program. An agent from the user's settings counts as tried.
pub fn is_tried(name: &str) -> bool {
    parse_agents().get(name).is_none_or(|entry| entry.tried)
}

/// The error for a name that is not an agent, with what to write instead. `own` lists the names
/// from the user's settings.
pub fn describe_unknown(name: &str, own: &[&str]) -> Failure {
    let known = known_names();
    let names: Vec<&str> = known.iter().map(String::as_str).chain(own.iter().copied()).collect();
    let name_shown = shorten_text(name);
    let hint = match find_nearest(name, &names) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!(
            "choose one of {}, add [agents.{name_shown}] to your settings, or give its command with \
             --agent-cmd",
            names.join(", ")
        ),
    };
    Failure::usage(format!("there is no agent {name_shown}"), hint)
}

/// The entries of the compiled-in file; a test checks that it parses and that its keys are known.
fn parse_agents() -> BTreeMap<String, FileEntry> {
    toml::from_str(AGENTS).unwrap_or_default()
}

/// Reads the command of an agent, which is named after its program. The error says what to write
/// instead.
pub fn parse_agent_command(text: &str) -> Result<Agent, Failure> {
    let command = shell_words::split(text).map_err(|_| {
        Failure::usage(
            "--agent-cmd has a quote that is never closed",
            "close it, or write \\ before it for the character itself",
        )
    })?;
    // A shell would wait for another line.
    if text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1 {
        return Err(Failure::usage("--agent-cmd ends in a backslash", "double it, or remove it"));
    }
    let program = command.first().filter(|program| !program.is_empty()).ok_or_else(|| {
        Failure::usage("--agent-cmd is empty", "give it a program, such as \"my-agent --quiet\"")
    })?;
    let name = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(program);
    Ok(Agent { name: name.to_owned(), command: command.clone(), ..Agent::default() })
}

#[cfg(test)]
mod catalogue_tests {
    use super::*;
    use engine::record::Permissions;

    #[test]
    fn the_file_parses_and_every_known_name_is_found() {
        let keys = ["tried", "command", "login", "prompt", "permissions", "model", "answer_mark"];
        let of_events = ["dialect", "max_turns", "allow", "usage_file", "environment"];
        let keys = [&keys[..], &of_events].concat();
        let file: BTreeMap<String, toml::Table> = toml::from_str(AGENTS).unwrap();
        let mut used = file.values().flat_map(toml::Table::keys);
        assert_eq!(used.find(|key| !keys.contains(&key.as_str())), None);
        assert_eq!(
            toml::from_str::<BTreeMap<String, FileEntry>>(AGENTS).unwrap().len(),
            file.len()
        );
        let names = known_names();
        let with_events = ["claude", "codex", "copilot", "gemini", "opencode", "qwen"];
        let expected = [&with_events[..], &["cursor-agent", "droid", "kiro-cli", "pi"]].concat();
        assert_eq!(names, expected);
        for name in names {
            let agent = find_agent(&name).unwrap();
            assert_eq!((&agent.name, agent.command.is_empty()), (&name, false));
            assert!(agent.permissions.contains_key(&Permissions::Default), "{name}");
            assert!(!agent.login.is_empty(), "{name}: as a fallback it would not be tried");
            let is_read_of = ["cursor-agent", "kiro-cli"].contains(&name.as_str());
            assert_eq!(is_tried(&name), !is_read_of, "{name}");
        }
        assert!(is_tried("one-of-the-users-own"));
        assert_eq!(find_agent("claud"), None);
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest_or_lists_all() {
        let table = [
            ("claud", "there is no agent claud: did you mean claude?"),
            ("Codex", "there is no agent Codex: did you mean codex?"),
            ("kiro", "there is no agent kiro: did you mean kiro-cli?"),
            ("my-agnt", "there is no agent my-agnt: did you mean my-agent?"),
            (
                "xyzzy",
                "there is no agent xyzzy: choose one of claude, codex, copilot, gemini, opencode, \
                 qwen, cursor-agent, droid, kiro-cli, pi, my-agent, add [agents.xyzzy] to your settings, or give its \
                 command with --agent-cmd",
            ),
        ];
        for (name, expected) in table {
            assert_eq!(describe_unknown(name, &["my-agent"]).join_with(": "), expected);
        }
    }

    #[test]
    fn a_command_is_split_like_in_a_shell_but_not_expanded() {
        let table: [(&str, &[&str]); 11] = [
            ("agent", &["agent"]),
            ("  agent\t--fast \n x ", &["agent", "--fast", "x"]),
            ("agent 'two words' \"and 'three' more\"", &["agent", "two words", "and 'three' more"]),
            (r#"agent --say="a \"b\" \n \\""#, &["agent", r#"--say=a "b" \n \"#]),
            (r"agent two\ words \'x", &["agent", "two words", "'x"]),
            ("agent '' \"\"", &["agent", "", ""]),
            (
                "agent $HOME `ls` *.rs ~ | sh; x > y",
                &["agent", "$HOME", "`ls`", "*.rs", "~", "|", "sh;", "x", ">", "y"],
            ),
            ("agent {prompt} é'ü 漢'", &["agent", "{prompt}", "éü 漢"]),
            (r"agent 'C:\dir\'", &["agent", r"C:\dir\"]),
            ("agent \\\n--fast a\\\\", &["agent", "--fast", "a\\"]),
            ("agent a#1 '#2' # 3", &["agent", "a#1", "#2"]),
        ];
        for (text, expected) in table {
            assert_eq!(parse_agent_command(text).unwrap().command, expected, "{text}");
        }
    }

    #[test]
    fn a_command_that_cannot_be_read_says_what_to_write() {
        let empty = "--agent-cmd is empty: give it a program, such as \"my-agent --quiet\"";
        let unclosed = "--agent-cmd has a quote that is never closed: close it, or write \\ before it for the character itself";
        let table = [
            ("", empty),
            (" \n", empty),
            ("'' x", empty),
            ("agent 'x", unclosed),
            ("agent it's fine", unclosed),
            ("agent \"x\\\"", unclosed),
            ("agent \\", "--agent-cmd ends in a backslash: double it, or remove it"),
        ];
        for (text, expected) in table {
            assert_eq!(parse_agent_command(text).unwrap_err().join_with(": "), expected, "{text}");
        }
    }

    #[test]
    fn the_agent_is_named_after_its_program() {
        for (text, name) in [("/opt/bin/my-agent x", "my-agent"), ("a", "a"), ("/", "/")] {
            assert_eq!(parse_agent_command(text).unwrap().name, name);
        }
    }
}
