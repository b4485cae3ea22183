//! Which program a shell did not find, from the shell's message. It is a hint for a person; no
//! decision depends on it.

/// The name in the last line by which a shell says so, such as `sh: 1: foo: not found`,
/// `bash: line 1: foo: command not found` or `zsh:1: command not found: foo`.
pub fn not_found(output: &str) -> Option<&str> {
    output.lines().rev().map(str::trim).find_map(|line| {
        let said = line.strip_suffix(": command not found").or(line.strip_suffix(": not found"));
        let name = match said {
            Some(before) => before.rsplit(": ").next(),
            None => line.split_once("command not found: ").map(|(_, name)| name),
        };
        name.filter(|name| !name.is_empty() && !name.contains(char::is_whitespace))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_names_what_it_did_not_find() {
        for (output, expected) in [
            ("sh: 1: nosuchcmd: not found\n", Some("nosuchcmd")),
            ("building\nsh: line 1: nosuchcmd: command not found", Some("nosuchcmd")),
            ("zsh:1: command not found: nosuchcmd", Some("nosuchcmd")),
            ("sh: 1: ./run: not found", Some("./run")),
            ("the page was not found", None),
            ("key a b: not found", None),
            ("", None),
        ] {
            assert_eq!(not_found(output), expected, "{output}");
        }
    }
}
