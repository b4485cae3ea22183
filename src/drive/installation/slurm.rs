//! Finds out with one small job whether a cluster could run a fleet of the current repository. On
//! the node, crew examines itself: it starts no agent, contacts no model, and only checks whether a
//! key exists. The job changes nothing but a ref of the remote, which is deleted again.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Error, Result};
use minijinja::context;
use serde_json::json;

use super::doctor::{Findings, VERSION};
use crate::drive::failure::{failure_of, short_error};
use crate::drive::start::{agent, terms};
use crate::drive::tree::place;
use engine::doctor::{Examination, NodeReport};
use engine::failure::Failure;
use engine::git::GitFault;
use engine::record::Agent;
use engine::refuse;
use engine::text::text_start;
use readers::agents::service::{Service, resolve_route};
use readers::agents::service_of;
use readers::parse::remote::without_secrets;
use readers::parse::settings::merge::{Sourced, merge_layers};
use world::files::disk;
use world::git::{self, remotes};
use world::process::{Call, ExitCause, FinishedProcess, Stop};
use world::store::Home;
use world::{env, host};

/// The longest time that a connection to the agent's service may take.
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
    let report = match report_from_node(host, &crew, here, &words, stop) {
        Ok(report) => Some(report),
        Err(error) => {
            let Failure { text: why, hint, .. } = failure_of(&error);
            let hint = hint.unwrap_or_else(|| "sinfo shows the nodes".to_owned());
            found.add("cluster-silent", &context! { executor, why, hint });
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
                "not tried: its address contains a password, which every user would see".to_owned()
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

/// Whether an address contains a secret: every user of a node can see the arguments of a command.
/// The user before the host of ssh is not a secret.
fn is_secret(url: &str) -> bool {
    url.starts_with("http") && without_secrets(url) != url
}

/// The report in a line of output, among the lines that a site prints.
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

/// Checks on this node what a job with this agent and this remote needs.
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
    let is_there = agent.as_ref().map(|agent| agent::require_program(agent, here));
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
    if let Err(GitFault { cause, hint, .. }) = remotes::check_identity() {
        found.add("node-identity-missing", &context! { node, cause, hint });
    }
    let Some(url) = remote else { return "not tried" };
    match remotes::remote_takes(url, "refs/crew/doctor/_probe", stop) {
        Ok(true) => "accepts refs/crew/*",
        Ok(false) => {
            found.add("node-remote-refuses", &context! { node });
            "accepts no ref"
        }
        Err(GitFault { cause, hint, .. }) => {
            found.add("node-remote-fails", &context! { node, cause, hint });
            "does not work"
        }
    }
}

/// Tries the route to the agent's model, and searches for a key; `None` if crew does not know the
/// route.
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

// Runs Slurm's commands: here, or on a login node by ssh. It does not interpret what they print.
// The environment reaches a job as sbatch and srun export it by default; no secret is ever a word
// of a command, because every user of a machine sees those.

/// The longest time that the wait for a place in the cluster and the run itself may take together.
pub const STEP_WITHIN: Duration = Duration::from_secs(10 * 60);
/// The maximum number of characters kept of a failed command's last line.
const CAUSE_CHARS: usize = 300;
/// A prefix for a command with the same terms as a job: sbatch reads a site's terms from SBATCH_*,
/// and srun reads the same from SLURM_*.
const SAME_TERMS: &str = "for term in ACCOUNT CONSTRAINT PARTITION QOS RESERVATION; do \
    eval \"[ -z \\\"\\$SBATCH_$term\\\" ] || export SLURM_$term=\\\"\\$SBATCH_$term\\\"\"; done; ";

/// Quotes one word of a shell command.
pub fn quote_word(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

/// A command of the shell, on a login node or in `folder` here.
pub fn slurm_call<'a>(host: Option<&str>, command: &str, folder: &Path) -> Call<'a> {
    let words = shell_words(host, command);
    Call::of(&words[0], folder).args(&words[1..])
}

/// Runs a client command until it exits. An error has the last line that it printed, and a hint.
pub fn run_call(call: Call<'_>, host: Option<&str>, stop: Stop<'_>) -> Result<()> {
    let ended = finish_call(call, host, stop)?;
    if ended.cause() == ExitCause::Exit(0) {
        return Ok(());
    }
    let cause = last_words(&ended);
    Err(Failure::new(cause, hint_after(ended.cause(), host)).into())
}

fn finish_call(call: Call<'_>, host: Option<&str>, stop: Stop<'_>) -> Result<FinishedProcess> {
    let shell = if host.is_some() { "ssh" } else { "sh" };
    call.run(stop).with_context(|| format!("cannot start {shell}"))
}

/// The words that run a shell command here or on a login node. A login node needs a login shell:
/// only its PATH has Slurm's commands, and usually crew.
fn shell_words(host: Option<&str>, command: &str) -> Vec<String> {
    let Some(host) = host else { return ["sh", "-c", command].map(str::to_owned).into() };
    let remote = format!("exec bash -lc {}", quote_word(command));
    ["ssh", "-o", "BatchMode=yes", "--", host, &remote].map(str::to_owned).into()
}

/// The reason of a failed command: the last line that it printed.
fn last_words(ended: &FinishedProcess) -> String {
    let text = ended.text();
    // srun ends with how its task ended; the cause is the line before.
    let mut lines = text.lines().map(str::trim);
    let last = lines.rfind(|line| !line.is_empty() && !line.contains(": task 0: "));
    match (ended.cause(), last) {
        (ExitCause::Exit(_), Some(line)) => text_start(line, CAUSE_CHARS).to_owned(),
        (cause, _) => cause.to_string(),
    }
}

fn hint_after(cause: ExitCause, host: Option<&str>) -> String {
    match (cause, host) {
        (ExitCause::Exit(255), Some(host)) => {
            format!("make `ssh {host} true` work without a question")
        }
        (ExitCause::Exit(127), Some(host)) => {
            format!("put Slurm's commands on the PATH of the login shell of {host}")
        }
        (ExitCause::Exit(127), None) => {
            "install Slurm's commands, or name a login node: --on slurm:HOST".to_owned()
        }
        _ => "squeue --me shows whether Slurm answers".to_owned(),
    }
}

/// Runs crew with these words, which every user sees, on a node, and returns the last report in its
/// output. `crew` is a path on the nodes, or a name on the PATH of the login shell. It starts in
/// `folder` if Slurm's commands are here and the node has that folder.
fn report_from_node(
    host: Option<&str>,
    crew: &Path,
    folder: &Path,
    words: &[&str],
    stop: Stop<'_>,
) -> Result<NodeReport> {
    let mut found = None;
    let mut each = |line: &str| found = read_report(line).or_else(|| found.take());
    let call = slurm_call(host, &job_step(crew, words), folder).within(STEP_WITHIN).input(&[]);
    let ended = finish_call(call.each_line(&mut each), host, stop)?;
    let crew = crew.display();
    if ended.cause() != ExitCause::Exit(0) {
        let cause = last_words(&ended);
        // What the node's own daemon prints when the program is not there.
        let hint = if cause.contains("execve()") {
            format!("install crew on the nodes, as {crew}")
        } else {
            hint_after(ended.cause(), host)
        };
        refuse!(cause, hint);
    }
    let hint = format!("look at srun -n1 {crew} --version");
    found.ok_or_else(|| Failure::new("its output has no report", hint).into())
}

fn job_step(crew: &Path, words: &[&str]) -> String {
    let crew = crew.display().to_string();
    let words = shell_words::join([&[crew.as_str()], words].concat());
    format!("{SAME_TERMS}exec srun -n1 -c1 --quiet --job-name=crew/doctor {words}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_with_a_password_never_appears_in_a_command() {
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
        fn no_line_makes_the_report_reader_panic(line in r#"[{}\[\]":,a-z0-9 ]{0,60}"#) {
            read_report(&line);
        }
    }

    #[test]
    fn a_job_step_has_the_terms_of_a_batch_job_and_every_word_quoted() {
        insta::assert_snapshot!(job_step(Path::new("/opt/crew"), &["doctor", "--agent=it's"]), @r#"for term in ACCOUNT CONSTRAINT PARTITION QOS RESERVATION; do eval "[ -z \"\$SBATCH_$term\" ] || export SLURM_$term=\"\$SBATCH_$term\""; done; exec srun -n1 -c1 --quiet --job-name=crew/doctor /opt/crew doctor '--agent=it'\''s'"#);
    }

    #[test]
    fn a_command_goes_to_a_shell_here_or_to_a_login_shell_there() {
        let command = "mkdir -p -- 'a b' && exec true";
        assert_eq!(shell_words(None, command), ["sh", "-c", command]);
        let there = shell_words(Some("login.example"), command);
        assert_eq!(there[..5], ["ssh", "-o", "BatchMode=yes", "--", "login.example"]);
        assert_eq!(there[5..], [r"exec bash -lc 'mkdir -p -- '\''a b'\'' && exec true'"]);
    }

    #[test]
    fn a_failed_command_says_why_and_what_to_do() {
        let no_controller =
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n";
        let table = [
            (ExitCause::Exit(1), None, no_controller),
            (ExitCause::TimedOut, None, "Welcome\n"),
            (ExitCause::Exit(127), None, "sh: 1: exec: sbatch: not found\n"),
            (ExitCause::Exit(127), Some("login"), "bash: line 1: exec: sbatch: not found\n\n"),
            (ExitCause::Exit(255), Some("login"), "a@login: Permission denied (publickey).\n"),
            (ExitCause::Exit(1), None, ""),
        ];
        let failures = table.map(|(cause, host, output)| {
            let ended = FinishedProcess::with_output(cause, output);
            Failure::new(last_words(&ended), hint_after(cause, host)).with_hint()
        });
        insta::assert_snapshot!(failures.join("\n\n"), @r"
        slurm_load_jobs error: Unable to contact slurm controller (connect failure)
        hint: squeue --me shows whether Slurm answers

        it took too long
        hint: squeue --me shows whether Slurm answers

        sh: 1: exec: sbatch: not found
        hint: install Slurm's commands, or name a login node: --on slurm:HOST

        bash: line 1: exec: sbatch: not found
        hint: put Slurm's commands on the PATH of the login shell of login

        a@login: Permission denied (publickey).
        hint: make `ssh login true` work without a question

        exit 1
        hint: squeue --me shows whether Slurm answers
        ");
    }
}
