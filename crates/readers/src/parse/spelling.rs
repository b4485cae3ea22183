//! Quotes what the user wrote in a message, shortened and without control characters, or compares
//! it with existing names to guess which one was intended.

use engine::text::text_start;

/// The maximum number of characters of the input that a message repeats.
const MAX_SHOWN_CHARACTERS: usize = 40;

/// Shortens the user's input to one line without control characters.
pub fn shorten_text(written: &str) -> String {
    let start = text_start(written, MAX_SHOWN_CHARACTERS);
    let mut shown =
        start.replace(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'), " ");
    if start.len() < written.len() {
        shown.truncate(shown.trim_end().len());
        shown.push('…');
    }
    shown
}

/// What a TOML reader expected, in plain words.
pub fn describe_expected(error: &toml::de::Error) -> String {
    const WORDS: [(&str, &str); 3] = [
        ("a sequence", "a list, such as [\"a\", \"b\"]"),
        ("a map", "a table, such as { a = \"b\" }"),
        ("a boolean", "true or false"),
    ];
    let message = error.message().lines().next().unwrap_or_default();
    let expected = message.find("expected ").map_or(message, |at| &message[at..]);
    WORDS.iter().fold(expected.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
}

/// The name that was probably intended: one contains the other, or they differ by a few letters.
/// Case, leading hyphens and the choice between `-` and `_` do not matter.
pub fn find_nearest<'name>(written: &str, names: &[&'name str]) -> Option<&'name str> {
    let written = normalize_name(written);
    // No name is this long, and the cost of a distance is the product of both lengths.
    if !(3..=40).contains(&written.len()) {
        return None;
    }
    let names: Vec<(String, &str)> =
        names.iter().map(|name| (normalize_name(name), *name)).collect();
    let same = names.iter().find(|(plain, _)| *plain == written);
    let within = same.or_else(|| {
        names.iter().find(|(plain, _)| plain.contains(&written) || written.contains(plain.as_str()))
    });
    if let Some((_, name)) = within {
        return Some(name);
    }
    let distances = names
        .iter()
        .map(|(plain, name)| (strsim::osa_distance(&written, plain), plain.len() / 3, *name));
    let near = distances.filter(|(distance, most, _)| distance <= most);
    near.min_by_key(|(distance, ..)| *distance).map(|(.., name)| name)
}

fn normalize_name(name: &str) -> String {
    name.trim_start_matches('-').to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_differs_in_few_letters_or_contains_the_other() {
        let names = ["max_iterations", "max_duration", "stall", "verify", "max_stall"];
        for (written, expected) in [
            ("max-iteration", Some("max_iterations")),
            ("iterations", Some("max_iterations")),
            ("max-stall", Some("max_stall")),
            ("maxduration", Some("max_duration")),
            ("Stal", Some("stall")),
            ("verfy", Some("verify")),
            ("satll", Some("stall")),
            ("delay", None),
            ("ve", None),
            (&"x".repeat(1000), None),
        ] {
            assert_eq!(find_nearest(written, &names), expected, "{written}");
        }
    }
}
