//! Recorded loops of clients, run through every client's driver: their payloads in, their answers
//! out. Each test has a process of its own, because processes that other tests start may keep a
//! lock that this test has released.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use engine::record::{Loop, Outcome};
use world::process::fixture::run_alone;
use world::store;

const CODEX: &str = include_str!("../../tests/fixtures/clients/codex.jsonl");

/// A client's session in a separate folder.
struct Session {
    events: Vec<Value>,
    world: TempDir,
}

impl Session {
    fn new(recording: &str) -> Self {
        let events = recording.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let world = testkit::folder();
        disk::make_folder(&world.path().join("work")).unwrap();
        Self { events, world }
    }

    fn home(&self) -> Home {
        Home::at(&self.world.path().join("home"))
    }

    fn work(&self) -> PathBuf {
        self.world.path().join("work")
    }

    /// Sends the event of this name with one field replaced.
    fn send(&self, name: &str, field: &str, text: &str) -> Output {
        let is_it = |event: &&Value| event["stdin"]["hook_event_name"] == name;
        let mut event = self.events.iter().find(is_it).unwrap().clone();
        event["stdin"][field] = text.into();
        event["stdin"]["cwd"] = self.work().to_str().unwrap().into();
        let bytes = serde_json::to_vec(&event["stdin"]).unwrap();
        let variable = |name: &str| event["env"][name].as_str().map(OsString::from);
        let hook = Hook::parse(&bytes, &variable).unwrap();
        answer_hook(&self.home(), &hook, false).unwrap().0
    }

    /// The same for an event that is answered.
    fn ask(&self, name: &str, field: &str, text: &str) -> Value {
        self.send(name, field, text).out.unwrap()
    }

    fn record(&self) -> Loop {
        store::load(&self.home(), &store::list_ids(&self.home()).next().unwrap()).unwrap()
    }
}

#[test]
fn a_message_starts_a_loop_of_a_client_without_commands_and_it_ends_proved() {
    run_alone(|| {
        let codex = Session::new(CODEX);
        assert_eq!(codex.send("SessionStart", "source", "startup"), Output::default());
        assert_eq!(codex.send("UserPromptSubmit", "prompt", "fix the bug"), Output::default());
        let typed = "crew loop \"Write a file\" --verify \"test -f done\"";
        let begun = codex.ask("UserPromptSubmit", "prompt", typed);
        let prompt = begun["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert!(prompt.contains("Work on the task you were just given"), "{prompt}");
        let claimed = codex.ask("Stop", "last_assistant_message", "<promise>COMPLETE</promise>");
        assert_eq!(claimed["decision"], "block");
        assert!(claimed["reason"].as_str().unwrap().contains("iteration 2 of 10"), "{claimed}");
        let echo = codex.send("UserPromptSubmit", "prompt", claimed["reason"].as_str().unwrap());
        assert_eq!(echo, Output::default(), "the client gives crew's own prompt back");
        disk::write(&codex.work().join("done"), b"", disk::Durability::Process).unwrap();
        let ended =
            codex.ask("Stop", "last_assistant_message", "Now:\n<promise>COMPLETE</promise>");
        assert!(ended["systemMessage"].as_str().unwrap().contains("completed"), "{ended}");
        assert_eq!(ended.get("decision"), None);
        let record = codex.record();
        assert_eq!(record.outcome(), Some(Outcome::Completed));
        assert_eq!(record.state.owner().client.as_deref(), Some("codex"));
    });
}

#[test]
fn messages_pause_and_resume_a_loop_of_a_client_without_commands() {
    run_alone(|| {
        let codex = Session::new(CODEX);
        codex.send("UserPromptSubmit", "prompt", "crew loop \"Build it\"");
        codex.send("UserPromptSubmit", "prompt", "crew pause");
        let paused = codex.ask("Stop", "last_assistant_message", "one");
        let resume = format!("crew resume {}", codex.record().id);
        assert!(paused["systemMessage"].as_str().unwrap().contains("crew resume"), "{paused}");
        let resumed = codex.ask("UserPromptSubmit", "prompt", &resume);
        assert!(resumed["hookSpecificOutput"]["additionalContext"].is_string(), "{resumed}");
        assert!(codex.ask("Stop", "last_assistant_message", "two")["decision"] == "block");
        codex.send("SessionEnd", "reason", "other");
        assert_eq!(codex.record().outcome(), Some(Outcome::Interrupted));
    });
}

#[test]
fn no_companion_waits_beside_a_client_that_cannot_be_woken() {
    run_alone(|| {
        let codex = Session::new(CODEX);
        codex.send("UserPromptSubmit", "prompt", "crew loop \"Do it\"");
        let event = codex.events[2]["stdin"].to_string();
        let hook = Hook::parse(event.as_bytes(), &|_| None).unwrap();
        assert_eq!(answer_hook(&codex.home(), &hook, true).unwrap().0, Output::default());
    });
}
