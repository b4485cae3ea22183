//! A broken environment: whatever is wrong, the stop is allowed in time, with at most one line for
//! the log, and nothing else is damaged.

use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};

use super::Door;
use super::crashes::points;
use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::Running;

fn remove(path: &Path) {
    std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path)).unwrap();
}

#[test]
fn a_home_that_is_missing_or_not_a_folder_lets_the_stop_through() {
    for path in ["", "loops", "sessions", "wakes"] {
        for as_file in [false, true] {
            let door = Door::of(Sandbox::without_git());
            door.begin("\"go on\" -n 9 --stall 0");
            let home = door.sandbox.crew_home();
            let broken = if path.is_empty() { home } else { home.join(path) };
            remove(&broken);
            if as_file {
                std::fs::write(&broken, "a file").unwrap();
            }
            let answer = door.stop("one");
            if path != "wakes" {
                answer.assert_lets_go();
            }
            door.event("SessionStart").with("source", "resume").send().assert_lets_go();
            door.event("SessionEnd").with("reason", "other").send().assert_lets_go();
        }
    }
}

#[test]
fn a_folder_in_place_of_a_loops_file_lets_the_stop_through() {
    for name in ["loop.json", "loop.lock", "boundary.lock", "journal.jsonl"] {
        let door = Door::of(Sandbox::without_git());
        let id = door.begin("\"go on\" -n 9 --stall 0");
        door.stop("one").assert_goes_on();
        let before = door.record(&id);
        remove(&door.file(&id, name));
        std::fs::create_dir(door.file(&id, name)).unwrap();
        let answer = door.stop("two").assert_lets_go();
        assert_eq!(answer.ran.stderr.lines().count(), 1, "{name}: {answer:#?}");
        if name != "loop.json" {
            assert_eq!(door.record(&id), before, "{name}");
        }
    }
}

#[test]
fn an_unreadable_file_of_the_client_lets_the_stop_through() {
    for junk in ["relative/path", "", "\u{0}"] {
        let door = Door::of(Sandbox::without_git());
        door.begin("\"go on\" -n 9 --stall 0");
        std::fs::write(super::plugin_data(&door.sandbox).join("home"), junk).unwrap();
        let answer = door.stop("one").assert_lets_go();
        assert_eq!(answer.ran.stderr.lines().count(), 1, "{junk:?}: {answer:#?}");
    }
}

/// The first passes of every fault point, each failing as on a full or read-only disk.
fn every_fault() -> impl Iterator<Item = String> {
    let faults = points().into_iter().flat_map(|point| (1..=4).map(move |nth| (point, nth)));
    faults.flat_map(|(point, nth)| [28, 30].map(|error| format!("{point}#{nth}={error}")))
}

#[test]
#[ignore = "long"]
fn a_write_that_fails_lets_the_stop_through_and_the_next_one_counts() {
    let door = Door::of(Sandbox::without_git().with_faults());
    let (mut let_go, mut journalled) = (0, 0);
    for fault in every_fault() {
        let id = door.begin("\"go on\" -n 3 --stall 0 --gate true --replace");
        let answer = door.stopping("one").env("CREW_FAULT", &fault).send();
        let said = answer.ran.stderr.lines().count();
        assert!(answer.ran.code() == 0 && said <= 1, "{fault}: {answer:#?}");
        let_go += usize::from(!answer.goes_on());
        // Silence about a loop that stops would leave its user in the dark.
        assert_eq!(answer.goes_on(), said == 0, "{fault}: {answer:#?}");
        journalled += usize::from(door.remarks(&id).contains("Stop: "));
        let first = door.status(&id)["completed_iterations"].as_u64().unwrap();
        door.stop("two").assert_goes_on();
        assert_eq!(door.status(&id)["completed_iterations"], first + 1, "{fault}");
    }
    assert!(journalled >= 15, "only {journalled} were journalled");
    assert!(let_go >= 20, "only {let_go} stops were let go");
}

#[test]
fn a_start_whose_write_fails_is_refused_or_is_a_loop_and_never_both() {
    for fault in every_fault().filter(|fault| fault.ends_with("=28")) {
        let door = Door::of(Sandbox::without_git().with_faults());
        let answer = door.command("\"go on\" -n 3 --stall 0").env("CREW_FAULT", &fault).send();
        let refused = answer.refusal();
        let is_answer_lost = fault.starts_with("answer");
        assert!(answer.goes_on() == refused.is_empty() || is_answer_lost, "{fault}: {answer:#?}");
        if !answer.goes_on() && !is_answer_lost {
            door.stop("one").assert_silent();
            door.begin("\"go on\" -n 3 --stall 0 --replace");
        }
        door.stop("two").assert_goes_on();
    }
}

#[test]
fn no_transcript_can_delay_a_stop() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 99 --stall 0");
    let transcript = door.sandbox.root().join("transcript.jsonl");
    let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"<promise>COMP"#;
    for what in ["missing", "cut off", "sparse", "a folder", "a pipe", "no text"] {
        remove_if_there(&transcript);
        match what {
            "cut off" => std::fs::write(&transcript, line).unwrap(),
            "sparse" => File::create(&transcript).unwrap().set_len(1 << 30).unwrap(),
            "a folder" => std::fs::create_dir(&transcript).unwrap(),
            "a pipe" => {
                let mut command = door.sandbox.command("mkfifo");
                command.arg(&transcript);
                Running::start(command, None).wait(DEADLINE).success();
            }
            "no text" => std::fs::write(&transcript, [0xff, 0xfe, b'\n', 0]).unwrap(),
            _ => {}
        }
        let path = transcript.to_str().unwrap();
        let stop = || door.stopping(what).with("transcript_path", path);
        stop().send().assert_goes_on();
        stop().without("last_assistant_message").send().assert_goes_on();
        // Near the client's cap the transcript matters, and so do companions, which are missing
        // here.
        if what == "sparse" {
            let near = stop().with("last_assistant_message", "near the cap");
            let near = near.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "90");
            near.send().assert_goes_on();
        }
    }
    assert_eq!(door.status(&id)["completed_iterations"], 13);
}

fn remove_if_there(path: &Path) {
    if std::fs::symlink_metadata(path).is_ok() {
        remove(path);
    }
}

#[test]
fn an_invalid_payload_lets_the_stop_through() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let before = door.record(&id);
    let stop = door.stopping("x").payload.to_string();
    let long = "x".repeat(5 << 20);
    let mut no_text = stop.clone().into_bytes();
    no_text[20] = 0xff;
    for payload in [
        b"".as_slice(),
        b"\n",
        b"{",
        b"[]",
        b"null",
        b"\"Stop\"",
        b"{}",
        b"{\"hook_event_name\":7}",
        &stop.as_bytes()[..stop.len() / 2],
        "[".repeat(200_000).as_bytes(),
        &no_text,
    ] {
        let answer = door.stopping("x").send_raw(payload).assert_lets_go();
        assert_eq!(answer.ran.stdout, "");
    }
    assert_eq!(door.record(&id), before);
    door.stop("a sound one").assert_goes_on();
    // A long message is judged as any other.
    door.stop(&long).assert_goes_on();
}

#[test]
fn an_event_that_does_not_concern_crew_passes_silently() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let before = door.record(&id);
    let odd = |id: Value| door.stopping("x").with("session_id", id);
    for event in [
        door.stopping("x").without("session_id"),
        odd(json!("null")),
        odd(json!("")),
        odd(json!(null)),
        odd(json!(7)),
        odd(json!("../sessions/00000000-0000-4000-8000-000000000001")),
        door.stopping("x").with("agent_id", "a-1"),
        door.stopping("x").with("hook_event_name", "SubagentStop"),
        door.stopping("x").with("hook_event_name", "Brand/New"),
        door.stopping("x").with("hook_event_name", ""),
        door.command("\"another\"").with("agent_id", "a-1"),
        door.command("\"another\"").with("command_name", "other:loop"),
    ] {
        event.send().assert_silent();
    }
    assert_eq!(door.record(&id), before);
}

#[test]
fn half_a_surrogate_pair_in_a_message_does_not_lose_the_stop() {
    let door = Door::of(Sandbox::without_git());
    door.begin("\"go on\" -n 9 --stall 0");
    // The client counts in UTF-16 and cuts a text in the middle of an emoji.
    for half in
        // HALF_CHARACTER
        [
            r"cut \ud83d",
            r"\ude00 cut",
            r"\ud83d\ud83d\ude00",
            r"a \\ud83d \\\ud83d.",
            r"\uD83D\n",
        ]
    {
        let stop = door.stopping("WORDS").payload.to_string().replace("WORDS", half);
        let answer = door.stopping("x").send_raw(stop.as_bytes());
        assert!(answer.goes_on() && answer.ran.stderr.is_empty(), "{half}: {answer:#?}");
    }
}

/// How a record is broken, and how to do it.
type Breakage<'a> = (&'static str, &'a dyn Fn(&Value) -> Vec<u8>);

#[test]
fn a_broken_record_is_set_aside_and_rebuilt_from_the_journal_once() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 99 --stall 0");
    door.stop("first").assert_goes_on();
    let rules_broken = |record: &Value| {
        let mut record = record.clone();
        record["state"]["completed"] = json!(7);
        record.to_string().into_bytes()
    };
    let breakages: [Breakage<'_>; 5] = [
        ("cut off", &|record| record.to_string().into_bytes()[..300].to_vec()),
        ("empty", &|_| Vec::new()),
        ("junk", &|_| b"\0\0\0\0".to_vec()),
        ("another shape", &|_| b"{\"version\":1,\"id\":\"k3v9abcd\"}".to_vec()),
        ("its rules broken", &rules_broken),
    ];
    for (what, break_it) in breakages {
        let sound = door.record(&id);
        let broken = break_it(&sound);
        std::fs::write(door.file(&id, "loop.json"), &broken).unwrap();
        std::fs::remove_file(aside(&door, &id).unwrap_or_else(|| "none".into())).ok();
        let answer = door.stop(what).assert_goes_on();
        let done = sound["state"]["completed"].as_u64().unwrap() + 1;
        assert!(answer.context().contains(&format!("iteration {} of", done + 1)), "{what}");
        assert_eq!(door.record(&id)["state"]["completed"], done, "{what}");
        assert_eq!(std::fs::read(aside(&door, &id).unwrap()).unwrap(), broken, "{what}");
        let said = door.remarks(&id).matches("the record was broken").count();
        assert_eq!(u64::try_from(said).unwrap() + 1, done, "{what}: {}", door.remarks(&id));
    }
}

fn aside(door: &Door, id: &str) -> Option<std::path::PathBuf> {
    let mut entries = std::fs::read_dir(door.file(id, "")).unwrap().map(|entry| entry.unwrap());
    let is_it = |name: &str| name.starts_with("loop.json.corrupt-");
    entries.find(|entry| is_it(entry.file_name().to_str().unwrap())).map(|entry| entry.path())
}

#[test]
fn a_loop_whose_record_and_journal_are_both_broken_is_named_with_its_folder() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    for file in ["loop.json", "journal.jsonl"] {
        std::fs::write(door.file(&id, file), "junk").unwrap();
    }
    let file = door.file(&id, "loop.json");
    let folder = file.parent().unwrap().display().to_string();
    for verb in [&["status"][..], &["show"], &["status", "--all"], &["cancel"], &["status"]] {
        let ran = door.sandbox.crew(verb);
        assert!(ran.stderr.contains(&id) && ran.stderr.contains(&folder), "{verb:?}: {ran:#?}");
        assert!(!ran.stdout.contains("no loop"), "{verb:?}: {ran:#?}");
    }
    let answer = door.stop("next").assert_lets_go();
    assert!(answer.ran.stderr.contains(&id), "{answer:#?}");
    let journal = File::options().write(true).open(door.file(&id, "journal.jsonl"));
    journal.unwrap().set_len((256 << 20) + 1).unwrap();
    let shown = door.sandbox.crew(&["status"]).stderr;
    assert!(shown.contains("whose journal is too long to be read whole"), "{shown}");
}

#[test]
fn a_broken_record_can_be_seen_and_cancelled() {
    for verb in [&["status", "--json"][..], &["cancel"], &["pause"]] {
        let door = Door::of(Sandbox::without_git());
        let id = door.begin("\"go on\" -n 9 --stall 0");
        std::fs::write(door.file(&id, "loop.json"), "junk").unwrap();
        let shown = door.sandbox.crew(verb).success();
        assert!(shown.contains(&id), "{verb:?}: {shown}");
        assert_eq!(door.stop("next").goes_on(), verb[0] == "status", "{verb:?}");
    }
}

#[test]
fn a_record_of_a_newer_crew_is_never_written_and_its_version_is_named() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let newer = r#"{"version":99,"made_by":"9.8.7","shape":"new"}"#;
    std::fs::write(door.file(&id, "loop.json"), newer).unwrap();
    let journal = std::fs::read(door.file(&id, "journal.jsonl")).unwrap();
    let answer = door.stop("one").assert_lets_go();
    assert!(answer.ran.stderr.contains("crew 9.8.7"), "{answer:#?}");
    let refused = door.command("\"another\" --replace").send();
    assert!(refused.refusal().contains("crew 9.8.7"), "{refused:#?}");
    let shown = door.sandbox.crew(&["cancel"]);
    assert!(shown.code() == 0 && shown.stdout.contains("9.8.7"), "{shown:#?}");
    assert!(door.file(&id, "cancel").exists(), "the one order that every crew can give");
    door.event("SessionEnd").with("reason", "other").send().assert_lets_go();
    assert_eq!(std::fs::read_to_string(door.file(&id, "loop.json")).unwrap(), newer);
    assert_eq!(std::fs::read(door.file(&id, "journal.jsonl")).unwrap(), journal);
}

#[test]
fn a_truncated_line_of_the_journal_affects_no_other_line() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 9 --stall 0");
    door.stop("one").assert_goes_on();
    let journal = door.file(&id, "journal.jsonl");
    let whole = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{whole}{{\"schema\":1,\"at\":\"2026-11")).unwrap();
    door.stop("two").assert_goes_on();
    assert_eq!(door.journal(&id).len(), 3);
    std::fs::write(door.file(&id, "loop.json"), "").unwrap();
    let answer = door.stop("three").assert_goes_on();
    assert!(answer.context().contains("iteration 4 of 9"), "{answer:#?}");
}
