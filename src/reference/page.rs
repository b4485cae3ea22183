//! A page with blocks that are made from the code.

use std::fmt::Write as _;

/// A part of a page.
pub struct Block {
    name: String,
    parts: Vec<Part>,
}

/// The contents of a block.
pub enum Part {
    /// A paragraph, or a block of code as it is.
    Text(String),
    /// One item of a list. Without `words`, the description on the page is kept.
    Entry {
        /// The name, unique in its block; the first words of the item, as code.
        name: String,
        /// The text after the name, such as a value's default.
        note: String,
        words: Option<String>,
    },
}

/// The maximum width of a line.
const WIDTH: usize = 100;
const BEGIN: &str = "<!-- made from the code: ";
const END: &str = "<!-- end -->";

impl Block {
    pub fn new(name: impl Into<String>, parts: Vec<Part>) -> Self {
        Self { name: name.into(), parts }
    }

    /// The text of the block, with the descriptions of `before` where the code has none.
    fn text(&self, before: &str) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(words) if words.starts_with("```") => {
                    let _ = write!(text, "\n{}\n", words.trim_matches('\n'));
                }
                Part::Text(words) => {
                    text.push('\n');
                    text.push_str(&wrapped(words, ""));
                }
                Part::Entry { name, note, words } => {
                    let head = format!("- `{name}`{note}");
                    let kept = words.clone().or_else(|| kept(before, name));
                    let item = kept.map_or(head.clone(), |kept| format!("{head}: {kept}"));
                    // Between two items of a list nothing is empty.
                    if !text.lines().last().is_some_and(|line| line.starts_with(['-', ' '])) {
                        text.push('\n');
                    }
                    text.push_str(&wrapped(&item, "  "));
                }
            }
        }
        text
    }
}

/// An item whose description is in the code.
pub fn entry(name: &str, note: &str, words: &str) -> Part {
    let words = Some(words.trim().to_owned()).filter(|words| !words.is_empty());
    Part::Entry { name: name.to_owned(), note: note.to_owned(), words }
}

/// The page with every block made again. A missing block is added at the end, and a block that the
/// code no longer has is left out.
pub fn made(before: &str, blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut rest = before;
    let mut open: Vec<&Block> = blocks.iter().collect();
    let write =
        |block: &Block, old: &str| format!("{BEGIN}{} -->\n{}\n{END}", block.name, block.text(old));
    while let Some((above, below)) = rest.split_once(BEGIN) {
        let (name, below) = below.split_once(" -->").expect("a mark ends with -->");
        let (old, below) = below.split_once(END).expect("a block has an end");
        text.push_str(above);
        if let Some(at) = open.iter().position(|block| block.name == name) {
            text.push_str(&write(open.remove(at), old));
        }
        rest = below;
    }
    text.push_str(rest);
    for block in open {
        let _ = write!(text, "\n{}\n", write(block, ""));
    }
    text
}

/// The first line that differs.
pub fn difference(before: &str, now: &str) -> Option<String> {
    if before == now {
        return None;
    }
    let (mut old, mut new) = (before.lines(), now.lines());
    loop {
        match (old.next(), new.next()) {
            (one, other) if one == other && one.is_some() => {}
            (one, other) => {
                let shown = |line: Option<&str>| line.unwrap_or("(the end)").to_owned();
                return Some(format!("\n  page  {}\n  code  {}", shown(one), shown(other)));
            }
        }
    }
}

/// The description of an item in the text of a block.
fn kept(block: &str, name: &str) -> Option<String> {
    let head = format!("- `{name}`");
    let at = block.match_indices(&head).map(|(at, _)| at);
    let at = at.into_iter().find(|at| *at == 0 || block[..*at].ends_with('\n'))?;
    let lines = block[at..].lines();
    let item: Vec<&str> = lines
        .enumerate()
        .take_while(|(number, line)| *number == 0 || line.starts_with("  "))
        .map(|(_, line)| line.trim())
        .collect();
    let item = item.join(" ");
    item.split_once(": ").map(|(_, words)| words.to_owned())
}

/// A text in lines of at most [`WIDTH`] columns, with `indent` before each but the first.
fn wrapped(words: &str, indent: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in words.split(' ') {
        let columns = word.chars().count();
        if width > 0 && width + 1 + columns > WIDTH {
            text.push('\n');
            text.push_str(indent);
            width = indent.len();
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += columns;
    }
    text.push('\n');
    text
}

#[test]
fn a_generated_list_keeps_its_texts_and_loses_the_entries_that_the_code_lost() {
    let blocks = |names: &[&str]| {
        let parts = names.iter().map(|name| entry(name, " (5)", "")).collect();
        [Block::new("limits", parts)]
    };
    let first = made("# Limits\n", &blocks(&["stall", "delay"]));
    let written = first.replace("- `stall` (5)", "- `stall` (3): ends it,\n  and why");
    let again = made(&written, &blocks(&["stall", "colour"]));
    let expected = "# Limits\n\n<!-- made from the code: limits -->\n\n\
                    - `stall` (5): ends it, and why\n- `colour` (5)\n\n<!-- end -->\n";
    assert_eq!(again, expected);
    assert_eq!(made(&again, &blocks(&["stall", "colour"])), again);
    assert_eq!(difference(&again, &again), None);
    let differs = difference(&written, &again).unwrap();
    assert!(differs.contains("page  - `stall` (3)"), "{differs}");
}
