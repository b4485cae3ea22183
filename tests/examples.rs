//! The examples of `examples/`, each run as its README says, in a copy, with a scripted agent of
//! `tests/examples`. Only what a script needs is added: the agent, and `--yes`, because nobody can
//! be asked here.

use std::path::PathBuf;

use serde_json::Value;

use crate::book::blocks;
use crate::sandbox::{Sandbox, checkout};
use crate::spawned::Ran;
use crate::tidy::pattern;

/// A copy of an example in a repository's folder that is not under version control yet.
struct Copied {
    sandbox: Sandbox,
    agent: PathBuf,
    readme: String,
}

fn copied(name: &str) -> Copied {
    let sandbox = Sandbox::without_git();
    sandbox.put_crew_on_the_path();
    let from = checkout().join("examples").join(name);
    sandbox.sh(&format!("cp -R '{}/.' .", from.display())).success();
    let readme = std::fs::read_to_string(from.join("README.md")).unwrap();
    let agent = checkout().join("tests/examples").join(name).join("agent");
    assert!(agent.is_file(), "{} is missing", agent.display());
    Copied { sandbox, agent, readme }
}

impl Copied {
    /// The option that gives a loop the agent.
    fn agent(&self) -> String {
        format!("--agent-cmd '{}'", self.agent.display())
    }

    /// Runs the README's commands, adding options to a command as in each `(command, options)`.
    #[track_caller]
    fn run_the_readme(&self, added: &[(&str, &str)]) -> Ran {
        let shown = blocks(&self.readme, "sh");
        let [shown] = shown[..] else { panic!("README.md shows {} blocks", shown.len()) };
        let mut script = shown.to_owned();
        for (command, options) in added {
            assert_eq!(script.matches(command).count(), 1, "{command} in {script}");
            script = script.replace(command, &format!("{command} {options}"));
        }
        self.sandbox.sh(&script)
    }

    /// Runs the commands in the README's sentences; returns their output.
    #[track_caller]
    fn run_its_sentences(&self) -> String {
        let spans = pattern("`((?:crew|git) [^`]+)`");
        let run = |command: &str| {
            let printed = self.sandbox.sh(command).success();
            assert_ne!(printed, "", "{command} prints nothing");
            printed
        };
        spans.captures_iter(&self.readme).map(|found| run(&found[1])).collect()
    }

    fn status(&self) -> String {
        self.sandbox.git(&["status", "--short"])
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.sandbox.file(file)).unwrap()
    }
}

/// Whether the output contains these texts, one after the other.
#[track_caller]
fn has_in_order(output: &str, texts: &[&str]) {
    let mut rest = output;
    for text in texts {
        let (_, after) = rest.split_once(text).unwrap_or_else(|| panic!("no {text:?} in {output}"));
        rest = after;
    }
}

#[test]
fn every_example_has_a_test() {
    let folders = std::fs::read_dir(checkout().join("examples")).unwrap();
    let mut count = 0;
    for folder in folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        let opening = format!("copied(\"{folder}\")");
        assert!(include_str!("examples.rs").contains(&opening), "no test of examples/{folder}");
        count += 1;
    }
    assert!(count >= 5, "only {count} examples");
}

#[test]
fn a_failing_test_is_fixed_and_proven() {
    let example = copied("failing-test");
    let printed = example.run_the_readme(&[("crew run", &example.agent())]).success();
    let texts = [
        "Check failed: `python3 -m unittest -v` (exit 1)",
        "  | FAILED (failures=3)",
        "  | FAILED (failures=2)",
        "Claim refused: `python3 -m unittest -v` failed (exit 1)",
        "Running the checks without the work...",
        "Completed, proven: `python3 -m unittest -v` passes, and without the work it fails in test_roman.",
        " · completed after 2 iterations · proof: proven\n",
        "roman.py  2 of 6 fail   claimed, refused\n",
        "roman.py  6 tests pass  claimed, proven\n",
        "6: 3 fixed\n",
    ];
    has_in_order(&printed, &texts);
    assert_eq!(example.status(), "M roman.py");
    assert!(example.run_its_sentences().contains("+        while number >= value"));
}

#[test]
#[ignore = "long"]
fn a_refactoring_breaks_no_test() {
    let example = copied("refactoring");
    let printed = example.run_the_readme(&[("crew run", &example.agent())]).success();
    let texts = [
        "  | receipt.py:4: receipt has 35 lines, at most 12 are allowed\n",
        "Claim refused: `python3 -m unittest -v` failed (exit 1), worse than before the loop in test_receipt.Receipt.test_csv",
        "Completed, passing: the checks pass; `python3 -m unittest -v` reports failing tests (2 iterations completed",
        " · completed after 2 iterations · proof: passing\n",
        "receipt.py  3 of 6 fail   claimed, refused\n",
        "receipt.py  5 tests pass  claimed, passing\n",
    ];
    has_in_order(&printed, &texts);
    assert_eq!(example.status(), "M receipt.py");
    assert!(example.run_its_sentences().contains("+def in_euros(cents):"));
}

#[test]
#[ignore = "long"]
fn a_night_run_works_in_one_iteration_and_leaves_a_notice() {
    let example = copied("night");
    let untrusted =
        example.run_the_readme(&[("crew trust", "--help"), ("crew run", &example.agent())]);
    assert_eq!(untrusted.code(), 1, "{untrusted:#?}");
    assert!(untrusted.stderr.contains("the project's settings need trust"), "{untrusted:#?}");

    let example = copied("night");
    let added = [("crew trust", "--yes"), ("crew run", &*example.agent())];
    let printed = example.run_the_readme(&added).success();
    let texts = [
        "trusted 5 on this machine, for loops in ",
        "crew: iteration 1 of loop ",
        " · completed after 1 iteration · proof: checked\n",
        "  why     `sh test.sh` passes: 8 tests; before the loop 7 of 8 tests failed\n",
    ];
    has_in_order(&printed, &texts);
    let notice = "completed, iteration 1, ? dollars: a check that had failed now passes\n";
    assert_eq!(example.read("notices.txt"), notice);
    assert_eq!(example.sandbox.git(&["log", "--oneline"]).lines().count(), 2);
    assert_eq!(example.status(), "");
    assert!(example.run_its_sentences().contains("completed, checked"));
}

/// The example with the agent that prints Claude Code's events, or with another agent.
fn night_with(agent: &str) -> Copied {
    let example = copied("night");
    let folder = example.sandbox.home().join(".config/crew");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), format!("[agents.scripted]\n{agent}\n")).unwrap();
    let begin = "git init -q && git add . && git commit -qm Begin && crew trust --yes";
    example.sandbox.sh(begin).success();
    example
}

#[test]
#[ignore = "long"]
fn a_night_run_ends_at_its_limit_and_continues_with_a_higher_one() {
    let agent = checkout().join("tests/examples/night/agent");
    let agent = format!(
        "command = [\"{}\", \"--events\"]\noutput = \"claude\"\nlogin = []",
        agent.display()
    );
    let example = night_with(&agent);
    let run = "crew run --prompt-file TASK.md --agent scripted --max-cost 0.40";
    let ended = example.sandbox.sh(run);
    assert_eq!(ended.code(), 10, "{ended:#?}");
    let texts = [
        "Exhausted: the cost limit of $0.40 is reached: $0.50 (2 iterations completed",
        " · exhausted after 2 iterations · 2 of 8 tests fail\n",
        "  then    crew resume ",
        " --max-cost +0.40\n",
    ];
    has_in_order(&ended.stdout, &texts);
    let printed = example.sandbox.sh("crew resume --max-cost +1").success();
    has_in_order(&printed, &[" · completed after 3 iterations · proof: checked\n"]);
    let notices = "exhausted, iteration 2, 0.5 dollars: the cost limit of $0.40 is reached: $0.50\n\
         completed, iteration 3, 0.75 dollars: a check that had failed now passes\n";
    assert_eq!(example.read("notices.txt"), notices);
}

#[test]
#[ignore = "long"]
fn a_night_whose_cost_is_unknown_needs_a_person_after_one_iteration() {
    let nothing = "command = [\"sh\", \"-c\", \"cat >/dev/null; echo Nothing is done yet.\"]";
    let example = night_with(nothing);
    let ended = example.sandbox.sh("crew run --prompt-file TASK.md --agent scripted");
    assert_eq!(ended.code(), 13, "{ended:#?}");
    let notice = "blocked, iteration 1, ? dollars: its limit on cost or tokens cannot be kept";
    assert!(example.read("notices.txt").starts_with(notice), "{}", example.read("notices.txt"));
}

/// The example with its agent in the copy's `fleet.toml`.
fn a_fleet() -> Copied {
    let example = copied("fleet");
    let settings = example.read("tasks/fleet.toml");
    let limit = "max-iterations = 6\n";
    let agent = format!("{limit}agent-cmd = \"{}\"\n", example.agent.display());
    assert!(settings.contains(limit));
    example.sandbox.write("tasks/fleet.toml", &settings.replace(limit, &agent));
    example
}

#[test]
#[ignore = "long"]
fn a_fleet_lands_four_tasks_in_order() {
    let example = a_fleet();
    let run = "crew fleet run tasks/ --land";
    let planned = example.run_the_readme(&[(run, "--dry-run")]).success();
    let texts = [
        "fleet statistics: 4 tasks from main, on this machine, 2 at once, at most $10.00\n",
        "4  report  after mean, median, table\n",
        "  overlap mean, median: both touch stats.py, one by one\n",
        "  land    `python3 -m compileall -q .` on main as it will be\n",
    ];
    has_in_order(&planned, &texts);
    let ran = example.sandbox.sh(&format!("{run} --yes"));
    assert!(ran.stderr.contains("max-cost cannot count what these use"), "{ran:#?}");
    let printed = ran.success();
    assert!(printed.contains("\nfleet statistics: 4 of 4 landed\n"), "{printed}");
    let line = |words: [&str; 2]| {
        let is_it = |line: &str| line.split_whitespace().skip(1).take(2).eq(words);
        printed.lines().position(is_it).unwrap_or_else(|| panic!("no {words:?} in {printed}"))
    };
    for task in ["mean", "median", "table"] {
        assert!(line([task, "landed"]) < line(["report", "starts"]), "{printed}");
    }
    assert!(line(["mean", "landed"]) < line(["median", "starts"]), "{printed}");
    assert!(line(["table", "starts"]) < line(["median", "starts"]), "{printed}");

    let log = example.run_its_sentences();
    let mut subjects: Vec<&str> = log.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    subjects[1..4].sort_unstable();
    let expected = [
        "Write report.py, which prints a table of mean and median",
        "Write table.py with the function table",
        "Write the function mean in stats.py",
        "Write the function median in stats.py",
        "Begin",
    ];
    let pairs = subjects.iter().zip(expected);
    assert!(subjects.len() == 5 && pairs.clone().all(|(is, begin)| is.starts_with(begin)), "{log}");
    let tests =
        "python3 -m unittest tests.test_mean tests.test_median tests.test_table tests.test_report";
    example.sandbox.sh(tests).success();
}

#[test]
#[ignore = "long"]
fn a_fleet_without_a_remote_does_not_land() {
    let example = a_fleet();
    example.sandbox.sh("git init -q -b main && git add . && git commit -qm Begin").success();
    let refused = example.sandbox.sh("crew fleet run tasks/ --land --yes");
    assert_eq!(refused.code(), 1, "{refused:#?}");
    assert!(refused.stderr.contains("this repository has no remote to push to"), "{refused:#?}");
}

#[test]
fn in_ci_a_script_acts_on_the_exit_code() {
    let example = copied("ci");
    let printed = example.run_the_readme(&[("sh ci/fix.sh", &example.agent())]).success();
    let (_, result) = printed.split_once("trusted ").unwrap();
    let (_, result) = result.split_once('\n').unwrap();
    let fixed = "Fixed: apply fix.patch with git apply.\n\
         - outcome: completed\n\
         - proof: checked\n\
         - why: a check that had failed now passes\n\
         - iterations: 1\n\
         - cost: unknown\n";
    assert_eq!(result, fixed, "{printed}");
    let events = example.read("ci-output/events.jsonl");
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.last().unwrap()["event"], "finish");
    assert!(example.read("ci-output/fix.patch").contains("+++ b/slug.py\n"));
    example.sandbox.sh("git stash -q; git apply ci-output/fix.patch").success();
    let again = example.sandbox.sh("GITHUB_STEP_SUMMARY=../summary sh ci/fix.sh").success();
    assert_eq!(again, "The tests pass: there is nothing to do.\n");
    assert_eq!(example.read("../summary"), again);
}

#[test]
#[ignore = "long"]
fn in_ci_each_other_outcome_has_its_exit_code() {
    let nothing = "--agent-cmd \"sh -c 'cat >/dev/null; echo Nothing.'\"";
    let cancels = "--agent-cmd 'crew cancel'";
    let ends = [
        (nothing.to_owned(), 13, "Blocked: it needs you.\n- outcome: blocked\n", ""),
        (
            format!("{nothing} --max-cost 0"),
            13,
            "Blocked: it needs you.\n",
            "--max-cost 0 is ignored: CREW_MAX_COST=5 is the highest cost of a loop here",
        ),
        (format!("{nothing} -n 1"), 10, "Not fixed within its limits.\n", ""),
        (cancels.to_owned(), 14, "Cancelled or interrupted.\n- outcome: cancelled\n", ""),
        ("--no-such-option".to_owned(), 2, "crew run failed with exit code 2.\n", ""),
    ];
    for (options, code, printed, warned) in ends {
        let ended = copied("ci").run_the_readme(&[("sh ci/fix.sh", &options)]);
        assert_eq!(ended.code(), code, "{options}: {ended:#?}");
        assert!(ended.stdout.contains(printed), "{options}: {ended:#?}");
        assert!(ended.stderr.contains(warned), "{options}: {ended:#?}");
    }
}
