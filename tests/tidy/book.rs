//! The book of `docs/` and the pages around it: the table of contents lists every page, every link
//! leads somewhere, in the checkout and in the built book, and prose is short enough to be read.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::{File, found, none, pattern, read, tree};
use crate::sandbox::checkout;

const PROSE_COLUMNS_MAX: usize = 100;
const PARAGRAPH_WORDS_MAX: usize = 70;
const PARAGRAPH_WORDS_MEDIAN_MAX: usize = 35;
const TABLE_COLUMNS_MAX: usize = 3;
const EXAMPLE_LINES_MAX: usize = 17;
/// The address by which pages outside the book are linked: a built page has no file beside the
/// book.
const ADDRESS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// The pages of the book except its table of contents.
fn book() -> Vec<File> {
    let is_of_the_book = |file: &File| file.path.starts_with("docs/") && file.is_page();
    let pages = tree().into_iter().filter(is_of_the_book);
    pages.filter(|page| page.path != "docs/SUMMARY.md").collect()
}

/// The kind of a line. In a block of code nothing is a heading or a table.
#[derive(PartialEq)]
enum Kind {
    Blank,
    Code,
    Heading,
    Table,
    Html,
    Prose,
}

fn lines(page: &str) -> Vec<(usize, Kind, &str)> {
    let mut is_code = false;
    let kind = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        let was_code = is_code;
        is_code ^= is_fence;
        match line.trim().chars().next() {
            _ if was_code || is_fence => Kind::Code,
            None => Kind::Blank,
            Some('#') => Kind::Heading,
            Some('|') => Kind::Table,
            Some('<') => Kind::Html,
            Some(_) => Kind::Prose,
        }
    };
    let kinds: Vec<Kind> = page.lines().map(kind).collect();
    page.lines()
        .zip(kinds)
        .enumerate()
        .map(|(index, (line, kind))| (index + 1, kind, line))
        .collect()
}

/// The text of each paragraph or item of a list.
pub(super) fn paragraphs(page: &str) -> Vec<usize> {
    let mut paragraphs = Vec::new();
    let mut is_open = false;
    let item = pattern(r"^\s*([-*]|\d+\.) ");
    let words = |line: &str| item.replace(line, "").split_whitespace().count();
    for (_, kind, line) in lines(page) {
        let is_prose = kind == Kind::Prose;
        match paragraphs.last_mut() {
            Some(last) if is_prose && is_open && !item.is_match(line) => *last += words(line),
            _ if is_prose => paragraphs.push(words(line)),
            _ => {}
        }
        is_open = is_prose;
    }
    paragraphs
}

#[test]
fn the_table_of_contents_lists_every_page_once() {
    let summary = read("docs/SUMMARY.md");
    let link = pattern(r"\]\(([^)]+)\)");
    let mut listed: Vec<String> =
        link.captures_iter(&summary).map(|found| format!("docs/{}", &found[1])).collect();
    listed.sort();
    let pages: Vec<String> = book().into_iter().map(|page| page.path).collect();
    assert!(pages.len() > 30, "{pages:?}");
    assert_eq!(listed, pages, "docs/SUMMARY.md (left) and the pages of docs/ (right) differ");
}

/// The anchors of headings. GitHub and mdBook number a repeated one.
fn anchors(page: &str) -> Vec<String> {
    let link = pattern(r"\[([^\]]*)\]\([^)]*\)");
    let mut seen = BTreeMap::<String, usize>::new();
    let headings = lines(page).into_iter().filter(|(_, kind, _)| *kind == Kind::Heading);
    let named = headings.map(|(_, _, heading)| {
        let text = link.replace_all(heading.trim_start_matches('#').trim(), "$1").to_lowercase();
        let is_kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
        let name = text.chars().filter(is_kept).collect::<String>().replace(' ', "-");
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
    });
    named.collect()
}

/// A path from the root without `..`; one that leads out of the checkout begins with it.
fn joined(folder: &Path, path: &str) -> PathBuf {
    let mut joined = folder.to_owned();
    for part in Path::new(path).components() {
        if part != Component::ParentDir || !joined.pop() {
            joined.push(part);
        }
    }
    joined
}

/// Why a link of a page leads nowhere, if so.
fn broken(page: &File, link: &str) -> Option<&'static str> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let is_in_book = page.path.starts_with("docs/");
    let target = match path.strip_prefix(ADDRESS) {
        Some(path) if path.starts_with("docs/") => return Some("link to the book relatively"),
        Some(path) => PathBuf::from(path),
        None if path.contains("://") => return None,
        None if path.is_empty() => PathBuf::from(&page.path),
        None => joined(Path::new(&page.path).parent().unwrap(), path),
    };
    if is_in_book && !path.starts_with(ADDRESS) && !target.starts_with("docs") {
        return Some("it leads out of the built book: link to the repository's address");
    }
    if !checkout().join(&target).exists() {
        return Some("there is no such file");
    }
    let text = || std::fs::read_to_string(checkout().join(&target)).unwrap_or_default();
    let is_there = heading.is_empty() || anchors(&text()).iter().any(|name| name == heading);
    (!is_there).then_some("there is no such heading")
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut complaints = Vec::new();
    let mut count = 0;
    for page in tree().iter().filter(|file| file.is_page()) {
        let text: Vec<&str> = lines(&page.text)
            .into_iter()
            .filter(|(_, kind, _)| *kind != Kind::Code)
            .map(|(_, _, line)| line)
            .collect();
        for link in found(r"\]\(([^)\s]+)\)", &text.join("\n")) {
            count += 1;
            let why = broken(page, link);
            complaints.extend(why.map(|why| format!("{}: {link}: {why}", page.path)));
        }
    }
    assert!(count > 200, "only {count} links were found");
    none(&complaints, "links that lead nowhere");
}

/// These paths are not links, because the built book has no file beside it.
#[test]
fn every_path_named_in_a_design_page_exists() {
    let path = r"`((?:crates|src|tests|benches)/[a-zA-Z0-9_./-]*|[a-z_]+\.rs)`";
    let (files, mut complaints) = (tree(), Vec::new());
    let mut count = 0;
    for page in book().iter().filter(|page| page.path.starts_with("docs/design/")) {
        for path in found(path, &page.text) {
            count += 1;
            let inside = format!("/{path}");
            let is_there = checkout().join(path).exists()
                || !path.contains('/') && files.iter().any(|file| file.path.ends_with(&inside));
            if !is_there {
                complaints.push(format!("{}: {path}", page.path));
            }
        }
    }
    assert!(count > 30, "only {count} paths were found");
    none(&complaints, "design pages name files that do not exist");
}

#[test]
fn every_page_of_the_book_is_short_enough_to_be_read() {
    let mut complaints = Vec::new();
    let target = pattern(r"\]\([^)]*\)");
    let cell = pattern(r"(?:[^|\\]|\\.)+");
    for page in book() {
        let path = &page.path;
        for (number, kind, line) in lines(&page.text) {
            // A link cannot be broken: its address does not count.
            let columns = target.replace_all(line, "]").chars().count();
            if kind == Kind::Prose && columns > PROSE_COLUMNS_MAX {
                complaints.push(format!("{path}:{number} has {columns} columns"));
            }
            let cells = cell.find_iter(line.trim().trim_matches('|')).count();
            if kind == Kind::Table && cells > TABLE_COLUMNS_MAX {
                complaints.push(format!("{path}:{number}: a table of {cells} columns"));
            }
        }
        let mut lengths = paragraphs(&page.text);
        lengths.sort_unstable();
        let Some(longest) = lengths.last() else { continue };
        let median = lengths[lengths.len() / 2];
        if median > PARAGRAPH_WORDS_MEDIAN_MAX {
            complaints.push(format!("{path}: its median paragraph has {median} words"));
        }
        if *longest > PARAGRAPH_WORDS_MAX {
            complaints.push(format!("{path}: a paragraph has {longest} words"));
        }
    }
    none(&complaints, "pages that are hard to read");
}

#[test]
fn the_readme_of_an_example_fits_a_screen() {
    let is_one = |file: &&File| file.path.starts_with("examples/") && file.is_page();
    let files = tree();
    let pages: Vec<&File> = files.iter().filter(is_one).collect();
    assert!(pages.len() >= 5, "only {} examples have a README.md", pages.len());
    let is_long = |page: &&&File| page.text.lines().count() > EXAMPLE_LINES_MAX;
    let long: Vec<String> = pages.iter().filter(is_long).map(|page| page.path.clone()).collect();
    none(&long, "they have more than 17 lines");
}

#[test]
fn every_item_of_a_generated_list_has_a_description() {
    let bare = pattern(r"(?m)^- `[^`]+`(?: \([^)]*\))?$");
    let complaints: Vec<_> = book()
        .iter()
        .flat_map(|page| {
            let items = bare.find_iter(&page.text);
            items.map(|item| format!("{}: {}", page.path, item.as_str())).collect::<Vec<_>>()
        })
        .collect();
    none(&complaints, "say on the page what it is");
}
