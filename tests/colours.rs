//! Colour: output that is coloured on a terminal has the same text without colour, and nothing that
//! is stored or read by a program is coloured.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::run::{CLAIM, WORK, World};
use crate::sandbox::{Sandbox, poll_until};
use crate::spawned::Ran;
use crate::tidy::pattern;

const BLOCKED: &str = "echo '<promise>BLOCKED: which region?</promise>'";
const CHECK: [&str; 4] = ["--stall", "0", "--verify", "grep -q 'call 1' work.txt"];

/// A loop that is completed and one that is blocked.
fn a_world(sandbox: Sandbox) -> World {
    let world = World::of(sandbox, &[WORK, CLAIM]);
    assert_eq!(world.crew(&[&["run", "Write a line"], &CHECK[..]].concat()).code(), 0);
    world.steps(&[BLOCKED]);
    assert_eq!(world.crew(&["run", "Set up the backup"]).code(), 13);
    world
}

fn without_codes(text: &str) -> String {
    pattern("\u{1b}\\[[0-9;]*m").replace_all(text, "").into_owned()
}

/// The text without parts that change over time: times, and the width of their columns.
fn timeless(text: &str) -> String {
    pattern(r" *\b(\d+[smhd]|\d\d:\d\d)\b *").replace_all(text, " TIME ").into_owned()
}

fn is_coloured(text: &str) -> bool {
    text.contains(|it| it == '\u{1b}' || matches!(it, '\u{fdd0}'..='\u{fdef}'))
}

#[test]
fn every_page_has_the_same_text_with_and_without_colour() {
    let world = a_world(Sandbox::new());
    let pages: [&[&str]; 9] = [
        &["status"],
        &["status", "--all"],
        &["status", "--since", "12h"],
        &["show"],
        &["show", "--iteration", "1"],
        &["history"],
        &["watch"],
        &["doctor"],
        &["diff", "0..1"],
    ];
    for page in pages {
        let of = |world: &World, more: &[&str]| {
            let Ran { stdout, stderr, .. } = world.crew(&[more, page].concat());
            stdout + &stderr
        };
        let plain = of(&world, &[]);
        assert!(!is_coloured(&plain), "{page:?}: {plain}");
        let coloured = of(&world, &["--color", "always"]);
        assert!(coloured.contains("\u{1b}["), "{page:?}: {coloured}");
        assert_eq!(timeless(&without_codes(&coloured)), timeless(&plain), "{page:?}");
    }
}

/// Variables, arguments, and whether the output is then coloured.
type Case = (&'static [(&'static str, &'static str)], &'static [&'static str], bool);

#[test]
fn the_colour_option_overrides_the_environment_which_overrides_the_terminal() {
    let cases: [Case; 8] = [
        (&[], &[], false),
        (&[("CLICOLOR_FORCE", "1")], &[], true),
        (&[("CLICOLOR_FORCE", "0")], &[], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[], false),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")], &[], true),
        (&[("CLICOLOR_FORCE", "1")], &["--color", "never"], false),
        (&[("NO_COLOR", "1")], &["--color=always"], true),
        (&[], &["--color", "auto"], false),
    ];
    for (variables, words, expected) in cases {
        let sandbox =
            variables.iter().fold(Sandbox::new(), |it, (name, value)| it.env(name, value));
        let refused = sandbox.crew(&[&["status", "no-such"], words].concat());
        assert_eq!(is_coloured(&refused.stderr), expected, "{variables:?} {words:?}: {refused:#?}");
    }
    let world = World::new(&[CLAIM]);
    for words in [
        &["--color", "always", "run", "Do it"][..],
        &["--color=always", "run", "Do it"],
        &["run", "Do it", "--color", "always"],
        &["run", "--color=always", "Do it"],
    ] {
        let ran = world.crew(words);
        assert!(ran.stdout.contains("\u{1b}[32mcompleted\u{1b}[0m"), "{words:?}: {ran:#?}");
    }
    for words in [&["--color", "sometimes", "run", "Do it"][..], &["run", "Do it", "--color"]] {
        assert_eq!(world.crew(words).code(), 2, "{words:?}");
    }
    let refused = world.crew(&["run", "Do it", "--color", "sometimes"]);
    assert_eq!((refused.code(), world.calls()), (2, 4), "{refused:#?}");
}

#[test]
fn the_colour_option_applies_to_help_pages_and_usage_errors_too() {
    let sandbox = Sandbox::new();
    for (words, code) in [
        (&["run", "--help"][..], 0),
        (&["run", "--help", "--all"], 0),
        (&["help", "fleet"], 0),
        (&["fleet"], 2),
        (&["fleet", "WRONG"], 2),
        (&["run", "--no-such-option"], 2),
        (&["status", "--all", "k3v9"], 2),
        (&["no-such-verb"], 2),
    ] {
        let [plain, coloured] = ["never", "always"].map(|choice| {
            let first = sandbox.crew(&[&["--color", choice], words].concat());
            let last = sandbox.crew(&[words, &[&format!("--color={choice}")]].concat());
            assert_eq!((first.code(), last.code()), (code, code), "{words:?}: {last:#?}");
            assert_eq!((&first.stdout, &first.stderr), (&last.stdout, &last.stderr), "{words:?}");
            first.stdout + &first.stderr
        });
        assert!(!is_coloured(&plain) && is_coloured(&coloured), "{words:?}: {plain}{coloured}");
        assert_eq!(without_codes(&coloured), plain, "{words:?}");
    }
    let page = sandbox.crew(&[]).success();
    assert_eq!(sandbox.crew(&["--color", "never"]).success(), page);
}

/// Every file below a folder that contains colour codes.
fn coloured_files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(coloured_files(&path));
        } else if String::from_utf8(fs::read(&path).unwrap()).is_ok_and(|it| is_coloured(&it)) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn files_and_json_have_no_colour() {
    let world = a_world(Sandbox::new().env("CLICOLOR_FORCE", "1"));
    let story = world.sandbox.root().join("story.html");
    world.crew(&["handoff", "as it is"]).success();
    world.steps(&[BLOCKED]);
    world.crew(&["run", "Look around", "--detach"]).success();
    poll_until("the end of that", || world.crew(&["history"]).stdout.contains("Look around"));
    world.crew(&["show", "--html", story.to_str().unwrap()]).success();
    let mut shown = fs::read_to_string(story).unwrap();
    for words in [
        &["status", "--json"][..],
        &["status", "--since", "12h", "--json"],
        &["show", "--json"],
        &["show", "--iteration", "1", "--json"],
        &["history", "--json"],
        &["config", "--json"],
        &["run", "Go on", "--json"],
    ] {
        let printed = world.crew(words);
        let expected = if words[0] == "run" { 13 } else { 0 };
        assert_eq!(printed.code(), expected, "{words:?}: {printed:#?}");
        for line in serde_json::Deserializer::from_str(&printed.stdout).into_iter::<Value>() {
            assert!(line.unwrap().as_object().is_some_and(|it| !it.is_empty()), "{words:?}");
        }
        assert!(!printed.stdout.is_empty(), "{words:?}: {printed:#?}");
        shown += &printed.stdout;
    }
    assert!(!is_coloured(&shown), "{shown}");
    let kept = [world.sandbox.crew_home(), world.sandbox.repository()];
    let kept: Vec<String> = kept.iter().flat_map(|folder| coloured_files(folder)).collect();
    assert!(kept.is_empty(), "{kept:?}");
}
