//! A command of the shell: its program, whether a failed check found that program, and the
//! placeholders that crew fills in. In case of doubt no program is named, because refusing a start
//! on a guess would be worse than a check that fails.
//!
//! A placeholder is a name in braces, `{job}` in `qstat {job}`, made of small letters, so
//! `${HOME}`, `{.status}` and `{ print }` are left to the shell. Each is filled in as one quoted
//! word of the shell. Within quotes that would end the quotes, so it is refused there.

use std::ops::Range;

use super::patterns::{MISSING_PROGRAM, NOT_FOUND};

/// The names that a command starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramNames<'run> {
    /// A bare name that is searched for on `PATH`.
    pub program: Option<&'run str>,
    /// A file: the program, or the script passed to a well-known interpreter.
    pub file: Option<&'run str>,
}

/// Shell builtins and keywords.
const OF_THE_SHELL: &str = ". : alias bg bind break builtin caller case cd command compgen complete continue \
    coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for \
    function getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read \
    readarray readonly return select set shift shopt source suspend test then time times trap true type \
    typeset ulimit umask unalias unset until wait while";
/// Programs whose first argument is a script.
pub const INTERPRETERS: [&str; 13] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "ruby", "perl", "node", "php", "tsx",
    "lua",
];

/// Reads the beginning of a command. Quotes, variables, lists and pipes can change any word, so a
/// command that contains one is not understood.
pub fn parse_program(run: &str) -> Option<ProgramNames<'_>> {
    let mut words = run.split([' ', '\t']).filter(|word| !word.is_empty());
    let first = words.next().filter(|word| !word.contains(['=', ',', '@', ':']))?;
    let is_plain = run
        .trim()
        .chars()
        .all(|letter| letter.is_alphanumeric() || " \t-_./+:,@=".contains(letter));
    if !is_plain || OF_THE_SHELL.split_whitespace().any(|word| word == first) {
        return None;
    }
    if first.contains('/') {
        return Some(ProgramNames { program: None, file: Some(first) });
    }
    let argument = words.next().filter(|word| !word.starts_with('-'));
    let script = if INTERPRETERS.contains(&first) { argument } else { None };
    Some(ProgramNames { program: Some(first), file: script })
}

/// Parts of the texts that [`MISSING_PROGRAM`] matches, in lower case. Compiling that pattern takes
/// as long as the rest of a boundary, and few failures contain one of them.
const SIGNS: [&str; 8] = [
    "not found",
    "could not determine",
    "failed to spawn",
    "no such command",
    "node_modules",
    "no module named",
    "126",
    "127",
];

/// Whether a check that failed with this status and output did so because a program was missing; it
/// can only lower a proof.
pub fn finds_no_program(exit: Option<i32>, output: &str) -> bool {
    let lower = output.to_ascii_lowercase();
    matches!(exit, Some(126 | 127))
        || (SIGNS.iter().any(|sign| lower.contains(sign)) && MISSING_PROGRAM.is_match(output))
}

/// The name in a shell's last line about a missing program, such as `sh: 1: foo: not found`, `bash:
/// line 1: foo: command not found` or `zsh:1: command not found: foo`; a hint for a person.
pub fn not_found(output: &str) -> Option<&str> {
    let last = NOT_FOUND.captures_iter(output).last()?;
    last.get(1).or(last.get(2)).map(|name| name.as_str())
}

/// One placeholder of a command.
#[derive(Debug, PartialEq, Eq)]
struct Placeholder<'text> {
    /// Its position in the text, braces included.
    at: Range<usize>,
    name: &'text str,
    is_quoted: bool,
}

/// Checks a command that may have the placeholders `known`, and must have the first of them.
///
/// # Errors
/// What is wrong with it and what to write instead.
pub fn check_placeholders(command: &str, known: &[&str]) -> Result<(), String> {
    let listed = known.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(" and ");
    let mut has_first = false;
    if command.contains('\0') {
        return Err("it contains a NUL character".to_owned());
    }
    for Placeholder { name, is_quoted, .. } in find_placeholders(command) {
        match (known.contains(&name), is_quoted) {
            (true, true) => {
                return Err(format!("remove the quotes around {{{name}}}: crew adds its own"));
            }
            (true, false) => has_first |= known.first() == Some(&name),
            // The shell's own braces are mostly quoted, as in awk '{print}'.
            (false, true) => {}
            (false, false) => {
                return Err(format!(
                    "unknown placeholder {{{name}}}: expected {listed}; quote braces of the shell"
                ));
            }
        }
    }
    match known.first() {
        Some(first) if !has_first => Err(format!("expected a command with {{{first}}} in it")),
        _ => Ok(()),
    }
}

/// The command with each placeholder replaced by its value, as one word of the shell. A placeholder
/// without a value stays.
pub fn fill_placeholders(command: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(command.len());
    let mut from = 0;
    for Placeholder { at, name, is_quoted } in find_placeholders(command) {
        let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        if let (Some(value), false) = (value, is_quoted) {
            filled.push_str(&command[from..at.start]);
            filled.push_str(&shell_words::quote(value));
            from = at.end;
        }
    }
    filled + &command[from..]
}

/// The placeholders of a command as they occur in it.
fn find_placeholders(command: &str) -> Vec<Placeholder<'_>> {
    let mut found = Vec::new();
    let mut quote = None;
    let mut before = ' ';
    let mut characters = command.char_indices();
    while let Some((at, c)) = characters.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => drop(characters.next()),
            ('\'' | '"', None) => quote = Some(c),
            ('\'' | '"', Some(open)) if c == open => quote = None,
            // An apostrophe in a comment of the shell opens nothing.
            ('#', None) if before.is_whitespace() => {
                characters.by_ref().find(|(_, c)| *c == '\n');
            }
            ('{', _) if before != '$' => {
                if let Some(name) = name_at(&command[at..]) {
                    let at = at..at + name.len() + 2;
                    found.push(Placeholder { at, name, is_quoted: quote.is_some() });
                }
            }
            _ => {}
        }
        before = c;
    }
    found
}

/// The name of the placeholder that a string begins with.
fn name_at(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_name { Some(name) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_command_names_its_program() {
        let named_as = |program, file| Some(ProgramNames { program, file });
        for (run, expected) in [
            ("nosuchcmd", named_as(Some("nosuchcmd"), None)),
            ("  cargo test --all=x a/b.rs ", named_as(Some("cargo"), None)),
            ("g++ -c x.cc", named_as(Some("g++"), None)),
            ("./check.sh --fast", named_as(None, Some("./check.sh"))),
            ("scripts/check", named_as(None, Some("scripts/check"))),
            ("sh check.sh", named_as(Some("sh"), Some("check.sh"))),
            ("python check.py", named_as(Some("python"), Some("check.py"))),
            ("python3 -m pytest", named_as(Some("python3"), None)),
            ("sh", named_as(Some("sh"), None)),
            ("A=1 nosuchcmd", None),
            ("true", None),
            ("cd x", None),
            ("test -f x", None),
            ("[ -f x ]", None),
            ("! nosuchcmd", None),
            ("if nosuchcmd; then true; fi", None),
            ("cd x && nosuchcmd", None),
            ("nosuchcmd | cat", None),
            ("nosuchcmd || true", None),
            ("nosuchcmd 'a b'", None),
            ("'nosuchcmd'", None),
            ("$TOOL run", None),
            ("~/bin/check", None),
            ("nosuchcmd > log", None),
            ("nosuchcmd\nelse", None),
            ("(nosuchcmd)", None),
            ("", None),
        ] {
            assert_eq!(parse_program(run), expected, "{run}");
        }
    }

    #[test]
    fn each_message_of_a_runner_that_finds_no_program_is_recognized() {
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
    fn each_shell_names_the_program_it_did_not_find() {
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

#[cfg(test)]
mod placeholders_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_command_has_only_known_placeholders_and_none_inside_quotes() {
        let known = ["job", "name"];
        for (command, fault) in [
            ("qstat {job}", ""),
            ("qstat {job} # it's {job}", ""),
            ("x --of={job}.{name}", ""),
            ("awk '{print}' {job} ${HOME} {.status} { } {}", ""),
            (r#"a \" {job} \" \' "#, ""),
            ("qstat", "expected a command with {job} in it"),
            ("qstat {name}", "expected a command with {job} in it"),
            (r#"qstat "{job}""#, "remove the quotes around {job}: crew adds its own"),
            ("sh -c 'qstat {job}'", "remove the quotes around {job}: crew adds its own"),
            (
                "qstat {jbo}",
                "unknown placeholder {jbo}: expected {job} and {name}; quote braces of the shell",
            ),
            ("qstat ${job}", "expected a command with {job} in it"),
        ] {
            assert_eq!(
                check_placeholders(command, &known).err().unwrap_or_default(),
                fault,
                "{command}"
            );
        }
    }

    #[test]
    fn placeholders_inside_a_filled_in_value_are_not_expanded() {
        let filled = fill_placeholders(
            "a {job} '{job}' {name}{job} {other}",
            &[("job", "{name} $x"), ("name", "it's")],
        );
        assert_eq!(filled, r"a '{name} $x' '{job}' 'it'\''s''{name} $x' {other}");
    }

    proptest! {
        #[test]
        fn the_shell_receives_a_filled_in_value_as_one_unchanged_word(value in "[^\\x00]{0,20}") {
            let command = fill_placeholders("qstat {job} end", &[("job", &value)]);
            let split = shell_words::split(&command).unwrap();
            prop_assert_eq!(split, ["qstat", &value, "end"]);
        }

        #[test]
        fn no_text_panics(command in "[{}a-c'\"\\\\$# \\n\u{e9}]{0,40}") {
            let _ = check_placeholders(&command, &["a", "b"]);
            fill_placeholders(&command, &[("a", "1"), ("b", "2")]);
        }
    }
}
