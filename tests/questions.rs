//! The real client asks its user, or waits at a dialog, while a loop runs: who answers, and what
//! people see from outside.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::client::{Api, Client, Installed, Reply, Terminal, on_both_clients, on_both_terminals};
use crate::sandbox::{Sandbox, poll_until};

on_both_terminals!(
    a_question_asked_with_nobody_there_is_decided_by_the_agent,
    a_question_asked_two_minutes_after_typing_is_asked,
    a_permission_dialog_that_waits_is_seen_from_outside,
);
on_both_clients!(without_a_terminal_the_agent_cannot_ask);

const CLAIM: &str = "Took SMTP.\n\n<promise>COMPLETE</promise>";

fn question() -> Reply {
    let options = json!([{"label": "SMTP", "description": "as before"},
        {"label": "SES", "description": "a service"}]);
    let question = json!({"question": "SES or SMTP?", "header": "Mail", "multiSelect": false,
        "options": options});
    Reply::tool("AskUserQuestion", json!({"questions": [question]}))
}

/// Makes the agent ask after the user typed something this many minutes ago; the loop is done an
/// iteration later.
fn asking_after(sandbox: &Sandbox, minutes: u64) -> Api {
    let loops = sandbox.crew_home().join("loops");
    let mut replies = [Reply::text("Took SMTP."), Reply::text(CLAIM)].into_iter();
    let mut has_asked = false;
    Api::answering(move |_| {
        if has_asked {
            return replies.next();
        }
        has_asked = true;
        let mut folders = std::fs::read_dir(&loops).unwrap().map(|entry| entry.unwrap().path());
        let typed = File::options().write(true).open(folders.next().unwrap().join("typed"));
        let then = SystemTime::now() - Duration::from_secs(60 * minutes);
        typed.unwrap().set_modified(then).unwrap();
        Some(question())
    })
}

fn begin(terminal: &Terminal<'_>) {
    terminal.type_text("/crew:loop \"Send mail\" --stall 0 -n 3");
    terminal.enter();
}

/// crew's notices among the bytes that a client sent to its terminal.
fn notices(bytes: &Path) -> Vec<String> {
    let bytes = std::fs::read(bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let codes = text.split("\u{1b}]9;").skip(1);
    codes.filter_map(|code| Some(code.split_once('\u{7}')?.0.to_owned())).collect()
}

fn status(sandbox: &Sandbox) -> String {
    sandbox.crew(&["status"]).success()
}

fn a_question_asked_with_nobody_there_is_decided_by_the_agent(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = asking_after(&sandbox, 11);
    let terminal = Client::new(installed, &sandbox, &api).open();
    let bytes = terminal.tap();
    begin(&terminal);
    terminal.wait_for_text("asked \"SES or SMTP?\", told to decide");
    terminal.wait_for_text("completed");
    assert!(api.main_requests()[1].newest().contains("Decide yourself what fits the task best"));
    let notices = notices(&bytes);
    assert!(notices[0].ends_with(" asked \"SES or SMTP?\", told to decide"), "{notices:?}");
    assert!(notices[1].ends_with(": completed after 2 iterations, proof: claimed"), "{notices:?}");
    let page = status(&sandbox);
    assert!(page.contains("asked   \"SES or SMTP?\" (iteration 1, told to decide)"), "{page}");
}

fn a_question_asked_two_minutes_after_typing_is_asked(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = asking_after(&sandbox, 2);
    let terminal = Client::new(installed, &sandbox, &api).open();
    begin(&terminal);
    terminal.wait_for_text("Enter to select");
    // The client reports a dialog that has waited six seconds.
    poll_until("the page says that it waits", || status(&sandbox).contains("for your answer"));
    terminal.key("Enter");
    terminal.wait_for_text("completed");
    assert!(api.main_requests()[1].newest().contains("SMTP"));
    assert!(!status(&sandbox).contains("for your answer"));
    assert!(!status(&sandbox).contains("told to decide"));
}

fn a_permission_dialog_that_waits_is_seen_from_outside(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([
        Reply::bash("touch made").then(Reply::text("Made it.")),
        Reply::text("Thinking about it.").after(Duration::from_secs(2)),
        Reply::text(CLAIM),
    ]);
    let terminal = Client::new(installed, &sandbox, &api).permission_mode("default").open();
    let bytes = terminal.tap();
    begin(&terminal);
    terminal.wait_for_text("! manual mode: claude will stop at dialogs");
    terminal.wait_for_text("Do you want to proceed?");
    let expected = "waiting at a permission dialog since";
    poll_until("the page names the tool", || {
        let page = status(&sandbox);
        page.contains(expected) && page.contains(": Bash")
    });
    poll_until("a notice", || !notices(&bytes).is_empty());
    assert!(notices(&bytes)[0].contains(expected), "{:?}", notices(&bytes));
    terminal.key("Enter");
    poll_until("the page no longer says so", || !status(&sandbox).contains(expected));
    terminal.wait_for_text("completed");
}

fn without_a_terminal_the_agent_cannot_ask(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([question().then(Reply::text(CLAIM))]);
    Client::new(installed, &sandbox, &api).prompt("/crew:loop \"Send mail\" -n 3").run();
    assert!(status(&sandbox).contains("completed"), "{}", status(&sandbox));
    assert!(api.main_requests()[1].newest().contains("No such tool available: AskUserQuestion"));
}
