//! Which program a shell did not find, from the shell's message, and whether a check that failed
//! found one at all. The former is a hint for a person; the latter can only lower a proof.

/// The statuses of a shell that finds no program, or cannot run it.
const STATUSES: [&str; 2] = ["126", "127"];
/// What shells and runners say, in lower case; the last three are npx, uv and cargo.
const SAID: [&str; 4] = [
    "command not found",
    "could not determine executable to run",
    "failed to spawn: `",
    "no such command: `",
];

/// Whether a check that failed with this status and output did so because a program was missing.
pub fn finds_no_program(exit: Option<i32>, output: &str) -> bool {
    exit.is_some_and(|exit| STATUSES.contains(&&*exit.to_string()))
        || output.lines().any(|line| {
            let line = line.trim().to_lowercase();
            let is_of_a_shell =
                || line.contains("sh: ") || line.split(": ").any(|it| it.parse::<u32>().is_ok());
            SAID.iter().any(|said| line.contains(said))
                || line.ends_with(": not found") && is_of_a_shell()
                || line.contains("cannot find module '/") && line.contains("/node_modules/")
                || line.contains("python") && line.contains(": no module named ")
                || passes_a_status_on(&line)
        })
}

/// "make: *** [Makefile:2: test] Error 127", "exit status 127", "failed with exit code 127.".
fn passes_a_status_on(line: &str) -> bool {
    let mut words = line.rsplit(char::is_whitespace);
    let number = words.next().unwrap_or_default().trim_matches(|it: char| !it.is_ascii_digit());
    let before = words.next().unwrap_or_default().trim_end_matches(':');
    STATUSES.contains(&number) && ["error", "code", "status"].contains(&before)
}

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
    fn a_runner_that_finds_no_program_says_so_in_one_of_these_ways() {
        for (exit, output, expected) in [
            // dash, bash, make, pnpm, just, poetry, python, npx, uv, cargo, node.
            (127, "", true),
            (126, "sh: 1: ./check.sh: Permission denied", true),
            (1, "sh: 1: jest: not found", true),
            (1, "./run.sh: line 3: jest: command not found", true),
            (2, "sh: 1: pytest: not found\nmake: *** [Makefile:2: test] Error 127", true),
            (2, "make[1]: *** [Makefile:9: unit] Error 127\nmake: *** [test] Error 2", true),
            (1, " ELIFECYCLE  Command failed with exit code 127.", true),
            (1, "error: Recipe `test` failed on line 2 with exit code 127", true),
            (1, "Command not found: pytest", true),
            (1, "/usr/bin/python3: No module named pytest", true),
            (1, "npm error could not determine executable to run", true),
            (2, "error: Failed to spawn: `pytest`", true),
            (101, "error: no such command: `nextest`", true),
            (1, "Error: Cannot find module '/app/node_modules/jest/bin/jest.js'", true),
            (1, "ModuleNotFoundError: No module named 'shop'", false),
            (1, "Error: Cannot find module '../calc'", false),
            (2, "sh: 0: cannot open hello.sh: No such file", false),
            (1, "the page was not found", false),
            (1, "expected 127\n  got 12", false),
        ] {
            assert_eq!(finds_no_program(Some(exit), output), expected, "{output}");
        }
    }

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
