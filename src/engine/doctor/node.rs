//! What a job of one CPU finds on a compute node of a cluster, and what follows for the loops of a
//! fleet there. It knows no agent by name: whatever spells one is handed in.

use serde::{Deserialize, Serialize};

use super::Finding;
use super::Severity::{Broken, Warning};
use super::rules::add;

/// A problem with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFault {
    /// A sentence fragment.
    pub what: String,
    pub fix: String,
}

/// What crew found on a node. Another version may leave fields out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeFacts {
    /// The name that Slurm or else the machine itself gives it.
    pub node: String,
    /// The version of crew there.
    pub version: String,
    /// Whether git can be run.
    pub git: bool,
    /// Why git does not know who commits.
    pub nobody: Option<NodeFault>,
    pub remote: RemoteCheck,
    /// The agent's name.
    pub agent: String,
    /// Why it cannot be started.
    pub agent_missing: Option<String>,
    /// The way to its model; `None` where crew does not know it.
    pub service: Option<ServiceCheck>,
}

/// What a remote does with the refs that a fleet keeps in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemoteCheck {
    /// No remote was named, or git cannot be run.
    #[default]
    NotTried,
    /// It takes refs of crew's own.
    TakesRefs,
    /// It takes branches only, which is enough.
    TakesBranches,
    /// It takes neither.
    Refuses,
    /// Nothing could be found out.
    Failed(NodeFault),
}

/// The way from a node to the model of its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceCheck {
    /// Host and port of what the agent connects to: its service, or a proxy.
    pub address: String,
    /// The variable that sets another address.
    pub set_by: String,
    /// Why no connection came about.
    pub unreachable: Option<String>,
    /// Whether there is a key. What it is was not looked at.
    pub has_key: bool,
    /// Where keys were looked for: names of variables and files.
    pub keys: Vec<String>,
}

/// The remote that a node is to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedRemote {
    /// The current repository has none, or there is no repository.
    Absent,
    /// Its address holds a password, and every user of a node sees the words of a command.
    Secret,
    Url(String),
}

/// A cluster as one job found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The engine as a person names it: `slurm`, `slurm:HOST`.
    pub engine: String,
    /// The version of the crew that asked.
    pub version: String,
    pub remote: NamedRemote,
    /// What the node reported, or why no job did.
    pub answer: Result<NodeFacts, NodeFault>,
}

/// All findings about a cluster, the worst first.
pub fn cluster_findings(facts: &ClusterFacts) -> Vec<Finding> {
    let mut all = Vec::new();
    match &facts.answer {
        Err(NodeFault { what, fix }) => {
            let what = format!("no job of {} reported: {what}", facts.engine);
            add(&mut all, "cluster-silent", Broken, what, fix.clone());
        }
        // What another version says may mean something else.
        Ok(node) if node.version != facts.version => {
            let NodeFacts { node, version: theirs, .. } = node;
            let what = format!("{node} has crew {theirs}, and this is crew {}", facts.version);
            let fix = "install the same version in both places";
            add(&mut all, "node-crew-differs", Broken, what, fix.to_owned());
        }
        Ok(node) => {
            for (code, what, fix) in git(node).into_iter().chain(agent(node)) {
                let severity = if code == "node-key-missing" { Warning } else { Broken };
                add(&mut all, code, severity, format!("{}: {what}", node.node), fix);
            }
        }
    }
    all.sort_by_key(|finding| finding.severity);
    all
}

type NodeFinding = (&'static str, String, String);

fn git(node: &NodeFacts) -> Vec<NodeFinding> {
    if !node.git {
        let what = "`git` does not answer, and each job clones and pushes".to_owned();
        return vec![("node-git-missing", what, "install git on the nodes".to_owned())];
    }
    let mut all = Vec::new();
    if let Some(NodeFault { what, fix }) = &node.nobody {
        all.push(("node-identity-missing", what.clone(), format!("{fix}, for the nodes too")));
    }
    match &node.remote {
        RemoteCheck::Failed(NodeFault { what, fix }) => {
            all.push(("node-remote-fails", format!("the remote: {what}"), fix.clone()));
        }
        RemoteCheck::Refuses => {
            let what = "the remote takes neither refs/crew/* nor branches crew/*".to_owned();
            let fix = "have its rules let this account push one of them".to_owned();
            all.push(("node-remote-refuses", what, fix));
        }
        RemoteCheck::NotTried | RemoteCheck::TakesRefs | RemoteCheck::TakesBranches => {}
    }
    all
}

fn agent(node: &NodeFacts) -> Vec<NodeFinding> {
    let mut all = Vec::new();
    if let Some(what) = &node.agent_missing {
        let fix = "install it on the nodes, or put its folder on the PATH of jobs; \
                   --agent NAME tries another";
        all.push(("node-agent-missing", what.clone(), fix.to_owned()));
    }
    let Some(service) = &node.service else { return all };
    let ServiceCheck { address, set_by, unreachable, has_key, keys } = service;
    if let Some(why) = unreachable {
        let what = format!("no way out to the agent's model at {address}: {why}");
        let fix = format!(
            "run jobs where the nodes reach it, by SBATCH_PARTITION; or set HTTPS_PROXY or {set_by}"
        );
        all.push(("node-network", what, fix));
    }
    if !has_key {
        let what = format!("the agent has no key that crew knows of: {}", keys.join(", "));
        let fix = "set one where the job starts, or log in once on a home that the nodes share";
        all.push(("node-key-missing", what, fix.to_owned()));
    }
    all
}
