//! The doctor's page, for people and as JSON. It shows findings and makes none.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::json::SCHEMA;
use crate::engine::doctor::node::{ClusterFacts, NamedRemote, NodeFacts, RemoteCheck};
use crate::engine::doctor::{ClientCheck, DoctorFacts, Finding, Severity};
use crate::engine::text::count;

/// What was checked, every finding with its fix, and a summary.
pub fn page(facts: &DoctorFacts, findings: &[Finding]) -> String {
    told(&facts.version, &looked_at(facts), findings)
}

fn told(version: &str, looked_at: &[(&str, String)], findings: &[Finding]) -> String {
    let mut text = format!("crew {version}\n");
    for (name, value) in looked_at {
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
        "broken": is_broken(findings),
        "findings": findings,
    })
}

fn is_broken(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Broken)
}

/// The line while nothing has been heard of a cluster.
pub fn waits(engine: &str, within: Duration) -> String {
    let minutes = count(within.as_secs() / 60, "minute");
    format!("crew: waiting for a place on {engine} and for the checks there, {minutes} at most")
}

/// What one job tried on a node of a cluster, every finding with its fix, and a summary.
pub fn cluster_page(facts: &ClusterFacts, findings: &[Finding]) -> String {
    let mut lines = vec![("cluster", facts.engine.clone())];
    if let Ok(node) = &facts.answer {
        lines.extend([
            ("node", node.node.clone()),
            ("agent", node.agent.clone()),
            ("model", model(node)),
            ("remote", remote(facts, node).to_owned()),
        ]);
    }
    told(&facts.version, &lines, findings)
}

fn model(node: &NodeFacts) -> String {
    match &node.service {
        None => "not tried: crew does not know where this agent's model is".to_owned(),
        Some(service) if service.unreachable.is_some() => {
            format!("{} does not connect", service.address)
        }
        Some(service) => format!("{} connects", service.address),
    }
}

fn remote(facts: &ClusterFacts, node: &NodeFacts) -> &'static str {
    match (&facts.remote, &node.remote) {
        (NamedRemote::Absent, _) => "not tried: this repository has none",
        (NamedRemote::Secret, _) => "not tried: its address holds a password, which all would see",
        (NamedRemote::Url(_), RemoteCheck::NotTried) => "not tried",
        (NamedRemote::Url(_), RemoteCheck::TakesRefs) => "takes refs/crew/*",
        (NamedRemote::Url(_), RemoteCheck::TakesBranches) => "takes branches crew/* only",
        (NamedRemote::Url(_), RemoteCheck::Refuses) => "takes no ref",
        (NamedRemote::Url(_), RemoteCheck::Failed(_)) => "does not work",
    }
}

/// The same as JSON for programs.
pub fn cluster_json(facts: &ClusterFacts, findings: &[Finding]) -> Value {
    let node = facts.answer.as_ref().ok();
    json!({
        "schema": SCHEMA,
        "version": facts.version,
        "cluster": facts.engine,
        "node": node.map(|node| &node.node),
        "agent": node.map(|node| &node.agent),
        "model": node.and_then(|node| Some(&node.service.as_ref()?.address)),
        "remote": node.map(|node| remote(facts, node)),
        "broken": is_broken(findings),
        "findings": findings,
    })
}
