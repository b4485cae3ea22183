//! The product is what is tested: it must not need features of shared crates that only test crates
//! turn on.

use std::collections::{BTreeMap, BTreeSet};

use super::{found, is_in_the_product, none, pattern, product_source, read, source};
use crate::sandbox::{DEADLINE, checkout};
use crate::spawned::Running;

/// Features of shared crates that only tests have, and why the product does not need them.
const ONLY_IN_TESTS: [(&str, &[&str], &str); 2] = [
    ("num-traits", &["std"], "chrono asks for none; crew does not name this crate"),
    (
        "regex-syntax",
        &[
            "default",
            "unicode",
            "unicode-age",
            "unicode-bool",
            "unicode-case",
            "unicode-gencat",
            "unicode-perl",
            "unicode-script",
            "unicode-segment",
        ],
        "tables of Unicode, which no pattern of crew's asks for: tests/words.rs matches each",
    ),
];

/// The features of every crate on this machine, by its name and version.
fn features(edges: &str) -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.args(["tree", "--locked", "--offline", "--no-dedupe", "--prefix", "none"]);
    command
        .args(["--edges", &format!("{edges},no-proc-macro"), "--format", "{p}\t{f}"])
        .current_dir(checkout());
    let listed = Running::start(command, None).wait(DEADLINE).success();
    let mut features: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (name, of_one) in listed.lines().filter_map(|line| line.split_once('\t')) {
        let of_one = of_one.split(',').filter(|feature| !feature.is_empty()).map(str::to_owned);
        features.entry(name.to_owned()).or_default().extend(of_one);
    }
    features
}

#[test]
fn test_crates_change_no_feature_of_a_product_crate_without_a_reason() {
    let (product, tested) = (features("normal"), features("normal,dev"));
    assert!(product.len() > 20 && product.len() < tested.len(), "{product:#?}");
    let mut complaints = Vec::new();
    let mut excused = BTreeSet::new();
    // The crates of this checkout have fixtures for each other's tests.
    let of_others = product.into_iter().filter(|(name, _)| !name.starts_with("crew-loop"));
    for (name, features) in of_others {
        for feature in tested[&name].symmetric_difference(&features) {
            let krate = name.split(' ').next().unwrap();
            let is_excused = |(one, these, _): &&(&str, &[&str], &str)| {
                *one == krate && these.contains(&feature.as_str())
            };
            match ONLY_IN_TESTS.iter().find(is_excused) {
                Some((krate, ..)) => drop(excused.insert((*krate, feature.clone()))),
                None => complaints.push(format!("{name}: {feature}")),
            }
        }
    }
    none(&complaints, "only tests have these features: give them to the product, or a reason here");
    let listed: usize = ONLY_IN_TESTS.iter().map(|(_, features, _)| features.len()).sum();
    assert_eq!(excused.len(), listed, "a listed feature is in the product or in no test");
}

#[test]
fn tests_use_the_binary_that_ci_can_name() {
    let beside = ["CARGO_BIN_", "EXE_crew"].concat();
    let elsewhere = source("tests/").into_iter().filter(|file| file.text.contains(&beside));
    let elsewhere: Vec<_> = elsewhere.map(|file| file.path).collect();
    assert_eq!(elsewhere, ["tests/binary.rs"], "ask the sandbox for its build instead");
}

#[test]
fn every_pattern_is_in_one_list_and_matches_what_the_product_reads() {
    let list = "crates/readers/src/parse/patterns.rs";
    let made = pattern(r"\bRegex(Set)?(Builder)?::new|\bregex::bytes");
    let elsewhere = product_source().into_iter().filter(|file| made.is_match(&file.text));
    let is_product = |path: &String| {
        let room = path.strip_prefix("src/").and_then(|path| path.split_once('/'));
        let is_listed = path == list || path.ends_with("_tests.rs") || path.contains("fixture");
        !is_listed && room.is_none_or(|(room, _)| is_in_the_product(room))
    };
    let elsewhere: Vec<_> = elsewhere.map(|file| file.path).filter(is_product).collect();
    none(&elsewhere, "a pattern that does not compile must not be passed over: list it there");
    let patterns = read("crates/readers/src/parse/patterns.txt");
    let matched = ["tests/words.rs", "tests/door/broken.rs"].map(read).concat();
    let names = found(r"(?m)^([A-Z_0-9]+) = ", &patterns);
    assert!(names.len() >= 7, "{names:?}");
    let unmatched: Vec<_> = names.into_iter().filter(|name| !matched.contains(name)).collect();
    assert!(
        unmatched.is_empty(),
        "neither tests/words.rs nor tests/door/broken.rs matches {unmatched:?}"
    );
}
