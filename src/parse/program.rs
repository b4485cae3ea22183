//! Which program a command of `sh -c` begins with, as far as its first words say so beyond doubt. What is not
//! understood names nothing: a start that is refused for a guess would be worse than a check that fails.

/// What a command begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named<'run> {
    /// A bare name, looked for on `PATH`.
    Program(&'run str),
    /// A file: the program, or the script that a well-known interpreter is given.
    File(&'run str),
}

/// What a shell does itself, and the words of its language.
const OF_THE_SHELL: &str = ". : alias bg bind break builtin caller case cd command compgen complete continue \
    coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for \
    function getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read \
    readarray readonly return select set shift shopt source suspend test then time times trap true type \
    typeset ulimit umask unalias unset until wait while";
/// Programs whose first argument is a script.
const INTERPRETERS: [&str; 9] =
    ["sh", "bash", "dash", "zsh", "ksh", "python", "python3", "ruby", "perl"];

/// Reads the beginning of a command. Quotes, variables, lists and pipes can make anything of what they touch,
/// so one of them anywhere is not understood.
pub fn named(run: &str) -> Option<Named<'_>> {
    let is_plain = |letter: char| letter.is_alphanumeric() || " \t-_./+:,@=".contains(letter);
    let mut words = run.split([' ', '\t']).filter(|word| !word.is_empty());
    let first = words.next().filter(|word| !word.contains(['=', ',', '@', ':']))?;
    if !run.trim().chars().all(is_plain) || OF_THE_SHELL.split_whitespace().any(|it| it == first) {
        return None;
    }
    if first.contains('/') {
        return Some(Named::File(first));
    }
    let script = words.next().filter(|word| !word.starts_with('-'));
    match script.filter(|_| INTERPRETERS.contains(&first)) {
        Some(script) => Some(Named::File(script)),
        None => Some(Named::Program(first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_command_names_its_program() {
        use Named::{File, Program};
        for (run, expected) in [
            ("nosuchcmd", Some(Program("nosuchcmd"))),
            ("  cargo test --all=x a/b.rs ", Some(Program("cargo"))),
            ("g++ -c x.cc", Some(Program("g++"))),
            ("./check.sh --fast", Some(File("./check.sh"))),
            ("scripts/check", Some(File("scripts/check"))),
            ("sh check.sh", Some(File("check.sh"))),
            ("python3 -m pytest", Some(Program("python3"))),
            ("sh", Some(Program("sh"))),
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
