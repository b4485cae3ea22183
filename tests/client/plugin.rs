//! The plugin and the client's own validator: everything in it must be valid in a marketplace.

use std::process::Command;

use super::{Installed, on_both_clients};
use crate::sandbox::{DEADLINE, Sandbox, checkout};
use crate::spawned::{Ran, Running};

on_both_clients!(the_manifests_hooks_and_commands_are_valid_to_the_last_warning);

fn the_manifests_hooks_and_commands_are_valid_to_the_last_warning(installed: &Installed) {
    let sandbox = Sandbox::new();
    let marketplace = checkout().display().to_string();
    // Beside a marketplace's manifest the older client checks nothing else.
    let plugin = sandbox.root().join("plugin");
    let mut copy = sandbox.command("/bin/sh");
    copy.args(["-c", r#"cd "$1" && mkdir "$2" && cp -R .claude-plugin README.md LICENSE bin commands hooks "$2""#]);
    copy.arg("sh").arg(&marketplace).arg(&plugin);
    Running::start(copy, None).wait(DEADLINE).success();
    std::fs::remove_file(plugin.join(".claude-plugin/marketplace.json")).unwrap();
    for folder in [marketplace, plugin.display().to_string()] {
        let ran = validate(installed, &sandbox, &[&folder, "--strict"]);
        assert_eq!(ran.code(), 0, "{ran:#?}");
        assert!(ran.stdout.contains("Validation passed"), "{ran:#?}");
        if installed.version == "2.1.330" {
            let listed = validate(installed, &sandbox, &[&folder, "--profile", "directory"]);
            assert_eq!(listed.code(), 0, "{listed:#?}");
        }
    }
}

/// `claude plugin validate`, in an empty home and without network access.
fn validate(installed: &Installed, sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command: Command = sandbox.command(&installed.program);
    command.args(["plugin", "validate"]).args(arguments);
    for name in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
    ] {
        command.env(name, "1");
    }
    command.env("ANTHROPIC_API_KEY", "sk-ant-fake-for-tests-only");
    Running::start(command, None).wait(DEADLINE)
}
