//! What the evidence of a boundary costs: the look at the working tree with its snapshot, and the
//! tests in the output of a check.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::figures::{Row, Samples, milliseconds};
use crate::run::fill;
use crate::site::{OWNER, Site, assert_went_on};
use crate::speed::ENDLESS;

const RUNS: u32 = 20;
/// The size of a log, in bytes.
const LOG: usize = 10_000_000;

/// The rows of 200 and of 100,000 files, of the room a snapshot takes and of a long log.
pub fn rows(folder: &Path) -> Vec<Row> {
    let small = Site::new(folder, "few");
    let large = Site::new(folder, "many");
    fill(&large, 1000);
    let plain = Site::new(folder, "plain");
    plain.begin(ENDLESS);
    let mut rows = Vec::new();
    let [still, changed, status] = tree(&small, &plain);
    let beside = ("one `git status`", &status);
    rows.push(Row::ratio(
        "evidence of a boundary, 200 files, nothing changed",
        &still,
        beside,
        1.3,
    ));
    // With so few files time is a number of processes, and a change needs three more.
    let what = "the same, one file changed, with its snapshot";
    rows.push(Row::comparison(what, &changed, beside));
    let [still, changed, status] = tree(&large, &plain);
    let beside = ("one `git status`", &status);
    let what = "evidence of a boundary, 100,000 files, nothing changed";
    rows.push(Row::ratio(what, &still, beside, 1.5));
    let what = "the same, one file changed, with its snapshot";
    rows.push(Row::ratio(what, &changed, beside, 1.5));
    rows.push(room(&large));
    rows.push(log(folder));
    rows
}

/// Boundaries of a loop that watches the tree, less those of one that does not: where nothing
/// changed, where a file did; and `git status`.
fn tree(site: &Site, plain: &Site) -> [Samples; 3] {
    site.begin("--max-iterations 1000000 --stall 1000000");
    let status = site.call("git", &["status", "--porcelain=v2", "-z", "--untracked-files=all"]);
    let [mut statuses, mut still, mut changed] = [const { Samples::new() }; 3];
    for run in 0..RUNS {
        let without = boundary(plain, &format!("plain {run}"));
        statuses.add(status.run().elapsed);
        still.add(boundary(site, &format!("still {run}")).saturating_sub(without));
        fs::write(site.repository().join("src/part_0.txt"), format!("{run}\n")).unwrap();
        changed.add(boundary(site, &format!("changed {run}")).saturating_sub(without));
    }
    [still, changed, statuses]
}

fn boundary(site: &Site, words: &str) -> Duration {
    let shown = site.stop(OWNER, words, Path::new("none.jsonl")).run();
    assert_went_on(&shown);
    shown.elapsed
}

/// What a snapshot of one changed file adds to the private git dir.
fn room(site: &Site) -> Row {
    let trees = site.crew_home().join("trees");
    let before = bytes(&trees);
    for run in 0..RUNS {
        fs::write(site.repository().join("src/part_0.txt"), format!("room {run}\n")).unwrap();
        boundary(site, &format!("room {run}"));
    }
    let added = u32::try_from(bytes(&trees) - before).unwrap();
    let each = f64::from(added) / f64::from(RUNS) / 1024.0;
    let beside = format!("the mean of {RUNS}, in 100,000 files");
    Row::below("a snapshot of one changed file", each, "KiB", beside, 64.0)
}

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let size = |path: PathBuf| match fs::symlink_metadata(&path).unwrap() {
        found if found.is_dir() => bytes(&path),
        found => found.len(),
    };
    entries.map(|entry| size(entry.path())).sum()
}

/// A check that prints a log of 10 MB, beside one that prints it to nowhere.
fn log(folder: &Path) -> Row {
    let file = folder.join("log");
    let mut text = String::new();
    for number in 0.. {
        let _ = writeln!(text, "test module_{}::tests::case_{number} ... ok", number % 50);
        if text.len() > LOG {
            break;
        }
    }
    fs::write(&file, text).unwrap();
    let check = |name: &str, to: &str| {
        let site = Site::new(folder, name);
        site.begin(&format!("{ENDLESS} --gate 'cat {}{to}'", file.display()));
        site
    };
    let (read, unread) = (check("log-read", ""), check("log-unread", " > /dev/null"));
    let mut times = Samples::new();
    for run in 0..RUNS {
        let without = boundary(&unread, &format!("unread {run}"));
        times.add(boundary(&read, &format!("read {run}")).saturating_sub(without));
    }
    let beside = format!("the median of {RUNS}, the pipe included");
    Row::below("a test log of 10 MB, read", times.median(), "ms", beside, milliseconds(LOG_BOUND))
}

const LOG_BOUND: Duration = Duration::from_millis(50);
