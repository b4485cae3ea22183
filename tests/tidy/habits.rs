//! Habits of the code and words of its pages that may only become rarer: each has a ceiling, which
//! is lowered over time.

use super::{none, pattern, product_of, product_source};

/// Idioms that hide a condition or a function in an expression, and how often the product may still
/// have each.
const IDIOMS: [(&str, &str, usize); 4] = [
    (r"\.filter\(\|_\|", "an `if` as a filter", 0),
    (r"\.then\(\|\|", "an `if` as a method", 19),
    (r"\|it\|", "a parameter without a name of its own", 33),
    (r"\blet (?:mut )?\w+ = (?:move )?\|", "a function in a variable", 100),
];

/// Words that a reader stumbles over, with their replacements, and how often the product's code,
/// comments and messages may still have each.
const WORDS: [(&str, &str, usize); 3] = [
    (r"\btold\b|told_|_told|\bTold", "reported, said", 64),
    (r"\b[Oo]rders?\b(?: [^bo]|[^ ])|_order\b|Order\b", "request; sorted, sequence", 31),
    (r"\b(?:is|are|was|of) no\b", "is not a, has no, without", 57),
];

/// The text of each file of the product, without its tests.
fn product() -> Vec<String> {
    let files = product_source().into_iter();
    let files = files.filter(|file| !file.is_test() && !file.path.starts_with("src/reference"));
    files.map(|file| product_of(&file.text)).collect()
}

fn complaints(rules: &[(&str, &str, usize)]) -> Vec<String> {
    let files = product();
    assert!(files.len() > 100, "only {} files were read", files.len());
    let mut complaints = Vec::new();
    for (regex, meaning, ceiling) in rules {
        let regex = pattern(regex);
        let found: usize = files.iter().map(|text| regex.find_iter(text).count()).sum();
        if found > *ceiling {
            complaints.push(format!("{found} × {regex} ({meaning}), at most {ceiling}"));
        }
    }
    complaints
}

#[test]
fn no_idiom_that_hides_a_condition_becomes_more_frequent() {
    none(&complaints(&IDIOMS), "write `if`, `match` or a function");
}

#[test]
fn no_word_to_avoid_becomes_more_frequent() {
    none(&complaints(&WORDS), "use the words of CONTRIBUTING.md");
}
