//! Agents that behave badly, through the built program: how the loop ends, what is reported of the
//! iteration, and that none of their processes is left. The scripts are in tests/children.

#[cfg(target_os = "linux")]
use std::time::Duration;

use serde_json::Value;

use super::World;
use crate::sandbox::{DEADLINE, Sandbox, checkout};
use crate::spawned::Ran;

/// A run of one iteration, or to its first failure.
struct Bad {
    script: &'static str,
    options: &'static [&'static str],
    exit: i32,
    /// The failure according to the record and the journal.
    failure: Option<&'static str>,
    /// A text near the end of the iteration's log.
    log: &'static str,
}

impl Bad {
    fn arguments(&self) -> Vec<&'static str> {
        let arguments = ["run", "Do it", "-n", "1", "--failure-threshold", "1"];
        [&arguments, self.options].concat()
    }

    #[track_caller]
    fn check(&self, world: &World, ran: &Ran) {
        let Self { script, exit, failure, log, .. } = *self;
        assert_eq!(ran.code(), exit, "{script}: {ran:#?}");
        let reported = world.the_loop();
        let outcome = if exit == 11 { "aborted" } else { "exhausted" };
        assert_eq!(reported["outcome"], outcome, "{script}: {reported:#}");
        let failure = failure.map_or(Value::Null, Value::from);
        assert_eq!(reported["evidence"]["failure"], failure, "{script}: {reported:#}");
        assert_eq!(journalled(world)["evidence"]["failure"], failure, "{script}");
        let shown =
            world.crew(&["show", &world.id(), "--iteration", "1", "--log", "--raw"]).success();
        let end: String =
            shown.chars().rev().take(200).collect::<Vec<_>>().into_iter().rev().collect();
        assert!(end.contains(log), "{script}: {end:?}");
        assert_eq!(left(world), [""; 0], "{script}: processes are left");
    }
}

const TABLE: [Bad; 9] = [
    Bad {
        script: "ignores_term",
        options: &["--timeout", "1s"],
        exit: 11,
        failure: Some("the iteration ran into its timeout of 1s"),
        log: "I stay",
    },
    Bad { script: "leaves_grandchildren", options: &[], exit: 10, failure: None, log: "I go" },
    Bad {
        script: "closes_stdout",
        options: &[],
        exit: 11,
        failure: Some("the agent exited with status 7"),
        log: "last words",
    },
    Bad {
        script: "never_reads",
        options: &["-c", "big.txt"],
        exit: 10,
        failure: None,
        log: "what prompt?",
    },
    Bad {
        script: "closes_stdin",
        options: &["-c", "big.txt"],
        exit: 10,
        failure: None,
        log: "enough: ",
    },
    Bad {
        script: "prints_no_text",
        options: &[],
        exit: 10,
        failure: None,
        log: "no line break \u{fffd}",
    },
    Bad {
        script: "falls_silent",
        options: &["--idle-timeout", "1s"],
        exit: 11,
        failure: Some("the agent printed nothing for 1s and was ended"),
        log: "let me think",
    },
    Bad {
        script: "works_silently",
        options: &["--idle-timeout", "1s"],
        exit: 10,
        failure: None,
        log: "It is made.",
    },
    Bad {
        script: "stops_itself",
        options: &["--timeout", "1s"],
        exit: 11,
        failure: Some("the iteration ran into its timeout of 1s"),
        log: "in order",
    },
];

fn world(script: &str) -> World {
    let script = checkout().join("tests/children").join(format!("{script}.sh"));
    let sandbox = Sandbox::new().env("SECONDS_STOPPED", "4");
    let ids = sandbox.root().join("ids").display().to_string();
    let sandbox = sandbox.env("CHILDREN", &ids);
    let step = format!("exec sh '{}'", script.display());
    // The script may read the prompt or not.
    sandbox.program("agent", &step);
    let world = World { sandbox };
    // The others print no events.
    if script.ends_with("works_silently.sh") {
        return world.speaks_claude("");
    }
    world.settings("");
    world
}

#[test]
#[ignore = "long"]
fn misbehaving_children_end_and_leave_no_process() {
    for bad in TABLE {
        println!("{}", bad.script);
        let world = world(bad.script);
        world.sandbox.write("big.txt", &"P".repeat(2 << 20));
        let ran = world.sandbox.start_crew(&bad.arguments()).wait(DEADLINE * 3);
        bad.check(&world, &ran);
    }
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "long"]
fn a_gigabyte_of_output_does_not_grow_crews_memory() {
    for (script, log) in [("prints_a_gigabyte", "that was all"), ("prints_no_lines", "\u{fffd}")] {
        let bad = Bad { script, options: &[], exit: 10, failure: None, log };
        let world = world(script);
        let running = world.sandbox.start_crew(&bad.arguments());
        let status = format!("/proc/{}/status", running.pid().as_raw_nonzero());
        let mut peak = 0;
        while let Some(kib) = peak_kib(&status) {
            peak = kib.max(peak);
            std::thread::sleep(Duration::from_millis(10));
        }
        println!("{script}: at most {} MiB", peak >> 10);
        assert!(peak > 0 && peak <= 32 << 10, "{script}: {peak} KiB");
        bad.check(&world, &running.wait(DEADLINE));
        let folder = world.sandbox.crew_home().join("loops").join(world.id());
        for name in ["0001.log", "0001.log.old"] {
            let kept = folder.join("iterations").join(name).metadata().unwrap().len();
            assert!(kept <= 10 << 20, "{script}: {kept} bytes of {name}");
        }
    }
}

/// The peak memory of a process; `None` once it has ended.
#[cfg(target_os = "linux")]
fn peak_kib(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().trim_end_matches(" kB").parse().ok()
}

/// `SIGSTOP` of crew and its agent stands for a machine that sleeps: at most a second of it counts,
/// for the iteration's timeout, for its time, and for the loop's.
#[test]
fn time_in_which_crew_and_its_agent_are_stopped_counts_for_no_limit() {
    let world = world("stops_everyone");
    let limits = ["--timeout", "3s", "--max-duration", "4s"];
    let ran = world.crew(&[&["run", "Do it", "-n", "2"], &limits[..]].concat());
    let reported = world.the_loop();
    assert_eq!(
        (ran.code(), reported["completed_iterations"].as_u64()),
        (10, Some(2)),
        "{reported:#}"
    );
    assert_eq!(reported["why"], "the limit of 2 iterations is reached");
    assert_eq!(reported["evidence"]["failure"], Value::Null, "{reported:#}");
    assert!(reported["awake_ms"].as_u64().unwrap() < 4000, "{reported:#}");
}

#[test]
fn the_standard_error_of_an_agent_is_shown_to_people_and_the_next_agent() {
    let world = World::new(&["echo 'no key' >&2; echo '  is set' >&2; exit 3", super::WORK]);
    let ran = world.crew(&["run", "Do it", "-n", "2"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let reported = "The iteration counts as a failure: the agent exited with status 3.\n  \
                Its last lines on standard error:\n    no key\n      is set\n";
    assert!(world.prompt(2).contains(reported), "{}", world.prompt(2));
    let shown = world.crew(&["show", &world.id(), "--iteration", "1"]).success();
    let reported =
        "  failure the agent exited with status 3\n          no key\n            is set\n";
    assert!(shown.contains(reported), "{shown}");
}

#[test]
fn an_aborted_run_shows_the_standard_error_of_its_agent() {
    let world = World::new(&["echo 'command not found' >&2; exit 127"]);
    let ran = world.crew(&["run", "Do it"]);
    assert_eq!(ran.code(), 11, "{ran:#?}");
    assert!(ran.stdout.contains("standard error\n          command not found\n"), "{}", ran.stdout);
    let world = World::new(&["echo 'no key' >&2; echo 'is set' >&2; exit 3"]);
    let page = world.crew(&["run", "Do it"]).stdout;
    let reported =
        "  stderr  the agent's last lines on standard error\n          no key\n          is set\n";
    assert!(page.contains(reported), "{page}");
}

#[test]
fn the_page_says_that_an_agent_closed_its_output_and_kept_running() {
    let ran = world("closes_stdout").crew(&["run", "Do it", "-n", "1"]);
    assert!(
        ran.stderr.contains("the agent closed its standard output and kept running"),
        "{ran:#?}"
    );
}

/// The journal's line about the only iteration.
#[track_caller]
fn journalled(world: &World) -> Value {
    let reported = world.crew(&["show", &world.id(), "--iteration", "1", "--json"]).success();
    serde_json::from_str::<Value>(&reported).unwrap()["iteration"].clone()
}

/// The remaining processes of the script.
fn left(world: &World) -> Vec<String> {
    let ids = std::fs::read_to_string(world.sandbox.root().join("ids")).unwrap();
    let lives = |id: &&str| {
        let id = rustix::process::Pid::from_raw(id.parse().unwrap()).unwrap();
        rustix::process::test_kill_process(id).is_ok()
    };
    ids.lines().filter(lives).map(str::to_owned).collect()
}
