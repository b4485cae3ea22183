//! Which lines of a Markdown text belong to a block quote by the rules of `CommonMark`: those with
//! its mark, and those that lazily continue a quoted paragraph without one. Nothing else continues:
//! after a quoted heading, fence or empty line the next line is the writer's own.

use super::fence::{Fences, indentation, list_marker, run};

/// How a line belongs to a block quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    No,
    Marked,
    /// Has no mark itself: the line before it is a quoted paragraph.
    Lazily,
}

/// The state of the quotes after the lines seen so far.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    /// The fences inside the quote; they end with it.
    fences: Fences,
    in_paragraph: bool,
}

impl Quotes {
    /// Takes the next line, including blank ones. `is_fenced` says that a fence of the surrounding
    /// text covers it.
    pub(super) fn cover(&mut self, line: &str, is_fenced: bool) -> Quoted {
        let inner = if is_fenced { None } else { quoted(line) };
        let Some(inner) = inner else {
            self.fences = Fences::default();
            self.in_paragraph &= !is_fenced && continues_a_paragraph(line);
            return if self.in_paragraph { Quoted::Lazily } else { Quoted::No };
        };
        let is_code = !inner.trim().is_empty() && self.fences.cover(inner);
        self.in_paragraph = !is_code && is_paragraph(inner, self.in_paragraph);
        Quoted::Marked
    }
}

/// The text after the marks of quotes, and of the lists around them.
fn quoted(line: &str) -> Option<&str> {
    let (mut rest, mut found) = (line, None);
    loop {
        let (column, text) = indentation(rest, 0);
        let item = item(text).filter(|_| found.is_none());
        rest = match (text.strip_prefix('>'), item) {
            _ if column >= 4 => return found,
            (Some(inner), _) => found.insert(inner.strip_prefix(' ').unwrap_or(inner)),
            (None, Some(inner)) => inner,
            (None, None) => return found,
        };
    }
}

/// The text after a list marker.
fn item(text: &str) -> Option<&str> {
    let rest = &text[list_marker(text)?..];
    rest.starts_with([' ', '\t']).then_some(rest)
}

/// Whether the text of a quoted line is part of a paragraph.
fn is_paragraph(inner: &str, continues: bool) -> bool {
    let (column, mut text) = indentation(inner, 0);
    if continues && column >= 4 && !text.is_empty() {
        return true;
    }
    while let Some(inner) = item(text).filter(|_| !is_rule(text)) {
        text = inner.trim_start();
    }
    column < 4 && !text.trim().is_empty() && !is_heading(text) && !is_rule(text)
}

/// Whether a line without a mark continues the paragraph before it, which it does unless it begins
/// a block.
fn continues_a_paragraph(line: &str) -> bool {
    let (column, text) = indentation(line, 0);
    let begins_a_block = is_heading(text) || is_rule(text) || item(text).is_some();
    !text.trim().is_empty() && (column >= 4 || !begins_a_block)
}

fn is_heading(text: &str) -> bool {
    let level = run(text, '#');
    let rest = text.trim_end().get(level..).unwrap_or_default();
    (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Whether a line is a rule or the underline of a heading.
fn is_rule(text: &str) -> bool {
    let marks: String = text.chars().filter(|it| !it.is_whitespace()).collect();
    let of = |mark: char, least: usize| marks.len() >= least && marks.chars().all(|it| it == mark);
    of('-', 3) || of('*', 3) || of('_', 3) || of('=', 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter a line: `q`uoted by its mark, `l`azily, or `t`ext.
    fn read(text: &str) -> String {
        let (mut fences, mut quotes) = (Fences::default(), Quotes::default());
        let mut letter = |line: &str| {
            let is_fenced = !line.trim().is_empty() && fences.cover(line);
            match quotes.cover(line, is_fenced) {
                Quoted::Marked => 'q',
                Quoted::Lazily => 'l',
                Quoted::No => 't',
            }
        };
        text.lines().map(&mut letter).collect()
    }

    #[test]
    fn a_quoted_paragraph_goes_on_without_a_mark_and_nothing_else_does() {
        for (text, expected) in [
            ("> you said\nthat\nand that", "qll"),
            ("> you said\n\nmine", "qtt"),
            ("> you said\n>\nmine", "qqt"),
            ("> # Heading\nmine", "qt"),
            ("> Heading\n> ===\nmine", "qqt"),
            ("> ---\nmine", "qt"),
            ("> ```\n> code\nmine", "qqt"),
            ("> ```\n> code\n> ```\nmine", "qqqt"),
            ("> ```\n> code\n> ```\n> text\nlazy", "qqqql"),
            (">     code\nmine", "qt"),
            ("> text\n>     still text\nlazy", "qql"),
            ("> text\n# mine", "qt"),
            ("> text\n- mine", "qt"),
            ("> text\n* * *\nmine", "qtt"),
            ("> text\n```\nmine", "qtt"),
            ("> text\n        lazy", "ql"),
            ("> > deep\nlazy", "ql"),
            ("> - item\nlazy", "ql"),
            ("- > item\nlazy", "ql"),
            ("1. a > b\nmine", "tt"),
            ("    > code\nmine", "tt"),
            ("a\n> b\nc\n\nd", "tqltt"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
