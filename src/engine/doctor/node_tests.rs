//! Each fault planted alone on a healthy node is the only one found, with its remedy.

use super::Severity;
use super::node::{
    ClusterFacts, NamedRemote, NodeFacts, NodeFault, RemoteCheck, ServiceCheck, cluster_findings,
};

fn healthy() -> NodeFacts {
    NodeFacts {
        node: "n1".to_owned(),
        version: "0.1.0".to_owned(),
        git: true,
        nobody: None,
        remote: RemoteCheck::TakesRefs,
        agent: "smith".to_owned(),
        agent_missing: None,
        service: Some(ServiceCheck {
            address: "api.example.com:443".to_owned(),
            set_by: "SMITH_URL".to_owned(),
            unreachable: None,
            has_key: true,
            keys: vec!["SMITH_KEY".to_owned(), "/home/me/.smith/login".to_owned()],
        }),
    }
}

fn fault(what: &str, fix: &str) -> NodeFault {
    NodeFault { what: what.to_owned(), fix: fix.to_owned() }
}

fn told(answer: Result<NodeFacts, NodeFault>) -> Vec<String> {
    let facts = ClusterFacts {
        engine: "slurm".to_owned(),
        version: "0.1.0".to_owned(),
        remote: NamedRemote::Url("/remote.git".to_owned()),
        answer,
    };
    let each = cluster_findings(&facts).into_iter();
    each.map(|it| format!("{} {}: {}\n  {}", it.severity.label(), it.code, it.what, it.fix))
        .collect()
}

#[test]
fn a_healthy_node_has_no_finding_and_neither_has_what_was_not_tried() {
    assert_eq!(told(Ok(healthy())), [""; 0]);
    for remote in [RemoteCheck::NotTried, RemoteCheck::TakesBranches] {
        assert_eq!(told(Ok(NodeFacts { remote, service: None, ..healthy() })), [""; 0]);
    }
}

#[test]
fn each_fault_of_a_node_is_found_alone_and_names_its_fix() {
    let faults: [fn(&mut NodeFacts); 9] = [
        |node| node.version = "0.2.0".to_owned(),
        |node| node.git = false,
        |node| {
            node.nobody = Some(fault("git does not know who commits", "git config user.name NAME"));
        },
        |node| node.remote = RemoteCheck::Refuses,
        |node| {
            node.remote = RemoteCheck::Failed(fault("no route to host", "see whether it answers"));
        },
        |node| node.agent_missing = Some("agent smith: there is no program `smith`".to_owned()),
        |node| {
            node.service.as_mut().unwrap().unreachable = Some("Connection refused".to_owned());
        },
        |node| node.service.as_mut().unwrap().has_key = false,
        // Nothing else that another version says is judged.
        |node| {
            node.version = "0.2.0".to_owned();
            node.git = false;
        },
    ];
    let found = faults.map(|plant| {
        let mut facts = healthy();
        plant(&mut facts);
        let told = told(Ok(facts));
        assert_eq!(told.len(), 1, "{told:#?}");
        told.concat()
    });
    insta::assert_snapshot!(found.join("\n"), @"
    broken node-crew-differs: n1 has crew 0.2.0, and this is crew 0.1.0
      install the same version in both places
    broken node-git-missing: n1: `git` does not answer, and each job clones and pushes
      install git on the nodes
    broken node-identity-missing: n1: git does not know who commits
      git config user.name NAME, for the nodes too
    broken node-remote-refuses: n1: the remote takes neither refs/crew/* nor branches crew/*
      have its rules let this account push one of them
    broken node-remote-fails: n1: the remote: no route to host
      see whether it answers
    broken node-agent-missing: n1: agent smith: there is no program `smith`
      install it on the nodes, or put its folder on the PATH of jobs; --agent NAME tries another
    broken node-network: n1: no way out to the agent's model at api.example.com:443: Connection refused
      run jobs where the nodes reach it, by SBATCH_PARTITION; or set HTTPS_PROXY or SMITH_URL
    warning node-key-missing: n1: the agent has no key that crew knows of: SMITH_KEY, /home/me/.smith/login
      set one where the job starts, or log in once on a home that the nodes share
    broken node-crew-differs: n1 has crew 0.2.0, and this is crew 0.1.0
      install the same version in both places
    ");
}

#[test]
fn a_cluster_without_a_report_is_one_finding_and_the_worst_of_many_comes_first() {
    let silent = told(Err(fault("Invalid partition name", "sinfo shows the nodes")));
    insta::assert_snapshot!(silent.join("\n"), @"
    broken cluster-silent: no job of slurm reported: Invalid partition name
      sinfo shows the nodes
    ");
    let mut facts = NodeFacts { agent_missing: Some("gone".to_owned()), ..healthy() };
    facts.service.as_mut().unwrap().has_key = false;
    let found = told(Ok(facts));
    let first = |label: Severity| found.iter().position(|it| it.starts_with(label.label()));
    assert_eq!((first(Severity::Broken), first(Severity::Warning)), (Some(0), Some(1)));
}

#[test]
fn a_report_read_again_is_the_same() {
    let mut facts = healthy();
    facts.remote = RemoteCheck::Failed(fault("a", "b"));
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<NodeFacts>(&text).unwrap(), facts);
}
