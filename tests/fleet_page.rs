//! Checks the pages on a first fleet and on many tasks with the built crew.

use crate::book::blocks;
use crate::sandbox::Sandbox;
use crate::tidy::pattern;

pub(crate) const PAGE: &str = include_str!("../docs/start/first-fleet.md");
const GUIDE: &str = include_str!("../docs/guides/many-tasks.md");

/// Does the tasks of the pages; asks if one does not state what it needs.
pub(crate) const AGENT: &str = r#"prompt=$(cat)
case $prompt in
    *'shell function vat'*)
        case $prompt in
            *'19 %'*) echo 'vat() { echo $(($1 * 119 / 100)); }' > vat.sh ;;
            *) echo '<promise>BLOCKED: which rate?</promise>'; exit ;;
        esac ;;
    *'Write invoice.sh'*) printf '. ./vat.sh\necho "total $(vat 100)"\n' > invoice.sh ;;
    *'Write greet.sh'*) echo 'echo hello' > greet.sh ;;
esac
echo '<promise>COMPLETE</promise>'"#;

/// A sandbox with the real crew on the PATH, and the agent of these tests for every task.
fn with_an_agent() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put_crew_on_the_path();
    sandbox.make_the_agent(AGENT);
    sandbox
}

#[test]
fn the_example_of_the_page_lands_all_of_its_tasks() {
    let sandbox = with_an_agent();
    let example = blocks(PAGE, "sh").concat();
    // Nobody can be asked here.
    let trusted = pattern("(?m)^crew fleet run tasks/ --land$").replace(&example, "$0 --yes");
    assert_ne!(trusted, example);
    let shown = sandbox.sh(&trusted).success();
    assert!(shown.contains("fleet shop: 3 of 3 landed\n"), "{shown}");
    let log: Vec<&str> = shown.lines().rev().take(4).collect();
    let subjects: Vec<&str> = log.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    // The task with the highest priority is the first, and the one after it comes behind it.
    assert_eq!(
        subjects[..2],
        ["Begin", "Write vat.sh with a shell function vat: it prints an amount with 19 %…"]
    );
    assert!(subjects.iter().any(|subject| subject.starts_with("Write invoice.sh.")), "{log:?}");
}

#[test]
fn the_fleet_file_of_the_page_does_what_its_comments_say() {
    let sandbox = with_an_agent();
    sandbox.write("tasks/fleet.toml", blocks(GUIDE, "toml")[0]);
    sandbox.write("tasks/vat.md", "Write vat.sh.\n");
    sandbox.git(&["init", "--quiet", "--bare", "../hub.git"]);
    sandbox.git(&["remote", "add", "origin", "../hub.git"]);
    sandbox.git(&["push", "--quiet", "origin", "main"]);
    // The base is the one of the file, and not the one checked out.
    sandbox.git(&["checkout", "--quiet", "-b", "other"]);
    let shown = sandbox.crew(&["fleet", "run", "tasks", "--land", "--dry-run"]).success();
    // Where a line is broken does not matter here.
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "fleet shop: 1 task from main, on this machine, 4 at once, at most $50.00 ",
        " setup `npm ci` in each new clone ",
        " verify `npm test` ",
        " land `npm run e2e` on main as it will be ",
        " main, when a task's checks pass on it (--land) ",
        " options max-iterations = \"15\" ",
    ] {
        assert!(words.contains(expected), "{expected}: {shown}");
    }
}
