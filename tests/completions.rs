//! The completions that a shell offers after Tab, by the script that crew printed for it.

use crate::client::{Terminal, in_a_terminal, installed, say};
use crate::fleet::{FleetWorld, ONE};
use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::Running;
use crate::terminal::read_by;

/// The shells, each with its options, its own file below the home, and the contents of that file: a
/// prompt to wait for, and no suggestions of the shell's own.
const SHELLS: [(&str, &[&str], &str, &str); 3] = [
    ("bash", &["--noprofile", "--rcfile", "../home/.bashrc"], ".bashrc", "PS1='❯ '\n"),
    ("zsh", &["-d"], ".zshrc", "PROMPT='❯ '\nautoload -U compinit && compinit -u\n"),
    (
        "fish",
        &[],
        ".config/fish/config.fish",
        "set -g fish_greeting\nset -g fish_autosuggestion_enabled 0\n\
         function fish_prompt; echo '❯ '; end\nfunction fish_right_prompt; end\n",
    ),
];

/// Opens a terminal with this shell, whose own file also contains `more`; does nothing if the shell
/// is not installed.
fn in_the_shell(sandbox: &Sandbox, name: &str, more: &str, scenario: impl FnOnce(&Terminal<'_>)) {
    let (_, options, file, text) = SHELLS.into_iter().find(|it| it.0 == name).unwrap();
    let Some(program) = installed(name) else {
        let is_required = std::env::var("CREW_REQUIRE_SHELLS").as_deref() == Ok("1");
        assert!(!is_required, "CREW_REQUIRE_SHELLS=1, but {name} is not installed");
        return say(&format!("skipped: {name} is not installed"));
    };
    let file = sandbox.home().join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, format!("{text}{more}")).unwrap();
    let mut shell = sandbox.command(program);
    shell.args(options);
    in_a_terminal(|| {
        let terminal = Terminal::start(sandbox, &shell);
        terminal.wait_for_text(PROMPT);
        scenario(&terminal);
    });
}

const PROMPT: &str = "❯";

/// Types a line and Tab, and waits until the shell has completed it to this line.
#[track_caller]
fn completes(terminal: &Terminal<'_>, typed: &str, expected: &str) {
    let line = |screen: &str| {
        let line = screen.rsplit(PROMPT).next().unwrap_or_default();
        line.lines().next().unwrap_or_default().trim().to_owned()
    };
    terminal.type_text(typed);
    terminal.key("Tab");
    terminal.wait_for_screen(expected, |screen| line(screen) == expected);
    terminal.key("C-u");
    terminal.wait_for_screen("an empty line", |screen| line(screen).is_empty());
}

/// The completions of the last of `words`, by the script of bash.
#[track_caller]
fn offered(sandbox: &Sandbox, words: &[&str]) -> String {
    let script = "source <(crew completions bash) && complete -p crew > /dev/null\n\
                  COMP_WORDS=(crew \"$@\"); COMP_CWORD=$#; COMP_TYPE=9\n\
                  _clap_complete_crew crew \"${!#}\" && echo \"${COMPREPLY[*]}\"";
    let mut bash = sandbox.command("bash");
    bash.args(["-c", script, "bash"]).args(words);
    let ran = Running::start(bash, None).wait(DEADLINE);
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{words:?}");
    // Options stand where a word may, too.
    let is_meant = |it: &&str| !it.starts_with('-') || words.last().unwrap().starts_with('-');
    let offered = ran.stdout.split_whitespace().filter(is_meant);
    offered.collect::<Vec<_>>().join(" ")
}

/// A machine with one fleet of one task, whose loop has ended, and the id of that loop.
fn world_with_a_loop() -> (FleetWorld, String) {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    world.sandbox.put_crew_on_the_path();
    let list = world.sandbox.crew(&["status", "--all"]).success();
    // Below the name of its fleet.
    let id = list.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    let id = id.to_owned();
    (world, id)
}

#[test]
fn loops_fleets_and_tasks_are_completed_where_a_command_accepts_them() {
    let (world, id) = world_with_a_loop();
    let (sandbox, id) = (&world.sandbox, id.as_str());
    let all = format!("{id} repo repo/a");
    for (words, expected) in [
        (&["show", ""][..], &*all),
        (&["show", &id[..3]], id),
        (&["show", "repo/"], "repo/a"),
        (&["diff", "zzz"], ""),
        (&["diff", id, ""], "1"),
        (&["back", id, ""], "1"),
        (&["clean", ""], &all),
        // Its loop is over.
        (&["cancel", ""], "repo repo/a"),
        (&["fleet", "status", ""], "repo"),
        (&["fleet", "clean", ""], "repo"),
        (&["tell", ""], "repo repo/a"),
        (&["tell", "repo", ""], ""),
        (&["handoff", "review", ""], ""),
        (&["run", "build", ""], ""),
        (&["fleet", "run", "tasks", "--on", ""], "local slurm"),
        (&["fleet", "run", "tasks", "--land=p"], "--land=pr"),
        (&["doctor", "--on", ""], "slurm"),
        (&["man", "run", ""], ""),
        (&["run", "--agent", "c"], "claude codex copilot cursor-agent"),
        (&["run", "--fallback", "codex,cl"], "codex,claude"),
        (&["run", "b"], "build bootstrap"),
        (&["run", "--max-c"], "--max-cost"),
        (&["dri"], ""),
    ] {
        assert_eq!(offered(sandbox, words), expected, "{words:?}");
    }
    let mut zsh = sandbox.command("crew");
    zsh.args(["--", "crew", "show", ""]).env("CREW_COMPLETE", "zsh");
    zsh.env("_CLAP_COMPLETE_INDEX", "2");
    let shown = Running::start(zsh, None).wait(DEADLINE).success();
    assert!(shown.lines().next().unwrap().starts_with(&format!("{id}:completed: ")), "{shown}");
}

#[test]
#[ignore = "long"]
fn each_shell_completes_every_name_that_a_command_takes() {
    let (world, id) = world_with_a_loop();
    let (sandbox, id) = (&world.sandbox, id.as_str());
    let own = "[agents.mine]\nlike = 'claude'\n[procedures.nightly]\nact = 'clean up'\n";
    // No shell has to type what a checkout calls a name.
    let own = format!("{own}[agents.'odd;reboot']\nlike = 'claude'\n");
    sandbox.write(".claude/crew.toml", &own);
    let settings = sandbox.home().join(".config/crew/config.toml");
    let users = "[executor.pods]\nsubmit = 'x {script}'\nstatus = 'x {job}'\ncancel = 'x {job}'\n";
    let users = std::fs::read_to_string(&settings).unwrap() + users;
    std::fs::write(&settings, users).unwrap();
    assert_eq!(offered(sandbox, &["run", "--agent", "mi"]), "mine");
    assert_eq!(offered(sandbox, &["run", "--agent", "odd"]), "");
    let lines = [
        ("dem", "demo"),
        ("status ID", "status LOOP"),
        ("show ID", "show LOOP"),
        ("show repo/", "show repo/a"),
        ("show LOOP --iteration ", "show LOOP --iteration 1"),
        ("show --only t", "show --only timed-out"),
        ("history --outcome com", "history --outcome completed"),
        ("diff ID", "diff LOOP"),
        ("back ID", "back LOOP"),
        ("prove ID", "prove LOOP"),
        ("watch ID", "watch LOOP"),
        ("resume ID", "resume LOOP"),
        ("pause repo/", "pause repo/a"),
        ("tell repo/", "tell repo/a"),
        ("clean ID", "clean LOOP"),
        ("handoff rev", "handoff review"),
        ("handoff --type blo", "handoff --type blocked"),
        ("fleet status r", "fleet status repo"),
        ("fleet clean r", "fleet clean repo"),
        ("fleet run ta", "fleet run tasks/"),
        ("fleet run tasks --on p", "fleet run tasks --on pods"),
        ("run nig", "run nightly"),
        ("run --agent mi", "run --agent mine"),
        ("run --fallback codex,mi", "run --fallback codex,mine"),
        ("run --require p", "run --require proven"),
        ("run --require=p", "run --require=proven"),
        ("man fl", "man fleet"),
        ("man fleet st", "man fleet status"),
        ("completions f", "completions fish"),
    ];
    for (shell, _, _, _) in SHELLS {
        let source = match shell {
            "fish" => "crew completions fish | source\n".to_owned(),
            _ => format!("eval \"$(crew completions {shell})\"\n"),
        };
        in_the_shell(sandbox, shell, &source, |terminal| {
            for (typed, expected) in lines {
                // The bash that macOS has hands over such a word as one.
                if shell == "bash" && typed.contains('=') && cfg!(target_os = "macos") {
                    continue;
                }
                let [typed, expected] = [typed, expected].map(|line| {
                    format!("crew {}", line.replace("LOOP", id).replace("ID", &id[..3]))
                });
                completes(terminal, &typed, &expected);
            }
        });
    }
}

#[test]
#[ignore = "long"]
fn a_shell_finds_its_installed_completions_at_the_first_tab() {
    for (shell, more) in [
        // What the package bash-completion does at the first Tab.
        ("bash", "source ~/.local/share/bash-completion/completions/crew\n"),
        ("zsh", "fpath+=(~/.local/share/zsh/site-functions)\ncompinit -u\n"),
        ("fish", ""),
    ] {
        let sandbox = Sandbox::new().env("SHELL", &format!("/bin/{shell}"));
        sandbox.put_crew_on_the_path();
        let placed = sandbox.crew(&["install", "--shell-files"]);
        assert!(placed.stdout.contains(shell), "{placed:#?}");
        in_the_shell(&sandbox, shell, more, |terminal| {
            completes(terminal, "crew hist", "crew history");
            completes(terminal, "crew run --agent cod", "crew run --agent codex");
        });
    }
    let sandbox = Sandbox::new();
    let home = sandbox.home().join(".local");
    sandbox.crew(&["install", "--shell-files"]);
    if let Some(man) = installed("man") {
        let mut man = sandbox.command(man);
        let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
        std::fs::create_dir_all(home.join("bin")).unwrap();
        man.args(["-w", "crew-run"]).env("PATH", path);
        let found = Running::start(man, None).wait(DEADLINE).success();
        assert_eq!(found.trim(), home.join("share/man/man1/crew-run.1").display().to_string());
    }
}

#[test]
#[ignore = "long"]
fn unreadable_names_are_not_completed_and_cause_no_message() {
    let sandbox = Sandbox::new();
    sandbox.put_crew_on_the_path();
    assert_eq!(offered(&sandbox, &["show", ""]), "");
    assert!(!sandbox.crew_home().exists());
    std::fs::create_dir_all(sandbox.crew_home().parent().unwrap()).unwrap();
    std::fs::write(sandbox.crew_home(), "no folder").unwrap();
    assert_eq!(offered(&sandbox, &["show", ""]), "");
    let mut unknown = sandbox.command("crew");
    unknown.args(["--", "crew", ""]).env("CREW_COMPLETE", "tcsh");
    let ran = Running::start(unknown, None).wait(DEADLINE);
    assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
}

#[test]
#[ignore = "long"]
fn each_shell_accepts_its_completion_script() {
    let sandbox = Sandbox::new();
    sandbox.put_crew_on_the_path();
    for shell in ["bash", "zsh", "fish"] {
        let page = sandbox.crew(&["completions", shell]).success();
        assert!(page.contains("CREW_COMPLETE"), "{shell}: {page:?}");
        match read_by(&sandbox, shell, &["-n"], &page) {
            Some(read) => assert_eq!((read.code(), read.stderr.as_str()), (0, "")),
            None => eprintln!("skipped: {shell} is not installed"),
        }
    }
    let asks = "crew completions fish | source; complete -C 'crew run --agent cod'";
    if let Some(shown) = read_by(&sandbox, "fish", &["-c", asks], "") {
        assert_eq!((shown.stdout.trim(), shown.stderr.as_str()), ("codex", ""));
    }
    let other = sandbox.crew(&["completions", "tcsh"]);
    let expected = "crew: invalid value `tcsh` for `<SHELL>`\nhint: it can be bash, zsh, fish\n";
    assert!(other.code() == 2 && other.stderr.starts_with(expected), "{other:#?}");
}
