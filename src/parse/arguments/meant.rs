//! What people type who come from other tools: some of it has one meaning here and is understood,
//! the rest is refused with the words that crew knows.

use std::ffi::OsString;

use super::UsageError;

/// A command line in crew's own words.
#[derive(Debug, PartialEq, Eq)]
pub struct Meant {
    pub words: Vec<OsString>,
    /// What was understood for what; `None` if nothing had to be.
    pub note: Option<String>,
}

/// Reads a command line, whose first word is the program.
///
/// # Errors
/// For a word that could mean two things, and for a task without its verb.
pub fn meant(words: Vec<OsString>) -> Result<Meant, UsageError> {
    let verb = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let ours: &[&str] = match verb {
        "list" | "ls" => &["status", "--all"],
        "logs" | "log" => &["show", "--log", "-f"],
        "version" => &["--version"],
        "help" => return Ok(help(words)),
        "stop" => {
            return Err(UsageError::new(
                "stop: which?\nhint: crew pause (after this iteration, --now at once), or crew cancel (ends it; it can \
                 be resumed)",
            ));
        }
        "start" => return Err(UsageError::new("start: what?\nhint: crew run \"TASK\"")),
        task if task.contains(char::is_whitespace) && words.len() == 2 => {
            return Err(UsageError::new(format!("a task needs a verb\nhint: crew run {task:?}")));
        }
        _ => return Ok(Meant { words, note: None }),
    };
    let note = format!("{verb} is crew {}", ours.join(" "));
    let mut meant = words;
    meant.splice(1..2, ours.iter().map(OsString::from));
    Ok(Meant { words: meant, note: Some(note) })
}

/// `crew help VERB` is `crew VERB --help`.
fn help(mut words: Vec<OsString>) -> Meant {
    words.remove(1);
    words.push("--help".into());
    Meant { words, note: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_tools_are_understood_where_they_mean_one_thing() {
        let table = [
            "ls",
            "list --json",
            "logs k3v9",
            "version",
            "help",
            "help run",
            "stop",
            "start",
            "status --all",
            "run 'ls'",
        ];
        let told = table.map(|typed| {
            let words = std::iter::once("crew").chain(typed.split(' ')).map(OsString::from);
            match meant(words.collect()) {
                Ok(Meant { words, note }) => {
                    let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
                    format!("{typed}: {} {}", words.join(" "), note.unwrap_or_default())
                }
                Err(error) => format!("{typed}: {error}"),
            }
        });
        insta::assert_snapshot!(told.join("\n"), @r#"
        ls: crew status --all ls is crew status --all
        list --json: crew status --all --json list is crew status --all
        logs k3v9: crew show --log -f k3v9 logs is crew show --log -f
        version: crew --version version is crew --version
        help: crew --help 
        help run: crew run --help 
        stop: stop: which?
        hint: crew pause (after this iteration, --now at once), or crew cancel (ends it; it can be resumed)
        start: start: what?
        hint: crew run "TASK"
        status --all: crew status --all 
        run 'ls': crew run 'ls'
        "#);
        let task = ["crew", "do it please"].map(OsString::from).to_vec();
        let error = meant(task).unwrap_err().to_string();
        assert_eq!(error, "a task needs a verb\nhint: crew run \"do it please\"");
    }
}
