//! The doctor's page, for people and as JSON. It shows findings and makes none.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::json::SCHEMA;
use crate::engine::doctor::{ClientCheck, DoctorFacts, Finding, Severity};
use crate::engine::text::count;

/// What was checked, every finding with its fix, and a summary.
pub fn page(facts: &DoctorFacts, findings: &[Finding]) -> String {
    let mut text = format!("crew {}\n", facts.version);
    for (name, value) in looked_at(facts) {
        let _ = writeln!(text, "  {name:<8} {value}");
    }
    for finding in findings {
        let Finding { severity, what, fix, .. } = finding;
        let _ = write!(text, "\n{}: {what}\n  fix: {fix}\n", severity.label());
    }
    let number = |severity| findings.iter().filter(|it| it.severity == severity).count() as u64;
    let sum = match (number(Severity::Broken), number(Severity::Warning)) {
        (0, 0) => "nothing is broken".to_owned(),
        (0, warnings) => format!("nothing is broken, {}", count(warnings, "warning")),
        (broken, 0) => format!("{broken} broken"),
        (broken, warnings) => format!("{broken} broken, {}", count(warnings, "warning")),
    };
    let _ = writeln!(text, "\n{sum}");
    text
}

fn looked_at(facts: &DoctorFacts) -> [(&'static str, String); 3] {
    let client = match &facts.client {
        ClientCheck::Absent => "none".to_owned(),
        ClientCheck::Silent(_) => "does not answer".to_owned(),
        ClientCheck::Present { program, version } => {
            format!("{} {version}, {}", facts.product.name, program.display())
        }
    };
    let folder = facts.folder.as_ref();
    let plugin = folder.map_or_else(|| "none".to_owned(), |it| it.path.display().to_string());
    [("client", client), ("plugin", plugin), ("loops", facts.home.root.display().to_string())]
}

/// The page as JSON for programs.
pub fn json(facts: &DoctorFacts, findings: &[Finding]) -> Value {
    let version = match &facts.client {
        ClientCheck::Present { version, .. } => Some(version.to_string()),
        _ => None,
    };
    json!({
        "schema": SCHEMA,
        "version": facts.version,
        "client_version": version,
        "plugin": facts.folder.as_ref().map(|folder| &folder.path),
        "home": facts.home.root,
        "broken": findings.iter().any(|finding| finding.severity == Severity::Broken),
        "findings": findings,
    })
}
