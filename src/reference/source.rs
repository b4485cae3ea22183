//! Reads the source code: the fields of its types with their comments, the keys of the JSON objects
//! that it writes, and the names of variables and files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::visit::{self, Visit};

/// Every file of the program and its crates that is not a test, by its path, up to the tests that
/// it holds.
pub static FILES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let mut files = BTreeMap::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["src", "crates/engine/src", "crates/readers/src", "crates/world/src"] {
        collect(&root.join(folder), &mut files);
    }
    files
});

#[expect(clippy::disallowed_methods, reason = "a test reads the checkout that it was built from")]
fn collect(folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_test =
            name.ends_with("tests.rs") || name.contains("fixture") || name == "reference.rs";
        if path.is_dir() {
            if !["reference", "tests"].contains(&name.as_str()) {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = without_tests(&text);
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            files.insert(path.strip_prefix(root).unwrap().display().to_string(), code);
        }
    }
}

/// A text without the modules of tests that it holds.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().copied().unwrap_or_default();
        if line == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{') {
            // rustfmt closes an item at the beginning of a line.
            lines.by_ref().take_while(|line| *line != "}").for_each(drop);
        } else {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// A field as programs read it, and its comment.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub words: String,
}

/// The fields of a struct, as serde writes them.
pub fn fields(type_name: &str) -> Vec<Field> {
    let found = find_struct(type_name);
    let mut all = Vec::new();
    for field in &found.fields {
        let serde = serde_words(&field.attrs);
        if serde.iter().any(|(key, _)| key == "skip" || key == "skip_serializing") {
            continue;
        }
        if serde.iter().any(|(key, _)| key == "flatten") {
            all.extend(fields(&last_name(&field.ty)));
            continue;
        }
        let own =
            field.ident.as_ref().map(|name| name.to_string().trim_start_matches("r#").to_owned());
        let renamed = serde.iter().find(|(key, _)| key == "rename").map(|(_, name)| name.clone());
        let name = renamed.or_else(|| own.map(|name| cased(&name, &serde_words(&found.attrs))));
        all.push(Field { name: name.unwrap_or_default(), words: doc(&field.attrs) });
    }
    all
}

fn cased(name: &str, of_type: &[(String, String)]) -> String {
    match of_type.iter().find(|(key, _)| key == "rename_all").map(|(_, case)| case.as_str()) {
        Some("kebab-case") => name.replace('_', "-"),
        _ => name.to_owned(),
    }
}

fn is_serialized(item: &syn::ItemStruct) -> bool {
    let derives = item.attrs.iter().filter(|attribute| attribute.path().is_ident("derive"));
    derives
        .into_iter()
        .any(|attribute| attribute.to_token_stream().to_string().contains("Serialize"))
}

/// How many variants an enum has.
pub fn count_variants(name: &str) -> usize {
    let start = format!("enum {name} {{");
    let mut files = FILES.values().filter(|text| text.contains(&start));
    let items = syn::parse_file(files.next().unwrap()).unwrap().items;
    let variants = items.into_iter().find_map(|item| match item {
        syn::Item::Enum(item) if item.ident == name => Some(item.variants.len()),
        _ => None,
    });
    variants.unwrap_or_else(|| panic!("no enum {name}"))
}

/// The struct of this name that serde writes.
fn find_struct(name: &str) -> syn::ItemStruct {
    let is_it = |text: &&String| {
        [" {", "<", "("].iter().any(|end| text.contains(&format!("struct {name}{end}")))
    };
    let files = FILES.values().filter(is_it).map(|text| syn::parse_file(text).unwrap());
    let items = files.flat_map(|file| file.items);
    let structs = items.filter_map(|item| match item {
        syn::Item::Struct(item) if item.ident == name && is_serialized(&item) => Some(item),
        _ => None,
    });
    let found: Vec<_> = structs.collect();
    let [found] = <[_; 1]>::try_from(found).unwrap_or_else(|_| panic!("not one struct {name}"));
    found
}

/// The words of a comment, in one line: each paragraph is a sentence or more.
fn doc(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(
        |attribute| {
            let syn::Expr::Lit(line) = &attribute.meta.require_name_value().ok()?.value else {
                return None;
            };
            let syn::Lit::Str(line) = &line.lit else { return None };
            Some(line.value().trim().to_owned())
        },
    );
    let text = lines.collect::<Vec<_>>().join("\n");
    // What is `None` in the code is null for programs.
    sentences(&text)
        .replace("`None`", "null")
        .replace(". null ", ". Null ")
        .replace("[`", "`")
        .replace("`]", "`")
}

/// The paragraphs of a text, each ended as a sentence.
pub fn sentences(text: &str) -> String {
    let end = |part: &str| {
        let part = part.trim().replace('\n', " ");
        let is_ended = part.is_empty() || part.ends_with(['.', '…', ':']);
        if is_ended { part } else { format!("{part}.") }
    };
    text.split("\n\n").map(end).collect::<Vec<_>>().join(" ")
}

/// The arguments of `#[serde(…)]`, each with its text.
fn serde_words(attributes: &[syn::Attribute]) -> Vec<(String, String)> {
    let mut words = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let _ = attribute.parse_nested_meta(|meta| {
            let name = meta.path.require_ident()?.to_string();
            let value = meta.value().and_then(syn::parse::ParseBuffer::parse::<syn::LitStr>);
            words.push((name, value.map(|text| text.value()).unwrap_or_default()));
            Ok(())
        });
    }
    words
}

fn last_name(of: &syn::Type) -> String {
    let syn::Type::Path(path) = of else { panic!("not a path") };
    path.path.segments.last().unwrap().ident.to_string()
}

/// The keys of the objects that a function writes as JSON, in the order of its text; a key of an
/// object inside has its owner and a dot before it. `map` is the variable whose `insert` counts.
pub fn keys(file: &str, function: &str, map: &str) -> Vec<String> {
    struct Find<'a>(&'a str, Option<TokenStream>);
    impl<'ast> Visit<'ast> for Find<'_> {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            if item.sig.ident == self.0 {
                self.1 = Some(item.block.to_token_stream());
            }
        }
        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            if item.sig.ident == self.0 {
                self.1 = Some(item.block.to_token_stream());
            }
            visit::visit_impl_item_fn(self, item);
        }
    }
    let parsed = syn::parse_file(&FILES[file]).unwrap();
    let mut find = Find(function, None);
    find.visit_file(&parsed);
    let body = find.1.unwrap_or_else(|| panic!("{file} has no fn {function}"));
    let mut found = Vec::new();
    written(body, "", map, &mut found);
    in_their_owners(&found)
}

/// The keys of an object that a `let` holds come behind the key of that name, if it is written.
fn in_their_owners(found: &[(String, String)]) -> Vec<String> {
    let is_key = |name: &String| found.iter().any(|(_, key)| key == name);
    let mut keys = Vec::new();
    for (owner, key) in found {
        if !is_key(owner) {
            let inner = found.iter().filter(|(of, _)| of == key);
            let inner = inner.map(|(_, inner)| format!("{key}.{inner}"));
            keys.push(key.clone());
            keys.extend(inner);
        }
    }
    keys
}

/// The keys of `json!({…})`, of `value["key"] = …`, and of `serialize_entry("key", …)` or
/// `MAP.insert("key", …)`, each with the name of the `let` that holds it.
fn written(stream: TokenStream, of: &str, map: &str, found: &mut Vec<(String, String)>) {
    let all: Vec<TokenTree> = stream.into_iter().collect();
    let mut owner = of.to_owned();
    for (at, token) in all.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).map(|at| all[at].to_string());
        let TokenTree::Group(group) = token else {
            if before(1).as_deref() == Some("let") {
                owner = token.to_string();
            } else if token.to_string() == ";" {
                of.clone_into(&mut owner);
            }
            continue;
        };
        let is_macro = before(1).as_deref() == Some("!") && before(2).as_deref() == Some("json");
        if is_macro {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            if let [TokenTree::Group(object)] = &inner[..]
                && object.delimiter() == Delimiter::Brace
            {
                let mut keys = Vec::new();
                keys_of(object.stream(), "", &mut keys);
                found.extend(keys.into_iter().map(|key| (owner.clone(), key)));
                continue;
            }
        }
        let first = group.stream().into_iter().next().and_then(|token| text_of(&token));
        let is_assigned = group.delimiter() == Delimiter::Bracket
            && all.get(at + 1).is_some_and(|next| next.to_string() == "=")
            && all.get(at + 2).is_none_or(|next| next.to_string() != "=");
        let is_call = |name: &str| before(1).as_deref() == Some(name);
        let is_inserted = is_call("insert") && before(3).as_deref() == Some(map);
        match first {
            Some(key) if is_assigned || is_inserted || is_call("serialize_entry") => {
                found.push((String::new(), key));
            }
            _ => written(group.stream(), &owner, map, found),
        }
    }
}

/// The keys of one object.
fn keys_of(object: TokenStream, owner: &str, found: &mut Vec<String>) {
    let all: Vec<TokenTree> = object.into_iter().collect();
    let parts = all.split(|token| matches!(token, TokenTree::Punct(it) if it.as_char() == ','));
    for part in parts {
        let [key, TokenTree::Punct(colon), value @ ..] = part else { continue };
        let (Some(key), ':') = (text_of(key), colon.as_char()) else { continue };
        let path = if owner.is_empty() { key } else { format!("{owner}.{key}") };
        found.push(path.clone());
        if let [TokenTree::Group(inner)] = value
            && inner.delimiter() == Delimiter::Brace
        {
            keys_of(inner.stream(), &path, found);
        }
    }
}

fn text_of(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let text = literal.to_string();
    Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// The texts that a pattern finds in the code; its first group is the text, each once.
pub fn texts(pattern: &str, is_file: impl Fn(&str) -> bool) -> Vec<String> {
    let pattern = regex::Regex::new(pattern).unwrap();
    let mut found = Vec::new();
    for (file, text) in FILES.iter() {
        if is_file(file) {
            found.extend(pattern.captures_iter(text).map(|found| found[1].to_owned()));
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn the_keys_of_an_object_are_found_however_it_is_written() {
    let text = r#"{
        let g = (x > 1).then(|| json!({ "until": 1 }));
        let mut value = json!({ "a": 1, "b": { "c": f(x, json!(2)) }, "d": [1, 2] });
        value["e"] = json!(3);
        if value["f"] == 1 { map.serialize_entry("g", &g)?; }
        file.insert("h".to_owned(), json!(1));
    }"#;
    let mut found = Vec::new();
    written(text.parse().unwrap(), "", "file", &mut found);
    assert_eq!(in_their_owners(&found), ["a", "b", "b.c", "d", "e", "g", "g.until", "h"]);
}

#[test]
fn only_the_tests_of_a_file_are_left_out() {
    let text = "#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(test)]\nmod own {\n    fn b() {}\n}\nfn c() {}\n";
    let code = "#[cfg(test)]\nmod tests;\nfn a() {}\nfn c() {}\n";
    assert_eq!(without_tests(text), code);
}
