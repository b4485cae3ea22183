//! Colour: what has it on a terminal says the same without it, and nothing that is kept or read by
//! a program has any. `crew diff` is shown by the pager of the person's own git.

use std::fs;
use std::path::Path;

use crate::child::{Ran, Running};
use crate::run::{CLAIM, WORK, World};
use crate::sandbox::{DEADLINE, Sandbox, crew, poll_until};
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

fn is_coloured(text: &str) -> bool {
    text.contains(|it| it == '\u{1b}' || matches!(it, '\u{fdd0}'..='\u{fdef}'))
}

#[test]
fn every_page_says_the_same_with_colour_and_without() {
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
        assert_eq!(without_codes(&coloured), plain, "{page:?}");
    }
}

/// Variables, arguments, and whether they give colour.
type Case = (&'static [(&'static str, &'static str)], &'static [&'static str], bool);

#[test]
fn the_option_counts_before_the_environment_and_that_before_the_terminal() {
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
    let refused = world.crew(&["run", "Do it", "--color", "sometimes"]);
    assert_eq!((refused.code(), world.calls()), (2, 4), "{refused:#?}");
}

/// Every file below a folder that holds colour.
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
fn what_is_kept_or_read_by_a_program_has_no_colour() {
    let world = a_world(Sandbox::new().env("CLICOLOR_FORCE", "1"));
    let story = world.sandbox.root().join("story.html");
    world.crew(&["handoff", "as it is"]).success();
    world.steps(&[BLOCKED]);
    world.crew(&["run", "Look around", "--detach"]).success();
    poll_until("the end of that", || world.crew(&["history"]).stdout.contains("Look around"));
    world.crew(&["show", "--html", story.to_str().unwrap()]).success();
    let mut told = fs::read_to_string(story).unwrap();
    for words in [
        &["status", "--json"][..],
        &["status", "--since", "12h", "--json"],
        &["show", "--json"],
        &["show", "--iteration", "1", "--json"],
        &["history", "--json"],
        &["config", "--json"],
        &["run", "Go on", "--json"],
    ] {
        told += &world.crew(words).stdout;
    }
    assert!(!is_coloured(&told), "{told}");
    let kept = [world.sandbox.crew_home(), world.sandbox.repository()];
    let kept: Vec<String> = kept.iter().flat_map(|folder| coloured_files(folder)).collect();
    assert!(kept.is_empty(), "{kept:?}");
}

/// What `crew diff` shows on a terminal whose person has these settings of git.
fn diff(settings: &str, variables: &[(&str, &str)], words: &str) -> String {
    let settings_file = Sandbox::new();
    let file = settings_file.write("gitconfig", settings).display().to_string();
    let sandbox = Sandbox::new().env("GIT_CONFIG_GLOBAL", &file);
    let write = r"printf '\033]52;c;cHduZWQ=\007\033[8mclip\n' > clip; seq 1 5000 > many; echo All is done.";
    let world = World::of(sandbox, &[write]);
    let ran = world.crew(&["run", "Write files", "-n", "1", "-q"]);
    assert_eq!(ran.code(), 10, "{ran:#?}");
    let planted = world.sandbox.root().join("planted");
    world.sandbox.git(&["config", "core.pager", &format!("touch '{}'", planted.display())]);
    let run = format!("'{}' diff {words}", crew().display());
    let mut terminal = world.sandbox.command("script");
    terminal.args(["--quiet", "--return", "--command", &run, "/dev/null"]).env("TERM", "xterm");
    terminal.envs(variables.iter().copied());
    let told = Running::start(terminal, None).wait(DEADLINE).success();
    assert!(!planted.exists(), "the pager that the repository names was started");
    assert!(!told.contains("\u{1b}]52") && !told.contains("\u{1b}[8m"), "{told:?}");
    told
}

#[cfg(target_os = "linux")]
#[test]
fn a_difference_has_colours_and_the_pager_as_the_persons_git_would() {
    let green = "\u{1b}[32m+clip\u{1b}[0m";
    let paged = diff("[core]\npager = sed 's/^/paged /'\n", &[], "");
    assert!(paged.contains("paged \u{1b}[1mdiff --git") && paged.contains(green), "{paged}");
    let first = diff("[core]\npager = false\n", &[("GIT_PAGER", "head -n 1")], "");
    assert_eq!(first.lines().count(), 1, "{first}");
    let third = diff("", &[("PAGER", "sed 's/^/third /'")], "--stat");
    assert!(third.contains("third  many | 5000 \u{1b}[32m+++"), "{third}");

    for pager in ["", "cat", "no-such-pager"] {
        let shown = diff("[core]\npager = false\n", &[("GIT_PAGER", pager)], "");
        assert!(shown.contains(green), "{pager}: {shown}");
    }
    let cat = [("GIT_PAGER", "cat")];
    let plain = diff("[color]\nui = false\n", &cat, "");
    assert!(plain.contains("+clip") && !plain.contains('\u{1b}'), "{plain}");
    let plain = diff("", &[("GIT_PAGER", "cat"), ("NO_COLOR", "1")], "");
    assert!(plain.contains("+clip") && !plain.contains('\u{1b}'), "{plain}");
}
