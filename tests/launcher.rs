//! The launcher of a checkout that is used as a plugin: it finds the binary, or reports that there
//! is none, without blocking the client.

use serde_json::{Value, json};

use crate::sandbox::{DEADLINE, Sandbox, checkout, crew, write_executable};
use crate::spawned::Running;

/// The end of the launcher's message without a binary.
const WAYS_TO_INSTALL: &str =
    "Install it: npm install -g crew-loop. In a checkout: cargo build --release";

/// Runs the line of `hooks.json` as the client does, from a plugin that was copied without execute
/// bits into a folder with a space in its name.
fn launch(sandbox: &Sandbox, binary: Option<&str>, payload: &Value) -> String {
    let plugin = sandbox.root().join("my plugins/crew");
    std::fs::create_dir_all(plugin.join("bin")).unwrap();
    let script = std::fs::read_to_string(checkout().join("bin/launch")).unwrap();
    std::fs::write(plugin.join("bin/launch"), script).unwrap();
    let hooks = std::fs::read_to_string(checkout().join("hooks/hooks.json")).unwrap();
    let hooks: Value = serde_json::from_str(&hooks).unwrap();
    let line = hooks["hooks"]["SessionStart"][0]["hooks"][0]["command"].as_str().unwrap();
    let mut command = sandbox.command("/bin/sh");
    command.args(["-c", line]).env("CLAUDE_PLUGIN_ROOT", &plugin);
    command.env("PATH", sandbox.root().join("bin")).envs(binary.map(|it| ("CREW_BIN", it)));
    for program in ["sh", "cat"] {
        write_executable(
            &sandbox.root().join("bin").join(program),
            &format!("#!/bin/sh\nexec /bin/{program} \"$@\"\n"),
        );
    }
    Running::start(command, Some(payload.to_string().into_bytes())).wait(DEADLINE).success()
}

#[test]
fn the_launcher_needs_no_execute_bit_and_its_path_may_contain_spaces() {
    let sandbox = Sandbox::new();
    let help = json!({"hook_event_name": "UserPromptExpansion", "command_name": "crew:help"});
    let said = launch(&sandbox, crew().to_str(), &help);
    assert!(said.contains("crew keeps the agent working"), "{said}");
    let stop = json!({"hook_event_name": "Stop", "session_id": "s-1"});
    assert_eq!(launch(&sandbox, crew().to_str(), &stop), "");
}

#[test]
fn without_a_binary_stops_pass_silently_and_commands_say_what_to_do() {
    let sandbox = Sandbox::new();
    for (payload, expected) in [
        (json!({"hook_event_name":"Stop"}), ""),
        (json!({"hook_event_name":"SessionStart"}), WAYS_TO_INSTALL),
        (
            json!({"hook_event_name":"UserPromptExpansion","command_name":"crew:loop"}),
            WAYS_TO_INSTALL,
        ),
    ] {
        let said = launch(&sandbox, None, &payload);
        assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
    }
}

#[test]
fn the_launcher_finds_a_binary_on_the_path_and_in_the_home_folder() {
    let help = json!({"hook_event_name": "UserPromptExpansion", "command_name": "crew:help"});
    for place in ["bin/crew", "home/.local/bin/crew", "home/.cargo/bin/crew"] {
        let sandbox = Sandbox::new();
        let place = sandbox.root().join(place);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(crew(), &place).unwrap();
        let said = launch(&sandbox, None, &help);
        assert!(said.contains("crew keeps the agent working"), "{}: {said}", place.display());
    }
}
