//! The page for the next worker: what a person or another agent needs to continue where this loop
//! stopped. crew fills in every fact it has and invents none; the agent adds what only it knows.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use crate::engine::evidence::{ClaimResult, Evidence};
use crate::engine::record::{Check, Loop};
use crate::engine::text::{self, clip, with_reason};

/// What happened since the loop started, according to git.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Since {
    /// One line per commit, the newest first, bounded by the reader.
    pub commits: Vec<String>,
    /// `git diff --stat` against the start, bounded by the reader.
    pub diffstat: String,
    /// How many files git neither tracks nor ignores.
    pub untracked: u64,
    /// What the person or agent that hands over says was done; empty if the loop just ended.
    pub told: String,
}

/// A handoff's file name: `<type>-<UTC time>.md`.
pub fn file_name(kind: &str, at: DateTime<Utc>) -> String {
    format!("{kind}-{}.md", file_time(at))
}

/// A time as part of a file's name: `20261118T110640Z`.
pub fn file_time(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

/// The line that names the page's loop.
pub fn title(subject: &Loop) -> String {
    format!("# Handoff: loop {}", subject.id)
}

/// The page for a loop that ended, or that somebody hands over. `resume` is the command that
/// resumes it.
pub fn page(subject: &Loop, since: &Since, kind: &str, at: DateTime<Utc>, resume: &str) -> String {
    // A branch may be named `@` or `true`, which mean something else in YAML.
    let branch = subject.place.branch.as_deref().map(|name| text::json(&name.into()));
    let branch = branch.as_deref().unwrap_or("none");
    let mut text = format!(
        "---\ntype: {kind}\ntimestamp: {}\nbranch: {branch}\nstatus: {}\n---\n\n{}\n\n",
        at.format("%Y-%m-%dT%H:%M:%SZ"),
        subject.status_word(),
        title(subject),
    );
    section(&mut text, "What was done", &what_was_done(subject, since));
    section(&mut text, "Files changed", &or_none(&since.diffstat));
    section(&mut text, "Decisions", "None recorded by crew.");
    section(&mut text, "Checks", &checks(subject));
    section(&mut text, "Learnings", "None recorded by crew.");
    section(&mut text, "Open questions", &open_questions(subject));
    section(&mut text, "Next steps", &next_steps(subject));
    section(&mut text, "Context for resume", &context(subject, resume));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn section(text: &mut String, title: &str, body: &str) {
    let _ = write!(text, "## {title}\n\n{}\n\n", body.trim_end());
}

fn or_none(text: &str) -> String {
    if text.trim().is_empty() { "None.".to_owned() } else { indented(text) }
}

fn indented(text: &str) -> String {
    text.trim_end().lines().fold(String::new(), |mut block, line| {
        let _ = writeln!(block, "    {line}");
        block
    })
}

fn what_was_done(subject: &Loop, since: &Since) -> String {
    let mut text = format!(
        "{} in {}{}.\n",
        text::count(subject.state.completed, "iteration"),
        text::period(subject.state.awake_ms / 1000),
        subject.spent().map_or_else(String::new, |spent| format!(", {spent}")),
    );
    if let Some(ending) = &subject.state.ending {
        let _ = writeln!(text, "Ended {}: {}.", ending.outcome.label(), ending.why);
    }
    if !since.told.is_empty() {
        let _ = writeln!(text, "\n{}\n", since.told);
    }
    if since.commits.is_empty() {
        text.push_str("No commits.\n");
    } else {
        let _ =
            writeln!(text, "Commits since the start:\n\n{}", indented(&since.commits.join("\n")));
    }
    text
}

fn checks(subject: &Loop) -> String {
    if subject.contract.checks.is_empty() {
        return "None: this loop had no checks.".to_owned();
    }
    let mut text = checks_listed(subject, "not run");
    if let Some(failed) = subject.state.evidence.iter().flat_map(Evidence::failing).next() {
        let (run, tail) = (clip(&failed.run, 200), indented(&failed.tail));
        let _ = write!(text, "\nLast lines of `{run}`:\n\n{tail}");
    }
    text
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

fn open_questions(subject: &Loop) -> String {
    match subject.state.evidence.as_ref().map(|last| &last.claim) {
        Some(ClaimResult::Failure(why)) => with_reason("The agent failed", why),
        Some(ClaimResult::Blocked(why)) => with_reason("The agent is blocked", why),
        _ => "None recorded by crew.".to_owned(),
    }
}

fn next_steps(subject: &Loop) -> String {
    let mut text = String::from("Go on with the task, from the state of the working tree.\n");
    let claim = subject.state.evidence.as_ref().map(|last| &last.claim);
    if let Some(ClaimResult::Refused(why)) = claim {
        let _ = writeln!(text, "{}.", with_reason("The last claim was refused", why));
    }
    if let Some(undone) = subject.state.git.undone() {
        let _ = writeln!(text, "git: {undone}.");
    }
    text
}

fn context(subject: &Loop, resume: &str) -> String {
    let promise = subject.contract.promise.as_ref();
    let promise = promise.map_or_else(|| "none".to_owned(), ToString::to_string);
    format!(
        "- Loop: {}\n- Task: {}\n- Promise: {promise}\n- Folder of the checks: {}\n- Record: `crew status {}`\n- Go on: `{resume}`\n",
        subject.id,
        subject.place.task_file().display(),
        subject.place.folder.display(),
        subject.id,
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::engine::boundary::decide::{apply, decide};
    use crate::engine::boundary::judge::judge;
    use crate::engine::claim::Claim;
    use crate::engine::evidence::Verdict;
    use crate::engine::fixture::{a_loop_with, at, facts, result};
    use crate::engine::record::Role;

    #[test]
    fn a_handoff_holds_every_fact_crew_has_under_the_eight_headings() {
        let mut subject = a_loop_with(&[("cargo test", Role::Verify)]);
        subject.contract.limits.max_iterations = 1;
        let mut refused = facts(Claim::Success);
        refused.checks = vec![result("cargo test", Verdict::Failed)];
        let judged = judge(&subject, &refused);
        let ended = apply(judged.clone(), &decide(&judged, &refused));
        let since = Since {
            commits: vec!["1a2b3c4 Add the list endpoint".to_owned()],
            diffstat: " src/lib.rs | 2 +-\n 1 file changed".to_owned(),
            ..Since::default()
        };
        assert_snapshot!(page(&ended, &since, "exhausted", at(60).wall, "/crew:resume haaaaaaa -n +10"), @r#"
        ---
        type: exhausted
        timestamp: 2026-11-18T11:07:40Z
        branch: "main"
        status: exhausted
        ---

        # Handoff: loop haaaaaaa

        ## What was done

        1 iteration in 1m.
        Ended exhausted: the limit of 1 iteration is reached.
        Commits since the start:

            1a2b3c4 Add the list endpoint

        ## Files changed

             src/lib.rs | 2 +-
             1 file changed

        ## Decisions

        None recorded by crew.

        ## Checks

        - `cargo test` (verify): failed (exit 1)

        Last lines of `cargo test`:

            output of cargo test

        ## Learnings

        None recorded by crew.

        ## Open questions

        None recorded by crew.

        ## Next steps

        Go on with the task, from the state of the working tree.
        The last claim was refused: `cargo test` failed (exit 1).

        ## Context for resume

        - Loop: haaaaaaa
        - Task: /repo/.claude/branches/main/task.md
        - Promise: COMPLETE
        - Folder of the checks: /repo
        - Record: `crew status haaaaaaa`
        - Go on: `/crew:resume haaaaaaa -n +10`
        "#);
    }

    #[test]
    fn a_branch_stands_in_the_front_matter_as_yaml_takes_it() {
        let mut subject = a_loop_with(&[]);
        let table = [
            ("@", r#""@""#),
            ("\"quoted\": #1", r#""\"quoted\": #1""#),
            ("\u{202e}\u{9b}2J", r#""\u202e\u009b2J""#),
        ];
        for (branch, written) in table {
            subject.place.branch = Some(branch.to_owned());
            let page = page(&subject, &Since::default(), "task", at(0).wall, "");
            assert_eq!(page.lines().nth(3), Some(format!("branch: {written}").as_str()));
        }
    }

    #[test]
    fn a_handoff_is_named_by_its_type_and_its_time() {
        assert_eq!(file_name("task", at(0).wall), "task-20261118T110640Z.md");
    }
}
