//! What `crew run` adds to an iteration: an agent that exits at once, in a repository of 50,000
//! files, beside one `git status` there.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::figures::{Row, Samples};
use crate::site::Site;

const FOLDERS: usize = 500;
const FILES: usize = 100;
const ROUNDS: usize = 10;
/// One more than is measured in a round: times run from the start of each to the start of the next.
pub const ITERATIONS: usize = 5;

/// The rows of an iteration: as it is by default, and with a commit after each, for comparison.
pub fn iteration(folder: &Path) -> Vec<Row> {
    let site = Site::new(folder, "run");
    fill(&site, FOLDERS);
    let status = site.call("git", &["status"]);
    let plain = run(&site, &[]);
    let committing = run(&site, &["--commit"]);
    let (mut beside, mut alone, mut with_commits) =
        (Samples::new(), Samples::new(), Samples::new());
    for _ in 0..ROUNDS {
        for _ in 1..ITERATIONS {
            beside.add(status.run().elapsed);
        }
        alone.add(mean_iteration(&plain.run().output));
        with_commits.add(mean_iteration(&committing.run().output));
    }
    let beside = ("one `git status`", &beside);
    vec![
        Row::ratio(
            "an iteration of `crew run`, agent exits at once, 50,000 files",
            &alone,
            beside,
            1.5,
        ),
        Row::ratio("the same with `--commit` and nothing to commit", &with_commits, beside, 3.0),
    ]
}

/// Commits many files to a site's repository: 100 in each folder.
pub fn fill(site: &Site, folders: usize) {
    for number in 0..folders {
        let place = site.repository().join(format!("many/{number}"));
        std::fs::create_dir_all(&place).unwrap();
        for file in 0..FILES {
            std::fs::write(place.join(format!("{file}.txt")), format!("{number} {file}\n"))
                .unwrap();
        }
    }
    for arguments in [&["add", "--all"][..], &["commit", "--quiet", "--message", "Many"]] {
        assert!(site.call("git", arguments).run().success);
    }
}

fn run(site: &Site, options: &[&str]) -> crate::call::Call {
    let iterations = ITERATIONS.to_string();
    let agent = ["run", "go on and on", "--agent-cmd", "true", "--json", "-n", &iterations];
    let endless = ["--stall", "100", "--failure-threshold", "0"];
    site.crew(&[&agent[..], &endless, options].concat())
}

/// The mean time of an iteration, from start to start according to the events: their times are in
/// milliseconds, so a single one is too coarse beside another.
pub fn mean_iteration(events: &str) -> Duration {
    let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let starts: Vec<i64> = events
        .filter(|event| event["event"] == "iteration_start")
        .map(|event| {
            let at = event["at"].as_str().unwrap();
            chrono::DateTime::parse_from_rfc3339(at).unwrap().timestamp_millis()
        })
        .collect();
    assert_eq!(starts.len(), ITERATIONS, "every iteration was started");
    let all = (starts[ITERATIONS - 1] - starts[0]).unsigned_abs();
    Duration::from_micros(all * 1000 / (ITERATIONS as u64 - 1))
}
