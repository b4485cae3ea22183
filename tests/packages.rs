//! crew on a machine without Rust: the packages of a release, installed into an empty home, and the
//! plugin from a marketplace, each with a loop in the real client. `.ci/try-install` tries what
//! each command of docs/start/install.md prints.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::client::{Api, Client, Installed, Reply, environment, on_both_clients, skip};
use crate::install::copied_plugin;
use crate::sandbox::{DEADLINE, Sandbox, checkout, crew};
use crate::spawned::Running;

on_both_clients!(
    installed_from_npm_a_loop_runs,
    from_a_marketplace_a_loop_runs_with_the_binary_in_local_bin,
);

/// An agent that claims too early, and correctly the second time.
fn replies() -> Api {
    let claim = "It is there.\n<promise>COMPLETE</promise>";
    Api::scripted([
        Reply::text(claim),
        Reply::bash("touch done").then(Reply::text(claim)),
        Reply::text("never asked"),
    ])
}

/// Runs a loop in the client, which finds crew by itself.
#[track_caller]
fn run_a_loop(client: Client<'_>, sandbox: &Sandbox, api: &Api) {
    let prompt = "/crew:loop \"Make the file\" --max-iterations 5 --verify \"test -e done\"";
    let session = client.env("CREW_BIN", "/none").prompt(prompt).run();
    assert!(session.plugins().contains(&"crew") && session.plugin_errors().is_empty());
    assert_eq!(api.main_requests().len(), 3, "{session:#?}");
    let status = sandbox.crew(&["status", "--all", "--json"]).success();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["loops"][0]["outcome"], "completed", "{status:#}");
    assert_eq!(status["loops"][0]["proof"], "checked", "{status:#}");
}

/// The folder of the `npm` of this machine.
fn folder_of_npm() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join("npm").is_file())
}

/// Packs the build under test as a release does; returns the folder with the packages.
fn pack_for_npm(sandbox: &Sandbox) -> PathBuf {
    let archives = sandbox.root().join("archives");
    let system = if cfg!(target_os = "macos") { "apple-darwin" } else { "unknown-linux-gnu" };
    let platform = format!("{}-{system}", std::env::consts::ARCH);
    let binary = crew().display().to_string();
    for words in [vec!["binary", &platform, &binary], vec!["npm"]] {
        let mut release = sandbox.command(checkout().join(".ci/release"));
        release.args(words).env("CREW_ARCHIVES", &archives);
        Running::start(release, None).wait(DEADLINE).success();
    }
    archives
}

fn installed_from_npm_a_loop_runs(installed: &Installed) {
    let Some(tools) = folder_of_npm() else { return skip("npm is not on PATH") };
    let sandbox = Sandbox::new().home_named("a home");
    let api = replies();
    let archives = pack_for_npm(&sandbox);
    let prefix = sandbox.root().join("a prefix");
    let bin = prefix.join("bin");
    let path = format!(
        "{}:{}/bin:{}:/usr/bin:/bin",
        bin.display(),
        sandbox.root().display(),
        tools.display()
    );
    let client = Client::new(installed, &sandbox, &api).installed_plugins().env("PATH", &path);
    sandbox.program("claude", &format!("exec '{}' \"$@\"", installed.program.display()));
    let run = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.env_clear().envs(environment(&sandbox, &api)).current_dir(sandbox.root());
        command.env("PATH", &path).env("CREW_BIN", "/none").args(words);
        Running::start(command, None).wait(DEADLINE).success()
    };

    let packages = std::fs::read_dir(&archives).unwrap().map(|it| it.unwrap().path());
    let packages: Vec<String> = packages
        .filter(|path| path.extension().is_some_and(|it| it == "tgz"))
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(packages.len(), 2, "{packages:?}");
    let prefix = prefix.display().to_string();
    let words = ["install", "--global", "--offline", "--prefix", &prefix];
    run(
        &tools.join("npm"),
        &[&words[..], &packages.iter().map(String::as_str).collect::<Vec<_>>()].concat(),
    );
    let crew = bin.join("crew");
    assert_eq!(run(&crew, &["--version"]), concat!("crew ", env!("CARGO_PKG_VERSION"), "\n"));
    let said = run(&crew, &["install"]);
    assert!(said.contains(&prefix), "the links lead elsewhere: {said}");
    run_a_loop(client, &sandbox, &api);
    run(&crew, &["uninstall"]);
}

fn from_a_marketplace_a_loop_runs_with_the_binary_in_local_bin(installed: &Installed) {
    let sandbox = Sandbox::new().home_named("a home");
    let api = replies();
    let client = Client::new(installed, &sandbox, &api).installed_plugins();
    let marketplace = copied_plugin(&sandbox).display().to_string();
    client.tool(&["plugin", "marketplace", "add", &marketplace]).success();
    client.tool(&["plugin", "install", "crew@crew"]).success();
    let place = sandbox.home().join(".local/bin/crew");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(crew(), place).unwrap();
    run_a_loop(client, &sandbox, &api);
}
