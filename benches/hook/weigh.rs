//! What a stop costs besides time: memory, and instructions if valgrind can count them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::figures::Row;
use crate::site::{OWNER, STRANGER, Site};
use crate::speed::{ENDLESS, Transcripts};
use crate::transcript;

/// How often each memory figure is taken; the highest counts.
const RUNS: usize = 5;
/// The option that turns this program into the meter of one call.
pub const METER: &str = "--meter";

/// The peak of a hook's memory.
pub fn memory(folder: &Path, noop: &Path, transcripts: &Transcripts) -> Vec<Row> {
    let site = Site::new(folder, "memory");
    site.begin(ENDLESS);
    let crowded = folder.join("crowded.jsonl");
    transcript::write_crowded(&crowded, 500_000);
    let file = folder.join("peak");
    let floor = peak(&site.call(noop, &[]), &file);
    let idle = peak(&site.stop(STRANGER, "done", &transcripts.large), &file);
    let mut highest = [0.0_f64; 3];
    for run in 0..RUNS {
        // A transcript that is not the last boundary's is read from its beginning.
        let files = [&transcripts.small, &transcripts.large, &crowded];
        for (highest, transcript) in highest.iter_mut().zip(files) {
            let words = format!("run {run} of {}", transcript.display());
            *highest = highest.max(peak(&site.stop(OWNER, &words, transcript), &file));
        }
    }
    let row = |what: &str, mebibytes: f64, beside: String| {
        Row::below(&format!("memory of {what}"), mebibytes, "MiB", beside, 8.0)
    };
    let [small, large, crowded] = highest;
    let beside = format!("with 100 kB {small:.1} MiB");
    vec![
        row(
            "a stop, no loop of ours, transcript of 1 GB",
            idle,
            format!("the no-op {floor:.1} MiB"),
        ),
        row("a boundary, transcript of 1 GB", large, beside.clone()),
        row("a boundary, transcript of one line of 250,000 values", crowded, beside),
    ]
}

/// The most memory a call held, in MiB. A small program measures it, because a child's peak starts
/// with the memory of the program that starts it.
fn peak(call: &Call, file: &Path) -> f64 {
    let _ = std::fs::remove_file(file);
    let me = std::env::current_exe().unwrap();
    let shown = call.through(&me, &[METER, file.to_str().unwrap()]).run();
    assert!(shown.success, "{shown:?}");
    let kibibytes: f64 = std::fs::read_to_string(file).unwrap().parse().unwrap();
    kibibytes / 1024.0
}

/// The most memory that the process of a call held itself, in MiB. Its children are not counted,
/// nor is what they copied of it before they became other programs. `None` without `/proc`.
pub fn own_peak(call: &Call) -> Option<f64> {
    let begin = Instant::now();
    let running = call.start();
    let status = format!("/proc/{}/status", running.pid());
    let mut peak = None;
    // A process that has ended has no memory left to show.
    while let Some(kibibytes) = std::fs::read_to_string(&status).ok().and_then(|it| highest(&it)) {
        peak = Some(kibibytes / 1024.0);
        std::thread::sleep(Duration::from_millis(1));
    }
    let shown = running.finish(begin);
    assert!(shown.success, "{shown:?}");
    peak
}

fn highest(status: &str) -> Option<f64> {
    let (_, after) = status.split_once("VmHWM:")?;
    after.split_whitespace().next()?.parse().ok()
}

/// Runs one call and writes the peak of its memory, in KiB, to a file.
#[expect(unsafe_code, reason = "std does not tell what a child has used")]
pub fn meter(arguments: &[String]) -> ExitCode {
    let [file, program, arguments @ ..] = arguments else { return ExitCode::FAILURE };
    let status = Command::new(program).args(arguments).status().unwrap();
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a local value that outlives the call; all zeros is a valid usage.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let unit = if cfg!(target_os = "macos") { 1024 } else { 1 };
    std::fs::write(file, (usage.ru_maxrss / unit).to_string()).unwrap();
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Instructions in user space, as a table; `None` without valgrind.
pub fn instructions(folder: &Path, noop: &Path, transcripts: &Transcripts) -> Option<String> {
    Command::new("valgrind")
        .arg("--version")
        .output()
        .ok()
        .filter(|shown| shown.status.success())?;
    let site = Site::new(folder, "count");
    site.begin(ENDLESS);
    let idle = site.stop(STRANGER, "done", &transcripts.small);
    let companion = Call { arguments: vec!["hook".into(), "--companion".into()], ..idle.clone() };
    let floor = Call { program: PathBuf::from(noop), arguments: Vec::new(), ..idle.clone() };
    let calls = [
        ("a program that only reads its input", floor),
        ("stop, no loop of ours", idle),
        ("companion, no loop of ours", companion),
        ("boundary, transcript of 100 kB", site.stop(OWNER, "small", &transcripts.small)),
        ("boundary, transcript of 1 GB", site.stop(OWNER, "large", &transcripts.large)),
        ("`crew status`", site.crew(&["status"])),
    ];
    let counts = calls.map(|(what, call)| (what, count(&call)));
    let mut text = String::from("| what | instructions | to the first |\n|---|---|---|\n");
    for (what, count) in &counts {
        let ratio = count / counts[0].1;
        let _ = writeln!(text, "| {what} | {:.2} million | {ratio:.2} × |", count / 1e6);
    }
    Some(text)
}

fn count(call: &Call) -> f64 {
    let options = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let shown = call.through(Path::new("valgrind"), &options).run();
    assert!(shown.success, "{shown:?}");
    let (_, after) = shown.output.split_once("Collected : ").unwrap_or_else(|| panic!("{shown:?}"));
    after.split_whitespace().next().unwrap().parse().unwrap()
}
