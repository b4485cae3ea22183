//! How long a stop takes: without a loop of ours, with one, and with much on disk. The sides of a
//! row take turns in one run (A B A B …), so that other work on the machine affects all of them
//! alike.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::call::{Call, Told, together};
use crate::figures::{Row, Samples};
use crate::site::{OWNER, STRANGER, Site, assert_silent, assert_went_on};
use crate::transcript;

/// How often each side of a row is called.
const RUNS: usize = 120;
/// Sessions and archived loops on a disk with a long history.
const MANY: usize = 10_000;
/// A loop whose limits no measurement reaches.
pub const ENDLESS: &str = "--max-iterations 1000000 --stall 0";

/// A small and a large transcript.
#[derive(Debug)]
pub struct Transcripts {
    pub small: PathBuf,
    pub large: PathBuf,
}

impl Transcripts {
    pub fn write(folder: &Path) -> Self {
        let [small, large] = ["small.jsonl", "large.jsonl"].map(|name| folder.join(name));
        transcript::write(&small, 100 << 10);
        transcript::write(&large, 1 << 30);
        Self { small, large }
    }
}

/// Stops of a session that has no loop.
pub fn idle(folder: &Path, noop: &Path) -> Vec<Row> {
    let site = Site::new(folder, "idle");
    let hook = site.stop(STRANGER, "done", Path::new("none.jsonl"));
    let floor = Call { program: noop.into(), arguments: Vec::new(), ..hook.clone() };
    let companion = Call { arguments: vec!["hook".into(), "--companion".into()], ..hook.clone() };
    let pair = [hook.clone(), companion];
    let [mut floors, mut hooks, mut pairs] = [const { Samples::new() }; 3];
    assert_silent(&hook.run());
    for _ in 0..RUNS {
        floors.add(quickest(|| floor.run()));
        hooks.add(quickest(|| hook.run()));
        // The later one's time covers both.
        pairs.add(quickest(|| together(&pair).remove(1)));
    }
    let beside = ("a program that only reads its input", &floors);
    vec![
        Row::ratio("stop, no loop of ours", &hooks, beside, 1.2),
        Row::ratio("stop and companion started together, no loop of ours", &pairs, beside, 2.0),
    ]
}

/// The time of the quickest of three calls in a row. Other work on the processor can easily delay a
/// call of two milliseconds; what is measured is the call.
fn quickest(call: impl Fn() -> Told) -> Duration {
    (0..3).map(|_| call().elapsed).min().unwrap_or_default()
}

/// Boundaries of a running loop.
pub fn active(folder: &Path, transcripts: &Transcripts) -> Vec<Row> {
    let site = Site::new(folder, "active");
    site.begin(ENDLESS);
    let with_stall = Site::new(folder, "stall");
    with_stall.begin("--max-iterations 1000000");
    let loop_folder = site.loop_folder();
    let idle = site.stop(STRANGER, "done", &transcripts.small);
    let shell = shell_hook(&with_stall, &transcripts.small);
    let [mut idles, mut writes, mut small, mut large] = [const { Samples::new() }; 4];
    let [mut stalls, mut statuses, mut shells] = [const { Samples::new() }; 3];
    let status =
        with_stall.call("git", &["status", "--porcelain=v2", "-z", "--untracked-files=all"]);
    let boundary = |site: &Site, words: String, transcript: &Path| {
        let shown = site.stop(OWNER, &words, transcript).run();
        assert_went_on(&shown);
        shown.elapsed
    };
    for run in 0..RUNS {
        idles.add(quickest(|| idle.run()));
        writes.add(durable_write(&loop_folder));
        small.add(boundary(&site, format!("small {run}"), &transcripts.small));
        large.add(boundary(&site, format!("large {run}"), &transcripts.large));
        // Progress, or the loop would stall.
        fs::write(with_stall.repository().join("src/part_0.txt"), run.to_string()).unwrap();
        stalls.add(boundary(&with_stall, format!("stall {run}"), &transcripts.small));
        statuses.add(status.run().elapsed);
        if let Some(shell) = &shell {
            let shown = shell.run();
            assert!(shown.success && shown.output.contains("systemMessage"), "{shown:?}");
            shells.add(shown.elapsed);
        }
    }
    let bound = idles.median() + 4.0 * writes.median();
    let mut rows = vec![
        Row {
            what: "boundary of a running loop, no checks, `--stall 0`".into(),
            measured: format!("{:.2} ms", small.median()),
            beside: format!(
                "idle stop {:.2} ms, durable write {:.2} ms",
                idles.median(),
                writes.median()
            ),
            result: format!("{:.2} ms", small.median()),
            bound: format!("≤ {bound:.2} ms: an idle stop + 4 durable writes"),
            holds: Some(small.median() <= bound),
        },
        Row::ratio("the same, transcript of 1 GB", &large, ("transcript of 100 kB", &small), 1.1),
        Row::comparison(
            "the same with the stall rule on, in a repository of 200 files",
            &stalls,
            (&format!("one `git status` {:.2} ms, `--stall 0`", statuses.median()), &small),
        ),
    ];
    if shell.is_some() {
        let beside = ("`--stall 0`", &small);
        rows.push(Row::comparison("a stop hook in bash and jq, 100 kB", &shells, beside));
    }
    rows
}

/// Stops where 10,000 sessions have left their loops.
pub fn archive(folder: &Path, transcripts: &Transcripts) -> Vec<Row> {
    let empty = Site::new(folder, "empty");
    let full = Site::new(folder, "full");
    full.begin("--max-iterations 1");
    let shown = full.stop(OWNER, "the only one", &transcripts.small).run();
    assert!(shown.output.contains("exhausted"), "{shown:?}");
    fill(&full);
    empty.begin(ENDLESS);
    full.begin(ENDLESS);
    let idle = |site: &Site| site.stop(STRANGER, "done", &transcripts.small);
    let idles = [idle(&empty), idle(&full)];
    let [mut idle_empty, mut idle_full, mut active_empty, mut active_full] =
        [const { Samples::new() }; 4];
    for _ in 0..RUNS {
        idle_empty.add(quickest(|| idles[0].run()));
        idle_full.add(quickest(|| idles[1].run()));
    }
    for run in 0..RUNS {
        for (site, samples) in [(&empty, &mut active_empty), (&full, &mut active_full)] {
            let shown = site.stop(OWNER, &format!("run {run}"), &transcripts.small).run();
            assert_went_on(&shown);
            samples.add(shown.elapsed);
        }
    }
    let beside = "an empty home";
    vec![
        Row::ratio(
            "stop, no loop of ours, 10,000 sessions and archived loops on disk",
            &idle_full,
            (beside, &idle_empty),
            1.1,
        ),
        Row::ratio(
            "boundary of a running loop, with the same on disk",
            &active_full,
            (beside, &active_empty),
            1.1,
        ),
    ]
}

/// Copies the site's ended loop many times, each with a separate session.
fn fill(site: &Site) {
    let ended = site.loop_folder();
    let id = ended.file_name().unwrap().to_str().unwrap();
    let files = ["loop.json", "journal.jsonl", "result.json"];
    let texts = files.map(|name| fs::read_to_string(ended.join(name)).unwrap());
    for number in 0..MANY {
        let other = format!("z{number:07}");
        let folder = ended.with_file_name(&other);
        fs::create_dir(&folder).unwrap();
        for (name, text) in files.iter().zip(&texts) {
            fs::write(folder.join(name), text.replace(id, &other)).unwrap();
        }
        let session = site.crew_home().join(format!("sessions/session-{number}"));
        fs::write(session, format!("{other}\n")).unwrap();
    }
}

/// The time of one durable replacement of a 4 kB file here.
fn durable_write(folder: &Path) -> Duration {
    let (temporary, file) = (folder.join(".bench.tmp"), folder.join("bench"));
    let begin = Instant::now();
    let mut written = File::create(&temporary).unwrap();
    written.write_all(&[b'x'; 4096]).unwrap();
    written.sync_all().unwrap();
    fs::rename(&temporary, &file).unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
    begin.elapsed()
}

/// A stop of the hook it is compared with; `None` if its tools are missing.
fn shell_hook(site: &Site, transcript: &Path) -> Option<Call> {
    let tools = site.call("sh", &["-c", "command -v bash jq perl >/dev/null"]);
    if !tools.run().success {
        return None;
    }
    let state =
        "---\niteration: 1\nmax_iterations: 0\ncompletion_promise: COMPLETE\n---\nBuild it\n";
    fs::create_dir_all(site.repository().join(".claude")).unwrap();
    fs::write(site.repository().join(".claude/loop.local.md"), state).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/bash_jq.sh");
    let mut call = site.call("bash", &[script]);
    call.input = json!({ "transcript_path": transcript }).to_string();
    Some(call)
}
