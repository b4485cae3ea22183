//! Ten mornings: what the user finds after a loop was left alone. The page, the handoff and the
//! story in HTML are compared word for word, and every command that a page proposes is typed.

use insta::assert_snapshot;

use super::{CLAIM, HANG, World};
use crate::sandbox::{DEADLINE, Sandbox};
use crate::spawned::Running;
use crate::tidy::pattern;

/// Prints the output of a runner of five tests, of which `$(cat failing.txt)` fail.
const CHECK: &str = "n=$(cat failing.txt 2>/dev/null || echo 3); i=1\n\
    while [ $i -le 5 ]; do\n\
    if [ $i -le $n ]; then echo \"test reset::case_$i ... FAILED\"; else echo \"test reset::case_$i ... ok\"; fi\n\
    i=$((i + 1)); done\n\
    s=ok; test $n -gt 0 && s=FAILED\n\
    echo \"test result: $s. $((5 - n)) passed; $n failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\"\n\
    test $n -eq 0\n";

/// A loop that is left alone.
struct Night {
    task: &'static str,
    options: &'static [&'static str],
    steps: Vec<String>,
    exit: i32,
}

fn step(words: &str) -> String {
    words.to_owned()
}

fn claims(work: &str) -> String {
    format!("{work}; {CLAIM}")
}

impl Night {
    fn world(&self) -> World {
        self.in_world(Sandbox::new())
    }

    fn in_world(&self, sandbox: Sandbox) -> World {
        sandbox.write("check.sh", CHECK);
        sandbox.put_crew_on_the_path();
        World::of(sandbox, &self.steps.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs the loop to its end and checks what the user finds.
    fn passes(&self, name: &str, world: &World) {
        let ran = world.crew(&[&["run", self.task, "-q"], self.options].concat());
        assert_eq!(ran.code(), self.exit, "{name}: {ran:#?}");
        found(name, world);
    }
}

/// Checks what the user finds in the morning, and types the proposed commands.
#[track_caller]
fn found(name: &str, world: &World) {
    let page = world.crew(&["status"]).success();
    let handoffs = world.file("").join("handoffs");
    let beside = world.sandbox.file(".claude/branches");
    let handoff = newest(&beside).or_else(|| newest(&handoffs)).unwrap_or_default();
    let file = world.sandbox.root().join("story.html");
    world.crew(&["show", "--html", file.to_str().unwrap()]).success();
    let html = std::fs::read_to_string(file).unwrap();
    let (_, main) = html.split_once("<main>\n").unwrap();
    assert_snapshot!(format!("{name}_page"), settled(world, &page));
    assert_snapshot!(format!("{name}_handoff"), settled(world, &handoff));
    assert_snapshot!(format!("{name}_html"), settled(world, main));
    type_what_is_proposed(world, &page);
}

/// The text of the only handoff below a folder.
fn newest(folder: &std::path::Path) -> Option<String> {
    let inside = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    inside
        .filter(|path| path.is_dir() || path.parent().is_some_and(|it| it.ends_with("handoffs")))
        .find_map(
            |path| if path.is_dir() { newest(&path) } else { std::fs::read_to_string(path).ok() },
        )
}

/// Types the commands of a page in a shell: each prints something and is no usage error.
#[track_caller]
fn type_what_is_proposed(world: &World, page: &str) {
    let proposed = pattern(r"(?m)^  (?:next|then) +(crew .*?)(?:   .*)?$");
    let commands: Vec<&str> =
        proposed.captures_iter(page).map(|found| found.get(1).unwrap().as_str()).collect();
    assert!(!commands.is_empty(), "{page}");
    for typed in commands {
        let mut command = world.sandbox.command("sh");
        command.args(["-c", typed]).current_dir(world.sandbox.repository());
        let ran = Running::start(command, None).wait(DEADLINE);
        let is_silent = ran.stdout.trim().is_empty();
        assert!(!is_silent && ran.code() != 2, "{typed} prints nothing: {ran:#?}");
    }
}

fn settled(world: &World, text: &str) -> String {
    let id = world.file("").file_name().unwrap().to_str().unwrap().to_owned();
    let text = world.same(text).replace(&id, "ID");
    let changes = [
        (r"from (\d{4}-\d\d-\d\d )?\d\d:\d\d to (\d{4}-\d\d-\d\d )?\d\d:\d\d", "from TIME to TIME"),
        (r"\d{8}T\d{6}Z", "TIME"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?", "TIME"),
        (r"process(es of crew)? \d+", "process PID"),
        (r"\b1\.0s\b", "1s"),
        (r"height:[0-9]+%", "height:N%"),
        (r"(?m)^[0-9a-f]{7} |\b[0-9a-f]{7} (Add|crew)", "COMMIT $1"),
    ];
    changes
        .iter()
        .fold(text, |text, (regex, same)| pattern(regex).replace_all(&text, *same).into_owned())
}

#[test]
fn pages_after_a_refused_and_then_completed_run() {
    let night = Night {
        task: "Add password reset by mail: a one-time token, valid for 30 minutes, sent by SMTP; a second use is \
               refused and logged.",
        options: &["--verify", "sh check.sh"],
        steps: vec![
            step(
                "mkdir -p src/reset; echo a > src/reset/token.rs; echo 2 > failing.txt; echo 'Token and migration are in.'",
            ),
            claims(
                "echo b > src/mail.rs; echo 1 > failing.txt; echo 'Compared local time with UTC.'",
            ),
            claims("echo 0 > failing.txt; echo c >> src/mail.rs"),
        ],
        exit: 0,
    };
    night.passes("true_end", &night.world());
}

#[test]
fn pages_after_a_run_with_two_refused_claims_and_a_reached_limit() {
    let night = Night {
        task: "Split a discount over the lines of an order so that refunds add up to the cent.",
        options: &["--verify", "sh check.sh", "-n", "4"],
        steps: vec![
            step("echo share > share.ts; echo 'Lines carry their share now.'"),
            claims("echo tax > tax.ts; echo 1 > failing.txt; echo 'Rounding moved to the end.'"),
            claims("echo split >> tax.ts; echo 2 > failing.txt; echo 'Rewrote split() on cents.'"),
            step("echo 'Left: refunds of three lines. I would round tax once, per order.'"),
        ],
        exit: 10,
    };
    night.passes("refused", &night.world());
}

#[test]
fn pages_after_a_run_that_stalled() {
    let night = Night {
        task: "Make the importer twice as fast.",
        options: &["--stall", "3", "-n", "0"],
        steps: vec![
            step("echo fast > importer.py; echo 'Batched the inserts.'"),
            step("echo 'Measuring again before I change anything.'"),
        ],
        exit: 12,
    };
    night.passes("stalled", &night.world());
}

#[test]
fn pages_after_a_run_that_lacks_a_password() {
    let night = Night {
        task: "Move the nightly backup of `billing` to the new bucket and prove a restore.",
        options: &["--verify", "test -e restored"],
        steps: vec![
            step("mkdir -p infra; echo b > infra/bucket.tf; echo 'Bucket and policy are there.'"),
            step(
                "echo '<promise>BLOCKED: the password of database user backup_ro; pg_dump asks for it and it is \
                 not in .env</promise>'",
            ),
            step(CLAIM),
        ],
        exit: 13,
    };
    night.passes("blocked", &night.world());
}

#[test]
fn pages_after_a_test_failed_from_iteration_4_to_30() {
    let night = Night {
        task: "Bring the cart's rounding in line with the invoices.",
        options: &["--gate", "sh check.sh", "--failure-threshold", "0", "-n", "30"],
        steps: vec![
            step("echo 2 > failing.txt; echo a > line.ts; echo 'Lines first.'"),
            step("echo 1 > failing.txt; echo b > tax.ts; echo 'Tax next.'"),
            step("echo 0 > failing.txt; echo c > cents.ts; echo 'All green.'"),
            step("echo 2 > failing.txt; echo $call > split.ts; echo 'Rewrote split() once more.'"),
        ],
        exit: 10,
    };
    night.passes("limit", &night.world());
}

#[test]
fn pages_after_a_cancel_during_an_iteration() {
    let night = Night {
        task: "Rename the package.",
        options: &[],
        steps: vec![
            step("echo a > setup.cfg; echo 'Renamed the folder.'"),
            format!("echo b > half.txt; {HANG}"),
            step("echo 'Nothing left.'"),
        ],
        exit: 14,
    };
    let world = night.world();
    let running = world.hanging(&["run", night.task, "-q", "-n", "9"]);
    world.crew(&["cancel", "--reason", "wrong branch"]).success();
    assert_eq!(running.wait(DEADLINE).code(), night.exit);
    found("cancelled", &world);
}

#[test]
fn pages_after_errors_in_every_iteration() {
    let night = Night {
        task: "Port the parser.",
        options: &["--verify", "sh check.sh"],
        steps: vec![
            step("echo p > parser.rs; echo 'Began with the lexer.'"),
            step("echo 'error: model opus-9 not found' >&2; exit 3"),
        ],
        exit: 11,
    };
    night.passes("crashed", &night.world());
}

#[test]
fn pages_after_a_run_whose_agent_committed_its_work() {
    let night = Night {
        task: "Add the list endpoint.",
        options: &["--verify", "sh check.sh"],
        steps: vec![
            step(
                "echo list > list.py; git add list.py; git commit -qm 'Add the list endpoint'; echo 'Endpoint is in.'",
            ),
            claims(
                "echo 0 > failing.txt; echo test > test_list.py; git add .; git commit -qm 'Add its tests'",
            ),
        ],
        exit: 0,
    };
    night.passes("committed", &night.world());
}

#[test]
fn pages_after_an_unchecked_run_that_added_files() {
    let night = Night {
        task: "Write release notes for 2.0 in notes/.",
        options: &[],
        steps: vec![
            step(
                "mkdir notes; echo 1 > notes/a.md; echo 2 > notes/b.md; echo 'Drafted two pages.'",
            ),
            claims("echo 3 > notes/c.md"),
        ],
        exit: 0,
    };
    night.passes("new_files", &night.world());
}

#[test]
fn pages_after_a_run_without_git() {
    let night = Night {
        task: "Sort the photographs by year.",
        options: &["-n", "3"],
        steps: vec![
            step("mkdir 2024; echo x > 2024/a.txt; echo 'Began with 2024.'"),
            step("mkdir 2025; echo x > 2025/b.txt; echo 'And 2025.'"),
            step("echo 'Three pictures have no date; which year are they?'"),
        ],
        exit: 10,
    };
    night.passes("no_git", &night.in_world(Sandbox::without_git()));
}
