//! The front page: short enough to be read, and with a picture.

use super::book::paragraphs;
use super::{found, read};
use crate::sandbox::checkout;

/// Bounds of the front page. The best README files of command-line tools stay below them.
const LINES_MAX: usize = 120;
const WORDS_MAX: usize = 900;
const PARAGRAPH_WORDS_MEDIAN_MAX: usize = 30;
const TABLE_COLUMNS_MAX: usize = 100;

#[test]
fn the_readme_is_short_enough_to_be_read_and_shows_what_it_says() {
    let page = read("README.md");
    let lines = page.lines().count();
    assert!(lines <= LINES_MAX, "README.md has {lines} lines, at most {LINES_MAX} are read");
    let words = page.split_whitespace().filter(|word| *word != "|").count();
    assert!(words <= WORDS_MAX, "README.md has {words} words, at most {WORDS_MAX} are read");
    let mut lengths = paragraphs(&page);
    lengths.sort_unstable();
    assert!(lengths.len() > 20, "README.md has only the paragraphs {lengths:?}");
    let median = lengths[lengths.len() / 2];
    assert!(median <= PARAGRAPH_WORDS_MEDIAN_MAX, "its median paragraph has {median} words");
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let width = row.chars().count();
        assert!(width <= TABLE_COLUMNS_MAX, "README.md: a table row of {width} columns: {row}");
    }
    let pictures = found(r#"src="(docs/pictures/[a-z-]+\.svg)""#, &page);
    assert!(!pictures.is_empty(), "README.md shows no picture");
    let first = page.lines().position(|line| line.contains("docs/pictures/"));
    assert!(first.is_some_and(|line| line < 20), "the first screen of README.md has no picture");
    for picture in pictures {
        assert!(
            checkout().join(picture).is_file(),
            "README.md shows {picture}, which is not there"
        );
    }
    let install = page.find("## Install").expect("README.md has no section Install");
    assert!(page.find("\n/crew:loop").is_some_and(|use_| install < use_), "install comes first");
}
