//! The placeholders in the commands of an executor: `{job}` in `qstat {job}`. A name in braces is
//! one only if it is made of small letters, so `${HOME}`, `{.status}` and `{ print }` are left to
//! the shell. Each is filled in as one quoted word of the shell. Within quotes that would end the
//! quotes, so it is refused there.

use std::ops::Range;

/// One placeholder of a command.
#[derive(Debug, PartialEq, Eq)]
struct Placeholder<'text> {
    /// With its braces.
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
                return Err(format!("take {{{name}}} out of the quotes: crew quotes it itself"));
            }
            (true, false) => has_first |= known.first() == Some(&name),
            // The shell's own braces are mostly quoted, as in awk '{print}'.
            (false, true) => {}
            (false, false) => {
                return Err(format!(
                    "there is no {{{name}}}: it takes {listed}; braces of the shell are quoted"
                ));
            }
        }
    }
    match known.first() {
        Some(first) if !has_first => Err(format!("expected a command with {{{first}}} in it")),
        _ => Ok(()),
    }
}

/// The command with each placeholder replaced by its value, as one word of the shell. One without a
/// value stays.
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

/// The name of the placeholder that a text begins with.
fn name_at(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_name { Some(name) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_command_has_its_placeholders_outside_of_quotes_and_no_others() {
        let known = ["job", "name"];
        for (command, fault) in [
            ("qstat {job}", ""),
            ("qstat {job} # it's {job}", ""),
            ("x --of={job}.{name}", ""),
            ("awk '{print}' {job} ${HOME} {.status} { } {}", ""),
            (r#"a \" {job} \" \' "#, ""),
            ("qstat", "expected a command with {job} in it"),
            ("qstat {name}", "expected a command with {job} in it"),
            (r#"qstat "{job}""#, "take {job} out of the quotes: crew quotes it itself"),
            ("sh -c 'qstat {job}'", "take {job} out of the quotes: crew quotes it itself"),
            (
                "qstat {jbo}",
                "there is no {jbo}: it takes {job} and {name}; braces of the shell are quoted",
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
    fn what_is_filled_in_is_not_filled_in_again() {
        let filled = fill_placeholders(
            "a {job} '{job}' {name}{job} {other}",
            &[("job", "{name} $x"), ("name", "it's")],
        );
        assert_eq!(filled, r"a '{name} $x' '{job}' 'it'\''s''{name} $x' {other}");
    }

    proptest! {
        #[test]
        fn the_shell_gets_the_very_word(value in "[^\\x00]{0,20}") {
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
