//! What the doctor finds. The name, the severity and the words of each finding are in
//! `findings.toml`; whoever looks adds a finding by its name, with the values that its words use.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::{Environment, Value};
use serde::Deserialize;

use crate::clients::claude::plugin::PRODUCT;
use crate::engine::doctor::{Finding, Severity, shell_word};
use crate::engine::words::templates::environment;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Deserialize)]
struct FindingWords {
    severity: Severity,
    what: String,
    fix: String,
}

static WORDS: LazyLock<BTreeMap<String, FindingWords>> =
    LazyLock::new(|| toml::from_str(include_str!("findings.toml")).unwrap_or_default());

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    environment.add_global("client", PRODUCT.name);
    environment.add_global("program", PRODUCT.program);
    environment.add_global("this", VERSION);
    environment.add_filter("shell_word", |word: &str| shell_word(word));
    environment
});

/// The findings so far.
#[derive(Debug, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds the finding of this name.
    pub fn add(&mut self, name: &str, values: &Value) {
        let Some(FindingWords { severity, what, fix }) = WORDS.get(name) else { return };
        let [what, fix] = [what, fix].map(|text| {
            let filled = TEMPLATES.render_str(text, values);
            filled.unwrap_or_else(|error| format!("{error:#}"))
        });
        let code = name.split('/').next().unwrap_or(name).to_owned();
        self.0.push(Finding { code, severity: *severity, what, fix });
    }

    /// Adds those that others found.
    pub fn extend(&mut self, found: impl IntoIterator<Item = Finding>) {
        self.0.extend(found);
    }

    /// All of them, the worst first.
    pub fn sorted(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.severity);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_finding_that_is_added_has_words_and_every_one_with_words_is_added() {
        let sources =
            [include_str!("client.rs"), include_str!("cluster.rs"), include_str!("mod.rs")];
        let sources = sources.concat();
        let is_name = |word: &&str| {
            let is_of_names = |it: char| it.is_ascii_lowercase() || "-/".contains(it);
            word.chars().all(is_of_names) && word.trim_matches('-').contains('-')
        };
        let added = sources.split('"').filter(is_name).map(str::to_owned);
        let added: BTreeSet<String> = added.filter(|word| !word.starts_with('-')).collect();
        let known: BTreeSet<String> = WORDS.keys().cloned().collect();
        assert_eq!(added, known);
    }
}
