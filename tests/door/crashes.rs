//! `kill -9` at every write and at any moment: the records are whole, the next hook works, and no
//! loop ever continues past its limit.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use rustix::process::{Signal, kill_process_group};
use serde_json::Value;

use super::{Answer, Dice, Door, Event, assert_gone};
use crate::sandbox::{DEADLINE, Sandbox, poll_until};
use crate::spawned::{Ran, Running};

/// Every point at which a build with faults can be made to fail, as listed in its source.
pub(super) fn points() -> Vec<&'static str> {
    let source = include_str!("../../crates/world/src/fault.rs");
    let (_, list) = source.split_once("pub const POINTS").unwrap();
    let (_, list) = list.split_once("= [").unwrap();
    let points: Vec<&str> =
        list.split_once("];").unwrap().0.split('"').skip(1).step_by(2).collect();
    assert!(points.contains(&"journal.open") && points.contains(&"answer"), "{points:?}");
    points
}

/// Kills at the first pass of each point, then at the second, and so on as long as `attempt` is
/// killed.
fn kill_everywhere(at_least: usize, mut attempt: impl FnMut(&str) -> bool) {
    let mut kills = 0;
    for point in points() {
        for nth in 1.. {
            if !attempt(&format!("{point}#{nth}=kill")) {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills >= at_least, "only {kills} kills");
}

fn killed(ran: &Ran) -> bool {
    ran.status.signal() == Some(Signal::KILL.as_raw())
}

fn send_until_killed(event: Event<'_>, fault: &str) -> Ran {
    event.env("CREW_FAULT", fault).start().wait(DEADLINE)
}

/// Asserts that the commands work, whatever is left on the disk.
#[track_caller]
fn assert_readable(door: &Door, why: &str) -> Vec<Value> {
    let shown = door.sandbox.crew(&["status", "--json"]);
    assert_eq!((shown.code(), shown.stderr.as_str()), (0, ""), "{why}");
    let shown = door.sandbox.crew(&["status", "--json", "--all"]).success();
    serde_json::from_str::<Value>(&shown).unwrap()["loops"].as_array().unwrap().clone()
}

/// Sends stops until the loop has ended, and returns how often it continued.
#[track_caller]
fn run_out(door: &Door, id: &str, why: &str) -> u64 {
    let mut continued = 0;
    for stop in 0..200 {
        let answer = door.stop(&format!("running out, {stop}"));
        assert!(answer.ran.code() == 0 && answer.ran.stderr.is_empty(), "{why}: {answer:#?}");
        continued += u64::from(answer.goes_on());
        if door.record(id)["state"]["status"] == "finished" {
            return continued;
        }
    }
    panic!("{why}: the loop has no end");
}

#[test]
#[ignore = "long"]
fn a_boundary_that_is_killed_at_any_write_loses_at_most_itself() {
    let door = Door::of(Sandbox::without_git().with_faults());
    kill_everywhere(16, |fault| {
        let id = door.begin("\"go on\" -n 3 --stall 0 --gate true --replace");
        let ran = send_until_killed(door.stopping("the killed stop"), fault);
        assert!(!ran.stdout.contains("additionalContext") || !killed(&ran), "{fault}");
        let loops = assert_readable(&door, fault);
        assert!(loops.iter().any(|one| one["id"] == *id), "{fault}");
        let continued = u64::from(!killed(&ran)) + run_out(&door, &id, fault);
        assert!((1..=2).contains(&continued), "{fault}: {continued}");
        let state = &door.record(&id)["state"];
        assert_eq!(state["ending"]["outcome"], "exhausted", "{fault}");
        assert_eq!(state["completed"], 3, "{fault}");
        killed(&ran)
    });
}

#[test]
#[ignore = "long"]
fn the_last_boundary_killed_at_any_write_still_ends_the_loop() {
    let door = Door::of(Sandbox::without_git().with_faults());
    kill_everywhere(16, |fault| {
        let id = door.begin("\"go on\" -n 1 --stall 0 --replace");
        let ran = send_until_killed(door.stopping("the killed stop"), fault);
        assert_readable(&door, fault);
        door.stop("the next one").assert_lets_go();
        let state = &door.record(&id)["state"];
        assert_eq!(state["ending"]["outcome"], "exhausted", "{fault}");
        assert_eq!(state["completed"], 1, "{fault}");
        assert!(door.file(&id, "result.json").exists(), "{fault}");
        killed(&ran)
    });
}

#[test]
#[ignore = "long"]
fn messages_of_a_lost_prompt_are_delivered_once_with_the_next_one() {
    let door = Door::of(Sandbox::without_git().with_faults());
    for fault in ["record.between#1=kill", "record.after#1=kill", "answer#1=kill", "answer#1=5"] {
        let id = door.begin("\"go on\" -n 9 --stall 0 --replace");
        door.sandbox.crew(&["tell", "--loop", &id, "use the parser"]).success();
        let lost = send_until_killed(door.stopping("the lost stop"), fault);
        assert!(lost.stdout.is_empty(), "{fault}: {lost:#?}");
        door.sandbox.crew(&["tell", "--loop", &id, "and be quick"]).success();
        let shown = door.stop("the next one").assert_goes_on();
        assert!(shown.context().contains("The user says: use the parser"), "{fault}: {shown:#?}");
        assert!(shown.context().contains("The user says: and be quick"), "{fault}: {shown:#?}");
        let after = door.stop("and the one after").assert_goes_on();
        assert!(!after.context().contains("The user says"), "{fault}: {after:#?}");
    }
}

#[test]
#[ignore = "long"]
fn messages_of_a_lost_resume_are_delivered_with_the_next_prompt() {
    let door = Door::of(Sandbox::without_git().with_faults());
    for fault in ["record.after#1=kill", "answer#1=kill"] {
        let id = door.begin("\"go on\" -n 9 --stall 0 --replace");
        door.stop("one").assert_goes_on();
        door.sandbox.crew(&["pause", &id]).success();
        door.stop("two").assert_lets_go();
        door.sandbox.crew(&["tell", "--loop", &id, "use the parser"]).success();
        let resume = door.command(&id).with("command_name", "crew:resume");
        let lost = send_until_killed(resume, fault);
        assert!(lost.stdout.is_empty(), "{fault}: {lost:#?}");
        let shown = door.stop("three").assert_goes_on();
        assert!(shown.context().contains("The user says: use the parser"), "{fault}: {shown:#?}");
        let after = door.stop("four").assert_goes_on();
        assert!(!after.context().contains("The user says"), "{fault}: {after:#?}");
    }
}

type Reader = fn(&Door, &str);

#[test]
#[ignore = "long"]
fn the_next_reader_finishes_the_files_of_an_ending_whose_writer_was_killed() {
    let read_by: [(&str, Reader); 4] = [
        ("status", |door, id| drop(door.status(id))),
        ("a new session", |door, _| {
            let _ = door.event("SessionStart").with("source", "startup").send();
        }),
        ("the next stop", |door, _| door.stop("the next one").assert_silent()),
        ("resume", |door, _| {
            let resume = door.command("-n +1").with("command_name", "crew:resume").send();
            assert!(resume.assert_goes_on().context().contains("/handoffs/exhausted-"));
        }),
    ];
    for (reader, read) in read_by {
        let door = Door::of(Sandbox::new().with_faults());
        let id = door.begin("\"go on\" -n 1 --stall 0");
        let ran = send_until_killed(door.stopping("the killed stop"), "record.after#1=kill");
        assert!(killed(&ran), "{reader}");
        assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "exhausted", "{reader}");
        assert!(!door.file(&id, "result.json").exists() && door.handoffs().is_empty(), "{reader}");
        read(&door, &id);
        assert!(door.file(&id, "result.json").exists(), "{reader}");
        assert_eq!(door.handoffs().len(), 1, "{reader}");
        door.status(&id);
        assert_eq!(door.handoffs().len(), 1, "{reader}, and a second look");
    }
}

#[test]
#[ignore = "long"]
fn a_start_killed_at_any_write_leaves_a_loop_or_nothing() {
    kill_everywhere(25, |fault| {
        let door = Door::of(Sandbox::without_git().with_faults());
        let typed = "\"go on\" -n 2 --stall 0";
        let ran = send_until_killed(door.command(typed), fault);
        let loops = assert_readable(&door, fault);
        let answer = door.stop("the stop after").assert_lets_go_unless(!loops.is_empty());
        assert_eq!(answer.ran.stderr, "", "{fault}");
        let again = door.command(typed).with("prompt_id", "p-2").send();
        assert_eq!(again.goes_on(), loops.is_empty(), "{fault}: {again:#?}");
        let id = assert_readable(&door, fault)[0]["id"].as_str().unwrap().to_owned();
        assert!(u64::from(answer.goes_on()) + run_out(&door, &id, fault) <= 1, "{fault}");
        assert_eq!(door.record(&id)["state"]["completed"], 2, "{fault}");
        killed(&ran)
    });
}

#[test]
#[ignore = "long"]
fn a_cancel_killed_at_any_write_takes_effect_once_its_request_is_written() {
    let door = Door::of(Sandbox::without_git().with_faults());
    kill_everywhere(16, |fault| {
        let id = door.begin("\"go on\" -n 9 --stall 0 --replace");
        let mut command = door.sandbox.command(door.sandbox.build().path());
        command.args(["cancel", &id]).env("CREW_FAULT", fault);
        let ran = Running::start(command, None).wait(DEADLINE);
        let ordered = door.file(&id, "cancel").exists();
        assert_readable(&door, fault);
        assert_eq!(door.stop("the stop after").goes_on(), !ordered, "{fault}");
        door.sandbox.crew(&["cancel", &id]).success();
        door.stop("the stop after the cancel").assert_lets_go_after_a_cancel();
        assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "cancelled", "{fault}");
        killed(&ran)
    });
}

#[test]
#[ignore = "long"]
fn hooks_killed_at_any_moment_leave_a_valid_loop_and_no_process() {
    const SEED: u64 = 0x5eed_0002;
    let door = Door::of(Sandbox::without_git());
    // A check that is cut off leaves a process behind.
    let check = "sleep 300 & echo $! >> pids; sleep 0.004; kill $!; wait $!; true";
    let id = door.begin(&format!("\"go on\" -n 120 --stall 0 --gate '{check}'"));
    let mut dice = Dice(SEED);
    let mut continued = 0;
    let mut kills = 0;
    for round in 0..200 {
        let hook = door.stopping(&format!("killed stop {round}")).start();
        std::thread::sleep(Duration::from_micros(dice.below(30_000)));
        kill_process_group(hook.pid(), Signal::KILL).ok();
        let ran = hook.wait(DEADLINE);
        kills += u64::from(killed(&ran));
        continued += u64::from(ran.stdout.contains("additionalContext"));
        assert!(killed(&ran) || ran.code() == 0, "seed {SEED:#x}, round {round}: {ran:#?}");
        let status = door.status(&id);
        assert!(status["completed_iterations"].is_u64(), "seed {SEED:#x}, round {round}");
    }
    println!("{kills} of 200 hooks were killed, {continued} had answered");
    let why = format!("seed {SEED:#x}");
    continued += run_out(&door, &id, &why);
    assert!(continued < 120, "{why}: went on {continued} times");
    assert_eq!(door.record(&id)["state"]["completed"], 120, "{why}");
    assert_gone(&std::fs::read_to_string(door.sandbox.file("pids")).unwrap());
}

#[test]
fn a_check_whose_hook_was_killed_is_ended_by_the_next_command() {
    let door = Door::of(Sandbox::without_git());
    let check = "sleep 300 & echo $$ $! > pids; wait";
    let pids = door.sandbox.file("pids");
    for ended_by in ["a cancel", "a session's end", "a new start"] {
        let typed = format!("\"go on\" -n 9 --stall 0 --gate '{check}'");
        let id = door.begin(&typed);
        let hook = door.stopping("the killed stop").start();
        poll_until("the check's ids", || std::fs::read(&pids).is_ok_and(|text| !text.is_empty()));
        kill_process_group(hook.pid(), Signal::KILL).unwrap();
        drop(hook);
        match ended_by {
            "a cancel" => drop(door.sandbox.crew(&["cancel", &id]).success()),
            "a session's end" => {
                door.event("SessionEnd").with("reason", "other").send().assert_silent();
            }
            _ => drop(door.begin("\"go on\" --replace")),
        }
        assert_gone(&std::fs::read_to_string(&pids).unwrap());
        std::fs::remove_file(&pids).unwrap();
        assert_eq!(door.record(&id)["state"]["completed"], 0, "{ended_by}");
    }
}

impl Answer {
    /// As `assert_lets_go`, for a loop that may not exist.
    #[track_caller]
    fn assert_lets_go_unless(self, there_is_a_loop: bool) -> Self {
        if there_is_a_loop { self } else { self.assert_lets_go() }
    }
}
