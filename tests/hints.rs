//! The remedy that an error names: every command in a hint is typed, in the state in which the hint
//! was given, and prints something.

use std::collections::BTreeSet;

use crate::run::{CLAIM, HANG, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::{Ran, Running};
use crate::tidy::{pattern, product_source};

/// Types a line in a shell.
fn typed(sandbox: &Sandbox, line: &str) -> Ran {
    let mut shell = sandbox.command("sh");
    shell.args(["-c", line]).current_dir(sandbox.repository());
    Running::start(shell, None).wait(DEADLINE)
}

/// The commands of a hint; English words after a command are not part of it.
fn commands(hint: &str, id: &str) -> Vec<String> {
    let word = format!(
        r#"{id}|--?[a-z][a-z-]*(?:=[a-z]+)?|'[^']*'|"[^"]*"|\+?\d+[smh]?(?:\.\.\d+)?|back-\d+"#
    );
    let whole =
        format!(r"\bcrew run(?: [a-z]+)*(?: (?:{word}))*|\bcrew (?:[a-z]+|--help)(?: (?:{word}))*");
    let found = pattern(&whole);
    let verbs = verbs();
    let all = found.find_iter(hint).map(|found| found.as_str().trim_end().to_owned());
    all.filter(|command| command.split(' ').nth(1).is_some_and(|verb| verbs.contains(verb)))
        .collect()
}

/// The words that can follow `crew`.
fn verbs() -> BTreeSet<String> {
    let (_, verbs) = include_str!("../src/cli.rs").split_once("pub enum Verb {").unwrap();
    let verbs = verbs.split("\n}\n").next().unwrap();
    let verb = pattern(r"(?m)^    ([A-Z][a-z]+)\b");
    let names = verb.captures_iter(verbs).map(|found| found[1].to_lowercase());
    names.chain(["--help".to_owned()]).collect()
}

/// Types each line, which is refused, and then the commands that its hint proposes. Returns the
/// number of these commands.
#[track_caller]
fn proposed(sandbox: &Sandbox, id: &str, lines: &[&str]) -> usize {
    sandbox.put_crew_on_the_path();
    let mut all = 0;
    for line in lines {
        let refused = typed(sandbox, line);
        let shown = refused.stderr.split_once("\nhint: ");
        let (fault, hint) = shown.unwrap_or_else(|| panic!("{line}: no way out: {refused:#?}"));
        assert!(fault.starts_with("crew: ") && refused.code() != 0, "{line}: {refused:#?}");
        for command in commands(hint, id) {
            // Following has no end while the loop runs.
            let ran = typed(sandbox, command.trim_end_matches(" -f"));
            let is_silent = ran.stdout.trim().is_empty() && ran.stderr.trim().is_empty();
            // A verb alone, as the one that was meant, may say what it needs.
            let is_right = ran.code() != 2 || command.split(' ').count() == 2;
            assert!(!is_silent && is_right, "{line}: {hint}: {command}: {ran:#?}");
            all += 1;
        }
    }
    all
}

#[test]
fn a_typing_error_is_refused_with_a_hint_that_works() {
    let sandbox = Sandbox::new();
    let lines = [
        "crew stauts",
        "crew cancle",
        "crew undo",
        "crew build",
        "crew rm",
        "crew xyz",
        "crew fix the tests",
        "crew 'build it please' -n 5",
        "crew start 'build it'",
        "crew stop",
        "crew kill",
        "crew run",
        "crew run biuld",
        "crew run 'Do it' --agent nosuch",
        "crew run 'Do it' --agent-cmd 'a \"'",
        "crew run 'Do it' --model x --agent-cmd true",
        "crew run 'Do it' --verify cargo test",
        "crew run 'Do it' --verfy x",
        "crew run 'Do it' -n x",
        "crew run 'Do it' --max-cost x",
        "crew run 'Do it' --require x",
        "crew run --prompt-file nope",
        "crew run 'Do it' --worktree ../x",
        "crew run --list nope",
        "crew run 'Do it' -n 1 -n 2",
        "crew run 'Do it' --dry-run --worktree x",
        "crew show --html",
        "crew show --iteration x",
        "crew show --iteration",
        "crew status zzzz",
        "crew show",
        "crew diff",
        "crew back",
        "crew pause",
        "crew resume",
        "crew cancel",
        "crew set -n 3",
        "crew tell",
        "crew tell ''",
        "crew tell hello",
        "crew handoff 'It is done'",
        "crew prove",
        "crew man nope",
        "crew completions nosh",
        "crew install --marketplace x",
        "crew install --status-line --scope project",
        "crew history --outcome nope",
        "crew history --since x",
        "crew clean zzzz --yes",
        "crew trust --forget --yes",
        "crew watch zzzz",
    ];
    assert!(proposed(&sandbox, "none", &lines) > 30);
}

#[test]
fn the_hint_helps_if_another_loop_is_running() {
    let world = World::new(&[WORK]);
    assert_eq!(world.crew(&["run", "Do it", "-n", "1", "-q"]).code(), 10);
    let id = world.id();
    let over = [
        "crew set -n 3",
        "crew tell hello",
        "crew resume",
        "crew resume -n 1",
        "crew show --iteration 777",
        "crew diff 777",
        "crew diff 0",
        "crew diff 1..",
        "crew back",
        "crew back x",
        "crew back 777",
        "crew back back-9",
        "crew init x",
        "crew handoff --type 'a b' text",
        "crew clean h --yes",
    ];
    let typed_over = proposed(&world.sandbox, &id, &over);
    let live = [
        "crew run 'Another task' --agent-cmd true",
        "crew resume",
        "crew back 0",
        "crew set -n abc",
        "crew show --iteration 1",
        "crew clean $ID",
    ];
    let mut typed_live = 0;
    for line in live {
        let world = World::new(&[HANG, CLAIM]);
        let running = world.hanging(&["run", "Do it", "-n", "3"]);
        let id = world.id();
        typed_live += proposed(&world.sandbox, &id, &[&line.replace("$ID", &id)]);
        world.crew(&["cancel", &id]);
        running.wait(DEADLINE);
    }
    assert!(typed_over + typed_live > 15, "{typed_over}, {typed_live}");
}

#[test]
fn every_option_that_crews_messages_name_exists() {
    let sandbox = Sandbox::new();
    let named = pattern(r"\bcrew (fleet [a-z]+|[a-z]+)((?: [^`;,()·\n]*?)?)(?:[`;,()·\n]|\\n|$)");
    let option = pattern(r"(?:^| )(--[a-z][a-z-]+)");
    let verbs = verbs();
    let mut all = BTreeSet::new();
    for file in product_source() {
        for found in named.captures_iter(&file.text) {
            let verb = found.get(1).unwrap().as_str();
            let first = verb.split(' ').next().unwrap();
            let rest = found.get(2).unwrap().as_str();
            let rest = rest.split(" -- ").next().unwrap();
            for option in option.captures_iter(rest).filter(|_| verbs.contains(first)) {
                all.insert((verb.to_owned(), option.get(1).unwrap().as_str().to_owned()));
            }
        }
    }
    assert!(all.len() > 25, "{all:?}");
    for (verb, option) in all {
        let page = |options: &[&'static str]| {
            let words: Vec<&str> = verb.split(' ').chain(options.iter().copied()).collect();
            sandbox.crew(&words).success()
        };
        let help = page(&["--help"]) + &page(&["--help", "--all"]);
        assert!(help.contains(&option), "crew {verb} has no {option}");
    }
}
