//! The agents: how each one's command line is built, and what its output says. Pure: options in,
//! arguments out; lines in, a report out. `world` starts and reads the process. An option that the
//! agent does not have is refused, never silently dropped.

use chrono::{DateTime, FixedOffset};

use crate::engine::boundary::facts::{ApiError, ProcessEnd};
use crate::engine::record::agent::{Agent, Dialect, Permissions, PromptVia};
use crate::engine::record::contract::Check;
use crate::engine::record::run::Run;
use crate::parse::service_words;

pub mod catalogue;
mod claude;
mod codex;
pub mod command;
mod lenient;
mod open;
mod report;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub use self::report::{OutputReader, Report};

/// The agent used when none is named.
pub const DEFAULT: &str = claude::NAME;

/// The longest prompt given as an argument, in bytes: Linux accepts one argument of less than 128
/// KiB.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024 - 1;

/// What one iteration asks of an agent.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub prompt: &'a str,
    pub permissions: Permissions,
    /// 0 means no limit.
    pub max_turns: u32,
    pub model: Option<&'a str>,
    /// Placed after the agent's own arguments.
    pub words: &'a [String],
    /// The commands that crew runs itself. Under `AcceptEdits` the agent may run them too.
    pub checks: &'a [Check],
}

impl<'a> Ask<'a> {
    /// What a run asks with this prompt; `checks` come from its contract.
    pub fn of(run: &'a Run, prompt: &'a str, checks: &'a [Check]) -> Self {
        let Run { permissions, max_turns, .. } = *run;
        Self {
            prompt,
            permissions,
            max_turns,
            model: run.model.as_deref(),
            words: &run.words,
            checks,
        }
    }
}

/// The program to start, its arguments and its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub program: String,
    pub arguments: Vec<String>,
    /// Written to its standard input, which is then closed.
    pub input: String,
}

/// The reader for an agent's output.
pub fn reader(agent: &Agent) -> Box<dyn OutputReader> {
    match &*agent.dialect.0 {
        claude::NAME => Box::new(claude::Claude::default()),
        codex::NAME => Box::new(codex::Codex::new(&agent.name)),
        _ => Box::new(text::Text::default()),
    }
}

/// A limit of the model's service that an agent without events reported on its standard error.
/// `None` unless the agent exited with an error.
pub fn limit_told(
    agent: &Agent,
    process: &ProcessEnd,
    errors: &str,
    now: DateTime<FixedOffset>,
) -> Option<ApiError> {
    let is_failed = matches!(process, ProcessEnd::Exit(code) if *code != 0);
    (is_failed && agent.dialect == Dialect::TEXT)
        .then(|| service_words::limit(errors, now))
        .flatten()
}

/// Builds the command line of one iteration. The error names the option that the agent does not
/// have.
pub fn launch(agent: &Agent, ask: &Ask<'_>) -> Result<Launch, String> {
    let name = &agent.name;
    let Some((program, fixed)) = agent.command.split_first().filter(|(it, _)| !it.is_empty())
    else {
        return Err(format!("agent {name} has no command: write `command = [\"program\", …]`"));
    };
    let mut arguments = fixed.to_vec();
    let (rules, _) = rules(agent, ask.permissions, ask.checks);
    if let Some(option) = &agent.allow {
        // As a separate word, Claude Code would take the following words for rules, too.
        arguments.extend(rules.iter().map(|rule| format!("{option}={rule}")));
    }
    arguments.extend_from_slice(permissions(agent, ask.permissions)?);
    if ask.max_turns > 0 {
        let Some(option) = &agent.max_turns else {
            return Err(format!(
                "agent {name} has no limit on turns: leave --max-turns out, or bound it by --timeout"
            ));
        };
        arguments.extend([option.clone(), ask.max_turns.to_string()]);
    }
    if let Some(model) = ask.model {
        let Some(option) = &agent.model else {
            return Err(format!(
                "agent {name} takes no --model: give it its own option after `--`, as in -- --model {model}"
            ));
        };
        arguments.extend([option.clone(), model.to_owned()]);
    }
    arguments.extend_from_slice(ask.words);
    let mut input = String::new();
    match agent.prompt {
        PromptVia::Stdin => ask.prompt.clone_into(&mut input),
        PromptVia::Argument => arguments.push(argument(name, ask.prompt)?),
    }
    Ok(Launch { program: program.clone(), arguments, input })
}

/// The rules that allow the checks, each once, and the commands that no rule can match exactly.
fn rules<'checks>(
    agent: &Agent,
    asked: Permissions,
    checks: &'checks [Check],
) -> (Vec<String>, Vec<&'checks str>) {
    let (mut rules, mut unnamed) = (Vec::new(), Vec::new());
    if asked != Permissions::AcceptEdits || agent.allow.is_none() {
        return (rules, unnamed);
    }
    for check in checks {
        let run = check.run.trim();
        // In a rule a star is a wildcard, parentheses delimit it, and a backslash escapes.
        if run.contains(|letter: char| "*()\\".contains(letter) || letter.is_control()) {
            unnamed.push(run);
            continue;
        }
        let rule = format!("Bash({run})");
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    (rules, unnamed)
}

/// The checks that an agent under `AcceptEdits` may not run, because no rule can match them
/// exactly.
pub fn not_allowed<'checks>(
    agent: &Agent,
    asked: Permissions,
    checks: &'checks [Check],
) -> Vec<&'checks str> {
    rules(agent, asked, checks).1
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
            "the prompt has {} bytes and agent {name} takes it as an argument, of at most \
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
