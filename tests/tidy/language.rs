//! Language: a public type has a unique name, and a comment can be read without scrolling.

use std::collections::BTreeMap;

use super::{none, pattern, product_source, source};

/// The maximum width of a line of comment, in columns; rustfmt leaves comments alone.
const COMMENT_COLUMNS_MAX: usize = 100;
/// Names that two types may share, each with its reason.
const SHARED_NAMES: [(&str, &str); 0] = [];

#[test]
fn every_public_type_has_a_unique_name() {
    let defined = pattern(r"(?m)^\s*pub(?:\(\w+\))? (?:struct|enum|trait|type) (\w+)");
    let mut owners = BTreeMap::<String, Vec<String>>::new();
    for file in product_source().iter().filter(|file| !file.path.contains("test")) {
        for found in defined.captures_iter(&file.text) {
            owners.entry(found[1].to_owned()).or_default().push(file.path.clone());
        }
    }
    assert!(owners.len() > 100, "only {} types were found", owners.len());
    let is_allowed = |name: &str| SHARED_NAMES.iter().any(|(shared, _)| *shared == name);
    let twice = owners.iter().filter(|(name, files)| files.len() > 1 && !is_allowed(name));
    let complaints: Vec<String> =
        twice.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    none(&complaints, "two public types have one name; name each for what it is");
}

#[test]
fn no_comment_is_wider_than_a_hundred_columns() {
    let mut complaints = Vec::new();
    for file in source("") {
        for (number, line) in file.lines().filter(|(_, line)| line.trim_start().starts_with("//")) {
            let columns = line.chars().count();
            if columns > COMMENT_COLUMNS_MAX {
                complaints.push(format!("{}:{number} has {columns} columns", file.path));
            }
        }
    }
    none(&complaints, "comments of at most 100 columns, as rustfmt keeps code");
}
