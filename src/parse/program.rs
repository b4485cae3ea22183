//! The program that a command of `sh -c` starts with, if its first words leave no doubt. If they
//! do, it names nothing: refusing a start because of a guess would be worse than a check that
//! fails.

/// What a command starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramNames<'run> {
    /// A bare name, looked for on `PATH`.
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
pub fn named(run: &str) -> Option<ProgramNames<'_>> {
    let is_plain = |letter: char| letter.is_alphanumeric() || " \t-_./+:,@=".contains(letter);
    let mut words = run.split([' ', '\t']).filter(|word| !word.is_empty());
    let first = words.next().filter(|word| !word.contains(['=', ',', '@', ':']))?;
    if !run.trim().chars().all(is_plain) || OF_THE_SHELL.split_whitespace().any(|it| it == first) {
        return None;
    }
    if first.contains('/') {
        return Some(ProgramNames { program: None, file: Some(first) });
    }
    let script = words.next().filter(|word| !word.starts_with('-'));
    let script = script.filter(|_| INTERPRETERS.contains(&first));
    Some(ProgramNames { program: Some(first), file: script })
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
            assert_eq!(named(run), expected, "{run}");
        }
    }
}
