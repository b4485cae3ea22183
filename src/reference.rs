//! The pages of the reference that are made from the code. A page is a text with blocks between
//! `<!-- made from the code: NAME -->` and `<!-- end -->`: the code says what a block lists, and
//! with `CREW_REFERENCE=write` the test below writes it. Where the code has no words for an entry,
//! those that stand on the page are kept.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod json;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod page;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod source;

use std::path::Path;

use self::page::{Block, made};

/// The folder of the pages, and their blocks.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference");

fn blocks() -> Vec<(&'static str, Vec<Block>)> {
    vec![
        ("commands.md", commands::blocks()),
        ("settings.md", lists::settings()),
        ("outcomes.md", lists::outcomes()),
        ("files.md", lists::files()),
        ("json.md", json::blocks()),
        ("variables.md", lists::variables()),
        ("reactions.md", lists::reactions()),
        ("agents.md", lists::agents()),
    ]
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test may write the pages of its checkout")]
fn the_reference_matches_the_code() {
    let writes = std::env::var_os("CREW_REFERENCE").is_some_and(|mode| mode == "write");
    let mut stale = Vec::new();
    for (name, blocks) in blocks() {
        let file = Path::new(FOLDER).join(name);
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        let now = made(&before, &blocks);
        if writes {
            std::fs::write(&file, &now).unwrap();
        } else if let Some(line) = page::difference(&before, &now) {
            stale.push(format!("docs/reference/{name}: {line}"));
        }
    }
    assert!(
        stale.is_empty(),
        "the code says something else than\n{}\n`just reference` writes these pages again",
        stale.join("\n")
    );
}
