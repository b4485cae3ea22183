//! Records of older crews, written by their own binaries: they are read, their loops continue with
//! every count, and their broken parts are rebuilt. And owners on other machines, which cannot be
//! seen from here.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Door, SESSION};
use crate::run::World;
use crate::sandbox::{Sandbox, checkout};

/// The version that this crew writes.
const VERSION: u64 = 2;
/// The outcomes, each the name of a record that has it.
const OUTCOMES: [&str; 8] = [
    "completed",
    "exhausted",
    "aborted",
    "stalled",
    "blocked",
    "cancelled",
    "interrupted",
    "error",
];

/// A folder for each older crew.
fn older_crews() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(checkout().join("tests/fixtures/records")).unwrap();
    let mut crews: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    crews.retain(|path| path.is_dir());
    assert!(!crews.is_empty());
    crews
}

/// This test as a client, and the current time as a beginning.
struct Client {
    process: Value,
    awake_ms: Value,
}

impl Client {
    fn new() -> Self {
        let door = Door::of(Sandbox::without_git());
        let state = door.record(&door.begin("\"Ask who I am\""))["state"].clone();
        Self {
            process: state["owner"]["process"].clone(),
            awake_ms: state["began"]["awake_ms"].clone(),
        }
    }

    /// Puts an older crew's loop into crew's home, with this client as its owner, and returns its
    /// id.
    #[track_caller]
    fn lay(&self, sandbox: &Sandbox, record: &Path) -> String {
        let fill = |file: &str| {
            let text = std::fs::read_to_string(record.join(file)).ok()?;
            let fills = [
                ("@ROOT@", sandbox.root().display().to_string()),
                ("@HEAD@", sandbox.git(&["rev-parse", "HEAD"])),
                ("\"@PID@\"", self.process["pid"].to_string()),
                ("\"@STARTED@\"", self.process["started"].to_string()),
                ("\"@AWAKE@\"", self.awake_ms.to_string()),
            ];
            Some(fills.iter().fold(text, |text, (mark, fill)| text.replace(mark, fill)))
        };
        let loop_json: Value = serde_json::from_str(&fill("loop.json").unwrap()).unwrap();
        assert!(loop_json["version"].as_u64().unwrap() < VERSION, "no older record");
        let id = loop_json["id"].as_str().unwrap().to_owned();
        for folder in ["checkouts", "sessions", "wakes", &format!("loops/{id}")] {
            std::fs::create_dir_all(sandbox.crew_home().join(folder)).unwrap();
        }
        let folder = sandbox.crew_home().join("loops").join(&id);
        for file in ["loop.json", "journal.jsonl", "result.json"] {
            if let Some(text) = fill(file) {
                std::fs::write(folder.join(file), text).unwrap();
            }
        }
        id
    }

    /// The same for a loop of these tests' session.
    #[track_caller]
    fn lay_session(&self, door: &Door, crew: &Path) -> String {
        door.sandbox.write("tests/mine", "not committed yet\n");
        let id = self.lay(&door.sandbox, &crew.join("session"));
        let pointer = door.sandbox.crew_home().join("sessions").join(SESSION);
        std::fs::write(pointer, format!("{id}\n")).unwrap();
        let transcript = transcript(door);
        std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
        std::fs::copy(crew.join("session/transcript.jsonl"), transcript).unwrap();
        id
    }
}

fn transcript(door: &Door) -> PathBuf {
    door.sandbox.home().join(".claude/projects/repo/session.jsonl")
}

/// What must be carried over from an old record into a new one.
fn counts(record: &Value) -> Value {
    let state = &record["state"];
    json!({
        "completed": state["completed"], "boundaries": state["boundaries"],
        "failures": state["consecutive_failures"], "still": state["still"],
        "usage": state["usage"], "elapsed_ms": record["elapsed_ms"],
        "began_with": record["contract"],
    })
}

fn number(record: &Value, key: &str) -> u64 {
    record["state"][key].as_u64().unwrap_or_else(|| panic!("no {key}: {record:#}"))
}

#[test]
fn every_record_of_an_older_crew_is_read_and_left_as_it_is() {
    let client = Client::new();
    for crew in older_crews() {
        let door = Door::new();
        let read = |id: &str| std::fs::read(door.file(id, "loop.json")).unwrap();
        for name in OUTCOMES.into_iter().chain(["session", "paused"]) {
            let id = client.lay(&door.sandbox, &crew.join(name));
            let before = read(&id);
            let word = if name == "session" { "running" } else { name };
            for verb in ["status", "show"] {
                let told = door.sandbox.crew(&[verb, &id]).success();
                assert!(told.contains(word), "{verb} of {name}: {told}");
            }
            let shown = door.sandbox.crew(&["show", "--json", &id]).success();
            let shown: Value = serde_json::from_str(&shown).unwrap();
            let is_over = !["session", "paused"].contains(&name);
            let standing = &shown["loop"][if is_over { "outcome" } else { "status" }];
            assert_eq!((standing, &shown["torn_lines"]), (&json!(word), &json!(0)), "{shown:#}");
            assert!(read(&id) == before, "{name} was written");
        }
        let told = door.sandbox.crew(&["history", "--all", "--json"]).success();
        let told: Value = serde_json::from_str(&told).unwrap();
        let ended = told["loops"].as_array().unwrap().iter();
        let mut ended: Vec<&str> = ended.map(|it| it["outcome"].as_str().unwrap()).collect();
        ended.sort_unstable();
        let mut outcomes = OUTCOMES;
        outcomes.sort_unstable();
        assert_eq!(ended, outcomes, "{}", crew.display());
    }
}

#[test]
fn a_loop_of_a_session_goes_on_through_an_upgrade_between_two_stops() {
    let client = Client::new();
    for crew in older_crews() {
        let door = Door::new();
        let id = client.lay_session(&door, &crew);
        let before = door.record(&id);
        door.sandbox.write("parser", "all of it\n");
        // A third message that cost what the second did.
        let text = std::fs::read_to_string(transcript(&door)).unwrap();
        let third = text.lines().last().unwrap().replace("two", "three");
        std::fs::write(transcript(&door), format!("{text}{third}\n")).unwrap();
        let answer = door.stop("On it.").assert_goes_on();
        assert!(answer.line().starts_with("crew 3/5"), "{}", answer.line());
        assert!(answer.context().contains("then split the rule"), "{}", answer.context());
        let after = door.record(&id);
        assert_eq!(after["version"], VERSION);
        for (key, more) in [("completed", 1), ("boundaries", 1), ("generation", 1)] {
            assert_eq!(number(&after, key), number(&before, key) + more, "{key}");
        }
        let spent = |record: &Value| record["state"]["usage"]["cost"].as_u64().unwrap();
        assert_eq!((spent(&before) / 2 * 3, spent(&before) > 0), (spent(&after), true));
        assert!(number(&after, "awake_ms") >= number(&before, "awake_ms"));
        assert_eq!(after["elapsed_ms"][1], before["elapsed_ms"][1]);
        assert_eq!(after["contract"], before["contract"]);
        door.sandbox.write("done", "");
        let end = door.stop("<promise>COMPLETE</promise>").assert_lets_go();
        // Only the older crew saw the check fail.
        assert!(end.line().contains("checked"), "{}", end.line());
    }
}

#[test]
fn a_paused_run_of_an_older_crew_is_resumed_to_its_end() {
    let client = Client::new();
    let gone = Client { process: json!({"pid": i32::MAX, "started": "1"}), ..client };
    for crew in older_crews() {
        let world =
            World::new(&["echo more >> work", "touch done; echo '<promise>COMPLETE</promise>'"]);
        let id = gone.lay(&world.sandbox, &crew.join("paused"));
        let before = world.record();
        let ran = world.crew(&["resume", &id]);
        assert_eq!((ran.code(), world.calls()), (0, 2), "{ran:#?}");
        let after = world.record();
        assert_eq!(
            (&after["version"], &after["state"]["ending"]["proof"]),
            (&json!(VERSION), &json!("checked"))
        );
        for key in ["completed", "boundaries"] {
            assert_eq!(number(&after, key), number(&before, key) + 2, "{key}");
        }
        assert!(number(&after, "awake_ms") > number(&before, "awake_ms"));
        assert_eq!(after["contract"], before["contract"]);
        let story: Value =
            serde_json::from_str(&world.crew(&["show", "--json", &id]).success()).unwrap();
        let iterations = story["story"].as_array().unwrap().iter();
        assert_eq!(iterations.filter(|it| it["kind"] == "iteration").count(), 4);
    }
}

#[test]
fn a_broken_record_of_an_older_crew_is_rebuilt_from_its_journal() {
    let client = Client::new();
    for crew in older_crews() {
        let door = Door::new();
        let id = client.lay_session(&door, &crew);
        let before = door.record(&id);
        std::fs::write(door.file(&id, "loop.json"), "{\"version\":1,\"id\":").unwrap();
        door.sandbox.crew(&["status", &id]).success();
        let after = door.record(&id);
        assert_eq!((&after["version"], counts(&after)), (&json!(VERSION), counts(&before)));
        assert!(door.stop("On it.").assert_goes_on().line().starts_with("crew 3/5"));
    }
}

#[test]
fn a_run_that_an_older_crew_still_drives_is_ordered_and_never_written() {
    let client = Client::new();
    for crew in older_crews() {
        let door = Door::new();
        let id = client.lay(&door.sandbox, &crew.join("paused"));
        let mut record = door.record(&id);
        record["state"]["status"] = json!("running");
        std::fs::write(door.file(&id, "loop.json"), record.to_string()).unwrap();
        for verb in [&["tell", "be quick", "--loop", &id][..], &["set", &id, "-n", "9"]] {
            let told = door.sandbox.crew(verb);
            assert_eq!(told.code(), 1, "{told:#?}");
            assert!(told.stderr.contains("is run by an older crew"), "{}", told.stderr);
            assert!(told.stderr.contains(&format!("crew pause {id}, then")), "{}", told.stderr);
        }
        door.sandbox.crew(&["pause", &id]).success();
        assert!(door.file(&id, "pause").exists());
        assert_eq!(door.record(&id), record);
    }
}

/// Moves a loop's owner into another place.
fn move_owner(door: &Door, id: &str, part: &str, to: &str) {
    let mut record = door.record(id);
    record["state"]["owner"]["host"][part] = json!(to);
    record["state"]["owner"]["host"]["name"] = json!("node7");
    std::fs::write(door.file(id, "loop.json"), record.to_string()).unwrap();
}

#[test]
fn an_owner_on_another_machine_is_never_judged_by_its_process_id() {
    for pid in [Value::Null, json!(i32::MAX)] {
        let door = Door::new();
        let id = door.begin("\"go on\" -n 9 --stall 0");
        move_owner(&door, &id, "machine", "another");
        if !pid.is_null() {
            let mut record = door.record(&id);
            record["state"]["owner"]["process"]["pid"] = pid;
            std::fs::write(door.file(&id, "loop.json"), record.to_string()).unwrap();
        }
        door.stop("Not of that machine's client.").assert_silent();
        let expected = format!(
            "loop {id} is running, owned by a process on another machine (node7), which cannot be seen from here\n\
             hint: pause or end it there; if that machine is gone, `crew cancel {id}` ends it here, and it can be \
             resumed"
        );
        let start = door.command("\"another\"").with("prompt_id", "p-9").send();
        assert_eq!(start.refusal(), format!("crew: {expected}"));
        let resume = door.sandbox.crew(&["resume", &id]);
        assert_eq!((resume.code(), resume.stderr), (1, format!("crew: {expected}\n")));
        let status = door.sandbox.crew(&["status", &id]);
        assert!(status.stdout.contains("running"), "{status:#?}");
        assert_eq!(status.stderr, format!("crew: {expected}\n"));
        assert_eq!(door.status(&id)["owner_is_gone"], false);
        let before = number(&door.record(&id), "awake_ms");
        door.sandbox.crew(&["cancel", &id]).success();
        assert_eq!(number(&door.record(&id), "awake_ms"), before, "the time of another machine");
        let again = door.event("UserPromptExpansion").with("command_name", "crew:resume");
        let again = again.with("command_args", id.as_str()).with("prompt_id", "p-10").send();
        assert!(again.refusal().is_empty(), "{again:#?}");
        door.stop("On it.").assert_goes_on();
    }
}

#[test]
fn an_owner_from_before_the_machine_was_started_anew_is_gone_whoever_has_its_id() {
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let host = door.record(&id)["state"]["owner"]["host"].clone();
    assert!(host["boot"].as_str().is_some_and(|boot| !boot.is_empty()), "{host}");
    // A container may have no id: another start of it looks like another machine.
    let has_an_id = host["machine"] != "";
    move_owner(&door, &id, "boot", "an earlier one");
    assert_eq!(door.status(&id)["owner_is_gone"], has_an_id);
    if !has_an_id {
        return;
    }
    door.stop("Of another process.").assert_silent();
    let start = door.command("\"another\"").with("prompt_id", "p-9").send();
    assert!(start.line().contains(&format!("loop {id} is now interrupted")), "{start:#?}");
}

#[test]
fn a_machines_own_id_is_in_no_record() {
    let Ok(machine) = std::fs::read_to_string("/etc/machine-id") else { return };
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let record = std::fs::read_to_string(door.file(&id, "loop.json")).unwrap();
    let machine = machine.trim();
    assert!(machine.is_empty() || !record.contains(machine), "{record}");
}
