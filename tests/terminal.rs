//! Commands typed in a terminal: what is close enough is understood; for the rest, the error says
//! what can be done.

use serde_json::{Value, json};

use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::{Ran, Running};

fn begin(sandbox: &Sandbox) -> String {
    let start = json!({
        "hook_event_name": "UserPromptExpansion", "command_name": "crew:loop",
        "command_args": "\"Build it\" --stall 0", "prompt_id": "p",
    });
    sandbox.hook(start).success();
    let reported: Value =
        serde_json::from_str(&sandbox.crew(&["status", "--json"]).success()).unwrap();
    reported["loops"][0]["id"].as_str().unwrap().to_owned()
}

/// The output, with the id of the loop as ID.
fn shown(ran: &Ran, id: &str) -> String {
    format!("exit {}\n{}{}", ran.code(), ran.stdout, ran.stderr).replace(id, "ID")
}

#[test]
fn an_option_of_another_tool_is_answered_with_crews() {
    let sandbox = Sandbox::new();
    let lines: [&[&str]; 9] = [
        &["ls"],
        &["help", "completions"],
        &["stop"],
        &["start"],
        &["start", "build it"],
        &["loop", "build the todo API", "-n", "5", "--verify", "cargo test"],
        &["build it please", "-n", "5"],
        &["fix", "the", "tests"],
        &["xyz"],
    ];
    let reported = lines
        .map(|words| format!("$ crew {}\n{}", words.join(" "), shown(&sandbox.crew(words), "ID")));
    insta::assert_snapshot!(reported.concat(), @r#"
    $ crew ls
    exit 2
    crew: there is no command `ls`
    hint: did you mean crew status --all? crew --help lists all
    $ crew help completions
    exit 0
    Print completions for a shell

    Usage: crew completions <SHELL>

    Arguments:
      <SHELL>  [possible values: bash, zsh, fish]

    Options:
      -h, --help  Print help

    Examples:
      crew install --shell-files
      eval "$(crew completions bash)"
      crew completions fish > ~/.config/fish/completions/crew.fish
    $ crew stop
    exit 2
    crew: there is no command `stop`
    hint: did you mean crew pause (after this iteration, --now at once) or crew cancel (ends it; can be resumed)? crew --help lists all
    $ crew start
    exit 2
    crew: there is no command `start`
    hint: crew run "TASK"; in Claude Code: /crew:loop "TASK"
    $ crew start build it
    exit 2
    crew: there is no command `start`
    hint: crew run 'build it'; in Claude Code: /crew:loop "TASK"
    $ crew loop build the todo API -n 5 --verify cargo test
    exit 2
    crew: there is no command `loop`
    hint: crew run 'build the todo API' -n 5 --verify 'cargo test'; in Claude Code: /crew:loop "TASK"
    $ crew build it please -n 5
    exit 2
    crew: `build it please` is a task, not a command
    hint: crew run 'build it please' -n 5
    $ crew fix the tests
    exit 2
    crew: there is no command `fix`
    hint: crew run fix the tests, if it is a task; crew --help lists the commands
    $ crew xyz
    exit 2
    crew: there is no command `xyz`
    hint: crew --help lists the commands
    "#);
    assert_eq!(sandbox.crew(&["help"]).success(), sandbox.crew(&["--help"]).success());
    assert_eq!(sandbox.crew(&["version"]).success(), sandbox.crew(&["--version"]).success());
}

#[test]
fn a_hint_without_a_loop_says_how_to_start_one() {
    let sandbox = Sandbox::new();
    let reported = [&["status"][..], &["status", "--all"], &["show"], &["pause"]]
        .map(|words| shown(&sandbox.crew(words), "ID"));
    insta::assert_snapshot!(reported.concat(), @r#"
    exit 0
    no loop here: crew run "fix the tests" --verify "cargo test" starts one,
    crew status --all lists those elsewhere
    exit 0
    no loops on this machine: crew run "fix the tests" --verify "cargo test" starts one,
    crew demo shows one
    exit 1
    crew: there is no loop here
    hint: crew run "fix the tests" --verify "cargo test" starts one, crew status --all lists those elsewhere
    exit 1
    crew: there is no loop here
    hint: crew run "fix the tests" --verify "cargo test" starts one, crew status --all lists those elsewhere
    "#);
}

#[test]
fn an_invalid_argument_is_explained_in_at_most_two_lines() {
    let sandbox = Sandbox::new();
    for (words, expected) in [
        (
            &["set", "-n", "ten"][..],
            "crew: invalid value `ten` for `--max-iterations <N>`\nhint: a whole number, such as 15\n",
        ),
        (&["set"], "crew: no limit is named\nhint: crew set --max-iterations 30, or -n +10\n"),
        (&["resume", "a", "b"], "crew: unexpected word `b`\nhint: crew resume --help\n"),
        (
            &["resume", "--context", "x"],
            "crew: `--context` is an option of crew run\nhint: crew resume --help\n",
        ),
        (&["status", "--jsn"], "crew: unknown option `--jsn`\nhint: did you mean --json?\n"),
        (
            &["handoff"],
            "crew: `<DESCRIPTION>...` is missing\nhint: crew handoff \"the parser is done, its tests are next\"\n",
        ),
        (&["show", "--raw"], "crew: `--log` is missing\nhint: crew show --log -f\n"),
        (
            &["stats"],
            "crew: there is no command `stats`\nhint: did you mean crew status? crew --help lists all\n",
        ),
        (
            &["history", "--limit", "x"],
            "crew: invalid value `x` for `--limit <N>`\nhint: a whole number, such as 15\n",
        ),
        (
            &["set", "-n", "+0"],
            "crew: `+0` adds nothing to a limit\nhint: crew set -n +10 adds ten iterations\n",
        ),
    ] {
        let ran = sandbox.crew(words);
        assert_eq!((ran.code(), ran.stderr.as_str()), (2, expected), "{words:?}");
    }
}

#[test]
fn a_help_page_is_the_same_however_it_is_requested() {
    let sandbox = Sandbox::new();
    for verb in ["", "run", "resume", "set", "status", "install", "fleet", "fleet run"] {
        let verb: Vec<&str> = verb.split_whitespace().collect();
        let page = sandbox.crew(&[&verb[..], &["--help"]].concat()).success();
        assert_eq!(sandbox.crew(&[&verb[..], &["-h"]].concat()).success(), page);
        assert_eq!(sandbox.crew(&[&["help"], &verb[..]].concat()).success(), page);
        if verb.is_empty() || verb == ["fleet"] {
            let none = sandbox.crew(&verb);
            let reported = none.code();
            let (code, shown, other) = match verb.len() {
                0 => (0, none.stdout, none.stderr),
                _ => (2, none.stderr, none.stdout),
            };
            assert_eq!((reported, shown, other), (code, page, String::new()));
        }
    }
    let run = |words: &[&str]| sandbox.crew(&[&["run"], words].concat()).success();
    let (short, whole) = (run(&["--help"]), run(&["--help", "--all"]));
    assert_eq!(run(&["--all", "-h"]), whole);
    let last = "`crew run --help --all` lists the other 23 options.\n";
    assert!(short.ends_with(last) && whole.contains("--no-worse"), "{short}");
    assert!(!short.contains("--no-worse"), "{short}");
}

#[test]
fn an_error_after_crew_fleet_names_a_fix_or_the_help_page() {
    let sandbox = Sandbox::new();
    for (words, expected) in [
        (
            &["fleet", "WRONG"][..],
            "crew: there is no command `fleet WRONG`\nhint: crew fleet --help lists the commands\n",
        ),
        (
            &["fleet", "stauts"],
            "crew: there is no command `fleet stauts`\nhint: did you mean crew fleet status? crew fleet --help lists all\n",
        ),
        (
            &["fleet", "stop"],
            "crew: there is no command `fleet stop`\nhint: did you mean crew pause FLEET (resumed by crew resume FLEET) or crew cancel FLEET (ends it)? crew fleet --help lists all\n",
        ),
        (
            &["fleet", "resume"],
            "crew: there is no command `fleet resume`\nhint: did you mean crew resume FLEET or FLEET/TASK? crew fleet --help lists all\n",
        ),
        (&["fleet", "run"], "crew: `<FOLDER>` is missing\nhint: crew fleet run --help\n"),
        (
            &["fleet", "show"],
            "crew: there is no command `fleet show`\nhint: did you mean crew show FLEET/TASK? crew fleet --help lists all\n",
        ),
        (
            &["fleet", "forget", "shop"],
            "crew: there is no command `fleet forget`\nhint: did you mean crew fleet clean FLEET? crew fleet --help lists all\n",
        ),
        (
            &["fleet", "cancel", "--task", "a"],
            "crew: there is no command `fleet cancel`\nhint: did you mean crew cancel FLEET or crew cancel FLEET/TASK? crew fleet --help lists all\n",
        ),
        (&["fleet", "attempt"], "crew: `<SPEC>` is missing\nhint: crew fleet attempt --help\n"),
        (
            &["fleet", "run", "--land", "my tasks"],
            "crew: invalid value `my tasks` for `--land [<pr>]`\nhint: pr or nothing; the folder is before it: crew fleet run FOLDER --land\n",
        ),
        (
            &["fleet", "run", "tasks", "--land=tasks"],
            "crew: invalid value `tasks` for `--land [<pr>]`\nhint: pr or nothing; the folder is before it: crew fleet run FOLDER --land\n",
        ),
        (
            &["tell", "--task", "b", "Hello"],
            "crew: unknown option `--task`\nhint: crew tell --help\n",
        ),
    ] {
        let ran = sandbox.crew(words);
        assert_eq!((ran.code(), ran.stderr.as_str()), (2, expected), "{words:?}");
    }
}

#[test]
fn a_subcommand_of_another_tool_suggests_crews_if_there_is_one() {
    let sandbox = Sandbox::new();
    for (word, verb) in [
        ("list", Some("status --all")),
        ("logs", Some("show --log -f")),
        (
            "quit",
            Some(
                "pause (after this iteration, --now at once) or crew cancel (ends it; can be resumed)",
            ),
        ),
        ("continue", Some("resume")),
        ("prune", Some("clean")),
        ("rm", Some("clean")),
        ("monitor", Some("watch")),
        ("dashboard", Some("watch")),
        ("top", Some("watch")),
        ("settings", Some("config")),
        ("undo", Some("back")),
        ("update", None),
        ("upgrade", None),
    ] {
        let guess = verb.map(|verb| format!("did you mean crew {verb}? crew --help lists all"));
        let hint = guess.unwrap_or_else(|| "crew --help lists the commands".to_owned());
        let expected = format!("crew: there is no command `{word}`\nhint: {hint}\n");
        let ran = sandbox.crew(&[word]);
        assert_eq!((ran.code(), ran.stderr), (2, expected));
    }
}

#[test]
fn a_page_in_html_is_written_to_a_file_and_a_folder_is_refused_by_its_name() {
    let sandbox = Sandbox::new();
    let id = begin(&sandbox);
    let refused = sandbox.crew(&["show", "--html", "."]);
    let reported = format!(
        "crew: . is a folder, and --html needs the path of a file\nhint: crew show {id} --html ./{id}.html\n"
    );
    assert_eq!((refused.code(), refused.stderr), (2, reported));
    sandbox.crew(&["show", &id, "--html", &format!("./{id}.html")]).success();
    assert!(sandbox.file(&format!("{id}.html")).exists());
}

#[test]
fn a_faulty_settings_file_names_an_option_that_the_command_has() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude/crew.toml", "[loop\n");
    sandbox.write("tasks/a.md", "Do it.\n");
    let run = ["run", "Do it", "--agent-cmd", "true"];
    for words in [&["config"][..], &["trust"], &run] {
        let refused = sandbox.crew(words);
        let hint = "\nhint: fix the file; until then `crew run --no-project` starts a loop here\n";
        assert!(refused.code() == 1 && refused.stderr.ends_with(hint), "{words:?}: {refused:#?}");
    }
    // No option leaves the file out of a fleet.
    let refused = sandbox.crew(&["fleet", "run", "tasks"]);
    let hint = "\nhint: correct that; nothing was started\n";
    assert!(refused.code() == 2 && refused.stderr.ends_with(hint), "{refused:#?}");
    let begun = sandbox.crew(&[&run[..], &["--no-project", "-n", "1"]].concat());
    assert!(begun.stdout.contains("Iteration 1"), "{begun:#?}");
}

/// A tool's rendering of one of crew's pages; `None` if the tool is not installed.
pub(crate) fn read_by(sandbox: &Sandbox, tool: &str, options: &[&str], page: &str) -> Option<Ran> {
    let file = sandbox.root().join("page");
    std::fs::write(&file, page).unwrap();
    let is_there = sandbox.command("which").arg(tool).output().unwrap().status.success();
    let mut command = sandbox.command(tool);
    command.args(options).arg(&file);
    is_there.then(|| Running::start(command, None).wait(DEADLINE))
}

#[test]
fn man_renders_the_pages_without_a_warning() {
    let sandbox = Sandbox::new();
    for (words, reported) in [
        (&["man"][..], "crew-doctor(1)"),
        (&["man", "run"], "--max-iterations"),
        (&["man", "resume"], "--tell"),
        (&["man", "fleet", "run"], "--land"),
    ] {
        let page = sandbox.crew(words).success();
        assert!(!page.contains("crew-drive"), "{page}");
        match read_by(&sandbox, "groff", &["-ww", "-man", "-Tutf8", "-P-cbou"], &page) {
            Some(read) => {
                assert_eq!((read.code(), read.stderr.as_str()), (0, ""));
                assert!(read.stdout.contains(reported), "{}", read.stdout);
            }
            None => eprintln!("skipped: groff is not installed"),
        }
    }
    let none = sandbox.crew(&["man", "nonesuch"]);
    assert_eq!((none.code(), none.stderr.lines().count()), (2, 2), "{none:#?}");
}

#[test]
fn words_for_the_agent_need_no_quotes() {
    let sandbox = Sandbox::new();
    let id = begin(&sandbox);
    let reported = sandbox.crew(&["tell", "use", "the", "parser", "--loop", &id]);
    insta::assert_snapshot!(shown(&reported, &id), @"
    exit 0
    loop ID: the agent gets the message with its next prompt
    ");
    let stop = json!({
        "hook_event_name": "Stop", "prompt_id": "p", "last_assistant_message": "On it.",
    });
    assert!(sandbox.hook(stop).success().contains("The user says: use the parser"));
    assert_eq!(sandbox.crew(&["tell"]).code(), 2);
}

#[test]
fn a_request_that_comes_too_late_shows_the_status() {
    let sandbox = Sandbox::new();
    let id = begin(&sandbox);
    sandbox.crew(&["cancel", &id]).success();
    insta::assert_snapshot!(shown(&sandbox.crew(&["cancel", &id]), &id), @"
    exit 0
    loop ID is already over: cancelled after 0 iterations
    ");
    insta::assert_snapshot!(shown(&sandbox.crew(&["pause", &id]), &id), @"
    exit 0
    loop ID is already over: cancelled after 0 iterations
    ");
}
