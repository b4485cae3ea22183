//! What a command is for, by the names in it: whether tests are anything to it, and which tests it
//! runs.

use super::command::{STATIC_PROGRAMS, TEST_RUNNERS, base, commands};
use crate::engine::text::is_word_of;

/// Tools of which a goal by its name alone runs no test. Others build and test in one step.
const GOAL_TOOLS: &str = "bun cargo cmake deno dotnet gmake go just make mvn mvnw npm nx pnpm poe rake swift task turbo yarn";
/// How the name of a goal begins that runs tests.
const TEST_GOALS: [&str; 6] = ["test", "unit", "e2e", "spec", "check", "verify"];
/// Options before a path.
const BEFORE_PATHS: &str = "-C -f -S --cwd --dir --directory --file --prefix";
/// What such a tool is asked for that runs no test.
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
            let words = &command.words;
            let is_path = |at: &usize| *at > 0 && is_word_of(BEFORE_PATHS, &words[at - 1]);
            let words = (0..words.len()).filter(|at| !is_path(at)).map(|at| base(&words[at]));
            let plain: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
            let is_test =
                plain.iter().any(|word| is_word_of(TEST_RUNNERS, word) || *word == "test");
            let is_cargo_check = plain.starts_with(&["cargo", "check"]);
            let mut goals = plain.iter().skip_while(|word| !is_word_of(GOAL_TOOLS, word));
            let is_static = plain.iter().any(|word| is_word_of(STATIC_PROGRAMS, word))
                || goals.clone().any(|goal| is_word_of(STATIC_GOALS, goal))
                    && !goals.any(|goal| {
                        !is_word_of(STATIC_GOALS, goal)
                            && TEST_GOALS.iter().any(|begin| goal.starts_with(begin))
                    });
            !is_test && (is_cargo_check || is_static)
        })
}

/// The word of a command that limits its tests to what changed: `--onlyChanged`, `nx affected`.
pub fn only_what_changed(run: &str) -> Option<String> {
    const OPTIONS: &str = "--changed --changedSince --onlyChanged --only-changed --last-failed --lf \
        --testmon --affected --findRelatedTests";
    let is_such = |word: &String| is_word_of(OPTIONS, word.split('=').next().unwrap_or_default());
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
            ("npx turbo run lint", true),
            ("npx turbo run build test:unit", false),
            ("nx run-many -t lint e2e", false),
            ("make build units", false),
            ("cmake --build build", true),
            ("make -C build lint", true),
            ("make -C build units", false),
            ("cmake --build build --target units", false),
            ("cargo build && cargo test", false),
            ("npm test", false),
            ("make check", false),
            ("pytest", false),
            ("./gradlew build", false),
            ("sh run.sh types", false),
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
