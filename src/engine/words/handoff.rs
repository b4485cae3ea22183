//! The page for the next worker: what a person or another agent needs to continue where this loop
//! stopped, made from the same value as the page for a person. crew fills in every fact it has,
//! quotes what an agent said, and writes no section that would be empty.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use crate::engine::evidence::Evidence;
use crate::engine::record::{Check, Loop, Outcome};
use crate::engine::text::{self, clip, count, one_line, quoted};
use crate::engine::view::{Fact, IterationLine, LastWords, Page};

const AUTHOR: &str = "What the author of this page says (not checked)";
const NEEDS: &str = "Needs a person";
const NEXT: &str = "Next steps";
const CONTEXT: &str = "Context for resume";
/// The most commits that are listed.
const COMMITS_NAMED: usize = 30;
/// The longest path, in characters.
const PATH_CHARS: usize = 300;
/// The longest title, in characters.
const TITLE_CHARS: usize = 100;
/// The most of an agent's last words, in characters.
const SAID_CHARS: usize = 2000;
/// The most files by name.
const FILES_NAMED: usize = 30;

/// A handoff's file name: `<type>-<UTC time>.md`.
pub fn file_name(kind: &str, at: DateTime<Utc>) -> String {
    format!("{kind}-{}.md", file_time(at))
}

/// A time as part of a file's name: `20261118T110640Z`.
pub fn file_time(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

/// Whether a page is one of this loop.
pub fn is_of(subject: &Loop, page: &str) -> bool {
    page.lines().any(|line| line == format!("loop: {}", subject.id))
}

/// Whether crew wrote a page, with all its facts.
pub fn is_whole(page: &str) -> bool {
    page.contains(&format!("\n## {CONTEXT}\n"))
}

/// What a page has of somebody's own words.
pub fn authors_words(page: &str) -> Option<&str> {
    let (_, words) = page.split_once(&format!("\n## {AUTHOR}\n\n"))?;
    // They may have headings of their own, but none of these.
    let ends = [NEEDS, NEXT].map(|title| words.find(&format!("\n## {title}\n")));
    let end = ends.into_iter().flatten().min().unwrap_or(words.len());
    Some(words[..end].trim())
}

/// The page for a loop that ended, or that somebody hands over. `told` is their own text.
pub fn text(subject: &Loop, page: &Page, told: &str, kind: &str, at: DateTime<Utc>) -> String {
    // A branch may be named `@` or `true`, which mean something else in YAML.
    let branch = subject.place.branch.as_deref().map(|name| text::json(&name.into()));
    let mut text = format!(
        "---\ntype: {kind}\ntimestamp: {}\nbranch: {}\nstatus: {}\nloop: {}\n---\n\n# {}\n\n",
        at.format("%Y-%m-%dT%H:%M:%SZ"),
        branch.as_deref().unwrap_or("none"),
        subject.status_word(),
        subject.id,
        one_line(&page.task, TITLE_CHARS),
    );
    text.push_str(&standing(page));
    section(&mut text, AUTHOR, &below(told));
    section(&mut text, NEEDS, &facts(page, &["needs"]));
    section(&mut text, NEXT, &next_steps(subject, page));
    section(&mut text, "What was done", &what_was_done(page));
    section(&mut text, "Files changed", &files_changed(page));
    section(&mut text, "Checks", &checks(subject, page));
    section(&mut text, "What the last worker said (not checked)", &said(subject));
    section(&mut text, "From the user", &facts(page, &["told", "asked"]));
    section(&mut text, CONTEXT, &context(subject, page));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Somebody's own words, with each heading that would pass for one of crew's a level below them.
fn below(told: &str) -> String {
    let crews = [NEEDS, NEXT, CONTEXT].map(|title| format!("## {title}"));
    let is_crews = |line: &str| crews.iter().any(|heading| heading == line.trim_end());
    let line = |line: &str| format!("{}{line}", if is_crews(line) { "#" } else { "" });
    told.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The verdict and its reason in a few lines.
fn standing(page: &Page) -> String {
    let mut line = page.verdict.clone();
    line.extend(page.remark.iter().flat_map(|remark| [", ", remark]));
    let why = facts(page, &["why", "waits", "red", "git"]);
    let took = text::duration(page.awake_ms.max(1000) / 1000 * 1000);
    let cost = page.cost.as_ref().map_or_else(String::new, |cost| format!(", {cost}"));
    format!("Loop {}: {line}.\n{why}- {took} of work{cost}\n\n", page.id)
}

fn section(text: &mut String, title: &str, body: &str) {
    if !body.trim().is_empty() {
        let _ = write!(text, "## {title}\n\n{}\n\n", body.trim_end());
    }
}

/// The facts of these names, one a line, each with what was printed.
fn facts(page: &Page, names: &[&str]) -> String {
    let all = page.ending.iter().chain(&page.results);
    all.filter(|fact| names.contains(&fact.name)).fold(String::new(), |mut text, fact| {
        let Fact { name, text: told, detail } = fact;
        let label = if ["needs", "told", "asked", "why"].contains(name) { "" } else { name };
        let gap = if label.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "- {label}{gap}{told}");
        if !detail.is_empty() {
            let _ = write!(text, "\n{}\n", indented(detail));
        }
        text
    })
}

fn indented(lines: &[String]) -> String {
    let line = |line: &String| format!("    {line}").trim_end().to_owned() + "\n";
    lines.iter().map(line).collect()
}

fn next_steps(subject: &Loop, page: &Page) -> String {
    let failing = subject.state.evidence.iter().flat_map(Evidence::failing).next();
    let first = match (page.outcome, failing) {
        (Some(Outcome::Cancelled), _) => {
            "A person cancelled this loop. If it was resumed since, continue with the task; else leave it."
                .to_owned()
        }
        (Some(Outcome::Blocked), _) if page.resume.is_none() => {
            "Resuming it cannot help: a person has to start a new loop, as the reason says.".to_owned()
        }
        (Some(Outcome::Blocked), _) => {
            "A person has to deal with the reason. If the loop was resumed since, they have: continue, and say \
             BLOCKED again only if it is still missing."
                .to_owned()
        }
        (Some(Outcome::Completed), _) => "The task is done.".to_owned(),
        (_, Some(check)) => {
            format!("Run `{}` first: it {}.", clip(&check.run, 200), check.what_happened())
        }
        (_, None) => "Continue with the task, from the state of the working tree.".to_owned(),
    };
    let look = &page.next;
    let is_shown = look.command.contains("diff") && !look.what.is_empty();
    let look = is_shown.then(|| format!("\n`{}` shows {}.", look.command, look.what));
    first + &look.unwrap_or_default()
}

fn what_was_done(page: &Page) -> String {
    let mut text = String::new();
    if page.earlier > 0 {
        let _ = writeln!(text, "({} before these)", count(page.earlier, "iteration"));
    }
    for line in &page.iterations {
        let parts: Vec<String> = parts(line).into_iter().filter(|part| !part.is_empty()).collect();
        let _ = writeln!(text, "- {}: {}", line.number, parts.join("; "));
    }
    let made = page.commits.made();
    if !made.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        let listed = made.len().min(COMMITS_NAMED);
        let mut commits = indented(&made[..listed]);
        if listed < made.len() {
            let _ = writeln!(commits, "    and {} more", made.len() - listed);
        }
        let _ = write!(text, "{gap}Commits since the start:\n\n{commits}");
    }
    text.push_str(&facts(page, &["lost", "apart", "note"]));
    text
}

fn parts(line: &IterationLine) -> Vec<String> {
    let files = match line.files.as_str() {
        "" => String::new(),
        files => format!("changed {files}"),
    };
    let said = match &line.said {
        LastWords::Crew(words) => words.clone(),
        LastWords::Agent(words) => format!("said {}", quoted(words)),
        LastWords::Nothing => String::new(),
    };
    let context = line.context_percent.map(|percent| format!("context {percent}% full"));
    let agent = line.agent.as_ref().map(|agent| format!("by {agent}"));
    let [context, agent] = [context, agent].map(Option::unwrap_or_default);
    vec![files, line.checks.clone(), said, context, agent]
}

fn files_changed(page: &Page) -> String {
    let Some(changes) = page.changes.as_ref().filter(|changes| changes.total() > 0) else {
        return String::new();
    };
    let mut text = format!("{}.\n\n", changes.words().unwrap_or_default());
    for file in changes.files.iter().take(FILES_NAMED) {
        let yours = if file.yours { " (had changes before the loop)" } else { "" };
        let _ =
            writeln!(text, "- {} {}{yours}", file.kind.word(), one_line(&file.path, PATH_CHARS));
    }
    let more = changes.total().saturating_sub(FILES_NAMED as u64);
    if more > 0 {
        let _ = writeln!(text, "- and {more} more");
    }
    text
}

fn checks(subject: &Loop, page: &Page) -> String {
    checks_listed(subject, "not run") + &facts(page, &["tests", "fails", "stderr"])
}

/// Each check with its role and its last result, one per line; `unrun` is the result of one that
/// never ran.
pub fn checks_listed(subject: &Loop, unrun: &str) -> String {
    let line = |check: &Check| {
        let happened = subject.last_of(&check.run).unwrap_or_else(|| unrun.to_owned());
        format!("- `{}` ({}): {happened}\n", clip(&check.run, 200), check.role.label())
    };
    subject.contract.checks.iter().map(line).collect()
}

fn said(subject: &Loop) -> String {
    let said = subject.state.evidence.as_ref().and_then(|seen| seen.said.as_ref());
    said.map_or_else(String::new, |said| quoted(&one_line(said, SAID_CHARS)))
}

fn context(subject: &Loop, page: &Page) -> String {
    let promise = subject.contract.promise.as_ref();
    let promise = promise.map_or_else(|| "none".to_owned(), ToString::to_string);
    let resume = page.resume.as_ref().map_or_else(String::new, |resume| {
        let mut steps = std::iter::once(&page.next).chain(&page.then).map(|step| &step.command);
        let whole = steps.find(|step| step.starts_with(resume)).unwrap_or(resume);
        format!("- Resume: `{whole}`\n")
    });
    format!(
        "- Task, word for word: {}\n- Promise: {promise}\n- Folder of the checks: {}\n- Record: `crew show {}`\n{resume}",
        subject.place.task_file().display(),
        subject.place.folder.display(),
        subject.id,
    )
}

#[cfg(test)]
#[path = "handoff_tests.rs"]
mod tests;
