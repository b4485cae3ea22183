//! Misbehaving children. Each test has a separate process that adopts what they leave behind,
//! because the other tests of this program have children too, which must not be ended.

use std::path::PathBuf;

use super::*;
use crate::files::disk;
use crate::process::fixture::run_alone;
use crate::process::{StopRequest, Stream, descendants, identity};

/// The observations of an agent.
#[derive(Debug, Default)]
struct Seen {
    lines: usize,
    bytes: usize,
    last: String,
    errors: Vec<String>,
    tool_is_open: bool,
    /// The result of `stop` after the first line was seen.
    stop: Option<StopRequest>,
}

impl Watch for Seen {
    fn line(&mut self, stream: Stream, line: &str) {
        if stream == Stream::Errors {
            self.errors.push(line.to_owned());
            return;
        }
        self.lines += 1;
        self.bytes += line.len();
        if line.len() > 1000 {
            return;
        }
        line.clone_into(&mut self.last);
        if line.contains("\"tool_") {
            self.tool_is_open = line.contains("\"tool_use\"");
        }
    }

    fn tool_is_open(&self) -> bool {
        self.tool_is_open
    }

    fn stop(&mut self) -> Option<StopRequest> {
        if self.lines > 0 { self.stop } else { None }
    }
}

/// The options for running a child.
#[derive(Debug, Clone, Copy, Default)]
struct Terms {
    timeout_ms: Option<u64>,
    idle_ms: Option<u64>,
    stop: Option<StopRequest>,
    input: usize,
}

/// Runs a script of `tests/children` and asserts that none of its processes is left. Returns how it
/// ended, what was observed, and its log.
fn child(script: &str, asked: Terms) -> (FinishedAgent, Seen, String) {
    let folder = testkit::folder();
    let ids = folder.path().join("ids");
    let script =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/children").join(script);
    let input = vec![b'p'; asked.input];
    let call = Call::of("sh", folder.path())
        .args([script])
        .envs([("CHILDREN", ids.display().to_string()), ("SECONDS_STOPPED", "4".to_owned())])
        .input(&input)
        .within(Duration::from_millis(asked.timeout_ms.unwrap_or(60_000)));
    let (idle, log) =
        (asked.idle_ms.map(Duration::from_millis), folder.path().join("iterations/0001.log"));
    let mut seen = Seen { stop: asked.stop, ..Seen::default() };
    let ended = call.run_watched(idle, &log, &mut seen).unwrap();
    let ids = std::fs::read_to_string(ids).unwrap();
    let left: Vec<&str> = ids
        .lines()
        .filter(|id| identity::identify_process(id.parse().unwrap()).is_some())
        .collect();
    assert_eq!(left, [""; 0], "processes of the child are left");
    assert!(ended.left_behind().is_empty());
    #[cfg(target_os = "linux")]
    assert!(!descendants::has_children());
    let log = disk::read_end(&log, 0, 64 << 10).unwrap().0;
    (ended, seen, log)
}

#[test]
fn an_agent_that_ignores_term_is_killed_with_its_children() {
    run_alone(|| {
        let (ended, _, log) =
            child("ignores_term.sh", Terms { timeout_ms: Some(300), ..Terms::default() });
        assert_eq!((ended.cause(), log.as_str()), (ExitCause::TimedOut, "I stay\n"));
        for stop in [StopRequest::Now, StopRequest::Kill] {
            let terms = Terms { stop: Some(stop), ..Terms::default() };
            assert_eq!(child("ignores_term.sh", terms).0.cause, ExitCause::Stopped);
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn grandchildren_in_other_sessions_are_ended_with_the_agent() {
    run_alone(|| {
        let (ended, seen, _) = child("leaves_grandchildren.sh", Terms::default());
        assert_eq!((ended.cause(), seen.last.as_str()), (ExitCause::Exit(0), "I go"));
        assert!(!ended.closed_early());
    });
}

#[test]
fn an_agent_that_closes_its_output_runs_until_its_exit() {
    run_alone(|| {
        let (ended, seen, log) = child("closes_stdout.sh", Terms::default());
        assert_eq!((ended.cause(), ended.closed_early()), (ExitCause::Exit(7), true));
        assert_eq!((seen.last.as_str(), log.as_str()), ("last words", "last words\n"));
    });
}

#[test]
fn an_agent_that_does_not_read_its_prompt_does_not_block_crew() {
    run_alone(|| {
        let terms = Terms { input: 10 << 20, ..Terms::default() };
        let (ended, seen, _) = child("never_reads.sh", terms);
        assert_eq!((ended.cause(), seen.last.as_str()), (ExitCause::Exit(0), "what prompt?"));
        let terms = Terms { input: 1, timeout_ms: Some(5000), ..Terms::default() };
        assert_eq!(child("never_reads.sh", terms).0.cause, ExitCause::Exit(0));
        assert_eq!(
            child("closes_stdin.sh", Terms { input: 10 << 20, ..terms }).0.cause,
            ExitCause::Exit(0)
        );
    });
}

#[test]
fn a_prompt_of_ten_megabytes_arrives_whole() {
    run_alone(|| {
        let folder = testkit::folder();
        let line = [b"p".repeat(1023), b"\n".to_vec()].concat();
        let input = line.repeat(10 << 10);
        let call = Call::of("cat", folder.path()).input(&input).within(Duration::from_secs(60));
        let log = folder.path().join("0001.log");
        let mut seen = Seen::default();
        assert_eq!(call.run_watched(None, &log, &mut seen).unwrap().cause, ExitCause::Exit(0));
        assert_eq!((seen.lines, seen.bytes), (10 << 10, 1023 * (10 << 10)));
        assert_eq!(disk::size(&log), 10 << 20);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_gigabyte_of_output_does_not_fill_memory() {
    run_alone(|| {
        let (ended, seen, log) = child("prints_a_gigabyte.sh", Terms::default());
        assert_eq!(ended.cause(), ExitCause::Exit(0));
        assert_eq!((seen.lines, seen.bytes), (1_000_001, 999_000_012));
        assert!(log.ends_with("\nthat was all\n"));
        assert_peak_below_mib(32);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_gigabyte_without_line_breaks_does_not_fill_memory() {
    run_alone(|| {
        let (ended, seen, _) = child("prints_no_lines.sh", Terms::default());
        assert_eq!((ended.cause(), seen.lines), (ExitCause::Exit(0), 1));
        assert!(seen.bytes <= 1 << 20);
        assert_peak_below_mib(32);
    });
}

/// The peak memory of this process.
#[cfg(target_os = "linux")]
fn assert_peak_below_mib(most: u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("at most {} MiB", kib >> 10);
    assert!(kib <= most << 10, "{kib} KiB");
}

#[test]
fn bytes_that_are_not_text_are_replaced_for_the_watcher_and_kept_in_the_log() {
    run_alone(|| {
        let (ended, seen, _) = child("prints_no_text.sh", Terms::default());
        assert_eq!(ended.cause(), ExitCause::Exit(0));
        assert_eq!((seen.lines, seen.last.as_str()), (2, "no line break \u{fffd}"));
        assert_eq!(
            (seen.errors, ended.errors().as_str()),
            (vec!["\u{fffd}".to_owned()], "\u{fffd}\n")
        );
    });
}

#[test]
fn a_silent_agent_is_ended() {
    run_alone(|| {
        let terms = Terms { idle_ms: Some(500), ..Terms::default() };
        assert_eq!(child("falls_silent.sh", terms).0.cause, ExitCause::Idle);
    });
}

#[test]
fn an_agent_that_is_silent_during_a_tool_call_continues() {
    run_alone(|| {
        let terms = Terms { idle_ms: Some(1000), ..Terms::default() };
        let (ended, seen, _) = child("works_silently.sh", terms);
        assert_eq!((ended.cause(), seen.lines), (ExitCause::Exit(0), 3));
    });
}

#[test]
fn a_stop_of_crew_and_its_agent_does_not_count_as_time() {
    run_alone(|| {
        let terms = Terms { timeout_ms: Some(3000), idle_ms: Some(3000), ..Terms::default() };
        let (ended, seen, _) = child("stops_everyone.sh", terms);
        assert_eq!((ended.cause(), seen.last.as_str()), (ExitCause::Exit(0), "good morning"));
        assert!((2000..4000).contains(&ended.missed_ms()), "{}", ended.missed_ms());
    });
}

#[test]
fn an_agent_that_is_stopped_alone_times_out_and_ends_cleanly() {
    run_alone(|| {
        let terms = Terms { timeout_ms: Some(300), ..Terms::default() };
        let (ended, seen, _) = child("stops_itself.sh", terms);
        assert_eq!((ended.cause(), seen.last.as_str()), (ExitCause::TimedOut, "in order"));
    });
}

#[test]
fn a_signal_that_crew_did_not_send_is_reported() {
    run_alone(|| {
        let folder = testkit::folder();
        let call = Call::shell("kill -SEGV $$", folder.path());
        let log = folder.path().join("0001.log");
        let ended = call.run_watched(None, &log, &mut Seen::default()).unwrap();
        assert_eq!(ended.cause(), ExitCause::Signal(11));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_only_the_log() {
    run_alone(|| {
        let folder = testkit::folder();
        let call = Call::shell("echo one; sleep 0.1; echo two", folder.path());
        let mut seen = Seen::default();
        let ended = call.run_watched(None, Path::new("/dev/full"), &mut seen).unwrap();
        assert_eq!((ended.cause(), seen.lines), (ExitCause::Exit(0), 2));
        assert_eq!(ended.log_error().as_ref().unwrap().kind(), io::ErrorKind::StorageFull);
    });
}
