//! Slurm, for real: a private cluster for each test. The tests of this file test Slurm itself, with
//! a script in place of crew: the behaviour that crew relies on, seen through Slurm's own commands.
//! Without Slurm or root a test reports that and passes, unless `CREW_REQUIRE_SLURM=1`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::client::say;
use crate::sandbox::{DEADLINE, Sandbox, poll_until, write_executable};
use crate::spawned::Running;

mod cluster;
mod doctor;
mod fleets;
mod processes;
pub(crate) mod sshd;

pub(crate) use cluster::Cluster;
pub(crate) use sshd::Sshd;

/// Runs a scenario in its own cluster, which all children of its sandbox use.
pub(crate) fn with_cluster(scenario: impl FnOnce(&Sandbox, &mut Cluster)) {
    if is_skipped(cluster::missing().or_else(sshd::missing)) {
        return;
    }
    let mut sandbox = Sandbox::new();
    let mut cluster = Cluster::start(&sandbox);
    for (name, value) in cluster.env() {
        sandbox = sandbox.env(name, &value);
    }
    scenario(&sandbox, &mut cluster);
}

/// Whether a scenario lacks something: then it is skipped with a message, unless it is required.
pub(crate) fn is_skipped(missing: Option<String>) -> bool {
    let Some(reason) = missing else { return false };
    let is_required = std::env::var("CREW_REQUIRE_SLURM").as_deref() == Ok("1");
    assert!(!is_required, "CREW_REQUIRE_SLURM=1, but {reason}");
    say(&format!("skipped: {reason}"));
    true
}

/// In place of crew, with the name of a task for its spec: one that is a number exits with it.
/// `patient` works until it gets TERM and exits with 14 as a cancelled loop does; `rash` dies of
/// TERM as a shell reports it. Where each task began, and each moment of work, is a line of the
/// file `events`.
const CREW: &str = r#"#!/bin/sh
cd "${0%/*}"
tell() { echo "$* $SLURMD_NODENAME" >> events; }
[ "$*" = "fleet attempt -" ] || exit 99
read -r task
tell began "$task"
case $task in
    patient) trap 'tell asked "$task"; exit 14' TERM ;;
    rash) trap 'exit 143' TERM ;;
    *) exit "$task" ;;
esac
while :; do
    tell works "$task"
    sleep 0.1
done
"#;

/// Submits an attempt at a task with the arguments and the batch script of crew, written once more,
/// because Slurm is tested here.
fn submit(sandbox: &Sandbox, task: &str) -> u64 {
    let folder = sandbox.root().display().to_string();
    write_executable(&sandbox.root().join("crew"), CREW);
    let script = format!(
        "cd -- / || exit 1\nexec {folder}/crew fleet attempt - <<'SPEC_OF_CREW'\n{task}\nSPEC_OF_CREW\n"
    );
    let submission = format!(
        "mask=$(umask) && umask 077 && {{ printf '#!/bin/sh\\numask %s\\n' \"$mask\"; cat; }} | \
         sbatch --parsable --job-name=crew/night/{task}/1 --requeue --open-mode=append \
         --signal=B:TERM@60 -o {folder}/%j.log"
    );
    let mut command = sandbox.command("sh");
    command.args(["-c", &submission]);
    let printed = Running::start(command, Some(script.into_bytes())).wait(DEADLINE).success();
    printed.trim().parse().unwrap()
}

/// How many lines of the tasks' events begin like this.
fn events(sandbox: &Sandbox, words: &str) -> usize {
    let text = fs::read_to_string(sandbox.root().join("events")).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(words)).count()
}

/// Waits until a job works on a node, and returns the node.
#[track_caller]
fn node_of(cluster: &Cluster, sandbox: &Sandbox, id: u64, task: &str) -> String {
    let node = cluster.poll_job(id, "runs", |job| job.state == "RUNNING").node;
    let works = format!("works {task} {node}");
    poll_until(&works, || events(sandbox, &works) > 0);
    node
}

/// Waits until a job runs for the second time, on another node, and returns that node.
#[track_caller]
fn begins_again(cluster: &Cluster, id: u64, elsewhere: &str) -> String {
    let is_again =
        |job: &cluster::Job| job.state == "RUNNING" && job.restarts == 1 && job.node != elsewhere;
    cluster.poll_job(id, "runs again", is_again).node
}

/// Waits until a task does further work on a node.
#[track_caller]
fn goes_on(sandbox: &Sandbox, task: &str, node: &str) {
    let works = format!("works {task} {node}");
    let before = events(sandbox, &works);
    poll_until(&format!("{works} goes on"), || events(sandbox, &works) > before + 2);
}

#[test]
fn a_cluster_of_two_nodes_runs_a_program_on_each() {
    with_cluster(|_, cluster| {
        assert_eq!(cluster.run("srun", &["true"]), "");
        let shown = cluster.run("srun", &["-N2", "printenv", "SLURMD_NODENAME"]);
        assert!(shown == "n1\nn2\n" || shown == "n2\nn1\n", "{shown}");
    });
}

#[test]
fn twenty_jobs_end_with_the_exit_codes_of_crew() {
    with_cluster(|sandbox, cluster| {
        let codes = ["0", "10", "11", "13", "14"].repeat(4);
        let expected: BTreeMap<u64, String> =
            codes.into_iter().map(|code| (submit(sandbox, code), format!("{code}:0"))).collect();
        poll_until("all jobs have ended", || {
            let jobs = cluster.jobs();
            let ended = jobs.iter().filter(|job| ["COMPLETED", "FAILED"].contains(&&*job.state));
            ended.count() == expected.len()
        });
        let ended: BTreeMap<u64, String> =
            cluster.jobs().into_iter().map(|job| (job.id, job.exit)).collect();
        assert_eq!(ended, expected);
    });
}

#[test]
fn a_cancel_and_a_signal_to_the_batch_script_reach_it_as_term_and_its_exit_code_stays() {
    with_cluster(|sandbox, cluster| {
        let [patient, rash, limited] = ["patient", "rash", "patient"].map(|task| {
            let id = submit(sandbox, task);
            node_of(cluster, sandbox, id, task);
            id.to_string()
        });
        let ended = |id: &str, state: &str| {
            let job = cluster.poll_job(id.parse().unwrap(), state, |job| job.state == state);
            job.exit
        };
        cluster.run("scancel", &[&patient, &rash]);
        assert_eq!(ended(&patient, "CANCELLED"), "14:0");
        assert_eq!(ended(&rash, "CANCELLED"), "143:0");
        assert_eq!(events(sandbox, "asked patient"), 1);
        // As --signal=B:TERM@60 sends it before the limit: only the script gets it.
        cluster.run("scancel", &["--batch", "--signal=TERM", &limited]);
        assert_eq!(ended(&limited, "FAILED"), "14:0");
    });
}

#[test]
fn jobs_survive_a_killed_controller_and_the_next_one_knows_them() {
    with_cluster(|sandbox, cluster| {
        let id = submit(sandbox, "patient");
        let node = node_of(cluster, sandbox, id, "patient");
        cluster.poll_saved(id);
        cluster.kill_controller();
        goes_on(sandbox, "patient", &node);
        assert_eq!(cluster.jobs(), []);
        cluster.start_controller();
        let known = cluster.poll_job(id, "is known", |job| job.state == "RUNNING");
        assert_eq!((known.restarts, &*known.name), (0, "crew/night/patient/1"));
        goes_on(sandbox, "patient", &node);
        assert_eq!(events(sandbox, "began patient"), 1);
    });
}

#[test]
fn a_job_of_a_lost_node_restarts_on_the_other_one() {
    with_cluster(|sandbox, cluster| {
        let id = submit(sandbox, "patient");
        let lost = node_of(cluster, sandbox, id, "patient");
        cluster.lose(&lost);
        let works = events(sandbox, &format!("works patient {lost}"));
        let again = begins_again(cluster, id, &lost);
        goes_on(sandbox, "patient", &again);
        assert_eq!(events(sandbox, &format!("works patient {lost}")), works);
        assert_eq!(events(sandbox, "began patient"), 2);
        cluster.start_node(&lost);
        let up = ["-h", "-N", "-n", &lost, "-t", "idle", "-o", "%N"];
        poll_until("the node is back", || cluster.run("sinfo", &up).trim() == lost);
    });
}

#[test]
fn a_job_of_a_node_that_only_seems_lost_runs_twice_at_once() {
    with_cluster(|sandbox, cluster| {
        let id = submit(sandbox, "patient");
        let hidden = node_of(cluster, sandbox, id, "patient");
        cluster.lose_falsely(&hidden);
        let again = begins_again(cluster, id, &hidden);
        goes_on(sandbox, "patient", &hidden);
        goes_on(sandbox, "patient", &again);
        // The step daemon and the job of a node without its daemon are found all the same.
        cluster.lose(&hidden);
        let works = events(sandbox, &format!("works patient {hidden}"));
        goes_on(sandbox, "patient", &again);
        assert_eq!(events(sandbox, &format!("works patient {hidden}")), works);
    });
}

#[test]
fn a_login_node_accepts_jobs_over_ssh_and_its_login_shell_finds_crew() {
    with_cluster(|sandbox, cluster| {
        let login = Sshd::start(sandbox, &cluster.env());
        write_executable(&login.home().join("bin/crew"), CREW);
        let mut command = sandbox.command("ssh");
        command.env_remove("SLURM_CONF");
        let submit = "exec bash -lc 'umask 077 && mkdir -p -- logs && exec sbatch --parsable -o logs/%j.log'";
        command.args(["-o", "BatchMode=yes", "--", "login", submit]);
        let script = b"#!/bin/sh\nexec crew fleet attempt - <<'S'\n11\nS\n".to_vec();
        let shown = Running::start(command, Some(script)).wait(DEADLINE).success();
        let id: u64 = shown.trim().parse().unwrap();
        let ended = cluster.poll_job(id, "ended", |job| job.state == "FAILED");
        assert_eq!(ended.exit, "11:0");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let logs = login.home().join("logs");
        assert_eq!((mode(&logs), mode(&logs.join(format!("{id}.log")))), (0o700, 0o600));
    });
}
