//! Fleets on a real cluster of two nodes, through the built crew: what Slurm loses, the record of
//! the fleet keeps. The agent records each of its calls, and the remote shows in the end how many
//! times a task was done.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::cluster::{Job, program};
use super::processes::with;
use super::{Cluster, Sshd, is_skipped, sshd, with_cluster};
use crate::sandbox::{Sandbox, poll_within, write_executable};
use crate::spawned::{Ran, Running};

/// The longest time that a fleet on the cluster may take: a lost node is noticed after 20 s, and
/// its job is held back for some more.
const LONG: Duration = Duration::from_secs(170);

/// Three iterations, each as long as the file `pace` says in seconds and with a line of work; what
/// else a task does is in its name. In its second iteration, once, `rash` kills crew and `endless`
/// does not end. The first call of `hidden` ends only after another attempt has begun.
const AGENT: &str = r#"#!/bin/sh
cat > /dev/null
branch=$(git rev-parse --abbrev-ref HEAD); task=${branch%/*}; task=${task##*/}
echo "$task $CREW_ITERATION $SLURMD_NODENAME" >> "$NOTES/calls"
calls() { grep -c "^$task " "$NOTES/calls"; }
case $task in hidden) [ "$(calls)" != 1 ] || until [ "$(calls)" != 1 ]; do sleep 0.1; done ;; esac
sleep "$(cat "$NOTES/pace")"
echo "$CREW_ITERATION" >> "work-$task"
case $task in
    blocked*) echo '<promise>BLOCKED: a key</promise>'; exit 0 ;;
    short*) exit 0 ;;
    endless*) [ "$CREW_ITERATION" != 2 ] || { mkdir "$NOTES/held" 2> /dev/null && sleep 600; } ;;
    rash*) [ "$CREW_ITERATION" != 2 ] || { mkdir "$NOTES/killed" 2> /dev/null && kill -9 "$PPID"; } ;;
esac
[ "$CREW_ITERATION" -lt 3 ] || echo '<promise>COMPLETE</promise>'
"#;

/// A fleet whose jobs run on the cluster.
struct Night<'a> {
    sandbox: &'a Sandbox,
    hub: PathBuf,
    notes: PathBuf,
}

impl<'a> Night<'a> {
    /// A repository with a bare remote and these tasks.
    fn of(sandbox: &'a Sandbox, tasks: &[&str], pace: &str) -> Self {
        let root = sandbox.root();
        let night = Self { sandbox, hub: root.join("hub.git"), notes: root.join("notes") };
        fs::create_dir_all(&night.notes).unwrap();
        fs::write(night.notes.join("pace"), pace).unwrap();
        let agent = root.join("agent");
        write_executable(&agent, &AGENT.replace("$NOTES", &night.notes.display().to_string()));
        let hub = night.hub.display().to_string();
        sandbox.git(&["init", "--quiet", "--bare", "--initial-branch=main", &hub]);
        sandbox.git(&["remote", "add", "origin", &hub]);
        let terms = format!("[task]\nagent-cmd = \"{}\"\nmax-iterations = 4\n", agent.display());
        sandbox.write("tasks/fleet.toml", &terms);
        for task in tasks {
            let most = if task.starts_with("short") { "---\nmax-iterations: 2\n---\n" } else { "" };
            sandbox.write(&format!("tasks/{task}.md"), &format!("{most}Do {task}.\n"));
        }
        sandbox.git(&["add", "."]);
        sandbox.git(&["commit", "--quiet", "--message", "Tasks"]);
        sandbox.git(&["push", "--quiet", "origin", "main"]);
        night
    }

    fn start(&self, on: &str) -> Running {
        self.sandbox.start_crew(&["fleet", "run", "tasks", "--yes", "--on", on])
    }

    #[track_caller]
    fn run(&self, on: &str) -> Ran {
        self.start(on).wait(LONG)
    }

    fn crew(&self, arguments: &[&str]) -> Ran {
        self.sandbox.start_crew(arguments).wait(LONG)
    }

    /// The numbers of the iterations that a task has begun.
    fn begun(&self, task: &str) -> Vec<String> {
        let number = |call: &String| call.split(' ').next().unwrap().to_owned();
        self.calls(task).iter().map(number).collect()
    }

    /// The calls of a task's agent, each as "ITERATION NODE".
    fn calls(&self, task: &str) -> Vec<String> {
        let text = fs::read_to_string(self.notes.join("calls")).unwrap_or_default();
        let prefix = format!("{task} ");
        text.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
    }

    /// The lines of work that the branch of the task's newest attempt has on the remote.
    fn work(&self, task: &str) -> String {
        let git_dir = format!("--git-dir={}", self.hub.display());
        let refs = format!("refs/heads/fleet/repo/{task}");
        let names = self.sandbox.git(&[&git_dir, "for-each-ref", "--format=%(refname)", &refs]);
        let number = |name: &str| name.rsplit('/').next()?.parse::<u32>().ok();
        let newest = names.lines().max_by_key(|name| number(name)).expect("a branch").to_owned();
        self.sandbox.git(&[&git_dir, "show", &format!("{newest}:work-{task}")])
    }

    /// A task in the fleet's record.
    fn task(&self, task: &str) -> Value {
        let file = self.sandbox.crew_home().join("fleets/repo/fleet.json");
        let text = fs::read_to_string(file).unwrap_or_default();
        let record: Value = serde_json::from_str(&text).unwrap_or_default();
        record["tasks"][task].clone()
    }

    /// The state of a task: `waiting`, `running`, or its outcome.
    fn state(&self, task: &str) -> String {
        let state = self.task(task)["state"].clone();
        let word = if state["is"] == "ended" { &state["outcome"] } else { &state["is"] };
        word.as_str().unwrap_or_default().to_owned()
    }

    /// Waits for the first call of a task, and returns its node.
    #[track_caller]
    fn node_of(&self, task: &str) -> String {
        poll_within(LONG, "the task is worked on", || !self.calls(task).is_empty());
        self.calls(task)[0].split_once(' ').unwrap().1.to_owned()
    }
}

/// Whether a process is a crew that runs an attempt.
fn is_attempt(pid: Pid) -> bool {
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.contains("fleet\0attempt\0")
}

/// The exit code of each task's newest job, "0:0" for 0.
fn exits(cluster: &Cluster) -> Vec<(String, String)> {
    let mut exits: Vec<(String, String)> = Vec::new();
    for job in cluster.jobs() {
        let task = job.name.rsplit('/').nth(1).unwrap().to_owned();
        exits.retain(|(known, _)| *known != task);
        exits.push((task, job.exit));
    }
    exits.sort();
    exits
}

#[test]
fn twenty_tasks_end_as_expected_and_a_killed_one_is_restarted() {
    with_cluster(|sandbox, cluster| {
        let usual: Vec<String> = (0..17).map(|number| format!("task{number:02}")).collect();
        let mut tasks: Vec<&str> = usual.iter().map(String::as_str).collect();
        tasks.extend(["blocked", "short", "rash"]);
        let night = Night::of(sandbox, &tasks, "0.2");
        let shown = night.run("slurm");
        assert_eq!(shown.code(), 13, "{shown:#?}");
        for task in &tasks {
            let expected = match *task {
                "blocked" => "blocked",
                "short" => "exhausted",
                _ => "completed",
            };
            assert_eq!(night.state(task), expected, "{task}: {:#}", night.task(task));
        }
        for task in &usual {
            assert_eq!(night.work(task), "1\n2\n3", "{task}");
        }
        // The iteration that was cut off is the only one that was begun twice.
        assert_eq!(night.begun("rash"), ["1", "2", "2", "3"]);
        // Its new attempt begins with what was pushed.
        assert_eq!(
            (&*night.work("rash"), night.task("rash")["attempt"].as_u64()),
            ("1\n2\n3", Some(2))
        );
        let again = night.run("slurm");
        assert_eq!((again.code(), cluster.jobs().len()), (13, 21), "{again:#?}");
    });
}

#[test]
fn the_tasks_of_a_lost_node_continue_at_the_other_with_their_iterations() {
    with_cluster(|sandbox, cluster| {
        let tasks = ["one", "two", "three", "four", "five", "six"];
        let night = Night::of(sandbox, &tasks, "2");
        let running = night.start("slurm");
        let lost = night.node_of("one");
        poll_within(LONG, "one iteration is over", || night.calls("one").len() == 2);
        cluster.lose(&lost);
        let shown = running.wait(LONG);
        assert_eq!(shown.code(), 0, "{shown:#?}");
        for task in tasks {
            let work = night.work(task);
            let last = work.lines().last();
            assert!(last == Some("3") && work.lines().count() == 3, "{task}: {work}");
        }
        let again = night.calls("one");
        assert!(again.last().is_some_and(|call| !call.ends_with(&lost)), "{again:?}");
        // What was not pushed when the node was lost is done again, and nothing else.
        assert!(again.len() <= 4, "{again:?}");
    });
}

#[test]
fn an_attempt_on_a_node_that_only_seems_lost_is_fenced_and_no_task_is_done_twice() {
    with_cluster(|sandbox, cluster| {
        let night = Night::of(sandbox, &["hidden"], "0.5");
        let running = night.start("slurm");
        let hidden = night.node_of("hidden");
        cluster.poll_saved(cluster.jobs()[0].id);
        cluster.lose_falsely(&hidden);
        let shown = running.wait(LONG);
        assert_eq!(shown.code(), 0, "{shown:#?}");
        let elsewhere: Vec<String> =
            night.calls("hidden").into_iter().filter(|call| !call.ends_with(&hidden)).collect();
        assert_eq!((elsewhere.len(), night.work("hidden").as_str()), (3, "1\n2\n3"));
        // The attempt on the hidden node is refused once its iteration is over, and ends itself.
        let log = sandbox.root().join("slurm").join(format!("{hidden}.log"));
        let variable = format!("SLURMD_NODENAME={hidden}");
        poll_within(LONG, "the hidden attempt ends", || {
            !with(&log, std::slice::from_ref(&variable)).iter().any(|pid| is_attempt(*pid))
        });
        assert_eq!((night.calls("hidden").len(), night.work("hidden").as_str()), (4, "1\n2\n3"));
    });
}

#[test]
fn a_cancel_holds_even_if_the_controller_forgets_it_and_scancel_restarts_the_task() {
    with_cluster(|sandbox, cluster| {
        let night = Night::of(sandbox, &["stays", "left"], "600");
        let running = night.start("slurm");
        for task in ["stays", "left"] {
            night.node_of(task);
        }
        let id = |task: &str| {
            let end = format!("/{task}/1");
            let is_its = |job: &Job| job.name.starts_with("crew/repo.") && job.name.ends_with(&end);
            cluster.jobs().into_iter().find(is_its).unwrap().id
        };
        let (stays, left) = (id("stays"), id("left"));
        cluster.poll_saved(stays);
        night.crew(&["cancel", "repo/stays"]).success();
        cluster.poll_cancelled(stays);
        running.signal(Signal::KILL);
        cluster.kill_controller();
        cluster.start_controller();
        // What the controller brings back finds the request at the remote.
        let job = cluster.poll_job(stays, "is over", |job| {
            ["COMPLETED", "FAILED", "CANCELLED"].contains(&&*job.state)
        });
        assert!(["14:0", "143:0", "0:15"].contains(&&*job.exit), "{job:?}");
        assert_eq!(night.calls("stays").len(), 1);
        fs::write(night.notes.join("pace"), "0.1").unwrap();
        cluster.run("scancel", &[&left.to_string()]);
        cluster.poll_job(left, "is over", |job| job.state == "CANCELLED");
        let again = night.run("slurm");
        assert_eq!(again.code(), 10, "{again:#?}");
        assert_eq!((&*night.state("stays"), &*night.state("left")), ("cancelled", "completed"));
        assert_eq!(night.calls("stays").len(), 1);
    });
}

#[test]
fn closing_the_terminal_leaves_the_jobs_of_the_cluster_for_the_next_run_to_adopt() {
    with_cluster(|sandbox, _| {
        let night = Night::of(sandbox, &["one"], "2");
        let first = night.start("slurm");
        night.node_of("one");
        first.signal(Signal::HUP);
        let closed = first.wait(LONG);
        assert_eq!(closed.code(), 129, "{closed:#?}");
        let again = night.run("slurm");
        assert_eq!(again.code(), 0, "{again:#?}");
        assert_eq!(night.begun("one"), ["1", "2", "3"], "nothing was broken off");
    });
}

#[test]
fn an_immediate_pause_ends_the_jobs_of_the_cluster_and_the_next_run_resumes_their_tasks() {
    with_cluster(|sandbox, cluster| {
        let night = Night::of(sandbox, &["one"], "600");
        let running = night.start("slurm");
        night.node_of("one");
        night.crew(&["pause", "repo", "--now"]).success();
        let paused = running.wait(LONG);
        assert_eq!((paused.code(), exits(cluster)[0].1.as_str()), (130, "143:0"), "{paused:#?}");
        fs::write(night.notes.join("pace"), "0.1").unwrap();
        night.crew(&["resume", "repo"]).success();
        let again = night.run("slurm");
        assert_eq!(again.code(), 0, "{again:#?}");
        // What was broken off counts; its agent may have come to its line of work.
        assert_eq!(night.begun("one"), ["1", "2", "3"]);
        assert!(night.work("one").ends_with("2\n3"), "{}", night.work("one"));
    });
}

#[test]
fn a_job_that_meets_its_time_limit_pushes_its_work_and_the_next_one_ends_the_task() {
    with_cluster(|sandbox, cluster| {
        let night = Night::of(sandbox, &["endless"], "0.2");
        let mut command = sandbox.command(sandbox.build().path());
        command.args(["fleet", "run", "tasks", "--yes", "--on", "slurm"]);
        // Two minutes: TERM comes one minute or more before.
        command.env("SBATCH_TIMELIMIT", "2");
        let shown = Running::start(command, None).wait(LONG);
        assert_eq!(shown.code(), 0, "{shown:#?}");
        let jobs = cluster.jobs();
        let ends: Vec<_> = jobs.iter().map(|job| (&*job.state, &*job.exit, job.restarts)).collect();
        assert_eq!(ends, [("FAILED", "143:0", 0), ("COMPLETED", "0:0", 0)], "{shown:#?}");
        // What was broken off counts, and what it had done is on the branch.
        assert_eq!(night.begun("endless"), ["1", "2", "3"]);
        assert_eq!(night.work("endless"), "1\n2\n3");
        assert_eq!(night.state("endless"), "completed", "{:#}", night.task("endless"));
    });
}

#[test]
fn a_fleet_runs_through_a_login_node_over_ssh() {
    with_cluster(|sandbox, cluster| {
        let login = Sshd::start(sandbox, &cluster.env());
        let crew = login.home().join("bin/crew");
        std::os::unix::fs::symlink(sandbox.build().path(), crew).unwrap();
        let night = Night::of(sandbox, &["one", "two"], "0.2");
        let identity = "[user]\nname = A Tester\nemail = tester@example.invalid\n";
        fs::write(login.home().join(".gitconfig"), identity).unwrap();
        let mut command = sandbox.command(sandbox.build().path());
        command.env_remove("SLURM_CONF");
        command.args(["fleet", "run", "tasks", "--yes", "--on", "slurm:login"]);
        let shown = Running::start(command, None).wait(LONG);
        assert_eq!(shown.code(), 0, "{shown:#?}");
        for task in ["one", "two"] {
            assert_eq!(night.work(task), "1\n2\n3", "{task}");
        }
    });
}

#[test]
fn a_fleet_runs_behind_ssh_by_the_three_commands_of_the_page() {
    let parallel = || program("parallel").is_none().then(|| "there is no parallel".to_owned());
    if is_skipped(sshd::missing().or_else(parallel)) {
        return;
    }
    let sandbox = &Sandbox::new();
    let login = Sshd::start(sandbox, &[]);
    std::os::unix::fs::symlink(sandbox.build().path(), login.home().join("bin/crew")).unwrap();
    let identity = "[user]\nname = A Tester\nemail = tester@example.invalid\n";
    fs::write(login.home().join(".gitconfig"), identity).unwrap();
    let (_, recipe) =
        include_str!("../../docs/reference/executors.md").split_once("[executor.ssh]").unwrap();
    let (recipe, _) = recipe.split_once("```").unwrap();
    let folders = [".config/crew", ".crew-jobs"].map(|name| sandbox.home().join(name));
    for folder in &folders {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(folders[0].join("config.toml"), format!("[executor.ssh]{recipe}")).unwrap();
    fs::write(folders[1].join("hosts"), "login\n").unwrap();
    let night = Night::of(sandbox, &["one", "two", "rash"], "0.2");
    let ended = night.run("ssh");
    assert_eq!(ended.code(), 0, "{ended:#?}");
    for task in ["one", "two", "rash"] {
        assert_eq!(night.work(task), "1\n2\n3", "{task}");
    }
    assert_eq!(night.begun("rash"), ["1", "2", "2", "3"]);
    assert_eq!(night.task("rash")["attempt"].as_u64(), Some(2));
}
