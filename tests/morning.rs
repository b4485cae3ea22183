//! The morning: what happened on this machine since yesterday evening, read in any folder.

use serde_json::Value;

use crate::run::{CLAIM, WORK, World};
use crate::tidy::pattern;

const BLOCKED: &str = "echo '<promise>BLOCKED: which region should it use?</promise>'";

#[test]
fn the_morning_shows_what_ended_what_needs_a_person_and_the_next_command() {
    let world = World::new(&[WORK, CLAIM]);
    let nothing = world.crew(&["status", "--since", "12h"]).success();
    assert!(nothing.contains("no loop has ended"), "{nothing}");

    world.sandbox.git(&["worktree", "add", "--quiet", "../other"]);
    let options = ["--stall", "0", "-q", "--verify", "grep -q 'call 1' work.txt"];
    let run = world.crew(&[&["run", "Write the first line"], &options[..]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    world.steps(&[BLOCKED]);
    let run = world.crew_in("../other", &["run", "Set up the backup", "-q"]);
    assert_eq!(run.code(), 13, "{run:#?}");

    let shown = world.crew(&["status", "--since", "12h"]).success();
    let same = [
        (r"\b[a-z][a-z0-9]{7}\b(  | --tell)", "ID$1"),
        (r"since \d\d:\d\d", "since 22:00"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME"),
        (r" +\d+[smh] +", "  1s  "),
    ];
    let root = world.sandbox.root().display().to_string();
    let text = same.iter().fold(shown.replace(&root, "ROOT"), |text, (regex, same)| {
        pattern(regex).replace_all(&text, *same).into_owned()
    });
    insta::assert_snapshot!(text, @r#"
    since 22:00: 2 loops: 1 completed, 1 blocked

    NEEDS YOU
      ID  TIME  blocked             1  1s  ROOT/other (other)  Set up the backup
        "which region should it use?"
        crew resume ID --tell "your answer"

    ENDED
      ID  TIME  completed, checked  2  1s  ROOT/repo (main)    Write the first line

    next  crew resume ID --tell "your answer"
    "#);

    let shown = world.crew(&["status", "--since", "12h", "--json"]).success();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["loops"].as_array().unwrap().len(), 2, "{shown:#}");
    let both = world.crew(&["status", "--since", "12h", "--all"]);
    assert_eq!(both.code(), 2, "{both:#?}");
}
