//! Turns facts into findings, the worst first. A finding names the problem and its remedy; it
//! changes nothing.

use super::{DoctorFacts, Finding, own, rules};

/// All findings for these facts.
pub fn findings(facts: &DoctorFacts) -> Vec<Finding> {
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
    rules::unjudged(facts, &mut all);
    all.sort_by_key(|finding| finding.severity);
    all
}
