//! The agent asks the user, or the client waits at a dialog: who is asked, what is recorded, and
//! what people see.

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::usage::append;
use super::{Answer, Door, Event, OTHER_SESSION};

const QUESTION: &str = "SES or SMTP?";

impl Door {
    fn asking(&self, question: &str) -> Event<'_> {
        let options = json!([{"label": "SMTP", "description": "x"}, {"label": "SES"}]);
        self.event("PreToolUse")
            .with("tool_name", "AskUserQuestion")
            .with("tool_use_id", "toolu_1")
            .with("tool_input", json!({"questions": [{"question": question, "options": options}]}))
    }

    /// Sets how long ago the user typed something.
    fn typed_ago(&self, id: &str, ago: Duration) {
        let file = File::options().write(true).open(self.file(id, "typed")).unwrap();
        file.set_modified(SystemTime::now() - ago).unwrap();
    }

    fn at_a_dialog(&self) -> Event<'_> {
        self.event("Notification").with("notification_type", "permission_prompt")
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[track_caller]
fn assert_denied(answer: &Answer) {
    let said = &answer.json["hookSpecificOutput"];
    assert_eq!(said["permissionDecision"], "deny", "{answer:#?}");
    let why = said["permissionDecisionReason"].as_str().unwrap();
    assert!(why.contains("Decide yourself") && !why.contains("<promise>"), "{why}");
}

#[test]
fn a_question_asked_while_the_user_is_away_is_kept_shown_once_and_on_the_page() {
    let door = Door::new();
    let id = door.begin("\"Send mail\" -n 3");
    door.typed_ago(&id, 11 * MINUTE);
    let denied = door.asking(QUESTION).send();
    assert_denied(&denied);
    let notice = format!("\u{1b}]9;crew: loop {id} asked \"SES or SMTP?\", told to decide\u{7}");
    assert_eq!(denied.json["terminalSequence"], notice);
    let kept = json!([{"iteration": 1, "question": QUESTION, "options": ["SMTP", "SES"]}]);
    assert_eq!(door.record(&id)["state"]["asked"], kept);
    assert!(
        door.remarks(&id).contains("asked \"SES or SMTP?\" in iteration 1; has to decide itself")
    );
    assert_denied(&door.asking(QUESTION).with("tool_input", json!({})).send());
    assert!(door.remarks(&id).contains("asked the user; has to decide itself"));
    let stop = door.stop("Took SMTP.").assert_goes_on();
    let shown = "asked \"SES or SMTP?\", told to decide · answer: crew tell \"SMTP\"";
    assert!(stop.line().contains(shown), "{}", stop.line());
    assert!(!stop.context().contains("SES"), "the agent knows what it asked");
    assert!(!door.stop("More.").line().contains("asked"));
    let end = door.stop("The end.");
    let notice = end.json["terminalSequence"].as_str().unwrap();
    assert!(notice.starts_with(&format!("\u{1b}]9;crew: loop {id}: exhausted")), "{notice:?}");
    let page = door.sandbox.crew(&["status", &id]).success();
    assert!(page.contains("asked   \"SES or SMTP?\" (iteration 1, told to decide)"), "{page}");
    assert_eq!(door.status(&id)["asked"], kept);
    assert!(door.sandbox.crew(&["show", &id]).success().contains("asked \"SES or SMTP?\""));
}

#[test]
fn a_user_who_typed_recently_is_asked() {
    let door = Door::new();
    let id = door.begin("\"Send mail\"");
    door.typed_ago(&id, 2 * MINUTE);
    door.asking(QUESTION).send().assert_silent();
    let noticed = [
        door.event("UserPromptSubmit").with("prompt", "use the old server"),
        door.event("UserPromptSubmit").with("prompt", "crew status"),
        door.event("UserPromptExpansion").with("command_name", "crew:status"),
        door.event("PostToolUse")
            .with("tool_name", "AskUserQuestion")
            .with("tool_input", json!({})),
    ];
    for typed in noticed {
        door.typed_ago(&id, 11 * MINUTE);
        assert_denied(&door.asking(QUESTION).send());
        let shown = format!("{typed:?}");
        typed.send();
        let asked = door.asking(QUESTION).send();
        assert_eq!((asked.ran.code(), asked.json), (0, Value::Null), "after {shown}");
    }
    door.typed_ago(&id, 11 * MINUTE);
    let wake = "<task-notification><summary>Stop hook feedback</summary></task-notification>";
    door.event("UserPromptSubmit").with("prompt", wake).send();
    assert_denied(&door.asking(QUESTION).send());
}

#[test]
fn the_setting_and_the_option_decide_who_is_asked() {
    for (option, is_asked) in [("ask", true), ("defer", false)] {
        for ago in [Duration::ZERO, 11 * MINUTE] {
            let door = Door::new();
            let id = door.begin(&format!("\"Send mail\" --questions {option}"));
            door.typed_ago(&id, ago);
            let answer = door.asking(QUESTION).send();
            if is_asked { answer.assert_silent() } else { assert_denied(&answer) }
        }
    }
    let door = Door::new();
    let settings = door.sandbox.home().join(".config/crew/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let silent = "[loop]\nquestions = \"defer\"\nnotices = false\n";
    std::fs::write(settings, silent).unwrap();
    let shown = door.sandbox.crew(&["config"]).success();
    assert!(shown.contains("* questions") && shown.contains("defer"), "{shown}");
    let id = door.begin("\"Send mail\"");
    let denied = door.asking(QUESTION).send();
    assert_denied(&denied);
    assert!(denied.json["terminalSequence"].is_null(), "{denied:#?}");
    append(&door.transcript(), &[call("Bash")]);
    door.at_a_dialog().send().assert_silent();
    assert!(door.status(&id)["dialog"].is_object());
}

#[test]
fn questions_of_other_sessions_and_of_paused_loops_are_left_alone() {
    let door = Door::new();
    door.asking(QUESTION).send().assert_silent();
    door.at_a_dialog().send().assert_silent();
    let id = door.begin("\"Send mail\" --questions defer");
    door.asking(QUESTION).with("session_id", OTHER_SESSION).send().assert_silent();
    door.asking(QUESTION).with("tool_name", "Bash").send().assert_silent();
    // A subagent's question stops the session as well.
    assert_denied(&door.asking(QUESTION).with("agent_id", "a-1").send());
    door.sandbox.crew(&["cancel", &id]).success();
    door.asking(QUESTION).send().assert_silent();
    door.at_a_dialog().send().assert_silent();
}

#[test]
fn many_long_questions_keep_the_record_small_and_invalid_ones_are_refused_in_a_line() {
    let door = Door::new();
    let id = door.begin("\"Send mail\" --questions defer");
    for number in 0..25 {
        assert_denied(&door.asking(&format!("{number} {}", "why? \u{1b}[2J".repeat(2000))).send());
    }
    let asked = door.record(&id)["state"]["asked"].as_array().unwrap().clone();
    assert_eq!((asked.len(), &asked[0]["question"].as_str().unwrap()[..2]), (20, "5 "));
    let page = door.sandbox.crew(&["status", &id]).success();
    assert!(!page.contains('\u{1b}') && page.len() < 10_000, "{page}");
    for input in [json!(null), json!([]), json!({"questions": {"a": 1}}), json!({"questions": [7]})]
    {
        assert_denied(&door.asking(QUESTION).with("tool_input", input).send());
    }
}

/// A line of a transcript with a call of the tool, or its result.
fn call(tool: &str) -> Value {
    let block = json!({"type": "tool_use", "id": tool, "name": tool});
    json!({"type": "assistant", "message": {"content": [block]}})
}

fn result(tool: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": tool});
    json!({"type": "user", "message": {"content": [block]}})
}

#[test]
fn a_waiting_dialog_is_shown_until_it_is_answered() {
    let door = Door::new();
    let id = door.begin("\"Send mail\"");
    let page = || door.sandbox.crew(&["status", &id]).success();
    for (tool, shown) in
        [("Bash", "waiting at a permission dialog since "), ("AskUserQuestion", "for your answer")]
    {
        append(&door.transcript(), &[call(tool)]);
        let notice = door.at_a_dialog().send();
        let sent = notice.json["terminalSequence"].as_str().unwrap();
        assert!(sent.starts_with("\u{1b}]") && sent.contains(shown), "{sent:?}");
        assert!(page().contains(shown), "{}", page());
        assert_eq!(page().contains(": Bash"), tool == "Bash", "{}", page());
        assert!(door.status(&id)["dialog"]["since"].is_string());
        let line = door.sandbox.crew(&["status", "--line"]).success();
        assert!(line.ends_with(" · at a dialog\n"), "{line}");
        append(&door.transcript(), &[result(tool)]);
        assert!(!page().contains(shown) && door.status(&id)["dialog"].is_null());
    }
    door.stop("It was answered.").assert_goes_on();
    assert!(door.record(&id)["state"]["session"]["dialog"].is_null());
}

#[test]
fn a_dialog_of_a_subagent_outlasts_the_stop_of_the_agent_that_waits_for_it() {
    let door = Door::new();
    let id = door.begin("\"Send mail\"");
    append(&door.transcript(), &[call("Agent"), result("Agent")]);
    append(&door.agent("a"), &[call("Read"), result("Read"), call("Write")]);
    door.at_a_dialog().send();
    let shown = || door.sandbox.crew(&["status", &id]).success();
    assert!(
        shown().contains("waiting at a permission dialog since ") && shown().contains(": Write")
    );
    append(&door.transcript(), &[json!({"type": "assistant", "message": {"content": []}})]);
    let running = json!([{"id": "a", "type": "subagent", "status": "running"}]);
    door.stopping("Started it.").with("background_tasks", running).send();
    assert!(shown().contains(": Write"), "{}", shown());
    append(&door.agent("a"), &[result("Write")]);
    assert!(!shown().contains(": Write"), "{}", shown());
}

#[test]
fn the_waiting_call_of_a_message_is_the_one_the_client_names_or_else_the_first() {
    for (message, waits) in [
        ("Claude needs your permission", "Edit"),
        ("Claude needs your permission to use Bash", "Bash"),
    ] {
        let door = Door::new();
        let id = door.begin("\"Send mail\"");
        append(&door.transcript(), &[call("Edit"), call("Bash")]);
        door.at_a_dialog().with("message", message).send();
        let page = || door.sandbox.crew(&["status", &id]).success();
        assert!(page().contains(&format!(": {waits}\n")), "{}", page());
        let other = if waits == "Edit" { "Bash" } else { "Edit" };
        append(&door.transcript(), &[result(other)]);
        assert!(page().contains(&format!(": {waits}\n")), "only the other has its result");
        append(&door.transcript(), &[result(waits)]);
        assert!(!page().contains("dialog"), "{}", page());
    }
}

#[test]
fn a_dialog_is_shown_on_every_page_until_its_client_is_gone() {
    let door = Door::new();
    let id = door.begin("\"Send mail\"");
    append(&door.transcript(), &[call("Bash")]);
    door.at_a_dialog().send();
    for page in [&["status", &id][..], &["show", &id], &["show", &id, "--json"]] {
        let shown = door.sandbox.crew(page).success();
        assert!(shown.contains("waiting at a permission dialog"), "{shown}");
        assert!(shown.contains("needs you"), "{shown}");
    }
}

#[test]
fn a_session_that_will_wait_at_dialogs_says_so_at_the_start() {
    let table = [
        ("plan", "! plan mode: claude cannot edit; leave it with shift+tab"),
        ("default", "! manual mode: claude will stop at dialogs"),
        ("acceptEdits", "! claude may edit, but stops at dialogs for commands"),
        ("bypassPermissions", ""),
        ("auto", ""),
    ];
    for (mode, expected) in table {
        let door = Door::new();
        let started = door
            .command("\"Send mail\"")
            .with("permission_mode", mode)
            .env("CLAUDE_CODE_ENTRYPOINT", "cli")
            .send();
        let line = started.line();
        assert!(line.contains(expected), "{mode}: {line}");
        assert_eq!(line.contains("\n! "), !expected.is_empty(), "{mode}: {line}");
    }
    // Without a terminal nothing waits at a dialog.
    let started = Door::new().command("\"Send mail\"").with("permission_mode", "default").send();
    assert!(!started.line().contains("! "), "{}", started.line());
}
