//! The loop in the client's status line: the output of `crew status --line` where a client runs it,
//! and the entry in the client's settings for it.

use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Api, Client, Installed, Reply, on_both_clients, on_both_terminals};
use crate::door::Door;
use crate::sandbox::{DEADLINE, Sandbox, crew, poll_until};
use crate::spawned::{Ran, Running};

on_both_terminals!(the_clients_status_line_shows_the_loop);
on_both_clients!(
    an_installed_status_line_can_be_removed_without_other_changes_to_the_settings,
    another_status_line_is_kept_when_the_plugin_is_installed,
);

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

/// Runs the command as a client does, in a folder without a loop.
fn line(sandbox: &Sandbox, input: &Value) -> Ran {
    let mut command = sandbox.command(crew());
    command.args(["status", "--line"]).env("CLAUDECODE", "1").current_dir(sandbox.root());
    Running::start(command, Some(input.to_string().into_bytes())).wait(DEADLINE)
}

#[test]
fn the_status_line_shows_the_loop_of_the_session_or_else_of_its_folder() {
    let door = Door::new();
    door.begin("\"Build it\"");
    let (home, repository) = (door.sandbox.home(), door.sandbox.repository());
    for (input, expected) in [
        (json!({"session_id": SESSION, "cwd": home}), "crew 1/10\n"),
        (json!({"session_id": "another", "cwd": repository}), "crew 1/10\n"),
        (json!({"session_id": "another", "cwd": home}), ""),
        (json!({"session_id": ["a"], "cwd": 7}), ""),
        (json!("junk"), ""),
    ] {
        let ran = line(&door.sandbox, &input);
        assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (0, expected, ""));
    }
    door.sandbox.crew(&["cancel"]).success();
    assert_eq!(line(&door.sandbox, &json!({"session_id": SESSION})).success(), "");
}

#[test]
fn the_status_line_does_not_wait_for_input_that_never_arrives() {
    let door = Door::new();
    door.begin("\"Build it\"");
    let mut command = door.sandbox.command(crew());
    command.args(["status", "--line"]).env("CLAUDECODE", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let silent = child.stdin.take();
    poll_until("the line", || child.try_wait().unwrap().is_some());
    drop(silent);
    let mut shown = String::new();
    child.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(shown, "crew 1/10\n");
}

#[test]
fn the_status_line_does_not_read_from_a_terminal_and_is_empty_after_an_error() {
    let sandbox = Sandbox::new();
    let mut shell = sandbox.command("/bin/sh");
    let script = "printf 'a\\nb\\n' | while read word; do \"$0\" status --line; echo $word; done";
    shell.args(["-c", script]).arg(crew());
    assert_eq!(Running::start(shell, None).wait(DEADLINE).success(), "a\nb\n");
    let mut homeless = sandbox.command(crew());
    homeless.args(["status", "--line"]);
    for name in ["HOME", "CREW_HOME", "XDG_STATE_HOME"] {
        homeless.env_remove(name);
    }
    let ran = Running::start(homeless, None).wait(DEADLINE);
    assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
}

fn client<'world>(
    installed: &'world Installed,
    sandbox: &'world Sandbox,
    api: &Api,
) -> Client<'world> {
    Client::new(installed, sandbox, api).installed_plugins()
}

fn the_clients_status_line_shows_the_loop(installed: &Installed) {
    let sandbox = Sandbox::new().home_named("a home");
    let api = Api::scripted([
        Reply::bash("touch made").then(Reply::text("Made it.")),
        Reply::text("Never said.").after(Duration::from_secs(60)),
    ]);
    let said = client(installed, &sandbox, &api).crew(&["install", "--status-line"]).success();
    assert!(said.contains("  line     the status line of new sessions shows the loop: "), "{said}");
    let terminal = client(installed, &sandbox, &api).open();
    terminal.type_text("/crew:loop \"Build it\" -n 3");
    terminal.enter();
    // The line after the iteration says 1/3; only the status line says 2/3.
    terminal.wait_for_screen("the loop below the prompt", |screen| {
        let below = screen.rsplit_once('❯').map_or("", |(_, below)| below);
        below.contains("crew 2/3")
    });
}

fn an_installed_status_line_can_be_removed_without_other_changes_to_the_settings(
    installed: &Installed,
) {
    let sandbox = Sandbox::new().home_named("a home");
    let api = Api::scripted([]);
    let client = || client(installed, &sandbox, &api);
    client();
    let kept = sandbox.root().join("dotfiles.json");
    std::fs::write(&kept, "{\n  \"env\": {\"A\":  \"spaced\"}\n}\n").unwrap();
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(sandbox.home().join(".claude")).unwrap();
    let file = sandbox.home().join(".claude/settings.json");
    symlink(&kept, &file).unwrap();
    for _ in 0..2 {
        client().crew(&["install", "--status-line"]).success();
    }
    let settings =
        || -> Value { serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap() };
    let program = sandbox.home().join(".local/share/crew/plugin/bin/crew");
    let command = format!("'{}' status --line", program.display());
    let line = json!({"type": "command", "command": command, "refreshInterval": 2});
    assert_eq!(settings()["statusLine"], line);
    let mut padded = settings();
    padded["statusLine"]["padding"] = json!(0);
    std::fs::write(&kept, serde_json::to_string_pretty(&padded).unwrap()).unwrap();
    client().crew(&["install", "--status-line"]).success();
    assert_eq!(settings(), padded);
    let said = client().crew(&["uninstall"]).success();
    assert!(said.contains("  line     taken out of "), "{said}");
    assert_eq!(settings().get("statusLine"), None);
    assert_eq!(settings()["env"], json!({"A": "spaced"}));
    assert!(file.is_symlink());
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(!client().crew(&["uninstall"]).stdout.contains("taken out"));
}

fn another_status_line_is_kept_when_the_plugin_is_installed(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([]);
    let client = || client(installed, &sandbox, &api);
    client();
    let file = sandbox.home().join(".claude/settings.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let plugin = sandbox.home().join(".local/share/crew");
    std::fs::write(&file, "{,").unwrap();
    let ran = client().crew(&["install", "--status-line"]);
    let shown = "is not a settings file that crew can read";
    assert!(ran.code() == 1 && ran.stderr.contains(shown) && !plugin.exists(), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{,");
    let theirs = json!({"type": "command", "command": "mine.sh"});
    std::fs::write(&file, json!({"statusLine": theirs}).to_string()).unwrap();
    let ran = client().crew(&["install", "--status-line"]);
    let shown = "another status line, which stays: mine.sh";
    assert!(ran.code() == 0 && ran.stderr.contains(shown) && plugin.exists(), "{ran:#?}");
    let settings =
        || -> Value { serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap() };
    assert_eq!(settings()["statusLine"], theirs);
    client().crew(&["uninstall"]).success();
    assert_eq!(settings()["statusLine"], theirs);
    std::fs::remove_file(&file).unwrap();
    let scoped = client().crew(&["install", "--status-line", "--scope", "local"]);
    assert!(scoped.code() == 2 && scoped.stderr.contains("leave --scope out"), "{scoped:#?}");
}
