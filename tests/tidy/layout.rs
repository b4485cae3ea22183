//! Where code is: folders that a reader can take in at a glance, `mod.rs` for declarations only,
//! and the methods of a type in one place.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, none, pattern, product_of, product_source};

/// The maximum number of product files directly in a folder.
const FILES_MAX: usize = 15;
/// The maximum number of files that give a type methods.
const IMPL_FILES_MAX: usize = 2;
/// Folders that still have more files.
const FULL: &[&str] = &[];
/// Files `mod.rs` that still have code.
const WITH_CODE: &[&str] = &[];
/// Types whose methods are still in more files.
const SPREAD: &[&str] = &[];

fn product() -> Vec<File> {
    let mut files = product_source();
    files.retain(|file| !file.is_test() && !file.path.starts_with("src/reference"));
    files
}

/// Fails unless exactly the known exceptions were found.
#[track_caller]
fn only(found: &BTreeSet<String>, known: &[&str], rule: &str) {
    let known: BTreeSet<String> = known.iter().map(|name| (*name).to_owned()).collect();
    let new = found.difference(&known).map(|name| format!("{name} breaks it"));
    let gone = known.difference(found).map(|name| format!("{name} keeps it, so take it out here"));
    none(&new.chain(gone).collect::<Vec<_>>(), rule);
}

#[test]
fn a_folder_has_at_most_fifteen_files() {
    let mut counts = BTreeMap::<String, usize>::new();
    for file in product() {
        let (folder, _) = file.path.rsplit_once('/').unwrap();
        *counts.entry(folder.to_owned()).or_default() += 1;
    }
    let full = counts.into_iter().filter(|(_, files)| *files > FILES_MAX);
    only(&full.map(|(folder, _)| folder).collect(), FULL, "folders of at most 15 files");
}

#[test]
fn a_mod_file_contains_only_declarations() {
    let code = pattern(
        r"(?m)^(?:pub(?:\(\w+\))? )?(?:const |async |unsafe )*(?:fn|struct|enum|union|impl|const|static|trait|type|macro_rules)\b",
    );
    let mut with_code = BTreeSet::new();
    for file in product().iter().filter(|file| file.path.ends_with("/mod.rs")) {
        if code.is_match(&product_of(&file.text)) {
            with_code.insert(file.path.clone());
        }
    }
    only(&with_code, WITH_CODE, "code of a module is in a file beside its folder, not in mod.rs");
}

#[test]
fn a_type_has_its_methods_in_at_most_two_files() {
    let opens = pattern(r"(?m)^impl(?:<[^>]*>)? (\w+)(?:<[^>]*>)? (?:where[^{]*)?\{");
    let mut files = BTreeMap::<String, BTreeSet<String>>::new();
    for file in product() {
        for found in opens.captures_iter(&product_of(&file.text)) {
            files.entry(found[1].to_owned()).or_default().insert(file.path.clone());
        }
    }
    assert!(files.len() > 100, "only {} types were found", files.len());
    let spread = files.into_iter().filter(|(_, files)| files.len() > IMPL_FILES_MAX);
    only(&spread.map(|(name, _)| name).collect(), SPREAD, "the methods of a type are in one file");
}
