//! What the user has to trust in a fleet: everything in its folder that names a program, widens a
//! limit or leaves this machine, word for word, and each prompt by its fingerprint.

use std::path::Path;

use super::front_matter::FLEET_FILE;
use super::options::FleetFile;
use crate::fleet::record::FleetTerms;
use crate::fleet::step::DescribedTask;
use engine::fleet::{FleetTask, INCLUDE, LandingMode, Remote};
use engine::git::GitSetting;
use engine::record::Check;
use engine::usage::Money;
use readers::parse::settings::merge::ValueOrigin;
use readers::parse::settings::trust::{TrustRequest, TrustSubject};

/// The number of characters of a hash that identify a changed setting.
const HASH_CHARS: usize = 8;

/// Lists all that needs trust, each item with its file. `known` are the terms of an earlier start.
pub(super) fn trust_requests(
    terms: &FleetTerms,
    file: &FleetFile,
    tasks: &[DescribedTask],
    known: Option<&FleetTerms>,
) -> Vec<TrustRequest> {
    let mut all =
        vec![trust_request(terms, FLEET_FILE, TrustSubject::Terms, &describe_terms(file))];
    for setting in changed_settings(terms, known) {
        let subject = TrustSubject::GitSetting(setting.name.clone());
        all.push(trust_request(terms, FLEET_FILE, subject, &changed_setting(setting)));
    }
    if let Some(run) = &terms.clones.setup {
        all.push(trust_request(terms, FLEET_FILE, TrustSubject::Setup, &format!("setup: {run}")));
    }
    for Check { run, .. } in &terms.land_checks {
        let text = format!("land check: {run}");
        all.push(trust_request(terms, FLEET_FILE, TrustSubject::LandCheck, &text));
    }
    if let Some(remote) = &terms.remote {
        let subject = TrustSubject::Push(remote.name.clone());
        all.push(trust_request(terms, FLEET_FILE, subject, &describe_pushes(terms, remote)));
    }
    if let Some(text) = &terms.clones.include {
        let text = format!("{INCLUDE}: {text}");
        all.push(trust_request(terms, FLEET_FILE, TrustSubject::Include, &text));
    }
    for task in tasks {
        let id = task.task.id.to_string();
        let file = format!("{id}.md");
        all.push(trust_request(terms, &file, TrustSubject::Task(id), &of_task(task)));
    }
    all
}

/// A trust request for something in this file of the fleet's folder.
fn trust_request(
    terms: &FleetTerms,
    file: &str,
    subject: TrustSubject,
    what: &str,
) -> TrustRequest {
    let origin = ValueOrigin::File { path: Path::new(&terms.folder).join(file), line: 1 };
    TrustRequest { subject, text: format!("[fleet {}] {what}", terms.name), origin }
}

/// Describes the terms in fleet.toml, so that removed checks, raised limits and files that landings
/// keep also need trust.
fn describe_terms(file: &FleetFile) -> String {
    let slots = file.slots.map_or("usual".to_owned(), |slots| slots.to_string());
    let cost =
        file.max_cost.map_or("none".to_owned(), |cost| Money::from_micros(cost.0).to_string());
    format!(
        "terms: slots {slots}, base {}, max-cost {cost}, land checks {}, landings keep {:?}",
        file.base.as_deref().unwrap_or("usual"),
        file.check.len(),
        file.keep
    )
}

/// Describes what has changed in git's settings since an earlier start.
pub fn planted_commands(terms: &FleetTerms, known: Option<&FleetTerms>) -> Vec<String> {
    changed_settings(terms, known).map(changed_setting).collect()
}

fn changed_settings<'a>(
    terms: &'a FleetTerms,
    known: Option<&'a FleetTerms>,
) -> impl Iterator<Item = &'a GitSetting> {
    let both =
        known.and_then(|known| known.clones.trusted.as_ref()).zip(terms.clones.trusted.as_ref());
    let changed = both.into_iter().flat_map(|(before, now)| now.changed_since(before));
    changed.filter(|setting| setting.names_a_program() || setting.leads_a_remote())
}

fn changed_setting(GitSetting { name, value }: &GitSetting) -> String {
    let which = value.get(..HASH_CHARS).unwrap_or(value);
    format!("git's setting {name} ({which}) changed since the fleet was started")
}

fn describe_pushes(terms: &FleetTerms, Remote { name, url }: &Remote) -> String {
    let main = match terms.landing {
        LandingMode::Main => format!(", and {}", terms.base),
        LandingMode::No | LandingMode::Pr => String::new(),
    };
    let fleet = &terms.name;
    format!("pushes to {name} ({url}): branches fleet/{fleet}/*, refs/crew/{fleet}/*{main}")
}

/// Describes a task by its options, word for word, and the fingerprint of its prompt.
fn of_task(task: &DescribedTask) -> String {
    let FleetTask { id, revision, words, .. } = &task.task;
    let mut text = format!("task {id}, fingerprint {revision}");
    if !words.is_empty() {
        text = format!("{text}: {}", words.join(", "));
    }
    if words.iter().any(|word| word.starts_with("verify = ") && word.contains("\"auto\"")) {
        let found = task.contract.checks.iter().map(|check| check.run.as_str());
        text = format!("{text} (auto: {})", found.collect::<Vec<_>>().join("; "));
    }
    text
}
