//! Looks at this machine as a compute node for the jobs of a fleet. It starts no agent, talks to no
//! model, and of a key it finds out only that there is one.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::own::first_line;
use crate::agents::service::{Service, route};
use crate::agents::service_of;
use crate::drive::start::{agent, place, settings};
use crate::engine::doctor::node::{NodeFacts, NodeFault, RemoteCheck, ServiceCheck};
use crate::engine::fleet::Remote;
use crate::engine::git::GitFault;
use crate::engine::record::Agent;
use crate::engine::settings::merge::merge;
use crate::engine::settings::{Key, Sourced, Value, ValueOrigin};
use crate::world::files::disk;
use crate::world::git::probe::Probe;
use crate::world::process::Stop;
use crate::world::store::Home;
use crate::world::{env, git, host, network};

/// The longest that a connection to the agent's service may take.
const CONNECTS: Duration = Duration::from_secs(10);
/// The variable in which Slurm names the node.
const NODE: &str = "SLURMD_NODENAME";

/// The agent in force in `here`, or the named one.
pub fn agent(home: &Home, here: &Path, named: Option<&str>) -> Result<Agent> {
    let place = place::place(here, None);
    let checkout = place.as_ref().map_or(here, |place| &place.checkout);
    let mut layers = settings::look(home, checkout, true)?.layers;
    if let Some(name) = named {
        let value = Value::Text(name.to_owned());
        layers.typed.values.insert(Key::Agent, Sourced { value, origin: ValueOrigin::Typed });
    }
    agent::resolve(&merge(&layers, None), None)
}

/// Looks for what a job with this agent and this remote needs.
pub fn examine(
    home: &Home,
    here: &Path,
    named: Option<&str>,
    remote: Option<&str>,
    stop: Stop<'_>,
) -> NodeFacts {
    let named_by_system = || host::host().map(|host| host.name);
    let found = agent(home, here, named);
    let missing = match &found {
        Ok(agent) => agent::has_program(agent, here).err(),
        Err(_) => None,
    };
    let mut facts = NodeFacts {
        node: env::text(NODE).or_else(named_by_system).unwrap_or_else(|| "the node".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git: git::answers(here),
        agent_missing: missing.as_ref().or(found.as_ref().err()).map(first_line),
        service: found.as_ref().ok().and_then(the_service),
        agent: found.map_or_else(|_| named.unwrap_or_default().to_owned(), |agent| agent.name),
        ..NodeFacts::default()
    };
    if facts.git {
        match Probe::new() {
            Ok(probe) => {
                facts.nobody = probe.identity().err().map(fault);
                let tried = remote.map(|url| the_remote(&probe, url, stop));
                facts.remote = tried.unwrap_or_default();
            }
            Err(error) => facts.nobody = Some(fault(error)),
        }
    }
    facts
}

fn fault(fault: GitFault) -> NodeFault {
    NodeFault { what: fault.cause, fix: fault.cure }
}

/// Tries the refs that a fleet would use, in its order.
fn the_remote(probe: &Probe, url: &str, stop: Stop<'_>) -> RemoteCheck {
    let kinds = [(false, RemoteCheck::TakesRefs), (true, RemoteCheck::TakesBranches)];
    for (only_branches, found) in kinds {
        let remote = Remote { name: String::new(), url: url.to_owned(), only_branches };
        match probe.takes(url, &remote.lease("doctor", "_probe"), stop) {
            Ok(true) => return found,
            Ok(false) => {}
            Err(error) => return RemoteCheck::Failed(fault(error)),
        }
    }
    RemoteCheck::Refuses
}

fn the_service(agent: &Agent) -> Option<ServiceCheck> {
    let variable = |name: &str| agent.environment.get(name).cloned().or_else(|| env::text(name));
    let Service { set_by, usual, elsewhere, keys, login } = service_of(&agent.dialect)?;
    if elsewhere.iter().any(|name| variable(name).is_some()) {
        return None;
    }
    let url = variable(set_by).unwrap_or_else(|| (*usual).to_owned());
    let login = login(&env::path);
    let is_there = login.as_ref().is_some_and(|file| disk::is_file(file));
    let (address, unreachable) = match route(&url, &variable) {
        Some((host, port)) => {
            let failed = network::connects(&host, port, CONNECTS).err();
            (format!("{host}:{port}"), failed.map(|error| error.to_string()))
        }
        None => ((*set_by).to_owned(), Some("it is not the address of a service".to_owned())),
    };
    let mut keys: Vec<String> = keys.iter().map(|name| (*name).to_owned()).collect();
    let has_key = is_there || keys.iter().any(|name| variable(name).is_some());
    keys.extend(login.map(|file| file.display().to_string()));
    Some(ServiceCheck { address, set_by: (*set_by).to_owned(), unreachable, has_key, keys })
}
