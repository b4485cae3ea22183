//! Which lines of a Markdown text are inside an HTML element that shows or hides text as it is, or
//! inside a comment: what stands there is shown to a reader, not said to one. Only an element that
//! begins a line counts, so a sentence that mentions a tag opens nothing.

use super::fence::indentation;

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
pub(super) struct Html {
    /// How it closes.
    open: Option<&'static str>,
}

impl Html {
    /// Takes the next line outside code fences and returns whether it is inside an element or opens
    /// one.
    pub(super) fn cover(&mut self, line: &str) -> bool {
        let (column, text) = indentation(line, 0);
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

fn starts_with(text: &str, tag: &str) -> bool {
    text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

#[cfg(test)]
mod tests {
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
