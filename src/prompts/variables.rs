//! The variables of a template: the one table for lookups, suggestions and display. A name that is
//! not in it is refused.

use std::fmt::Write as _;

use crate::parse::spelling::nearest;

/// A value that a template may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variable {
    Task,
    Procedure,
    Iteration,
    MaxIterations,
    Promise,
    Checks,
    Failing,
    Progress,
    Words,
    Handoff,
    Branch,
    Folder,
    CrewCommits,
    GitStatus,
    GitDiff,
    GitLog,
}

/// The description of a variable.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    pub variable: Variable,
    /// The name in a template.
    pub name: &'static str,
    /// Whether it is a list, for `{% for %}`; anything else is inserted as it is.
    pub is_list: bool,
    pub what: &'static str,
}

const fn text(variable: Variable, name: &'static str, what: &'static str) -> Meaning {
    Meaning { variable, name, is_list: false, what }
}

const fn list(variable: Variable, name: &'static str, what: &'static str) -> Meaning {
    Meaning { variable, name, is_list: true, what }
}

/// Every variable, in display order.
pub const VARIABLES: [Meaning; 16] = [
    text(Variable::Task, "task", "the task, byte for byte and whole"),
    text(Variable::Procedure, "procedure", "the procedure's name; empty for a task"),
    text(Variable::Iteration, "iteration", "this iteration, from 1"),
    text(Variable::MaxIterations, "max_iterations", "the limit; 0 is none"),
    text(Variable::Promise, "promise", "what a claim of success must say; empty where none counts"),
    text(Variable::Checks, "checks", "each check, one a line, and how it last ended"),
    list(Variable::Failing, "failing", "the commands of the checks that did not pass last"),
    text(Variable::Progress, "progress", "what the last 5 iterations came to, one a line"),
    list(Variable::Words, "words", "what the user said since the last prompt"),
    text(Variable::Handoff, "handoff", "the last handoff, in the first prompt of a new owner"),
    text(Variable::Branch, "branch", "the branch the loop started on; empty without git"),
    text(Variable::Folder, "folder", "the folder where checks run"),
    text(Variable::CrewCommits, "crew_commits", "whether crew commits each iteration (--commit)"),
    text(Variable::GitStatus, "git_status", "git status --porcelain; empty when clean"),
    text(Variable::GitDiff, "git_diff", "git diff HEAD"),
    text(Variable::GitLog, "git_log", "git log --oneline -10"),
];

impl Variable {
    /// The variable's description.
    pub fn meaning(self) -> &'static Meaning {
        // A test ensures that the table has every variable.
        VARIABLES.iter().find(|meaning| meaning.variable == self).unwrap_or(&VARIABLES[0])
    }
}

/// The variable with this name.
///
/// # Errors
/// When it does not exist; the error suggests the name that was probably meant.
pub fn named(name: &str) -> Result<&'static Meaning, String> {
    VARIABLES.iter().find(|meaning| meaning.name == name).ok_or_else(|| {
        let names = VARIABLES.map(|meaning| meaning.name);
        match nearest(name, &names) {
            Some(near) => format!("there is no variable `{name}`; did you mean `{near}`?"),
            None => format!("there is no variable `{name}`; there are {}", names.join(", ")),
        }
    })
}

/// All variables with their contents, one per line, for people.
pub fn table() -> String {
    VARIABLES.iter().fold(String::new(), |mut text, meaning| {
        let name = format!("{{{{ {} }}}}", meaning.name);
        let list = if meaning.is_list { " (a list, for {% for %})" } else { "" };
        let _ = writeln!(text, "  {name:<22} {}{list}", meaning.what);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_one_row_and_finds_it() {
        for meaning in &VARIABLES {
            assert_eq!(meaning.variable.meaning().name, meaning.name);
            assert_eq!(named(meaning.name).unwrap().variable, meaning.variable);
        }
        let all = VARIABLES.map(|meaning| meaning.variable).to_vec();
        let mut each = all.clone();
        each.sort();
        each.dedup();
        assert_eq!(each.len(), all.len());
        assert_eq!(each.last(), Some(&Variable::GitLog), "the last of the enum is in the table");
    }

    #[test]
    fn a_name_that_is_none_is_told_the_nearest() {
        let told = |name| named(name).unwrap_err();
        assert_eq!(told("git_stat"), "there is no variable `git_stat`; did you mean `git_status`?");
        assert_eq!(
            told("itteration"),
            "there is no variable `itteration`; did you mean `iteration`?"
        );
        assert!(told("weather").starts_with("there is no variable `weather`; there are task, "));
    }

    #[test]
    fn the_table_shows_what_each_holds() {
        insta::assert_snapshot!(table(), @"
        {{ task }}             the task, byte for byte and whole
        {{ procedure }}        the procedure's name; empty for a task
        {{ iteration }}        this iteration, from 1
        {{ max_iterations }}   the limit; 0 is none
        {{ promise }}          what a claim of success must say; empty where none counts
        {{ checks }}           each check, one a line, and how it last ended
        {{ failing }}          the commands of the checks that did not pass last (a list, for {% for %})
        {{ progress }}         what the last 5 iterations came to, one a line
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
