//! The doctor, through the built binary: each planted fault is found and named with its fix.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::client::{Api, Client, Installed, on_both_clients};
use crate::sandbox::{DEADLINE, Sandbox, crew, write_executable};
use crate::spawned::{Ran, Running};

on_both_clients!(what_the_real_client_knows_is_reported);

/// A machine without a fault: a fake client, and crew's plugin installed.
fn healthy() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program(
        "claude",
        r#"case "$*" in
            --version) cat "$HOME/version" ;;
            'plugin list --json') cat "$HOME/list" ;;
            'plugin marketplace list --json') cat "$HOME/market" ;;
        esac"#,
    );
    std::os::unix::fs::symlink(crew(), sandbox.root().join("bin/crew")).unwrap();
    tell(&sandbox, "version", &json!("2.1.330 (Claude Code)"));
    tell(&sandbox, "list", &json!([{"id": "crew@crew", "scope": "user", "enabled": true}]));
    let market = json!([{"name": "crew", "source": "directory", "path": folder(&sandbox)}]);
    tell(&sandbox, "market", &market);
    sandbox.crew(&["install"]).success();
    sandbox
}

/// Sets an answer of the fake client.
fn tell(sandbox: &Sandbox, name: &str, answer: &Value) {
    let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    std::fs::write(sandbox.home().join(name), text).unwrap();
}

fn folder(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".local/share/crew/plugin")
}

fn settings(sandbox: &Sandbox, settings: &Value) {
    sandbox.write(".claude/settings.json", &settings.to_string());
}

fn make_home(sandbox: &Sandbox, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(sandbox.crew_home()).unwrap();
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(sandbox.crew_home(), mode).unwrap();
}

fn replace_program(sandbox: &Sandbox, script: &str) {
    let program = folder(sandbox).join("bin/crew");
    std::fs::remove_file(&program).unwrap();
    write_executable(&program, script);
}

/// A loop whose client is gone: its process id belongs to another one now.
fn leave_a_loop(sandbox: &Sandbox) {
    let start = json!({
        "hook_event_name": "UserPromptExpansion", "command_name": "crew:loop",
        "command_args": "Build it", "prompt_id": "p",
    });
    assert_eq!(sandbox.hook(start).code(), 0);
    let loops = std::fs::read_dir(sandbox.crew_home().join("loops")).unwrap();
    let file = loops.last().unwrap().unwrap().path().join("loop.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["state"]["owner"]["process"]["started"] = json!("long ago");
    std::fs::write(file, record.to_string()).unwrap();
}

/// A completed loop whose check reads a file that git ignores.
fn complete_with_an_ignored_file(sandbox: &Sandbox) {
    sandbox.write("check.sh", "test -f settings.local && test -f work.txt\n");
    sandbox.write(".gitignore", "*.local\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "A check"]);
    sandbox.write("settings.local", "");
    let agent = "sh -c \"echo work > work.txt; echo '<promise>COMPLETE</promise>'\"";
    let run = ["run", "Do the work", "--verify", "sh check.sh", "--agent-cmd", agent];
    sandbox.crew(&run).success();
}

#[test]
fn files_that_the_scratch_folder_lacks_are_named_until_they_are_included() {
    let sandbox = healthy();
    complete_with_an_ignored_file(&sandbox);
    let page = sandbox.crew(&["doctor"]).success();
    let lacks = "`sh check.sh` failed (exit 1) in crew's scratch folder, though the checks passed \
                 here: what crew tries there shows nothing; git ignores, and the folder lacks: \
                 settings.local";
    assert!(page.contains(lacks), "{page}");
    sandbox.write(".worktreeinclude", "settings.local\n");
    assert_eq!(findings(&sandbox.crew(&["doctor", "--json"])), [""; 0]);
}

type Fault = (&'static str, &'static str, i32, fn(&Sandbox));

/// The finding, a part of its fix, the exit code, and the fault.
const FAULTS: [Fault; 30] = [
    ("client-silent", "install Claude Code again", 1, |it| drop(it.program("claude", "exit 7"))),
    ("client-too-old", "claude update", 1, |it| {
        tell(it, "version", &json!("2.1.100 (Claude Code)"));
    }),
    ("client-older", "Esc", 0, |it| tell(it, "version", &json!("2.1.197 (Claude Code)"))),
    ("plugin-missing", "crew install", 1, |it| tell(it, "list", &json!([]))),
    ("plugin-disabled", ".claude/settings.json", 1, |it| {
        tell(it, "list", &json!([{"id": "crew@crew", "scope": "user", "enabled": false}]));
        settings(it, &json!({"enabledPlugins": {"crew@crew": false}}));
    }),
    ("plugin-shadowed", "claude plugin disable crew@zed", 1, |it| {
        let both = json!([{"id": "crew@zed", "scope": "user"}, {"id": "crew@crew"}]);
        tell(it, "list", &both);
    }),
    ("plugin-missing", "for all your folders", 1, |it| {
        tell(it, "list", &json!([{"id": "crew@crew", "scope": "local", "enabled": false}]));
    }),
    ("plugin-not-loaded", "crew install", 1, |it| {
        tell(it, "list", &json!([{"id": "crew@crew", "errors": ["cache-miss"]}]));
    }),
    ("folder-broken", "crew install", 1, |it| {
        std::fs::remove_file(folder(it).join(".claude-plugin/plugin.json")).unwrap();
    }),
    ("folder-broken", "crew install", 1, |it| {
        std::fs::write(folder(it).join("hooks/hooks.json"), "{").unwrap();
    }),
    ("program-broken", "crew install", 1, |it| replace_program(it, "#!/bin/sh\nexit 0\n")),
    ("record-unreadable", "its journal", 0, |it| {
        let folder = it.crew_home().join("loops/haaaaaaa");
        std::fs::create_dir_all(&folder).unwrap();
        make_home(it, 0o700);
        std::fs::write(folder.join("loop.json"), "{").unwrap();
    }),
    ("hooks-disabled", "disableAllHooks", 1, |it| settings(it, &json!({"disableAllHooks": true}))),
    ("program-broken", "crew install", 1, |it| {
        let link = folder(it).join("bin/crew-hook");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("/nowhere/crew", link).unwrap();
    }),
    ("program-broken", "crew install", 1, |it| {
        let link = folder(it).join("bin/crew-wake");
        std::fs::remove_file(&link).unwrap();
        std::fs::write(link, "no bit").unwrap();
    }),
    ("program-skew", "crew install", 1, |it| replace_program(it, "#!/bin/sh\necho crew 0.0.8\n")),
    ("version-skew", "/reload-plugins", 1, |it| {
        let manifest = json!({"name": "crew", "version": "0.0.9"}).to_string();
        std::fs::write(folder(it).join(".claude-plugin/plugin.json"), manifest).unwrap();
    }),
    ("home-unusable", "CREW_HOME", 1, |it| {
        std::fs::create_dir_all(it.crew_home().parent().unwrap()).unwrap();
        std::fs::write(it.crew_home(), "a file").unwrap();
    }),
    ("home-open", "chmod 700", 0, |it| make_home(it, 0o755)),
    ("home-differs", "export CREW_HOME=/elsewhere", 1, |it| {
        let data = it.home().join(".claude/plugins/data/crew-crew");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join("home"), "/elsewhere\n").unwrap();
    }),
    ("settings-unreadable", "correct that line", 1, |it| {
        drop(it.write(".claude/crew.toml", "[loop\n"));
    }),
    ("settings-unreadable", "correct that line", 1, |it| {
        let folder = it.home().join(".config/crew");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), "[loop]\nmax_iterations = \"many\"\n").unwrap();
    }),
    ("settings-untrusted", "crew trust", 1, |it| {
        drop(it.write(".claude/crew.toml", "[loop]\nverify = [\"true\"]\n"));
    }),
    ("agent-missing", "[loop]", 1, |it| {
        let folder = it.home().join(".config/crew");
        std::fs::create_dir_all(&folder).unwrap();
        let agent = "[loop]\nagent = \"a\"\n[agents.a]\ncommand = [\"nosuchagent\"]\n";
        std::fs::write(folder.join("config.toml"), agent).unwrap();
    }),
    ("agent-missing", "[loop]", 1, |it| {
        let folder = it.home().join(".config/crew");
        std::fs::create_dir_all(&folder).unwrap();
        let agent = "[loop]\nfallback = [\"a\"]\n[agents.a]\ncommand = [\"nosuchagent\"]\n";
        std::fs::write(folder.join("config.toml"), agent).unwrap();
    }),
    ("check-missing", "another command", 1, |it| {
        let folder = it.home().join(".config/crew");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), "[loop]\nverify = [\"nosuchcmd\"]\n").unwrap();
    }),
    ("settings-unknown-key", "crew config", 0, |it| {
        drop(it.write(".claude/crew.toml", "[loop]\nmax_iteratons = 3\n"));
    }),
    ("home-unusable", "CREW_HOME", 1, |it| {
        // A folder cannot be made below a file.
        let above = it.crew_home().parent().unwrap().to_owned();
        std::fs::create_dir_all(above.parent().unwrap()).unwrap();
        std::fs::write(above, "a file").unwrap();
    }),
    ("loop-ownerless", "crew cancel", 0, |it| leave_a_loop(it)),
    ("scratch-folder", ".worktreeinclude", 0, |it| complete_with_an_ignored_file(it)),
];

fn findings(ran: &Ran) -> Vec<Value> {
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:#?}"));
    assert_eq!(shown["schema"], 2);
    shown["findings"].as_array().unwrap().clone()
}

#[test]
fn a_healthy_machine_has_no_findings() {
    let sandbox = healthy();
    let ran = sandbox.crew(&["doctor", "--json"]);
    assert_eq!((ran.code(), findings(&ran)), (0, vec![]), "{ran:#?}");
    assert!(!sandbox.crew_home().exists(), "a look makes nothing");
    let page = sandbox.crew(&["doctor"]).success();
    assert!(page.ends_with("\nnothing is broken\n"), "{page}");
}

#[test]
fn each_planted_fault_is_reported_alone_with_its_fix() {
    for (code, fix, exit, plant) in FAULTS {
        let sandbox = healthy();
        plant(&sandbox);
        let ran = sandbox.crew(&["doctor", "--json"]);
        let found = findings(&ran);
        let codes: Vec<&Value> = found.iter().map(|it| &it["code"]).collect();
        assert_eq!(codes, [code], "{found:#?}");
        assert!(found[0]["fix"].as_str().unwrap().contains(fix), "{found:#?}");
        assert_eq!(ran.code(), exit, "{code}");
        let page = sandbox.crew(&["doctor"]);
        let line = format!("\n  fix: {}\n", found[0]["fix"].as_str().unwrap());
        assert!(page.code() == exit && page.stdout.contains(&line), "{page:#?}");
    }
}

#[test]
fn a_plugin_that_was_passed_to_the_session_only_is_not_missing() {
    let sandbox = healthy();
    tell(&sandbox, "list", &json!([]));
    tell(&sandbox, "market", &json!([]));
    let data = sandbox.home().join(".claude/plugins/data/crew-inline");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("home"), sandbox.crew_home().display().to_string()).unwrap();
    assert_eq!(findings(&sandbox.crew(&["doctor", "--json"])), [""; 0]);
}

#[test]
fn no_fault_of_the_settings_hides_another() {
    let sandbox = healthy();
    let folder = sandbox.home().join(".config/crew");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[loop\n").unwrap();
    sandbox.write(".claude/crew.toml", "[loop]\nverify = [\"true\"]\n");
    let ran = sandbox.env("CREW_MAX_COST", "abc").crew(&["doctor", "--json"]);
    let found = findings(&ran);
    let codes: Vec<&Value> = found.iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["settings-unreadable", "settings-unreadable", "settings-untrusted"]);
    let fix = "correct or unset the variable: until then no loop starts here";
    assert_eq!(found[1]["fix"], fix, "{found:#?}");
}

/// A loop of an installed plugin's session; the test is its client, and lives. Returns its id.
fn begin_a_loop(sandbox: &Sandbox) -> String {
    let data = sandbox.home().join(".claude/plugins/data/crew-crew");
    std::fs::create_dir_all(&data).unwrap();
    let start = json!({
        "hook_event_name": "UserPromptExpansion", "command_name": "crew:loop",
        "command_args": "Build it", "prompt_id": "p", "cwd": sandbox.repository(),
        "session_id": "00000000-0000-4000-8000-000000000001",
        "transcript_path": sandbox.home().join(".claude/projects/repo/session.jsonl"),
    });
    let mut command = sandbox.command(crew());
    command.arg("hook").env("CLAUDECODE", "1").env("CLAUDE_PLUGIN_DATA", data);
    command.env("CLAUDE_PLUGIN_ROOT", folder(sandbox));
    let said = Running::start(command, Some(start.to_string().into_bytes())).wait(DEADLINE);
    let said: Value = serde_json::from_str(&said.success()).unwrap();
    let line = said["systemMessage"].as_str().unwrap();
    line.strip_prefix("loop ").unwrap().split_once(':').unwrap().0.to_owned()
}

#[test]
fn the_plugin_of_a_live_session_is_removed_only_if_a_person_insists() {
    let sandbox = healthy();
    let id = begin_a_loop(&sandbox);
    let refused = sandbox.crew(&["uninstall"]);
    let shown = format!(
        "crew: loop {id} runs in a session, and no hook judges it without the plugin\n\
         hint: crew pause {id} or crew cancel {id} first: its record stays, and crew resume {id} continues it \
         in fresh processes; crew uninstall --yes does it anyway\n"
    );
    assert!(refused.code() == 1 && refused.stderr.starts_with(&shown), "{refused:#?}");
    assert!(folder(&sandbox).exists());
    let said = sandbox.crew(&["uninstall", "--yes"]).success();
    let row = format!("  loop     no hook judges loop {id} any longer: crew cancel {id}\n");
    assert!(said.starts_with("crew is uninstalled\n") && said.ends_with(&row), "{said}");
    tell(&sandbox, "list", &json!([]));
    tell(&sandbox, "market", &json!([]));
    let found = findings(&sandbox.crew(&["doctor", "--json"]));
    let codes: Vec<&Value> = found.iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["plugin-missing", "loop-unjudged"], "{found:#?}");
    sandbox.crew(&["cancel", &id]).success();
    assert_eq!(findings(&sandbox.crew(&["doctor", "--json"])).len(), 1);
    let again = sandbox.crew(&["uninstall"]).success();
    assert!(!again.contains("no hook judges"), "{again}");
}

#[test]
fn a_second_crew_on_the_path_and_a_missing_client_are_reported() {
    let sandbox = healthy();
    let theirs = sandbox.root().join("theirs");
    write_executable(&theirs.join("crew"), "#!/bin/sh\necho another tool\n");
    let path = format!("{}/bin:{}", sandbox.root().display(), theirs.display());
    let sandbox = sandbox.env("PATH", &path);
    std::fs::remove_file(sandbox.root().join("bin/claude")).unwrap();
    let ran = sandbox.crew(&["doctor", "--json"]);
    let codes: Vec<Value> = findings(&ran).iter().map(|it| it["code"].clone()).collect();
    // That PATH has no git either.
    assert_eq!(codes, ["client-missing", "git-missing", "crew-twice"], "{ran:#?}");
    let named = sandbox.crew(&["doctor", "--json", "--client", "/nowhere/claude"]);
    assert_eq!(findings(&named)[0]["code"], "client-silent");
    assert!(Path::new(&theirs).exists());
}

#[test]
fn nothing_is_broken_if_only_another_agent_is_set_up() {
    let sandbox = Sandbox::new();
    let folder = sandbox.home().join(".config/crew");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "loop.agent = \"codex\"\n").unwrap();
    let codes = |ran: &Ran| findings(ran).iter().map(|it| it["code"].clone()).collect::<Vec<_>>();
    let ran = sandbox.crew(&["doctor", "--json"]);
    assert_eq!((ran.code(), codes(&ran)[0].clone()), (1, json!("client-missing")), "{ran:#?}");
    sandbox.program("codex", "true");
    let ran = sandbox.crew(&["doctor", "--json"]);
    assert_eq!(ran.code(), 0, "{ran:#?}");
    let found = findings(&ran);
    assert_eq!(found[0]["severity"], "note");
    let shown = "`claude` is not on PATH, so no session can run loops; crew run works with codex";
    assert_eq!(found[0]["what"], shown);
}

fn what_the_real_client_knows_is_reported(installed: &Installed) {
    let sandbox = Sandbox::new();
    let api = Api::scripted([]);
    let client = Client::new(installed, &sandbox, &api).installed_plugins();
    // The older client is reported with whatever else is found.
    let codes = || {
        let found = findings(&client.crew(&["doctor", "--json"])).into_iter();
        let codes = found.map(|it| it["code"].as_str().unwrap().to_owned());
        codes.filter(|code| code != "client-older").collect::<Vec<_>>()
    };
    assert_eq!(codes(), ["plugin-missing"]);
    client.crew(&["install"]).success();
    assert_eq!(codes(), Vec::<String>::new());
    settings(&sandbox, &json!({"enabledPlugins": {"crew@crew": false}}));
    assert_eq!(codes(), ["plugin-disabled"]);
    std::fs::remove_file(sandbox.file(".claude/settings.json")).unwrap();
    std::fs::rename(folder(&sandbox), sandbox.root().join("moved")).unwrap();
    assert_eq!(codes(), ["plugin-not-loaded", "folder-broken"]);
    client.crew(&["install"]).success();
    assert_eq!(codes(), Vec::<String>::new());
}

/// A fake srun that runs its command here, as on the node `n9`.
const SRUN: &str = r#"while [ "${1#-}" != "$1" ]; do shift; done; SLURMD_NODENAME=n9 exec "$@""#;

#[test]
fn a_failing_srun_is_a_finding_with_its_last_output_and_a_hint() {
    let sandbox = Sandbox::new().env("SBATCH_PARTITION", "the $long one");
    for (srun, what, fix) in [
        (
            "echo \"srun: error: no partition $SLURM_PARTITION\" >&2; exit 1",
            "srun: error: no partition the $long one",
            "squeue --me shows whether Slurm answers",
        ),
        (
            "echo 'slurmstepd: error: execve(): /crew: No such file' >&2
             echo 'srun: error: n1: task 0: Exited with exit code 2' >&2; exit 2",
            "slurmstepd: error: execve(): /crew: No such file",
            "install crew on the nodes, as /",
        ),
        ("echo Welcome", "its output has no report", "look at srun -n1 /"),
        ("exec no-such-program", "", "install Slurm's commands, or name a login node"),
    ] {
        sandbox.program("srun", srun);
        let ran = sandbox.crew(&["doctor", "--on", "slurm", "--json"]);
        assert_eq!(ran.code(), 1, "{ran:#?}");
        assert!(ran.stderr.starts_with("crew: waiting for a place on slurm"), "{ran:#?}");
        let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
        let [finding] = &shown["findings"].as_array().unwrap()[..] else { panic!("{shown:#}") };
        assert_eq!(finding["code"], "cluster-silent", "{shown:#}");
        assert!(finding["what"].as_str().unwrap().contains(what), "{shown:#}");
        assert!(finding["fix"].as_str().unwrap().starts_with(fix), "{shown:#}");
    }
}

#[test]
fn a_node_is_checked_for_the_agent_of_the_settings_or_the_named_one() {
    let sandbox = Sandbox::new();
    sandbox.program("srun", SRUN);
    sandbox.program("codex", "exit 7");
    let asked = |words: &[&str]| {
        let ran = sandbox.crew(&[&["doctor", "--on", "slurm"], words].concat());
        (ran.code(), ran.stdout)
    };
    insta::assert_snapshot!(asked(&["--agent", "codex"]).1.split_once('\n').unwrap().1, @"
      cluster  slurm
      node     n9
      agent    codex
      model    not tried: crew does not know where this agent's model is
      remote   not tried: this repository has none

    nothing is broken
    ");
    sandbox.write(".claude/crew.toml", "[loop]\nagent = \"qwen\"\n");
    let (code, page) = asked(&[]);
    assert_eq!(code, 1);
    assert!(page.contains("broken: n9: agent qwen: there is no program `qwen` on PATH"), "{page}");
    let unknown = sandbox.crew(&["doctor", "--on", "slurm", "--agent", "codx"]);
    assert_eq!(unknown.code(), 2, "{unknown:#?}");
    assert_eq!(sandbox.crew(&["doctor", "--agent", "codex"]).code(), 2);
}

/// A repository with a remote, and an agent with a key whose service answers.
fn on_a_healthy_node(service: &TcpListener) -> Sandbox {
    let base = format!("http://{}", service.local_addr().unwrap());
    let sandbox =
        Sandbox::new().env("ANTHROPIC_BASE_URL", &base).env("ANTHROPIC_API_KEY", "no key");
    sandbox.program("srun", SRUN);
    sandbox.program("claude", "exit 7");
    let remote = sandbox.root().join("remote.git").display().to_string();
    sandbox.git(&["init", "--quiet", "--bare", &remote]);
    sandbox.git(&["remote", "add", "origin", &remote]);
    sandbox
}

#[test]
fn each_fault_of_a_node_is_reported_alone_with_its_fix() {
    let faults: [fn(Sandbox) -> Sandbox; 8] = [
        |it| it,
        |it| {
            let report = r#"echo '{"node":"n1","version":"0.0.9","git":false}'"#;
            it.program("srun", report);
            it
        },
        |it| {
            it.program("git", r#"[ "$SLURMD_NODENAME" ] && exit 1; exec /usr/bin/git "$@""#);
            it
        },
        |it| {
            let hook = it.root().join("remote.git/hooks/pre-receive");
            write_executable(&hook, "#!/bin/sh\nexit 1\n");
            it
        },
        |it| {
            std::fs::remove_dir_all(it.root().join("remote.git")).unwrap();
            it
        },
        |it| {
            std::fs::remove_file(it.root().join("bin/claude")).unwrap();
            it
        },
        |it| it.env("ANTHROPIC_BASE_URL", "nonsense"),
        |it| it.env("ANTHROPIC_API_KEY", ""),
    ];
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let found = faults.map(|plant| {
        let sandbox = plant(on_a_healthy_node(&service));
        let ran = sandbox.crew(&["doctor", "--on", "slurm", "--json"]);
        let found = findings(&ran);
        assert!(found.len() < 2, "{found:#?}");
        let lines = found.iter().map(|it| {
            let [severity, code, what, fix] =
                ["severity", "code", "what", "fix"].map(|key| it[key].as_str().unwrap());
            let root = sandbox.root().display().to_string();
            format!("{severity} {code}: {what}\n  {fix}\n").replace(&root, "[home]")
        });
        lines.collect::<String>()
    });
    insta::assert_snapshot!(found.concat(), @"
    broken node-crew-differs: n1 has crew 0.0.9, and this is crew 0.1.0
      install the same version in both places
    broken node-git-missing: n9: `git` does not answer, and each job clones and pushes
      install git on the nodes
    broken node-remote-refuses: n9: the remote accepts no refs/crew/*
      have its rules let this account push them
    broken node-remote-fails: n9: the remote: '[home]/remote.git' does not appear to be a git repository
      look at git remote -v: git ls-remote [home]/remote.git must list the refs
    broken node-agent-missing: n9: agent claude: there is no program `claude` on PATH
      install it on the nodes, or put its folder on the PATH of jobs; --agent NAME tries another
    broken node-network: n9: no way out to the agent's model at ANTHROPIC_BASE_URL: it is not the address of a service
      run jobs where the nodes reach it, by SBATCH_PARTITION; or set HTTPS_PROXY or ANTHROPIC_BASE_URL
    warning node-key-missing: n9: the agent has no key that crew knows of: ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, CLAUDE_CODE_OAUTH_TOKEN, [home]/home/.claude/.credentials.json
      set one where the job starts, or log in once on a home that the nodes share
    ");
}
