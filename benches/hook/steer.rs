//! What a person does while a loop is busy: a status during a long check, and many calls at once.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::figures::{Row, Samples};
use crate::site::{OWNER, Site};
use crate::speed::ENDLESS;

const STATUS_RUNS: usize = 40;
const ROUNDS: usize = 5;
const HOOKS: usize = 90;
const CANCELS: usize = 10;

/// `crew status` while a check of ten minutes runs.
pub fn status(folder: &Path) -> Row {
    let site = Site::new(folder, "gate");
    site.begin(&format!("{ENDLESS} --gate \"sleep 600\""));
    let groups = site.loop_folder().join("groups");
    let hook = site.stop(OWNER, "working", Path::new("none.jsonl")).start();
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::fs::read_dir(&groups).map_or(0, Iterator::count) == 0 {
        assert!(Instant::now() < deadline, "the check did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = site.crew(&["status"]);
    let mut samples = Samples::new();
    for _ in 0..STATUS_RUNS {
        let shown = status.run();
        assert!(shown.output.contains("running"), "{shown:?}");
        samples.add(shown.elapsed);
    }
    let shown = hook.end();
    assert!(shown.success, "{shown:?}");
    let beside = format!("median {:.1} ms", samples.median());
    let what = "`crew status` while a check of ten minutes runs, the slowest of 40";
    Row::below(what, samples.slowest(), "ms", beside, 100.0)
}

/// Hooks and cancels, all at once, on one loop.
pub fn crowd(folder: &Path) -> Row {
    let mut samples = Samples::new();
    for round in 0..ROUNDS {
        let site = Site::new(folder, &format!("crowd-{round}"));
        site.begin(ENDLESS);
        let mut calls: Vec<_> = (0..HOOKS)
            .map(|hook| site.stop(OWNER, &format!("words {hook}"), Path::new("none.jsonl")))
            .collect();
        calls.extend((0..CANCELS).map(|_| site.crew(&["cancel"])));
        let start = Barrier::new(calls.len());
        std::thread::scope(|scope| {
            let start = &start;
            let running: Vec<_> = calls
                .iter()
                .map(|call| {
                    scope.spawn(move || {
                        start.wait();
                        call.run()
                    })
                })
                .collect();
            for thread in running {
                let shown = thread.join().unwrap();
                assert!(shown.success, "{shown:?}");
                samples.add(shown.elapsed);
            }
        });
        let shown = site.crew(&["status", "--json"]).run().output;
        assert!(shown.contains("cancelled"), "{shown}");
    }
    let beside = format!("median {:.0} ms", samples.median());
    let what = "90 stops and 10 cancels of one loop at once, the slowest of 5 rounds";
    Row::below(what, samples.slowest() / 1000.0, "s", beside, 2.0)
}
