//! The doctor's page, for people and as JSON. It shows findings and makes none.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::events::SCHEMA;
use crate::engine::doctor::{Examination, Finding, Severity};
use crate::engine::text::count;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What was looked at, every finding with its fix, and a summary.
pub fn page(examined: &Examination) -> String {
    let mut text = format!("crew {VERSION}\n");
    for (name, value) in &examined.rows {
        let _ = writeln!(text, "  {name:<8} {value}");
    }
    for Finding { severity, what, fix, .. } in &examined.findings {
        let _ = write!(text, "\n{}: {what}\n  fix: {fix}\n", severity.label());
    }
    let number =
        |severity| examined.findings.iter().filter(|it| it.severity == severity).count() as u64;
    let broken = match number(Severity::Broken) {
        0 => "nothing is broken".to_owned(),
        broken => format!("{broken} broken"),
    };
    let warnings = match number(Severity::Warning) {
        0 => String::new(),
        warnings => format!(", {}", count(warnings, "warning")),
    };
    let _ = writeln!(text, "\n{broken}{warnings}");
    text
}

/// The page as JSON for programs.
pub fn json(examined: &Examination) -> Value {
    let mut json = json!({
        "schema": SCHEMA,
        "version": VERSION,
        "broken": examined.is_broken(),
        "findings": examined.findings,
    });
    if let (Some(json), Some(facts)) = (json.as_object_mut(), examined.facts.as_object()) {
        json.extend(facts.clone());
    }
    json
}

/// The line while nothing has been heard of a cluster.
pub fn waits(engine: &str, within: Duration) -> String {
    let minutes = count(within.as_secs() / 60, "minute");
    format!("crew: waiting for a place on {engine} and for the checks there, {minutes} at most")
}
