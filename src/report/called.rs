//! Rewrites crew's commands in a text for a terminal where `crew` is not on `PATH`: they are called
//! by the program's path. Other words are left alone.

use crate::engine::text::clean;

/// The commands that texts name for a terminal.
const FOR_A_TERMINAL: [&str; 11] = [
    "cancel", "config", "doctor", "fleet", "init", "pause", "resume", "set", "status", "tell",
    "trust",
];

/// The text, cleaned, with each command as this terminal can call it. `keeps_quotes` leaves quoted
/// commands unchanged.
pub fn called(text: &str, program: &str, keeps_quotes: bool) -> String {
    FOR_A_TERMINAL.iter().fold(clean(text), |text, verb| {
        let named = |before: &str, text: &str| {
            text.replace(&format!("{before}crew {verb}"), &format!("{before}{program} {verb}"))
        };
        let text = named(" ", &text);
        if keeps_quotes { text } else { named("`", &text) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminals_commands_are_called_by_their_path_and_nothing_else_is() {
        let text = "crew: paused; \u{fdd4}crew resume k3v9 resumes it\nhint: `crew cancel k3v9`, /crew:resume, a crew of two";
        let expected = "crew: paused; ~/crew/target/release/crew resume k3v9 resumes it\n\
            hint: `~/crew/target/release/crew cancel k3v9`, /crew:resume, a crew of two";
        assert_eq!(called(text, "~/crew/target/release/crew", false), expected);
    }
}
