//! The pages on fleets, held against the crew that is built: the example is run, and every command
//! is one that crew takes.

use crate::child::Running;
use crate::sandbox::{DEADLINE, Sandbox};
use crate::tidy::pattern;

const PAGE: &str = include_str!("../docs/fleets.md");
const FACTS: &str = include_str!("../docs/fleets-facts.md");
/// What may stand behind `crew` in a page.
const VERBS: &str = "fleet [a-z]+|status|show|diff|tell|pause|cancel|resume|trust|run|doctor";

/// Does the tasks of the page.
const AGENT: &str = r#"case $(cat) in
    *'shell function vat'*) echo 'vat() { echo $(($1 * 119 / 100)); }' > vat.sh ;;
    *'Write invoice.sh'*) printf '. ./vat.sh\necho "total $(vat 100)"\n' > invoice.sh ;;
    *'Write greet.sh'*) echo 'echo hello' > greet.sh ;;
esac
echo '<promise>COMPLETE</promise>'"#;

/// A sandbox with the real crew on the PATH, and the agent of these tests for every task.
fn with_an_agent() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put_crew_on_the_path();
    sandbox.program("agent", AGENT);
    let folder = sandbox.home().join(".config/crew");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = "loop.agent = \"fake\"\nagents.fake.command = [\"agent\"]\n";
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    sandbox
}

#[test]
fn every_command_of_the_pages_is_one_that_crew_takes() {
    let sandbox = Sandbox::new();
    let pages = [PAGE, FACTS].concat();
    let command = pattern(&format!(r"(?m)(?:^|[\s`($])crew ((?:{VERBS})\b[^|>;)`#\n]*)"));
    // Between backticks no verb is left out.
    let quoted = pattern("`crew ([a-z]+)");
    let mut all = 0;
    for found in quoted.captures_iter(&pages) {
        assert!(command.is_match(&found[0]) || &found[1] == "fleet", "{}", &found[0]);
    }
    for found in command.captures_iter(&pages) {
        // In a comment, what it is for stands behind it.
        let typed = found[1].split("  ").next().unwrap();
        let mut words = shell_words::split(typed).unwrap();
        words.push("--help".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = sandbox.crew(&words);
        assert!(ran.code() == 0 && ran.stdout.contains("Usage: crew "), "crew {typed}: {ran:#?}");
        all += 1;
    }
    assert!(all > 20, "only {all} commands were found");
}

#[test]
fn the_example_of_the_page_lands_all_of_its_tasks() {
    let sandbox = with_an_agent();
    let (_, example) = PAGE.split_once("```sh\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    // Nobody can be asked here.
    let trusted = pattern("(?m)^crew fleet run tasks/ --land$").replace(example, "$0 --yes");
    assert_ne!(trusted, example);
    let mut command = sandbox.command("sh");
    command.args(["-ec", &trusted]);
    let told = Running::start(command, None).wait(DEADLINE).success();
    assert!(told.contains("fleet shop: 3 of 3 landed\n"), "{told}");
    let log: Vec<&str> = told.lines().rev().take(4).collect();
    let subjects: Vec<&str> = log.iter().map(|line| line.split_once(' ').unwrap().1).collect();
    // The task with the highest priority is the first, and the one after it comes behind it.
    assert_eq!(
        subjects[..2],
        ["Begin", "Write vat.sh with a shell function vat: it prints an amount with 19 %…"]
    );
    assert!(subjects.iter().any(|subject| subject.starts_with("Write invoice.sh.")), "{log:?}");
}

#[test]
fn the_fleet_file_of_the_page_says_what_its_comments_say() {
    let sandbox = with_an_agent();
    let (_, file) = PAGE.split_once("```toml\n").unwrap();
    sandbox.write("tasks/fleet.toml", file.split_once("```").unwrap().0);
    sandbox.write("tasks/vat.md", "Write vat.sh.\n");
    sandbox.git(&["init", "--quiet", "--bare", "../hub.git"]);
    sandbox.git(&["remote", "add", "origin", "../hub.git"]);
    sandbox.git(&["push", "--quiet", "origin", "main"]);
    // The base is the one of the file, and not the one checked out.
    sandbox.git(&["checkout", "--quiet", "-b", "other"]);
    let told = sandbox.crew(&["fleet", "run", "tasks", "--land", "--dry-run"]).success();
    // Where a line is broken does not matter here.
    let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "fleet shop: 1 task from main, on this machine, 4 at once, at most $50.00 ",
        " setup `npm ci` in each new clone ",
        " verify `npm test` ",
        " land `npm run e2e` on main as it will be ",
        " main, when a task's checks pass on it (--land) ",
        " options max-iterations = \"15\" ",
    ] {
        assert!(words.contains(expected), "{expected}: {told}");
    }
}
