//! The twelve inputs that stop hooks of other tools got wrong.

use serde_json::Value;

use super::{Door, OTHER_SESSION, plugin_data};
use crate::sandbox::Sandbox;

/// A loop with the promise DONE.
fn with_done() -> (Door, String) {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("\"go on\" -n 99 --completion-promise DONE --stall 0");
    (door, id)
}

#[test]
fn the_bare_promise_without_its_tag_is_not_a_claim() {
    let (door, _) = with_done();
    for words in ["DONE", "**DONE**", "I am DONE", "promise: DONE", "<b>DONE</b>"] {
        door.stop(words).assert_goes_on();
    }
}

#[test]
fn prose_about_the_tag_is_not_a_claim() {
    let (door, _) = with_done();
    for words in [
        "I will only output <promise>DONE</promise> once the tests pass; 3 fail.",
        "I am not outputting <promise>DONE</promise> yet",
        "<promise>DONE</promise>\nis what I will say at the end.",
        "```\n<promise>DONE</promise>\n```",
        "```\n<promise>DONE</promise>",
        "> <promise>DONE</promise>",
        "    <promise>DONE</promise>",
        "`<promise>DONE</promise>`",
        "<promise>done</promise>",
        "<promise></promise>",
        "<promise>DONE",
        "<promise>.*</promise>",
    ] {
        door.stop(words).assert_goes_on();
    }
}

#[test]
fn a_tag_of_an_older_turn_in_the_transcript_is_not_a_claim() {
    let (door, id) = with_done();
    let text = |text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let tool = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash"}]}}"#;
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#;
    let transcript = door.sandbox.root().join("transcript.jsonl");
    let old = format!("{}\n{result}\n{tool}\n", text("<promise>DONE</promise>"));
    std::fs::write(&transcript, old).unwrap();
    // Stops without words under one prompt, this close together, would be taken for one stop.
    let stop = |prompt: &str| {
        let stop = door.stopping("x").without("last_assistant_message").with("prompt_id", prompt);
        stop.with("transcript_path", transcript.to_str()).send()
    };
    stop("p-1").assert_goes_on();
    // A claim in this turn's own text counts, for a client that does not report the last message.
    std::fs::write(&transcript, format!("{result}\n{}\n", text("<promise>DONE</promise>")))
        .unwrap();
    stop("p-2").assert_lets_go();
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "completed");
}

#[test]
fn a_task_reaches_the_agent_as_it_was_typed() {
    for task in [
        "---\niteration: 99\nactive: false\n---\nbuild it",
        "it's $(touch pwned) `touch pwned` $HOME \\ %s {{x}} <b> & ; | \u{202e} 日本\r\n\ttab",
        "a \u{0}b",
    ] {
        let door = Door::of(Sandbox::without_git());
        let command = door.command(&format!("\"{task}\" -n 3 --stall 0"));
        let answer = command.send();
        if answer.refusal().is_empty() {
            let id = answer.line()[5..13].to_owned();
            assert_eq!(door.record(&id)["contract"]["task"], task);
            assert!(door.stop("one").assert_goes_on().context().contains(task), "{task:?}");
            let file = door.sandbox.file(".claude/branches/no-branch/task.md");
            assert_eq!(std::fs::read_to_string(file).unwrap(), task);
        }
        assert!(!door.sandbox.file("pwned").exists());
    }
}

#[test]
fn a_task_of_a_hundred_kilobytes_fits_through_every_boundary() {
    let door = Door::of(Sandbox::without_git());
    let task = "Ein langer Auftrag mit 日本 und 🦀. ".repeat(2_500);
    let id = door.begin(&format!("\"{task}\" -n 3 --stall 0"));
    assert_eq!(door.record(&id)["contract"]["task"], task);
    let answer = door.stop("one").assert_goes_on();
    assert!(answer.context().encode_utf16().count() < 9_000);
    assert!(answer.context().contains("task.md"));
}

#[test]
fn a_session_without_an_id_may_stop_and_a_hook_in_a_subfolder_finds_its_loop() {
    let door = Door::new();
    door.begin("\"go on\" -n 9 --stall 0");
    door.stopping("x").without("session_id").send().assert_silent();
    door.stopping("x").with("session_id", OTHER_SESSION).send().assert_silent();
    let deep = door.sandbox.write("a/b/c", "").with_file_name("");
    door.stopping("in a subfolder").with("cwd", deep.to_str()).send().assert_goes_on();
}

#[test]
fn the_last_of_two_tags_counts() {
    let (door, id) = with_done();
    door.stop("<promise>DONE</promise>\n<promise>NOT YET</promise>").assert_goes_on();
    door.stop("<promise>NOT YET</promise>\n<promise>DONE</promise>").assert_lets_go();
    assert_eq!(door.record(&id)["state"]["ending"]["outcome"], "completed");
}

#[test]
fn a_promise_with_quotes_or_spaces_can_be_fulfilled() {
    for (option, said) in [
        ("--completion-promise 'it \"works\"'", "it \"works\""),
        ("--completion-promise \"two  blanks\"", "two  blanks"),
        ("--completion-promise \"two  blanks\"", " two blanks "),
        ("--completion-promise \"it's [a-z]+ $1\"", "it's [a-z]+ $1"),
        ("--completion-promise=DONE", "DONE"),
    ] {
        let door = Door::of(Sandbox::without_git());
        let id = door.begin(&format!("\"go on\" -n 9 {option} --stall 0"));
        door.stop("<promise>COMPLETE</promise>").assert_goes_on();
        door.stop(&format!("so:\n<promise>{said}</promise>\n\n")).assert_lets_go();
        let state = &door.record(&id)["state"];
        assert_eq!(state["ending"]["outcome"], "completed", "{option}: {said}");
        let view = door.sandbox.file(".claude/branches/no-branch/state.json");
        serde_json::from_slice::<Value>(&std::fs::read(view).unwrap()).unwrap();
    }
}

#[test]
fn options_with_an_equals_sign_are_options() {
    let door = Door::of(Sandbox::without_git());
    let id = door.begin("go on --max-iterations=3 --completion-promise=DONE");
    let contract = &door.record(&id)["contract"];
    assert_eq!(contract["task"], "go on");
    assert_eq!(contract["limits"]["max_iterations"], 3);
    assert_eq!(contract["promise"], "DONE");
    for typed in ["go on --max-iteration 3", "go on --no-such-thing", "--max-iterations x go on"] {
        let answer = door.command(typed).with("prompt_id", "p-2").send();
        assert!(!answer.refusal().is_empty(), "{typed}: {answer:#?}");
    }
}

#[test]
fn a_pasted_command_is_from_the_user_unless_the_client_names_another_author() {
    let door = Door::of(Sandbox::without_git());
    let pasted = "<pasted_content id=\"1\">\n/crew:loop \"go on\" -n 2\n</pasted_content id=\"1\">";
    let prompt = || door.event("UserPromptSubmit").with("prompt", pasted);
    for author in ["schedule_wakeup", "loop_wakeup", "system", "poll_event"] {
        prompt().with("source", author).send().assert_silent();
    }
    assert!(!door.sandbox.crew_home().join("loops").exists());
    prompt().with("source", "user").send().assert_goes_on();
}

#[test]
fn a_working_tree_too_large_to_be_scanned_still_shows_its_branch() {
    let door = Door::new();
    door.sandbox.git(&["switch", "--quiet", "--create", "feat/large"]);
    let head = door.sandbox.git(&["rev-parse", "HEAD"]);
    // Like one whose time is up.
    let git = "for word; do [ \"$word\" = status ] && exit 1; done; exec /usr/bin/env PATH=/usr/bin:/bin git \"$@\"";
    door.sandbox.program("git", git);
    let id = door.begin("\"go on\" -n 2");
    let place = &door.record(&id)["place"];
    assert_eq!(
        (&place["branch"], &place["branch_dir"]),
        (&"feat/large".into(), &"feat-large".into())
    );
    assert_eq!(place["head"], head);
    assert!(door.sandbox.file(".claude/branches/feat-large/task.md").exists());
    door.sandbox.git(&["checkout", "--quiet", "--detach"]);
    let id = door.begin("\"go on detached\" -n 2 --replace");
    let place = &door.record(&id)["place"];
    assert_eq!((&place["branch"], &place["branch_dir"]), (&Value::Null, &head[..12].into()));
}

#[test]
fn a_hook_needs_only_a_shell_for_its_checks() {
    let door = Door::of(Sandbox::without_git());
    let nothing = door.sandbox.root().join("nothing");
    std::fs::create_dir(&nothing).unwrap();
    let path = nothing.to_str().unwrap();
    door.command("\"go on\" -n 2").env("PATH", path).send().assert_goes_on();
    door.stopping("one").env("PATH", path).send().assert_goes_on();
    door.stopping("two").env("PATH", path).send().assert_lets_go();
    assert!(plugin_data(&door.sandbox).join("home").exists());
}

#[test]
fn a_crew_that_is_not_on_the_path_is_called_by_its_full_path() {
    let door = Door::new();
    let line = door.command("\"Build it\"").send().line().to_owned();
    assert!(line.contains("stop: Esc, or crew cancel in any terminal"), "{line}");
    std::fs::remove_file(door.sandbox.root().join("bin/crew")).unwrap();
    let again = |words: &str| door.command(words).with("prompt_id", format!("p {words}")).send();
    let refused = again("\"Build it\"").refusal().to_owned();
    let place = door.sandbox.build().path().display().to_string();
    assert!(refused.contains(&format!("hint: end it with `{place} cancel ")), "{refused}");
    let line = again("\"Build it\" --replace").line().to_owned();
    assert!(line.contains(&format!("stop: Esc, or {place} cancel in any terminal")), "{line}");
    let help = door.command("").with("command_name", "crew:help").send().refusal().to_owned();
    assert!(help.contains("; `crew pause`, `crew cancel` and `crew status` act"), "{help}");
    assert!(help.contains(&format!("does not work: {place} doctor")), "{help}");
}
