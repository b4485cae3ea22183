//! Splits the words after `/crew:handoff`: `[type] DESCRIPTION`. It refuses nothing: without a type
//! the type is `task`.

/// The types that are recognized without quotes after them.
const KINDS: [&str; 5] = ["task", "phase", "review", "session", "blocked"];

/// The type and the description. A known type, or any plain word before a quoted description, is
/// the type; otherwise it is `task`.
pub fn split(raw: &str) -> (&str, &str) {
    let raw = raw.trim();
    let (kind, told) = match raw.split_once(char::is_whitespace) {
        Some((kind, rest)) if KINDS.contains(&kind) => (kind, rest),
        Some((kind, rest)) if is_kind(kind) && rest.trim_start().starts_with('"') => (kind, rest),
        _ => ("task", raw),
    };
    let told = told.trim();
    let quoted = told.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    (kind, quoted.unwrap_or(told).trim())
}

/// A type is a short plain word, because it becomes part of a file name.
pub fn is_kind(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=32).contains(&word.len()) && word.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_told_from_a_description() {
        let table = [
            ("the parser is done", ("task", "the parser is done")),
            ("task the parser is done", ("task", "the parser is done")),
            ("review \"look at it\"", ("review", "look at it")),
            ("milestone \"one of three\"", ("milestone", "one of three")),
            ("\"the parser\"", ("task", "the parser")),
            ("", ("task", "")),
        ];
        for (raw, expected) in table {
            assert_eq!(split(raw), expected, "{raw}");
        }
    }
}
