//! What a person types in a terminal: what is close enough is understood; for the rest, the error
//! says what can be done.

use serde_json::{Value, json};

use crate::child::{Ran, Running};
use crate::sandbox::{DEADLINE, Sandbox};

fn begin(sandbox: &Sandbox) -> String {
    let start = json!({
        "hook_event_name": "UserPromptExpansion", "command_name": "crew:loop",
        "command_args": "\"Build it\" --stall 0", "prompt_id": "p",
    });
    sandbox.hook(start).success();
    let told: Value = serde_json::from_str(&sandbox.crew(&["status", "--json"]).success()).unwrap();
    told["loops"][0]["id"].as_str().unwrap().to_owned()
}

/// The output, with the id of the loop as ID.
fn shown(ran: &Ran, id: &str) -> String {
    format!("exit {}\n{}{}", ran.code(), ran.stdout, ran.stderr).replace(id, "ID")
}

#[test]
fn a_loop_typed_in_a_terminal_is_told_where_to_go() {
    let sandbox = Sandbox::new();
    let ran = sandbox.crew(&["loop", "build the todo API", "-n", "5", "--verify", "cargo test"]);
    insta::assert_snapshot!(shown(&ran, "k3v9abcd"), @r#"
    exit 1
    crew: a terminal has no session to loop in
    hint: crew run 'build the todo API' -n 5 --verify 'cargo test'; or, in Claude Code: /crew:loop "build the todo API" -n 5 --verify "cargo test"
    "#);
    insta::assert_snapshot!(shown(&sandbox.crew(&["loop"]), "k3v9abcd"), @r#"
    exit 1
    crew: a terminal has no session to loop in
    hint: crew run "task"; or, in Claude Code: /crew:loop "task"
    "#);
    assert!(!sandbox.crew(&["--help"]).success().contains("\n  loop"));
}

#[test]
fn what_is_wrong_with_an_argument_is_said_in_a_line_or_two() {
    let sandbox = Sandbox::new();
    for (words, expected) in [
        (
            &["set", "-n", "ten"][..],
            "crew: invalid value 'ten' for '--max-iterations <N>': a whole number, such as 15; + before it adds\n",
        ),
        (&["set"], "crew: no limit is named\nhint: crew set --max-iterations 30, or -n +10\n"),
        (&["resume", "a", "b"], "crew: unexpected argument 'b' found\n"),
        (
            &["resume", "--context", "x"],
            "crew: `--context` is an option of crew run\ncrew resume --help names what can be changed\n",
        ),
        (
            &["status", "--jsn"],
            "crew: unexpected argument '--jsn' found\nhint: a similar argument exists: '--json'\n",
        ),
        (&["handoff"], "crew: the following required arguments were not provided: <DESCRIPTION>\n"),
        (
            &["stop"],
            "crew: stop: which?\nhint: crew pause (after this iteration, --now at once), or crew cancel (ends it; it \
             can be resumed)\n",
        ),
        (&["do it please"], "crew: a task needs a verb\nhint: crew run \"do it please\"\n"),
        (
            &["stats"],
            "crew: unrecognized subcommand 'stats'\nhint: a similar subcommand exists: 'status'\n",
        ),
    ] {
        let ran = sandbox.crew(words);
        assert_eq!((ran.code(), ran.stderr.as_str()), (2, expected), "{words:?}");
    }
    for (words, verb) in
        [(&["ls"][..], "ls is crew status --all"), (&["logs"], "logs is crew show")]
    {
        let ran = sandbox.crew(words);
        assert!(ran.stderr.starts_with(&format!("crew: {verb}")), "{ran:#?}");
    }
    let help = sandbox.crew(&["help", "pause"]).success();
    assert_eq!(help, sandbox.crew(&["pause", "--help"]).success());
    let none = sandbox.crew(&[]);
    assert!(none.code() == 2 && none.stderr.contains("\nUsage: crew <COMMAND>\n"), "{none:#?}");
}

/// What a tool prints of one of crew's pages; `None` if the tool is not installed.
fn read_by(sandbox: &Sandbox, tool: &str, options: &[&str], page: &str) -> Option<Ran> {
    let file = sandbox.root().join("page");
    std::fs::write(&file, page).unwrap();
    let is_there = sandbox.command("which").arg(tool).output().unwrap().status.success();
    let mut command = sandbox.command(tool);
    command.args(options).arg(&file);
    is_there.then(|| Running::start(command, None).wait(DEADLINE))
}

#[test]
fn a_shell_takes_the_completions_and_is_offered_nothing_hidden() {
    let sandbox = Sandbox::new();
    let pages =
        ["bash", "zsh", "fish"].map(|shell| sandbox.crew(&["completions", shell]).success());
    for page in &pages {
        assert!(page.contains("max-iterations") && page.contains("doctor"), "{page}");
        assert!(!page.contains("crew__drive") && !page.contains("Drive a loop"), "{page}");
    }
    let loads = "source \"$0\" && complete -p crew";
    let loaded = read_by(&sandbox, "bash", &["-c", loads], &pages[0]).unwrap();
    assert_eq!((loaded.code(), loaded.stderr.as_str()), (0, ""));
    assert!(loaded.stdout.contains("-F _crew"), "{loaded:#?}");
    let offered = "source \"$0\"; COMP_WORDS=(crew run --max-); COMP_CWORD=2; _crew crew --max- run; \
                   echo ${COMPREPLY[@]}";
    let offered = read_by(&sandbox, "bash", &["-c", offered], &pages[0]).unwrap();
    let expected = "--max-iterations --max-duration --max-cost --max-tokens --max-turns";
    assert_eq!(offered.stdout.trim(), expected);
    for (shell, page) in [("zsh", &pages[1]), ("fish", &pages[2])] {
        match read_by(&sandbox, shell, &["-n"], page) {
            Some(read) => assert_eq!((read.code(), read.stderr.as_str()), (0, "")),
            None => eprintln!("skipped: {shell} is not installed"),
        }
    }
    let other = sandbox.crew(&["completions", "tcsh"]);
    let expected = "crew: invalid value 'tcsh' for '<SHELL>' [possible values: bash, zsh, fish]\n";
    assert!(other.code() == 2 && other.stderr.starts_with(expected), "{other:#?}");
}

#[test]
fn man_takes_the_pages_without_a_warning() {
    let sandbox = Sandbox::new();
    for (words, told) in [
        (&["man"][..], "crew-doctor(1)"),
        (&["man", "run"], "--max-iterations"),
        (&["man", "resume"], "--tell"),
    ] {
        let page = sandbox.crew(words).success();
        assert!(!page.contains("crew-drive"), "{page}");
        match read_by(&sandbox, "groff", &["-ww", "-man", "-Tutf8", "-P-cbou"], &page) {
            Some(read) => {
                assert_eq!((read.code(), read.stderr.as_str()), (0, ""));
                assert!(read.stdout.contains(told), "{}", read.stdout);
            }
            None => eprintln!("skipped: groff is not installed"),
        }
    }
    let none = sandbox.crew(&["man", "nonesuch"]);
    assert_eq!((none.code(), none.stderr.lines().count()), (1, 2), "{none:#?}");
}

#[test]
fn words_for_the_agent_need_no_quotes() {
    let sandbox = Sandbox::new();
    let id = begin(&sandbox);
    let told = sandbox.crew(&["tell", "use", "the", "parser", "--loop", &id]);
    insta::assert_snapshot!(shown(&told, &id), @"
    exit 0
    loop ID: told with the next prompt
    ");
    let stop = json!({
        "hook_event_name": "Stop", "prompt_id": "p", "last_assistant_message": "On it.",
    });
    assert!(sandbox.hook(stop).success().contains("The user says: use the parser"));
    assert_eq!(sandbox.crew(&["tell"]).code(), 2);
}

#[test]
fn an_order_that_comes_too_late_says_how_things_stand() {
    let sandbox = Sandbox::new();
    let id = begin(&sandbox);
    sandbox.crew(&["cancel", &id]).success();
    insta::assert_snapshot!(shown(&sandbox.crew(&["cancel", &id]), &id), @"
    exit 0
    loop ID is over already: cancelled after 0 iterations
    ");
    insta::assert_snapshot!(shown(&sandbox.crew(&["pause", &id]), &id), @"
    exit 0
    loop ID is over already: cancelled after 0 iterations
    ");
}
