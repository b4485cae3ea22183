//! A private Slurm of two nodes on loopback, in the folder of a test: its own key, ports, settings
//! and processes. It needs Slurm's programs and root, and starts no system service.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::processes::{Daemon, end, with};
use crate::client::say;
use crate::sandbox::{DEADLINE, Sandbox, poll_until, poll_within};
use crate::spawned::Running;

const NODES: [&str; 2] = ["n1", "n2"];
/// The required programs, besides the system's own folders for programs.
const PROGRAMS: [&str; 8] =
    ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long a job may take to reach a state: a node is considered lost after 20 s, and then its
/// jobs are held back for ten more.
const JOB: Duration = Duration::from_secs(120);

/// A cluster. Dropping it ends all of its processes, and those of its jobs.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    controller: Option<Daemon>,
    nodes: BTreeMap<&'static str, Daemon>,
    _munge: Daemon,
}

/// A job as the controller knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// The state in Slurm's word, such as `RUNNING`.
    pub(crate) state: String,
    /// The exit code and signal, such as `11:0`.
    pub(crate) exit: String,
    pub(crate) restarts: u32,
    /// The node; empty while the job waits.
    pub(crate) node: String,
}

/// Why no cluster is possible here.
pub(super) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("a private Slurm needs root".to_owned());
    }
    let missing = PROGRAMS.into_iter().find(|name| program(name).is_none())?;
    Some(format!("Slurm is not installed: there is no {missing}"))
}

/// The path of a program of this machine.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    std::env::split_paths(PATH).map(|folder| folder.join(name)).find(|file| file.is_file())
}

impl Cluster {
    /// A cluster in a folder of the sandbox, both of its nodes idle.
    pub(super) fn start(sandbox: &Sandbox) -> Self {
        let folder = sandbox.root().join("slurm");
        for name in ["munge", "state", "n1", "n2"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("slurm.conf"), settings(&folder)).unwrap();
        let munge = munge(&folder.join("munge"));
        let nodes = BTreeMap::new();
        let mut cluster = Self { folder, controller: None, nodes, _munge: munge };
        cluster.start_controller();
        for node in NODES {
            cluster.start_node(node);
        }
        let idle = ["-h", "-N", "-t", "idle", "-o", "%N"];
        poll_until("both nodes are idle", || {
            cluster.asked("sinfo", &idle).is_some_and(|shown| shown.lines().eq(NODES))
        });
        cluster
    }

    /// The variables by which Slurm's commands find this cluster: for crew and all below it.
    pub(crate) fn env(&self) -> [(&'static str, String); 1] {
        [("SLURM_CONF", self.folder.join("slurm.conf").display().to_string())]
    }

    /// A program with these variables and the system's PATH, and nothing else.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self::program(program).unwrap());
        command.env_clear().env("PATH", PATH).envs(self.env()).current_dir(&self.folder);
        command.args(arguments);
        command
    }

    /// The output of a command that succeeds.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        Running::start(self.command(program, arguments), None).wait(DEADLINE).success()
    }

    /// The output of a command; `None` if it fails, as without a controller.
    fn asked(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let ran = Running::start(self.command(program, arguments), None).wait(DEADLINE);
        ran.status.success().then_some(ran.stdout)
    }

    /// Prints what a failed test had waited for.
    fn report(&self) {
        let logs = NODES.map(|node| log(&self.folder, node));
        for log in logs.into_iter().chain([self.folder.join("controller.log")]) {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let last = &lines[lines.len().saturating_sub(20)..];
            say(&format!("{}:\n{}", log.display(), last.join("\n")));
        }
        say(&format!("{:#?}", self.jobs()));
    }

    /// Every job since the cluster came up, the oldest first. Empty without a controller.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        let shown = self.asked("scontrol", &["-o", "show", "job"]).unwrap_or_default();
        let mut jobs: Vec<Job> = shown.lines().filter_map(job).collect();
        jobs.sort_by_key(|job| job.id);
        jobs
    }

    /// Waits until a job is as `expected` says.
    #[track_caller]
    pub(crate) fn poll_job(&self, id: u64, words: &str, expected: impl Fn(&Job) -> bool) -> Job {
        let mut found = None;
        poll_within(JOB, &format!("job {id} {words}"), || {
            found = self.jobs().into_iter().find(|job| job.id == id && expected(job));
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits until the controller has saved what it knows of a job: it does so every few seconds.
    #[track_caller]
    pub(crate) fn poll_saved(&self, id: u64) {
        let state = self.folder.join("state/job_state");
        let saved = || fs::metadata(&state).and_then(|file| file.modified()).ok();
        let before = saved();
        // Without a change there would be nothing to save.
        self.run("scontrol", &["update", &format!("jobid={id}"), "comment=saved"]);
        poll_until("the state is saved", || saved() > before);
    }

    /// Waits until the node of a job has passed on that it is cancelled.
    #[track_caller]
    pub(crate) fn poll_cancelled(&self, id: u64) {
        let line = format!("*** JOB {id} ON ");
        let shown = |node| fs::read_to_string(log(&self.folder, node)).unwrap_or_default();
        poll_until("the node is told", || NODES.iter().any(|node| shown(node).contains(&line)));
    }

    /// Kills the controller with -9; nodes and jobs continue. What it has not saved is lost: the
    /// next one ends a job that it knows as waiting, and starts it again without counting a
    /// restart.
    pub(crate) fn kill_controller(&mut self) {
        self.controller = None;
    }

    /// Starts a controller that uses what the previous one has saved.
    pub(crate) fn start_controller(&mut self) {
        self.controller = Some(Daemon::start(self.command("slurmctld", &["-D"])));
    }

    /// Starts the daemon of a node.
    pub(crate) fn start_node(&mut self, node: &str) {
        let node = NODES.into_iter().find(|name| *name == node).unwrap();
        self.nodes.insert(node, Daemon::start(self.command("slurmd", &["-D", "-N", node])));
    }

    /// Makes a node lose its power: everything on it dies at once, without a report.
    #[track_caller]
    pub(crate) fn lose(&mut self, node: &str) {
        self.nodes.remove(node);
        let [(name, path)] = self.env();
        let variables = [format!("{name}={path}"), format!("SLURMD_NODENAME={node}")];
        end(|| with(&log(&self.folder, node), &variables));
    }

    /// Makes a node seem lost: its daemon dies, and its jobs continue unseen.
    pub(crate) fn lose_falsely(&mut self, node: &str) {
        self.nodes.remove(node);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.report();
        }
        self.kill_controller();
        for node in NODES {
            self.lose(node);
        }
    }
}

fn log(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}.log"))
}

fn job(line: &str) -> Option<Job> {
    let field = |name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}="))?;
        rest.split(' ').next().map(str::to_owned)
    };
    Some(Job {
        id: line.strip_prefix("JobId=")?.split(' ').next()?.parse().ok()?,
        name: field("JobName")?,
        state: field("JobState")?,
        exit: field("ExitCode")?,
        restarts: field("Restarts")?.parse().ok()?,
        node: field("NodeList").filter(|node| node != "(null)").unwrap_or_default(),
    })
}

fn munge(folder: &Path) -> Daemon {
    let key = folder.join("key");
    let mut bytes = [0; 1024];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    fs::write(&key, bytes).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).unwrap();
    let mut command = Command::new(program("munged").unwrap());
    // Forced: the folder of a test is below one that everybody may write to.
    command.args(["--foreground", "--force"]).env_clear().env("PATH", PATH);
    for option in ["key", "socket", "pid", "log", "seed"] {
        let name = if option == "socket" { option.to_owned() } else { format!("{option}-file") };
        command.arg(format!("--{name}={}", folder.join(option).display()));
    }
    let daemon = Daemon::start(command);
    poll_until("munged listens", || folder.join("socket").exists());
    daemon
}

/// Different ports that are free now.
pub(super) fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let held = [(); COUNT].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}

/// The settings of the cluster. With the times of a real site a lost node would cost a test
/// minutes: by default a node is lost after 300 s, its jobs are held back for 120 s, and the queue
/// is examined once a minute.
fn settings(folder: &Path) -> String {
    let [controller, any, first, second] = free_ports();
    let name = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    let host = name.split('.').next().unwrap();
    let folder = folder.display();
    format!(
        "ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={any}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=10
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=10
MessageTimeout=5
KillWait=10
MinJobAge=3600
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=4
PartitionName=fleet Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"
    )
}
