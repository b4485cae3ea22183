//! Owners on other machines, which cannot be seen from here.

use serde_json::{Value, json};

use super::Door;

fn number(record: &Value, key: &str) -> u64 {
    record["state"][key].as_u64().unwrap_or_else(|| panic!("no {key}: {record:#}"))
}

/// Moves a loop's owner to another machine or boot.
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
fn an_owner_from_before_a_reboot_is_gone_even_if_its_process_id_is_in_use() {
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
fn no_record_contains_the_id_of_the_machine() {
    let Ok(machine) = std::fs::read_to_string("/etc/machine-id") else { return };
    let door = Door::new();
    let id = door.begin("\"go on\" -n 9 --stall 0");
    let record = std::fs::read_to_string(door.file(&id, "loop.json")).unwrap();
    let machine = machine.trim();
    assert!(machine.is_empty() || !record.contains(machine), "{record}");
}
