//! The scripts of a `package.json`.

use serde_json::Value;

/// A script with those that run before and after it, as name and command; empty if it is missing.
pub fn scripts(text: &str, name: &str) -> Vec<(String, String)> {
    let Ok(package) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let scripts = &package["scripts"];
    if !scripts[name].is_string() {
        return Vec::new();
    }
    let names = [format!("pre{name}"), name.to_owned(), format!("post{name}")];
    let found = names.into_iter().filter_map(|name| {
        let run = scripts[&name].as_str()?.to_owned();
        Some((name, run))
    });
    found.collect()
}
