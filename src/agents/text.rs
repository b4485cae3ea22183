//! Plain text as an agent's output: its end is the final message, and nothing else is read from it.
//! An agent may print its prompt, so the report says that an echo is possible.

use chrono::{DateTime, FixedOffset};

use super::activity::Activity;
use super::words::{end, shown};
use super::{OutputReader, Report};
use crate::engine::text::plain;

/// How much of the end of the output is kept, in bytes.
const KEPT_BYTES: usize = 64 * 1024;

/// The end of the output so far.
#[derive(Debug, Default)]
pub(super) struct Text {
    tail: String,
    /// What the agent prints before an answer.
    mark: Option<String>,
}

impl Text {
    pub(super) fn marked(mark: Option<String>) -> Self {
        Self { mark, ..Self::default() }
    }

    /// The line without the agent's own mark: where that is coloured, or on the first line.
    /// Elsewhere the same characters are the agent's words, such as a quote.
    fn unmarked<'line>(&self, line: &'line str) -> &'line str {
        let Some(mark) = &self.mark else { return line };
        let mut rest = line;
        while let Some((code, after)) =
            rest.strip_prefix("\x1b[").and_then(|code| code.split_once('m'))
            && code.bytes().all(|it| it.is_ascii_digit() || it == b';')
        {
            rest = after;
        }
        let is_decorated = rest.len() < line.len() || self.tail.trim().is_empty();
        rest.strip_prefix(mark.as_str()).filter(|_| is_decorated).unwrap_or(line)
    }
}

impl OutputReader for Text {
    fn read(&mut self, line: &str) -> Vec<Activity> {
        // One line may be longer than everything that is kept.
        let words = end(self.unmarked(line), KEPT_BYTES);
        self.tail.push_str(words);
        self.tail.push('\n');
        // Cutting moves everything that is kept, so it happens rarely.
        if self.tail.len() > 2 * KEPT_BYTES {
            self.tail = end(&self.tail, KEPT_BYTES).to_owned();
        }
        vec![Activity::Printed(shown(line))]
    }

    fn report(&mut self, _now: DateTime<FixedOffset>) -> Report {
        let message = plain(end(&self.tail, KEPT_BYTES));
        let message = (!message.trim().is_empty()).then(|| message.trim_end().to_owned());
        Report {
            last_words: message.clone(),
            final_message: message,
            may_echo: true,
            ..Report::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::claim::promise::Promise;
    use crate::engine::claim::{Claim, NearMiss};

    fn read(lines: &[&str]) -> Report {
        let mut reader = Text::default();
        for line in lines {
            reader.line(line);
        }
        assert!(!reader.tool_is_open());
        reader.report(DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap())
    }

    #[test]
    fn the_end_of_the_output_is_the_final_message_without_its_colours() {
        let report = read(&["one", "\x1b[32m<promise>COMPLETE</promise>\x1b[0m\r", "", " "]);
        assert_eq!(report.final_message.as_deref(), Some("one\n<promise>COMPLETE</promise>"));
        assert_eq!(report.claim("Go.", "Go.", Some(&Promise::default())), Claim::Success);
        assert_eq!(report.usage, None);
        assert_eq!(read(&[]).final_message, None);
        assert_eq!(read(&["\x1b[0m", ""]).final_message, None);
    }

    #[test]
    fn a_text_that_looks_like_an_error_is_text() {
        let report =
            read(&["API Error: 429 rate limit reached, resets 3pm", "{\"type\":\"error\"}"]);
        assert_eq!(report.error, None);
    }

    #[test]
    fn a_mark_of_the_agent_before_its_answer_does_not_make_the_answer_a_quote() {
        let table: [(&[&str], Claim); 4] = [
            (&["\x1b[38;5;141m> \x1b[0m<promise>COMPLETE</promise>"], Claim::Success),
            (&["> Done.", "<promise>COMPLETE</promise>"], Claim::Success),
            (
                &["> Reading.", "a tool", "\x1b[1m> \x1b[0mDone.", "<promise>COMPLETE</promise>"],
                Claim::Success,
            ),
            (&["> You said:", "> <promise>COMPLETE</promise>"], Claim::NearMiss(NearMiss::Quoted)),
        ];
        for (lines, expected) in table {
            let mut reader = Text::marked(Some("> ".to_owned()));
            for line in lines {
                reader.line(line);
            }
            let now = DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap();
            let claim = reader.report(now).claim("Go.", "Go.", Some(&Promise::default()));
            assert_eq!(claim, expected, "{lines:?}");
        }
    }

    #[test]
    fn only_the_end_is_kept_whatever_is_printed() {
        let mut reader = Text::default();
        let long = "é".repeat(3 * KEPT_BYTES);
        for _ in 0..100 {
            reader.line(&long);
            reader.line("x");
            assert!(reader.tail.len() <= 2 * KEPT_BYTES + KEPT_BYTES);
        }
        reader.line("the end");
        let now = DateTime::parse_from_rfc3339("2026-11-22T01:00:00Z").unwrap();
        let message = reader.report(now).final_message.unwrap();
        assert!(message.len() <= KEPT_BYTES && message.ends_with("é\nx\nthe end"));
    }
}
