//! The agent's last words as the evidence keeps them: a line in quotation marks for whoever reads
//! on. Nothing is judged by them.

use crate::engine::text::{clip_at_word, plain};

/// The longest line, in characters.
const SAID_CHARS: usize = 240;

/// The beginning of a final message in one line, without its tags; `None` if nothing is left.
pub fn said(message: &str) -> Option<String> {
    let clean = plain(message);
    let lines = clean.lines().map(str::trim).filter(|line| {
        !line.is_empty() && !line.starts_with("<promise>") && !line.starts_with("```")
    });
    let text = lines.collect::<Vec<_>>().join(" ").replace(['"', '“', '”'], "'");
    (!text.is_empty()).then(|| clip_at_word(&text, SAID_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_one_line_without_the_claim_and_cut_between_words() {
        let long = "word ".repeat(60);
        for (message, expected) in [
            ("", None),
            ("<promise>COMPLETE</promise>", None),
            (
                "All is \"done\".\n\n<promise>COMPLETE</promise>\n",
                Some("All is 'done'.".to_owned()),
            ),
            ("# Done\n\n```\ncode\n```\nNext: tests.", Some("# Done code Next: tests.".to_owned())),
            ("\x1b[31mred\x1b[0m", Some("red".to_owned())),
            (&long, Some(format!("{}…", "word ".repeat(48).trim_end()))),
        ] {
            assert_eq!(said(message), expected, "{message:?}");
        }
    }
}
