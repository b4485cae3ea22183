//! Which lines of a Markdown text are not the writer's own words: those inside a fenced code block,
//! an HTML element that shows text as it is, or a block quote. Fences and quotes are those of
//! `CommonMark`: a quoted paragraph continues without a mark; after a quoted heading, fence or empty
//! line the next line is the writer's own. Of HTML only an element that begins a line counts, so a
//! sentence that mentions a tag opens nothing.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

/// What a line is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    Fence,
    Html,
    Quote,
}

/// What covers each line; `None` of a line in the writer's own words.
pub(super) fn covers(lines: &[&str]) -> Vec<Option<Cover>> {
    let mut text = String::new();
    let mut starts = Vec::new();
    for line in lines {
        starts.push(text.len());
        // HTML as `CommonMark` has it would hide fences. It is looked for below, by other rules. A
        // tab after a fence is nothing to it, but to the parser.
        text += &line.trim_end_matches([' ', '\t']).replace('<', "x");
        text.push('\n');
    }
    let mut covers = vec![None; lines.len()];
    for (event, range) in Parser::new(&text).into_offset_iter() {
        let cover = match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Cover::Fence,
            Event::Start(Tag::BlockQuote(_)) => Cover::Quote,
            _ => continue,
        };
        let first = starts.partition_point(|start| *start <= range.start) - 1;
        let end = starts.partition_point(|start| *start < range.end);
        for inside in &mut covers[first..end] {
            inside.get_or_insert(cover);
        }
    }
    let mut html = Html::default();
    for (line, inside) in lines.iter().zip(&mut covers) {
        if !line.trim().is_empty() && *inside != Some(Cover::Fence) && html.cover(line) {
            *inside = Some(Cover::Html);
        }
    }
    covers
}

/// The columns of white space a line begins with, and the rest of it. A tab extends to the next
/// multiple of four.
pub(super) fn indentation(line: &str) -> (usize, &str) {
    let mut column = 0;
    for (offset, byte) in line.bytes().enumerate() {
        match byte {
            b' ' => column += 1,
            b'\t' => column += 4 - column % 4,
            _ => return (column, &line[offset..]),
        }
    }
    (column, "")
}

/// How each opens and closes.
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

/// The element that is open after the lines seen so far.
#[derive(Debug, Default)]
struct Html {
    /// How it closes.
    open: Option<&'static str>,
}

impl Html {
    /// Takes the next line outside code fences and returns whether it is inside an element or opens
    /// one.
    fn cover(&mut self, line: &str) -> bool {
        let (column, text) = indentation(line);
        let mut rest = text;
        let is_inside = self.open.is_some();
        if !is_inside {
            let opens = |(open, _): &&(&str, &str)| {
                let after = text.get(open.len()..).and_then(|rest| rest.chars().next());
                let is_whole = !open.ends_with(char::is_alphabetic)
                    || after.is_none_or(|next| !next.is_alphanumeric() && next != '-');
                column < 4 && starts_with(text, open) && is_whole
            };
            let Some((open, close)) = ELEMENTS.iter().find(opens) else { return false };
            (self.open, rest) = (Some(*close), &text[open.len()..]);
        }
        let closes = |close: &str| {
            rest.match_indices(&close[..1]).any(|(at, _)| starts_with(&rest[at..], close))
        };
        self.open = self.open.filter(|close| !closes(close));
        true
    }
}

pub(super) fn starts_with(text: &str, tag: &str) -> bool {
    text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

/// Whether a quoted line has the mark of a quote itself; else the line before it is a quoted
/// paragraph.
pub(super) fn has_mark(line: &str) -> bool {
    let is_before = |it: char| it.is_whitespace() || it.is_ascii_digit() || "-*+.)".contains(it);
    line.trim_start_matches(is_before).starts_with('>')
}

#[cfg(test)]
mod fence_tests {
    use super::*;

    /// One letter a line: `c`ode (fences included) or `t`ext.
    fn read(text: &str) -> String {
        let covers = covers(&text.lines().collect::<Vec<_>>()).into_iter();
        covers.map(|cover| if cover == Some(Cover::Fence) { 'c' } else { 't' }).collect()
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
    fn an_element_that_shows_text_as_it_is_covers_its_lines_until_it_is_closed() {
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
                text.lines().map(|line| if html.cover(line) { 'h' } else { 't' }).collect();
            assert_eq!(read, expected, "{text}");
        }
    }
}

#[cfg(test)]
mod quote_tests {
    use super::*;

    /// One letter a line: `q`uoted by its mark, `l`azily, or `t`ext.
    fn read(text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let letter = |(line, cover): (&&str, _)| match cover {
            Some(Cover::Quote) if has_mark(line) => 'q',
            Some(Cover::Quote) => 'l',
            _ => 't',
        };
        lines.iter().zip(covers(&lines)).map(letter).collect()
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
