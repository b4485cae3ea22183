//! The installed plugin: written, registered with the real client, run by it, and removed again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::{Api, Client, Installed, Reply, Terminal, in_a_terminal, on_both_clients};
use crate::sandbox::{Sandbox, checkout, crew};

on_both_clients!(
    a_plugin_installed_over_an_older_one_runs_and_can_be_uninstalled,
    the_installed_plugin_and_the_checkout_pass_the_clients_strict_validation,
    a_local_installation_counts_in_its_repository_alone_and_is_undone_there,
    a_shared_installation_records_an_address_and_no_path_of_this_machine,
    a_checkout_without_a_binary_explains_how_to_build_it,
);

/// The files that the client keeps of its own, whatever it is asked to forget: its settings
/// (emptied), its lists (emptied), its copy of the plugin (marked as orphaned), and the traces of
/// the sessions it ran.
const CLIENT_KEEPS: [&str; 13] = [
    ".claude.json",
    ".claude/.last-cleanup",
    ".claude/backups/",
    ".claude/plugins/cache/crew/crew/",
    ".claude/plugins/installed_plugins.json",
    ".claude/plugins/known_marketplaces.json",
    ".claude/plugins/store/",
    ".claude/projects/",
    ".claude/session-env/",
    ".claude/sessions/",
    ".claude/settings.json",
    ".claude/shell-snapshots/",
    ".cache/claude",
];

fn client<'world>(
    installed: &'world Installed,
    sandbox: &'world Sandbox,
    api: &Api,
) -> Client<'world> {
    Client::new(installed, sandbox, api).installed_plugins()
}

fn plugin_folder(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".local/share/crew/plugin")
}

/// Every file below a folder, by its path from there.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn make_older(sandbox: &Sandbox) {
    let manifest = plugin_folder(sandbox).join(".claude-plugin/plugin.json");
    let version = env!("CARGO_PKG_VERSION");
    let older = read(&manifest).replace(&format!("\"{version}\""), "\"0.0.9\"");
    std::fs::write(&manifest, older).unwrap();
}

#[track_caller]
fn listed(client: &Client<'_>) -> Value {
    json(&client.tool(&["plugin", "list", "--json"]).success())
}

fn a_plugin_installed_over_an_older_one_runs_and_can_be_uninstalled(installed: &Installed) {
    let sandbox = Sandbox::new().home_named("a home");
    let claim = "It is there.\n<promise>COMPLETE</promise>";
    let api = Api::scripted([
        Reply::text(claim),
        Reply::bash("touch done").then(Reply::text(claim)),
        Reply::text("never asked"),
    ]);
    let client = || client(installed, &sandbox, &api);
    client();
    let before = files(&sandbox.home());
    let version = env!("CARGO_PKG_VERSION");

    let said = client().crew(&["install"]).success();
    assert!(said.contains(&format!("crew {version} is installed (scope user)")), "{said}");
    assert!(said.contains("/reload-plugins") && said.contains("/crew:loop"), "{said}");
    client().crew(&["install"]).success();
    let doctor = client().crew(&["doctor"]);
    assert_eq!(doctor.code(), 0, "{doctor:#?}");

    make_older(&sandbox);
    let session = client().prompt("/crew:status").run();
    let skew = format!("the plugin is of version 0.0.9, its binary of {version}");
    let shown = session.lines.iter().filter(|line| line.to_string().contains(&skew));
    assert!(shown.count() > 0, "{session:#?}");
    let doctor = client().crew(&["doctor"]);
    assert!(doctor.code() == 1 && doctor.stdout.contains("is of crew 0.0.9"), "{doctor:#?}");
    let said = client().crew(&["install"]).success();
    assert!(said.contains("in place of 0.0.9"), "{said}");

    let list = listed(&client());
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list:#}");
    let plugin = (&list[0]["id"], &list[0]["version"], &list[0]["enabled"]);
    assert_eq!(plugin, (&"crew@crew".into(), &version.into(), &true.into()), "{list:#}");
    let prompt = "/crew:loop \"Make the file\" --max-iterations 5 --verify \"test -e done\"";
    let session = client().prompt(prompt).run();
    assert!(session.plugins().contains(&"crew") && session.plugin_errors().is_empty());
    assert_eq!(api.main_requests().len(), 3, "{session:#?}");
    let status = json(&sandbox.crew(&["status", "--all", "--json"]).success());
    assert_eq!(status["loops"][0]["outcome"], "completed", "{status:#}");
    assert_eq!(status["loops"][0]["completed_iterations"], 2);
    assert_eq!(status["loops"][0]["proof"], "checked");

    let said = client().crew(&["uninstall"]).success();
    assert!(said.contains(&sandbox.crew_home().display().to_string()), "{said}");
    assert_eq!(listed(&client()), json("[]"));
    assert_left_as(&sandbox, &before);
    let said = client().crew(&["uninstall"]).success();
    assert!(said.contains("is not installed here"), "{said}");
}

/// Asserts that the home contains its original files, the records, and what the client keeps; and
/// nothing names crew.
#[track_caller]
fn assert_left_as(sandbox: &Sandbox, before: &BTreeSet<String>) {
    let after = files(&sandbox.home());
    assert!(before.is_subset(&after), "{:#?}", before - &after);
    let strange = after.difference(before).filter(|path| {
        let is_kept = CLIENT_KEEPS.iter().any(|kept| path.starts_with(kept));
        !is_kept && !path.starts_with(".local/state/crew/")
    });
    assert_eq!(strange.collect::<Vec<_>>(), Vec::<&String>::new());
    let claude = sandbox.home().join(".claude");
    for file in
        ["settings.json", "plugins/installed_plugins.json", "plugins/known_marketplaces.json"]
    {
        let text = read(&claude.join(file));
        assert!(!text.contains("crew"), "{file}: {text}");
    }
}

fn the_installed_plugin_and_the_checkout_pass_the_clients_strict_validation(installed: &Installed) {
    let sandbox = Sandbox::new().home_named("a home");
    let api = Api::scripted([]);
    let client = client(installed, &sandbox, &api);
    client.crew(&["install"]).success();
    for folder in [plugin_folder(&sandbox), checkout().to_owned()] {
        let folder = folder.display().to_string();
        let ran = client.tool(&["plugin", "validate", "--strict", &folder]);
        assert_eq!(ran.code(), 0, "{ran:#?}");
    }
}

fn a_local_installation_counts_in_its_repository_alone_and_is_undone_there(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([]);
    let client = client(installed, &sandbox, &api);
    client.crew(&["install", "--scope", "local"]).success();
    let settings = sandbox.file(".claude/settings.local.json");
    assert!(read(&settings).contains("crew@crew"));
    assert_eq!(listed(&client)[0]["scope"], "local");
    client.crew(&["uninstall"]).success();
    assert!(!read(&settings).contains("crew"), "{}", read(&settings));
    assert_eq!(listed(&client), json("[]"));
}

fn a_shared_installation_records_an_address_and_no_path_of_this_machine(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([]);
    let client = client(installed, &sandbox, &api);
    // This home's git configuration points the address to a clone on this disk.
    let address = "https://example.invalid/someone/crew.git";
    let clone = sandbox.root().join("crew.git");
    let (from, to) = (checkout().display().to_string(), clone.display().to_string());
    sandbox.git(&["clone", "--quiet", "--bare", &from, &to]);
    let instead = format!("[url \"{to}\"]\n\tinsteadOf = {address}\n[safe]\n\tdirectory = *\n");
    std::fs::write(sandbox.home().join(".gitconfig"), instead).unwrap();

    client.crew(&["install", "--scope", "project", "--marketplace", address]).success();
    let settings = read(&sandbox.file(".claude/settings.json"));
    let there = json(&settings);
    assert_eq!(there["extraKnownMarketplaces"]["crew"]["source"]["url"], address, "{settings}");
    assert_eq!(there["enabledPlugins"]["crew@crew"], true);
    assert!(!settings.contains(&sandbox.root().display().to_string()), "{settings}");
    client.crew(&["uninstall", "--scope", "project"]).success();
    assert!(!read(&sandbox.file(".claude/settings.json")).contains("crew"));

    // If a person already has crew installed, the client would keep one source and drop the other.
    client.crew(&["install"]).success();
    let ran = client.crew(&["install", "--scope", "project", "--marketplace", address]);
    assert!(ran.code() == 1 && ran.stderr.contains("extraKnownMarketplaces"), "{ran:#?}");
    assert!(!read(&sandbox.file(".claude/settings.json")).contains("crew"));
}

/// The plugin's own files of this checkout, in a folder where no crew was built.
pub(crate) fn copied_plugin(sandbox: &Sandbox) -> PathBuf {
    let plugin = sandbox.root().join("a checkout");
    for folder in [".claude-plugin", "bin", "commands", "hooks"] {
        for path in files(&checkout().join(folder)) {
            let copy = plugin.join(folder).join(&path);
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            // Not `copy`: an unpacked archive may have lost the execute bit.
            std::fs::write(copy, read(&checkout().join(folder).join(path))).unwrap();
        }
    }
    plugin
}

fn a_checkout_without_a_binary_explains_how_to_build_it(installed: &Installed) {
    let sandbox = Sandbox::new();
    let plugin = copied_plugin(&sandbox);
    let api = Api::scripted([Reply::text("never asked")]);
    let client = Client::new(installed, &sandbox, &api).plugin(&plugin).env("CREW_BIN", "/none");
    let session = client.prompt("/crew:loop \"Build it\"").run();
    let missing = "crew: its binary is missing";
    assert!(session.result().contains(missing), "{session:#?}");
    assert_eq!(api.main_requests().len(), 0);
    let greeted = session
        .lines
        .iter()
        .any(|line| line["hook_event"] == "SessionStart" && line.to_string().contains(missing));
    assert!(greeted, "{session:#?}");
}

/// Writes a fake client that records its arguments and gives the answers found in the home.
fn write_fake_client(sandbox: &Sandbox) {
    sandbox.program(
        "claude",
        r#"echo "$*" >> "$HOME/asked"
        case "$*" in
            'plugin list --json') cat "$HOME/list" ;;
            'plugin marketplace list --json') cat "$HOME/market" ;;
        esac"#,
    );
}

#[test]
fn an_agent_may_not_install_or_uninstall() {
    for variable in ["CLAUDECODE", "CREW_LOOP"] {
        let sandbox = Sandbox::new().env(variable, "1");
        write_fake_client(&sandbox);
        for verb in ["install", "uninstall"] {
            let ran = sandbox.crew(&[verb]);
            assert!(ran.code() == 1 && ran.stderr.contains("only a person can"), "{ran:#?}");
        }
        assert!(!plugin_folder(&sandbox).exists() && !sandbox.home().join("asked").exists());
    }
}

#[test]
fn without_a_client_the_plugin_is_written_and_its_install_commands_are_shown() {
    let sandbox = Sandbox::new().home_named("a home");
    let ran = sandbox.crew(&["install"]);
    let folder = plugin_folder(&sandbox);
    let add = format!("claude plugin marketplace add '{}'", folder.display());
    assert_eq!(ran.code(), 1, "{ran:#?}");
    assert!(
        ran.stderr.contains("`claude` is not on PATH") && ran.stderr.contains(&add),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("claude plugin install crew@crew --scope user"), "{ran:#?}");
    let laid: Vec<String> =
        files(&folder).into_iter().filter(|it| it.starts_with("bin/")).collect();
    assert_eq!(laid, ["bin/crew", "bin/crew-hook", "bin/crew-wake"]);
    let ran = sandbox.crew(&["uninstall"]);
    assert!(
        ran.code() == 1 && ran.stderr.contains("claude plugin uninstall crew@crew"),
        "{ran:#?}"
    );
    assert_eq!(files(&sandbox.home()), BTreeSet::new());
    let again = sandbox.crew(&["uninstall"]).success();
    assert_eq!(
        again,
        "crew is not installed here; `claude` is not on PATH, so the client could not be asked\n"
    );
}

#[test]
fn the_links_point_to_the_path_that_an_update_replaces() {
    let sandbox = Sandbox::new();
    write_fake_client(&sandbox);
    let name = sandbox.root().join("bin/crew");
    std::os::unix::fs::symlink(crew(), &name).unwrap();
    sandbox.crew(&["install"]).success();
    for link in ["crew", "crew-hook", "crew-wake"] {
        let link = plugin_folder(&sandbox).join("bin").join(link);
        assert_eq!(std::fs::read_link(link).unwrap(), name);
    }
    let asked = read(&sandbox.home().join("asked"));
    let asked: Vec<&str> = asked.lines().collect();
    let folder = plugin_folder(&sandbox);
    assert_eq!(
        asked,
        [
            &format!("plugin marketplace add {}", folder.display()),
            "plugin install crew@crew --scope user",
            "plugin update crew@crew --scope user",
        ]
    );
}

/// The files of completions and man pages in a sandbox's home.
fn shell_files(sandbox: &Sandbox) -> BTreeSet<String> {
    let plugin = |path: &String| !path.starts_with(".local/share/crew/") && path != "asked";
    files(&sandbox.home()).into_iter().filter(plugin).collect()
}

#[test]
fn completions_and_man_pages_are_installed_on_request_and_removed_again() {
    for (shell, completions) in [
        ("/bin/bash", Some(".local/share/bash-completion/completions/crew")),
        ("/usr/bin/zsh", Some(".local/share/zsh/site-functions/_crew")),
        ("fish", None),
        ("/opt/fish", Some(".config/fish/completions/crew.fish")),
        ("/bin/sh", None),
    ] {
        let sandbox = Sandbox::new().env("SHELL", shell);
        write_fake_client(&sandbox);
        // Nobody can be asked.
        let said = sandbox.crew(&["install"]).success();
        assert!(
            said.ends_with(
                "  shell    crew install --shell-files adds completions and man pages\n"
            )
        );
        assert_eq!(shell_files(&sandbox), BTreeSet::new());
        let said = sandbox.crew(&["install", "--shell-files"]).success();
        let man = sandbox.home().join(".local/share/man/man1/crew.1").display().to_string();
        assert!(
            said.ends_with(&format!("  man      {man}, and a page for each command\n")),
            "{said}"
        );
        let placed = shell_files(&sandbox);
        let named: Vec<&str> =
            placed.iter().map(String::as_str).filter(|path| !path.ends_with(".1")).collect();
        assert_eq!(named, completions.into_iter().collect::<Vec<_>>(), "{shell}");
        assert_eq!(said.contains("not for"), completions.is_none(), "{said}");
        assert_eq!(said.contains("fpath+=("), shell.ends_with("zsh"), "{said}");
        for page in ["crew", "crew-run", "crew-fleet-run", "crew-uninstall"] {
            assert!(placed.contains(&format!(".local/share/man/man1/{page}.1")), "{placed:#?}");
        }
        assert!(!placed.iter().any(|path| path.contains("drive") || path.contains("help")));

        // What is there is written anew, without a question.
        let page = sandbox.home().join(".local/share/man/man1/crew-run.1");
        let text = read(&page);
        std::fs::write(&page, text.lines().next().unwrap()).unwrap();
        sandbox.crew(&["install"]).success();
        assert_eq!((read(&page), shell_files(&sandbox)), (text, placed));
        std::fs::write(sandbox.home().join("market"), "[]").unwrap();
        std::fs::write(sandbox.home().join("list"), "[]").unwrap();
        let said = sandbox.crew(&["uninstall"]).success();
        assert!(said.contains("the completions and man pages are removed"), "{said}");
        assert_eq!(shell_files(&sandbox), BTreeSet::from(["list", "market"].map(str::to_owned)));
    }
}

#[test]
fn completions_and_man_pages_of_others_stay() {
    let sandbox = Sandbox::new().env("SHELL", "/usr/bin/fish");
    write_fake_client(&sandbox);
    std::fs::write(sandbox.home().join("market"), "[]").unwrap();
    std::fs::write(sandbox.home().join("list"), "[]").unwrap();
    let theirs = [".config/fish/completions/crew.fish", ".local/share/man/man1/crew.1"];
    let theirs = theirs.map(|path| sandbox.home().join(path));
    for file in &theirs {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "mine").unwrap();
    }
    let said = sandbox.crew(&["install", "--shell-files"]).success();
    for file in &theirs {
        let left = format!("  left     {} is not from crew install\n", file.display());
        assert!(said.contains(&left), "{said}");
    }
    sandbox.crew(&["uninstall"]).success();
    assert_eq!(theirs.map(|file| read(&file)), ["mine", "mine"]);
    assert_eq!(shell_files(&sandbox).len(), 4, "{:#?}", shell_files(&sandbox));
}

#[test]
fn without_a_client_completions_are_still_installed_but_only_for_this_user() {
    let sandbox = Sandbox::new().env("SHELL", "/bin/bash");
    let ran = sandbox.crew(&["install", "--shell-files"]);
    assert!(ran.code() == 1 && ran.stdout.contains("bash-completion"), "{ran:#?}");
    assert_eq!(sandbox.crew(&["uninstall"]).code(), 1);
    assert_eq!(shell_files(&sandbox), BTreeSet::new());
    let ran = sandbox.crew(&["install", "--shell-files", "--scope", "local"]);
    assert!(ran.code() == 2 && ran.stderr.contains("leave --scope out"), "{ran:#?}");
}

#[test]
fn in_a_terminal_install_asks_whether_to_add_completions() {
    in_a_terminal(|| {
        for (answer, is_placed) in [("", false), ("y", true)] {
            let sandbox = Sandbox::new().env("SHELL", "/bin/bash");
            write_fake_client(&sandbox);
            let mut install = sandbox.command(crew());
            install.arg("install");
            let terminal = Terminal::start_in_shell(&sandbox, &install);
            let question = "Also add completions for your shell and man pages? [y/N]";
            terminal.wait_for_text(question);
            if !answer.is_empty() {
                terminal.type_text(answer);
            }
            terminal.key("Enter");
            terminal.wait_for_text(if is_placed { "crew.1" } else { "crew install --shell-files" });
            assert_eq!(!shell_files(&sandbox).is_empty(), is_placed);
        }
    });
}

#[test]
fn a_plugin_folder_that_contains_other_files_is_never_touched() {
    let sandbox = Sandbox::new();
    write_fake_client(&sandbox);
    let folder = plugin_folder(&sandbox);
    sandbox.crew(&["install"]).success();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    make_older(&sandbox);
    std::fs::write(sandbox.home().join("market"), "[]").unwrap();
    for verb in ["install", "uninstall"] {
        let ran = sandbox.crew(&[verb]);
        assert!(ran.code() == 1 && ran.stderr.contains("notes.txt"), "{ran:#?}");
    }
    assert!(read(&folder.join(".claude-plugin/plugin.json")).contains("0.0.9"));
    assert_eq!(files(folder.parent().unwrap()).len(), files(&folder).len());
}

#[test]
fn without_an_address_the_packages_address_is_used() {
    let sandbox = Sandbox::new();
    write_fake_client(&sandbox);
    std::fs::write(sandbox.home().join("market"), "[]").unwrap();
    let address = concat!(env!("CARGO_PKG_REPOSITORY"), ".git");
    let page = sandbox.crew(&["install", "--scope", "project"]).success();
    assert!(page.contains(address), "{page}");
    let asked = read(&sandbox.home().join("asked"));
    let add = format!("plugin marketplace add {address} --scope project\n");
    assert!(asked.contains(&add), "{asked}");
}

#[test]
fn a_path_of_this_machine_is_never_shared() {
    let sandbox = Sandbox::new();
    write_fake_client(&sandbox);
    let here = sandbox.root().display().to_string();
    let ran = sandbox.crew(&["install", "--scope", "project", "--marketplace", &here]);
    assert!(
        ran.code() == 1 && ran.stderr.contains("not an address that others can use"),
        "{ran:#?}"
    );
    let ran = sandbox.crew(&["install", "--marketplace", "https://example.invalid/crew.git"]);
    assert!(ran.code() == 2 && ran.stderr.contains("--scope project"), "{ran:#?}");
    assert!(!sandbox.file(".claude").exists() && !sandbox.home().join("asked").exists());
}
