//! From facts to findings: each names what is the matter and the way out, the worst first.

use super::Facts;
use super::{own, rules};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Loops do not run, or not as they should.
    Broken,
    /// Something a person should see to.
    Warning,
    /// Good to know.
    Note,
}

impl Severity {
    /// The word used on the page and in JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A name that a program may rely on.
    pub code: &'static str,
    pub severity: Severity,
    pub what: String,
    pub fix: String,
}

/// Everything there is to say about these facts.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut all = Vec::new();
    rules::client(facts, &mut all);
    rules::plugin(facts, &mut all);
    rules::folder(facts, &mut all);
    rules::settings(facts, &mut all);
    own::settings(facts, &mut all);
    rules::cap(facts, &mut all);
    rules::home(facts, &mut all);
    rules::machine(facts, &mut all);
    rules::loops(facts, &mut all);
    all.sort_by_key(|finding| finding.severity);
    all
}
