//! Finds the lines of a Markdown document that are not the writer's own words: those inside a
//! fenced code block, an HTML element that shows its contents verbatim, or a block quote. The rules
//! are those of `CommonMark`. A fence can also be inside a list item, and closes with it. Only an
//! HTML element that begins a line counts, so a sentence that mentions a tag opens nothing. A
//! quoted paragraph continues without a mark; after a quoted heading, fence or empty line the next
//! line is the writer's own. Blank lines do not affect fences and may be left out.

/// The open code fences after the lines read so far.
#[derive(Debug, Default)]
pub(super) struct Fences {
    open: Option<Fence>,
    /// The columns at which the contents of the open list items start, innermost last.
    items: Vec<usize>,
}

#[derive(Debug)]
struct Fence {
    mark: char,
    length: usize,
    /// The column the enclosing list item's text starts at; 0 outside lists.
    column: usize,
}

impl Fences {
    /// Takes the next non-blank line and returns whether it is inside a fence or is a fence itself.
    pub(super) fn cover_line(&mut self, line: &str) -> bool {
        let (column, rest) = measure_indentation(line, 0);
        // A line left of a list item's text ends the item, and the fence in it.
        if let Some(fence) = &self.open
            && column >= fence.column
        {
            let length = count_marks(rest, fence.mark);
            let is_closing = length >= fence.length && rest[length..].trim().is_empty();
            if column - fence.column < 4 && is_closing {
                self.open = None;
            }
            return true;
        }
        self.open = self.open_fence(column, rest);
        self.open.is_some()
    }

    fn open_fence(&mut self, mut column: usize, mut rest: &str) -> Option<Fence> {
        self.items.retain(|item| *item <= column);
        let mut item = self.items.last().copied().unwrap_or(0);
        if column - item >= 4 {
            return None;
        }
        while let Some(width) = list_marker(rest) {
            let (text_column, text) = measure_indentation(&rest[width..], column + width);
            // Five columns after a marker make the rest indented code.
            if !(1..=4).contains(&(text_column - column - width)) {
                return None;
            }
            self.items.push(text_column);
            (item, column, rest) = (text_column, text_column, text);
        }
        let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = count_marks(rest, mark);
        let is_inline_code = mark == '`' && rest[length..].contains('`');
        (length >= 3 && !is_inline_code).then_some(Fence { mark, length, column: item })
    }
}

/// The columns of white space a line begins with, and the rest of it. A tab extends to the next
/// multiple of four.
pub(super) fn measure_indentation(line: &str, start: usize) -> (usize, &str) {
    let mut column = start;
    for (offset, byte) in line.bytes().enumerate() {
        match byte {
            b' ' => column += 1,
            b'\t' => column += 4 - column % 4,
            _ => return (column, &line[offset..]),
        }
    }
    (column, "")
}

/// The width of the list marker that a line begins with.
pub(super) fn list_marker(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = *text.as_bytes().get(digits)?;
    match digits {
        0 => matches!(mark, b'-' | b'*' | b'+').then_some(1),
        1..=9 => matches!(mark, b'.' | b')').then_some(digits + 1),
        _ => None,
    }
}

/// How many times an ASCII character is repeated at the start of a line.
pub(super) fn count_marks(text: &str, mark: char) -> usize {
    text.chars().take_while(|character| *character == mark).count()
}

/// The HTML elements that show their contents verbatim, each with how it opens and closes.
const ELEMENTS: [(&str, &str); 12] = [
    ("<!--", "-->"),
    ("<![CDATA[", "]]>"),
    ("<pre", "</pre>"),
    ("<blockquote", "</blockquote>"),
    ("<code", "</code>"),
    ("<samp", "</samp>"),
    ("<xmp", "</xmp>"),
    ("<listing", "</listing>"),
    ("<textarea", "</textarea>"),
    ("<template", "</template>"),
    ("<script", "</script>"),
    ("<style", "</style>"),
];

/// The open HTML element after the lines read so far.
#[derive(Debug, Default)]
pub(super) struct Html {
    /// How the open element closes; `None` if no element is open.
    open: Option<&'static str>,
}

impl Html {
    /// Takes the next line outside code fences and returns whether it is inside an element or opens
    /// one.
    pub(super) fn cover_line(&mut self, line: &str) -> bool {
        let (column, text) = measure_indentation(line, 0);
        let mut rest = text;
        let is_inside = self.open.is_some();
        if !is_inside {
            let element = ELEMENTS.iter().find(|(open, _)| {
                let after = text.get(open.len()..).and_then(|rest| rest.chars().next());
                let is_whole = !open.ends_with(char::is_alphabetic)
                    || after.is_none_or(|next| !next.is_alphanumeric() && next != '-');
                column < 4 && starts_with(text, open) && is_whole
            });
            let Some((open, close)) = element else { return false };
            (self.open, rest) = (Some(*close), &text[open.len()..]);
        }
        self.open = self.open.filter(|close| {
            !rest.match_indices(&close[..1]).any(|(at, _)| starts_with(&rest[at..], close))
        });
        true
    }
}

pub(super) fn starts_with(text: &str, tag: &str) -> bool {
    text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

/// How a line belongs to a block quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    No,
    Marked,
    /// The line has no mark, but continues a quoted paragraph.
    Lazily,
}

/// The open block quotes after the lines read so far.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    /// The fences inside the quote; they end with it.
    fences: Fences,
    in_paragraph: bool,
}

impl Quotes {
    /// Takes the next line, including blank ones. `is_fenced` says that a fence of the surrounding
    /// text covers it.
    pub(super) fn cover_line(&mut self, line: &str, is_fenced: bool) -> Quoted {
        let inner = if is_fenced { None } else { strip_quote_marks(line) };
        let Some(inner) = inner else {
            self.fences = Fences::default();
            self.in_paragraph &= !is_fenced && continues_a_paragraph(line);
            return if self.in_paragraph { Quoted::Lazily } else { Quoted::No };
        };
        let is_code = !inner.trim().is_empty() && self.fences.cover_line(inner);
        self.in_paragraph = !is_code && is_paragraph(inner, self.in_paragraph);
        Quoted::Marked
    }
}

/// The text after the marks of quotes, and of the lists around them.
fn strip_quote_marks(line: &str) -> Option<&str> {
    let (mut rest, mut found) = (line, None);
    loop {
        let (column, text) = measure_indentation(rest, 0);
        let item = if found.is_none() { strip_list_marker(text) } else { None };
        rest = match (text.strip_prefix('>'), item) {
            _ if column >= 4 => return found,
            (Some(inner), _) => found.insert(inner.strip_prefix(' ').unwrap_or(inner)),
            (None, Some(inner)) => inner,
            (None, None) => return found,
        };
    }
}

/// The text after a list marker.
fn strip_list_marker(text: &str) -> Option<&str> {
    let rest = &text[list_marker(text)?..];
    rest.starts_with([' ', '\t']).then_some(rest)
}

/// Whether the contents of a quoted line are part of a paragraph.
fn is_paragraph(inner: &str, continues: bool) -> bool {
    let (column, mut text) = measure_indentation(inner, 0);
    if continues && column >= 4 && !text.is_empty() {
        return true;
    }
    while let (Some(inner), false) = (strip_list_marker(text), is_rule(text)) {
        text = inner.trim_start();
    }
    column < 4 && !text.trim().is_empty() && !is_heading(text) && !is_rule(text)
}

/// Whether a line without a mark continues the paragraph before it, which it does unless it begins
/// a block.
fn continues_a_paragraph(line: &str) -> bool {
    let (column, text) = measure_indentation(line, 0);
    let begins_a_block = is_heading(text) || is_rule(text) || strip_list_marker(text).is_some();
    !text.trim().is_empty() && (column >= 4 || !begins_a_block)
}

fn is_heading(text: &str) -> bool {
    let level = count_marks(text, '#');
    let rest = text.trim_end().get(level..).unwrap_or_default();
    (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Whether a line is a rule or the underline of a heading.
fn is_rule(text: &str) -> bool {
    let marks: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    [('-', 3), ('*', 3), ('_', 3), ('=', 1)]
        .into_iter()
        .any(|(mark, least)| marks.len() >= least && marks.chars().all(|letter| letter == mark))
}

#[cfg(test)]
mod fence_tests {
    use super::*;

    /// Marks each line with one letter: `c`ode (fences included) or `t`ext.
    fn read(text: &str) -> String {
        let mut fences = Fences::default();
        text.lines().map(|line| if fences.cover_line(line) { 'c' } else { 't' }).collect()
    }

    #[test]
    fn fences_follow_the_rules_of_markdown() {
        for (text, expected) in [
            ("a\n```\nb\n```\nc", "tccct"),
            ("```rust\nb\n```rust\n```\nc", "cccct"),
            ("````\n```\nb\n`````\nc", "cccct"),
            ("~~~ `x`\n```\n~~~\nc", "ccct"),
            ("``` `x`\nb", "tt"),
            ("``\nb", "tt"),
            ("```\nnever closed", "cc"),
            ("   ```\nb\n   ```\nc", "ccct"),
            ("    ```\nb", "tt"),
            ("\t```\nb", "tt"),
            ("```\n    ```\nb", "ccc"),
            ("``` \n```\t\nc", "cct"),
            ("> ```\nb", "tt"),
            ("- ```\n  b\n  ```\nc", "ccct"),
            ("- ```\n  b\nc", "cct"),
            ("- ```\n  b\n```\nc", "cccc"),
            ("10) ~~~\n    b\n      ~~~\nc", "ccct"),
            ("1. - ```\n     b\n     ```\nc", "ccct"),
            ("- item\n  ```\n  b\nc", "tcct"),
            ("- item\n  ```\n  b\n  ```\nc", "tccct"),
            ("- a\n  - b\n    ```\n    c\n  d", "ttcct"),
            ("- item\nlazy\n```\nc", "ttcc"),
            ("-     ```\nb", "tt"),
            ("-```\nb", "tt"),
            ("1234567890. ```\nb", "tt"),
            ("- - -\n* * *\nb", "ttt"),
            ("é```\nb", "tt"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}

#[cfg(test)]
mod html_tests {
    use super::*;

    #[test]
    fn a_preformatted_element_covers_its_lines_until_it_is_closed() {
        for (text, expected) in [
            ("<pre>\na\n</pre>\nb", "hhht"),
            ("<PRE class=\"x\">\nnever closed", "hh"),
            ("<pre>a</pre>\nb", "ht"),
            ("<blockquote>\na\nb</blockquote> c\nd", "hhht"),
            ("<!-- a\nb -->\nc", "hht"),
            ("<!-- a -->\nb", "ht"),
            ("<prefix>\na", "tt"),
            ("write <pre> first\na", "tt"),
            ("    <pre>\na", "tt"),
            ("<details>\na", "tt"),
            ("<", "t"),
        ] {
            let mut html = Html::default();
            let read: String =
                text.lines().map(|line| if html.cover_line(line) { 'h' } else { 't' }).collect();
            assert_eq!(read, expected, "{text}");
        }
    }
}

#[cfg(test)]
mod quote_tests {
    use super::*;

    /// Marks each line with one letter: `q`uoted by its mark, `l`azily, or `t`ext.
    fn read(text: &str) -> String {
        let (mut fences, mut quotes) = (Fences::default(), Quotes::default());
        let mut letter = |line: &str| {
            let is_fenced = !line.trim().is_empty() && fences.cover_line(line);
            match quotes.cover_line(line, is_fenced) {
                Quoted::Marked => 'q',
                Quoted::Lazily => 'l',
                Quoted::No => 't',
            }
        };
        text.lines().map(&mut letter).collect()
    }

    #[test]
    fn only_a_quoted_paragraph_continues_without_a_quote_mark() {
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
