//! What a command is for, by the names in it: whether tests are anything to it, and which it runs.

use super::command::{STATIC_PROGRAMS, TEST_RUNNERS, base, commands};
use crate::engine::text::is_word_of;

/// What a build tool or a task runner is asked for that runs no test.
const STATIC_GOALS: &str = "fmt format lint clippy vet typecheck type-check types build doc compile format-check \
    fmt-check lint-check check-format";

/// Whether a command only formats, lints, checks types or builds, by its name: to it tests are
/// nothing but source files.
pub fn is_static(run: &str) -> bool {
    let is_set_up =
        |words: &[String]| ["cd", "set", "export", "echo", "true", "."].contains(&base(&words[0]));
    let commands = commands(run);
    let mut rest = commands.iter().filter(|it| !is_set_up(&it.words)).peekable();
    rest.peek().is_some()
        && rest.all(|command| {
            let words = command.words.iter().map(|word| base(word));
            let plain: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
            let is_test =
                plain.iter().any(|word| is_word_of(TEST_RUNNERS, word) || *word == "test");
            let is_cargo_check = plain.starts_with(&["cargo", "check"]);
            let is_such =
                |word: &&str| is_word_of(STATIC_PROGRAMS, word) || is_word_of(STATIC_GOALS, word);
            !is_test && (is_cargo_check || plain.iter().any(is_such))
        })
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
    let is_such = |word: &String| OPTIONS.contains(&word.split('=').next().unwrap_or_default());
    commands(run).into_iter().find_map(|command| {
        let words = command.words;
        let is_nx = words.iter().any(|word| word == "nx");
        let affected = words.iter().find(|word| is_nx && word.starts_with("affected"));
        words.iter().find(|word| is_such(word)).or(affected).cloned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatters_linters_type_checkers_and_builds_are_known_by_name() {
        for (run, expected) in [
            ("cargo fmt --check", true),
            ("cargo clippy --all-targets -- -D warnings", true),
            ("cd web && npx tsc --noEmit", true),
            ("npm run lint", true),
            ("ruff check . && mypy src", true),
            ("make lint", true),
            ("cargo build && cargo test", false),
            ("npm test", false),
            ("make check", false),
            ("pytest", false),
            ("grep -q x y", false),
            ("", false),
        ] {
            assert_eq!(is_static(run), expected, "{run}");
        }
    }

    #[test]
    fn a_command_that_runs_only_what_changed_is_known() {
        for (run, expected) in [
            ("npx jest --onlyChanged", Some("--onlyChanged")),
            ("sh -c 'nx affected -t test'", Some("affected")),
            ("pytest --lf", Some("--lf")),
            ("cargo test", None),
        ] {
            assert_eq!(only_what_changed(run).as_deref(), expected, "{run}");
        }
    }
}
