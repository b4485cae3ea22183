//! `crew doctor`: what keeps loops from running, with a fix for each. It looks and changes nothing.

use anyhow::Result;

use super::{any_home, print};
use crate::drive::doctor::{cluster, examine, node};
use crate::drive::fleet::engines::step::WITHIN;
use crate::engine::doctor::node::cluster_findings;
use crate::engine::doctor::{Finding, Severity, findings};
use crate::exit::Exit;
use crate::parse::arguments::{DoctorArgs, UsageError};
use crate::report::doctor as words;
use crate::world::env;
use crate::world::process::signals::Signals;
use crate::world::store::Home;

/// Examines this machine as seen from the current folder, or a node of a cluster.
pub fn doctor(arguments: &DoctorArgs) -> Result<Exit> {
    let home = any_home()?;
    let DoctorArgs { json, client, on, agent, node, remote } = arguments;
    if *node {
        return report(&home, agent.as_deref(), remote.as_deref());
    }
    if let Some(engine) = on {
        return ask(&home, engine, arguments);
    }
    if agent.is_some() {
        return Err(UsageError::new("--agent is for a cluster", "name it: --on slurm").into());
    }
    let facts = examine(&home, &env::current_folder()?, client.as_deref());
    let found = findings(&facts);
    if *json {
        print::json(&words::json(&facts, &found));
    } else {
        print::folded(&words::page(&facts, &found));
    }
    Ok(exit(&found))
}

/// Asks a node of a cluster.
fn ask(home: &Home, engine: &str, arguments: &DoctorArgs) -> Result<Exit> {
    let signals = Signals::listen()?;
    print::aside(&words::waits(engine, WITHIN));
    let (here, stop) = (env::current_folder()?, || signals.times() > 0);
    let facts = cluster::ask(home, &here, engine, arguments.agent.as_deref(), &stop)?;
    if let Some(code) = signals.exit_code() {
        return Ok(Exit::signalled(code));
    }
    let found = cluster_findings(&facts);
    if arguments.json {
        print::json(&words::cluster_json(&facts, &found));
    } else {
        print::folded(&words::cluster_page(&facts, &found));
    }
    Ok(exit(&found))
}

/// Reports on this machine as a node. Whoever asked judges it.
fn report(home: &Home, agent: Option<&str>, remote: Option<&str>) -> Result<Exit> {
    let signals = Signals::listen()?;
    let (here, stop) = (env::current_folder()?, || signals.times() > 0);
    let facts = node::examine(home, &here, agent, remote, &stop);
    print::json(&serde_json::to_value(facts)?);
    Ok(signals.exit_code().map_or(Exit::SUCCESS, Exit::signalled))
}

fn exit(found: &[Finding]) -> Exit {
    let broken = found.iter().any(|finding| finding.severity == Severity::Broken);
    if broken { Exit::ERROR } else { Exit::SUCCESS }
}
