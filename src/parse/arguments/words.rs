//! The same grammar for what a shell has already split: the arguments of `crew run` and `crew resume`. A
//! word that looks like an option is one or is an error; the task is one word or plain words, which go
//! together with a blank between.

use super::flags::{self, Flag, Place, Role};
use super::usage::UsageError;
use super::values::Value;
use super::{LoopArguments, sound, tokens};
use crate::parse::spelling::shown;

/// What stands behind it is the agent's.
const END_OF_OPTIONS: &str = "--";

/// Reads the arguments of `crew run`.
///
/// # Errors
/// When a word is neither an option with its value nor a part of the task.
pub fn run(words: &[String]) -> Result<LoopArguments, UsageError> {
    let mut reader = Reader::default();
    let mut task: Vec<&str> = Vec::new();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        if word == END_OF_OPTIONS {
            reader.typed.run.words = Some(after.to_vec());
            break;
        }
        if tokens::is_option(word) && !is_text(word) {
            rest = reader.option(word, after)?;
        } else {
            if let Some(flag) = tokens::swallowed(word, '"') {
                return Err(UsageError::SwallowedOption { flag });
            }
            task.push(word);
            rest = after;
        }
    }
    let task = task.join(" ");
    if reader.typed.run.tell.is_some() {
        return Err(UsageError::OnlyAfterResume);
    }
    reader.typed.task = Some(task).filter(|task| !task.trim().is_empty());
    sound(reader.typed)
}

/// What was typed after `crew resume`: its run options, and the words left for the limits and the name.
///
/// # Errors
/// When a run option lacks its value, has one it cannot take, or is none of a resume's.
pub fn resume(words: &[String]) -> Result<(LoopArguments, Vec<String>), UsageError> {
    let mut reader = Reader::default();
    let mut left = Vec::new();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        if word == END_OF_OPTIONS {
            reader.typed.run.words = Some(after.to_vec());
            break;
        }
        let is_ours = tokens::is_option(word) && flags::is_of_the_terminal(word);
        if is_ours {
            flags::of_a_resume(word)?;
            rest = reader.option(word, after)?;
        } else {
            left.push(word.clone());
            rest = after;
        }
    }
    Ok((sound(reader.typed)?, left))
}

/// Whether a word that begins as an option does is text all the same: its name would have a blank in it, so a
/// person has quoted it, and it does not begin with an option that exists.
fn is_text(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    name.contains(char::is_whitespace) && flags::find(tokens::token(word), Place::Terminal).is_err()
}

#[derive(Default)]
struct Reader {
    typed: LoopArguments,
    given: Vec<&'static str>,
}

impl Reader {
    /// Takes an option and its value; gives what follows them.
    fn option<'words>(
        &mut self,
        word: &str,
        after: &'words [String],
    ) -> Result<&'words [String], UsageError> {
        if let Some(meant) = flags::behind_typographic_dash(tokens::token(word)) {
            return Err(UsageError::typographic_dash(tokens::token(word), meant));
        }
        let (flag, attached) = flags::find(word, Place::Terminal)?;
        if self.given.contains(&flag.name) && !matches!(flag.role, Role::Repeated(_)) {
            return Err(UsageError::GivenTwice { flag: flag.name });
        }
        self.given.push(flag.name);
        let mut rest = after;
        let mut value = || -> Result<Value, UsageError> {
            let (text, left) = value(flag, attached.map(|start| &word[start..]), after)?;
            rest = left;
            Ok(Value { flag, text })
        };
        match flag.role {
            Role::Switch(_) if attached.is_some() => {
                return Err(UsageError::UnexpectedValue { flag: flag.name });
            }
            Role::Switch(set) => set(&mut self.typed),
            Role::SwitchOr(other, set) => match attached.map(|start| &word[start..]) {
                Some(text) if text != other => {
                    return Err(UsageError::UnexpectedValue { flag: flag.name });
                }
                text => set(&mut self.typed, text.is_some()),
            },
            Role::Once(set) => set(&mut self.typed, value()?)?,
            Role::Repeated(values) => {
                let value = value()?;
                values(&mut self.typed).push(value.text);
            }
        }
        Ok(rest)
    }
}

/// The value of an option: what is attached to it, else the next word.
fn value<'words>(
    flag: &'static Flag,
    attached: Option<&str>,
    after: &'words [String],
) -> Result<(String, &'words [String]), UsageError> {
    let missing = || UsageError::MissingValue { flag: flag.name, example: flag.example };
    let (text, rest) = match (attached, after.split_first()) {
        (Some(text), _) => (text.to_owned(), after),
        (None, Some((next, _))) if next == END_OF_OPTIONS || tokens::is_option(next) => {
            let value = shown(next);
            return Err(UsageError::OptionAsWord { flag: flag.name, value });
        }
        (None, Some((next, rest))) => (next.clone(), rest),
        (None, None) => return Err(missing()),
    };
    if text.trim().is_empty() { Err(missing()) } else { Ok((text, rest)) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::agent::Permissions;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn read(given: &[&str]) -> LoopArguments {
        run(&words(given)).unwrap_or_else(|error| panic!("{given:?}: {error}"))
    }

    fn refused(given: &[&str]) -> String {
        run(&words(given)).expect_err("it is refused").to_string()
    }

    #[test]
    fn options_stand_before_or_after_the_task_which_comes_through_byte_for_byte() {
        let task = "fix `this` & $HOME <b>\n  {{#if}} ${{ secrets.X }} 'now'";
        for given in [
            vec![task, "-n", "3", "--agent", "codex"],
            vec!["-n3", "--agent=codex", task],
            vec!["--agent", "codex", "--max-iterations=3", task, "--"],
        ] {
            let typed = read(&given);
            assert_eq!(typed.task.as_deref(), Some(task), "{given:?}");
            assert_eq!(
                (typed.max_iterations, typed.run.agent.as_deref()),
                (Some(3), Some("codex"))
            );
        }
        assert_eq!(read(&["fix", "the", "tests"]).task.as_deref(), Some("fix the tests"));
        assert_eq!(read(&["--fix it"]).task.as_deref(), Some("--fix it"));
        assert_eq!(read(&["-x, --y: fix both"]).task.as_deref(), Some("-x, --y: fix both"));
        assert_eq!(read(&["--list"]).task, None);
    }

    #[test]
    fn words_after_two_hyphens_are_the_agents() {
        let typed = read(&["fix it", "-n3", "--", "--effort", "high", "--", "-n", "x y"]);
        assert_eq!((typed.task.as_deref(), typed.max_iterations), (Some("fix it"), Some(3)));
        let expected = words(&["--effort", "high", "--", "-n", "x y"]);
        assert_eq!(typed.run.words, Some(expected));
        let none = read(&["--", "fix it"]);
        assert_eq!((none.task, none.run.words), (None, Some(words(&["fix it"]))));
        assert_eq!(read(&["fix it"]).run.words, None);
        let (typed, left) = resume(&words(&["k3v9", "--model", "opus", "--", "-n", "3"])).unwrap();
        assert_eq!(left, ["k3v9"]);
        assert_eq!(typed.run.model.as_deref(), Some("opus"));
        assert_eq!(typed.run.words, Some(words(&["-n", "3"])));
    }

    #[test]
    fn every_option_of_the_terminal_has_its_field() {
        let typed = read(&[
            "-c",
            "one",
            "--context",
            "two",
            "--observe",
            "a",
            "--orient",
            "b",
            "--decide",
            "c",
            "--act",
            "d",
            "--agent-cmd",
            "x --y",
            "--model",
            "opus",
            "--permissions",
            "bypass",
            "--timeout",
            "1h",
            "--idle-timeout",
            "0",
            "--delay",
            "30s",
            "--max-turns",
            "7",
            "--commit",
            "--push",
            "--rebase",
            "main",
            "--worktree",
            "w",
            "--dry-run",
            "--detach",
            "--json",
            "-v",
            "-q",
        ]);
        let run = typed.run;
        assert_eq!(run.context, ["one", "two"]);
        assert_eq!([run.observe, run.orient, run.decide, run.act].concat(), ["a", "b", "c", "d"]);
        assert_eq!(run.agent_cmd.as_deref(), Some("x --y"));
        assert_eq!(run.model.as_deref(), Some("opus"));
        assert_eq!(run.permissions, Some(Permissions::Bypass));
        let times = [run.timeout, run.idle_timeout, run.delay];
        assert_eq!(times, [3600, 0, 30].map(|seconds| Some(Duration::from_secs(seconds))));
        assert_eq!(run.max_turns, Some(7));
        assert!(run.commit && run.push && run.dry_run && run.detach);
        assert!(run.json && run.verbose && run.quiet);
        assert_eq!([run.rebase.as_deref(), run.worktree.as_deref()], [Some("main"), Some("w")]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_way_out() {
        let way_out = "\nif it is the agent's, put it after `--`; if it belongs to the task, put the whole task in double quotes";
        for (given, expected) in [
            (
                &["x", "--agnt", "codex"][..],
                format!("unknown option `--agnt`: did you mean `--agent`?{way_out}"),
            ),
            (
                &["x", "--verify", "--commit"],
                "--verify needs a value, but `--commit` follows it\n\
                 write a value that begins with a hyphen as --verify=--commit"
                    .to_owned(),
            ),
            (
                &["--commit now"],
                format!("unknown option `--commit now`: did you mean `--commit`?{way_out}"),
            ),
            (&["x", "--verify"], "--verify needs a value: --verify \"cargo test\"".to_owned()),
            (
                &["x", "-c="],
                "--context needs a value: --context \"read AGENTS.md first\"".to_owned(),
            ),
            (
                &["x", "--agent", "codex", "--agent-cmd", "mine"],
                "--agent and --agent-cmd exclude each other: keep one of them".to_owned(),
            ),
            (&["x", "--push=yes"], "--push takes no value: write --push alone".to_owned()),
            (&["x", "-v", "--verbose"], "--verbose is given twice: keep one of them".to_owned()),
            (
                &["x", "--permissions", "all"],
                "--permissions takes default, accept-edits, auto or bypass, not `all`: \
                 --permissions accept-edits"
                    .to_owned(),
            ),
        ] {
            assert_eq!(refused(given), expected, "{given:?}");
        }
        assert_eq!(read(&["x", "--verify=-x"]).verify, ["-x"]);
        let swallowed = "Build it --verify \"cargo test";
        assert!(refused(&[swallowed]).starts_with("--verify stands inside the task"));
    }

    #[test]
    fn resume_leaves_the_name_and_the_limits_to_others() {
        let given = words(&["k3v9", "-n", "+10", "--agent", "codex", "--detach", "--max-cost=+5"]);
        let (typed, left) = resume(&given).unwrap();
        assert_eq!(left, ["k3v9", "-n", "+10", "--max-cost=+5"]);
        assert_eq!(typed.run.agent.as_deref(), Some("codex"));
        assert!(typed.run.detach);
    }

    #[test]
    fn what_only_a_start_can_do_is_refused_after_resume() {
        let only = [
            "--dry-run",
            "--list",
            "--worktree",
            "-c",
            "--context",
            "--observe",
            "--orient",
            "--decide",
            "--act",
        ];
        for option in only {
            for word in [option.to_owned(), format!("{option}=x")] {
                let error = resume(&[word, "x".to_owned()]).expect_err(option).to_string();
                assert_eq!(
                    error,
                    format!(
                        "`{option}` is an option of crew run: a resumed loop goes on as it was begun\n\
                         crew resume --help names what can be changed"
                    )
                );
            }
        }
        assert!(resume(&words(&["--no-project"])).unwrap().0.no_project);
    }
}
