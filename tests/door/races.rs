//! Many hooks and cancels at once: each boundary is recorded whole, counted once, and nothing
//! continues after a cancel.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};
use std::vec::Drain;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::{Answer, Dice, Door, Event, SESSION, replay, reported};
use crate::sandbox::{DEADLINE, Sandbox, crew, poll_until};
use crate::spawned::{Ran, in_new_session};

const ROUNDS: u64 = 50;
const PROCESSES: u64 = 100;

/// One of many simultaneous processes: its output, when it got its input, and how long it then
/// took.
struct Shot {
    ran: Ran,
    given: Instant,
    took: Duration,
}

/// When a process is given its input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Input {
    /// As soon as it is started, one process after the other.
    AtOnce,
    /// When all are started: they all wait, and then run at the same time.
    Together,
}

/// Starts all of them as fast as the machine can, and waits for each on a separate thread, because
/// a hundred polling waits would be the measured load.
fn at_once(commands: Vec<(Command, String)>, input: Input) -> Vec<Shot> {
    let (sender, receiver) = mpsc::channel();
    let count = commands.len();
    let mut waiting = Vec::new();
    for (index, (mut command, text)) in commands.into_iter().enumerate() {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        in_new_session(&mut command);
        waiting.push((index, command.spawn().unwrap(), text));
        if input == Input::AtOnce {
            give(waiting.drain(..), &sender);
        }
    }
    give(waiting.drain(..), &sender);
    let mut shots: Vec<(usize, Shot)> =
        (0..count).map(|_| receiver.recv_timeout(DEADLINE).expect("a process hangs")).collect();
    shots.sort_by_key(|(index, _)| *index);
    shots.into_iter().map(|(_, shot)| shot).collect()
}

fn give(waiting: Drain<'_, (usize, Child, String)>, sender: &Sender<(usize, Shot)>) {
    for (index, mut child, text) in waiting {
        let given = Instant::now();
        // A process that does not read its input may be gone already.
        child.stdin.take().unwrap().write_all(text.as_bytes()).ok();
        let sender = sender.clone();
        std::thread::spawn(move || {
            let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
            let took = given.elapsed();
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            let ran = Ran { status, stdout: text(stdout), stderr: text(stderr) };
            sender.send((index, Shot { ran, given, took })).ok();
        });
    }
}

/// A hook and the event it gets.
fn hook(event: &Event<'_>) -> (Command, String) {
    (event.hook(), event.payload.to_string())
}

fn counted(journal: &[Value]) -> usize {
    journal.iter().filter(|line| !reported(line)["elapsed_ms"].is_null()).count()
}

/// Asserts what must be true of every loop, however many processes used it.
fn assert_sound(door: &Door, id: &str, why: &str) {
    let journal = door.journal(id);
    let record = door.record(id);
    let generations: Vec<u64> = journal
        .iter()
        .filter(|line| line["event"]["noted"].is_null())
        .map(|line| line["generation"].as_u64().unwrap())
        .collect();
    assert!(generations.is_sorted_by(|one, next| one < next), "{why}: {generations:?}");
    assert_eq!(replay(&journal), record, "{why}");
    assert_eq!(record["state"]["completed"], counted(&journal), "{why}");
}

/// One loop, a hundred processes, one of them a cancel. Returns the longest time one of them took.
fn one_round(door: &Door, dice: &mut Dice, round: u64, input: Input) -> Duration {
    let id = door.begin("\"go on\" -n 1000 --stall 0");
    let cancel_at = usize::try_from(dice.below(PROCESSES)).unwrap();
    let mut commands: Vec<(Command, String)> = (0..PROCESSES)
        // Every fourth is a second report of the stop before it.
        .map(|n| hook(&door.stopping(&format!("stop {}", n - u64::from(n % 4 == 3)))))
        .collect();
    commands[cancel_at].0 = door.sandbox.command(crew());
    commands[cancel_at].0.args(["cancel", &id]);
    let shots = at_once(commands, input);
    let why = format!("round {round}, {input:?}, cancel at {cancel_at}");
    let cancelled = shots[cancel_at].given + shots[cancel_at].took;
    let mut going_on = 0;
    let mut slowest = Duration::ZERO;
    for (index, shot) in shots.into_iter().enumerate() {
        slowest = slowest.max(shot.took);
        let quiet = shot.ran.code() == 0 && shot.ran.stderr.is_empty();
        assert!(quiet, "{why}: {:#?}", shot.ran);
        if index == cancel_at {
            // Even where a stop obeyed the order first.
            let shown = &shot.ran.stdout;
            assert!(!shown.contains("already over"), "{why}: {shown}");
        } else if Answer::of(shot.ran).goes_on() {
            going_on += 1;
            assert!(shot.given < cancelled, "{why}: a stop after the cancel goes on");
        }
    }
    door.stop("after the cancel").assert_lets_go_after_a_cancel();
    door.stop("after that").assert_silent();
    assert_sound(door, &id, &why);
    let journal = door.journal(&id);
    let continued = journal.iter().filter(|line| reported(line)["decision"] == "continue").count();
    // The one whose record the cancel came after stays silent.
    assert!((going_on..=going_on + 1).contains(&continued), "{why}: {going_on} of {continued}");
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "cancelled", "{why}");
    slowest
}

#[test]
fn a_pause_between_a_boundary_and_its_wake_pauses_the_loop() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    // At this cap every continuation is a wake.
    let near = || door.stopping("one").env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2");
    let companion = near().companion();
    let wakes = door.sandbox.crew_home().join("wakes").join(SESSION);
    let files_hold = |text: &str| {
        std::fs::read_dir(&wakes).into_iter().flatten().flatten().any(|file| {
            std::fs::read_to_string(file.path()).is_ok_and(|found| found.contains(text))
        })
    };
    poll_until("the companion waits", || files_hold("waiting"));
    kill_process(companion.pid(), Signal::STOP).unwrap();
    let hook = near().start();
    poll_until("the companion's ticket", || files_hold("due"));
    door.sandbox.crew(&["pause", &id]).success();
    kill_process(companion.pid(), Signal::CONT).unwrap();
    let companion = companion.wait(DEADLINE);
    assert_eq!((companion.code(), companion.stderr.as_str()), (0, ""));
    let answer = Answer::of(hook.wait(DEADLINE)).assert_lets_go();
    assert!(answer.line().contains("paused after 1 iteration "), "{answer:#?}");
    assert_eq!(door.status(&id)["status"], "paused");
}

/// If both ends arrive at the same time, a busy client handles the answer first and ends its
/// session.
#[test]
fn a_boundary_answers_only_after_the_client_has_seen_its_companion_end() {
    let door = Door::of(Sandbox::without_git());
    door.begin("\"go on\" -n 9 --stall 0");
    let near = || door.stopping("one").env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2");
    let companion = near().companion();
    let hook = near().start();
    poll_until("the companion's end", || companion.has_ended());
    std::thread::sleep(Duration::from_millis(150));
    assert!(!hook.has_ended(), "the boundary answers before its client has seen the wake");
    let companion = companion.wait(DEADLINE);
    assert_eq!(companion.code(), 2, "{companion:#?}");
    let answer = Answer::of(hook.wait(DEADLINE));
    assert!(!answer.goes_on() && answer.line().starts_with("crew 1/9 "), "{answer:#?}");
}

#[test]
#[ignore = "long"]
fn a_hundred_concurrent_hooks_and_cancels_lose_nothing_and_count_nothing_twice() {
    let door = Door::of(Sandbox::without_git());
    let mut dice = Dice(0x5eed_0001);
    let begun = Instant::now();
    let slowest = (0..ROUNDS)
        .map(|round| {
            let input = if round % 2 == 0 { Input::AtOnce } else { Input::Together };
            one_round(&door, &mut dice, round, input)
        })
        .max()
        .unwrap();
    println!(
        "{ROUNDS} rounds of {PROCESSES} in {:?}, the slowest took {slowest:?}",
        begun.elapsed()
    );
}

#[test]
fn a_plugin_loaded_twice_counts_each_boundary_once() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 1000 --stall 0");
    for boundary in 1..=30_u64 {
        let event = door.stopping(&format!("stop {boundary}"));
        let shots = at_once(vec![hook(&event), hook(&event)], Input::Together);
        let answers: Vec<Answer> = shots.into_iter().map(|shot| Answer::of(shot.ran)).collect();
        let going_on = answers.iter().filter(|answer| answer.goes_on()).count();
        assert_eq!(going_on, 1, "boundary {boundary}: {answers:#?}");
        assert_eq!(door.record(&id)["state"]["completed"], boundary);
    }
    assert_sound(&door, &id, "a plugin loaded twice");
}

#[test]
fn a_command_received_twice_starts_one_loop_and_neither_copy_is_refused() {
    for round in 0..10 {
        let door = Door::new();
        let event = door.command("\"go on\" --verify true");
        let shots = at_once(vec![hook(&event), hook(&event)], Input::Together);
        let answers: Vec<Answer> = shots.into_iter().map(|shot| Answer::of(shot.ran)).collect();
        let why = format!("round {round}: {answers:#?}");
        assert!(answers.iter().all(|answer| answer.json["decision"].is_null()), "{why}");
        assert_eq!(answers.iter().filter(|answer| answer.goes_on()).count(), 1, "{why}");
        let shown = door.sandbox.crew(&["status", "--all", "--json"]).success();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["loops"].as_array().unwrap().len(), 1, "{why}");
    }
}

/// Keeps a loop's lock, as a hanging crew would. It must be unlocked, not dropped: a child that
/// another test forks at that moment keeps the file open a little longer.
fn keep(door: &Door, id: &str, name: &str) -> File {
    let file = File::options().write(true).create(true).truncate(false).open(door.file(id, name));
    let file = file.unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn a_lock_that_is_never_released_delays_no_hook_for_long() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let kept = keep(&door, &id, "boundary.lock");
    door.stop("beside another boundary").assert_silent();
    kept.unlock().unwrap();
    let kept = keep(&door, &id, "loop.lock");
    let answer = door.stop("nobody can record this").assert_lets_go();
    assert!(answer.ran.stderr.contains("busy"), "{answer:#?}");
    door.sandbox.crew(&["status"]).success();
    kept.unlock().unwrap();
    door.stop("this one counts").assert_goes_on();
    assert_eq!(door.record(&id)["state"]["completed"], 1);
}

#[test]
fn a_cancel_or_session_end_that_cannot_get_the_lock_takes_effect_at_the_next_stop() {
    let door = Door::of(Sandbox::without_git());
    for outcome in ["cancelled", "interrupted"] {
        let id = door.begin("\"go on\" -n 9 --stall 0");
        let kept = keep(&door, &id, "loop.lock");
        if outcome == "cancelled" {
            door.sandbox.crew(&["cancel", &id]).success();
        } else {
            door.event("SessionEnd").with("reason", "clear").send().assert_silent();
        }
        kept.unlock().unwrap();
        door.stop("the next stop").assert_lets_go();
        assert_eq!(door.record(&id)["state"]["ending"]["outcome"], outcome);
        assert_eq!(door.record(&id)["state"]["completed"], 0);
    }
}
