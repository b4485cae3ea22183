//! Finds out with one small job whether a cluster could run a fleet of the current repository. On
//! the node crew examines itself: it starts no agent, talks to no model, and of a key it finds out
//! only that there is one. The job changes nothing but a ref of the remote, which is deleted again.

use std::path::Path;
use std::time::Duration;

use anyhow::{Error, Result};
use minijinja::context;
use serde_json::json;

use super::{Findings, VERSION};
use crate::drive::failure::{failure_of, short_error};
use crate::drive::slurm::on_a_node;
use crate::drive::start::{agent, place, terms};
use engine::doctor::{Examination, NodeReport};
use engine::failure::Failure;
use engine::git::GitFault;
use engine::record::Agent;
use readers::agents::service::{Service, resolve_route};
use readers::agents::service_of;
use readers::parse::remote::without_secrets;
use readers::parse::settings::merge::Sourced;
use readers::parse::settings::merge::merge_layers;
use world::files::disk;
use world::git::remotes;
use world::process::Stop;
use world::store::Home;
use world::{env, git, host};

/// The longest that a connection to the agent's service may take.
const CONNECTS: Duration = Duration::from_secs(10);
/// The variable in which Slurm names the node.
const NODE: &str = "SLURMD_NODENAME";

/// Waits for a place in the cluster `executor` and returns what was found there. `stop` ends the
/// wait early.
pub fn examine_cluster(
    home: &Home,
    here: &Path,
    executor: &str,
    named: Option<&str>,
    stop: Stop<'_>,
) -> Result<Examination> {
    let agent = find_agent(home, here, named)?.name;
    let host = executor.strip_prefix("slurm:");
    // As for the jobs of a fleet: elsewhere PATH must lead to it.
    let crew = if host.is_some() { "crew".into() } else { env::program_path()? };
    let top = git::find_top(here);
    let remote = top.as_deref().and_then(remotes::remote_of).map(|(_, url)| url);
    let secret = remote.as_ref().is_some_and(|url| is_secret(url));
    let mut words = vec!["doctor", "--node", "--json", "--agent", &agent];
    if let (Some(url), false) = (&remote, secret) {
        words.extend(["--remote", url]);
    }
    let mut found = Findings::default();
    let report = match on_a_node(host, &crew, here, &words, stop, read_report) {
        Ok(report) => Some(report),
        Err(error) => {
            let Failure { text: why, hint, .. } = failure_of(&error);
            let cure = hint.unwrap_or_else(|| "sinfo shows the nodes".to_owned());
            found.add("cluster-silent", &context! { executor, why, cure });
            None
        }
    };
    let mut rows = vec![("cluster", executor.to_owned())];
    if let Some(report) = report {
        let NodeReport { node, version, .. } = &report;
        if version == VERSION {
            found.extend(report.findings);
        } else {
            // What another version reports may mean something else.
            found.add("node-crew-differs", &context! { node, version });
        }
        let remote = match &remote {
            None => "not tried: this repository has none".to_owned(),
            Some(_) if secret => {
                "not tried: its address holds a password, which all would see".to_owned()
            }
            Some(_) => report.remote,
        };
        rows.extend([
            ("node", report.node),
            ("agent", report.agent),
            ("model", report.model),
            ("remote", remote),
        ]);
    }
    let facts = rows.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    Ok(Examination { facts, rows, findings: found.into_sorted() })
}

/// Whether an address holds a secret: every user of a node sees the words of a command. The user
/// before the host of ssh is no secret.
fn is_secret(url: &str) -> bool {
    url.starts_with("http") && without_secrets(url) != url
}

/// The report in a line of output, among whatever a site prints beside it.
fn read_report(line: &str) -> Option<NodeReport> {
    let report: NodeReport = serde_json::from_slice(line.trim().as_bytes()).ok()?;
    (!report.node.is_empty() && !report.version.is_empty()).then_some(report)
}

/// The agent in force in `here`, or the named one.
fn find_agent(home: &Home, here: &Path, named: Option<&str>) -> Result<Agent> {
    let place = place::find_place(here, None);
    let checkout = place.as_ref().map_or(here, |place| &place.checkout);
    let mut layers = terms::load_settings(home, checkout, true)?.layers;
    if let Some(name) = named {
        layers.typed.values.insert("agent", Sourced::from_options(name.to_owned().into()));
    }
    agent::resolve_agent(&merge_layers(&layers, None).map_err(Error::msg)?, None)
}

/// Looks on this node for what a job with this agent and this remote needs.
pub fn report_node(
    home: &Home,
    here: &Path,
    named: Option<&str>,
    remote: Option<&str>,
    stop: Stop<'_>,
) -> NodeReport {
    let node = env::text(NODE)
        .or_else(|| host::this_host().map(|host| host.name))
        .unwrap_or_else(|| "the node".to_owned());
    let mut found = Findings::default();
    let agent = find_agent(home, here, named);
    let is_there = agent.as_ref().map(|agent| agent::has_program(agent, here));
    if let Err(error) | Ok(Err(error)) = is_there.as_ref().map_err(|error| *error) {
        found.add("node-agent-missing", &context! { node, error => short_error(error) });
    }
    let remote = try_git(here, &node, remote, stop, &mut found);
    let service = agent.as_ref().ok().and_then(|agent| Some((agent, service_of(&agent.dialect)?)));
    let model = service.and_then(|(agent, service)| try_service(agent, service, &node, &mut found));
    NodeReport {
        version: VERSION.to_owned(),
        agent: agent.map_or_else(|_| named.unwrap_or_default().to_owned(), |agent| agent.name),
        model: model.unwrap_or_else(|| {
            "not tried: crew does not know where this agent's model is".to_owned()
        }),
        remote: remote.to_owned(),
        findings: found.into_sorted(),
        node,
    }
}

/// Tries git, and the refs that a fleet would use in the remote.
fn try_git(
    here: &Path,
    node: &str,
    remote: Option<&str>,
    stop: Stop<'_>,
    found: &mut Findings,
) -> &'static str {
    if !git::can_run(here) {
        found.add("node-git-missing", &context! { node });
        return "not tried";
    }
    if let Err(GitFault { cause, cure, .. }) = remotes::check_identity() {
        found.add("node-identity-missing", &context! { node, cause, cure });
    }
    let Some(url) = remote else { return "not tried" };
    match remotes::remote_takes(url, "refs/crew/doctor/_probe", stop) {
        Ok(true) => "takes refs/crew/*",
        Ok(false) => {
            found.add("node-remote-refuses", &context! { node });
            "takes no ref"
        }
        Err(GitFault { cause, cure, .. }) => {
            found.add("node-remote-fails", &context! { node, cause, cure });
            "does not work"
        }
    }
}

/// Tries the route to the agent's model, and looks for a key; `None` where crew does not know it.
fn try_service(
    agent: &Agent,
    service: &Service,
    node: &str,
    found: &mut Findings,
) -> Option<String> {
    let variable = |name: &str| agent.environment.get(name).cloned().or_else(|| env::text(name));
    let Service { set_by, usual, elsewhere, keys, login } = service;
    if elsewhere.iter().any(|name| variable(name).is_some()) {
        return None;
    }
    let url = variable(set_by).unwrap_or_else(|| (*usual).to_owned());
    let (address, connected) = match resolve_route(&url, &variable) {
        Some((host, port)) => {
            let tried = host::connect_within(&host, port, CONNECTS);
            (format!("{host}:{port}"), tried.map_err(|error| error.to_string()))
        }
        None => ((*set_by).to_owned(), Err("it is not the address of a service".to_owned())),
    };
    if let Err(why) = &connected {
        found.add("node-network", &context! { node, address, why, set_by });
    }
    let login = login(&env::path);
    let has_login = login.as_ref().is_some_and(|file| disk::is_file(file));
    if !has_login && keys.iter().all(|name| variable(name).is_none()) {
        let mut keys: Vec<String> = keys.iter().map(|name| (*name).to_owned()).collect();
        keys.extend(login.map(|file| file.display().to_string()));
        found.add("node-key-missing", &context! { node, keys });
    }
    Some(format!("{address} {}", if connected.is_ok() { "connects" } else { "does not connect" }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_with_a_password_becomes_no_word_of_a_command() {
        for (url, expected) in [
            ("https://example.org/a.git", false),
            ("ssh://git@example.org/a.git", false),
            ("git@example.org:a.git", false),
            ("/srv/a.git", false),
            ("https://me:word@example.org/a.git", true),
            ("https://token@example.org/a.git", true),
        ] {
            assert_eq!(is_secret(url), expected, "{url}");
        }
    }

    #[test]
    fn a_report_is_a_line_of_json_with_a_node_and_a_version() {
        for (line, expected) in [
            (r#"{"node":"n1","version":"0.1.0"}"#, Some(("n1", "0.1.0"))),
            (r#"  {"node":"n1","version":"9.0.0","new":[1],"git":true} "#, Some(("n1", "9.0.0"))),
            (r#"{"node":"n1"}"#, None),
            (r#"{"version":"0.1.0"}"#, None),
            ("Welcome to the cluster", None),
            ("{}", None),
            ("[]", None),
        ] {
            let read = read_report(line);
            let read = read.as_ref().map(|report| (&*report.node, &*report.version));
            assert_eq!(read, expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in r#"[{}\[\]":,a-z0-9 ]{0,60}"#) {
            read_report(&line);
        }
    }
}
