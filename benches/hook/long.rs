//! A loop of 10,000 iterations beside one that has just begun: the cost of an iteration must not
//! grow with the number before it, and the whole story must still be shown at once. The old loop
//! begins as a real one; its record and journal are then continued as 10,000 more of its own
//! boundaries would have left them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::call::Call;
use crate::figures::{Row, Samples, milliseconds};
use crate::run::{ITERATIONS, mean_iteration};
use crate::site::{OWNER, Site, assert_went_on};
use crate::speed::ENDLESS;

const MANY: u64 = 10_000;
/// How often each side is called.
const STOPS: usize = 120;
const ROUNDS: usize = 25;
const LOOKS: usize = 5;

/// The rows of an old loop, in both drivers.
pub fn rows(folder: &Path) -> Vec<Row> {
    let mut rows = vec![stops(folder)];
    let [young, old] = ["run young", "run old"].map(|name| Site::new(folder, name));
    for site in [&young, &old] {
        let run = ["run", "go on and on", "--agent-cmd", "true", "-n", "5"];
        site.crew(&[&run[..], &["--stall", "0", "--failure-threshold", "0"]].concat()).run();
    }
    age(&old.loop_folder());
    let more = format!("+{ITERATIONS}");
    let resume = |site: &Site| site.crew(&["resume", "-n", &more, "--json"]);
    let [mut quick, mut slow] = [const { Samples::new() }; 2];
    for _ in 0..ROUNDS {
        for (site, samples) in [(&young, &mut quick), (&old, &mut slow)] {
            samples.add(mean_iteration(&resume(site).run().output));
        }
    }
    let beside = ("after a few", &quick);
    rows.push(Row::ratio("an iteration of `crew run` after 10,000", &slow, beside, 1.1));
    let page = folder.join("long.html");
    let html = ["show", "--html", page.to_str().unwrap()];
    for (what, call, bound) in [
        ("`crew show` of 10,000 iterations", old.crew(&["show"]), 200.0),
        ("`crew history`, with that loop", old.crew(&["history"]), 200.0),
        ("`crew show --html` of 10,000 iterations", old.crew(&html), 300.0),
    ] {
        rows.push(Row::below(what, quickest(&call), "ms", "the quickest of 5".to_owned(), bound));
    }
    #[expect(clippy::cast_precision_loss, reason = "a size of a few MB")]
    let megabytes = fs::metadata(&page).unwrap().len() as f64 / 1e6;
    rows.push(Row::below("the size of that page", megabytes, "MB", String::new(), 2.0));
    rows
}

fn stops(folder: &Path) -> Row {
    let sites = ["young", "old"].map(|name| Site::new(folder, name));
    let none = Path::new("none.jsonl");
    for site in &sites {
        site.begin(ENDLESS);
        for stop in 0..5 {
            assert_went_on(&site.stop(OWNER, &format!("begin {stop}"), none).run());
        }
    }
    age(&sites[1].loop_folder());
    let mut times = [const { Samples::new() }; 2];
    for stop in 0..STOPS {
        for (site, samples) in sites.iter().zip(&mut times) {
            let shown = site.stop(OWNER, &format!("stop {stop}"), none).run();
            assert_went_on(&shown);
            samples.add(shown.elapsed);
        }
    }
    let beside = ("after a few", &times[0]);
    Row::ratio("boundary of a running loop after 10,000", &times[1], beside, 1.1)
}

fn quickest(call: &Call) -> f64 {
    let times = (0..LOOKS).map(|_| {
        let shown = call.run();
        assert!(shown.success, "{shown:?}");
        milliseconds(shown.elapsed)
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Continues a loop to 10,000 iterations.
fn age(folder: &Path) {
    let [record, journal] = ["loop.json", "journal.jsonl"].map(|name| folder.join(name));
    let mut whole: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    let mut text = fs::read_to_string(&journal).unwrap();
    let is_boundary = |line: &Value| line["event"]["boundary"].is_object();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let boundaries: Vec<Value> = lines.filter(is_boundary).collect();
    let [.., usual, last] = &boundaries[..] else { panic!("too few boundaries: {text}") };
    let done = whole["state"]["completed"].as_u64().unwrap();
    for number in done + 1..=MANY {
        let mut line = if number == MANY { last.clone() } else { usual.clone() };
        let generation = last["generation"].as_u64().unwrap() + number - done;
        line["generation"] = json!(generation);
        let state = &mut line["event"]["boundary"]["state"];
        state["generation"] = json!(generation);
        advance(state, number, number - done);
        writeln!(text, "{line}").unwrap();
    }
    let state = &mut whole["state"];
    state["generation"] = json!(state["generation"].as_u64().unwrap() + MANY - done);
    advance(state, MANY, MANY - done);
    let limit = &mut whole["contract"]["limits"]["max_iterations"];
    *limit = json!(limit.as_u64().unwrap().max(MANY));
    // As in a real one: the newest 100 times, and the sum of the earlier ones.
    let kept = 100;
    whole["elapsed_ms"] = json!(vec![20; kept]);
    let count = MANY - kept as u64;
    whole["earlier"] = json!({
        "count": count, "min_ms": 10, "max_ms": 30, "sum_ms": count * 20, "squares": count * 410,
    });
    fs::write(&record, whole.to_string()).unwrap();
    fs::write(&journal, text).unwrap();
}

fn advance(state: &mut Value, completed: u64, by: u64) {
    state["boundaries"] = json!(state["boundaries"].as_u64().unwrap() + by);
    state["completed"] = json!(completed);
    state["evidence"]["iteration"] = json!(completed);
}
