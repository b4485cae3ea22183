//! The words between an agent and a loop: the agent's summary of its work as the evidence keeps it,
//! a line in quotation marks of which nothing is judged; and the approximate size of a prompt. No
//! agent reports its tokens beforehand, so four characters count as a token. A prompt that is too
//! big causes a warning and is never refused.

use crate::text::{clip_at_word, plain_text, text_start};

/// The longest line, in characters.
const SAID_CHARS: usize = 240;
/// The word that marks a summary: "## Summary", "### Summary", "Summary: …".
const MARKER: &str = "summary";

/// What follows the last summary marker of a final message, else its last paragraph before the
/// promise tag, in one line; `None` if nothing is left.
pub fn extract_summary(message: &str) -> Option<String> {
    let clean = plain_text(message);
    let lines: Vec<&str> =
        clean.lines().map(str::trim).filter(|line| !line.starts_with("```")).collect();
    let is_tag = |line: &&str| line.starts_with("<promise>");
    let end = lines.iter().rposition(is_tag).unwrap_or(lines.len());
    let before = &lines[..end];
    let marked = before.iter().enumerate().rev().find_map(|(at, line)| {
        let rest = text_after_marker(line)?;
        let following = before[at + 1..].iter().take_while(|line| !line.starts_with('#'));
        let text = join_lines(std::iter::once(rest).chain(following.copied()));
        (!text.is_empty()).then_some(text)
    });
    let text = marked.unwrap_or_else(|| {
        let paragraphs = before.rsplit(|line| line.is_empty());
        let mut texts = paragraphs.map(|lines| join_lines(lines.iter().copied()));
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    });
    (!text.is_empty()).then(|| clip_at_word(&text, SAID_CHARS))
}

/// What follows the marker on its line; `None` if the line has none.
fn text_after_marker(line: &str) -> Option<&str> {
    let is_decoration = |it: char| it == '#' || it == '*' || it == '_' || it.is_whitespace();
    let text = line.trim_start_matches(is_decoration);
    let word = text_start(text, MARKER.len());
    if !word.eq_ignore_ascii_case(MARKER) {
        return None;
    }
    let rest = text.get(word.len()..)?.trim_start_matches(is_decoration);
    let is_heading = line.starts_with('#') && rest.trim_matches(':').trim().is_empty();
    let after = rest.strip_prefix(':').map(|rest| rest.trim_start_matches(is_decoration));
    after.or(is_heading.then_some(""))
}

fn join_lines<'line>(lines: impl Iterator<Item = &'line str>) -> String {
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("<promise>"));
    lines.collect::<Vec<_>>().join(" ").replace(['"', '“', '”'], "'")
}

const CHARS_PER_TOKEN: u64 = 4;

/// A prompt's size against its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptSize {
    /// The approximate number of tokens.
    pub tokens: u64,
    /// The budget in tokens; 0 means no budget.
    pub budget: u64,
}

impl PromptSize {
    /// The size of a prompt.
    pub fn of_prompt(prompt: &str, budget: u64) -> Self {
        let chars = u64::try_from(prompt.chars().count()).unwrap_or(u64::MAX);
        Self { tokens: chars.div_ceil(CHARS_PER_TOKEN), budget }
    }

    /// Whether it exceeds the budget, which is worth a warning.
    pub fn is_over(self) -> bool {
        self.budget > 0 && self.tokens > self.budget
    }
}

#[cfg(test)]
mod said_tests {
    use super::*;

    #[test]
    fn the_summary_is_the_marked_text_or_else_the_last_paragraph_before_the_claim() {
        let long = "word ".repeat(60);
        for (message, expected) in [
            ("", None),
            ("<promise>COMPLETE</promise>", None),
            (
                "All is \"done\".\n\n<promise>COMPLETE</promise>\n",
                Some("All is 'done'.".to_owned()),
            ),
            (
                "First.\n\nThen a\nsecond.\n\n<promise>X</promise>",
                Some("Then a second.".to_owned()),
            ),
            (
                "## Summary\n\nTax is done.\n\nVAT is next.\n\n## Notes\nNone.",
                Some("Tax is done. VAT is next.".to_owned()),
            ),
            ("### Summary:\n- tax\n- vat\n<promise>X</promise>", Some("- tax - vat".to_owned())),
            ("I worked.\n\n**Summary:** tax is done.\n", Some("tax is done.".to_owned())),
            ("Summary: tax\nand vat.\n\nBye.", Some("tax and vat. Bye.".to_owned())),
            ("Summary of it all\n\nBye.", Some("Bye.".to_owned())),
            ("## Summary\n\n<promise>X</promise>", Some("## Summary".to_owned())),
            ("# Done\n\n```\ncode\n```\nNext: tests.", Some("code Next: tests.".to_owned())),
            ("\x1b[31mred\x1b[0m", Some("red".to_owned())),
            (&long, Some(format!("{}…", "word ".repeat(48).trim_end()))),
        ] {
            assert_eq!(extract_summary(message), expected, "{message:?}");
        }
    }
}

#[cfg(test)]
mod size_tests {
    use super::*;

    #[test]
    fn four_characters_count_as_a_token_and_a_budget_may_be_used_up_exactly() {
        let table = [
            ("", 1, 0, false),
            ("日本語", 1, 1, false),
            ("12345", 1, 2, true),
            ("12345", 2, 2, false),
            ("12345", 0, 2, false),
        ];
        for (text, budget, tokens, is_over) in table {
            let size = PromptSize::of_prompt(text, budget);
            assert_eq!((size.tokens, size.is_over()), (tokens, is_over), "{text:?} of {budget}");
        }
    }
}
