//! What a shell offers after Tab: it asks crew, by the script that crew printed for it.

use crate::child::Running;
use crate::fleet::{FleetWorld, ONE};
use crate::sandbox::{DEADLINE, Sandbox};
use crate::terminal::read_by;

/// What is offered for the last of `words`, by the script of bash.
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

#[test]
fn loops_fleets_and_tasks_are_offered_where_a_command_takes_them() {
    let world = FleetWorld::new(ONE).tasks(&["a"], "").ready();
    assert_eq!(world.run(&[]).code(), 0);
    let sandbox = &world.sandbox;
    sandbox.put_crew_on_the_path();
    let list = sandbox.crew(&["status", "--all"]).success();
    // Below the name of its fleet.
    let id = list.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    let all = format!("{id} repo repo/a");
    for (words, expected) in [
        (&["show", ""][..], &*all),
        (&["show", &id[..3]], id),
        (&["show", "repo/"], "repo/a"),
        (&["diff", "zzz"], ""),
        (&["clean", ""], &all),
        // Its loop is over.
        (&["cancel", ""], "repo repo/a"),
        (&["fleet", "status", ""], "repo"),
        (&["fleet", "clean", ""], "repo"),
        (&["tell", ""], "repo repo/a"),
        (&["run", "--agent", "co"], "codex copilot"),
        (&["run", "--max-c"], "--max-cost"),
        (&["dri"], ""),
    ] {
        assert_eq!(offered(sandbox, words), expected, "{words:?}");
    }
    let mut zsh = sandbox.command("crew");
    zsh.args(["--", "crew", "show", ""]).env("CREW_COMPLETE", "zsh");
    zsh.env("_CLAP_COMPLETE_INDEX", "2");
    let told = Running::start(zsh, None).wait(DEADLINE).success();
    assert!(told.lines().next().unwrap().starts_with(&format!("{id}:completed: ")), "{told}");
}

#[test]
fn what_cannot_be_looked_at_is_not_offered_and_nothing_is_said() {
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
fn each_shell_takes_its_script() {
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
    let asks = "source <(crew completions fish); complete -C 'crew run --agent cod'";
    if let Some(told) = read_by(&sandbox, "fish", &["-c", asks], "") {
        assert_eq!((told.stdout.trim(), told.stderr.as_str()), ("codex", ""));
    }
    let other = sandbox.crew(&["completions", "tcsh"]);
    let expected = "crew: invalid value `tcsh` for `<SHELL>`\nhint: it can be bash, zsh, fish\n";
    assert!(other.code() == 2 && other.stderr.starts_with(expected), "{other:#?}");
}
