//! Splits the words after `/crew:handoff` and `crew handoff`: `[type] DESCRIPTION`. It refuses
//! nothing: without a type the type is `task`.

/// The types that are recognized without quotes after them.
pub const KINDS: [&str; 5] = ["task", "phase", "review", "session", "blocked"];
/// The type of a page that names none.
const USUAL: &str = "task";

/// The type and the description. A known type, or any plain word before a quoted description, is
/// the type; otherwise it is `task`.
pub fn split(raw: &str) -> (&str, &str) {
    let raw = raw.trim();
    let (kind, told) = match raw.split_once(char::is_whitespace) {
        Some((kind, rest)) if KINDS.contains(&kind) => (kind, rest),
        Some((kind, rest)) if is_kind(kind) && rest.trim_start().starts_with('"') => (kind, rest),
        _ => (USUAL, raw),
    };
    let told = told.trim();
    let quoted = told.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    (kind, quoted.unwrap_or(told).trim())
}

/// The same for the words of a shell, which has read the quotes. With the type `given` beside them
/// all of them are the description.
pub fn of_shell(given: Option<&str>, words: &[String]) -> (String, String) {
    let (kind, told) = match (given, words) {
        (Some(kind), words) => (kind, words),
        (None, [kind, told @ ..]) if KINDS.contains(&&**kind) && !told.is_empty() => {
            (&**kind, told)
        }
        (None, words) => (USUAL, words),
    };
    (kind.to_owned(), told.join(" "))
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

    #[test]
    fn the_first_word_of_a_shell_is_the_type_where_it_is_one_and_more_follow() {
        let table: [(Option<&str>, &[&str], _, _); 7] = [
            (None, &["review", "look at it"], "review", "look at it"),
            (None, &["blocked", "on", "the", "schema"], "blocked", "on the schema"),
            (None, &["the", "parser", "is", "done"], "task", "the parser is done"),
            (None, &["review the parser"], "task", "review the parser"),
            (None, &["Review", "it"], "task", "Review it"),
            (None, &["review"], "task", "review"),
            (Some("milestone"), &["review", "it"], "milestone", "review it"),
        ];
        for (given, words, kind, told) in table {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let expected = (kind.to_owned(), told.to_owned());
            assert_eq!(of_shell(given, &words), expected, "{given:?} {words:?}");
        }
    }
}
