//! Measures crew's hooks and writes the figures into BENCHMARKS.md: `cargo bench --bench hook`.
//! With `--check` after a second `--`, a missed bound is also an exit status of 1; no test ever
//! asserts a time.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement acts on the real world and tells what it sees"
)]

mod call;
mod evidence;
mod figures;
mod fleet;
mod long;
mod run;
mod site;
mod speed;
mod steer;
mod transcript;
mod weigh;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use figures::{Row, table};
use speed::Transcripts;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/BENCHMARKS.md");
const BEGIN: &str = "<!-- figures: begin -->\n";
const END: &str = "<!-- figures: end -->\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == weigh::METER) {
        return weigh::meter(&arguments[1..]);
    }
    // `cargo test --all-targets` also starts this program.
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("to measure: cargo bench --bench hook");
        return ExitCode::SUCCESS;
    }
    let folder = tempfile::Builder::new().prefix("hook-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.unwrap();
    let (rows, figures) = measure(&folder.path().canonicalize().unwrap());
    println!("{figures}");
    write(&figures);
    let missed = rows.iter().any(|row| row.holds == Some(false));
    let check = arguments.iter().any(|argument| argument == "--check");
    if check && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn measure(folder: &Path) -> (Vec<Row>, String) {
    let noop = compile_noop(folder);
    site::install(folder);
    let transcripts = Transcripts::write(folder);
    let mut rows = speed::idle(folder, &noop);
    rows.extend(speed::active(folder, &transcripts));
    rows.extend(speed::archive(folder, &transcripts));
    rows.extend(weigh::memory(folder, &noop, &transcripts));
    rows.push(steer::status(folder));
    rows.push(steer::crowd(folder));
    rows.extend(run::iteration(folder));
    rows.extend(fleet::rows(folder));
    rows.extend(evidence::rows(folder));
    rows.extend(long::rows(folder));
    let counts = weigh::instructions(folder, &noop, &transcripts);
    let counts = counts.unwrap_or_else(|| "Not counted: there is no valgrind here.\n".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = format!(
        "Measured on {} ({}), {cores} cores.",
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    let figures = format!(
        "{machine}\n\n{}\nInstructions in user space, by `valgrind --tool=callgrind`:\n\n{counts}",
        table(&rows)
    );
    (rows, figures)
}

/// Builds the program that does only what every hook must do, and returns a copy.
fn compile_noop(folder: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/noop.rs");
    let built = folder.join("noop-built");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(compiler);
    command.args(["-O", "-C", "strip=symbols", "--edition", "2024", "-o"]).arg(&built).arg(source);
    assert!(command.status().unwrap().success(), "{command:?}");
    site::copied(&built, &folder.join("noop"))
}

/// Puts the figures between the page's marks.
fn write(figures: &str) {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a mark for the beginning");
    let (_, after) = rest.split_once(END).expect("the page has a mark for the end");
    std::fs::write(PAGE, format!("{before}{BEGIN}\n{figures}\n{END}{after}")).unwrap();
}
