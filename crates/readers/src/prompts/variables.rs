//! The variables of a template, and their values from the loop and from what was read for it. A
//! name that is not in the table is refused. Each text is bounded and otherwise unchanged; only the
//! task is always whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use minijinja::Value;

use crate::parse::spelling::find_nearest;
use engine::evidence::Verdict;
use engine::journal::story::IterationSummary;
use engine::record::Loop;
use engine::text::{clip_line, distinct_texts, start_bytes, table_rows};

/// The maximum number of bytes in one value.
pub const VALUE_BYTES_MAX: usize = 16 * 1024;

/// Every variable with its meaning, as they are displayed.
const VARIABLES: &str = include_str!("variables.txt");

/// The inputs in addition to the loop itself. An absent value was not read, or does not exist.
#[derive(Debug, Clone, Default)]
pub struct PromptInputs<'a> {
    /// The results of the last iterations, oldest first.
    pub accounts: &'a [IterationSummary],
    /// The handoff page, its file and text: for the first prompt of a new owner and past the
    /// redline.
    pub handoff: Option<&'a (PathBuf, String)>,
    /// The shell's word that starts crew, for a task that asks for handoffs.
    pub crew: Option<&'a str>,
    pub git_status: Option<&'a str>,
    pub git_diff: Option<&'a str>,
    pub git_log: Option<&'a str>,
}

/// The values of variables, by name.
pub type Values = BTreeMap<&'static str, Value>;

/// The variable with this name.
///
/// # Errors
/// When it does not exist; the error suggests the name that was probably intended.
pub fn find_variable(name: &str) -> Result<&'static str, String> {
    let names: Vec<&str> = table_rows(VARIABLES).map(|(name, _)| name).collect();
    let known = table_rows(VARIABLES).map(|(known, _)| known).find(|known| *known == name);
    known.ok_or_else(|| match find_nearest(name, &names) {
        Some(near) => format!("there is no variable `{name}`; did you mean `{near}`?"),
        None => format!("there is no variable `{name}`; the variables are {}", names.join(", ")),
    })
}

/// All variables with their contents, one per line, for people.
pub fn render_table() -> String {
    table_rows(VARIABLES).fold(String::new(), |mut text, (name, what)| {
        let _ = writeln!(text, "  {:<22} {what}", format!("{{{{ {name} }}}}"));
        text
    })
}

/// The values of the wanted variables.
pub fn fill_values(
    subject: &Loop,
    known: &PromptInputs<'_>,
    wanted: &BTreeSet<&'static str>,
) -> Values {
    wanted.iter().map(|name| (*name, fill_value(name, subject, known))).collect()
}

fn fill_value(name: &str, subject: &Loop, known: &PromptInputs<'_>) -> Value {
    let contract = &subject.contract;
    let run = contract.run.as_ref();
    let text = match name {
        "task" => return contract.task.clone().into(),
        "iteration" => return subject.iteration().into(),
        "max_iterations" => return contract.limits.max_iterations.into(),
        "crew_commits" => return run.is_some_and(|run| run.git.commit).into(),
        "failing" => return failing_checks(subject).iter().map(|run| bound_text(run)).collect(),
        "words" => return user_words(subject).iter().map(|words| bound_text(words)).collect(),
        "procedure" => run.and_then(|run| run.procedure.clone()).unwrap_or_default(),
        "promise" => contract.promise.as_ref().map(ToString::to_string).unwrap_or_default(),
        "checks" => render_checks(subject).join("\n"),
        "progress" => render_progress(known.accounts.iter()),
        "handoff" => known.handoff.map(|(_, text)| text.clone()).unwrap_or_default(),
        "branch" => subject.place.branch.clone().unwrap_or_default(),
        "folder" => subject.place.folder.display().to_string(),
        "git_status" => output_of(known.git_status),
        "git_diff" => output_of(known.git_diff),
        "git_log" => output_of(known.git_log),
        _ => return Value::UNDEFINED,
    };
    bound_text(&text).into()
}

/// The output of git without its last line break; empty if git was not run.
fn output_of(printed: Option<&str>) -> String {
    printed.unwrap_or_default().trim_end().to_owned()
}

/// At most [`VALUE_BYTES_MAX`] from the beginning of `text`, with a line that says how much was
/// left out.
pub fn bound_text(text: &str) -> String {
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

/// What the user said since the last prompt: what the last boundary passed on, and what came later.
pub fn user_words(subject: &Loop) -> Vec<String> {
    let passed = subject.state.seen().evidence().iter().flat_map(|last| &last.words);
    passed.chain(subject.state.exchange().messages()).cloned().collect()
}

/// One line for each iteration.
pub fn render_progress<'a>(accounts: impl Iterator<Item = &'a IterationSummary>) -> String {
    let lines = accounts.map(|one| format!("- Iteration {}: {}.", one.iteration, one.words));
    lines.collect::<Vec<_>>().join("\n")
}

/// Each check with its role and its last result.
fn render_checks(subject: &Loop) -> Vec<String> {
    let lines = subject.contract.checks.iter().map(|check| {
        let last = subject.last_of(&check.run).unwrap_or_else(|| "not run yet".to_owned());
        format!("- `{}` ({}): {last}", clip_line(&check.run, 200), check.role.label())
    });
    lines.collect()
}

/// The checks that did not pass in their last run, each command once.
fn failing_checks(subject: &Loop) -> Vec<String> {
    let runs = subject.contract.checks.iter().map(|check| &check.run).filter(|run| {
        let memory = subject.state.seen().checks().get(*run);
        memory.is_some_and(|memory| memory.last() != Verdict::Passed)
    });
    distinct_texts(runs.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::fixture::a_loop;

    #[test]
    fn every_variable_has_a_value_and_is_found_by_its_name() {
        for (name, _) in table_rows(VARIABLES) {
            assert_eq!(find_variable(name), Ok(name));
            assert!(
                !fill_value(name, &a_loop(), &PromptInputs::default()).is_undefined(),
                "{name}"
            );
        }
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        for (name, expected) in [
            ("git_stat", "there is no variable `git_stat`; did you mean `git_status`?"),
            ("itteration", "there is no variable `itteration`; did you mean `iteration`?"),
            ("weather", "there is no variable `weather`; the variables are task, "),
        ] {
            let error = find_variable(name).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_table_shows_each_variable() {
        insta::assert_snapshot!(render_table(), @"
        {{ task }}             the task, byte for byte and whole
        {{ procedure }}        the procedure's name; empty for a task
        {{ iteration }}        this iteration, from 1
        {{ max_iterations }}   the limit; 0 is none
        {{ promise }}          what a claim of success must say; empty where none counts
        {{ checks }}           each check, one a line, and how it last ended
        {{ failing }}          the commands of the checks that did not pass last (a list, for {% for %})
        {{ progress }}         the results of the last 5 iterations, one a line
        {{ words }}            what the user said since the last prompt (a list, for {% for %})
        {{ handoff }}          the last handoff, in the first prompt of a new owner
        {{ branch }}           the branch the loop started on; empty without git
        {{ folder }}           the folder where checks run
        {{ crew_commits }}     whether crew commits each iteration (--commit)
        {{ git_status }}       git status --porcelain; empty when clean
        {{ git_diff }}         git diff HEAD
        {{ git_log }}          git log --oneline -10
        ");
    }
}
