//! The agents: how each one's command line is built, and what its output says. Pure: options in,
//! arguments out; lines in, a report out. `world` starts and reads the process. An option that the
//! agent does not have is refused, never silently dropped.
//!
//! **To add an agent**, describe it in `agents.toml`. **For one with events of its own**, also
//! write a file beside `codex.rs` with an [`AgentEvents`] in it, and list it in [`WITH_EVENTS`].

use std::collections::BTreeMap;
use std::iter;

use chrono::{DateTime, FixedOffset};

use crate::engine::boundary::facts::{ApiError, ProcessEnd};
use crate::engine::record::{Agent, Check, Dialect, Permissions, PromptVia, Run};
use crate::parse::service::limit;

pub mod activity;
pub mod catalogue;
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

/// Makes the reader of a dialect's events.
type NewEvents = fn() -> Box<dyn AgentEvents>;

/// The agents with events of their own, by the name that is also the dialect of other agents that
/// print the same. The first one is used when none is named.
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

/// What stands for the command of a check in the argument that allows it.
const COMMAND: &str = "{check}";
/// The same where a rule takes only a command of plain words: it splits others, or refuses them.
const WORDS: &str = "{words}";

/// The service of an agent that prints this dialect, if crew knows it.
pub fn service_of(dialect: &Dialect) -> Option<&'static Service> {
    (dialect.0 == DEFAULT).then_some(&claude::SERVICE)
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
pub fn reader(agent: &Agent) -> OutputReader {
    let events = match WITH_EVENTS.iter().find(|(name, _)| *name == agent.dialect.0) {
        Some((_, new)) => new(),
        None => Box::new(Text::marked(agent.answer_mark.clone())),
    };
    OutputReader::new(&agent.name, events)
}

/// Whether its output is events, which a reader puts into words.
pub fn has_events(agent: &Agent) -> bool {
    WITH_EVENTS.iter().any(|(name, _)| *name == agent.dialect.0)
}

/// The words for the formats of output that crew can read.
pub fn outputs() -> Vec<&'static str> {
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
    (is_failed && (agent.dialect == Dialect::TEXT || report.is_without_events()))
        .then(|| limit(errors, now))
        .flatten()
}

/// Builds the command line of an iteration of this run. Under `AcceptEdits` the agent may run the
/// `checks`, too. An agent that can leaves what it used in `usage_file`. The error names the option
/// that the agent does not have.
pub fn launch(
    run: &Run,
    prompt: &str,
    checks: &[Check],
    usage_file: &str,
) -> Result<Launch, String> {
    let Run { agent, permissions: asked, .. } = run;
    let name = &agent.name;
    let Some((program, fixed)) = agent.command.split_first().filter(|(it, _)| !it.is_empty())
    else {
        return Err(format!("agent {name} has no command: write `command = [\"program\", …]`"));
    };
    let mut arguments = fixed.to_vec();
    arguments.extend(rules(run, checks).0);
    arguments.extend_from_slice(permissions(agent, *asked)?);
    if let Some(option) = &agent.usage_file {
        arguments.extend([option.clone(), usage_file.to_owned()]);
    }
    if run.max_turns > 0 {
        let Some(option) = &agent.max_turns else {
            return Err(format!(
                "agent {name} has no limit on turns: take max_turns out of the settings, or bound it by --timeout"
            ));
        };
        arguments.extend([option.clone(), run.max_turns.to_string()]);
    }
    if let Some(model) = &run.model {
        let Some(option) = &agent.model else {
            return Err(format!(
                "agent {name} takes no --model: give it its own option after `--`, as in -- --model {model}"
            ));
        };
        arguments.extend([option.clone(), model.clone()]);
    }
    arguments.extend_from_slice(&run.words);
    let mut input = String::new();
    match agent.prompt {
        PromptVia::Stdin => prompt.clone_into(&mut input),
        PromptVia::Argument => arguments.push(argument(name, prompt)?),
    }
    let variables = agent.environment.clone();
    Ok(Launch { program: program.clone(), arguments, variables, input })
}

/// The arguments that allow the checks, each once, and the commands that no rule can name.
fn rules<'checks>(run: &Run, checks: &'checks [Check]) -> (Vec<String>, Vec<&'checks str>) {
    let (mut rules, mut unnamed) = (Vec::new(), Vec::new());
    let template = run.agent.allow.as_deref();
    let Some(template) = template.filter(|_| run.permissions == Permissions::AcceptEdits) else {
        return (rules, unnamed);
    };
    let takes_words_only = template.contains(WORDS);
    for check in checks {
        let run = check.run.trim();
        let is_named = if takes_words_only {
            let is_plain =
                |letter: char| letter.is_ascii_alphanumeric() || " -_./=+@%".contains(letter);
            run.chars().all(is_plain)
        } else {
            // In a rule a star is a wildcard, parentheses delimit it, and a backslash escapes.
            !run.contains(|letter: char| "*()\\".contains(letter) || letter.is_control())
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

/// The checks that an agent under `AcceptEdits` may not run, because no rule can match them
/// exactly.
pub fn not_allowed<'checks>(run: &Run, checks: &'checks [Check]) -> Vec<&'checks str> {
    rules(run, checks).1
}

/// The arguments that ask for these permissions. A command without listed permissions, such as one
/// from `--agent-cmd`, sets its own: only more than `AcceptEdits` is refused for it.
fn permissions(agent: &Agent, asked: Permissions) -> Result<&[String], String> {
    if let Some(arguments) = agent.permissions.get(&asked) {
        return Ok(arguments);
    }
    if agent.permissions.is_empty() {
        if asked <= Permissions::AcceptEdits {
            return Ok(&[]);
        }
        return Err(format!(
            "agent {} takes no --permissions {}: put its own option into its command",
            agent.name,
            asked.label()
        ));
    }
    let known: Vec<&str> = agent.permissions.keys().map(|kind| kind.label()).collect();
    Err(format!(
        "agent {} cannot be asked for {}: choose --permissions {}",
        agent.name,
        asked.label(),
        known.join(" or ")
    ))
}

fn argument(name: &str, prompt: &str) -> Result<String, String> {
    if prompt.len() > ARGUMENT_BYTES_MAX {
        return Err(format!(
            "the prompt has {} bytes, and agent {name} takes it as an argument of at most \
             {ARGUMENT_BYTES_MAX}: shorten the task or its context",
            prompt.len()
        ));
    }
    if prompt.contains('\0') {
        return Err(format!(
            "the prompt holds a NUL, and agent {name} takes it as an argument: remove the NUL"
        ));
    }
    Ok(prompt.to_owned())
}
