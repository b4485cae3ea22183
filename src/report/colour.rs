//! The colours of output for people. Report code puts marks around words, and `cmd/print.rs` turns
//! them into terminal codes or removes them. A mark is a character that no language uses; cleaning
//! removes such characters from untrusted text. Every page has the same text without colours.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use engine::failure::HINT;
use engine::text::{clean_text, is_mark};

/// The marks; each sets the colour of the words up to the next [`END`].
pub const GOOD: char = '\u{fdd0}';
pub const BAD: char = '\u{fdd1}';
pub const WARN: char = '\u{fdd2}';
pub const QUIET: char = '\u{fdd3}';
pub const STRONG: char = '\u{fdd4}';
const END: char = '\u{fdd5}';

/// The terminal's own colours, readable on light and on dark, for a page and for a board.
const CODES: [(char, &str, Style); 6] = [
    (GOOD, "\x1b[32m", Style::new().green()),
    (BAD, "\x1b[31m", Style::new().red()),
    (WARN, "\x1b[33m", Style::new().yellow()),
    (QUIET, "\x1b[2m", Style::new().dim()),
    (STRONG, "\x1b[1m", Style::new().bold()),
    (END, "\x1b[0m", Style::new()),
];

/// The column from which a page shows text of others.
const OTHERS: usize = 4;

/// crew's words for states and results, by colour.
const WORDS: [(char, &str); 4] = [
    (GOOD, "completed|proven|checked|passes|passed|pass|accepted|landed|fixed|nothing is broken"),
    (BAD, "aborted|aborting|error|fails|failed|fail|refused|broken|failure"),
    (WARN, "blocked|stalled|exhausted|passing|warning|timed out|needs you|need you|owner gone"),
    (QUIET, "cancelled|interrupted|claimed|unchecked"),
];

/// Puts marks around a string.
pub fn mark_text(mark: char, text: &str) -> String {
    if text.trim().is_empty() { text.to_owned() } else { format!("{mark}{text}{END}") }
}

/// Marks a string of little importance, such as a time or the name of a row.
pub fn mark_quiet(text: &str) -> String {
    mark_text(QUIET, text)
}

/// Marks each of crew's words, except in quotation marks, backticks and paths.
pub fn mark_words(text: &str) -> String {
    let (mut done, mut at, mut is_quoted) = (String::new(), 0, false);
    while let Some(next) = text[at..].chars().next() {
        is_quoted ^= matches!(next, '`' | '"');
        let is_inside =
            is_quoted || text[..at].ends_with(is_of_a_name) || text[..at].ends_with('.');
        let found = if is_inside { None } else { word_at(&text[at..]) };
        let end = at + found.map_or(next.len_utf8(), |(_, length)| length);
        let piece = &text[at..end];
        done += &found.map_or_else(|| piece.to_owned(), |(mark, _)| mark_text(mark, piece));
        at = end;
    }
    done
}

fn is_of_a_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '/' | '_' | '-')
}

/// Like [`mark_words`], up to the first colon that does not follow "proof": the rest is foreign
/// text.
pub fn mark_head(text: &str) -> String {
    let mut colons = text.match_indices(": ").map(|(at, _)| at);
    let end = colons.find(|at| !text[..*at].ends_with("proof")).unwrap_or(text.len());
    let (head, rest) = text.split_at(end);
    mark_words(head) + rest
}

/// Applies [`mark_head`] to each line of a page, a run or a demo, after the time that begins it.
/// Lines that are indented further are text of others, except those of iterations, which begin with
/// a number. If `fold` breaks a line, only the first piece has colour.
pub fn mark_heads(text: &str, fold: impl Fn(&str) -> String) -> String {
    clean_text(text).split_inclusive('\n').map(|line| mark_folded_line(&fold(line))).collect()
}

fn mark_folded_line(folded: &str) -> String {
    let (line, more) = folded.split_at(folded.find('\n').unwrap_or(folded.len()));
    let time_end = if line.starts_with('[') { line.find("] ") } else { None };
    let (time, line) = line.split_at(time_end.map_or(0, |at| at + 1));
    let words = line.trim_start();
    let is_crews = line.len() - words.len() < OTHERS
        || words.chars().next().is_some_and(|first| first.is_ascii_digit());
    let line = if line.starts_with(['>', '*']) {
        let (start, rest) = line.split_at(line.find(": ").unwrap_or(line.len()));
        mark_text(STRONG, start) + rest
    } else if is_crews {
        mark_head(line)
    } else {
        line.to_owned()
    };
    mark_quiet(time) + &line + more
}

/// The mark and the length of the word that a string begins with.
fn word_at(text: &str) -> Option<(char, usize)> {
    for (mark, words) in &WORDS {
        if let Some(word) = words.split('|').find(|word| begins_with_word(text, word)) {
            return Some((*mark, word.len()));
        }
    }
    None
}

fn begins_with_word(text: &str, word: &str) -> bool {
    let Some((start, rest)) = text.split_at_checked(word.len()) else { return false };
    let mut after = rest.chars();
    let [next, then] = [after.next(), after.next()].map(Option::unwrap_or_default);
    let continues = is_of_a_name(next) || (next == '.' && is_of_a_name(then));
    start.eq_ignore_ascii_case(word) && !continues
}

/// A message on standard error: "crew:" with that mark, and the hint on the next line.
pub fn mark_message(text: &str, hint: Option<&str>, mark: char) -> String {
    let text = format!("\n{text}");
    let text = text.replace("\ncrew:", &format!("\n{}", mark_text(mark, "crew:")));
    match hint {
        Some(hint) => format!("{}\n{} {hint}", &text[1..], mark_text(STRONG, HINT)),
        None => text[1..].to_owned(),
    }
}

/// Replaces the marks in a string with the terminal's codes, or removes them.
pub fn paint_marks(text: &str, has_colour: bool) -> String {
    let mut painted = String::with_capacity(text.len());
    for character in text.chars() {
        match CODES.iter().find(|(mark, ..)| *mark == character) {
            Some((_, code, _)) if has_colour => painted.push_str(code),
            _ if is_mark(character) => {}
            _ => painted.push(character),
        }
    }
    painted
}

/// Cleans and marks a difference that git printed without colours. Only the place of a line decides
/// its colour, never a file's content. The lines before the first file are a summary with a graph.
pub fn mark_difference(text: &str) -> String {
    let (mut is_head, mut is_summary) = (false, true);
    let mut marked_text = String::new();
    for line in text.lines() {
        is_head = !line.starts_with('@') && (is_head || line.starts_with("diff "));
        is_summary &= !is_head;
        let shown = clean_text(line).replace('\n', " ");
        let name = shown.trim_end_matches(['+', '-']).len();
        let (added, removed) = shown[name..].split_at(shown[name..].trim_end_matches('-').len());
        marked_text += &match line.chars().next() {
            _ if is_head => mark_text(STRONG, &shown),
            _ if is_summary => {
                shown[..name].to_owned() + &mark_text(GOOD, added) + &mark_text(BAD, removed)
            }
            Some('+') => mark_text(GOOD, &shown),
            Some('-') => mark_text(BAD, &shown),
            Some('@') => mark_quiet(&shown),
            _ => shown,
        };
        marked_text.push('\n');
    }
    marked_text
}

/// A marked text as styled spans for a board.
pub fn board_spans(text: &str) -> Line<'static> {
    let mut style = Style::new();
    let mut spans = Vec::new();
    for piece in text.split_inclusive(is_mark) {
        spans.push(Span::styled(piece.trim_end_matches(is_mark).to_owned(), style));
        let mark = CODES.iter().find(|(mark, ..)| piece.ends_with(*mark));
        style = mark.map_or(style, |(.., style)| *style);
    }
    spans.into()
}

/// The width of a string in columns, without its marks.
pub fn visible_width(text: &str) -> usize {
    text.replace(is_mark, "").width()
}

#[cfg(test)]
mod tests {
    use engine::record::{Outcome, Proof};

    use super::*;
    use crate::report::layout::fold_text;

    /// A string with visible marks.
    fn seen(text: &str) -> String {
        let names = [(GOOD, "<+"), (BAD, "<-"), (WARN, "<!"), (QUIET, "<."), (STRONG, "<*")];
        let text =
            names.iter().fold(text.to_owned(), |text, (mark, name)| text.replace(*mark, name));
        text.replace(END, ">")
    }

    #[test]
    fn crews_words_are_coloured_by_their_meaning() {
        let table = [
            ("completed, checked at 09:12", "<+completed>, <+checked> at 09:12"),
            ("completed, claimed", "<+completed>, <.claimed>"),
            ("blocked in iteration 3 · needs you", "<!blocked> in iteration 3 · <!needs you>"),
            ("aborted · 2 of 148 tests fail", "<-aborted> · 2 of 148 tests <-fail>"),
            ("`fails` passes, \"it fails\", failing", "`fails` <+passes>, \"it fails\", failing"),
            (
                "src/failed.rs un-failed failed_at failed.",
                "src/failed.rs un-failed failed_at <-failed>.",
            ),
            ("unproven Proven 日本passed", "unproven <+Proven> 日本passed"),
            ("an `unclosed passes", "an `unclosed passes"),
        ];
        for (text, expected) in table {
            assert_eq!(seen(&mark_words(text)), expected, "{text:?}");
        }
    }

    #[test]
    fn every_outcome_and_every_proof_has_a_colour() {
        let proofs = [Proof::Claimed, Proof::Passing, Proof::Checked, Proof::Proven];
        let words = Outcome::ALL.iter().map(|outcome| outcome.label());
        for word in words.chain(proofs.iter().map(|proof| proof.label())) {
            assert_ne!(mark_words(word), word);
        }
    }

    #[test]
    fn text_after_a_colon_is_not_coloured_except_a_proof() {
        let table = [
            ("Claim refused: it failed", "Claim <-refused>: it failed"),
            ("done · proof: proven", "done · proof: <+proven>"),
            ("done · proof: proven, but: failed", "done · proof: <+proven>, but: failed"),
            ("          failed", "          failed"),
            ("    1  2s  passes", "    1  2s  <+passes>"),
            ("* iteration 1: it failed", "<** iteration 1>: it failed"),
        ];
        for (text, expected) in table {
            assert_eq!(seen(&mark_heads(text, str::to_owned)), expected, "{text:?}");
        }
    }

    #[test]
    fn only_the_first_part_of_a_folded_line_is_coloured() {
        let table = [
            (
                "  gate  failed twice: it is failing",
                "  gate  <-failed> twice:\n        it is failing\n",
            ),
            (
                "          the same has failed again\nfailed",
                "          the same has\n            failed again\n<-failed>\n",
            ),
            ("failed, and again failed", "<-failed>, and again\n  failed\n"),
        ];
        for (text, expected) in table {
            assert_eq!(seen(&mark_heads(text, |line| fold_text(line, 22))), expected, "{text:?}");
        }
    }

    #[test]
    fn the_opening_words_of_a_message_are_coloured() {
        let text = mark_message("crew: it failed", Some("try: again\n  list"), BAD);
        assert_eq!(seen(&text), "<-crew:> it failed\n<*hint:> try: again\n  list");
    }

    #[test]
    fn the_colour_of_a_line_in_a_difference_depends_only_on_its_position() {
        let table = [
            (
                "diff --git a/x b/x\n--- a/x\n+++ b/x",
                "<*diff --git a/x b/x>\n<*--- a/x>\n<*+++ b/x>",
            ),
            (
                "diff --git\n@@ -1 +1 @@ f\n--- a\n+new\r\n same++",
                "<*diff --git>\n<.@@ -1 +1 @@ f>\n<---- a>\n<++new>\n same++",
            ),
            (
                "diff \n@@\n+\u{1b}[8mhid\u{1b}[0m\rdiff -\n \u{1b}[32m+x\u{fdd0}",
                "<*diff >\n<.@@>\n<++hid diff ->\n +x",
            ),
            (" a.rs | 4 ++--\n b | 1 +\n 2 files", " a.rs | 4 <+++><--->\n b | 1 <++>\n 2 files"),
        ];
        for (text, expected) in table {
            assert_eq!(seen(&mark_difference(text)), format!("{expected}\n"), "{text:?}");
        }
    }

    #[test]
    fn marks_become_codes_or_nothing_and_take_no_width() {
        let text = format!("{} {}", mark_text(GOOD, "日本"), mark_text(BAD, " "));
        assert_eq!(paint_marks(&text, true), "\u{1b}[32m日本\u{1b}[0m  ");
        assert_eq!(paint_marks(&format!("{text}\u{fdef}"), false), "日本  ");
        assert_eq!((visible_width(&text), board_spans(&text).width()), (6, 6));
    }
}
