//! The front page: short enough to be read, with a picture, and every link of it and of the other
//! pages leads somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{File, found, none, pattern, read, tree};
use crate::sandbox::checkout;

/// Bounds of the front page. The best README files of command-line tools stay below them.
const LINES_MAX: usize = 120;
const WORDS_MAX: usize = 900;
const PARAGRAPH_WORDS_MEDIAN_MAX: usize = 30;
const TABLE_COLUMNS_MAX: usize = 100;

/// What a reader takes in at once: a paragraph, or one item of a list. Code, tables, headings and
/// HTML are none.
fn paragraphs(page: &str) -> Vec<String> {
    let without_code = pattern(r"(?ms)^```.*?^```").replace_all(page, "\n");
    let items = pattern(r"(?m)^- ").replace_all(&without_code, "\n");
    let blocks = items.split("\n\n").map(str::trim);
    let blocks = blocks.filter(|block| !block.is_empty() && !block.starts_with(['#', '|', '<']));
    blocks.map(str::to_owned).collect()
}

#[test]
fn the_readme_is_short_enough_to_be_read_and_shows_what_it_says() {
    let page = read("README.md");
    let lines = page.lines().count();
    assert!(lines <= LINES_MAX, "README.md has {lines} lines, at most {LINES_MAX} are read");
    let words = page.split_whitespace().filter(|word| *word != "|").count();
    assert!(words <= WORDS_MAX, "README.md has {words} words, at most {WORDS_MAX} are read");
    let mut lengths: Vec<usize> =
        paragraphs(&page).iter().map(|block| block.split_whitespace().count()).collect();
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

fn is_page(path: &str) -> bool {
    Path::new(path).extension() == Some("md".as_ref())
}

/// The name by which a heading is linked to.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|it| it.is_alphanumeric() || [' ', '-', '_'].contains(it));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// Why a relative link of a page leads nowhere, if it does.
fn broken(page: &File, link: &str) -> Option<String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let target: PathBuf =
        if path.is_empty() { PathBuf::from(&page.path) } else { folder.join(path) };
    if !checkout().join(&target).exists() {
        return Some(format!("{}: {link}", page.path));
    }
    if heading.is_empty() {
        return None;
    }
    let text = std::fs::read_to_string(checkout().join(&target)).unwrap_or_default();
    let mut headings = text.lines().filter(|line| line.starts_with('#')).map(anchor);
    let is_there = headings.any(|name| name == heading);
    if is_there { None } else { Some(format!("{}: {link} (no such heading)", page.path)) }
}

#[test]
fn every_relative_link_of_a_page_leads_somewhere() {
    let mut complaints = Vec::new();
    let mut count = 0;
    for page in tree().iter().filter(|file| is_page(&file.path)) {
        if page.path.starts_with("tests/fixtures/") {
            continue;
        }
        for link in found(r"\]\(([^)\s]+)\)", &page.text) {
            if !link.contains("://") {
                count += 1;
                complaints.extend(broken(page, link));
            }
        }
    }
    assert!(count > 60, "only {count} links were found");
    none(&complaints, "links that lead nowhere");
}

#[test]
fn the_readme_links_every_page_of_the_docs() {
    let readme = read("README.md");
    let linked = found(r"\]\(docs/([a-z-]+\.md)[)#]", &readme);
    let files = tree();
    let names = files.iter().filter_map(|file| file.path.strip_prefix("docs/"));
    let pages = names.filter(|name| !name.contains('/') && is_page(name));
    let pages: BTreeSet<&str> = pages.collect();
    assert_eq!(linked, pages, "README.md links (left) and the pages of docs/ (right) differ");
}
