//! The values of a template's variables, from the loop and from what was read for it. Each text is
//! bounded and otherwise unchanged; only the task is always whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use minijinja::Value;

use super::variables::Variable;
use crate::engine::evidence::Verdict;
use crate::engine::journal::account::Account;
use crate::engine::record::Loop;
use crate::engine::text::{distinct, start_bytes};
use crate::engine::words::handoff::checks_listed;

/// The most bytes of one value.
pub const VALUE_BYTES_MAX: usize = 16 * 1024;

/// The inputs in addition to the loop itself. An absent value was not read, or does not exist.
#[derive(Debug, Clone, Default)]
pub struct PromptInputs<'a> {
    /// The results of the last iterations, oldest first.
    pub accounts: &'a [Account],
    /// The page of where the loop stands, for the first prompt of a new owner and past the redline.
    pub handoff: Option<HandoffPage<'a>>,
    pub git_status: Option<&'a str>,
    pub git_diff: Option<&'a str>,
    pub git_log: Option<&'a str>,
}

/// The page of a handoff.
#[derive(Debug, Clone, Copy)]
pub struct HandoffPage<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

/// The values of variables, by name.
pub type Values = BTreeMap<&'static str, Value>;

/// The values of the wanted variables.
pub fn values(subject: &Loop, known: &PromptInputs<'_>, wanted: &BTreeSet<Variable>) -> Values {
    let named = |it: &Variable| (it.meaning().name, value(*it, subject, known));
    wanted.iter().map(named).collect()
}

fn value(variable: Variable, subject: &Loop, known: &PromptInputs<'_>) -> Value {
    let contract = &subject.contract;
    let run = contract.run.as_ref();
    let looked = |text: Option<&str>| text.unwrap_or_default().trim_end().to_owned();
    let text = match variable {
        Variable::Task => return contract.task.clone().into(),
        Variable::Iteration => return subject.iteration().into(),
        Variable::MaxIterations => return contract.limits.max_iterations.into(),
        Variable::CrewCommits => return run.is_some_and(|run| run.git.commit).into(),
        Variable::Failing => return list(&failing(subject)),
        Variable::Words => return list(&words(subject)),
        Variable::Procedure => run.and_then(|run| run.procedure.clone()).unwrap_or_default(),
        Variable::Promise => {
            contract.promise.as_ref().map_or_else(String::new, ToString::to_string)
        }
        Variable::Checks => checks(subject),
        Variable::Progress => progress(known.accounts),
        Variable::Handoff => known.handoff.map_or_else(String::new, |page| page.text.to_owned()),
        Variable::Branch => subject.place.branch.clone().unwrap_or_default(),
        Variable::Folder => subject.place.folder.display().to_string(),
        Variable::GitStatus => looked(known.git_status),
        Variable::GitDiff => looked(known.git_diff),
        Variable::GitLog => looked(known.git_log),
    };
    bounded(&text).into()
}

fn list(items: &[String]) -> Value {
    items.iter().map(|item| Value::from(bounded(item))).collect()
}

/// At most [`VALUE_BYTES_MAX`] from the beginning of `text`, with a line that says how much was
/// left out.
pub fn bounded(text: &str) -> String {
    if text.len() <= VALUE_BYTES_MAX {
        return text.to_owned();
    }
    let head = start_bytes(text, VALUE_BYTES_MAX);
    // Whole lines, unless that would drop about half of the text.
    let head = match head.rsplit_once('\n') {
        Some((lines, _)) if lines.len() > VALUE_BYTES_MAX / 2 => lines,
        _ => head,
    };
    let more = text.len() - head.len();
    format!("{head}\n[crew left out the other {more} bytes of {}]", text.len())
}

/// What the user said since the last prompt: passed at the last boundary, and later.
pub fn words(subject: &Loop) -> Vec<String> {
    let told = subject.state.evidence.iter().flat_map(|last| &last.words);
    told.chain(&subject.state.messages).cloned().collect()
}

/// One line for each account.
pub fn progress(accounts: &[Account]) -> String {
    let lines = accounts.iter().map(|it| format!("- Iteration {}: {}.", it.iteration, it.words));
    lines.collect::<Vec<_>>().join("\n")
}

/// The checks that did not pass in their last run, each command once.
pub fn failing(subject: &Loop) -> Vec<String> {
    let is_red = |run: &String| {
        subject.state.checks.get(run).is_some_and(|memory| memory.last != Verdict::Passed)
    };
    distinct(subject.contract.checks.iter().map(|check| check.run.clone()).filter(is_red))
}

/// Each check with its role and its last result, one per line.
pub fn checks(subject: &Loop) -> String {
    checks_listed(subject, "not run yet").trim_end().to_owned()
}
