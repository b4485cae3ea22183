//! The agents crew knows by name: the entries of a compiled-in file. An unknown name is never
//! guessed; the nearest known one is suggested. A command given as one text (`--agent-cmd`) is an
//! agent, too: split into words as a shell splits it, but never run by one, so nothing in it is
//! expanded. The prompt goes to its standard input.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::WITH_EVENTS;
use crate::engine::record::Agent;
use crate::parse::spelling::{nearest, shown};

/// The entries of the file, by name.
const AGENTS: &str = include_str!("agents.toml");

/// An entry of the file.
#[derive(Debug, Deserialize)]
struct FileEntry {
    /// Whether crew was tried with the real tool.
    #[serde(default)]
    tried: bool,
    #[serde(flatten)]
    agent: Agent,
}

/// The agent of this name; `None` if crew does not know it.
pub fn find(name: &str) -> Option<Agent> {
    Some(Agent { name: name.to_owned(), ..agents().remove(name)?.agent })
}

/// The names that `find` knows, the agents with events first.
pub fn known() -> Vec<String> {
    let with_events = WITH_EVENTS.map(|(name, _)| name);
    // Every page of help asks: the headings are enough, and the file is not parsed.
    let headings = AGENTS.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let others: BTreeSet<&str> = headings.filter(|name| !with_events.contains(name)).collect();
    with_events.into_iter().chain(others).map(str::to_owned).collect()
}

/// Whether crew was tried with the real tool. An agent from the user's settings counts as tried.
pub fn is_tried(name: &str) -> bool {
    agents().get(name).is_none_or(|entry| entry.tried)
}

/// Says why a name is not an agent and what to write instead. `own` lists the names from the user's
/// settings.
pub fn unknown(name: &str, own: &[&str]) -> String {
    let known = known();
    let names: Vec<&str> = known.iter().map(String::as_str).chain(own.iter().copied()).collect();
    let name_shown = shown(name);
    match nearest(name, &names) {
        Some(meant) => format!("there is no agent {name_shown}: did you mean {meant}?"),
        None => format!(
            "there is no agent {name_shown}: choose one of {}, add [agents.{name_shown}] to your \
             settings, or give its command with --agent-cmd",
            names.join(", ")
        ),
    }
}

/// The file is part of the program; a test checks that it parses and that its keys are known.
fn agents() -> BTreeMap<String, FileEntry> {
    toml::from_str(AGENTS).unwrap_or_default()
}

/// Reads the command. The agent is named after its program. The error says what to write instead.
pub fn command(text: &str) -> Result<Agent, String> {
    let command = shell_words::split(text).map_err(|_| {
        "--agent-cmd has a quote that is never closed: close it, or write \\ before it for the \
         character itself"
            .to_owned()
    })?;
    // A shell would wait for another line.
    if text.chars().rev().take_while(|it| *it == '\\').count() % 2 == 1 {
        return Err("--agent-cmd ends in a backslash: double it, or remove it".to_owned());
    }
    let program = command.first().filter(|program| !program.is_empty());
    let Some(program) = program else {
        return Err(
            "--agent-cmd is empty: give it a program, such as \"my-agent --quiet\"".to_owned()
        );
    };
    let name = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(program);
    Ok(Agent { name: name.to_owned(), command: command.clone(), ..Agent::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::record::Permissions;

    #[test]
    fn the_file_can_be_read_and_every_known_name_is_found() {
        let keys = ["tried", "command", "login", "prompt", "permissions", "model", "answer_mark"];
        let of_events = ["dialect", "max_turns", "allow", "usage_file", "environment"];
        let keys = [&keys[..], &of_events].concat();
        let file: BTreeMap<String, toml::Table> = toml::from_str(AGENTS).unwrap();
        let unknown = |key: &&String| !keys.contains(&key.as_str());
        assert_eq!(file.values().flat_map(toml::Table::keys).find(unknown), None);
        assert_eq!(
            toml::from_str::<BTreeMap<String, FileEntry>>(AGENTS).unwrap().len(),
            file.len()
        );
        let names = known();
        let with_events = ["claude", "codex", "copilot", "gemini", "opencode", "qwen"];
        let expected = [&with_events[..], &["cursor-agent", "droid", "kiro-cli", "pi"]].concat();
        assert_eq!(names, expected);
        for name in names {
            let agent = find(&name).unwrap();
            assert_eq!((&agent.name, agent.command.is_empty()), (&name, false));
            assert!(agent.permissions.contains_key(&Permissions::Default), "{name}");
            assert!(!agent.login.is_empty(), "{name}: as a fallback it would not be tried");
            let is_read_of = ["cursor-agent", "kiro-cli"].contains(&name.as_str());
            assert_eq!(is_tried(&name), !is_read_of, "{name}");
        }
        assert!(is_tried("one-of-the-users-own"));
        assert_eq!(find("claud"), None);
    }

    #[test]
    fn a_name_that_is_not_known_is_answered_with_the_nearest_or_with_all() {
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
            assert_eq!(unknown(name, &["my-agent"]), expected);
        }
    }

    #[test]
    fn a_command_is_split_at_white_space_with_quotes_and_nothing_is_expanded() {
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
            assert_eq!(command(text).unwrap().command, expected, "{text}");
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
            assert_eq!(command(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn the_agent_is_named_by_its_program() {
        for (text, name) in [("/opt/bin/my-agent x", "my-agent"), ("a", "a"), ("/", "/")] {
            assert_eq!(command(text).unwrap().name, name);
        }
    }
}
