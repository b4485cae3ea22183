//! What a fleet adds: to an iteration, which takes a slot and reports, and as a whole task with its
//! clone and its pushes to a remote in a folder. The agents exit at once, and no check is run.

use std::fs;
use std::path::Path;
use std::time::Duration;

use chrono::DateTime;
use serde_json::Value;

use crate::figures::{Row, Samples};
use crate::site::Site;
use crate::weigh::own_peak;

const ROUNDS: usize = 10;
/// One more than is measured in a round: times run from the end of each to the end of the next.
const ITERATIONS: usize = 5;
/// How many tasks the whole fleet has.
const TASKS: u32 = 20;
/// Something to commit in each iteration.
const AGENT: &str = "sh -c 'echo $CREW_ITERATION > work'";

/// The rows of an iteration, and of a whole fleet.
pub fn rows(folder: &Path) -> Vec<Row> {
    let mut rows = vec![iteration(folder)];
    let site = Site::new(folder, "whole fleet");
    let tasks: Vec<String> = (0..TASKS).map(|number| format!("t{number}")).collect();
    tasks_in(&site, &tasks, "echo '<promise>COMPLETE</promise>'");
    let hub = site.repository().with_file_name("hub.git").display().to_string();
    git(&site, &["init", "--quiet", "--bare", &hub]);
    git(&site, &["remote", "add", "origin", &hub]);
    git(&site, &["push", "--quiet", "origin", "HEAD"]);
    let run = || site.crew(&["fleet", "run", "night", "--yes", "--push", "--slots", "4"]);
    let told = run().run();
    assert!(told.success, "{told:?}");
    let each = told.elapsed.as_secs_f64() * 1000.0 / f64::from(TASKS);
    let what = "a task of a fleet, agent exits at once, remote in a folder";
    rows.push(Row::below(what, each, "ms", format!("{TASKS} tasks on 4 slots"), 500.0));
    // Nothing is left to do: what is weighed is a coordinator that reads its folder and its record.
    let beside = "with nothing left to do".to_owned();
    let what = "memory of a coordinator";
    rows.extend(own_peak(&run()).map(|highest| Row::below(what, highest, "MiB", beside, 64.0)));
    let over = site.crew(&["fleet", "status", "night"]).run().output;
    assert!(over.contains(&format!("{TASKS} of {TASKS} completed")), "{over}");
    rows
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
    let told = site.call("git", arguments).run();
    assert!(told.success, "git {arguments:?}: {told:?}");
}
