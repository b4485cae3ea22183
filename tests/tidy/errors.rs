//! Errors are values: one place joins a text and its hint, and no code parses an error's text.

use std::path::Path;

use super::{none, pattern, product_of, product_source, tree};

/// The file in which text and hint are joined.
const RENDERER: &str = "crates/engine/src/failure.rs";

#[test]
fn a_hint_is_written_in_one_place_and_no_error_text_is_parsed() {
    let hint = pattern(r#"(\\n(\\\n\s*)?|")hint:"#);
    let taken_apart = pattern(
        r#"\b(error|fault|failure|refusal)(\.to_string\(\)|(:#)?\}"\))\s*\.(contains|ends_with|find|lines|replace|r?split|starts_with|strip)"#,
    );
    let mut complaints = Vec::new();
    for file in product_source().into_iter().filter(|file| !file.is_test()) {
        let text = product_of(&file.text);
        if file.path != RENDERER && hint.is_match(&text) {
            complaints.push(format!("{} writes `hint:` itself", file.path));
        }
        if taken_apart.is_match(&text) {
            complaints.push(format!("{} takes the text of an error apart", file.path));
        }
    }
    let of_a_template = pattern(r"(?m)^hint:");
    for file in tree() {
        let is_template = Path::new(&file.path).extension() == Some("j2".as_ref());
        if is_template && of_a_template.is_match(&file.text) {
            complaints.push(format!("{} writes `hint:` itself", file.path));
        }
    }
    none(&complaints, "make it a `Failure`, and read its fields");
}
