use std::collections::BTreeSet;

use super::*;

#[test]
fn every_finding_that_is_added_has_words_and_every_one_with_words_is_added() {
    let sources = [include_str!("client.rs"), include_str!("cluster.rs"), include_str!("mod.rs")];
    let sources = sources.concat();
    let is_name = |word: &&str| {
        let is_of_names = |c: char| c.is_ascii_lowercase() || "-/".contains(c);
        word.chars().all(is_of_names) && word.trim_matches('-').contains('-')
    };
    let added = sources.split('"').filter(is_name).map(str::to_owned);
    let added: BTreeSet<String> = added.filter(|word| !word.starts_with('-')).collect();
    let known: BTreeSet<String> = WORDS.keys().cloned().collect();
    assert_eq!(added, known);
}
