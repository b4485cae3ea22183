//! crew's own files that cannot be read: the error names the path and a way out. A link to itself
//! stands for an unreadable file, because root, which builds on many machines, can read everything.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::door::Door;
use crate::run::{WORK, World};
use crate::spawned::Ran;

/// A loop whose file, or folder in the home, cannot be read; ID stands for the loop's id.
#[track_caller]
fn barred(place: &str) -> (Door, String) {
    let door = Door::new();
    let id = door.begin("Build it");
    let path = door.sandbox.crew_home().join(place.replace("ID", &id));
    let path: PathBuf = path.components().collect();
    let _ = fs::rename(&path, path.with_extension("aside"));
    symlink(&path, &path).unwrap();
    (door, path.display().to_string())
}

/// Asserts that the error names this path and a remedy.
#[track_caller]
fn assert_named(ran: &Ran, path: &str) {
    let lines: Vec<&str> = ran.stderr.trim_end().split(['\n', ';']).collect();
    assert!(lines.len() == 2 && lines[1].trim().starts_with("hint: "), "{ran:#?}");
    assert!(lines[0].starts_with("crew: cannot ") && lines[0].contains(path), "{path}: {ran:#?}");
    assert!(lines[0].contains("(os error "), "{ran:#?}");
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_named_with_a_hint() {
    let table: [(&str, &[&str]); 12] = [
        ("", &["status"]),
        ("", &["cancel"]),
        ("", &["run", "look around", "--agent-cmd", "true"]),
        ("checkouts", &["status"]),
        ("loops", &["status", "--all"]),
        ("loops", &["history", "--all"]),
        ("loops/ID", &["show"]),
        ("loops/ID/loop.json", &["status"]),
        ("loops/ID/loop.json", &["pause"]),
        ("loops/ID/loop.lock", &["set", "-n", "30"]),
        ("loops/ID/journal.jsonl", &["show"]),
        ("loops/ID/journal.jsonl", &["tell", "use the parser"]),
    ];
    for (place, arguments) in table {
        let (door, path) = barred(place);
        let ran = door.sandbox.crew(arguments);
        assert_eq!(ran.code(), 1, "{place}: {ran:#?}");
        assert_named(&ran, &path);
    }
}

#[test]
fn a_stop_without_a_readable_record_passes_with_a_message() {
    let table = [
        "sessions",
        "loops",
        "loops/ID",
        "loops/ID/loop.json",
        "loops/ID/boundary.lock",
        "loops/ID/loop.lock",
        "loops/ID/journal.jsonl",
    ];
    for place in table {
        let (door, path) = barred(place);
        let ran = door.sandbox.hook(serde_json::json!({
            "hook_event_name": "Stop", "prompt_id": "p-1", "last_assistant_message": "Not yet.",
        }));
        assert_eq!((ran.code(), ran.stdout.as_str()), (0, ""), "{place}: {ran:#?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{place}: {ran:#?}");
        assert_named(&ran, &path);
    }
}

#[test]
fn a_full_disk_at_the_start_is_reported_with_a_path() {
    for fault in ["write.open=28", "journal.write=28"] {
        let sandbox = crate::sandbox::Sandbox::new().with_faults().env("CREW_FAULT", fault);
        let world = World::of(sandbox, &[WORK]);
        let ran = world.crew(&["run", "Do it", "-n", "1"]);
        assert_eq!((ran.code(), world.calls()), (1, 0), "{fault}: {ran:#?}");
        assert_named(&ran, &world.sandbox.crew_home().display().to_string());
        assert!(ran.stderr.contains("\nhint: free some space"), "{fault}: {ran:#?}");
    }
}
