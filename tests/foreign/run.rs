//! Text that agents, git and the user's own commands bring into a run.

use std::fs;

use serde_json::json;

use super::machine::quoted;
use super::{CLAIM, NAME, Scene, Source, plant};
use crate::sandbox::write_executable;

impl Scene {
    /// Makes the agent of a run print a text on a stream, and then do more.
    fn prints(&self, text: &str, more: &str) {
        fs::write(self.world.note("text"), text).unwrap();
        self.world.steps(&[&format!("cat \"$notes/text\" {more}")]);
    }

    fn runs(&self, more: &[&str]) {
        self.crew(&[&["run", "look around", "-n", "1"], more].concat());
    }
}

pub(super) const SOURCES: &[Source] = &[
    ("the task of a run", |it, text| drop(it.crew(&["run", &format!("look {text}"), "-n", "1"]))),
    ("a line of the agent's", |it, text| {
        it.prints(text, "");
        it.runs(&["-v"]);
    }),
    ("a line of the agent's, for programs", |it, text| {
        it.prints(text, "");
        it.runs(&["-v", "--json"]);
    }),
    ("what the agent complains of", |it, text| {
        it.prints(text, ">&2; exit 3");
        it.runs(&[]);
    }),
    ("the reason of a BLOCKED in a run", |it, text| {
        it.prints(&format!("<promise>BLOCKED: {text}</promise>"), "");
        it.runs(&[]);
    }),
    ("what claude says", |it, text| {
        let said = json!({"type": "assistant", "message": {"id": "m", "role": "assistant",
            "content": [{"type": "text", "text": text}]}});
        let result = json!({"type": "result", "subtype": "success", "is_error": true,
            "result": text, "terminal_reason": "api_error", "api_error_status": 401});
        it.prints(&format!("{said}\n{result}\n"), "; exit 1");
        it.world.settings("agents.fake.output = \"claude\"\n");
        it.runs(&["-v"]);
    }),
    ("an agent's command", |it, text| it.runs(&["--agent-cmd", &format!("'no-such {text}'")])),
    ("an agent's name", |it, text| it.runs(&["--agent", text])),
    ("a check of a run", |it, text| {
        it.prints(CLAIM, "");
        it.runs(&["--verify", &format!("echo '{text}'; exit 4")]);
    }),
    ("what a reaction prints", |it, text| {
        fs::write(it.world.note("noise"), text).unwrap();
        let noise = it.world.note("noise");
        let run = format!("cat '{}'; exit 3", noise.display());
        it.world.settings(&format!("[on]\niteration_end = \"{run}\"\n"));
        it.runs(&[]);
    }),
    ("a reaction", |it, text| {
        let run = quoted(&format!("echo '{text}'; exit 3"));
        it.world.settings(&format!("[on]\niteration_end = {run}\n"));
        it.runs(&[]);
    }),
    ("a procedure's name", |it, _| {
        let name = "planted\u{202e}\u{200f}";
        it.world.settings(&format!("[procedures.\"{name}\"]\nact = \"Look around\"\n"));
        it.crew(&["run", name, "-n", "1"]);
    }),
    ("a procedure's prompt", |it, text| {
        it.world.settings(&format!("[procedures.odd]\nact = {}\n", quoted(text)));
        it.crew(&["run", "odd", "--dry-run"]);
        it.crew(&["run", "odd", "--list"]);
    }),
    ("the branch of a rebase", |it, text| it.runs(&["--rebase", text])),
    ("the branch of a push", |it, _| {
        it.sandbox().git(&["switch", "--quiet", "--create", NAME]);
        it.world.steps(&["echo more >> work.txt"]);
        it.runs(&["--commit", "--push"]);
    }),
    ("the commit that crew makes", |it, text| {
        let blocked = format!("<promise>BLOCKED: {text}</promise>");
        it.prints(&blocked, "; echo more >> work.txt");
        it.runs(&["--commit"]);
        it.hear("git log", &it.sandbox().git(&["log", "-1", "--format=%B"]));
    }),
    ("what a remote says", |it, text| {
        let hook = it.sandbox().root().join("origin.git/hooks/pre-receive");
        let origin = it.sandbox().root().join("origin.git").display().to_string();
        it.sandbox().git(&["init", "--quiet", "--bare", "--initial-branch=main", &origin]);
        it.sandbox().git(&["remote", "add", "origin", &origin]);
        fs::write(it.world.note("text"), text).unwrap();
        let text = it.world.note("text");
        let script = format!("#!/bin/sh\ncat '{}' >&2; exit 1\n", text.display());
        write_executable(&hook, &script);
        it.world.steps(&["echo more >> work.txt"]);
        it.runs(&["--commit", "--push"]);
    }),
    ("a worktree's name", |it, text| it.runs(&["--worktree", text])),
    ("a piece of a prompt", |it, text| {
        it.crew(&["run", "build", "--act", text, "--dry-run"]);
    }),
];

#[test]
#[ignore = "long"]
fn no_text_of_a_run_sends_codes_to_a_terminal() {
    plant(SOURCES);
}
