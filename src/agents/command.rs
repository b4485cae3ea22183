//! A command given as one text (`--agent-cmd`) as an agent: split into words as a shell splits it,
//! but never run by one, so nothing in it is expanded. The prompt goes to its standard input. An
//! empty command, an open quote or a final backslash is refused.

use crate::engine::record::Agent;

/// Reads the command. The agent is named after its program. The error says what to write instead.
pub fn command(text: &str) -> Result<Agent, String> {
    let command = split(text)?;
    let program = command.first().filter(|program| !program.is_empty());
    let Some(program) = program else {
        return Err(
            "--agent-cmd is empty: give it a program, such as \"my-agent --quiet\"".to_owned()
        );
    };
    let name = program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(program);
    Ok(Agent { name: name.to_owned(), command: command.clone(), ..Agent::default() })
}

fn split(text: &str) -> Result<Vec<String>, String> {
    let words = shell_words::split(text).map_err(|_| {
        let is_single = shell_words::split(&format!("{text}'")).is_ok();
        let quote = if is_single { '\'' } else { '"' };
        format!(
            "--agent-cmd has an opening {quote} that is never closed: close it, or write \\{quote} for the \
             character itself"
        )
    })?;
    // A shell would wait for another line.
    let is_cut = text.chars().rev().take_while(|it| *it == '\\').count() % 2 == 1;
    if is_cut {
        return Err("--agent-cmd ends in a backslash: double it, or remove it".to_owned());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_at_white_space_with_quotes_and_nothing_is_expanded() {
        let table: [(&str, &[&str]); 11] = [
            ("agent", &["agent"]),
            ("  agent\t--fast \n x ", &["agent", "--fast", "x"]),
            ("agent 'two words' \"and 'three' more\"", &["agent", "two words", "and 'three' more"]),
            (r#"agent --say="a \"b\" \n \\""#, &["agent", r#"--say=a "b" \n \"#]),
            (r"agent two\ words \'x", &["agent", "two words", "'x"]),
            ("agent '' \"\"", &["agent", "", ""]),
            (
                "agent $HOME `ls` *.rs ~ | sh; x > y",
                &["agent", "$HOME", "`ls`", "*.rs", "~", "|", "sh;", "x", ">", "y"],
            ),
            ("agent {prompt} é'ü 漢'", &["agent", "{prompt}", "éü 漢"]),
            (r"agent 'C:\dir\'", &["agent", r"C:\dir\"]),
            ("agent \\\n--fast a\\\\", &["agent", "--fast", "a\\"]),
            ("agent a#1 '#2' # 3", &["agent", "a#1", "#2"]),
        ];
        for (text, expected) in table {
            assert_eq!(command(text).unwrap().command, expected, "{text}");
        }
    }

    #[test]
    fn a_command_that_cannot_be_read_says_what_to_write() {
        let empty = "--agent-cmd is empty: give it a program, such as \"my-agent --quiet\"";
        let table = [
            ("", empty),
            (" \n", empty),
            ("'' x", empty),
            (
                "agent 'x",
                "--agent-cmd has an opening ' that is never closed: close it, or write \\' for the character itself",
            ),
            (
                "agent it's fine",
                "--agent-cmd has an opening ' that is never closed: close it, or write \\' for the character itself",
            ),
            (
                "agent \"x\\\"",
                "--agent-cmd has an opening \" that is never closed: close it, or write \\\" for the character itself",
            ),
            ("agent \\", "--agent-cmd ends in a backslash: double it, or remove it"),
        ];
        for (text, expected) in table {
            assert_eq!(command(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn the_agent_is_named_by_its_program() {
        for (text, name) in [("/opt/bin/my-agent x", "my-agent"), ("a", "a"), ("/", "/")] {
            assert_eq!(command(text).unwrap().name, name);
        }
    }
}
