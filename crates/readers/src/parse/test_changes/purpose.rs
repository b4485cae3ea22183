//! The purpose of a command, judged by the names in it: whether it concerns tests, which tests it
//! runs, and by which path it may leave the tree that it runs on.

use std::path::{Path, PathBuf};

use super::command::{FOLDERS, STATIC_PROGRAMS, TEST_RUNNERS, base_name, find_commands};
use engine::text::is_word_of;

/// Tools that run tests only if a goal is named for it. Other tools build and test in one step.
const GOAL_TOOLS: &str = "bun cargo cmake deno dotnet gmake go just make mvn mvnw npm nx pnpm poe rake swift task turbo yarn";
/// Name prefixes of goals that run tests.
const TEST_GOALS: [&str; 6] = ["test", "unit", "e2e", "spec", "check", "verify"];
/// Options followed by a path.
const BEFORE_PATHS: &str = "-C -f -S --cwd --dir --directory --file --prefix";
/// Goals of such tools that run no test.
const STATIC_GOALS: &str = "fmt format lint clippy vet typecheck type-check types build doc compile format-check \
    fmt-check lint-check check-format";

/// Whether a command, judged by its name, only formats, lints, checks types or builds: for it,
/// tests are ordinary source files.
pub fn is_static(run: &str) -> bool {
    const SET_UP: [&str; 6] = ["cd", "set", "export", "echo", "true", "."];
    let mut commands = find_commands(run);
    commands.retain(|command| !SET_UP.contains(&base_name(&command.words[0])));
    !commands.is_empty() && commands.iter().all(|command| is_static_command(&command.words))
}

fn is_static_command(words: &[String]) -> bool {
    let mut plain = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_path = at > 0 && is_word_of(BEFORE_PATHS, &words[at - 1]);
        if !is_path && !base_name(word).starts_with('-') {
            plain.push(base_name(word));
        }
    }
    if plain.iter().any(|word| is_word_of(TEST_RUNNERS, word) || *word == "test") {
        return false;
    }
    let mut goals = plain.iter().skip_while(|word| !is_word_of(GOAL_TOOLS, word));
    plain.starts_with(&["cargo", "check"])
        || plain.iter().any(|word| is_word_of(STATIC_PROGRAMS, word))
        || goals.clone().any(|goal| is_word_of(STATIC_GOALS, goal))
            && !goals.any(|goal| {
                !is_word_of(STATIC_GOALS, goal)
                    && TEST_GOALS.iter().any(|begin| goal.starts_with(begin))
            })
}

/// The word of a command that limits its tests to what changed: `--onlyChanged`, `nx affected`.
pub fn only_what_changed(run: &str) -> Option<String> {
    const OPTIONS: &str = "--changed --changedSince --onlyChanged --only-changed --last-failed --lf \
        --testmon --affected --findRelatedTests";
    find_commands(run).into_iter().find_map(|command| {
        let words = command.words;
        let is_nx = words.iter().any(|word| word == "nx");
        let affected = words.iter().find(|word| is_nx && word.starts_with("affected"));
        let mut names = words.iter().map(|word| (word, word.split('=').next().unwrap_or_default()));
        let option = names.find(|(_, name)| is_word_of(OPTIONS, name)).map(|(word, _)| word);
        option.or(affected).cloned()
    })
}

/// The first path with which a command may leave its tree for the checkout: one into the checkout
/// or to a folder above it. `checkout` is its absolute path, `value` a variable's value, and `real`
/// follows links.
pub fn path_out(
    checkout: &Path,
    run: &str,
    value: &dyn Fn(&str) -> Option<String>,
    real: &dyn Fn(&str) -> PathBuf,
) -> Option<String> {
    let mut before = "";
    run.split([' ', '\t', '\n', '\'', '"', '`', ';', '&', '|', '<', '>', '(', ')', '=', ',', ':'])
        .filter(|word| !word.is_empty())
        .find_map(|word| {
            let changes_to = is_word_of(FOLDERS, before) || ["cd", "pushd"].contains(&before);
            before = word;
            let path = expand_word(word, value).filter(|path| path.starts_with('/'))?;
            let real = real(&path);
            let is_above = checkout.starts_with(&real) && (changes_to || real.parent().is_some());
            if is_above || real.starts_with(checkout) { Some(path) } else { None }
        })
}

/// A word with its leading home or variable expanded; `None` if that value is unknown, or is the
/// current folder.
fn expand_word(word: &str, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let named = word.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let (name, rest) = match (named, word.strip_prefix('$')) {
        (Some(rest), _) => ("HOME", rest),
        (None, None) => return Some(word.to_owned()),
        (None, Some(variable)) => match variable.strip_prefix('{') {
            Some(braced) => braced.split_once('}')?,
            None => variable.split_at(variable.find('/').unwrap_or(variable.len())),
        },
    };
    if ["PWD", "OLDPWD"].contains(&name) {
        return None;
    }
    Some(value(name)? + rest)
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

#[cfg(test)]
mod way_out_tests {
    use super::*;

    #[test]
    fn a_path_of_a_command_that_leaves_the_tree_is_found() {
        let value = |name: &str| match name {
            "HOME" => Some("/w".to_owned()),
            "PWD" | "HERE" => Some("/w/repo".to_owned()),
            "PATH" => Some("/bin:/usr/bin".to_owned()),
            _ => None,
        };
        let real = |path: &str| PathBuf::from(if path == "/link" { "/w/repo/a" } else { path });
        for (run, expected) in [
            ("cd /w && cd repo && sh check.sh", Some("/w")),
            ("make -C /w/repo test", Some("/w/repo")),
            ("D=/w; sh $D/repo/check.sh", Some("/w")),
            ("sh ~/repo/check.sh", Some("/w/repo/check.sh")),
            ("cd \"$HOME\" && sh repo/check.sh", Some("/w")),
            ("sh ${HERE}/check.sh", Some("/w/repo/check.sh")),
            ("sh /link", Some("/link")),
            ("cd / && sh w/repo/check.sh", Some("/")),
            ("sh \"$PWD/check.sh\"", None),
            ("grep -r / a", None),
            ("PATH=$HOME/bin:$PATH make test > /w/log", None),
            ("cd sub && sh ../check.sh $1 ${2}", None),
        ] {
            assert_eq!(
                path_out(Path::new("/w/repo"), run, &value, &real).as_deref(),
                expected,
                "{run}"
            );
        }
    }
}
