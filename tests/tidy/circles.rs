//! No circle between files: what two of them share has its own file. A module and the parts inside
//! its folder may name each other, because they are one noun.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, none, pattern, product_of, product_source};

type Module = Vec<String>;

/// The module of a source file, after the name of its crate, which is empty for the program.
fn module(file: &File) -> Module {
    let path = file.path.trim_start_matches("crates/").trim_end_matches(".rs");
    let (krate, path) = path.split_once("src/").unwrap_or(("", path));
    let path = path.trim_end_matches("/mod").trim_end_matches("main").trim_end_matches("lib");
    let parts = path.split('/').filter(|part| !part.is_empty());
    std::iter::once(krate.trim_end_matches('/')).chain(parts).map(str::to_owned).collect()
}

/// The paths of a `use`: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let Some((head, body)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let body = body.trim_end().trim_end_matches('}');
    let mut depth = 0;
    let parts = body.split(|mark| {
        depth += i32::from(mark == '{') - i32::from(mark == '}');
        mark == ',' && depth == 0
    });
    let parts: Vec<&str> = parts.map(str::trim).filter(|part| !part.is_empty()).collect();
    parts.iter().flat_map(|part| paths(part)).map(|rest| format!("{}{rest}", head.trim())).collect()
}

/// The module to which a path used in `place` leads, as far as it is one of `modules`.
fn meant(path: &str, place: &Module, modules: &BTreeSet<Module>) -> Option<Module> {
    let mut words = path.split("::").peekable();
    let mut found = match words.next()? {
        "crate" => place[..1].to_vec(),
        "self" => place.clone(),
        "super" => place[..place.len().checked_sub(1)?].to_vec(),
        _ => return None,
    };
    for word in words {
        let mut deeper = found.clone();
        deeper.push(word.to_owned());
        if !modules.contains(&deeper) {
            break;
        }
        found = deeper;
    }
    Some(found)
}

fn is_part_of(one: &Module, other: &Module) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Every module with those it names, except the parts of its own folder.
fn graph() -> BTreeMap<Module, BTreeSet<Module>> {
    let files = product_source();
    let files: Vec<&File> = files.iter().filter(|file| !file.is_test()).collect();
    let modules: BTreeSet<Module> = files.iter().map(|file| module(file)).collect();
    let used = pattern(r"(?m)^\s*(?:pub(?:\(\w+\))? )?use ([^;]+);|((?:crate|super)(?:::\w+)+)");
    let mut graph = BTreeMap::new();
    for file in files {
        let (place, text) = (module(file), product_of(&file.text));
        let uses = used.captures_iter(&text).flat_map(|found| {
            paths(found.get(1).or(found.get(2)).map_or("", |found| found.as_str()))
        });
        let named = uses.filter_map(|path| meant(&path, &place, &modules));
        let named = named.filter(|named| !is_part_of(named, &place)).collect();
        graph.insert(place, named);
    }
    graph
}

/// All that can be reached from a module.
fn reach<'graph>(
    graph: &'graph BTreeMap<Module, BTreeSet<Module>>,
    from: &Module,
) -> BTreeSet<&'graph Module> {
    let mut seen = BTreeSet::new();
    let mut left: Vec<&Module> = graph[from].iter().collect();
    while let Some(next) = left.pop() {
        if seen.insert(next) {
            left.extend(&graph[next]);
        }
    }
    seen
}

#[test]
fn no_file_depends_on_itself_through_others() {
    let graph = graph();
    assert!(graph.len() > 100 && graph.values().any(|named| named.len() > 5), "nothing was read");
    let circular = graph.keys().filter(|module| reach(&graph, module).contains(module));
    let complaints: Vec<String> = circular.map(|module| module.join("::")).collect();
    none(&complaints, "these files name each other; give what they share a file of its own");
}

/// For each folder, which of its files and folders name which others of them.
fn folders() -> BTreeMap<Module, BTreeMap<Module, BTreeSet<Module>>> {
    let mut folders = BTreeMap::<Module, BTreeMap<Module, BTreeSet<Module>>>::new();
    for (module, named) in graph() {
        for other in named {
            let shared = module.iter().zip(&other).take_while(|(one, two)| one == two).count();
            let [from, to] = [&module, &other].map(|module| module[..=shared].to_vec());
            let arrows = folders.entry(module[..shared].to_vec()).or_default();
            arrows.entry(to.clone()).or_default();
            arrows.entry(from).or_default().insert(to);
        }
    }
    folders
}

#[test]
fn no_folder_depends_on_itself_through_others() {
    let mut knots = BTreeSet::new();
    for (folder, graph) in folders() {
        if graph.keys().any(|part| reach(&graph, part).contains(part)) {
            knots.insert(folder.join("/"));
        }
    }
    assert_eq!(knots, BTreeSet::new(), "the parts of these folders name each other in a circle");
}

#[test]
fn a_path_is_read_as_the_compiler_reads_it() {
    let modules = [&["", "a"][..], &["", "a", "b"], &["", "a", "c"]];
    let modules = modules.map(|module| module.iter().map(|part| (*part).to_owned()).collect());
    let place = ["", "a", "b"].map(str::to_owned).to_vec();
    let found = |text| {
        let paths = paths(text).into_iter();
        let found = paths.filter_map(|path| meant(&path, &place, &modules.clone().into()));
        found.map(|module| module[1..].join("::")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("super::c::Word"), "a::c");
    assert_eq!(found("crate::a::{self, b::Word, c::{Word, other}}"), "a a::b a::c a::c");
    assert_eq!(found("std::fmt"), "");
}
