//! What a fleet adds: to an iteration, which takes a slot and reports; a fleet of tasks whose
//! agents exit at once; a start with many tasks; a coordinator that waits; and the clone of an
//! attempt beside a linked working tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use chrono::DateTime;
use serde_json::Value;

use crate::call::Running;
use crate::figures::{Row, Samples};
use crate::run::fill;
use crate::site::Site;
use crate::weigh::own_peak;

const ROUNDS: usize = 10;
/// One more than is measured in a round: times run from the end of each to the end of the next.
const ITERATIONS: usize = 5;
/// How many tasks the whole fleet has, and the one that only starts.
const TASKS: u32 = 200;
const MANY: u32 = 500;
/// How often the clone of 50,000 files is made.
const CLONES: usize = 3;
/// How long a coordinator is watched that has nothing to do, after it has come to rest.
const IDLE: Duration = Duration::from_secs(20);
const REST: Duration = Duration::from_secs(8);
/// How long anything here is waited for.
const WITHIN: Duration = Duration::from_secs(120);
/// Something to commit in each iteration.
const AGENT: &str = "sh -c 'echo $CREW_ITERATION > work'";
const DONE: &str = "echo '<promise>COMPLETE</promise>'";
/// An agent that works for longer than is measured.
const LONG: &str = "sleep 600";

/// The rows of an iteration, and of whole fleets.
pub fn rows(folder: &Path) -> Vec<Row> {
    let mut rows = vec![iteration(folder)];
    rows.extend(whole(folder));
    rows.push(start(folder));
    rows.extend(idle(folder));
    rows.push(clone(folder));
    rows
}

/// A fleet of many tasks, and the memory of its coordinator.
fn whole(folder: &Path) -> Vec<Row> {
    let site = Site::new(folder, "whole fleet");
    tasks_in(&site, &names(TASKS), DONE);
    let run = site.crew(&["fleet", "run", "night", "--yes", "--slots", "16"]);
    let begin = Instant::now();
    let highest = own_peak(&run);
    let each = begin.elapsed().as_secs_f64() * 1000.0 / f64::from(TASKS);
    let over = site.crew(&["fleet", "status", "night"]).run().output;
    assert!(over.contains(&format!("{TASKS} of {TASKS} completed")), "{over}");
    let beside = format!("{TASKS} tasks on 16 slots");
    let what = "a task of a fleet, agent exits at once";
    let mut rows = vec![Row::below(what, each, "ms", beside.clone(), 300.0)];
    let what = "memory of its coordinator";
    rows.extend(highest.map(|highest| Row::below(what, highest, "MiB", beside, 64.0)));
    rows
}

/// From the start of a fleet to its first attempt.
fn start(folder: &Path) -> Row {
    let site = Site::new(folder, "start");
    tasks_in(&site, &names(MANY), LONG);
    let begin = Instant::now();
    let running = site.crew(&["fleet", "run", "night", "--yes", "--slots", "1"]).start();
    let attempts = fleet_folder(&site).join("attempts");
    until(|| fs::read_dir(&attempts).is_ok_and(|mut found| found.next().is_some()));
    let seconds = begin.elapsed().as_secs_f64();
    end(running);
    Row::below("a start to the first attempt", seconds, "s", format!("{MANY} tasks"), 3.0)
}

/// The share of a core that a coordinator takes while its only task works. `None` without `/proc`.
fn idle(folder: &Path) -> Option<Row> {
    let site = Site::new(folder, "idle");
    tasks_in(&site, &names(1), LONG);
    let running = site.crew(&["fleet", "run", "night", "--yes"]).start();
    let report = fleet_folder(&site).join("attempts/t0.1.report.json");
    until(|| fs::read_to_string(&report).is_ok_and(|text| text.contains("running")));
    thread::sleep(REST);
    let begin = processor_time(running.pid());
    thread::sleep(IDLE);
    let share = begin
        .zip(processor_time(running.pid()))
        .map(|(begin, over)| over.saturating_sub(begin).as_secs_f64() / IDLE.as_secs_f64() * 100.0);
    end(running);
    let beside = format!("in {} s", IDLE.as_secs());
    Some(Row::below("a core for a coordinator that waits", share?, "%", beside, 0.1))
}

/// The clone of an attempt beside `git worktree add`, in a repository of 50,000 files.
fn clone(folder: &Path) -> Row {
    let site = Site::new(folder, "clone");
    fill(&site, 500);
    tasks_in(&site, &names(1), LONG);
    let [mut cloned, mut linked] = [const { Samples::new() }; 2];
    for round in 0..CLONES {
        let tree = site.repository().with_file_name(format!("linked {round}"));
        let add = ["worktree", "add", "--quiet", "--detach", tree.to_str().unwrap()];
        linked.add(site.call("git", &add).run().elapsed);
        let place = fleet_folder(&site);
        let running = site.crew(&["fleet", "run", "night", "--yes"]).start();
        until(|| place.join("t0.1.part").exists());
        let begin = Instant::now();
        until(|| place.join("t0.1").exists());
        cloned.add(begin.elapsed());
        end(running);
        fs::remove_dir_all(&place).unwrap();
    }
    let what = "the clone of an attempt, 50,000 files";
    Row::ratio(what, &cloned, ("`git worktree add`", &linked), 2.0)
}

fn names(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("t{number}")).collect()
}

fn fleet_folder(site: &Site) -> PathBuf {
    site.crew_home().join("fleets/night")
}

fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < WITHIN, "it takes longer than {WITHIN:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a coordinator and its agents: by one signal, and a second one once it has seen that.
fn end(running: Running) {
    running.ask_to_end();
    thread::sleep(Duration::from_millis(500));
    running.end();
}

/// What all threads of a process have used of a processor.
fn processor_time(pid: u32) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let used = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    });
    Some(used.sum())
}

/// An iteration of a fleet beside one of `crew run`, each with its commit.
fn iteration(folder: &Path) -> Row {
    let [mut alone, mut fleet] = [const { Samples::new() }; 2];
    let most = ITERATIONS.to_string();
    let run = ["run", "go on and on", "--agent-cmd", AGENT, "--commit", "-n", &most];
    let run = [&run[..], &["--stall", "100", "--failure-threshold", "0"]].concat();
    for round in 0..ROUNDS {
        let [first, second] =
            ["alone", "fleet"].map(|it| Site::new(folder, &format!("{it} {round}")));
        tasks_in(&second, &["t".to_owned()], AGENT);
        for (site, call, samples) in [
            (&first, &run[..], &mut alone),
            (&second, &["fleet", "run", "night", "--yes"], &mut fleet),
        ] {
            site.crew(call).run();
            for time in iterations(&site.loop_folder()) {
                samples.add(time);
            }
        }
    }
    let what = "what a fleet adds to an iteration: slot, place in the queue, report";
    let beside = format!("an iteration of `crew run --commit` {:.2} ms", alone.median());
    let added = Row::below(what, fleet.median() - alone.median(), "ms", beside, 20.0);
    Row { measured: format!("{:.2} ms", fleet.median()), ..added }
}

/// From the end of each iteration to the end of the next, according to the loop's journal.
fn iterations(folder: &Path) -> Vec<Duration> {
    let journal = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends: Vec<_> = lines
        .filter(|line| line["event"]["boundary"].is_object())
        .map(|line| DateTime::parse_from_rfc3339(line["at"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(ends.len(), ITERATIONS, "{journal}");
    ends.windows(2).map(|pair| (pair[1] - pair[0]).to_std().unwrap()).collect()
}

/// Commits the folder `night` with these tasks for this agent.
fn tasks_in(site: &Site, tasks: &[String], agent: &str) {
    let place = site.repository().join("night");
    fs::create_dir_all(&place).unwrap();
    for task in tasks {
        fs::write(place.join(format!("{task}.md")), "Go on and on.\n").unwrap();
    }
    let terms = format!(
        "[task]\nagent-cmd = \"{agent}\"\nmax-iterations = {ITERATIONS}\nstall = 100\n\
         failure-threshold = 0\n"
    );
    fs::write(place.join("fleet.toml"), terms).unwrap();
    git(site, &["add", "--all"]);
    git(site, &["commit", "--quiet", "--message", "Tasks"]);
}

fn git(site: &Site, arguments: &[&str]) {
    let shown = site.call("git", arguments).run();
    assert!(shown.success, "git {arguments:?}: {shown:?}");
}
