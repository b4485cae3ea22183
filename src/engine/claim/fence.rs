//! Which lines of a Markdown text are inside a fenced code block: the opening, closing and length
//! rules of `CommonMark`, also in a list item, which ends its fences with it. Blank lines change
//! nothing and may be left out. Fences inside block quotes end with the quote and are not followed.

/// The state of the fences after the lines seen so far.
#[derive(Debug, Default)]
pub(super) struct Fences {
    open: Option<Fence>,
    /// The columns at which the texts of the open list items start, the innermost last.
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
    pub(super) fn cover(&mut self, line: &str) -> bool {
        let (column, rest) = indentation(line, 0);
        // A line left of a list item's text ends the item, and the fence in it.
        if let Some(fence) = &self.open
            && column >= fence.column
        {
            let length = run(rest, fence.mark);
            let is_closing = length >= fence.length && rest[length..].trim().is_empty();
            if column - fence.column < 4 && is_closing {
                self.open = None;
            }
            return true;
        }
        self.open = self.opening(column, rest);
        self.open.is_some()
    }

    fn opening(&mut self, mut column: usize, mut rest: &str) -> Option<Fence> {
        self.items.retain(|item| *item <= column);
        let mut item = self.items.last().copied().unwrap_or(0);
        if column - item >= 4 {
            return None;
        }
        while let Some(width) = list_marker(rest) {
            let (text_column, text) = indentation(&rest[width..], column + width);
            // Five columns after a marker make the rest indented code.
            if !(1..=4).contains(&(text_column - column - width)) {
                return None;
            }
            self.items.push(text_column);
            (item, column, rest) = (text_column, text_column, text);
        }
        let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = run(rest, mark);
        let is_inline_code = mark == '`' && rest[length..].contains('`');
        (length >= 3 && !is_inline_code).then_some(Fence { mark, length, column: item })
    }
}

/// The columns of white space a line begins with, and the rest of it. A tab extends to the next
/// multiple of four.
pub(super) fn indentation(line: &str, start: usize) -> (usize, &str) {
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

/// The width of the list marker a text begins with.
pub(super) fn list_marker(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = *text.as_bytes().get(digits)?;
    match digits {
        0 => matches!(mark, b'-' | b'*' | b'+').then_some(1),
        1..=9 => matches!(mark, b'.' | b')').then_some(digits + 1),
        _ => None,
    }
}

/// How many times a text begins with an ASCII character.
pub(super) fn run(text: &str, mark: char) -> usize {
    text.chars().take_while(|character| *character == mark).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter a line: `c`ode (fences included) or `t`ext.
    fn read(text: &str) -> String {
        let mut fences = Fences::default();
        text.lines().map(|line| if fences.cover(line) { 'c' } else { 't' }).collect()
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
